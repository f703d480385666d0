//! A generated graph is the one that an import of its edges stores, in the same bytes, whether its arcs were sorted or told in
//! order, for any options, threads and budget; whatever fails, there is no graph.

use std::path::Path;

use crate::common::{Bench, Memory, naive};
use graphmill_graph::{EdgeKind, Order, VertexId};
use graphmill_ingest::{
    Duplicates, EdgeData, EdgeSink, EdgeSource, Generated, GraphRule, Ids, ImportOptions,
    IngestError, KroneckerLabels, SelfLoops,
};
use graphmill_storage::{Fault, FaultKind, MemoryBudget, On, SplitMix64};

const GRAPH: &str = "/data/graph";

/// Consecutive and scattered graphs of odd sizes, with their neighbours as the definition has them.
fn circulants() -> Vec<(GraphRule, Vec<(u64, u64)>)> {
    let edges = |vertices: u64, degree: u64, gap: u64| {
        let to = move |i: u64, k: u64| (i + k * gap) % vertices;
        (0..vertices)
            .flat_map(|i| (1..=degree).map(move |k| (i, to(i, k))))
            .collect::<Vec<_>>()
    };
    let mut graphs = Vec::new();
    for (vertices, degree) in [(1, 0), (2, 1), (50, 0), (50, 49), (97, 5), (3000, 7)] {
        let rule = GraphRule::Consecutive { vertices, degree };
        graphs.push((rule, edges(vertices, degree, 1)));
    }
    for (vertices, degree, gap) in [
        (1, 3, 100_000),
        (40, 3, 120),
        (40, 6, 10),
        (97, 96, 100_000),
        (1000, 9, 333),
        (2000, 4, 1000),
        (3000, 8, 100_000),
    ] {
        let rule = GraphRule::Scattered {
            vertices,
            degree,
            gap,
        };
        graphs.push((rule, edges(vertices, degree, gap)));
    }
    graphs
}

/// What a source delivers.
#[derive(Default)]
struct Collect {
    edges: Vec<(u64, u64)>,
    weights: Vec<u64>,
}

impl EdgeSink for Collect {
    fn integers(&mut self, edges: &[(u64, u64)], data: EdgeData<'_>) -> Result<(), IngestError> {
        self.edges.extend_from_slice(edges);
        self.weights.extend_from_slice(data.low);
        Ok(())
    }
    fn texts(&mut self, _: &[(&[u8], &[u8])], _: EdgeData<'_>) -> Result<(), IngestError> {
        unreachable!("generated vertices are integers")
    }
}

fn drawn(bench: &Bench, graph: &Generated) -> Collect {
    let budget = MemoryBudget::new(1 << 20);
    let mut reader = graph.reader(&bench.disk, &budget).expect("a reader");
    let mut all = Collect::default();
    for piece in 0..graph.pieces() {
        reader.read(piece, &bench.stop, &mut all).expect("a piece");
    }
    all
}

/// Generates and imports under these options, on several machines.
fn check(
    seed: u64,
    rule: GraphRule,
    edges: Option<&[(u64, u64)]>,
    options: &ImportOptions,
    weights: EdgeKind,
) {
    let what = format!("{rule:?}, {weights:?}, {options:?}");
    let graph = Generated::new(rule, seed, weights).expect("a graph");
    let bench = Bench::new(seed);
    let drawn = drawn(&bench, &graph);
    if let Some(edges) = edges {
        assert_eq!(drawn.edges, edges, "{what}");
    }
    let weight = |i: usize| {
        let (low, high) = (&drawn.weights[..], &[][..]);
        EdgeData { low, high }.weight(i, weights).unwrap_or(0.0)
    };
    let edge = |(i, &(s, d))| (VertexId::Integer(s), VertexId::Integer(d), weight(i));
    let memory = Memory {
        pieces: vec![drawn.edges.iter().enumerate().map(edge).collect()],
        ids: Ids::Integer,
        weights,
        vertices: graph.vertices(),
        rereads_fast: true,
    };
    let report = bench
        .import(&graph, None, options, &bench.threads(1), 256 << 20)
        .expect("an import");
    let path = Path::new(GRAPH);
    assert_eq!(bench.read(path), naive(&memory, None, options), "{what}");
    let files = bench.files(path);
    for (threads, budget) in [(1, 256 << 20), (2, 64 << 20), (3, 0)] {
        let other = Bench::new(seed + 1);
        let workers = if seed.is_multiple_of(2) {
            other.threads(threads)
        } else {
            other.simulated(seed, threads)
        };
        let generate = |budget| other.generate(&graph, options, &workers, budget);
        let mut generated = generate(budget);
        // Too small a budget is refused with what would do: for any such graph, then for this one.
        for _ in 0..3 {
            if let Err(IngestError::TooLittleMemory { least, .. }) = generated {
                generated = generate(least);
            }
        }
        let generated = generated
            .unwrap_or_else(|error| panic!("{what}, {threads} threads, {budget} bytes: {error}"));
        assert!(generated.reconciles(), "{generated:?}");
        let account = |report: &graphmill_ingest::ImportReport| {
            (
                (report.lines, report.edges, report.edges_kept, report.arcs),
                (report.dropped_self_loops, report.dropped_duplicates),
                (report.vertices, report.batches),
            )
        };
        assert_eq!(account(&generated), account(&report), "{what}");
        assert!(
            files == other.files(path),
            "{what}, {threads} threads, {budget} bytes: other bytes"
        );
        let left = other.disk.list(Path::new("/data")).expect("a list");
        assert_eq!(left, [path], "temporary files are gone");
    }
}

fn options(random: &mut SplitMix64) -> ImportOptions {
    let duplicates = [
        Duplicates::Keep,
        Duplicates::Keep,
        Duplicates::First,
        Duplicates::Sum,
        Duplicates::Max,
    ];
    let mut options = ImportOptions {
        directed: random.below(2) == 0,
        reverse: random.below(2) == 0,
        duplicates: duplicates[random.below(5) as usize],
        self_loops: [SelfLoops::Keep, SelfLoops::Drop][random.below(2) as usize],
        batch_size: [None, Some(7), Some(64), Some(1000)][random.below(4) as usize],
        order: [Order::Id, Order::Degree][random.below(2) as usize],
        edge_vertices: true,
        ..ImportOptions::new(GRAPH)
    };
    options.edge_vertices &= options.batch_size.is_some() && options.check_edge_vertices().is_ok();
    options
}

const WEIGHTS: [EdgeKind; 3] = [EdgeKind::None, EdgeKind::F32, EdgeKind::F64];

#[test]
fn circulant_graph_equals_import_of_its_edges() {
    let mut random = SplitMix64::new(5);
    for (rule, edges) in circulants() {
        for round in 0..5 {
            let weights = WEIGHTS[random.below(3) as usize];
            check(round, rule, Some(&edges), &options(&mut random), weights);
        }
    }
}

#[test]
fn sorted_graph_equals_import_of_its_edges() {
    let mut random = SplitMix64::new(6);
    for rule in [
        GraphRule::Kronecker {
            scale: 9,
            degree: 5,
            labels: KroneckerLabels::Drawn,
        },
        GraphRule::Uniform {
            vertices: 700,
            edges: 3000,
        },
        GraphRule::Grid {
            rows: 20,
            columns: 31,
        },
    ] {
        for round in 0..3 {
            let weights = WEIGHTS[random.below(3) as usize];
            check(round, rule, None, &options(&mut random), weights);
        }
    }
}

#[test]
fn kronecker_undirected_has_its_arc_count() {
    let (scale, degree) = (8, 6);
    let graph = Generated::new(
        GraphRule::Kronecker {
            scale,
            degree,
            labels: KroneckerLabels::Permuted,
        },
        1,
        EdgeKind::None,
    );
    let graph = graph.expect("a graph");
    let bench = Bench::new(1);
    let options = ImportOptions {
        directed: false,
        ..ImportOptions::new(GRAPH)
    };
    let report = bench.generate(&graph, &options, &bench.threads(2), 64 << 20);
    let edges = drawn(&bench, &graph).edges;
    let loops = edges.iter().filter(|edge| edge.0 == edge.1).count() as u64;
    assert!(loops > 0);
    assert_eq!(edges.len() as u64, degree << scale);
    assert_eq!(
        report.expect("a report").arcs,
        2 * (degree << scale) - loops
    );
}

/// A graph with weights whose arcs are generated in order, in both directions.
fn generate(bench: &Bench) -> Result<(), IngestError> {
    let rule = GraphRule::Scattered {
        vertices: 2000,
        degree: 5,
        gap: 333,
    };
    let graph = Generated::new(rule, 1, EdgeKind::F32).expect("a graph");
    let options = ImportOptions {
        reverse: true,
        batch_size: Some(500),
        ..ImportOptions::new(GRAPH)
    };
    let workers = bench.simulated(3, 2);
    bench.generate(&graph, &options, &workers, 32 << 20)?;
    Ok(())
}

#[test]
fn generation_failed_or_stopped_leaves_nothing() {
    let bench = Bench::new(1);
    let before = bench.sim.operations();
    generate(&bench).expect("a graph");
    let operations = bench.sim.operations() - before;
    let files = bench.files(Path::new(GRAPH));
    assert!(operations > 30);
    for nth in 1..=operations {
        let bench = Bench::new(1);
        bench.sim.inject(Fault {
            kind: FaultKind::Enospc,
            on: On::Any,
            nth,
            for_good: false,
        });
        let outcome = generate(&bench);
        bench.sim.heal();
        if outcome.is_ok() {
            // Only the removal of temporary files may fail unnoticed.
            let mut found = bench.files(Path::new(GRAPH));
            found.retain(|path, _| path.extension().is_none_or(|ending| ending != "spool"));
            assert!(found == files, "operation {nth}");
        } else {
            // One that has its name, and could not be made durable under it, is whole.
            let named = bench.disk.exists(Path::new(GRAPH)).expect("an answer");
            let is_whole = || bench.files(Path::new(GRAPH)) == files;
            assert!(
                !named || is_whole(),
                "operation {nth} left a part of a graph"
            );
        }
    }
    let bench = Bench::new(1);
    bench.stop.request();
    assert!(matches!(generate(&bench), Err(IngestError::Stopped)));
    assert_eq!(
        bench.disk.list(Path::new("/data")).expect("a list").len(),
        0
    );
}
