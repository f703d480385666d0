//! One operation in progress: its remainder after each step, and when it is complete.
//!
//! The queues of all disks share this, so that they check, continue and report alike. Invariant: `done` is a multiple of the grain, and
//! `range.start + done..range.end` lies in the buffer.

use std::any::Any;
use std::io;
use std::ops::Range;
use std::sync::Arc;

use graphmill_raw::uring::Action;
use rustix::process::{Resource, getrlimit};

use super::port::{Completion, DiskFile, FileHandle, GRAIN_BYTES, Operation};
use crate::error::StorageError;
use crate::memory_budget::Buffer;

/// An operation on a file of type `F`.
#[derive(Debug)]
pub(super) struct Transfer<F> {
    pub(super) action: Action,
    pub(super) file: Arc<F>,
    pub(super) buffer: Option<Buffer>,
    offset: u64,
    range: Range<usize>,
    done: usize,
    /// Steps in a row that moved bytes, but no whole grain.
    stalls: u32,
    token: u64,
}

/// Number of stalls after which a transfer fails.
///
/// Most short steps have a cause that the next step reports, so one stall is no failure yet.
const STALLS_MAX: u32 = 3;

/// The state after a step.
#[derive(Debug)]
pub(super) enum Next<F> {
    /// There is a rest, for another step.
    Again(Transfer<F>),
    /// The operation is complete.
    Complete(Completion),
}

impl<F: DiskFile> Transfer<F> {
    /// Checks an operation; an invalid one, or one of no bytes, is complete at once.
    pub(super) fn begin(operation: Operation, token: u64) -> Next<F> {
        let (action, handle, offset, buffer, range) = match operation {
            Operation::Read {
                file,
                offset,
                buffer,
                range,
            } => (Action::Read, file, offset, Some(buffer), range),
            Operation::Write {
                file,
                offset,
                buffer,
                range,
            } => (Action::Write, file, offset, Some(buffer), range),
            Operation::Sync { file } => (Action::Sync, file, 0, None, 0..0),
        };
        let checked = own(&handle).and_then(|file| {
            check(&*handle, action, offset, buffer.as_ref(), &range).map(|()| file)
        });
        match checked {
            Ok(file) if action == Action::Sync || !range.is_empty() => Next::Again(Transfer {
                action,
                file,
                buffer,
                offset,
                range,
                done: 0,
                stalls: 0,
                token,
            }),
            checked => Next::Complete(Completion {
                token,
                buffer,
                result: checked.map(|_| 0),
            }),
        }
    }

    /// Returns the offset of the rest in the file.
    pub(super) fn offset(&self) -> u64 {
        self.offset + self.done as u64
    }

    /// Returns the range of the rest in the buffer.
    pub(super) fn range(&self) -> Range<usize> {
        self.range.start + self.done..self.range.end
    }

    /// Returns the bytes of the rest.
    pub(super) fn bytes(&mut self) -> &mut [u8] {
        let range = self.range();
        let bytes = self.buffer.as_mut().and_then(|all| all.get_mut(range));
        bytes.unwrap_or_default()
    }

    /// Records the outcome of a step over the rest.
    pub(super) fn advance(mut self, step: io::Result<usize>) -> Next<F> {
        let moved = match step {
            Ok(moved) => moved,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Next::Again(self),
            Err(error) => return Next::Complete(self.fail(error)),
        };
        let reached = self.done + moved;
        // Direct I/O continues at a multiple of the grain and moves the bytes after it again.
        let whole = reached / GRAIN_BYTES * GRAIN_BYTES;
        let complete = match self.action {
            Action::Sync => true,
            Action::Write => reached == self.range.len(),
            Action::Read if reached == self.range.len() || moved == 0 => true,
            Action::Read if reached == whole => false,
            Action::Read => match self.file.len() {
                Ok(len) => self.offset + reached as u64 >= len,
                Err(error) => return Next::Complete(self.complete(Err(error))),
            },
        };
        if complete {
            return Next::Complete(self.complete(Ok(reached)));
        }
        self.stalls = u32::from(whole == self.done) * (self.stalls + 1);
        if self.stalls > STALLS_MAX {
            let error = self.stalled(moved);
            return Next::Complete(self.fail(error));
        }
        self.done = whole;
        Next::Again(self)
    }

    /// Returns the error of repeated steps that each move only `moved` bytes.
    fn stalled(&self, moved: usize) -> io::Error {
        // At the limit of file sizes the system writes the bytes below the limit and refuses the next one. Direct I/O never submits that
        // byte alone, so it sees no refusal.
        let limit = getrlimit(Resource::Fsize).current;
        let is_limit = limit.is_some_and(|limit| self.offset() + moved as u64 >= limit);
        match self.action == Action::Write && is_limit {
            true => io::Error::from_raw_os_error(libc::EFBIG),
            false => io::Error::other(format!(
                "the system moved only {moved} bytes, several times"
            )),
        }
    }

    /// Ends the operation with an error of the system.
    pub(super) fn fail(self, source: io::Error) -> Completion {
        let error = StorageError::Transfer {
            action: name(self.action),
            path: self.file.path().to_path_buf(),
            offset: self.offset(),
            bytes: self.range().len() as u64,
            source,
        };
        self.complete(Err(error))
    }

    fn complete(self, result: Result<usize, StorageError>) -> Completion {
        Completion {
            token: self.token,
            buffer: self.buffer,
            result,
        }
    }
}

/// Returns the file as the type of the disk that opened it.
pub(super) fn own<F: DiskFile>(handle: &FileHandle) -> Result<Arc<F>, StorageError> {
    let any: Arc<dyn Any + Send + Sync> = handle.clone();
    any.downcast().map_err(|_| StorageError::ForeignFile {
        path: handle.path().to_path_buf(),
    })
}

fn check(
    file: &dyn DiskFile,
    action: Action,
    offset: u64,
    buffer: Option<&Buffer>,
    range: &Range<usize>,
) -> Result<(), StorageError> {
    let held = buffer.map_or(0, |buffer| buffer.len());
    let grain = GRAIN_BYTES as u64;
    let numbers = [offset, range.start as u64, range.len() as u64];
    let end = offset.checked_add(range.len() as u64);
    let sound = range.start <= range.end
        && range.end <= held
        && numbers.iter().all(|n| n.is_multiple_of(grain))
        && end.is_some_and(|end| end <= i64::MAX as u64);
    if sound {
        return Ok(());
    }
    Err(StorageError::Misaligned {
        action: name(action),
        path: file.path().to_path_buf(),
        offset,
        start: range.start,
        end: range.end,
        held,
    })
}

fn name(action: Action) -> &'static str {
    match action {
        Action::Read => "read",
        Action::Write => "write",
        Action::Sync => "sync",
    }
}
