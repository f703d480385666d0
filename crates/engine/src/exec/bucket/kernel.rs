//! The steps of a pass that know the program. The job, and all below it, is compiled once for all programs.

use std::ops::Range;

use graphmill_graph::{BLOCK_EDGES_MAX, BlockView, EdgeKind};
use graphmill_raw::simd;
use graphmill_storage::Buffer;
use zerocopy::{FromBytes, IntoBytes};

use crate::exec::column::kernel::fold_block::{BlockWeights, with_edges};
use crate::messages::batch::SignalledMessages;
use crate::program::current_call::CurrentCall;
use crate::program::edge::EdgeProgram;
use crate::value::EdgeValue;

/// Bytes of the index of a destination before the value of a message.
const ID_BYTES: usize = size_of::<u32>();

/// Bits of the number of accumulators that are noted together as touched.
const TOUCHED_BITS: u32 = 12;

/// The accumulators of a lane.
pub(crate) struct LaneAccumulators {
    /// The first vertex of the lane.
    first: u64,
    pub(crate) memory: Buffer,
    /// For each 4,096 accumulators, whether a message was folded into one of them.
    touched: Vec<bool>,
}

impl LaneAccumulators {
    /// Returns a lane from vertex `first` on, whose `vertices` accumulators are in `memory`.
    pub(crate) fn new(first: u64, vertices: usize, memory: Buffer) -> Self {
        LaneAccumulators {
            first,
            memory,
            touched: vec![false; (vertices >> TOUCHED_BITS) + 1],
        }
    }

    /// True if an accumulator of a range of vertices may be touched.
    pub(crate) fn is_touched(&self, vertices: Range<u64>) -> bool {
        let [from, to] =
            [vertices.start, vertices.end].map(|end| (end - self.first) as usize >> TOUCHED_BITS);
        self.touched[from..=to].contains(&true)
    }

    /// Notes that all accumulators are at the identity.
    pub(crate) fn clear(&mut self) {
        self.touched.fill(false);
    }
}

/// A block of a cell, with what its edges carry and where they go.
pub(crate) struct BlockInput<'b> {
    pub(crate) block: &'b BlockView<'b>,
    pub(crate) messages: &'b SignalledMessages,
    pub(crate) weights: &'b [u8],
    /// The first vertex of the source batch, and of the destination batch.
    pub(crate) starts: [u64; 2],
    /// Vertices of the destination batch.
    pub(crate) span: u32,
    /// The first vertex of the destination batch, counted from that of its lane.
    pub(crate) base: u32,
}

/// The messages of one block, and memory to decode it.
pub(crate) struct BlockMessages {
    sources: Box<[u32; BLOCK_EDGES_MAX]>,
    destinations: Box<[u32; BLOCK_EDGES_MAX]>,
    /// Messages, one after the other: the first `end` bytes.
    bytes: Vec<u8>,
    end: usize,
}

impl BlockMessages {
    pub(crate) fn new(width: usize) -> Self {
        BlockMessages {
            sources: Box::new([0; BLOCK_EDGES_MAX]),
            destinations: Box::new([0; BLOCK_EDGES_MAX]),
            bytes: vec![0; BLOCK_EDGES_MAX * (ID_BYTES + width)],
            end: 0,
        }
    }

    /// The messages of the last block.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.end]
    }
}

/// A program, over the bytes of its messages.
pub(crate) trait BucketKernel: Sync {
    /// Bytes of a value.
    fn width(&self) -> usize;
    /// True if the program reads the data of edges.
    fn is_weighted(&self) -> bool;
    /// Makes the messages of a block; returns their number.
    ///
    /// Returns `None` if an end of an edge is in no vertex of its batch.
    fn emit(&self, input: &BlockInput<'_>, out: &mut BlockMessages) -> Option<u64>;
    /// Folds messages into the accumulators of a lane.
    ///
    /// Returns false, and folds none, if a destination is not in the lane.
    fn fold(&self, lane: &mut LaneAccumulators, messages: &[u8]) -> bool;
}

/// The kernel of an edge program.
pub(crate) struct MessageKernel<'p, P> {
    pub(crate) program: &'p P,
    pub(crate) edge: EdgeKind,
}

impl<P: EdgeProgram> BucketKernel for MessageKernel<'_, P> {
    fn width(&self) -> usize {
        size_of::<P::Accumulator>()
    }

    fn is_weighted(&self) -> bool {
        P::Edge::WEIGHTED && self.edge.bytes() > 0
    }

    fn emit(&self, input: &BlockInput<'_>, out: &mut BlockMessages) -> Option<u64> {
        let weights = BlockWeights::of::<P::Edge>(self.edge, input.weights);
        simd::dispatch(
            #[inline(always)]
            || emit(self.program, input, weights, out),
        )
    }

    fn fold(&self, lane: &mut LaneAccumulators, messages: &[u8]) -> bool {
        simd::dispatch(
            #[inline(always)]
            || fold(self.program, lane, messages),
        )
    }
}

#[inline(always)]
fn emit<P: EdgeProgram>(
    program: &P,
    input: &BlockInput<'_>,
    weights: BlockWeights<'_>,
    out: &mut BlockMessages,
) -> Option<u64> {
    let (block, messages) = (input.block, input.messages.slice::<P::Message>());
    let count = block.sources(&mut out.sources);
    let sources = &out.sources[..count];
    // Sources ascend, so the last one bounds them all.
    if *sources.last()? as usize >= messages.values.len() {
        return None;
    }
    let wanted = |source: u32| messages.full || messages.has(source as usize);
    let current = CurrentCall::new();
    let bytes = ID_BYTES + size_of::<P::Accumulator>();
    let mut free = out.bytes.chunks_exact_mut(bytes);
    let (mut emitted, mut is_outside) = (0, false);
    with_edges!(P, weights, |edge| block.for_each_group(
        &mut out.destinations,
        sources,
        wanted,
        #[inline(always)]
        |position, destinations: &[u32], first| {
            let source = sources[position];
            let from = input.starts[0] + u64::from(source);
            let message = messages.values[source as usize];
            for (i, (destination, place)) in destinations.iter().zip(&mut free).enumerate() {
                is_outside |= *destination >= input.span;
                let to = input.starts[1] + u64::from(*destination);
                current.on(from, to);
                let carried = program.on_arc(from, to, message, edge(first + i));
                let mut value = P::IDENTITY;
                program.fold(&mut value, carried);
                let (id, of_value) = place.split_at_mut(ID_BYTES);
                id.copy_from_slice(&input.base.wrapping_add(*destination).to_le_bytes());
                of_value.copy_from_slice(value.as_bytes());
            }
            emitted += destinations.len();
        }
    ));
    out.end = emitted * bytes;
    (!is_outside).then_some(emitted as u64)
}

#[inline(always)]
fn fold<P: EdgeProgram>(program: &P, lane: &mut LaneAccumulators, messages: &[u8]) -> bool {
    let accumulators = lane.memory.typed_mut::<P::Accumulator>();
    let width = size_of::<P::Accumulator>();
    let each = || messages.chunks_exact(ID_BYTES + width);
    let id = |message: &[u8]| {
        message
            .first_chunk()
            .map_or(u32::MAX, |id| u32::from_le_bytes(*id))
    };
    let greatest = each().map(id).max();
    if greatest.is_some_and(|id| id as usize >= accumulators.len()) {
        return false;
    }
    let current = CurrentCall::new();
    for message in each() {
        let local = id(message) as usize;
        let value = P::Accumulator::read_from_bytes(&message[ID_BYTES..]);
        if let (Some(accumulator), Ok(value)) = (accumulators.get_mut(local), value) {
            current.at(lane.first + local as u64);
            program.merge(accumulator, value);
            lane.touched[local >> TOUCHED_BITS] = true;
        }
    }
    true
}
