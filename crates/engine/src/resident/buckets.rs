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
use super::pile::{Block, Piles, Store};
use super::round::{AHEAD, Ground, each_block};
use crate::active::lock;
use crate::engine::superstep;
use crate::error::EngineError;
use crate::metrics::{Mode, Superstep};
use crate::program::{Label, LabelProgram};

/// Blocks that a worker goes on with by itself, at most: more are worth sharing.
const OWN_BLOCKS: usize = 8;
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
    let mut blocks = first;
    let mut bucket = None;
    loop {
        let count = blocks.iter().map(|block| block.len() as u64).sum();
        let (sent, edges) = (AtomicU64::new(0), AtomicU64::new(0));
        each_block(
            machine,
            &piles,
            &mut blocks,
            count * degree,
            |block, piles, alone| {
                let mut did = send::<P, WORDS>(ground, bucket, block, piles, alone);
                while bucket.is_some()
                    && let Some(block) = piles.pop(OWN_BLOCKS)
                {
                    let more = send::<P, WORDS>(ground, bucket, &block, piles, alone);
                    did = (did.0 + more.0, did.1 + more.1);
                    piles.give_back(block);
                }
                sent.fetch_add(did.0, Ordering::Relaxed);
                edges.fetch_add(did.1, Ordering::Relaxed);
            },
        )?;
        tell(Superstep {
            active: count,
            messages: sent.into_inner(),
            edges: edges.into_inner(),
            ..superstep(Mode::Push)
        });
        // Those for which there was no block go at once.
        blocks = store.marked();
        if blocks.is_empty() {
            bucket = piles.iter().filter_map(|piles| lock(piles).first()).min();
            let Some(bucket) = bucket else {
                return Ok(());
            };
            for piles in &piles {
                lock(piles).turn_to(bucket, &mut blocks);
            }
        } else {
            bucket = None;
        }
    }
}

/// The vertices of a block send their labels along their edges if these are in the bucket, or in any case without one; how many
/// did, along how many edges.
#[inline(always)]
fn send<P: LabelProgram, const WORDS: usize>(
    ground: &Ground<'_, P>,
    bucket: Option<u64>,
    block: &Block,
    piles: &mut Piles<'_>,
    alone: bool,
) -> (u64, u64) {
    let Ground {
        lists,
        labels,
        program,
        ..
    } = *ground;
    let (mut sent, mut edges) = (0, 0);
    for vertices in block.chunks(AHEAD) {
        ground.prefetch::<WORDS>(vertices);
        for &v in vertices {
            let label: P::Label = Label::of_word(labels[v as usize].load());
            let own = program.bucket(label);
            match bucket {
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
                if at.lower(word, alone) {
                    piles.push(program.bucket(lower), record[0]);
                }
            }
        }
    }
    (sent, edges)
}
