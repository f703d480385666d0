//! Posts for batches of other ranks, on their way there.

use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::ops::Range;

use graphmill_fabric::protocol_error;
use graphmill_raw::{Element, lock};
use graphmill_storage::Buffer;

use crate::context::ExecContext;
use crate::error::{EngineError, ensure};
use crate::exchange::all_to_all::{Exchange, FillStatus, FrameSource, Received};
use crate::exchange::frame::Frame;
use crate::exec::send_pass::block::{BlockStorage, SortedBlock, bytes_of, load, room, store};
use crate::state::row_file::RowFileIo;
use crate::value::Reduce;

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
    posts.extend(come);
    Ok(context.take_sent())
}

/// An exchange of blocks with one rank: each has a head, then its bytes, in sections of any length.
///
/// ```text
/// head    bytes of the rest of the head: u64 | sending batch: u64 | number of the block: u64
///         | parts: u64 | of each: batch: u32, where its messages end: u32
/// bytes   as in memory: vertices, then messages
/// ```
struct BlockExchange<'p, M> {
    context: &'p ExecContext<'p>,
    posts: &'p [SortedBlock],
    /// The batches of that rank.
    own: Range<u32>,
    at: usize,
    /// The rest of the current block: messages that no frame has counted, its bytes, and the bytes sent.
    left: Option<(u64, Vec<u8>, usize)>,
    message: PhantomData<M>,
}

impl<M: Element> BlockExchange<'_, M> {
    /// Returns the part of a block for that rank, if any: its messages, and its bytes with their head.
    fn of(&self, post: &SortedBlock) -> Result<Option<(u64, Vec<u8>)>, EngineError> {
        let first = post.parts.partition_point(|part| part.0 < self.own.start);
        let end = post.parts.partition_point(|part| part.0 < self.own.end);
        if first == end {
            return Ok(None);
        }
        let before = first.checked_sub(1);
        let begin = before.map_or(0, |before| post.parts[before].1);
        let places = begin as usize..post.parts[end - 1].1 as usize;
        let mut head = Vec::new();
        for number in [post.order.0, post.order.1, end - first] {
            (number as u64).put(&mut head);
        }
        for (batch, ends) in &post.parts[first..end] {
            batch.put(&mut head);
            (ends - begin).put(&mut head);
        }
        let mut bytes = Vec::with_capacity(bytes_of::<M>(places.len()) + head.len() + 8);
        (head.len() as u64).put(&mut bytes);
        bytes.append(&mut head);
        for part in post.bytes_at::<M>(&places) {
            match &post.at {
                BlockStorage::Memory(all) => bytes.extend_from_slice(&all[part]),
                BlockStorage::Disk(slots) => {
                    let io = &mut lock(&self.context.row_io[0]);
                    let length = part.len();
                    let (piece, from) = load(self.context, io, slots, part)?;
                    bytes.extend_from_slice(&piece[from..from + length]);
                }
            }
        }
        Ok(Some((places.len() as u64, bytes)))
    }
}

impl<M: Element> FrameSource for BlockExchange<'_, M> {
    fn fill(&mut self, frame: &mut Frame<'_>) -> Result<FillStatus, EngineError> {
        loop {
            if let Some((messages, bytes, sent)) = &mut self.left {
                let now = frame.bytes_room().min(bytes.len() - *sent);
                if now == 0 || !frame.bytes(*messages, &bytes[*sent..*sent + now]) {
                    return Ok(FillStatus::Full);
                }
                *messages = 0;
                *sent += now;
                if *sent < bytes.len() {
                    return Ok(FillStatus::Full);
                }
                self.left = None;
            }
            let Some(post) = self.posts.get(self.at) else {
                return Ok(FillStatus::All);
            };
            self.left = (self.of(post)?).map(|(messages, bytes)| (messages, bytes, 0));
            self.at += 1;
        }
    }
}

/// A block of another rank while it arrives.
#[derive(Default)]
struct IncomingBlock {
    /// The received part of its length and head.
    head: Vec<u8>,
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
        const LENGTH: usize = size_of::<u64>();
        while self.post.is_none() {
            let wanted = match self.head.split_first_chunk() {
                None => LENGTH,
                Some((length, _)) => usize::try_from(u64::from_le_bytes(*length))
                    .ok()
                    .and_then(|length| length.checked_add(LENGTH))
                    .ok_or_else(protocol_error)?,
            };
            if self.head.len() >= LENGTH && self.head.len() == wanted {
                let head = &self.head[LENGTH..];
                self.post = Some(PartialBlock::new::<M>(context, head, leave)?);
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
        let payload = (parts.len() * size_of::<(u32, u32)>()) as u64;
        let _lease = context.budget.lease("sent messages", payload)?;
        let ends = parts.last().ok_or_else(protocol_error)?.1 as usize;
        let own = context.ranks.own();
        let is_own = |(batch, _): &(u32, u32)| own.contains(&(*batch as usize));
        let is_sound = parts.len() == count && parts.iter().all(is_own);
        ensure(is_sound, protocol_error)?;
        let wanted = bytes_of::<M>(ends);
        let is_kept = context.message_memory(0) >= leave.saturating_add(wanted as u64);
        Ok(PartialBlock {
            bytes: room(context, wanted, is_kept)?,
            post: SortedBlock {
                order,
                parts,
                count: ends,
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
