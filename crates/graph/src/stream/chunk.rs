//! A chunk: arcs of one source batch, in runs by destination batch.
//!
//! ```text
//! edges: u32 | runs: number, then (batches passed over, arcs) of each, as varints | pairs | 8 bytes of zeros
//! ```

use crate::batches::Batches;
use crate::codec::varint;
use crate::error::FormatError;
use crate::stream::pair::{PADDING, PairLayout};

/// A chunk whose counts were checked against its bytes, and whose ends against the graph.
#[derive(Clone, Copy, Debug)]
pub struct ChunkView<'c> {
    edges: usize,
    /// Destination batch and arcs of each run, as varints.
    runs: &'c [u8],
    /// The pairs and the zeros after them.
    pairs: &'c [u8],
    layout: PairLayout,
}

/// The arcs of a chunk into one batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkRun {
    /// The batch.
    pub destination_batch: usize,
    /// The position of the first arc in the chunk.
    pub first: usize,
    /// The number of arcs.
    pub count: usize,
}

/// The runs of a chunk, by ascending destination batch.
#[derive(Clone, Debug)]
pub struct ChunkRuns<'c> {
    bytes: &'c [u8],
    at: usize,
    next_batch: usize,
    first: usize,
}

impl Iterator for ChunkRuns<'_> {
    type Item = ChunkRun;
    fn next(&mut self) -> Option<ChunkRun> {
        let passed = varint::get(self.bytes, &mut self.at)?;
        let count = usize::try_from(varint::get(self.bytes, &mut self.at)?).ok()?;
        let destination_batch = self.next_batch.checked_add(usize::try_from(passed).ok()?)?;
        let first = self.first;
        self.next_batch = destination_batch.checked_add(1)?;
        self.first = first.checked_add(count)?;
        Some(ChunkRun {
            destination_batch,
            first,
            count,
        })
    }
}

impl<'c> ChunkView<'c> {
    /// Parses the bytes of a chunk of `source_batch`.
    ///
    /// # Errors
    /// Counts and bytes disagree, or an arc begins or ends outside of its batch.
    pub fn parse(
        bytes: &'c [u8],
        batches: &Batches,
        source_batch: usize,
    ) -> Result<ChunkView<'c>, FormatError> {
        let view = Self::counted(bytes, batches)?;
        view.check_ends(batches, source_batch)?;
        Ok(view)
    }

    /// Parses the bytes, and checks the counts alone.
    pub(crate) fn counted(bytes: &'c [u8], batches: &Batches) -> Result<Self, FormatError> {
        let layout = PairLayout::new(batches)?;
        let cut =
            |at: usize| FormatError::cell("the chunk is cut off", at as u64, at + 1, bytes.len());
        let (edges, _) = bytes.split_first_chunk::<4>().ok_or_else(|| cut(0))?;
        let edges = u32::from_le_bytes(*edges) as usize;
        let mut at = 4;
        let count = varint::get(bytes, &mut at).ok_or_else(|| cut(at))?;
        let runs_at = at;
        let wrong = |what, at: usize, expected, found| {
            Err(FormatError::cell(what, at as u64, expected, found))
        };
        let mut walk = ChunkRuns {
            bytes,
            at,
            next_batch: 0,
            first: 0,
        };
        for _ in 0..count {
            let run = walk.next().ok_or_else(|| cut(walk.at))?;
            if run.destination_batch >= batches.len() {
                let what = "a run goes to a batch beyond the last";
                return wrong(what, walk.at, batches.len(), run.destination_batch);
            }
            if run.count == 0 || walk.first > edges {
                return wrong(
                    "a run has a wrong number of arcs",
                    walk.at,
                    edges,
                    walk.first,
                );
            }
        }
        at = walk.at;
        if walk.first != edges {
            return wrong("the runs are not all arcs", at, edges, walk.first);
        }
        let pairs = &bytes[at..];
        // No overflow: both factors are small.
        let expected = edges * layout.bytes + PADDING;
        if pairs.len() != expected {
            return wrong("the chunk has another length", at, expected, pairs.len());
        }
        Ok(ChunkView {
            edges,
            runs: &bytes[runs_at..at],
            pairs,
            layout,
        })
    }

    /// Checks the ends of the arcs. In a full batch any bits are a vertex.
    fn check_ends(&self, batches: &Batches, source_batch: usize) -> Result<(), FormatError> {
        let full = 1u64 << self.layout.bits;
        if source_batch >= batches.len() {
            let what = "the chunk is of a batch beyond the last";
            return Err(FormatError::cell(what, 0, batches.len(), source_batch));
        }
        let sources = batches.span(source_batch);
        for run in self.runs() {
            let destinations = batches.span(run.destination_batch);
            if sources == full && destinations == full {
                continue;
            }
            let mut last = (0, 0);
            self.for_each(&run, |source, destination, _| {
                last = (last.0.max(source), last.1.max(destination));
            });
            for (found, span) in [(last.0, sources), (last.1, destinations)] {
                if u64::from(found) >= span {
                    let what = "an arc has an end outside of its batch";
                    let at = run.first * self.layout.bytes;
                    return Err(FormatError::cell(
                        what,
                        at as u64,
                        span as usize,
                        found as usize,
                    ));
                }
            }
        }
        Ok(())
    }

    /// The number of arcs.
    pub fn edges(&self) -> usize {
        self.edges
    }

    /// The runs, by ascending destination batch.
    pub fn runs(&self) -> ChunkRuns<'c> {
        ChunkRuns {
            bytes: self.runs,
            at: 0,
            next_batch: 0,
            first: 0,
        }
    }

    /// Calls `f(source, destination, position)` for each arc of a run of this chunk.
    ///
    /// Both ends are local numbers of their batches. The position is that of the arc's data.
    #[inline(always)]
    pub fn for_each(&self, run: &ChunkRun, f: impl FnMut(u32, u32, usize)) {
        match self.layout.bytes {
            1 => self.each::<1>(run, f),
            2 => self.each::<2>(run, f),
            3 => self.each::<3>(run, f),
            4 => self.each::<4>(run, f),
            _ => self.each::<5>(run, f),
        }
    }

    /// Writes the ends of the arcs from position `first` on, as many as both slices hold.
    ///
    /// Both ends are local numbers of their batches. Compiled once, not for each program.
    pub fn decode(&self, first: usize, sources: &mut [u32], destinations: &mut [u32]) {
        let run = ChunkRun {
            destination_batch: 0,
            first,
            count: sources
                .len()
                .min(destinations.len())
                .min(self.edges.saturating_sub(first)),
        };
        let mut ends = sources.iter_mut().zip(destinations);
        self.for_each(&run, |source, destination, _| {
            if let Some((to_source, to_destination)) = ends.next() {
                (*to_source, *to_destination) = (source, destination);
            }
        });
    }

    #[inline(always)]
    fn each<const BYTES: usize>(&self, run: &ChunkRun, mut f: impl FnMut(u32, u32, usize)) {
        let (bits, mask) = (self.layout.bits, self.layout.mask());
        let end = (run.first + run.count) * BYTES + PADDING - BYTES;
        let mut rest = self.pairs.get(run.first * BYTES..end).unwrap_or(&[]);
        let mut position = run.first;
        // The slice ends with the word of the last pair.
        while let Some((word, _)) = rest.split_first_chunk::<8>() {
            let word = u64::from_le_bytes(*word);
            f((word & mask) as u32, (word >> bits & mask) as u32, position);
            position += 1;
            rest = &rest[BYTES..];
        }
    }
}
