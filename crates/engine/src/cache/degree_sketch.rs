//! Out-degrees to within a quarter, one byte a vertex: what the edges of an active set are estimated by.
//!
//! The active vertices of a pass are seldom ordinary ones: a search meets the hubs first. Their number times the mean
//! degree can be a hundred times too low, and a sparse pass chosen by it a hundred times too slow.

use graphmill_graph::PageCache;
use graphmill_storage::Lease;

use crate::context::ExecContext;
use crate::error::EngineError;
use crate::frontier::active_set::ActiveSet;

/// Degrees are scanned if their sketches take at most one part in 16 of the free budget.
const SKETCHES_SHARE: u64 = 16;

/// True if sketches that take `bytes` are small beside the free budget.
pub(crate) fn are_sketches_small(bytes: u64, free: u64) -> bool {
    bytes <= free / SKETCHES_SHARE
}

/// Frames of 64 KiB that reading the degrees reads ahead.
const FRAMES: usize = 8;

/// A degree's class: 0 for none, else one more than its exponent and the two bits after its highest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct QuantizedDegree(u8);

impl From<u64> for QuantizedDegree {
    fn from(degree: u64) -> Self {
        let Some(exponent) = degree.checked_ilog2() else {
            return QuantizedDegree(0);
        };
        let bits = (u128::from(degree) << 2 >> exponent) as u32 & 3;
        // The largest classes are joined: no vertex has 2^63 edges.
        QuantizedDegree((1 + 4 * exponent + bits).min(255) as u8)
    }
}

impl QuantizedDegree {
    /// The largest degree of the class.
    const fn at_most(self) -> u64 {
        if self.0 == 0 {
            return 0;
        }
        let (exponent, bits) = ((self.0 - 1) / 4, (self.0 - 1) % 4);
        // One less than where the next class begins.
        let end = (5 + bits as u128) << exponent;
        (end.div_ceil(4) - 1) as u64
    }
}

/// The largest degree of each class.
const AT_MOST: [u64; 256] = {
    let mut all = [0; 256];
    let mut class = 0;
    while class < 256 {
        all[class] = QuantizedDegree(class as u8).at_most();
        class += 1;
    }
    all
};

/// The classes of the out-degrees of a rank's vertices.
pub(crate) struct DegreeSketch {
    classes: Vec<QuantizedDegree>,
    /// The vertex that they begin with.
    first: u64,
    /// No vertex has more edges.
    largest: u64,
    _lease: Lease,
}

impl DegreeSketch {
    /// Bytes of the budget that loading takes, at most.
    pub(crate) fn memory(context: &ExecContext) -> u64 {
        Self::memory_of(context.arrays.vertices())
    }
    /// Returns the same for `vertices` own vertices.
    pub(crate) fn memory_of(vertices: u64) -> u64 {
        vertices + (FRAMES as u64) * (64 << 10)
    }

    /// The classes, and the bytes read for them.
    pub(crate) fn load(context: &ExecContext) -> Result<(Self, u64), EngineError> {
        let graph = &context.graph;
        let vertices = context.arrays.vertices();
        let own = context.ranks.own();
        let _lease = context.budget.lease("classes of degrees", vertices)?;
        let mut classes = vec![QuantizedDegree(0); vertices as usize];
        let mut frames = PageCache::new(graph, &context.budget, FRAMES)?;
        let mut rest = &mut classes[..];
        for batch in own.clone() {
            let (part, later) = rest.split_at_mut(context.batches.span(batch) as usize);
            graph.degrees(graph.forward(), &mut frames, batch, part)?;
            rest = later;
        }
        let largest = classes.iter().map(|class| class.0).max().unwrap_or(0);
        let classes = DegreeSketch {
            classes,
            first: context.batches.cut(own.start),
            largest: QuantizedDegree(largest).at_most(),
            _lease,
        };
        Ok((classes, frames.take_bytes_read()))
    }

    /// Returns an upper bound on the edges of this rank's active vertices.
    ///
    /// The bound is at most a quarter too high, unless it is at most `is_final`: then counting stops early.
    pub(crate) fn edges(
        &self,
        context: &ExecContext,
        active: &ActiveSet,
        enough: u64,
    ) -> Result<u64, EngineError> {
        let bound = active.own_len().saturating_mul(self.largest);
        if bound <= enough {
            return Ok(bound);
        }
        let mut edges = 0u64;
        for batch in active.batches() {
            let start = (context.batches.start(batch) - self.first) as usize;
            active.batch(batch)?.for_each(|i| {
                let class = self.classes.get(start + i).map_or(0, |class| class.0);
                edges = edges.saturating_add(AT_MOST[usize::from(class)]);
            });
        }
        Ok(edges)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn degree_class_bounds_degrees_to_a_quarter() {
        let mut last = QuantizedDegree(0);
        for degree in (0..5000).chain((13..63).flat_map(|e| {
            let power = 1u64 << e;
            [power - 1, power, power + power / 4, power + power / 2 + 1]
        })) {
            let class = QuantizedDegree::from(degree);
            let bound = class.at_most();
            assert!(bound >= degree, "{degree} in a class up to {bound}");
            assert!(
                bound - degree <= degree / 4,
                "{degree} in a class up to {bound}"
            );
            assert!(class.0 >= last.0 || degree < 13, "{degree}");
            if degree < 8192 {
                last = class;
            }
        }
        assert_eq!(QuantizedDegree::from(u64::MAX), QuantizedDegree(255));
    }
}
