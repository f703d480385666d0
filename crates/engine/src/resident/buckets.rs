//! Bucket after bucket, for programs whose labels may be lowered again: shortest paths (delta-stepping; Meyer and Sanders,
//! Journal of Algorithms 49, 2003).
//!
//! All vertices whose labels are in the lowest bucket send them on, all workers at once. A worker goes on with the vertices that
//! it lowered within that bucket by itself for a while before it meets the others again: so a bucket takes few rounds where a
//! path runs long within it (Zhang et al., Optimizing Ordered Graph Algorithms with GraphIt, CGO 2020).

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use graphmill_raw::{AtomicWord, prefetch};

use super::lists::value_of;
use super::pile::{Block, Piles, Shared, Store};
use super::round::{Ground, Round, go};
use crate::active::lock;
use crate::engine::superstep;
use crate::error::EngineError;
use crate::metrics::{Mode, Superstep};
use crate::program::{Label, LabelProgram};

/// Blocks that a worker goes on with by itself, at most: more are worth sharing.
const OWN_BLOCKS: usize = 4;
/// Vertices whose lists are on their way at a time.
const AHEAD: usize = 16;
/// Edges of a list whose labels are on their way.
const EDGES_AHEAD: usize = 16;

/// Spreads the labels of the vertices in `first`. `tell` hears of each round.
pub(crate) fn settle<P: LabelProgram, const WORDS: usize>(
    ground: &Ground<'_, P>,
    store: &Store,
    first: Vec<Block>,
    mut tell: impl FnMut(Superstep),
) -> Result<(), EngineError> {
    let machine = ground.machine;
    let piles: Vec<_> = (0..machine.workers.count())
        .map(|_| Mutex::new(Piles::new(store)))
        .collect();
    let degree = machine.graph.arcs() / machine.batches.vertices().max(1) + 1;
    let mut round = |level: Shared, bucket: Option<u64>| {
        let count = level.len();
        let send = Send::<P, WORDS> {
            ground,
            bucket,
            level,
            piles: &piles,
            sent: AtomicU64::new(0),
            edges: AtomicU64::new(0),
        };
        go(machine, &send, count * degree)?;
        tell(Superstep {
            active: count,
            messages: send.sent.into_inner(),
            edges: send.edges.into_inner(),
            ..superstep(Mode::Push)
        });
        Ok::<_, EngineError>(())
    };
    round(Shared::new(first), None)?;
    loop {
        // Those for which there was no block go at once.
        let marked = store.marked();
        if !marked.is_empty() {
            round(Shared::new(marked), None)?;
            continue;
        }
        let Some(bucket) = piles.iter().filter_map(|piles| lock(piles).first()).min() else {
            return Ok(());
        };
        let level = piles
            .iter()
            .flat_map(|piles| lock(piles).turn_to(bucket))
            .collect();
        round(Shared::new(level), Some(bucket))?;
    }
}

/// Vertices send their labels along their edges.
struct Send<'r, 's, P: LabelProgram, const WORDS: usize> {
    ground: &'r Ground<'r, P>,
    /// Whose labels are sent; all when `None`.
    bucket: Option<u64>,
    level: Shared,
    piles: &'r [Mutex<Piles<'s>>],
    sent: AtomicU64,
    edges: AtomicU64,
}

impl<P: LabelProgram, const WORDS: usize> Round for Send<'_, '_, P, WORDS> {
    fn part(&self, worker: usize) -> bool {
        let Some(block) = self.level.take() else {
            return false;
        };
        let mut piles = lock(&self.piles[worker]);
        self.block(&block, &mut piles);
        piles.give_back(block);
        while self.bucket.is_some()
            && piles.ready() <= OWN_BLOCKS
            && let Some(block) = piles.pop()
        {
            self.block(&block, &mut piles);
            piles.give_back(block);
        }
        true
    }
}

impl<P: LabelProgram, const WORDS: usize> Send<'_, '_, P, WORDS> {
    #[inline(always)]
    fn block(&self, block: &Block, piles: &mut Piles<'_>) {
        let Ground {
            lists,
            labels,
            program,
            ..
        } = *self.ground;
        let (mut sent, mut edges) = (0, 0);
        for vertices in block.chunks(AHEAD) {
            for v in vertices {
                lists.prefetch_begin(*v as usize);
                prefetch(labels, *v as usize);
            }
            vertices
                .iter()
                .for_each(|v| lists.prefetch_list::<WORDS>(*v as usize));
            for &v in vertices {
                let label: P::Label = Label::of_word(labels[v as usize].load());
                let own = program.bucket(label);
                match self.bucket {
                    // It was lowered since, and has been sent from a lower bucket.
                    Some(bucket) if own < bucket => continue,
                    // It waited among the latest of all.
                    Some(bucket) if own > bucket => {
                        piles.push(own, v);
                        continue;
                    }
                    _ => (),
                }
                let list = lists.of::<WORDS>(v as usize);
                sent += 1;
                edges += list.len() as u64;
                for (i, record) in list.iter().enumerate() {
                    if let Some(later) = list.get(i + EDGES_AHEAD) {
                        prefetch(labels, later[0] as usize);
                    }
                    let Some(at) = labels.get(record[0] as usize) else {
                        continue;
                    };
                    let lower = program.along(label, value_of(record));
                    let word = lower.word();
                    let mut old = at.load();
                    while word < old {
                        match at.exchange(old, word) {
                            Ok(()) => {
                                piles.push(program.bucket(lower), record[0]);
                                break;
                            }
                            Err(found) => old = found,
                        }
                    }
                }
            }
        }
        self.sent.fetch_add(sent, Ordering::Relaxed);
        self.edges.fetch_add(edges, Ordering::Relaxed);
    }
}
