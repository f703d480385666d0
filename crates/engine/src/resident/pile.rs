//! Piles of vertices that wait for their turn, without a lock: each worker has piles of its own, one a bucket.
//!
//! A pile is made of blocks, which are also what workers share out between them. There is a fixed number of blocks, so that
//! piles keep to the budget; a vertex for which there is none is marked in a bitmap instead and found there.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use graphmill_storage::{Budget, Lease};

use crate::error::EngineError;

/// Vertices of a block.
pub(crate) const BLOCK: usize = 128;
/// Buckets that a worker tells apart, from the one at hand on; what comes later is looked at again when its time has come.
const BUCKETS: usize = 1024;

/// Blocks of marked vertices that are made at a time, besides those of the store.
const MARKED_AT_ONCE: usize = 256;

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

/// Vertices of one bucket.
#[derive(Default)]
struct Pile {
    full: Vec<Block>,
    /// The block with room.
    open: Block,
}

impl Pile {
    /// Adds a vertex if the open block has room.
    #[inline(always)]
    fn push(&mut self, v: u32) -> bool {
        let has_room = self.open.len() < self.open.capacity();
        if has_room {
            self.open.push(v);
        }
        has_room
    }
    fn is_empty(&self) -> bool {
        self.full.is_empty() && self.open.is_empty()
    }
    fn pop(&mut self) -> Option<Block> {
        let open = || (!self.open.is_empty()).then(|| std::mem::take(&mut self.open));
        self.full.pop().or_else(open)
    }
}

/// The piles of one worker, by bucket.
pub(crate) struct Piles<'s> {
    store: &'s Store,
    /// The bucket at hand.
    base: u64,
    now: Pile,
    /// The buckets after it.
    ahead: VecDeque<Pile>,
    free: Vec<Block>,
}

impl<'s> Piles<'s> {
    pub(crate) fn new(store: &'s Store) -> Self {
        Piles {
            store,
            base: 0,
            now: Pile::default(),
            ahead: VecDeque::new(),
            free: Vec::new(),
        }
    }

    /// Adds a vertex to the pile of a bucket.
    #[inline(always)]
    pub(crate) fn push(&mut self, bucket: u64, v: u32) {
        let done = match bucket.saturating_sub(self.base) as usize {
            0 => self.now.push(v),
            later => match self.ahead.get_mut(later.min(BUCKETS) - 1) {
                Some(pile) => pile.push(v),
                None => false,
            },
        };
        if !done {
            self.push_block(bucket, v);
        }
    }

    #[cold]
    fn push_block(&mut self, bucket: u64, v: u32) {
        let later = (bucket.saturating_sub(self.base) as usize).min(BUCKETS);
        if self.ahead.len() < later {
            self.ahead.resize_with(later, Pile::default);
        }
        let pile = match later {
            0 => &mut self.now,
            later => &mut self.ahead[later - 1],
        };
        match self.free.pop().or_else(|| self.store.take()) {
            Some(mut block) => {
                block.push(v);
                match std::mem::replace(&mut pile.open, block) {
                    none if none.is_empty() => (),
                    full => pile.full.push(full),
                }
            }
            None => self.store.mark(v),
        }
    }

    /// Takes a block of the bucket at hand, if there are no more than so many.
    pub(crate) fn pop(&mut self, most: usize) -> Option<Block> {
        if self.now.full.len() >= most {
            return None;
        }
        self.now.pop()
    }
    /// Keeps an empty block for later.
    pub(crate) fn give_back(&mut self, mut block: Block) {
        block.clear();
        if block.capacity() >= BLOCK {
            self.free.push(block);
        }
    }

    /// The first bucket that is not empty.
    pub(crate) fn first(&self) -> Option<u64> {
        if !self.now.is_empty() {
            return Some(self.base);
        }
        let at = self.ahead.iter().position(|pile| !pile.is_empty())?;
        Some(self.base + 1 + at as u64)
    }

    /// Makes `bucket`, before which nothing waits, the one at hand, and moves its pile to `blocks`.
    pub(crate) fn turn_to(&mut self, bucket: u64, blocks: &mut Vec<Block>) {
        for _ in self.base..bucket {
            match self.ahead.pop_front() {
                Some(pile) => self.now = pile,
                None => break,
            }
        }
        self.base = bucket;
        blocks.append(&mut self.now.full);
        if !self.now.open.is_empty() {
            blocks.push(std::mem::take(&mut self.now.open));
        }
    }
}
