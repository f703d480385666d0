//! A forest of disjoint sets that several threads unite concurrently: each tree is one set.
//!
//! Each node points at one that is not greater, and a root at itself. So the root of a tree is its least node. A pointer only
//! ever decreases, to a node of the same tree. Two trees are united by a single exchange: a root then points at a lesser node.
//! The exchange fails if the node is no longer a root.
//!
//! There is no lock, and the result does not depend on the order of edges (Sutton, Ben-Nun and Barak, Optimizing Parallel
//! Graph Connectivity Computation via Subgraph Sampling, IPDPS 2018).

use std::marker::PhantomData;

use crate::atomic_scalar::{AtomicCell, AtomicScalar};

/// A forest whose pointers are atomics that the caller owns.
#[derive(Debug)]
pub struct UnionFind<'f, I, A> {
    pointers: &'f [A],
    index: PhantomData<I>,
}

impl<I, A> Clone for UnionFind<'_, I, A> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<I, A> Copy for UnionFind<'_, I, A> {}

impl<'f, I: AtomicScalar, A: AtomicCell<I>> UnionFind<'f, I, A> {
    /// Returns the forest over pointers; no pointer is greater than its own index.
    pub fn new(pointers: &'f [A]) -> Self {
        UnionFind {
            pointers,
            index: PhantomData,
        }
    }

    /// Returns the number of nodes.
    pub fn len(&self) -> usize {
        self.pointers.len()
    }
    /// Returns true if there is no node.
    pub fn is_empty(&self) -> bool {
        self.pointers.is_empty()
    }

    /// Makes a node point at one of its tree that is not greater, before trees are united.
    #[inline(always)]
    pub fn set_parent(&self, v: usize, at: I) {
        if let Some(pointer) = self.pointers.get(v) {
            pointer.store(at);
        }
    }

    /// Returns the node that a node points at: its root, once all nodes are compressed.
    #[inline(always)]
    pub fn parent(&self, v: I) -> I {
        self.pointers.get(v.index()).map_or(v, AtomicCell::load)
    }

    /// Starts to load the pointer of a node into the cache.
    #[inline(always)]
    pub fn prefetch(&self, v: I) {
        crate::prefetch(self.pointers, v.index());
    }

    /// Unites the trees of two nodes.
    #[inline(always)]
    pub fn union(&self, a: I, b: I) {
        let (a, b) = (self.parent(a), self.parent(b));
        if a != b {
            self.hook(a, b);
        }
    }

    /// Unites the trees of two nodes, and makes both point at the node above them that was found.
    ///
    /// So the pointers of nodes with many edges stay short while trees are united, in whatever order edges come.
    #[inline(always)]
    pub fn union_and_compress(&self, a: I, b: I) {
        let (of_a, of_b) = (self.parent(a), self.parent(b));
        if of_a != of_b {
            let above = self.hook(of_a, of_b);
            for (node, before) in [(a, of_a), (b, of_b)] {
                if let Some(pointer) = self.pointers.get(node.index())
                    && above < before
                {
                    // If it fails, another thread has made the pointer less.
                    let _ = pointer.exchange(before, above);
                }
            }
        }
    }

    /// Unites the trees of two nodes; returns a node above both.
    fn hook(&self, mut a: I, mut b: I) -> I {
        while a != b {
            let (low, high) = if a < b { (a, b) } else { (b, a) };
            let of_high = self.parent(high);
            if of_high == low {
                return low;
            }
            if of_high == high {
                let Some(pointer) = self.pointers.get(high.index()) else {
                    return low;
                };
                if pointer.exchange(high, low).is_ok() {
                    return low;
                }
            }
            // Two steps up: the next iteration has a shorter path, whatever other threads do meanwhile.
            a = self.parent(self.parent(high));
            b = self.parent(low);
        }
        a
    }

    /// Makes a node point at its root, while no thread unites trees.
    #[inline(always)]
    pub fn compress(&self, v: usize) {
        let Some(pointer) = self.pointers.get(v) else {
            return;
        };
        let mut at = pointer.load();
        let first = at;
        loop {
            let above = self.parent(at);
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

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn union_by_threads_equals_union_by_one() {
        let nodes = if cfg!(miri) { 50 } else { 5000 };
        let edge = |i: u32| (i * 7 % nodes, (i * i + 3) % nodes);
        let mut expected: Vec<u32> = (0..nodes).collect();
        loop {
            let before = expected.clone();
            for (a, b) in (0..nodes / 2).map(edge) {
                let least = expected[a as usize].min(expected[b as usize]);
                expected[a as usize] = least;
                expected[b as usize] = least;
            }
            if before == expected {
                break;
            }
        }
        for compresses in [false, true] {
            let mut pointers: Vec<u32> = (0..nodes).collect();
            let forest = UnionFind::new(u32::shared(&mut pointers));
            std::thread::scope(|scope| {
                for first in 0..3 {
                    scope.spawn(move || {
                        for (a, b) in (first..nodes / 2).step_by(3).map(edge) {
                            match compresses {
                                true => forest.union_and_compress(a, b),
                                false => forest.union(a, b),
                            }
                        }
                    });
                }
            });
            (0..nodes as usize).for_each(|v| forest.compress(v));
            assert_eq!(pointers, expected);
        }
    }
}

#[cfg(all(test, any(loom, shuttle)))]
mod every_order {
    use std::sync::Arc;

    use super::*;
    use crate::sync::{AtomicU32, every_order, thread};

    fn pointers(nodes: u32) -> Arc<Vec<AtomicU32>> {
        Arc::new((0..nodes).map(AtomicU32::new).collect())
    }

    /// The ways to unite two nodes.
    const WAYS: [fn(&[AtomicU32], u32, u32); 2] = [
        |pointers, a, b| UnionFind::new(pointers).union(a, b),
        |pointers, a, b| UnionFind::new(pointers).union_and_compress(a, b),
    ];

    /// Two threads unite these pairs, in every order: compressed, all nodes have root 0.
    fn become_one(
        nodes: u32,
        pairs: [&'static [(u32, u32)]; 2],
        unite: fn(&[AtomicU32], u32, u32),
    ) {
        every_order(move || {
            let pointers = pointers(nodes);
            let theirs = {
                let pointers = Arc::clone(&pointers);
                thread::spawn(move || pairs[0].iter().for_each(|(a, b)| unite(&pointers, *a, *b)))
            };
            pairs[1].iter().for_each(|(a, b)| unite(&pointers, *a, *b));
            theirs.join().unwrap();
            let forest = UnionFind::<u32, _>::new(&pointers);
            (0..nodes as usize).for_each(|v| forest.compress(v));
            assert!((0..nodes).all(|v| forest.parent(v) == 0));
        });
    }

    #[test]
    fn union_of_threads_is_never_lost() {
        for unite in WAYS {
            become_one(3, [&[(1, 2)], &[(0, 2)]], unite);
            become_one(4, [&[(2, 3), (1, 3)], &[(0, 3)]], unite);
        }
    }

    #[test]
    #[cfg(shuttle)]
    fn union_of_many_threads_is_never_lost() {
        let paths: [&[_]; 2] = [
            &[(7, 6), (5, 4), (3, 2), (1, 0), (6, 5)],
            &[(4, 3), (2, 1), (0, 7), (5, 2), (6, 1)],
        ];
        for unite in WAYS {
            become_one(8, paths, unite);
        }
    }

    /// Two threads compress these nodes of a path, in every order: all point at 0 then.
    ///
    /// None ever points at a node of another tree.
    fn become_flat(parts: [&'static [usize]; 2], flatten: fn(&[AtomicU32], usize)) {
        every_order(move || {
            // 3 -> 2 -> 1 -> 0
            let pointers: Arc<Vec<AtomicU32>> = Arc::new([0, 0, 1, 2].map(AtomicU32::new).into());
            let theirs = {
                let pointers = Arc::clone(&pointers);
                thread::spawn(move || parts[0].iter().for_each(|v| flatten(&pointers, *v)))
            };
            parts[1].iter().for_each(|v| flatten(&pointers, *v));
            theirs.join().unwrap();
            let forest = UnionFind::<u32, _>::new(&pointers);
            assert!((0..4).all(|v| forest.parent(v) == 0));
        });
    }

    #[test]
    fn compress_by_several_flattens_the_tree() {
        let flatten = |pointers: &[AtomicU32], v| UnionFind::<u32, _>::new(pointers).compress(v);
        become_flat([&[3, 1], &[2, 0]], flatten);
        become_flat([&[1, 2, 3], &[3, 2, 1]], flatten);
    }

    #[test]
    #[should_panic(expected = "parent(v) == 0")]
    fn compress_by_a_single_step_is_detected() {
        // Right where those above were flat before: in order of nodes, on one thread.
        let hasty = |pointers: &[AtomicU32], v: usize| {
            let forest = UnionFind::<u32, _>::new(pointers);
            forest.set_parent(v, forest.parent(forest.parent(v as u32)));
        };
        become_flat([&[3, 1], &[2, 0]], hasty);
    }

    #[test]
    #[should_panic(expected = "parent(v) == 0")]
    fn union_without_compare_is_detected() {
        // A plain store in place of the exchange: what another thread hung there meanwhile is gone.
        let careless = |pointers: &[AtomicU32], a: u32, b: u32| {
            let forest = UnionFind::<u32, _>::new(pointers);
            let root = |mut v: u32| {
                while forest.parent(v) != v {
                    v = forest.parent(v);
                }
                v
            };
            let (a, b) = (root(a), root(b));
            forest.set_parent(a.max(b) as usize, a.min(b));
        };
        become_one(3, [&[(1, 2)], &[(0, 2)]], careless);
    }
}
