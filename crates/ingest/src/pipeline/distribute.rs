//! Step 4 of an import, *distribute*: the edges are read again, and every arc goes to the bucket of its column file.
//!
//! As many workers as there is memory for, each with an open chunk for every bucket and slabs for those that are full.
//! Whether memory is enough for step 5 too is known now, before anything large is written.

use graphmill_storage::Buffer;

use super::assign_ids::IndexedEdges;
use super::buckets::{ARCS, Buckets};
use super::buffer_plan::{BufferSizes, Demand, MemorySnapshot};
use super::context::ImportContext;
use super::cut::{CutPlan, ShuffleTarget};
use super::write;
use crate::build::distribute::{DistributionPlan, Distributor};
use crate::error::IngestError;
use crate::external::bucket_file::{BucketFile, BucketWriter, fill};
use crate::external::shuffle::BucketShuffle;
use crate::ids::index_map::IndexLookup;
use crate::ids::order_window::OrderWindow;
use crate::options::ImportResources;
use crate::progress::Meter;

/// A temporary file of buckets that distributors fill as a plan has it.
pub(super) struct BucketTarget<'t> {
    resources: ImportResources<'t>,
    plan: &'t DistributionPlan,
    slab_bytes: usize,
    bucket_file: BucketFile,
    /// The way to the ranks that buckets belong to, if there are others.
    shuffle: Option<BucketShuffle<'t>>,
}

impl BucketTarget<'_> {
    /// Returns a worker's distributor.
    pub(super) fn distributor<'d>(
        &'d self,
        indices: IndexLookup<'d>,
        meter: &'d Meter<'d>,
    ) -> Result<Distributor<'d>, IngestError> {
        let (disk, budget) = (&**self.resources.disk, self.resources.budget);
        let writer = BucketWriter::new(&self.bucket_file, disk, budget, self.slab_bytes)?;
        let writer = writer.sending(self.shuffle.as_ref());
        Distributor::new(self.plan, indices, writer, budget, meter)
    }
}

impl<'a> ImportContext<'a> {
    /// Runs step 4, by the indices in `window` if vertices are in order of degree.
    pub(super) fn distribute(
        &mut self,
        indexed: IndexedEdges<'a>,
        window: Option<OrderWindow>,
        cut: &CutPlan,
    ) -> Result<Buckets, IngestError> {
        let plan = &cut.plan;
        let ranks = self.comm.count();
        let need = write::WriteMemory::new(cut);
        let demand = Demand::new(plan, indexed.source.reader_bytes(), ranks, need);
        let memory = self.memory();
        let Some(sizes) = demand.sizes(self.lanes(), memory) else {
            let more = demand.wanting(memory, indexed.source.reader_bytes_max());
            return Err(self.too_little(more));
        };
        let sizes = self.agreed(sizes)?;
        let meter = Meter::new(self.resources.progress, "distribute", self.edges_here);
        let buckets = self.read_into(indexed, window, cut.to_all(), ARCS, sizes, &meter)?;
        self.done("distribute");
        Ok(buckets)
    }

    /// Returns the sizes with the chunk length that all ranks agree on, since ranks exchange chunks.
    pub(super) fn agreed(&self, sizes: BufferSizes) -> Result<BufferSizes, IngestError> {
        let chunk_bytes = self.comm.all_reduce_min(sizes.chunk_bytes as u64)? as usize;
        Ok(BufferSizes {
            chunk_bytes,
            ..sizes
        })
    }

    /// Reads the edges for the last time, and gathers their arcs in a temporary file as a plan has it.
    pub(super) fn read_into(
        &mut self,
        indexed: IndexedEdges<'a>,
        window: Option<OrderWindow>,
        to: ShuffleTarget<'_>,
        file: &str,
        sizes: BufferSizes,
        meter: &Meter<'_>,
    ) -> Result<Buckets, IngestError> {
        let resources = self.resources;
        let target = self.bucket_target(to, file, sizes)?;
        let indices = indexed.indices.look_up().with_window(window.as_ref());
        let (source, lanes) = (&indexed.source, sizes.lanes as usize);
        let make = || target.distributor(indices, meter);
        let counts = self.fill(&target, || source.read_all(resources, lanes, make))?;
        source.check_unchanged(&**resources.disk)?;
        self.buckets(target, counts)
    }

    /// Creates a temporary file for the arcs of all buckets, and the way to the ranks that they belong to.
    pub(super) fn bucket_target<'t>(
        &self,
        to: ShuffleTarget<'t>,
        file: &str,
        sizes: BufferSizes,
    ) -> Result<BucketTarget<'t>, IngestError>
    where
        'a: 't,
    {
        let (resources, chunk_bytes) = (self.resources, sizes.chunk_bytes);
        let path = self.temporary.join(file);
        let buckets = to.plan.buckets();
        let bucket_file = BucketFile::create(&**resources.disk, path, buckets, chunk_bytes)?;
        let shuffle = match to.owners {
            [] => None,
            owners => {
                BucketShuffle::new(&self.comm, resources.budget, owners.to_vec(), chunk_bytes)?
            }
        };
        Ok(BucketTarget {
            resources,
            plan: to.plan,
            slab_bytes: sizes.slab_bytes,
            bucket_file,
            shuffle,
        })
    }

    /// Fills the buckets by `read`, which returns the distributors; returns the counts of all parts.
    pub(super) fn fill<'d>(
        &mut self,
        target: &BucketTarget<'_>,
        read: impl FnOnce() -> Result<Vec<Distributor<'d>>, IngestError>,
    ) -> Result<Buffer, IngestError> {
        let (disk, budget) = (&**target.resources.disk, target.resources.budget);
        let (shuffle, slab_bytes) = (target.shuffle.as_ref(), target.slab_bytes);
        let read = || self.gather(target.plan, read()?);
        let (counts, written) = fill(&target.bucket_file, shuffle, disk, budget, slab_bytes, read)?;
        self.report.temporary_bytes += written;
        Ok(counts)
    }

    /// Buckets that are full, with what other ranks counted in them.
    pub(super) fn buckets(
        &self,
        target: BucketTarget<'_>,
        mut counts: Buffer,
    ) -> Result<Buckets, IngestError> {
        if target.shuffle.is_some() {
            self.comm.sum_elementwise(counts.typed_mut())?;
        }
        Ok(Buckets {
            bucket_file: target.bucket_file,
            counts,
        })
    }

    /// Returns the state of the budget.
    pub(super) fn memory(&self) -> MemorySnapshot {
        MemorySnapshot {
            total: self.resources.budget.total(),
            available: self.resources.budget.available(),
        }
    }

    /// Returns the error of a budget that lacks `more` bytes.
    pub(super) fn too_little(&self, more: u64) -> IngestError {
        let budget = self.resources.budget;
        IngestError::too_little_memory("column files", budget.available() + more, budget)
    }

    /// Ends the work of all distributors; the counts of all parts.
    fn gather(
        &mut self,
        plan: &DistributionPlan,
        distributors: Vec<Distributor<'_>>,
    ) -> Result<Buffer, IngestError> {
        let mut counts: Option<Buffer> = None;
        let mut edges = 0;
        for distributor in distributors {
            let (mut part, distributed, written) = distributor.finish()?;
            if let Some(sums) = counts {
                let parts = part.typed_mut::<u64>().iter_mut();
                parts
                    .zip(sums.typed::<u64>())
                    .for_each(|(count, sum)| *count += sum);
            }
            counts = Some(part);
            edges += distributed;
            self.report.temporary_bytes += written;
        }
        if edges != self.edges_here {
            return Err(IngestError::input_changed());
        }
        // Without edges there are no counts.
        let bytes = plan.buckets() * plan.parts * size_of::<u64>();
        let none = || self.resources.budget.buffer("counts of arcs", bytes);
        Ok(counts.map_or_else(none, Ok)?)
    }
}
