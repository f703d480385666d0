//! Piles of vertices that wait for their turn, without a lock: each worker has piles of its own, one a bucket.
//!
//! A pile is made of blocks, which are also what workers share out between them. There is a fixed number of blocks, so that
//! piles keep to the budget; a vertex for which there is none is marked in a bitmap instead and found there.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use graphmill_storage::{Budget, Lease};

use crate::error::EngineError;

/// Vertices of a block.
pub(crate) const BLOCK: usize = 512;
/// Buckets that a worker tells apart, from the one at hand on; what comes later is looked at again when its time has come.
const BUCKETS: usize = 1024;

/// Blocks of marked vertices that are made at a time, besides those of the store.
const MARKED_AT_ONCE: usize = 64;

/// Some vertices.
pub(crate) type Block = Vec<u32>;

/// What all workers take their blocks from.
pub(crate) struct Store {
    left: AtomicUsize,
    /// One bit a vertex.
    overflow: Vec<AtomicU64>,
    overflowed: AtomicUsize,
    _lease: Lease,
}

impl Store {
    fn block_bytes() -> u64 {
        (BLOCK * size_of::<u32>() + size_of::<Block>()) as u64
    }
    /// Bytes of the budget for a graph of so many vertices: a block for each bucket of each worker, and room for twice as many
    /// entries as there are vertices.
    pub(crate) fn memory(vertices: u64, workers: usize) -> u64 {
        let blocks = 2 * vertices.div_ceil(BLOCK as u64) + (workers * BUCKETS) as u64;
        blocks * Self::block_bytes() + vertices.div_ceil(64) * 8
    }

    pub(crate) fn new(budget: &Budget, vertices: u64, workers: usize) -> Result<Self, EngineError> {
        let bytes = Self::memory(vertices, workers);
        let words = vertices.div_ceil(64);
        let lease = budget.lease("vertices that wait", bytes)?;
        Ok(Store {
            left: AtomicUsize::new(((bytes - words * 8) / Self::block_bytes()) as usize),
            overflow: (0..words).map(|_| AtomicU64::new(0)).collect(),
            overflowed: AtomicUsize::new(0),
            _lease: lease,
        })
    }

    fn take(&self) -> Option<Block> {
        let left = &self.left;
        left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
            left.checked_sub(1)
        })
        .ok()
        .map(|_| Vec::with_capacity(BLOCK))
    }

    fn mark(&self, v: u32) {
        self.overflow[v as usize / 64].fetch_or(1 << (v % 64), Ordering::Relaxed);
        self.overflowed.fetch_add(1, Ordering::Relaxed);
    }

    /// Takes marked vertices out, some blocks of them at most; none when none are left.
    pub(crate) fn marked(&self) -> Vec<Block> {
        let mut blocks = Vec::new();
        if self.overflowed.load(Ordering::Relaxed) == 0 {
            return blocks;
        }
        let mut block = Vec::new();
        for (w, word) in self.overflow.iter().enumerate() {
            let mut bits = word.swap(0, Ordering::Relaxed);
            while bits != 0 {
                block.push((w * 64) as u32 + bits.trailing_zeros());
                bits &= bits - 1;
            }
            if block.len() + 64 > BLOCK {
                blocks.push(std::mem::take(&mut block));
                if blocks.len() == MARKED_AT_ONCE {
                    return blocks;
                }
            }
        }
        self.overflowed.store(0, Ordering::Relaxed);
        if !block.is_empty() {
            blocks.push(block);
        }
        blocks
    }
}

/// The piles of one worker, by bucket.
pub(crate) struct Piles<'s> {
    store: &'s Store,
    /// From bucket `base` on; of each pile the last block may have room.
    piles: VecDeque<Vec<Block>>,
    base: u64,
    free: Vec<Block>,
}

impl<'s> Piles<'s> {
    pub(crate) fn new(store: &'s Store) -> Self {
        Piles {
            store,
            piles: VecDeque::new(),
            base: 0,
            free: Vec::new(),
        }
    }

    /// Adds a vertex to the pile of a bucket.
    #[inline(always)]
    pub(crate) fn push(&mut self, bucket: u64, v: u32) {
        let at = (bucket.saturating_sub(self.base) as usize).min(BUCKETS - 1);
        match self.piles.get_mut(at).and_then(|pile| pile.last_mut()) {
            Some(block) if block.len() < BLOCK => block.push(v),
            _ => self.push_block(at, v),
        }
    }

    #[cold]
    fn push_block(&mut self, at: usize, v: u32) {
        while self.piles.len() <= at {
            self.piles.push_back(Vec::new());
        }
        match self.free.pop().or_else(|| self.store.take()) {
            Some(mut block) => {
                block.push(v);
                self.piles[at].push(block);
            }
            None => self.store.mark(v),
        }
    }

    /// Takes a block of the first bucket.
    pub(crate) fn pop(&mut self) -> Option<Block> {
        self.piles.front_mut()?.pop()
    }
    /// Blocks in the pile of the first bucket.
    pub(crate) fn ready(&self) -> usize {
        self.piles.front().map_or(0, Vec::len)
    }
    /// Keeps an empty block for later.
    pub(crate) fn give_back(&mut self, mut block: Block) {
        block.clear();
        self.free.push(block);
    }

    /// The first bucket that is not empty.
    pub(crate) fn first(&self) -> Option<u64> {
        let at = self.piles.iter().position(|pile| !pile.is_empty())?;
        Some(self.base + at as u64)
    }

    /// Makes `bucket`, before which nothing waits, the first one, and takes its pile.
    pub(crate) fn turn_to(&mut self, bucket: u64) -> Vec<Block> {
        let passed = (bucket - self.base).min(self.piles.len() as u64) as usize;
        self.piles.drain(..passed);
        self.base = bucket;
        self.piles
            .front_mut()
            .map(std::mem::take)
            .unwrap_or_default()
    }
}

/// Blocks that workers share out between them.
#[derive(Default)]
pub(crate) struct Shared {
    blocks: Vec<std::sync::Mutex<Block>>,
    next: AtomicUsize,
}

impl Shared {
    pub(crate) fn new(blocks: Vec<Block>) -> Self {
        Shared {
            blocks: blocks.into_iter().map(std::sync::Mutex::new).collect(),
            next: AtomicUsize::new(0),
        }
    }
    /// A block that nobody has taken yet.
    pub(crate) fn take(&self) -> Option<Block> {
        let at = self.next.fetch_add(1, Ordering::Relaxed);
        self.blocks
            .get(at)
            .map(|block| std::mem::take(&mut *crate::active::lock(block)))
    }
    /// Number of vertices in all blocks, before any was taken.
    pub(crate) fn len(&self) -> u64 {
        self.blocks
            .iter()
            .map(|block| crate::active::lock(block).len() as u64)
            .sum()
    }
}
