//! Random vertex programs, pull and push, against a naive simulation.

use std::marker::PhantomData;

use graphmill_engine::{EngineError, PregelMode, VertexContext, VertexProgram, pregel_footprint};
use graphmill_storage::SplitMix64;

use crate::common::vertex_programs::VERSIONS;
use crate::common::{Plain, all, run};
use crate::random_programs::edge_programs::AsInteger;
use crate::random_programs::{for_seeds, mix, random_graph, random_mode, with_stored};

/// A vertex program whose choices a seed fixes.
struct Random<W, const LEAST: bool, const SENDS: bool> {
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

impl<W: AsInteger, const LEAST: bool, const SENDS: bool> Random<W, LEAST, SENDS> {
    fn act(
        &self,
        v: u64,
        (superstep, vertices, degree, aggregated): (u64, u64, u64, u64),
        value: &mut u64,
        message: Option<u64>,
    ) -> Actions {
        *value = mix(*value ^ message.unwrap_or(5) ^ aggregated ^ degree);
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
        let mut degrees = vec![0; vertices];
        for arc in &graph.arcs {
            degrees[arc.0 as usize] += 1;
        }
        let mut values = vec![0; vertices];
        let (mut awake, mut boxes) = (vec![true; vertices], vec![Self::IDENTITY; vertices]);
        let mut aggregated = 0;
        for superstep in 0..supersteps {
            let (mut next, mut sum) = (vec![Self::IDENTITY; vertices], 0_u64);
            let mut broadcasts = vec![None; vertices];
            let mut is_over = true;
            for v in 0..vertices {
                let message = (boxes[v] != Self::IDENTITY).then_some(boxes[v]);
                if message.is_none() && !awake[v] {
                    continue;
                }
                is_over = false;
                let known = (superstep, graph.vertices, degrees[v], aggregated);
                let actions = self.act(v as u64, known, &mut values[v], message);
                awake[v] = !actions.halts;
                sum = sum.wrapping_add(actions.aggregate);
                broadcasts[v] = actions.broadcast;
                for (to, message) in actions.sends {
                    self.combine(&mut next[to as usize], message);
                }
            }
            if is_over {
                break;
            }
            for &(source, destination, weight) in &graph.arcs {
                if let Some(message) = broadcasts[source as usize] {
                    let message = self.on_edge(message, W::of_f32(weight as f32));
                    self.combine(&mut next[destination as usize], message);
                }
            }
            (boxes, aggregated) = (next, sum);
        }
        (values, aggregated)
    }
}

impl<W: AsInteger, const LEAST: bool, const SENDS: bool> VertexProgram for Random<W, LEAST, SENDS> {
    type Value = u64;
    type Message = u64;
    type Edge = W;
    type Aggregate = u64;
    const IDENTITY: u64 = if LEAST { u64::MAX } else { 0 };
    const ORDER_INDEPENDENT: bool = true;
    const SENDS: bool = SENDS;

    fn compute(&self, vertex: &mut VertexContext<'_, Self>, message: Option<u64>) {
        let known = (
            vertex.superstep(),
            vertex.vertices(),
            vertex.out_degree(),
            vertex.aggregated(),
        );
        let actions = self.act(vertex.index(), known, vertex.value, message);
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

fn check_program<W: AsInteger, const LEAST: bool, const SENDS: bool>(
    seed: u64,
    random: &mut SplitMix64,
) {
    let graph = random_graph(random);
    let program = || Random::<W, LEAST, SENDS> {
        seed,
        rarity: [1, 2, 5, 100][seed as usize / 7 % 4],
        edge: PhantomData,
    };
    let supersteps = 1 + random.below(9);
    let version = VERSIONS[random.below(2) as usize];
    let mode = random_mode(random, pregel_footprint::<Random<W, LEAST, SENDS>>(version));
    let expected = program().by_hand(&graph, supersteps);
    with_stored(&graph, random, |path| {
        let found = run(path, mode, |engine| {
            let values = engine.vertex_array::<u64>("values")?;
            match engine.pregel(program(), values, version, Some(supersteps)) {
                Err(EngineError::PushNeedsMemory { .. }) if version == PregelMode::Push => Ok(None),
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
    match random.below(6) {
        0 => check_program::<(), false, false>(seed, random),
        1 => check_program::<f32, false, true>(seed, random),
        2 => check_program::<f64, true, false>(seed, random),
        3 => check_program::<(), true, true>(seed, random),
        4 => check_program::<f64, false, false>(seed, random),
        _ => check_program::<(), false, true>(seed, random),
    }
}

#[test]
fn random_vertex_programs_equal_a_naive_simulation() {
    for_seeds(60, check);
}
