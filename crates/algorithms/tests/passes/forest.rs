//! Minimum spanning forests: the checker accepts them, and edges and bits are the same in every mode and layout.

use std::path::Path;

use graphmill_algorithms::mst::{self, ForestEdge, LinkIndex};
use graphmill_algorithms::{NO_EDGE, key_weight};
use graphmill_engine::Engine;
use graphmill_graph::EdgeKind;
use graphmill_storage::{IoChoice, open_disk};

use crate::exact::{LAYOUTS, MODES, chained_cycles};
use crate::{Edge, Mode, Plain, all, random, run};

/// Edges whose weights are few, so that many are equal, and some negative.
fn with_weights(edges: impl IntoIterator<Item = Edge>) -> Vec<Edge> {
    let weight = |u: u64, v: u64| ((u ^ v) * 13 % 9) as f64 / 2.0 - 1.5;
    edges
        .into_iter()
        .map(|(u, v, _)| (u, v, weight(u, v)))
        .collect()
}

fn graphs() -> Vec<Plain> {
    let odd = [
        (0, 1, 2.0),
        (1, 0, -1.0),
        (0, 1, 1.0),
        (1, 1, -7.0),
        (3, 4, 0.0),
        (4, 3, -0.0),
        (4, 5, 0.0),
        (5, 3, 0.0),
        (2, 2, 1.0),
        (0, 5, 1e9),
    ];
    let path = || (1..200).map(|v| (v - 1, v, ((v * v) % 11) as f64));
    let star = (0..300).filter(|v| *v != 7).map(|v| (v, 7, 1.0));
    let wide = |edges: Vec<Edge>| {
        edges
            .into_iter()
            .map(|(u, v, w)| (u, v, w + 1e-12 * u as f64))
    };
    let mut graphs = vec![
        Plain::directed("one vertex", 1, []),
        Plain::directed("a self-loop", 1, [(0, 0, -3.0)]),
        Plain::directed("isolated vertices", 100, [(3, 70, 1.0)]),
        Plain::directed("parallel edges and loops", 7, odd),
        Plain::undirected("parallel edges and loops both ways", 7, odd),
        Plain::directed("a path", 200, path()),
        Plain::undirected("a star of equal weights", 300, star),
        Plain::directed("cycles of two", 120, with_weights(chained_cycles(60))),
        Plain::directed("random", 600, with_weights(random(2, 600, 2400))),
        Plain::undirected("random both ways", 500, with_weights(random(3, 500, 900))),
        Plain::undirected("weights of 64 bits", 400, wide(random(4, 400, 1500))),
        Plain::directed(
            "no weights",
            400,
            random(5, 400, 700).into_iter().map(|e| (e.0, e.1, 1.0)),
        ),
    ];
    for graph in &mut graphs {
        graph.weights = match graph.name {
            "weights of 64 bits" => EdgeKind::F64,
            "no weights" => EdgeKind::None,
            _ => EdgeKind::F32,
        };
    }
    graphs
}

fn forest<I: LinkIndex>(path: &Path, mode: Mode) -> Vec<ForestEdge> {
    let mode = Mode {
        footprint: mst::sizes::<I>(),
        ..mode
    };
    let job = |engine: &mut Engine| mst::run::<I>(engine).map(|forest| all(engine, forest));
    run(path, mode, job)
}

#[test]
fn forests_are_right_and_the_same_in_all_modes() {
    let disk = open_disk(IoChoice::Auto).unwrap();
    for (number, graph) in graphs().iter().enumerate() {
        let mut first: Option<Vec<ForestEdge>> = None;
        for (turn, (span, strip, reverse)) in LAYOUTS.into_iter().enumerate() {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("graph");
            let reverse = reverse && !graph.symmetric;
            graph.store(&disk, &path, span.min(graph.vertices), strip, reverse);
            for (place, mode) in MODES.into_iter().enumerate() {
                if (place + number) % LAYOUTS.len() != turn {
                    continue;
                }
                let what = format!("{}, {span}, {reverse}, {mode:?}", graph.name);
                let found = forest::<u32>(&path, mode);
                let first = first.get_or_insert_with(|| {
                    assert!(found == forest::<u64>(&path, mode), "64 bits: {what}");
                    mst::check::check_forest(graph.vertices, &graph.arcs, &found)
                        .unwrap_or_else(|violation| panic!("{what}: {violation}"));
                    found.clone()
                });
                assert!(found == *first, "other edges: {what}");
            }
        }
    }
}

#[test]
fn long_path_and_weight_are_found() {
    const VERTICES: u64 = 100_000;
    let edges = (1..VERTICES).map(|v| (v - 1, v, (v % 3) as f64));
    let more = (0..VERTICES - 2).step_by(3).map(|v| (v, v + 2, 5.0));
    let graph = Plain::undirected("a path", VERTICES, edges.chain(more));
    let disk = open_disk(IoChoice::Auto).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("graph");
    graph.store(&disk, &path, 1 << 15, 1 << 22, false);
    let mut found = forest::<u32>(&path, Mode::USUAL);
    found.retain(|edge| *edge != NO_EDGE);
    assert_eq!(found.len() as u64, VERTICES - 1);
    let weight: f64 = found.iter().map(|edge| key_weight(edge[0])).sum();
    assert_eq!(weight, (1..VERTICES).map(|v| v % 3).sum::<u64>() as f64);
}
