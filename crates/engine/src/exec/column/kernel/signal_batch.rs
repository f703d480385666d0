//! Signals the active vertices of one batch.

use graphmill_raw::lock;

use crate::error::EngineError;
use crate::exec::column::kernel::pass::Pass;
use crate::program::current_call::CurrentCall;
use crate::program::edge::EdgeProgram;
use crate::state::row_set::RowSet;
use crate::state::rows::{RowRun, Rows};

/// Calls `signal` for each active vertex of a batch; returns the number of messages.
///
/// Messages go to `values` by source, and the bits of their sources to `present`, which is clear.
pub(crate) fn signal_batch<P: EdgeProgram>(
    pass: &Pass<'_, P>,
    batch: usize,
    (values, present): (&mut [P::Message], &mut [u64]),
    worker: usize,
) -> Result<u64, EngineError> {
    let (context, program, needs, active) = (pass.context, pass.program, pass.signal, pass.active);
    let mut io = lock(&context.row_io[worker]);
    let active_here = active.batch(batch)?;
    let some = RowSet::of(&active_here);
    let mut batch_rows = context.arrays.open(batch, needs, some.as_ref(), &mut io)?;
    let start = context.batches.start(batch);
    let mut count = 0;
    {
        let mut rows = P::SignalRows::slices(&mut batch_rows.guards);
        let current = CurrentCall::new();
        let mut signal_one = |i: usize| -> u64 {
            current.at(start + i as u64);
            match program.signal(start + i as u64, P::SignalRows::row(&mut rows, i)) {
                Some(message) => {
                    values[i] = message;
                    1
                }
                None => 0,
            }
        };
        if P::CALLS_MANY {
            for (word, bits) in present.iter_mut().enumerate() {
                let active = active_here.word(word);
                if active != 0 {
                    let (first, messages) = (word * 64, &mut values[word * 64..]);
                    let v = start + first as u64;
                    current.at(v);
                    let mut rows = RowRun::<P::SignalRows>::new(&mut rows, first);
                    *bits = program.signal_many(v, active, &mut rows, messages) & active;
                    count += u64::from(bits.count_ones());
                }
            }
        } else if active_here.is_full() {
            for (word, bits) in present.iter_mut().enumerate() {
                let from = word * 64;
                let mut emitted = 0;
                for i in from..active_here.span.min(from + 64) {
                    emitted |= signal_one(i) << (i - from);
                }
                count += u64::from(emitted.count_ones());
                *bits = emitted;
            }
        } else {
            active_here.for_each(|i| {
                let emitted = signal_one(i);
                present[i / 64] |= emitted << (i % 64);
                count += emitted;
            });
        }
    }
    let full = active_here.is_full();
    context.count_rows(worker, needs, active.count_in(batch), full);
    context.arrays.close(batch_rows, needs, None, &mut io)?;
    Ok(count)
}
