//! The mailboxes of a push version: messages from one superstep to the next.
//!
//! All workers share one set of mailboxes, by the hybrid combiner. A worker that is alone puts messages in without locks.

use graphmill_raw::{Element, Mailboxes};
use graphmill_storage::Lease;

/// Mailboxes of all vertices, which all workers share.
pub(crate) struct SharedMailboxes<M> {
    pub(crate) boxes: Mailboxes<M>,
    /// There is one worker.
    pub(crate) alone: bool,
    pub(crate) _leases: [Lease; 2],
}

impl<M: Element> SharedMailboxes<M> {
    /// Puts a message into the mailbox of a vertex; returns whether it was the first there.
    #[inline(always)]
    pub(crate) fn put(&self, to: usize, message: M, combine: impl Fn(&mut M, M)) -> bool {
        match self.alone {
            true => self.boxes.put_alone(to, message, combine),
            false => self.boxes.put(to, message, combine),
        }
    }
}
