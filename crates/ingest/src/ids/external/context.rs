//! The input of a dictionary build: disk, memory, workers, and the edges whose ids it resolves.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use graphmill_graph::EdgeKind;

use super::splitters::IdSample;
use crate::comm::ImportCommunicator;
use crate::error::IngestError;
use crate::external::bucket_file::{
    BucketFile, BucketWriter, ChunkReader, SLABS, buffer_bytes, fill,
};
use crate::external::parallel;
use crate::external::reread::EdgeReplay;
use crate::external::shuffle::BucketShuffle;
use crate::options::ImportResources;
use crate::progress::ImportProgress;

/// Chunks of ids or edges that a worker has in memory.
pub(super) const WRITE_AHEAD: usize = 4;

/// The memory of a dictionary, divided by purpose.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DictionaryMemory {
    /// Bytes of a chunk of a bucket.
    pub(crate) chunk_bytes: usize,
    /// Bytes of one write: slabs of chunks, and chunks of the edges that result.
    pub(crate) write_bytes: usize,
    /// Splitters of one split.
    pub(crate) splitters: usize,
    /// Bytes of memory to exchange chunks with other ranks.
    pub(crate) passing_bytes: u64,
    /// Buckets of positions at most.
    pub(crate) positions_max: u64,
    /// Bytes that one worker may sort at a time.
    pub(crate) sort_bytes: u64,
    /// Bytes of indices that one worker may put in place at a time.
    pub(crate) join_bytes: u64,
}

impl DictionaryMemory {
    /// Divides `available` free bytes among `lanes` workers of each rank; `agree` is a minimum over ranks.
    pub(crate) fn new(
        available: u64,
        lanes: u64,
        ranks: usize,
        work_bytes_max: u64,
        agree: impl Fn(u64) -> Result<u64, IngestError>,
    ) -> Result<Self, IngestError> {
        let buffer = |parts, least, most| buffer_bytes(available, lanes * parts, least, most);
        let chunk_bytes = agree(buffer(512, 8 << 10, 64 << 10) as u64)? as usize;
        let write_bytes = buffer(128, 16 << 10, 256 << 10);
        let passing_bytes = match ranks {
            1 => 0,
            ranks => BucketShuffle::memory(ranks, chunk_bytes) + (SLABS * write_bytes) as u64,
        };
        let share = available.saturating_sub(passing_bytes) / lanes;
        let chunks = share / chunk_bytes as u64;
        Ok(DictionaryMemory {
            chunk_bytes,
            write_bytes,
            // Of a worker's share a quarter is for open chunks: of positions, or of ids (two buckets a splitter), or of
            // both while a bucket of ids is split. Half is to sort in.
            splitters: agree((chunks / 16).clamp(2, 128))? as usize,
            passing_bytes,
            positions_max: (chunks / 8).max(1),
            sort_bytes: (share / 2).min(work_bytes_max),
            join_bytes: share / 2,
        })
    }
}

/// The resources of an external sort.
pub(crate) struct SortContext<'a> {
    pub(crate) resources: ImportResources<'a>,
    /// The ranks that build it together: each has a run of the ids.
    pub(crate) comm: ImportCommunicator<'a>,
    /// A directory for temporary files.
    pub(crate) directory: &'a Path,
    pub(crate) shares: DictionaryMemory,
    /// Chunks of a bucket that are read ahead.
    pub(crate) read_ahead: usize,
    /// The number of the next temporary file.
    pub(crate) files: AtomicU64,
    /// Bytes that were written.
    pub(crate) written: AtomicU64,
}

impl<'a> SortContext<'a> {
    pub(super) fn path(&self, what: &str) -> std::path::PathBuf {
        self.directory
            .join(format!("{what}-{}", self.files.fetch_add(1, Relaxed)))
    }

    pub(super) fn chunk_reader(&self) -> Result<ChunkReader, IngestError> {
        ChunkReader::new(
            &**self.resources.disk,
            self.resources.budget,
            self.shares.chunk_bytes,
            self.read_ahead,
        )
    }

    /// Creates a temporary file of buckets.
    pub(super) fn bucket_file(
        &self,
        what: &str,
        buckets: usize,
    ) -> Result<BucketFile, IngestError> {
        let (disk, path) = (&**self.resources.disk, self.path(what));
        BucketFile::create(disk, path, buckets, self.shares.chunk_bytes)
    }

    /// Returns a writer of `bucket_file`, which sends what `shuffle` brings to other ranks.
    pub(super) fn bucket_writer<'f>(
        &self,
        bucket_file: &'f BucketFile,
        shuffle: Option<&'f BucketShuffle<'f>>,
    ) -> Result<BucketWriter<'f>, IngestError> {
        let (disk, budget) = (&**self.resources.disk, self.resources.budget);
        let writer = BucketWriter::new(bucket_file, disk, budget, self.shares.write_bytes)?;
        Ok(writer.sending(shuffle))
    }

    /// Runs `work` once for each of `tasks` tasks, on all workers, each with a state that `make` creates.
    pub(super) fn run<S: Send>(
        &self,
        tasks: u64,
        make: impl Fn() -> Result<S, IngestError> + Sync,
        work: impl Fn(&mut S, u64) -> Result<(), IngestError> + Sync,
    ) -> Result<Vec<S>, IngestError> {
        parallel::run(self.resources, usize::MAX, tasks, make, work)
    }

    /// The way to the ranks that buckets belong to, where there are others.
    pub(super) fn shuffle(
        &self,
        owners: impl Iterator<Item = usize>,
    ) -> Result<Option<BucketShuffle<'a>>, IngestError> {
        BucketShuffle::new(
            &self.comm,
            self.resources.budget,
            owners.collect(),
            self.shares.chunk_bytes,
        )
    }

    /// Fills buckets, also buckets of other ranks.
    pub(super) fn fill(
        &self,
        bucket_file: &BucketFile,
        shuffle: Option<&BucketShuffle<'_>>,
        work: impl FnOnce() -> Result<(), IngestError>,
    ) -> Result<(), IngestError> {
        let (disk, bytes) = (&**self.resources.disk, self.shares.write_bytes);
        let ((), written) = fill(
            bucket_file,
            shuffle,
            disk,
            self.resources.budget,
            bytes,
            work,
        )?;
        self.written.fetch_add(written, Relaxed);
        Ok(())
    }
}

/// The ends of edges to resolve.
pub(crate) struct EdgeEnds<'a> {
    /// Flipped in integer ids, which then have the order of unsigned ones.
    pub(crate) sign: u64,
    pub(crate) progress: &'a dyn ImportProgress,
    /// The edges; `edges` of them at all ranks, and `edges_here` from number `first` on at this one.
    pub(crate) source: &'a EdgeReplay<'a>,
    pub(crate) edges: u64,
    pub(crate) first: u64,
    pub(crate) edges_here: u64,
    /// Vertices that are there without edges: both ends of each pair.
    pub(crate) vertices: Option<&'a EdgeReplay<'a>>,
    pub(crate) sample: IdSample,
    pub(crate) weights: EdgeKind,
}
