//! The order of degree: which index each vertex gets. Vertices come by number (`degree_file.rs`), and so in order of rank.
//!
//! 1. The out-degrees are read once and counted by value: few values are distinct, since n distinct degrees take at least n²/2
//!    arcs.
//! 2. The number of vertices with a greater degree is the first place of a degree in descending order. In order of ids, each
//!    vertex takes the next place of its degree. That is its *turn*.
//! 3. Turns are assigned to the batches round robin: turn t goes to batch `t mod B`, place `t / B`.
//!
//! So the indices by number follow from one reading of the degrees, in constant memory. A reader in another order gets
//! them window by window, by as many readings as there are windows: memory decides how often degrees are read, never the stored bytes.

use std::collections::BTreeMap;
use std::ops::Range;

use graphmill_graph::{Batches, OrderWriter};
use graphmill_storage::Lease;

use super::batch_cut::{batch_arcs_max, batch_vertices_max};
use super::degree_file::OutDegrees;
use crate::error::IngestError;
use crate::ids::order_window::{NO_INDEX, OrderWindow, is_wide};
use crate::options::ImportResources;

/// Degrees that have a counter of their own; of greater ones, those that occur.
const SMALL: usize = 1 << 14;
/// Bytes of a greater one in its map, amply.
const LARGE_BYTES: u64 = 64;
/// Bytes of a window of the order, unless less is asked for, and entries at least.
const WINDOW_BYTES_MIN: u64 = 128 << 10;
const WINDOW_MIN: u64 = 1 << 10;

/// Returns the number of batches for `vertices` vertices in order of degree, under the usual caps.
///
/// `size`: vertices of a batch at most, regardless of their edges.
pub(crate) fn batches(vertices: u64, arcs: u64, size: Option<u64>) -> u64 {
    if let Some(size) = size {
        return vertices.div_ceil(size.max(1));
    }
    let by_vertices = vertices.div_ceil(batch_vertices_max(vertices, false));
    let batches = by_vertices
        .max(arcs.div_ceil(batch_arcs_max(arcs)))
        .min(vertices);
    let span = vertices.div_ceil(batches.max(1)).max(1);
    // A little more batches rather than one more bit for every destination.
    let power = 1 << span.ilog2();
    if batches > 1 && span - power <= power / 4 {
        vertices.div_ceil(power)
    } else {
        batches
    }
}

/// Returns the boundaries of `batches` batches of equal size; the first ones may have one vertex more.
pub(crate) fn cuts(vertices: u64, batches: u64) -> Vec<u64> {
    let (each, more) = (vertices / batches.max(1), vertices % batches.max(1));
    let cut = |batch: u64| batch * each + batch.min(more);
    (0..=batches).map(cut).collect()
}

/// A number for each degree that occurs.
#[derive(Clone, Debug)]
struct DegreeCounts {
    small: Vec<u64>,
    large: BTreeMap<u64, u64>,
}

impl Default for DegreeCounts {
    fn default() -> Self {
        Self {
            small: vec![0; SMALL],
            large: BTreeMap::new(),
        }
    }
}

impl DegreeCounts {
    /// Returns the bytes of the counts of a graph of `vertices` vertices and `arcs` arcs, at most.
    fn bytes(vertices: u64, arcs: u64) -> u64 {
        let distinct = (2 * arcs).isqrt() + 1;
        let large = distinct.min(vertices).min(arcs / SMALL as u64);
        (SMALL * size_of::<u64>()) as u64 + large * LARGE_BYTES
    }

    fn entry(&mut self, degree: u64) -> &mut u64 {
        match self.small.get_mut(degree as usize) {
            Some(number) => number,
            None => self.large.entry(degree).or_default(),
        }
    }

    /// Turns counts into how many have a greater degree.
    fn greater(&mut self) {
        let mut sum = 0;
        let large = self.large.values_mut().rev();
        for number in large.chain(self.small.iter_mut().rev()) {
            sum += std::mem::replace(number, sum);
        }
    }
}

/// The indices that are vertices', at the front of a run.
fn of_vertices(run: &mut [u64]) -> &[u64] {
    let mut kept = 0;
    for at in 0..run.len() {
        if run[at] != NO_INDEX {
            run[kept] = run[at];
            kept += 1;
        }
    }
    &run[..kept]
}

/// An assignment of vertices to batches, round robin in descending order of out-degree.
#[derive(Debug)]
pub(crate) struct DegreeOrder<'a> {
    pub(crate) degrees: &'a OutDegrees,
    resources: ImportResources<'a>,
    /// The first turn of each degree.
    turns: DegreeCounts,
    batches: Batches,
    /// The memory of the turns, and of the turns of a walk.
    _lease: Lease,
}

impl<'a> DegreeOrder<'a> {
    /// Returns the leased bytes of an order of `vertices` vertices and `arcs` arcs.
    pub(crate) fn bytes(vertices: u64, arcs: u64) -> u64 {
        2 * DegreeCounts::bytes(vertices, arcs)
    }
    /// The least bytes that writing the order takes in addition.
    pub(crate) const WRITE_BYTES: u64 =
        OutDegrees::WALK_BYTES + OrderWriter::MEMORY + 2 * WINDOW_BYTES_MIN;

    /// Assigns the vertices of these degrees to `batches` batches.
    pub(crate) fn new(
        degrees: &'a OutDegrees,
        resources: ImportResources<'a>,
        batches: Batches,
    ) -> Result<Self, IngestError> {
        let bytes = Self::bytes(batches.vertices(), degrees.arcs);
        let lease = resources
            .budget
            .lease("counts of vertices by degree", bytes)?;
        let mut turns = DegreeCounts::default();
        degrees.walk(resources, degrees.numbers, |_, run| {
            let degrees = run
                .iter()
                .filter(|degree| **degree != OutDegrees::NO_DEGREE);
            degrees.for_each(|degree| *turns.entry(*degree) += 1);
            Ok(())
        })?;
        turns.greater();
        Ok(Self {
            degrees,
            resources,
            turns,
            batches,
            _lease: lease,
        })
    }

    /// Calls `each` with runs of indices of the numbers below `end`, in order, and each run's first number.
    fn indices(
        &self,
        end: u64,
        mut each: impl FnMut(u64, &mut [u64]) -> Result<(), IngestError>,
    ) -> Result<(), IngestError> {
        let mut next = self.turns.clone();
        let batches = self.batches.len().max(1) as u64;
        self.degrees.walk(self.resources, end, |first, run| {
            for entry in &mut *run {
                if *entry == OutDegrees::NO_DEGREE {
                    *entry = NO_INDEX;
                    continue;
                }
                let next = next.entry(*entry);
                let turn = std::mem::replace(next, *next + 1);
                *entry = self.batches.start((turn % batches) as usize) + turn / batches;
            }
            each(first, run)
        })
    }

    /// Writes the ranks by index, in windows of at most `window_bytes_max` bytes, then the indices by rank.
    pub(crate) fn write(
        &self,
        mut order: OrderWriter,
        window_bytes_max: u64,
    ) -> Result<(), IngestError> {
        let (vertices, numbers) = (self.batches.vertices(), self.degrees.numbers);
        let budget = self.resources.budget;
        let free = budget.available().saturating_sub(OutDegrees::WALK_BYTES);
        let window_bytes = (free / 2).max(WINDOW_BYTES_MIN).min(window_bytes_max);
        let window = (window_bytes / size_of::<u64>() as u64).max(WINDOW_MIN);
        let window = window.min(vertices);
        let mut ranks =
            budget.buffer("the order of vertices", window as usize * size_of::<u64>())?;
        let mut first = 0;
        while first < vertices {
            let count = window.min(vertices - first) as usize;
            let ranks = &mut ranks.typed_mut::<u64>()[..count];
            let mut next = 0..;
            self.indices(numbers, |_, indices| {
                for (index, rank) in of_vertices(indices).iter().zip(&mut next) {
                    let place = index.wrapping_sub(first) as usize;
                    if let Some(place) = ranks.get_mut(place) {
                        *place = rank;
                    }
                }
                Ok(())
            })?;
            order.push(ranks)?;
            first += window;
        }
        drop(ranks);
        self.indices(numbers, |_, indices| Ok(order.push(of_vertices(indices))?))?;
        Ok(order.finish()?)
    }

    /// The indices of a range of numbers, in memory.
    pub(crate) fn slice(&self, numbers: Range<u64>) -> Result<OrderWindow, IngestError> {
        let vertices = self.batches.vertices();
        let wide = is_wide(vertices);
        let bytes = OrderWindow::bytes(vertices, numbers.end - numbers.start);
        let mut entries = self
            .resources
            .budget
            .buffer("the order of vertices", bytes as usize)?;
        self.indices(numbers.end, |first, indices| {
            let skipped = numbers
                .start
                .saturating_sub(first)
                .min(indices.len() as u64);
            let indices = &indices[skipped as usize..];
            let at = (first + skipped).saturating_sub(numbers.start) as usize;
            if wide {
                let places = &mut entries.typed_mut::<u64>()[at..];
                std::iter::zip(places, indices).for_each(|(to, from)| *to = *from);
            } else {
                let places = &mut entries.typed_mut::<u32>()[at..];
                std::iter::zip(places, indices).for_each(|(to, from)| *to = *from as u32);
            }
            Ok(())
        })?;
        Ok(OrderWindow {
            numbers,
            wide,
            entries,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_differ_by_one_vertex_at_most() {
        assert_eq!(cuts(10, 3), [0, 4, 7, 10]);
        assert_eq!(cuts(9, 3), [0, 3, 6, 9]);
        assert_eq!(cuts(3, 3), [0, 1, 2, 3]);
        assert_eq!(cuts(0, 0), [0]);
    }

    #[test]
    fn batch_count_follows_the_caps() {
        // Vertices, arcs, a size that is asked for; batches.
        for (vertices, arcs, size, expected) in [
            (0, 0, None, 0),
            (0, 0, Some(7), 0),
            (10, 1000, None, 1),
            (10, 1000, Some(4), 3),
            (10, 1000, Some(1), 10),
            (10, 1000, Some(1 << 40), 1),
            // By vertices, by arcs, and never more than vertices.
            (5 << 20, 5 << 20, None, 5),
            (1 << 20, 1 << 28, None, 16),
            (3, 1 << 28, None, 3),
            // By arcs 32, each a little wider than a power of two.
            (9 << 20, 1 << 29, None, 36),
        ] {
            assert_eq!(
                batches(vertices, arcs, size),
                expected,
                "{vertices} {arcs} {size:?}"
            );
        }
    }

    #[test]
    fn degree_order_puts_greater_degrees_first() {
        let mut turns = DegreeCounts::default();
        for (degree, count) in [
            (0, 5),
            (3, 2),
            (SMALL as u64 - 1, 1),
            (SMALL as u64, 4),
            (1 << 40, 1),
        ] {
            *turns.entry(degree) += count;
        }
        turns.greater();
        let first = |degree: u64| *turns.clone().entry(degree);
        assert_eq!((first(1 << 40), first(SMALL as u64)), (0, 1));
        assert_eq!((first(SMALL as u64 - 1), first(3), first(0)), (5, 6, 8));
    }
}
