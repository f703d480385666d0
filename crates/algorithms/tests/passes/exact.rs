//! `mis`, `scc` and `cdlp` on odd graphs: their checkers accept the results, which have the same bytes in every mode and layout.

use std::path::Path;

use graphmill_algorithms::mis::{self, Priority};
use graphmill_algorithms::{VertexIndex, cdlp, scc};
use graphmill_engine::{
    EdgeResidency, Engine, EngineError, KernelChoice, Mode as PassMode, SparseChoice,
};
use graphmill_storage::{IoChoice, open_disk};

use crate::Memory::{Bytes, LeastAnd};
use crate::{Edge, Mode, Plain, Ranks, all, engines, is_soak, random, run};

pub(crate) const MODES: [Mode; 9] = {
    use KernelChoice::{Gather, Scatter};
    use SparseChoice::{Always, Never};
    [
        Mode::USUAL,
        Mode {
            kernel: Scatter,
            sparse: Never,
            threads: 1,
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
            sparse: Always,
            memory: LeastAnd(0),
            ..Mode::USUAL
        },
        Mode {
            edges: EdgeResidency::Memory,
            ..Mode::USUAL
        },
        Mode {
            edges: EdgeResidency::Disk,
            memory: LeastAnd(0),
            io: IoChoice::Threads,
            ..Mode::USUAL
        },
        Mode {
            ranks: Ranks::Local(2),
            ..Mode::USUAL
        },
        Mode {
            kernel: Scatter,
            memory: LeastAnd(1 << 14),
            ranks: Ranks::Local(4),
            threads: 1,
            ..Mode::USUAL
        },
        Mode {
            edges: EdgeResidency::Memory,
            ranks: Ranks::Simulated(4, 5),
            threads: 1,
            ..Mode::USUAL
        },
    ]
};

/// Batch size, strip size, and whether the transposed graph is stored.
pub(crate) const LAYOUTS: [(u64, u64, bool); 4] = [
    (1 << 20, 1 << 22, true),
    (64, 200, false),
    (64, 200, true),
    (7, 1 << 22, false),
];

const PRIORITIES: [Priority; 3] = [Priority::Hash(0), Priority::Hash(9), Priority::Id];

/// Two cycles of two in a row share an arc from one to the next.
pub(crate) fn chained_cycles(count: u64) -> Vec<Edge> {
    let cycle = |i: u64| {
        let (u, v) = (2 * i, 2 * i + 1);
        let next = (i + 1 < count).then_some((v, v + 1, 1.0));
        [Some((u, v, 1.0)), Some((v, u, 1.0)), next]
    };
    (0..count).flat_map(cycle).flatten().collect()
}

fn graphs() -> Vec<Plain> {
    let star = |hub: u64| {
        (0..300)
            .filter(move |v| *v != hub)
            .map(move |v| (v, hub, 1.0))
    };
    let path = || (1..200).map(|v| (v - 1, v, 1.0));
    let odd = [
        (0, 1, 2.0),
        (0, 1, 1.0),
        (1, 1, 1.0),
        (3, 4, 0.0),
        (3, 4, 0.0),
        (4, 3, 1.0),
        (2, 2, 1.0),
    ];
    vec![
        Plain::directed("one vertex", 1, []),
        Plain::directed("a self-loop", 1, [(0, 0, 3.0)]),
        Plain::directed("isolated vertices", 100, [(3, 70, 1.0)]),
        Plain::directed("duplicates and loops", 6, odd),
        Plain::undirected("duplicates and loops both ways", 6, odd),
        Plain::directed("a path", 200, path()),
        Plain::undirected("a path both ways", 200, path()),
        Plain::directed("a star", 300, star(7)),
        Plain::undirected("a star both ways", 300, star(0)),
        Plain::directed("cycles of two", 120, chained_cycles(60)),
        Plain::directed("one cycle", 90, (0..90).map(|v| (v, (v * 7 + 7) % 90, 1.0))),
        Plain::directed("sparse", 500, random(1, 500, 620)),
        Plain::directed("random", 600, random(2, 600, 2400)),
        Plain::undirected("random both ways", 500, random(3, 500, 900)),
    ]
}

/// The sets of each priority, and the components and communities with indices of 32 and of 64 bits.
type Results = ([Vec<u32>; 3], [Vec<u32>; 2], [Vec<u64>; 2]);

/// Rounds of communities: in some graphs few labels change in the last ones.
const ITERATIONS: u64 = 7;

fn results(path: &Path, symmetric: bool, mode: Mode) -> Results {
    let set = |priority| {
        run(path, mode, |engine| {
            mis::run(engine, priority).map(|set| all(engine, set))
        })
    };
    let narrow = run(path, mode, |engine| {
        engines(scc::run::<u32>(engine)).map(|labels| all(engine, labels))
    });
    let wide = run(path, mode, |engine| {
        engines(scc::run::<u64>(engine)).map(|labels| all(engine, labels))
    });
    let communities = (
        communities::<u32>(path, mode, symmetric),
        communities::<u64>(path, mode, symmetric),
    );
    let (narrow, wide) = ([narrow, communities.0], [wide, communities.1]);
    (PRIORITIES.map(set), narrow, wide)
}

fn communities<I: VertexIndex>(path: &Path, mode: Mode, symmetric: bool) -> Vec<I> {
    let footprint = cdlp::sizes::<I>(symmetric);
    run(path, Mode { footprint, ..mode }, |engine| {
        cdlp::run::<I>(engine, ITERATIONS).map(|labels| all(engine, labels))
    })
}

fn check(graph: &Plain, (sets, narrow, wide): &Results) {
    let (vertices, pairs) = (graph.vertices, graph.pairs());
    for (priority, set) in PRIORITIES.into_iter().zip(sets) {
        let set: Vec<u64> = set.iter().map(|value| (*value).into()).collect();
        mis::check::check_set(vertices, &pairs, priority, &set)
            .unwrap_or_else(|violation| panic!("{}, {priority:?}: {violation}", graph.name));
    }
    let [components, communities] = wide;
    scc::check::check_strong(vertices, &pairs, components)
        .unwrap_or_else(|violation| panic!("{}: {violation}", graph.name));
    cdlp::check::check_labels(vertices, &pairs, graph.symmetric, ITERATIONS, communities)
        .unwrap_or_else(|violation| panic!("{}: {violation}", graph.name));
    for (narrow, wide) in narrow.iter().zip(wide) {
        let narrow = narrow.iter().map(|label| u64::from(*label));
        assert!(narrow.eq(wide.iter().copied()), "{}", graph.name);
    }
}

#[test]
fn results_are_right_and_the_same_in_all_modes() {
    let disk = open_disk(IoChoice::Auto).unwrap();
    for (number, graph) in graphs().iter().enumerate() {
        let mut first: Option<Results> = None;
        for (turn, (span, strip, reverse)) in LAYOUTS.into_iter().enumerate() {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("graph");
            let reverse = reverse && !graph.symmetric;
            graph.store(&disk, &path, span.min(graph.vertices), strip, reverse);
            for (place, mode) in MODES.into_iter().enumerate() {
                // Each mode meets each graph in one layout, and each layout in several graphs.
                if (place + number) % LAYOUTS.len() != turn {
                    continue;
                }
                let found = results(&path, graph.symmetric, mode);
                match &first {
                    Some(first) => {
                        let what = format!("{}, {span}, {reverse}, {mode:?}", graph.name);
                        assert!(found == *first, "other results: {what}");
                    }
                    None => {
                        check(graph, &found);
                        first = Some(found);
                    }
                }
            }
        }
    }
}

/// Stores a directed graph in one batch, and runs over it.
fn run_over<T: Send>(
    graph: &Plain,
    mode: Mode,
    job: impl Fn(&mut Engine) -> Result<T, EngineError> + Sync,
) -> T {
    let disk = open_disk(IoChoice::Auto).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("graph");
    graph.store(&disk, &path, 1 << 20, 1 << 22, true);
    run(&path, mode, job)
}

#[test]
pub(crate) fn chained_cycles_take_few_rounds() {
    let graph = Plain::directed("cycles of two", 2000, chained_cycles(1000));
    let (labels, rounds) = run_over(&graph, Mode::USUAL, |engine| {
        let labels = engines(scc::run::<u32>(engine))?;
        // A round sends names to the roots, and asks the roots for names.
        let passes = engine.metrics().passes.iter();
        let sends = passes.filter(|pass| pass.mode == PassMode::Send).count();
        Ok((all(engine, labels), sends / 2))
    });
    let expected: Vec<u32> = (0..2000).map(|v| v / 2 * 2).collect();
    assert!(labels == expected);
    assert!((1..=60).contains(&rounds), "{rounds} rounds");
}

#[test]
fn long_path_is_trimmed_and_has_a_set() {
    const VERTICES: u64 = 100_000;
    let graph = Plain::directed("a path", VERTICES, (1..VERTICES).map(|v| (v - 1, v, 1.0)));
    let mode = Mode {
        memory: Bytes(1 << 28),
        ..Mode::USUAL
    };
    let (labels, set, rounds) = run_over(&graph, mode, |engine| {
        let labels = engines(scc::run::<u32>(engine))?;
        let before = engine.metrics().passes.len();
        let set = mis::run(engine, Priority::Hash(0))?;
        let rounds = (engine.metrics().passes.len() - before) / 6;
        Ok((all(engine, labels), all(engine, set), rounds))
    });
    assert!(labels.into_iter().eq(0..VERTICES as u32));
    let set: Vec<u64> = set.into_iter().map(u64::from).collect();
    let pairs = graph.pairs();
    let verdict = mis::check::check_set(VERTICES, &pairs, Priority::Hash(0), &set);
    assert_eq!(verdict, Ok(()));
    assert!(rounds < 20, "{rounds} rounds");
}

/// Each vertex of a path waits for the one before, so a round selects one vertex.
#[test]
fn path_in_order_of_ids_is_walked_at_its_end_only() {
    let count = if is_soak() { 100_000 } else { 10_000 };
    let edges = (1..count).map(|v| (v - 1, v, 1.0));
    let graph = Plain::undirected("a path", count, edges);
    let mode = Mode {
        memory: Bytes(1 << 28),
        threads: 1,
        ..Mode::USUAL
    };
    let (set, active) = run_over(&graph, mode, |engine| {
        let set = mis::run(engine, Priority::Id)?;
        let passes = engine.metrics().passes.iter();
        Ok((
            all(engine, set),
            passes.map(|pass| pass.active).sum::<u64>(),
        ))
    });
    assert!(set.into_iter().eq((0..count).map(|v| 1 - v as u32 % 2)));
    assert!(active < 6 * count, "{active} active vertices");
}

/// The labels of a hub do not fit in a window: they are counted range by range.
#[test]
fn hub_of_many_communities_is_counted_in_ranges() {
    const VERTICES: u64 = 600_000;
    // Of the neighbours of vertex 7 two have the label that wins; it is neither the first nor the last of its ranges.
    let star = (0..VERTICES).filter(|v| *v != 7).map(|v| (v, 7, 1.0));
    let graph = Plain::directed("a star", VERTICES, star.chain([(100_000, 7, 1.0)]));
    let disk = open_disk(IoChoice::Auto).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("graph");
    graph.store(&disk, &path, 1 << 16, 1 << 16, false);
    for mode in [
        Mode {
            memory: LeastAnd(0),
            edges: EdgeResidency::Disk,
            window_bytes: Some(1 << 19),
            ..Mode::USUAL
        },
        Mode {
            memory: LeastAnd(0),
            edges: EdgeResidency::Disk,
            window_bytes: Some(1 << 19),
            ranks: Ranks::Local(3),
            ..Mode::USUAL
        },
    ] {
        let footprint = cdlp::sizes::<u32>(false);
        let mode = Mode { footprint, ..mode };
        let (labels, edges) = run(&path, mode, |engine| {
            let labels = cdlp::run::<u32>(engine, 1)?;
            let edges = engine.metrics().passes.last().map_or(0, |pass| pass.edges);
            Ok((all(engine, labels), edges))
        });
        let mut expected = vec![7; VERTICES as usize];
        expected[7] = 100_000;
        assert!(labels == expected, "{mode:?}");
        // Each scan of the hub's column counts one range.
        assert!(edges > 10 * VERTICES, "{edges} edges scanned");
    }
}

/// The memory for windows is what rows, degrees and sets leave: more memory is never too little.
#[test]
fn communities_fit_in_each_budget_from_the_least() {
    const VERTICES: u64 = 1_000_000;
    let edges = || random(5, VERTICES, 20_000);
    let disk = open_disk(IoChoice::Auto).unwrap();
    for graph in [
        Plain::directed("sparse", VERTICES, edges()),
        Plain::undirected("sparse both ways", VERTICES, edges()),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("graph");
        graph.store(&disk, &path, 1 << 16, 1 << 16, false);
        let run_in = |mode: Mode| {
            let footprint = cdlp::sizes::<u32>(graph.symmetric);
            run(&path, Mode { footprint, ..mode }, |engine| {
                cdlp::run::<u32>(engine, 2).map(|labels| all(engine, labels))
            })
        };
        let expected = run_in(Mode::USUAL);
        let steps = if is_soak() { 0..100 } else { 0..2 };
        for step in steps.chain([150]) {
            for ranks in [Ranks::One, Ranks::Local(2)] {
                let mode = Mode {
                    memory: LeastAnd(step << 16),
                    edges: EdgeResidency::Disk,
                    ranks,
                    ..Mode::USUAL
                };
                assert!(run_in(mode) == expected, "{}, {mode:?}", graph.name);
            }
        }
    }
}
