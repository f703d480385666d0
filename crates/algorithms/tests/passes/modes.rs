//! The four algorithms on odd graphs: their checkers accept them, and the same bits whatever the kernel, the number of
//! threads, the budget and the way of reading.

use std::collections::BTreeSet;

use graphmill_algorithms::{AlgorithmError, bfs, pagerank, sssp, wcc};
use graphmill_engine::{
    Activate, ComponentsMethod, Direction, DispatchChoice, EdgeProgram, EdgeResidency, Engine,
    EngineError, KernelChoice, Read, SparseChoice, Write,
};
use graphmill_storage::{IoChoice, open_disk};

use crate::Memory::{Bytes, LeastAnd};
use crate::{Edge, Mode, Plain, Ranks, all, engines, is_soak, random, ranking, run};

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

const COMPONENTS: [wcc::WccMethod; 3] = [
    wcc::WccMethod::Unite(ComponentsMethod::Auto),
    wcc::WccMethod::Unite(ComponentsMethod::Cells),
    wcc::WccMethod::Labels,
];

const PATHS: [sssp::SsspMethod; 3] = [
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

/// Hops from vertex 7 (DFOGraph, Fig. 2b): `signal` and `apply` change the same rows.
///
/// A vertex deactivates itself as it signals. A message that brings it nearer activates it again.
struct Switch;

impl EdgeProgram for Switch {
    type SignalRows = (Read<u64>, Write<u64>);
    type ApplyRows = (Write<u64>, Write<u64>);
    type Edge = ();
    type Message = u64;
    type EdgeMessage = u64;
    type Accumulator = u64;
    type Sum = u64;
    const IDENTITY: u64 = u64::MAX;
    const ORDER_INDEPENDENT: bool = true;

    fn signal(&self, _: u64, (hops, on): (&u64, &mut u64)) -> Option<u64> {
        (std::mem::take(on) == 1).then_some(*hops)
    }
    fn on_edge(&self, hops: u64, (): ()) -> u64 {
        hops + 1
    }
    fn fold(&self, least: &mut u64, hops: u64) {
        *least = (*least).min(hops);
    }
    fn merge(&self, least: &mut u64, later: u64) {
        *least = (*least).min(later);
    }
    fn apply(&self, _: u64, (hops, on): (&mut u64, &mut u64), least: u64) -> (u64, Activate) {
        if least >= *hops {
            return (0, Activate::No);
        }
        (*hops, *on) = (least, 1);
        (1, Activate::Yes)
    }
}

/// How many are on after each pass over all vertices, and all hops.
fn switches(engine: &mut Engine) -> Result<(Vec<u64>, Vec<u64>), EngineError> {
    let hops = engine.vertex_array::<u64>("hops")?;
    let on = engine.vertex_array::<u64>("on")?;
    engine.process_vertices((hops.write(), on.write()), None, |v, (hops, on)| {
        (*hops, *on) = if v == 7 { (0, 1) } else { (u64::MAX - 1, 0) };
    })?;
    let (mut counts, everybody) = (Vec::new(), engine.full_set()?);
    let few = {
        let mut few = engine.empty_set().unwrap();
        few.insert(7)?;
        few
    };
    for active in [&few, &everybody, &everybody, &everybody] {
        let (signal, apply) = ((hops.read(), on.write()), (hops.write(), on.write()));
        engine.process_edges(&Switch, signal, apply, active, Direction::Forward)?;
        counts.push(engine.process_vertices(on.read(), None, |_, on| *on)?);
    }
    Ok((counts, all(engine, hops)))
}

const MANY: u64 = 400_000;

/// Edges of graphs too large for their memory: rows, messages and cells are on disk.
///
/// Each message serves many strips, and the edges of one vertex fill several blocks.
fn many_edges() -> impl Iterator<Item = Edge> {
    let hub = (8..20_000).flat_map(|v| [(7, v, 9.0), (v, 7, 9.0)]);
    // Few different distances, and so few passes.
    let others = random(4, MANY, 800_000).into_iter();
    let others = others.map(|(u, v, w)| (u, v, f64::from(u8::from(w > 30.0))));
    others.chain(hub)
}

#[test]
fn directed_graph_on_disk_has_the_same_bits() {
    let graph = Plain::directed("directed", MANY, many_edges());
    compare_on_disk(&graph, 15_000);
}

#[test]
fn undirected_graph_on_disk_has_the_same_bits() {
    let graph = Plain::undirected("undirected", MANY, many_edges());
    compare_on_disk(&graph, 1 << 22);
}

#[test]
fn routing_modes_on_disk_have_the_same_bits() {
    use DispatchChoice::{Auto, None as Not, Pull, Push};
    let disk = open_disk(IoChoice::Auto).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("graph");
    let graph = Plain::directed("directed", MANY, many_edges());
    graph.store(&disk, &path, 1 << 13, 15_000, false);
    let dispatched = |dispatch, ranks, threads| Mode {
        dispatch,
        ranks,
        threads,
        sparse: SparseChoice::Never,
        memory: LeastAnd(1 << 20),
        ..Mode::USUAL
    };
    let mut first = None;
    for mode in [
        Mode::USUAL,
        dispatched(Not, Ranks::One, 1),
        dispatched(Push, Ranks::One, 2),
        dispatched(Pull, Ranks::One, 2),
        dispatched(Not, Ranks::Local(3), 2),
        dispatched(Push, Ranks::Local(3), 1),
        dispatched(Pull, Ranks::Local(3), 1),
        dispatched(Auto, Ranks::Simulated(3, 5), 1),
    ] {
        let ranks = run(&path, mode, |engine| {
            let ranks = pagerank::run::<f64>(engine, &ranking(3))?;
            let metrics = engine.metrics();
            let is_on_disk = matches!(mode.memory, LeastAnd(_));
            assert_eq!(metrics.messages_resident, !is_on_disk, "{mode:?}");
            let pushed = metrics.passes.iter().any(|pass| pass.messages_pushed > 0);
            let pulled = metrics.passes.iter().any(|pass| pass.messages_pulled > 0);
            match mode.dispatch {
                Push => assert_eq!([pushed, pulled], [true, false], "{mode:?}"),
                Pull => assert_eq!([pushed, pulled], [false, true], "{mode:?}"),
                Not => assert_eq!([pushed, pulled], [false, false], "{mode:?}"),
                Auto => (),
            }
            Ok(all(engine, ranks))
        });
        let depths = run(&path, mode, |engine| {
            bfs::run(engine, 7).map(|d| all(engine, d))
        });
        let ranks: Vec<u64> = ranks.into_iter().map(f64::to_bits).collect();
        let found = (ranks, depths);
        assert!(
            first.get_or_insert_with(|| found.clone()) == &found,
            "other bits: {mode:?}"
        );
    }
}

fn compare_on_disk(graph: &Plain, strip: u64) {
    let disk = open_disk(IoChoice::Auto).unwrap();
    let span = 1 << 13;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("graph");
    graph.store(&disk, &path, span, strip, !graph.symmetric);
    let mode = |sparse, threads, memory| Mode {
        sparse,
        threads,
        memory,
        ..Mode::USUAL
    };
    let mut first = None;
    for mode in [
        mode(SparseChoice::Auto, 2, Bytes(1 << 30)),
        mode(SparseChoice::Always, 1, LeastAnd(0)),
        mode(SparseChoice::Never, 2, LeastAnd(200 << 10)),
    ] {
        let depths = run(&path, mode, |engine| {
            bfs::run(engine, 7).map(|d| all(engine, d))
        });
        let labels = COMPONENTS.map(|method| {
            run(&path, mode, |engine| {
                match wcc::run::<u64>(engine, method) {
                    Err(AlgorithmError::NoRoom { .. }) => Ok(None),
                    labels => engines(labels.map(|l| Some(all(engine, l)))),
                }
            })
        });
        let [Some(auto), by_cells, by_labels] = labels else {
            panic!("no labels, {mode:?}");
        };
        assert!(by_cells.is_none_or(|labels| labels == auto), "{mode:?}");
        assert!(by_labels.as_ref() == Some(&auto), "{mode:?}");
        let distances = PATHS.map(|method| {
            run(&path, mode, |engine| {
                engines(sssp::run::<f64>(engine, 7, method).map(|d| all(engine, d)))
            })
        });
        let ranks = run(&path, mode, |engine| {
            let ranks = pagerank::run::<f64>(engine, &ranking(3))?;
            let metrics = engine.metrics();
            if matches!(mode.memory, LeastAnd(_)) {
                assert!(
                    !metrics.vertex_state_resident && !metrics.messages_resident,
                    "{mode:?}"
                );
            }
            Ok(all(engine, ranks))
        });
        let switched = run(&path, mode, switches);
        let bits = |values: Vec<f64>| values.into_iter().map(f64::to_bits).collect::<Vec<_>>();
        let found = (depths, auto, distances.map(bits), bits(ranks), switched);
        match &first {
            None => first = Some(found),
            Some(first) => {
                assert!(
                    *first == found,
                    "other bits: {}, batches of {span}, {mode:?}",
                    graph.name
                );
            }
        }
    }
}
