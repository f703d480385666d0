//! How fast edges come out of files and generators, on one thread: `cargo bench -p graphmill-ingest`.
//!
//! `BENCH_DIR` says where the files are made (default: the folder for temporary files), `BENCH_SCALE` how large:
//! 2^scale vertices and 16 edges for each.
#![allow(clippy::expect_used, reason = "a bench that cannot go on ends")]

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use graphmill_graph::EdgeKind;
use graphmill_ingest::{
    EdgeData, EdgeSink, EdgeSource, FileSource, Generated, GraphRule, Ids, IngestError,
    KroneckerLabels, ReadOptions,
};
use graphmill_storage::{CancelToken, Clock, Disk, IoChoice, MemoryBudget, SystemClock, open_disk};

/// Looks at every edge and does no more.
#[derive(Default)]
struct Reduce(u64);

impl EdgeSink for Reduce {
    fn integers(&mut self, edges: &[(u64, u64)], _: EdgeData<'_>) -> Result<(), IngestError> {
        let sum = edges.iter().fold(0u64, |sum, edge| {
            sum.wrapping_add(edge.0).wrapping_add(edge.1)
        });
        self.0 = self.0.wrapping_add(sum);
        Ok(())
    }
    fn texts(&mut self, edges: &[(&[u8], &[u8])], _: EdgeData<'_>) -> Result<(), IngestError> {
        let sum: usize = edges.iter().map(|edge| edge.0.len() + edge.1.len()).sum();
        self.0 = self.0.wrapping_add(sum as u64);
        Ok(())
    }
}

/// Takes edges to a writer, in a form of choice.
struct Save<W: Write> {
    to: W,
    kind: &'static str,
}

impl<W: Write> EdgeSink for Save<W> {
    fn integers(&mut self, edges: &[(u64, u64)], data: EdgeData<'_>) -> Result<(), IngestError> {
        for (i, (u, v)) in edges.iter().enumerate() {
            match self.kind {
                "u32" => self.to.write_all(&(u | v << 32).to_le_bytes()),
                "wel" => writeln!(
                    self.to,
                    "{u} {v} {}",
                    data.weight(i, EdgeKind::F32).unwrap_or(1.0)
                ),
                "names" => writeln!(self.to, "vertex-{u:x}\tvertex-{v:x}"),
                _ => writeln!(self.to, "{u}\t{v}"),
            }
            .expect("the file takes edges");
        }
        Ok(())
    }
    fn texts(&mut self, _: &[(&[u8], &[u8])], _: EdgeData<'_>) -> Result<(), IngestError> {
        Ok(())
    }
}

fn drain(source: &dyn EdgeSource, disk: &Arc<dyn Disk>, sink: &mut dyn EdgeSink) -> u64 {
    let budget = MemoryBudget::new(256 << 20);
    let mut reader = source.reader(disk, &budget).expect("a reader");
    (0..source.pieces())
        .map(|piece| {
            let report = reader.read(piece, &CancelToken::new(), sink);
            report.expect("a piece that can be read").edges
        })
        .sum()
}

#[expect(clippy::disallowed_methods, reason = "a bench makes its own files")]
fn make(dir: &Path, name: &str, graph: &Generated, disk: &Arc<dyn Disk>) -> PathBuf {
    let path = dir.join(name);
    let file = std::fs::File::create(&path).expect("a file");
    let kind = name.split('.').nth(1).unwrap_or_default();
    let kind = ["u32", "wel", "names"]
        .into_iter()
        .find(|known| *known == kind)
        .unwrap_or("txt");
    let to: Box<dyn Write> = if name.ends_with(".gz") {
        Box::new(flate2::write::GzEncoder::new(
            file,
            flate2::Compression::fast(),
        ))
    } else if name.ends_with(".zst") {
        let encoder = zstd::stream::write::Encoder::new(file, 1).expect("an encoder");
        Box::new(encoder.auto_finish())
    } else {
        Box::new(file)
    };
    let to = std::io::BufWriter::with_capacity(1 << 20, to);
    drain(graph, disk, &mut Save { to, kind });
    path
}

fn main() {
    let clock = SystemClock::default();
    let dir = std::env::var_os("BENCH_DIR").map_or_else(std::env::temp_dir, PathBuf::from);
    let dir = dir.join(format!("graphmill-bench-edges-{}", std::process::id()));
    std::fs::create_dir_all(&dir).expect("a folder");
    let scale = std::env::var("BENCH_SCALE").map_or(21, |scale| scale.parse().expect("a scale"));
    let disk = open_disk(IoChoice::Auto).expect("a disk");
    let kronecker = GraphRule::Kronecker {
        scale,
        degree: 16,
        labels: KroneckerLabels::Permuted,
    };
    let rules = [
        kronecker,
        GraphRule::Uniform {
            vertices: 1 << scale,
            edges: 16 << scale,
        },
        GraphRule::Grid {
            rows: 4 << (scale / 2),
            columns: 2 << scale.div_ceil(2),
        },
    ];
    let generated = |rule, weighted| {
        let weights = if weighted {
            EdgeKind::F32
        } else {
            EdgeKind::None
        };
        Generated::new(rule, 1, weights).expect("a graph")
    };
    for (rule, weighted) in rules.into_iter().zip([false; 3]).chain([(kronecker, true)]) {
        let graph = generated(rule, weighted);
        let start = clock.now();
        let edges = drain(&graph, &disk, &mut Reduce::default());
        let took = (clock.now() - start).as_secs_f64();
        let what = format!("{rule:?}{}", if weighted { ", weighted" } else { "" });
        println!("{what:52} {:7.1} M edges/s", edges as f64 / took / 1e6);
    }
    for name in [
        "snap.txt",
        "weights.wel",
        "names.names",
        "pairs.u32",
        "snap.txt.gz",
        "snap.txt.zst",
    ] {
        let weighted = name.ends_with("wel");
        let path = make(&dir, name, &generated(kronecker, weighted), &disk);
        let options = ReadOptions {
            ids: (name != "names.names").then_some(Ids::Integer),
            weights: if weighted {
                EdgeKind::F32
            } else {
                EdgeKind::None
            },
            ..ReadOptions::default()
        };
        let budget = MemoryBudget::new(256 << 20);
        let paths = [path.clone()];
        let source = FileSource::open(&disk, &budget, &paths, &options, &CancelToken::new())
            .expect("a file of edges");
        // The second reading counts: the first brings the processor up to speed.
        for repeat in [false, true] {
            let start = clock.now();
            let edges = drain(&source, &disk, &mut Reduce::default());
            let took = (clock.now() - start).as_secs_f64();
            if repeat {
                println!(
                    "{name:20} {:8.1} MB {:8.1} MB/s {:7.1} M edges/s",
                    source.amount() as f64 / 1e6,
                    source.amount() as f64 / took / 1e6,
                    edges as f64 / took / 1e6
                );
            }
        }
        std::fs::remove_file(path).expect("the file can go");
    }
    std::fs::remove_dir_all(&dir).expect("the folder can go");
}
