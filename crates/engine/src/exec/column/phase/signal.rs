//! The signal phase: active vertices to messages, batch by batch.

use graphmill_storage::{DataKind, Job, JobError, Step, Worker};

use crate::error::EngineError;
use crate::exec::column::kernel::pass::Pass;
use crate::exec::column::kernel::signal_batch::signal_batch;
use crate::exec::column::phase::message_exchange::BackgroundWork;
use crate::messages::buffer::MessageBuffer;
use crate::metrics::traffic::Access;
use crate::program::edge::EdgeProgram;
use crate::schedule::numa::NumaQueue;

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
        let context = self.pass.context;
        let mut writer = self.messages.open_writer(batch, worker)?;
        let count = signal_batch(&self.pass, batch, writer.parts(), worker)?;
        if self.messages.in_memory() {
            let bytes = count * size_of::<P::Message>() as u64;
            let full = self.pass.active.count_in(batch) == context.batches.span(batch);
            let traffic = context.traffic.of(worker);
            traffic.write(DataKind::Messages, Access::of(full), bytes);
        }
        self.messages.commit(batch, writer, count, worker)
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
