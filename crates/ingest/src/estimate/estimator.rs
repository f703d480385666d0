//! The estimate of each step of an import.
//!
//! The functions of the steps themselves give sizes of buffers, numbers of workers and what fits memory. The graph's
//! [profile](GraphProfile) gives its bytes. This file adds how often each step moves them.

use graphmill_graph::{
    DegreeModel, GraphModel, GraphProfile, GraphSpec, GraphWriter, IdKind, Layout,
};
use graphmill_storage::MemoryBudget;

use super::request::{ImportEstimate, ImportEstimateRequest, Input, Phase};
use super::streams::{BucketStreams, StepBytes};
use crate::build::distribute::{self, DistributionPlan};
use crate::build::sort_bucket::record_bytes;
use crate::error::IngestError;
use crate::external::bucket_file::GRAIN;
use crate::generate::rule::Generated;
use crate::ids::bitmap::IdBitmap;
use crate::ids::external::context::DictionaryMemory;
use crate::layout::batch_cut::RangeCounts;
use crate::layout::histogram::{ArcHistograms, granule_ends};
use crate::pipeline::buffer_plan::{BufferSizes, Demand, MemorySnapshot};
use crate::pipeline::cut::{BATCH_BYTES, CutInput, cut};
use crate::pipeline::{scan, write};
use crate::readers::files::FileSource;

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

/// Estimates an import.
///
/// # Errors
/// There are no vertices or ranks, more vertices, edges or batches than can be counted, or too little memory (with the least that
/// suffices).
pub fn estimate(request: &ImportEstimateRequest<'_>) -> Result<ImportEstimate, IngestError> {
    request.check()?;
    let (directed, options) = (request.options.directed, &request.options.of_arcs());
    let (like, vertices) = (request.like, request.vertices);
    let of_ids = GraphModel::new(like, vertices, request.edges, directed);
    let named = match request.knows_ids() {
        true => vertices,
        false => of_ids.occurring().max(1),
    };
    // A vertex of an edge has two arcs. Most vertices are such, so all are planned as alike.
    let graph = match options.edge_vertices {
        true => GraphModel::new(
            DegreeModel::Uniform,
            named + request.edges,
            2 * request.edges,
            true,
        ),
        false => of_ids,
    };
    let mut of = ImportEstimator {
        request,
        ranks: request.ranks as f64,
        lanes: request.threads as f64,
        edges: request.edges as f64,
        arcs: graph.arcs(),
        phases: Vec::new(),
        temporary: 0.0,
    };
    let reads_once =
        options.layout == Layout::Stream && request.knows_ids() && !options.edge_vertices;
    let (has_bitmap, held) = match reads_once {
        true => (false, 0),
        false => of.scan()?,
    };
    let sorts_ids = !has_bitmap && !request.knows_ids();
    let kind = match request.input {
        Input::Pairs(_) if named < request.vertices => IdKind::Integer,
        _ => IdKind::Dense,
    };
    let vertices = match options.edge_vertices {
        true => named + request.edges,
        false => named,
    };
    let outline = if options.layout == Layout::Stream {
        let edges_read = match reads_once {
            true => of.input_bytes() / of.ranks,
            // The ids of a graph take no part in what the step moves but for the dictionary.
            false => of.ids(named, has_bitmap, 0.0)?,
        };
        of.chunks((&graph, vertices, kind), edges_read, held)?
    } else {
        let counted = CutInput {
            vertices,
            edges: request.edges,
            arcs_in: &even(vertices, of.arcs),
            arcs_out: None,
            weights: request.weights,
        };
        let (shape, plan, owners) = cut(&counted, request.ranks, options)?;
        let outline = graph.outline(&shape, kind);
        let edges_read = of.ids(named, has_bitmap, outline.files.ids as f64)?;
        if request.vertices / 4 > named {
            let sum = StepBytes {
                read: edges_read,
                sent: of.all_reduce(ArcHistograms::bytes(false) as f64),
                ..StepBytes::default()
            };
            of.arcs_phase("count", sum);
        }
        let here = owners.iter().filter(|owner| **owner == 0).count().max(1);
        of.columns(
            (&shape, &plan, here as u64),
            &outline,
            sorts_ids,
            held,
            edges_read,
        )?;
        outline
    };
    Ok(ImportEstimate {
        outline,
        phases: of.phases,
        temporary_bytes: of.temporary as u64,
        sorts_ids,
    })
}

/// Granules of `vertices` vertices with `arcs` arcs, evenly distributed.
fn even(vertices: u64, arcs: u64) -> RangeCounts {
    let first = granule_ends(vertices);
    let count = first.len() as u64 - 1;
    let below = |granule: u64| (u128::from(arcs) * u128::from(granule) / u128::from(count)) as u64;
    let arcs = (0..count).map(|granule| below(granule + 1) - below(granule));
    RangeCounts::new(first, arcs.collect())
}

/// The steps' estimates so far, and the input of all of them.
pub(super) struct ImportEstimator<'q> {
    pub(super) request: &'q ImportEstimateRequest<'q>,
    pub(super) ranks: f64,
    lanes: f64,
    edges: f64,
    arcs: u64,
    phases: Vec<Phase>,
    temporary: f64,
}

impl ImportEstimator<'_> {
    pub(super) fn phase(&mut self, name: &'static str, [first, other]: [StepBytes; 2], arcs: f64) {
        self.phases.push(Phase {
            name,
            first: first.moved(),
            other: other.moved(),
            arcs: arcs as u64,
        });
    }

    /// Adds a step in which each rank moves `sum` for its share of the arcs.
    pub(super) fn arcs_phase(&mut self, name: &'static str, sum: StepBytes) {
        self.phase(name, [sum; 2], self.arcs as f64 / self.ranks);
    }

    pub(super) fn too_little(&self, what: &'static str, needed: u64) -> IngestError {
        IngestError::too_little_memory(what, needed, &MemoryBudget::new(self.request.memory))
    }

    fn dictionary_memory(&self) -> Result<DictionaryMemory, IngestError> {
        let lanes = self.request.threads as u64;
        DictionaryMemory::new(self.request.memory, lanes, self.request.ranks, u64::MAX, Ok)
    }

    fn input_bytes(&self) -> f64 {
        match self.request.input {
            Input::Drawn => 0.0,
            Input::Pairs(edge_bytes) => self.edges * edge_bytes as f64,
        }
    }

    /// Returns the bytes that each rank sends in an all-reduce of `bytes` bytes.
    pub(super) fn all_reduce(&self, bytes: f64) -> f64 {
        2.0 * bytes * (self.ranks - 1.0) / self.ranks
    }

    /// Workers of all ranks that have something to read.
    fn readers(&self) -> f64 {
        let pieces = match self.request.input {
            Input::Drawn => self.edges / Generated::PIECE_EDGES as f64,
            Input::Pairs(_) => self.input_bytes() / FileSource::PIECE_BYTES as f64,
        };
        (self.lanes * self.ranks).min(pieces.ceil()).max(1.0)
    }

    /// The first reading; whether a bitmap of ids fits, and the bytes that it holds.
    fn scan(&mut self) -> Result<(bool, u64), IngestError> {
        let request = self.request;
        let need = scan::ScanMemory {
            lanes: request.threads as u64,
            reader_bytes: request.reader_bytes(),
            reverse: false,
            vertices: false,
        };
        let (_, needed) = need.fitting(request.memory);
        let free = request.memory.checked_sub(needed);
        let free = free.ok_or_else(|| self.too_little("the first reading of the edges", needed))?;
        let (gathered, bitmap) = match request.input {
            Input::Drawn => (0.0, None),
            Input::Pairs(_) if request.vertices_below => (0.0, None),
            Input::Pairs(_) => {
                let most = scan::id_bitmap_bytes_max(free, self.input_bytes() as u64);
                let (_, ranks) = IdBitmap::merged_bytes(request.vertices);
                let held = (IdBitmap::bytes(request.vertices) <= most).then_some(ranks);
                (SAMPLE_BYTES * (self.ranks - 1.0), held)
            }
        };
        let sum = StepBytes {
            read: self.input_bytes() / self.ranks,
            written: 0.0,
            sent: self.all_reduce(ArcHistograms::bytes(false) as f64) + gathered,
        };
        self.arcs_phase("scan", sum);
        Ok((bitmap.is_some(), bitmap.unwrap_or(0)))
    }

    /// The indices of `vertices` vertices, with `ids_bytes` bytes of ids in the graph.
    ///
    /// Returns the bytes that each rank reads to read the edges again: of the input, or of edges of indices.
    fn ids(&mut self, vertices: u64, has_bitmap: bool, ids_bytes: f64) -> Result<f64, IngestError> {
        if self.request.knows_ids() {
            return Ok(self.input_bytes() / self.ranks);
        }
        let (mut sums, arcs, edges_read) = match has_bitmap {
            // Ranks merge the bitmap.
            true => {
                let (bits, _) = IdBitmap::merged_bytes(self.request.vertices);
                let sum = StepBytes {
                    sent: self.all_reduce(bits as f64),
                    ..StepBytes::default()
                };
                ([sum; 2], 0, self.input_bytes())
            }
            false => {
                let (sums, edge_file_bytes) = self.dictionary(vertices)?;
                (sums, self.arcs, edge_file_bytes)
            }
        };
        sums[0].written += ids_bytes;
        self.phase("ids", sums, arcs as f64 / self.ranks);
        Ok(edges_read / self.ranks)
    }

    /// Estimates a dictionary of `vertices` ids, sorted on disk.
    ///
    /// It has occurrences, sorted runs, positions, and edges of indices. Returns the bytes of the step and of these edges.
    fn dictionary(&mut self, vertices: u64) -> Result<([StepBytes; 2], f64), IngestError> {
        let shares = self.dictionary_memory()?;
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
            let here = self.edges / self.ranks;
            let chunks = 16.0 * shares.chunk_bytes as f64 * self.ranks;
            let lane = (here * 16.0 * chunks).sqrt() as u64;
            let needed = lane * self.request.threads as u64 + shares.passing_bytes;
            return Err(self.too_little("the ends of edges", needed));
        }
        let position_buckets = (self.edges / self.ranks / of_positions).ceil() * self.ranks;
        let positions = BucketStreams {
            count: self.lanes * self.ranks * position_buckets,
            ..streams(ends * RESOLVED_BYTES, 1.0, RESOLVED_BYTES as usize)
        };
        let ids = vertices as f64 * ID_BYTES;
        let width = if vertices < 1 << 32 { 8.0 } else { 16.0 };
        let weights = self.request.weights.bytes() as f64;
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
        self.temporary += written;
        Ok(([sum, other], edge_file_bytes))
    }

    /// The arcs in buckets, the column files, and the end.
    fn columns(
        &mut self,
        (shape, plan, files_here): (&GraphSpec, &DistributionPlan, u64),
        outline: &GraphProfile,
        sorts_ids: bool,
        held: u64,
        edges_read: f64,
    ) -> Result<(), IngestError> {
        let request = self.request;
        let batches = shape.batches.len() as u64;
        let tables = (request.options.batch_size).map_or(0, |_| batches * BATCH_BYTES);
        let need = write::WriteMemory::from_shape(shape, plan, tables);
        let reader_bytes = match sorts_ids {
            true => 4 * self.dictionary_memory()?.write_bytes as u64,
            false => request.reader_bytes(),
        };
        let demand = Demand::new(plan, reader_bytes, request.ranks, need);
        let memory = MemorySnapshot {
            total: request.memory,
            available: request.memory.saturating_sub(held + tables),
        };
        let Some(sizes) = demand.sizes(request.threads as u64, memory) else {
            let more = demand.wanting(memory, reader_bytes);
            return Err(IngestError::TooLittleMemory {
                what: "column files",
                needed: memory.available.saturating_add(more),
                available: memory.available,
                least: request.memory.saturating_add(more),
            });
        };
        let lanes = (sizes.lanes as f64 * self.ranks).min(self.readers());
        let arcs = BucketStreams {
            bytes: self.arcs as f64 * plan.packing.bytes() as f64,
            count: lanes * plan.buckets() as f64,
            chunk_bytes: sizes.chunk_bytes,
            together: distribute::line_bytes(plan.packing),
        };
        let counts = distribute::counts_bytes(plan.buckets(), plan.parts) as f64;
        let sum = StepBytes {
            read: edges_read,
            written: arcs.written() / self.ranks,
            sent: arcs.sent(self.ranks) + self.all_reduce(counts),
        };
        self.arcs_phase("distribute", sum);

        let taken = need.held_and_noted() + demand.table_bytes(&sizes);
        let free = memory.total.saturating_sub(taken);
        let selections = self.selections(plan, (files_here, free), &sizes);
        let sources = (outline.columns.iter())
            .map(|column| column.sources_bytes)
            .fold(0, u64::saturating_add);
        let edge_files = sources as f64 + (shape.files.len() * GRAIN / 2) as f64;
        let sum = StepBytes {
            read: arcs.read() * selections / self.ranks,
            written: (outline.files.columns() as f64 + edge_files) / self.ranks,
            sent: 0.0,
        };
        self.arcs_phase("write", sum);
        self.temporary += arcs.written() + edge_files;
        let ends = self.finish(outline, edge_files, shape.files.len() as f64);
        self.phase("finish", ends, 0.0);
        Ok(())
    }

    /// Returns how often a bucket is read until all of it is sorted.
    fn selections(
        &self,
        plan: &DistributionPlan,
        (most, free): (u64, u64),
        sizes: &BufferSizes,
    ) -> f64 {
        let request = self.request;
        let record = record_bytes(request.weights, request.options.duplicates) as f64;
        let of_bucket = self.arcs as f64 / plan.buckets().max(1) as f64;
        // Parts of a bucket are ranges of keys, and half of the ranges may be empty.
        let part = of_bucket * 2.0 / plan.parts as f64;
        let wanted = ((of_bucket + part) * record) as u64;
        let lanes = write::SortLanes::new(
            plan,
            (most.min(request.threads as u64), wanted.max(GRAIN as u64)),
            (free, request.memory),
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
        let request = self.request;
        let cells = outline.measure.cells as f64;
        let batches = outline.columns.len() as f64;
        // A number of each cut in decimal digits, and a few lines.
        let digits = (request.vertices as f64).log10().ceil() + 7.0;
        let of_all =
            outline.files.of_all() as f64 - outline.files.ids as f64 + batches * digits + 2048.0;
        let held = GraphWriter::memory_of_cells(files as u64, outline.measure.cells);
        let read = GraphWriter::read_to_finish(
            &outline.measure.batches,
            (outline.arcs, outline.measure.cells),
            edge_files as u64,
            request.memory.saturating_sub(held),
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
        if !request.shared && self.ranks > 1.0 {
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
    use graphmill_graph::EdgeKind;

    use super::super::request::EDGES_MAX;
    use super::*;
    use crate::options::ImportOptions;

    fn question(options: &ImportOptions) -> ImportEstimateRequest<'_> {
        ImportEstimateRequest {
            like: DegreeModel::Kronecker,
            vertices: 1 << 20,
            edges: 1 << 24,
            vertices_below: false,
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
            let found = estimate(&question).unwrap();
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
        let found = estimate(&question).unwrap();
        assert!(found.sorts_ids && found.temporary_bytes > 64 << 40);
        let drawn = ImportEstimateRequest {
            input: Input::Drawn,
            ..question
        };
        let drawn = estimate(&drawn).unwrap();
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
            assert!(estimate(&question).is_err(), "{question:?}");
        }
        let mut question = ImportEstimateRequest { memory: 1, ..base };
        let mut tries = 0;
        while let Err(error) = estimate(&question) {
            let IngestError::TooLittleMemory { least, .. } = error else {
                panic!("{error}");
            };
            assert!(least > question.memory && least < 64 << 20);
            (question.memory, tries) = (least, tries + 1);
        }
        assert!(tries <= 3);
        let found = estimate(&ImportEstimateRequest {
            edges: EDGES_MAX,
            vertices: 1 << 38,
            input: Input::Drawn,
            memory: u64::MAX >> 8,
            ..question
        });
        assert!(found.is_ok());
    }
}
