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
use crate::external::bucket_file::{BucketFile, fill};
use crate::external::parallel;
use crate::external::reread::EdgeReplayReader;
use crate::external::shuffle::BucketShuffle;
use crate::ids::order_window::OrderWindow;
use crate::progress::Meter;

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
        let meter = Meter::new(self.machine.progress, "distribute", self.edges_here);
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
        let (machine, plan) = (self.machine, to.plan);
        let bucket_file = self.bucket_file(plan, file, sizes)?;
        let shuffle = self.shuffle(to, sizes)?;
        let indices = indexed.indices.look_up().with_window(window.as_ref());
        let make = || {
            let reader = indexed.source.reader(machine.disk, machine.budget)?;
            let distributor = Distributor::new(
                plan,
                indices,
                (&bucket_file, shuffle.as_ref()),
                &**machine.disk,
                machine.budget,
                sizes.slab_bytes,
                meter,
            )?;
            Ok((reader, distributor))
        };
        let work = |(reader, distributor): &mut (EdgeReplayReader<'_>, Distributor<'_>),
                    unit: u64| {
            indexed.source.read(unit, reader, machine.stop, distributor)
        };
        let read = || {
            let states = parallel::run(
                machine.workers,
                sizes.lanes as usize,
                machine.stop,
                indexed.source.units(),
                make,
                work,
            )?;
            let distributors = states.into_iter().map(|(_, distributor)| distributor);
            self.gather(plan, distributors)
        };
        let disk = &**machine.disk;
        let (counts, written) = fill(
            &bucket_file,
            shuffle.as_ref(),
            disk,
            machine.budget,
            sizes.slab_bytes,
            read,
        )?;
        drop(shuffle);
        indexed.source.check_unchanged(disk)?;
        self.buckets(to, bucket_file, counts, written)
    }

    /// The way to the ranks that buckets belong to, where there are others.
    pub(super) fn shuffle(
        &self,
        to: ShuffleTarget<'_>,
        sizes: BufferSizes,
    ) -> Result<Option<BucketShuffle<'a>>, IngestError> {
        match to.owners {
            [] => Ok(None),
            owners => BucketShuffle::new(
                &self.comm,
                self.machine.budget,
                owners.to_vec(),
                sizes.chunk_bytes,
            ),
        }
    }

    /// Buckets that are full, with what other ranks counted in them.
    pub(super) fn buckets(
        &mut self,
        to: ShuffleTarget<'_>,
        bucket_file: BucketFile,
        mut counts: Buffer,
        written: u64,
    ) -> Result<Buckets, IngestError> {
        self.report.temporary_bytes += written;
        if !to.owners.is_empty() {
            self.comm.sum_elementwise(counts.typed_mut())?;
        }
        Ok(Buckets {
            bucket_file,
            counts,
        })
    }

    /// Returns the state of the budget.
    pub(super) fn memory(&self) -> MemorySnapshot {
        MemorySnapshot {
            total: self.machine.budget.total(),
            available: self.machine.budget.available(),
        }
    }

    /// Returns the error of a budget that lacks `more` bytes.
    pub(super) fn too_little(&self, more: u64) -> IngestError {
        let budget = self.machine.budget;
        let available = budget.available();
        IngestError::too_little_memory("column files", available + more, available, budget)
    }

    /// A temporary file for the arcs of all buckets.
    pub(super) fn bucket_file(
        &self,
        plan: &DistributionPlan,
        file: &str,
        sizes: BufferSizes,
    ) -> Result<BucketFile, IngestError> {
        BucketFile::create(
            &**self.machine.disk,
            self.temporary.join(file),
            plan.buckets(),
            sizes.chunk_bytes,
        )
    }

    /// Ends the work of all distributors; the counts of all parts.
    pub(super) fn gather<'d>(
        &mut self,
        plan: &DistributionPlan,
        distributors: impl Iterator<Item = Distributor<'d>>,
    ) -> Result<Buffer, IngestError> {
        let mut counts: Option<Buffer> = None;
        let mut edges = 0;
        for distributor in distributors {
            let (part_counts, distributed, written) = distributor.finish()?;
            match &mut counts {
                None => counts = Some(part_counts),
                Some(sums) => {
                    let parts = part_counts.typed::<u64>().iter();
                    for (sum, count) in sums.typed_mut::<u64>().iter_mut().zip(parts) {
                        *sum += count;
                    }
                }
            }
            edges += distributed;
            self.report.temporary_bytes += written;
        }
        if edges != self.edges_here {
            return Err(IngestError::input_changed());
        }
        Ok(match counts {
            Some(counts) => counts,
            // There was nothing to read.
            None => {
                let bytes = plan.buckets() * plan.parts * size_of::<u64>();
                self.machine.budget.buffer("counts of arcs", bytes)?
            }
        })
    }
}
