//! Random vertex programs, pull and push, against a naive simulation.

use std::marker::PhantomData;

use graphmill_engine::{EngineError, PregelMode, VertexContext, VertexProgram, pregel_footprint};
use graphmill_storage::SplitMix64;

use crate::common::vertex_programs::VERSIONS;
use crate::common::{Plain, all, run};
use crate::random_programs::edge_programs::{AsInteger, Long, Short};
use crate::random_programs::{for_seeds, mix, random_graph, random_mode, with_stored};

/// The program reads each message by itself.
const UNCOMBINED: u8 = 1;
/// The program reads its neighbours.
const NEIGHBOURS: u8 = 2;

/// A vertex program whose choices a seed fixes; `READS` has some of [`UNCOMBINED`] and [`NEIGHBOURS`].
struct Random<W, const LEAST: bool, const SENDS: bool, const READS: u8> {
    seed: u64,
    /// One vertex in that many broadcasts, sends, or stays awake.
    rarity: u64,
    edge: PhantomData<fn() -> W>,
}

/// What a vertex does in a superstep.
struct Actions {
    broadcast: Option<u64>,
    sends: Vec<(u64, u64)>,
    halts: bool,
    aggregate: u64,
}

/// Mixes numbers in their order.
fn mix_all(first: u64, numbers: impl IntoIterator<Item = u64>) -> u64 {
    (numbers.into_iter()).fold(first, |mixed, number| mix(mixed ^ number))
}

/// What stands for an edge in a mix of neighbours.
fn neighbour<W: AsInteger>((other, edge): (u64, W)) -> u64 {
    other ^ (edge.as_integer() << 40)
}

impl<W: AsInteger, const LEAST: bool, const SENDS: bool, const READS: u8>
    Random<W, LEAST, SENDS, READS>
{
    const IS_UNCOMBINED: bool = READS & UNCOMBINED != 0;
    const HAS_NEIGHBOURS: bool = READS & NEIGHBOURS != 0;

    fn act(
        &self,
        v: u64,
        (superstep, vertices, degree, aggregated): (u64, u64, u64, u64),
        value: &mut u64,
        (messages, neighbours): (&[u64], impl Iterator<Item = (u64, W)>),
    ) -> Actions {
        let mixed = *value ^ aggregated ^ degree;
        *value = mix_all(
            mix_all(mixed, messages.iter().copied()),
            neighbours.map(neighbour),
        );
        let draw = |what: u64| mix(self.seed ^ *value ^ v ^ (superstep << 32) ^ (what << 48));
        let count = if SENDS && draw(1).is_multiple_of(self.rarity) {
            1 + draw(2) % 3
        } else {
            0
        };
        Actions {
            broadcast: draw(0)
                .is_multiple_of(self.rarity)
                .then(|| draw(3) >> 1 | 1),
            sends: (0..count)
                .map(|i| (draw(4 + i) % vertices, draw(8 + i) >> 1 | 1))
                .collect(),
            halts: !draw(12).is_multiple_of(self.rarity),
            aggregate: draw(13),
        }
    }

    fn by_hand(&self, graph: &Plain, supersteps: u64) -> (Vec<u64>, u64) {
        let vertices = graph.vertices as usize;
        let mut arcs = graph.arcs.clone();
        arcs.sort_by(|a, b| (a.0, a.1).cmp(&(b.0, b.1)).then(a.2.total_cmp(&b.2)));
        let begins = (0..=graph.vertices).map(|v| arcs.partition_point(|arc| arc.0 < v));
        let begins: Vec<usize> = begins.collect();
        let mut values = vec![0; vertices];
        let (mut awake, mut boxes) = (vec![true; vertices], vec![Vec::new(); vertices]);
        let mut aggregated = 0;
        for superstep in 0..supersteps {
            let (mut next, mut sum) = (vec![Vec::new(); vertices], 0_u64);
            let mut put = |to: u64, message| match &mut next[to as usize][..] {
                [combined] if !Self::IS_UNCOMBINED => self.combine(combined, message),
                _ => next[to as usize].push(message),
            };
            let mut is_over = true;
            for v in 0..vertices {
                let mail = boxes[v].iter().copied();
                let mail: Vec<u64> = mail.filter(|message| *message != Self::IDENTITY).collect();
                if mail.is_empty() && !awake[v] {
                    continue;
                }
                is_over = false;
                let arcs = &arcs[begins[v]..begins[v + 1]];
                let edges = || arcs.iter().map(|arc| (arc.1, W::of_weight(arc.2)));
                let known = (superstep, graph.vertices, arcs.len() as u64, aggregated);
                let seen = edges().take(if Self::HAS_NEIGHBOURS { usize::MAX } else { 0 });
                let actions = self.act(v as u64, known, &mut values[v], (&mail, seen));
                awake[v] = !actions.halts;
                sum = sum.wrapping_add(actions.aggregate);
                for (to, message) in actions.sends {
                    put(to, message);
                }
                if let Some(message) = actions.broadcast {
                    edges().for_each(|(to, edge)| put(to, self.on_edge(message, edge)));
                }
            }
            if is_over {
                break;
            }
            (boxes, aggregated) = (next, sum);
        }
        (values, aggregated)
    }
}

impl<W: AsInteger, const LEAST: bool, const SENDS: bool, const READS: u8> VertexProgram
    for Random<W, LEAST, SENDS, READS>
{
    type Value = u64;
    type Message = u64;
    type Edge = W;
    type Aggregate = u64;
    const IDENTITY: u64 = if LEAST { u64::MAX } else { 0 };
    const ORDER_INDEPENDENT: bool = true;
    const SENDS: bool = SENDS;
    const UNCOMBINED: bool = Self::IS_UNCOMBINED;
    const NEIGHBOURS: bool = Self::HAS_NEIGHBOURS;

    fn compute(&self, vertex: &mut VertexContext<'_, Self>, message: Option<u64>) {
        let known = (
            vertex.superstep(),
            vertex.vertices(),
            vertex.out_degree(),
            vertex.aggregated(),
        );
        let seen = Self::HAS_NEIGHBOURS.then(|| vertex.neighbours());
        let one = message.into_iter().collect::<Vec<_>>();
        let messages = if Self::IS_UNCOMBINED {
            vertex.messages()
        } else {
            &one
        };
        let seen = seen.into_iter().flatten();
        let actions = self.act(vertex.index(), known, vertex.value, (messages, seen));
        if let Some(message) = actions.broadcast {
            vertex.broadcast(message);
        }
        for (to, message) in actions.sends {
            vertex.send(to, message);
        }
        vertex.aggregate(actions.aggregate);
        if actions.halts {
            vertex.vote_to_halt();
        }
    }
    fn combine(&self, into: &mut u64, message: u64) {
        *into = match LEAST {
            true => message.min(*into),
            false => into.wrapping_add(message),
        };
    }
    fn on_edge(&self, message: u64, edge: W) -> u64 {
        message ^ (edge.as_integer() << 7)
    }
}

fn check_program<W: AsInteger, const LEAST: bool, const SENDS: bool, const READS: u8>(
    seed: u64,
    random: &mut SplitMix64,
) {
    let mut graph = random_graph(random);
    graph.records = W::RECORDS;
    let program = || Random::<W, LEAST, SENDS, READS> {
        seed,
        rarity: [1, 2, 5, 100][seed as usize / 7 % 4],
        edge: PhantomData,
    };
    let supersteps = 1 + random.below(11);
    let version = VERSIONS[random.below(2) as usize];
    let mode = random_mode(
        random,
        pregel_footprint::<Random<W, LEAST, SENDS, READS>>(version),
    );
    let expected = program().by_hand(&graph, supersteps);
    with_stored(&graph, random, false, |path| {
        let found = run(path, mode, |engine| {
            let values = engine.vertex_array::<u64>("values")?;
            match engine.pregel(program(), values, version, Some(supersteps)) {
                Err(EngineError::PushNeedsMemory { .. }) if version == PregelMode::Push => Ok(None),
                Err(EngineError::NeighboursNeedLists { .. }) if READS & NEIGHBOURS != 0 => Ok(None),
                Err(EngineError::MailNeedsMemory { .. }) if READS & UNCOMBINED != 0 => Ok(None),
                // The least budget has no room for the messages of `send` that a program keeps.
                Err(EngineError::TooSmall { .. }) if READS & UNCOMBINED != 0 && SENDS => Ok(None),
                Ok(aggregated) => Ok(Some((all(engine, values), aggregated))),
                Err(error) => Err(error),
            }
        });
        if let Some(found) = found {
            assert!(
                found.0 == expected.0,
                "seed {seed}: values, {version:?}, {mode:?}"
            );
            assert_eq!(
                found.1, expected.1,
                "seed {seed}: aggregate, {version:?}, {mode:?}"
            );
        }
    });
}

fn check(seed: u64) {
    let random = &mut SplitMix64::new(seed ^ 0x5eed);
    match random.below(11) {
        0 => check_program::<(), false, false, 0>(seed, random),
        1 => check_program::<f32, false, true, 0>(seed, random),
        2 => check_program::<f64, true, false, 0>(seed, random),
        3 => check_program::<(), true, true, 0>(seed, random),
        4 => check_program::<f64, false, false, NEIGHBOURS>(seed, random),
        5 => check_program::<f32, true, false, UNCOMBINED>(seed, random),
        6 => check_program::<(), false, true, UNCOMBINED>(seed, random),
        7 => check_program::<f64, true, true, { UNCOMBINED | NEIGHBOURS }>(seed, random),
        8 => check_program::<Short, true, true, NEIGHBOURS>(seed, random),
        9 => check_program::<Long, false, false, UNCOMBINED>(seed, random),
        _ => check_program::<(), false, true, 0>(seed, random),
    }
}

#[test]
fn random_vertex_programs_equal_a_naive_simulation() {
    for_seeds(60, check);
}
