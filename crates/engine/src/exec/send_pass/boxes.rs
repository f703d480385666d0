//! The outboxes of a pass, and the messages that were sent with them.
//!
//! Each worker collects what its vertices send. If its box is full or a batch is through, it sorts the box by destination batch
//! and posts it as a block. Blocks stay in memory while they fit, and go to the row file otherwise.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use graphmill_raw::{Element, lock};
use graphmill_storage::{DataKind, Lease};

use crate::context::{ExecContext, each_batch};
use crate::error::EngineError;
use crate::exec::send_pass::block::{
    BlockStorage, SortedBlock, bytes_of, load, read_at, room, store, write_at,
};
use crate::exec::send_pass::exchange::pass_on;
use crate::metrics::run::PassMetrics;
use crate::metrics::traffic::Access;
use crate::program::outbox::{FullBox, Outbox};

/// Messages of a box, at most and at least.
const BOX_MAX: usize = 1 << 18;
const BOX_MIN: usize = 1 << 12;

/// Returns the bytes of `count` messages of `message` bytes, with their destinations.
fn sent_bytes(message: usize, count: usize) -> usize {
    count * (size_of::<u64>() + message)
}

/// Returns the bytes of boxes of `capacity` messages, and of a part of each of their blocks on disk.
fn boxes_of(context: &ExecContext, message: usize, capacity: usize) -> (u64, u64) {
    let workers = context.workers.count() as u64;
    let bytes = sent_bytes(message, capacity);
    let boxes = (bytes + capacity * size_of::<u32>()) as u64;
    let piece = bytes as u64 + 4096;
    (workers * boxes, 2 * workers * piece)
}

/// Returns the bytes of the smallest boxes of a pass, with a part of a block for each of some phases.
pub(crate) fn least(context: &ExecContext, message: usize, phases: u64) -> u64 {
    let (boxes, pieces) = boxes_of(context, message, BOX_MIN);
    boxes + phases * pieces
}

/// The outboxes of a pass.
pub(crate) struct Boxes<'s> {
    context: &'s ExecContext<'s>,
    /// Messages that a box holds.
    capacity: usize,
    /// Bytes of the budget that blocks leave free.
    leave: u64,
    _lease: Lease,
}

impl<'s> Boxes<'s> {
    /// Leases the boxes of all workers, for messages of at most `message` bytes.
    ///
    /// Blocks leave `fixed` bytes free, and a part of a block for each of the phases that read blocks at the same time as others
    /// are made.
    pub(crate) fn new(
        context: &'s ExecContext<'s>,
        message: usize,
        fixed: u64,
        phases: u64,
    ) -> Result<Self, EngineError> {
        // A box, its sort order and its block; accumulators and rows of the next phase, and a part of a block.
        let shares = 8 * phases * context.workers.count() as u64;
        let free = context.message_memory(0).saturating_sub(fixed) / shares;
        let capacity = (free as usize / sent_bytes(message, 1)).clamp(BOX_MIN, BOX_MAX);
        // What comes from others is as long as theirs.
        let capacity = context.ranks.least(capacity as u64)? as usize;
        let (boxes, pieces) = boxes_of(context, message, capacity);
        Ok(Boxes {
            context,
            capacity,
            leave: fixed + phases * pieces,
            _lease: context.budget.lease("messages to send", boxes)?,
        })
    }

    /// Calls `work` with each of some batches, a worker and its box, then sends the messages.
    ///
    /// All ranks call it. Returns what `work` returned, in order of batches, and the messages for this rank.
    pub(crate) fn send<M: Element, S: Send>(
        &self,
        batches: &[usize],
        work: impl Fn(usize, usize, &mut Outbox<'_, M>) -> Result<S, EngineError> + Sync,
    ) -> Result<(Vec<S>, SentMessages<'s>), EngineError> {
        let context = self.context;
        let office = Outboxes {
            context,
            posted: Mutex::default(),
            sent: AtomicU64::new(0),
            leave: self.leave,
        };
        let of_senders = each_batch(context, batches, |i, worker| {
            let mut poster = BatchSender {
                office: &office,
                batch: batches[i],
                posts: 0,
                failed: Ok(()),
                worker: worker.index,
            };
            let mut sink = Outbox::new(&mut poster, self.capacity);
            let done = work(batches[i], worker.index, &mut sink)?;
            sink.empty();
            poster.failed.map(|()| done)
        })?;
        let mut sent = SentMessages {
            context,
            posts: std::mem::take(&mut *lock(&office.posted)),
            messages: office.sent.into_inner(),
            to_ranks: [0; 2],
        };
        sent.to_ranks = pass_on::<M>(context, &mut sent.posts, self.leave)?;
        sent.posts.sort_unstable_by_key(|post| post.order);
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
    failed: Result<(), EngineError>,
    worker: usize,
}

impl<M: Element> FullBox<M> for BatchSender<'_> {
    fn take(&mut self, to: &[u64], messages: &[M]) {
        if self.failed.is_ok() {
            self.failed = self.post(to, messages);
        }
    }
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
        office.sent.fetch_add(count as u64, Ordering::Relaxed);
        let batch_of = |i: u32| context.batches.batch_of(to[i as usize]);
        // Sorting keeps the order of messages to one batch.
        let mut order: Vec<u32> = (0..count as u32).collect();
        order.sort_by_key(|i| batch_of(*i));
        let (mut parts, mut end) = (Vec::new(), 0);
        for part in order.chunk_by(|a, b| batch_of(*a) == batch_of(*b)) {
            end += part.len() as u32;
            parts.push((batch_of(part[0]) as u32, end));
        }
        parts.shrink_to_fit();
        // Where few bytes go to each of many batches, saying which are whose takes as much as they do.
        let payload = (parts.len() * size_of::<(u32, u32)>()) as u64;
        let _lease = context.budget.lease("sent messages", payload)?;
        let is_kept = context.message_memory(0) >= office.leave;
        let mut bytes = room(context, bytes_of::<M>(count), is_kept)?;
        for (place, i) in order.iter().enumerate() {
            write_at(&mut bytes, place * size_of::<u64>(), to[*i as usize]);
            let at = count * size_of::<u64>() + place * size_of::<M>();
            write_at(&mut bytes, at, messages[*i as usize]);
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
            count,
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
    /// Messages that this rank sent.
    messages: u64,
    /// Of these, messages and bytes to other ranks.
    to_ranks: [u64; 2],
}

impl SentMessages<'_> {
    /// Returns the batches of this rank that have messages, ascending.
    pub(crate) fn batches(&self) -> Vec<usize> {
        let mut is_sent_to = vec![false; self.context.batches.len()];
        for (batch, _) in self.posts.iter().flat_map(|post| &post.parts) {
            is_sent_to[*batch as usize] = true;
        }
        let own = self.context.ranks.own();
        own.filter(|batch| is_sent_to[*batch]).collect()
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
        let start = context.batches.start(batch);
        let span = context.batches.span(batch) as usize;
        let traffic = context.traffic.of(worker);
        let mut count = 0;
        let mut one = |to: Option<u64>, message: Option<M>| {
            let local = to.and_then(|to| usize::try_from(to.checked_sub(start)?).ok());
            let place = local.filter(|local| *local < span);
            if let (Some(local), Some(message)) = (place, message) {
                f(local, message);
            }
        };
        for post in &self.posts {
            let Some(places) = post.part(batch) else {
                continue;
            };
            count += places.len() as u64;
            let messages_at = post.count * size_of::<u64>();
            match &post.at {
                BlockStorage::Memory(bytes) => {
                    let read = bytes_of::<M>(places.len()) as u64;
                    traffic.read(DataKind::Messages, Access::Sequential, read);
                    for place in places {
                        one(
                            read_at(bytes, place * size_of::<u64>()),
                            read_at(bytes, messages_at + place * size_of::<M>()),
                        );
                    }
                }
                BlockStorage::Disk(slots) => {
                    let [to_at, messages_at] = post.bytes_at::<M>(&places);
                    // `f` may send messages, which takes the worker's part of the row file.
                    let io = || lock(&context.row_io[worker]);
                    let (to, to_from) = load(context, &mut io(), slots, to_at)?;
                    let (messages, from) = load(context, &mut io(), slots, messages_at)?;
                    for i in 0..places.len() {
                        one(
                            read_at(&to, to_from + i * size_of::<u64>()),
                            read_at(&messages, from + i * size_of::<M>()),
                        );
                    }
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
