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
    BucketFile, BucketWriter, ChunkReader, ChunkWriter, GRAIN, HEADER_BYTES, seal_chunk,
};
use crate::external::radix_sort;
use crate::external::shuffle::BucketShuffle;
use crate::limits::ID_BYTES_MAX;

/// Bits of the length of an id beside its place.
const LENGTH_BITS: u32 = 12;
const _: () = assert!(ID_BYTES_MAX < 1 << LENGTH_BITS);

/// A part of the dictionary: ids that follow each other.
#[derive(Debug)]
pub(super) struct SortedRun {
    pub(super) path: Vec<u32>,
    pub(super) number: u32,
    pub(super) ids: u64,
    /// Offsets and lengths of the chunks that hold its ids.
    pub(super) chunks: Vec<(u64, u64)>,
}

/// One worker's way from buckets of ids to leaves.
pub(super) struct SortedRunWriter<'a> {
    context: &'a SortContext<'a>,
    positions: BucketWriter<'a>,
    starts: &'a [u64],
    file: &'a FileHandle,
    end: &'a AtomicU64,
    chunk_writer: ChunkWriter,
    sorted_runs: &'a Mutex<Vec<SortedRun>>,
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
        context: &'a SortContext<'a>,
        positions: &'a BucketFile,
        shuffle: Option<&'a BucketShuffle<'a>>,
        starts: &'a [u64],
        file: &'a FileHandle,
        end: &'a AtomicU64,
        sorted_runs: &'a Mutex<Vec<SortedRun>>,
    ) -> Result<Self, IngestError> {
        Ok(Self {
            context,
            positions: BucketWriter::new(
                positions,
                &**context.machine.disk,
                context.machine.budget,
                context.shares.write_bytes,
            )?
            .sending(shuffle),
            starts,
            file,
            end,
            chunk_writer: ChunkWriter::new(
                &**context.machine.disk,
                context.machine.budget,
                context.shares.write_bytes,
                WRITE_AHEAD,
            )?,
            sorted_runs,
            open: None,
            start: 0,
            at: 0,
            chunks: Vec::new(),
        })
    }

    /// Returns a number for a new sorted run.
    fn number(&self) -> u32 {
        let mut sorted_runs = lock(self.sorted_runs);
        let number = sorted_runs.len() as u32;
        sorted_runs.push(SortedRun {
            path: Vec::new(),
            number,
            ids: 0,
            chunks: Vec::new(),
        });
        number
    }

    fn close(&mut self, number: u32, task: &BucketTask, ids: u64) {
        self.end_chunk();
        let sorted_run = SortedRun {
            path: task.path.clone(),
            number,
            ids,
            chunks: std::mem::take(&mut self.chunks),
        };
        lock(self.sorted_runs)[number as usize] = sorted_run;
    }

    /// The occurrences of one id, too many or just enough: streamed.
    pub(super) fn single(
        &mut self,
        task: &BucketTask,
        chunk_reader: &mut ChunkReader,
    ) -> Result<(), IngestError> {
        let number = self.number();
        let mut id = None;
        task.read(
            chunk_reader,
            self.context.machine.stop,
            |found, position| {
                if id.is_none() {
                    id = Some(found.to_vec());
                }
                self.resolved(position, number, 0)
            },
        )?;
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
        let (what, budget) = ("ids to sort", self.context.machine.budget);
        let count = task.count as usize;
        let mut records = budget.buffer(what, count * size_of::<[u64; 3]>())?;
        let mut scratch = budget.buffer(what, count * size_of::<[u64; 3]>())?;
        let mut arena = budget.buffer(what, task.bytes as usize)?;
        // A record: the id's first bytes, its place and length in the arena, its position.
        let list = &mut records.typed_mut::<[u64; 3]>()[..count];
        let (mut filled, mut used) = (0, 0);
        task.read(chunk_reader, self.context.machine.stop, |id, position| {
            let (Some(record), Some(text)) =
                (list.get_mut(filled), arena.get_mut(used..used + id.len()))
            else {
                return Err(IngestError::internal(
                    "a bucket of ids is larger than was counted",
                ));
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
        let mut from = 0;
        let mut ids = 0u64;
        while from < list.len() {
            let mut to = from + 1;
            while to < list.len() && list[to][0] == list[from][0] {
                to += 1;
            }
            let group = &mut list[from..to];
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
            from = to;
        }
        self.close(number, task, ids);
        Ok(())
    }

    /// Adds the next id to the sorted run.
    fn id(&mut self, id: &[u8]) -> Result<(), IngestError> {
        let header = if self.at == self.start {
            HEADER_BYTES
        } else {
            0
        };
        let bytes = header + 2 + id.len();
        if self.open.is_none() || self.at + bytes > self.context.shares.write_bytes {
            self.flush();
            let offset = self
                .end
                .fetch_add(self.context.shares.write_bytes as u64, Relaxed);
            self.open = Some((self.chunk_writer.take()?, offset));
            (self.start, self.at) = (0, 0);
        }
        if self.at == self.start {
            self.at += HEADER_BYTES;
        }
        let at = self.at;
        let out = self
            .open
            .as_mut()
            .and_then(|(buffer, _)| buffer.get_mut(at..at + 2 + id.len()));
        let out = out.ok_or_else(|| {
            IngestError::internal("an id is larger than a chunk of a temporary file")
        })?;
        out[..2].copy_from_slice(&(id.len() as u16).to_le_bytes());
        out[2..].copy_from_slice(id);
        self.at += 2 + id.len();
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
            self.chunks
                .push((offset, bytes.next_multiple_of(GRAIN) as u64));
            self.start = self.at.next_multiple_of(GRAIN);
            self.at = self.start;
        }
    }

    /// Sends the buffer to disk.
    fn flush(&mut self) {
        self.end_chunk();
        if let Some((buffer, offset)) = self.open.take() {
            self.chunk_writer.write(self.file, offset, buffer, self.at);
        }
    }

    /// Records that the end of an edge at `position` is the id of that rank in that sorted run.
    fn resolved(&mut self, position: u64, sorted_run: u32, rank: u32) -> Result<(), IngestError> {
        if position == NOWHERE {
            return Ok(());
        }
        let bucket = self.starts.partition_point(|&start| 2 * start <= position) - 1;
        let slot = (position - 2 * self.starts[bucket]) as u32;
        let code = IndexBases::code(&self.context.comm, sorted_run)?;
        let out = self.positions.reserve(bucket, RESOLVED_BYTES)?;
        out[0..4].copy_from_slice(&slot.to_le_bytes());
        out[4..8].copy_from_slice(&code.to_le_bytes());
        out[8..12].copy_from_slice(&rank.to_le_bytes());
        Ok(())
    }

    pub(super) fn finish(mut self) -> Result<(), IngestError> {
        self.flush();
        let written = self.positions.finish()? + self.chunk_writer.drain()?;
        self.context.written.fetch_add(written, Relaxed);
        Ok(())
    }
}
