//! The four algorithms on odd graphs: their checkers accept them, and the same bits whatever the kernel, the number of
//! threads, the budget and the way of reading.

use std::collections::BTreeSet;

use graphmill_algorithms::{AlgorithmError, bfs, pagerank, sssp, wcc};
use graphmill_engine::{
    Activate, ComponentsMethod, Direction, EdgeProgram, EdgeResidency, KernelChoice, SparseChoice,
    Write,
};
use graphmill_storage::{IoChoice, open_disk};

use crate::Memory::{Bytes, LeastAnd};
use crate::{Mode, Plain, Ranks, all, engines, is_soak, random, ranking, run};

const MODES: &[Mode] = {
    use IoChoice::Threads;
    use KernelChoice::{Gather, Scatter};
    use SparseChoice::{Always, Never};
    &[
        Mode::USUAL,
        Mode {
            kernel: Scatter,
            sparse: Never,
            threads: 1,
            ..Mode::USUAL
        },
        Mode {
            kernel: Scatter,
            sparse: Never,
            threads: 3,
            memory: LeastAnd(1 << 14),
            io: Threads,
            ..Mode::USUAL
        },
        Mode {
            kernel: Gather,
            sparse: Never,
            ..Mode::USUAL
        },
        Mode {
            kernel: Gather,
            sparse: Never,
            threads: 3,
            memory: LeastAnd(1 << 14),
            ..Mode::USUAL
        },
        Mode {
            kernel: Scatter,
            sparse: Always,
            ..Mode::USUAL
        },
        Mode {
            kernel: Scatter,
            sparse: Always,
            threads: 1,
            memory: Bytes(16 << 20),
            io: Threads,
            ..Mode::USUAL
        },
        Mode {
            kernel: Scatter,
            memory: Bytes(16 << 20),
            ..Mode::USUAL
        },
        Mode {
            memory: LeastAnd(0),
            ..Mode::USUAL
        },
        Mode {
            edges: EdgeResidency::Memory,
            ..Mode::USUAL
        },
        Mode {
            threads: 3,
            edges: EdgeResidency::Memory,
            ..Mode::USUAL
        },
        Mode {
            sparse: Never,
            edges: EdgeResidency::Disk,
            ..Mode::USUAL
        },
        Mode {
            ranks: Ranks::Local(2),
            ..Mode::USUAL
        },
        Mode {
            kernel: Scatter,
            sparse: Never,
            memory: LeastAnd(1 << 14),
            ranks: Ranks::Local(3),
            ..Mode::USUAL
        },
        Mode {
            kernel: Gather,
            sparse: Never,
            threads: 1,
            edges: EdgeResidency::Memory,
            ranks: Ranks::Simulated(3, 1),
            ..Mode::USUAL
        },
        Mode {
            sparse: Always,
            threads: 1,
            edges: EdgeResidency::Disk,
            ranks: Ranks::Simulated(4, 2),
            ..Mode::USUAL
        },
        Mode {
            threads: 1,
            memory: LeastAnd(0),
            io: Threads,
            ranks: Ranks::Simulated(8, 3),
            ..Mode::USUAL
        },
    ]
};

pub(crate) const COMPONENTS: [wcc::WccMethod; 3] = [
    wcc::WccMethod::Unite(ComponentsMethod::Auto),
    wcc::WccMethod::Unite(ComponentsMethod::Cells),
    wcc::WccMethod::Labels,
];

pub(crate) const PATHS: [sssp::SsspMethod; 3] = [
    sssp::SsspMethod::Delta(None),
    sssp::SsspMethod::Delta(Some(0.7)),
    sssp::SsspMethod::BellmanFord,
];

/// Returns the layouts that differ for this graph: batch size, strip size, reverse side or none.
fn layouts(graph: &Plain) -> BTreeSet<(u64, u64, bool)> {
    let all = [
        (1 << 20, 1 << 22, true),
        (64, 200, false),
        (64, 200, true),
        (7, 1 << 22, false),
        (512, 100, true),
    ];
    let fitting = all
        .into_iter()
        .filter(|(span, ..)| *span > 7 || graph.vertices <= 1000);
    fitting
        .map(|(span, strip, reverse)| {
            (
                span.min(graph.vertices),
                strip.min(graph.arcs.len() as u64 + 1),
                reverse && !graph.symmetric,
            )
        })
        .collect()
}

/// Checks that the checkers accept every mode and layout of a graph, with the same bits.
///
/// Each mode runs with one layout, or with all in a soak. Each layout runs in the usual mode.
fn check_in_every_mode(graph: &Plain) {
    let disk = open_disk(IoChoice::Auto).unwrap();
    let layouts = layouts(graph);
    let turn = graph.arcs.len();
    for (number, (span, strip, reverse)) in layouts.iter().copied().enumerate() {
        let modes = MODES.iter().enumerate();
        let modes = modes
            .filter(|(mode, _)| is_soak() || *mode == 0 || (mode + turn) % layouts.len() == number);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("graph");
        graph.store(&disk, &path, span, strip, reverse);
        let pairs = graph.pairs();
        let source = if graph.vertices > 10 { 7 } else { 0 };
        let mut first: Option<(Vec<u64>, Vec<u64>)> = None;
        for (_, &mode) in modes {
            let what = format!(
                "{}, batches of {span}, strips of {strip}, reverse {reverse}, {mode:?}",
                graph.name
            );
            let depths = run(&path, mode, |engine| {
                bfs::run(engine, source).map(|d| all(engine, d))
            });
            let depths: Vec<Option<u64>> = depths
                .into_iter()
                .map(|d| (d != bfs::UNREACHED).then_some(d.into()))
                .collect();
            bfs::check::check_depths(graph.vertices, &pairs, source, &depths)
                .unwrap_or_else(|objection| panic!("bfs, {what}: {objection:?}"));
            let parents = run(&path, mode, |engine| {
                bfs::run_parents::<u32>(engine, source).map(|p| all(engine, p))
            });
            let parents: Vec<Option<u64>> = parents
                .into_iter()
                .map(|p| (p != u32::MAX).then_some(p.into()))
                .collect();
            bfs::check::check_parents(graph.vertices, &pairs, source, &parents)
                .unwrap_or_else(|objection| panic!("parents, {what}: {objection:?}"));
            for method in COMPONENTS {
                let labels = run(&path, mode, |engine| {
                    match wcc::run::<u64>(engine, method) {
                        // Labels that are on disk are no forest.
                        Err(AlgorithmError::NoRoom { .. }) => Ok(None),
                        labels => engines(labels.map(|l| Some(all(engine, l)))),
                    }
                });
                let Some(labels) = labels else {
                    assert!(matches!(
                        method,
                        wcc::WccMethod::Unite(ComponentsMethod::Cells)
                    ));
                    continue;
                };
                wcc::check::check_components(graph.vertices, &pairs, &labels)
                    .unwrap_or_else(|objection| panic!("{method:?}, {what}: {objection:?}"));
            }
            let [distances, others @ ..] = PATHS.map(|method| {
                run(&path, mode, |engine| {
                    engines(sssp::run::<f64>(engine, source, method).map(|d| all(engine, d)))
                })
            });
            assert!(
                others.iter().all(|other| *other == distances),
                "sssp, {what}"
            );
            let bits = distances.iter().map(|d| d.to_bits()).collect::<Vec<_>>();
            let distances: Vec<Option<f64>> = distances
                .into_iter()
                .map(|d| d.is_finite().then_some(d))
                .collect();
            sssp::check::check_distances(graph.vertices, &graph.arcs, source, &distances)
                .unwrap_or_else(|objection| panic!("sssp, {what}: {objection:?}"));
            let options = ranking(12);
            let ranks = run(&path, mode, |engine| {
                pagerank::run::<f64>(engine, &options).map(|r| all(engine, r))
            });
            let equation = pagerank::check::Equation {
                damping: 0.85,
                dangling: pagerank::Dangling::Redistribute,
                sources: &[],
                ..Default::default()
            };
            pagerank::check::check_iterations(graph.vertices, &pairs, equation, 12, &ranks, 1e-9)
                .unwrap_or_else(|objection| panic!("pagerank, {what}: {objection:?}"));
            let found = (bits, ranks.iter().map(|r| r.to_bits()).collect::<Vec<_>>());
            match &first {
                None => first = Some(found),
                Some(first) => assert!(*first == found, "other bits: {what}"),
            }
        }
    }
}

#[test]
fn smallest_graphs_are_right_in_all_modes() {
    for graph in [
        Plain::directed("one vertex", 1, []),
        Plain::directed("a self-loop", 1, [(0, 0, 3.0)]),
        Plain::directed("isolated vertices", 100, [(3, 70, 1.0)]),
        Plain::undirected(
            "duplicates and loops",
            5,
            [
                (0, 1, 2.0),
                (0, 1, 1.0),
                (1, 1, 1.0),
                (3, 4, 0.0),
                (3, 4, 0.0),
            ],
        ),
    ] {
        check_in_every_mode(&graph);
    }
}

#[test]
fn long_path_is_right_in_all_modes() {
    let path = (1..150).map(|v| (v - 1, v, 1.0));
    check_in_every_mode(&Plain::undirected("a long path", 150, path));
}

#[test]
fn long_path_backwards_is_right_in_all_modes() {
    let path = (1..150).map(|v| (v, v - 1, 1.0));
    check_in_every_mode(&Plain::directed("a long path backwards", 150, path));
}

#[test]
fn hub_is_right_in_all_modes() {
    let from = (1..3000).map(|v| (v, 7, 1.0));
    let to = (1..3000).map(|v| (7, v, 2.0));
    check_in_every_mode(&Plain::directed("a hub", 3000, from.chain(to)));
}

#[test]
fn random_edges_are_right_in_all_modes() {
    check_in_every_mode(&Plain::directed("random", 2000, random(1, 2000, 9000)));
}

#[test]
fn random_undirected_is_right_in_all_modes() {
    let edges = random(2, 3000, 20_000);
    check_in_every_mode(&Plain::undirected("random both ways", 3000, edges));
}

#[test]
fn two_parts_are_right_in_all_modes() {
    let edges = random(3, 200, 400).into_iter().chain([(250, 399, 1.0)]);
    check_in_every_mode(&Plain::undirected("two parts", 400, edges));
}

/// Adds up the messages of one third of the vertices in each pass: whole ranks are silent in turn.
struct Turns<const ORDER_INDEPENDENT: bool> {
    pass: u64,
    vertices: u64,
}

impl<const ORDER_INDEPENDENT: bool> Turns<ORDER_INDEPENDENT> {
    fn says(&self, v: u64) -> Option<u64> {
        (v * 3 / self.vertices == self.pass % 3).then_some(v + self.pass)
    }
}

impl<const IN_ANY_ORDER: bool> EdgeProgram for Turns<IN_ANY_ORDER> {
    type SignalRows = ();
    type ApplyRows = Write<u64>;
    type Edge = ();
    type Message = u64;
    type EdgeMessage = u64;
    type Accumulator = u64;
    type Sum = u64;
    const IDENTITY: u64 = 0;
    const ORDER_INDEPENDENT: bool = IN_ANY_ORDER;

    fn signal(&self, v: u64, (): ()) -> Option<u64> {
        self.says(v)
    }
    fn on_edge(&self, said: u64, (): ()) -> u64 {
        said
    }
    fn fold(&self, sum: &mut u64, said: u64) {
        *sum += said;
    }
    fn merge(&self, sum: &mut u64, later: u64) {
        *sum += later;
    }
    fn apply(&self, _: u64, total: &mut u64, sum: u64) -> (u64, Activate) {
        *total += sum;
        (sum, Activate::No)
    }
}

fn turns<const ORDER_INDEPENDENT: bool>(
    graph: &std::path::Path,
    vertices: u64,
    mode: Mode,
) -> Vec<u64> {
    run(graph, mode, |engine| {
        let totals = engine.vertex_array::<u64>("totals")?;
        engine.process_vertices(totals.write(), None, |_, total| *total = 0)?;
        let everybody = engine.full_set()?;
        for pass in 0..9 {
            let program = Turns::<ORDER_INDEPENDENT> { pass, vertices };
            let (signal, apply) = ((), totals.write());
            engine.process_edges(&program, signal, apply, &everybody, Direction::Forward)?;
        }
        Ok(all(engine, totals))
    })
}

#[test]
fn inactive_sources_send_no_messages() {
    let vertices = 240;
    let folder = tempfile::tempdir().unwrap();
    let disk = open_disk(IoChoice::Auto).unwrap();
    let plain = Plain::directed("silence", vertices, random(5, vertices, 4000));
    let graph = folder.path().join("graph");
    plain.store(&disk, &graph, 10, 200, false);
    let mut expected = vec![0; vertices as usize];
    for pass in 0..9 {
        let program = Turns::<true> { pass, vertices };
        for (source, destination) in plain.pairs() {
            expected[destination as usize] += program.says(source).unwrap_or(0);
        }
    }
    let ranks = [Ranks::One, Ranks::Local(2), Ranks::Local(3)];
    let simulated = (0..30).map(|seed| Ranks::Simulated(3 + seed as usize % 2, seed));
    for ranks in ranks.into_iter().chain(simulated) {
        for memory in [Bytes(1 << 30), LeastAnd(1 << 14)] {
            let mode = Mode {
                sparse: SparseChoice::Never,
                threads: if matches!(ranks, Ranks::Local(_)) {
                    2
                } else {
                    1
                },
                memory,
                io: IoChoice::Threads,
                ranks,
                ..Mode::USUAL
            };
            assert_eq!(turns::<true>(&graph, vertices, mode), expected, "{mode:?}");
            assert_eq!(turns::<false>(&graph, vertices, mode), expected, "{mode:?}");
        }
    }
}
