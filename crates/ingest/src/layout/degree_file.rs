//! Out-degrees: how many arcs the edges make that leave each vertex, counted by reading the edges and kept in a temporary file.
//!
//! 1. Counters lie in *sections*, each small enough for a core's cache. A worker gathers places in a section in a line, and counts
//!    a whole line at once, while it has the section for itself.
//! 2. Where memory does not hold all counters, the edges are read once for each run of sections that it holds.
//!
//! The *number* of a vertex is its rank, or its id where memory has room for the ids between that do not occur: then nothing is
//! looked up. Arcs count that are dropped later as duplicates: which these are is not known before arcs are sorted. Degrees end at
//! 2^32 - 2, so that they take four bytes.

use std::io::{self, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use graphmill_raw::{AlignedBuffer, lock};
use graphmill_storage::{Buffer, Disk, MemoryBudget, RecordReader, RecordWriter, corrupt};

use super::arc_count::CountContext;
use crate::comm::ImportCommunicator;
use crate::edge_data::EdgeData;
use crate::error::IngestError;
use crate::external::bucket_file::{BucketFile, BucketWriter, ChunkReader, GRAIN, SLABS};
use crate::external::edge_file::EdgeBatchSink;
use crate::external::reread::EdgeReplay;
use crate::ids::bitmap::RankBitmap;
use crate::options::{ImportResources, SelfLoops};

/// Counters of a section, and places of a line.
const SECTION: usize = 1 << 13;
const LINE: usize = 2048;
/// Degrees of a chunk of the file.
const RUN: usize = 1 << 13;
/// Bytes of a chunk, which has space for a header too.
const CHUNK_BYTES: usize = RUN * size_of::<u32>() + GRAIN;
/// Chunks that are read ahead.
const AHEAD: usize = 4;

/// The degree in the file of an id that does not occur.
const NO_DEGREE: u32 = u32::MAX;

/// The out-degrees of all vertices.
#[derive(Debug)]
pub(crate) struct OutDegrees {
    pub(crate) file: BucketFile,
    /// One more than the greatest number.
    pub(crate) numbers: u64,
    /// All arcs.
    pub(crate) arcs: u64,
    /// Bytes of the file.
    pub(crate) bytes: u64,
}

/// The number of sections that one reading of the edges counts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sections(u64);

impl Sections {
    /// Returns the bytes that `lanes` workers take to count in `sections` sections.
    fn bytes(lanes: u64, sections: u64) -> u64 {
        let of = |each| AlignedBuffer::footprint(sections as usize * each);
        of(SECTION * size_of::<u32>()) + lanes * of(LINE * size_of::<u16>())
    }

    /// Returns the bytes that `lanes` workers take to count at least a section and to write it.
    pub(crate) fn least_bytes(lanes: u64, numbers: u64) -> u64 {
        Self::bytes(lanes, 1) + OutDegrees::writer_bytes(numbers)
    }

    /// Returns as many sections as fit every rank's memory and `bytes_max` bytes, but one at least.
    pub(crate) fn new(
        budget: &MemoryBudget,
        lanes: u64,
        source: &EdgeReplay<'_>,
        numbers: u64,
        bytes_max: u64,
        comm: &ImportCommunicator<'_>,
    ) -> Result<Self, IngestError> {
        let readers = lanes * source.reader_bytes();
        let least = readers + Self::least_bytes(lanes, numbers);
        IngestError::check_free("the degrees of vertices", least, budget)?;
        let free = budget.available() - readers - OutDegrees::writer_bytes(numbers);
        let sections = free.min(bytes_max) / Self::bytes(lanes, 1);
        let sections = sections.min(numbers.div_ceil(SECTION as u64)).max(1);
        Ok(Self(comm.all_reduce_min(sections)?))
    }

    fn numbers(self) -> u64 {
        self.0 * SECTION as u64
    }

    /// Returns how often the edges are read to count the degrees of `numbers` vertices.
    pub(crate) fn readings(self, numbers: u64) -> u64 {
        numbers.div_ceil(self.numbers())
    }
}

impl OutDegrees {
    /// The degree in a [walk](Self::walk) of a number without a vertex.
    pub(crate) const NO_DEGREE: u64 = NO_DEGREE as u64;
    /// Bytes that a [walk](Self::walk) takes.
    pub(crate) const WALK_BYTES: u64 = (AHEAD * CHUNK_BYTES + RUN * size_of::<u64>()) as u64;

    /// Returns the bytes of the writer of the degrees of `numbers` vertices.
    fn writer_bytes(numbers: u64) -> u64 {
        ((SLABS + 1) * CHUNK_BYTES) as u64 + BucketFile::table_bytes(numbers / RUN as u64, 1)
    }

    /// Counts the arcs of all edges into a new file `path`, `sections` sections at a time.
    ///
    /// `ids`: the ids that occur, if ids number the vertices.
    pub(crate) fn count(
        count: &CountContext<'_>,
        sections: Sections,
        ids: Option<&RankBitmap>,
        path: PathBuf,
    ) -> Result<Self, IngestError> {
        let (disk, budget) = (&**count.resources.disk, count.resources.budget);
        let (comm, numbers) = (&count.comm, count.vertices);
        let file = BucketFile::create(disk, path, 1, CHUNK_BYTES)?;
        let mut writer = BucketWriter::new(&file, disk, budget, CHUNK_BYTES)?;
        let bytes = sections.0 as usize * SECTION * size_of::<u32>();
        let mut counters = budget.buffer("the degrees of vertices", bytes)?;
        let mut arcs = 0;
        for first in (0..numbers).step_by(sections.numbers() as usize) {
            let counters = counters.typed_mut::<u32>();
            counters.fill(0);
            arcs = count_from(count, first, counters)?;
            add_up(counters, comm)?;
            // Whole chunks, so that the place of every number is known.
            let counted = counters.len().min((numbers - first) as usize);
            let mut vertices = first..;
            for run in counters[..counted.next_multiple_of(RUN)].chunks(RUN) {
                let out = writer.reserve(0, size_of_val(run))?;
                let entries = out.as_chunks_mut().0.iter_mut();
                for ((entry, degree), number) in entries.zip(run).zip(&mut vertices) {
                    let occurs = ids.is_none_or(|ids| ids.holds(number));
                    let degree = if occurs {
                        *degree.min(&(NO_DEGREE - 1))
                    } else {
                        NO_DEGREE
                    };
                    *entry = degree.to_le_bytes();
                }
            }
        }
        let bytes = writer.finish()?;
        Ok(Self {
            file,
            numbers,
            arcs: comm.sum(arcs)?,
            bytes,
        })
    }

    /// Writes the location of the degrees.
    pub(crate) fn encode(&self, out: &mut RecordWriter<impl Write>) -> io::Result<()> {
        for number in [self.numbers, self.arcs, self.bytes] {
            out.put_u64(number)?;
        }
        self.file.encode(out)
    }

    /// Reads the degrees in the file at `path` that [were encoded](OutDegrees::encode) there.
    pub(crate) fn decode(
        disk: &dyn Disk,
        budget: &MemoryBudget,
        path: &Path,
        from: &mut RecordReader<'_>,
    ) -> io::Result<Self> {
        let degrees = OutDegrees {
            numbers: from.number()?,
            arcs: from.number()?,
            bytes: from.number()?,
            file: BucketFile::decode(disk, budget, path, from)?,
        };
        let chunks = degrees.numbers.div_ceil(RUN as u64);
        let is_whole = degrees.file.buckets() == 1 && degrees.file.chunks(0) as u64 >= chunks;
        is_whole.then_some(degrees).ok_or_else(corrupt)
    }

    /// Calls `each` with runs of degrees of the numbers below `end`, in order, and each run's first number.
    pub(crate) fn walk(
        &self,
        resources: ImportResources<'_>,
        end: u64,
        mut each: impl FnMut(u64, &mut [u64]) -> Result<(), IngestError>,
    ) -> Result<(), IngestError> {
        let budget = resources.budget;
        let mut chunk_reader = ChunkReader::new(&**resources.disk, budget, CHUNK_BYTES, AHEAD)?;
        let mut run = budget.buffer("degrees of vertices", RUN * size_of::<u64>())?;
        let chunks = end.div_ceil(RUN as u64) as usize;
        let mut first = 0;
        self.file
            .read_chunks(0, 0..chunks, &mut chunk_reader, resources.stop, |records| {
                let (entries, left) = (records.as_chunks().0, (end - first) as usize);
                let run = run.typed_mut::<u64>();
                let count = entries.len().min(left).min(run.len());
                let run = &mut run[..count];
                for (to, from) in run.iter_mut().zip(entries) {
                    *to = u32::from_le_bytes(*from).into();
                }
                each(first, run)?;
                first += count as u64;
                Ok(())
            })
    }
}

/// Adds up the counters of all ranks, which end at the greatest number.
fn add_up(counters: &mut [u32], comm: &ImportCommunicator<'_>) -> Result<(), IngestError> {
    if comm.count() == 1 {
        return Ok(());
    }
    for counters in counters.chunks_mut(RUN * comm.count()) {
        let mut sums: Vec<u64> = counters.iter().map(|count| u64::from(*count)).collect();
        comm.sum_elementwise(&mut sums)?;
        for (counter, sum) in counters.iter_mut().zip(sums) {
            *counter = u32::try_from(sum).unwrap_or(u32::MAX);
        }
    }
    Ok(())
}

/// Counts the arcs that leave the vertices from number `first` on; returns the number of all arcs.
///
/// `counters` holds whole sections, a counter for each vertex.
fn count_from(
    count: &CountContext<'_>,
    first: u64,
    counters: &mut [u32],
) -> Result<u64, IngestError> {
    let numbers = first..first + counters.len() as u64;
    let sections = counters.as_chunks_mut().0;
    let sections: Vec<CounterSection<'_>> = sections.iter_mut().map(Mutex::new).collect();
    let sinks = count.source.read_all(count.resources, usize::MAX, || {
        let line_bytes = sections.len() * LINE * size_of::<u16>();
        Ok(DegreeSink {
            count,
            numbers: numbers.clone(),
            sections: &sections,
            lines: count.resources.budget.buffer("lines of arcs", line_bytes)?,
            fill: vec![0; sections.len()],
            arcs: 0,
        })
    })?;
    Ok(sinks.into_iter().map(DegreeSink::finish).sum())
}

/// The counters of one section, for one worker at a time.
type CounterSection<'a> = Mutex<&'a mut [u32; SECTION]>;

/// One worker's share of the counting.
struct DegreeSink<'a> {
    count: &'a CountContext<'a>,
    numbers: Range<u64>,
    sections: &'a [CounterSection<'a>],
    /// Per section a line of places.
    lines: Buffer,
    fill: Vec<u32>,
    arcs: u64,
}

impl DegreeSink<'_> {
    /// Notes an arc from the vertex of a number.
    #[inline(always)]
    fn arc(&mut self, number: u64) {
        self.arcs += 1;
        if !self.numbers.contains(&number) {
            return;
        }
        let place = (number - self.numbers.start) as usize;
        let section = place / SECTION;
        let fill = self.fill[section] as usize;
        self.lines.typed_mut::<u16>()[section * LINE + fill] = (place % SECTION) as u16;
        self.fill[section] = fill as u32 + 1;
        if fill + 1 == LINE {
            self.flush(section);
        }
    }

    fn flush(&mut self, section: usize) {
        let fill = std::mem::take(&mut self.fill[section]) as usize;
        let line = &self.lines.typed::<u16>()[section * LINE..][..fill];
        let mut counters = lock(&self.sections[section]);
        for place in line {
            let counter = &mut counters[usize::from(*place)];
            *counter = counter.saturating_add(1);
        }
    }

    /// Counts the remaining arcs; returns the number of arcs.
    fn finish(mut self) -> u64 {
        (0..self.sections.len()).for_each(|section| self.flush(section));
        self.arcs
    }
}

impl EdgeBatchSink for DegreeSink<'_> {
    fn integers(
        &mut self,
        edges: &[(u64, u64)],
        _data: EdgeData<'_>,
        _sequence: u64,
    ) -> Result<(), IngestError> {
        let count = self.count;
        count.each_block(edges, |edges| {
            for &(source, destination) in edges {
                let is_loop = source == destination;
                if !(is_loop && count.options.self_loops == SelfLoops::Drop) {
                    self.arc(source);
                }
                if !(is_loop || count.options.directed) {
                    self.arc(destination);
                }
            }
        })
    }
}
