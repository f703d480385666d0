//! `graphmill-sim`: checks one seed after the other and prints the seeds that fail.

#![forbid(unsafe_code)]

use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use clap::{Parser, Subcommand};
use graphmill::Error;
use graphmill::advanced::{Clock, SystemClock};
use graphmill_sim::model::{FIGURES, figure};
use graphmill_sim::{Scenario, SeedReport, SkewedGraph, balance, check_seed};
use serde_json::json;

/// Graphmill on simulated machines: each seed decides a graph, a question, a cluster and faults
#[derive(Debug, Parser)]
#[command(version, args_conflicts_with_subcommands = true)]
struct SimArgs {
    #[command(subcommand)]
    command: Option<SimCommand>,
    /// The first seed
    #[arg(long, default_value_t = 0)]
    from: u64,
    /// Number of seeds
    #[arg(long, default_value_t = 1)]
    seeds: u64,
    /// Check more seeds until this many seconds have passed
    #[arg(long, value_name = "SECONDS", default_value_t = 0)]
    time: u64,
    /// Seeds at a time
    #[arg(long, default_value_t = 1)]
    threads: usize,
    /// Print the case of each seed
    #[arg(long)]
    verbose: bool,
}

#[derive(Debug, Subcommand)]
enum SimCommand {
    /// Print the chunks that each rank processes of skewed graphs, without stealing and with it
    Balance {
        /// The seed of the graphs and of the cluster
        #[arg(long, default_value_t = 0)]
        seed: u64,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Print a figure of the paper on Chaos, from a model of its cluster
    Model {
        #[arg(value_parser = FIGURES)]
        figure: String,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
        /// Chunks of edges a machine that are simulated in a pass
        #[arg(long, default_value_t = 2048.0)]
        detail: f64,
    },
}

/// Prints the rows of a figure.
fn model(name: &str, detail: f64, is_json: bool) {
    let Some(table) = figure(name, detail) else {
        return;
    };
    if is_json {
        let rows = table.rows.iter();
        let rows: Vec<_> = rows
            .map(|(label, values)| json!({"label": label, "values": values}))
            .collect();
        let found = json!({
            "figure": name, "title": table.title, "columns": table.columns, "rows": rows, "note": table.note,
        });
        return println!("{found}");
    }
    println!("{}\n\n| | {} |", table.title, table.columns.join(" | "));
    println!("|{}", " --- |".repeat(table.columns.len() + 1));
    for (label, values) in &table.rows {
        let values: Vec<String> = values.iter().map(|value| format!("{value:.3}")).collect();
        println!("| {label} | {} |", values.join(" | "));
    }
    if !table.note.is_empty() {
        println!("\n{}", table.note);
    }
}

/// Prints the balance on each skewed graph.
fn print_balance(seed: u64, is_json: bool) -> Result<(), Error> {
    let mut graphs = Vec::new();
    for graph in SkewedGraph::ALL {
        let report = balance(seed, graph)?;
        match is_json {
            true => graphs.push(report.json()),
            false => print!("{report}"),
        }
    }
    if is_json {
        println!("{}", json!({"seed": seed, "graphs": graphs}));
    }
    Ok(())
}

fn run_command(command: SimCommand) -> ExitCode {
    let done = match command {
        SimCommand::Balance { seed, json } => print_balance(seed, json),
        SimCommand::Model {
            figure,
            json,
            detail,
        } => {
            model(&figure, detail, json);
            Ok(())
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn main() -> ExitCode {
    let cli = SimArgs::parse();
    if let Some(command) = cli.command {
        return run_command(command);
    }
    // A panic is caught and reported with its seed.
    std::panic::set_hook(Box::new(|_| ()));
    let clock = SystemClock::new();
    let (next, has_failed) = (AtomicU64::new(0), AtomicBool::new(false));
    let all = Mutex::new(SeedReport::default());
    let work = || {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= cli.seeds && clock.now() >= Duration::from_secs(cli.time) {
                break;
            }
            let seed = cli.from + number;
            if cli.verbose {
                println!("seed {seed}: {}", Scenario::draw(seed));
            }
            match check_seed(seed) {
                Ok(report) => {
                    let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
                    all.failed += report.failed;
                    all.resumed += report.resumed;
                    all.operations += report.operations;
                }
                Err(what) => {
                    has_failed.store(true, Ordering::Relaxed);
                    println!("{what}\n  again: graphmill-sim --from {seed}");
                }
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..cli.threads.max(1) {
            scope.spawn(work);
        }
    });
    let all = all.into_inner().unwrap_or_else(PoisonError::into_inner);
    let seeds = next.load(Ordering::Relaxed) - cli.threads.max(1) as u64;
    println!(
        "{seeds} seeds, {} attempts failed as they should, {} of them after resuming from a checkpoint, {} operations on disks; {:.1} s",
        all.failed,
        all.resumed,
        all.operations,
        clock.now().as_secs_f64()
    );
    match has_failed.load(Ordering::Relaxed) {
        true => ExitCode::FAILURE,
        false => ExitCode::SUCCESS,
    }
}
