//! The steps of a pass that know the program. The job, and all below it, is compiled once for all programs.

use std::ops::Range;

use graphmill_graph::{BLOCK_EDGES_MAX, BlockView, EdgeKind};
use graphmill_raw::{AlignedBuffer, Element, OutOfMemory, simd};
use graphmill_storage::Buffer;
use zerocopy::little_endian::U32;
use zerocopy::{FromBytes, Immutable, IntoBytes, Unaligned};

use crate::exec::column::kernel::fold_block::{BlockWeights, with_edges};
use crate::messages::batch::SignalledMessages;
use crate::program::current_call::CurrentCall;
use crate::program::edge::EdgeProgram;
use crate::value::{Accumulator, EdgeValue};

/// Bits of the number of accumulators that are noted together as touched.
const TOUCHED_BITS: u32 = 12;

/// The accumulators of a lane.
pub(crate) struct LaneAccumulators {
    /// The first vertex of the lane.
    first: u64,
    pub(crate) memory: Buffer,
    /// For each 4,096 accumulators, whether a message may have been folded into one of their batches.
    touched: Vec<bool>,
    /// For lists in place of accumulators: where the next message of each vertex goes.
    pub(crate) ends: Option<Buffer>,
}

impl LaneAccumulators {
    /// Returns a lane from vertex `first` on, whose `vertices` accumulators are in `memory`.
    pub(crate) fn new(first: u64, vertices: usize, memory: Buffer) -> Self {
        LaneAccumulators {
            first,
            memory,
            touched: vec![false; (vertices >> TOUCHED_BITS) + 1],
            ends: None,
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
}

/// A message in a bucket.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, Unaligned)]
#[repr(C, packed)]
pub(crate) struct WireMessage<A> {
    /// The destination, counted from the first vertex of its lane.
    pub(crate) id: U32,
    pub(crate) value: A,
}

/// Memory of a worker: to decode a block, and for its messages until they are in buckets.
pub(crate) struct EmitScratch {
    sources: Box<[u32; BLOCK_EDGES_MAX]>,
    destinations: Box<[u32; BLOCK_EDGES_MAX]>,
    /// The destinations of messages, counted from the first vertex of their batch.
    ids: Box<[u32; BLOCK_EDGES_MAX]>,
    values: AlignedBuffer,
    /// What the sources of a block send.
    signals: AlignedBuffer,
}

impl EmitScratch {
    /// Makes memory for values of `width` bytes, made of what sources send, which has `signal_width` bytes.
    pub(crate) fn new(width: usize, signal_width: usize) -> Result<Self, OutOfMemory> {
        Ok(EmitScratch {
            sources: Box::new([0; BLOCK_EDGES_MAX]),
            destinations: Box::new([0; BLOCK_EDGES_MAX]),
            ids: Box::new([0; BLOCK_EDGES_MAX]),
            values: AlignedBuffer::zeroed(BLOCK_EDGES_MAX * width)?,
            signals: AlignedBuffer::zeroed(BLOCK_EDGES_MAX * signal_width)?,
        })
    }
}

/// Where the values of a block go.
trait ValueSink<A> {
    /// Takes the value of an edge of a block, all of whose edges have one.
    ///
    /// `destination` is counted from the first vertex of its batch.
    fn put(&mut self, edge: usize, destination: u32, value: A);
    /// Takes the value of an edge, if only some edges of a block have one; `at` counts them.
    fn put_some(&mut self, at: usize, destination: u32, value: A);
}

/// Messages in memory, at most 4,096.
struct ListedValues<'s, A> {
    /// Set by [`put_some`](ValueSink::put_some) alone; else the block has the destinations.
    ids: &'s mut [u32; BLOCK_EDGES_MAX],
    values: &'s mut [A; BLOCK_EDGES_MAX],
}

impl<'s, A: Element> ListedValues<'s, A> {
    fn new(ids: &'s mut [u32; BLOCK_EDGES_MAX], values: &'s mut AlignedBuffer) -> Option<Self> {
        let values = values.typed_mut::<A>().first_chunk_mut()?;
        Some(ListedValues { ids, values })
    }
}

impl<A: Element> ValueSink<A> for ListedValues<'_, A> {
    #[inline(always)]
    fn put(&mut self, edge: usize, _: u32, value: A) {
        self.values[edge & (BLOCK_EDGES_MAX - 1)] = value;
    }

    #[inline(always)]
    fn put_some(&mut self, at: usize, destination: u32, value: A) {
        let at = at & (BLOCK_EDGES_MAX - 1);
        (self.ids[at], self.values[at]) = (destination, value);
    }
}

/// The accumulators of a batch that a worker folds values into before it sends them.
struct CombinedValues<'c, P: EdgeProgram> {
    program: &'c P,
    accumulators: &'c mut [P::Accumulator],
    /// The batch has all destinations.
    is_sound: bool,
}

impl<P: EdgeProgram> ValueSink<P::Accumulator> for CombinedValues<'_, P> {
    #[inline(always)]
    fn put(&mut self, _: usize, destination: u32, value: P::Accumulator) {
        match self.accumulators.get_mut(destination as usize) {
            Some(accumulator) => self.program.merge(accumulator, value),
            None => self.is_sound = false,
        }
    }

    #[inline(always)]
    fn put_some(&mut self, at: usize, destination: u32, value: P::Accumulator) {
        self.put(at, destination, value);
    }
}

/// A program, over the bytes of its messages.
pub(crate) trait BucketKernel: Sync {
    /// Bytes of a value.
    fn width(&self) -> usize;
    /// Bytes of what a source sends.
    fn signal_width(&self) -> usize;
    /// The bits of the sources of a batch that have messages.
    fn present<'m>(&self, messages: &'m SignalledMessages) -> &'m [u64];
    /// True if the program reads the data of edges.
    fn is_weighted(&self) -> bool;
    /// Makes the messages of a block; returns their number.
    ///
    /// Returns `None` if an end of an edge is in no vertex of its batch.
    fn emit(&self, input: &BlockInput<'_>, scratch: &mut EmitScratch) -> Option<usize>;
    /// Writes messages into a room, as many as it takes; returns their number.
    ///
    /// `base` is the first vertex of their batch, counted from that of its lane.
    fn write(
        &self,
        scratch: &EmitScratch,
        messages: Range<usize>,
        base: u32,
        room: &mut [u8],
    ) -> usize;
    /// True if messages to one vertex can be combined.
    fn combines(&self) -> bool {
        false
    }
    /// Folds the messages of a block into accumulators of its destination batch.
    ///
    /// They are at the identity before the first block.
    ///
    /// Returns their number; `None` as [`emit`](Self::emit).
    fn combine(
        &self,
        _input: &BlockInput<'_>,
        _scratch: &mut EmitScratch,
        _accumulators: &mut Buffer,
    ) -> Option<u64> {
        None
    }
    /// Makes messages of the accumulators of at most 4,096 vertices of a batch, and clears them.
    ///
    /// Returns their number.
    fn emit_combined(
        &self,
        _accumulators: &mut Buffer,
        _vertices: Range<usize>,
        _scratch: &mut EmitScratch,
    ) -> Option<usize> {
        None
    }
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

    fn signal_width(&self) -> usize {
        size_of::<P::Message>()
    }

    fn present<'m>(&self, messages: &'m SignalledMessages) -> &'m [u64] {
        messages.slice::<P::Message>().present
    }

    fn is_weighted(&self) -> bool {
        P::Edge::WEIGHTED && self.edge.bytes() > 0
    }

    fn emit(&self, input: &BlockInput<'_>, scratch: &mut EmitScratch) -> Option<usize> {
        let EmitScratch {
            sources,
            destinations,
            ids,
            values,
            signals,
        } = scratch;
        let (program, edge) = (self.program, self.edge);
        let decoded = (&mut **sources, &mut **destinations, signals);
        let listed = (&mut **ids, values);
        // What the loop changes is a variable of the closure, so that it stays in registers.
        let count = simd::dispatch(
            #[inline(always)]
            move || {
                let mut listed = ListedValues::<P::Accumulator>::new(listed.0, listed.1)?;
                let count = walk(program, edge, input, decoded, &mut listed)?;
                Some(count as usize)
            },
        )?;
        if count == input.block.edges() {
            std::mem::swap(ids, destinations);
        }
        let ids = ids.get(..count)?;
        let greatest = simd::dispatch(
            #[inline(always)]
            || ids.iter().fold(0, |most: u32, id| most.max(*id)),
        );
        (greatest < input.span || count == 0).then_some(count)
    }

    fn write(
        &self,
        scratch: &EmitScratch,
        messages: Range<usize>,
        base: u32,
        room: &mut [u8],
    ) -> usize {
        let values = scratch.values.typed::<P::Accumulator>();
        let (Some(ids), Some(values)) = (scratch.ids.get(messages.clone()), values.get(messages))
        else {
            return 0;
        };
        let Ok(room) = <[WireMessage<P::Accumulator>]>::mut_from_bytes(room) else {
            return 0;
        };
        simd::dispatch(
            #[inline(always)]
            || {
                for (place, (id, value)) in room.iter_mut().zip(ids.iter().zip(values)) {
                    *place = WireMessage {
                        id: base.wrapping_add(*id).into(),
                        value: *value,
                    };
                }
            },
        );
        room.len().min(ids.len())
    }

    fn combine(
        &self,
        input: &BlockInput<'_>,
        scratch: &mut EmitScratch,
        accumulators: &mut Buffer,
    ) -> Option<u64> {
        let EmitScratch {
            sources,
            destinations,
            signals,
            ..
        } = scratch;
        simd::dispatch(
            #[inline(always)]
            move || {
                let mut combined = CombinedValues {
                    program: self.program,
                    accumulators: accumulators
                        .typed_mut::<P::Accumulator>()
                        .get_mut(..input.span as usize)?,
                    is_sound: true,
                };
                let sent = walk(
                    self.program,
                    self.edge,
                    input,
                    (sources, destinations, signals),
                    &mut combined,
                );
                sent.filter(|_| combined.is_sound)
            },
        )
    }

    fn combines(&self) -> bool {
        true
    }

    fn emit_combined(
        &self,
        accumulators: &mut Buffer,
        vertices: Range<usize>,
        scratch: &mut EmitScratch,
    ) -> Option<usize> {
        let accumulators = accumulators.typed_mut::<P::Accumulator>();
        let identity = self.program.identity();
        let first = vertices.start as u32;
        let mut listed = ListedValues::new(&mut scratch.ids, &mut scratch.values)?;
        let mut count = 0;
        for (destination, accumulator) in (first..).zip(accumulators.get_mut(vertices)?) {
            if !accumulator.bit_eq(&identity) {
                let value = std::mem::replace(accumulator, identity);
                listed.put_some(count, destination, value);
                count += 1;
            }
        }
        Some(count)
    }

    fn fold(&self, lane: &mut LaneAccumulators, messages: &[u8]) -> bool {
        simd::dispatch(
            #[inline(always)]
            || fold(self.program, lane, messages),
        )
    }
}

/// Puts the value of each edge whose source has a message into a sink; returns their number.
#[inline(always)]
fn walk<P: EdgeProgram>(
    program: &P,
    edge: EdgeKind,
    input: &BlockInput<'_>,
    (sources, destinations, signals): (
        &mut [u32; BLOCK_EDGES_MAX],
        &mut [u32; BLOCK_EDGES_MAX],
        &mut AlignedBuffer,
    ),
    sink: &mut impl ValueSink<P::Accumulator>,
) -> Option<u64> {
    let weights = BlockWeights::of::<P::Edge>(edge, input.weights);
    let (block, messages) = (input.block, input.messages.slice::<P::Message>());
    let (values, [from, to]) = (messages.values, input.starts);
    let count = block.sources(sources);
    let sources = &*sources;
    // Sources ascend, so the last one bounds them all.
    if *sources[..count].last()? as usize >= messages.values.len() {
        return None;
    }
    let has = |source: u32| messages.has(source as usize);
    let signals: &mut [P::Message; BLOCK_EDGES_MAX] = signals.typed_mut().first_chunk_mut()?;
    let mut sending = 0;
    for (signal, source) in signals.iter_mut().zip(&sources[..count]) {
        *signal = values[*source as usize];
        sending += usize::from(messages.full || has(*source));
    }
    if sending == 0 {
        return Some(0);
    }
    let signals = &*signals;
    let current = CurrentCall::new();
    let value = |position: usize, destination: u32, edge| {
        let position = position & (BLOCK_EDGES_MAX - 1);
        let (source, message) = (sources[position], signals[position]);
        let (from, to) = (from + u64::from(source), to + u64::from(destination));
        current.on(from, to);
        let mut value = program.identity();
        program.fold(&mut value, program.on_arc(from, to, message, edge));
        value
    };
    let mut sent = block.edges();
    if sending == count {
        with_edges!(P, weights, |edge| block.for_each_edge(
            destinations,
            #[inline(always)]
            |position, destination, i| {
                sink.put(i, destination, value(position, destination, edge(i)));
            }
        ));
    } else {
        sent = 0;
        with_edges!(P, weights, |edge| block.for_each_group(
            destinations,
            &sources[..count],
            has,
            #[inline(always)]
            |position, destinations: &[u32], first| {
                for (i, destination) in destinations.iter().enumerate() {
                    let value = value(position, *destination, edge(first + i));
                    sink.put_some(sent, *destination, value);
                    sent += 1;
                }
            }
        ));
    }
    Some(sent as u64)
}

#[inline(always)]
fn fold<P: EdgeProgram>(program: &P, lane: &mut LaneAccumulators, messages: &[u8]) -> bool {
    let accumulators = lane.memory.typed_mut::<P::Accumulator>();
    let Ok(messages) = <[WireMessage<P::Accumulator>]>::ref_from_bytes(messages) else {
        return false;
    };
    let [Some(earliest), Some(latest)] = [messages.first(), messages.last()] else {
        return true;
    };
    if greatest(messages) as usize >= accumulators.len() {
        return false;
    }
    let (current, first) = (CurrentCall::new(), lane.first);
    for message in messages {
        let local = message.id.get() as usize;
        if let Some(accumulator) = accumulators.get_mut(local) {
            current.at(first + local as u64);
            program.merge(accumulator, message.value);
        }
    }
    // The batches of the messages of a bucket ascend, so this covers them all.
    let ends = [earliest, latest].map(|message| message.id.get() as usize >> TOUCHED_BITS);
    let [from, to] = [ends[0].min(ends[1]), ends[0].max(ends[1])];
    if let Some(touched) = lane.touched.get_mut(from..=to) {
        touched.fill(true);
    }
    true
}

/// Returns the greatest destination of some messages.
#[inline(always)]
fn greatest<A>(messages: &[WireMessage<A>]) -> u32 {
    /// Maxima side by side, for vectors.
    const SIDE: usize = 16;
    let (parts, rest) = messages.as_chunks::<SIDE>();
    let mut all = [0; SIDE];
    for part in parts {
        for (most, message) in all.iter_mut().zip(part) {
            *most = message.id.get().max(*most);
        }
    }
    let rest = rest.iter().map(|message| message.id.get());
    all.into_iter().chain(rest).fold(0, u32::max)
}
