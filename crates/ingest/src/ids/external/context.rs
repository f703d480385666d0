//! The input of a dictionary build: disk, memory, workers, and the edges whose ids it resolves.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use graphmill_graph::EdgeKind;
use graphmill_storage::{CancelToken, Disk, MemoryBudget, WorkerPool};

use super::splitters::IdSample;
use crate::comm::ImportCommunicator;
use crate::error::IngestError;
use crate::external::bucket_file::{BucketFile, ChunkReader, fill};
use crate::external::reread::EdgeReplay;
use crate::external::shuffle::BucketShuffle;
use crate::progress::ImportProgress;

/// Chunks of ids or edges that a worker has in memory.
pub(super) const WRITE_AHEAD: usize = 4;

/// The resources of an external sort.
pub(crate) struct SortContext<'a> {
    pub(crate) disk: &'a Arc<dyn Disk>,
    pub(crate) budget: &'a MemoryBudget,
    pub(crate) workers: &'a WorkerPool,
    pub(crate) stop: &'a CancelToken,
    /// The ranks that build it together: each has a run of the ids.
    pub(crate) comm: ImportCommunicator<'a>,
    /// A directory for temporary files.
    pub(crate) directory: &'a Path,
    /// Bytes of a chunk of a bucket, and how many are read ahead.
    pub(crate) chunk_bytes: usize,
    pub(crate) read_ahead: usize,
    /// Bytes of one write: slabs of chunks, and chunks of the edges that result.
    pub(crate) write_bytes: usize,
    /// Bytes of memory to exchange chunks with other ranks.
    pub(crate) passing_bytes: u64,
    /// Bytes that one worker may sort at a time.
    pub(crate) sort_bytes: u64,
    /// Bytes of indices that one worker may put in place at a time.
    pub(crate) join_bytes: u64,
    /// Splitters of one split.
    pub(crate) splitters: usize,
    /// Buckets of positions at most.
    pub(crate) positions_max: u64,
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
        ChunkReader::new(&**self.disk, self.budget, self.chunk_bytes, self.read_ahead)
    }

    /// The way to the ranks that buckets belong to, where there are others.
    pub(super) fn shuffle(
        &self,
        owners: impl Iterator<Item = usize>,
    ) -> Result<Option<BucketShuffle<'a>>, IngestError> {
        BucketShuffle::new(&self.comm, self.budget, owners.collect(), self.chunk_bytes)
    }

    /// Fills buckets, also buckets of other ranks.
    pub(super) fn fill(
        &self,
        bucket_file: &BucketFile,
        shuffle: Option<&BucketShuffle<'_>>,
        work: impl FnOnce() -> Result<(), IngestError>,
    ) -> Result<(), IngestError> {
        let (disk, bytes) = (&**self.disk, self.write_bytes);
        let ((), written) = fill(bucket_file, shuffle, disk, self.budget, bytes, work)?;
        self.written.fetch_add(written, Relaxed);
        Ok(())
    }
}

/// The ends of edges to resolve.
pub(crate) struct EdgeEnds<'a> {
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
