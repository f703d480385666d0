//! An input that has more edges in a later reading is refused, wherever its arcs would go.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use graphmill_graph::EdgeKind;
use graphmill_ingest::{EdgeSource, Ids, ImportOptions, IngestError, PieceReader};
use graphmill_storage::{Disk, MemoryBudget};

use crate::common::{Bench, Look, Memory, random_source};

/// An input whose readers have other edges from the second on.
#[derive(Debug)]
struct Growing {
    before: Memory,
    after: Memory,
    readers: AtomicU64,
}

impl EdgeSource for Growing {
    fn pieces(&self) -> u64 {
        self.before.pieces()
    }
    fn ids(&self) -> Ids {
        self.before.ids()
    }
    fn weights(&self) -> EdgeKind {
        self.before.weights()
    }
    fn vertices(&self) -> Option<u64> {
        None
    }
    fn edges(&self) -> Option<u64> {
        self.before.edges()
    }
    fn amount(&self) -> u64 {
        self.before.amount()
    }
    fn rereads_fast(&self) -> bool {
        true
    }
    fn reader_bytes(&self) -> u64 {
        0
    }
    fn reader(
        &self,
        disk: &Arc<dyn Disk>,
        budget: &MemoryBudget,
    ) -> Result<Box<dyn PieceReader + '_>, IngestError> {
        match self.readers.fetch_add(1, Ordering::Relaxed) {
            0 => self.before.reader(disk, budget),
            _ => self.after.reader(disk, budget),
        }
    }
}

#[test]
fn input_with_more_edges_when_read_again_is_refused() {
    for (turn, weights) in [EdgeKind::None, EdgeKind::F32].into_iter().enumerate() {
        for edge_vertices in [false, true] {
            let before = random_source(3, Look::Dense, 100, 400, weights, true);
            let mut after = before.clone();
            let last = after.pieces.last_mut().unwrap();
            last.extend(last.clone());
            let source = Growing {
                before,
                after,
                readers: AtomicU64::new(0),
            };
            let bench = Bench::new(turn as u64);
            let options = ImportOptions {
                edge_vertices,
                batch_size: Some(64),
                ..ImportOptions::new("/data/graph")
            };
            let done = bench.import(&source, None, &options, &bench.threads(1), 64 << 20);
            let error = done.unwrap_err();
            assert!(matches!(error, IngestError::InputChanged { .. }), "{error}");
            assert!(!bench.disk.exists(Path::new("/data/graph")).unwrap());
        }
    }
}
