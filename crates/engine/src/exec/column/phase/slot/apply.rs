//! Folded strips into whole batches, and these into rows and the next active set.

use graphmill_raw::lock;

use crate::error::EngineError;
use crate::exec::column::kernel::accumulators::Accumulators;
use crate::exec::column::kernel::apply_batch::BatchApply;
use crate::exec::column::kernel::cell_stream::CellStreams;
use crate::exec::column::phase::slot::phase::SlotPhase;
use crate::exec::column::phase::slot::task::GroupTask;
use crate::program::current_call::CurrentCall;
use crate::program::edge::{ApplyTo, EdgeProgram};
use crate::schedule::tasks::StripRef;
use crate::state::vertex_array::BatchRows;
use crate::value::Accumulator;

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
                    let identity = self.program.identity();
                    for (i, (total, later)) in total.iter_mut().zip(&mut *later).enumerate() {
                        if !later.bit_eq(&identity) {
                            current.at(start + i as u64);
                            self.program.merge(total, *later);
                            *later = identity;
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
        if folded || self.program.apply_to() == ApplyTo::All {
            return Some(total);
        }
        lock(&self.idle_accumulators).push(total);
        None
    }

    /// Applies a batch and returns its accumulators, which are as they were before the pass.
    fn apply(
        &self,
        batch: usize,
        mut total: Accumulators<P::Accumulator>,
        rows: Option<BatchRows<'p>>,
        worker: usize,
    ) -> Result<(), EngineError> {
        let of_batch = BatchApply {
            context: self.context,
            program: self.program,
            needs: self.needs,
            activated: self.activated,
        };
        *lock(&self.sums[batch]) = of_batch.apply(batch, &mut total, rows, worker)?;
        lock(&self.idle_accumulators).push(total);
        Ok(())
    }
}
