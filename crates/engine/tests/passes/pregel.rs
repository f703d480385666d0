//! Vertex programs, pull and push, against plain computations.

mod mailboxes;
mod memory;
mod resume;

use std::collections::{BTreeMap, BTreeSet};

use graphmill_engine::{
    EdgeResidency, Engine, EngineError, KernelChoice, Mode as How, PregelMode, VertexContext,
    VertexProgram,
};
use graphmill_storage::{IoChoice, open_disk};

use crate::Memory::{Bytes, LeastAnd};
use crate::common::vertex_programs::{VERSIONS, graphs, in_modes, mode};
use crate::{Mode, Plain, all, engine, random, run};

/// Waves of messages, from many vertices to few and to many again.
///
/// The first vertices call, then vertex 0 alone unless it was the first one, then each vertex that hears something. A vertex
/// hears the sum of the lengths of the way.
struct Waves {
    first: u64,
}

impl Waves {
    const SUPERSTEPS: u64 = 20;

    fn calls(&self, v: u64, superstep: u64) -> bool {
        match superstep {
            0 => v < self.first,
            1 => v == 0 || self.first == 1,
            _ => true,
        }
    }
    /// What each vertex has heard.
    fn by_hand(&self, graph: &Plain) -> Vec<u64> {
        let vertices = graph.vertices as usize;
        let (mut heard, mut calls) = (vec![0; vertices], vec![None; vertices]);
        calls[..self.first as usize].fill(Some(1));
        for superstep in 1..Self::SUPERSTEPS {
            let mut sums = vec![None; vertices];
            for (s, d, length) in &graph.arcs {
                if let Some(call) = calls[*s as usize] {
                    let sum = sums[*d as usize].get_or_insert(0_u64);
                    *sum = sum.wrapping_add(call + *length as u64);
                }
            }
            for (v, sum) in sums.iter().enumerate() {
                heard[v] = sum.unwrap_or(0).wrapping_add(heard[v]);
                let calling = sum.filter(|_| self.calls(v as u64, superstep));
                calls[v] = calling.map(|_| heard[v] % 1000 + 1);
            }
        }
        heard
    }
}

impl VertexProgram for Waves {
    type Value = u64;
    type Message = u64;
    type Edge = f64;
    type Aggregate = ();
    const IDENTITY: u64 = 0;
    const ORDER_INDEPENDENT: bool = true;

    fn compute(&self, vertex: &mut VertexContext<'_, Self>, sum: Option<u64>) {
        *vertex.value = vertex.value.wrapping_add(sum.unwrap_or(0));
        if self.calls(vertex.index(), vertex.superstep()) {
            vertex.broadcast(*vertex.value % 1000 + 1);
        }
        vertex.vote_to_halt();
    }
    fn combine(&self, sum: &mut u64, other: u64) {
        *sum = sum.wrapping_add(other);
    }
    fn on_edge(&self, call: u64, length: f64) -> u64 {
        call + length as u64
    }
}

#[test]
fn weights_are_kept_after_sparse_supersteps() {
    let disk = open_disk(IoChoice::Auto).unwrap();
    let graph = Plain::directed("random", 5000, random(4, 5000, 12_000));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("graph");
    graph.store(&disk, &path, 1 << 20, 500, true);
    for (first, version) in [1, 5000]
        .iter()
        .flat_map(|first| VERSIONS.map(|v| (*first, v)))
    {
        let expected = Waves { first }.by_hand(&graph);
        for kernel in [
            KernelChoice::Auto,
            KernelChoice::Gather,
            KernelChoice::Scatter,
        ] {
            for edges in [
                EdgeResidency::Auto,
                EdgeResidency::Memory,
                EdgeResidency::Disk,
            ] {
                let mode = Mode {
                    kernel,
                    ..mode(edges, 1, Bytes(1 << 28))
                };
                let heard = run(&path, mode, |engine| {
                    let values = engine.vertex_array::<u64>("heard")?;
                    let supersteps = Some(Waves::SUPERSTEPS);
                    engine.pregel(Waves { first }, values, version, supersteps)?;
                    Ok(all(engine, values))
                });
                assert!(heard == expected, "{first}, {version:?}, {mode:?}");
            }
        }
    }
}

/// Each vertex sends its number once to others that it has no arc to, and adds up what comes.
///
/// Then a few of them pass it on.
struct Letters {
    each: u64,
}

/// Where the `i`-th letter of a vertex goes.
fn address(v: u64, i: u64, vertices: u64) -> u64 {
    (v * 7 + i * i * 31 + 3) % vertices
}

const LETTERS: u64 = 5;

impl VertexProgram for Letters {
    type Value = u64;
    type Message = u64;
    type Edge = ();
    type Aggregate = u64;
    const IDENTITY: u64 = 0;
    const ORDER_INDEPENDENT: bool = true;
    const SENDS: bool = true;

    fn compute(&self, vertex: &mut VertexContext<'_, Self>, sum: Option<u64>) {
        let (v, vertices) = (vertex.index(), vertex.vertices());
        match vertex.superstep() {
            0 => {
                for i in 0..self.each {
                    vertex.send(address(v, i, vertices), v + 1);
                }
                vertex.aggregate(self.each);
                // Every third stays awake without a message.
                if !v.is_multiple_of(3) {
                    vertex.vote_to_halt();
                }
            }
            1 => {
                *vertex.value = vertex.aggregated() + sum.unwrap_or(0);
                if sum.is_some() {
                    vertex.broadcast(1);
                }
                vertex.vote_to_halt();
            }
            _ => {
                *vertex.value += 1_000_000 * sum.unwrap_or(0);
                vertex.vote_to_halt();
            }
        }
    }
    fn combine(&self, sum: &mut u64, other: u64) {
        *sum += other;
    }
}

#[test]
fn sends_reach_their_addressees() {
    for graph in graphs() {
        let vertices = graph.vertices;
        let mut sums = BTreeMap::<u64, u64>::new();
        for (v, i) in (0..vertices).flat_map(|v| (0..LETTERS).map(move |i| (v, i))) {
            *sums.entry(address(v, i, vertices)).or_default() += v + 1;
        }
        let mut called = BTreeMap::<u64, u64>::new();
        for (u, v) in graph.pairs() {
            *called.entry(v).or_default() += u64::from(sums.contains_key(&u));
        }
        let value = |v: u64| {
            let own = match (sums.get(&v), v.is_multiple_of(3)) {
                (Some(sum), _) => LETTERS * vertices + sum,
                (None, true) => LETTERS * vertices,
                (None, false) => 0,
            };
            own + 1_000_000 * called.get(&v).copied().unwrap_or(0)
        };
        let expected: Vec<u64> = (0..vertices).map(value).collect();
        for version in VERSIONS {
            let letters = |engine: &mut Engine| {
                let values = engine.vertex_array::<u64>("letters")?;
                engine.pregel(Letters { each: LETTERS }, values, version, None)?;
                Ok(all(engine, values))
            };
            in_modes(&graph, letters, |mode, found| {
                assert!(found == expected, "{}, {version:?}, {mode:?}", graph.name);
            });
        }
    }
}

/// Two vertices send to all their neighbours, one +1, the other -1.
///
/// A vertex that wakes counts how often, and keeps what came.
struct Opposites;

impl VertexProgram for Opposites {
    type Value = [i64; 2];
    type Message = i64;
    type Edge = ();
    type Aggregate = ();
    const IDENTITY: i64 = 0;
    const ORDER_INDEPENDENT: bool = true;

    fn compute(&self, vertex: &mut VertexContext<'_, Self>, sum: Option<i64>) {
        match vertex.superstep() {
            0 if vertex.index() < 2 => vertex.broadcast(1 - 2 * vertex.index() as i64),
            0 => (),
            _ => *vertex.value = [vertex.value[0] + 1, sum.map_or(100, |sum| sum)],
        }
        vertex.vote_to_halt();
    }
    fn combine(&self, sum: &mut i64, other: i64) {
        *sum += other;
    }
}

/// Shortest paths: a vertex that comes closer tells its neighbours, whose arcs add their lengths.
pub(crate) struct Paths {
    pub(crate) source: u64,
}

impl VertexProgram for Paths {
    type Value = f64;
    type Message = f64;
    type Edge = f64;
    type Aggregate = u64;
    const IDENTITY: f64 = f64::INFINITY;
    const ORDER_INDEPENDENT: bool = true;

    fn compute(&self, vertex: &mut VertexContext<'_, Self>, shortest: Option<f64>) {
        let is_source = vertex.index() == self.source;
        let found = match vertex.superstep() {
            0 if is_source => Some(0.0),
            0 => {
                *vertex.value = f64::INFINITY;
                None
            }
            _ => shortest.filter(|shortest| *shortest < *vertex.value),
        };
        if let Some(found) = found {
            *vertex.value = found;
            vertex.broadcast(found);
            vertex.aggregate(1);
        }
        vertex.vote_to_halt();
    }
    fn combine(&self, shortest: &mut f64, other: f64) {
        *shortest = shortest.min(other);
    }
    fn on_edge(&self, distance: f64, length: f64) -> f64 {
        distance + length
    }
}

/// As [`Paths`], with messages wider than a machine word.
///
/// A message is a length, the number of arcs of the way, and the source of the last one.
struct WidePaths;

impl VertexProgram for WidePaths {
    type Value = [u64; 3];
    type Message = [u64; 3];
    type Edge = f64;
    type Aggregate = ();
    const IDENTITY: [u64; 3] = [u64::MAX; 3];
    const ORDER_INDEPENDENT: bool = true;

    fn compute(&self, vertex: &mut VertexContext<'_, Self>, least: Option<[u64; 3]>) {
        let found = match vertex.superstep() {
            0 if vertex.index() == 0 => Some([0; 3]),
            0 => {
                *vertex.value = Self::IDENTITY;
                None
            }
            _ => least.filter(|least| least < vertex.value),
        };
        if let Some(found) = found {
            *vertex.value = found;
            vertex.broadcast([found[0], found[1] + 1, vertex.index()]);
        }
        vertex.vote_to_halt();
    }
    fn combine(&self, least: &mut [u64; 3], other: [u64; 3]) {
        *least = (*least).min(other);
    }
    fn on_edge(&self, [length, arcs, from]: [u64; 3], edge: f64) -> [u64; 3] {
        [length + edge as u64 + 1, arcs, from]
    }
}

#[test]
fn wide_messages_are_combined_whole() {
    for graph in graphs() {
        // All arcs again and again, until none makes anything less.
        let mut expected = vec![WidePaths::IDENTITY; graph.vertices as usize];
        expected[0] = [0; 3];
        let mut changes = true;
        while std::mem::take(&mut changes) {
            for &(s, d, length) in &graph.arcs {
                let [before, arcs, _] = expected[s as usize];
                if before != u64::MAX {
                    let least = [before + length as u64 + 1, arcs + 1, s];
                    let known = &mut expected[d as usize];
                    changes |= least < *known;
                    *known = least.min(*known);
                }
            }
        }
        for version in VERSIONS {
            let wide = |engine: &mut Engine| {
                let values = engine.vertex_array::<[u64; 3]>("wide")?;
                engine.pregel(WidePaths, values, version, None)?;
                Ok(all(engine, values))
            };
            in_modes(&graph, wide, |mode, found| {
                assert!(found == expected, "{}, {version:?}, {mode:?}", graph.name);
            });
        }
    }
}

#[test]
fn messages_that_cancel_wake_their_targets_only() {
    // The vertices 2 to 299 hear of both, 300 to 599 of one, and others of none.
    let both = (2..300).flat_map(|v| [(0, v, 1.0), (1, v, 1.0)]);
    let one = (300..600).map(|v| (v % 2, v, 1.0));
    let graph = Plain::directed("opposites", 700, both.chain(one));
    let expected: Vec<[i64; 2]> = (0..700)
        .map(|v| match v {
            300..600 => [1, 1 - 2 * (v % 2)],
            _ => [0, 0],
        })
        .collect();
    for version in VERSIONS {
        let opposites = |engine: &mut Engine| {
            let values = engine.vertex_array::<[i64; 2]>("woken")?;
            engine.pregel(Opposites, values, version, None)?;
            Ok(all(engine, values))
        };
        in_modes(&graph, opposites, |mode, found| {
            assert!(found == expected, "{version:?}, {mode:?}");
        });
    }
}

#[test]
fn empty_graph_takes_no_pass() {
    let disk = open_disk(IoChoice::Auto).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("graph");
    Plain::directed("empty", 0, []).store(&disk, &path, 64, 500, false);
    for version in VERSIONS {
        let mode = mode(EdgeResidency::Auto, 2, Bytes(0));
        let mut engine = engine(&path, folder.path(), mode, 1 << 28).unwrap();
        let values = engine.vertex_array::<f64>("values").unwrap();
        engine
            .pregel(Paths { source: 0 }, values, version, Some(9))
            .unwrap();
        assert_eq!(engine.metrics().passes(), 0, "{version:?}");
    }
}

/// Sends to a vertex that there is not; it may not say that it sends.
struct Lost<const SENDS: bool>(u64);

impl<const SENDS: bool> VertexProgram for Lost<SENDS> {
    type Value = u64;
    type Message = u64;
    type Edge = ();
    type Aggregate = ();
    const IDENTITY: u64 = 0;
    const SENDS: bool = SENDS;

    fn compute(&self, vertex: &mut VertexContext<'_, Self>, _: Option<u64>) {
        vertex.send(self.0, 1);
        vertex.vote_to_halt();
    }
    fn combine(&self, _: &mut u64, _: u64) {}
}

#[test]
fn sends_to_missing_vertices_are_errors() {
    let disk = open_disk(IoChoice::Auto).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("graph");
    Plain::directed("two", 2, [(0, 1, 1.0)]).store(&disk, &path, 64, 500, false);
    for version in VERSIONS {
        let fresh = || {
            engine(
                &path,
                folder.path(),
                mode(EdgeResidency::Auto, 1, Bytes(0)),
                1 << 28,
            )
        };
        for index in [2, 1 << 40, u64::MAX - 1, u64::MAX] {
            let mut engine = fresh().unwrap();
            let values = engine.vertex_array::<u64>("values").unwrap();
            let lost = engine.pregel(Lost::<true>(index), values, version, None);
            assert!(
                matches!(lost, Err(EngineError::NoSuchIndex { index: found, .. }) if found == index),
                "{version:?}: {index}: {lost:?}"
            );
        }
        let mut engine = fresh().unwrap();
        let values = engine.vertex_array::<u64>("values").unwrap();
        let undeclared = engine.pregel(Lost::<false>(2), values, version, None);
        assert!(
            matches!(undeclared, Err(EngineError::UndeclaredSends)),
            "{version:?}"
        );
    }
}

#[test]
fn arrays_of_another_engine_are_errors() {
    let disk = open_disk(IoChoice::Auto).unwrap();
    let folder = tempfile::tempdir().unwrap();
    for vertices in [0, 2] {
        let path = folder.path().join(format!("graph-{vertices}"));
        Plain::directed("few", vertices, []).store(&disk, &path, 64, 500, false);
        let open = |scratch: &str| {
            let mode = mode(EdgeResidency::Auto, 1, Bytes(0));
            let scratch = folder.path().join(scratch);
            std::fs::create_dir_all(&scratch).unwrap();
            engine(&path, &scratch, mode, 1 << 28).unwrap()
        };
        for version in VERSIONS {
            let (mut other, mut engine) = (open("one"), open("other"));
            let foreign = other.vertex_array::<f64>("values").unwrap();
            engine.vertex_array::<f64>("values").unwrap();
            let outcome = engine.pregel(Paths { source: 0 }, foreign, version, Some(9));
            let is_told = matches!(outcome, Err(EngineError::ForeignArray));
            assert!(is_told, "{version:?}, {vertices}: {outcome:?}");
        }
        let (mut other, mut engine) = (open("one"), open("other"));
        let foreign = other.vertex_array::<u32>("labels").unwrap();
        let outcome =
            engine.connected_components(foreign, graphmill_engine::ComponentsMethod::Auto);
        assert!(matches!(outcome, Err(EngineError::ForeignArray)));
    }
}
