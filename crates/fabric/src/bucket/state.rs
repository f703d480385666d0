//! The part of an exchange that all threads of a rank read: its numbers, the seal, and what has come.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use graphmill_raw::Watermark;

use crate::bucket::layout::room;
use crate::bucket::seal::BucketSeal;

/// Buckets begin at whole cache lines.
const STRIDE: usize = 64;
/// Buckets of each worker for each lane, beside the window: an open one, and two in rings.
const OF_WORKER: usize = 3;

/// The numbers of an exchange.
#[derive(Clone, Debug)]
pub struct ExchangeShape {
    /// This rank.
    pub rank: usize,
    /// The lanes of each rank.
    pub lanes: Vec<usize>,
    /// Threads of this rank that fill buckets, and that send them.
    pub workers: usize,
    /// See `workers`.
    pub senders: usize,
    /// Bytes of a bucket.
    pub bucket_bytes: usize,
    /// Buckets of a stream on their way at most.
    pub window: usize,
    /// Bytes of messages that a worker can write in a step, beside open buckets.
    pub written_bytes: usize,
}

impl ExchangeShape {
    /// Lanes of all ranks.
    fn places(&self) -> usize {
        self.lanes.iter().sum()
    }

    /// Buckets of each worker.
    #[must_use]
    pub fn of_worker(&self) -> usize {
        let foreign = self.places() - self.lanes[self.rank];
        let written = self.written_bytes.div_ceil(room(self.bucket_bytes));
        OF_WORKER * self.places() + written + (self.window * foreign).div_ceil(self.workers)
    }

    /// Bytes from one bucket to the next in memory.
    pub(crate) fn stride(&self) -> usize {
        self.bucket_bytes.next_multiple_of(STRIDE)
    }

    /// Bytes of all buckets.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let buckets = self.workers * self.of_worker() + self.places();
        buckets * self.stride()
    }
}

/// What an exchange counted.
#[derive(Debug, Default)]
pub struct ExchangeCounters {
    /// Messages sent to other ranks.
    pub messages_sent: AtomicU64,
    /// Bytes of datagrams sent.
    pub bytes_sent: AtomicU64,
    /// Buckets that were sent again.
    pub resent: AtomicU64,
    /// Buckets that came once more.
    pub doubled: AtomicU64,
    /// Datagrams that were dropped, by [`Refusal`](crate::bucket::Refusal).
    pub refused: [AtomicU64; 6],
    /// Nanoseconds of the steps of workers, sender threads and lanes that did something.
    pub role_nanos: [AtomicU64; 3],
    /// Nanoseconds of the supersteps, from the first message to the agreement on the end.
    pub exchange_nanos: AtomicU64,
}

/// The part of an exchange that all threads read.
#[derive(Debug)]
pub struct ExchangeState {
    pub(crate) shape: ExchangeShape,
    pub(crate) seal: BucketSeal,
    /// The first place of each rank, and the end.
    pub(crate) firsts: Vec<usize>,
    /// For each rank and own lane, the number below which all buckets of the stream have come.
    pub(crate) come: Vec<Watermark>,
    /// Which sender threads, and then which lanes, have done all of this superstep.
    pub(crate) done: Vec<AtomicBool>,
    /// What was counted.
    pub counters: ExchangeCounters,
}

impl ExchangeState {
    /// The numbers of the exchange.
    pub fn shape(&self) -> &ExchangeShape {
        &self.shape
    }

    /// The number of lanes of all ranks.
    pub(crate) fn places(&self) -> usize {
        self.shape.places()
    }

    /// Returns the number of a lane of a rank among all lanes of all ranks.
    pub fn place_of(&self, rank: usize, lane: usize) -> usize {
        self.firsts[rank] + lane
    }

    /// Returns the rank and the lane of a place.
    pub fn lane_of(&self, place: usize) -> (usize, usize) {
        let rank = self.firsts.partition_point(|first| *first <= place) - 1;
        (rank, place - self.firsts[rank])
    }

    /// The sender thread of the stream to a place.
    pub(crate) fn sender_of(&self, place: usize) -> usize {
        place % self.shape.senders
    }

    /// Records that a sender thread or a lane has done all of this superstep, once it `has`.
    pub(crate) fn note_done(&self, part: usize, has: impl FnOnce() -> bool) {
        if !self.done[part].load(Ordering::Relaxed) && has() {
            self.done[part].store(true, Ordering::Release);
        }
    }

    /// Returns what a bucket with a number to a rank acknowledges: the lanes of this rank take turns.
    pub(crate) fn acknowledged(&self, to: usize, number: u64) -> Option<(u8, u64)> {
        let own = self.shape.lanes[self.shape.rank];
        let lane = (number % own as u64) as usize;
        let come = &self.come[to * own + lane];
        Some((lane as u8, come.get()))
    }
}

/// Returns the number of the first lane of each rank among all lanes of all ranks, and the end.
pub(crate) fn firsts(lanes: &[usize]) -> Vec<usize> {
    let ends = lanes.iter().scan(0, |end, lanes| {
        *end += lanes;
        Some(*end)
    });
    std::iter::once(0).chain(ends).collect()
}
