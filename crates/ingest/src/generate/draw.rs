//! A generated graph as a source of edges.

use std::sync::Arc;

use graphmill_graph::EdgeKind;
use graphmill_storage::{CancelToken, Disk, Lease, MemoryBudget};

use super::edge_at::EdgeGenerator;
use super::rule::Generated;
use crate::edge_data::EdgeDataBatch;
use crate::error::IngestError;
use crate::limits::BATCH_EDGES_MAX;
use crate::source::{EdgeSink, EdgeSource, Ids, PieceReader, PieceReport};

impl Generated {
    /// Bytes of the budget that a reader takes.
    pub(crate) const READER_BYTES: u64 = (BATCH_EDGES_MAX * size_of::<(u64, u64, u64)>()) as u64;
}

impl EdgeSource for Generated {
    fn pieces(&self) -> u64 {
        self.edges.div_ceil(Generated::PIECE_EDGES)
    }
    fn ids(&self) -> Ids {
        Ids::Integer
    }
    fn weights(&self) -> EdgeKind {
        self.weights
    }
    fn vertices(&self) -> Option<u64> {
        Some(self.vertices)
    }
    fn edges(&self) -> Option<u64> {
        Some(self.edges)
    }
    fn amount(&self) -> u64 {
        self.edges
    }
    fn rereads_fast(&self) -> bool {
        // Drawing edges again takes no longer than writing and reading them, and no space on the disk.
        true
    }
    fn identity(&self) -> Option<String> {
        Some(format!("{self:?}"))
    }
    fn reader_bytes(&self) -> u64 {
        Generated::READER_BYTES
    }
    fn reader(
        &self,
        _: &Arc<dyn Disk>,
        budget: &MemoryBudget,
    ) -> Result<Box<dyn PieceReader + '_>, IngestError> {
        Ok(Box::new(GeneratorReader {
            _lease: budget.lease("drawing edges", Self::READER_BYTES)?,
            generator: EdgeGenerator::new(*self),
            edges: Vec::with_capacity(BATCH_EDGES_MAX),
            weights: EdgeDataBatch::with_capacity(BATCH_EDGES_MAX, self.weights),
        }))
    }
}

/// One worker's way to draw pieces.
struct GeneratorReader {
    generator: EdgeGenerator,
    edges: Vec<(u64, u64)>,
    weights: EdgeDataBatch,
    _lease: Lease,
}

impl PieceReader for GeneratorReader {
    fn read(
        &mut self,
        piece: u64,
        stop: &CancelToken,
        sink: &mut dyn EdgeSink,
    ) -> Result<PieceReport, IngestError> {
        let mut report = PieceReport::default();
        let end = self
            .generator
            .graph
            .edges
            .min((piece + 1) * Generated::PIECE_EDGES);
        let mut from = piece * Generated::PIECE_EDGES;
        while from < end {
            IngestError::check_stop(stop)?;
            let to = end.min(from + BATCH_EDGES_MAX as u64);
            self.generator
                .draw(from, to, &mut self.edges, &mut self.weights);
            sink.integers(&self.edges, self.weights.data())?;
            sink.progress(to - from);
            report.edges += to - from;
            from = to;
        }
        report.lines = report.edges;
        Ok(report)
    }
}
