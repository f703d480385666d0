//! The loops over the edges of a block: scatter (each source to its list) and gather (from its list to each source).
//!
//! The program's functions are inlined here. Accumulators of a scatter have a power-of-two length that covers every
//! value a block's packed destinations can take, so that a mask replaces the bounds check of the hot loop.

use graphmill_graph::{BLOCK_EDGES_MAX, BlockView, EdgeKind};
use graphmill_raw::{Element, simd};
use zerocopy::FromZeros;

use crate::messages::batch::MessageSlice;
use crate::program::current_call::CurrentCall;
use crate::program::edge::EdgeProgram;
use crate::value::EdgeValue;

/// Weights of the edges of one block.
#[derive(Clone, Copy)]
pub(crate) enum BlockWeights<'w> {
    /// The graph has none, or the program asks for none.
    None,
    F32(&'w [[u8; 4]]),
    F64(&'w [[u8; 8]]),
    /// Records, one after the other; programs without fields have none.
    Records(&'w [u8]),
}

impl<'w> BlockWeights<'w> {
    /// The weights in `bytes`, as a graph with such edges stores them, for a program that reads values `E`.
    pub(crate) fn of<E: EdgeValue>(kind: EdgeKind, bytes: &'w [u8]) -> Self {
        match kind {
            _ if !E::WEIGHTED => BlockWeights::None,
            EdgeKind::None => BlockWeights::None,
            EdgeKind::F32 => BlockWeights::F32(bytes.as_chunks().0),
            EdgeKind::F64 => BlockWeights::F64(bytes.as_chunks().0),
            EdgeKind::Record(_) => BlockWeights::Records(bytes),
        }
    }
}

/// Scratch memory for one decoded block.
pub(crate) struct DecodeScratch<M> {
    sources: Box<[u32; BLOCK_EDGES_MAX]>,
    destinations: Box<[u32; BLOCK_EDGES_MAX]>,
    messages: Box<[M; BLOCK_EDGES_MAX]>,
}

impl<M: Element> DecodeScratch<M> {
    pub(crate) fn new() -> Self {
        fn boxed<T: Element>() -> Box<[T; BLOCK_EDGES_MAX]> {
            // A boxed slice of the right length always converts; the fallback would only build it on the stack.
            vec![T::new_zeroed(); BLOCK_EDGES_MAX]
                .into_boxed_slice()
                .try_into()
                .unwrap_or_else(|_| Box::new([T::new_zeroed(); BLOCK_EDGES_MAX]))
        }
        DecodeScratch {
            sources: boxed(),
            destinations: boxed(),
            messages: boxed(),
        }
    }
}

/// A block, and the messages and weights of its edges.
pub(crate) struct FoldInput<'b, M> {
    pub(crate) block: &'b BlockView<'b>,
    pub(crate) messages: MessageSlice<'b, M>,
    pub(crate) weights: BlockWeights<'b>,
    /// The first vertex of the cell's source batch, and of its destination batch.
    pub(crate) starts: [u64; 2],
}

/// Gives the loop its way to an edge's value, one copy of the loop for each kind of data.
macro_rules! with_edges {
    ($program:ty, $weights:expr, |$edge:ident| $body:expr) => {
        if !<$program>::Edge::WEIGHTED {
            let $edge = |_: usize| <$program>::Edge::ONE;
            $body
        } else if !<$program>::Edge::FIELDS.is_empty() {
            if let $crate::exec::column::kernel::fold_block::BlockWeights::Records(records) =
                $weights
            {
                let bytes =
                    $crate::exec::column::kernel::fold_block::record_bytes::<<$program>::Edge>();
                let $edge = |i: usize| {
                    let record = records.get(i * bytes..(i + 1) * bytes);
                    <$program>::Edge::of_record(record.unwrap_or_default())
                };
                $body
            }
        } else {
            match $weights {
                $crate::exec::column::kernel::fold_block::BlockWeights::None => {
                    let $edge = |_: usize| <$program>::Edge::ONE;
                    $body
                }
                $crate::exec::column::kernel::fold_block::BlockWeights::F32(weights) => {
                    let $edge = |i: usize| <$program>::Edge::of_f32(f32::from_le_bytes(weights[i]));
                    $body
                }
                $crate::exec::column::kernel::fold_block::BlockWeights::F64(weights) => {
                    let $edge = |i: usize| <$program>::Edge::of_f64(f64::from_le_bytes(weights[i]));
                    $body
                }
                $crate::exec::column::kernel::fold_block::BlockWeights::Records(_) => {}
            }
        }
    };
}
pub(crate) use with_edges;

/// Bytes of the record of an edge value.
#[inline(always)]
pub(crate) fn record_bytes<E: EdgeValue>() -> usize {
    E::FIELDS.iter().map(|(_, kind)| kind.bytes()).sum()
}

/// Folds the messages of a block's sources into the accumulators of its destinations.
///
/// Returns the number of edges that carried a message; `None` if a source lies outside its batch.
pub(crate) fn scatter<P: EdgeProgram>(
    program: &P,
    input: FoldInput<'_, P::Message>,
    accumulators: &mut [P::Accumulator],
    scratch: &mut DecodeScratch<P::Message>,
) -> Option<u64> {
    simd::dispatch(
        #[inline(always)]
        || scatter_inlined(program, input, accumulators, scratch),
    )
}

#[inline(always)]
fn scatter_inlined<P: EdgeProgram>(
    program: &P,
    input: FoldInput<'_, P::Message>,
    accumulators: &mut [P::Accumulator],
    scratch: &mut DecodeScratch<P::Message>,
) -> Option<u64> {
    let (block, messages, weights) = (input.block, input.messages, input.weights);
    let source_count = block.sources(&mut scratch.sources);
    let (all_sources, starts) = (&*scratch.sources, input.starts);
    let sources = &all_sources[..source_count];
    let current = CurrentCall::new();
    // Sources ascend, so the last one bounds them all.
    if *sources.last()? as usize >= messages.values.len() {
        return None;
    }
    let mask = accumulators.len() - 1;
    let block_messages = &mut *scratch.messages;
    let mut emitted = 0;
    if messages.full {
        for (message, source) in block_messages.iter_mut().zip(sources) {
            *message = messages.values[*source as usize];
        }
        emitted = source_count;
    } else {
        for (message, source) in block_messages.iter_mut().zip(sources) {
            *message = messages.values[*source as usize];
            emitted += usize::from(messages.has(*source as usize));
        }
    }
    if emitted == 0 {
        return Some(0);
    }
    if P::FOLDS_MANY {
        let is_full = emitted == source_count;
        return Some(fold_many(
            program,
            &input,
            source_count,
            is_full,
            accumulators,
            scratch,
        ));
    }
    if emitted == source_count {
        with_edges!(P, weights, |edge| block.for_each_edge(
            &mut scratch.destinations,
            #[inline(always)]
            |position, destination, i| {
                let position = position & (BLOCK_EDGES_MAX - 1);
                let from = starts[0] + u64::from(all_sources[position]);
                let local = destination as usize & mask;
                let to = starts[1] + local as u64;
                current.on(from, to);
                let carried = program.on_arc(from, to, block_messages[position], edge(i));
                program.fold(&mut accumulators[local], carried);
            }
        ));
        return Some(block.edges() as u64);
    }
    let mut edges = 0;
    let wanted = |source: u32| messages.has(source as usize);
    with_edges!(P, weights, |edge| block.for_each_group(
        &mut scratch.destinations,
        sources,
        wanted,
        #[inline(always)]
        |position, destinations: &[u32], first| {
            edges += destinations.len() as u64;
            let position = position & (BLOCK_EDGES_MAX - 1);
            let from = starts[0] + u64::from(all_sources[position]);
            let message = block_messages[position];
            for (i, destination) in destinations.iter().enumerate() {
                let local = *destination as usize & mask;
                let to = starts[1] + local as u64;
                current.on(from, to);
                let carried = program.on_arc(from, to, message, edge(first + i));
                program.fold(&mut accumulators[local], carried);
            }
        }
    ));
    Some(edges)
}

/// Folds the messages of a block's sources, many edges at once; `is_full`: all sources emitted one.
///
/// The sources and their messages are in `scratch`. Returns the number of edges that carried a message.
#[inline(always)]
fn fold_many<P: EdgeProgram>(
    program: &P,
    input: &FoldInput<'_, P::Message>,
    source_count: usize,
    is_full: bool,
    accumulators: &mut [P::Accumulator],
    scratch: &mut DecodeScratch<P::Message>,
) -> u64 {
    let (block, messages, weights) = (input.block, input.messages, input.weights);
    let (sources, block_messages) = (&scratch.sources[..source_count], &*scratch.messages);
    let mut waiting = PendingEdges::new(program, accumulators);
    let mut edges = 0;
    if is_full {
        edges = block.edges() as u64;
        with_edges!(P, weights, |edge| block.for_each_edge(
            &mut scratch.destinations,
            #[inline(always)]
            |position, destination, i| {
                let message = block_messages[position & (BLOCK_EDGES_MAX - 1)];
                waiting.push(destination, message, edge(i));
            }
        ));
    } else {
        let wanted = |source: u32| messages.has(source as usize);
        with_edges!(P, weights, |edge| block.for_each_group(
            &mut scratch.destinations,
            sources,
            wanted,
            #[inline(always)]
            |position, destinations: &[u32], first| {
                edges += destinations.len() as u64;
                let message = block_messages[position & (BLOCK_EDGES_MAX - 1)];
                for (i, destination) in destinations.iter().enumerate() {
                    waiting.push(*destination, message, edge(first + i));
                }
            }
        ));
    }
    waiting.fold();
    edges
}

/// Edges that a program folds at once.
const EDGES_AT_ONCE: usize = 1024;

/// Edges that wait until there are enough to fold them at once.
struct PendingEdges<'a, P: EdgeProgram> {
    program: &'a P,
    accumulators: &'a mut [P::Accumulator],
    mask: usize,
    receivers: [u32; EDGES_AT_ONCE],
    messages: [P::Message; EDGES_AT_ONCE],
    edges: [P::Edge; EDGES_AT_ONCE],
    count: usize,
}

impl<'a, P: EdgeProgram> PendingEdges<'a, P> {
    /// The number of accumulators is a power of two.
    fn new(program: &'a P, accumulators: &'a mut [P::Accumulator]) -> Self {
        PendingEdges {
            mask: accumulators.len() - 1,
            program,
            accumulators,
            receivers: [0; EDGES_AT_ONCE],
            messages: [P::Message::new_zeroed(); EDGES_AT_ONCE],
            edges: [P::Edge::ONE; EDGES_AT_ONCE],
            count: 0,
        }
    }

    #[inline(always)]
    fn push(&mut self, destination: u32, message: P::Message, edge: P::Edge) {
        let i = self.count & (EDGES_AT_ONCE - 1);
        self.receivers[i] = destination & self.mask as u32;
        (self.messages[i], self.edges[i]) = (message, edge);
        self.count = i + 1;
        if self.count == EDGES_AT_ONCE {
            self.fold();
        }
    }

    fn fold(&mut self) {
        let count = std::mem::take(&mut self.count);
        let lists = (&self.receivers[..count], &self.messages[..count]);
        (self.program).fold_edges(self.accumulators, lists.0, lists.1, &self.edges[..count]);
    }
}

/// Folds, for each source of a block, the messages of its list; returns the number of messages folded.
///
/// `is_wanted` says which sources can still use one. Returns `None` if a source or destination lies outside its batch.
pub(crate) fn gather<P: EdgeProgram>(
    program: &P,
    input: FoldInput<'_, P::Message>,
    accumulators: &mut [P::Accumulator],
    scratch: &mut DecodeScratch<P::Message>,
    is_wanted: impl FnMut(usize) -> bool,
) -> Option<u64> {
    simd::dispatch(
        #[inline(always)]
        || gather_inlined(program, input, accumulators, scratch, is_wanted),
    )
}

#[inline(always)]
fn gather_inlined<P: EdgeProgram>(
    program: &P,
    input: FoldInput<'_, P::Message>,
    accumulators: &mut [P::Accumulator],
    scratch: &mut DecodeScratch<P::Message>,
    mut is_wanted: impl FnMut(usize) -> bool,
) -> Option<u64> {
    let (block, messages, weights) = (input.block, input.messages, input.weights);
    let source_count = block.sources(&mut scratch.sources);
    let sources = &scratch.sources[..source_count];
    if *sources.last()? as usize >= accumulators.len() {
        return None;
    }
    let mut folded = 0;
    let mut outside = false;
    let (starts, current) = (input.starts, CurrentCall::new());
    let wanted = |source: u32| is_wanted(source as usize);
    with_edges!(P, weights, |edge| block.for_each_group(
        &mut scratch.destinations,
        sources,
        wanted,
        #[inline(always)]
        |position, destinations: &[u32], first| {
            let source = sources[position];
            let to = starts[0] + u64::from(source);
            let accumulator = &mut accumulators[source as usize];
            for (i, destination) in destinations.iter().enumerate() {
                let destination = *destination as usize;
                if !messages.full && !messages.has(destination) {
                    continue;
                }
                let Some(message) = messages.values.get(destination) else {
                    outside = true;
                    continue;
                };
                let from = starts[1] + destination as u64;
                current.on(from, to);
                if P::EARLY_EXIT && program.is_final(accumulator) {
                    break;
                }
                let carried = program.on_arc(from, to, *message, edge(first + i));
                program.fold(accumulator, carried);
                folded += 1;
            }
        }
    ));
    (!outside).then_some(folded)
}
