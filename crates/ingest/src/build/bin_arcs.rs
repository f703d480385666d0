//! From edges to arcs in bins: one worker's share of the step *bin*, and the way of full chunks to ranks.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use graphmill_graph::{ChunkBins, ChunkRoute, FileSide, SealedChunk};
use graphmill_storage::SplitMix64;

use crate::edge_data::EdgeData;
use crate::error::IngestError;
use crate::external::edge_file::EdgeBatchSink;
use crate::external::shuffle::BucketShuffle;
use crate::ids::index_map::IndexLookup;
use crate::options::SelfLoops;
use crate::progress::Meter;
use crate::source::EdgeSink;

/// Edges whose indices are looked up before the first of them is binned.
const BLOCK: usize = 256;

/// What becomes of an edge.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BinPlan {
    pub(crate) directed: bool,
    pub(crate) self_loops: SelfLoops,
    pub(crate) vertices: u64,
    /// The index of the vertex of the first edge of the input, if edges have vertices.
    pub(crate) first_edge_vertex: Option<u64>,
}

/// The way of full chunks: each to a rank that is drawn at random.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChunkScatter<'s> {
    /// `None`: there is one rank.
    pub(crate) shuffle: Option<&'s BucketShuffle<'s>>,
    pub(crate) ranks: usize,
    pub(crate) rank: usize,
    pub(crate) side: FileSide,
    /// The state of the generator of random numbers.
    pub(crate) drawn: &'s AtomicU64,
}

/// Bits of the label of a chunk: its batch, the bytes of its arcs, its side.
const BATCH_BITS: u32 = 32;
const SIDE_BIT: u32 = 63;

impl ChunkScatter<'_> {
    /// The side of a chunk that came under a label, and the chunk.
    pub(crate) fn decode(label: u64, record: &[u8]) -> (FileSide, SealedChunk<'_>) {
        let side = match label >> SIDE_BIT {
            0 => FileSide::Forward,
            _ => FileSide::Reverse,
        };
        let chunk = SealedChunk {
            batch: label as u32,
            arcs_bytes: ((label & !(1 << SIDE_BIT)) >> BATCH_BITS) as usize,
            bytes: record,
        };
        (side, chunk)
    }
}

impl ChunkRoute for ChunkScatter<'_> {
    type Error = IngestError;
    fn send(&self, chunk: SealedChunk<'_>) -> Result<bool, IngestError> {
        let Some(shuffle) = self.shuffle else {
            return Ok(false);
        };
        let seed = self.drawn.fetch_add(1, Relaxed);
        let rank = (SplitMix64::new(seed).next_u64() % self.ranks as u64) as usize;
        if rank == self.rank {
            return Ok(false);
        }
        let side = u64::from(self.side == FileSide::Reverse) << SIDE_BIT;
        let label = side | (chunk.arcs_bytes as u64) << BATCH_BITS | u64::from(chunk.batch);
        shuffle.send_to(rank, label, chunk.bytes)?;
        Ok(true)
    }
}

/// The bins of one side.
pub(crate) type SideBins<'b> = ChunkBins<'b, ChunkScatter<'b>>;

/// One worker's share of the step.
#[derive(Debug)]
pub(crate) struct ArcBinner<'b> {
    pub(crate) plan: &'b BinPlan,
    pub(crate) indices: IndexLookup<'b>,
    pub(crate) meter: &'b Meter<'b>,
    pub(crate) forward: SideBins<'b>,
    pub(crate) reverse: Option<SideBins<'b>>,
    pub(crate) edges: u64,
    pub(crate) loops: u64,
}

impl ArcBinner<'_> {
    /// Adds edges; the first has number `sequence` in the input.
    fn take(
        &mut self,
        edges: &[(u64, u64)],
        data: EdgeData<'_>,
        mut sequence: u64,
    ) -> Result<(), IngestError> {
        self.edges += edges.len() as u64;
        let ids_end = self.plan.first_edge_vertex.unwrap_or(self.plan.vertices);
        let mut room = [(0, 0); BLOCK];
        for (block, edges) in edges.chunks(BLOCK).enumerate() {
            let (mapped, last) = match self.indices.is_same() {
                true => (
                    edges,
                    edges
                        .iter()
                        .fold(0, |last, ends| ends.0.max(ends.1).max(last)),
                ),
                false => {
                    let mapped = &mut room[..edges.len()];
                    let last = self.indices.map(edges, mapped);
                    (&*mapped, last)
                }
            };
            if last >= ids_end {
                return Err(IngestError::input_changed());
            }
            let data = data.skip(block * BLOCK);
            let is_plain = self.plan.directed
                && self.plan.self_loops == SelfLoops::Keep
                && self.plan.first_edge_vertex.is_none()
                && self.reverse.is_none()
                && data.low.is_empty();
            if is_plain {
                for &(source, destination) in mapped {
                    self.forward.push(source, destination, 0)?;
                }
                continue;
            }
            for (i, &(source, destination)) in mapped.iter().enumerate() {
                self.edge(source, destination, data.get(i), sequence)?;
                sequence += 1;
            }
        }
        Ok(())
    }

    #[inline(always)]
    fn edge(
        &mut self,
        source: u64,
        destination: u64,
        data: u128,
        sequence: u64,
    ) -> Result<(), IngestError> {
        let plan = self.plan;
        let is_loop = source == destination;
        self.loops += u64::from(is_loop);
        if is_loop && plan.self_loops == SelfLoops::Drop {
            return Ok(());
        }
        if let Some(first) = plan.first_edge_vertex {
            let between = first.saturating_add(sequence);
            if between >= plan.vertices {
                return Err(IngestError::input_changed());
            }
            self.forward.push(source, between, data)?;
            return self.forward.push(between, destination, data);
        }
        self.forward.push(source, destination, data)?;
        if !plan.directed && !is_loop {
            self.forward.push(destination, source, data)?;
        }
        match &mut self.reverse {
            Some(reverse) => reverse.push(destination, source, data),
            None => Ok(()),
        }
    }

    /// Empties its lines; returns the edges and the loops that it took.
    pub(crate) fn finish(self) -> Result<(u64, u64), IngestError> {
        self.forward.finish()?;
        self.reverse.map_or(Ok(()), ChunkBins::finish)?;
        Ok((self.edges, self.loops))
    }
}

impl EdgeBatchSink for ArcBinner<'_> {
    fn integers(
        &mut self,
        edges: &[(u64, u64)],
        data: EdgeData<'_>,
        sequence: u64,
    ) -> Result<(), IngestError> {
        self.take(edges, data, sequence)?;
        self.meter.advance(edges.len() as u64);
        Ok(())
    }
}

impl EdgeSink for ArcBinner<'_> {
    fn integers(&mut self, edges: &[(u64, u64)], data: EdgeData<'_>) -> Result<(), IngestError> {
        // Edges that are read once have no numbers.
        self.take(edges, data, 0)
    }

    fn texts(&mut self, _: &[(&[u8], &[u8])], _: EdgeData<'_>) -> Result<(), IngestError> {
        Err(IngestError::internal("text ids where indices are expected"))
    }

    fn progress(&mut self, amount: u64) {
        self.meter.advance(amount);
    }
}
