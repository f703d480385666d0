//! One round of work over lists, done by all workers, or by the calling thread alone when it is small.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use graphmill_raw::{Word, prefetch};
use graphmill_storage::{Job, JobError, Step, Worker};

use super::pile::{Block, Piles};
use crate::active::lock;
use crate::error::EngineError;
use crate::machine::{Machine, run};
use crate::program::{Label, LabelProgram};
use crate::resident::lists::Lists;

/// The number of a label of a program.
pub(crate) type WordOf<P> = <<P as LabelProgram>::Label as Label>::Word;
/// The same, where several threads change it at once.
pub(crate) type Atomic<P> = <WordOf<P> as Word>::Atomic;

/// Edges, about, that are not worth waking another thread for.
const SMALL: u64 = 1024;

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

/// Vertices whose lists are on their way at a time.
pub(crate) const AHEAD: usize = 16;
/// Edges of each of them whose labels are on their way before any is looked at.
const FIRST_EDGES: usize = 8;

impl<P: LabelProgram> Ground<'_, P> {
    /// Has what going along the edges of a few vertices will want on its way into the cache: the beginnings of the lists, then the
    /// lists, then the labels they lead to.
    #[inline(always)]
    pub(crate) fn prefetch<const WORDS: usize>(&self, vertices: &[u32]) {
        let (lists, labels) = (self.lists, self.labels);
        for v in vertices {
            lists.prefetch_begin(*v as usize);
            prefetch(labels, *v as usize);
        }
        for v in vertices {
            lists.prefetch_list::<WORDS>(*v as usize);
        }
        for v in vertices {
            for record in lists.of::<WORDS>(*v as usize).iter().take(FIRST_EDGES) {
                prefetch(labels, record[0] as usize);
            }
        }
    }
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

/// Does some work with each of some blocks, of about so many edges, each worker with its own piles; the work is told whether one
/// worker does it all. The blocks are kept for later.
pub(crate) fn each_block<'s>(
    machine: &Machine,
    piles: &[Mutex<Piles<'s>>],
    blocks: &mut Vec<Block>,
    edges: u64,
    work: impl Fn(&Block, &mut Piles<'s>, bool) + Sync,
) -> Result<(), EngineError> {
    if edges < SMALL
        && let Some(piles) = piles.first()
    {
        machine.check_stop()?;
        let mut piles = lock(piles);
        for block in blocks.drain(..) {
            work(&block, &mut piles, true);
            piles.give_back(block);
        }
        return Ok(());
    }
    let round = Blocks {
        piles,
        blocks: blocks.drain(..).map(Mutex::new).collect(),
        next: AtomicUsize::new(0),
        alone: machine.workers.count() == 1,
        work,
    };
    go(machine, &round, u64::MAX)
}

/// Blocks that workers share out between them.
struct Blocks<'r, 's, W> {
    piles: &'r [Mutex<Piles<'s>>],
    blocks: Vec<Mutex<Block>>,
    next: AtomicUsize,
    alone: bool,
    work: W,
}

impl<'s, W: Fn(&Block, &mut Piles<'s>, bool) + Sync> Round for Blocks<'_, 's, W> {
    fn part(&self, worker: usize) -> bool {
        let at = self.next.fetch_add(1, Ordering::Relaxed);
        let Some(block) = self.blocks.get(at) else {
            return false;
        };
        let block = std::mem::take(&mut *lock(block));
        let mut piles = lock(&self.piles[worker]);
        (self.work)(&block, &mut piles, self.alone);
        piles.give_back(block);
        true
    }
}
