//! Whatever the input, the policies, the batches, the threads and the budget: the stored graph holds what a naive importer
//! in memory finds, and always in the same bytes.

use std::path::Path;
use std::sync::Arc;

use crate::common::{Bench, Look, Memory, arcs, naive, random_source};
use graphmill_graph::{EdgeKind, Order, StoredGraph, VertexId};
use graphmill_ingest::{Duplicates, Ids, ImportOptions, SelfLoops};
use graphmill_storage::{MemoryBudget, SplitMix64};

const GRAPH: &str = "/data/graph";

/// Imports on several machines; all give the same bytes, and these hold what the naive importer found.
fn check(seed: u64, source: &Memory, vertices: Option<&Memory>, options: &ImportOptions) {
    check_with(seed, source, vertices, options, 300);
}

/// The same; `least`: bytes that can be sorted in the tightest run.
fn check_with(
    seed: u64,
    source: &Memory,
    vertices: Option<&Memory>,
    options: &ImportOptions,
    least: u64,
) {
    let expected = naive(source, vertices, options);
    let bench = Bench::new(seed);
    let report = bench
        .import(source, vertices, options, &bench.threads(1), 256 << 20)
        .unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    assert!(report.reconciles(), "{report:?}");
    let path = Path::new(GRAPH);
    assert_eq!(bench.read(path), expected, "seed {seed}, {options:?}");
    assert_eq!(
        (report.arcs, report.vertices, report.edges),
        (
            expected.arcs.len() as u64,
            expected.ids.len() as u64,
            source.pieces.iter().map(|p| p.len() as u64).sum()
        ),
    );
    assert_eq!(
        bench
            .disk
            .list(Path::new("/data"))
            .expect("the disk lists its folder"),
        [path],
        "temporary files are gone"
    );
    let files = bench.files(path);
    // Equal edges with weights have to be sorted together, so there is a least.
    let least = if source.weights == EdgeKind::None {
        least
    } else {
        100_000
    };
    for (threads, budget, work_bytes_max) in [
        (2, 256 << 20, u64::MAX),
        (3, 24 << 20, 20_000),
        (1, 8 << 20, 2_000),
        (2, 10 << 20, 0),
    ] {
        let work_bytes_max = work_bytes_max.max(least);
        let other = Bench::new(seed + 1);
        let options = ImportOptions {
            work_bytes_max,
            ..options.clone()
        };
        // Half of them take turns on one thread, in an order of their own.
        let workers = if seed.is_multiple_of(2) {
            other.threads(threads)
        } else {
            other.simulated(seed, threads)
        };
        let again = other
            .import(source, vertices, &options, &workers, budget)
            .unwrap_or_else(|error| {
                panic!("seed {seed}, {threads} threads, {budget} bytes: {error}")
            });
        assert_eq!(
            (again.arcs, again.edges_kept, again.batches),
            (report.arcs, report.edges_kept, report.batches)
        );
        assert!(
            files == other.files(path),
            "seed {seed}, {threads} threads, {budget} bytes: other bytes"
        );
    }
}

/// These options with vertices in either order, and with vertices of edges.
fn with_orders(options: &ImportOptions) -> [ImportOptions; 3] {
    let ordered = |order| ImportOptions {
        order,
        ..options.clone()
    };
    let edge_vertices = ImportOptions {
        duplicates: Duplicates::Keep,
        reverse: false,
        edge_vertices: true,
        ..options.clone()
    };
    [ordered(Order::Id), ordered(Order::Degree), edge_vertices]
}

/// What edges carry.
fn kinds(random: &mut SplitMix64) -> EdgeKind {
    match random.below(6) {
        0 => EdgeKind::None,
        1 => EdgeKind::F32,
        2 => EdgeKind::F64,
        _ => EdgeKind::Record(1 + random.below(16) as u8),
    }
}

#[test]
fn import_of_random_inputs_equals_naive() {
    let looks = [
        Look::Dense,
        Look::Gaps,
        Look::Sparse,
        Look::Huge,
        Look::Words,
        Look::Signed,
        Look::Uuids,
    ];
    let duplicates = [
        Duplicates::Keep,
        Duplicates::First,
        Duplicates::Sum,
        Duplicates::Min,
        Duplicates::Max,
    ];
    let sizes = [None, Some(1), Some(7), Some(64), Some(1024)];
    for seed in 0..60u64 {
        let mut random = SplitMix64::new(seed);
        let weights = kinds(&mut random);
        let look = looks[seed as usize % looks.len()];
        let vertices = 1 + random.below(300);
        let edges = random.below(3000) as usize;
        let source = random_source(seed, look, vertices, edges, weights, random.below(2) == 0);
        let options = ImportOptions {
            directed: random.below(2) == 0,
            duplicates: duplicates[random.below(if weights.is_record() { 2 } else { 5 }) as usize],
            self_loops: if random.below(2) == 0 {
                SelfLoops::Keep
            } else {
                SelfLoops::Drop
            },
            reverse: random.below(2) == 0,
            batch_size: sizes[random.below(5) as usize],
            ..ImportOptions::new(GRAPH)
        };
        let list = random_source(seed + 1000, look, 20, 20, EdgeKind::None, false);
        let list = (random.below(3) == 0).then_some(&list);
        for options in with_orders(&options) {
            check(seed, &source, list, &options);
        }
    }
}

#[test]
fn import_beyond_a_chunk_equals_naive() {
    for (seed, look) in [
        (1u64, Look::Dense),
        (2, Look::Gaps),
        (3, Look::Huge),
        (4, Look::Words),
    ] {
        let weights = if seed % 2 == 0 {
            EdgeKind::F32
        } else {
            EdgeKind::None
        };
        let source = random_source(seed, look, 20_000, 60_000, weights, seed == 1);
        let options = ImportOptions {
            directed: seed == 2,
            batch_size: Some(1024),
            ..ImportOptions::new(GRAPH)
        };
        for options in with_orders(&options) {
            check_with(seed, &source, None, &options, 20_000);
        }
    }
}

#[test]
fn import_of_empty_and_tiny_inputs_equals_naive() {
    let empty = Memory {
        pieces: vec![],
        ids: Ids::Integer,
        weights: EdgeKind::None,
        vertices: None,
        rereads_fast: true,
    };
    for options in with_orders(&ImportOptions::new(GRAPH)) {
        nothing_and_next_to_nothing(&empty, options);
    }
}

fn nothing_and_next_to_nothing(empty: &Memory, options: ImportOptions) {
    check(0, empty, None, &options);
    check(
        1,
        &Memory {
            pieces: vec![vec![], vec![]],
            rereads_fast: false,
            ..empty.clone()
        },
        None,
        &options,
    );
    check(
        2,
        &Memory {
            ids: Ids::Text,
            rereads_fast: false,
            ..empty.clone()
        },
        None,
        &options,
    );
    check(
        3,
        &Memory {
            vertices: Some(10),
            ..empty.clone()
        },
        None,
        &options,
    );
    let one = (VertexId::Integer(5), VertexId::Integer(5), 0.0);
    check(
        4,
        &Memory {
            pieces: vec![vec![one.clone()]],
            ..empty.clone()
        },
        None,
        &options,
    );
    let dropping = ImportOptions {
        self_loops: SelfLoops::Drop,
        reverse: !options.edge_vertices,
        ..options
    };
    check(
        5,
        &Memory {
            pieces: vec![vec![one]],
            ..empty.clone()
        },
        None,
        &dropping,
    );
}

#[test]
fn import_with_known_vertex_range_equals_naive() {
    let mut source = random_source(7, Look::Gaps, 100, 400, EdgeKind::None, true);
    source.vertices = Some(100_000);
    for batch_size in [None, Some(1000)] {
        let options = ImportOptions {
            directed: false,
            batch_size,
            ..ImportOptions::new(GRAPH)
        };
        for options in with_orders(&options) {
            check(7, &source, None, &options);
        }
    }
}

#[test]
fn import_of_ids_beyond_32_bits_equals_naive() {
    let far = |n: u64| VertexId::Integer((1 << 33) + n);
    let edges = (0..200u64)
        .map(|n| (far(n * 7 % 50), far(n * 13 % 90), 0.0))
        .collect();
    let source = Memory {
        pieces: vec![edges],
        ids: Ids::Integer,
        weights: EdgeKind::None,
        vertices: None,
        rereads_fast: true,
    };
    let options = ImportOptions {
        reverse: true,
        ..ImportOptions::new(GRAPH)
    };
    check(8, &source, None, &options);

    // The same edges where all those ids are vertices: 2^33 + 100 of them.
    let source = Memory {
        vertices: Some((1 << 33) + 100),
        ..source
    };
    let bench = Bench::new(8);
    let report = bench
        .import(&source, None, &options, &bench.threads(2), 64 << 20)
        .unwrap();
    assert_eq!((report.vertices, report.arcs), ((1 << 33) + 100, 200));
    let budget = MemoryBudget::new(256 << 20);
    let graph = Arc::new(StoredGraph::open(&bench.disk, &budget, Path::new(GRAPH)).unwrap());
    let far = |n: u64| (1 << 33) + n;
    let mut expected: Vec<_> = (0..200u64)
        .map(|n| (far(n * 7 % 50), far(n * 13 % 90), 0))
        .collect();
    expected.sort_unstable();
    assert_eq!(arcs(&graph, graph.forward(), &budget), expected);
    let other = Bench::new(9);
    let options = ImportOptions {
        work_bytes_max: 400,
        ..options
    };
    other
        .import(&source, None, &options, &other.threads(1), 16 << 20)
        .unwrap();
    assert!(bench.files(Path::new(GRAPH)) == other.files(Path::new(GRAPH)));
}

#[test]
fn import_in_few_megabytes_or_names_the_least() {
    let source = random_source(2, Look::Gaps, 20_000, 60_000, EdgeKind::None, true);
    let options = ImportOptions::new(GRAPH);
    for (look, threads) in [(Look::Gaps, 1), (Look::Gaps, 2), (Look::Words, 1)] {
        let source = Memory {
            ..random_source(2, look, 20_000, 60_000, EdgeKind::None, look == Look::Gaps)
        };
        let bench = Bench::new(1);
        bench
            .import(&source, None, &options, &bench.threads(threads), 8 << 20)
            .unwrap();
    }
    let bench = Bench::new(1);
    let error = bench
        .import(&source, None, &options, &bench.threads(1), 1 << 20)
        .unwrap_err()
        .to_string();
    assert!(error.contains("--memory"), "{error}");
    assert!(
        bench.disk.list(Path::new("/data")).unwrap().is_empty(),
        "nothing is left behind"
    );
}
