//! Builds a dictionary, and reads the ids of one.

use std::sync::Mutex;
use std::sync::atomic::AtomicU64;

use graphmill_raw::lock;
use graphmill_storage::{FileHandle, Open};

use super::context::{EdgeEnds, SortContext, WRITE_AHEAD};
use super::occurrences::{NOWHERE, OccurrenceSink, OccurrenceWriter, Occurrences, split};
use super::positions::{IndexBases, join, of_all_ranks, position_starts};
use super::sorted_run::{RunTarget, SortedRun, SortedRunWriter};
use crate::error::IngestError;
use crate::external::bucket_file::ChunkReader;
use crate::external::edge_file::{ByteCursor, OrderedEdgeFile};
use crate::progress::{ImportProgress, Meter};

/// The ids in their order, in a temporary file.
#[derive(Debug)]
pub(crate) struct IdDictionary {
    /// Number of ids, of those that this rank has.
    pub(crate) ids: u64,
    chunk_bytes: usize,
    sorted_runs: Vec<SortedRun>,
    file: FileHandle,
}

impl IdDictionary {
    /// Builds the dictionary of all ends of edges.
    ///
    /// Returns it with the edges between indices, in the order of the input.
    ///
    /// # Errors
    /// The disk fails, the budget is too small, there are more than 2^47 edges, or a stop is requested.
    pub(crate) fn build(
        context: &SortContext<'_>,
        mut ends: EdgeEnds<'_>,
    ) -> Result<(Self, OrderedEdgeFile), IngestError> {
        if ends.edges >= NOWHERE / 2 {
            return Err(IngestError::internal("more than 2^47 edges"));
        }
        // Positions: runs of edges whose indices one worker holds at a time, each where the edges are.
        let starts = position_starts(context, &ends)?;
        let (starts, owners) = of_all_ranks(context, &starts)?;
        let sample = std::mem::take(&mut ends.sample);
        let occurrences = Occurrences::create(context, sample.splitters(context.shares.splitters))?;
        collect(context, &ends, &occurrences)?;

        let positions = context.bucket_file("positions", starts.len())?;
        let disk = context.resources.disk;
        let file = disk.open(&context.path("ids"), Open::CreatePrivate)?;
        let target = RunTarget {
            context,
            positions: &positions,
            starts: &starts,
            file: &file,
            end: AtomicU64::new(0),
            sorted_runs: Mutex::default(),
        };
        let sorted_runs = resolve(target, occurrences, &owners, ends.progress)?;
        let mut bases = vec![0; sorted_runs.len()];
        let ids = sorted_runs.iter().map(|sorted_run| sorted_run.ids).sum();
        let mut base = context.comm.exclusive_prefix_sum(ids)?;
        for sorted_run in &sorted_runs {
            bases[sorted_run.number as usize] = base;
            base += sorted_run.ids;
        }
        let bases = IndexBases::of_all_ranks(&context.comm, &bases)?;
        let edges = join(context, &ends, &positions, &starts, &owners, &bases)?;
        let dictionary = Self {
            ids,
            chunk_bytes: context.shares.write_bytes,
            sorted_runs,
            file,
        };
        Ok((dictionary, edges))
    }

    /// Calls `each` with the ids of this rank in ascending order; the next rank's ids follow them.
    pub(crate) fn for_each_id(
        &self,
        context: &SortContext<'_>,
        mut each: impl FnMut(&[u8]) -> Result<(), IngestError>,
    ) -> Result<(), IngestError> {
        let mut chunk_reader = ChunkReader::new(
            &**context.resources.disk,
            context.resources.budget,
            self.chunk_bytes,
            WRITE_AHEAD,
        )?;
        for sorted_run in &self.sorted_runs {
            chunk_reader.read(
                &self.file,
                self.chunk_bytes,
                sorted_run.chunks.iter().copied(),
                context.resources.stop,
                |records| {
                    let mut left = ByteCursor(records);
                    while !left.0.is_empty() {
                        let cut_short = || IngestError::internal("an id is cut short");
                        each(left.text().ok_or_else(cut_short)?)?;
                    }
                    Ok(())
                },
            )?;
        }
        Ok(())
    }
}

/// Gathers the occurrences of all ids in buckets, by reading the edges and the vertices.
fn collect(
    context: &SortContext<'_>,
    ends: &EdgeEnds<'_>,
    occurrences: &Occurrences,
) -> Result<(), IngestError> {
    // Runs of ids of about as many occurrences, as the sample has them.
    let (ranks, buckets) = (context.comm.count(), occurrences.sizes.len());
    let shuffle = context.shuffle((0..buckets).map(|bucket| bucket * ranks / buckets))?;
    let meter = Meter::new(ends.progress, "ids: collect", ends.edges_here);
    let read = || {
        for (source, meter) in [(Some(ends.source), Some(&meter)), (ends.vertices, None)] {
            let Some(source) = source else { continue };
            let make = || {
                let writer = OccurrenceWriter::new(occurrences, context, shuffle.as_ref())?;
                Ok(OccurrenceSink {
                    writer,
                    sign: ends.sign,
                    meter,
                })
            };
            for sink in source.read_all(context.resources, usize::MAX, make)? {
                sink.writer.finish(context)?;
            }
        }
        Ok(())
    };
    context.fill(&occurrences.bucket_file, shuffle.as_ref(), read)?;
    drop(shuffle);
    occurrences.merge_ranks(&context.comm)
}

/// Sorts the buckets of occurrences; writes their ids and positions to `target`.
///
/// `owners` are the ranks of the buckets of positions. Returns the runs of ids in their order.
fn resolve(
    target: RunTarget<'_>,
    occurrences: Occurrences,
    owners: &[usize],
    progress: &dyn ImportProgress,
) -> Result<Vec<SortedRun>, IngestError> {
    let context = target.context;
    let mut tasks = occurrences.tasks(&[]);
    let all = tasks.iter().map(|task| task.count).sum();
    let meter = Meter::new(progress, "ids: sort", all);
    let shuffle = context.shuffle(owners.iter().copied())?;
    let resolve = || {
        while !tasks.is_empty() {
            let more = Mutex::new(Vec::new());
            let make = || {
                let chunk_reader = context.chunk_reader()?;
                let writer = SortedRunWriter::new(&target, shuffle.as_ref())?;
                Ok((chunk_reader, writer))
            };
            let count = tasks.len() as u64;
            let states = context.run(count, make, |(chunk_reader, writer), number| {
                let task = &tasks[number as usize];
                if task.is_single() {
                    writer.single(task, chunk_reader)?;
                } else if task.memory() <= context.shares.sort_bytes {
                    writer.sorted_run(task, chunk_reader)?;
                } else {
                    let split = split(context, task, chunk_reader)?;
                    lock(&more).extend(split.tasks(&task.path));
                    return Ok(());
                }
                meter.advance(task.count);
                Ok(())
            })?;
            for (_, writer) in states {
                writer.finish()?;
            }
            tasks = std::mem::take(&mut *lock(&more));
        }
        Ok(())
    };
    context.fill(target.positions, shuffle.as_ref(), resolve)?;
    drop(shuffle);

    let mut sorted_runs = std::mem::take(&mut *lock(&target.sorted_runs));
    sorted_runs.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    Ok(sorted_runs)
}
