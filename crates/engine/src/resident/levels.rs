//! Level after level, for programs whose labels are never lowered: breadth-first search and flooding.
//!
//! A level is done by push (each of its vertices goes to its neighbours) or by pull (each vertex without a label looks for a
//! neighbour in the level, and stops at the first), whichever looks at fewer edges (Beamer, Asanovic and Patterson,
//! Direction-Optimizing Breadth-First Search, SC 2012).

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use graphmill_raw::{AtomicWord, Marks};
use graphmill_storage::{Lease, Step};

use super::lists::{Lists, with_words};
use super::pile::{Block, Piles, Store};
use super::round::{AHEAD, Found, Ground, Round, WordOf, bucket_at_hand, each_block, go};
use crate::active::lock;
use crate::engine::superstep;
use crate::error::EngineError;
use crate::metrics::{Mode, Superstep};
use crate::program::{EdgeValue, Label, LabelProgram};
use crate::settings::KernelChoice;
use crate::settle::PassLimit;

/// A level is pulled when the edges of its vertices are one part in so many of those not yet looked at (alpha of the paper).
const PULL_EDGES: u64 = 15;
/// Levels are pushed again when they shrink and hold one vertex in so many (beta of the paper).
const PUSH_VERTICES: u64 = 18;
/// Words of a bitmap that a worker takes at a time.
const WORDS_AT_ONCE: usize = 64;

/// Bytes of the budget besides the lists and the store of blocks.
pub(crate) fn memory(vertices: u64) -> u64 {
    2 * Marks::bytes(vertices)
}

/// Two bitmaps over the vertices.
struct Bitmaps {
    front: Marks,
    next: Marks,
    _lease: Lease,
}

/// Spreads the labels of the vertices in `first`, all the same, level by level. `tell` hears of each level, and says whether to end
/// after it; `leave` then takes the vertices of the next level.
pub(crate) fn settle<P: LabelProgram, const WORDS: usize>(
    ground: &Ground<'_, P>,
    store: &Store,
    first: Vec<Block>,
    mut tell: impl FnMut(Superstep) -> Result<bool, EngineError>,
    mut leave: impl FnMut(&[Block]) -> Result<(), EngineError>,
) -> Result<(), EngineError> {
    let machine = ground.machine;
    let (vertices, arcs) = (machine.batches.vertices(), machine.graph.arcs());
    let piles: Vec<_> = (0..machine.workers.count())
        .map(|_| Mutex::new(Piles::new(store)))
        .collect();
    let of_first = first.iter().flatten().next();
    let Some(mut label) = of_first.map(|v| Label::of_word(ground.labels[*v as usize].load()))
    else {
        return leave(&first);
    };
    let mut bitmaps = None;
    let mut unseen = arcs;
    let mut edges = degrees(ground.lists, &first);
    // The bucket of the level at hand.
    let mut level = 0;
    first_takes(&piles, first);
    let mut limit = PassLimit::new("a search by levels", vertices);
    let mut is_to_end = false;
    loop {
        let count = waiting(&piles);
        if count == 0 || is_to_end {
            return leave(&left(&piles));
        }
        let pulls = match machine.kernel {
            KernelChoice::Auto => edges > unseen / PULL_EDGES,
            KernelChoice::Gather => true,
            KernelChoice::Scatter => false,
        };
        let Some(against) = ground.against.filter(|_| pulls) else {
            limit.pass()?;
            unseen = unseen.saturating_sub(edges);
            label = ground.program.along(label, P::Edge::ONE);
            let (along, of_next) = (AtomicU64::new(0), AtomicU64::new(0));
            let word = label.word();
            let work = |block: &Block, piles: &mut Piles<'_>, alone| {
                let to = level + 1;
                let (gone, found) = push::<P, WORDS>(ground, word, block, to, piles, alone);
                along.fetch_add(gone, Ordering::Relaxed);
                of_next.fetch_add(found, Ordering::Relaxed);
                gone
            };
            if !bucket_at_hand(machine, &piles, edges, work)? {
                // What is left is more than one worker's.
                bucket_at_hand(machine, &piles, u64::MAX, work)?;
            }
            is_to_end = tell(Superstep {
                active: count,
                messages: count,
                edges: along.into_inner(),
                ..superstep(Mode::Push)
            })?;
            edges = of_next.into_inner();
            level += 1;
            piles.iter().for_each(|piles| lock(piles).turn_to(level));
            add_marked(&piles, store);
            continue;
        };
        if bitmaps.is_none() {
            bitmaps = Some(Bitmaps::new(ground)?);
        }
        let Some(bitmaps) = &mut bitmaps else {
            continue;
        };
        let front = &bitmaps.front;
        let mut blocks = left(&piles);
        each_block(machine, &piles, &mut blocks, count, |block, _, _| {
            for v in block {
                front.mark(*v as usize);
            }
            0
        })?;
        let mut awake = count;
        loop {
            limit.pass()?;
            label = ground.program.along(label, P::Edge::ONE);
            let pull = Pull {
                ground,
                against,
                label: label.word(),
                front: &bitmaps.front,
                next: &bitmaps.next,
                at: AtomicUsize::new(0),
                woken: AtomicU64::new(0),
                edges: AtomicU64::new(0),
            };
            go(machine, &pull, arcs)?;
            is_to_end = tell(Superstep {
                active: awake,
                messages: awake,
                edges: pull.edges.into_inner(),
                ..superstep(Mode::Pull)
            })?;
            let before = std::mem::replace(&mut awake, pull.woken.into_inner());
            std::mem::swap(&mut bitmaps.front, &mut bitmaps.next);
            let may_push = machine.kernel == KernelChoice::Auto || awake == 0;
            let is_small = awake < before && awake <= vertices / PUSH_VERTICES;
            if is_to_end || may_push && is_small {
                break;
            }
        }
        let to_piles = ToPiles {
            bits: &bitmaps.front,
            at: AtomicUsize::new(0),
            level,
            piles: &piles,
        };
        go(machine, &to_piles, vertices)?;
        add_marked(&piles, store);
        // What is left is little.
        edges = awake;
    }
}

fn degrees(lists: &Lists, blocks: &[Block]) -> u64 {
    blocks
        .iter()
        .flatten()
        .map(|v| lists.degree(*v as usize))
        .sum()
}

/// Removes and returns the waiting vertices of the current level.
fn left(piles: &[Mutex<Piles<'_>>]) -> Vec<Block> {
    let mut blocks = Vec::new();
    for piles in piles {
        lock(piles).move_to(&mut blocks);
    }
    blocks
}

/// Vertices of the level at hand.
fn waiting(piles: &[Mutex<Piles<'_>>]) -> u64 {
    piles.iter().map(|piles| lock(piles).waiting() as u64).sum()
}

/// Gives blocks of the level at hand to the first worker; others take their share.
fn first_takes(piles: &[Mutex<Piles<'_>>], mut blocks: Vec<Block>) {
    if let Some(first) = piles.first() {
        lock(first).take_over(&mut blocks);
    }
}

/// Adds those vertices to the level at hand for which there was no block.
fn add_marked(piles: &[Mutex<Piles<'_>>], store: &Store) {
    loop {
        match store.marked() {
            marked if marked.is_empty() => return,
            marked => first_takes(piles, marked),
        }
    }
}

impl Bitmaps {
    fn new<P: LabelProgram>(ground: &Ground<'_, P>) -> Result<Self, EngineError> {
        let vertices = ground.machine.batches.vertices();
        Ok(Bitmaps {
            _lease: ground.machine.budget.lease("levels", memory(vertices))?,
            front: Marks::new(vertices),
            next: Marks::new(vertices),
        })
    }
}

/// Each vertex of a block goes to its neighbours, who take this label and are piled up for the next level if they had a greater one;
/// how many edges it went along, and how many these have.
#[inline(always)]
fn push<P: LabelProgram, const WORDS: usize>(
    ground: &Ground<'_, P>,
    label: WordOf<P>,
    block: &Block,
    next: u64,
    piles: &mut Piles<'_>,
    alone: bool,
) -> (u64, u64) {
    let mut found = Found::new(label);
    let (mut gone, mut edges) = (0, 0);
    let mut pile_up = |found: &mut Found<_>| {
        for &(_, v) in found.take() {
            piles.push(next, v);
            edges += ground.lists.degree(v as usize);
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
struct Pull<'r, P: LabelProgram> {
    ground: &'r Ground<'r, P>,
    against: &'r Lists,
    /// Of the next level.
    label: WordOf<P>,
    front: &'r Marks,
    next: &'r Marks,
    /// The first word that nobody has taken yet.
    at: AtomicUsize,
    woken: AtomicU64,
    edges: AtomicU64,
}

impl<P: LabelProgram> Round for Pull<'_, P> {
    fn part(&self, _: usize) -> Step {
        // Records of the edges that are pulled along may hold other things than those that are pushed along.
        with_words!(self.against, |WORDS| self.words::<WORDS>())
    }
}

impl<P: LabelProgram> Pull<'_, P> {
    /// Some words of the bitmap, if there are any left.
    fn words<const WORDS: usize>(&self) -> Step {
        let from = self.at.fetch_add(WORDS_AT_ONCE, Ordering::Relaxed);
        let words = self.next.words();
        if from >= words {
            return Step::Finished;
        }
        let labels = self.ground.labels;
        let is_called = self.front.look();
        let (mut woken, mut edges) = (0, 0);
        let to = words.min(from + WORDS_AT_ONCE);
        let mut of_next = self.waiting::<WORDS>(from);
        for word in from..to {
            let mut waiting = of_next;
            if word + 1 < to {
                of_next = self.waiting::<WORDS>(word + 1);
            }
            let mut bits = 0;
            while waiting != 0 {
                let bit = waiting.trailing_zeros() as usize;
                waiting &= waiting - 1;
                let v = word * Marks::WORD + bit;
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
            self.next.set(word, bits);
        }
        self.woken.fetch_add(woken, Ordering::Relaxed);
        self.edges.fetch_add(edges, Ordering::Relaxed);
        Step::Worked
    }

    /// A bit for each vertex of a word that has no label yet, told without a branch on what nobody foresees. Their lists are on their way
    /// into the cache then.
    #[inline(always)]
    fn waiting<const WORDS: usize>(&self, word: usize) -> u64 {
        let first = word * Marks::WORD;
        let labels = self.ground.labels.get(first..).unwrap_or(&[]);
        let mut waiting = 0;
        for (bit, at) in labels.iter().take(Marks::WORD).enumerate() {
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

/// A level from a bitmap, which is empty then, to piles.
struct ToPiles<'r, 's> {
    bits: &'r Marks,
    at: AtomicUsize,
    /// Its bucket.
    level: u64,
    piles: &'r [Mutex<Piles<'s>>],
}

impl Round for ToPiles<'_, '_> {
    fn part(&self, worker: usize) -> Step {
        let from = self.at.fetch_add(WORDS_AT_ONCE, Ordering::Relaxed);
        let words = self.bits.words();
        if from >= words {
            return Step::Finished;
        }
        let mut piles = lock(&self.piles[worker]);
        for word in from..words.min(from + WORDS_AT_ONCE) {
            let mut bits = self.bits.take(word);
            while bits != 0 {
                let v = (word * Marks::WORD) as u32 + bits.trailing_zeros();
                piles.push(self.level, v);
                bits &= bits - 1;
            }
        }
        Step::Worked
    }
}
