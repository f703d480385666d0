//! The vertex pass: a function on each active vertex, batch by batch, and the sum of what it returned.

use graphmill_raw::lock;

use crate::context::{ExecContext, each_batch};
use crate::error::EngineError;
use crate::frontier::active_set::ActiveSet;
use crate::frontier::bitmap::HierarchicalBitmap;
use crate::program::current_call::CurrentCall;
use crate::program::edge::Activate;
use crate::state::row_set::RowSet;
use crate::state::rows::{ColumnAccess, Rows};
use crate::value::Reduce;

/// A pass over the rows of the active vertices, or of all.
pub(crate) struct RowPass<'p> {
    pub(crate) context: &'p ExecContext<'p>,
    pub(crate) needs: &'p [ColumnAccess],
    pub(crate) active: Option<&'p ActiveSet>,
    /// Where those go that are active next.
    pub(crate) activated: Option<&'p ActiveSet>,
}

impl RowPass<'_> {
    /// The batches that have such vertices.
    pub(crate) fn batches(&self) -> Vec<usize> {
        match self.active {
            Some(active) => active.batches().collect(),
            None => self.context.ranks.own().collect(),
        }
    }

    /// Calls `work` on each row; returns the sum of each batch.
    pub(crate) fn run<R: Rows, A: Reduce>(
        &self,
        work: impl Fn(u64, R::Row<'_>) -> (A, Activate) + Sync,
    ) -> Result<Vec<A>, EngineError> {
        let batches = self.batches();
        each_batch(self.context, &batches, |i, worker| {
            self.batch::<R, A>(batches[i], worker.index, &work)
        })
    }

    /// Calls `work` on each row of a batch; returns the sum.
    pub(crate) fn batch<R: Rows, A: Reduce>(
        &self,
        batch: usize,
        worker: usize,
        work: impl FnMut(u64, R::Row<'_>) -> (A, Activate),
    ) -> Result<A, EngineError> {
        let set = self.active.map(|active| active.batch(batch)).transpose()?;
        let sum = self.members::<R, A>((batch, worker), set.as_deref(), work)?;
        let span = self.context.batches.span(batch);
        let count = self.active.map_or(span, |active| active.count_in(batch));
        (self.context).count_rows(worker, self.needs, count, count == span);
        Ok(sum)
    }

    /// Calls `work` on the rows of a set of a batch, or on all its rows; returns the sum.
    ///
    /// The caller counts the rows.
    pub(crate) fn members<R: Rows, A: Reduce>(
        &self,
        (batch, worker): (usize, usize),
        set: Option<&HierarchicalBitmap>,
        mut work: impl FnMut(u64, R::Row<'_>) -> (A, Activate),
    ) -> Result<A, EngineError> {
        let (context, needs) = (self.context, self.needs);
        let row_io = || lock(&context.row_io[worker]);
        let some = set.and_then(RowSet::of);
        let mut open = (context.arrays).open(batch, needs, some.as_ref(), &mut row_io())?;
        let start = context.batches.start(batch);
        let mut sum = A::ZERO;
        {
            let current = CurrentCall::new();
            let mut rows = R::slices(&mut open.guards);
            let mut next = self.activated.map(|set| set.batch(batch)).transpose()?;
            let one = |i: usize| {
                current.at(start + i as u64);
                let (summand, activate) = work(start + i as u64, R::row(&mut rows, i));
                sum.add(summand);
                if let (Some(next), Activate::Yes) = (&mut next, activate) {
                    next.insert(i);
                }
            };
            match set {
                None => (0..context.batches.span(batch) as usize).for_each(one),
                Some(set) => set.for_each(one),
            }
        }
        (context.arrays).close(open, needs, None, &mut row_io())?;
        Ok(sum)
    }
}
