//! What a few edges say of all.

use graphmill_graph::{EdgeKind, FormatError};

use crate::active::lock;
use crate::engine::Engine;
use crate::error::EngineError;

/// Columns that are looked into, spread over the graph.
const COLUMNS: usize = 16;
/// Edges of each.
const EDGES: u64 = 512;
/// Stretches of vertices whose degrees are looked at, spread over the graph: how many, and of how many vertices.
const STRETCHES: std::ops::RangeInclusive<u64> = 64..=1024;
const STRETCH: u64 = 64;
/// Vertices for each stretch, at least, where there are more than the least.
const VERTICES_OF_STRETCH: u64 = 4096;
/// Times the median that a weight is at most, to say something of the others.
const USUAL: f64 = 16.0;

impl Engine {
    /// The mean weight of some thousands of edges, always the same ones of a graph, without those that are out of all proportion; none
    /// where edges have no weights.
    ///
    /// # Errors
    /// The disk failed.
    pub fn mean_weight(&mut self) -> Result<Option<f64>, EngineError> {
        if self.mean_weight.is_none() {
            self.mean_weight = Some(self.sample_weights().map_err(EngineError::from)?);
        }
        Ok(self.mean_weight.flatten())
    }

    /// How many edges a vertex has that an edge leaves: the geometric mean over the edges of some thousands of vertices, always the same ones of
    /// a graph, 1 where these have none. It is more than edges shared by vertices, the more so the more edges are those of a few hubs.
    ///
    /// # Errors
    /// The disk failed.
    pub fn usual_degree(&mut self) -> Result<f64, EngineError> {
        let usual = match self.usual_degree {
            Some(usual) => usual,
            None => self.sample_degrees()?,
        };
        self.usual_degree = Some(usual);
        Ok(usual)
    }

    fn sample_degrees(&self) -> Result<f64, EngineError> {
        let graph = self.graph();
        let mut frames = lock(&self.common.frames);
        let (mut edges, mut logarithms) = (0.0, 0.0);
        let vertices = graph.vertices();
        let stretches =
            (vertices / VERTICES_OF_STRETCH).clamp(*STRETCHES.start(), *STRETCHES.end());
        let stride = vertices.div_ceil(stretches).max(STRETCH);
        // Not from the first: in order of degree the very largest begin each batch.
        for from in ((stride - STRETCH) / 2..vertices).step_by(stride as usize) {
            let stretch = from..vertices.min(from + STRETCH);
            let mut degrees = [0u64; STRETCH as usize];
            let degrees = &mut degrees[..(stretch.end - from) as usize];
            graph.degrees_in(graph.forward(), &mut frames, stretch, degrees)?;
            for degree in degrees.iter().filter(|degree| **degree > 0) {
                let degree = *degree as f64;
                edges += degree;
                logarithms += degree * degree.ln();
            }
        }
        self.common.arrays.count_read(frames.take_bytes_read());
        Ok(if edges > 0.0 {
            (logarithms / edges).exp()
        } else {
            1.0
        })
    }

    fn sample_weights(&self) -> Result<Option<f64>, FormatError> {
        let graph = self.graph();
        let width = graph.edge_kind().bytes() as u64;
        let columns = graph.forward().columns();
        let mut frames = lock(&self.common.frames);
        let mut weights: Vec<f64> = Vec::new();
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
                    let entries = bytes.as_chunks().0.iter();
                    weights.extend(entries.map(|weight| f64::from(f32::from_le_bytes(*weight))));
                }
                EdgeKind::F64 => {
                    let entries = bytes.as_chunks().0.iter();
                    weights.extend(entries.map(|weight| f64::from_le_bytes(*weight)));
                }
            }
        }
        self.common.arrays.count_read(frames.take_bytes_read());
        Ok(usual_mean(&mut weights))
    }
}

/// The mean of those values that are no more than some times the median, if that is not zero: one that is out of all proportion
/// says nothing of the others.
fn usual_mean(values: &mut [f64]) -> Option<f64> {
    values.sort_unstable_by(f64::total_cmp);
    let median = values[values.len().checked_sub(1)? / 2];
    let most = if median > 0.0 {
        USUAL * median
    } else {
        f64::MAX
    };
    let usual = &values[..values.partition_point(|value| *value <= most)];
    Some(usual.iter().sum::<f64>() / usual.len().max(1) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_out_of_all_proportion_do_not_count() {
        assert_eq!(usual_mean(&mut []), None);
        assert_eq!(usual_mean(&mut [7.0, 1.0, 1.0, 3.0]), Some(3.0));
        assert_eq!(usual_mean(&mut [1.0, 1e12, 3.0, f64::INFINITY]), Some(2.0));
        assert_eq!(usual_mean(&mut [0.0, 0.0, 0.0, 8.0]), Some(2.0));
    }
}
