//! Searches over lists on several ranks: the labels of one rank, whatever the ranks, the network and the direction.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use graphmill_engine::{
    Direction, EdgeResidency, Engine, EngineError, KernelChoice, Mode as PassMode, MonotoneProgram,
    SparseChoice,
};
use graphmill_fabric::{Fabric, FabricCompletion, FabricError, FabricOperation, local};
use graphmill_storage::{IoChoice, open_disk};

use crate::common::{Ranks, engine_of};
use crate::{Memory, Mode, Plain, all, random, run};

/// An arc further away with each arc.
#[derive(Clone, Copy)]
pub(crate) struct Levels;

impl MonotoneProgram for Levels {
    type Label = u32;
    type Edge = ();
    const UNIT_STEP: bool = true;

    fn on_edge(&self, label: u32, (): ()) -> u32 {
        label + 1
    }
}

/// As far away as the weights of the arcs, in buckets of a width.
#[derive(Clone, Copy)]
struct Lengths(f64);

impl MonotoneProgram for Lengths {
    type Label = f64;
    type Edge = f64;

    fn on_edge(&self, label: f64, weight: f64) -> f64 {
        label + weight
    }
    fn bucket(&self, label: f64) -> u64 {
        (label / self.0) as u64
    }
}

/// The labels of all vertices at rank 0, and the modes of the passes over edges.
pub(crate) fn settled<P: MonotoneProgram>(
    engine: &mut Engine,
    program: &P,
    [first, none]: [P::Label; 2],
) -> Result<(Vec<P::Label>, Vec<PassMode>), EngineError> {
    let labels = engine.vertex_array::<P::Label>("labels")?;
    let source = |v, label: &mut P::Label| *label = if v == 7 { first } else { none };
    engine.process_vertices(labels.write(), None, source)?;
    let mut active = engine.empty_set()?;
    active.insert(7)?;
    engine.run_to_fixpoint(program, labels, active, Direction::Forward)?;
    let modes = engine.metrics().passes.iter().map(|pass| pass.mode);
    let modes = modes.filter(|mode| *mode != PassMode::Vertices).collect();
    let values = all(engine, labels);
    Ok((values, modes))
}

fn graphs() -> Vec<Plain> {
    let path = (0..300).map(|v| (v, v + 1, 2.0));
    vec![
        Plain::undirected("random", 1000, random(1, 1000, 6000)),
        Plain::directed("directed", 500, random(2, 500, 3000)),
        Plain::undirected("path", 301, path),
        Plain::directed("a star", 200, (0..200).map(|v| (7, v, 3.0))),
    ]
}

#[test]
fn search_on_ranks_gives_the_labels_of_one() {
    let disk = open_disk(IoChoice::Auto).unwrap();
    for graph in graphs() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("graph");
        graph.store(&disk, &path, 37, 500, false);
        let usual = Mode {
            edges: EdgeResidency::Memory,
            memory: Memory::Bytes(1 << 26),
            ..Mode::USUAL
        };
        let levels = |mode| {
            run(&path, mode, |engine| {
                settled(engine, &Levels, [0, u32::MAX])
            })
        };
        let lengths = |mode, width| {
            run(&path, mode, |engine| {
                settled(engine, &Lengths(width), [0.0, f64::INFINITY])
            })
        };
        let wanted = (levels(usual).0, lengths(usual, 20.0).0);
        for (ranks, threads, kernel) in [
            (Ranks::Local(2), 1, KernelChoice::Auto),
            (Ranks::Local(3), 2, KernelChoice::Gather),
            (Ranks::Simulated(2, 5), 1, KernelChoice::Gather),
            (Ranks::Simulated(4, 6), 1, KernelChoice::Scatter),
        ] {
            let mode = Mode {
                ranks,
                threads,
                kernel,
                ..usual
            };
            let name = graph.name;
            let (found, modes) = levels(mode);
            assert_eq!(found, wanted.0, "{name} {mode:?}");
            let over_lists = |mode: &PassMode| matches!(mode, PassMode::Push | PassMode::Pull);
            assert!(modes.iter().all(over_lists), "{name} {modes:?}");
            let has_pulled = modes.contains(&PassMode::Pull);
            assert!(has_pulled || kernel != KernelChoice::Gather, "{name}");
            assert!(!has_pulled || kernel != KernelChoice::Scatter, "{name}");
            for width in [0.01, 20.0, 1e9] {
                let (found, modes) = lengths(mode, width);
                assert_eq!(found, wanted.1, "{name} {width} {mode:?}");
                assert!(modes.iter().all(over_lists), "{name} {modes:?}");
            }
        }
    }
}

#[test]
fn search_on_ranks_without_memory_for_lists_runs_in_passes() {
    let disk = open_disk(IoChoice::Auto).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("graph");
    // Lists of 4 MB a rank: the least memory of small graphs holds theirs.
    let graph = Plain::undirected("random", 10_000, random(1, 10_000, 1_000_000));
    graph.store(&disk, &path, 1000, 50_000, false);
    let mode = Mode {
        edges: EdgeResidency::Memory,
        memory: Memory::LeastAnd(0),
        ranks: Ranks::Local(2),
        ..Mode::USUAL
    };
    let levels = |mode| {
        run(&path, mode, |engine| {
            settled(engine, &Levels, [0, u32::MAX])
        })
    };
    let (found, modes) = levels(mode);
    assert_eq!(found, levels(Mode::USUAL).0);
    let over_lists = |mode: &PassMode| matches!(mode, PassMode::Push | PassMode::Pull);
    assert!(!modes.iter().any(over_lists), "{modes:?}");
}

/// A fabric that counts the frames that its rank sends.
#[derive(Debug)]
struct CountsFrames<F>(F, Arc<AtomicU64>);

impl<F: Fabric> Fabric for CountsFrames<F> {
    fn rank(&self) -> usize {
        self.0.rank()
    }
    fn ranks(&self) -> usize {
        self.0.ranks()
    }
    fn submit(&self, operation: FabricOperation, token: u64) {
        let is_send = matches!(operation, FabricOperation::Send { .. });
        self.1.fetch_add(u64::from(is_send), Ordering::Relaxed);
        self.0.submit(operation, token);
    }
    fn poll(&self) -> Option<FabricCompletion> {
        self.0.poll()
    }
    fn wait(&self, limit: Duration) -> Option<FabricCompletion> {
        self.0.wait(limit)
    }
    fn in_flight(&self) -> usize {
        self.0.in_flight()
    }
    fn lost(&self) -> Option<FabricError> {
        self.0.lost()
    }
    fn fail(&self, cause: &str) {
        self.0.fail(cause);
    }
    fn leave(&self) {
        self.0.leave();
    }
}

#[test]
fn sparse_pass_of_few_sends_three_frames() {
    const ARCS: u64 = 399;
    let disk = open_disk(IoChoice::Auto).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("graph");
    // The path changes from rank to rank with each arc, so both read cells from the start.
    let vertex = |i| i / 2 + i % 2 * ARCS.div_ceil(2);
    let arcs = (0..ARCS).map(|i| (vertex(i), vertex(i + 1), 1.0));
    Plain::undirected("path", ARCS + 1, arcs).store(&disk, &path, 37, 500, false);
    let mode = Mode {
        sparse: SparseChoice::Always,
        threads: 1,
        ranks: Ranks::Local(2),
        ..Mode::USUAL
    };
    let frames = Arc::new(AtomicU64::new(0));
    let search = |fabric: Arc<dyn Fabric>| {
        let scratch = tempfile::tempdir().unwrap();
        let mut engine = engine_of(&path, scratch.path(), mode, 1 << 26, Some(fabric)).unwrap();
        let labels = engine.vertex_array::<u32>("labels").unwrap();
        let first = |v, label: &mut u32| *label = if v == 0 { 0 } else { u32::MAX };
        engine
            .process_vertices(labels.write(), None, first)
            .unwrap();
        let mut active = engine.empty_set().unwrap();
        active.insert(0).unwrap();
        let before = frames.load(Ordering::Relaxed);
        let forward = Direction::Forward;
        engine
            .run_to_fixpoint_by_passes(&Levels, labels, active, forward)
            .unwrap();
        let sent = frames.load(Ordering::Relaxed) - before;
        let reached = |_, label: &u32| u64::from(*label < u32::MAX);
        let reached = engine.process_vertices(labels.read(), None, reached);
        assert_eq!(reached.unwrap(), ARCS + 1);
        sent
    };
    let sent = std::thread::scope(|scope| {
        let counts = [Arc::clone(&frames), Arc::default()];
        let fabrics = local(2, 1).into_iter().zip(counts);
        let fabrics = fabrics.map(|(fabric, count)| CountsFrames(fabric, count));
        let fabrics: Vec<Arc<dyn Fabric>> = fabrics.map(|fabric| Arc::new(fabric) as _).collect();
        let ranks: Vec<_> = fabrics
            .into_iter()
            .map(|fabric| scope.spawn(|| search(fabric)))
            .collect();
        ranks.into_iter().map(|rank| rank.join().unwrap()).max()
    });
    // The choice, the messages, the sums; one more in each of the first passes, until cells are in memory.
    assert!(sent.unwrap() <= 3 * ARCS + ARCS / 2, "{sent:?} frames");
}
