//! An import in order of degree, in place of steps 3 to 5.
//!
//! 1. The graph is stored in order of ids first, as a temporary file. That resolves duplicates, so that its out-degrees are
//!    those that count, and puts arcs into cells between ranges of ids.
//! 2. Its vertices are dealt over the batches of the graph to be, and their order is written.
//! 3. Its arcs are read back with the indices of their ends, and distributed and written as any edges are.
//!
//! The indices of all vertices are in memory for step 3 where they fit. Else those of a group of source batches are, and those of a
//! group of destination batches, and only the cells between the two are read, pair by pair.

use std::ops::Range;
use std::sync::{Arc, Mutex};

use graphmill_graph::{
    Batches, EdgeKind, FRAME_BYTES, Facts, FileKind, GraphWriter, IdsSummary, StoredGraph,
};

use super::cut::Cut;
use super::distribute::{ARCS, Buckets};
use super::ids::Indexed;
use super::sizes::{Demand, Memory, Sizes};
use super::{Import, ImportOptions, Meter, write};
use crate::cut::batch_vertices_max;
use crate::deal::{Deal, Slice};
use crate::distribute::{Distributor, Indices};
use crate::error::IngestError;
use crate::parallel;
use crate::relabel::ArcReader;
use crate::spill::lock;
use crate::write::Kept;

/// Bytes of the buffers with which a graph is opened.
const OPENING_BYTES: u64 = 128 << 10;
/// Bytes of the tables of a small graph, and to distribute its arcs.
const SMALL_BYTES: u64 = 512 << 10;

/// Batches of the graph on the way, where memory is short.
const BATCHES_MAX: u64 = 64;
/// The folder of the graph in order of ids.
const BY_ID: &str = "by-id";

/// What a graph that is stored in order of ids on the way is to be like: no larger than it must be.
pub(super) fn on_the_way(options: &ImportOptions) -> ImportOptions {
    ImportOptions {
        reverse: false,
        csr_ratio: 0,
        ..options.clone()
    }
}

/// Bytes that dealing and distribution take at least, of a small graph.
pub(super) fn least_bytes(weights: EdgeKind) -> u64 {
    let deal = Deal::bytes(0, 0);
    let distribute = Deal::WALK_BYTES + ArcReader::bytes(weights) + SMALL_BYTES;
    deal + Deal::WRITE_BYTES.max(distribute)
}

/// Groups of batches, and the indices of how many vertices are in memory at a time.
struct Groups {
    groups: Vec<Range<usize>>,
    vertices: u64,
}

impl Groups {
    /// Groups of batches that have at most so many vertices each, or are one batch.
    fn new(batches: &Batches, vertices_max: u64) -> Self {
        let mut groups: Vec<Range<usize>> = Vec::new();
        let span = |group: &Range<usize>| batches.cut(group.end) - batches.cut(group.start);
        for batch in 0..batches.len() {
            match groups.last_mut() {
                Some(last) if span(&(last.start..batch + 1)) <= vertices_max => last.end += 1,
                _ => groups.push(batch..batch + 1),
            }
        }
        let vertices = groups.iter().map(span).max().unwrap_or(0);
        Self { groups, vertices }
    }

    /// Bytes of the indices of two groups, or of the one that there is.
    fn bytes(&self, batches: &Batches) -> u64 {
        let slices = if self.groups.len() > 1 { 2 } else { 1 };
        slices * Slice::bytes(batches.vertices(), self.vertices)
    }
}

/// What distribution takes, and what comes after it.
fn demand(cut: &Cut) -> Demand {
    let reader_bytes = ArcReader::bytes(cut.plan.weights);
    Demand::new(&cut.plan, reader_bytes, write::Need::new(cut))
}

/// Bytes that the graph on the way takes while it is open, at most: by cell, by frame of its files, by page of its vertices.
fn open_bytes(cut: &Cut) -> u64 {
    let (plan, batches) = (&cut.plan, cut.shape.batches.len() as u64);
    let arcs = plan.arcs_max();
    let cells = arcs.min(batches.saturating_mul(batches));
    let frames = arcs * (8 + plan.weights.bytes() as u64) / FRAME_BYTES + 3 * batches;
    128 * (cells + batches) + 8 * frames + plan.vertices / 64 + OPENING_BYTES
}

impl<'a> Import<'a> {
    /// Stores the graph in order of degree, as `options` say; `self` has those of the graph on the way.
    pub(super) fn by_degree(
        &mut self,
        indexed: Indexed<'a>,
        options: &'a ImportOptions,
    ) -> Result<(GraphWriter, Kept), IngestError> {
        let (machine, disk) = (self.machine, &**self.machine.disk);
        let by_id = self.temporary.join(BY_ID);
        let ids = IdsSummary::dense(indexed.vertices);
        let cut = self.cut(&indexed, self.size_on_the_way(indexed.vertices))?;
        self.check_degree(&cut, options)?;
        let (graph, kept) = self.columns(indexed, &cut, &by_id)?;
        graph.finish(Facts {
            ids,
            input_edges: self.report.edges,
            dropped: Default::default(),
            options: Default::default(),
            program: String::new(),
        })?;
        drop(cut);
        disk.remove_file(&self.temporary.join(ARCS))?;

        self.options = options;
        let stored = Arc::new(StoredGraph::open(machine.disk, machine.budget, &by_id)?);
        let (vertices, arcs) = (stored.vertices(), stored.arcs());
        for kind in [FileKind::Data, FileKind::Index, FileKind::Weights] {
            self.report.temporary_bytes += stored.forward().bytes(kind);
        }
        let cut = self.cut_dealt(options, vertices, arcs)?;
        let graph = self.graph(&cut, self.staging)?;
        let needed = Deal::bytes(vertices, arcs) + Deal::WRITE_BYTES;
        self.check("the order of vertices", needed)?;
        let batches = cut.shape.batches.clone();
        let deal = Deal::new(&stored, machine.budget, machine.stop, batches)?;
        deal.write(graph.order()?, options.work_bytes_max)?;
        self.done("order");
        let buckets = self.redistribute(&stored, &deal, &cut)?;
        drop((deal, stored));
        disk.remove_dir_all(&by_id)?;
        let again = self.write(&cut, buckets, &graph)?;
        if again.arcs != kept.arcs {
            return Err(IngestError::internal("arcs got lost between two orders"));
        }
        Ok((graph, kept))
    }

    /// Vertices of a batch of the graph on the way, if less than usual: two batches are the least whose indices are in memory.
    /// The more of them, the more cells there are.
    fn size_on_the_way(&self, vertices: u64) -> Option<u64> {
        let share = self.machine.budget.available() / 16;
        let indices = share.min(self.options.work_bytes_max) / size_of::<u64>() as u64;
        let size = indices.max(vertices / BATCHES_MAX).max(1);
        (size < batch_vertices_max(vertices)).then_some(size)
    }

    /// Refuses a budget that will not do for what follows when the graph on the way is stored, before that is begun.
    fn check_degree(
        &mut self,
        on_the_way: &Cut,
        options: &ImportOptions,
    ) -> Result<(), IngestError> {
        let plan = &on_the_way.plan;
        let (vertices, arcs) = (plan.vertices, plan.arcs_max());
        let cut = self.cut_dealt(options, vertices, arcs)?;
        let held = open_bytes(on_the_way) + Deal::bytes(vertices, arcs) + cut.bytes();
        // All of the budget, and what that lacks already.
        let total = self.machine.budget.total();
        let lack = (held + Deal::WRITE_BYTES).saturating_sub(total);
        let memory = Memory {
            total: total + lack,
            available: total + lack - held,
        };
        let demand = demand(&cut);
        match self.groups(&on_the_way.shape.batches, &demand, memory) {
            Ok(_) if lack == 0 => Ok(()),
            Ok(_) => Err(self.too_little(lack)),
            // Of more memory, a sixteenth goes to larger batches.
            Err(more) => Err(self.too_little((lack + more) * 16 / 15 + 1)),
        }
    }

    /// Distributes the arcs of the graph on the way.
    fn redistribute(
        &mut self,
        stored: &Arc<StoredGraph>,
        deal: &Deal<'_>,
        cut: &Cut,
    ) -> Result<Buckets, IngestError> {
        let machine = self.machine;
        let (plan, batches) = (&cut.plan, stored.batches());
        let found = self.groups(batches, &demand(cut), self.memory());
        let (groups, sizes) = found.map_err(|more| self.too_little(more))?;
        let spill = self.spill(plan, sizes)?;
        let meter = Meter::new(machine.progress, "distribute", plan.edges);
        // Workers go on from one pair of groups to the next with what they have.
        let resting = Mutex::new(Vec::new());
        let make = || {
            if let Some(state) = lock(&resting).pop() {
                return Ok(state);
            }
            let distributor = Distributor::new(
                plan,
                &Indices::Same,
                &spill,
                &**machine.disk,
                machine.budget,
                sizes.slab_bytes,
                &meter,
            )?;
            Ok((ArcReader::new(stored, machine.budget)?, distributor))
        };
        let indices =
            |group: &Range<usize>| deal.slice(batches.cut(group.start)..batches.cut(group.end));
        for sources in &groups.groups {
            let from = indices(sources)?;
            for destinations in &groups.groups {
                let other = if destinations == sources {
                    None
                } else {
                    Some(indices(destinations)?)
                };
                let to = other.as_ref().unwrap_or(&from);
                let work = |(reader, distributor): &mut (ArcReader, Distributor<'_>), task: u64| {
                    let column = destinations.start + task as usize;
                    reader.read(column, sources, &from, to, machine.stop, distributor)
                };
                let states = parallel::run(
                    machine.workers,
                    sizes.lanes as usize,
                    machine.stop,
                    destinations.len() as u64,
                    make,
                    work,
                )?;
                lock(&resting).extend(states);
            }
        }
        let states = std::mem::take(&mut *lock(&resting));
        let distributors = states.into_iter().map(|(_, distributor)| distributor);
        let counts = self.gather(plan, distributors)?;
        self.done("distribute");
        Ok(Buckets { spill, counts })
    }

    /// The largest groups of batches that leave enough for distribution, or the bytes that are wanting for any.
    fn groups(
        &self,
        batches: &Batches,
        demand: &Demand,
        memory: Memory,
    ) -> Result<(Groups, Sizes), u64> {
        let indices_max = self.options.work_bytes_max / size_of::<u64>() as u64;
        let mut vertices_max = batches.vertices().min(indices_max);
        loop {
            let groups = Groups::new(batches, vertices_max);
            let bytes = groups.bytes(batches) + Deal::WALK_BYTES;
            if let Some(available) = memory.available.checked_sub(bytes) {
                let left = Memory {
                    available,
                    ..memory
                };
                if let Some(sizes) = demand.sizes(self.lanes(), left) {
                    return Ok((groups, sizes));
                }
            }
            if groups.vertices <= batches.widest() {
                let lack = bytes.saturating_sub(memory.available);
                let left = Memory {
                    total: memory.total + lack,
                    available: (memory.available + lack) - bytes,
                };
                return Err(lack + demand.wanting(left, demand.reader_bytes()));
            }
            vertices_max = (groups.vertices / 2).max(batches.widest());
        }
    }
}
