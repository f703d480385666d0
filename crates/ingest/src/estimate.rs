//! Estimates of an import: bytes that each of its steps reads, writes and sends.
//!
//! The functions of the steps themselves give sizes of buffers, numbers of workers and what fits memory. The graph's
//! [outline](Outline) gives its bytes. This file adds how often each step moves them.

use graphmill_graph::{
    DegreeModel, EdgeKind, GraphModel, GraphProfile, GraphWriter, IdKind, Order,
};
use graphmill_storage::MemoryBudget;

use crate::build::distribute::{self, DistributionPlan};
use crate::error::IngestError;
use crate::external::bucket_file::{GRAIN, HEADER_BYTES};
use crate::generate::rule::Generated;
use crate::ids::bitmap::IdBitmap;
use crate::layout::batch_cut::{RangeCounts, batch_vertices_max, keys_hold};
use crate::layout::histogram::{GRANULES_MAX, granule_shift};
use crate::options::ImportOptions;
use crate::pipeline::assign_ids::DictionaryMemory;
use crate::pipeline::buffer_plan::{BufferSizes, Demand, MemorySnapshot};
use crate::pipeline::cut::{BATCH_BYTES, CutInput, cut};
use crate::pipeline::{memory, scan, write};
use crate::readers::files::FileSource;
use crate::report::ImportTraffic;

/// Batches that the estimate examines one by one, at most.
const BATCHES_MAX: u64 = 1 << 16;
/// Edges of an estimate, at most: 64 bits count the bytes of their records.
const EDGES_MAX: u64 = 1 << 56;
/// Edges of a piece of a generated graph, and bytes of one of a file.
const PIECE_EDGES: u64 = Generated::PIECE_EDGES;
const PIECE_BYTES: u64 = FileSource::PIECE_BYTES;
/// Bytes of an occurrence of an integer id in the dictionary.
const OCCURRENCE_BYTES: f64 = 16.0;
/// Bytes of the record of its position.
const RESOLVED_BYTES: f64 = 12.0;
/// Bytes of an integer id in the dictionary.
const ID_BYTES: f64 = 10.0;
/// Bytes that a worker takes to sort an occurrence.
const SORTED_BYTES: f64 = 56.0;
/// Bytes that a rank sends the first rank about a cell.
const NOTE_BYTES: f64 = 56.0;
/// Bytes of a sample of ids: twelve each, at most 4,096, on average three quarters of these.
const SAMPLE_BYTES: f64 = 12.0 * 3072.0;
/// Bytes of the label of a chunk that a rank sends.
const LABEL_BYTES: f64 = 8.0;

/// The origin of edges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    /// Generated edges: the vertices are known, and nothing is read.
    Drawn,
    /// Files of raw pairs of ids, with this many bytes an edge.
    Pairs(u64),
}

/// The input and the options of an import to estimate.
#[derive(Clone, Debug)]
pub struct ImportEstimateRequest<'o> {
    /// The model of the degrees.
    pub like: DegreeModel,
    /// Ids are below this.
    pub vertices: u64,
    /// Edges.
    pub edges: u64,
    /// The origin of the edges.
    pub input: Input,
    /// The type of the weights.
    pub weights: EdgeKind,
    /// The options of the graph: the order of ids, all edges kept, arcs stored in one direction.
    pub options: &'o ImportOptions,
    /// Ranks.
    pub ranks: usize,
    /// True if all ranks see one directory; else each writes to a disk of its own.
    pub shared: bool,
    /// Threads of a rank, and bytes of its memory.
    pub threads: usize,
    /// See there.
    pub memory: u64,
}

/// The bytes that a step of an import moves.
#[derive(Clone, Debug)]
pub struct Phase {
    /// The name of the step.
    pub name: &'static str,
    /// By the first rank.
    pub first: ImportTraffic,
    /// By each other one.
    pub other: ImportTraffic,
    /// Arcs that a rank works on.
    pub arcs: u64,
}

/// The estimate of an import.
#[derive(Clone, Debug)]
pub struct ImportEstimate {
    /// The stored graph.
    pub outline: GraphProfile,
    /// The steps in order.
    pub phases: Vec<Phase>,
    /// Bytes of temporary files of all ranks, which are there until the end.
    pub temporary_bytes: u64,
    /// True if ids are sorted on disk, because memory holds no bitmap of them.
    pub sorts_ids: bool,
}

/// Bytes that a rank moves in a step, as they are summed up.
#[derive(Clone, Copy, Debug, Default)]
struct StepBytes {
    read: f64,
    written: f64,
    sent: f64,
}

impl StepBytes {
    fn moved(self) -> ImportTraffic {
        ImportTraffic {
            read: self.read as u64,
            written: self.written as u64,
            sent: self.sent as u64,
        }
    }
}

/// Records on their way to the buckets of a temporary file.
#[derive(Clone, Copy, Debug)]
struct BucketStreams {
    /// All bytes of records, and in how many streams: one a worker and bucket.
    bytes: f64,
    count: f64,
    chunk_bytes: usize,
    /// Bytes of records that lie in one chunk.
    together: usize,
}

impl BucketStreams {
    /// Records of a full chunk.
    fn filled(&self) -> usize {
        (self.chunk_bytes - HEADER_BYTES) / self.together.max(1) * self.together.max(1)
    }
    /// The last one of each stream is not full, nor is the only one.
    fn chunks(&self) -> f64 {
        let of_one = self.bytes / self.count.max(1.0) / self.filled().max(1) as f64;
        let last = if of_one > 1.0 { 0.5 } else { 1.0 - of_one };
        self.count.min(self.bytes) * (of_one + last)
    }
    fn written(&self) -> f64 {
        let padded =
            |records: f64| ((records + HEADER_BYTES as f64) / GRAIN as f64).ceil() * GRAIN as f64;
        let of_one = self.bytes / self.count.max(1.0);
        let full = (of_one / self.filled().max(1) as f64).floor();
        let rest = of_one - full * self.filled() as f64;
        let rest = if rest > 0.0 { padded(rest) } else { 0.0 };
        self.count * (full * padded(self.filled() as f64) + rest)
    }
    /// Chunks are read whole.
    fn read(&self) -> f64 {
        self.chunks() * self.chunk_bytes as f64
    }
    /// Returns the bytes that a rank sends to the others, if each of `ranks` ranks has a share.
    fn sent(&self, ranks: f64) -> f64 {
        (self.bytes + self.chunks() * LABEL_BYTES) * (ranks - 1.0) / ranks / ranks
    }
}

/// Estimates an import.
///
/// # Errors
/// There are no vertices or ranks, more vertices, edges or batches than can be counted, or too little memory (with the least that
/// suffices).
pub fn outlook(question: &ImportEstimateRequest<'_>) -> Result<ImportEstimate, IngestError> {
    question.check()?;
    let budget = MemoryBudget::new(question.memory);
    let graph = GraphModel::new(
        question.like,
        question.vertices,
        question.edges,
        question.options.directed,
    );
    let of = ImportEstimator {
        question,
        budget: &budget,
        ranks: question.ranks as f64,
        lanes: question.threads as f64,
        edges: question.edges as f64,
    };
    let mut phases = Vec::new();
    let mut phase = |name, [first, other]: [StepBytes; 2], arcs: f64| {
        phases.push(Phase {
            name,
            first: first.moved(),
            other: other.moved(),
            arcs: arcs as u64,
        });
    };
    let of_rank = graph.arcs() as f64 / of.ranks;

    let (scan, has_bitmap, held) = of.scan()?;
    phase("scan", [scan; 2], of_rank);
    let sorts_ids = !has_bitmap && question.input != Input::Drawn;
    let vertices = match question.input {
        Input::Drawn => question.vertices,
        Input::Pairs(_) => graph.occurring().max(1),
    };
    let close = question.vertices / 4 <= vertices;
    let kind = match question.input {
        Input::Pairs(_) if vertices < question.vertices => IdKind::Integer,
        _ => IdKind::Dense,
    };

    // From here on edges may come from an edge file with indices of vertices.
    let mut edges_read = of.input_bytes() / of.ranks;
    let mut temporary = 0.0;
    let mut ids = [of.bitmap_sums(has_bitmap); 2];
    if sorts_ids {
        let dictionary = of.dictionary(vertices)?;
        ids = dictionary.sums;
        temporary += dictionary.written;
        edges_read = dictionary.edge_file_bytes / of.ranks;
    }
    let shape_of = |granules: &RangeCounts| {
        let counted = CutInput {
            vertices,
            edges: question.edges,
            arcs_in: granules,
            arcs_out: None,
            weights: question.weights,
        };
        cut(&counted, question.ranks, question.options)
    };
    let (shape, plan, owners) = shape_of(&even(vertices, graph.arcs()))?;
    let outline = graph.outline(&shape, kind);
    ids[0].written += outline.files.ids as f64;
    if question.input != Input::Drawn {
        phase("ids", ids, if sorts_ids { of_rank } else { 0.0 });
    }
    if !close {
        let sum = StepBytes {
            read: edges_read,
            sent: of.all_reduce((GRANULES_MAX * size_of::<u64>()) as f64),
            ..StepBytes::default()
        };
        phase("count", [sum; 2], of_rank);
    }

    // Distribute.
    let batches = shape.batches.len() as u64;
    let tables = question
        .options
        .batch_size
        .map_or(0, |_| batches * BATCH_BYTES);
    let need = write::WriteMemory::from_shape(&shape, &plan, tables);
    let reader_bytes = match (question.input, sorts_ids) {
        (_, true) => {
            4 * DictionaryMemory::new(
                question.memory,
                of.lanes as u64,
                question.ranks,
                u64::MAX,
                Ok,
            )?
            .write_bytes as u64
        }
        (input, false) => reader_bytes(input),
    };
    let demand = Demand::new(&plan, reader_bytes, question.ranks, need);
    let memory = MemorySnapshot {
        total: question.memory,
        available: question.memory.saturating_sub(held + tables),
    };
    let Some(sizes) = demand.sizes(question.threads as u64, memory) else {
        let more = demand.wanting(memory, reader_bytes);
        let (available, what) = (memory.available, "column files");
        return Err(IngestError::TooLittleMemory {
            what,
            needed: available.saturating_add(more),
            available,
            least: question.memory.saturating_add(more),
        });
    };
    let arcs = of.distributed(&plan, &sizes, graph.arcs());
    let counts = distribute::counts_bytes(plan.buckets(), plan.parts) as f64;
    let sum = StepBytes {
        read: edges_read,
        written: arcs.written() / of.ranks,
        sent: arcs.sent(of.ranks) + of.all_reduce(counts),
    };
    temporary += arcs.written();
    phase("distribute", [sum; 2], of_rank);

    // Write.
    let most = owners.iter().filter(|owner| **owner == 0).count().max(1) as u64;
    let free = memory
        .total
        .saturating_sub(need.held_and_noted() + demand.table_bytes(&sizes));
    let selections = of.selections(&plan, graph.arcs(), (most, free), &sizes);
    let sources: u64 = (outline.columns.iter())
        .map(|column| column.sources_bytes)
        .fold(0, u64::saturating_add);
    let edge_files = sources as f64 + (shape.files.len() * GRAIN / 2) as f64;
    let sum = StepBytes {
        read: arcs.read() * selections / of.ranks,
        written: (outline.files.columns() as f64 + edge_files) / of.ranks,
        sent: 0.0,
    };
    temporary += edge_files;
    phase("write", [sum; 2], of_rank);

    // Finish.
    let ends = of.finish(&outline, edge_files, shape.files.len() as f64);
    phase("finish", ends, 0.0);
    Ok(ImportEstimate {
        outline,
        phases,
        temporary_bytes: temporary as u64,
        sorts_ids,
    })
}

/// Bytes of a reader of the edges.
fn reader_bytes(input: Input) -> u64 {
    match input {
        Input::Drawn => Generated::READER_BYTES,
        Input::Pairs(_) => FileSource::reader_bytes_by_name([]),
    }
}

/// Granules of `vertices` vertices with `arcs` arcs, evenly distributed.
fn even(vertices: u64, arcs: u64) -> RangeCounts {
    let width = 1u64 << granule_shift(vertices);
    let count = vertices.div_ceil(width);
    let first = (0..=count).map(|granule| granule.saturating_mul(width).min(vertices));
    let below =
        |granule: u64| (u128::from(arcs) * u128::from(granule) / u128::from(count.max(1))) as u64;
    let arcs = (0..count).map(|granule| below(granule + 1) - below(granule));
    RangeCounts::new(first.collect(), arcs.collect())
}

impl ImportEstimateRequest<'_> {
    fn check(&self) -> Result<(), IngestError> {
        let refuse = |problem| Err(IngestError::Plan { problem });
        if self.vertices == 0 {
            return refuse("edges need vertices: ask for at least one");
        }
        if self.ranks == 0 || self.threads == 0 {
            return refuse("it has no rank or no thread: ask for at least one of each");
        }
        if self.edges > EDGES_MAX {
            return refuse("it would have more edges than can be counted: ask for 2^56 at most");
        }
        let (vertices, size) = (self.vertices, self.options.batch_size);
        if !keys_hold(vertices, size) {
            return Err(IngestError::TooManyVertices { vertices });
        }
        let width = size.unwrap_or_else(|| batch_vertices_max(vertices)).max(1);
        if vertices / width > BATCHES_MAX {
            return refuse("it would have more than 2^16 batches: ask for larger ones");
        }
        debug_assert_eq!(self.options.order, Order::Id);
        memory::check(
            &MemoryBudget::new(self.memory),
            self.threads as u64,
            reader_bytes(self.input),
            self.weights,
            false,
            self.options,
        )
    }
}

/// A dictionary on disk.
struct DictionarySums {
    sums: [StepBytes; 2],
    written: f64,
    edge_file_bytes: f64,
}

/// The input of all steps' estimates.
struct ImportEstimator<'q> {
    question: &'q ImportEstimateRequest<'q>,
    budget: &'q MemoryBudget,
    ranks: f64,
    lanes: f64,
    edges: f64,
}

impl ImportEstimator<'_> {
    fn input_bytes(&self) -> f64 {
        match self.question.input {
            Input::Drawn => 0.0,
            Input::Pairs(edge_bytes) => self.edges * edge_bytes as f64,
        }
    }

    /// Returns the bytes that each rank sends in an all-reduce of `bytes` bytes.
    fn all_reduce(&self, bytes: f64) -> f64 {
        2.0 * bytes * (self.ranks - 1.0) / self.ranks
    }

    /// Workers of all ranks that have something to read.
    fn readers(&self) -> f64 {
        let pieces = match self.question.input {
            Input::Drawn => self.edges / PIECE_EDGES as f64,
            Input::Pairs(_) => self.input_bytes() / PIECE_BYTES as f64,
        };
        (self.lanes * self.ranks).min(pieces.ceil()).max(1.0)
    }

    /// The first reading; whether a bitmap of ids fits, and the bytes that it holds.
    fn scan(&self) -> Result<(StepBytes, bool, u64), IngestError> {
        let question = self.question;
        let need = scan::ScanMemory {
            lanes: question.threads as u64,
            reader_bytes: reader_bytes(question.input),
            reverse: false,
            vertices: false,
        };
        let (_, needed) = need.fitting(question.memory);
        let Some(free) = question.memory.checked_sub(needed) else {
            let what = "the first reading of the edges";
            let (memory, budget) = (question.memory, self.budget);
            return Err(IngestError::too_little_memory(what, needed, memory, budget));
        };
        let histogram = (GRANULES_MAX * size_of::<u64>()) as f64;
        let gathered = match question.input {
            Input::Drawn => 0.0,
            Input::Pairs(_) => SAMPLE_BYTES * (self.ranks - 1.0),
        };
        let sum = StepBytes {
            read: self.input_bytes() / self.ranks,
            written: 0.0,
            sent: self.all_reduce(histogram) + gathered,
        };
        let (has_bitmap, held) = match question.input {
            Input::Drawn => (false, 0),
            Input::Pairs(_) => {
                let most = scan::id_bitmap_bytes_max(free, self.input_bytes() as u64);
                let (bits, all) = IdBitmap::bytes(question.vertices);
                (all <= most, all - bits)
            }
        };
        Ok((sum, has_bitmap, if has_bitmap { held } else { 0 }))
    }

    /// Returns the bytes that ranks send to merge the bitmap of ids.
    fn bitmap_sums(&self, has_bitmap: bool) -> StepBytes {
        let (bits, _) = IdBitmap::bytes(self.question.vertices);
        StepBytes {
            sent: if has_bitmap {
                self.all_reduce(bits as f64)
            } else {
                0.0
            },
            ..StepBytes::default()
        }
    }

    /// Estimates a dictionary of `vertices` ids, sorted on disk.
    ///
    /// It has occurrences, sorted runs, positions, and edges of indices.
    fn dictionary(&self, vertices: u64) -> Result<DictionarySums, IngestError> {
        let question = self.question;
        let shares = DictionaryMemory::new(
            question.memory,
            question.threads as u64,
            question.ranks,
            u64::MAX,
            Ok,
        )?;
        let ends = 2.0 * self.edges;
        let streams = |bytes: f64, buckets: f64, together| BucketStreams {
            bytes,
            count: self.readers() * buckets,
            chunk_bytes: shares.chunk_bytes,
            together,
        };
        let buckets = (shares.splitters + 1) as f64;
        let occurrences = streams(ends * OCCURRENCE_BYTES, buckets, OCCURRENCE_BYTES as usize);
        let (mut read, mut written) = (self.input_bytes(), occurrences.written());
        // A bucket that exceeds memory is sampled, read again and written as smaller buckets.
        let mut of_bucket = ends / buckets;
        while of_bucket * SORTED_BYTES > shares.sort_bytes as f64 && of_bucket > 1.0 {
            read += 2.0 * ends * OCCURRENCE_BYTES;
            written += ends * OCCURRENCE_BYTES;
            of_bucket /= buckets;
        }
        read += occurrences.read();
        // Positions: as many edges in a bucket as a worker sorts at once.
        let least = self.edges / self.ranks / shares.positions_max as f64 * self.ranks;
        let of_positions = (shares.sort_bytes as f64 / 16.0)
            .max(least)
            .clamp(1.0, (1u64 << 30) as f64);
        if of_positions * 16.0 > shares.join_bytes as f64 {
            let lanes = question.threads as u64;
            let here = self.edges / self.ranks;
            let chunks = 16.0 * shares.chunk_bytes as f64 * self.ranks;
            let needed = (here * 16.0 * chunks).sqrt() as u64 * lanes + shares.passing_bytes;
            let (what, available) = ("the ends of edges", question.memory);
            return Err(IngestError::too_little_memory(
                what,
                needed,
                available,
                self.budget,
            ));
        }
        let position_buckets = (self.edges / self.ranks / of_positions).ceil() * self.ranks;
        let positions = BucketStreams {
            count: self.lanes * self.ranks * position_buckets,
            ..streams(ends * RESOLVED_BYTES, 1.0, RESOLVED_BYTES as usize)
        };
        let ids = vertices as f64 * ID_BYTES;
        let width = if vertices < 1 << 32 { 8.0 } else { 16.0 };
        let weights = question.weights.bytes() as f64;
        let edge_file_bytes = self.edges * (width + weights);
        written += positions.written() + ids + edge_file_bytes;
        read += positions.read() + ids;
        let sum = StepBytes {
            read: read / self.ranks,
            written: written / self.ranks,
            sent: occurrences.sent(self.ranks) + positions.sent(self.ranks),
        };
        // Each rank sends its ids to the first, which writes them.
        let other = StepBytes {
            sent: sum.sent + ids / self.ranks,
            ..sum
        };
        Ok(DictionarySums {
            sums: [sum, other],
            written,
            edge_file_bytes,
        })
    }

    /// Arcs in the buckets of column files.
    fn distributed(
        &self,
        plan: &DistributionPlan,
        sizes: &BufferSizes,
        arcs: u64,
    ) -> BucketStreams {
        let lanes = (sizes.lanes as f64 * self.ranks).min(self.readers());
        BucketStreams {
            bytes: arcs as f64 * plan.packing.bytes() as f64,
            count: lanes * plan.buckets() as f64,
            chunk_bytes: sizes.chunk_bytes,
            together: distribute::line_bytes(plan.packing),
        }
    }

    /// Returns how often a bucket is read until all of it is sorted.
    fn selections(
        &self,
        plan: &DistributionPlan,
        arcs: u64,
        (most, free): (u64, u64),
        sizes: &BufferSizes,
    ) -> f64 {
        let question = self.question;
        let record =
            crate::build::sort_bucket::record_bytes(question.weights, question.options.duplicates)
                as f64;
        let of_bucket = arcs as f64 / plan.buckets().max(1) as f64;
        // Parts of a bucket are ranges of keys, and half of the ranges may be empty.
        let part = of_bucket * 2.0 / plan.parts as f64;
        let wanted = ((of_bucket + part) * record) as u64;
        let lanes = write::SortLanes::new(
            plan,
            (most.min(question.threads as u64), wanted.max(GRAIN as u64)),
            (free, question.memory),
            sizes.chunk_bytes,
        );
        if lanes.sort_bytes >= wanted {
            return 1.0;
        }
        let room = (lanes.sort_bytes as f64 / record - part).max(part).max(1.0);
        (of_bucket / room).ceil().max(1.0)
    }

    /// Returns the bytes that the first rank moves in the last step, and the bytes of the others.
    fn finish(&self, outline: &GraphProfile, edge_files: f64, files: f64) -> [StepBytes; 2] {
        let question = self.question;
        let cells = outline.measure.cells as f64;
        let batches = outline.columns.len() as f64;
        // A number of each cut in decimal digits, and a few lines.
        let digits = (question.vertices as f64).log10().ceil() + 7.0;
        let of_all =
            outline.files.of_all() as f64 - outline.files.ids as f64 + batches * digits + 2048.0;
        let held = GraphWriter::memory_of_cells(files as u64, outline.measure.cells);
        let read = GraphWriter::read_to_finish(
            &outline.measure.batches,
            (outline.arcs, outline.measure.cells),
            edge_files as u64,
            question.memory.saturating_sub(held),
        ) as f64;
        let notes = (cells * NOTE_BYTES + files * 81.0) / self.ranks;
        let mut first = StepBytes {
            read,
            written: of_all,
            sent: 0.0,
        };
        let mut other = StepBytes {
            sent: if self.ranks > 1.0 { notes } else { 0.0 },
            ..StepBytes::default()
        };
        if !question.shared && self.ranks > 1.0 {
            // Sources go to the first rank, and what it makes of them to all.
            let away = edge_files * (self.ranks - 1.0) / self.ranks;
            let common = of_all + outline.files.ids as f64;
            first.written += away;
            first.read += common;
            first.sent += common * (self.ranks - 1.0);
            other.read += edge_files / self.ranks;
            other.sent += edge_files / self.ranks;
            other.written += common;
        }
        [first, other]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(options: &ImportOptions) -> ImportEstimateRequest<'_> {
        ImportEstimateRequest {
            like: DegreeModel::Kronecker,
            vertices: 1 << 20,
            edges: 1 << 24,
            input: Input::Pairs(8),
            weights: EdgeKind::None,
            options,
            ranks: 4,
            shared: true,
            threads: 2,
            memory: 64 << 20,
        }
    }

    #[test]
    fn estimate_reads_equal_writes_over_ranks() {
        let options = ImportOptions::new("");
        for (ranks, memory) in [(1, 64 << 20), (4, 64 << 20), (8, 1 << 30)] {
            let question = ImportEstimateRequest {
                ranks,
                memory,
                ..question(&options)
            };
            let found = outlook(&question).unwrap();
            let phase = |name| {
                found
                    .phases
                    .iter()
                    .find(|phase| phase.name == name)
                    .unwrap()
            };
            let arcs = phase("distribute").other.written;
            let read = phase("write").other.read;
            assert!(read >= arcs && read < 3 * arcs, "{found:?}");
            assert_eq!(phase("scan").other.read, (8 << 24) / ranks as u64);
            assert_eq!(phase("distribute").other.sent > 0, ranks > 1);
            assert!(!found.sorts_ids);
        }
    }

    #[test]
    fn estimate_sorts_large_ids_on_disk() {
        let options = ImportOptions::new("");
        let question = ImportEstimateRequest {
            vertices: 1 << 38,
            edges: 1 << 40,
            input: Input::Pairs(16),
            memory: 32 << 30,
            ..question(&options)
        };
        let found = outlook(&question).unwrap();
        assert!(found.sorts_ids && found.temporary_bytes > 64 << 40);
        let drawn = ImportEstimateRequest {
            input: Input::Drawn,
            ..question
        };
        let drawn = outlook(&drawn).unwrap();
        assert!(!drawn.sorts_ids && drawn.temporary_bytes < found.temporary_bytes / 2);
    }

    #[test]
    fn estimate_absurd_is_refused_least_memory_works() {
        let options = ImportOptions::new("");
        let narrow = ImportOptions {
            batch_size: Some(1),
            ..ImportOptions::new("")
        };
        let base = question(&options);
        for question in [
            ImportEstimateRequest {
                vertices: 0,
                ..base.clone()
            },
            ImportEstimateRequest {
                vertices: 1 << 63,
                ..base.clone()
            },
            ImportEstimateRequest {
                vertices: u64::MAX,
                edges: u64::MAX,
                ..base.clone()
            },
            ImportEstimateRequest {
                ranks: 0,
                ..base.clone()
            },
            ImportEstimateRequest {
                options: &narrow,
                ..base.clone()
            },
        ] {
            assert!(outlook(&question).is_err(), "{question:?}");
        }
        let mut question = ImportEstimateRequest { memory: 1, ..base };
        let mut tries = 0;
        while let Err(error) = outlook(&question) {
            let IngestError::TooLittleMemory { least, .. } = error else {
                panic!("{error}");
            };
            assert!(least > question.memory && least < 64 << 20);
            (question.memory, tries) = (least, tries + 1);
        }
        assert!(tries <= 3);
        let found = outlook(&ImportEstimateRequest {
            edges: EDGES_MAX,
            vertices: 1 << 38,
            input: Input::Drawn,
            memory: u64::MAX >> 8,
            ..question
        });
        assert!(found.is_ok());
    }
}
