//! Ranks that are threads of one process.
//!
//! Each rank has an inbox: the lines of frames for it, and its own completions. A frame is copied once, from the sender's memory to the
//! receiver's. The rank that comes second copies it, outside of any lock. No two locks are held at a time.
//!
//! A rank that waits for a completion looks for it some microseconds before it sleeps, if each thread of all ranks has a processor. To
//! fall asleep and be woken takes ten times as long as a small frame.

use std::collections::VecDeque;
use std::hint::spin_loop;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::available_parallelism;
use std::time::Duration;

use graphmill_raw::lock;

use crate::bucket::{BucketLink, LocalLink};
use crate::error::FabricError;
use crate::pending::{Pending, PendingFrames, deliver};
use crate::port::{Fabric, FabricCompletion, FabricOperation};

/// Times that a rank looks for a completion before it sleeps: about 40 us on current processors.
const LOOKS: usize = 1000;

/// One rank of several in one process.
#[derive(Debug)]
pub struct LocalFabric {
    rank: usize,
    world: Arc<LocalWorld>,
}

#[derive(Debug)]
struct LocalWorld {
    places: Vec<LocalRank>,
    /// The first rank that failed.
    ///
    /// It is set before lines end, and read under the lock of the line. So no frame is added to a line that has ended.
    lost: OnceLock<FabricError>,
    /// True if each thread of all ranks has a processor.
    spins: bool,
    /// The newest link for buckets, and its key.
    buckets: Mutex<Option<(u64, LocalLink)>>,
}

/// The state of one rank.
#[derive(Debug, Default)]
struct LocalRank {
    inbox: Mutex<Inbox>,
    event: Condvar,
    /// Completions in the inbox, to look for without its lock.
    complete: AtomicUsize,
}

#[derive(Debug, Default)]
struct Inbox {
    lines: PendingFrames,
    complete: VecDeque<FabricCompletion>,
    in_flight: usize,
    /// Threads that sleep until there is a completion.
    sleepers: usize,
    /// Ranks that have reported to this one that they are done.
    left: Vec<usize>,
}

/// Makes the fabrics of `ranks` ranks of `threads` threads each.
pub fn local(ranks: usize, threads: usize) -> Vec<LocalFabric> {
    let processors = available_parallelism().map_or(1, usize::from);
    let world = Arc::new(LocalWorld {
        places: (0..ranks).map(|_| LocalRank::default()).collect(),
        lost: OnceLock::new(),
        buckets: Mutex::new(None),
        spins: ranks.saturating_mul(threads) <= processors,
    });
    let fabric = |rank| LocalFabric {
        rank,
        world: Arc::clone(&world),
    };
    (0..ranks).map(fabric).collect()
}

impl LocalRank {
    fn inbox(&self) -> MutexGuard<'_, Inbox> {
        lock(&self.inbox)
    }

    fn complete(&self, completion: FabricCompletion) {
        let mut inbox = self.inbox();
        inbox.complete.push_back(completion);
        self.complete.store(inbox.complete.len(), Ordering::Relaxed);
        let sleepers = inbox.sleepers;
        drop(inbox);
        if sleepers > 0 {
            self.event.notify_all();
        }
    }

    fn take(&self, mut inbox: MutexGuard<'_, Inbox>) -> Option<FabricCompletion> {
        let completion = inbox.complete.pop_front()?;
        self.complete.store(inbox.complete.len(), Ordering::Relaxed);
        inbox.in_flight -= 1;
        Some(completion)
    }

    /// Looks for a completion [`LOOKS`] times; returns true if there is one.
    fn look(&self) -> bool {
        (0..LOOKS).any(|_| {
            let is_there = self.complete.load(Ordering::Relaxed) > 0;
            if !is_there {
                spin_loop();
            }
            is_there
        })
    }
}

impl LocalFabric {
    fn place(&self) -> &LocalRank {
        &self.world.places[self.rank]
    }

    /// Returns the error of operations with a rank that has ended; `inbox` is the one with the line.
    fn refusal(&self, inbox: &Inbox, other: usize) -> Option<FabricError> {
        let left = inbox.left.contains(&other);
        let left = || left.then_some(FabricError::Left { rank: other });
        self.world.lost.get().cloned().or_else(left)
    }

    /// Ends the operations that wait on lines of chosen senders in one rank's inbox.
    fn end_lines(&self, of: usize, choose: impl Fn(usize) -> bool, error: &FabricError) {
        let places = &self.world.places;
        let sent = places[of].inbox().lines.drain_sent(&choose);
        let awaited = places[of].inbox().lines.drain_awaited(&choose);
        for (from, frame) in sent {
            places[from].complete(frame.done(Err(error.clone())));
        }
        for memory in awaited {
            places[of].complete(memory.done(Err(error.clone())));
        }
    }
}

impl Fabric for LocalFabric {
    fn bucket_link(
        &self,
        key: u64,
        lanes: &[usize],
        datagrams_max: usize,
    ) -> Option<Box<dyn BucketLink>> {
        let mut newest = lock(&self.world.buckets);
        // An engine that was made before had another key.
        let _ = newest.take_if(|(of, _)| *of != key);
        let (_, link) = newest.get_or_insert_with(|| (key, LocalLink::new(lanes, datagrams_max)));
        Some(Box::new(link.clone()))
    }
    fn rank(&self) -> usize {
        self.rank
    }

    fn ranks(&self) -> usize {
        self.world.places.len()
    }

    fn submit(&self, operation: FabricOperation, token: u64) {
        let places = &self.world.places;
        self.place().inbox().in_flight += 1;
        let checked = operation.check(places.len());
        let added = Pending { operation, token };
        if let Err(error) = checked {
            return self.place().complete(added.done(Err(error)));
        }
        let line @ (from, to, _) = added.operation.line(self.rank);
        let mut inbox = places[to].inbox();
        if let Some(error) = self.refusal(&inbox, added.operation.other()) {
            drop(inbox);
            return self.place().complete(added.done(Err(error)));
        }
        let pair = inbox.lines.add(line, added);
        drop(inbox);
        if let Some((sent, awaited)) = pair {
            let [of_sender, of_receiver] = deliver(from, sent, awaited);
            places[from].complete(of_sender);
            places[to].complete(of_receiver);
        }
    }

    fn poll(&self) -> Option<FabricCompletion> {
        let place = self.place();
        place.take(place.inbox())
    }

    fn wait(&self, limit: Duration) -> Option<FabricCompletion> {
        let place = self.place();
        if self.world.spins && place.look() {
            // Another thread may have taken it.
            if let Some(completion) = self.poll() {
                return Some(completion);
            }
        }
        let mut inbox = place.inbox();
        inbox.sleepers += 1;
        let is_empty = |inbox: &mut Inbox| inbox.complete.is_empty();
        let waited = place.event.wait_timeout_while(inbox, limit, is_empty);
        let (mut inbox, _) = waited.unwrap_or_else(PoisonError::into_inner);
        inbox.sleepers -= 1;
        place.take(inbox)
    }

    fn in_flight(&self) -> usize {
        self.place().inbox().in_flight
    }

    fn lost(&self) -> Option<FabricError> {
        self.world.lost.get().cloned()
    }

    fn fail(&self, cause: &str) {
        let lost = || FabricError::lost(self.rank, cause);
        let lost = self.world.lost.get_or_init(lost);
        for of in 0..self.ranks() {
            self.end_lines(of, |_| true, lost);
        }
    }

    fn leave(&self) {
        let error = FabricError::Left { rank: self.rank };
        for of in 0..self.ranks() {
            self.world.places[of].inbox().left.push(self.rank);
            self.end_lines(of, |from| from == self.rank || of == self.rank, &error);
        }
    }
}

impl Drop for LocalFabric {
    fn drop(&mut self) {
        if !self.place().inbox().left.contains(&self.rank) {
            self.fail("it ended without a word");
        }
    }
}
