//! The queue of a simulated disk: each poll carries out one of its operations, drawn by the seed.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use graphmill_raw::uring::Action;
use graphmill_raw::{SplitMix64, lock};

use super::faults::{FaultKind, On, error_of};
use super::world::{SimFile, World};
use crate::disk::port::{Completion, Operation, Queue};
use crate::disk::transfer::{Next, Transfer};

#[derive(Debug)]
pub(super) struct SimQueue {
    world: Arc<World>,
    random: SplitMix64,
    depth: usize,
    running: Vec<Transfer<SimFile>>,
    backlog: VecDeque<Transfer<SimFile>>,
    ready: VecDeque<Completion>,
}

impl SimQueue {
    /// Makes a queue that carries out `depth` operations at a time.
    pub(super) fn new(world: Arc<World>, random: SplitMix64, depth: usize) -> Self {
        SimQueue {
            world,
            random,
            depth: depth.max(1),
            running: Vec::new(),
            backlog: VecDeque::new(),
            ready: VecDeque::new(),
        }
    }

    /// Carries out a step of one running operation.
    fn step(&mut self) {
        if self.running.is_empty() {
            return;
        }
        let chosen = self.random.below(self.running.len() as u64) as usize;
        let mut transfer = self.running.swap_remove(chosen);
        let step = self.world.step(&mut transfer);
        match transfer.advance(step) {
            Next::Again(rest) => self.running.push(rest),
            Next::Complete(completion) => {
                self.ready.push_back(completion);
                self.running.extend(self.backlog.pop_front());
            }
        }
    }
}

impl Queue for SimQueue {
    fn submit(&mut self, operation: Operation, token: u64) {
        match Transfer::begin(operation, token) {
            Next::Again(transfer) if self.running.len() < self.depth => self.running.push(transfer),
            Next::Again(transfer) => self.backlog.push_back(transfer),
            Next::Complete(completion) => self.ready.push_back(completion),
        }
    }

    fn poll(&mut self) -> Option<Completion> {
        // Often there is nothing yet, as on a real disk.
        if self.ready.is_empty() && self.random.below(2) == 0 {
            self.step();
        }
        self.ready.pop_front()
    }

    fn block(&mut self) {
        while self.ready.is_empty() && !self.running.is_empty() {
            self.step();
        }
    }

    fn in_flight(&self) -> usize {
        self.ready.len() + self.running.len() + self.backlog.len()
    }
}

impl World {
    /// Does one step of a transfer, with its fault.
    fn step(&self, transfer: &mut Transfer<SimFile>) -> io::Result<usize> {
        let action = transfer.action;
        let on = match action {
            Action::Read => On::Read,
            Action::Write => On::Write,
            Action::Sync => On::Sync,
        };
        let fault = self.fate(on);
        let file = Arc::clone(&transfer.file);
        let mut held = lock(&file.content);
        if let Some(error) = fault.and_then(error_of) {
            if (fault, action) == (Some(FaultKind::PowerCut), Action::Write) {
                let start = usize::try_from(transfer.offset()).map_err(io::Error::other)?;
                held.written.push((start, transfer.bytes().to_vec()));
            }
            if action == Action::Sync {
                held.fail_sync();
            }
            return Err(error);
        }
        let start = usize::try_from(transfer.offset()).map_err(io::Error::other)?;
        let mut length = transfer.range().len();
        if action == Action::Read {
            length = length.min(held.bytes.len().saturating_sub(start));
        }
        if fault == Some(FaultKind::Short) && length > 1 {
            length = 1 + self.draw(length as u64 - 1) as usize;
        }
        let bytes = &mut transfer.bytes()[..length];
        match action {
            Action::Read => {
                let there = held.bytes.get(start..start + length).unwrap_or_default();
                bytes[..there.len()].copy_from_slice(there);
                self.flip(fault, bytes);
            }
            Action::Write => {
                let mut written = bytes.to_vec();
                self.flip(fault, &mut written);
                held.write(start, &written);
            }
            Action::Sync => held.sync(),
        }
        Ok(length)
    }
}
