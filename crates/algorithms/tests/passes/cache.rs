//! What passes read, and what they leave in memory for those that come after them.

use std::sync::Arc;

use graphmill_algorithms::{bfs, pagerank, sssp, wcc};
use graphmill_engine::{
    CheckpointInterval, CheckpointPolicy, ComponentsMethod, Direction, EdgeResidency, Engine,
    EngineConfig, EngineError, KernelChoice, Mode as How, MonotoneProgram, PassMetrics,
    SparseChoice,
};
use graphmill_graph::StoredGraph;
use graphmill_storage::{IoChoice, MemoryBudget, WorkerPool, open_disk};
use tempfile::TempDir;

use crate::{Memory, Mode, Plain, Ranks, all, engine, engines, random, run, settings};

const VERTICES: u64 = 20_000;

/// A vertex that is joined with all vertices of the first five batches, and few of the others.
const STAR: u64 = 15_000;

/// A graph of ten batches whose last vertex has no arcs, and an engine over it.
fn graph_and_engine(mode: Mode) -> (TempDir, Engine) {
    let folder = tempfile::tempdir().unwrap();
    let edges = random(5, VERTICES - 1, 300_000);
    let star = (0..10_000).map(|v| (STAR, v, 1.0));
    let graph = Plain::undirected("random", VERTICES, edges.into_iter().chain(star));
    let disk = open_disk(IoChoice::Auto).unwrap();
    let path = folder.path().join("graph");
    graph.store(&disk, &path, 2000, u64::MAX, false);
    let engine = engine(&path, folder.path(), mode, 1 << 28).unwrap();
    (folder, engine)
}

const MODE: Mode = Mode {
    memory: Memory::Bytes(1 << 28),
    ..Mode::USUAL
};

/// Bytes that edge passes read, from pass number `first` on.
fn bytes_read(engine: &Engine, first: usize) -> u64 {
    let passes = engine.metrics().passes.iter().skip(first);
    let edges = passes.filter(|pass| pass.mode != How::Vertices);
    edges.map(|pass| pass.bytes_read).sum()
}

#[test]
fn bfs_from_a_sink_reads_little() {
    let (_folder, mut engine) = graph_and_engine(MODE);
    bfs::run(&mut engine, VERTICES - 1).unwrap();
    // A frame of lists says that the vertex has no arcs; a few say so of its degree.
    let read = bytes_read(&engine, 0);
    assert!(read <= 3 << 16, "{read} bytes");
    assert_eq!(engine.metrics().cached_cell_bytes, 0);
    // One that meets everybody has the graph in memory.
    let depth = bfs::run(&mut engine, 0).unwrap();
    assert!(engine.metrics().cached_cell_bytes > 1 << 19);
    assert_eq!(all(&engine, depth)[VERTICES as usize - 1], bfs::UNREACHED);
}

#[test]
fn edges_in_memory_are_loaded_before_first_pass() {
    let in_memory = Mode {
        edges: EdgeResidency::Memory,
        ranks: Ranks::One,
        ..MODE
    };
    type Job = fn(&mut Engine);
    let jobs: [Job; 3] = [
        |engine| {
            wcc::run::<u32>(engine, wcc::WccMethod::Unite(ComponentsMethod::Cells)).unwrap();
        },
        // These reach no vertex.
        |engine| {
            sssp::run::<f64>(engine, VERTICES - 1, sssp::SsspMethod::BellmanFord).unwrap();
        },
        |engine| {
            bfs::run_parents::<u32>(engine, VERTICES - 1).unwrap();
        },
    ];
    for (number, job) in jobs.into_iter().enumerate() {
        let (_folder, mut engine) = graph_and_engine(in_memory);
        job(&mut engine);
        assert!(engine.metrics().cached_cell_bytes > 1 << 19, "job {number}");
        assert!(engine.metrics().loading > 0.0, "job {number}");
    }
    let (_folder, mut engine) = graph_and_engine(in_memory);
    wcc::run::<u32>(&mut engine, wcc::WccMethod::Unite(ComponentsMethod::Cells)).unwrap();
    let passes = engine.metrics().passes.iter();
    let moved: u64 = passes.map(|pass| pass.tiers.edges.read_sequential).sum();
    assert!(moved > 1 << 18, "{moved} bytes of edges");
    assert_eq!(bytes_read(&engine, 0), 0);
}

#[test]
fn next_program_finds_the_graph_in_memory() {
    let (_folder, mut engine) = graph_and_engine(MODE);
    bfs::run(&mut engine, 0).unwrap();
    assert!(bytes_read(&engine, 0) > engine.metrics().cached_cell_bytes);
    let passes = engine.metrics().passes.len();
    wcc::run::<u32>(&mut engine, wcc::WccMethod::Labels).unwrap();
    assert_eq!(bytes_read(&engine, passes), 0);
    // Weights were not read for those.
    let passes = engine.metrics().passes.len();
    sssp::run::<f64>(&mut engine, 0, sssp::SsspMethod::BellmanFord).unwrap();
    assert!(bytes_read(&engine, passes) > engine.metrics().cached_cell_bytes);
    let passes = engine.metrics().passes.len();
    let depth = bfs::run(&mut engine, 0).unwrap();
    assert_eq!(bytes_read(&engine, passes), 0);
    let before = all(&engine, depth);
    graphmill_engine::job::release(&mut engine);
    let depth = bfs::run(&mut engine, 0).unwrap();
    assert_eq!(all(&engine, depth), before);
}

#[test]
fn dense_pass_looks_up_cells_with_few_sources() {
    for sparse in [SparseChoice::Auto, SparseChoice::Never] {
        let (_folder, mut engine) = graph_and_engine(Mode {
            kernel: KernelChoice::Scatter,
            sparse,
            ..MODE
        });
        let depth = bfs::run(&mut engine, STAR).unwrap();
        let reached = all(&engine, depth).into_iter();
        assert_eq!(reached.filter(|depth| *depth == bfs::UNREACHED).count(), 1);
        let passes = engine.metrics().passes.iter();
        let mut dense = passes.filter(|pass| pass.mode == How::Scatter && pass.active > 10_000);
        // Of the 50 cells from the other five batches a few hold no arc of an active source.
        let pass = dense.next().unwrap();
        let sought = (15..=50).contains(&pass.cells_indexed);
        assert_eq!(sought, sparse == SparseChoice::Auto, "{pass:?}");
        assert!(
            sought || (pass.cells, pass.cells_indexed) == (100, 0),
            "{pass:?}"
        );
    }
}

/// Two batches: the last vertex has arcs to all of the first batch and to few of the second.
///
/// These few are far apart, and one of them has more arcs than a block holds.
fn a_star_and_a_hub() -> Plain {
    let (half, last) = (VERTICES / 2, VERTICES - 1);
    // Far, but for the way over the hub.
    let within = random(6, last, 500_000).into_iter();
    let within = within.map(|(u, v, weight)| (u, v, weight + 1000.0));
    let star = (0..half).map(|v| (last, v, 100.0));
    let few = [half + 10, last - 500].map(|v| (last, v, 1.0));
    let hub = (0..9000).map(|v| (last - 500, v, (v % 50) as f64));
    let edges = within.chain(star).chain(few).chain(hub);
    Plain::undirected("a star and a hub", VERTICES, edges)
}

#[test]
fn partial_cell_reads_equal_whole_cell_reads() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("graph");
    let disk = open_disk(IoChoice::Auto).unwrap();
    a_star_and_a_hub().store(&disk, &path, VERTICES / 2, u64::MAX, false);
    let distances = |memory, sparse| {
        let mode = Mode {
            kernel: KernelChoice::Scatter,
            sparse,
            memory,
            ..MODE
        };
        run(&path, mode, |engine| {
            let distances =
                sssp::run::<f32>(engine, VERTICES - 1, sssp::SsspMethod::BellmanFord).unwrap();
            let passes = engine.metrics().passes.iter();
            let many = |pass: &&PassMetrics| pass.mode == How::Scatter && pass.active > 9000;
            let mut dense = passes.filter(many);
            let cells = dense.next().map(|pass| (pass.cells, pass.cells_indexed));
            Ok((
                all(engine, distances),
                cells,
                engine.metrics().cached_cell_bytes,
            ))
        })
    };
    let (expected, cells, _) = distances(MODE.memory, SparseChoice::Never);
    assert_eq!(cells, Some((4, 0)));
    let (found, cells, _) = distances(MODE.memory, SparseChoice::Auto);
    assert!(found == expected);
    assert_eq!(cells, Some((4, 2)));
    // Enough memory to pin the indices and little else.
    let more = (32..64).map(|quarter| Memory::LeastAnd(quarter << 18));
    let mut tried = more.map(|memory| distances(memory, SparseChoice::Auto));
    let (found, cells, pinned) = tried.find(|(.., pinned)| *pinned > 0).unwrap();
    assert!(found == expected);
    assert_eq!(cells, Some((4, 2)), "with {pinned} bytes pinned");
    assert!(pinned < 2 << 20, "{pinned} bytes are pinned");
}

/// An arc further away with each arc.
#[derive(Clone, Copy)]
struct Hops;

impl MonotoneProgram for Hops {
    type Label = u32;
    type Edge = ();
    const UNIT_STEP: bool = true;

    fn on_edge(&self, depth: u32, (): ()) -> u32 {
        depth + 1
    }
}

#[test]
fn transpose_is_loaded_after_enough_pulls() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("graph");
    let disk = open_disk(IoChoice::Auto).unwrap();
    let graph = Plain::directed("random", VERTICES, random(8, VERTICES, 300_000));
    graph.store(&disk, &path, 2000, u64::MAX, true);
    let mut engine = engine(&path, folder.path(), MODE, 1 << 28).unwrap();
    let depth = engine.vertex_array::<u32>("depth").unwrap();
    let mut search = || {
        let first = engine.metrics().passes.len();
        let start = |v, depth: &mut u32| *depth = if v == 0 { 0 } else { bfs::UNREACHED };
        engine.process_vertices(depth.write(), None, start).unwrap();
        let mut active = engine.empty_set().unwrap();
        active.insert(0).unwrap();
        engine
            .run_to_fixpoint_by_passes(&Hops, depth, active, Direction::Forward)
            .unwrap();
        let passes = &engine.metrics().passes[first..];
        let pulls = passes.iter().filter(|pass| pass.mode == How::Gather);
        (all(&engine, depth), pulls.count())
    };
    let (depths, pulls) = search();
    assert_eq!(pulls, 0, "one search does not earn the loading back");
    let again: Vec<_> = (0..4).map(|_| search()).collect();
    assert!(again.iter().all(|(found, _)| *found == depths));
    assert!(again[3].1 > 0, "by now it would have");
}

#[test]
fn weighted_and_plain_programs_share_lists() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("graph");
    let disk = open_disk(IoChoice::Auto).unwrap();
    let graph = Plain::directed("random", VERTICES, random(9, VERTICES, 60_000));
    graph.store(&disk, &path, 2000, u64::MAX, true);
    let in_memory = Mode {
        edges: EdgeResidency::Memory,
        ranks: Ranks::One,
        ..MODE
    };
    let fresh = || engine(&path, folder.path(), in_memory, 1 << 28).unwrap();
    let depths = |engine: &mut Engine| {
        let first = engine.metrics().passes.len();
        let depth = bfs::run(engine, 0).unwrap();
        let passes = &engine.metrics().passes[first..];
        assert!(passes.iter().any(|pass| pass.mode == How::Pull));
        all(engine, depth)
    };
    let components = |engine: &mut Engine| {
        let method = wcc::WccMethod::Unite(ComponentsMethod::Lists);
        let component = wcc::run::<u32>(engine, method).unwrap();
        all(engine, component)
    };
    let expected_depths = depths(&mut fresh());
    let expected_components = components(&mut fresh());
    let mut shared = fresh();
    let method = sssp::SsspMethod::Delta(None);
    sssp::run::<f32>(&mut shared, 0, method).unwrap();
    assert!(depths(&mut shared) == expected_depths);
    assert!(components(&mut shared) == expected_components);
}

#[test]
fn results_in_f32_and_f64_coexist() {
    let (_folder, mut engine) = graph_and_engine(MODE);
    let method = sssp::SsspMethod::Delta(None);
    let narrow = sssp::run::<f32>(&mut engine, 0, method).unwrap();
    let wide = sssp::run::<f64>(&mut engine, 0, method).unwrap();
    let (narrow, wide) = (all(&engine, narrow), all(&engine, wide));
    // Weights are small integers, so neither rounds.
    let widened = narrow.into_iter().map(f64::from);
    assert!(widened.eq(wide));
    let options = pagerank::Options {
        method: pagerank::PageRankMethod::Passes,
        damping: 0.85,
        iterations: 2,
        tolerance: None,
        dangling: pagerank::Dangling::Drop,
        sources: Vec::new(),
        vectors: pagerank::Vectors::default(),
        weighted: false,
    };
    pagerank::run::<f32>(&mut engine, &options).unwrap();
    pagerank::run::<f64>(&mut engine, &options).unwrap();
}

#[test]
fn sets_and_arrays_of_other_engines_are_refused() {
    let (_folder, mut one) = graph_and_engine(MODE);
    let (_other_folder, mut other) = graph_and_engine(MODE);
    let array = one.vertex_array::<u32>("mine").unwrap();
    other.vertex_array::<f64>("yours").unwrap();
    let foreign = other.process_vertices(array.write(), None, |_, value| *value = 1);
    assert!(matches!(foreign, Err(EngineError::ForeignArray)));
    let foreign = other.read_batch(&array, 0, &mut Vec::new());
    assert!(matches!(foreign, Err(EngineError::ForeignArray)));
    let active = one.full_set().unwrap();
    let foreign = other.process_vertices((), Some(&active), |_, ()| ());
    assert!(matches!(foreign, Err(EngineError::ForeignSet)));
    let foreign = other.empty_set().unwrap().union(&active);
    assert!(matches!(foreign, Err(EngineError::ForeignSet)));
}

#[test]
fn vertex_rows_evict_cached_cells() {
    const VERTICES: u64 = 1 << 19;
    let disk = open_disk(IoChoice::Auto).unwrap();
    let graph = Plain::directed("wide rows", VERTICES, random(8, VERTICES, 3_000_000));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("graph");
    graph.store(&disk, &path, VERTICES / 4, u64::MAX, false);
    let mode = Mode {
        sparse: SparseChoice::Never,
        threads: 1,
        memory: Memory::Bytes(48 << 20),
        ..MODE
    };
    let pinned = run(&path, mode, |engine| {
        let wide = engine.vertex_array::<[u64; 16]>("wide")?;
        let mut pinned = Vec::new();
        for source in 0..3 {
            let method = sssp::SsspMethod::BellmanFord;
            engines(sssp::run::<f64>(engine, source, method))?;
            pinned.push(engine.metrics().cached_cell_bytes);
            engine.process_vertices(wide.write(), None, |v, row| row[0] += v)?;
        }
        let rows = all(engine, wide);
        assert!((0..VERTICES).zip(&rows).all(|(v, row)| row[0] == 3 * v));
        Ok(pinned)
    });
    // Passes over edges leave that room once it has been asked for.
    let [first, second, third] = pinned[..] else {
        panic!("{pinned:?}");
    };
    assert!(first > second && second == third, "{pinned:?}");
}

#[test]
fn checkpoint_writes_changed_pages_only() {
    const FAR: u64 = 400_000;
    let folder = tempfile::tempdir().unwrap();
    let path = Plain::directed("path", FAR, (0..50).map(|v| (v, v + 1, 1.0)));
    let (disk, stored) = (
        open_disk(IoChoice::Auto).unwrap(),
        folder.path().join("graph"),
    );
    path.store(&disk, &stored, 10_000, u64::MAX, false);
    let written = |every: Option<CheckpointInterval>| {
        let versions = folder.path().join("versions");
        std::fs::create_dir_all(&versions).unwrap();
        let workers = WorkerPool::threads(2, disk.clone()).unwrap();
        let settings = EngineConfig {
            checkpoints: every.map(|every| CheckpointPolicy {
                folder: versions.clone(),
                description: ("run.json", Vec::new()),
                job: 7,
                every,
                keep: 1,
                resume: false,
            }),
            ..settings(disk.clone(), workers, folder.path(), MODE, 1 << 28, None)
        };
        let graph = StoredGraph::open(&disk, &MemoryBudget::new(1 << 30), &stored).unwrap();
        let mut engine = Engine::new(Arc::new(graph), settings).unwrap();
        let method = sssp::SsspMethod::BellmanFord;
        let distances = engines(sssp::run::<f64>(&mut engine, 0, method)).unwrap();
        let passes = engine.metrics().passes.clone();
        graphmill_engine::job::end_calls(&mut engine, "end_passes").unwrap();
        assert_eq!(all(&engine, distances)[50], 50.0);
        std::fs::remove_dir_all(&versions).unwrap();
        let written = passes.iter().map(|pass| pass.bytes_written);
        written.collect::<Vec<u64>>()
    };
    assert_eq!(written(None).iter().sum::<u64>(), 0);
    // The first has all rows, in 40 batches of at least a page. Each other has one or two pages of rows, and one page of call results.
    let with_versions = written(Some(CheckpointInterval::Calls(1)));
    let all_rows = with_versions.iter().max().unwrap();
    let later = &with_versions[3..];
    assert!(later.len() > 45);
    let is_little = |bytes: &u64| *bytes > 0 && *bytes <= all_rows / 10;
    assert!(later.iter().all(is_little), "{with_versions:?}");
    assert!(with_versions.iter().sum::<u64>() >= FAR * 8);
}
