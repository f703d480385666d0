//! Folded strips into whole batches, and these into rows and the next active set.

use graphmill_raw::lock;
use graphmill_storage::DataKind;

use crate::error::EngineError;
use crate::exec::column::kernel::accumulators::Accumulators;
use crate::exec::column::kernel::cell_stream::CellStreams;
use crate::exec::column::phase::slot::phase::SlotPhase;
use crate::exec::column::phase::slot::task::GroupTask;
use crate::frontier::bitmap::HierarchicalBitmap;
use crate::metrics::traffic::Access;
use crate::program::current_call::CurrentCall;
use crate::program::edge::{Activate, ApplyTo, EdgeProgram};
use crate::schedule::tasks::StripRef;
use crate::state::row_set::RowSet;
use crate::state::rows::Rows;
use crate::state::vertex_array::BatchRows;
use crate::value::{Accumulator, Reduce};

impl<'p, P: EdgeProgram> SlotPhase<'p, P> {
    /// Merges the strips of a group into their batches, and applies each batch whose strips are all merged.
    pub(crate) fn finish_group(
        &self,
        mut group: GroupTask<'p, P>,
        worker: usize,
    ) -> Result<Option<CellStreams>, EngineError> {
        let rows = std::mem::take(&mut group.rows);
        let sets = std::mem::take(&mut group.accumulators);
        let strips = group.targets.iter().zip(sets).zip(&group.folded);
        for (((target, accumulators), folded), rows) in strips.zip(rows) {
            if let Some(total) = self.merge(*target, accumulators, *folded) {
                self.apply(target.batch, total, rows, worker)?;
            }
        }
        if let Some(streams) = &mut group.streams {
            lock(&self.report).bytes_read += streams.take_bytes_read();
        }
        Ok(group.streams)
    }

    /// Merges the fold of one strip.
    ///
    /// Returns the whole fold of the batch after its last strip, if there is anything to apply.
    fn merge(
        &self,
        target: StripRef,
        accumulators: Accumulators<P::Accumulator>,
        folded: bool,
    ) -> Option<Accumulators<P::Accumulator>> {
        let merge = &mut *lock(&self.merges[target.batch]);
        merge.folded |= folded;
        if merge.strips == 1 {
            return self.keep_if_touched(merge.folded, accumulators);
        }
        merge.waiting.insert(target.strip, accumulators);
        while let Some(mut later) = merge.waiting.remove(&merge.next) {
            merge.next += 1;
            match &mut merge.total {
                None => merge.total = Some(later),
                Some(total) => {
                    let current = CurrentCall::new();
                    let start = self.context.batches.start(target.batch);
                    for (i, (total, later)) in total.iter_mut().zip(&mut *later).enumerate() {
                        if !later.bit_eq(&P::IDENTITY) {
                            current.at(start + i as u64);
                            self.program.merge(total, *later);
                            *later = P::IDENTITY;
                        }
                    }
                    lock(&self.idle_accumulators).push(later);
                }
            }
        }
        if merge.next < merge.strips {
            return None;
        }
        let total = merge.total.take()?;
        self.keep_if_touched(merge.folded, total)
    }

    /// The fold of a batch, unless no message reached it and only those that were reached change.
    fn keep_if_touched(
        &self,
        folded: bool,
        total: Accumulators<P::Accumulator>,
    ) -> Option<Accumulators<P::Accumulator>> {
        if folded || P::APPLY_TO == ApplyTo::All {
            return Some(total);
        }
        lock(&self.idle_accumulators).push(total);
        None
    }

    /// Calls the program's `apply` for a batch and leaves the accumulators as they were before the pass.
    fn apply(
        &self,
        batch: usize,
        mut total: Accumulators<P::Accumulator>,
        rows: Option<BatchRows<'p>>,
        worker: usize,
    ) -> Result<(), EngineError> {
        let context = self.context;
        let mut io = lock(&context.row_io[worker]);
        let start = context.batches.start(batch);
        let span = context.batches.span(batch) as usize;
        let mut reached = HierarchicalBitmap::default();
        let is_tracked = P::APPLY_TO == ApplyTo::Touched && !context.arrays.resident(self.needs);
        if is_tracked {
            reached.reserve(span, &context.budget)?;
            let accumulators = total[..span].iter().enumerate();
            let folded = accumulators.filter(|(_, accumulator)| !accumulator.bit_eq(&P::IDENTITY));
            folded.for_each(|(i, _)| reached.insert(i));
        }
        let reached = RowSet::of(&reached).filter(|_| is_tracked);
        let mut batch_rows = match rows {
            Some(batch_rows) => batch_rows,
            None => (context.arrays).open(batch, self.needs, reached.as_ref(), &mut io)?,
        };
        let mut next = self.activated.batch(batch)?;
        let mut sum = P::Sum::ZERO;
        let mut applied = 0;
        {
            let mut rows = P::ApplyRows::slices(&mut batch_rows.guards);
            let current = CurrentCall::new();
            for (i, accumulator) in total[..span].iter_mut().enumerate() {
                current.at(start + i as u64);
                if P::APPLY_TO == ApplyTo::All || !accumulator.bit_eq(&P::IDENTITY) {
                    let row = P::ApplyRows::row(&mut rows, i);
                    let (summand, activate) =
                        self.program.apply(start + i as u64, row, *accumulator);
                    sum.add(summand);
                    applied += 1;
                    if activate == Activate::Yes {
                        next.insert(i);
                    }
                    *accumulator = P::IDENTITY;
                }
            }
        }
        drop(next);
        *lock(&self.sums[batch]) = sum;
        let (one, all) = (size_of::<P::Accumulator>() as u64, applied == span as u64);
        context.count_rows(worker, self.needs, applied, all);
        let traffic = context.traffic.of(worker);
        traffic.read(DataKind::Messages, Access::Sequential, span as u64 * one);
        traffic.write(DataKind::Messages, Access::of(all), applied * one);
        // Bits of a destination can say more than the batch has vertices, in a cell that is not what was written.
        let mut beyond = total[span..1usize << context.batches.bits(batch)].iter();
        if let Some(beyond) = beyond.position(|a| !a.bit_eq(&P::IDENTITY)) {
            let local = (span + beyond) as u64;
            return Err(context.graph.outside_batch(batch, local).into());
        }
        lock(&self.idle_accumulators).push(total);
        (context.arrays).close(batch_rows, self.needs, reached.as_ref(), &mut io)
    }
}
