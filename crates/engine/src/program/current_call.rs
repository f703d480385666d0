//! The call of a program's function that a thread is in, so that a panic of the function is reported with its vertex.
//!
//! A [`CurrentCall`] lives on the stack around a loop that calls the program. The loop notes where it is before each call. Only a
//! panic reads the note: without one the compiler keeps it in registers, or drops it if the function cannot panic.

use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::thread;

use crate::error::EngineError;

thread_local! {
    /// The call that panicked last on this thread.
    static PANICKED: Cell<Option<CallSite>> = const { Cell::new(None) };
}

/// The subject of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallSite {
    Vertex(u64),
    /// From the sender to the receiver of a message.
    Edge(u64, u64),
}

impl CallSite {
    /// The vertex, or the sender and the receiver.
    fn vertices(self) -> Vec<u64> {
        match self {
            CallSite::Vertex(v) => vec![v],
            CallSite::Edge(from, to) => vec![from, to],
        }
    }
}

/// The calls of a loop.
pub(crate) struct CurrentCall(Cell<CallSite>);

impl CurrentCall {
    /// Begins a loop.
    #[inline(always)]
    pub(crate) fn new() -> Self {
        CurrentCall(Cell::new(CallSite::Vertex(0)))
    }
    /// The next call is for a vertex.
    #[inline(always)]
    pub(crate) fn at(&self, v: u64) {
        self.0.set(CallSite::Vertex(v));
    }
    /// The next calls are for an edge.
    #[inline(always)]
    pub(crate) fn on(&self, from: u64, to: u64) {
        self.0.set(CallSite::Edge(from, to));
    }
}

impl Drop for CurrentCall {
    #[inline(always)]
    fn drop(&mut self) {
        if thread::panicking() {
            PANICKED.set(Some(self.0.get()));
        }
    }
}

/// Runs work that calls a program; a panic of the program becomes an error.
///
/// A panic outside of a program's functions unwinds further.
pub(crate) fn catch<T>(work: impl FnOnce() -> Result<T, EngineError>) -> Result<T, EngineError> {
    PANICKED.set(None);
    // After an error the engine refuses all passes, so no pass sees the state that the panic left.
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| match PANICKED.take() {
        Some(at) => Err(panicked(at.vertices(), &*panic)),
        None => resume_unwind(panic),
    })
}

/// Makes one call of a program for all vertices of a level.
///
/// A panic of the program becomes an error that names `vertex`, one of them.
pub(crate) fn catch_at<T>(
    vertex: impl FnOnce() -> Option<u64>,
    call: impl FnOnce() -> T,
) -> Result<T, EngineError> {
    let outcome = catch_unwind(AssertUnwindSafe(call));
    outcome.map_err(|panic| panicked(vertex().into_iter().collect(), &*panic))
}

fn panicked(vertices: Vec<u64>, panic: &(dyn Any + Send)) -> EngineError {
    EngineError::ProgramPanicked {
        vertices,
        ids: Vec::new(),
        message: message_of(panic),
    }
}

fn message_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(ToString::to_string);
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "a value that is no text".into())
}
