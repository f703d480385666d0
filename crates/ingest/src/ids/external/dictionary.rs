//! Builds a dictionary, and reads the ids of one.

use std::sync::Mutex;
use std::sync::atomic::AtomicU64;

use graphmill_raw::lock;
use graphmill_storage::{FileHandle, Open};

use super::context::{EdgeEnds, SortContext, WRITE_AHEAD};
use super::occurrences::{NOWHERE, OccurrenceSink, OccurrenceWriter, Occurrences, split};
use super::positions::{IndexBases, join, of_all_ranks, position_starts};
use super::sorted_run::{SortedRun, SortedRunWriter};
use crate::error::IngestError;
use crate::external::bucket_file::{BucketFile, ChunkReader};
use crate::external::edge_file::OrderedEdgeFile;
use crate::external::parallel;
use crate::progress::Meter;

/// The ids in their order, in a temporary file.
#[derive(Debug)]
pub(crate) struct IdDictionary {
    ids: u64,
    chunk_bytes: usize,
    leaves: Vec<SortedRun>,
    file: FileHandle,
}

impl IdDictionary {
    /// Builds the dictionary of all ends of edges; returns it with the edges between indices, in the order of the input.
    ///
    /// # Errors
    /// What the disk reports, a budget too small, more than 2^47 edges, or a stop.
    pub(crate) fn build(
        place: &SortContext<'_>,
        mut ends: EdgeEnds<'_>,
    ) -> Result<(Self, OrderedEdgeFile), IngestError> {
        if ends.edges >= NOWHERE / 2 {
            return Err(IngestError::internal("more than 2^47 edges"));
        }
        // Positions: runs of edges whose indices one worker holds at a time, each where the edges are.
        let starts = position_starts(place, &ends)?;
        let (starts, owners) = of_all_ranks(place, &starts)?;
        let sample = std::mem::take(&mut ends.sample);
        let occurrences = Occurrences::create(place, sample.splitters(place.splitters))?;
        // Runs of ids of about as many occurrences, as the sample has them.
        let (ranks, buckets) = (place.crew.count(), occurrences.buckets());
        let post = place.post((0..buckets).map(|bucket| bucket * ranks / buckets))?;
        let meter = Meter::new(ends.progress, "ids: collect", ends.edges_here);
        let read = || {
            for (source, nowhere) in [(Some(ends.source), false), (ends.vertices, true)] {
                let Some(source) = source else { continue };
                let make = || {
                    let writer = OccurrenceWriter::new(&occurrences, place, post.as_ref())?;
                    Ok((
                        source.reader(place.disk, place.budget)?,
                        OccurrenceSink {
                            writer,
                            meter: (!nowhere).then_some(&meter),
                            nowhere,
                        },
                    ))
                };
                let states = parallel::run(
                    place.workers,
                    usize::MAX,
                    place.stop,
                    source.units(),
                    make,
                    |(reader, sink), unit| source.read(unit, reader, place.stop, sink),
                )?;
                states
                    .into_iter()
                    .try_for_each(|(_, sink)| sink.writer.finish(place))?;
            }
            Ok(())
        };
        place.fill(occurrences.spill(), post.as_ref(), read)?;
        drop(post);
        occurrences.put_together(&place.crew)?;

        let positions = BucketFile::create(
            &**place.disk,
            place.path("positions"),
            starts.len(),
            place.chunk_bytes,
        )?;
        let file = place.disk.open(&place.path("ids"), Open::CreatePrivate)?;
        let end = AtomicU64::new(0);
        let leaves = Mutex::new(Vec::new());
        let mut tasks = occurrences.tasks(&[]);
        let all = tasks.iter().map(|task| task.count).sum();
        let meter = Meter::new(ends.progress, "ids: sort", all);
        let post = place.post(owners.iter().copied())?;
        let resolve = || {
            while !tasks.is_empty() {
                let more = Mutex::new(Vec::new());
                let make = || {
                    Ok((
                        place.inbox()?,
                        SortedRunWriter::new(
                            place,
                            &positions,
                            post.as_ref(),
                            &starts,
                            &file,
                            &end,
                            &leaves,
                        )?,
                    ))
                };
                let work = |(inbox, writer): &mut (ChunkReader, SortedRunWriter<'_>),
                            number: u64| {
                    let task = &tasks[number as usize];
                    if task.is_single() {
                        writer.single(task, inbox)?;
                    } else if task.memory() <= place.sort_bytes {
                        writer.leaf(task, inbox)?;
                    } else {
                        let split = split(place, task, inbox)?;
                        lock(&more).extend(split.tasks(&task.path));
                        return Ok(());
                    }
                    meter.advance(task.count);
                    Ok(())
                };
                let states = parallel::run(
                    place.workers,
                    usize::MAX,
                    place.stop,
                    tasks.len() as u64,
                    make,
                    work,
                )?;
                states
                    .into_iter()
                    .try_for_each(|(_, writer)| writer.finish())?;
                tasks = more
                    .into_inner()
                    .unwrap_or_else(std::sync::PoisonError::into_inner);
            }
            Ok(())
        };
        place.fill(&positions, post.as_ref(), resolve)?;
        drop(post);

        let mut leaves = leaves
            .into_inner()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        leaves.sort_unstable_by(|a: &SortedRun, b: &SortedRun| a.path.cmp(&b.path));
        let mut bases = vec![0; leaves.len()];
        let mut ids = place
            .crew
            .before(leaves.iter().map(|leaf| leaf.ids).sum())?;
        let first = ids;
        for leaf in &leaves {
            bases[leaf.number as usize] = ids;
            ids += leaf.ids;
        }
        let ids = ids - first;
        let bases = IndexBases::of_all_ranks(&place.crew, &bases)?;
        let edges = join(place, &ends, &positions, &starts, &owners, &bases)?;
        Ok((
            Self {
                ids,
                chunk_bytes: place.write_bytes,
                leaves,
                file,
            },
            edges,
        ))
    }

    /// Number of ids, of those that this rank has.
    pub(crate) fn len(&self) -> u64 {
        self.ids
    }

    /// Calls `each` with the ids that this rank has in ascending order; those of the next rank follow.
    pub(crate) fn for_each_id(
        &self,
        place: &SortContext<'_>,
        mut each: impl FnMut(&[u8]) -> Result<(), IngestError>,
    ) -> Result<(), IngestError> {
        let mut inbox =
            ChunkReader::new(&**place.disk, place.budget, self.chunk_bytes, WRITE_AHEAD)?;
        for leaf in &self.leaves {
            inbox.read(
                &self.file,
                self.chunk_bytes,
                leaf.chunks.iter().copied(),
                place.stop,
                |mut records| {
                    while let Some((length, rest)) = records.split_at_checked(2) {
                        let length = usize::from(u16::from_le_bytes([length[0], length[1]]));
                        let (id, rest) = rest
                            .split_at_checked(length)
                            .ok_or_else(|| IngestError::internal("an id is cut short"))?;
                        each(id)?;
                        records = rest;
                    }
                    Ok(())
                },
            )?;
        }
        Ok(())
    }
}
