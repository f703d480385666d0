//! The arcs of a circulant graph in the order of the stored graph: by batch of destinations, source and destination.
//!
//! Every vertex has arcs at the same distances. In ascending order, those that lead into a range of vertices stand side by
//! side, and where they begin moves on with the source. So nothing has to be sorted but the distances themselves.

use graphmill_storage::{Buffer, MemoryBudget, StorageError};

use super::circulant::Circulant;
use crate::options::SelfLoops;

/// The direction of arcs, relative to the edges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ArcDirections {
    Forth,
    Back,
    /// Two arcs for each edge, but one for an edge from a vertex to itself.
    Both,
}

/// From a vertex to one of its neighbours.
type RingStep = [u64; 2];

/// Marks a step that goes back along its edge.
const BACK: u64 = 1 << 63;

/// The steps from any vertex, in order of their distance around the ring.
#[derive(Debug)]
pub(crate) struct SortedArcs {
    graph: Circulant,
    /// Per step its distance and its edge's number at the source, of one round, then of the next.
    steps: Buffer,
    count: usize,
}

impl SortedArcs {
    /// Bytes that the steps take at most.
    pub(crate) fn bytes(graph: Circulant, directions: ArcDirections) -> u64 {
        let steps = graph.degree.saturating_mul(match directions {
            ArcDirections::Forth | ArcDirections::Back => 1,
            ArcDirections::Both => 2,
        });
        steps
            .saturating_mul(2 * size_of::<RingStep>() as u64)
            .saturating_add(4096)
    }

    /// Arcs from each vertex, and as many to each.
    pub(crate) fn count(graph: Circulant, directions: ArcDirections, self_loops: SelfLoops) -> u64 {
        let loops = graph.loops();
        let others = graph.degree - loops;
        let kept = match self_loops {
            SelfLoops::Keep => loops,
            SelfLoops::Drop => 0,
        };
        kept + others
            * if directions == ArcDirections::Both {
                2
            } else {
                1
            }
    }

    pub(crate) fn new(
        graph: Circulant,
        directions: ArcDirections,
        self_loops: SelfLoops,
        budget: &MemoryBudget,
    ) -> Result<Self, StorageError> {
        let count = Self::count(graph, directions, self_loops) as usize;
        let mut steps = budget.buffer(
            "the neighbours of a vertex",
            2 * count * size_of::<RingStep>(),
        )?;
        let (round, next) = steps.typed_mut::<RingStep>().split_at_mut(count);
        let arcs = (0..graph.degree).flat_map(|edge| {
            let distance = graph.distance(edge + 1);
            let back = (graph.vertices - distance) % graph.vertices;
            let forth = (directions != ArcDirections::Back).then_some([distance, edge]);
            let back = match directions {
                ArcDirections::Back => true,
                ArcDirections::Both => distance > 0,
                ArcDirections::Forth => false,
            }
            .then_some([back, edge | BACK]);
            let kept = distance > 0 || self_loops == SelfLoops::Keep;
            [forth, back].into_iter().flatten().filter(move |_| kept)
        });
        round.iter_mut().zip(arcs).for_each(|(to, step)| *to = step);
        round.sort_unstable();
        for (to, step) in next.iter_mut().zip(round) {
            *to = [step[0] + graph.vertices, step[1]];
        }
        Ok(SortedArcs {
            graph,
            steps,
            count,
        })
    }

    #[cfg(test)]
    pub(super) fn vertices(&self) -> u64 {
        self.graph.vertices
    }

    /// Arcs from each vertex, and as many to each.
    pub(crate) fn len(&self) -> u64 {
        self.count as u64
    }

    /// Returns the arcs into the `span` vertices from `start` on.
    pub(crate) fn reaching(&self, start: u64, span: u64) -> RangeArcs<'_> {
        RangeArcs {
            steps: self.steps.typed::<RingStep>(),
            count: self.count,
            degree: self.graph.degree,
            vertices: self.graph.vertices,
            start,
            span,
        }
    }
}

/// The arcs into a range of vertices.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RangeArcs<'a> {
    /// The steps of two rounds.
    steps: &'a [RingStep],
    count: usize,
    degree: u64,
    vertices: u64,
    start: u64,
    span: u64,
}

impl<'a> RangeArcs<'a> {
    /// The distance from `source` to the first vertex of the range.
    fn first(self, source: u64) -> u64 {
        match self.start.checked_sub(source) {
            Some(distance) => distance,
            None => self.vertices - (source - self.start),
        }
    }

    /// The first source, from `source` on, with an arc into the range.
    pub(crate) fn next_source(self, source: u64) -> Option<u64> {
        if source >= self.vertices {
            return None;
        }
        let first = self.first(source);
        let round = &self.steps[..self.count];
        let at = round.partition_point(|step| step[0] < first);
        if self.steps.get(at)?[0] < first + self.span {
            return Some(source);
        }
        // Each further source is nearer by one, until the step before reaches the range.
        let nearer = match at.checked_sub(1) {
            Some(before) => first - round[before][0],
            None => first + self.vertices - round.last()?[0],
        };
        Some(source + nearer).filter(|next| *next < self.vertices)
    }

    /// The arcs from `source`.
    pub(crate) fn at_source(self, source: u64) -> SourceArcs<'a> {
        let first = self.first(source);
        let at = self.steps[..self.count].partition_point(|step| step[0] < first);
        let round = &self.steps[at..at + self.count];
        let end = at + round.partition_point(|step| step[0] < first + self.span);
        SourceArcs {
            range: self,
            source,
            first,
            at,
            end,
        }
    }
}

/// The arcs from one source into a range of vertices, in order of their destinations.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SourceArcs<'a> {
    range: RangeArcs<'a>,
    pub(crate) source: u64,
    /// The distance to the first vertex of the range.
    first: u64,
    /// The steps: from this one up to that.
    at: usize,
    end: usize,
}

impl SourceArcs<'_> {
    /// Number of arcs.
    pub(crate) fn len(&self) -> usize {
        self.end - self.at
    }

    /// Advances to the next source, which must exist.
    #[inline(always)]
    pub(crate) fn advance(&mut self) {
        let Some(first) = self.first.checked_sub(1) else {
            *self = self.range.at_source(self.source + 1);
            return;
        };
        let steps = self.range.steps;
        (self.source, self.first) = (self.source + 1, first);
        while self.at > 0 && steps[self.at - 1][0] >= first {
            self.at -= 1;
        }
        while self.end > self.at && steps[self.end - 1][0] >= first + self.range.span {
            self.end -= 1;
        }
    }

    /// Returns the arcs from number `from` on, `count` at most.
    pub(crate) fn part(&self, from: usize, count: usize) -> Self {
        let at = self.at + from.min(self.len());
        SourceArcs {
            at,
            end: self.end.min(at + count),
            ..*self
        }
    }

    /// The destinations, counted from the first vertex of the range.
    #[inline(always)]
    pub(crate) fn destinations(&self) -> impl Iterator<Item = u64> {
        let first = self.first;
        self.range.steps[self.at..self.end]
            .iter()
            .map(move |step| step[0] - first)
    }

    /// The numbers of the edges.
    pub(crate) fn edges(&self) -> impl Iterator<Item = u64> {
        let RangeArcs { start, degree, .. } = self.range;
        self.range.steps[self.at..self.end]
            .iter()
            .map(move |&[distance, edge]| {
                let from = match edge & BACK {
                    0 => self.source,
                    _ => start + (distance - self.first),
                };
                from * degree + (edge & !BACK)
            })
    }
}
