//! Posts for batches of other ranks, on their way there.

use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::ops::Range;

use graphmill_fabric::protocol_error;
use graphmill_raw::{Element, lock};
use graphmill_storage::{Buffer, Lease};

use crate::context::ExecContext;
use crate::error::{EngineError, ensure};
use crate::exchange::all_to_all::{Exchange, FillStatus, FrameSource, Received};
use crate::exchange::frame::Frame;
use crate::exec::send_pass::block::{
    BlockStorage, SortedBlock, bytes_at, bytes_of, load, room, store,
};
use crate::memory::plan::PART_BYTES;
use crate::state::row_file::RowFileIo;
use crate::value::Reduce;

/// Bytes of the length of a head, of its numbers, and of each of its parts.
const LENGTH: usize = size_of::<u64>();
const NUMBERS: usize = 3 * size_of::<u64>();
const PART: usize = 2 * size_of::<u32>();

/// Returns the most bytes of a head with its length.
fn head_bytes(context: &ExecContext) -> usize {
    LENGTH + NUMBERS + context.batches.len() * PART
}

/// Returns the bytes of the heads of a block that is sent and of one that arrives, in an exchange.
///
/// A page that it reads takes memory of accumulators, which no worker has at that time.
pub(crate) fn heads_bytes(context: &ExecContext) -> u64 {
    2 * head_bytes(context) as u64 + context.batches.len() as u64 * PART_BYTES
}

/// Sends sorted blocks to the ranks that own their batches, and receives the blocks of other ranks.
///
/// Returns the messages and bytes sent. Received blocks stay in memory if that leaves `leave` bytes of the budget.
pub(crate) fn pass_on<M: Element>(
    context: &ExecContext,
    posts: &mut Vec<SortedBlock>,
    leave: u64,
) -> Result<[u64; 2], EngineError> {
    let ranks = &context.ranks;
    let mut arriving: BTreeMap<usize, IncomingBlock> = BTreeMap::new();
    let mut come = Vec::new();
    Exchange::run(
        context,
        size_of::<M>(),
        |to, _| {
            let own = ranks.of(to);
            BlockExchange::<M> {
                context,
                posts,
                own: own.start as u32..own.end as u32,
                at: 0,
                left: None,
                message: PhantomData,
            }
        },
        |from, came| {
            let Received::Section(section) = came else {
                return Ok(());
            };
            let parcel = arriving.entry(from).or_default();
            if let Some(post) = parcel.take::<M>(context, section.bytes(), leave)? {
                arriving.remove(&from);
                come.push(post.arrive(context, &mut lock(&context.row_io[0]))?);
            }
            Ok(())
        },
    )?;
    // A rank that has sent all has sent whole blocks.
    ensure(arriving.is_empty(), protocol_error)?;
    posts.extend(come);
    Ok(context.take_sent())
}

/// An exchange of blocks with one rank: each has a head, then its bytes, in sections of any length.
///
/// ```text
/// head    bytes of the rest of the head: u64 | sending batch: u64 | number of the block: u64
///         | parts: u64 | of each: batch: u32, where its messages end: u32
/// bytes   of its parts, as in memory
/// ```
struct BlockExchange<'p, M> {
    context: &'p ExecContext<'p>,
    posts: &'p [SortedBlock],
    /// The batches of that rank.
    own: Range<u32>,
    at: usize,
    /// The current block, and what of it is sent.
    left: Option<OutgoingBlock>,
    message: PhantomData<M>,
}

/// The part of a block for a rank, on its way there.
struct OutgoingBlock {
    /// Messages that no frame has counted.
    messages: u64,
    head: Vec<u8>,
    /// Where in the block its bytes are that no frame has.
    bytes: Range<usize>,
    _lease: Lease,
}

impl<M: Element> BlockExchange<'_, M> {
    /// Returns the part of a block for that rank, if any.
    fn of(&self, post: &SortedBlock) -> Result<Option<OutgoingBlock>, EngineError> {
        let first = post.parts.partition_point(|part| part.0 < self.own.start);
        let end = post.parts.partition_point(|part| part.0 < self.own.end);
        if first == end {
            return Ok(None);
        }
        let messages = post.places(first).start..post.places(end - 1).end;
        let bytes = NUMBERS + (end - first) * PART;
        let budget = &self.context.budget;
        let _lease = budget.lease("sent messages", (LENGTH + bytes) as u64)?;
        let mut head = Vec::with_capacity(LENGTH + bytes);
        for number in [bytes, post.order.0, post.order.1, end - first] {
            (number as u64).put(&mut head);
        }
        for (batch, ends) in &post.parts[first..end] {
            batch.put(&mut head);
            (ends - messages.start as u32).put(&mut head);
        }
        Ok(Some(OutgoingBlock {
            messages: messages.len() as u64,
            head,
            bytes: bytes_at::<M>(&messages),
            _lease,
        }))
    }

    /// Appends more of a block to a frame; returns true if that was the rest of it.
    fn send(
        &self,
        post: &SortedBlock,
        block: &mut OutgoingBlock,
        frame: &mut Frame<'_>,
    ) -> Result<bool, EngineError> {
        while frame.bytes_room() > 0 {
            let room = frame.bytes_room();
            let messages = std::mem::take(&mut block.messages);
            if !block.head.is_empty() {
                let now = room.min(block.head.len());
                frame.bytes(messages, &block.head[..now]);
                block.head.drain(..now);
                continue;
            }
            let Range { start, end } = block.bytes;
            let now = room.min(end - start);
            if now == 0 {
                return Ok(true);
            }
            block.bytes.start += match &post.at {
                BlockStorage::Memory(all) => {
                    frame.bytes(messages, &all[start..start + now]);
                    now
                }
                BlockStorage::Disk(slots) => {
                    let page = self.context.arrays.pages().page_bytes();
                    let now = now.min(page - start % page);
                    let io = &mut lock(&self.context.row_io[0]);
                    let (bytes, from) = load(self.context, io, slots, start..start + now)?;
                    frame.bytes(messages, &bytes[from..from + now]);
                    now
                }
            };
        }
        Ok(block.head.is_empty() && block.bytes.start == block.bytes.end)
    }
}

impl<M: Element> FrameSource for BlockExchange<'_, M> {
    fn fill(&mut self, frame: &mut Frame<'_>) -> Result<FillStatus, EngineError> {
        while let Some(post) = self.posts.get(self.at) {
            let mut block = match self.left.take() {
                Some(block) => block,
                None => match self.of(post)? {
                    Some(block) => block,
                    None => {
                        self.at += 1;
                        continue;
                    }
                },
            };
            if !self.send(post, &mut block, frame)? {
                self.left = Some(block);
                return Ok(FillStatus::Full);
            }
            self.at += 1;
        }
        Ok(FillStatus::All)
    }
}

/// A block of another rank while it arrives.
#[derive(Default)]
struct IncomingBlock {
    /// The received part of its length and head.
    head: Vec<u8>,
    lease: Option<Lease>,
    post: Option<PartialBlock>,
}

impl IncomingBlock {
    /// Appends received bytes; returns the block once it is complete.
    fn take<M: Element>(
        &mut self,
        context: &ExecContext,
        mut bytes: &[u8],
        leave: u64,
    ) -> Result<Option<PartialBlock>, EngineError> {
        while self.post.is_none() {
            let wanted = self.wanted(context)?;
            if self.head.len() >= LENGTH && self.head.len() == wanted {
                let head = &self.head[LENGTH..];
                self.post = Some(PartialBlock::new::<M>(context, head, leave)?);
                (self.head, self.lease) = (Vec::new(), None);
                break;
            }
            if bytes.is_empty() {
                return Ok(None);
            }
            let (now, later) = bytes.split_at(bytes.len().min(wanted - self.head.len()));
            self.head.extend(now);
            bytes = later;
        }
        let is_whole = match &mut self.post {
            Some(post) => post.take(bytes)?,
            None => false,
        };
        Ok(self.post.take_if(|_| is_whole))
    }

    /// Returns the bytes of the length, or of length and head once the length is there.
    fn wanted(&mut self, context: &ExecContext) -> Result<usize, EngineError> {
        let Some((length, _)) = self.head.split_first_chunk() else {
            return Ok(LENGTH);
        };
        let most = head_bytes(context);
        let wanted = usize::try_from(u64::from_le_bytes(*length)).ok();
        let wanted = wanted.and_then(|length| length.checked_add(LENGTH));
        let wanted = (wanted.filter(|wanted| *wanted <= most)).ok_or_else(protocol_error)?;
        if self.lease.is_none() {
            let lease = context.budget.lease("sent messages", wanted as u64)?;
            self.lease = Some(lease);
            self.head.reserve_exact(wanted - self.head.len());
        }
        Ok(wanted)
    }
}

/// A block of another rank that has arrived in part.
struct PartialBlock {
    post: SortedBlock,
    is_kept: bool,
    bytes: Buffer,
    filled: usize,
    wanted: usize,
}

impl PartialBlock {
    fn new<M: Element>(
        context: &ExecContext,
        head: &[u8],
        leave: u64,
    ) -> Result<Self, EngineError> {
        let mut head = head;
        let mut number = || u64::take(&mut head).ok_or_else(protocol_error);
        let order = (number()? as usize, number()? as usize);
        let count = number()? as usize;
        let part = |bytes: &[u8; 8]| {
            let halves = bytes.as_chunks().0;
            (u32::from_le_bytes(halves[0]), u32::from_le_bytes(halves[1]))
        };
        let parts: Vec<(u32, u32)> = head.as_chunks().0.iter().map(part).collect();
        let payload = parts.len() as u64 * PART_BYTES;
        let _lease = context.budget.lease("sent messages", payload)?;
        let ends = parts.last().ok_or_else(protocol_error)?.1 as usize;
        let own = context.ranks.own();
        let is_sound = parts.len() == count && are_sound(&parts, &own);
        ensure(is_sound, protocol_error)?;
        let wanted = bytes_of::<M>(ends);
        let is_kept = context.message_memory(0) >= leave.saturating_add(wanted as u64);
        Ok(PartialBlock {
            bytes: room(context, wanted, is_kept)?,
            post: SortedBlock {
                order,
                parts,
                at: BlockStorage::Disk(Vec::new()),
                _lease,
            },
            is_kept,
            filled: 0,
            wanted,
        })
    }

    /// Takes more bytes in; whether they were the last.
    fn take(&mut self, bytes: &[u8]) -> Result<bool, EngineError> {
        let to = self.filled + bytes.len();
        ensure(to <= self.wanted, protocol_error)?;
        self.bytes[self.filled..to].copy_from_slice(bytes);
        self.filled = to;
        Ok(to == self.wanted)
    }

    fn arrive(self, context: &ExecContext, io: &mut RowFileIo) -> Result<SortedBlock, EngineError> {
        let at = match self.is_kept {
            true => BlockStorage::Memory(self.bytes),
            false => BlockStorage::Disk(store(context, io, &self.bytes)?),
        };
        Ok(SortedBlock { at, ..self.post })
    }
}

/// True if the parts of a block are for batches of `own`, ascend, and have messages each.
fn are_sound(parts: &[(u32, u32)], own: &Range<usize>) -> bool {
    let ascend = |before: &(u32, u32), part: &(u32, u32)| before.0 < part.0 && before.1 < part.1;
    parts.first().is_some_and(|first| first.1 > 0)
        && parts.is_sorted_by(ascend)
        && parts.iter().all(|part| own.contains(&(part.0 as usize)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_block_ascend() {
        let are_sound = |parts: &[(u32, u32)]| are_sound(parts, &(2..6));
        assert!(are_sound(&[(2, 3), (3, 5), (5, 8)]));
        assert!(!are_sound(&[(2, 5), (3, 3), (5, 8)]), "an end before");
        assert!(!are_sound(&[(2, 3), (3, 3)]), "no messages");
        assert!(!are_sound(&[(2, 0)]), "no messages at first");
        assert!(!are_sound(&[(3, 3), (2, 5)]), "a batch before");
        assert!(!are_sound(&[(3, 3), (3, 5)]), "a batch twice");
        assert!(!are_sound(&[(5, 3), (6, 5)]), "a batch of another rank");
        assert!(!are_sound(&[]), "no parts");
    }
}
