//! Leaves: the ids of one bucket, in order and each once, in chunks of a temporary file.
//!
//! 1. A bucket of ids is sorted in memory by their first eight bytes, and where those are the same by the whole ids. One
//!    that holds a single id is streamed.
//! 2. Every id that differs from the one before goes to the leaf; each occurrence tells the bucket of its position the leaf
//!    and the rank there.
//!
//! Leaves are numbered as they are made, which says nothing of their order: that is the order of their paths.

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
    place: &'a SortContext<'a>,
    positions: BucketWriter<'a>,
    starts: &'a [u64],
    file: &'a FileHandle,
    end: &'a AtomicU64,
    outbox: ChunkWriter,
    leaves: &'a Mutex<Vec<SortedRun>>,
    /// A buffer of chunks that fills, and where it will lie in the file.
    open: Option<(Buffer, u64)>,
    /// Where in it the last chunk begins, and where it ends so far.
    start: usize,
    at: usize,
    /// The chunks of the leaf.
    chunks: Vec<(u64, u64)>,
}

impl<'a> SortedRunWriter<'a> {
    pub(super) fn new(
        place: &'a SortContext<'a>,
        positions: &'a BucketFile,
        post: Option<&'a BucketShuffle<'a>>,
        starts: &'a [u64],
        file: &'a FileHandle,
        end: &'a AtomicU64,
        leaves: &'a Mutex<Vec<SortedRun>>,
    ) -> Result<Self, IngestError> {
        Ok(Self {
            place,
            positions: BucketWriter::new(
                positions,
                &**place.disk,
                place.budget,
                place.write_bytes,
            )?
            .sending(post),
            starts,
            file,
            end,
            outbox: ChunkWriter::new(&**place.disk, place.budget, place.write_bytes, WRITE_AHEAD)?,
            leaves,
            open: None,
            start: 0,
            at: 0,
            chunks: Vec::new(),
        })
    }

    /// A number for a new leaf.
    fn number(&self) -> u32 {
        let mut leaves = lock(self.leaves);
        let number = leaves.len() as u32;
        leaves.push(SortedRun {
            path: Vec::new(),
            number,
            ids: 0,
            chunks: Vec::new(),
        });
        number
    }

    fn close(&mut self, number: u32, task: &BucketTask, ids: u64) {
        self.end_chunk();
        let leaf = SortedRun {
            path: task.path.clone(),
            number,
            ids,
            chunks: std::mem::take(&mut self.chunks),
        };
        lock(self.leaves)[number as usize] = leaf;
    }

    /// The occurrences of one id, too many or just enough: streamed.
    pub(super) fn single(
        &mut self,
        task: &BucketTask,
        inbox: &mut ChunkReader,
    ) -> Result<(), IngestError> {
        let number = self.number();
        let mut id = None;
        task.read(inbox, self.place.stop, |found, position| {
            if id.is_none() {
                id = Some(found.to_vec());
            }
            self.resolved(position, number, 0)
        })?;
        if let Some(id) = id {
            self.id(&id)?;
            self.close(number, task, 1);
        }
        Ok(())
    }

    /// Sorts the occurrences of a bucket.
    pub(super) fn leaf(
        &mut self,
        task: &BucketTask,
        inbox: &mut ChunkReader,
    ) -> Result<(), IngestError> {
        let number = self.number();
        let (what, budget) = ("ids to sort", self.place.budget);
        let count = task.count as usize;
        let mut records = budget.buffer(what, count * size_of::<[u64; 3]>())?;
        let mut scratch = budget.buffer(what, count * size_of::<[u64; 3]>())?;
        let mut arena = budget.buffer(what, task.bytes as usize)?;
        // A record: the id's first bytes, its place and length in the arena, its position.
        let list = &mut records.typed_mut::<[u64; 3]>()[..count];
        let (mut filled, mut used) = (0, 0);
        task.read(inbox, self.place.stop, |id, position| {
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

    /// The next id of the leaf.
    fn id(&mut self, id: &[u8]) -> Result<(), IngestError> {
        let header = if self.at == self.start {
            HEADER_BYTES
        } else {
            0
        };
        let bytes = header + 2 + id.len();
        if self.open.is_none() || self.at + bytes > self.place.write_bytes {
            self.flush();
            let offset = self.end.fetch_add(self.place.write_bytes as u64, Relaxed);
            self.open = Some((self.outbox.take()?, offset));
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
            self.outbox.write(self.file, offset, buffer, self.at);
        }
    }

    /// The end of an edge at `position` is the id of that rank in that leaf.
    fn resolved(&mut self, position: u64, leaf: u32, rank: u32) -> Result<(), IngestError> {
        if position == NOWHERE {
            return Ok(());
        }
        let bucket = self.starts.partition_point(|&start| 2 * start <= position) - 1;
        let slot = (position - 2 * self.starts[bucket]) as u32;
        let code = IndexBases::code(&self.place.crew, leaf)?;
        let out = self.positions.room(bucket, RESOLVED_BYTES)?;
        out[0..4].copy_from_slice(&slot.to_le_bytes());
        out[4..8].copy_from_slice(&code.to_le_bytes());
        out[8..12].copy_from_slice(&rank.to_le_bytes());
        Ok(())
    }

    pub(super) fn finish(mut self) -> Result<(), IngestError> {
        self.flush();
        let written = self.positions.finish()? + self.outbox.drain()?;
        self.place.written.fetch_add(written, Relaxed);
        Ok(())
    }
}
