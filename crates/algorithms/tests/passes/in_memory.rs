//! Labels over lists: however badly the width of buckets suits the weights, and where few vertices find many.

use graphmill_algorithms::bfs;
use graphmill_algorithms::sssp::{self, SsspMethod};
use graphmill_engine::{EdgeResidency, KernelChoice, Mode as How};
use graphmill_storage::{IoChoice, open_disk};

use crate::{Memory, Mode, Plain, all, engines, random, run};

const FEW: u64 = 300;

/// Vertices 1 to `FEW` are called by 0, and call three others each.
fn few_that_find_many() -> Plain {
    let edges = (1..=FEW).flat_map(|v| {
        let called = (0..3).map(move |third| (v, v + FEW * (third + 1), 0.001));
        called.chain([(0, v, 1.0)])
    });
    Plain::directed("few that find many", 1 + 4 * FEW, edges)
}

fn graphs() -> Vec<Plain> {
    let path = |name, weight: fn(u64) -> f64| {
        Plain::directed(name, 4000, (1..4000).map(|v| (v - 1, v, weight(v))))
    };
    let leaves = (1..4000).map(|v| (0, v, (v % 1999) as f64 * 1e6 + 1.0));
    let close = random(7, 4000, 20_000).into_iter();
    vec![
        path("no length, then long", |v| if v < 1000 { 0.0 } else { 1e9 }),
        path("short, then long", |v| if v < 600 { 1e-9 } else { 1e6 }),
        path("beyond all numbers", |_| 1e38),
        few_that_find_many(),
        Plain::directed("far leaves", 4000, leaves.clone()),
        Plain::directed("far leaves and near ones", 4000, leaves.chain(close)),
    ]
}

fn mode(threads: usize) -> Mode {
    Mode {
        threads,
        memory: Memory::Bytes(1 << 28),
        edges: EdgeResidency::Memory,
        ..Mode::USUAL
    }
}

#[test]
fn bfs_few_vertices_find_many() {
    let disk = open_disk(IoChoice::Auto).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("graph");
    few_that_find_many().store(&disk, &path, 512, u64::MAX, false);
    for threads in [1, 3] {
        let depths = run(&path, mode(threads), |engine| {
            bfs::run(engine, 0).map(|depths| all(engine, depths))
        });
        for (v, depth) in (0..).zip(depths) {
            assert_eq!(depth, u64::min(v, 1) as u32 + u32::from(v > FEW), "{v}");
        }
    }
}

#[test]
fn bfs_levels_are_pushed_or_pulled_as_set() {
    let disk = open_disk(IoChoice::Auto).unwrap();
    let edges = || random(3, 4000, 40_000);
    for (graph, reverse) in [
        (Plain::undirected("both ways", 4000, edges()), false),
        (Plain::directed("turned too", 4000, edges()), true),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("graph");
        graph.store(&disk, &path, 512, u64::MAX, reverse);
        let levels = |kernel| {
            let mode = Mode { kernel, ..mode(2) };
            run(&path, mode, |engine| {
                let depths = bfs::run(engine, 0)?;
                let passes = engine.metrics().passes.iter();
                let count = |wanted| passes.clone().filter(|pass| pass.mode == wanted).count();
                Ok((all(engine, depths), count(How::Push), count(How::Pull)))
            })
        };
        let (depths, pushed, pulled) = levels(KernelChoice::Auto);
        assert!(pushed > 0 && pulled > 0, "{}", graph.name);
        let found = levels(KernelChoice::Scatter);
        assert!(
            found.0 == depths && found.1 > 0 && found.2 == 0,
            "{}",
            graph.name
        );
        let found = levels(KernelChoice::Gather);
        assert!(
            found.0 == depths && found.1 == 0 && found.2 > 0,
            "{}",
            graph.name
        );
    }
}

#[test]
fn bfs_many_levels_and_wide_ones_are_right() {
    let disk = open_disk(IoChoice::Auto).unwrap();
    let path = Plain::directed("a path", 4000, (1..4000).map(|v| (v - 1, v, 1.0)));
    // Pulled at its widest, and then few vertices have many neighbours: (how many, to which of the level before).
    let (mut edges, mut depths, mut first) = (Vec::new(), vec![0], 0);
    for (depth, count) in (1..).zip([300, 3000, 500, 20_000]) {
        let (before, from) = (depths.len() as u64 - first, first);
        first = depths.len() as u64;
        edges.extend((0..count).map(|v| (from + v % before, first + v, 1.0)));
        depths.resize(depths.len() + count as usize, depth);
    }
    let bulb = [(0..3000), (0..3000)]
        .into_iter()
        .flatten()
        .map(|v| (301 + v, 3301 + v % 500, 1.0));
    edges.extend(bulb);
    let wide = Plain::undirected("a bulb", depths.len() as u64, edges);
    for (graph, expected) in [(path, (0..4000).collect()), (wide, depths)] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("graph");
        graph.store(&disk, &path, 512, u64::MAX, false);
        for threads in [1, 3] {
            let found = run(&path, mode(threads), |engine| {
                bfs::run(engine, 0).map(|depths| all(engine, depths))
            });
            assert!(found == expected, "{}, {threads} threads", graph.name);
        }
    }
}

#[test]
fn edge_weighted_degree_matches_graph_shape() {
    let disk = open_disk(IoChoice::Auto).unwrap();
    let ring = (0..5000).map(|v| (v, (v + 1) % 5000, 1.0));
    let star = (1..5000).map(|v| (v % 64, v, 1.0));
    for (graph, wanted) in [
        (Plain::directed("isolated vertices", 5000, []), 1.0..1.1),
        (Plain::undirected("a ring", 5000, ring), 1.9..2.1),
        // Half of the edges leave one of the 64 hubs of 78 edges, and half one of the others.
        (Plain::undirected("hubs", 5000, star), 8.0..9.5),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("graph");
        graph.store(&disk, &path, 5000, u64::MAX, false);
        let usual = run(&path, mode(1), graphmill_engine::job::sample_degree);
        assert!(wanted.contains(&usual), "{}: {usual}", graph.name);
    }
}

#[test]
fn sssp_any_bucket_width_is_right() {
    let disk = open_disk(IoChoice::Auto).unwrap();
    for graph in graphs() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("graph");
        graph.store(&disk, &path, 512, u64::MAX, false);
        for threads in [1, 3] {
            let distances = |method| {
                run(&path, mode(threads), |engine| {
                    let distances = engines(sssp::run::<f64>(engine, 0, method))?;
                    Ok((all(engine, distances), engine.metrics().passes()))
                })
            };
            let (expected, _) = distances(SsspMethod::BellmanFord);
            let widths = [1e-320, 1e-300, 1e-3, 1.0, 1e300].map(Some);
            for width in widths.into_iter().chain([None]) {
                let (found, passes) = distances(SsspMethod::Delta(width));
                assert_eq!(found, expected, "{}, {width:?}", graph.name);
                assert!(
                    passes < 20_000,
                    "{}, {width:?}: {passes} passes",
                    graph.name
                );
            }
        }
    }
}

/// Rings one after the other, then vertices without edges.
fn cylinder(rings: u64, round: u64, alone: u64) -> Plain {
    let weight = |v: u64| 1.0 + (v * 2_654_435_761 % 255) as f64;
    let edges = (0..rings * round).flat_map(|v| {
        let ring = v / round * round;
        let next = (v + round < rings * round).then(|| (v, v + round, weight(2 * v)));
        [(v, ring + (v + 1) % round, weight(2 * v + 1))]
            .into_iter()
            .chain(next)
    });
    Plain::undirected("a cylinder", rings * round + alone, edges)
}

#[test]
fn sssp_bucket_width_bounds_its_work() {
    let disk = open_disk(IoChoice::Auto).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("graph");
    let graph = cylinder(500, 60, 30_000);
    graph.store(&disk, &path, 1 << 14, u64::MAX, false);
    for threads in [1, 2] {
        for (width, most) in [(Some(50.0), 2), (Some(500.0), 4), (Some(1e300), 200)] {
            let edges: u64 = run(&path, mode(threads), |engine| {
                engines(sssp::run::<f32>(engine, 0, SsspMethod::Delta(width)))?;
                let passes = &engine.metrics().passes;
                Ok(passes.iter().map(|pass| pass.edges).sum())
            });
            let all = graph.arcs.len() as u64;
            println!("{threads} threads, {width:?}: {edges} of {all}");
            assert!(
                edges <= most * all,
                "{threads} threads, {width:?}: {edges} of {all}"
            );
        }
    }
}
