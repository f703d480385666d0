//! A round of a count program: the labels of the neighbours of each vertex, listed as they come, then counted.

use std::marker::PhantomData;
use std::ops::Range;
use std::sync::Mutex;

use graphmill_raw::lock;
use graphmill_storage::Worker;
use zerocopy::FromBytes;

use crate::context::{ExecContext, each_batch};
use crate::error::{EngineError, ensure};
use crate::exec::bucket::kernel::{
    BlockInput, BucketKernel, EmitScratch, LaneAccumulators, MessageKernel, WireMessage,
};
use crate::exec::bucket::plane::BucketPlane;
use crate::frontier::active_set::ActiveSet;
use crate::messages::batch::SignalledMessages;
use crate::program::count::{CountProgram, count_sorted};
use crate::program::edge::{Activate, EdgeProgram};
use crate::state::rows::{ColumnAccess, OutDegree, Read, Rows, Write};

/// Bytes of the place of the next label of a vertex.
const END_BYTES: usize = size_of::<u64>();

/// Brings the label of a vertex to its neighbours.
pub(crate) struct CarryLabels<P>(pub(crate) PhantomData<fn() -> P>);

impl<P: CountProgram> EdgeProgram for CarryLabels<P> {
    type SignalRows = Read<P::Label>;
    type ApplyRows = ();
    type Edge = ();
    type Message = P::Label;
    type EdgeMessage = P::Label;
    type Accumulator = P::Label;
    type Sum = ();
    const IDENTITY: P::Label = <P::Label as graphmill_raw::AtomicScalar>::LEAST;

    #[inline(always)]
    fn signal(&self, _: u64, label: &P::Label) -> Option<P::Label> {
        Some(*label)
    }
    #[inline(always)]
    fn on_edge(&self, label: P::Label, (): ()) -> P::Label {
        label
    }
    #[inline(always)]
    fn fold(&self, one: &mut P::Label, label: P::Label) {
        *one = label;
    }
    fn merge(&self, _: &mut P::Label, _: P::Label) {}
    fn apply(&self, _: u64, (): (), _: P::Label) -> ((), Activate) {
        ((), Activate::No)
    }
}

/// The kernel of [`CarryLabels`], which puts what comes into lists.
pub(crate) struct ListKernel<'p, P>(pub(crate) MessageKernel<'p, CarryLabels<P>>);

impl<P: CountProgram> BucketKernel for ListKernel<'_, P> {
    fn width(&self) -> usize {
        self.0.width()
    }

    fn signal_width(&self) -> usize {
        self.0.signal_width()
    }

    fn present<'m>(&self, messages: &'m SignalledMessages) -> &'m [u64] {
        self.0.present(messages)
    }

    fn is_weighted(&self) -> bool {
        false
    }

    fn emit(&self, input: &BlockInput<'_>, scratch: &mut EmitScratch) -> Option<usize> {
        self.0.emit(input, scratch)
    }

    fn write(
        &self,
        scratch: &EmitScratch,
        messages: Range<usize>,
        base: u32,
        room: &mut [u8],
    ) -> usize {
        self.0.write(scratch, messages, base, room)
    }

    fn fold(&self, lane: &mut LaneAccumulators, messages: &[u8]) -> bool {
        let Ok(messages) = <[WireMessage<P::Label>]>::ref_from_bytes(messages) else {
            return false;
        };
        let Some(ends) = &mut lane.ends else {
            return false;
        };
        let (ends, labels) = (ends.typed_mut::<u64>(), lane.memory.typed_mut::<P::Label>());
        let places = ends.len();
        if messages
            .iter()
            .any(|message| message.id.get() as usize >= places)
        {
            return false;
        }
        for message in messages {
            let end = &mut ends[message.id.get() as usize];
            // The end of the round finds more labels than the graph says.
            if let Some(place) = labels.get_mut(*end as usize) {
                *place = message.value;
            }
            *end += 1;
        }
        true
    }
}

/// A round, over the lists of one rank.
pub(crate) struct ListRound<'r, P> {
    pub(crate) context: &'r ExecContext<'r>,
    pub(crate) plane: &'r BucketPlane,
    pub(crate) program: &'r P,
    /// The numbers of labels of each vertex: its out-degree, and in a directed graph also the arcs into it.
    pub(crate) of_counts: &'r [ColumnAccess],
    /// The next labels, and the labels.
    pub(crate) of_labels: &'r [ColumnAccess],
}

impl<P: CountProgram> ListRound<'_, P> {
    /// Makes an empty list for each vertex, of the length that the graph says.
    pub(crate) fn begin(&self, lanes: &[Mutex<LaneAccumulators>]) -> Result<(), EngineError> {
        self.each_lane(lanes, |lane, lists, worker| {
            let (context, batches) = (self.context, self.batches(lane));
            let first = context.batches.cut(batches.start);
            let vertices = (context.batches.cut(batches.end) - first) as usize;
            let bytes = vertices.max(1) * END_BYTES;
            let mut ends = context.budget.buffer("ends of lists of labels", bytes)?;
            let (mut end, mut rest) = (0, &mut ends.typed_mut::<u64>()[..vertices]);
            for batch in batches {
                let (of_batch, later) = rest.split_at_mut(context.batches.span(batch) as usize);
                self.counts(batch, worker, |i, count| {
                    of_batch[i] = end;
                    end += count;
                })?;
                rest = later;
            }
            let bytes = (end as usize).max(1) * size_of::<P::Label>();
            let memory = context.budget.buffer("lists of labels", bytes)?;
            *lists = LaneAccumulators::new(first, vertices, memory);
            lists.ends = Some(ends);
            Ok(())
        })
    }

    /// Chooses the next label of each vertex; adds those that change to `next`.
    pub(crate) fn choose(
        &self,
        lanes: &[Mutex<LaneAccumulators>],
        next: &ActiveSet,
    ) -> Result<(), EngineError> {
        self.each_lane(lanes, |lane, lists, worker| {
            let context = self.context;
            let ends = lists.ends.as_ref().ok_or(EngineError::Broken)?;
            let (mut ends, mut labels) =
                (ends.typed::<u64>(), lists.memory.typed_mut::<P::Label>());
            let mut end = 0;
            for batch in self.batches(lane) {
                let span = context.batches.span(batch) as usize;
                let (of_batch, later) = ends.split_at(span);
                ends = later;
                let mut is_whole = true;
                let begin = end;
                self.counts(batch, worker, |i, count| {
                    end += count;
                    is_whole &= of_batch[i] == end;
                })?;
                ensure(is_whole, || EngineError::Degrees {
                    path: context.graph.path().to_path_buf(),
                    batch,
                })?;
                let (mut lists, later) = labels.split_at_mut((end - begin) as usize);
                labels = later;
                let io = || lock(&context.row_io[worker]);
                let mut open = (context.arrays).open(batch, self.of_labels, None, &mut io())?;
                {
                    let mut changed = next.batch(batch)?;
                    let (new, old) = <(Write<P::Label>, Read<P::Label>)>::slices(&mut open.guards);
                    let mut from = begin;
                    for (i, end) in of_batch.iter().enumerate() {
                        let (list, later) = lists.split_at_mut((end - from) as usize);
                        (lists, from) = (later, *end);
                        new[i] = old[i];
                        if !list.is_empty() {
                            let mut choice = P::NONE;
                            count_sorted(self.program, &mut choice, list);
                            new[i] = self.program.choose(choice);
                        }
                        if new[i] != old[i] {
                            changed.insert(i);
                        }
                    }
                }
                context.count_rows(worker, self.of_labels, span as u64, true);
                (context.arrays).close(open, self.of_labels, None, &mut io())?;
            }
            Ok(())
        })
    }

    fn batches(&self, lane: usize) -> Range<usize> {
        let rank = self.context.ranks.rank();
        self.plane.lanes.batches(rank, lane)
    }

    /// Calls `work` with each lane, its lists, and the number of the worker.
    fn each_lane(
        &self,
        lanes: &[Mutex<LaneAccumulators>],
        work: impl Fn(usize, &mut LaneAccumulators, usize) -> Result<(), EngineError> + Sync,
    ) -> Result<(), EngineError> {
        let last = self.context.batches.len().saturating_sub(1);
        let firsts = (0..lanes.len()).map(|lane| self.batches(lane).start.min(last));
        let firsts: Vec<usize> = firsts.collect();
        each_batch(self.context, &firsts, |lane, worker: &mut Worker| {
            work(lane, &mut lock(&lanes[lane]), worker.index)
        })?;
        Ok(())
    }

    /// Calls `f` with each vertex of a batch and the number of labels that reach it.
    fn counts(
        &self,
        batch: usize,
        worker: usize,
        mut f: impl FnMut(usize, u64),
    ) -> Result<(), EngineError> {
        let (context, rows) = (self.context, self.of_counts);
        let io = || lock(&context.row_io[worker]);
        let mut open = context.arrays.open(batch, rows, None, &mut io())?;
        let span = context.batches.span(batch) as usize;
        {
            let (mut degrees, arcs) = <(OutDegree, Read<u64>)>::slices(&mut open.guards);
            for i in 0..span {
                let arcs = arcs.get(i).copied().unwrap_or(0);
                f(i, OutDegree::row(&mut degrees, i) + arcs);
            }
        }
        context.count_rows(worker, rows, span as u64, true);
        Ok(())
    }
}
