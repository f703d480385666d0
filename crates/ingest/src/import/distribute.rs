//! Step 4 of an import, *distribute*: the edges are read again, and every arc goes to the bucket of its column file.
//!
//! As many workers as there is memory for, each with an open chunk for every bucket and slabs for those that are full.
//! Whether memory is enough for step 5 too is known now, before anything large is written.

use graphmill_graph::GraphWriter;
use graphmill_raw::AlignedBuffer;
use graphmill_storage::Buffer;

use super::cut::Cut;
use super::ids::Indexed;
use super::{Import, Meter, write};
use crate::distribute::{self, Distributor};
use crate::error::IngestError;
use crate::parallel;
use crate::source::SourceReader;
use crate::spill::{GRAIN, SLABS, Spill};

/// Bytes of a chunk of a bucket at most, and of a slab of chunks.
const CHUNK_BYTES_MAX: usize = 256 << 10;
const SLAB_BYTES_MAX: usize = 1 << 20;
const SLAB_GRAINS_MIN: usize = 4;

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
        graph: &GraphWriter,
    ) -> Result<Buckets, IngestError> {
        let machine = self.machine;
        let plan = &cut.plan;
        let buckets = plan.buckets();
        let fixed = indexed.source.reader_bytes()
            + distribute::fixed_bytes(buckets, plan.parts, plan.packing);
        let available = machine.budget.available();
        let least = fixed + ((buckets + SLABS * SLAB_GRAINS_MIN) * GRAIN) as u64;
        let lanes = self.lanes().min(available / least);
        if lanes == 0 {
            return Err(IngestError::too_little_memory(
                "buckets of column files",
                least,
                available,
                machine.budget,
            ));
        }
        // A quarter of what is left for slabs, the rest for open chunks.
        let power = |bytes: u64| 1usize << bytes.max(1).ilog2().min(30);
        let share = available / lanes - fixed;
        let slab_bytes =
            power(share / 4 / SLABS as u64).clamp(SLAB_GRAINS_MIN * GRAIN, SLAB_BYTES_MAX);
        let chunks_share = share - (SLABS * slab_bytes) as u64;
        let mut chunk_bytes = power(chunks_share / buckets.max(1) as u64)
            .clamp(GRAIN, CHUNK_BYTES_MAX.min(slab_bytes));

        // What the next step needs is known now, before anything large is written. Where memory is short, its workers read
        // shorter chunks ahead.
        let duplicates = self.options.duplicates;
        let counts = AlignedBuffer::footprint(buckets * plan.parts * size_of::<u64>());
        let kept = counts + buckets as u64 * write::NOTES_BYTES_MIN + lanes * Spill::TABLE_BYTES;
        let least =
            |bytes| kept + write::least_bytes(graph.memory(), bytes, plan.weights, duplicates);
        let total = machine.budget.total();
        while least(chunk_bytes) > total && chunk_bytes > GRAIN {
            chunk_bytes /= 2;
        }
        if least(chunk_bytes) > total {
            return Err(IngestError::too_little_memory(
                "a column file",
                least(chunk_bytes),
                total,
                machine.budget,
            ));
        }

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
        let mut counts = machine
            .budget
            .buffer("counts of arcs", buckets * plan.parts * size_of::<u64>())?;
        let mut edges = 0;
        for (_, distributor) in states {
            let (part_counts, distributed, written) = distributor.finish()?;
            for (sum, count) in counts
                .typed_mut::<u64>()
                .iter_mut()
                .zip(part_counts.typed::<u64>())
            {
                *sum += count;
            }
            edges += distributed;
            self.report.temporary_bytes += written;
        }
        if edges != self.report.edges {
            return Err(IngestError::input_changed());
        }
        self.done("distribute");
        Ok(Buckets { spill, counts })
    }
}
