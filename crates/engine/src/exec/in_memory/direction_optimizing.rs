//! Level after level, for programs whose labels are never lowered: breadth-first search and flooding.
//!
//! A level is done by push (each of its vertices goes to its neighbours) or by pull (each vertex without a label looks for a
//! neighbour in the level, and stops at the first), whichever looks at fewer edges (Beamer, Asanovic and Patterson,
//! Direction-Optimizing Breadth-First Search, SC 2012).
//!
//! With other ranks, each pushes along the arcs into its own vertices, or pulls for these. Then it tells the others which vertices of
//! its own are in the next level. So each rank knows the whole level, and all take the same direction.

use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use graphmill_raw::{AtomicBitmap, AtomicCell, AtomicScalar, lock};
use graphmill_storage::Lease;

use crate::cache::adjacency::{AdjacencyLists, with_words};
use crate::config::KernelChoice;
use crate::context::ExecContext;
use crate::error::{EngineError, made};
use crate::exec::in_memory::bucket_queue::{BlockPool, BucketQueue, VertexBlock};
use crate::exec::in_memory::pass_limit::PassLimit;
use crate::exec::in_memory::peers::{SearchPeers, Told};
use crate::exec::in_memory::round::{
    AHEAD, RoundContext, UpdateBuffer, WordOf, current_bucket, each_block, each_part,
};
use crate::frontier::bitmap::Bits;
use crate::metrics::run::{Mode, PassMetrics};
use crate::program::monotone::{Label, MonotoneProgram};

/// A level is pulled if its edges are one part in 15 of the unexplored ones (alpha of the paper).
const PULL_EDGES: u64 = 15;
/// Levels are pushed again once they shrink and hold one vertex in 18 (beta of the paper).
const PUSH_VERTICES: u64 = 18;
/// Words of a bitmap that a worker takes at a time.
const WORDS_AT_ONCE: usize = 64;

/// Returns the bytes of the budget without the lists and the pool of blocks.
pub(crate) fn memory(vertices: u64) -> u64 {
    2 * AtomicBitmap::bytes(vertices)
}

/// Two bitmaps over the vertices.
struct Bitmaps {
    front: AtomicBitmap,
    next: AtomicBitmap,
    _lease: Lease,
}

/// Propagates the labels of the vertices in `first`, all the same, level by level.
///
/// If `must_pull`, the first level is pulled. `tell` receives the metrics of each level and says whether to end after it.
/// `leave` then takes the vertices of the next level.
pub(crate) fn settle<P: MonotoneProgram, const WORDS: usize>(
    ground: &RoundContext<'_, P>,
    store: &BlockPool,
    (first, mut must_pull): (Vec<VertexBlock>, bool),
    mut tell: impl FnMut(PassMetrics) -> Result<bool, EngineError>,
    leave: impl FnOnce(&[VertexBlock]) -> Result<(), EngineError>,
) -> Result<(), EngineError> {
    let context = ground.context;
    let (vertices, arcs) = (context.batches.vertices(), context.graph.arcs());
    let piles: Vec<_> = (0..context.workers.count())
        .map(|_| Mutex::new(BucketQueue::new(store)))
        .collect();
    let of_first = first.iter().flatten().next();
    let of_first = of_first.map(|v| ground.labels[*v as usize].load());
    let mut bitmaps = None;
    let mut unseen = arcs;
    let edges = first.iter().flatten().map(|v| ground.degree(*v as usize));
    let edges = edges.sum();
    // The bucket of the current level.
    let mut level = 0;
    first_takes(&piles, first);
    let (mut front, label) = Level::of_all(ground, &piles, level, edges, of_first)?;
    let Some(mut label) = label.map(P::Label::of_word) else {
        return leave(&[]);
    };
    let mut limit = PassLimit::new("a search by levels", vertices);
    let mut is_to_end = false;
    loop {
        let Level { own, count, edges } = front;
        if count == 0 || is_to_end {
            return leave(&left(&piles));
        }
        let pulls = match context.options.kernel {
            KernelChoice::Auto => std::mem::take(&mut must_pull) || edges > unseen / PULL_EDGES,
            KernelChoice::Gather => true,
            KernelChoice::Scatter => false,
        };
        let Some(against) = ground.against.filter(|_| pulls) else {
            limit.pass()?;
            unseen = unseen.saturating_sub(edges);
            label = ground.label_of_next(label)?;
            let (along, of_next) = (AtomicU64::new(0), AtomicU64::new(0));
            let word = label.word();
            let work = |block: &VertexBlock, piles: &mut BucketQueue<'_>, alone| {
                let to = level + 1;
                let (gone, found) = push::<P, WORDS>(ground, word, block, to, piles, alone);
                along.fetch_add(gone, Ordering::Relaxed);
                of_next.fetch_add(found, Ordering::Relaxed);
                gone
            };
            if !current_bucket(context, &piles, edges, work)? {
                // The rest is too much for one worker.
                current_bucket(context, &piles, u64::MAX, work)?;
            }
            level += 1;
            piles.iter().for_each(|piles| lock(piles).turn_to(level));
            add_marked(&piles, store);
            (front, _) = Level::of_all(ground, &piles, level, of_next.into_inner(), None)?;
            add_marked(&piles, store);
            let counts = [count, own, along.into_inner()];
            is_to_end = tell(PassMetrics::in_memory(Mode::Push, counts))?;
            continue;
        };
        let bitmaps = made(&mut bitmaps, || Bitmaps::new(ground))?;
        let bits = &bitmaps.front;
        let mut blocks = left(&piles);
        each_block(context, &piles, &mut blocks, count, |block, _, _| {
            for v in block {
                bits.set(*v as usize);
            }
            0
        })?;
        is_to_end = pull_levels(
            ground, against, bitmaps, &mut label, &mut front, &mut limit, &mut tell,
        )?;
        move_level(context, &bitmaps.front, level, &piles)?;
        add_marked(&piles, store);
        // The rest is small.
        front.edges = front.count;
    }
}

/// The vertices of a level.
struct Level {
    /// How many this rank owns.
    own: u64,
    /// How many there are at all ranks.
    count: u64,
    /// Edges that a push of the level walks, about.
    edges: u64,
}

impl Level {
    /// Returns the level that waits in the queues, and adds the vertices of the other ranks.
    ///
    /// `edges` are the edges of this rank's vertices. Also returns the least label that a rank has.
    fn of_all<P: MonotoneProgram>(
        ground: &RoundContext<'_, P>,
        piles: &[Mutex<BucketQueue<'_>>],
        level: u64,
        edges: u64,
        label: Option<WordOf<P>>,
    ) -> Result<(Self, Option<WordOf<P>>), EngineError> {
        let own = waiting(piles);
        let alone = Level {
            own,
            count: own,
            edges,
        };
        let (Some(peers), Some(first)) = (ground.peers, piles.first()) else {
            return Ok((alone, label));
        };
        let blocks = left(piles);
        for v in blocks.iter().flatten() {
            peers.mark(*v as usize);
        }
        first_takes(piles, blocks);
        let mut first = lock(first);
        let of_label = label.map_or(u64::MAX, |label| label.index() as u64);
        let numbers = [own, edges, of_label];
        let all = peers.tell(
            numbers,
            Told::Marked,
            |_| (),
            |v, ()| first.push(level, v as u32),
        )?;
        let [count, edges] = [0, 1].map(|i| all.iter().map(|numbers| numbers[i]).sum());
        let label = all.iter().map(|numbers| numbers[2]).min();
        let label = label.filter(|label| *label != u64::MAX);
        Ok((
            Level { own, count, edges },
            label.map(AtomicScalar::of_index),
        ))
    }
}

/// Pulls level by level until few vertices are reached.
///
/// The vertices of the current level are marked. Returns whether the run has to end.
fn pull_levels<P: MonotoneProgram>(
    ground: &RoundContext<'_, P>,
    against: &AdjacencyLists,
    bitmaps: &mut Bitmaps,
    label: &mut P::Label,
    front: &mut Level,
    limit: &mut PassLimit,
    tell: &mut impl FnMut(PassMetrics) -> Result<bool, EngineError>,
) -> Result<bool, EngineError> {
    let context = ground.context;
    // Words with vertices of this rank.
    let words = match ground.peers.map(SearchPeers::own) {
        Some(own) => own.start / AtomicBitmap::WORD..own.end.div_ceil(AtomicBitmap::WORD),
        None => 0..bitmaps.next.words(),
    };
    loop {
        limit.pass()?;
        *label = ground.label_of_next(*label)?;
        let pull = Pull {
            ground,
            against,
            label: label.word(),
            front: &bitmaps.front,
            next: &bitmaps.next,
            woken: AtomicU64::new(0),
            edges: AtomicU64::new(0),
        };
        let (first, arcs) = (words.start, context.graph.arcs());
        each_part(context, words.len(), WORDS_AT_ONCE, arcs, |part, _| {
            let part = first + part.start..first + part.end;
            // Records of the edges that are pulled along may hold other things than those that are pushed along.
            with_words!(against, |WORDS| pull.words::<WORDS>(part));
        })?;
        let (own, edges) = (pull.woken.into_inner(), pull.edges.into_inner());
        let next = Level {
            own,
            count: tell_bits(ground, &bitmaps.next, &words, own)?,
            edges: 0,
        };
        let before = std::mem::replace(front, next);
        let counts = [before.count, before.own, edges];
        let is_to_end = tell(PassMetrics::in_memory(Mode::Pull, counts))?;
        std::mem::swap(&mut bitmaps.front, &mut bitmaps.next);
        let count = front.count;
        let may_push = context.options.kernel == KernelChoice::Auto || count == 0;
        let is_small = count < before.count && count <= context.batches.vertices() / PUSH_VERTICES;
        if is_to_end || may_push && is_small {
            return Ok(is_to_end);
        }
    }
}

/// Tells the other ranks the vertices of a level that this rank found, in `words`; returns their total.
fn tell_bits<P: MonotoneProgram>(
    ground: &RoundContext<'_, P>,
    bits: &AtomicBitmap,
    words: &Range<usize>,
    own: u64,
) -> Result<u64, EngineError> {
    let Some(peers) = ground.peers else {
        return Ok(own);
    };
    // The other words are of an earlier level.
    for word in (0..words.start).chain(words.end..bits.words()) {
        bits.take_word(word);
    }
    let all = peers.tell([own], Told::Own(bits, own), |_| (), |v, ()| bits.set(v))?;
    Ok(all.as_flattened().iter().sum())
}

/// Takes the vertices of the current level out of their queues.
fn left(piles: &[Mutex<BucketQueue<'_>>]) -> Vec<VertexBlock> {
    let mut blocks = Vec::new();
    for piles in piles {
        lock(piles).move_to(&mut blocks);
    }
    blocks
}

/// Returns the number of vertices in the current level.
fn waiting(piles: &[Mutex<BucketQueue<'_>>]) -> u64 {
    piles.iter().map(|piles| lock(piles).waiting() as u64).sum()
}

/// Gives blocks of the current level to the first worker; others steal their share.
fn first_takes(piles: &[Mutex<BucketQueue<'_>>], mut blocks: Vec<VertexBlock>) {
    if let Some(first) = piles.first() {
        lock(first).take_over(&mut blocks);
    }
}

/// Adds the vertices to the current level for which there was no block.
fn add_marked(piles: &[Mutex<BucketQueue<'_>>], store: &BlockPool) {
    let marked = || Some(store.marked()).filter(|marked| !marked.is_empty());
    std::iter::from_fn(marked).for_each(|marked| first_takes(piles, marked));
}

impl Bitmaps {
    fn new<P: MonotoneProgram>(ground: &RoundContext<'_, P>) -> Result<Self, EngineError> {
        let vertices = ground.context.batches.vertices();
        Ok(Bitmaps {
            _lease: ground.context.budget.lease("levels", memory(vertices))?,
            front: AtomicBitmap::new(vertices),
            next: AtomicBitmap::new(vertices),
        })
    }
}

/// Sends a label from each vertex of a block to its neighbours; those it lowers join the next level.
///
/// Returns the number of edges, and the number of edges of the vertices that joined.
#[inline(always)]
fn push<P: MonotoneProgram, const WORDS: usize>(
    ground: &RoundContext<'_, P>,
    label: WordOf<P>,
    block: &VertexBlock,
    next: u64,
    piles: &mut BucketQueue<'_>,
    alone: bool,
) -> (u64, u64) {
    let mut found = UpdateBuffer::new(label);
    let (mut gone, mut edges) = (0, 0);
    let mut pile_up = |found: &mut UpdateBuffer<_>| {
        for &(_, v) in found.take() {
            piles.push(next, v);
            edges += ground.degree(v as usize);
        }
    };
    for vertices in block.chunks(AHEAD) {
        ground.prefetch::<WORDS>(vertices);
        for &v in vertices {
            gone += ground.lower::<WORDS>(v, |_| label, alone, &mut found, &mut pile_up);
        }
    }
    pile_up(&mut found);
    (gone, edges)
}

/// Each vertex that has no label yet looks for a neighbour in the level.
struct Pull<'r, P: MonotoneProgram> {
    ground: &'r RoundContext<'r, P>,
    against: &'r AdjacencyLists,
    /// Of the next level.
    label: WordOf<P>,
    front: &'r AtomicBitmap,
    next: &'r AtomicBitmap,
    woken: AtomicU64,
    edges: AtomicU64,
}

impl<P: MonotoneProgram> Pull<'_, P> {
    /// Goes through some words of the bitmap.
    fn words<const WORDS: usize>(&self, words: Range<usize>) {
        let labels = self.ground.labels;
        let is_called = self.front.snapshot();
        let (mut woken, mut edges) = (0, 0);
        let mut of_next = self.waiting::<WORDS>(words.start);
        for word in words.clone() {
            let mut waiting = of_next;
            if word + 1 < words.end {
                of_next = self.waiting::<WORDS>(word + 1);
            }
            let mut bits = 0;
            while waiting != 0 {
                let bit = waiting.trailing_zeros() as usize;
                waiting &= waiting - 1;
                let v = word * AtomicBitmap::WORD + bit;
                for record in self.against.of::<WORDS>(v) {
                    edges += 1;
                    if is_called(record[0] as usize) {
                        if let Some(at) = labels.get(v) {
                            at.store(self.label);
                        }
                        bits |= 1 << bit;
                        break;
                    }
                }
            }
            woken += u64::from(u64::count_ones(bits));
            // Words are a worker's own, so there is nothing to add to.
            self.next.set_word(word, bits);
        }
        self.woken.fetch_add(woken, Ordering::Relaxed);
        self.edges.fetch_add(edges, Ordering::Relaxed);
    }

    /// Returns a bit for each vertex of a word without a label, and prefetches their lists.
    ///
    /// It has no branch on the labels, which would be mispredicted.
    #[inline(always)]
    fn waiting<const WORDS: usize>(&self, word: usize) -> u64 {
        let first = word * AtomicBitmap::WORD;
        let labels = self.ground.labels.get(first..).unwrap_or(&[]);
        let mut waiting = 0;
        for (bit, at) in labels.iter().take(AtomicBitmap::WORD).enumerate() {
            waiting |= u64::from(at.load() > self.label) << bit;
        }
        let mut left = waiting;
        while left != 0 {
            let v = first + left.trailing_zeros() as usize;
            self.against.prefetch_list::<WORDS>(v);
            left &= left - 1;
        }
        waiting
    }
}

/// Moves a level from a bitmap, which it empties, to the bucket queues of all workers.
fn move_level(
    context: &ExecContext,
    level_bits: &AtomicBitmap,
    level: u64,
    piles: &[Mutex<BucketQueue<'_>>],
) -> Result<(), EngineError> {
    let (words, vertices) = (level_bits.words(), context.batches.vertices());
    each_part(context, words, WORDS_AT_ONCE, vertices, |words, worker| {
        let mut piles = lock(&piles[worker]);
        for word in words {
            let first = word * AtomicBitmap::WORD;
            for bit in Bits(level_bits.take_word(word)) {
                piles.push(level, (first + bit) as u32);
            }
        }
    })
}
