//! Random rounds of a count program, in windows of all sizes, against a naive simulation.

use std::collections::BTreeMap;

use graphmill_engine::{
    Accumulator, AtomicScalar, CountProgram, EdgeResidency, Engine, EngineError, count_footprint,
};
use graphmill_storage::SplitMix64;

use crate::common::{Mode, Plain, all, run};
use crate::random_programs::{
    for_seeds, in_buckets, one_of, random_graph, random_mode, with_stored,
};

/// The label that most neighbours have; of several, the one that `order` makes the least.
#[derive(Clone, Copy)]
struct Commonest<L> {
    order: L,
}

impl<L: Accumulator + AtomicScalar + std::ops::BitXor<Output = L>> CountProgram for Commonest<L> {
    type Label = L;
    type Choice = (u64, Option<L>);
    const NONE: (u64, Option<L>) = (0, None);

    fn count(&self, choice: &mut (u64, Option<L>), label: L, times: u64) {
        let before = choice.1.map(|best| best ^ self.order);
        let comes_first = before.is_none_or(|best| label ^ self.order < best);
        if times > choice.0 || times == choice.0 && comes_first {
            *choice = (times, Some(label));
        }
    }
    fn choose(&self, choice: (u64, Option<L>)) -> L {
        choice.1.unwrap()
    }
}

/// The labels after a round.
fn by_hand(graph: &Plain, order: u64, labels: &[u64]) -> Vec<u64> {
    let mut counts = vec![BTreeMap::new(); labels.len()];
    for &(s, d, _) in &graph.arcs {
        *counts[d as usize].entry(labels[s as usize]).or_insert(0) += 1;
        if !graph.symmetric {
            *counts[s as usize].entry(labels[d as usize]).or_insert(0) += 1;
        }
    }
    let next = |(label, counts): (&u64, BTreeMap<u64, u64>)| {
        let best = counts
            .iter()
            .min_by_key(|(label, times)| (u64::MAX - **times, **label ^ order));
        *best.map_or(label, |(label, _)| label)
    };
    labels.iter().zip(counts).map(next).collect()
}

/// Runs rounds until no label changes; returns the labels and the number of changes of each round.
fn rounds<L: Accumulator + AtomicScalar + std::ops::BitXor<Output = L>>(
    engine: &mut Engine,
    (labels, order, limit): (&[u64], u64, usize),
) -> Result<(Vec<L>, Vec<u64>), EngineError> {
    let [mut from, mut to] = [engine.vertex_array("labels")?, engine.vertex_array("next")?];
    let of = |v: u64, label: &mut L| *label = L::of_index(labels[v as usize]);
    engine.process_vertices(from.write(), None, of)?;
    let program = Commonest {
        order: L::of_index(order),
    };
    let (mut changed, mut changes) = (engine.full_set()?, Vec::new());
    while !changed.is_empty() && changes.len() < limit {
        changed = engine.process_counts(&program, [from, to], &changed)?;
        changes.push(changed.len());
        std::mem::swap(&mut from, &mut to);
    }
    Ok((all(engine, from), changes))
}

fn check_rounds<L: Accumulator + AtomicScalar + std::ops::BitXor<Output = L> + Into<u64>>(
    seed: u64,
    random: &mut SplitMix64,
    graph: &Plain,
) {
    let kinds = 1 + random.below(graph.vertices);
    let first: Vec<u64> = (0..graph.vertices).map(|_| random.below(kinds)).collect();
    let (order, limit) = (random.below(8), 1 + random.below(8) as usize);
    let (mut expected, mut changes) = (first.clone(), Vec::new());
    while changes.last() != Some(&0) && changes.len() < limit {
        let next = by_hand(graph, order, &expected);
        let differ = next
            .iter()
            .zip(&expected)
            .filter(|(next, label)| next != label);
        changes.push(differ.count() as u64);
        expected = next;
    }
    let footprint = count_footprint::<Commonest<L>>(graph.symmetric, 2 * size_of::<L>());
    let mut mode = random_mode(random, footprint);
    if random.below(3) > 0 {
        // A window holds a part of all labels, and a range of labels a part of it.
        let bytes = 16 * graph.arcs.len() as u64 / (1 + random.below(12));
        mode = Mode {
            edges: EdgeResidency::Disk,
            window_bytes: Some(bytes.max(64)),
            ..mode
        };
    }
    let mode = in_buckets(seed, mode);
    with_stored(graph, random, mode.buckets.is_some(), |path| {
        let job = |engine: &mut Engine| rounds::<L>(engine, (&first, order, limit));
        let (labels, of_rounds) = run(path, mode, job);
        assert_eq!(of_rounds, changes, "changes, {mode:?}");
        let labels = labels.into_iter().map(Into::into);
        assert!(labels.eq(expected.iter().copied()), "labels, {mode:?}");
    });
}

fn check(seed: u64) {
    let random = &mut SplitMix64::new(seed ^ 0xc0047);
    let graph = random_graph(random);
    match one_of(random, [true, false]) {
        true => check_rounds::<u32>(seed, random, &graph),
        false => check_rounds::<u64>(seed, random, &graph),
    }
}

#[test]
fn random_count_programs_equal_a_naive_simulation() {
    for_seeds(25, check);
}
