//! The queue over io_uring: one ring for each queue.
//!
//! 1. `submit` puts an operation in `backlog`. `fill` moves as many into the ring as the depth allows, and submits them to the kernel.
//! 2. `reap` takes completions out of the ring. A short one goes back to the front of the backlog, others to `ready`.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use graphmill_raw::uring::{Request, Ring};

use super::port::{Completion, Operation, Queue};
use super::stall;
use super::system_file::SystemFile;
use super::transfer::{Next, Transfer};
use crate::error::StorageError;
use crate::memory_budget::{Buffer, Lease};

/// A queue with a ring of its own.
#[derive(Debug)]
pub(super) struct UringQueue {
    ring: Ring<Tag>,
    depth: usize,
    backlog: VecDeque<Transfer<SystemFile>>,
    ready: VecDeque<Completion>,
    /// The error number of the ring, after which every operation fails.
    broken: Option<i32>,
}

/// A transfer in the ring, without its memory.
#[derive(Debug)]
struct Tag {
    transfer: Transfer<SystemFile>,
    lease: Option<Lease>,
}

impl UringQueue {
    pub(super) fn new(depth: usize) -> Result<Self, StorageError> {
        let depth = depth.max(1);
        let ring = Ring::new(depth).map_err(|source| StorageError::NoUring { source })?;
        Ok(UringQueue {
            ring,
            depth,
            backlog: VecDeque::new(),
            ready: VecDeque::new(),
            broken: None,
        })
    }

    fn fill(&mut self) {
        while self.broken.is_none() && self.ring.in_flight() < self.depth {
            let Some(mut transfer) = self.backlog.pop_front() else {
                break;
            };
            let (memory, lease) = transfer.buffer.take().map(Buffer::into_parts).unzip();
            let request = Request {
                action: transfer.action,
                file: Arc::clone(&transfer.file.descriptor),
                offset: transfer.offset(),
                buffer: memory,
                range: transfer.range(),
                tag: Tag { transfer, lease },
            };
            if let Err(request) = self.ring.push(request) {
                self.backlog.push_front(whole(request));
                break;
            }
        }
        let submitted = self.ring.submit();
        self.survive(submitted);
    }

    fn reap(&mut self) {
        while let Some((request, mut result)) = self.ring.completed() {
            // The submitting thread ended (ECANCELED), or the kernel refused for now (EAGAIN): neither moved a byte.
            if let Err(error) = &mut result
                && matches!(error.raw_os_error(), Some(libc::ECANCELED | libc::EAGAIN))
            {
                *error = io::ErrorKind::Interrupted.into();
            }
            match whole(request).advance(result) {
                Next::Again(transfer) => self.backlog.push_front(transfer),
                Next::Complete(completion) => self.ready.push_back(completion),
            }
        }
        self.fill();
    }

    /// Keeps the first error of the ring itself, with which every later operation fails.
    fn survive(&mut self, outcome: io::Result<()>) {
        if let Err(error) = outcome {
            // An abandoned ring fails again: the first error is the reason.
            self.broken
                .get_or_insert(error.raw_os_error().unwrap_or(libc::EIO));
        }
        if let Some(number) = self.broken {
            let lost = self.ring.abandon().into_iter().map(whole);
            for transfer in lost.chain(self.backlog.drain(..)) {
                self.ready
                    .push_back(transfer.fail(io::Error::from_raw_os_error(number)));
            }
        }
    }
}

/// Returns the transfer with its memory.
fn whole(request: Request<Tag>) -> Transfer<SystemFile> {
    let Tag {
        mut transfer,
        lease,
    } = request.tag;
    transfer.buffer = request
        .buffer
        .zip(lease)
        .map(|(memory, lease)| Buffer::from_parts(memory, lease));
    transfer
}

impl Queue for UringQueue {
    fn submit(&mut self, operation: Operation, token: u64) {
        match Transfer::begin(operation, token) {
            Next::Again(transfer) => {
                self.backlog.push_back(transfer);
                self.fill();
            }
            Next::Complete(completion) => self.ready.push_back(completion),
        }
    }

    fn poll(&mut self) -> Option<Completion> {
        if self.ready.is_empty() {
            self.reap();
        }
        self.ready.pop_front()
    }

    fn block(&mut self) {
        self.reap();
        while self.ready.is_empty() && self.in_flight() > 0 {
            let waited = self.ring.wait_at_most(stall::PATIENCE);
            match waited {
                Ok(false) => stall::tell(self.ring.in_flight()),
                Ok(true) => stall::end(),
                Err(_) => {}
            }
            self.survive(waited.map(drop));
            self.reap();
        }
    }

    fn in_flight(&self) -> usize {
        self.ready.len() + self.ring.in_flight() + self.backlog.len()
    }
}
