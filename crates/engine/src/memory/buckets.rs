//! What a run of the bucket executor takes of the memory budget.

use graphmill_fabric::bucket::{BUCKET_BYTES, ExchangeShape, RECEIVE_BYTES, message_parts};
use graphmill_graph::BLOCK_EDGES_MAX;
use graphmill_raw::AlignedBuffer;

use crate::program::footprint::ProgramFootprint;

/// Buckets of a stream on their way at most.
const WINDOW: usize = 256;
/// Bytes of the messages that a worker can write in a step, beside open buckets.
const WRITTEN_BYTES: usize = 128 << 10;
/// Bytes of an edge of a block that a worker decodes, beside its value.
const BLOCK_SCRATCH_BYTES: usize = 3 * size_of::<u32>();
/// Lanes of a rank at most: a bucket names one in a byte.
pub(crate) const LANES_MAX: usize = 255;

/// The properties of a run that the memory of its buckets depends on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BucketShape {
    /// Bytes of the budget of the rows of cells of this rank, as stored and transposed.
    pub(crate) rows: u64,
    /// Bytes that loading them takes.
    pub(crate) loading: u64,
    /// Ranks, and the lanes of all other ranks at most.
    pub(crate) ranks: usize,
    pub(crate) foreign: usize,
    /// Numbers of workers, sender threads and lanes; one each for each thread if `None`.
    pub(crate) roles: Option<[usize; 3]>,
    /// Bytes of DPDK and its packets, if it is the link.
    pub(crate) dpdk: u64,
    /// Datagrams wait in memory of the process, and not of the kernel.
    pub(crate) queues: bool,
    /// Messages may be combined.
    pub(crate) combines: bool,
    /// Batches of this rank.
    pub(crate) batches: usize,
    /// Vertices of this rank, and the labels that reach them in a round of a count program.
    pub(crate) own: u64,
    pub(crate) labels: u64,
}

/// Returns the numbers of workers, sender threads and lanes of `threads` threads.
pub(crate) fn role_counts(threads: usize, asked: Option<[usize; 3]>) -> [usize; 3] {
    asked.unwrap_or([threads.min(LANES_MAX); 3])
}

/// Returns the exchange of a rank; `lanes` has the number of each rank's.
pub(crate) fn exchange_shape(rank: usize, lanes: Vec<usize>, roles: [usize; 3]) -> ExchangeShape {
    ExchangeShape {
        rank,
        lanes,
        workers: roles[0],
        senders: roles[1],
        bucket_bytes: BUCKET_BYTES,
        window: WINDOW,
        written_bytes: WRITTEN_BYTES,
    }
}

/// Returns the datagrams that wait for a lane at most, where they wait in memory of the process.
pub(crate) fn queued_datagrams(ranks: usize) -> usize {
    WINDOW * ranks.saturating_sub(1).max(1)
}

impl BucketShape {
    /// Returns the bytes of buckets, held from the start of a run to its end.
    pub(crate) fn held(&self, threads: usize) -> u64 {
        let roles = role_counts(threads, self.roles);
        let shape = exchange_shape(0, vec![roles[2], self.foreign], roles);
        let received = roles[2] * AlignedBuffer::footprint(RECEIVE_BYTES) as usize;
        let buckets = AlignedBuffer::footprint(shape.bytes()) + shape.ring_bytes();
        let queued = match self.queues {
            true => roles[2] * queued_datagrams(self.ranks) * BUCKET_BYTES,
            false => 0,
        };
        buckets + (received + queued) as u64 + self.dpdk
    }

    /// Returns the bytes of the messages of own vertices, and of their accumulators or lists of labels.
    ///
    /// Messages of a batch, and accumulators of a lane, are in whole pages. The bits of messages come on top.
    pub(crate) fn of_vertices(&self, sizes: ProgramFootprint, threads: usize) -> u64 {
        let [.., lanes] = role_counts(threads, self.roles);
        let pages = (self.batches + 2 * lanes) as u64 * AlignedBuffer::footprint(1);
        let messages = self.own * sizes.message as u64;
        let received = match sizes.windows {
            0 => self.own * sizes.accumulator as u64,
            _ => self.own * size_of::<u64>() as u64 + self.labels * sizes.message as u64,
        };
        messages + received + pages
    }

    /// Returns the bytes of the accumulators for combined messages; batches have at most `widest` vertices.
    pub(crate) fn combined(&self, sizes: ProgramFootprint, threads: usize, widest: usize) -> u64 {
        let [workers, ..] = role_counts(threads, self.roles);
        let each = AlignedBuffer::footprint(widest * sizes.accumulator);
        workers as u64 * each * u64::from(self.combines)
    }

    /// Returns the bytes of messages outside of buckets in a pass: of blocks, and of jumbo messages.
    pub(crate) fn waiting_messages(&self, sizes: ProgramFootprint, threads: usize) -> u64 {
        let [workers, _, lanes] = role_counts(threads, self.roles);
        let bytes = size_of::<u32>() + sizes.accumulator;
        let blocks =
            workers * BLOCK_EDGES_MAX * (BLOCK_SCRATCH_BYTES + sizes.accumulator + sizes.message);
        let parts = match message_parts(bytes, BUCKET_BYTES) {
            1 => 0,
            parts => lanes * (self.ranks - 1) * (WINDOW + 2 * parts) * BUCKET_BYTES,
        };
        (blocks + parts) as u64
    }
}
