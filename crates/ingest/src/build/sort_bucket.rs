//! One column file: its bucket of arcs, read back, put in order and handed to the graph's writer.
//!
//! 1. The counts of the bucket's parts (ranges of keys) say where in memory each part begins. Parts that fit the
//!    worker's memory together are a *selection*: one reading of the bucket puts their keys in place.
//! 2. Each part is sorted in a core's cache, duplicates are resolved, and its arcs leave cell by cell.
//! 3. A part that does not fit alone is counted again in finer parts, by a reading of its own.

use std::ops::Range;

use graphmill_graph::{ColumnFileWriter, EdgeKind};
use graphmill_storage::{Buffer, CancelToken};

use super::dedup::{ArcRecord, resolve};
use super::distribute::DistributionPlan;
use crate::edge_data::{HALF_BYTES, weight_bits, weight_of_bits};
use crate::error::IngestError;
use crate::external::bucket_file::{BucketFile, ChunkReader};
use crate::external::radix_sort;
use crate::layout::edge_key::low_bits;
use crate::options::Duplicates;

/// Arcs handed to the writer at once.
const RUN: usize = 4096;
/// Bits of the number of parts a part is counted in when it does not fit.
const REFINE_BITS: u32 = 9;
/// Ranges of data that too many arcs of one key are counted in.
const DATA_PARTS: u128 = 512;

/// Arcs that were dropped as duplicates, and those that were kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ArcCounts {
    pub(crate) arcs: u64,
    pub(crate) loops_dropped: u64,
    pub(crate) others_dropped: u64,
}

impl ArcCounts {
    pub(crate) fn add(&mut self, other: Self) {
        self.arcs += other.arcs;
        self.loops_dropped += other.loops_dropped;
        self.others_dropped += other.others_dropped;
    }
}

/// One worker's memory for the step.
#[derive(Debug)]
pub(crate) struct SortScratch {
    pub(crate) chunk_reader: ChunkReader,
    /// The records of a selection, then scratch for its largest part.
    pub(crate) records: Buffer,
}

/// Bytes of one record in memory.
pub(crate) fn record_bytes(weights: EdgeKind, duplicates: Duplicates) -> usize {
    match (weights, duplicates) {
        (EdgeKind::None, _) => size_of::<u64>(),
        (kind, _) if kind.bytes() > HALF_BYTES => size_of::<[u64; 4]>(),
        (_, Duplicates::First) => size_of::<[u64; 3]>(),
        _ => size_of::<[u64; 2]>(),
    }
}

/// The file that is written, and how.
pub(crate) struct BucketSort<'a> {
    pub(crate) plan: &'a DistributionPlan,
    pub(crate) bucket_file: &'a BucketFile,
    pub(crate) stop: &'a CancelToken,
    pub(crate) bucket: usize,
    /// The batches of the file.
    pub(crate) batches: &'a Range<usize>,
}

/// A range of keys in parts of `1 << shift` keys; the first part begins at `key`.
#[derive(Clone, Copy)]
struct PartCounts<'a> {
    key: u64,
    shift: u32,
    counts: &'a [u64],
}

impl BucketSort<'_> {
    /// Writes the whole file. `counts`: the arcs of each part of its bucket.
    pub(crate) fn write(
        &self,
        counts: &[u64],
        lane: &mut SortScratch,
        writer: &mut ColumnFileWriter,
    ) -> Result<ArcCounts, IngestError> {
        let parts = PartCounts {
            key: 0,
            shift: self.plan.part_shifts[self.bucket],
            counts,
        };
        let mut out = ArcOutput {
            plan: self.plan,
            batch_first: self.batches.start,
            writer,
            kept: ArcCounts::default(),
        };
        match record_bytes(self.plan.weights, self.plan.duplicates) {
            8 => self.parts::<u64>(parts, lane, &mut out)?,
            16 => self.parts::<[u64; 2]>(parts, lane, &mut out)?,
            24 => self.parts::<[u64; 3]>(parts, lane, &mut out)?,
            _ => self.parts::<[u64; 4]>(parts, lane, &mut out)?,
        }
        Ok(out.kept)
    }

    fn parts<R: ArcRecord>(
        &self,
        parts: PartCounts<'_>,
        lane: &mut SortScratch,
        out: &mut ArcOutput<'_>,
    ) -> Result<(), IngestError> {
        let capacity = (lane.records.len() / size_of::<R>()) as u64;
        let counts = parts.counts;
        let mut from = 0;
        while from < counts.len() {
            if counts[from] == 0 {
                from += 1;
                continue;
            }
            let (mut to, mut sum, mut largest) = (from, 0, 0);
            while to < counts.len() && sum + counts[to] + counts[to].max(largest) <= capacity {
                sum += counts[to];
                largest = largest.max(counts[to]);
                to += 1;
            }
            if to > from {
                self.sort_range::<R>(parts, from..to, sum as usize, lane, out)?;
                from = to;
            } else {
                let key = parts.key + ((from as u64) << parts.shift);
                self.subdivide::<R>(key, parts.shift, counts[from], lane, out)?;
                from += 1;
            }
        }
        Ok(())
    }

    /// Counts a part in finer parts and writes these, because its `count` arcs exceed memory.
    ///
    /// The part has `1 << shift` keys from `key` on.
    fn subdivide<R: ArcRecord>(
        &self,
        key: u64,
        shift: u32,
        count: u64,
        lane: &mut SortScratch,
        out: &mut ArcOutput<'_>,
    ) -> Result<(), IngestError> {
        if shift == 0 {
            return self.emit_repeated::<R>(key, count, lane, out);
        }
        let fine = shift.saturating_sub(REFINE_BITS);
        let mut counts = vec![0u64; 1 << (shift - fine)];
        self.for_each_arc(&mut lane.chunk_reader, |found, _, _| {
            let part = found.wrapping_sub(key) >> fine;
            if let Some(count) = counts.get_mut(part as usize) {
                *count += 1;
            }
        })?;
        let parts = PartCounts {
            key,
            shift: fine,
            counts: &counts,
        };
        self.parts::<R>(parts, lane, out)
    }

    /// `count` arcs of one key, too many for memory: if they have data, it reads the bucket again.
    fn emit_repeated<R: ArcRecord>(
        &self,
        key: u64,
        count: u64,
        lane: &mut SortScratch,
        out: &mut ArcOutput<'_>,
    ) -> Result<(), IngestError> {
        let DistributionPlan {
            weights: kind,
            duplicates,
            ..
        } = *self.plan;
        let survivor = match duplicates {
            Duplicates::Keep if kind == EdgeKind::None => {
                return out.repeat(R::new(key, 0, 0), count);
            }
            Duplicates::Keep => {
                return self.each_data(key, count, lane, &mut |data, times| {
                    out.repeat(R::new(key, data, 0), times)
                });
            }
            _ if kind == EdgeKind::None => R::new(key, 0, 0),
            Duplicates::Sum => {
                // As `resolve` adds them: in ascending order of their bits, from the empty sum.
                let mut sum: f64 = std::iter::empty::<f64>().sum();
                self.each_data(key, count, lane, &mut |data, times| {
                    (0..times).for_each(|_| sum += weight_of_bits(data, kind));
                    Ok(())
                })?;
                let weight = u128::from(weight_bits(sum, kind));
                if !weight_of_bits(weight, kind).is_finite() {
                    return Err(IngestError::SumTooLarge);
                }
                R::new(key, weight, 0)
            }
            Duplicates::First | Duplicates::Min | Duplicates::Max => {
                let mut survivor: Option<R> = None;
                self.for_each_arc(&mut lane.chunk_reader, |found, data, sequence| {
                    if found == key {
                        let mut two = [R::new(key, data, sequence); 2];
                        two[1] = survivor.unwrap_or(two[0]);
                        // Of two of one key, which it leaves at the front.
                        let _ = resolve(&mut two, duplicates, kind, |_, _| {});
                        survivor = Some(two[0]);
                    }
                })?;
                survivor.unwrap_or(R::new(key, 0, 0))
            }
        };
        out.dropped(key, count - 1);
        out.emit(&[survivor])
    }

    /// Passes the data of each of the `count` arcs of one key to `each`, ascending, with its frequency.
    ///
    /// One reading of the bucket yields as many as the worker's memory holds.
    fn each_data(
        &self,
        key: u64,
        count: u64,
        lane: &mut SortScratch,
        each: &mut dyn FnMut(u128, u64) -> Result<(), IngestError>,
    ) -> Result<(), IngestError> {
        let unused = u128::BITS - 8 * self.plan.packing.data_bytes as u32;
        let highest = u128::MAX.checked_shr(unused).unwrap_or(0);
        // Ranges of data that are still to come, the lowest last.
        let mut ranges = vec![(0, highest, count)];
        while let Some((low, high, count)) = ranges.pop() {
            if low == high {
                each(low, count)?;
                continue;
            }
            let is_of_range = |found, data: &u128| found == key && (low..=high).contains(data);
            let capacity = lane.records.typed::<[u64; 2]>().len() as u64;
            if count > capacity {
                let width = (high - low) / DATA_PARTS + 1;
                let mut counts = [0; DATA_PARTS as usize];
                self.for_each_arc(&mut lane.chunk_reader, |found, data, _| {
                    if is_of_range(found, &data) {
                        counts[((data - low) / width) as usize] += 1;
                    }
                })?;
                let mut parts: Vec<(u128, u128, u64)> = Vec::new();
                for (part, count) in (0..DATA_PARTS).zip(counts).filter(|part| part.1 > 0) {
                    let low = low + part * width;
                    let high = low.saturating_add(width - 1).min(high);
                    match parts.last_mut() {
                        Some(last) if last.2 + count <= capacity => {
                            (last.1, last.2) = (high, last.2 + count);
                        }
                        _ => parts.push((low, high, count)),
                    }
                }
                ranges.extend(parts.into_iter().rev());
                continue;
            }
            let SortScratch {
                chunk_reader,
                records,
            } = &mut *lane;
            let (list, mut found_here) = (records.typed_mut::<[u64; 2]>(), 0);
            self.for_each_arc(chunk_reader, |found, data, _| {
                if is_of_range(found, &data) {
                    if let Some(place) = list.get_mut(found_here) {
                        *place = [(data >> u64::BITS) as u64, data as u64];
                    }
                    found_here += 1;
                }
            })?;
            if found_here as u64 != count {
                return Err(IngestError::internal(
                    "the arcs of a bucket are not those that were counted",
                ));
            }
            list[..found_here].sort_unstable();
            for equal in list[..found_here].chunk_by(|one, other| one == other) {
                let [high, low] = equal[0].map(u128::from);
                each(high << u64::BITS | low, equal.len() as u64)?;
            }
        }
        Ok(())
    }

    /// Reads the bucket, and hands out the key, the data and the sequence number of each arc.
    fn for_each_arc(
        &self,
        chunk_reader: &mut ChunkReader,
        mut each: impl FnMut(u64, u128, u64),
    ) -> Result<(), IngestError> {
        self.bucket_file
            .read(self.bucket, chunk_reader, self.stop, |packed| {
                self.plan.packing.unpack(packed, &mut each);
                Ok(())
            })
    }

    /// Reads the keys of some parts, sorts them and writes them.
    fn sort_range<R: ArcRecord>(
        &self,
        parts: PartCounts<'_>,
        chosen: Range<usize>,
        total: usize,
        lane: &mut SortScratch,
        out: &mut ArcOutput<'_>,
    ) -> Result<(), IngestError> {
        let key = parts.key + ((chosen.start as u64) << parts.shift);
        let counts = &parts.counts[chosen];
        let mut at: Vec<usize> = Vec::with_capacity(counts.len());
        let mut sum = 0;
        for &count in counts {
            at.push(sum);
            sum += count as usize;
        }
        let (records, scratch) = lane.records.typed_mut::<R>().split_at_mut(total);
        let mut lost = false;
        self.bucket_file
            .read(self.bucket, &mut lane.chunk_reader, self.stop, |packed| {
                self.plan.packing.unpack(packed, |found, data, sequence| {
                    let part = found.wrapping_sub(key) >> parts.shift;
                    let Some(slot) = at.get_mut(part as usize) else {
                        return;
                    };
                    match records.get_mut(*slot) {
                        Some(record) => *record = R::new(found, data, sequence),
                        None => lost = true,
                    }
                    *slot += 1;
                });
                Ok(())
            })?;
        let mut from = 0;
        for (&count, &to) in counts.iter().zip(&at) {
            if lost || to != from + count as usize {
                return Err(IngestError::internal(
                    "the arcs of a bucket are not those that were counted",
                ));
            }
            IngestError::check_stop(self.stop)?;
            let part = &mut records[from..to];
            radix_sort::sort(part, scratch);
            let (duplicates, weights) = (self.plan.duplicates, self.plan.weights);
            let count = resolve(part, duplicates, weights, |key, arcs| {
                out.dropped(key, arcs);
            })?;
            out.emit(&part[..count])?;
            from = to;
        }
        Ok(())
    }
}

/// The column file that sorted arcs go to, and their counts.
struct ArcOutput<'a> {
    plan: &'a DistributionPlan,
    batch_first: usize,
    writer: &'a mut ColumnFileWriter,
    kept: ArcCounts,
}

impl ArcOutput<'_> {
    fn dropped(&mut self, key: u64, arcs: u64) {
        if self.plan.layout.is_loop(self.batch_first, key) {
            self.kept.loops_dropped += arcs;
        } else {
            self.kept.others_dropped += arcs;
        }
    }

    /// Hands the writer an arc `times` times.
    fn repeat<R: ArcRecord>(&mut self, arc: R, times: u64) -> Result<(), IngestError> {
        let run = [arc; RUN];
        let mut left = times;
        while left > 0 {
            let now = left.min(RUN as u64);
            self.emit(&run[..now as usize])?;
            left -= now;
        }
        Ok(())
    }

    /// Hands sorted arcs to the writer, cell by cell, with batch-local ends.
    fn emit<R: ArcRecord>(&mut self, mut arcs: &[R]) -> Result<(), IngestError> {
        if arcs.is_empty() {
            return Ok(());
        }
        let layout = &self.plan.layout;
        let cuts = layout.cuts();
        let bits = layout.destination_bits;
        let mask = low_bits(bits);
        let mut keys = [0u64; RUN];
        let mut data = [0u8; RUN * HALF_BYTES];
        let data_bytes = self.plan.packing.data_bytes;
        let most = RUN * HALF_BYTES / data_bytes.max(HALF_BYTES);
        self.kept.arcs += arcs.len() as u64;
        while let Some(first) = arcs.first() {
            let (batch, source, _) = layout.parts(first.key());
            let source_batch = layout.batch_of.batch(source);
            // The key, less its destination, of the cell's first source and of the source after its last.
            let start = (first.key() >> bits) - (source - cuts[source_batch]);
            let end = start + (cuts[source_batch + 1] - cuts[source_batch]);
            let cell = arcs.partition_point(|arc| arc.key() >> bits < end);
            let (now, rest) = arcs.split_at(cell);
            for run in now.chunks(most) {
                for (key, arc) in keys.iter_mut().zip(run) {
                    *key = ((arc.key() >> bits) - start) << 32 | arc.key() & mask;
                }
                match data_bytes {
                    0 => {}
                    4 => {
                        let data = data.as_chunks_mut::<4>().0.iter_mut();
                        data.zip(run)
                            .for_each(|(out, arc)| *out = (arc.data() as u32).to_le_bytes());
                    }
                    8 => {
                        let data = data.as_chunks_mut::<8>().0.iter_mut();
                        data.zip(run)
                            .for_each(|(out, arc)| *out = (arc.data() as u64).to_le_bytes());
                    }
                    _ => {
                        for (out, arc) in data.chunks_exact_mut(data_bytes).zip(run) {
                            out.copy_from_slice(&arc.data().to_le_bytes()[..data_bytes]);
                        }
                    }
                }
                let data = &data[..run.len() * data_bytes];
                let batch = self.batch_first + batch;
                self.writer
                    .edges(batch, source_batch, &keys[..run.len()], data)?;
            }
            arcs = rest;
        }
        Ok(())
    }
}
