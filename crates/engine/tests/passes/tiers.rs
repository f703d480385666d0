//! Data bound to nodes that have too little memory: other data streams, or the run is refused, and results stay the same.
//!
//! The machine has one node. A table of nodes says how much of it is free.

use std::path::Path;

use graphmill_engine::{
    Combiner, Direction, EdgeResidency, Engine, EngineConfig, EngineError, MonotoneProgram,
    PregelMode, ProgramFootprint,
};
use graphmill_raw::numa::{NodeTable, Nodes};
use graphmill_storage::{
    DataKind, IoChoice, Placement, PlacementError, StorageError, Tiers, WorkerPool, open_disk,
};

use crate::common::settings;
use crate::common::vertex_programs::{VERSIONS, mode};
use crate::pregel::Paths;
use crate::{Memory, Plain, all, random};

/// Tiers where node 0 is the slow one, with `free` free bytes.
fn tiers(asked: &[&str], free: u64) -> Tiers {
    let placement = Placement::parse(asked, Some("numa:0")).unwrap();
    let table = NodeTable {
        with_memory: Nodes::of([0]),
        with_processors: Nodes::of([]),
        free: vec![(0, free)],
    };
    Tiers::on(&placement, &table, 1).unwrap()
}

fn engine(
    graph: &Path,
    scratch: &Path,
    tiers: Tiers,
    combiner: Combiner,
) -> Result<Engine, EngineError> {
    engine_of(graph, scratch, tiers, combiner, ProgramFootprint::USUAL)
}

/// The engine of a program of some footprint.
fn engine_of(
    graph: &Path,
    scratch: &Path,
    tiers: Tiers,
    combiner: Combiner,
    sizes: ProgramFootprint,
) -> Result<Engine, EngineError> {
    let disk = open_disk(IoChoice::Auto).unwrap();
    let mode = mode(EdgeResidency::Memory, 2, Memory::Bytes(1 << 26));
    let workers = WorkerPool::threads(mode.threads, disk.clone()).unwrap();
    let mut settings = EngineConfig {
        tiers,
        sizes,
        ..settings(disk.clone(), workers, scratch, mode, 1 << 26, None)
    };
    settings.options.combiner = combiner;
    let budget = graphmill_storage::MemoryBudget::new(1 << 30);
    let graph = graphmill_graph::StoredGraph::open(&disk, &budget, graph).unwrap();
    Engine::new(graph.into(), settings)
}

/// The least number of arcs from a vertex.
#[derive(Clone, Copy)]
struct Hops;

impl MonotoneProgram for Hops {
    type Label = u32;
    type Edge = ();
    const UNIT_STEP: bool = true;

    fn on_edge(&self, label: u32, (): ()) -> u32 {
        label + 1
    }
    fn bucket(&self, label: u32) -> u64 {
        label.into()
    }
}

type Found = (Vec<f64>, Vec<u32>);

/// Distances by a vertex program, then hops by a label program.
fn found(mut engine: Engine, version: PregelMode) -> Result<Found, EngineError> {
    let values = engine.vertex_array::<f64>("distances")?;
    engine.pregel(Paths { source: 1 }, values, version, None)?;
    let hops = engine.vertex_array::<u32>("hops")?;
    engine.process_vertices(hops.write(), None, |v, hops| {
        *hops = if v == 1 { 0 } else { u32::MAX };
    })?;
    let mut first = engine.empty_set()?;
    first.insert(1)?;
    engine.run_to_fixpoint(&Hops, hops, first, Direction::Forward)?;
    Ok((all(&engine, values), all(&engine, hops)))
}

#[test]
fn small_nodes_stream_or_refuse_with_the_same_results() {
    let disk = open_disk(IoChoice::Auto).unwrap();
    let graph = Plain::undirected("random", 20_000, random(3, 20_000, 150_000));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("graph");
    graph.store(&disk, &path, 2500, 20_000, false);
    let places: [&[&str]; 6] = [
        &["rw-split"],
        &["dram", "index=slow"],
        &["dram", "edges=slow"],
        &["dram", "vertices=slow"],
        &["dram", "messages=slow"],
        &["slow"],
    ];
    for version in VERSIONS {
        let in_dram = engine(&path, folder.path(), Tiers::default(), Combiner::Auto).unwrap();
        let expected = found(in_dram, version).unwrap();
        for place in places {
            let mut refused = 0;
            for free in (13..=25).step_by(2).map(|bits| 1 << bits) {
                let tiers = tiers(place, free);
                let told = format!("{version:?}, {place:?}, {free} bytes");
                let done = engine(&path, folder.path(), tiers.clone(), Combiner::Auto)
                    .and_then(|engine| found(engine, version));
                match done {
                    Ok(found) => assert!(found == expected, "{told}"),
                    Err(EngineError::Storage(StorageError::Placement(
                        PlacementError::SmallNodes {
                            least, free, kind, ..
                        },
                    ))) => {
                        assert!(least > free && kind == DataKind::Messages, "{told}");
                        refused += 1;
                    }
                    // A push keeps values and mailboxes in memory.
                    Err(EngineError::PushNeedsMemory { .. }) => refused += 1,
                    Err(error) => panic!("{told}: {error}"),
                }
                let left = DataKind::ALL.map(|kind| tiers.free_on_nodes(kind));
                assert!(
                    left.into_iter()
                        .all(|left| left == u64::MAX || left == free),
                    "{told}"
                );
            }
            let needs_memory = place.contains(&"messages=slow") || place == ["slow"];
            let push_rows = version == PregelMode::Push && place.contains(&"vertices=slow");
            assert_eq!(
                refused > 0,
                needs_memory || push_rows,
                "{version:?}, {place:?}"
            );
            assert!(refused < 7, "{version:?}, {place:?}");
        }
    }
}

#[test]
fn edges_in_two_files_give_the_same_results() {
    let disk = open_disk(IoChoice::Auto).unwrap();
    let graph = Plain::undirected("random", 20_000, random(4, 20_000, 400_000));
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = folder.path().join("graph");
    graph.store(&disk, &path, 2500, 1 << 20, false);
    let in_dram = engine(&path, folder.path(), Tiers::default(), Combiner::Auto).unwrap();
    let expected = found(in_dram, PregelMode::Push).unwrap();
    let files = ["0", "1", "2"].map(|name| folder.path().join(name).display().to_string());
    for place in ["edges", "index"] {
        let asked = [
            "rw-split".to_owned(),
            format!("{place}=file:{}", files.join(",")),
        ];
        let placement = Placement::parse(&asked, Some("model")).unwrap();
        for combiner in [Combiner::Auto, Combiner::Hybrid] {
            let tiers = Tiers::open(&placement, 1).unwrap();
            let in_files = engine(&path, folder.path(), tiers, combiner).unwrap();
            assert!(
                found(in_files, PregelMode::Push).unwrap() == expected,
                "{place}"
            );
        }
    }
}

#[test]
fn push_over_lists_has_two_sets_of_mailboxes() {
    let disk = open_disk(IoChoice::Auto).unwrap();
    let graph = Plain::directed("random", 100_000, random(3, 100_000, 200_000));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("graph");
    graph.store(&disk, &path, 1 << 20, 1 << 20, false);
    let taken = |combiner| {
        // Only messages are on the node.
        let tiers = tiers(&["dram", "messages=slow"], 1 << 26);
        let mut engine = engine(&path, folder.path(), tiers.clone(), combiner).unwrap();
        let values = engine.vertex_array::<f64>("distances").unwrap();
        engine
            .pregel(Paths { source: 1 }, values, PregelMode::Push, None)
            .unwrap();
        tiers.peak_on_nodes(DataKind::Messages)
    };
    // A state and a message for each vertex.
    let one_set = 100_000 * 9;
    let hybrid = taken(Combiner::Hybrid);
    assert!((2 * one_set..3 * one_set).contains(&hybrid), "{hybrid}");
    assert!(taken(Combiner::Auto) >= 3 * one_set);
}

#[test]
fn node_of_messages_needs_no_room_for_rows_or_result() {
    let disk = open_disk(IoChoice::Auto).unwrap();
    let graph = Plain::directed("random", 20_000, random(3, 20_000, 150_000));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("graph");
    graph.store(&disk, &path, 2500, 20_000, false);
    let opens = |free, sizes| {
        let tiers = tiers(&["dram", "messages=slow"], free);
        engine_of(&path, folder.path(), tiers, Combiner::Auto, sizes).is_ok()
    };
    let usual = ProgramFootprint::USUAL;
    let mut sizes = (16..).map(|bits| 1 << bits);
    let least = sizes.find(|free| opens(*free, usual)).unwrap();
    assert!(opens(least, usual.keeping(2 * least as usize / 20_000, 0)));
    assert!(opens(least, usual.with_result(2 * least)));
    assert!(!opens(least, usual.keeping(0, 2 * least as usize / 20_000)));
}
