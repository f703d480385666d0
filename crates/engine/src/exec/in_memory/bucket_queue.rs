//! Bucket queues without locks: each worker has a stack of waiting vertices for each bucket.
//!
//! A stack is made of blocks, which are also the unit of work sharing. The number of blocks is fixed, so that
//! stacks keep to the budget; a vertex without a block is marked in a bitmap instead and found there.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};

use graphmill_raw::{AtomicBitmap, AtomicRange};
use graphmill_storage::{Lease, MemoryBudget};

use crate::error::EngineError;
use crate::frontier::active_set::ActiveSet;
use crate::frontier::bitmap::Bits;

/// Vertices of a block.
pub(crate) const BLOCK: usize = 128;
/// Number of buckets a worker separates, from the current one on; later ones share one stack.
const BUCKETS: usize = 1024;

/// Vertices of one block that are worth giving half of to another worker.
const WORTH_HALVING: usize = 16;
/// Number of blocks of marked vertices made at a time, beyond the blocks of the pool.
const MARKED_AT_ONCE: usize = 256;

/// A block of vertices.
///
/// A block with capacity [`BLOCK`] belongs to the pool and is reused; others are freed when they are done.
pub(crate) type VertexBlock = Vec<u32>;
/// Vertices of a block that is not the store's.
const LOOSE: usize = BLOCK - 1;

/// The pool from which all workers take their blocks.
pub(crate) struct BlockPool {
    /// As many as there is memory for.
    blocks: AtomicRange,
    /// Vertices for which there was no block.
    overflow: AtomicBitmap,
    /// Number of marks by workers since the last reset.
    ///
    /// Workers add to it. The thread that takes all marks resets it while no worker runs.
    overflowed: AtomicUsize,
    _lease: Lease,
}

impl BlockPool {
    fn block_bytes() -> u64 {
        (BLOCK * size_of::<u32>() + size_of::<VertexBlock>()) as u64
    }
    /// Returns the bytes of the budget for a graph of `vertices` vertices.
    ///
    /// They hold a block for each bucket of each worker, and twice as many entries as there are vertices.
    pub(crate) fn memory(vertices: u64, workers: usize) -> u64 {
        let blocks = 2 * vertices.div_ceil(BLOCK as u64) + (workers * BUCKETS) as u64;
        blocks * Self::block_bytes() + AtomicBitmap::bytes(vertices)
    }

    pub(crate) fn new(
        budget: &MemoryBudget,
        vertices: u64,
        workers: usize,
    ) -> Result<Self, EngineError> {
        let bytes = Self::memory(vertices, workers);
        let blocks = (bytes - AtomicBitmap::bytes(vertices)) / Self::block_bytes();
        let lease = budget.lease("vertices that wait", bytes)?;
        Ok(BlockPool {
            blocks: AtomicRange::new(0, blocks),
            overflow: AtomicBitmap::new(vertices),
            overflowed: AtomicUsize::new(0),
            _lease: lease,
        })
    }

    fn take(&self) -> Option<VertexBlock> {
        let block = self.blocks.claim(1).ok();
        block.map(|_| Vec::with_capacity(BLOCK))
    }

    /// The vertices of a set, in blocks: of a new store, which has enough.
    pub(crate) fn blocks_of(&self, active: &ActiveSet) -> Result<Vec<VertexBlock>, EngineError> {
        let mut blocks: Vec<VertexBlock> = Vec::new();
        active.each(|v| {
            let v = v as u32;
            match blocks.last_mut() {
                Some(block) if block.len() < BLOCK => block.push(v),
                _ => match self.take() {
                    Some(mut block) => {
                        block.push(v);
                        blocks.push(block);
                    }
                    None => self.mark(v),
                },
            }
        })?;
        Ok(blocks)
    }

    fn mark(&self, v: u32) {
        self.overflow.set(v as usize);
        self.overflowed.fetch_add(1, Ordering::Relaxed);
    }

    /// Takes marked vertices out, some blocks of them at most; none when none are left.
    pub(crate) fn marked(&self) -> Vec<VertexBlock> {
        let mut blocks = Vec::new();
        if self.overflowed.load(Ordering::Relaxed) == 0 {
            return blocks;
        }
        let mut block = Vec::with_capacity(LOOSE);
        for word in 0..self.overflow.words() {
            let bits = Bits(self.overflow.take_word(word));
            block.extend(bits.map(|bit| (word * AtomicBitmap::WORD + bit) as u32));
            if block.len() + AtomicBitmap::WORD > LOOSE {
                blocks.push(std::mem::replace(&mut block, Vec::with_capacity(LOOSE)));
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

/// A stack of the blocks of one bucket; the oldest vertices come first.
///
/// A later vertex may still lower an earlier one, which would then send in vain.
#[derive(Default)]
struct BlockStack {
    full: VecDeque<VertexBlock>,
    /// The block with room.
    open: VertexBlock,
}

impl BlockStack {
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
    fn pop(&mut self) -> Option<VertexBlock> {
        let open = || (!self.open.is_empty()).then(|| std::mem::take(&mut self.open));
        self.full.pop_front().or_else(open)
    }
    fn move_to(&mut self, blocks: &mut Vec<VertexBlock>) {
        blocks.extend(self.full.drain(..));
        if !self.open.is_empty() {
            blocks.push(std::mem::take(&mut self.open));
        }
    }
}

/// The bucket queue of one worker.
pub(crate) struct BucketQueue<'s> {
    store: &'s BlockPool,
    /// The current bucket.
    base: u64,
    /// The stacks of the buckets from the current one on, by the last bits of their number.
    ring: Box<[BlockStack; BUCKETS]>,
    /// A bit for each stack that received a block since it was last found empty.
    filled: [u64; BUCKETS / 64],
    /// Of all that come later.
    later: BlockStack,
    /// No bucket of `later` comes before it.
    later_from: u64,
    free: Vec<VertexBlock>,
}

impl<'s> BucketQueue<'s> {
    pub(crate) fn new(store: &'s BlockPool) -> Self {
        BucketQueue {
            store,
            base: 0,
            ring: Box::new(std::array::from_fn(|_| BlockStack::default())),
            filled: [0; BUCKETS / 64],
            later: BlockStack::default(),
            later_from: u64::MAX,
            free: Vec::new(),
        }
    }

    /// Returns the ring position of a bucket; earlier buckets have the position of the current one.
    #[inline(always)]
    fn place(&self, bucket: u64) -> Option<usize> {
        let ahead = bucket.saturating_sub(self.base);
        (ahead < BUCKETS as u64).then(|| (self.base + ahead) as usize % BUCKETS)
    }

    /// Returns the stack of a bucket.
    #[inline(always)]
    fn of(&mut self, bucket: u64) -> &mut BlockStack {
        if let Some(place) = self.place(bucket) {
            return &mut self.ring[place];
        }
        self.later_from = self.later_from.min(bucket);
        &mut self.later
    }

    /// Returns the stack of a bucket and marks it as non-empty.
    fn fill(&mut self, bucket: u64) -> &mut BlockStack {
        if let Some(place) = self.place(bucket) {
            self.filled[place / 64] |= 1 << (place % 64);
        }
        self.of(bucket)
    }

    /// Pushes a vertex on the stack of a bucket.
    #[inline(always)]
    pub(crate) fn push(&mut self, bucket: u64, v: u32) {
        if !self.of(bucket).push(v) {
            self.push_block(bucket, v);
        }
    }

    #[cold]
    fn push_block(&mut self, bucket: u64, v: u32) {
        match self.free.pop().or_else(|| self.store.take()) {
            Some(mut block) => {
                block.push(v);
                let pile = self.fill(bucket);
                match std::mem::replace(&mut pile.open, block) {
                    none if none.is_empty() => (),
                    full => pile.full.push_back(full),
                }
            }
            None => self.store.mark(v),
        }
    }

    /// Returns the number of vertices in the current bucket.
    pub(crate) fn waiting(&mut self) -> usize {
        let BlockStack { full, open } = self.of(self.base);
        full.iter().map(Vec::len).sum::<usize>() + open.len()
    }
    /// Removes and returns a block of the current bucket.
    pub(crate) fn pop(&mut self) -> Option<VertexBlock> {
        self.of(self.base).pop()
    }
    /// Moves all blocks of the current bucket to `blocks`.
    pub(crate) fn move_to(&mut self, blocks: &mut Vec<VertexBlock>) {
        self.of(self.base).move_to(blocks);
    }
    /// Adds blocks to the current bucket.
    pub(crate) fn take_over(&mut self, blocks: &mut Vec<VertexBlock>) {
        self.fill(self.base).full.extend(blocks.drain(..));
    }
    /// Moves half of the current bucket to `blocks` unless it is small; returns true if so.
    pub(crate) fn halve(&mut self, blocks: &mut Vec<VertexBlock>) -> bool {
        let pile = self.of(self.base);
        if !pile.full.is_empty() {
            blocks.extend(pile.full.drain(pile.full.len() / 2..));
            return true;
        }
        if pile.open.len() < WORTH_HALVING {
            return false;
        }
        let Some(mut half) = self.free.pop().or_else(|| self.store.take()) else {
            return false;
        };
        let open = &mut self.of(self.base).open;
        half.extend(open.drain(open.len() / 2..));
        blocks.push(half);
        true
    }
    /// Keeps an empty block for later.
    pub(crate) fn give_back(&mut self, mut block: VertexBlock) {
        block.clear();
        if block.capacity() >= BLOCK {
            self.free.push(block);
        }
    }

    /// Returns the first bucket with waiting vertices.
    pub(crate) fn first(&mut self) -> Option<u64> {
        let mut ahead = 0;
        let mut of_ring = None;
        while ahead < BUCKETS as u64 {
            let place = self.base.wrapping_add(ahead) as usize % BUCKETS;
            let (word, bit) = (&mut self.filled[place / 64], place % 64);
            let next = (*word >> bit).trailing_zeros();
            if next > 0 {
                // The low bits of the first word scanned stand for the last positions.
                ahead += u64::from(next).min(64 - bit as u64);
            } else if self.ring[place].is_empty() {
                *word &= !(1 << bit);
            } else {
                of_ring = Some(self.base.wrapping_add(ahead));
                break;
            }
        }
        let of_later = (!self.later.is_empty()).then_some(self.later_from);
        of_ring.into_iter().chain(of_later).min()
    }

    /// Makes `bucket` the current one; no vertex waits before it, but later buckets may be mixed in.
    pub(crate) fn turn_to(&mut self, bucket: u64) {
        self.base = bucket;
        if self.later_from <= bucket {
            self.later_from = u64::MAX;
            let mut later = std::mem::take(&mut self.later);
            let mut blocks = Vec::new();
            later.move_to(&mut blocks);
            self.fill(bucket).full.extend(blocks);
        }
    }

    /// Makes `bucket` the current one, with all waiting vertices, when buckets are renumbered.
    pub(crate) fn start_at(&mut self, bucket: u64) {
        let mut all = Vec::new();
        self.ring.iter_mut().for_each(|pile| pile.move_to(&mut all));
        self.later_from = bucket;
        self.turn_to(bucket);
        self.take_over(&mut all);
    }

    /// Moves the blocks of all buckets to `blocks`: nothing waits any more.
    pub(crate) fn take_all(&mut self, blocks: &mut Vec<VertexBlock>) {
        let piles = self.ring.iter_mut().chain([&mut self.later]);
        piles.for_each(|pile| pile.move_to(blocks));
    }
}
