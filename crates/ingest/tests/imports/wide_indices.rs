//! Edges between vertices whose indices pass 2^32 take the same bytes as edges between the first ones: what a cell holds is
//! counted from the beginning of its batches. (A study of graph processing in non-volatile memory saw its edges double there.)

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use crate::common::{Bench, Memory, arcs};
use graphmill_graph::{EdgeKind, PageCache, StoredGraph, VertexId};
use graphmill_ingest::{Ids, ImportOptions};
use graphmill_storage::{MemoryBudget, SplitMix64};

const GRAPH: &str = "/data/graph";

/// Vertices that have edges, in three batches.
const VERTICES: u64 = 5 << 19;
const BATCH: u64 = 1 << 20;

/// Random edges between `VERTICES` vertices from `first` on, the last ones that there are.
fn source(first: u64) -> Memory {
    let mut random = SplitMix64::new(9);
    let mut vertex = || VertexId::Integer(first + random.below(VERTICES));
    let edges = (0..30_000).map(|i| (vertex(), vertex(), f64::from(i)));
    Memory {
        pieces: vec![edges.collect()],
        ids: Ids::Integer,
        weights: EdgeKind::F32,
        vertices: Some(first + VERTICES),
        rereads_fast: true,
    }
}

/// A cell: bytes of its blocks, bytes of its index.
type Cell = (Vec<u8>, Vec<u8>, Vec<u8>);

/// The stored content of such a graph, with batches and vertices counted from `first` on.
struct Stored {
    cells: BTreeMap<(usize, usize), Cell>,
    arcs: Vec<(u64, u64, u128)>,
}

fn store(first: u64) -> Stored {
    let bench = Bench::new(1);
    let options = ImportOptions {
        batch_size: Some(BATCH),
        ..ImportOptions::new(GRAPH)
    };
    bench
        .import(&source(first), None, &options, &bench.threads(2), 256 << 20)
        .expect("an import");
    let budget = MemoryBudget::new(256 << 20);
    let graph = StoredGraph::open(&bench.disk, &budget, Path::new(GRAPH));
    let graph = Arc::new(graph.expect("a graph"));
    assert_eq!(graph.vertices(), first + VERTICES);
    let before = (first / BATCH) as usize;
    let mut reader = PageCache::new(&graph, &budget, 8).expect("a reader");
    let mut read = |extent: graphmill_graph::Extent| {
        let mut bytes = Vec::new();
        reader
            .read(extent.file, extent.bytes, &mut bytes)
            .expect("bytes");
        bytes
    };
    let set = graph.forward();
    let mut cells = BTreeMap::new();
    for (destination, column) in set.columns().iter().enumerate() {
        for cell in column.cells() {
            let bytes = (
                read(set.data_extent(destination, cell)),
                read(set.block_list_extent(destination, cell)),
                read(set.bitmap_extent(destination, cell)),
            );
            cells.insert((cell.source_batch() - before, destination - before), bytes);
        }
    }
    let arcs = arcs(&graph, set, &budget)
        .into_iter()
        .map(|(s, d, weight)| (s - first, d - first, weight))
        .collect();
    Stored { cells, arcs }
}

#[test]
fn edge_bytes_do_not_depend_on_indices() {
    let near = store(0);
    assert_eq!((near.cells.len(), near.arcs.len()), (9, 30_000));
    // The first batch ends where indices begin to take 33 bits; then all of them are beyond.
    for first in [(1 << 32) - BATCH, 1 << 32] {
        let far = store(first);
        assert!(near.arcs == far.arcs, "from {first} on: other arcs");
        assert!(near.cells == far.cells, "from {first} on: other bytes");
    }
}
