//! One round of work over lists, done by all workers, or by the calling thread alone when it is small.

use graphmill_raw::Word;
use graphmill_storage::{Job, JobError, Step, Worker};

use crate::error::EngineError;
use crate::machine::{Machine, run};
use crate::program::{Label, LabelProgram};
use crate::resident::lists::Lists;

/// The number of a label of a program.
pub(crate) type WordOf<P> = <<P as LabelProgram>::Label as Label>::Word;
/// The same, where several threads change it at once.
pub(crate) type Atomic<P> = <WordOf<P> as Word>::Atomic;

/// Edges, about, that are not worth waking another thread for.
const SMALL: u64 = 2048;

/// What all rounds of a program see.
pub(crate) struct Ground<'g, P: LabelProgram> {
    pub(crate) machine: &'g Machine<'g>,
    pub(crate) program: &'g P,
    /// Along the way that labels travel.
    pub(crate) lists: &'g Lists,
    /// Against it.
    pub(crate) against: Option<&'g Lists>,
    /// By vertex.
    pub(crate) labels: &'g [Atomic<P>],
}

/// What workers do part by part until there is nothing left.
pub(crate) trait Round: Sync {
    /// Does a part; `false` when there was none left.
    fn part(&self, worker: usize) -> bool;
}

struct AsJob<'r, R>(&'r R);

impl<R: Round> Job for AsJob<'_, R> {
    fn step(&self, worker: &mut Worker) -> Result<Step, JobError> {
        match self.0.part(worker.index) {
            true => Ok(Step::Worked),
            false => Ok(Step::Finished),
        }
    }
}

/// Does a round of about so many edges.
pub(crate) fn go(machine: &Machine, round: &impl Round, edges: u64) -> Result<(), EngineError> {
    machine.check_stop()?;
    if edges < SMALL {
        while round.part(0) {}
        return Ok(());
    }
    run(machine, &AsJob(round))
}
