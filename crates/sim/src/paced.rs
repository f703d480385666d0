//! A rank whose work takes time on the clock of its network, so that frames move while it works.
//!
//! An operation on its disk takes as long as any other. A frame that it sends or receives takes time for each byte.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use graphmill::advanced::{Clock, Fabric};
use graphmill_fabric::{FabricCompletion, FabricError, FabricOperation, SimFabric};
use graphmill_storage::SimDisk;

/// Time of an operation on a disk.
const OPERATION: Duration = Duration::from_millis(1);
/// Time of a byte of a frame.
const BYTE: Duration = Duration::from_nanos(100);

/// The clock and the network of one rank, which has a disk of its own.
#[derive(Debug)]
pub(crate) struct PacedRank {
    fabric: SimFabric,
    disk: SimDisk,
    /// The operations on the disk whose time has passed.
    paid: AtomicU64,
    /// Completions that arrived while the rank worked.
    early: Mutex<VecDeque<FabricCompletion>>,
    /// The time at which it left the others; it takes no more turns.
    left_at: OnceLock<Duration>,
}

impl PacedRank {
    pub(crate) fn new(fabric: SimFabric, disk: SimDisk) -> PacedRank {
        PacedRank {
            fabric,
            paid: AtomicU64::new(disk.operations()),
            disk,
            early: Mutex::default(),
            left_at: OnceLock::new(),
        }
    }

    /// Works for some time, in which frames arrive.
    fn work(&self, time: Duration) {
        if self.left_at.get().is_some() {
            return;
        }
        let until = self.fabric.now() + time;
        loop {
            let left = until.saturating_sub(self.fabric.now());
            if left.is_zero() {
                break;
            }
            let done = self.fabric.wait(left);
            self.early().extend(done);
        }
    }

    /// Works for the time of the operations on the disk since the last call.
    fn pay(&self) {
        let operations = self.disk.operations();
        let new = operations - self.paid.swap(operations, Ordering::Relaxed);
        self.work(OPERATION * new as u32);
    }

    /// Takes a completion, once the rank has worked for its bytes.
    fn take(&self, done: FabricCompletion) -> FabricCompletion {
        self.work(BYTE * done.result.as_ref().copied().unwrap_or(0) as u32);
        done
    }

    fn early(&self) -> MutexGuard<'_, VecDeque<FabricCompletion>> {
        self.early.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Clock for PacedRank {
    fn now(&self) -> Duration {
        self.pay();
        match self.left_at.get() {
            Some(time) => *time,
            None => self.fabric.now(),
        }
    }

    fn wait(&self, time: Duration) {
        self.work(time);
    }
}

impl Fabric for PacedRank {
    fn rank(&self) -> usize {
        self.fabric.rank()
    }
    fn ranks(&self) -> usize {
        self.fabric.ranks()
    }
    fn submit(&self, operation: FabricOperation, token: u64) {
        self.pay();
        self.fabric.submit(operation, token);
    }
    fn poll(&self) -> Option<FabricCompletion> {
        self.pay();
        let early = self.early().pop_front();
        let done = early.or_else(|| self.fabric.poll());
        done.map(|done| self.take(done))
    }
    fn wait(&self, limit: Duration) -> Option<FabricCompletion> {
        self.pay();
        let early = self.early().pop_front();
        let done = early.or_else(|| self.fabric.wait(limit));
        done.map(|done| self.take(done))
    }
    fn in_flight(&self) -> usize {
        self.fabric.in_flight() + self.early().len()
    }
    fn lost(&self) -> Option<FabricError> {
        self.fabric.lost()
    }
    fn fail(&self, cause: &str) {
        self.fabric.fail(cause);
    }
    fn leave(&self) {
        self.left_at.get_or_init(|| self.fabric.now());
        self.fabric.leave();
    }
}
