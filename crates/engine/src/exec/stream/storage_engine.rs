//! A storage engine: the chunks of arcs and of updates at this rank, each handed out once in a phase (Chaos, section 6.3).

use graphmill_graph::{Chunk, ChunkSet};
use graphmill_raw::{SplitMix64, failpoint};

use crate::error::EngineError;
use crate::exec::stream::updates::{UpdateChunk, UpdateFile};

/// The phase that chunks are handed out for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PhaseKind {
    /// Chunks of arcs.
    Scatter,
    /// Chunks of updates.
    Gather,
}

/// A chunk to read.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ChunkRef {
    Arcs(Chunk),
    Updates(UpdateChunk),
}

/// Which chunks of a graph are at which storage engine.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ChunkPlacement {
    /// Number of storage engines.
    pub(crate) engines: usize,
    /// This one.
    pub(crate) own: usize,
    /// Each rank has the file of its number, and no other; otherwise all ranks have all files.
    pub(crate) by_file: bool,
}

impl ChunkPlacement {
    /// The storage engine of chunk number `number` of a graph.
    pub(crate) fn engine_of(&self, number: usize, chunk: &Chunk) -> usize {
        match (self.engines, self.by_file) {
            (1, _) => 0,
            (_, true) => chunk.file(),
            // The number alone decides, so that all ranks agree.
            (engines, false) => SplitMix64::new(number as u64).below(engines as u64) as usize,
        }
    }
}

/// The storage engine of this rank.
pub(crate) struct StorageEngine {
    placement: ChunkPlacement,
    /// For each batch, the position of the first chunk that was not handed out in this phase.
    cursors: Vec<usize>,
    /// The update chunks, unless all accumulators are in memory.
    updates: Option<UpdateFile>,
}

impl StorageEngine {
    pub(crate) fn new(batches: usize, updates: Option<UpdateFile>) -> Self {
        StorageEngine {
            placement: ChunkPlacement::default(),
            cursors: vec![0; batches],
            updates,
        }
    }

    /// Begins a superstep: all chunks of arcs are unprocessed, and there are no updates.
    pub(crate) fn begin(&mut self, placement: ChunkPlacement) {
        self.placement = placement;
        self.cursors.fill(0);
        self.updates.iter_mut().for_each(UpdateFile::clear);
    }

    /// Hands out an unprocessed chunk of a batch.
    pub(crate) fn next(
        &mut self,
        kind: PhaseKind,
        chunks: &ChunkSet,
        batch: usize,
    ) -> Option<ChunkRef> {
        if kind == PhaseKind::Gather {
            return (self.updates.as_mut()?.take(batch)).map(ChunkRef::Updates);
        }
        let of_batch = chunks.of_batch(batch);
        let first = chunks.first_of(batch);
        while let Some(chunk) = of_batch.get(self.cursors[batch]) {
            let number = first + self.cursors[batch];
            self.cursors[batch] += 1;
            let is_own = self.placement.engine_of(number, chunk) == self.placement.own;
            failpoint!(ChunkServedTwice: is_own = is_own || number.is_multiple_of(8) && !self.placement.by_file);
            failpoint!(ChunkForgotten: is_own = is_own && !self.cursors[batch].is_multiple_of(8));
            if is_own {
                return Some(ChunkRef::Arcs(*chunk));
            }
        }
        None
    }

    /// Bytes of the chunks of a batch that were not handed out.
    pub(crate) fn bytes_left(&self, kind: PhaseKind, chunks: &ChunkSet, batch: usize) -> u64 {
        if kind == PhaseKind::Gather {
            let updates = self.updates.as_ref();
            return updates.map_or(0, |updates| updates.bytes_left(batch));
        }
        let (first, from) = (chunks.first_of(batch), self.cursors[batch]);
        let left = (from..).zip(chunks.of_batch(batch).get(from..).unwrap_or_default());
        let own = left.filter(|(position, chunk)| {
            self.placement.engine_of(first + position, chunk) == self.placement.own
        });
        own.map(|(_, chunk)| chunk.bytes() as u64).sum()
    }

    /// The file of update chunks.
    pub(crate) fn updates(&mut self) -> Result<&mut UpdateFile, EngineError> {
        self.updates.as_mut().ok_or(EngineError::Broken)
    }
}
