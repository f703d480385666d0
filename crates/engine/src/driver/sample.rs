//! What a few edges say of all.

use std::ops::Range;

use graphmill_graph::{Order, PAGE_VERTICES, PageCache};
use graphmill_raw::lock;

use crate::engine::{Engine, LOOKING_FRAMES};
use crate::error::EngineError;
use crate::value::{Reduce, edge_value};

/// Columns that are looked into, spread over the graph.
const COLUMNS: usize = 16;
/// Edges of each.
const EDGES: u64 = 512;
/// Vertices whose degrees are sampled together, and the number of places in a graph.
const STRETCH: u64 = 64;
const STRETCHES: u64 = 256;
/// Times the median that a weight is at most, to say something of the others.
const USUAL: f64 = 16.0;

impl Engine {
    fn most_arcs(&self) -> Result<Option<u64>, EngineError> {
        let (batches, budget) = (&self.common.batches, &self.common.budget);
        let graph = &self.stored.graph;
        let mut frames = PageCache::new(graph, budget, LOOKING_FRAMES)?;
        let mut most = [0, u64::MAX];
        for batch in self.common.ranks.own() {
            let span = batches.span(batch) as usize;
            let mut degrees = budget.buffer("the degrees of a batch", span * size_of::<u64>())?;
            let degrees = &mut degrees.typed_mut::<u64>()[..span];
            graph.degrees(graph.forward(), &mut frames, batch, degrees)?;
            for (v, degree) in batches.range(batch).zip(degrees) {
                if *degree > most[0] {
                    most = [*degree, v];
                }
            }
        }
        self.common.arrays.count_read(frames.take_bytes_read());
        let mut payload = Vec::new();
        most.put(&mut payload);
        let mut most = [0, u64::MAX];
        for payload in self.common.ranks.gather(payload)? {
            let of_rank = <[u64; 2]>::take(&mut &payload[..]).unwrap_or(most);
            // Of as many the first, which is of the first rank.
            if of_rank[0] > most[0] {
                most = of_rank;
            }
        }
        Ok(Some(most[1]).filter(|_| most[0] > 0))
    }

    fn sample_degrees(&self) -> Result<f64, EngineError> {
        let graph = self.graph();
        let mut frames = lock(&self.common.frames);
        let (mut edges, mut logarithms) = (0.0, 0.0);
        for stretch in self.stretches() {
            let mut degrees = [0u64; PAGE_VERTICES as usize];
            let degrees = &mut degrees[..(stretch.end - stretch.start) as usize];
            graph.degrees_in(graph.forward(), &mut frames, stretch, degrees)?;
            for degree in degrees.iter().filter(|degree| **degree > 0) {
                let degree = *degree as f64;
                edges += degree;
                logarithms += degree * degree.ln();
            }
        }
        self.common.arrays.count_read(frames.take_bytes_read());
        Ok((logarithms / edges.max(1.0)).exp())
    }

    /// Returns the vertices of a sample, at most as many as a page of degrees holds.
    ///
    /// In order of ids they come from the whole graph. In order of degree, each batch has its share of every degree, so they
    /// come from one batch.
    fn stretches(&self) -> impl Iterator<Item = Range<u64>> + use<> {
        let (batches, vertices) = (self.graph().batches(), self.vertices());
        let (of, stride, length) = match self.graph().order() {
            Order::Degree if !batches.is_empty() => {
                let one = batches.range(batches.len() / 2);
                (one, PAGE_VERTICES, PAGE_VERTICES)
            }
            _ => {
                // A stretch lies in one page.
                let stride = vertices.div_ceil(STRETCHES).max(1);
                (0..vertices, stride.next_multiple_of(STRETCH), STRETCH)
            }
        };
        let end = of.end;
        of.step_by(stride as usize)
            .map(move |from| from..end.min(from + length))
    }

    /// Of several ranks each looks at the columns that it owns, and hears of the others'.
    fn sample_weights(&self) -> Result<Option<f64>, EngineError> {
        let graph = self.graph();
        let kind = graph.edge_kind();
        if !kind.is_weight() {
            return Ok(None);
        }
        let columns = graph.forward().columns();
        let mut frames = lock(&self.common.frames);
        let mut weights: Vec<f64> = Vec::new();
        let mut bytes = Vec::new();
        let own = self.common.ranks.own();
        let with_cells = |d: &usize| own.contains(d) && !columns[*d].cells().is_empty();
        let columns_looked_at = (0..columns.len()).step_by(columns.len().div_ceil(COLUMNS).max(1));
        for column in columns_looked_at.filter(with_cells) {
            let cells = columns[column].cells();
            let extent = graph.weights_extent(column, &cells[cells.len() / 2]);
            let most = EDGES * kind.bytes() as u64;
            let end = extent.bytes.end.min(extent.bytes.start + most);
            bytes.clear();
            frames.read(extent.file, extent.bytes.start..end, &mut bytes)?;
            let entries = 0..bytes.len() / kind.bytes();
            weights.extend(entries.map(|i| edge_value::<f64>(kind, &bytes, i)));
        }
        self.common.arrays.count_read(frames.take_bytes_read());
        let payload = weights.iter().flat_map(|weight| weight.to_le_bytes());
        let payload = self.common.ranks.gather(payload.collect())?;
        let heard = payload.iter().flat_map(|payload| payload.as_chunks().0);
        weights = heard.map(|weight| f64::from_le_bytes(*weight)).collect();
        Ok(usual_mean(&mut weights))
    }
}

/// Returns a vertex with the most outgoing arcs, the one with the smallest index among several.
///
/// `None` if the graph has no arcs.
///
/// # Errors
/// Disk or budget failed.
pub fn max_degree_vertex(engine: &Engine) -> Result<Option<u64>, EngineError> {
    engine.most_arcs().map_err(|error| engine.too_small(error))
}

/// Returns the mean weight of a fixed sample of some thousands of edges, without outliers.
///
/// `None` if edges have no weights.
///
/// # Errors
/// The disk failed.
pub fn sample_mean_weight(engine: &mut Engine) -> Result<Option<f64>, EngineError> {
    if engine.mean_weight.is_none() {
        engine.mean_weight = Some(engine.sample_weights()?);
    }
    Ok(engine.mean_weight.flatten())
}

/// Returns the geometric mean degree over the edges of a fixed sample of some thousands of vertices.
///
/// It is 1 if these have no edges. Over all edges it is no less than the mean degree of vertices, and grows with the share
/// of edges that belong to a few hubs.
///
/// # Errors
/// The disk failed.
pub fn sample_degree(engine: &mut Engine) -> Result<f64, EngineError> {
    if engine.usual_degree.is_none() {
        engine.usual_degree = Some(engine.sample_degrees()?);
    }
    Ok(engine.usual_degree.unwrap_or(1.0))
}

/// Returns the mean of the values that are at most some multiple of the median, if that is not zero.
///
/// An outlier tells nothing about the other values.
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
    fn sample_mean_ignores_outliers() {
        assert_eq!(usual_mean(&mut []), None);
        assert_eq!(usual_mean(&mut [7.0, 1.0, 1.0, 3.0]), Some(3.0));
        assert_eq!(usual_mean(&mut [1.0, 1e12, 3.0, f64::INFINITY]), Some(2.0));
        assert_eq!(usual_mean(&mut [0.0, 0.0, 0.0, 8.0]), Some(2.0));
    }
}
