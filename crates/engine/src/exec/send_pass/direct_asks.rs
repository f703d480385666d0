//! Asks of rows in memory: the vertex that asks reads the row of the asked one, and nothing is sent.
//!
//! All answers of a pass are made before the first one is taken, as in a pass that sends them.

use std::sync::Mutex;

use graphmill_raw::{AlignedBuffer, lock};
use graphmill_storage::{Buffer, DataKind};

use crate::context::{ExecContext, each_batch};
use crate::error::EngineError;
use crate::exec::vertex_pass::RowPass;
use crate::frontier::active_set::ActiveSet;
use crate::frontier::bitmap::HierarchicalBitmap;
use crate::metrics::run::{Mode, PassMetrics};
use crate::metrics::traffic::Access;
use crate::program::ask::AskProgram;
use crate::program::current_call::CurrentCall;
use crate::program::edge::Activate;
use crate::state::rows::{ColumnAccess, Rows};
use crate::state::vertex_array::{BatchRows, ColumnGuard};
use crate::value::Reduce;

/// The rows that `ask`, `answer` and `take` see.
pub(crate) type AskAccess = [Vec<ColumnAccess>; 3];

/// True if the asked rows are in memory, and the answers of all batches fit there beside `fixed` bytes.
pub(crate) fn is_possible<P: AskProgram>(
    context: &ExecContext,
    rows: &AskAccess,
    active: Option<&ActiveSet>,
    fixed: u64,
) -> bool {
    let [ask, answer, _] = rows;
    let is_write = |need: &ColumnAccess| matches!(need, ColumnAccess::Write(_));
    let width = size_of::<P::Answer>();
    let bytes = |batch: usize| {
        let span = context.batches.span(batch);
        let askers = active.map_or(span, |active| active.count_in(batch)) as usize;
        AlignedBuffer::footprint(askers * width) + HierarchicalBitmap::bytes(span as usize)
    };
    let answers = || context.ranks.own().map(bytes).sum::<u64>();
    let fixed = fixed.saturating_add(opened_bytes(context, answer));
    context.ranks.alone()
        && !ask.iter().chain(answer).any(is_write)
        && context.arrays.resident(answer)
        && fixed.saturating_add(answers()) <= context.message_memory(0)
}

/// Returns the bytes of the borrowed rows of all batches, which each worker has.
fn opened_bytes(context: &ExecContext, answer: &[ColumnAccess]) -> u64 {
    let column = size_of::<ColumnGuard<'_>>() + size_of::<Option<Vec<usize>>>();
    let batch = size_of::<BatchRows<'_>>() + answer.len() * column;
    (context.workers.count() * context.batches.len() * batch) as u64
}

/// One pass of asks.
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
    let opened = context
        .budget
        .lease("rows to ask", opened_bytes(context, answer))?;
    let asking = Asking {
        context,
        program,
        askers: RowPass {
            context,
            needs: ask,
            active,
            activated: None,
        },
        needs: answer,
        opened: (0..context.workers.count())
            .map(|_| Mutex::default())
            .collect(),
    };
    let batches = asking.askers.batches();
    let mut answers = each_batch(context, &batches, |i, worker| {
        asking.batch(batches[i], worker.index)
    })?;
    drop(asking);
    drop(opened);
    context.arrays.end_phase();
    answers.retain(|answers| answers.asked.count > 0);
    let batches: Vec<usize> = answers.iter().map(|answers| answers.batch).collect();
    let takers = RowPass {
        context,
        needs: take,
        active: None,
        activated: Some(&next),
    };
    let sums = each_batch(context, &batches, |i, worker| {
        answers[i].take(program, &takers, worker.index)
    })?;
    next.refresh_counts();
    let mut report = PassMetrics::new(Mode::Send);
    // A request and an answer each.
    let asked = answers.iter().map(|answers| answers.asked.count as u64);
    report.messages = 2 * asked.sum::<u64>();
    Ok((sums, next, report))
}

/// Asking, one batch of vertices that ask after the other.
struct Asking<'p, P> {
    context: &'p ExecContext<'p>,
    program: &'p P,
    askers: RowPass<'p>,
    /// The rows that `answer` sees.
    needs: &'p [ColumnAccess],
    /// These rows of all batches, once a worker has asked.
    opened: Vec<Mutex<Vec<BatchRows<'p>>>>,
}

impl<P: AskProgram> Asking<'_, P> {
    fn batch(&self, batch: usize, worker: usize) -> Result<BatchAnswers, EngineError> {
        let (context, program) = (self.context, self.program);
        let (batches, budget) = (&context.batches, &context.budget);
        let span = batches.span(batch) as usize;
        let start = batches.start(batch);
        let mut asked = HierarchicalBitmap::default();
        asked.reserve(span, budget)?;
        let askers = (self.askers.active).map_or(span, |active| active.count_in(batch) as usize);
        let bytes = askers * size_of::<P::Answer>();
        let (kind, tiers) = (DataKind::Messages, &context.tiers);
        let mut answers = tiers.buffer(kind, budget, "answers", bytes)?;
        let opened = &mut *lock(&self.opened[worker]);
        if opened.is_empty() {
            let io = &mut lock(&context.row_io[worker]);
            let open = |batch| context.arrays.open(batch, self.needs, None, io);
            *opened = context.ranks.own().map(open).collect::<Result<_, _>>()?;
        }
        let mut outside = None;
        {
            let places = answers.typed_mut::<P::Answer>();
            let current = CurrentCall::new();
            let ask = |v, row: <P::AskRows as Rows>::Row<'_>| {
                current.at(v);
                let Some(index) = program.ask(v, row) else {
                    return ((), Activate::No);
                };
                if index >= batches.vertices() {
                    outside.get_or_insert(index);
                    return ((), Activate::No);
                }
                current.at(index);
                let of = batches.batch_of(index);
                let mut rows = P::AnswerRows::slices(&mut opened[of].guards);
                let row = P::AnswerRows::row(&mut rows, (index - batches.start(of)) as usize);
                places[asked.count] = program.answer(index, row);
                asked.insert((v - start) as usize);
                ((), Activate::No)
            };
            self.askers.batch::<P::AskRows, _>(batch, worker, ask)?;
        }
        if let Some(index) = outside {
            let vertices = batches.vertices();
            return Err(EngineError::NoSuchIndex { index, vertices });
        }
        let count = asked.count as u64;
        context.count_rows(worker, self.needs, count, false);
        let bytes = count * size_of::<P::Answer>() as u64;
        (context.traffic.of(worker)).write(kind, Access::Sequential, bytes);
        Ok(BatchAnswers {
            batch,
            asked,
            answers,
        })
    }
}

/// The answers to the vertices of a batch.
struct BatchAnswers {
    batch: usize,
    /// The vertices that asked.
    asked: HierarchicalBitmap,
    /// Their answers, in order of vertices.
    answers: Buffer,
}

impl BatchAnswers {
    /// Calls `take` for each vertex that asked; returns the sum.
    fn take<P: AskProgram>(
        &self,
        program: &P,
        takers: &RowPass,
        worker: usize,
    ) -> Result<P::Sum, EngineError> {
        let mut answers = self.answers.typed::<P::Answer>().iter();
        let take = |v, row: <P::TakeRows as Rows>::Row<'_>| match answers.next() {
            Some(answer) => program.take(v, row, *answer),
            None => (P::Sum::ZERO, Activate::No),
        };
        let sum =
            takers.members::<P::TakeRows, _>((self.batch, worker), Some(&self.asked), take)?;
        let count = self.asked.count as u64;
        (takers.context).count_rows(worker, takers.needs, count, false);
        let bytes = count * size_of::<P::Answer>() as u64;
        let traffic = takers.context.traffic.of(worker);
        traffic.read(DataKind::Messages, Access::Sequential, bytes);
        Ok(sum)
    }
}
