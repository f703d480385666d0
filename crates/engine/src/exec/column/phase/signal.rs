//! The signal phase: active vertices to messages, batch by batch.

use graphmill_raw::lock;
use graphmill_storage::{DataKind, Job, JobError, Step, Worker};

use crate::error::EngineError;
use crate::exec::column::kernel::pass::Pass;
use crate::exec::column::phase::message_exchange::BackgroundWork;
use crate::messages::buffer::MessageBuffer;
use crate::metrics::traffic::Access;
use crate::program::current_call::CurrentCall;
use crate::program::edge::EdgeProgram;
use crate::schedule::numa::NumaQueue;
use crate::state::row_set::RowSet;
use crate::state::rows::Rows;

/// One signal phase as a job: each step is one batch with active vertices.
pub(crate) struct SignalPhase<'p, P: EdgeProgram> {
    pass: Pass<'p, P>,
    batches: Vec<usize>,
    batch_queue: NumaQueue<'p>,
    messages: &'p MessageBuffer<P::Message>,
    /// The exchange that runs meanwhile.
    exchange: &'p dyn BackgroundWork,
}

impl<'p, P: EdgeProgram> SignalPhase<'p, P> {
    pub(crate) fn new(
        pass: Pass<'p, P>,
        messages: &'p MessageBuffer<P::Message>,
        exchange: &'p dyn BackgroundWork,
    ) -> Self {
        let batches: Vec<usize> = pass.active.batches().collect();
        SignalPhase {
            pass,
            batch_queue: NumaQueue::new(&batches, pass.context.batches.len()),
            batches,
            messages,
            exchange,
        }
    }

    fn batch(&self, batch: usize, worker: usize) -> Result<(), EngineError> {
        let (context, program, needs) = (self.pass.context, self.pass.program, self.pass.signal);
        let active = self.pass.active;
        let mut io = lock(&context.row_io[worker]);
        let active_here = active.batch(batch)?;
        let some = RowSet::of(&active_here);
        let mut batch_rows = context.arrays.open(batch, needs, some.as_ref(), &mut io)?;
        let mut writer = self.messages.open_writer(batch, worker)?;
        let start = context.batches.start(batch);
        let mut count = 0;
        {
            let mut rows = P::SignalRows::slices(&mut batch_rows.guards);
            let (values, present) = writer.parts();
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
            if active_here.is_full() {
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
        if self.messages.in_memory() {
            let bytes = count * size_of::<P::Message>() as u64;
            let traffic = context.traffic.of(worker);
            traffic.write(DataKind::Messages, Access::of(full), bytes);
        }
        self.messages.commit(batch, writer, count, worker)?;
        context.arrays.close(batch_rows, needs, None, &mut io)
    }
}

impl<P: EdgeProgram> Job for SignalPhase<'_, P> {
    fn step(&self, worker: &mut Worker) -> Result<Step, JobError> {
        self.pass.context.ranks.check_stop()?;
        self.exchange.poll(false)?;
        match self.batch_queue.take() {
            Some(position) => {
                self.batch(self.batches[position], worker.index)?;
                Ok(Step::Worked)
            }
            None => {
                self.messages.flush_io(worker.index)?;
                Ok(Step::Finished)
            }
        }
    }
}
