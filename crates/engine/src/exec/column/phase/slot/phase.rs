//! The slot phase: cells to accumulators, accumulators to rows and the next active set.
//!
//! The work of a pass is a list of *column groups*. A group is one or more targets, each a strip with its accumulators, and
//! the cells that fold into them in order. With messages in memory a group is one strip. With messages on disk it is
//! as many strips as the budget holds accumulators for. The worker then takes as many batches of messages as it
//! holds, folds their cells strip by strip, and takes the next: a batch of messages is read once for all strips, and
//! the accumulators of a strip stay in the cache for many cells. A worker owns its group and streams the group's cells
//! through its own readers while it prefetches the cells of the next group.
//!
//! The fold order of a destination is the graph's, whatever the groups are: ascending sources within a strip, strips
//! merged in order by [`StripMerge`].

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use graphmill_raw::lock;
use graphmill_storage::{Job, JobError, Step, Worker};

use crate::cache::cells::CellCache;
use crate::context::ExecContext;
use crate::exec::column::kernel::accumulators::Accumulators;
use crate::exec::column::kernel::cell_stream::CellStreams;
use crate::exec::column::kernel::fold::DecodeScratch;
use crate::exec::column::kernel::pass::{Pass, PassOutput};
use crate::exec::column::phase::exchange::BackgroundWork;
use crate::exec::column::phase::slot::merge::StripMerge;
use crate::exec::column::phase::slot::scratch::SlotScratch;
use crate::exec::column::phase::slot::task::{GroupTask, TaskProgress};
use crate::frontier::active_set::ActiveSet;
use crate::messages::buffer::MessageBuffer;
use crate::metrics::run::PassMetrics;
use crate::program::edge::EdgeProgram;
use crate::schedule::numa::{NumaQueue, node_of_batch};
use crate::schedule::tasks::{ColumnLayout, FoldSide, StripRef, column_groups};
use crate::state::rows::ColumnAccess;
use crate::value::Reduce;

/// A slot phase as a job.
pub(crate) struct SlotPhase<'p, P: EdgeProgram> {
    pub(crate) context: &'p ExecContext<'p>,
    pub(crate) program: &'p P,
    pub(crate) kernel: FoldSide,
    pub(crate) needs: &'p [ColumnAccess],
    pub(crate) active: &'p ActiveSet,
    pub(crate) messages: &'p MessageBuffer<P::Message>,
    /// The exchange that still delivers messages.
    exchange: &'p dyn BackgroundWork,
    pub(crate) cell_cache: &'p CellCache,
    /// With their numbers.
    pub(crate) runs: Vec<(usize, Vec<StripRef>)>,
    /// Moves with the free accumulators, under their lock.
    pub(crate) deal: NumaQueue<'p>,
    pub(crate) merges: Vec<Mutex<StripMerge<P::Accumulator>>>,
    pub(crate) free: Mutex<Vec<Accumulators<P::Accumulator>>>,
    pub(crate) sums: Vec<Mutex<P::Sum>>,
    pub(crate) activated: &'p ActiveSet,
    workers: Vec<Mutex<WorkerState<'p, P>>>,
    pub(crate) report: Mutex<&'p mut PassMetrics>,
}

/// The state of one worker during a pass.
struct WorkerState<'p, P: EdgeProgram> {
    current: Option<GroupTask<'p, P>>,
    ahead: Option<GroupTask<'p, P>>,
    readers: Vec<CellStreams>,
    scratch: DecodeScratch<P::Message>,
}

impl<'p, P: EdgeProgram> SlotPhase<'p, P> {
    /// The phase with all that it needs; `finish` gives the kept buffers back.
    pub(crate) fn new(
        pass: Pass<'p, P>,
        kernel: FoldSide,
        messages: &'p MessageBuffer<P::Message>,
        exchange: &'p dyn BackgroundWork,
        cell_cache: &'p CellCache,
        room: &mut SlotScratch<P::Accumulator, P::Message>,
        done: &'p mut PassOutput<P::Sum>,
    ) -> Self {
        let context = pass.context;
        let batches = context.batches.len();
        let merge = |batch| StripMerge {
            strips: context.strips(batch),
            next: 0,
            folded: false,
            total: None,
            waiting: BTreeMap::new(),
        };
        let mut runs: Vec<_> = (0..).zip(column_groups(context, room.group)).collect();
        if room.group <= 1 {
            // The longest group of a node comes first, so that no worker is left with it at the end.
            sort_by_length(&mut runs, context);
        }
        let firsts: Vec<usize> = runs.iter().map(|(_, run)| run[0].batch).collect();
        let deal = NumaQueue::new(&firsts, batches);
        let workers = context.workers.count();
        let mut readers: Vec<Vec<CellStreams>> = (0..workers).map(|_| Vec::new()).collect();
        for (i, reader) in room.readers.drain(..).enumerate() {
            readers[i % workers].push(reader);
        }
        let state = |readers| WorkerState {
            current: None,
            ahead: None,
            readers,
            scratch: room.scratch.pop().unwrap_or_else(DecodeScratch::new),
        };
        SlotPhase {
            context,
            program: pass.program,
            kernel,
            needs: pass.apply,
            active: pass.active,
            messages,
            exchange,
            cell_cache,
            runs,
            deal,
            merges: (0..batches).map(merge).map(Mutex::new).collect(),
            sums: (0..batches).map(|_| Mutex::new(P::Sum::ZERO)).collect(),
            activated: &done.activated,
            workers: readers.into_iter().map(state).map(Mutex::new).collect(),
            free: Mutex::new(std::mem::take(&mut room.free)),
            report: Mutex::new(&mut done.report),
        }
    }

    /// Gives the buffers back, and returns the sums of the batches in order.
    pub(crate) fn into_output(
        self,
        room: &mut SlotScratch<P::Accumulator, P::Message>,
    ) -> Vec<P::Sum> {
        room.free = std::mem::take(&mut *lock(&self.free));
        for state in self.workers {
            let state = state.into_inner().unwrap_or_else(PoisonError::into_inner);
            room.readers.extend(state.readers);
            room.scratch.push(state.scratch);
        }
        let own = &self.sums[self.context.ranks.own()];
        own.iter().map(|sum| *lock(sum)).collect()
    }
}

impl<P: EdgeProgram> Job for SlotPhase<'_, P> {
    fn step(&self, worker: &mut Worker) -> Result<Step, JobError> {
        self.context.ranks.check_stop()?;
        self.exchange.poll(false)?;
        let mut state = lock(&self.workers[worker.index]);
        let WorkerState {
            current,
            ahead,
            readers,
            scratch,
        } = &mut *state;
        let queue = worker.queue.as_mut();
        while let Some(done) = queue.poll() {
            let mut done = Some(done);
            for run in [&mut *current, &mut *ahead].into_iter().flatten() {
                if let (Some(readers), Some(mine)) = (&mut run.readers, done.take()) {
                    done = readers.accept(mine)?;
                }
            }
        }
        if current.is_none() {
            *current = match ahead.take() {
                Some(run) => Some(run),
                None => self.next_group(readers, worker.index)?,
            };
        }
        let Some(run) = current else {
            let left = self.deal.left() > 0;
            // Messages that other ranks still need are sent to the end.
            return Ok(match self.exchange.idle_step()? {
                Step::Finished if left => Step::Waiting,
                passed => passed,
            });
        };
        // Streaming a group ahead keeps the disk busy, but a group held back keeps another worker idle at the end.
        // The next group announces its own reads of messages on disk.
        if ahead.is_none()
            && self.messages.in_memory()
            && !readers.is_empty()
            && self.deal.left() > self.workers.len()
        {
            *ahead = self.next_group(readers, worker.index)?;
        }
        for run in [Some(&mut *run), ahead.as_mut()].into_iter().flatten() {
            if let Some(readers) = &mut run.readers {
                readers.pump(queue)?;
            }
        }
        match self.fold_some(run, scratch, worker.index)? {
            TaskProgress::Worked => Ok(Step::Worked),
            TaskProgress::Starved => Ok(Step::Waiting),
            TaskProgress::Early => {
                if run.input.pull(self.messages, worker.index)? {
                    return Ok(Step::Worked);
                }
                Ok(match self.exchange.idle_step()? {
                    // It has come since.
                    Step::Finished => Step::Worked,
                    step => step,
                })
            }
            TaskProgress::Done => {
                if let Some(run) = current.take() {
                    readers.extend(self.finish_group(run, worker.index)?);
                }
                Ok(Step::Worked)
            }
        }
    }
}

/// Sorts numbered groups by node, and within a node by edges, the longest first.
fn sort_by_length(runs: &mut [(usize, Vec<StripRef>)], context: &ExecContext) {
    let edges_of = |target: &StripRef| context.graph.column(target.batch).edges();
    runs.sort_by_key(|(_, run)| {
        let edges: u64 = run.iter().map(edges_of).sum();
        let node = node_of_batch(run[0].batch, context.batches.len());
        (node, std::cmp::Reverse(edges))
    });
}
