//! Graphs larger than their memory: results have the same bits whether rows, messages and cells are on disk or in memory.

use graphmill_algorithms::{AlgorithmError, bfs, pagerank, sssp, wcc};
use graphmill_engine::{
    Activate, Direction, DispatchChoice, EdgeProgram, Engine, EngineError, Read, SparseChoice,
    Write,
};
use graphmill_storage::{IoChoice, open_disk};

use crate::Memory::{Bytes, LeastAnd};
use crate::modes::{COMPONENTS, PATHS};
use crate::{Edge, Mode, Plain, Ranks, all, engines, random, ranking, run};

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
