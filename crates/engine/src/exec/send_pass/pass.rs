//! Addressed messages: each worker collects what its vertices send, sorts it by destination batch when its box is full or a batch
//! is through, and posts it; then each destination batch folds what was posted to it.
//!
//! Sent messages stay in memory while they fit, and go to the row file otherwise: so a pass can send any number of
//! messages. The blocks of one destination batch are folded in order of the sending batch, and the blocks of one sending batch in
//! the order in which they were sent.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use graphmill_raw::{AlignedBuffer, Element, lock};
use graphmill_storage::DataKind;

use crate::context::{ExecContext, each_batch};
use crate::error::EngineError;
use crate::exec::column::kernel::accumulators::Accumulators;
use crate::exec::send_pass::block::{
    BlockStorage, SortedBlock, bytes_of, load, read_at, room, store, write_at,
};
use crate::exec::send_pass::exchange::pass_on;
use crate::exec::vertex_pass::RowPass;
use crate::frontier::active_set::ActiveSet;
use crate::frontier::bitmap::HierarchicalBitmap;
use crate::metrics::run::{Mode, PassMetrics};
use crate::metrics::traffic::Access;
use crate::program::current_call::CurrentCall;
use crate::program::edge::Activate;
use crate::program::message::MessageProgram;
use crate::program::outbox::{FullBox, Outbox};
use crate::state::row_set::RowSet;
use crate::state::rows::{ColumnAccess, Rows};
use crate::value::Reduce;

/// Messages of a box, at most and at least.
const BOX_MAX: usize = 1 << 18;
const BOX_MIN: usize = 1 << 12;

/// The results of a send pass.
pub(crate) struct SendResult<S> {
    /// The sums of senders, then of receivers, by batch.
    pub(crate) sums: [Vec<S>; 2],
    /// Of the senders, those that are active next.
    pub(crate) senders: ActiveSet,
    /// Of those that were reached, those that are active next.
    pub(crate) reached: ActiveSet,
    pub(crate) report: PassMetrics,
}

/// The state of a worker that sends the messages of one batch.
struct BatchSender<'s> {
    office: &'s Outboxes<'s>,
    batch: usize,
    posts: usize,
    failed: Result<(), EngineError>,
    worker: usize,
}

/// The outboxes of all workers.
pub(crate) struct Outboxes<'s> {
    context: &'s ExecContext<'s>,
    posted: Mutex<Vec<SortedBlock>>,
    sent: AtomicU64,
    /// Bytes of the budget that blocks leave free.
    leave: u64,
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

/// Returns the bytes of accumulators, rows and sets of a pass's workers, without boxes and blocks.
fn fixed_bytes<P: MessageProgram>(
    context: &ExecContext,
    send: &[ColumnAccess],
    apply: &[ColumnAccess],
) -> u64 {
    let shape = &context.shape;
    let set = AlignedBuffer::footprint(shape.widest * size_of::<P::Accumulator>());
    let reached = HierarchicalBitmap::bytes(shape.widest);
    let rows = [send, apply].map(|needs| {
        let row_bytes = context.arrays.staged_bytes(needs);
        shape.staging_bytes(row_bytes, needs.len())
    });
    context.workers.count() as u64 * (set + reached)
        + rows[0].max(rows[1])
        + 2 * shape.set_of_vertices
}

/// Returns the bytes of boxes of `capacity` messages, and of a part of each of their blocks on disk.
fn boxes_of<M>(context: &ExecContext, capacity: usize) -> (u64, u64) {
    let workers = context.workers.count() as u64;
    let boxes = (bytes_of::<M>(capacity) + capacity * size_of::<u32>()) as u64;
    let piece = bytes_of::<M>(capacity) as u64 + 4096;
    (workers * boxes, 2 * workers * piece)
}

/// Bytes of the budget that a pass can do with.
pub(crate) fn least<P: MessageProgram>(
    context: &ExecContext,
    send: &[ColumnAccess],
    apply: &[ColumnAccess],
) -> u64 {
    let (boxes, pieces) = boxes_of::<P::Message>(context, BOX_MIN);
    fixed_bytes::<P>(context, send, apply) + boxes + pieces
}

/// One pass of sends; see the module's page.
pub(crate) fn pass<P: MessageProgram>(
    context: &ExecContext,
    program: &P,
    send: &[ColumnAccess],
    apply: &[ColumnAccess],
    active: Option<&ActiveSet>,
    [senders, reached]: [ActiveSet; 2],
) -> Result<SendResult<P::Sum>, EngineError> {
    let workers = context.workers.count();
    // A box, its sort order and its block; accumulators and rows of the next phase, and a part of a block.
    let besides = fixed_bytes::<P>(context, send, apply);
    let free = context.message_memory(0).saturating_sub(besides) / (8 * workers as u64);
    let capacity = (free as usize / bytes_of::<P::Message>(1)).clamp(BOX_MIN, BOX_MAX);
    // What comes from others is as long as theirs.
    let capacity = context.ranks.least(capacity as u64)? as usize;
    let (boxes, pieces) = boxes_of::<P::Message>(context, capacity);
    let _boxes = context.budget.lease("messages to send", boxes)?;
    let office = Outboxes {
        context,
        posted: Mutex::default(),
        sent: AtomicU64::new(0),
        leave: besides + pieces,
    };
    let rows = RowPass {
        context,
        needs: send,
        active,
        activated: Some(&senders),
    };
    let batches = rows.batches();
    let of_senders = each_batch(context, &batches, |i, worker| {
        let mut poster = BatchSender {
            office: &office,
            batch: batches[i],
            posts: 0,
            failed: Ok(()),
            worker: worker.index,
        };
        let mut sink = Outbox::new(&mut poster, capacity);
        let send = |v, row: <P::SendRows as Rows>::Row<'_>| program.send(v, row, &mut sink);
        let sum = rows.batch::<P::SendRows, _>(batches[i], worker.index, send)?;
        sink.empty();
        poster.failed.map(|()| sum)
    })?;
    context.arrays.end_phase();
    let mut report = PassMetrics::new(Mode::Send);
    report.messages = office.sent.into_inner();
    let mut posts = std::mem::take(&mut *lock(&office.posted));
    [report.messages_sent, report.bytes_sent] =
        pass_on::<P::Message>(context, &mut posts, besides + pieces)?;
    posts.sort_unstable_by_key(|post| post.order);
    let mut is_sent_to = vec![false; context.batches.len()];
    for (batch, _) in posts.iter().flat_map(|post| &post.parts) {
        is_sent_to[*batch as usize] = true;
    }
    let own = context.ranks.own();
    let batches: Vec<usize> = own.filter(|batch| is_sent_to[*batch]).collect();
    let job = ReceivePhase::<P> {
        program,
        context,
        needs: apply,
        posts: &posts,
        reached: &reached,
        sets: (0..workers).map(|_| Mutex::new(None)).collect(),
    };
    let of_reached = each_batch(context, &batches, |i, worker| {
        job.batch(batches[i], worker.index)
    });
    for post in posts {
        if let BlockStorage::Disk(slots) = post.at {
            let pages = context.arrays.pages();
            pages.give_back(slots.into_iter().flatten());
        }
    }
    let of_reached = of_reached?;
    let (mut senders, mut reached) = (senders, reached);
    senders.refresh_counts();
    reached.refresh_counts();
    Ok(SendResult {
        sums: [of_senders, of_reached],
        senders,
        reached,
        report,
    })
}

/// Folding what was posted, one destination batch after the other.
struct ReceivePhase<'p, P: MessageProgram> {
    program: &'p P,
    context: &'p ExecContext<'p>,
    needs: &'p [ColumnAccess],
    posts: &'p [SortedBlock],
    reached: &'p ActiveSet,
    /// One a worker; `IDENTITY` between steps.
    sets: Vec<Mutex<Option<Accumulators<P::Accumulator>>>>,
}

impl<P: MessageProgram> ReceivePhase<'_, P> {
    fn batch(&self, batch: usize, worker: usize) -> Result<P::Sum, EngineError> {
        let (context, program) = (self.context, self.program);
        let start = context.batches.start(batch);
        let span = context.batches.span(batch) as usize;
        let mut set = lock(&self.sets[worker]);
        let widest = context.shape.widest;
        let accumulators = match &mut *set {
            Some(set) => set,
            none => none.insert(Accumulators::new(context, widest, P::IDENTITY)?),
        };
        let mut io = lock(&context.row_io[worker]);
        let mut folded = HierarchicalBitmap::default();
        folded.reserve(span, &context.budget)?;
        let traffic = context.traffic.of(worker);
        let current = CurrentCall::new();
        for post in self.posts {
            let Some(places) = post.part(batch) else {
                continue;
            };
            let folds = (places.len() * size_of::<P::Accumulator>()) as u64;
            traffic.change(DataKind::Messages, Access::Random, folds);
            let mut fold = |to: Option<u64>, message: Option<P::Message>| {
                let local = to.and_then(|to| usize::try_from(to.checked_sub(start)?).ok());
                let place = local.filter(|local| *local < span);
                if let (Some(local), Some(message)) = (place, message) {
                    current.at(start + local as u64);
                    program.fold(&mut accumulators[local], message);
                    folded.insert(local);
                }
            };
            let messages_at = post.count * size_of::<u64>();
            match &post.at {
                BlockStorage::Memory(bytes) => {
                    let read = bytes_of::<P::Message>(places.len()) as u64;
                    traffic.read(DataKind::Messages, Access::Sequential, read);
                    for place in places {
                        fold(
                            read_at(bytes, place * size_of::<u64>()),
                            read_at(bytes, messages_at + place * size_of::<P::Message>()),
                        );
                    }
                }
                BlockStorage::Disk(slots) => {
                    let [to_at, messages_at] = post.bytes_at::<P::Message>(&places);
                    let (to, to_from) = load(context, &mut io, slots, to_at)?;
                    let (messages, from) = load(context, &mut io, slots, messages_at)?;
                    for i in 0..places.len() {
                        fold(
                            read_at(&to, to_from + i * size_of::<u64>()),
                            read_at(&messages, from + i * size_of::<P::Message>()),
                        );
                    }
                }
            }
        }
        let some = RowSet::of(&folded);
        let mut open = (context.arrays).open(batch, self.needs, some.as_ref(), &mut io)?;
        let (mut sum, mut applied) = (P::Sum::ZERO, 0);
        {
            let mut next = self.reached.batch(batch)?;
            let mut rows = P::ApplyRows::slices(&mut open.guards);
            folded.for_each(|i| {
                let accumulator = std::mem::replace(&mut accumulators[i], P::IDENTITY);
                let row = P::ApplyRows::row(&mut rows, i);
                current.at(start + i as u64);
                let (summand, activate) = program.apply(start + i as u64, row, accumulator);
                sum.add(summand);
                applied += 1;
                if activate == Activate::Yes {
                    next.insert(i);
                }
            });
        }
        context.count_rows(worker, self.needs, applied, false);
        let bytes = applied * size_of::<P::Accumulator>() as u64;
        traffic.change(DataKind::Messages, Access::Random, bytes);
        (context.arrays).close(open, self.needs, None, &mut io)?;
        Ok(sum)
    }
}
