//! Occurrences: the ends of edges, each an id and its position in the input, in buckets of ids.
//!
//! 1. [`OccurrenceSink`] receives the edges and puts both ends into the bucket between two splitters that the id falls in.
//! 2. A bucket with records is a [`BucketTask`]: its records become a sorted run, or are [`split`] into more buckets.
//!
//! A record is the length of the id in two bytes, the id, and the position in six.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use graphmill_storage::CancelToken;

use super::context::SortContext;
use super::splitters::{IdSample, Splitters};
use crate::comm::ImportCommunicator;
use crate::edge_data::EdgeData;
use crate::error::IngestError;
use crate::external::bucket_file::{BucketFile, BucketWriter, ChunkReader};
use crate::external::edge_file::{ByteCursor, EdgeBatchSink, put_text, word};
use crate::external::shuffle::BucketShuffle;
use crate::progress::Meter;

/// Bytes of a position in a record.
const POSITION_BYTES: usize = 6;
/// The position of an id that no edge names.
pub(super) const NOWHERE: u64 = (1 << (8 * POSITION_BYTES)) - 1;

/// A temporary file of occurrences, bucket by bucket.
#[derive(Debug)]
pub(super) struct Occurrences {
    pub(super) bucket_file: BucketFile,
    splitters: Splitters,
    /// Per bucket the number of occurrences and the bytes of their ids.
    pub(super) sizes: Vec<(AtomicU64, AtomicU64)>,
}

impl Occurrences {
    pub(super) fn create(
        context: &SortContext<'_>,
        splitters: Splitters,
    ) -> Result<Self, IngestError> {
        let buckets = splitters.buckets();
        Ok(Self {
            bucket_file: context.bucket_file("occurrences", buckets)?,
            splitters,
            sizes: (0..buckets).map(|_| Default::default()).collect(),
        })
    }

    /// Adds the records of other ranks in this rank's buckets, and forgets the records in theirs.
    pub(super) fn merge_ranks(&self, comm: &ImportCommunicator<'_>) -> Result<(), IngestError> {
        let counts = |size: &(AtomicU64, AtomicU64)| [size.0.load(Relaxed), size.1.load(Relaxed)];
        let mut sums: Vec<u64> = self.sizes.iter().flat_map(counts).collect();
        comm.sum_elementwise(&mut sums)?;
        for (bucket, (size, sums)) in self.sizes.iter().zip(sums.chunks_exact(2)).enumerate() {
            // Of another rank's there is nothing here.
            let is_here = self.bucket_file.chunks(bucket) > 0;
            size.0.store(if is_here { sums[0] } else { 0 }, Relaxed);
            size.1.store(sums[1], Relaxed);
        }
        Ok(())
    }

    /// The buckets that are not empty, as tasks.
    pub(super) fn tasks(self, path: &[u32]) -> Vec<BucketTask> {
        let this = Arc::new(self);
        let task = |bucket: usize| {
            let (count, bytes) = &this.sizes[bucket];
            let count = count.load(Relaxed);
            (count > 0).then(|| BucketTask {
                occurrences: this.clone(),
                bucket,
                path: [path, &[bucket as u32]].concat(),
                count,
                bytes: bytes.load(Relaxed),
            })
        };
        (0..this.sizes.len()).filter_map(task).collect()
    }
}

/// One worker's way into the occurrences.
pub(super) struct OccurrenceWriter<'a> {
    occurrences: &'a Occurrences,
    writer: BucketWriter<'a>,
    sizes: Vec<(u64, u64)>,
}

impl<'a> OccurrenceWriter<'a> {
    pub(super) fn new(
        occurrences: &'a Occurrences,
        context: &SortContext<'_>,
        shuffle: Option<&'a BucketShuffle<'a>>,
    ) -> Result<Self, IngestError> {
        Ok(Self {
            occurrences,
            writer: context.bucket_writer(&occurrences.bucket_file, shuffle)?,
            sizes: vec![(0, 0); occurrences.sizes.len()],
        })
    }

    #[inline]
    fn put(&mut self, id: &[u8], position: u64) -> Result<(), IngestError> {
        let bucket = self.occurrences.splitters.bucket(id);
        let out = self.writer.reserve(bucket, 2 + id.len() + POSITION_BYTES)?;
        put_text(out, id).copy_from_slice(&position.to_le_bytes()[..POSITION_BYTES]);
        self.sizes[bucket].0 += 1;
        self.sizes[bucket].1 += id.len() as u64;
        Ok(())
    }

    pub(super) fn finish(self, context: &SortContext<'_>) -> Result<(), IngestError> {
        for (sum, (count, bytes)) in self.occurrences.sizes.iter().zip(&self.sizes) {
            sum.0.fetch_add(*count, Relaxed);
            sum.1.fetch_add(*bytes, Relaxed);
        }
        context.written.fetch_add(self.writer.finish()?, Relaxed);
        Ok(())
    }
}

/// Calls `each(id, position)` for every occurrence of a chunk.
fn for_each_occurrence(
    records: &[u8],
    mut each: impl FnMut(&[u8], u64) -> Result<(), IngestError>,
) -> Result<(), IngestError> {
    let cut_short = || IngestError::internal("a record of an id is cut short");
    let mut left = ByteCursor(records);
    while !left.0.is_empty() {
        let id = left.text().ok_or_else(cut_short)?;
        let position = left.take(POSITION_BYTES).ok_or_else(cut_short)?;
        each(id, word(position))?;
    }
    Ok(())
}

/// A bucket that becomes a sorted run, or more buckets.
pub(super) struct BucketTask {
    occurrences: Arc<Occurrences>,
    bucket: usize,
    /// The buckets it lies in, from the first split down: its place in the order of ids.
    pub(super) path: Vec<u32>,
    pub(super) count: u64,
    pub(super) bytes: u64,
}

impl BucketTask {
    /// Bytes that sorting it takes.
    pub(super) fn memory(&self) -> u64 {
        self.count * 2 * size_of::<[u64; 3]>() as u64 + self.bytes
    }

    /// True if all occurrences of the bucket are of one id.
    pub(super) fn is_single(&self) -> bool {
        self.bucket % 2 == 1
    }

    pub(super) fn read(
        &self,
        chunk_reader: &mut ChunkReader,
        stop: &CancelToken,
        mut each: impl FnMut(&[u8], u64) -> Result<(), IngestError>,
    ) -> Result<(), IngestError> {
        let file = &self.occurrences.bucket_file;
        file.read(self.bucket, chunk_reader, stop, |records| {
            for_each_occurrence(records, &mut each)
        })
    }
}

/// A sink that puts both ends of each edge among the occurrences.
pub(super) struct OccurrenceSink<'a> {
    pub(super) writer: OccurrenceWriter<'a>,
    /// Flipped in integers, which then have the order of unsigned ones.
    pub(super) sign: u64,
    /// The progress of edges; `None` for vertices without edges.
    pub(super) meter: Option<&'a Meter<'a>>,
}

impl OccurrenceSink<'_> {
    #[inline]
    fn edges<I: AsRef<[u8]>>(
        &mut self,
        edges: impl ExactSizeIterator<Item = (I, I)>,
        sequence: u64,
    ) -> Result<(), IngestError> {
        let count = edges.len() as u64;
        for ((source, destination), number) in edges.zip(sequence..) {
            let [first, second] = match self.meter {
                Some(_) => [2 * number, 2 * number + 1],
                None => [NOWHERE; 2],
            };
            self.writer.put(source.as_ref(), first)?;
            self.writer.put(destination.as_ref(), second)?;
        }
        if let Some(meter) = self.meter {
            meter.advance(count);
        }
        Ok(())
    }
}

impl EdgeBatchSink for OccurrenceSink<'_> {
    fn integers(
        &mut self,
        edges: &[(u64, u64)],
        _data: EdgeData<'_>,
        sequence: u64,
    ) -> Result<(), IngestError> {
        let edges = edges.iter();
        let sign = self.sign;
        let bytes = |id: u64| (id ^ sign).to_be_bytes();
        let edges = edges.map(|(source, target)| (bytes(*source), bytes(*target)));
        self.edges(edges, sequence)
    }

    fn texts(
        &mut self,
        edges: &[(&[u8], &[u8])],
        _data: EdgeData<'_>,
        sequence: u64,
    ) -> Result<(), IngestError> {
        self.edges(edges.iter().copied(), sequence)
    }
}

/// Splits a bucket that is too large to sort, by splitters from its own occurrences.
pub(super) fn split(
    context: &SortContext<'_>,
    task: &BucketTask,
    chunk_reader: &mut ChunkReader,
) -> Result<Occurrences, IngestError> {
    let mut sample = IdSample::default();
    task.read(chunk_reader, context.resources.stop, |id, _| {
        sample.offer(id);
        Ok(())
    })?;
    let occurrences = Occurrences::create(context, sample.splitters(context.shares.splitters))?;
    let mut writer = OccurrenceWriter::new(&occurrences, context, None)?;
    task.read(chunk_reader, context.resources.stop, |id, position| {
        writer.put(id, position)
    })?;
    writer.finish(context)?;
    Ok(occurrences)
}
