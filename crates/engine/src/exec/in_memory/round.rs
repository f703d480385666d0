//! One round of work over lists, done by all workers, or by the calling thread alone when it is small.

use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use graphmill_raw::{AtomicCell, AtomicScalar, WorkPool, WorkShare, lock, prefetch};
use graphmill_storage::{JobError, Step, Worker};

use crate::cache::adjacency::AdjacencyLists;
use crate::context::{ExecContext, run};
use crate::error::EngineError;
use crate::exec::in_memory::bucket_queue::{BucketQueue, VertexBlock};
use crate::exec::in_memory::peers::SearchPeers;
use crate::program::current_call::catch_at;
use crate::program::monotone::{Label, MonotoneProgram};
use crate::value::EdgeValue;

/// The number of a label of a program.
pub(crate) type WordOf<P> = <<P as MonotoneProgram>::Label as Label>::Word;
/// The atomic form of such a number.
pub(crate) type Atomic<P> = <WordOf<P> as AtomicScalar>::Atomic;

/// Edges, about, that are not worth waking another thread for.
const SMALL: u64 = 4096;

/// Maximum number of vertices of the current bucket that one worker processes alone.
const ALONE: usize = 1024;

/// Blocks that a worker processes before it shares work and checks for cancellation.
const BLOCKS_AT_ONCE: usize = 64;

/// The context that all rounds of a program share.
pub(crate) struct RoundContext<'g, P: MonotoneProgram> {
    pub(crate) context: &'g ExecContext<'g>,
    pub(crate) program: &'g P,
    /// Along the way that labels travel.
    pub(crate) lists: &'g AdjacencyLists,
    /// Against it.
    pub(crate) against: Option<&'g AdjacencyLists>,
    /// By vertex.
    pub(crate) labels: &'g [Atomic<P>],
    /// `None` if there are no other ranks.
    pub(crate) peers: Option<&'g SearchPeers<'g>>,
}

/// Vertices whose lists are on their way at a time.
pub(crate) const AHEAD: usize = 16;
/// Edges of each of them whose labels are prefetched before any is read.
const FIRST_EDGES: usize = 4;
/// Labels of at most this many bytes fit in a core's cache and need no prefetch.
const NEAR_BYTES: usize = 512 << 10;
/// Edges of a long list whose labels are on their way.
const EDGES_AHEAD: usize = 16;

impl<P: MonotoneProgram> RoundContext<'_, P> {
    /// Returns the label of the level after that of `label`.
    pub(crate) fn label_of_next(&self, label: P::Label) -> Result<P::Label, EngineError> {
        let word = label.word();
        let sender = || self.labels.iter().position(|at| at.load() == word);
        let on_edge = || self.program.on_edge(label, P::Edge::ONE);
        catch_at(|| sender().map(|v| v as u64), on_edge)
    }

    /// Number of edges of a vertex of this rank, or an estimate.
    #[inline(always)]
    pub(crate) fn degree(&self, v: usize) -> u64 {
        // With other ranks a vertex has edges in the lists of all, but its own rank has all edges into it.
        match (self.peers, self.against) {
            (Some(_), Some(against)) => against.degree(v),
            _ => self.lists.degree(v),
        }
    }

    /// Returns true if a vertex is of this rank; marks it if there are other ranks to tell of it.
    #[inline(always)]
    pub(crate) fn mark(&self, v: u32) -> bool {
        let owns = self.owns(v);
        if let Some(peers) = self.peers.filter(|_| owns) {
            peers.mark(v as usize);
        }
        owns
    }

    /// True if this rank owns a vertex.
    #[inline(always)]
    pub(crate) fn owns(&self, v: u32) -> bool {
        (self.peers).is_none_or(|peers| peers.own().contains(&(v as usize)))
    }

    /// Prefetches the data of the edges of a few vertices.
    ///
    /// First come the beginnings of the lists, then the lists, then the labels they lead to unless these are few.
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
        if size_of_val(labels) <= NEAR_BYTES {
            return;
        }
        for v in vertices {
            for record in lists.from::<WORDS, FIRST_EDGES>(*v as usize) {
                prefetch(labels, record[0] as usize);
            }
        }
    }

    /// Lowers the labels of a vertex's neighbours to the labels that `on_edge` makes on the edges to them.
    ///
    /// `pile_up` receives the updates when the buffer is full. Returns the number of edges.
    #[inline(always)]
    pub(crate) fn lower<const WORDS: usize>(
        &self,
        v: u32,
        along: impl Fn(&[u32; WORDS]) -> WordOf<P>,
        alone: bool,
        found: &mut UpdateBuffer<WordOf<P>>,
        mut pile_up: impl FnMut(&mut UpdateBuffer<WordOf<P>>),
    ) -> u64 {
        let labels = self.labels;
        let list = self.lists.of::<WORDS>(v as usize);
        let one = |record: &[u32; WORDS], found: &mut UpdateBuffer<_>| {
            if let Some(at) = labels.get(record[0] as usize) {
                let word = along(record);
                // Where much is alike, few labels are lowered, and a branch knows that they are not.
                match alone {
                    true => found.note((word, record[0]), at.lower(word, alone)),
                    false if at.lower(word, alone) => found.note((word, record[0]), true),
                    false => (),
                }
            }
        };
        if found.is_full() {
            pile_up(found);
        }
        if list.len() <= EDGES_AHEAD {
            list.iter().for_each(|record| one(record, found));
            return list.len() as u64;
        }
        for (i, record) in list.iter().enumerate() {
            if let Some(later) = list.get(i + EDGES_AHEAD) {
                prefetch(labels, later[0] as usize);
            }
            one(record, found);
            if found.is_full() {
                pile_up(found);
            }
        }
        list.len() as u64
    }
}

/// Room of [`UpdateBuffer`].
const FOUND: usize = 128;

/// A buffer of lowered vertices and their labels, before they enter the queues.
///
/// It has no branch on whether an edge lowers a label, which would be mispredicted.
pub(crate) struct UpdateBuffer<T> {
    entries: [(T, u32); FOUND],
    count: usize,
}

impl<T: Copy> UpdateBuffer<T> {
    pub(crate) fn new(none: T) -> Self {
        UpdateBuffer {
            entries: [(none, 0); FOUND],
            count: 0,
        }
    }
    /// True if a short list may find more than there is room for.
    #[inline(always)]
    fn is_full(&self) -> bool {
        self.count > FOUND - EDGES_AHEAD
    }
    #[inline(always)]
    fn note(&mut self, entry: (T, u32), is_found: bool) {
        self.entries[self.count % FOUND] = entry;
        self.count += usize::from(is_found);
    }
    /// Takes all out.
    #[inline(always)]
    pub(crate) fn take(&mut self) -> &[(T, u32)] {
        let count = std::mem::take(&mut self.count);
        self.entries.get(..count).unwrap_or(&self.entries)
    }
}

/// Runs a round of about `edges` edges; `part(worker)` does a part, if there is one.
fn run_round(
    context: &ExecContext,
    edges: u64,
    part: impl Fn(usize) -> Step + Sync,
) -> Result<(), EngineError> {
    context.ranks.check_stop()?;
    if edges < SMALL {
        while part(0) == Step::Worked {
            context.ranks.check_stop()?;
        }
        return Ok(());
    }
    let step = |worker: &mut Worker| -> Result<Step, JobError> {
        context.ranks.check_stop()?;
        Ok(part(worker.index))
    };
    run(context, &step)
}

/// Runs `work(part, worker)` on parts of `0..end`, `at_once` numbers each, over about `edges` edges.
pub(crate) fn each_part(
    context: &ExecContext,
    end: usize,
    at_once: usize,
    edges: u64,
    work: impl Fn(Range<usize>, usize) + Sync,
) -> Result<(), EngineError> {
    let next = AtomicUsize::new(0);
    run_round(context, edges, |worker| {
        let from = next.fetch_add(at_once, Ordering::Relaxed);
        if from >= end {
            return Step::Finished;
        }
        work(from..end.min(from + at_once), worker);
        Step::Worked
    })
}

/// Runs `work` on each block, over about `edges` edges in total; each worker has its own queue.
///
/// The work learns whether one worker does it all, and returns the number of edges it walked, which counts in
/// [`current_bucket`]. The blocks are reused later.
pub(crate) fn each_block<'s>(
    context: &ExecContext,
    piles: &[Mutex<BucketQueue<'s>>],
    blocks: &mut Vec<VertexBlock>,
    edges: u64,
    work: impl Fn(&VertexBlock, &mut BucketQueue<'s>, bool) -> u64 + Sync,
) -> Result<(), EngineError> {
    let round = BlockSource {
        piles,
        shares: WorkPool::new(std::mem::take(blocks), 0),
        own: false,
        alone: edges < SMALL || piles.len() == 1,
        work,
    };
    run_round(context, edges, |worker| round.part(worker))
}

/// As [`each_block`], over the blocks of the current bucket and those that the work adds to it.
///
/// Returns true if the bucket is done. One worker alone may leave some, if the work grows too large for one. Each worker takes
/// its own blocks first, because their vertices are in its cache.
pub(crate) fn current_bucket<'s>(
    context: &ExecContext,
    piles: &[Mutex<BucketQueue<'s>>],
    edges: u64,
    work: impl Fn(&VertexBlock, &mut BucketQueue<'s>, bool) -> u64 + Sync,
) -> Result<bool, EngineError> {
    let waiting: usize = piles.iter().map(|piles| lock(piles).waiting()).sum();
    let alone = edges < SMALL && waiting <= ALONE || piles.len() == 1;
    if alone && let Some((first, others)) = piles.split_first() {
        return alone_with(context, &mut lock(first), others, work);
    }
    let is_busy = |piles: &&Mutex<BucketQueue>| lock(piles).waiting() > 0;
    let busy = piles.iter().filter(is_busy).count();
    let round = BlockSource {
        piles,
        shares: WorkPool::new(Vec::new(), busy),
        own: true,
        alone: false,
        work,
    };
    run_round(context, SMALL, |worker| round.part(worker)).map(|()| true)
}

/// As [`current_bucket`], on the calling thread while the work is small.
fn alone_with<'s>(
    context: &ExecContext,
    piles: &mut BucketQueue<'s>,
    others: &[Mutex<BucketQueue<'s>>],
    work: impl Fn(&VertexBlock, &mut BucketQueue<'s>, bool) -> u64,
) -> Result<bool, EngineError> {
    let mut blocks = Vec::new();
    for others in others {
        lock(others).move_to(&mut blocks);
    }
    piles.take_over(&mut blocks);
    let (mut edges, mut done) = (0, 0);
    while let Some(block) = piles.pop() {
        if done % BLOCKS_AT_ONCE == 0 {
            context.ranks.check_stop()?;
            // Blocks of few edges, however many come one after the other, are nothing to share.
            edges = 0;
        }
        done += 1;
        edges += work(&block, piles, true);
        piles.give_back(block);
        if !others.is_empty() && (edges > 2 * SMALL || piles.waiting() > ALONE) {
            return Ok(piles.waiting() == 0);
        }
    }
    Ok(true)
}

/// Blocks that workers share out between them.
struct BlockSource<'r, 's, W> {
    piles: &'r [Mutex<BucketQueue<'s>>],
    /// Unclaimed blocks, and the number of workers that have a block, or blocks of their own.
    shares: WorkPool<VertexBlock>,
    /// True if the blocks belong to the current bucket; blocks that the work adds count then too.
    own: bool,
    alone: bool,
    work: W,
}

impl<'s, W: Fn(&VertexBlock, &mut BucketQueue<'s>, bool) -> u64> BlockSource<'_, 's, W> {
    /// Shares blocks if another worker looks for some in vain; whether it did.
    fn share(&self, piles: &mut BucketQueue) -> bool {
        let is_wanted = self.shares.active() < self.piles.len();
        is_wanted && self.shares.offer(|blocks| piles.halve(blocks))
    }

    fn part(&self, worker: usize) -> Step {
        let mut piles = lock(&self.piles[worker]);
        let own = self.own.then(|| piles.pop()).flatten();
        let mut block = match own {
            Some(block) => block,
            None => match self.shares.claim() {
                WorkShare::Part(block) => block,
                WorkShare::NotYet => return Step::Waiting,
                WorkShare::NoMore => return Step::Finished,
            },
        };
        for blocks in 1.. {
            (self.work)(&block, &mut piles, self.alone);
            piles.give_back(block);
            if !self.own || self.share(&mut piles) || blocks == BLOCKS_AT_ONCE {
                break;
            }
            match piles.pop() {
                Some(own) => block = own,
                None => break,
            }
        }
        if !self.own || piles.waiting() == 0 {
            self.shares.finish();
        }
        Step::Worked
    }
}
