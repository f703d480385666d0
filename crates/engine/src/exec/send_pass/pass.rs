//! The pass of addressed messages: vertices send, then each destination batch folds what was sent to it.
//!
//! A pass can send any number of messages. The blocks of one destination batch are folded in order of the sending batch, and the
//! blocks of one sending batch in the order in which they were sent.

use crate::context::ExecContext;
use crate::error::EngineError;
use crate::exec::send_pass::boxes::{self, Boxes};
use crate::exec::send_pass::receive::{Receipt, fixed_bytes};
use crate::exec::vertex_pass::RowPass;
use crate::frontier::active_set::ActiveSet;
use crate::metrics::run::{Mode, PassMetrics};
use crate::program::message::MessageProgram;
use crate::program::outbox::Combine;
use crate::state::rows::{ColumnAccess, Rows};

/// The sums by batch and the active vertices, of senders and of receivers, and the metrics.
type SendResult<S> = ([Vec<S>; 2], [ActiveSet; 2], PassMetrics);

/// Bytes of the budget that a pass can do with.
pub(crate) fn least<P: MessageProgram>(
    context: &ExecContext,
    send: &[ColumnAccess],
    apply: &[ColumnAccess],
) -> u64 {
    let fixed = fixed_bytes(context, size_of::<P::Accumulator>(), &[send, apply]);
    fixed + boxes::least(context, size_of::<P::Message>(), 1)
}

/// One pass of sends; see the module's page.
pub(crate) fn pass<P: MessageProgram>(
    context: &ExecContext,
    program: &P,
    send: &[ColumnAccess],
    apply: &[ColumnAccess],
    active: Option<&ActiveSet>,
    [mut senders, mut reached]: [ActiveSet; 2],
) -> Result<SendResult<P::Sum>, EngineError> {
    let fixed = fixed_bytes(context, size_of::<P::Accumulator>(), &[send, apply]);
    // One for each sender, or about as many.
    let expected = active.map_or(context.arrays.vertices(), ActiveSet::own_len);
    let boxes = Boxes::new(context, (size_of::<P::Message>(), expected), fixed, 1)?;
    let rows = RowPass {
        context,
        needs: send,
        active,
        activated: Some(&senders),
    };
    let combine = |earlier: &mut P::Message, later| program.combine(earlier, later);
    let combine: Option<Combine<'_, _>> = P::COMBINES.then_some(&combine);
    let (of_senders, sent) = boxes.send(&rows.batches(), combine, |batch, worker, sink| {
        let send = |v, row: <P::SendRows as Rows>::Row<'_>| program.send(v, row, sink);
        rows.batch::<P::SendRows, _>(batch, worker, send)
    })?;
    context.arrays.end_phase();
    let mut report = PassMetrics::new(Mode::Send);
    sent.count(&mut report);
    let receipt = Receipt {
        context,
        sent: &sent,
        needs: apply,
        reached: &reached,
    };
    let of_reached = receipt.run::<P::Message, _, P::ApplyRows, _>(
        P::IDENTITY,
        |accumulator, message| program.fold(accumulator, message),
        |v, row, accumulator| program.apply(v, row, accumulator),
    )?;
    senders.refresh_counts();
    reached.refresh_counts();
    Ok(([of_senders, of_reached], [senders, reached], report))
}
