//! The exchange: sends messages to the ranks that need them, and stores received ones with this rank's own.
//!
//! A rank needs a message if its source has edges there (DFOGraph, section 4.3). There is no filter if it drops nearly no
//! messages, or less than is read of lists on disk. If `filter_ratio` is set, the rule of the paper holds: messages are not filtered
//! if the list of sources is that many times as long. There is no filter against the arcs of a directed graph. A batch with
//! no message that a rank needs is not read for it.
//!
//! The workers of the signal phase and of the slot phase advance the exchange in the background. Batches are sent in ascending
//! order, each once it and all earlier ones are ready: signalled, and written if messages are on disk. The exchange overlaps the slot
//! phase only if at least a sixteenth of the vertices is active (`Pass::has_many_active`): a group then folds the batches in its
//! order, each once it has arrived. Otherwise the exchange ends before the slot phase begins.

use std::collections::BTreeMap;
use std::sync::{Mutex, TryLockError};
use std::time::Duration;

use graphmill_fabric::protocol_error;
use graphmill_raw::Element;
use graphmill_storage::Step;

use crate::context::ExecContext;
use crate::error::{EngineError, ensure, made};
use crate::exchange::all_to_all::{Exchange, ExchangeProgress, FillStatus, FrameSource, Received};
use crate::exchange::filter::MessageFilter;
use crate::exchange::frame::Frame;
use crate::frontier::active_set::ActiveSet;
use crate::messages::batch::{BatchMessages, BatchWriter};
use crate::messages::buffer::MessageBuffer;
use crate::messages::routing_table::ones;
use crate::messages::run_codec;

/// The longest that a worker that has nothing else to do waits for other ranks.
const WAIT: Duration = Duration::from_millis(1);

/// Work that the workers of other phases advance.
pub(crate) trait BackgroundWork: Sync {
    /// Advances the work unless another worker does; an idle worker waits a moment for other ranks.
    fn poll(&self, is_idle: bool) -> Result<ExchangeProgress, EngineError>;

    /// Advances the work for an idle worker, and returns the result as a step.
    fn idle_step(&self) -> Result<Step, EngineError> {
        Ok(match self.poll(true)? {
            ExchangeProgress::Moved => Step::Worked,
            ExchangeProgress::Waiting => Step::Waiting,
            ExchangeProgress::Complete => Step::Finished,
        })
    }
}

/// Advances an exchange; waits at most that time for other ranks.
type ExchangeStep<'p> =
    Box<dyn FnMut(Duration) -> Result<ExchangeProgress, EngineError> + Send + 'p>;

/// An exchange in progress, which the workers of other phases advance.
#[derive(Default)]
pub(crate) struct MessageExchange<'p> {
    /// `None` if there are no other ranks.
    ongoing: Option<Mutex<ExchangeStep<'p>>>,
    /// To how many other ranks only messages go that they need.
    pub(crate) filtered_peers: u64,
}

impl<'p> MessageExchange<'p> {
    /// Prepares to send this rank's batches with `active` vertices, and to receive the others' messages.
    ///
    /// Nothing is sent before the first poll.
    pub(crate) fn prepare<M: Element>(
        context: &'p ExecContext<'p>,
        messages: &'p MessageBuffer<M>,
        filter: Option<&'p MessageFilter>,
        active: &ActiveSet,
    ) -> Self {
        let ranks = &context.ranks;
        if ranks.alone() {
            return Self::default();
        }
        let own = ranks.own();
        let batches: Vec<usize> = active.batches().collect();
        messages.mark_pending(batches.iter().copied());
        messages.mark_pending((0..context.batches.len()).filter(|batch| !own.contains(batch)));
        let (active_own, peers) = (active.own_len(), messages.peers());
        let needs_to = move |to: usize| {
            filter.filter(|filter| filter.is_worthwhile(context, to, active_own, size_of::<M>()))
        };
        let others = (0..ranks.count()).filter(|rank| *rank != ranks.rank());
        let filtered_peers = others.filter(|to| needs_to(*to).is_some()).count() as u64;
        let outgoing = move |to, peer_index| Outbound {
            context,
            messages,
            filter: needs_to(to),
            to,
            peer_index,
            cursor: peer_cursor(context, peers + peer_index),
            batches: batches.clone(),
            at: 0,
            prefetched: 0,
            open_messages: None,
            is_selected: false,
            word: 0,
            has_begun: false,
        };
        let mut inbounds: BTreeMap<usize, Inbound<'p, M>> = BTreeMap::new();
        let incoming = move |from: usize, received: Received<'_>| {
            let is_free = |index: &usize| {
                let cursor = peer_cursor(context, *index);
                inbounds.values().all(|other| other.cursor != cursor)
            };
            let index = (0..peers).find(is_free).unwrap_or_default();
            let inbound = inbounds.entry(from).or_insert_with(|| Inbound {
                messages,
                cursor: peer_cursor(context, index),
                next: ranks.of(from).start,
                open_writer: None,
            });
            inbound.take(ranks.of(from).end, &received)?;
            if let Received::All = received {
                inbounds.remove(&from);
            }
            Ok(())
        };
        let exchange = Exchange::begin(context, size_of::<M>(), peers, outgoing, incoming);
        let ongoing = exchange.map(|mut exchange| {
            let step: ExchangeStep<'p> = Box::new(move |wait| exchange.advance(wait));
            Mutex::new(step)
        });
        MessageExchange {
            ongoing,
            filtered_peers,
        }
    }

    /// Runs the exchange to its end.
    pub(crate) fn drain(&self) -> Result<(), EngineError> {
        while self.poll(true)? != ExchangeProgress::Complete {}
        Ok(())
    }
}

impl BackgroundWork for MessageExchange<'_> {
    fn poll(&self, is_idle: bool) -> Result<ExchangeProgress, EngineError> {
        let Some(ongoing) = &self.ongoing else {
            return Ok(ExchangeProgress::Complete);
        };
        match ongoing.try_lock() {
            Ok(mut ongoing) => ongoing(if is_idle { WAIT } else { Duration::ZERO }),
            Err(TryLockError::WouldBlock) => Ok(ExchangeProgress::Waiting),
            Err(TryLockError::Poisoned(_)) => Err(protocol_error().into()),
        }
    }
}

/// Returns the number of the cursor of another rank, which no worker uses.
fn peer_cursor(context: &ExecContext<'_>, index: usize) -> usize {
    context.workers.count() + index
}

/// The messages of another rank on their way.
struct Inbound<'p, M: Element> {
    messages: &'p MessageBuffer<M>,
    /// See [`peer_cursor`].
    cursor: usize,
    /// The first batch that may be incomplete.
    next: usize,
    open_writer: Option<(BatchWriter<'p, M>, u64)>,
}

impl<M: Element> Inbound<'_, M> {
    fn take(&mut self, end: usize, received: &Received<'_>) -> Result<(), EngineError> {
        let section = match received {
            Received::All => {
                self.close(end)?;
                return self.messages.flush_io(self.cursor);
            }
            Received::Section(section) => section,
        };
        self.messages.poll_io(self.cursor)?;
        let batch = section.batch;
        ensure((self.next..end).contains(&batch), protocol_error)?;
        self.close(batch)?;
        let (writer, count) = made(&mut self.open_writer, || {
            let writer = self.messages.open_writer(batch, self.cursor);
            writer.map(|writer| (writer, 0))
        })?;
        let (values, present) = writer.parts();
        let mut outside = false;
        section.each(|source, message: M| match values.get_mut(source) {
            Some(value) => {
                *value = message;
                present[source / 64] |= 1 << (source % 64);
            }
            None => outside = true,
        });
        *count += section.count() as u64;
        ensure(!outside, protocol_error)
    }

    /// All messages of the batches before that one are there.
    fn close(&mut self, before: usize) -> Result<(), EngineError> {
        if self.next < before {
            if let Some((mut writer, count)) = self.open_writer.take() {
                // No source was named twice.
                ensure(ones(writer.parts().1) == count, protocol_error)?;
                self.messages
                    .commit(self.next, writer, count, self.cursor)?;
                self.next += 1;
            }
            self.messages.mark_ready(self.next..before);
            self.next = before;
        }
        Ok(())
    }
}

/// The messages of this rank's batches on their way to one other.
struct Outbound<'p, M: Element> {
    context: &'p ExecContext<'p>,
    messages: &'p MessageBuffer<M>,
    filter: Option<&'p MessageFilter>,
    to: usize,
    /// The number of the rank among those that are sent to at the same time.
    peer_index: usize,
    /// The number of its cursor, which neither a worker nor an [`Inbound`] uses.
    cursor: usize,
    batches: Vec<usize>,
    /// Which of the batches comes next, and from which word of its sources on.
    at: usize,
    word: usize,
    /// How many of the batches are prefetched.
    prefetched: usize,
    open_messages: Option<BatchMessages<'p, M>>,
    /// True if the sources that the rank needs of the current batch are selected.
    is_selected: bool,
    has_begun: bool,
}

impl<M: Element> Outbound<'_, M> {
    /// Prefetches the batches that are ready, in order up to the first one that is not.
    fn prefetch_ready(&mut self) -> Result<(), EngineError> {
        if !self.has_begun {
            self.messages.restart_cursor(self.cursor)?;
            self.has_begun = true;
        }
        while let Some(&batch) = self.batches.get(self.prefetched)
            && self.messages.is_ready(batch)
        {
            if self.sends(batch) {
                self.messages.prefetch(batch, self.cursor)?;
                if let Some(filter) = self.filter {
                    filter.prefetch(batch, self.to, self.peer_index)?;
                }
            }
            self.prefetched += 1;
        }
        Ok(())
    }

    /// True if there are any messages of a batch for that rank.
    fn sends(&self, batch: usize) -> bool {
        let is_needed = |filter: &MessageFilter| filter.needs_any(batch, self.to);
        self.messages.count(batch) > 0 && self.filter.is_none_or(is_needed)
    }
}

impl<M: Element> FrameSource for Outbound<'_, M> {
    fn fill(&mut self, frame: &mut Frame<'_>) -> Result<FillStatus, EngineError> {
        self.prefetch_ready()?;
        while let Some(&batch) = self.batches.get(self.at) {
            if self.at >= self.prefetched {
                return Ok(FillStatus::Later);
            }
            if self.sends(batch) {
                let count = self.messages.count(batch);
                let read = || self.messages.read(batch, self.cursor);
                let open_messages = &*made(&mut self.open_messages, read)?;
                let slice = open_messages.slice();
                let span = self.context.batches.span(batch) as usize;
                let is_listed = run_codec::is_listed(count, span);
                self.word = match self.filter {
                    None => frame.messages(batch, slice, |_| !0, is_listed, self.word),
                    Some(filter) => {
                        if !std::mem::replace(&mut self.is_selected, true) {
                            filter.select(batch, self.to, slice.present, self.peer_index)?;
                        }
                        let selected = filter.selected(self.peer_index);
                        frame.messages(batch, slice, |word| selected[word], is_listed, self.word)
                    }
                };
                if self.word < slice.present.len() {
                    return Ok(FillStatus::Full);
                }
                self.is_selected = false;
                if let Some(open_messages) = self.open_messages.take() {
                    self.messages
                        .release(batch, open_messages, false, self.cursor)?;
                }
            }
            (self.at, self.word) = (self.at + 1, 0);
            self.prefetch_ready()?;
        }
        Ok(FillStatus::All)
    }
}
