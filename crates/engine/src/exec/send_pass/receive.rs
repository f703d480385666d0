//! The fold of what was sent, one destination batch after the other.

use std::sync::Mutex;

use graphmill_raw::{AlignedBuffer, Element, lock};
use graphmill_storage::DataKind;

use crate::context::{ExecContext, each_batch};
use crate::error::{EngineError, made};
use crate::exec::column::kernel::accumulators::Accumulators;
use crate::exec::send_pass::boxes::SentMessages;
use crate::exec::vertex_pass::RowPass;
use crate::frontier::active_set::ActiveSet;
use crate::frontier::bitmap::HierarchicalBitmap;
use crate::metrics::traffic::Access;
use crate::program::current_call::CurrentCall;
use crate::program::edge::Activate;
use crate::state::rows::{ColumnAccess, Rows};
use crate::value::Reduce;

/// Returns the bytes of accumulators, rows and sets of a pass's workers, without boxes and blocks.
///
/// Accumulators have `accumulator` bytes; each phase borrows its own rows.
pub(crate) fn fixed_bytes(
    context: &ExecContext,
    accumulator: usize,
    phases: &[&[ColumnAccess]],
) -> u64 {
    let shape = &context.shape;
    let set = AlignedBuffer::footprint(shape.widest * accumulator);
    let reached = HierarchicalBitmap::bytes(shape.widest);
    let rows = phases.iter().map(|needs| {
        let row_bytes = context.arrays.staged_bytes(needs);
        shape.staging_bytes(row_bytes, needs.len())
    });
    context.workers.count() as u64 * (set + reached)
        + rows.max().unwrap_or(0)
        + 2 * shape.set_of_vertices
}

/// The messages of a phase, and the rows of their receivers.
pub(crate) struct Receipt<'r> {
    pub(crate) context: &'r ExecContext<'r>,
    pub(crate) sent: &'r SentMessages<'r>,
    pub(crate) needs: &'r [ColumnAccess],
    /// Where those go that are active next.
    pub(crate) reached: &'r ActiveSet,
}

impl Receipt<'_> {
    /// Folds the messages of each vertex in order of senders, then calls `apply` once for each.
    ///
    /// A fold begins with `identity`. Returns the sums of `apply`, by batch.
    pub(crate) fn run<M: Element, A: Element, R: Rows, S: Reduce>(
        &self,
        identity: A,
        fold: impl Fn(&mut A, M) + Sync,
        apply: impl Fn(u64, R::Row<'_>, A) -> (S, Activate) + Sync,
    ) -> Result<Vec<S>, EngineError> {
        let context = self.context;
        let batches = self.sent.batches();
        // One a worker; `identity` between batches.
        let workers = 0..context.workers.count();
        let sets: Vec<Mutex<Option<Accumulators<A>>>> = workers.map(|_| Mutex::new(None)).collect();
        each_batch(context, &batches, |i, worker| {
            let mut set = lock(&sets[worker.index]);
            let new = || Accumulators::new(context, context.shape.widest, identity);
            let accumulators = made(&mut set, new)?;
            let at = (batches[i], worker.index);
            self.batch::<M, A, R, S>(at, (accumulators, identity), &fold, &apply)
        })
    }

    fn batch<M: Element, A: Element, R: Rows, S: Reduce>(
        &self,
        (batch, worker): (usize, usize),
        (accumulators, identity): (&mut [A], A),
        fold: impl Fn(&mut A, M),
        apply: impl Fn(u64, R::Row<'_>, A) -> (S, Activate),
    ) -> Result<S, EngineError> {
        let context = self.context;
        let start = context.batches.start(batch);
        let mut folded = HierarchicalBitmap::default();
        folded.reserve(context.batches.span(batch) as usize, &context.budget)?;
        let traffic = context.traffic.of(worker);
        let current = CurrentCall::new();
        let folds = self.sent.each(batch, worker, |local, message| {
            current.at(start + local as u64);
            fold(&mut accumulators[local], message);
            folded.insert(local);
        })?;
        drop(current);
        let one = size_of::<A>() as u64;
        traffic.change(DataKind::Messages, Access::Random, folds * one);
        let receivers = RowPass {
            context,
            needs: self.needs,
            active: None,
            activated: Some(self.reached),
        };
        let sum = receivers.members::<R, S>((batch, worker), Some(&folded), |v, row| {
            let place = &mut accumulators[(v - start) as usize];
            apply(v, row, std::mem::replace(place, identity))
        })?;
        let applied = folded.count as u64;
        context.count_rows(worker, self.needs, applied, false);
        traffic.change(DataKind::Messages, Access::Random, applied * one);
        Ok(sum)
    }
}
