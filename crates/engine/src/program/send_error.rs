//! The illegal sends of a vertex program, which end its run after the superstep.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use graphmill_raw::lock;

use crate::error::EngineError;

/// An illegal send of a program.
#[derive(Default)]
pub(crate) struct SendError {
    /// It sent a message and had not said that it sends any.
    pub(crate) undeclared: AtomicBool,
    /// The least index that it sent a message to and that is no vertex's.
    pub(crate) unknown_receiver: Mutex<Option<u64>>,
    /// It read the neighbours of a vertex and had not said so.
    undeclared_neighbours: AtomicBool,
    /// The least vertex with a message that `IDENTITY` does not suit, and the error.
    bad_message: Mutex<Option<(u64, EngineError)>>,
}

impl SendError {
    /// Notes a message of a vertex that `IDENTITY` does not suit.
    #[cold]
    #[inline(never)]
    pub(crate) fn note_bad_message(&self, vertex: u64, error: impl FnOnce() -> EngineError) {
        let mut least = lock(&self.bad_message);
        if least.as_ref().is_none_or(|(known, _)| vertex < *known) {
            *least = Some((vertex, error()));
        }
    }

    /// Notes that a program reads neighbours and had not said so.
    #[cold]
    pub(crate) fn note_undeclared_neighbours(&self) {
        self.undeclared_neighbours.store(true, Ordering::Relaxed);
    }

    /// Fails if a vertex of this rank made an illegal send.
    ///
    /// # Errors
    /// It did, and the error names it.
    pub(crate) fn check(&self, vertices: u64) -> Result<(), EngineError> {
        if self.undeclared.load(Ordering::Relaxed) {
            return Err(EngineError::UndeclaredSends);
        }
        if self.undeclared_neighbours.load(Ordering::Relaxed) {
            return Err(EngineError::UndeclaredNeighbours);
        }
        if let Some(index) = *lock(&self.unknown_receiver) {
            return Err(EngineError::NoSuchIndex { index, vertices });
        }
        match lock(&self.bad_message).take() {
            None => Ok(()),
            Some((_, error)) => Err(error),
        }
    }
}
