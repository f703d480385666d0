//! Step 4 of an import in order of degree: vertices are assigned to batches round robin, and edges distributed by the new indices.
//!
//! The indices of all vertices are in memory while edges are distributed, if it holds them. Else edges are gathered by ranges of
//! their destinations first, then by ranges of their sources, so that the indices of one range suffice (`relabel.rs`).

use std::sync::Mutex;

use graphmill_graph::GraphWriter;
use graphmill_raw::lock;

use super::assign_ids::IndexedEdges;
use super::buckets::{ARCS, Buckets};
use super::buffer_plan::{BufferSizes, CHUNK_BYTES_MAX, Demand, MemorySnapshot};
use super::context::ImportContext;
use super::cut::{CutPlan, ShuffleTarget};
use super::write;
use crate::build::distribute::{DistributionPlan, Distributor};
use crate::build::relabel::{Gathered, GatheredReader};
use crate::error::IngestError;
use crate::external::bucket_file::GRAIN;
use crate::external::parallel;
use crate::ids::index_map::IdToIndex;
use crate::ids::order_window::OrderWindow;
use crate::layout::degree_file::OutDegrees;
use crate::layout::degree_order::DegreeOrder;
use crate::layout::histogram::bits_of;
use crate::progress::Meter;

/// The temporary files of gathered edges.
const BY_DESTINATION: &str = "by-destination";
const BY_SOURCE: &str = "by-source";

/// Ranges of vertices at most.
const RANGES_MAX: u64 = 4096;
/// Ranges that work that is kept small for experiments makes at most.
const RANGES_FEW: u64 = 64;

/// The method that gives edges the indices of their ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RelabelMode {
    /// All indices are in memory.
    Whole,
    /// The indices of `span` vertices are in memory; edges are gathered twice before they are distributed.
    Ranges {
        span: u64,
        gather: BufferSizes,
        distribute: BufferSizes,
    },
}

/// The input of the choice, in addition to memory.
struct RelabelInput<'a> {
    plan: &'a DistributionPlan,
    need: write::WriteMemory,
    /// Numbers of vertices.
    numbers: u64,
    lanes: u64,
    /// Ranks that distribute together.
    ranks: usize,
    /// Bytes of a reader of the edges.
    reader_bytes: u64,
    /// Vertices whose indices may be in memory at a time.
    vertices_max: u64,
}

impl RelabelInput<'_> {
    /// The way that needs the fewest readings; `None`: there is too little memory for any.
    fn choose_mode(&self, memory: MemorySnapshot) -> Option<RelabelMode> {
        self.whole(memory).or_else(|| {
            let numbers = self.numbers;
            // Keys of gathered edges are 64 bits at most.
            let keys_max = 1 << (u64::BITS - bits_of(numbers)).min(u64::BITS - 1);
            let most = self.vertices_max.max(numbers / RANGES_FEW);
            let most = most.min(numbers).min(keys_max).max(1);
            let least = (numbers / RANGES_MAX).clamp(1, most);
            std::iter::successors(Some(1 << most.ilog2()), |span| Some(span / 2))
                .take_while(|span| 2 * span > least)
                .find_map(|span| self.ranges(span, memory))
        })
    }

    fn whole(&self, memory: MemorySnapshot) -> Option<RelabelMode> {
        let slice_bytes =
            OrderWindow::bytes(self.plan.vertices, self.numbers) + OutDegrees::WALK_BYTES;
        let left = memory.less(slice_bytes)?;
        let sizes = Demand::new(self.plan, self.reader_bytes, self.ranks, self.need)
            .sizes(self.lanes, left);
        (self.numbers <= self.vertices_max && sizes.is_some()).then_some(RelabelMode::Whole)
    }

    fn ranges(&self, span: u64, memory: MemorySnapshot) -> Option<RelabelMode> {
        let slice_bytes = OrderWindow::bytes(self.plan.vertices, span) + OutDegrees::WALK_BYTES;
        let left = memory.less(slice_bytes)?;
        let reader_bytes = GatheredReader::bytes(CHUNK_BYTES_MAX);
        let gather = Demand::new(
            &self.plan.by_destination(self.numbers, span),
            reader_bytes.max(self.reader_bytes),
            1,
            self.need,
        );
        // While they are gathered by sources, or distributed, the file they come from has its table.
        let sizes = gather.sizes(self.lanes, left.less(left.available / 2)?)?;
        let left = left.less(gather.table_bytes(&sizes))?;
        let distribute = Demand::new(self.plan, reader_bytes, self.ranks, self.need);
        Some(RelabelMode::Ranges {
            span,
            gather: sizes,
            distribute: distribute.sizes(self.lanes, left)?,
        })
    }

    /// Returns the missing bytes for any method.
    fn wanting(&self, memory: MemorySnapshot) -> u64 {
        let does = |more| self.choose_mode(memory.and(more)).is_some();
        let mut most = GRAIN as u64;
        while most < 1 << 62 && !does(most) {
            most *= 2;
        }
        let mut least = most / 2;
        while most - least > GRAIN as u64 {
            let middle = least.midpoint(most);
            match does(middle) {
                true => most = middle,
                false => least = middle,
            }
        }
        most
    }
}

impl<'a> ImportContext<'a> {
    /// Step 4 in order of degree, the order itself included.
    pub(super) fn degree_order(
        &mut self,
        indexed: IndexedEdges<'a>,
        degrees: OutDegrees,
        cut: &CutPlan,
        graph: &GraphWriter,
    ) -> Result<Buckets, IngestError> {
        let resources = self.resources;
        let needed = DegreeOrder::bytes(cut.plan.vertices, degrees.arcs) + DegreeOrder::WRITE_BYTES;
        IngestError::check_free("the order of vertices", needed, resources.budget)?;
        let batches = cut.shape.batches.clone();
        let degree_order = DegreeOrder::new(&degrees, resources, batches)?;
        let way = self.choose_mode(cut, &indexed, degrees.numbers)?;
        if self.comm.is_first() {
            degree_order.write(graph.order()?, self.options.work_bytes_max)?;
        }
        self.done("order");
        match way {
            RelabelMode::Whole => {
                let window = degree_order.slice(0..degrees.numbers)?;
                drop(degree_order);
                self.distribute(indexed, Some(window), cut)
            }
            RelabelMode::Ranges {
                span,
                gather,
                distribute,
            } => self.distribute_by_ranges(indexed, &degree_order, cut, span, gather, distribute),
        }
    }

    fn choose_mode(
        &self,
        cut: &CutPlan,
        indexed: &IndexedEdges<'a>,
        numbers: u64,
    ) -> Result<RelabelMode, IngestError> {
        let choice = |reader_bytes| RelabelInput {
            plan: &cut.plan,
            need: write::WriteMemory::new(cut),
            numbers,
            lanes: self.lanes(),
            ranks: self.comm.count(),
            reader_bytes,
            vertices_max: self.options.work_bytes_max / size_of::<u64>() as u64,
        };
        let memory = self.memory();
        let found = choice(indexed.source.reader_bytes()).choose_mode(memory);
        found.ok_or_else(|| {
            let more = choice(indexed.source.reader_bytes_max()).wanting(memory);
            self.too_little(more)
        })
    }

    /// Gathers the edges by destinations, then by sources, and distributes them.
    fn distribute_by_ranges(
        &mut self,
        indexed: IndexedEdges<'a>,
        degree_order: &DegreeOrder<'_>,
        cut: &CutPlan,
        span: u64,
        gather: BufferSizes,
        distribute: BufferSizes,
    ) -> Result<Buckets, IngestError> {
        let (disk, progress) = (&**self.resources.disk, self.resources.progress);
        let plan = cut.plan.by_destination(degree_order.degrees.numbers, span);
        let here = ShuffleTarget {
            plan: &plan,
            owners: &[],
        };
        let meter = Meter::new(progress, "gather", 2 * self.edges_here);
        let by_destination = self.read_into(indexed, None, here, BY_DESTINATION, gather, &meter)?;
        let gathered = Gathered {
            plan: &plan,
            bucket_file: &by_destination.bucket_file,
        };
        let by_source = self.relabel(degree_order, gathered, here, BY_SOURCE, gather, &meter)?;
        drop(by_destination);
        disk.remove_file(&self.temporary.join(BY_DESTINATION))?;
        let gathered = Gathered {
            plan: &plan,
            bucket_file: &by_source.bucket_file,
        };
        let distribute = self.agreed(distribute)?;
        let meter = Meter::new(progress, "distribute", self.edges_here);
        let buckets = self.relabel(
            degree_order,
            gathered,
            cut.to_all(),
            ARCS,
            distribute,
            &meter,
        )?;
        drop(by_source);
        disk.remove_file(&self.temporary.join(BY_SOURCE))?;
        self.done("distribute");
        Ok(buckets)
    }

    /// Replaces the destinations of gathered edges by indices and gathers the transposed edges by a plan.
    fn relabel(
        &mut self,
        degree_order: &DegreeOrder<'_>,
        gathered: Gathered<'_>,
        to: ShuffleTarget<'_>,
        file: &str,
        sizes: BufferSizes,
        meter: &Meter<'_>,
    ) -> Result<Buckets, IngestError> {
        let resources = self.resources;
        let (disk, budget) = (&**resources.disk, resources.budget);
        let target = self.bucket_target(to, file, sizes)?;
        let resting = Mutex::new(Vec::new());
        let make = || {
            if let Some(state) = lock(&resting).pop() {
                return Ok(state);
            }
            let distributor = target.distributor(IdToIndex::Same.look_up(), meter)?;
            Ok((GatheredReader::new(&gathered, disk, budget)?, distributor))
        };
        let read = || {
            for range in 0..gathered.plan.buckets() {
                let indices = degree_order.slice(gathered.destinations(range))?;
                let work = |(reader, sink): &mut (GatheredReader, Distributor<'_>), unit: u64| {
                    gathered.read(range, unit, &indices, reader, resources.stop, sink)
                };
                let (lanes, units) = (sizes.lanes as usize, gathered.units(range));
                let states = parallel::run(resources, lanes, units, make, work)?;
                lock(&resting).extend(states);
            }
            let states = std::mem::take(&mut *lock(&resting));
            Ok(states.into_iter().map(|(_, sink)| sink).collect())
        };
        let counts = self.fill(&target, read)?;
        drop(resting);
        self.buckets(target, counts)
    }
}

#[cfg(test)]
mod tests {
    use graphmill_graph::EdgeKind;

    use super::*;
    use crate::layout::edge_key::{EdgeKeyLayout, RecordPacking};
    use crate::options::{Duplicates, SelfLoops};

    const MIB: u64 = 1 << 20;

    /// A plan of `vertices` vertices in 64 batches, each a column file, with 16 edges a vertex.
    fn plan(vertices: u64) -> DistributionPlan {
        let cuts = (0..=64).map(|batch| vertices * batch / 64).collect();
        let layout = EdgeKeyLayout::new(cuts);
        let files = (0..64).map(|batch| batch..batch + 1).collect();
        DistributionPlan {
            forward: layout.columns(files, 0),
            reverse: None,
            packing: RecordPacking::new(layout.key_bits(1), EdgeKind::None, false),
            layout,
            weights: EdgeKind::None,
            directed: false,
            first_edge_vertex: None,
            self_loops: SelfLoops::Keep,
            duplicates: Duplicates::Keep,
            edges: 16 * vertices,
            part_shifts: vec![0; 64],
            parts: 16,
            vertices,
        }
    }

    fn choice(plan: &DistributionPlan) -> RelabelInput<'_> {
        RelabelInput {
            plan,
            need: write::WriteMemory::of_cells(64, 64 * 64),
            numbers: plan.vertices,
            lanes: 2,
            ranks: 1,
            reader_bytes: 64 << 10,
            vertices_max: u64::MAX,
        }
    }

    fn memory(bytes: u64) -> MemorySnapshot {
        MemorySnapshot {
            total: bytes,
            available: bytes,
        }
    }

    #[test]
    fn degree_order_uses_the_memory_given() {
        // Vertices, memory; vertices of a range, 0 for all.
        for (vertices, mib, expected) in [
            (1 << 20, 64, Some(0)),
            (1 << 24, 128, Some(0)),
            (1 << 24, 64, Some(1 << 23)),
            (1 << 24, 32, Some(1 << 22)),
            (1 << 30, 512, Some(1 << 26)),
            (1 << 24, 4, None),
        ] {
            let plan = plan(vertices);
            let found = choice(&plan)
                .choose_mode(memory(mib * MIB))
                .map(|way| match way {
                    RelabelMode::Whole => 0,
                    RelabelMode::Ranges { span, .. } => span,
                });
            assert_eq!(found, expected, "{vertices} vertices, {mib} MiB");
        }
    }

    #[test]
    fn degree_order_least_memory_is_enough() {
        for vertices in [1000, 1 << 20, 1 << 24, 1 << 34] {
            let plan = plan(vertices);
            let choice = choice(&plan);
            let more = choice.wanting(memory(MIB));
            assert!(
                choice.choose_mode(memory(MIB).and(more)).is_some(),
                "{vertices}"
            );
            let less = more.saturating_sub(2 * GRAIN as u64);
            assert!(
                choice.choose_mode(memory(MIB).and(less)).is_none(),
                "{vertices}"
            );
        }
    }
}
