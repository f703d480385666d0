//! The box of one worker for addressed messages.

use graphmill_raw::Element;

/// A receiver of the messages of a full box.
pub(crate) trait FullBox<M> {
    /// Takes messages, each with the index of the vertex it is for.
    fn take(&mut self, to: &[u64], messages: &[M]);
}

/// Where vertices put what they send: the box of one worker.
pub struct Outbox<'s, M: Element> {
    full: &'s mut dyn FullBox<M>,
    to: Vec<u64>,
    messages: Vec<M>,
    /// Messages that the box holds.
    capacity: usize,
}

impl<M: Element> std::fmt::Debug for Outbox<'_, M> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sink").finish_non_exhaustive()
    }
}

impl<'s, M: Element> Outbox<'s, M> {
    /// Returns an empty box for `capacity` messages, which hands them to `full`.
    pub(crate) fn new(full: &'s mut dyn FullBox<M>, capacity: usize) -> Self {
        Outbox {
            full,
            to: Vec::new(),
            messages: Vec::new(),
            capacity,
        }
    }

    /// Sends a message to the vertex of that index; where there is none the pass ends with an error.
    #[inline]
    pub fn send(&mut self, to: u64, message: M) {
        if self.to.len() == self.capacity {
            self.empty();
        }
        self.to.push(to);
        self.messages.push(message);
    }

    /// Empties the box.
    #[cold]
    pub(crate) fn empty(&mut self) {
        self.full.take(&self.to, &self.messages);
        self.to.clear();
        self.messages.clear();
    }
}
