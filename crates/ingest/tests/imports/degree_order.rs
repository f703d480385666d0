//! In order of degree, vertices are assigned round robin: degree rank r gets batch r mod B, place r / B.
//!
//! Degrees are those in the input, with duplicates.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use crate::common::{Bench, Look, Memory, degrees, naive, random_source, ranks};
use graphmill_graph::{EdgeKind, Order, StoredGraph};
use graphmill_ingest::{Duplicates, ImportOptions, SelfLoops};
use graphmill_storage::MemoryBudget;

const GRAPH: &str = "/data/graph";

/// Imports, and checks the places of all vertices; returns the number of batches.
fn check(seed: u64, source: &Memory, options: &ImportOptions) -> u64 {
    let bench = Bench::new(seed);
    bench
        .import(source, None, options, &bench.threads(2), 64 << 20)
        .expect("an import");
    let budget = MemoryBudget::new(64 << 20);
    let path = Path::new(GRAPH);
    let graph = Arc::new(StoredGraph::open(&bench.disk, &budget, path).expect("a graph"));
    assert_eq!(graph.order(), Order::Degree);
    let ranks = ranks(&graph, &budget);
    assert_eq!(
        ranks.iter().collect::<HashSet<_>>().len() as u64,
        graph.vertices(),
        "each vertex has one place"
    );

    let degrees = degrees(source, &naive(source, None, options), options);
    let batches = graph.batches();
    // Of every vertex its degree downwards, its rank, and where it is.
    let mut vertices = Vec::new();
    for batch in 0..batches.len() {
        let range = batches.range(batch);
        let ranks = &ranks[range.start as usize..range.end as usize];
        let key = |rank: &u64| (u64::MAX - degrees[*rank as usize], *rank);
        let places = (0u64..).map(|place| (batch as u64, place));
        vertices.extend(ranks.iter().map(key).zip(places));
    }
    vertices.sort_unstable();
    let count = batches.len() as u64;
    for (turn, (_, place)) in (0..).zip(vertices) {
        assert_eq!(
            place,
            (turn % count, turn / count),
            "turn {turn} of {count} batches"
        );
    }
    if let Some(size) = options.batch_size {
        assert_eq!(count, graph.vertices().div_ceil(size));
    }
    count
}

#[test]
fn degree_order_deals_any_ids_and_batches() {
    let looks = [
        Look::Dense,
        Look::Gaps,
        Look::Sparse,
        Look::Huge,
        Look::Words,
        Look::Signed,
        Look::Uuids,
    ];
    for (seed, look) in (0..).zip(looks) {
        let source = random_source(seed, look, 500, 4000, EdgeKind::F32, seed % 2 == 0);
        for batch_size in [None, Some(1), Some(7), Some(64), Some(300), Some(1024)] {
            for (directed, duplicates, self_loops) in [
                (true, Duplicates::Keep, SelfLoops::Keep),
                (false, Duplicates::First, SelfLoops::Drop),
            ] {
                let options = ImportOptions {
                    directed,
                    duplicates,
                    self_loops,
                    batch_size,
                    order: Order::Degree,
                    ..ImportOptions::new(GRAPH)
                };
                check(seed, &source, &options);
            }
        }
    }
}

#[test]
fn degree_order_is_the_same_in_any_memory() {
    // More vertices than are counted at a time where memory is kept small, and more than are called by their indices.
    let mut source = random_source(3, Look::Gaps, 100_000, 50_000, EdgeKind::None, true);
    source.vertices = Some(200_001);
    for work_bytes_max in [u64::MAX, 400_000, 40_000] {
        let options = ImportOptions {
            directed: false,
            duplicates: Duplicates::First,
            batch_size: Some(9000),
            order: Order::Degree,
            work_bytes_max,
            ..ImportOptions::new(GRAPH)
        };
        check(3, &source, &options);
    }
}

#[test]
fn degree_order_cuts_batches_by_arcs() {
    let source = random_source(9, Look::Gaps, 3000, 1_200_000, EdgeKind::None, true);
    let options = ImportOptions {
        directed: false,
        order: Order::Degree,
        ..ImportOptions::new(GRAPH)
    };
    let batches = check(9, &source, &options);
    assert!(batches > 1, "two million arcs are more than a batch takes");
}
