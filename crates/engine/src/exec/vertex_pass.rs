//! The vertex pass: a function on each active vertex, batch by batch, and the sum of what it returned.

use std::sync::Mutex;

use graphmill_raw::lock;
use graphmill_storage::{Job, JobError, Step, Worker};

use crate::context::ExecContext;
use crate::error::EngineError;
use crate::frontier::active_set::ActiveSet;
use crate::program::edge::Activate;
use crate::schedule::numa::NumaQueue;
use crate::state::array_store::BatchRows;
use crate::state::row_file::RowFileIo;
use crate::state::rows::{ColumnAccess, Rows};
use crate::value::Reduce;

/// One vertex pass as a job: each step is one batch.
pub(crate) struct VertexPass<'p, R: Rows, A: Reduce, F> {
    machine: &'p ExecContext<'p>,
    needs: Vec<ColumnAccess>,
    active: Option<&'p ActiveSet>,
    /// Where those go that are active next.
    activated: Option<&'p ActiveSet>,
    batches: Vec<usize>,
    sums: Vec<Mutex<A>>,
    deal: NumaQueue<'p>,
    work: F,
    rows: std::marker::PhantomData<fn(R)>,
}

impl<'p, R, A, F> VertexPass<'p, R, A, F>
where
    R: Rows,
    A: Reduce,
    F: Fn(u64, R::Row<'_>) -> (A, Activate) + Sync,
{
    pub(crate) fn new(
        machine: &'p ExecContext<'p>,
        rows: R,
        active: Option<&'p ActiveSet>,
        activated: Option<&'p ActiveSet>,
        work: F,
    ) -> Self {
        let batches: Vec<usize> = match active {
            Some(active) => active.batches().collect(),
            None => machine.ranks.own().collect(),
        };
        let mut needs = Vec::new();
        rows.needs(&mut needs);
        let sums = batches.iter().map(|_| Mutex::new(A::ZERO)).collect();
        let deal = NumaQueue::new(&batches, machine.batches.len());
        VertexPass {
            machine,
            needs,
            active,
            activated,
            batches,
            sums,
            deal,
            work,
            rows: std::marker::PhantomData,
        }
    }

    /// The sums of the batches, in their order.
    pub(crate) fn sums(self) -> impl Iterator<Item = A> {
        self.sums.into_iter().map(|sum| *lock(&sum))
    }

    fn batch(&self, position: usize, worker: usize) -> Result<(), EngineError> {
        let batch = self.batches[position];
        let mut io = lock(&self.machine.row_io[worker]);
        let mut open = self.machine.arrays.open(batch, &self.needs, &mut io)?;
        let start = self.machine.batches.start(batch);
        let span = self.machine.batches.span(batch);
        let count = self.active.map_or(span, |active| active.count_in(batch));
        let mut sum = A::ZERO;
        {
            let mut rows = R::slices(&mut open.guards);
            let mut next = self.activated.map(|set| set.batch(batch)).transpose()?;
            let one = |i: usize| {
                let (summand, activate) = (self.work)(start + i as u64, R::row(&mut rows, i));
                sum.add(summand);
                if let (Some(next), Activate::Yes) = (&mut next, activate) {
                    next.insert(i);
                }
            };
            match self.active {
                None => (0..span as usize).for_each(one),
                Some(active) => active.batch(batch)?.for_each(one),
            }
        }
        *lock(&self.sums[position]) = sum;
        self.machine
            .count_rows(worker, &self.needs, count, count == span);
        close(self.machine, open, &self.needs, self.active, batch, &mut io)
    }
}

/// Ends the borrow of a batch's rows after the work on its active vertices, or on all.
pub(crate) fn close(
    machine: &ExecContext,
    open: BatchRows<'_>,
    needs: &[ColumnAccess],
    active: Option<&ActiveSet>,
    batch: usize,
    io: &mut RowFileIo,
) -> Result<(), EngineError> {
    match active {
        None => machine.arrays.close(open, needs, None, io),
        Some(active) => {
            let set = active.batch(batch)?;
            machine.arrays.close(open, needs, Some(&set), io)
        }
    }
}

impl<R, A, F> Job for VertexPass<'_, R, A, F>
where
    R: Rows,
    A: Reduce,
    F: Fn(u64, R::Row<'_>) -> (A, Activate) + Sync,
{
    fn step(&self, worker: &mut Worker) -> Result<Step, JobError> {
        self.machine.check_stop()?;
        let Some(position) = self.deal.take() else {
            return Ok(Step::Finished);
        };
        self.batch(position, worker.index)?;
        Ok(Step::Worked)
    }
}
