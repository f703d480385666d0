//! The queue of a disk with files in memory.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use graphmill_raw::lock;
use graphmill_raw::uring::Action;

use super::content::MemoryFile;
use crate::disk::port::{Completion, Disk, Operation, Queue};
use crate::disk::transfer::{Next, Transfer, own};

/// Moves bytes of files in memory when they are submitted; other files have a queue of their own disk.
#[derive(Debug)]
pub(super) struct MemoryQueue {
    below: Arc<dyn Disk>,
    depth: usize,
    /// Made for the first file on the disk below.
    queue: Option<Box<dyn Queue>>,
    ready: VecDeque<Completion>,
}

impl MemoryQueue {
    /// Makes a queue whose operations on the disk below are at most `depth` at a time.
    pub(super) fn new(below: Arc<dyn Disk>, depth: usize) -> Self {
        MemoryQueue {
            below,
            depth,
            queue: None,
            ready: VecDeque::new(),
        }
    }

    /// Carries out an operation on a file in memory.
    fn work(&mut self, operation: Operation, token: u64) {
        let mut next = Transfer::<MemoryFile>::begin(operation, token);
        loop {
            match next {
                Next::Complete(completion) => return self.ready.push_back(completion),
                Next::Again(mut transfer) => {
                    let step = step(&mut transfer);
                    next = transfer.advance(step);
                }
            }
        }
    }
}

/// Moves all bytes of a transfer.
fn step(transfer: &mut Transfer<MemoryFile>) -> io::Result<usize> {
    let file = Arc::clone(&transfer.file);
    let start = usize::try_from(transfer.offset()).map_err(io::Error::other)?;
    let mut content = lock(&file.content);
    match transfer.action {
        Action::Read => Ok(content.read(start, transfer.bytes())),
        Action::Write => {
            let bytes = transfer.bytes();
            content
                .write(start, bytes, &file.budget)
                .map_err(io::Error::other)?;
            Ok(bytes.len())
        }
        Action::Sync => Ok(0),
    }
}

impl Queue for MemoryQueue {
    fn submit(&mut self, operation: Operation, token: u64) {
        let (Operation::Read { file, .. }
        | Operation::Write { file, .. }
        | Operation::Sync { file }) = &operation;
        if own::<MemoryFile>(file).is_ok() {
            return self.work(operation, token);
        }
        let queue = match self.queue.take() {
            Some(queue) => Ok(queue),
            None => self.below.queue(self.depth),
        };
        match queue {
            Ok(queue) => self.queue.insert(queue).submit(operation, token),
            Err(error) => {
                let buffer = match operation {
                    Operation::Read { buffer, .. } | Operation::Write { buffer, .. } => {
                        Some(buffer)
                    }
                    Operation::Sync { .. } => None,
                };
                self.ready.push_back(Completion {
                    token,
                    buffer,
                    result: Err(error),
                });
            }
        }
    }

    fn poll(&mut self) -> Option<Completion> {
        let ready = self.ready.pop_front();
        ready.or_else(|| self.queue.as_mut()?.poll())
    }

    fn block(&mut self) {
        if self.ready.is_empty()
            && let Some(queue) = &mut self.queue
        {
            queue.block();
        }
    }

    fn in_flight(&self) -> usize {
        self.ready.len() + self.queue.as_ref().map_or(0, |queue| queue.in_flight())
    }
}
