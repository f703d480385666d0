//! A forest over the vertices that all workers grow at once: vertices of one tree hang together.
//!
//! Each vertex points at one that is not greater, a root at itself; so the root of a tree is its least vertex. A pointer only
//! ever goes down, to a vertex of the same tree, and two trees become one when a root is made to point at a lesser vertex by a
//! single exchange, which fails if it is no root any more. Without a lock, and with one outcome in whatever order edges come
//! (Sutton, Ben-Nun and Barak, Optimizing Parallel Graph Connectivity Computation via Subgraph Sampling, IPDPS 2018).

use std::marker::PhantomData;

use graphmill_raw::{AtomicWord, Word};

/// A number that holds the index of a vertex.
pub trait VertexWord: Word {
    /// The number of a vertex, which fits.
    fn of_vertex(v: u64) -> Self;
    /// The vertex.
    fn vertex(self) -> usize;
}

impl VertexWord for u32 {
    #[inline(always)]
    fn of_vertex(v: u64) -> u32 {
        v as u32
    }
    #[inline(always)]
    fn vertex(self) -> usize {
        self as usize
    }
}

impl VertexWord for u64 {
    #[inline(always)]
    fn of_vertex(v: u64) -> u64 {
        v
    }
    #[inline(always)]
    fn vertex(self) -> usize {
        self as usize
    }
}

/// A forest whose pointers are atomics of the caller's.
pub(crate) struct Forest<'f, I, A> {
    pointers: &'f [A],
    index: PhantomData<I>,
}

impl<I, A> Clone for Forest<'_, I, A> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<I, A> Copy for Forest<'_, I, A> {}

impl<'f, I: VertexWord, A: AtomicWord<I>> Forest<'f, I, A> {
    /// Over pointers of which each is not greater than its own place.
    pub(crate) fn new(pointers: &'f [A]) -> Self {
        Forest {
            pointers,
            index: PhantomData,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.pointers.len()
    }

    /// Makes a vertex point at one of its tree that is not greater, at the start.
    #[inline(always)]
    pub(crate) fn point(&self, v: usize, at: I) {
        if let Some(pointer) = self.pointers.get(v) {
            pointer.store(at);
        }
    }

    /// Where a vertex points: its root, once the forest is flat.
    #[inline(always)]
    pub(crate) fn pointer(&self, v: I) -> I {
        self.pointers.get(v.vertex()).map_or(v, AtomicWord::load)
    }

    /// Has the pointer of a vertex on its way into the cache.
    #[inline(always)]
    pub(crate) fn prefetch(&self, v: I) {
        graphmill_raw::prefetch(self.pointers, v.vertex());
    }

    /// Makes the trees of two vertices one.
    #[inline(always)]
    pub(crate) fn unite(&self, a: I, b: I) {
        let (a, b) = (self.pointer(a), self.pointer(b));
        if a != b {
            self.hook(a, b);
        }
    }

    fn hook(&self, mut a: I, mut b: I) {
        while a != b {
            let (low, high) = if a < b { (a, b) } else { (b, a) };
            let of_high = self.pointer(high);
            if of_high == low {
                return;
            }
            if of_high == high {
                let Some(pointer) = self.pointers.get(high.vertex()) else {
                    return;
                };
                if pointer.exchange(high, low).is_ok() {
                    return;
                }
            }
            // Up by two: a shorter way next time round, whatever others do meanwhile.
            a = self.pointer(self.pointer(high));
            b = self.pointer(low);
        }
    }

    /// Makes a vertex point at its root, when no trees are being united.
    #[inline(always)]
    pub(crate) fn flatten(&self, v: usize) {
        let Some(pointer) = self.pointers.get(v) else {
            return;
        };
        let mut at = pointer.load();
        let first = at;
        loop {
            let above = self.pointer(at);
            if above == at {
                break;
            }
            at = above;
        }
        if at != first {
            pointer.store(at);
        }
    }
}
