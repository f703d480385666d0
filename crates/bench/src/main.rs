//! `graphmill-bench`: what a message costs in buckets, and by vertex-target communication.
//!
//! | file | what it holds |
//! | --- | --- |
//! | `buckets.rs` | the bucket executor, role by role |
//! | `vertex_target.rs` | message buffers, a parser and queues, as the frameworks have them that BlitzG replaces |
//! | `queues.rs` | queues of vertices: lists of chunks, and slices by in-degree |
//! | `rows.rs` | rows of cells in memory |

#![forbid(unsafe_code)]

mod buckets;
mod queues;
mod rows;
mod vertex_target;

use std::error::Error;
use std::path::{Path, PathBuf};

use clap::{Parser, Subcommand};
use graphmill_graph::StoredGraph;
use graphmill_storage::{IoChoice, MemoryBudget, open_disk};
use serde_json::json;

use crate::buckets::{BucketRun, costs};
use crate::queues::{ChunkLists, Queues, Slices};
use crate::vertex_target::{NoQueues, TargetOptions, TargetTimes, run};

/// Measures the bucket executor on a stored graph
#[derive(Debug, Parser)]
#[command(version)]
struct BenchArgs {
    #[command(subcommand)]
    command: BenchCommand,
}

#[derive(Debug, Subcommand)]
enum BenchCommand {
    /// Print what each step takes for a message: generation, accumulation, and the whole path over UDP
    Buckets {
        graph: PathBuf,
        /// Values of messages
        #[arg(long, value_parser = ["f32", "f64"], default_value = "f32")]
        precision: String,
        #[command(flatten)]
        often: OftenArgs,
    },
    /// Print what a message takes by vertex-target communication, with the best of some sizes
    VertexTarget {
        graph: PathBuf,
        /// Messages of a buffer
        #[arg(long, value_delimiter = ',', default_value = "8192,32768,131072")]
        buffers: Vec<usize>,
        /// Messages ahead of the parser whose queues are loaded
        #[arg(long, value_delimiter = ',', default_value = "0,8,32")]
        ahead: Vec<usize>,
        #[command(flatten)]
        often: OftenArgs,
    },
    /// Print one JSON object: a superstep of PageRank both ways, on ranks of this process
    Compare {
        graph: PathBuf,
        /// Ranks, with one thread each
        #[arg(long, default_value_t = 2)]
        ranks: usize,
        /// Bytes that a rank sends in a second at most
        #[arg(long)]
        rate: Option<u64>,
        #[command(flatten)]
        often: OftenArgs,
    },
}

#[derive(Clone, Copy, Debug, clap::Args)]
struct OftenArgs {
    /// Iterations of a run
    #[arg(long, default_value_t = 10)]
    iterations: usize,
    /// Runs; the figures are medians
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Wall-clock time in place of processor time, which takes half a microsecond to read
    #[arg(long)]
    wall: bool,
}

fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

/// Prints a step: nanoseconds of a message, and millions of messages a second.
fn print(step: &str, ns: f64) {
    println!("{step:<48} {ns:>7.2} ns {:>7.0} M/s", 1e3 / ns);
}

fn buckets(graph: &Path, precision: &str, often: OftenArgs) -> Result<(), Box<dyn Error>> {
    let rounds = (0..often.rounds).map(|_| match precision {
        "f32" => costs::<f32>(graph, often.iterations, !often.wall),
        _ => costs::<f64>(graph, often.iterations, !often.wall),
    });
    let rounds = rounds.collect::<Result<Vec<_>, _>>()?;
    print("generate", median(rounds.iter().map(|of| of.generate)));
    print("accumulate", median(rounds.iter().map(|of| of.accumulate)));
    for (at, name) in ["plain", "sealed"].into_iter().enumerate() {
        let path = |step: usize| median(rounds.iter().map(|of| of.paths[at][step]));
        print(&format!("udp, {name}: generate"), path(0));
        print(&format!("udp, {name}: number, seal, send"), path(1));
        print(&format!("udp, {name}: receive, open, accumulate"), path(2));
        let whole = median(rounds.iter().map(|of| of.paths[at].iter().sum()));
        print(&format!("udp, {name}: the whole path"), whole);
    }
    Ok(())
}

/// Measures queues `Q` with each size of buffer and each distance; returns the best medians.
fn best<Q: Queues + Send>(
    graph: &StoredGraph,
    (buffers, ahead): (&[usize], &[usize]),
    often: OftenArgs,
    options: TargetOptions,
) -> Result<(TargetTimes, TargetOptions), Box<dyn Error>> {
    let mut best: Option<(TargetTimes, TargetOptions)> = None;
    for buffer in buffers {
        for ahead in ahead {
            let options = TargetOptions {
                buffer: *buffer,
                ahead: *ahead,
                ..options
            };
            let rounds = (0..often.rounds).map(|_| run::<Q>(graph, options));
            let mut rounds = rounds.collect::<Result<Vec<_>, _>>()?;
            rounds.sort_by(|a, b| (a.enqueue + a.gather).total_cmp(&(b.enqueue + b.gather)));
            let middle = rounds[rounds.len() / 2];
            let cost = |times: &TargetTimes| times.enqueue + times.gather;
            if best
                .as_ref()
                .is_none_or(|(times, _)| cost(&middle) < cost(times))
            {
                best = Some((middle, options));
            }
        }
    }
    best.ok_or_else(|| "no sizes of buffers".into())
}

fn open(graph: &Path) -> Result<std::sync::Arc<StoredGraph>, Box<dyn Error>> {
    let disk = open_disk(IoChoice::Threads)?;
    Ok(std::sync::Arc::new(StoredGraph::open(
        &disk,
        &MemoryBudget::new(1 << 30),
        graph,
    )?))
}

fn target_options(ranks: usize, often: OftenArgs, rate: Option<u64>) -> TargetOptions {
    TargetOptions {
        ranks,
        buffer: 0,
        ahead: 0,
        iterations: often.iterations,
        rate,
    }
}

fn vertex_target(
    path: &Path,
    sizes: (&[usize], &[usize]),
    often: OftenArgs,
) -> Result<(), Box<dyn Error>> {
    let (graph, options) = (open(path)?, target_options(1, often, None));
    let buckets = (0..often.rounds).map(|_| costs::<f32>(path, often.iterations, !often.wall));
    let buckets = buckets.collect::<Result<Vec<_>, _>>()?;
    let ours = median(buckets.iter().map(|of| of.generate + of.accumulate));
    print("buckets: generate and accumulate", ours);
    let (none, _) = best::<NoQueues>(&graph, sizes, often, options)?;
    print(
        "vertex-target: generate into buffers",
        none.enqueue * 1e9 / none.messages as f64,
    );
    let results = [
        (Slices::NAME, best::<Slices>(&graph, sizes, often, options)?),
        (
            ChunkLists::NAME,
            best::<ChunkLists>(&graph, sizes, often, options)?,
        ),
    ];
    for (name, (times, options)) in results {
        let ns = |seconds: f64| seconds * 1e9 / times.messages as f64;
        print(
            &format!("{name}: generate, parse and queue"),
            ns(times.enqueue),
        );
        print(&format!("{name}: gather"), ns(times.gather));
        let all = ns(times.enqueue + times.gather);
        println!(
            "{:<48} {:>7.2} times buckets (buffers of {} messages, {} ahead)",
            name,
            all / ours,
            options.buffer,
            options.ahead
        );
    }
    Ok(())
}

fn compare(
    path: &Path,
    ranks: usize,
    often: OftenArgs,
    rate: Option<u64>,
) -> Result<(), Box<dyn Error>> {
    let graph = open(path)?;
    let mut lines = Vec::new();
    for _ in 0..often.rounds {
        let run = BucketRun {
            ranks,
            plain: false,
            iterations: often.iterations,
            rate,
            by_cpu: false,
        };
        let ours = run.run::<f32>(path)?;
        let each = often.iterations as f64;
        let sizes = (&[32_768][..], &[8][..]);
        let once = OftenArgs { rounds: 1, ..often };
        let (target, _) = best::<Slices>(&graph, sizes, once, target_options(ranks, often, rate))?;
        lines.push(json!({
            "buckets": {"seconds": ours.wall / each, "bytes_sent": ours.bytes_sent as f64 / each, "memory": ours.peak_memory * ranks as u64},
            "vertex_target": {"seconds": target.wall, "bytes_sent": target.bytes_sent, "memory": target.memory},
        }));
    }
    println!("{}", json!({"ranks": ranks, "rate": rate, "rounds": lines}));
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    match BenchArgs::parse().command {
        BenchCommand::Buckets {
            graph,
            precision,
            often,
        } => buckets(&graph, &precision, often),
        BenchCommand::VertexTarget {
            graph,
            buffers,
            ahead,
            often,
        } => vertex_target(&graph, (&buffers, &ahead), often),
        BenchCommand::Compare {
            graph,
            ranks,
            rate,
            often,
        } => compare(&graph, ranks, often, rate),
    }
}
