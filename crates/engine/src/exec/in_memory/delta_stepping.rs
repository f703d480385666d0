//! Bucket after bucket, for programs whose labels may be lowered again: shortest paths (delta-stepping; Meyer and Sanders,
//! Journal of Algorithms 49, 2003).
//!
//! All vertices with labels in the lowest bucket send them, all workers at once. Each worker continues with the vertices
//! that it lowered within that bucket before it synchronises again, so a bucket takes one round if a path runs long
//! within it (Zhang et al., Optimizing Ordered Graph Algorithms with GraphIt, CGO 2020).
//!
//! With other ranks, each walks the arcs into its own vertices. After a round it tells the others the labels that its own vertices
//! have sent, and all agree on the next bucket. A bucket ends when no rank has sent anything in it.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use graphmill_raw::{AtomicCell, lock};

use crate::cache::adjacency::value_of;
use crate::error::EngineError;
use crate::exec::in_memory::bucket_queue::{BLOCK, BlockPool, BucketQueue, VertexBlock};
use crate::exec::in_memory::peers::Told;
use crate::exec::in_memory::round::{
    AHEAD, RoundContext, UpdateBuffer, current_bucket, each_block,
};
use crate::metrics::run::{Mode, PassMetrics};
use crate::program::current_call::CurrentCall;
use crate::program::monotone::{Label, MonotoneProgram};

/// Waiting vertices scanned for each sender above which buckets are too narrow.
const MOST_LOOKS: u64 = 8;
/// The power of two by which buckets then widen.
const WIDER: u32 = 2;

/// Propagates the labels of the vertices in `first`.
///
/// `tell` receives the metrics of each round and says whether to end after it. `leave` then takes the vertices whose labels
/// are yet to be sent.
pub(crate) fn settle<P: MonotoneProgram, const WORDS: usize>(
    ground: &RoundContext<'_, P>,
    store: &BlockPool,
    first: Vec<VertexBlock>,
    mut tell: impl FnMut(PassMetrics) -> Result<bool, EngineError>,
    leave: impl FnMut(&[VertexBlock]) -> Result<(), EngineError>,
) -> Result<(), EngineError> {
    let context = ground.context;
    let piles: Vec<_> = (0..context.workers.count())
        .map(|_| Mutex::new(BucketQueue::new(store)))
        .collect();
    let degree = context.graph.arcs() / context.batches.vertices().max(1) + 1;
    // Without a bucket: whatever is in these blocks.
    let mut blocks = first;
    let mut bucket = None;
    // The bucket that the queues are at.
    let mut current = 0;
    // Buckets are as many of the program's wide as this power of two.
    let mut wide = 0;
    let (mut looks, mut sends) = (0, 0);
    // Edges of the round before. A bucket begins with few vertices and finds most of its own on the way, as its neighbour did.
    let mut before = 0;
    // Buckets come in order, so that there are no more rounds than buckets; one that falls behind would never end.
    let fell_behind = AtomicBool::new(false);
    let mut rounds = 0;
    if ground.peers.is_some() {
        for v in blocks.iter().flatten() {
            ground.mark(*v);
        }
        tell_labels(ground, &piles, (wide, current), None, [0; 2])?;
        // A round sends the labels of these at all ranks, so that a run that pauses after each round still ends.
        piles
            .iter()
            .for_each(|piles| lock(piles).move_to(&mut blocks));
    }
    loop {
        let [looked, sent, own, edges] = [const { AtomicU64::new(0) }; 4];
        let work = |block: &VertexBlock, piles: &mut BucketQueue, alone| {
            let at = (bucket, wide, &fell_behind);
            let did = send::<P, WORDS>(ground, at, block, piles, alone);
            looked.fetch_add(block.len() as u64, Ordering::Relaxed);
            sent.fetch_add(did[0], Ordering::Relaxed);
            own.fetch_add(did[1], Ordering::Relaxed);
            edges.fetch_add(did[2], Ordering::Relaxed);
            did[2]
        };
        if bucket.is_some() {
            current_bucket(context, &piles, before, work)?;
        } else {
            let count = blocks.iter().map(|block| block.len() as u64).sum::<u64>();
            each_block(context, &piles, &mut blocks, count * degree, work)?;
        }
        let [looked, sent, own, edges] = [looked, sent, own, edges].map(AtomicU64::into_inner);
        before = edges;
        // Those for which there was no block go at once.
        blocks = store.marked();
        let is_done = blocks.is_empty();
        let (first, [of_all_looked, of_all_sent]) = tell_labels(
            ground,
            &piles,
            (wide, current),
            Some(is_done),
            [looked, sent],
        )?;
        (looks, sends) = (looks + of_all_looked, sends + of_all_sent);
        let is_to_end = tell(PassMetrics::in_memory(
            Mode::Push,
            [of_all_looked, own, edges],
        ))?;
        rounds += 1;
        if fell_behind.load(Ordering::Relaxed) {
            return Err(EngineError::Unsettled {
                what: "a label program",
                passes: rounds,
                vertices: context.batches.vertices(),
            });
        }
        if is_to_end {
            return leave_all(ground, &piles, store, blocks, leave);
        }
        let Some(mut first) = first else {
            return Ok(());
        };
        if looks <= MOST_LOOKS * (sends + BLOCK as u64) {
            piles.iter().for_each(|piles| lock(piles).turn_to(first));
        } else {
            (looks, sends) = (0, 0);
            let wider = WIDER.min(u64::BITS - 1 - wide);
            wide += wider;
            first >>= wider;
            piles.iter().for_each(|piles| lock(piles).start_at(first));
        }
        current = first;
        bucket = blocks.is_empty().then_some(first);
    }
}

/// Tells the other ranks the labels that this rank's vertices have sent, and takes over theirs.
///
/// Takes the width of buckets and the current one, whether this rank is done with it, and numbers to add up over all ranks. Without
/// an answer to that, no round has begun, and the vertices of others wait in the current bucket. Otherwise they wait in the buckets of
/// their labels. Returns the first bucket in which a vertex of any rank waits, and the sums.
fn tell_labels<P: MonotoneProgram>(
    ground: &RoundContext<'_, P>,
    piles: &[Mutex<BucketQueue<'_>>],
    (wide, current): (u32, u64),
    is_done: Option<bool>,
    numbers: [u64; 2],
) -> Result<(Option<u64>, [u64; 2]), EngineError> {
    let call = CurrentCall::new();
    let bucket_of = |v: usize, word| {
        call.at(v as u64);
        ground.program.bucket(Label::of_word(word)) >> wide
    };
    let of_queues = piles.iter().filter_map(|piles| lock(piles).first());
    let unfinished = is_done.filter(|is_done| !is_done).map(|_| current);
    let first = of_queues.chain(unfinished).min();
    let (Some(peers), Some(queue)) = (ground.peers, piles.first()) else {
        return Ok((first, numbers));
    };
    let labels = ground.labels;
    let mut queue = lock(queue);
    // Where vertices of others wait, they do so at all ranks but their own.
    let sent = peers.marked().map(|v| bucket_of(v, labels[v].load()));
    let sent = sent.min().map(|sent| sent.max(current));
    let mine = first.into_iter().chain(sent).min().unwrap_or(u64::MAX);
    let label = |v: usize| labels[v].load();
    let all = peers.tell(
        [mine, numbers[0], numbers[1]],
        Told::Marked,
        label,
        |v, word| {
            if let Some(label) = labels.get(v)
                && label.lower(word, true)
            {
                let bucket = is_done.map_or(current, |_| bucket_of(v, word));
                queue.push(bucket, v as u32);
            }
        },
    )?;
    let first = all.iter().map(|numbers| numbers[0]).min();
    let sums = [1, 2].map(|i| all.iter().map(|numbers| numbers[i]).sum());
    Ok((first.filter(|first| *first != u64::MAX), sums))
}

/// Takes all waiting vertices, those without a block a few at a time.
///
/// A vertex of another rank that waits here waits there from now on.
fn leave_all<P: MonotoneProgram>(
    ground: &RoundContext<'_, P>,
    piles: &[Mutex<BucketQueue<'_>>],
    store: &BlockPool,
    mut blocks: Vec<VertexBlock>,
    mut leave: impl FnMut(&[VertexBlock]) -> Result<(), EngineError>,
) -> Result<(), EngineError> {
    for piles in piles {
        lock(piles).take_all(&mut blocks);
    }
    while !blocks.is_empty() {
        leave(&blocks)?;
        if let Some(peers) = ground.peers {
            let others = blocks.iter().flatten().filter(|v| !ground.owns(**v));
            others.for_each(|v| peers.mark(*v as usize));
        }
        blocks = store.marked();
    }
    let Some(peers) = ground.peers else {
        return Ok(());
    };
    let mut failed = None;
    peers.tell(
        [],
        Told::Marked,
        |_| (),
        |v, ()| {
            if ground.owns(v as u32) {
                failed = failed.take().or(leave(&[vec![v as u32]]).err());
            }
        },
    )?;
    failed.map_or(Ok(()), Err)
}

/// Sends the labels of a block's vertices along their edges, if in the bucket or if there is no bucket.
///
/// Returns the number of senders, of senders of this rank, and of edges. Records if a label falls behind the bucket, which no label of a sound
/// program does.
#[inline(always)]
fn send<P: MonotoneProgram, const WORDS: usize>(
    ground: &RoundContext<'_, P>,
    (bucket, wide, fell_behind): (Option<u64>, u32, &AtomicBool),
    block: &VertexBlock,
    piles: &mut BucketQueue<'_>,
    alone: bool,
) -> [u64; 3] {
    let (labels, program) = (ground.labels, ground.program);
    let (mut sent, mut of_own, mut edges) = (0, 0, 0);
    let mut found = UpdateBuffer::new(P::Label::NONE.word());
    let bucket_of = |word| program.bucket(Label::of_word(word)) >> wide;
    let pile_up = |found: &mut UpdateBuffer<_>, piles: &mut BucketQueue| {
        for &(word, v) in found.take() {
            let of_word = bucket_of(word);
            if bucket.is_some_and(|bucket| of_word < bucket) {
                fell_behind.store(true, Ordering::Relaxed);
            }
            piles.push(of_word, v);
        }
    };
    let current = CurrentCall::new();
    for vertices in block.chunks(AHEAD) {
        ground.prefetch::<WORDS>(vertices);
        for &v in vertices {
            current.at(u64::from(v));
            let label: P::Label = Label::of_word(labels[v as usize].load());
            let own = bucket_of(label.word());
            match bucket {
                // It was lowered since, and has been sent from a lower bucket.
                Some(bucket) if own < bucket => continue,
                // It waited among later ones.
                Some(bucket) if own > bucket => {
                    piles.push(own, v);
                    continue;
                }
                _ => (),
            }
            sent += 1;
            of_own += u64::from(ground.mark(v));
            let along = |record: &_| program.on_edge(label, value_of(record)).word();
            let full = |found: &mut UpdateBuffer<_>| pile_up(found, piles);
            edges += ground.lower::<WORDS>(v, along, alone, &mut found, full);
        }
        pile_up(&mut found, piles);
    }
    [sent, of_own, edges]
}
