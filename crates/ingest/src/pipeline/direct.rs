//! Steps 1 to 5 of an import in one, *compute*: for a graph whose rule generates its arcs in the order of the stored graph.
//!
//! The counts of the steps are known, so nothing is scanned, gathered or sorted: each worker writes one column file after
//! the other, cell by cell, from first to last arc. The graph is the one that the steps would have stored, byte for byte.

use std::ops::Range;

use graphmill_graph::{ColumnFileWriter, EdgeKind, FileSide, GraphWriter, IdsSummary};
use graphmill_raw::AlignedBuffer;
use graphmill_storage::Buffer;

use super::assign_ids::ArcStats;
use super::context::ImportContext;
use super::cut::CutPlan;
use super::resume::CompletedFiles;
use super::write::{self, TABLES_BYTES};
use crate::build::distribute::DistributionPlan;
use crate::build::sort_bucket::ArcCounts;
use crate::edge_data::weight_bits;
use crate::error::IngestError;
use crate::external::bucket_file::GRAIN;
use crate::external::parallel;
use crate::generate::edge_at::WeightRng;
use crate::generate::rule::DirectSource;
use crate::generate::sorted_arcs::{ArcDirections, RangeArcs, SortedArcs, SourceArcs};
use crate::layout::batch_cut::RangeCounts;
use crate::layout::histogram::granule_ends;
use crate::options::SelfLoops;
use crate::progress::Meter;
use crate::source::EdgeSource;

/// Arcs that are handed to the graph's writer together: whole blocks.
const RUN: usize = 1 << 14;

/// One side of the graph: its column files and the arcs that go there.
struct DirectSide<'a> {
    files: &'a [Range<usize>],
    steps: SortedArcs,
    side: FileSide,
}

impl<'a> ImportContext<'a> {
    /// The ways of the arcs of each side.
    fn directions(&self) -> impl Iterator<Item = ArcDirections> + use<> {
        let forward = match self.options.directed {
            true => ArcDirections::Forth,
            false => ArcDirections::Both,
        };
        let reverse = self.options.turns_round().then_some(ArcDirections::Back);
        [Some(forward), reverse].into_iter().flatten()
    }

    /// Returns the results that steps 1 and 2 would have.
    pub(super) fn count_out(&mut self, computed: DirectSource<'_>) -> ArcStats {
        let DirectSource { graph, circulant } = computed;
        let vertices = circulant.vertices;
        let self_loops = self.options.self_loops;
        let edges = graph.edges().unwrap_or(0);
        let report = &mut self.report;
        (report.lines, report.edges, report.vertices) = (edges, edges, vertices);
        if self_loops == SelfLoops::Drop {
            report.dropped_self_loops = vertices * circulant.loops();
        }
        let mut granules = self.directions().map(|directions| {
            let first = granule_ends(vertices);
            let arcs = SortedArcs::count(circulant, directions, self_loops);
            let arcs = first.windows(2).map(|ends| (ends[1] - ends[0]) * arcs);
            RangeCounts::new(first.clone(), arcs.collect())
        });
        let (arcs_in, arcs_out) = (granules.next(), granules.next());
        ArcStats {
            ids: Some(IdsSummary::dense(vertices)),
            vertices,
            arcs_in: arcs_in.unwrap_or_else(|| RangeCounts::new(vec![0], Vec::new())),
            arcs_out,
        }
    }

    /// Writes all column files.
    pub(super) fn compute(
        &mut self,
        computed: DirectSource<'_>,
        cut: &CutPlan,
        graph: &GraphWriter,
    ) -> Result<ArcCounts, IngestError> {
        let DirectSource { circulant, .. } = computed;
        let resources = self.resources;
        let plan = &cut.plan;
        let steps_bytes: u64 = self
            .directions()
            .map(|directions| SortedArcs::bytes(circulant, directions))
            .sum();
        if steps_bytes > resources.budget.available() {
            // Cells cannot be counted then: check the memory for the largest possible number of cells.
            let need = write::WriteMemory::new(cut);
            self.need("the neighbours of a vertex", |total| {
                steps_bytes.saturating_add(need.bytes(total, GRAIN))
            })?;
        }
        let sides = std::iter::zip(plan.sides(), [FileSide::Forward, FileSide::Reverse]);
        let halves = sides
            .zip(self.directions())
            .map(|((columns, side), directions)| {
                let self_loops = self.options.self_loops;
                Ok(DirectSide {
                    files: &columns.files,
                    steps: SortedArcs::new(circulant, directions, self_loops, resources.budget)?,
                    side,
                })
            });
        let halves: Vec<DirectSide<'_>> = halves.collect::<Result<_, IngestError>>()?;
        let lanes = self.compute_lanes(cut, &halves)?;

        let files = halves
            .iter()
            .flat_map(|half| (0..half.files.len()).map(move |number| (half, number)));
        let rank = self.comm.rank();
        let mine = files.zip(&cut.owners).filter(|(_, owner)| **owner == rank);
        let mut files: Vec<(&DirectSide<'_>, usize)> = mine.map(|(file, _)| file).collect();
        let names = files.iter().map(|(half, number)| (half.side, *number));
        let done = self.done_files(graph, names)?;
        files.retain(|(half, number)| !done.contains_key(&(half.side, *number)));
        let completed = CompletedFiles::new(self, graph);
        let arcs_of = |half: &DirectSide<'_>| half.steps.len() * circulant.vertices;
        let meter = Meter::new(
            resources.progress,
            "write",
            halves.iter().map(arcs_of).sum(),
        );
        let weights = computed.graph.weigher();
        let make = || CellBuffer::new(self, plan, weights, &meter);
        let work = |run: &mut CellBuffer<'_>, task: u64| {
            let (half, number) = files[task as usize];
            let mut writer = match half.side {
                FileSide::Forward => graph.column_file(number)?,
                FileSide::Reverse => graph.reverse_column_file(number)?,
            };
            for batch in half.files[number].clone() {
                run.column(&half.steps, batch, &mut writer)?;
            }
            writer.finish()?;
            completed.add(half.side, number, ArcCounts::default());
            Ok(())
        };
        let tasks = files.len() as u64;
        let written = parallel::run(resources, lanes, tasks, make, work);
        if written.is_err() {
            completed.checkpoint();
        }
        written?;
        self.done("write");
        Ok(ArcCounts {
            arcs: halves.first().map_or(0, arcs_of),
            ..ArcCounts::default()
        })
    }

    /// For how many workers there is memory. That includes what the end of the import takes.
    fn compute_lanes(
        &self,
        cut: &CutPlan,
        halves: &[DirectSide<'_>],
    ) -> Result<usize, IngestError> {
        let (mut notes, mut finish) = (0, 0);
        for half in halves {
            let of_file =
                |file: &Range<usize>| file.clone().map(|batch| cells(cut, half, batch)).sum();
            let cells: Vec<u64> = half.files.iter().map(of_file).collect();
            let (all, most) = (cells.iter().sum(), cells.iter().copied().max().unwrap_or(0));
            let arcs = half.steps.len() * cut.plan.vertices;
            let bytes = GraphWriter::memory_to_finish(&cut.shape, arcs, all, most);
            notes += GraphWriter::memory_of_cells(half.files.len() as u64, all);
            finish = bytes.max(finish);
        }
        let weights = cut.plan.weights;
        let lane =
            |total| GraphWriter::memory(weights, total) + TABLES_BYTES + CellBuffer::bytes(weights);
        self.need("column files", |total| notes + finish.max(lane(total)))?;
        let budget = self.resources.budget;
        let (total, available) = (budget.total(), budget.available());
        Ok(((available - notes) / lane(total)) as usize)
    }

    /// Returns an error unless the bytes that are `needed` with the budget's total are free.
    fn need(&self, what: &'static str, needed: impl Fn(u64) -> u64) -> Result<(), IngestError> {
        let budget = self.resources.budget;
        let (total, available) = (budget.total(), budget.available());
        let mut more = 0;
        while needed(total.saturating_add(more)) > available.saturating_add(more) {
            more = needed(total.saturating_add(more)) - available;
        }
        IngestError::check_free(what, available.saturating_add(more), budget)
    }
}

/// The cells with arcs into a batch.
fn cells(cut: &CutPlan, half: &DirectSide<'_>, batch: usize) -> u64 {
    let batches = &cut.shape.batches;
    let arcs = half
        .steps
        .reaching(batches.start(batch), batches.span(batch));
    let (mut cells, mut source) = (0, 0);
    while let Some(next) = arcs.next_source(source) {
        cells += 1;
        source = batches.cut(batches.batch_of(next) + 1);
    }
    cells
}

/// One worker's arcs on their way to a column file: some of one cell.
struct CellBuffer<'a> {
    plan: &'a DistributionPlan,
    stop: &'a graphmill_storage::CancelToken,
    meter: &'a Meter<'a>,
    drawn: WeightRng,
    keys: Buffer,
    weights: Buffer,
    count: usize,
}

impl<'a> CellBuffer<'a> {
    /// Bytes that one leases.
    fn bytes(weights: EdgeKind) -> u64 {
        AlignedBuffer::footprint(RUN * size_of::<u64>())
            + AlignedBuffer::footprint(RUN * weights.bytes())
    }

    fn new(
        import: &ImportContext<'a>,
        plan: &'a DistributionPlan,
        drawn: WeightRng,
        meter: &'a Meter<'a>,
    ) -> Result<Self, IngestError> {
        let resources = import.resources;
        let buffer = |bytes| resources.budget.buffer("arcs on their way", bytes);
        Ok(CellBuffer {
            plan,
            stop: resources.stop,
            meter,
            drawn,
            keys: buffer(RUN * size_of::<u64>())?,
            weights: buffer(RUN * plan.weights.bytes())?,
            count: 0,
        })
    }

    /// Writes all arcs into a batch.
    fn column(
        &mut self,
        steps: &SortedArcs,
        batch: usize,
        writer: &mut ColumnFileWriter,
    ) -> Result<(), IngestError> {
        let cuts = self.plan.layout.cuts();
        let range = steps.reaching(cuts[batch], cuts[batch + 1] - cuts[batch]);
        let mut source = 0;
        while let Some(next) = range.next_source(source) {
            let source_batch = self.plan.layout.batch_of.batch(next);
            source = cuts[source_batch + 1];
            self.cell(range, next..source, (batch, source_batch), writer)?;
        }
        Ok(())
    }

    /// Writes the arcs from `sources`, which end with a batch; the first source has at least one arc.
    fn cell(
        &mut self,
        range: RangeArcs<'_>,
        sources: Range<u64>,
        cell: (usize, usize),
        writer: &mut ColumnFileWriter,
    ) -> Result<(), IngestError> {
        let start = self.plan.layout.cuts()[cell.1];
        let mut arcs = range.at_source(sources.start);
        loop {
            let mut taken = 0;
            while taken < arcs.len() {
                let part = arcs.part(taken, RUN - self.count);
                self.put(arcs.source - start, &part);
                taken += part.len();
                if self.count == RUN {
                    self.flush(cell, writer)?;
                }
            }
            // Sources without arcs are passed over.
            let next = match taken {
                0 => range.next_source(arcs.source),
                _ => Some(arcs.source + 1),
            };
            match next.filter(|source| *source < sources.end) {
                None => return self.flush(cell, writer),
                Some(source) if source == arcs.source + 1 => arcs.advance(),
                Some(source) => arcs = range.at_source(source),
            }
        }
    }

    /// Adds arcs from one source, which must fit the buffer.
    #[inline(always)]
    fn put(&mut self, source: u64, arcs: &SourceArcs<'_>) {
        let range = self.count..self.count + arcs.len();
        self.count = range.end;
        let keys = &mut self.keys.typed_mut::<u64>()[range.clone()];
        for (key, destination) in keys.iter_mut().zip(arcs.destinations()) {
            *key = source << 32 | destination;
        }
        let kind = self.plan.weights;
        if kind != EdgeKind::None {
            let width = kind.bytes();
            let weights = &mut self.weights[range.start * width..range.end * width];
            for (out, edge) in weights.chunks_exact_mut(width).zip(arcs.edges()) {
                let bits = weight_bits(self.drawn.weight(edge), kind).to_le_bytes();
                out.copy_from_slice(&bits[..width]);
            }
        }
    }

    fn flush(
        &mut self,
        (batch, source_batch): (usize, usize),
        writer: &mut ColumnFileWriter,
    ) -> Result<(), IngestError> {
        IngestError::check_stop(self.stop)?;
        let count = std::mem::take(&mut self.count);
        let keys = &self.keys.typed::<u64>()[..count];
        let weights = &self.weights[..count * self.plan.weights.bytes()];
        writer.edges(batch, source_batch, keys, weights)?;
        self.meter.advance(count as u64);
        Ok(())
    }
}
