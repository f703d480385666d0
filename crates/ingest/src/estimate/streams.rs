//! Bytes that a rank moves, and the bytes of records on their way to the buckets of a temporary file.

use crate::external::bucket_file::{GRAIN, HEADER_BYTES};
use crate::report::ImportTraffic;

/// Bytes of the label of a chunk that a rank sends.
const LABEL_BYTES: f64 = 8.0;

/// Bytes that a rank moves in a step, as they are summed up.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct StepBytes {
    pub(super) read: f64,
    pub(super) written: f64,
    pub(super) sent: f64,
}

impl StepBytes {
    pub(super) fn moved(self) -> ImportTraffic {
        ImportTraffic {
            read: self.read as u64,
            written: self.written as u64,
            sent: self.sent as u64,
        }
    }
}

/// Records on their way to the buckets of a temporary file.
#[derive(Clone, Copy, Debug)]
pub(super) struct BucketStreams {
    /// All bytes of records, and in how many streams: one a worker and bucket.
    pub(super) bytes: f64,
    pub(super) count: f64,
    pub(super) chunk_bytes: usize,
    /// Bytes of records that lie in one chunk.
    pub(super) together: usize,
}

impl BucketStreams {
    /// Records of a full chunk.
    fn filled(&self) -> usize {
        (self.chunk_bytes - HEADER_BYTES) / self.together.max(1) * self.together.max(1)
    }
    /// The last one of each stream is not full, nor is the only one.
    fn chunks(&self) -> f64 {
        let of_one = self.bytes / self.count.max(1.0) / self.filled().max(1) as f64;
        let last = if of_one > 1.0 { 0.5 } else { 1.0 - of_one };
        self.count.min(self.bytes) * (of_one + last)
    }
    pub(super) fn written(&self) -> f64 {
        let padded =
            |records: f64| ((records + HEADER_BYTES as f64) / GRAIN as f64).ceil() * GRAIN as f64;
        let of_one = self.bytes / self.count.max(1.0);
        let full = (of_one / self.filled().max(1) as f64).floor();
        let rest = of_one - full * self.filled() as f64;
        let rest = if rest > 0.0 { padded(rest) } else { 0.0 };
        self.count * (full * padded(self.filled() as f64) + rest)
    }
    /// Chunks are read whole.
    pub(super) fn read(&self) -> f64 {
        self.chunks() * self.chunk_bytes as f64
    }
    /// Returns the bytes that a rank sends to the others, if each of `ranks` ranks has a share.
    pub(super) fn sent(&self, ranks: f64) -> f64 {
        (self.bytes + self.chunks() * LABEL_BYTES) * (ranks - 1.0) / ranks / ranks
    }
}
