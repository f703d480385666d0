//! Column groups as destinations of messages: the groups of a rank's routing table
//! ([`RoutingTable`](crate::messages::routing_table::RoutingTable)), and a guess at it.
//!
//! Group sizes depend on memory, so a table is built for each, in about the time of reading the fan-out lists.

use graphmill_graph::{Batches, DISK_PAGE_BYTES, FanoutChunk};
use graphmill_raw::lock;

use crate::comm::wire::PEERS;
use crate::context::ExecContext;
use crate::error::EngineError;
use crate::messages::routing_size::TableMemory;
use crate::messages::routing_table::ColumnGroups;
use crate::schedule::tasks::{ColumnLayout, StripRef};

/// Number of sampled parts of the vertices, and vertices of each.
const SAMPLES: u64 = 16;
const SAMPLE_VERTICES: u64 = 4096;

/// A map from strips to the column groups that fold them.
pub(crate) struct GroupOf {
    /// Number of groups.
    count: usize,
    /// For each batch of this rank: the end of each strip's sources, and the group that folds the strip.
    strips: Vec<Vec<(usize, usize)>>,
    first: usize,
}

impl GroupOf {
    pub(crate) fn new(columns: &impl ColumnLayout, groups: &[Vec<StripRef>]) -> Self {
        let own = columns.own();
        let mut strips = vec![Vec::new(); own.len()];
        for (group, targets) in groups.iter().enumerate() {
            for target in targets {
                let sources = columns.strip_sources(target.batch, target.strip);
                strips[target.batch - own.start].push((sources.end, group));
            }
        }
        strips.iter_mut().for_each(|of| of.sort_unstable());
        GroupOf {
            count: groups.len(),
            strips,
            first: own.start,
        }
    }

    /// Returns, for each batch of this rank, the group that folds messages of `batch`.
    pub(crate) fn from(&self, batch: usize) -> Vec<Option<usize>> {
        let group = |strips: &Vec<(usize, usize)>| {
            let at = strips.partition_point(|(end, _)| *end <= batch);
            strips.get(at).map(|(_, group)| *group)
        };
        self.strips.iter().map(group).collect()
    }

    /// Returns the groups as destinations of the messages of all batches.
    pub(crate) fn groups<'g>(&'g self, context: &'g ExecContext) -> ColumnGroups<'g> {
        let group_of = |batch| {
            let others = std::iter::repeat_n(None, self.first);
            others.chain(self.from(batch)).collect()
        };
        let cells = context.all_own_cells().count() as u64;
        let batches = &context.batches;
        ColumnGroups {
            of: 0..batches.len(),
            count: self.count,
            bytes: table_bytes(batches, context.workers.count(), cells, self.count),
            readers: readers(context.workers.count()),
            group_of: Box::new(group_of),
        }
    }

    /// Returns the group of a column of this rank, out of the groups of [`GroupOf::from`].
    fn of(&self, from: &[Option<usize>], column: usize) -> Option<usize> {
        *from.get(column.checked_sub(self.first)?)?
    }

    /// Estimates the senders and receivers of messages from a sample of the sources.
    ///
    /// `filtered` says whether messages of other ranks are filtered.
    pub(crate) fn sample(
        &self,
        context: &ExecContext,
        filtered: bool,
    ) -> Result<RoutingSample, EngineError> {
        let (graph, vertices) = (context.graph, context.batches.vertices());
        let last = self.first + self.strips.len();
        let own = context.batches.cut(self.first)..context.batches.cut(last);
        let step = sample_step(vertices);
        let (mut needed, mut from) = (0u64, 0);
        // Of this rank, and of others.
        let (mut seen, mut come) = ([0u64; 2], [0u64; 2]);
        let mut frames = lock(&context.frames);
        while from < vertices {
            let range = from..(from + SAMPLE_VERTICES).min(vertices);
            let (first, end) = (own.start.max(range.start), own.end.min(range.end));
            let of_own = end.saturating_sub(first);
            seen[0] += of_own;
            seen[1] += range.end - range.start - of_own;
            let mut of_source = Vec::new();
            let mut batch = context.batches.batch_of(from);
            let mut of_batch = self.from(batch);
            let part = range.clone();
            graph.fanouts_in(graph.forward(), &mut frames, part, |first, chunk| {
                for i in 0..FanoutChunk::VERTICES {
                    let v = first + i as u64;
                    if !range.contains(&v) {
                        continue;
                    }
                    while v >= context.batches.cut(batch + 1) {
                        batch += 1;
                        of_batch = self.from(batch);
                    }
                    of_source.clear();
                    let (mut is_sound, mut sends) = (true, false);
                    chunk.each(i, |position| match chunk.batch(position) {
                        Some(column) => {
                            sends = true;
                            of_source.extend(self.of(&of_batch, column));
                        }
                        None => is_sound = false,
                    })?;
                    if !is_sound {
                        return None;
                    }
                    of_source.sort_unstable();
                    of_source.dedup();
                    needed += of_source.len() as u64;
                    let comes = match own.contains(&v) || !filtered {
                        true => sends,
                        false => !of_source.is_empty(),
                    };
                    come[usize::from(!own.contains(&v))] += u64::from(comes);
                }
                Some(())
            })?;
            from += step;
        }
        context.arrays.count_read(frames.take_bytes_read());
        let share = |part: u64, of: u64| part as f64 / of.max(1) as f64;
        Ok(RoutingSample {
            spread: share(needed, seen[0] + seen[1]),
            messages: [share(come[0], seen[0]), share(come[1], seen[1])],
        })
    }
}

/// Shares of all sources, estimated from a sample.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RoutingSample {
    /// Column groups that need the message of a source, in the mean.
    pub(crate) spread: f64,
    /// Shares of active sources whose messages are here: of this rank, and of other ranks.
    ///
    /// Of this rank they are those with edges; of the others, those with edges to this rank, if messages are filtered.
    pub(crate) messages: [f64; 2],
}

/// Returns the distance between two sampled parts of the vertices.
fn sample_step(vertices: u64) -> u64 {
    (vertices / SAMPLES).max(SAMPLE_VERTICES)
}

/// Returns the bytes of fan-out lists of `fanout` bytes that a sample reads.
pub(crate) fn sample_bytes(vertices: u64, fanout: u64) -> u64 {
    let parts = vertices.div_ceil(sample_step(vertices));
    let of_vertices = u128::from(fanout) * u128::from(parts * SAMPLE_VERTICES);
    let of_vertices = of_vertices / u128::from(vertices.max(1));
    // Frames at both ends of a part are read whole.
    (of_vertices.min(u128::from(fanout)) as u64 + parts * DISK_PAGE_BYTES).min(fanout)
}

/// Returns the number of readers: workers, and a receiver for each peer at the same time.
fn readers(workers: usize) -> usize {
    workers + PEERS
}

/// Returns the memory of a routing table for `groups` column groups with `cells` cells.
pub(crate) fn table_bytes(
    batches: &Batches,
    workers: usize,
    cells: u64,
    groups: usize,
) -> TableMemory {
    let (all, cells) = (0..batches.len(), cells as usize);
    TableMemory::new(batches, all, groups, cells, readers(workers))
}
