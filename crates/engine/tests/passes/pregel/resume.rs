//! Vertex programs with uncombined mailboxes that are stopped, and resume to the same values.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use graphmill_engine::{
    CheckpointInterval, CheckpointPolicy, Engine, EngineConfig, EngineError, PregelMode,
    VertexContext, VertexProgram,
};
use graphmill_graph::StoredGraph;
use graphmill_storage::{CancelToken, IoChoice, MemoryBudget, WorkerPool, open_disk};

use crate::common::{Ranks, gathered, settings};
use crate::{Mode, Plain, random};

const SUPERSTEPS: u64 = 8;

/// Mixes the values that reach a vertex: along arcs, and by `send` if `SENDS`.
struct Mixes<const SENDS: bool> {
    /// The superstep in which the user asks to stop.
    stop_at: u64,
    stop: CancelToken,
    /// The first superstep that was computed, and the last.
    seen: Arc<[AtomicU64; 2]>,
}

impl<const SENDS: bool> VertexProgram for Mixes<SENDS> {
    type Value = u64;
    type Message = u64;
    type Edge = ();
    type Aggregate = u64;
    const IDENTITY: u64 = u64::MAX;
    const SENDS: bool = SENDS;
    const UNCOMBINED: bool = true;

    fn compute(&self, vertex: &mut VertexContext<'_, Self>, _: Option<u64>) {
        let (v, superstep) = (vertex.index(), vertex.superstep());
        self.seen[0].fetch_min(superstep, Ordering::Relaxed);
        self.seen[1].fetch_max(superstep, Ordering::Relaxed);
        if superstep == self.stop_at {
            self.stop.request();
        }
        let mix = |value: u64, message: &u64| (value ^ message).wrapping_mul(0x9E37_79B9) >> 1;
        *vertex.value = vertex.messages().iter().fold(*vertex.value + v, mix);
        vertex.aggregate(v * superstep);
        if superstep + 1 == SUPERSTEPS {
            return vertex.vote_to_halt();
        }
        vertex.broadcast(*vertex.value);
        if SENDS {
            vertex.send((v * 7 + superstep) % vertex.vertices(), *vertex.value);
        }
    }
    fn combine(&self, _: &mut u64, _: u64) {}
}

type Found = (Vec<u64>, u64);

/// Runs the program with checkpoints; returns the outcomes of the ranks, and the supersteps.
fn found<const SENDS: bool>(
    graph: &Path,
    folder: &Path,
    ranks: Ranks,
    stop_at: u64,
) -> (Vec<Result<Found, EngineError>>, [u64; 2]) {
    let seen = Arc::new([u64::MAX, 0].map(AtomicU64::new));
    let rank = |number: usize, fabric| {
        let disk = open_disk(IoChoice::Auto).unwrap();
        let scratch = tempfile::tempdir().unwrap();
        let workers = WorkerPool::threads(2, disk.clone()).unwrap();
        let kept = folder.join(number.to_string());
        std::fs::create_dir_all(&kept).unwrap();
        let stored = StoredGraph::open(&disk, &MemoryBudget::new(1 << 30), graph).unwrap();
        let mode = Mode {
            ranks,
            ..Mode::USUAL
        };
        let mut settings = settings(disk, workers, scratch.path(), mode, 1 << 26, fabric);
        settings.checkpoints = Some(CheckpointPolicy {
            folder: kept,
            description: ("run.json", Vec::new()),
            job: 1,
            every: CheckpointInterval::Calls(1000),
            keep: 1,
            resume: true,
        });
        let fabric = settings.fabric.clone();
        let done = program::<SENDS>(stored, settings, stop_at, &seen);
        match (fabric, &done) {
            (Some(fabric), Ok(_)) => fabric.leave(),
            (Some(fabric), Err(error)) => fabric.fail(&error.to_string()),
            (None, _) => (),
        }
        done
    };
    let outcomes = std::thread::scope(|scope| {
        let fabrics = ranks.fabrics().into_iter().enumerate();
        let ranks = fabrics.map(|(number, fabric)| scope.spawn(move || rank(number, fabric)));
        let ranks: Vec<_> = ranks.collect();
        ranks.into_iter().map(|rank| rank.join().unwrap()).collect()
    });
    (outcomes, [0, 1].map(|i| seen[i].load(Ordering::Relaxed)))
}

fn program<const SENDS: bool>(
    stored: StoredGraph,
    settings: EngineConfig,
    stop_at: u64,
    seen: &Arc<[AtomicU64; 2]>,
) -> Result<Found, EngineError> {
    let stop = settings.stop.clone();
    let mut engine = Engine::new(stored.into(), settings)?;
    let values = engine.vertex_array::<u64>("values")?;
    let mixes = Mixes::<SENDS> {
        stop_at,
        stop,
        seen: Arc::clone(seen),
    };
    let sum = engine.pregel(mixes, values, PregelMode::Pull, None)?;
    engine.process_vertices(values.write(), None, |_, value| *value += 1)?;
    graphmill_engine::job::end_calls(&mut engine, "end")?;
    Ok((gathered(&engine, values)?, sum))
}

#[test]
fn uncombined_program_resumes_between_supersteps() {
    let disk = open_disk(IoChoice::Auto).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let graph = folder.path().join("graph");
    let plain = Plain::directed("random", 2000, random(1, 2000, 9000));
    plain.store(&disk, &graph, 64, 500, false);
    let run = |sends: bool, name: &str, ranks, stop_at| {
        let kept = folder.path().join(format!("{name} {sends} {ranks:?}"));
        match sends {
            true => found::<true>(&graph, &kept, ranks, stop_at),
            false => found::<false>(&graph, &kept, ranks, stop_at),
        }
    };
    for ranks in [Ranks::One, Ranks::Local(2)] {
        for sends in [false, true] {
            let (whole, _) = run(sends, "whole", ranks, u64::MAX);
            let whole = whole.into_iter().next().unwrap().unwrap();
            for stop_at in [3, SUPERSTEPS - 1] {
                let what = format!("{ranks:?}, {sends}, {stop_at}");
                let name = stop_at.to_string();
                let (stopped, [_, last]) = run(sends, &name, ranks, stop_at);
                assert!(stopped.iter().all(Result::is_err), "{what}: {stopped:?}");
                assert_eq!(last, stop_at, "{what}");
                let (resumed, [first, _]) = run(sends, &name, ranks, u64::MAX);
                let resumed = resumed.into_iter().next().unwrap().unwrap();
                assert!(resumed == whole, "{what}");
                // Messages of `send` are in no checkpoint.
                let expected = match (sends, stop_at) {
                    (true, _) => 0,
                    (false, 3) => 4,
                    (false, _) => u64::MAX,
                };
                assert_eq!(first, expected, "{what}");
            }
        }
    }
}
