//! Applies the accumulators of one batch to its rows and to the next active set.

use graphmill_raw::lock;
use graphmill_storage::DataKind;

use crate::context::ExecContext;
use crate::error::EngineError;
use crate::frontier::active_set::ActiveSet;
use crate::frontier::bitmap::{Bits, HierarchicalBitmap};
use crate::metrics::traffic::Access;
use crate::program::current_call::CurrentCall;
use crate::program::edge::{Activate, ApplyTo, EdgeProgram};
use crate::state::row_set::RowSet;
use crate::state::rows::{ColumnAccess, RowRun, Rows};
use crate::state::vertex_array::BatchRows;
use crate::value::{Accumulator, Reduce};

/// The end of a pass for one batch.
#[derive(Clone, Copy)]
pub(crate) struct BatchApply<'p, P: EdgeProgram> {
    pub(crate) context: &'p ExecContext<'p>,
    pub(crate) program: &'p P,
    /// The rows that `apply` sees.
    pub(crate) needs: &'p [ColumnAccess],
    /// The vertices that are active next.
    pub(crate) activated: &'p ActiveSet,
}

impl<'p, P: EdgeProgram> BatchApply<'p, P> {
    /// Calls the program's `apply` for the vertices of a batch, and returns the sum of its results.
    ///
    /// Leaves the accumulators at `IDENTITY`. `rows` are the rows of the batch, if they are borrowed already.
    pub(crate) fn apply(
        &self,
        batch: usize,
        total: &mut [P::Accumulator],
        rows: Option<BatchRows<'p>>,
        worker: usize,
    ) -> Result<P::Sum, EngineError> {
        let (context, program, needs) = (self.context, self.program, self.needs);
        let (identity, apply_to) = (program.identity(), program.apply_to());
        let mut io = lock(&context.row_io[worker]);
        let start = context.batches.start(batch);
        let span = context.batches.span(batch) as usize;
        let mut reached = HierarchicalBitmap::default();
        let is_tracked = apply_to == ApplyTo::Touched && !context.arrays.resident(needs);
        if is_tracked {
            reached.reserve(span, &context.budget)?;
            let accumulators = total[..span].iter().enumerate();
            let folded = accumulators.filter(|(_, accumulator)| !accumulator.bit_eq(&identity));
            folded.for_each(|(i, _)| reached.insert(i));
        }
        let reached = RowSet::of(&reached).filter(|_| is_tracked);
        let mut batch_rows = match rows {
            Some(batch_rows) => batch_rows,
            None => (context.arrays).open(batch, needs, reached.as_ref(), &mut io)?,
        };
        let mut next = self.activated.batch(batch)?;
        let mut sum = P::Sum::ZERO;
        let mut applied = 0;
        {
            let mut rows = P::ApplyRows::slices(&mut batch_rows.guards);
            let current = CurrentCall::new();
            if P::CALLS_MANY {
                for (word, accumulators) in total[..span].chunks_mut(64).enumerate() {
                    let folded = |accumulator: &P::Accumulator| !accumulator.bit_eq(&identity);
                    let all = !0 >> (64 - accumulators.len());
                    let bits = match apply_to {
                        ApplyTo::All => all,
                        ApplyTo::Touched => bits_where(accumulators, folded),
                    };
                    if bits != 0 {
                        let first = word * 64;
                        let v = start + first as u64;
                        current.at(v);
                        let mut rows = RowRun::<P::ApplyRows>::new(&mut rows, first);
                        let active = program.apply_many(v, bits, &mut rows, accumulators, &mut sum);
                        Bits(active & all).for_each(|i| next.insert(first + i));
                        applied += u64::from(bits.count_ones());
                        accumulators.fill(identity);
                    }
                }
            } else {
                for (i, accumulator) in total[..span].iter_mut().enumerate() {
                    current.at(start + i as u64);
                    if apply_to == ApplyTo::All || !accumulator.bit_eq(&identity) {
                        let row = P::ApplyRows::row(&mut rows, i);
                        let (summand, activate) =
                            program.apply(start + i as u64, row, *accumulator);
                        sum.add(summand);
                        applied += 1;
                        if activate == Activate::Yes {
                            next.insert(i);
                        }
                        *accumulator = identity;
                    }
                }
            }
        }
        drop(next);
        let (one, all) = (size_of::<P::Accumulator>() as u64, applied == span as u64);
        context.count_rows(worker, needs, applied, all);
        let traffic = context.traffic.of(worker);
        traffic.read(DataKind::Messages, Access::Sequential, span as u64 * one);
        traffic.write(DataKind::Messages, Access::of(all), applied * one);
        // Bits of a destination can say more than the batch has vertices, in a cell that is not what was written.
        let mut beyond = total[span..].iter();
        if let Some(beyond) = beyond.position(|a| !a.bit_eq(&identity)) {
            let local = (span + beyond) as u64;
            return Err(context.graph.outside_batch(batch, local).into());
        }
        (context.arrays).close(batch_rows, needs, reached.as_ref(), &mut io)?;
        Ok(sum)
    }
}

/// Returns the bits of the elements, at most 64, that `f` is true for.
#[inline(always)]
fn bits_where<T>(elements: &[T], f: impl Fn(&T) -> bool) -> u64 {
    let elements = elements.iter().enumerate();
    elements.fold(0, |bits, (i, of)| bits | u64::from(f(of)) << i)
}
