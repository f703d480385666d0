//! The mailboxes of a push version: messages from one superstep to the next.
//!
//! All workers share one set of mailboxes, by the hybrid combiner. Or, where that is asked for, each has mailboxes of its own, and
//! a receiver combines the messages in all of them: processors exchange nothing while messages are put in.

use graphmill_raw::{Element, Mailboxes};
use graphmill_storage::Lease;

/// Mailboxes of all vertices: one set, or one a worker.
pub(crate) struct MailboxSets<M> {
    pub(crate) sets: Vec<Mailboxes<M>>,
    pub(crate) workers: usize,
    pub(crate) leases: Vec<[Lease; 2]>,
}

impl<M: Element> MailboxSets<M> {
    /// Adds sets to these.
    pub(crate) fn add(&mut self, more: MailboxSets<M>) {
        self.sets.extend(more.sets);
        self.leases.extend(more.leases);
    }

    /// True if each set is put into by one worker.
    fn own(&self) -> bool {
        self.sets.len() == self.workers
    }

    fn of(&self, worker: usize) -> Option<&Mailboxes<M>> {
        self.sets.get(if self.own() { worker } else { 0 })
    }

    /// Puts a message into the mailbox of a vertex, as that worker; whether it was the first there.
    #[inline(always)]
    pub(crate) fn put(
        &self,
        worker: usize,
        to: usize,
        message: M,
        combine: impl Fn(&mut M, M),
    ) -> bool {
        match self.of(worker) {
            Some(set) if self.own() => set.put_alone(to, message, combine),
            Some(set) => set.put(to, message, combine),
            None => false,
        }
    }

    /// Puts a message into the mailbox of a vertex while no worker puts any in as itself.
    #[inline(always)]
    pub(crate) fn put_shared(&self, to: usize, message: M, combine: impl Fn(&mut M, M)) {
        if let Some(set) = self.sets.first() {
            set.put(to, message, combine);
        }
    }

    /// Takes the message out of the mailbox of a vertex.
    #[inline(always)]
    pub(crate) fn take(&self, v: usize, combine: impl Fn(&mut M, M)) -> Option<M> {
        all_of(self.sets.iter().filter_map(|set| set.take(v)), combine)
    }

    /// Returns the message in the mailbox of a vertex and leaves it there.
    pub(crate) fn peek(&self, v: usize, combine: impl Fn(&mut M, M)) -> Option<M> {
        all_of(self.sets.iter().filter_map(|set| set.peek(v)), combine)
    }

    /// Has the mailbox of a vertex, as that worker sees it, on its way into the cache.
    #[inline(always)]
    pub(crate) fn prefetch(&self, worker: usize, v: usize) {
        if let Some(set) = self.of(worker) {
            set.prefetch(v);
        }
    }
}

/// Returns the combination of some messages.
#[inline(always)]
fn all_of<M>(messages: impl Iterator<Item = M>, combine: impl Fn(&mut M, M)) -> Option<M> {
    messages.reduce(|mut all, message| {
        combine(&mut all, message);
        all
    })
}
