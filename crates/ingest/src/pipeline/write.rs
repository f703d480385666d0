//! Step 5 of an import, *write*: each bucket is read, sorted in memory, and becomes a column file.
//!
//! As many workers as memory allows, each with memory to sort in; the largest buckets first, so that the workers end together.

use std::ops::Range;

use graphmill_graph::{EdgeKind, FileSide, GraphSpec, GraphWriter};

use super::buckets::Buckets;
use super::context::{ImportContext, read_ahead};
use super::cut::CutPlan;
use super::resume::CompletedFiles;
use crate::build::distribute;
use crate::build::sort_bucket::{self, ArcCounts};
use crate::error::IngestError;
use crate::external::bucket_file::{ChunkReader, GRAIN};
use crate::external::parallel;
use crate::options::Duplicates;
use crate::progress::Meter;

/// Bytes of checksums while a file is open.
pub(crate) const TABLES_BYTES: u64 = 256 << 10;
/// Arcs that a worker must be able to sort in memory.
const RECORDS_MIN: u64 = 1 << 17;

/// Returns the bytes that a worker takes to write a column file, without arcs in memory.
///
/// The budget has `total` bytes.
fn fixed_bytes(weights: EdgeKind, total: u64, chunk_bytes: usize) -> u64 {
    let read_ahead_bytes = (read_ahead(chunk_bytes) * chunk_bytes) as u64;
    GraphWriter::memory(weights, total) + TABLES_BYTES + read_ahead_bytes
}

/// Returns the bytes that a worker needs at least, with the fewest arcs in memory.
pub(crate) fn least_bytes(
    total: u64,
    chunk_bytes: usize,
    weights: EdgeKind,
    duplicates: Duplicates,
) -> u64 {
    let record_bytes = sort_bucket::record_bytes(weights, duplicates) as u64;
    fixed_bytes(weights, total, chunk_bytes) + RECORDS_MIN * record_bytes
}

/// The memory that the write step and the last step need.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WriteMemory {
    weights: EdgeKind,
    duplicates: Duplicates,
    /// Bytes that are held already: the tables of batches, the counts of parts.
    held: u64,
    /// Bytes that the graph's writer notes of cells until the end.
    notes: u64,
    /// Bytes that the end takes in addition.
    finish: u64,
}

impl WriteMemory {
    /// Creates the demand of a cut.
    pub(crate) fn new(cut: &CutPlan) -> Self {
        Self::from_shape(&cut.shape, &cut.plan, cut.bytes())
    }

    /// Creates the demand of a shape and a plan, with `tables_bytes` bytes for the tables of batches.
    pub(crate) fn from_shape(
        shape: &GraphSpec,
        plan: &distribute::DistributionPlan,
        tables_bytes: u64,
    ) -> Self {
        let batches = shape.batches.len() as u64;
        let arcs = plan.arcs_max();
        let (mut all_cells, mut finish) = (0, 0);
        for side in plan.sides() {
            // A cell is noted when it has arcs.
            let cells_of = |file: &Range<usize>| arcs.min(file.len() as u64 * batches);
            let cells = arcs.min(side.files.iter().map(cells_of).sum());
            let most = side.files.iter().map(cells_of).max().unwrap_or(0);
            let bytes = GraphWriter::memory_to_finish(shape, arcs, cells, most);
            (all_cells, finish) = (all_cells + cells, bytes.max(finish));
        }
        Self {
            weights: plan.weights,
            duplicates: plan.duplicates,
            held: tables_bytes + distribute::counts_bytes(plan.buckets(), plan.parts),
            notes: GraphWriter::memory_of_cells(plan.buckets() as u64, all_cells),
            finish,
        }
    }

    /// Returns the bytes that are held now and later, and are not the workers'.
    pub(crate) fn held_and_noted(&self) -> u64 {
        self.held + self.notes
    }

    /// Returns the bytes that one worker takes of a budget of `total` bytes, with the held bytes.
    ///
    /// Buckets have chunks of `chunk_bytes` bytes.
    pub(crate) fn bytes(&self, total: u64, chunk_bytes: usize) -> u64 {
        let write = least_bytes(total, chunk_bytes, self.weights, self.duplicates);
        self.held + self.notes + write.max(self.finish)
    }

    /// Creates the demand of `cells` cells in `files` column files alone.
    #[cfg(test)]
    pub(crate) fn of_cells(files: u64, cells: u64) -> Self {
        Self {
            weights: EdgeKind::None,
            duplicates: Duplicates::Keep,
            held: 0,
            notes: GraphWriter::memory_of_cells(files, cells),
            finish: 0,
        }
    }
}

/// The workers of the write step.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SortLanes {
    pub(crate) count: u64,
    /// Bytes that each sorts in.
    pub(crate) sort_bytes: u64,
}

impl SortLanes {
    /// Chooses the workers, at most `most`, and the bytes in which each sorts.
    ///
    /// The largest column file wants `wanted` bytes to be sorted at once. The budget has `total` bytes, some of them free.
    pub(crate) fn new(
        plan: &distribute::DistributionPlan,
        (most, wanted): (u64, u64),
        (available, total): (u64, u64),
        chunk_bytes: usize,
    ) -> Self {
        let fixed = fixed_bytes(plan.weights, total, chunk_bytes);
        let least = least_bytes(total, chunk_bytes, plan.weights, plan.duplicates);
        let count = most.min(available / least).max(1);
        SortLanes {
            count,
            sort_bytes: (available / count).saturating_sub(fixed).min(wanted),
        }
    }
}

/// Returns the side and the number of the column file of a bucket, and its batches.
fn column_file(
    plan: &distribute::DistributionPlan,
    bucket: usize,
) -> ((FileSide, usize), &Range<usize>) {
    let (columns, side) = match &plan.reverse {
        Some(reverse) if bucket >= reverse.bucket_first => (reverse, FileSide::Reverse),
        _ => (&plan.forward, FileSide::Forward),
    };
    let number = bucket - columns.bucket_first;
    ((side, number), &columns.files[number])
}

impl ImportContext<'_> {
    /// Chooses the workers that write `files`; `noted` bytes of their notes are held already.
    fn sort_lanes<'c>(
        &self,
        cut: &CutPlan,
        files: &[usize],
        parts_of: &dyn Fn(usize) -> &'c [u64],
        chunk_bytes: usize,
        noted: u64,
    ) -> Result<SortLanes, IngestError> {
        let (plan, budget) = (&cut.plan, self.resources.budget);
        let least = least_bytes(budget.total(), chunk_bytes, plan.weights, plan.duplicates);
        // That the notes leave enough was known when arcs were distributed.
        let notes = WriteMemory::new(cut).notes.saturating_sub(noted);
        IngestError::check_free("column files", notes + least, budget)?;
        // Enough for every bucket at once, with scratch for its largest part.
        let with_scratch = |bucket: &usize| {
            let parts = parts_of(*bucket);
            parts.iter().sum::<u64>() + parts.iter().copied().max().unwrap_or(0)
        };
        let record_bytes = sort_bucket::record_bytes(plan.weights, plan.duplicates) as u64;
        let most = files.iter().map(with_scratch).max().unwrap_or(0) * record_bytes;
        let wanted = most.max(GRAIN as u64).min(self.options.work_bytes_max);
        Ok(SortLanes::new(
            plan,
            (self.lanes().min(files.len() as u64), wanted),
            (budget.available() - notes, budget.total()),
            chunk_bytes,
        ))
    }

    /// Step 5.
    pub(crate) fn write(
        &mut self,
        cut: &CutPlan,
        buckets: Buckets,
        graph: &GraphWriter,
    ) -> Result<ArcCounts, IngestError> {
        let resources = self.resources;
        let plan = &cut.plan;
        let counts = buckets.counts.typed::<u64>();
        let parts_of = |bucket: usize| &counts[bucket * plan.parts..(bucket + 1) * plan.parts];
        let arcs_of = |bucket: usize| parts_of(bucket).iter().sum::<u64>();
        // The largest first, so that workers end together.
        let mut order: Vec<usize> = (0..plan.buckets()).collect();
        order.retain(|&bucket| cut.owners[bucket] == self.comm.rank());
        let all: u64 = order.iter().map(|&bucket| arcs_of(bucket)).sum();
        let file = |bucket| column_file(plan, bucket).0;
        let free = resources.budget.available();
        let done = self.done_files(graph, order.iter().map(|&bucket| file(bucket)))?;
        order.retain(|&bucket| !done.contains_key(&file(bucket)));
        order.sort_by_key(|&bucket| std::cmp::Reverse(arcs_of(bucket)));
        let chunk_bytes = buckets.bucket_file.chunk_bytes;
        let noted = free - resources.budget.available().min(free);
        let lanes = self.sort_lanes(cut, &order, &parts_of, chunk_bytes, noted)?;

        let meter = Meter::new(resources.progress, "write", all);
        meter.advance(all - order.iter().map(|&bucket| arcs_of(bucket)).sum::<u64>());
        let completed = CompletedFiles::new(self, graph);
        let make = || {
            let (disk, budget) = (&**resources.disk, resources.budget);
            let ahead = read_ahead(chunk_bytes);
            let scratch = sort_bucket::SortScratch {
                chunk_reader: ChunkReader::new(disk, budget, chunk_bytes, ahead)?,
                records: budget.buffer("arcs to sort", lanes.sort_bytes as usize)?,
            };
            Ok((scratch, ArcCounts::default()))
        };
        let work = |(lane, kept): &mut (sort_bucket::SortScratch, ArcCounts), task: u64| {
            let bucket = order[task as usize];
            let ((side, number), batches) = column_file(plan, bucket);
            let mut writer = match side {
                FileSide::Forward => graph.column_file(number)?,
                FileSide::Reverse => graph.reverse_column_file(number)?,
            };
            let file = sort_bucket::BucketSort {
                plan,
                bucket_file: &buckets.bucket_file,
                stop: resources.stop,
                bucket,
                batches,
            };
            let written = file.write(parts_of(bucket), lane, &mut writer)?;
            writer.finish()?;
            // Transposed arcs are the same arcs: they are counted once.
            if side == FileSide::Forward {
                kept.add(written);
            }
            completed.add(side, number, written);
            meter.advance(arcs_of(bucket));
            Ok(())
        };
        let (count, tasks) = (lanes.count as usize, order.len() as u64);
        let states = parallel::run(resources, count, tasks, make, work);
        if states.is_err() {
            completed.checkpoint();
        }
        let mut kept = ArcCounts::default();
        let before = done
            .iter()
            .filter(|((side, _), _)| *side == FileSide::Forward);
        before.for_each(|(_, part)| kept.add(*part));
        states?.into_iter().for_each(|(_, part)| kept.add(part));
        self.comm.sum_counters([
            &mut kept.arcs,
            &mut kept.loops_dropped,
            &mut kept.others_dropped,
        ])?;
        self.done("write");
        Ok(kept)
    }
}
