//! The request and the outcome of an edge pass, and how it applies the vertices of a batch that it reached.

use std::ops::Range;

use graphmill_storage::DataKind;

use crate::context::{ExecContext, Orientations};
use crate::error::EngineError;
use crate::frontier::active_set::ActiveSet;
use crate::frontier::bitmap::HierarchicalBitmap;
use crate::metrics::run::PassMetrics;
use crate::metrics::traffic::Access;
use crate::program::current_call::CurrentCall;
use crate::program::edge::{Activate, Direction, EdgeProgram};
use crate::state::row_file::RowFileIo;
use crate::state::row_set::RowSet;
use crate::state::rows::{ColumnAccess, Rows};
use crate::value::{Accumulator, Reduce};

/// The request of an edge pass: no phase changes it.
pub(crate) struct Pass<'p, P: EdgeProgram> {
    /// The orientation that the pass goes over.
    pub(crate) context: &'p ExecContext<'p>,
    pub(crate) orientations: Orientations<'p>,
    pub(crate) direction: Direction,
    pub(crate) program: &'p P,
    /// The rows that `signal` sees.
    pub(crate) signal: &'p [ColumnAccess],
    /// The rows that `apply` sees.
    pub(crate) apply: &'p [ColumnAccess],
    pub(crate) active: &'p ActiveSet,
    /// The batches that fold; a sparse pass, and the phases before the folds, may work for others too.
    pub(crate) folding: &'p Range<usize>,
    /// Bytes that passes over vertices, and of sends, took at most.
    pub(crate) borrowed: u64,
}

impl<P: EdgeProgram> Clone for Pass<'_, P> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<P: EdgeProgram> Copy for Pass<'_, P> {}

impl<P: EdgeProgram> Pass<'_, P> {
    /// Bytes that the rows of one vertex take while a phase works with them, at most.
    pub(crate) fn staged_bytes(&self) -> usize {
        let staged = [self.signal, self.apply].map(|needs| self.context.arrays.staged_bytes(needs));
        staged[0].max(staged[1])
    }

    /// True if cells are folded before other ranks report which of them carry messages.
    pub(crate) fn has_many_active(&self) -> bool {
        const ONE_IN: u64 = 16;
        self.active.len() >= self.context.batches.vertices() / ONE_IN
    }
}

/// The results of an edge pass.
pub(crate) struct PassOutput<S> {
    /// Of this rank's batches, in order.
    pub(crate) sums: Vec<S>,
    pub(crate) activated: ActiveSet,
    pub(crate) report: PassMetrics,
}

/// Ends a sparse pass for one batch: applies its reached destinations in order.
///
/// Leaves their accumulators at `IDENTITY`. The batch's part of `reached` is `places`, its first vertex at the start.
pub(crate) fn apply_reached<P: EdgeProgram>(
    pass: Pass<'_, P>,
    batch: usize,
    accumulators: &mut [P::Accumulator],
    reached: &mut HierarchicalBitmap,
    places: Range<usize>,
    io: &mut RowFileIo,
    output: &mut PassOutput<P::Sum>,
) -> Result<(), EngineError> {
    let (context, program, needs) = (pass.context, pass.program, pass.apply);
    let identity = program.identity();
    let start = context.batches.start(batch);
    let (mut sum, mut applied) = (P::Sum::ZERO, 0);
    let span = context.batches.span(batch) as usize;
    let some = RowSet::of_part(reached, places.start..places.end.min(places.start + span));
    let mut batch_rows = context.arrays.open(batch, needs, Some(&some), io)?;
    let mut outside = None;
    {
        let current = CurrentCall::new();
        let mut next = output.activated.batch(batch)?;
        let mut rows = P::ApplyRows::slices(&mut batch_rows.guards);
        reached.drain_part(places.clone(), |place| {
            let i = place - places.start;
            let accumulator = std::mem::replace(&mut accumulators[i], identity);
            if i >= span {
                outside = Some(i as u64);
                return;
            }
            if accumulator.bit_eq(&identity) {
                return;
            }
            let row = P::ApplyRows::row(&mut rows, i);
            current.at(start + i as u64);
            let (summand, activate) = program.apply(start + i as u64, row, accumulator);
            sum.add(summand);
            applied += 1;
            if activate == Activate::Yes {
                next.insert(i);
            }
        });
    }
    // Bits of a destination can say more than the batch has vertices, in a cell that is not what was written.
    if let Some(local) = outside {
        return Err(context.graph.outside_batch(batch, local).into());
    }
    // Sparse passes run on the calling thread.
    context.count_rows(0, needs, applied, false);
    let bytes = applied * size_of::<P::Accumulator>() as u64;
    let traffic = context.traffic.of(0);
    traffic.change(DataKind::Messages, Access::Random, bytes);
    output.activated.recount(batch);
    output.sums.push(sum);
    (context.arrays).close(batch_rows, needs, None, io)
}
