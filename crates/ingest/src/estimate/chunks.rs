//! The estimate of the step *bin*, and of the end of an import in the stream layout.

use graphmill_graph::{ChunkShape, FileSide, GraphModel, GraphProfile, GraphSpec, IdKind};

use super::estimator::ImportEstimator;
use super::streams::StepBytes;
use crate::error::IngestError;
use crate::pipeline::bin_plan::BinDemand;
use crate::pipeline::cut::BATCH_BYTES;

impl ImportEstimator<'_> {
    /// The chunks of arcs, and the end; returns the graph.
    pub(super) fn chunks(
        &mut self,
        (graph, vertices, kind): (&GraphModel, u64, IdKind),
        edges_read: f64,
        held: u64,
    ) -> Result<GraphProfile, IngestError> {
        let request = self.request;
        let options = &request.options.of_arcs();
        let batches = options.stream_batches(vertices)?;
        let shape = ChunkShape {
            batches: batches.clone(),
            edge: request.weights,
            chunk_bytes: options.chunk_sizes().0,
            side: FileSide::Forward,
            file: 0,
        };
        let tables = batches.len() as u64 * BATCH_BYTES;
        let demand = BinDemand {
            shapes: std::slice::from_ref(&shape),
            lanes: request.threads as u64,
            reader_bytes: request.reader_bytes(),
            ranks: request.ranks,
        };
        let available = request.memory.saturating_sub(held + tables);
        let sizes = demand.sizes(options, available)?;
        let sizes = sizes.map_err(|needed| self.too_little("chunks of arcs", needed))?;
        let outline = graph.outline(
            &GraphSpec {
                batches,
                edge: request.weights,
                directed: options.directed,
                strip_edges_max: 0,
                csr_ratio: 0,
                chunk_bytes: Some(sizes.chunk_bytes),
                files: Vec::new(),
                reverse_files: None,
            },
            kind,
        );
        let written = outline.files.columns() as f64 / self.ranks;
        let degrees = vertices as f64 * size_of::<u64>() as f64;
        let sum = StepBytes {
            read: edges_read,
            written,
            // Chunks go to ranks that are drawn.
            sent: written * (self.ranks - 1.0) / self.ranks,
        };
        self.arcs_phase("bin", sum);
        let other = StepBytes {
            read: if sizes.counts_degrees { 0.0 } else { written },
            written: 0.0,
            sent: self.all_reduce(degrees),
        };
        let first = StepBytes {
            written: outline.files.of_all() as f64,
            ..other
        };
        self.phase("finish", [first, other], 0.0);
        Ok(outline)
    }
}
