//! Step 4 of an import, *distribute*: the edges are read again, and every arc goes to the bucket of its column file.
//!
//! As many workers as there is memory for, each with an open chunk for every bucket and slabs for those that are full.
//! Whether memory is enough for step 5 too is known now, before anything large is written.

use graphmill_storage::Buffer;

use super::cut::Cut;
use super::ids::Indexed;
use super::sizes::{Demand, Memory, Sizes};
use super::{Import, Meter, write};
use crate::distribute::Distributor;
use crate::error::IngestError;
use crate::parallel;
use crate::source::SourceReader;
use crate::spill::Spill;

/// The buckets of all column files.
pub(super) struct Buckets {
    pub(super) spill: Spill,
    /// Per bucket the arcs of its parts.
    pub(super) counts: Buffer,
}

impl<'a> Import<'a> {
    /// Step 4.
    pub(super) fn distribute(
        &mut self,
        indexed: Indexed<'a>,
        cut: &Cut,
    ) -> Result<Buckets, IngestError> {
        let machine = self.machine;
        let plan = &cut.plan;
        let buckets = plan.buckets();
        let demand = Demand::new(
            plan,
            self.report.edges,
            indexed.source.reader_bytes(),
            write::Need::new(cut, self.report.edges, self.options.duplicates),
        );
        let memory = Memory {
            total: machine.budget.total(),
            available: machine.budget.available(),
        };
        let Some(Sizes {
            lanes,
            slab_bytes,
            chunk_bytes,
        }) = demand.sizes(self.lanes(), memory)
        else {
            let more = demand.wanting(memory, indexed.source.reader_bytes_max());
            return Err(IngestError::too_little_memory(
                "column files",
                memory.available + more,
                memory.available,
                machine.budget,
            ));
        };

        let spill = Spill::create(
            &**machine.disk,
            self.temporary.join("arcs"),
            buckets,
            chunk_bytes,
        )?;
        let meter = Meter::new(machine.progress, "distribute", self.report.edges);
        let make = || {
            let reader = indexed.source.reader(machine.disk, machine.budget)?;
            let distributor = Distributor::new(
                plan,
                &indexed.indices,
                &spill,
                &**machine.disk,
                machine.budget,
                slab_bytes,
                &meter,
            )?;
            Ok((reader, distributor))
        };
        let work = |(reader, distributor): &mut (SourceReader<'_>, Distributor<'_>), unit: u64| {
            indexed.source.read(unit, reader, machine.stop, distributor)
        };
        let states = parallel::run(
            machine.workers,
            lanes as usize,
            machine.stop,
            indexed.source.units(),
            make,
            work,
        )?;
        let mut counts: Option<Buffer> = None;
        let mut edges = 0;
        for (_, distributor) in states {
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
        if edges != self.report.edges {
            return Err(IngestError::input_changed());
        }
        indexed.source.check_unchanged(&**machine.disk)?;
        let counts = match counts {
            Some(counts) => counts,
            // There was nothing to read.
            None => machine
                .budget
                .buffer("counts of arcs", buckets * plan.parts * size_of::<u64>())?,
        };
        self.done("distribute");
        Ok(Buckets { spill, counts })
    }
}
