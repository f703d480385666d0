//! Vertex programs that read every message, or their neighbours, against plain computations.

use std::cell::RefCell;
use std::collections::BTreeSet;

use graphmill_engine::{
    EdgeResidency, Engine, EngineError, PregelMode, VertexContext, VertexProgram,
};

use crate::common::Ranks;
use crate::common::vertex_programs::{VERSIONS, graphs, in_modes};
use crate::{Plain, all};

/// A number that depends on the order of others.
fn mix(hash: u64, next: u64) -> u64 {
    (hash ^ next)
        .wrapping_mul(0x9E37_79B9_7F4A_7C15)
        .rotate_left(17)
}

/// Each vertex sends its number along its edges and to two others, and mixes what comes.
struct Letters {
    supersteps: u64,
}

impl Letters {
    /// Where a vertex sends to.
    fn addresses(v: u64, superstep: u64, vertices: u64) -> [u64; 2] {
        [v * 7 + 3 + superstep, v / 2].map(|to| to % vertices)
    }
    fn broadcasts(v: u64, superstep: u64) -> bool {
        !(v + superstep).is_multiple_of(3)
    }
    /// The values at the end.
    fn by_hand(&self, graph: &Plain) -> Vec<u64> {
        let vertices = graph.vertices;
        let mut arcs = graph.arcs.clone();
        arcs.sort_by(|a, b| (a.0, a.1).cmp(&(b.0, b.1)).then(a.2.total_cmp(&b.2)));
        let mut values: Vec<u64> = (0..vertices).collect();
        for superstep in 0..self.supersteps {
            let mut mail: Vec<Vec<u64>> = vec![Vec::new(); vertices as usize];
            let mut at = 0;
            for v in 0..vertices {
                let value = values[v as usize];
                for to in Self::addresses(v, superstep, vertices) {
                    mail[to as usize].push(value ^ 1);
                }
                while let Some((_, to, weight)) = arcs.get(at).filter(|arc| arc.0 == v) {
                    if Self::broadcasts(v, superstep) {
                        mail[*to as usize].push(value.wrapping_add(*weight as u64));
                    }
                    at += 1;
                }
            }
            for (value, mail) in values.iter_mut().zip(mail) {
                *value = mail.into_iter().fold(*value, mix) >> 1;
            }
        }
        values
    }
}

impl VertexProgram for Letters {
    type Value = u64;
    type Message = u64;
    type Edge = f64;
    type Aggregate = f64;
    const IDENTITY: u64 = u64::MAX;
    const SENDS: bool = true;
    const UNCOMBINED: bool = true;

    fn compute(&self, vertex: &mut VertexContext<'_, Self>, message: Option<u64>) {
        assert_eq!(message, None);
        let (v, superstep) = (vertex.index(), vertex.superstep());
        match superstep {
            0 => *vertex.value = v,
            _ => {
                let mail = vertex.messages().iter().copied();
                *vertex.value = mail.fold(*vertex.value, mix) >> 1;
            }
        }
        vertex.aggregate(1.0 / (v as f64 + 3.0));
        if superstep == self.supersteps {
            return vertex.vote_to_halt();
        }
        for to in Self::addresses(v, superstep, vertex.vertices()) {
            vertex.send(to, *vertex.value ^ 1);
        }
        if Self::broadcasts(v, superstep) {
            vertex.broadcast(*vertex.value);
        }
    }
    fn combine(&self, _: &mut u64, _: u64) {
        panic!("messages are combined");
    }
    fn on_edge(&self, message: u64, weight: f64) -> u64 {
        message.wrapping_add(weight as u64)
    }
}

#[test]
fn uncombined_messages_come_in_order_of_senders() {
    for graph in graphs() {
        let letters = Letters { supersteps: 3 };
        let expected = letters.by_hand(&graph);
        let sum = (0..graph.vertices).fold(0.0, |sum, v| sum + 1.0 / (v as f64 + 3.0));
        let bits = RefCell::new(BTreeSet::new());
        for version in VERSIONS {
            let run = |engine: &mut Engine| {
                let values = engine.vertex_array::<u64>("values")?;
                let sum = engine.pregel(Letters { supersteps: 3 }, values, version, None)?;
                Ok((all(engine, values), sum))
            };
            in_modes(&graph, run, |mode, (found, total)| {
                assert!(found == expected, "{}, {version:?}, {mode:?}", graph.name);
                assert!((total - sum).abs() < 1e-9, "{total} {sum}");
                bits.borrow_mut().insert(total.to_bits());
            });
        }
        // The graph is stored with batches of two sizes, and a sum depends on the batches alone.
        assert!(bits.borrow().len() <= 2, "{}: {bits:?}", graph.name);
    }
}

/// Wakes once by a request of a lower vertex, which it answers; everyone else sleeps.
struct Requests;

impl VertexProgram for Requests {
    type Value = u64;
    type Message = [u64; 2];
    type Edge = ();
    type Aggregate = u64;
    const IDENTITY: [u64; 2] = [u64::MAX; 2];
    const SENDS: bool = true;
    const UNCOMBINED: bool = true;

    fn compute(&self, vertex: &mut VertexContext<'_, Self>, _: Option<[u64; 2]>) {
        let (v, vertices) = (vertex.index(), vertex.vertices());
        match vertex.superstep() {
            0 if v.is_multiple_of(5) => vertex.send((v * 11 + 1) % vertices, [v, 0]),
            0 => (),
            1 => {
                for [from, _] in vertex.messages() {
                    vertex.send(*from, [v, v + 100]);
                }
            }
            _ => {
                *vertex.value = vertex.messages().iter().map(|[_, reply]| reply).sum();
                vertex.aggregate(1);
            }
        }
        vertex.vote_to_halt();
    }
    fn combine(&self, _: &mut [u64; 2], _: [u64; 2]) {}
}

#[test]
fn requests_get_their_replies() {
    for graph in graphs() {
        let vertices = graph.vertices;
        let reply = |v: u64| match v.is_multiple_of(5) {
            true => (v * 11 + 1) % vertices + 100,
            false => 0,
        };
        let expected: Vec<u64> = (0..vertices).map(reply).collect();
        let run = |engine: &mut Engine| {
            let values = engine.vertex_array::<u64>("values")?;
            let replies = engine.pregel(Requests, values, PregelMode::Pull, None)?;
            Ok((all(engine, values), replies))
        };
        in_modes(&graph, run, |mode, (found, replies)| {
            assert!(found == expected, "{}, {mode:?}", graph.name);
            assert_eq!(replies, vertices.div_ceil(5), "{mode:?}");
        });
    }
}

/// Mixes the neighbours of a vertex, with their weights; `DECLARED` says that it reads them.
struct Neighbours<const DECLARED: bool>;

impl<const DECLARED: bool> VertexProgram for Neighbours<DECLARED> {
    type Value = u64;
    type Message = u64;
    type Edge = f32;
    type Aggregate = u64;
    const IDENTITY: u64 = 0;
    const SENDS: bool = true;
    const NEIGHBOURS: bool = DECLARED;

    fn compute(&self, vertex: &mut VertexContext<'_, Self>, sum: Option<u64>) {
        if vertex.superstep() == 1 {
            *vertex.value = mix(*vertex.value, sum.unwrap_or(0));
            return vertex.vote_to_halt();
        }
        for (neighbour, weight) in vertex.neighbours() {
            *vertex.value = mix(*vertex.value, neighbour ^ weight as u64);
            vertex.send(neighbour, 1);
        }
    }
    fn combine(&self, sum: &mut u64, other: u64) {
        *sum += other;
    }
}

#[test]
fn neighbours_are_seen_in_order_with_their_weights() {
    for graph in graphs() {
        let mut arcs = graph.arcs.clone();
        arcs.sort_by(|a, b| (a.0, a.1).cmp(&(b.0, b.1)).then(a.2.total_cmp(&b.2)));
        let mut expected = vec![0; graph.vertices as usize];
        let mut sums = expected.clone();
        for (from, to, weight) in arcs {
            let value = &mut expected[from as usize];
            *value = mix(*value, to ^ weight as u64);
            sums[to as usize] += 1;
        }
        for (value, sum) in expected.iter_mut().zip(sums) {
            *value = mix(*value, sum);
        }
        for version in VERSIONS {
            let run = |engine: &mut Engine| {
                let values = engine.vertex_array::<u64>("values")?;
                match engine.pregel(Neighbours::<true>, values, version, None) {
                    Err(EngineError::NeighboursNeedLists { .. }) => Ok(None),
                    done => done.map(|_| Some(all(engine, values))),
                }
            };
            in_modes(&graph, run, |mode, found| match found {
                Some(found) => assert!(found == expected, "{}, {mode:?}", graph.name),
                None => assert!(
                    mode.ranks != Ranks::One
                        || mode.edges == EdgeResidency::Disk
                        || matches!(mode.memory, crate::Memory::LeastAnd(_)),
                    "{mode:?}"
                ),
            });
        }
        let run = |engine: &mut Engine| {
            let values = engine.vertex_array::<u64>("values")?;
            let done = engine.pregel(Neighbours::<false>, values, PregelMode::Pull, None);
            Ok(matches!(done, Err(EngineError::UndeclaredNeighbours)))
        };
        in_modes(&graph, run, |mode, is_refused| {
            assert!(is_refused, "{mode:?}")
        });
    }
}
