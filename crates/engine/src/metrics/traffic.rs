//! Bytes that a pass moves between processors and memory, by kind of data: read or written, in order or at random; and
//! the delay for those on a slow tier.
//!
//! They are counted batch by batch and block by block, from what a phase does with each, not access by access: `docs/internals/tiers.md` has the
//! formulas. Each worker counts for itself.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use graphmill_storage::{CancelToken, Clock, DataKind, Tiers};
use serde::Serialize;

use crate::metrics::tier_model::TierModel;

/// How bytes lie that are read or written one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// Side by side, in ascending order.
    Sequential,
    /// Anywhere.
    Random,
}

impl Access {
    /// Returns `Sequential` if all items are visited, `SplitMix64` if some are.
    pub(crate) fn of(all: bool) -> Self {
        match all {
            true => Access::Sequential,
            false => Access::Random,
        }
    }
}

/// Bytes of one kind of data that a pass moved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct BytesMoved {
    /// Read in order.
    pub read_sequential: u64,
    /// Read at random.
    pub read_random: u64,
    /// Written in order.
    pub written_sequential: u64,
    /// Written at random.
    pub written_random: u64,
}

impl BytesMoved {
    /// All that was read.
    #[must_use]
    pub fn read(&self) -> u64 {
        self.read_sequential + self.read_random
    }
    /// All that was written.
    #[must_use]
    pub fn written(&self) -> u64 {
        self.written_sequential + self.written_random
    }
}

/// Bytes that a pass moved in memory, by kind of data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TierBytes {
    /// Rows, degrees, ranks of ids.
    pub vertices: BytesMoved,
    /// Messages, accumulators, mailboxes.
    pub messages: BytesMoved,
    /// Indices of cells, where lists begin.
    pub index: BytesMoved,
    /// Cells with their weights, records of lists.
    pub edges: BytesMoved,
}

impl TierBytes {
    /// Returns the bytes of one kind of data.
    #[must_use]
    pub fn of(&self, kind: DataKind) -> &BytesMoved {
        match kind {
            DataKind::Vertices => &self.vertices,
            DataKind::Messages => &self.messages,
            DataKind::Index => &self.index,
            DataKind::Edges => &self.edges,
        }
    }

    pub(crate) fn add(&mut self, other: &TierBytes) {
        let all = [
            (&mut self.vertices, &other.vertices),
            (&mut self.messages, &other.messages),
            (&mut self.index, &other.index),
            (&mut self.edges, &other.edges),
        ];
        for (sum, more) in all {
            sum.read_sequential += more.read_sequential;
            sum.read_random += more.read_random;
            sum.written_sequential += more.written_sequential;
            sum.written_random += more.written_random;
        }
    }
}

/// Where a kind of data lies.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PlacementInfo {
    /// The tier; of a file also whether it was mapped with MAP_SYNC.
    pub tier: String,
    /// True if it is the slow one.
    pub slow: bool,
}

/// Where each kind of data lies, by its name.
pub(crate) fn placed_at(tiers: &Tiers) -> BTreeMap<&'static str, PlacementInfo> {
    let of = |kind: DataKind| PlacementInfo {
        tier: tiers.describe(kind),
        slow: tiers.placement().is_slow(kind),
    };
    DataKind::ALL.map(|kind| (kind.name(), of(kind))).into()
}

/// A worker waits once it owes this much time: shorter waits are lost in timer noise.
const SPENT_AT_ONCE: Duration = Duration::from_micros(50);

/// Maximum time between two checks for cancellation.
const LOOK_AFTER: Duration = Duration::from_millis(100);

/// The bytes that all workers moved in the current pass.
pub(crate) struct MemoryTraffic {
    workers: Vec<WorkerTraffic>,
    charging: Option<TierDelay>,
}

struct TierDelay {
    charge: TierModel,
    slow: Vec<DataKind>,
    clock: Arc<dyn Clock>,
    stop: CancelToken,
}

/// The bytes that one worker moved of each kind, in cache lines of its own.
///
/// Bytes are read in order, read at random, written in order, or written at random.
#[derive(Default)]
#[repr(align(128))]
pub(crate) struct WorkerTraffic {
    bytes: [[AtomicU64; 4]; 4],
    /// What it has spent of what it owes, in nanoseconds.
    spent: AtomicU64,
}

impl WorkerTraffic {
    pub(crate) fn read(&self, kind: DataKind, access: Access, bytes: u64) {
        self.bytes[kind as usize][access as usize].fetch_add(bytes, Ordering::Relaxed);
    }
    pub(crate) fn write(&self, kind: DataKind, access: Access, bytes: u64) {
        self.bytes[kind as usize][2 + access as usize].fetch_add(bytes, Ordering::Relaxed);
    }
    /// Read and written again.
    pub(crate) fn change(&self, kind: DataKind, access: Access, bytes: u64) {
        self.read(kind, access, bytes);
        self.write(kind, access, bytes);
    }

    fn moved(&self, kind: DataKind) -> BytesMoved {
        let of = |which: usize| self.bytes[kind as usize][which].load(Ordering::Relaxed);
        BytesMoved {
            read_sequential: of(0),
            read_random: of(1),
            written_sequential: of(2),
            written_random: of(3),
        }
    }
}

impl TierDelay {
    /// Returns the time that a worker owes in the current pass.
    fn owed(&self, worker: &WorkerTraffic) -> Duration {
        let (mut read, mut written) = (0, 0);
        for kind in &self.slow {
            let moved = worker.moved(*kind);
            read += moved.read();
            written += moved.written();
        }
        let seconds = self.charge.seconds(read, written);
        Duration::try_from_secs_f64(seconds).unwrap_or(Duration::ZERO)
    }
    /// What of that it has not spent.
    fn left(&self, worker: &WorkerTraffic) -> Duration {
        let spent = Duration::from_nanos(worker.spent.load(Ordering::Relaxed));
        self.owed(worker).saturating_sub(spent)
    }
    /// Waits for the given time unless the run is cancelled.
    fn wait(&self, mut time: Duration) {
        while !time.is_zero() && !self.stop.is_cancelled() {
            let now = time.min(LOOK_AFTER);
            self.clock.wait(now);
            time -= now;
        }
    }
}

impl MemoryTraffic {
    pub(crate) fn new(
        workers: usize,
        charge: Option<TierModel>,
        tiers: &Tiers,
        (clock, stop): (&Arc<dyn Clock>, &CancelToken),
    ) -> Self {
        let is_slow = |kind: &DataKind| tiers.placement().is_slow(*kind);
        let slow: Vec<DataKind> = DataKind::ALL.into_iter().filter(is_slow).collect();
        MemoryTraffic {
            workers: (0..workers).map(|_| WorkerTraffic::default()).collect(),
            charging: charge.filter(|_| !slow.is_empty()).map(|charge| TierDelay {
                charge,
                slow,
                clock: Arc::clone(clock),
                stop: stop.clone(),
            }),
        }
    }

    /// The counts of a worker.
    pub(crate) fn of(&self, worker: usize) -> &WorkerTraffic {
        &self.workers[worker]
    }
    /// Counts what all workers moved in equal parts.
    pub(crate) fn shared(&self, count: impl Fn(&WorkerTraffic, &dyn Fn(u64) -> u64)) {
        let workers = self.workers.len() as u64;
        for (number, worker) in (0..).zip(&self.workers) {
            let part = |all: u64| all / workers + u64::from(number < all % workers);
            count(worker, &part);
        }
    }

    /// True if time is spent for bytes on the slow tier.
    pub(crate) fn charges(&self) -> bool {
        self.charging.is_some()
    }
    /// Has a worker spend what it owes, if it is worth it.
    pub(crate) fn spend(&self, worker: usize) {
        if let Some(charging) = &self.charging {
            let worker = &self.workers[worker];
            let left = charging.left(worker);
            if left >= SPENT_AT_ONCE {
                let owed = charging.owed(worker).as_nanos() as u64;
                worker.spent.store(owed, Ordering::Relaxed);
                charging.wait(left);
            }
        }
    }

    /// Ends a pass: returns the bytes moved, and the seconds charged to all workers in total.
    ///
    /// Workers wait off their remaining debts in parallel, so this call waits for the longest of them.
    pub(crate) fn take(&self) -> (TierBytes, f64) {
        let mut seconds = 0.0;
        if let Some(charging) = &self.charging {
            let left = self.workers.iter().map(|worker| charging.left(worker));
            charging.wait(left.max().unwrap_or(Duration::ZERO));
            let owed = self.workers.iter().map(|worker| charging.owed(worker));
            seconds = owed.map(|owed| owed.as_secs_f64()).sum();
        }
        let mut all = TierBytes::default();
        for worker in &self.workers {
            let [vertices, messages, index, edges] = DataKind::ALL.map(|kind| worker.moved(kind));
            all.add(&TierBytes {
                vertices,
                messages,
                index,
                edges,
            });
            let counts = worker.bytes.iter().flatten().chain([&worker.spent]);
            counts.for_each(|count| count.store(0, Ordering::Relaxed));
        }
        (all, seconds)
    }
}

#[cfg(test)]
mod tests {
    use graphmill_storage::{Placement, SimulatedClock};

    use super::*;

    fn traffic(asked: &[&str], charge: Option<TierModel>) -> (MemoryTraffic, Arc<SimulatedClock>) {
        let clock = Arc::new(SimulatedClock::new());
        (
            traffic_by(clock.clone(), &CancelToken::new(), asked, charge),
            clock,
        )
    }

    fn traffic_by(
        clock: Arc<dyn Clock>,
        stop: &CancelToken,
        asked: &[&str],
        charge: Option<TierModel>,
    ) -> MemoryTraffic {
        let placement = Placement::parse(asked, Some("model")).unwrap();
        let tiers = Tiers::open(&placement, 1).unwrap();
        MemoryTraffic::new(2, charge, &tiers, (&clock, stop))
    }

    const MILLION: u64 = 1_000_000;

    /// A byte a nanosecond; reading from the slow tier takes three times as long, writing five times.
    const CHARGE: Option<TierModel> = Some(TierModel {
        read: 3.0,
        write: 5.0,
        dram_bandwidth: 1e9,
    });

    #[test]
    fn slow_tier_debt_is_spent_at_end_of_task() {
        let (traffic, clock) = traffic(&["rw-split"], CHARGE);
        let worker = traffic.of(0);
        worker.read(DataKind::Edges, Access::Sequential, MILLION);
        // DRAM costs nothing more.
        worker.change(DataKind::Vertices, Access::Random, MILLION);
        traffic.spend(0);
        assert_eq!(clock.now(), Duration::from_millis(2));
        traffic.spend(0);
        assert_eq!(clock.now(), Duration::from_millis(2), "it is spent once");
        worker.change(DataKind::Index, Access::Random, MILLION);
        traffic.spend(0);
        assert_eq!(clock.now(), Duration::from_millis(2 + 2 + 4));
        let (bytes, seconds) = traffic.take();
        assert_eq!(clock.now(), Duration::from_millis(8));
        assert!((seconds - 0.008).abs() < 1e-12);
        assert_eq!(
            (bytes.edges.read(), bytes.index.written()),
            (MILLION, MILLION)
        );
        assert_eq!(bytes.vertices.read_random, MILLION);
        let none = (TierBytes::default(), 0.0);
        assert_eq!(traffic.take(), none, "a pass begins with nothing");
    }

    #[test]
    fn slow_tier_debts_are_spent_in_parallel() {
        let (traffic, clock) = traffic(&["slow"], CHARGE);
        for (worker, bytes) in [(0, 10), (1, 30)] {
            traffic
                .of(worker)
                .read(DataKind::Messages, Access::Random, bytes * 1000);
            // Too little to wait for now.
            traffic
                .of(worker)
                .write(DataKind::Messages, Access::Random, 1);
        }
        let owed = |bytes: u64| Duration::from_nanos(2 * bytes + 4);
        traffic.spend(0);
        assert_eq!(clock.now(), Duration::ZERO);
        let (_, seconds) = traffic.take();
        assert_eq!(clock.now(), owed(30_000));
        let both = owed(10_000) + owed(30_000);
        assert!((seconds - both.as_secs_f64()).abs() < 1e-12);
    }

    /// A clock while whose first wait somebody asks to stop.
    #[derive(Debug)]
    struct Impatient(SimulatedClock, CancelToken);

    impl Clock for Impatient {
        fn now(&self) -> Duration {
            self.0.now()
        }
        fn wait(&self, time: Duration) {
            self.0.wait(time);
            self.1.request();
        }
    }

    #[test]
    fn slow_tier_debt_ends_on_cancel() {
        let stop = CancelToken::new();
        let clock = Arc::new(Impatient(SimulatedClock::new(), stop.clone()));
        let traffic = traffic_by(clock.clone(), &stop, &["slow"], CHARGE);
        let hour = 3600 * 1000 * MILLION;
        traffic
            .of(0)
            .read(DataKind::Edges, Access::Sequential, hour);
        traffic.spend(0);
        traffic
            .of(1)
            .read(DataKind::Edges, Access::Sequential, hour);
        traffic.take();
        assert_eq!(clock.now(), LOOK_AFTER);
    }

    #[test]
    fn work_of_all_is_counted_in_equal_parts() {
        let (traffic, clock) = traffic(&["slow"], None);
        traffic.shared(|worker, part| worker.read(DataKind::Index, Access::Random, part(7)));
        let parts = [0, 1].map(|worker| traffic.of(worker).moved(DataKind::Index).read());
        assert_eq!(parts, [4, 3]);
        assert_eq!(traffic.take().0.index.read_random, 7);
        assert_eq!(clock.now(), Duration::ZERO, "nobody is charged");
    }

    #[test]
    fn slow_tier_of_the_paper_has_its_factors() {
        let second = TierModel::PAPER.dram_bandwidth as u64;
        assert!((TierModel::PAPER.seconds(second, 0) - 1.4).abs() < 1e-6);
        assert!((TierModel::PAPER.seconds(0, second) - 5.0).abs() < 1e-6);
    }
}
