//! The pass of asks: two sends, the requests with the index of the vertex that asks, and the answers back to it.

use graphmill_raw::lock;
use zerocopy::FromZeros;

use crate::context::ExecContext;
use crate::error::EngineError;
use crate::exec::send_pass::boxes::{self, Boxes};
use crate::exec::send_pass::direct_asks::{self, AskAccess};
use crate::exec::send_pass::receive::{Receipt, fixed_bytes};
use crate::exec::vertex_pass::RowPass;
use crate::frontier::active_set::ActiveSet;
use crate::frontier::bitmap::HierarchicalBitmap;
use crate::metrics::run::{Mode, PassMetrics};
use crate::program::ask::AskProgram;
use crate::program::current_call::CurrentCall;
use crate::program::edge::Activate;
use crate::program::outbox::Outbox;
use crate::state::row_set::RowSet;
use crate::state::rows::Rows;

/// While answers are sent, requests are read: blocks of both kinds take memory at the same time.
const PHASES: u64 = 2;

/// Returns the bytes of the longer one of a request and an answer.
const fn message_bytes<P: AskProgram>() -> usize {
    let (request, answer) = (size_of::<u64>(), size_of::<P::Answer>());
    if request > answer { request } else { answer }
}

fn fixed<P: AskProgram>(context: &ExecContext, rows: &AskAccess) -> u64 {
    fixed_bytes(
        context,
        size_of::<P::Answer>(),
        &rows.each_ref().map(|needs| &needs[..]),
    )
}

/// Bytes of the budget that a pass can do with.
pub(crate) fn least<P: AskProgram>(context: &ExecContext, rows: &AskAccess) -> u64 {
    fixed::<P>(context, rows) + boxes::least(context, message_bytes::<P>(), PHASES)
}

/// One pass of asks, without messages if the asked rows are in memory.
///
/// Returns the sums of `take` by batch, the vertices that are active next, and the metrics.
pub(crate) fn pass<P: AskProgram>(
    context: &ExecContext,
    program: &P,
    rows: &AskAccess,
    active: Option<&ActiveSet>,
    mut next: ActiveSet,
) -> Result<(Vec<P::Sum>, ActiveSet, PassMetrics), EngineError> {
    let [ask, answer, take] = rows;
    let fixed = fixed::<P>(context, rows);
    if direct_asks::is_possible::<P>(context, rows, active, fixed) {
        return direct_asks::pass(context, program, rows, active, next);
    }
    let askers = active.map_or(context.arrays.vertices(), ActiveSet::own_len);
    let boxes = Boxes::new(context, (message_bytes::<P>(), askers), fixed, PHASES)?;
    let mut report = PassMetrics::new(Mode::Send);
    let askers = RowPass {
        context,
        needs: ask,
        active,
        activated: None,
    };
    let (_, requests) = boxes.send(
        &askers.batches(),
        None,
        |batch, worker, sink: &mut Outbox<'_, u64>| {
            let ask = |v, row: <P::AskRows as Rows>::Row<'_>| {
                if let Some(asked) = program.ask(v, row) {
                    sink.send(asked, v);
                }
                ((), Activate::No)
            };
            askers.batch::<P::AskRows, _>(batch, worker, ask)
        },
    )?;
    context.arrays.end_phase();
    requests.count(&mut report);
    // One batch of asked vertices answers after the other.
    let (_, answers) = boxes.send(
        &requests.batches(),
        None,
        |batch, worker, sink: &mut Outbox<'_, P::Answer>| {
            let start = context.batches.start(batch);
            let mut asked = HierarchicalBitmap::default();
            asked.reserve(context.batches.span(batch) as usize, &context.budget)?;
            requests.each(batch, worker, |local, _: u64| asked.insert(local))?;
            let row_io = || lock(&context.row_io[worker]);
            let some = RowSet::of(&asked);
            let mut open = (context.arrays).open(batch, answer, some.as_ref(), &mut row_io())?;
            let answered = {
                let current = CurrentCall::new();
                let mut rows = P::AnswerRows::slices(&mut open.guards);
                requests.each(batch, worker, |local, asker: u64| {
                    let v = start + local as u64;
                    current.at(v);
                    let row = P::AnswerRows::row(&mut rows, local);
                    sink.send(asker, program.answer(v, row));
                })?
            };
            context.count_rows(worker, answer, answered, false);
            (context.arrays).close(open, answer, None, &mut row_io())
        },
    )?;
    drop(requests);
    context.arrays.end_phase();
    answers.count(&mut report);
    let receipt = Receipt {
        context,
        sent: &answers,
        needs: take,
        reached: &next,
    };
    // A vertex gets one answer.
    let sums = receipt.run::<P::Answer, _, P::TakeRows, _>(
        P::Answer::new_zeroed(),
        |place, answer| *place = answer,
        |v, row, answer| program.take(v, row, answer),
    )?;
    next.refresh_counts();
    Ok((sums, next, report))
}
