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

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use graphmill_graph::EdgeKind;
use graphmill_storage::{Budget, Buffer, Disk, FileHandle, Open, Stop, Workers};

use crate::edge::ID_BYTES_MAX;
use crate::error::IngestError;
use crate::import::Meter;
use crate::parallel;
use crate::sort;
use crate::source::{Source, SourceReader};
use crate::spill::{GRAIN, HEADER_BYTES, Inbox, Outbox, Spill, SpillWriter, lock, seal_chunk};
use crate::spool::{Arranged, Edges, Spool, SpoolWriter};

/// Bytes of a position in a record.
const POSITION_BYTES: usize = 6;
/// The position of an id that no edge names.
const NOWHERE: u64 = (1 << (8 * POSITION_BYTES)) - 1;
/// Ids in a sample before every other one is left out.
const SAMPLE_MAX: usize = 4096;

/// A sample of the ids that pass by, of bounded size: every so many, ever fewer.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sample {
    ids: Vec<Vec<u8>>,
    /// Ids still to pass before the next one is taken.
    skip: u64,
    stride: u64,
}

impl Sample {
    /// Offers an id.
    #[inline]
    pub(crate) fn offer(&mut self, id: impl AsRef<[u8]>) {
        if self.skip > 0 {
            self.skip -= 1;
            return;
        }
        self.ids.push(id.as_ref().to_vec());
        if self.ids.len() >= SAMPLE_MAX {
            let mut keep = false;
            self.ids.retain(|_| {
                keep = !keep;
                keep
            });
            self.stride = (self.stride * 2).max(2);
        }
        self.skip = self.stride.max(1) - 1;
    }

    /// Adds the sample of another worker.
    pub(crate) fn merge(&mut self, other: Self) {
        self.ids.extend(other.ids);
    }

    /// At most `count` ids that cut the sample in even parts, ascending and distinct.
    fn splitters(mut self, count: usize) -> Splitters {
        self.ids.sort_unstable();
        let total = self.ids.len();
        let mut ids: Vec<Vec<u8>> = (1..=count)
            .filter_map(|i| self.ids.get(i * total / (count + 1)).cloned())
            .collect();
        ids.dedup();
        Splitters {
            prefixes: ids.iter().map(|id| prefix(id)).collect(),
            ids,
        }
    }
}

/// The first eight bytes of an id, as a number of the same order; shorter ids are filled up with zeros.
#[inline(always)]
fn prefix(id: &[u8]) -> u64 {
    let mut bytes = [0; 8];
    let length = id.len().min(8);
    bytes[..length].copy_from_slice(&id[..length]);
    u64::from_be_bytes(bytes)
}

/// Ids that separate buckets: bucket `2 i` lies before splitter `i`, bucket `2 i + 1` is splitter `i` itself.
#[derive(Debug)]
struct Splitters {
    prefixes: Vec<u64>,
    ids: Vec<Vec<u8>>,
}

impl Splitters {
    fn buckets(&self) -> usize {
        2 * self.ids.len() + 1
    }

    #[inline]
    fn bucket(&self, id: &[u8]) -> usize {
        let prefix = prefix(id);
        let mut at = self.prefixes.partition_point(|&splitter| splitter < prefix);
        while at < self.ids.len() && self.prefixes[at] == prefix {
            match self.ids[at].as_slice().cmp(id) {
                std::cmp::Ordering::Less => at += 1,
                std::cmp::Ordering::Equal => return 2 * at + 1,
                std::cmp::Ordering::Greater => break,
            }
        }
        2 * at
    }
}

/// A temporary file of occurrences, bucket by bucket.
#[derive(Debug)]
struct Occurrences {
    spill: Spill,
    splitters: Splitters,
    /// Per bucket the number of occurrences and the bytes of their ids.
    sizes: Vec<(AtomicU64, AtomicU64)>,
}

impl Occurrences {
    fn create(place: &Place<'_>, splitters: Splitters) -> Result<Self, IngestError> {
        let buckets = splitters.buckets();
        let spill = Spill::create(
            &**place.disk,
            place.path("occurrences"),
            buckets,
            place.chunk_bytes,
        )?;
        Ok(Self {
            spill,
            splitters,
            sizes: (0..buckets).map(|_| Default::default()).collect(),
        })
    }

    /// The buckets that are not empty, as tasks.
    fn tasks(self, path: &[u32]) -> Vec<Task> {
        let this = Arc::new(self);
        let task = |bucket: usize| {
            let (count, bytes) = (
                this.sizes[bucket].0.load(Relaxed),
                this.sizes[bucket].1.load(Relaxed),
            );
            let mut path = path.to_vec();
            path.push(bucket as u32);
            (count > 0).then(|| Task {
                occurrences: this.clone(),
                bucket,
                path,
                count,
                bytes,
            })
        };
        (0..this.sizes.len()).filter_map(task).collect()
    }
}

/// One worker's way into the occurrences.
struct OccurrenceWriter<'a> {
    occurrences: &'a Occurrences,
    writer: SpillWriter<'a>,
    sizes: Vec<(u64, u64)>,
}

impl<'a> OccurrenceWriter<'a> {
    fn new(occurrences: &'a Occurrences, place: &Place<'_>) -> Result<Self, IngestError> {
        let writer = SpillWriter::new(
            &occurrences.spill,
            &**place.disk,
            place.budget,
            place.write_bytes,
        )?;
        Ok(Self {
            occurrences,
            writer,
            sizes: vec![(0, 0); occurrences.sizes.len()],
        })
    }

    #[inline]
    fn put(&mut self, id: &[u8], position: u64) -> Result<(), IngestError> {
        let bucket = self.occurrences.splitters.bucket(id);
        let out = self.writer.room(bucket, 2 + id.len() + POSITION_BYTES)?;
        let (length, rest) = out.split_at_mut(2);
        let (text, at) = rest.split_at_mut(id.len());
        length.copy_from_slice(&(id.len() as u16).to_le_bytes());
        text.copy_from_slice(id);
        at.copy_from_slice(&position.to_le_bytes()[..POSITION_BYTES]);
        self.sizes[bucket].0 += 1;
        self.sizes[bucket].1 += id.len() as u64;
        Ok(())
    }

    fn finish(self, place: &Place<'_>) -> Result<(), IngestError> {
        for (sum, (count, bytes)) in self.occurrences.sizes.iter().zip(&self.sizes) {
            sum.0.fetch_add(*count, Relaxed);
            sum.1.fetch_add(*bytes, Relaxed);
        }
        place.written.fetch_add(self.writer.finish()?, Relaxed);
        Ok(())
    }
}

/// Calls `each(id, position)` for every occurrence of a chunk.
fn for_each_occurrence(
    mut records: &[u8],
    mut each: impl FnMut(&[u8], u64) -> Result<(), IngestError>,
) -> Result<(), IngestError> {
    let cut_short = || IngestError::internal("a record of an id is cut short");
    while let Some((length, rest)) = records.split_at_checked(2) {
        let length = usize::from(u16::from_le_bytes([length[0], length[1]]));
        let (id, rest) = rest.split_at_checked(length).ok_or_else(cut_short)?;
        let (at, rest) = rest
            .split_at_checked(POSITION_BYTES)
            .ok_or_else(cut_short)?;
        let mut position = [0; 8];
        position[..POSITION_BYTES].copy_from_slice(at);
        each(id, u64::from_le_bytes(position))?;
        records = rest;
    }
    Ok(())
}

/// A bucket that is to become a leaf, or more buckets.
struct Task {
    occurrences: Arc<Occurrences>,
    bucket: usize,
    /// The buckets it lies in, from the first split down: its place in the order of ids.
    path: Vec<u32>,
    count: u64,
    bytes: u64,
}

impl Task {
    /// Bytes that sorting it takes.
    fn memory(&self) -> u64 {
        self.count * 2 * size_of::<[u64; 3]>() as u64 + self.bytes
    }

    /// Whether all its occurrences are of one id.
    fn is_single(&self) -> bool {
        self.bucket % 2 == 1
    }

    fn read(
        &self,
        inbox: &mut Inbox,
        stop: &Stop,
        mut each: impl FnMut(&[u8], u64) -> Result<(), IngestError>,
    ) -> Result<(), IngestError> {
        self.occurrences
            .spill
            .read(self.bucket, inbox, stop, |records| {
                for_each_occurrence(records, &mut each)
            })
    }
}

/// A part of the dictionary: ids that follow each other.
#[derive(Debug)]
struct Leaf {
    path: Vec<u32>,
    number: u32,
    ids: u64,
    /// Offsets and lengths of the chunks that hold its ids.
    chunks: Vec<(u64, u64)>,
}

/// Where the work is done, and with how much memory.
pub(crate) struct Place<'a> {
    pub(crate) disk: &'a Arc<dyn Disk>,
    pub(crate) budget: &'a Budget,
    pub(crate) workers: &'a Workers,
    pub(crate) stop: &'a Stop,
    /// A directory for temporary files.
    pub(crate) directory: &'a Path,
    /// Bytes of a chunk of a bucket, and how many are read ahead.
    pub(crate) chunk_bytes: usize,
    pub(crate) read_ahead: usize,
    /// Bytes of what is written at once: slabs of chunks, and chunks of the edges that result.
    pub(crate) write_bytes: usize,
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

/// Chunks of ids or edges that a worker has in memory.
const WRITE_AHEAD: usize = 4;

impl Place<'_> {
    fn path(&self, what: &str) -> std::path::PathBuf {
        self.directory
            .join(format!("{what}-{}", self.files.fetch_add(1, Relaxed)))
    }

    fn inbox(&self) -> Result<Inbox, IngestError> {
        Inbox::new(&**self.disk, self.budget, self.chunk_bytes, self.read_ahead)
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
    pub(crate) meter: &'a Meter<'a>,
    /// The edges; `edges` of them.
    pub(crate) source: &'a Source<'a>,
    pub(crate) edges: u64,
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
        ends: Ends<'_>,
    ) -> Result<(Self, Arranged), IngestError> {
        if ends.edges >= NOWHERE / 2 {
            return Err(IngestError::internal("more than 2^47 edges"));
        }
        // Positions: runs of edges whose indices one worker holds at a time.
        let starts = position_starts(place, &ends)?;
        let occurrences =
            Occurrences::create(place, ends.sample.clone().splitters(place.splitters))?;
        for (source, nowhere) in [(Some(ends.source), false), (ends.vertices, true)] {
            let Some(source) = source else { continue };
            let make = || {
                let writer = OccurrenceWriter::new(&occurrences, place)?;
                Ok((
                    source.reader(place.disk, place.budget)?,
                    OccurrenceSink {
                        writer,
                        nowhere,
                        meter: ends.meter,
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

        let positions = Spill::create(
            &**place.disk,
            place.path("positions"),
            starts.len(),
            place.chunk_bytes,
        )?;
        let file = place.disk.open(&place.path("ids"), Open::Create)?;
        let end = AtomicU64::new(0);
        let leaves = Mutex::new(Vec::new());
        let mut tasks = occurrences.tasks(&[]);
        while !tasks.is_empty() {
            let more = Mutex::new(Vec::new());
            let make = || {
                Ok((
                    place.inbox()?,
                    LeafWriter::new(place, &positions, &starts, &file, &end, &leaves)?,
                ))
            };
            let work = |(inbox, writer): &mut (Inbox, LeafWriter<'_>), number: u64| {
                let task = &tasks[number as usize];
                if task.is_single() {
                    writer.single(task, inbox)
                } else if task.memory() <= place.sort_bytes {
                    writer.leaf(task, inbox)
                } else {
                    let split = split(place, task, inbox)?;
                    lock(&more).extend(split.tasks(&task.path));
                    Ok(())
                }
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

        let mut leaves = leaves
            .into_inner()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        leaves.sort_unstable_by(|a: &Leaf, b: &Leaf| a.path.cmp(&b.path));
        let mut bases = vec![0; leaves.len()];
        let mut ids = 0;
        for leaf in &leaves {
            bases[leaf.number as usize] = ids;
            ids += leaf.ids;
        }
        let edges = join(place, &ends, &positions, &starts, &bases)?;
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

    /// Number of ids.
    pub(crate) fn len(&self) -> u64 {
        self.ids
    }

    /// Calls `each` with the ids in ascending order.
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

/// Takes in edges and puts both their ends among the occurrences.
struct OccurrenceSink<'a> {
    writer: OccurrenceWriter<'a>,
    nowhere: bool,
    meter: &'a Meter<'a>,
}

impl OccurrenceSink<'_> {
    #[inline]
    fn edge(
        &mut self,
        source: &[u8],
        destination: &[u8],
        sequence: u64,
    ) -> Result<(), IngestError> {
        if self.nowhere {
            self.writer.put(source, NOWHERE)?;
            return self.writer.put(destination, NOWHERE);
        }
        self.writer.put(source, 2 * sequence)?;
        self.writer.put(destination, 2 * sequence + 1)
    }
}

impl Edges for OccurrenceSink<'_> {
    fn integers(
        &mut self,
        edges: &[(u64, u64)],
        _weights: &[f64],
        sequence: u64,
    ) -> Result<(), IngestError> {
        for (i, (source, destination)) in edges.iter().enumerate() {
            self.edge(
                &source.to_be_bytes(),
                &destination.to_be_bytes(),
                sequence + i as u64,
            )?;
        }
        self.meter.advance(edges.len() as u64);
        Ok(())
    }

    fn texts(
        &mut self,
        edges: &[(&[u8], &[u8])],
        _weights: &[f64],
        sequence: u64,
    ) -> Result<(), IngestError> {
        for (i, (source, destination)) in edges.iter().enumerate() {
            self.edge(source, destination, sequence + i as u64)?;
        }
        self.meter.advance(edges.len() as u64);
        Ok(())
    }
}

/// Splits a bucket that is too large to sort, by splitters from its own occurrences.
fn split(place: &Place<'_>, task: &Task, inbox: &mut Inbox) -> Result<Occurrences, IngestError> {
    let mut sample = Sample::default();
    task.read(inbox, place.stop, |id, _| {
        sample.offer(id);
        Ok(())
    })?;
    let occurrences = Occurrences::create(place, sample.splitters(place.splitters))?;
    let mut writer = OccurrenceWriter::new(&occurrences, place)?;
    task.read(inbox, place.stop, |id, position| writer.put(id, position))?;
    writer.finish(place)?;
    Ok(occurrences)
}

/// The first edge of each bucket of positions. With weights a bucket consists of whole units of the source, which
/// are read once more for them.
///
/// # Errors
/// The indices of so few buckets do not fit memory.
fn position_starts(place: &Place<'_>, ends: &Ends<'_>) -> Result<Vec<u64>, IngestError> {
    let edge_bytes = 2 * size_of::<u64>() as u64;
    let least = ends.edges.div_ceil(place.positions_max);
    let edges_max = (place.sort_bytes / edge_bytes).max(least).clamp(1, 1 << 30);
    if edges_max * edge_bytes > place.join_bytes {
        // Half a worker's share holds the indices of a bucket, an eighth the open chunks of all.
        let squared = (ends.edges * edge_bytes).saturating_mul(16 * place.chunk_bytes as u64);
        let share = squared.isqrt();
        return Err(IngestError::too_little_memory(
            "the ends of edges",
            share * place.workers.count() as u64,
            place.budget.available(),
            place.budget,
        ));
    }
    if ends.weights == EdgeKind::None {
        return Ok((0..ends.edges.div_ceil(edges_max))
            .map(|bucket| bucket * edges_max)
            .collect());
    }
    let unit_starts: Vec<u64> = ends.source.unit_starts();
    let mut starts = Vec::new();
    for (unit, &start) in unit_starts.iter().enumerate() {
        let end = unit_starts.get(unit + 1).copied().unwrap_or(ends.edges);
        if starts.last().is_none_or(|first| end - first > edges_max) {
            starts.push(start);
        }
    }
    Ok(starts)
}

/// Bytes of a record of a position: the end's place in its bucket, its leaf, its rank there.
const RESOLVED_BYTES: usize = 12;

/// One worker's way from buckets of ids to leaves.
struct LeafWriter<'a> {
    place: &'a Place<'a>,
    positions: SpillWriter<'a>,
    starts: &'a [u64],
    file: &'a FileHandle,
    end: &'a AtomicU64,
    outbox: Outbox,
    leaves: &'a Mutex<Vec<Leaf>>,
    /// A buffer of chunks that fills, and where it will lie in the file.
    open: Option<(Buffer, u64)>,
    /// Where in it the last chunk begins, and where it ends so far.
    start: usize,
    at: usize,
    /// The chunks of the leaf.
    chunks: Vec<(u64, u64)>,
}

impl<'a> LeafWriter<'a> {
    fn new(
        place: &'a Place<'a>,
        positions: &'a Spill,
        starts: &'a [u64],
        file: &'a FileHandle,
        end: &'a AtomicU64,
        leaves: &'a Mutex<Vec<Leaf>>,
    ) -> Result<Self, IngestError> {
        Ok(Self {
            place,
            positions: SpillWriter::new(positions, &**place.disk, place.budget, place.write_bytes)?,
            starts,
            file,
            end,
            outbox: Outbox::new(&**place.disk, place.budget, place.write_bytes, WRITE_AHEAD)?,
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
        leaves.push(Leaf {
            path: Vec::new(),
            number,
            ids: 0,
            chunks: Vec::new(),
        });
        number
    }

    fn close(&mut self, number: u32, task: &Task, ids: u64) {
        self.end_chunk();
        let leaf = Leaf {
            path: task.path.clone(),
            number,
            ids,
            chunks: std::mem::take(&mut self.chunks),
        };
        lock(self.leaves)[number as usize] = leaf;
    }

    /// The occurrences of one id, too many or just enough: streamed.
    fn single(&mut self, task: &Task, inbox: &mut Inbox) -> Result<(), IngestError> {
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
    fn leaf(&mut self, task: &Task, inbox: &mut Inbox) -> Result<(), IngestError> {
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
        sort::sort(list, scratch.typed_mut::<[u64; 3]>());
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
        let out = self.positions.room(bucket, RESOLVED_BYTES)?;
        out[0..4].copy_from_slice(&slot.to_le_bytes());
        out[4..8].copy_from_slice(&leaf.to_le_bytes());
        out[8..12].copy_from_slice(&rank.to_le_bytes());
        Ok(())
    }

    fn finish(mut self) -> Result<(), IngestError> {
        self.flush();
        let written = self.positions.finish()? + self.outbox.drain()?;
        self.place.written.fetch_add(written, Relaxed);
        Ok(())
    }
}

/// Bits of the length of an id beside its place.
const LENGTH_BITS: u32 = 12;
const _: () = assert!(ID_BYTES_MAX < 1 << LENGTH_BITS);

/// Puts the indices of all edges in the order of the input.
fn join(
    place: &Place<'_>,
    ends: &Ends<'_>,
    positions: &Spill,
    starts: &[u64],
    bases: &[u64],
) -> Result<Arranged, IngestError> {
    let spool = Spool::create(
        &**place.disk,
        place.path("edges"),
        place.write_bytes,
        ends.weights,
    )?;
    let unit_starts: Vec<u64> = if ends.weights == EdgeKind::None {
        Vec::new()
    } else {
        ends.source.unit_starts()
    };
    let make = || {
        let reader = ends.source.reader(place.disk, place.budget)?;
        Ok((
            place.inbox()?,
            reader,
            SpoolWriter::new(&spool, &**place.disk, place.budget, WRITE_AHEAD)?,
        ))
    };
    let work = |(inbox, reader, writer): &mut (Inbox, SourceReader<'_>, SpoolWriter<'_>),
                task: u64| {
        let bucket = task as usize;
        let start = starts[bucket];
        let end = starts.get(bucket + 1).copied().unwrap_or(ends.edges);
        let slots = 2 * (end - start) as usize;
        let mut indices = place
            .budget
            .buffer("indices of the ends of edges", slots * size_of::<u64>())?;
        let list = &mut indices.typed_mut::<u64>()[..slots];
        let mut filled = 0;
        positions.read(bucket, inbox, place.stop, |records| {
            for record in records.chunks_exact(RESOLVED_BYTES) {
                let word = |at: usize| {
                    u32::from_le_bytes([record[at], record[at + 1], record[at + 2], record[at + 3]])
                };
                let (Some(slot), Some(base)) =
                    (list.get_mut(word(0) as usize), bases.get(word(4) as usize))
                else {
                    return Err(IngestError::internal(
                        "an end of an edge lies outside its bucket",
                    ));
                };
                *slot = base + u64::from(word(8));
                filled += 1;
            }
            Ok(())
        })?;
        if filled != slots {
            return Err(IngestError::internal(
                "ends of edges got lost in the dictionary",
            ));
        }
        ends.meter.advance(end - start);
        let mut sink = JoinSink {
            list,
            start,
            writer,
        };
        if ends.weights == EdgeKind::None {
            return sink.take((end - start) as usize, &[], start);
        }
        let from = unit_starts.partition_point(|&unit| unit < start);
        let to = unit_starts.partition_point(|&unit| unit < end);
        (from..to).try_for_each(|unit| ends.source.read(unit as u64, reader, place.stop, &mut sink))
    };
    let states = parallel::run(
        place.workers,
        usize::MAX,
        place.stop,
        starts.len() as u64,
        make,
        work,
    )?;
    for (_, _, writer) in states {
        place.written.fetch_add(writer.finish()?, Relaxed);
    }
    Ok(spool.arrange(|_| 0))
}

/// Writes edges by index, with the weights that pass by.
struct JoinSink<'a, 'b> {
    list: &'a [u64],
    start: u64,
    writer: &'a mut SpoolWriter<'b>,
}

impl JoinSink<'_, '_> {
    /// The `count` edges from number `sequence` on.
    fn take(&mut self, count: usize, weights: &[f64], sequence: u64) -> Result<(), IngestError> {
        let mut edges = [(0, 0); 256];
        let from = 2 * (sequence - self.start) as usize;
        let list = self
            .list
            .get(from..from + 2 * count)
            .ok_or_else(IngestError::input_changed)?;
        for (block, list) in list.chunks(2 * edges.len()).enumerate() {
            let done = block * edges.len();
            let count = list.len() / 2;
            for (edge, ends) in edges.iter_mut().zip(list.chunks_exact(2)) {
                *edge = (ends[0], ends[1]);
            }
            let weights = weights.get(done..).unwrap_or(&[]);
            self.writer
                .integers(0, sequence + done as u64, &edges[..count], weights)?;
        }
        Ok(())
    }
}

impl Edges for JoinSink<'_, '_> {
    fn integers(
        &mut self,
        edges: &[(u64, u64)],
        weights: &[f64],
        sequence: u64,
    ) -> Result<(), IngestError> {
        self.take(edges.len(), weights, sequence)
    }

    fn texts(
        &mut self,
        edges: &[(&[u8], &[u8])],
        weights: &[f64],
        sequence: u64,
    ) -> Result<(), IngestError> {
        self.take(edges.len(), weights, sequence)
    }
}
