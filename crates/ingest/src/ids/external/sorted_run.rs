//! Leaves: the ids of one bucket, in order and each once, in chunks of a temporary file.
//!
//! 1. A bucket of ids is sorted in memory by their first eight bytes, and where those are the same by the whole ids. One
//!    that holds a single id is streamed.
//! 2. Every id that differs from the one before goes to the sorted run; each occurrence tells the bucket of its position the run
//!    and the rank there.
//!
//! Sorted runs are numbered as they are made; their order is the order of their paths.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use graphmill_raw::lock;
use graphmill_storage::{Buffer, FileHandle};

use super::context::{SortContext, WRITE_AHEAD};
use super::occurrences::{BucketTask, NOWHERE};
use super::positions::{IndexBases, RESOLVED_BYTES};
use super::splitters::prefix;
use crate::error::IngestError;
use crate::external::bucket_file::{
    BucketChunkWriter, BucketFile, BucketWriter, ChunkReader, GRAIN, HEADER_BYTES, seal_chunk,
};
use crate::external::edge_file::put_text;
use crate::external::radix_sort;
use crate::external::shuffle::BucketShuffle;
use crate::limits::ID_BYTES_MAX;

/// Bits of the length of an id beside its place.
const LENGTH_BITS: u32 = 12;
const _: () = assert!(ID_BYTES_MAX < 1 << LENGTH_BITS);

/// A part of the dictionary: ids that follow each other.
#[derive(Debug, Default)]
pub(super) struct SortedRun {
    pub(super) path: Vec<u32>,
    pub(super) number: u32,
    pub(super) ids: u64,
    /// Offsets and lengths of the chunks that hold its ids.
    pub(super) chunks: Vec<(u64, u64)>,
}

/// Where the workers put sorted runs, and the positions of their ids.
pub(super) struct RunTarget<'a> {
    pub(super) context: &'a SortContext<'a>,
    /// The buckets of positions, and the first edge of each.
    pub(super) positions: &'a BucketFile,
    pub(super) starts: &'a [u64],
    /// The file of the ids, and where its next chunks go.
    pub(super) file: &'a FileHandle,
    pub(super) end: AtomicU64,
    pub(super) sorted_runs: Mutex<Vec<SortedRun>>,
}

/// One worker's way from buckets of ids to leaves.
pub(super) struct SortedRunWriter<'a> {
    target: &'a RunTarget<'a>,
    context: &'a SortContext<'a>,
    positions: BucketWriter<'a>,
    chunk_writer: BucketChunkWriter,
    /// A buffer of chunks that fills, and where it will lie in the file.
    open: Option<(Buffer, u64)>,
    /// The start of the last chunk, and its end until now.
    start: usize,
    at: usize,
    /// The chunks of the sorted run.
    chunks: Vec<(u64, u64)>,
}

impl<'a> SortedRunWriter<'a> {
    pub(super) fn new(
        target: &'a RunTarget<'a>,
        shuffle: Option<&'a BucketShuffle<'a>>,
    ) -> Result<Self, IngestError> {
        let context = target.context;
        let (disk, budget) = (&**context.resources.disk, context.resources.budget);
        let write_bytes = context.shares.write_bytes;
        Ok(Self {
            target,
            context,
            positions: context.bucket_writer(target.positions, shuffle)?,
            chunk_writer: BucketChunkWriter::new(disk, budget, write_bytes, WRITE_AHEAD)?,
            open: None,
            start: 0,
            at: 0,
            chunks: Vec::new(),
        })
    }

    /// Returns a number for a new sorted run.
    fn number(&self) -> u32 {
        let mut sorted_runs = lock(&self.target.sorted_runs);
        let number = sorted_runs.len() as u32;
        sorted_runs.push(SortedRun {
            number,
            ..SortedRun::default()
        });
        number
    }

    fn close(&mut self, number: u32, task: &BucketTask, ids: u64) {
        self.end_chunk();
        lock(&self.target.sorted_runs)[number as usize] = SortedRun {
            path: task.path.clone(),
            number,
            ids,
            chunks: std::mem::take(&mut self.chunks),
        };
    }

    /// The occurrences of one id, too many or just enough: streamed.
    pub(super) fn single(
        &mut self,
        task: &BucketTask,
        chunk_reader: &mut ChunkReader,
    ) -> Result<(), IngestError> {
        let number = self.number();
        let (mut id, stop) = (None, self.context.resources.stop);
        task.read(chunk_reader, stop, |found, position| {
            id.get_or_insert_with(|| found.to_vec());
            self.resolved(position, number, 0)
        })?;
        if let Some(id) = id {
            self.id(&id)?;
            self.close(number, task, 1);
        }
        Ok(())
    }

    /// Sorts the occurrences of a bucket.
    pub(super) fn sorted_run(
        &mut self,
        task: &BucketTask,
        chunk_reader: &mut ChunkReader,
    ) -> Result<(), IngestError> {
        let number = self.number();
        let (what, budget) = ("ids to sort", self.context.resources.budget);
        let count = task.count as usize;
        let mut records = budget.buffer(what, count * size_of::<[u64; 3]>())?;
        let mut scratch = budget.buffer(what, count * size_of::<[u64; 3]>())?;
        let mut arena = budget.buffer(what, task.bytes as usize)?;
        // A record: the id's first bytes, its place and length in the arena, its position.
        let list = &mut records.typed_mut::<[u64; 3]>()[..count];
        let (mut filled, mut used) = (0, 0);
        task.read(chunk_reader, self.context.resources.stop, |id, position| {
            let place = used..used + id.len();
            let (Some(record), Some(text)) = (list.get_mut(filled), arena.get_mut(place)) else {
                let what = "a bucket of ids is larger than was counted";
                return Err(IngestError::internal(what));
            };
            text.copy_from_slice(id);
            *record = [
                prefix(id),
                (used as u64) << LENGTH_BITS | id.len() as u64,
                position,
            ];
            filled += 1;
            used += id.len();
            Ok(())
        })?;
        let list = &mut list[..filled];
        radix_sort::sort(list, scratch.typed_mut::<[u64; 3]>());
        drop(scratch);
        let id_of = |record: &[u64; 3]| {
            let at = (record[1] >> LENGTH_BITS) as usize;
            &arena[at..at + (record[1] & ((1 << LENGTH_BITS) - 1)) as usize]
        };
        let mut ids = 0u64;
        for group in list.chunk_by_mut(|a, b| a[0] == b[0]) {
            if group.iter().any(|record| id_of(record) != id_of(&group[0])) {
                group.sort_unstable_by(|a, b| id_of(a).cmp(id_of(b)));
            }
            let mut last: Option<&[u8]> = None;
            for record in group.iter() {
                let id = id_of(record);
                if last != Some(id) {
                    self.id(id)?;
                    ids += 1;
                    last = Some(id);
                }
                self.resolved(record[2], number, ids as u32 - 1)?;
            }
        }
        self.close(number, task, ids);
        Ok(())
    }

    /// Adds the next id to the sorted run.
    fn id(&mut self, id: &[u8]) -> Result<(), IngestError> {
        let write_bytes = self.context.shares.write_bytes;
        let header = match self.at == self.start {
            true => HEADER_BYTES,
            false => 0,
        };
        let bytes = header + 2 + id.len();
        if self.open.is_none() || self.at + bytes > write_bytes {
            self.flush();
            let offset = self.target.end.fetch_add(write_bytes as u64, Relaxed);
            self.open = Some((self.chunk_writer.take()?, offset));
            (self.start, self.at) = (0, 0);
        }
        if self.at == self.start {
            self.at += HEADER_BYTES;
        }
        let place = self.at..self.at + 2 + id.len();
        self.at = place.end;
        let open = self.open.as_mut();
        let out = open.and_then(|(buffer, _)| buffer.get_mut(place));
        let too_large = "an id is larger than a chunk of a temporary file";
        let out = out.ok_or_else(|| IngestError::internal(too_large))?;
        put_text(out, id);
        Ok(())
    }

    /// Ends the chunk that the last ids went into; the next one begins in the same buffer.
    fn end_chunk(&mut self) {
        let Some((buffer, offset)) = &mut self.open else {
            return;
        };
        if self.at > self.start {
            let (offset, bytes) = (*offset + self.start as u64, self.at - self.start);
            seal_chunk(&mut buffer[self.start..], bytes, offset);
            let padded = bytes.next_multiple_of(GRAIN);
            self.chunks.push((offset, padded as u64));
            self.start = self.at.next_multiple_of(GRAIN);
            self.at = self.start;
        }
    }

    /// Sends the buffer to disk.
    fn flush(&mut self) {
        self.end_chunk();
        if let Some((buffer, offset)) = self.open.take() {
            let file = self.target.file;
            self.chunk_writer.write(file, offset, buffer, self.at);
        }
    }

    /// Records that the end of an edge at `position` is the id of that rank in that sorted run.
    fn resolved(&mut self, position: u64, sorted_run: u32, rank: u32) -> Result<(), IngestError> {
        if position == NOWHERE {
            return Ok(());
        }
        let starts = self.target.starts;
        let bucket = starts.partition_point(|&start| 2 * start <= position) - 1;
        let slot = (position - 2 * starts[bucket]) as u32;
        let code = IndexBases::code(&self.context.comm, sorted_run)?;
        let out = self.positions.reserve(bucket, RESOLVED_BYTES)?;
        out.copy_from_slice([slot, code, rank].map(u32::to_le_bytes).as_flattened());
        Ok(())
    }

    pub(super) fn finish(mut self) -> Result<(), IngestError> {
        self.flush();
        let written = self.positions.finish()? + self.chunk_writer.drain()?;
        self.context.written.fetch_add(written, Relaxed);
        Ok(())
    }
}
