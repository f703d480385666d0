//! The box of one worker for addressed messages.

use graphmill_raw::Element;

/// Slots of the table of recent messages, which is a power of two.
const RECENT: usize = 1 << 10;

/// Takes the messages of a full box, each with the index of the vertex it is for.
pub(crate) type FullBox<'s, M> = &'s mut dyn FnMut(&[u64], &[M]);

/// Combines a later message to a vertex with an earlier one.
pub(crate) type Combine<'s, M> = &'s (dyn Fn(&mut M, M) + Sync);

/// The memory of the box of one worker, which no message makes grow.
pub(crate) struct OutboxMemory<M> {
    to: Vec<u64>,
    messages: Vec<M>,
    /// Where in the box a recent message is, by the index of its receiver modulo the length.
    recent: Vec<u32>,
}

impl<M> OutboxMemory<M> {
    /// Allocates a box for `capacity` messages.
    pub(crate) fn new(capacity: usize, combines: bool) -> Self {
        OutboxMemory {
            to: Vec::with_capacity(capacity),
            messages: Vec::with_capacity(capacity),
            recent: vec![0; if combines { RECENT } else { 0 }],
        }
    }

    /// Returns the bytes of a box for `capacity` messages of `message` bytes.
    pub(crate) fn bytes(message: usize, capacity: usize) -> usize {
        capacity * (size_of::<u64>() + message) + RECENT * size_of::<u32>()
    }
}

/// Where vertices put what they send: the box of one worker.
pub struct Outbox<'s, M: Element> {
    full: FullBox<'s, M>,
    memory: &'s mut OutboxMemory<M>,
    /// Messages that the box holds.
    capacity: usize,
    combine: Option<Combine<'s, M>>,
    /// Messages sent, those included that were combined with others.
    pub(crate) sent: u64,
}

impl<M: Element> std::fmt::Debug for Outbox<'_, M> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Outbox").finish_non_exhaustive()
    }
}

impl<'s, M: Element> Outbox<'s, M> {
    /// Returns an empty box for `capacity` messages, which hands them to `full`.
    pub(crate) fn new(
        full: FullBox<'s, M>,
        memory: &'s mut OutboxMemory<M>,
        capacity: usize,
        combine: Option<Combine<'s, M>>,
    ) -> Self {
        Outbox {
            full,
            memory,
            capacity,
            combine,
            sent: 0,
        }
    }

    /// Sends a message to the vertex of that index; where there is none the pass ends with an error.
    #[inline]
    pub fn send(&mut self, to: u64, message: M) {
        self.sent += 1;
        if let Some(combine) = self.combine
            && self.is_combined(combine, to, message)
        {
            return;
        }
        if self.memory.to.len() == self.capacity {
            self.empty();
        }
        self.memory.to.push(to);
        self.memory.messages.push(message);
    }

    /// Combines the message with a recent one to the same vertex; returns false if the box has none.
    ///
    /// The message is then the next one of the box, and the recent one.
    fn is_combined(&mut self, combine: Combine<'s, M>, to: u64, message: M) -> bool {
        let OutboxMemory {
            to: receivers,
            messages,
            recent,
        } = &mut *self.memory;
        let Some(at) = recent.get_mut(to as usize % RECENT) else {
            return false;
        };
        let place = *at as usize;
        if receivers.get(place) == Some(&to) {
            combine(&mut messages[place], message);
            return true;
        }
        let next = receivers.len();
        *at = if next == self.capacity {
            0
        } else {
            next as u32
        };
        false
    }

    /// Empties the box.
    #[cold]
    pub(crate) fn empty(&mut self) {
        (self.full)(&self.memory.to, &self.memory.messages);
        self.memory.to.clear();
        self.memory.messages.clear();
    }
}
