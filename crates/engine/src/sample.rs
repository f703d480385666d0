//! What a few edges say of all.

use graphmill_graph::{EdgeKind, FormatError};

use crate::active::lock;
use crate::engine::Engine;
use crate::error::EngineError;

/// Columns that are looked into, spread over the graph.
const COLUMNS: usize = 16;
/// Edges of each.
const EDGES: u64 = 512;

impl Engine {
    /// The mean weight of some thousands of edges, always the same ones of a graph; none where edges have no weights.
    ///
    /// # Errors
    /// The disk failed.
    pub fn mean_weight(&mut self) -> Result<Option<f64>, EngineError> {
        if self.mean_weight.is_none() {
            self.mean_weight = Some(self.sample_weights().map_err(EngineError::from)?);
        }
        Ok(self.mean_weight.flatten())
    }

    fn sample_weights(&self) -> Result<Option<f64>, FormatError> {
        let graph = self.graph();
        let width = graph.edge_kind().bytes() as u64;
        let columns = graph.forward().columns();
        let mut frames = lock(&self.common.frames);
        let (mut sum, mut count) = (0.0, 0_u64);
        let mut bytes = Vec::new();
        let with_cells = |d: &usize| !columns[*d].cells().is_empty();
        for column in (0..columns.len())
            .step_by(columns.len().div_ceil(COLUMNS).max(1))
            .filter(with_cells)
        {
            let cells = columns[column].cells();
            let extent = graph.weights_extent(column, &cells[cells.len() / 2]);
            let end = extent.bytes.end.min(extent.bytes.start + EDGES * width);
            bytes.clear();
            frames.read(extent.file, extent.bytes.start..end, &mut bytes)?;
            match graph.edge_kind() {
                EdgeKind::None => return Ok(None),
                EdgeKind::F32 => {
                    let weights = bytes
                        .as_chunks()
                        .0
                        .iter()
                        .map(|weight| f32::from_le_bytes(*weight));
                    sum += weights
                        .map(f64::from)
                        .filter(|weight| weight.is_finite())
                        .sum::<f64>();
                }
                EdgeKind::F64 => {
                    let weights = bytes
                        .as_chunks()
                        .0
                        .iter()
                        .map(|weight| f64::from_le_bytes(*weight));
                    sum += weights.filter(|weight| weight.is_finite()).sum::<f64>();
                }
            }
            count += (end - extent.bytes.start) / width;
        }
        self.common.arrays.count_read(frames.take_bytes_read());
        Ok((count > 0).then(|| sum / count as f64))
    }
}
