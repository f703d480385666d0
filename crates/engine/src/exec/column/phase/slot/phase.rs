//! The slot phase: cells to accumulators, accumulators to rows and the next active set.
//!
//! The work of a pass is a list of *column groups*. A group is one or more targets, each a strip with its accumulators, and
//! the cells that fold into them in order. With messages in memory a group is one strip. With messages on disk it is
//! as many strips as the budget holds accumulators for. The worker then takes as many batches of messages as it
//! holds, folds their cells strip by strip, and takes the next: a batch of messages is read once for all strips, and
//! the accumulators of a strip stay in the cache for many cells. A worker owns its group and streams the group's cells
//! through its own streams while it prefetches the cells of the next group.
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
use crate::exec::column::kernel::fold_block::DecodeScratch;
use crate::exec::column::kernel::pass::{Pass, PassOutput};
use crate::exec::column::phase::message_exchange::BackgroundWork;
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
    pub(crate) side: FoldSide,
    pub(crate) needs: &'p [ColumnAccess],
    pub(crate) active: &'p ActiveSet,
    pub(crate) messages: &'p MessageBuffer<P::Message>,
    /// The exchange that still delivers messages.
    exchange: &'p dyn BackgroundWork,
    pub(crate) cell_cache: &'p CellCache,
    /// The column groups with their numbers.
    pub(crate) groups: Vec<(usize, Vec<StripRef>)>,
    /// The groups to claim: claimed only under the lock of the idle accumulators.
    pub(crate) group_queue: NumaQueue<'p>,
    pub(crate) merges: Vec<Mutex<StripMerge<P::Accumulator>>>,
    pub(crate) idle_accumulators: Mutex<Vec<Accumulators<P::Accumulator>>>,
    pub(crate) sums: Vec<Mutex<P::Sum>>,
    pub(crate) activated: &'p ActiveSet,
    worker_states: Vec<Mutex<WorkerState<'p, P>>>,
    pub(crate) report: Mutex<&'p mut PassMetrics>,
}

/// The state of one worker during a pass.
struct WorkerState<'p, P: EdgeProgram> {
    current: Option<GroupTask<'p, P>>,
    ahead: Option<GroupTask<'p, P>>,
    streams: Vec<CellStreams>,
    decode_scratch: DecodeScratch<P::Message>,
}

impl<'p, P: EdgeProgram> SlotPhase<'p, P> {
    /// Returns the phase; [`SlotPhase::into_output`] returns the buffers to `scratch`.
    pub(crate) fn new(
        pass: Pass<'p, P>,
        side: FoldSide,
        messages: &'p MessageBuffer<P::Message>,
        exchange: &'p dyn BackgroundWork,
        cell_cache: &'p CellCache,
        scratch: &mut SlotScratch<P::Accumulator, P::Message>,
        output: &'p mut PassOutput<P::Sum>,
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
        let mut groups: Vec<_> = (0..)
            .zip(column_groups(context, scratch.group_strips))
            .collect();
        for (_, group) in &mut groups {
            group.retain(|target| pass.folding.contains(&target.batch));
        }
        groups.retain(|(_, group)| !group.is_empty());
        if scratch.group_strips <= 1 {
            // The longest group of a node comes first, so that no worker is left with it at the end.
            sort_by_length(&mut groups, context);
        }
        let firsts: Vec<usize> = groups.iter().map(|(_, group)| group[0].batch).collect();
        let group_queue = NumaQueue::new(&firsts, batches);
        let workers = context.workers.count();
        let mut streams: Vec<Vec<CellStreams>> = (0..workers).map(|_| Vec::new()).collect();
        for (i, pair) in scratch.streams.drain(..).enumerate() {
            streams[i % workers].push(pair);
        }
        let state = |streams| WorkerState {
            current: None,
            ahead: None,
            streams,
            decode_scratch: scratch
                .decode_scratch
                .pop()
                .unwrap_or_else(DecodeScratch::new),
        };
        SlotPhase {
            context,
            program: pass.program,
            side,
            needs: pass.apply,
            active: pass.active,
            messages,
            exchange,
            cell_cache,
            groups,
            group_queue,
            merges: (0..batches).map(merge).map(Mutex::new).collect(),
            sums: (0..batches).map(|_| Mutex::new(P::Sum::ZERO)).collect(),
            activated: &output.activated,
            worker_states: streams.into_iter().map(state).map(Mutex::new).collect(),
            idle_accumulators: Mutex::new(std::mem::take(&mut scratch.idle_accumulators)),
            report: Mutex::new(&mut output.report),
        }
    }

    /// Gives the buffers back, and returns the sums of the batches in order.
    pub(crate) fn into_output(
        self,
        scratch: &mut SlotScratch<P::Accumulator, P::Message>,
    ) -> Vec<P::Sum> {
        scratch.idle_accumulators = std::mem::take(&mut *lock(&self.idle_accumulators));
        for state in self.worker_states {
            let state = state.into_inner().unwrap_or_else(PoisonError::into_inner);
            scratch.streams.extend(state.streams);
            scratch.decode_scratch.push(state.decode_scratch);
        }
        let own = &self.sums[self.context.ranks.own()];
        own.iter().map(|sum| *lock(sum)).collect()
    }
}

impl<P: EdgeProgram> Job for SlotPhase<'_, P> {
    fn step(&self, worker: &mut Worker) -> Result<Step, JobError> {
        self.context.ranks.check_stop()?;
        self.exchange.poll(false)?;
        let mut state = lock(&self.worker_states[worker.index]);
        let WorkerState {
            current,
            ahead,
            streams,
            decode_scratch,
        } = &mut *state;
        let queue = worker.queue.as_mut();
        while let Some(completion) = queue.poll() {
            let mut completion = Some(completion);
            for group in [&mut *current, &mut *ahead].into_iter().flatten() {
                if let (Some(streams), Some(own)) = (&mut group.streams, completion.take()) {
                    completion = streams.accept(own)?;
                }
            }
        }
        if current.is_none() {
            *current = match ahead.take() {
                Some(group) => Some(group),
                None => self.next_group(streams, worker.index)?,
            };
        }
        let Some(group) = current else {
            let left = self.group_queue.left() > 0;
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
            && !streams.is_empty()
            && self.group_queue.left() > self.worker_states.len()
        {
            *ahead = self.next_group(streams, worker.index)?;
        }
        for group in [Some(&mut *group), ahead.as_mut()].into_iter().flatten() {
            if let Some(streams) = &mut group.streams {
                streams.pump(queue)?;
            }
        }
        match self.fold_some(group, decode_scratch, worker.index)? {
            TaskProgress::Worked => Ok(Step::Worked),
            TaskProgress::Starved => Ok(Step::Waiting),
            TaskProgress::Early => {
                if group.input.pull(self.messages, worker.index)? {
                    return Ok(Step::Worked);
                }
                Ok(match self.exchange.idle_step()? {
                    // It has come since.
                    Step::Finished => Step::Worked,
                    step => step,
                })
            }
            TaskProgress::Done => {
                if let Some(group) = current.take() {
                    streams.extend(self.finish_group(group, worker.index)?);
                }
                Ok(Step::Worked)
            }
        }
    }
}

/// Sorts numbered groups by node, and within a node by edges, the longest first.
fn sort_by_length(groups: &mut [(usize, Vec<StripRef>)], context: &ExecContext) {
    let edges_of = |target: &StripRef| context.graph.column(target.batch).edges();
    groups.sort_by_key(|(_, group)| {
        let edges: u64 = group.iter().map(edges_of).sum();
        let node = node_of_batch(group[0].batch, context.batches.len());
        (node, std::cmp::Reverse(edges))
    });
}
