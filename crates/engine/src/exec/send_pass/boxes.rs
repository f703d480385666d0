//! The outboxes of a pass, and the messages that were sent with them.
//!
//! Each worker collects what its vertices send. If its box is full or a batch is through, it sorts the box by destination batch
//! and posts it as a block. Blocks stay in memory while they fit, and go to the row file otherwise.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use graphmill_fabric::protocol_error;
use graphmill_raw::{Element, lock};
use graphmill_storage::{DataKind, Lease};

use crate::comm::wire::PEERS;
use crate::context::{ExecContext, each_batch};
use crate::error::EngineError;
use crate::exec::send_pass::block::{
    BlockStorage, SortedBlock, bytes_at, bytes_of, load, read_at, room, store, write_at,
};
use crate::exec::send_pass::block_index::BlockIndex;
use crate::exec::send_pass::box_sorter::BoxSorter;
use crate::exec::send_pass::exchange::{self, pass_on};
use crate::memory::plan::PART_BYTES;
use crate::metrics::run::PassMetrics;
use crate::metrics::traffic::Access;
use crate::program::outbox::{Combine, Outbox, OutboxMemory};

/// Messages of a box, at most and at least.
const BOX_MAX: usize = 1 << 18;
const BOX_MIN: usize = 1 << 12;

/// Returns the bytes of `count` messages of `message` bytes in a box, with their destinations.
fn sent_bytes(message: usize, count: usize) -> usize {
    count * (size_of::<u64>() + message)
}

/// The memory of a pass for its boxes, and for blocks that are made, read or exchanged.
#[derive(Clone, Copy)]
struct BoxMemory {
    /// Boxes of all workers with what sorts them, and the indexes of the blocks.
    boxes: u64,
    /// Parts of blocks that workers, or the exchange with other ranks, hold at the same time.
    pieces: u64,
}

impl BoxMemory {
    /// Returns the memory for boxes of `capacity` messages of `message` bytes.
    ///
    /// Each of `phases` phases has an index of its blocks.
    fn new(context: &ExecContext, message: usize, capacity: usize, phases: u64) -> Self {
        let (workers, batches) = (context.workers.count() as u64, context.batches.len());
        let each =
            OutboxMemory::<()>::bytes(message, capacity) + BoxSorter::bytes(capacity, batches);
        let piece = sent_bytes(message, capacity) as u64 + 4096;
        let of_workers = 2 * workers * piece;
        let pieces = match context.ranks.alone() {
            true => of_workers,
            false => of_workers.max(PEERS as u64 * (piece + exchange::heads_bytes(context))),
        };
        BoxMemory {
            boxes: workers * each as u64 + phases * BlockIndex::bytes(batches),
            pieces,
        }
    }
}

/// Returns the bytes of the smallest boxes of a pass, with a part of a block for each of some phases.
pub(crate) fn least(context: &ExecContext, message: usize, phases: u64) -> u64 {
    let memory = BoxMemory::new(context, message, BOX_MIN, phases);
    memory.boxes + phases * (memory.pieces + context.shape.parts)
}

/// The outboxes of a pass.
pub(crate) struct Boxes<'s> {
    context: &'s ExecContext<'s>,
    /// Messages that a box holds.
    capacity: usize,
    /// Bytes of the budget that blocks leave free.
    leave: u64,
    /// What sorts the boxes, one a worker.
    sorters: Vec<Mutex<BoxSorter>>,
    _lease: Lease,
}

impl<'s> Boxes<'s> {
    /// Leases the boxes of all workers, for about `expected` messages of at most `message` bytes.
    ///
    /// Blocks leave `fixed` bytes free, and a part of a block for each of the phases that read blocks at the same time as others
    /// are made.
    pub(crate) fn new(
        context: &'s ExecContext<'s>,
        (message, expected): (usize, u64),
        fixed: u64,
        phases: u64,
    ) -> Result<Self, EngineError> {
        let fixed = fixed + phases * context.shape.parts;
        let free = context.message_memory(0).saturating_sub(fixed);
        let shares = match expected.saturating_mul(phases * sent_bytes(message, 1) as u64) {
            // A third of the memory is enough: blocks stay in the rest.
            bytes if bytes <= free / 3 * 2 => 8 * phases,
            // A box with its sort order, then a block and a part of one for each phase. Blocks go to disk, so boxes are large: a part
            // of a small block is read with many bytes around it.
            _ => 2 + 2 * phases,
        };
        let each = free / (shares * context.workers.count() as u64);
        let capacity = (each as usize / sent_bytes(message, 1)).clamp(BOX_MIN, BOX_MAX);
        // What comes from others is as long as theirs.
        let capacity = context.ranks.least(capacity as u64)? as usize;
        let memory = BoxMemory::new(context, message, capacity, phases);
        let lease = context.budget.lease("messages to send", memory.boxes)?;
        let batches = context.batches.len();
        let sorter = |_| Mutex::new(BoxSorter::new(capacity, batches));
        Ok(Boxes {
            context,
            capacity,
            leave: fixed + phases * memory.pieces,
            sorters: (0..context.workers.count()).map(sorter).collect(),
            _lease: lease,
        })
    }

    /// Calls `work` with each of some batches, a worker and its box, then sends the messages.
    ///
    /// `combine` combines two messages to a vertex, if messages may be combined. All ranks call it. Returns what `work` returned,
    /// in order of batches, and the messages for this rank.
    pub(crate) fn send<M: Element, S: Send>(
        &self,
        batches: &[usize],
        combine: Option<Combine<'_, M>>,
        work: impl Fn(usize, usize, &mut Outbox<'_, M>) -> Result<S, EngineError> + Sync,
    ) -> Result<(Vec<S>, SentMessages<'s>), EngineError> {
        let context = self.context;
        let office = Outboxes {
            context,
            posted: Mutex::default(),
            sent: AtomicU64::new(0),
            leave: self.leave,
        };
        let memories = self.sorters.iter().map(|_| Mutex::new(None));
        let memories: Vec<Mutex<Option<OutboxMemory<M>>>> = memories.collect();
        let of_senders = each_batch(context, batches, |i, worker| {
            let mut memory = lock(&memories[worker.index]);
            let new = || OutboxMemory::new(self.capacity, combine.is_some());
            let memory = memory.get_or_insert_with(new);
            let mut sorter = lock(&self.sorters[worker.index]);
            let mut poster = BatchSender {
                office: &office,
                batch: batches[i],
                posts: 0,
                worker: worker.index,
                sorter: &mut sorter,
            };
            let mut posted = Ok(());
            let mut full = |to: &[u64], messages: &[M]| {
                if posted.is_ok() {
                    posted = poster.post(to, messages);
                }
            };
            let mut outbox = Outbox::new(&mut full, memory, self.capacity, combine);
            let done = work(batches[i], worker.index, &mut outbox)?;
            outbox.empty();
            office.sent.fetch_add(outbox.sent, Ordering::Relaxed);
            posted.map(|()| done)
        })?;
        drop(memories);
        let mut sent = SentMessages {
            context,
            posts: std::mem::take(&mut *lock(&office.posted)),
            index: BlockIndex::default(),
            messages: office.sent.into_inner(),
            to_ranks: [0; 2],
        };
        sent.to_ranks = pass_on::<M>(context, &mut sent.posts, self.leave)?;
        sent.posts.sort_unstable_by_key(|post| post.order);
        sent.index = BlockIndex::new(&sent.posts, context.ranks.own());
        Ok((of_senders, sent))
    }
}

/// The boxes that are full, of one phase.
struct Outboxes<'s> {
    context: &'s ExecContext<'s>,
    posted: Mutex<Vec<SortedBlock>>,
    sent: AtomicU64,
    leave: u64,
}

/// The state of a worker that sends the messages of one batch.
struct BatchSender<'s> {
    office: &'s Outboxes<'s>,
    batch: usize,
    posts: usize,
    worker: usize,
    sorter: &'s mut BoxSorter,
}

impl BatchSender<'_> {
    /// Posts the messages of a box.
    fn post<M: Element>(&mut self, to: &[u64], messages: &[M]) -> Result<(), EngineError> {
        let (office, count) = (self.office, to.len());
        let context = office.context;
        if count == 0 {
            return Ok(());
        }
        let vertices = context.batches.vertices();
        if let Some(index) = to.iter().copied().find(|to| *to >= vertices) {
            return Err(EngineError::NoSuchIndex { index, vertices });
        }
        let batches = &context.batches;
        let parts = self.sorter.count(to, batches);
        let _lease = (context.budget).lease("sent messages", parts as u64 * PART_BYTES)?;
        let (parts, order) = self.sorter.sort(to, batches);
        let is_kept = context.message_memory(0) >= office.leave;
        let mut bytes = room(context, bytes_of::<M>(count), is_kept)?;
        let (mut begin, mut at) = (0, 0);
        for (batch, end) in &parts {
            let part = &order[begin..*end as usize];
            let start = batches.start(*batch as usize);
            for i in part {
                write_at(&mut bytes, at, (to[*i as usize] - start) as u32);
                at += size_of::<u32>();
            }
            for i in part {
                write_at(&mut bytes, at, messages[*i as usize]);
                at += size_of::<M>();
            }
            begin = *end as usize;
        }
        let at = if is_kept {
            let traffic = context.traffic.of(self.worker);
            traffic.write(DataKind::Messages, Access::Sequential, bytes.len() as u64);
            BlockStorage::Memory(bytes)
        } else {
            let mut io = lock(&context.row_io[self.worker]);
            BlockStorage::Disk(store(context, &mut io, &bytes)?)
        };
        lock(&office.posted).push(SortedBlock {
            order: (self.batch, self.posts),
            parts,
            at,
            _lease,
        });
        self.posts += 1;
        Ok(())
    }
}

/// The messages of one phase for the batches of this rank.
///
/// When it is dropped, the pages of its blocks are free again.
pub(crate) struct SentMessages<'s> {
    context: &'s ExecContext<'s>,
    /// In order of sending batches.
    posts: Vec<SortedBlock>,
    index: BlockIndex,
    /// Messages that this rank sent.
    messages: u64,
    /// Of these, messages and bytes to other ranks.
    to_ranks: [u64; 2],
}

impl SentMessages<'_> {
    /// Returns the batches of this rank that have messages, ascending.
    pub(crate) fn batches(&self) -> Vec<usize> {
        let own = self.context.ranks.own();
        own.filter(|batch| !self.index.of(*batch).is_empty())
            .collect()
    }

    /// Adds them to the counts of a pass.
    pub(crate) fn count(&self, report: &mut PassMetrics) {
        report.messages += self.messages;
        report.messages_sent += self.to_ranks[0];
        report.bytes_sent += self.to_ranks[1];
    }

    /// Calls `f` with each message to a batch, in order of senders.
    ///
    /// `f` also gets the position of the receiver in the batch. Returns the number of messages.
    pub(crate) fn each<M: Element>(
        &self,
        batch: usize,
        worker: usize,
        mut f: impl FnMut(usize, M),
    ) -> Result<u64, EngineError> {
        let context = self.context;
        let span = context.batches.span(batch) as usize;
        let traffic = context.traffic.of(worker);
        let mut count = 0;
        let mut each = |bytes: &[u8], messages: usize| {
            let (to, messages) = bytes.split_at(messages * size_of::<u32>());
            let to = to.as_chunks().0.iter();
            for (i, to) in to.enumerate() {
                let local = u32::from_le_bytes(*to) as usize;
                let message = read_at(messages, i * size_of::<M>()).filter(|_| local < span);
                f(local, message.ok_or_else(protocol_error)?);
            }
            Ok::<_, EngineError>(())
        };
        for (post, part) in self.index.of(batch) {
            let post = &self.posts[*post as usize];
            let places = post.places(*part as usize);
            count += places.len() as u64;
            let part = bytes_at::<M>(&places);
            match &post.at {
                BlockStorage::Memory(bytes) => {
                    traffic.read(DataKind::Messages, Access::Sequential, part.len() as u64);
                    each(&bytes[part], places.len())?;
                }
                BlockStorage::Disk(slots) => {
                    let length = part.len();
                    // `f` may send messages, which takes the worker's part of the row file.
                    let io = || lock(&context.row_io[worker]);
                    let (bytes, from) = load(context, &mut io(), slots, part)?;
                    each(&bytes[from..from + length], places.len())?;
                }
            }
        }
        Ok(count)
    }
}

impl Drop for SentMessages<'_> {
    fn drop(&mut self) {
        for post in self.posts.drain(..) {
            if let BlockStorage::Disk(slots) = post.at {
                let pages = self.context.arrays.pages();
                pages.give_back(slots.into_iter().flatten());
            }
        }
    }
}
