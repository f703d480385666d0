//! The steps of a pass that know the program. The job, and all below it, is compiled once for all programs.

use std::ops::Range;

use graphmill_graph::{BLOCK_EDGES_MAX, BlockView, EdgeKind};
use graphmill_raw::{Element, simd};
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
    /// For each 4,096 accumulators, whether a message was folded into one of them.
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
    /// The first vertex of the destination batch, counted from that of its lane.
    pub(crate) base: u32,
}

/// A message in a bucket.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, Unaligned)]
#[repr(C, packed)]
pub(crate) struct WireMessage<A> {
    /// The destination, counted from the first vertex of its lane.
    pub(crate) id: U32,
    pub(crate) value: A,
}

/// Memory to decode a block.
pub(crate) struct EmitScratch {
    sources: Box<[u32; BLOCK_EDGES_MAX]>,
    destinations: Box<[u32; BLOCK_EDGES_MAX]>,
}

impl EmitScratch {
    pub(crate) fn new() -> Self {
        EmitScratch {
            sources: Box::new([0; BLOCK_EDGES_MAX]),
            destinations: Box::new([0; BLOCK_EDGES_MAX]),
        }
    }
}

/// Returns the bytes for messages of the next bucket.
pub(crate) type NextRoom<'r, 'b> = &'r mut dyn FnMut() -> Option<&'b mut [u8]>;

/// Where the values of a block go.
trait ValueSink<A> {
    /// Takes a value for a destination, counted from the first vertex of its batch.
    ///
    /// Returns false if the batch has no such vertex.
    fn put(&mut self, destination: u32, value: A) -> bool;
}

/// The messages of buckets to be written, one by one.
struct MessagePlaces<'r, 'b, A> {
    current: std::slice::IterMut<'b, WireMessage<A>>,
    next_room: NextRoom<'r, 'b>,
    /// Vertices of the destination batch, and its first one, counted from that of its lane.
    span: u32,
    base: u32,
}

impl<A: Element> ValueSink<A> for MessagePlaces<'_, '_, A> {
    #[inline(always)]
    fn put(&mut self, destination: u32, value: A) -> bool {
        let place = match self.current.next() {
            Some(place) => Some(place),
            None => self.turn(),
        };
        let Some(place) = place.filter(|_| destination < self.span) else {
            return false;
        };
        *place = WireMessage {
            id: (self.base + destination).into(),
            value,
        };
        true
    }
}

impl<'r, 'b, A: Element> MessagePlaces<'r, 'b, A> {
    fn new(span: u32, base: u32, next_room: NextRoom<'r, 'b>) -> Self {
        MessagePlaces {
            current: Default::default(),
            next_room,
            span,
            base,
        }
    }

    /// Goes to the next bucket.
    #[cold]
    #[inline(never)]
    fn turn(&mut self) -> Option<&'b mut WireMessage<A>> {
        let messages = <[WireMessage<A>]>::mut_from_bytes((self.next_room)()?);
        self.current = messages.ok()?.iter_mut();
        self.current.next()
    }
}

/// The accumulators of a batch that a worker folds values into before it sends them.
struct CombinedValues<'c, P: EdgeProgram> {
    program: &'c P,
    accumulators: &'c mut [P::Accumulator],
}

impl<P: EdgeProgram> ValueSink<P::Accumulator> for CombinedValues<'_, P> {
    #[inline(always)]
    fn put(&mut self, destination: u32, value: P::Accumulator) -> bool {
        let accumulator = self.accumulators.get_mut(destination as usize);
        accumulator.is_some_and(|accumulator| {
            self.program.merge(accumulator, value);
            true
        })
    }
}

/// A program, over the bytes of its messages.
pub(crate) trait BucketKernel: Sync {
    /// Bytes of a value.
    fn width(&self) -> usize;
    /// The bits of the sources of a batch that have messages.
    fn present<'m>(&self, messages: &'m SignalledMessages) -> &'m [u64];
    /// True if the program reads the data of edges.
    fn is_weighted(&self) -> bool;
    /// Writes the messages of a block into buckets; returns their number.
    ///
    /// Returns `None` if an end of an edge is in no vertex of its batch, or the buckets are too few.
    fn emit(
        &self,
        input: &BlockInput<'_>,
        scratch: &mut EmitScratch,
        next_room: NextRoom<'_, '_>,
    ) -> Option<u64>;
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
    /// Writes the accumulators of some vertices of a batch into buckets, and clears them.
    ///
    /// Returns their number.
    ///
    /// `base` is the first vertex of the batch, counted from that of its lane.
    fn emit_combined(
        &self,
        _accumulators: &mut Buffer,
        _vertices: Range<usize>,
        _base: u32,
        _next_room: NextRoom<'_, '_>,
    ) -> Option<u64> {
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

    fn present<'m>(&self, messages: &'m SignalledMessages) -> &'m [u64] {
        messages.slice::<P::Message>().present
    }

    fn is_weighted(&self) -> bool {
        P::Edge::WEIGHTED && self.edge.bytes() > 0
    }

    fn emit(
        &self,
        input: &BlockInput<'_>,
        scratch: &mut EmitScratch,
        next_room: NextRoom<'_, '_>,
    ) -> Option<u64> {
        let weights = BlockWeights::of::<P::Edge>(self.edge, input.weights);
        let mut places = MessagePlaces::new(input.span, input.base, next_room);
        simd::dispatch(
            #[inline(always)]
            || walk(self.program, input, weights, scratch, &mut places),
        )
    }

    fn combine(
        &self,
        input: &BlockInput<'_>,
        scratch: &mut EmitScratch,
        accumulators: &mut Buffer,
    ) -> Option<u64> {
        let weights = BlockWeights::of::<P::Edge>(self.edge, input.weights);
        let mut combined = CombinedValues {
            program: self.program,
            accumulators: accumulators
                .typed_mut::<P::Accumulator>()
                .get_mut(..input.span as usize)?,
        };
        simd::dispatch(
            #[inline(always)]
            || walk(self.program, input, weights, scratch, &mut combined),
        )
    }

    fn combines(&self) -> bool {
        true
    }

    fn emit_combined(
        &self,
        accumulators: &mut Buffer,
        vertices: Range<usize>,
        base: u32,
        next_room: NextRoom<'_, '_>,
    ) -> Option<u64> {
        let accumulators = accumulators.typed_mut::<P::Accumulator>();
        let mut places = MessagePlaces::new(u32::MAX, base, next_room);
        let (mut emitted, first) = (0, vertices.start as u32);
        for (destination, accumulator) in (first..).zip(accumulators.get_mut(vertices)?) {
            if !accumulator.bit_eq(&P::IDENTITY) {
                let value = std::mem::replace(accumulator, P::IDENTITY);
                if !places.put(destination, value) {
                    return None;
                }
                emitted += 1;
            }
        }
        Some(emitted)
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
    input: &BlockInput<'_>,
    weights: BlockWeights<'_>,
    scratch: &mut EmitScratch,
    sink: &mut impl ValueSink<P::Accumulator>,
) -> Option<u64> {
    let (block, messages) = (input.block, input.messages.slice::<P::Message>());
    let count = block.sources(&mut scratch.sources);
    let sources = &*scratch.sources;
    // Sources ascend, so the last one bounds them all.
    if *sources[..count].last()? as usize >= messages.values.len() {
        return None;
    }
    let has = |source: u32| messages.has(source as usize);
    let sending = match messages.full {
        true => count,
        false => (sources[..count].iter().filter(|source| has(**source))).count(),
    };
    if sending == 0 {
        return Some(0);
    }
    let current = CurrentCall::new();
    let mut is_sound = true;
    let mut one = |source: u32, destination: u32, edge| {
        let from = input.starts[0] + u64::from(source);
        let to = input.starts[1] + u64::from(destination);
        current.on(from, to);
        let message = messages.values[source as usize];
        let mut value = P::IDENTITY;
        program.fold(&mut value, program.on_arc(from, to, message, edge));
        is_sound &= sink.put(destination, value);
    };
    let mut sent = block.edges() as u64;
    if sending == count {
        with_edges!(P, weights, |edge| block.for_each_edge(
            &mut scratch.destinations,
            #[inline(always)]
            |position, destination, i| {
                let source = sources[position & (BLOCK_EDGES_MAX - 1)];
                one(source, destination, edge(i));
            }
        ));
    } else {
        sent = 0;
        with_edges!(P, weights, |edge| block.for_each_group(
            &mut scratch.destinations,
            &sources[..count],
            has,
            #[inline(always)]
            |position, destinations: &[u32], first| {
                sent += destinations.len() as u64;
                for (i, destination) in destinations.iter().enumerate() {
                    one(sources[position], *destination, edge(first + i));
                }
            }
        ));
    }
    is_sound.then_some(sent)
}

#[inline(always)]
fn fold<P: EdgeProgram>(program: &P, lane: &mut LaneAccumulators, messages: &[u8]) -> bool {
    let accumulators = lane.memory.typed_mut::<P::Accumulator>();
    let Ok(messages) = <[WireMessage<P::Accumulator>]>::ref_from_bytes(messages) else {
        return false;
    };
    let ids = |bounds: [u32; 2], message: &WireMessage<P::Accumulator>| {
        let id = message.id.get();
        [bounds[0].min(id), bounds[1].max(id)]
    };
    let [least, greatest] = messages.iter().fold([u32::MAX, 0], ids);
    if greatest as usize >= accumulators.len() {
        return messages.is_empty();
    }
    let current = CurrentCall::new();
    for message in messages {
        let local = message.id.get() as usize;
        if let Some(accumulator) = accumulators.get_mut(local) {
            current.at(lane.first + local as u64);
            program.merge(accumulator, message.value);
        }
    }
    // The messages of a bucket are mostly for one batch.
    if let Some(touched) =
        (lane.touched).get_mut(least as usize >> TOUCHED_BITS..=greatest as usize >> TOUCHED_BITS)
    {
        touched.fill(true);
    }
    true
}
