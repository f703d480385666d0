//! Uncombined mailboxes: every message of a superstep, by receiver, in order of the senders.
//!
//! A [`MailWindow`] holds the mailboxes of some batches of this rank. It is filled in three steps: count the messages of each vertex,
//! allocate, put the messages in. So a mailbox is one range of a buffer, and its order does not depend on who filled it.

use std::ops::Range;
use std::sync::{Arc, Mutex};

use graphmill_graph::Batches;
use graphmill_raw::{Element, lock};
use graphmill_storage::{BudgetError, Buffer, Lease, MemoryBudget, StorageError};
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// The name of the memory of mailboxes in errors.
const MAILBOXES: &str = "uncombined mailboxes";
/// Room for messages that a batch first gets from `send`.
const SENT_MIN: usize = 256;

/// A message with its sender and its receiver.
#[derive(FromBytes, IntoBytes, Immutable)]
#[repr(C, packed)]
pub(crate) struct AddressedMessage<M> {
    pub(crate) receiver: u64,
    pub(crate) sender: u64,
    pub(crate) message: M,
}

impl<M: Copy> Clone for AddressedMessage<M> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<M: Copy> Copy for AddressedMessage<M> {}

/// A message in a mailbox.
#[derive(FromBytes, IntoBytes, Immutable)]
#[repr(C, packed)]
struct ReceivedMessage<M> {
    sender: u64,
    message: M,
}

impl<M: Copy> Clone for ReceivedMessage<M> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<M: Copy> Copy for ReceivedMessage<M> {}

/// The numbers of messages to a batch: in all, and to one vertex at most.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct MailCount {
    pub(crate) messages: u64,
    pub(crate) largest: u64,
}

impl MailCount {
    /// Returns the bytes of the budget that the mailboxes of a batch take.
    pub(crate) fn bytes<M: Element>(self, span: u64) -> u64 {
        let received = size_of::<ReceivedMessage<M>>() as u64;
        let scratch = self.largest * (received + size_of::<M>() as u64);
        span * 8 + self.messages * received + scratch + 3 * 4096
    }
}

/// The mailboxes of one batch.
struct BatchMail<M> {
    /// The numbers of messages of the vertices, then where their mailboxes end.
    ends: Buffer,
    messages: Buffer,
    /// The messages of one vertex.
    scratch: Vec<M>,
    /// Of `scratch`, and of a sort.
    _scratch: Lease,
}

/// The mailboxes of some batches.
pub(crate) struct MailWindow<M> {
    batches: Arc<Batches>,
    first: usize,
    /// By batch; `None` for a batch that computes no vertex.
    mail: Vec<Mutex<Option<BatchMail<M>>>>,
}

impl<M: Element> MailWindow<M> {
    /// Returns mailboxes without messages for the batches of a range.
    pub(crate) fn new(batches: &Arc<Batches>, window: &Range<usize>) -> Self {
        MailWindow {
            batches: Arc::clone(batches),
            first: window.start,
            mail: window.clone().map(|_| Mutex::new(None)).collect(),
        }
    }

    /// Calls `work` with the mail of a vertex's batch and its place there; `None` outside of the window.
    #[inline]
    fn with<T>(&self, v: u64, work: impl FnOnce(&mut BatchMail<M>, usize) -> T) -> Option<T> {
        if v >= self.batches.vertices() {
            return None;
        }
        let batch = self.batches.batch_of(v);
        let mail = self.mail.get(batch.checked_sub(self.first)?)?;
        let i = (v - self.batches.start(batch)) as usize;
        lock(mail).as_mut().map(|mail| work(mail, i))
    }

    /// Allocates the mailboxes of a batch.
    pub(crate) fn open(
        &self,
        budget: &MemoryBudget,
        batch: usize,
        count: MailCount,
    ) -> Result<(), StorageError> {
        let messages = count.messages as usize * size_of::<ReceivedMessage<M>>();
        let scratch = count.largest as usize * (size_of::<ReceivedMessage<M>>() + size_of::<M>());
        let mail = BatchMail {
            ends: budget.buffer(MAILBOXES, self.batches.span(batch) as usize * 8)?,
            messages: budget.buffer(MAILBOXES, messages)?,
            _scratch: budget.lease(MAILBOXES, scratch as u64)?,
            scratch: Vec::with_capacity(count.largest as usize),
        };
        if let Some(place) = self.mail.get(batch.wrapping_sub(self.first)) {
            *lock(place) = Some(mail);
        }
        Ok(())
    }

    /// Counts messages to a vertex that will be put in.
    pub(crate) fn count(&self, v: u64, messages: u64) {
        self.with(v, |mail, i| {
            if let Some(count) = mail.ends.typed_mut::<u64>().get_mut(i) {
                *count += messages;
            }
        });
    }

    /// Ends the counting: each mailbox begins where the one before ends.
    pub(crate) fn begin_fill(&self) {
        for mail in &self.mail {
            let mut from = 0;
            for end in lock(mail)
                .iter_mut()
                .flat_map(|mail| mail.ends.typed_mut::<u64>())
            {
                from += std::mem::replace(end, from);
            }
        }
    }

    /// Puts a message in.
    #[inline]
    pub(crate) fn put(&self, receiver: u64, sender: u64, message: M) {
        self.with(receiver, |mail, i| {
            // An index beyond the batch comes from a damaged cell, which the pass reports.
            let Some(end) = mail.ends.typed_mut::<u64>().get_mut(i) else {
                return;
            };
            let place = mail.messages.typed_mut().get_mut(*end as usize);
            if let Some(place) = place {
                *place = ReceivedMessage { sender, message };
                *end += 1;
            }
        });
    }

    /// Calls `work` with the messages of a vertex, in order of senders.
    ///
    /// The messages of one sender are in the order in which they were put in.
    pub(crate) fn read<T>(&self, v: u64, work: impl FnOnce(&[M]) -> T) -> Option<T> {
        self.with(v, |mail, i| {
            let ends = mail.ends.typed::<u64>();
            let from = i.checked_sub(1).and_then(|before| ends.get(before));
            let from = from.copied().unwrap_or(0) as usize;
            let to = ends.get(i).map_or(from, |end| *end as usize);
            let messages = mail.messages.typed_mut::<ReceivedMessage<M>>();
            let messages = messages.get_mut(from..to).unwrap_or(&mut []);
            messages.sort_by_key(|received| received.sender);
            mail.scratch.clear();
            mail.scratch
                .extend(messages.iter().map(|received| received.message));
            work(&mail.scratch)
        })
    }
}

/// The messages that `send` addressed to the vertices of this rank, for the next superstep.
pub(crate) struct SentMail<M> {
    by_batch: Vec<Mutex<SentToBatch<M>>>,
    /// The first lease that failed.
    failed: Mutex<Option<BudgetError>>,
}

/// The messages to one batch.
struct SentToBatch<M> {
    messages: Vec<AddressedMessage<M>>,
    lease: Option<Lease>,
}

impl<M: Element> SentMail<M> {
    /// Returns no messages, for a graph with a number of batches.
    pub(crate) fn new(batches: usize) -> Self {
        let none = || SentToBatch {
            messages: Vec::new(),
            lease: None,
        };
        SentMail {
            by_batch: (0..batches).map(|_| Mutex::new(none())).collect(),
            failed: Mutex::default(),
        }
    }

    /// Keeps a message to a vertex of a batch.
    pub(crate) fn keep(&self, budget: &MemoryBudget, batch: usize, sent: AddressedMessage<M>) {
        let Some(of_batch) = self.by_batch.get(batch) else {
            return;
        };
        let of_batch = &mut *lock(of_batch);
        let messages = &mut of_batch.messages;
        if messages.len() == messages.capacity() {
            let count = (2 * messages.len()).max(SENT_MIN);
            let bytes = count * size_of::<AddressedMessage<M>>();
            match budget.lease(MAILBOXES, bytes as u64) {
                Ok(lease) => of_batch.lease = Some(lease),
                Err(error) => {
                    lock(&self.failed).get_or_insert(error);
                    return;
                }
            }
            messages.reserve_exact(count - messages.len());
        }
        messages.push(sent);
    }

    /// True if this rank has no message.
    pub(crate) fn is_empty(&self) -> bool {
        let mut batches = self.by_batch.iter();
        batches.all(|of_batch| lock(of_batch).messages.is_empty())
    }

    /// Fails if there was no room for a message.
    pub(crate) fn check(&self) -> Result<(), BudgetError> {
        lock(&self.failed).take().map_or(Ok(()), Err)
    }

    /// Calls `visit` with each message to a batch, in order of senders.
    pub(crate) fn each(&self, batch: usize, visit: impl FnMut(&AddressedMessage<M>)) {
        if let Some(of_batch) = self.by_batch.get(batch) {
            lock(of_batch).messages.iter().for_each(visit);
        }
    }
}
