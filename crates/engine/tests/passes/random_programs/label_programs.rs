//! Random label programs, by levels and by lengths, against a naive simulation.

use std::marker::PhantomData;

use graphmill_engine::{Direction, MonotoneProgram, footprint_of};
use graphmill_storage::SplitMix64;

use crate::common::{Plain, all, run};
use crate::random_programs::edge_programs::{AsInteger, Long, Short};
use crate::random_programs::{for_seeds, random_graph, random_mode, with_stored};
use crate::search_ranks::Levels;

/// As much more as an arc weighs, in buckets of a width.
struct Lengths<W> {
    width: u64,
    edge: PhantomData<fn() -> W>,
}

impl<W> Clone for Lengths<W> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<W> Copy for Lengths<W> {}

impl<W: AsInteger> MonotoneProgram for Lengths<W> {
    type Label = u64;
    type Edge = W;

    fn on_edge(&self, label: u64, edge: W) -> u64 {
        label + edge.as_integer() % 1000
    }
    fn bucket(&self, label: u64) -> u64 {
        label / self.width
    }
}

/// Lowers labels along all arcs until none falls.
fn by_hand<L: Copy + PartialOrd>(
    graph: &Plain,
    backward: bool,
    mut labels: Vec<L>,
    on_edge: impl Fn(L, f64) -> Option<L>,
) -> Vec<L> {
    let mut falls = true;
    while std::mem::take(&mut falls) {
        for &(source, destination, weight) in &graph.arcs {
            let (from, to) = match backward {
                true => (destination, source),
                false => (source, destination),
            };
            if let Some(label) = on_edge(labels[from as usize], weight)
                && label < labels[to as usize]
            {
                labels[to as usize] = label;
                falls = true;
            }
        }
    }
    labels
}

fn check_program<P: MonotoneProgram>(
    random: &mut SplitMix64,
    (graph, program, none): (&Plain, P, P::Label),
    first: impl Fn(&mut SplitMix64) -> P::Label,
    expected: impl Fn(bool, Vec<P::Label>) -> Vec<P::Label>,
) {
    let mut labels = vec![none; graph.vertices as usize];
    let sources: Vec<u64> = (0..1 + random.below(3))
        .map(|_| random.below(graph.vertices))
        .collect();
    for v in &sources {
        labels[*v as usize] = first(random);
    }
    let backward = random.below(4) == 0;
    let direction = match backward {
        true => Direction::Backward,
        false => Direction::Forward,
    };
    let mode = random_mode(random, footprint_of::<P>());
    let expected = expected(backward, labels.clone());
    with_stored(graph, random, false, |path| {
        let found = run(path, mode, |engine| {
            let array = engine.vertex_array::<P::Label>("labels")?;
            let of = |v: u64, label: &mut P::Label| *label = labels[v as usize];
            engine.process_vertices(array.write(), None, of)?;
            let mut active = engine.empty_set()?;
            active.insert_each(sources.iter().copied())?;
            engine.run_to_fixpoint(&program, array, active, direction)?;
            Ok(all(engine, array))
        });
        assert!(found == expected, "labels, {direction:?}, {mode:?}");
    });
}

/// Checks lengths over edges with such values.
fn check_lengths<W: AsInteger>(random: &mut SplitMix64, graph: &mut Plain) {
    graph.records = W::RECORDS;
    let program = Lengths {
        width: [1, 3, 1000][random.below(3) as usize],
        edge: PhantomData::<fn() -> W>,
    };
    let on_edge = |label: u64, weight| {
        (label < u64::MAX).then(|| program.on_edge(label, W::of_weight(weight)))
    };
    let expected = |backward, labels| by_hand(graph, backward, labels, on_edge);
    check_program(
        random,
        (graph, program, u64::MAX),
        |random| random.below(9),
        expected,
    );
}

fn check(seed: u64) {
    let random = &mut SplitMix64::new(seed ^ 0x1abe1);
    let graph = &mut random_graph(random);
    if random.below(2) == 0 {
        let graph = &*graph;
        let program = (graph, Levels, u32::MAX);
        let on_edge = |label: u32, _| label.checked_add(1);
        let expected = |backward, labels| by_hand(graph, backward, labels, on_edge);
        return check_program(random, program, |_| 5, expected);
    }
    match random.below(4) {
        0 => check_lengths::<Short>(random, graph),
        1 => check_lengths::<Long>(random, graph),
        _ => check_lengths::<f32>(random, graph),
    }
}

#[test]
fn random_label_programs_equal_a_naive_simulation() {
    for_seeds(60, check);
}
