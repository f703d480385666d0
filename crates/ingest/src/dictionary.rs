//! The dictionary of ids that memory cannot hold: text ids, and integers too sparse for a bitmap.
//!
//! Ids are byte strings here; integers are written most significant byte first, so that the order of the bytes is theirs.
//!
//! 1. *Occurrences*: each end of each edge, an id and its position in the input (twice the edge's number, plus one for
//!    the destination), goes to the bucket between two splitters that its id falls in. Splitters come from a sample, and
//!    each has a bucket for itself, so that an id however frequent never stops a bucket from becoming smaller.
//! 2. *Leaves*: a bucket that fits memory is sorted by id; the ids that differ, in order, are its part of the
//!    dictionary. A larger one is split again by splitters of its own; one of a single id is streamed. For each occurrence
//!    its leaf and its rank there go to the bucket of its position.
//! 3. *Order*: leaves are put in the order of their ids, which gives each the index of its first id.
//! 4. *Join*: a bucket of positions is a run of edges of the input: with all their indices in place it becomes a piece of
//!    a new spool, in which vertices are called by their index.
//!
//! Which buckets there are depends on samples and memory; what comes out does not.

mod leaves;
mod occurrences;
mod positions;
mod sample;

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use graphmill_graph::EdgeKind;
use graphmill_storage::{Budget, Disk, FileHandle, Open, Stop, Workers};

use crate::crew::{Crew, Post};
use crate::error::IngestError;
use crate::import::{Meter, Progress};
use crate::parallel;
use crate::source::Source;
use crate::spill::{Inbox, Spill, fill, lock};
use crate::spool::Arranged;
use leaves::{Leaf, LeafWriter};
use occurrences::{NOWHERE, OccurrenceSink, OccurrenceWriter, Occurrences, split};
use positions::{Bases, join, of_all_ranks, position_starts};

pub(crate) use sample::Sample;

/// Chunks of ids or edges that a worker has in memory.
const WRITE_AHEAD: usize = 4;

/// Where the work is done, and with how much memory.
pub(crate) struct Place<'a> {
    pub(crate) disk: &'a Arc<dyn Disk>,
    pub(crate) budget: &'a Budget,
    pub(crate) workers: &'a Workers,
    pub(crate) stop: &'a Stop,
    /// The ranks that build it together: each has a run of the ids.
    pub(crate) crew: Crew<'a>,
    /// A directory for temporary files.
    pub(crate) directory: &'a Path,
    /// Bytes of a chunk of a bucket, and how many are read ahead.
    pub(crate) chunk_bytes: usize,
    pub(crate) read_ahead: usize,
    /// Bytes of what is written at once: slabs of chunks, and chunks of the edges that result.
    pub(crate) write_bytes: usize,
    /// Memory for what goes to other ranks, and comes from them.
    pub(crate) passing_bytes: u64,
    /// Bytes that one worker may sort at a time.
    pub(crate) sort_bytes: u64,
    /// Bytes of indices that one worker may put in place at a time.
    pub(crate) join_bytes: u64,
    /// Splitters of one split.
    pub(crate) splitters: usize,
    /// Buckets of positions at most.
    pub(crate) positions_max: u64,
    /// The next temporary file, and bytes written so far.
    pub(crate) files: AtomicU64,
    pub(crate) written: AtomicU64,
}

impl<'a> Place<'a> {
    fn path(&self, what: &str) -> std::path::PathBuf {
        self.directory
            .join(format!("{what}-{}", self.files.fetch_add(1, Relaxed)))
    }

    fn inbox(&self) -> Result<Inbox, IngestError> {
        Inbox::new(&**self.disk, self.budget, self.chunk_bytes, self.read_ahead)
    }

    /// The way to the ranks that buckets belong to, where there are others.
    fn post(&self, owners: impl Iterator<Item = usize>) -> Result<Option<Post<'a>>, IngestError> {
        Post::new(&self.crew, self.budget, owners.collect(), self.chunk_bytes)
    }

    /// Fills buckets, those of other ranks too.
    fn fill(
        &self,
        spill: &Spill,
        post: Option<&Post<'_>>,
        work: impl FnOnce() -> Result<(), IngestError>,
    ) -> Result<(), IngestError> {
        let (disk, bytes) = (&**self.disk, self.write_bytes);
        let ((), written) = fill(spill, post, disk, self.budget, bytes, work)?;
        self.written.fetch_add(written, Relaxed);
        Ok(())
    }
}

/// The ids in their order, in a temporary file.
#[derive(Debug)]
pub(crate) struct Dictionary {
    ids: u64,
    chunk_bytes: usize,
    leaves: Vec<Leaf>,
    file: FileHandle,
}

/// What there is to resolve.
pub(crate) struct Ends<'a> {
    pub(crate) progress: &'a dyn Progress,
    /// The edges; `edges` of them at all ranks, and `edges_here` from number `first` on at this one.
    pub(crate) source: &'a Source<'a>,
    pub(crate) edges: u64,
    pub(crate) first: u64,
    pub(crate) edges_here: u64,
    /// Vertices that are there without edges: both ends of each pair.
    pub(crate) vertices: Option<&'a Source<'a>>,
    pub(crate) sample: Sample,
    pub(crate) weights: EdgeKind,
}

impl Dictionary {
    /// Builds the dictionary of all ends of edges; returns it with the edges between indices, in the order of the input.
    ///
    /// # Errors
    /// What the disk reports, a budget too small, more than 2^47 edges, or a stop.
    pub(crate) fn build(
        place: &Place<'_>,
        mut ends: Ends<'_>,
    ) -> Result<(Self, Arranged), IngestError> {
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

        let positions = Spill::create(
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
                        LeafWriter::new(
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
                let work = |(inbox, writer): &mut (Inbox, LeafWriter<'_>), number: u64| {
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
        leaves.sort_unstable_by(|a: &Leaf, b: &Leaf| a.path.cmp(&b.path));
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
        let bases = Bases::of_all_ranks(&place.crew, &bases)?;
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
        place: &Place<'_>,
        mut each: impl FnMut(&[u8]) -> Result<(), IngestError>,
    ) -> Result<(), IngestError> {
        let mut inbox = Inbox::new(&**place.disk, place.budget, self.chunk_bytes, WRITE_AHEAD)?;
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
