//! Lists in memory and on disk say the same, and messages that they keep back are not missed.

use std::path::Path;
use std::sync::Arc;

use super::*;
use graphmill_fabric::{Fabric, local};
use graphmill_graph::{EdgeKind, FinishInfo, GraphSpec, GraphWriter, IdsSummary, StoredGraph};
use graphmill_storage::{
    CancelToken, Disk, IoChoice, MemoryBudget, SplitMix64, SystemClock, Tiers, WorkerPool,
    open_disk,
};

use crate::config::{EngineConfig, EngineOptions, SparseChoice};
use crate::engine::Engine;
use crate::program::edge::{Activate, Direction, EdgeProgram};
use crate::program::footprint::ProgramFootprint;
use crate::state::rows::{Read, Write};

const VERTICES: u64 = 12 * SPAN;
const SPAN: u64 = 1 << 14;
const RANKS: usize = 4;

/// Gives each vertex up to three edges: most cells exist, and most vertices have no edge to most ranks.
fn arcs() -> Vec<(u64, u64)> {
    let mut random = SplitMix64::new(11);
    let of = |v| {
        let count = random.below(4);
        let to: Vec<_> = (0..count).map(|_| (v, random.below(VERTICES))).collect();
        to
    };
    (0..VERTICES).flat_map(of).collect()
}

fn store(disk: &Arc<dyn Disk>, path: &Path) {
    let cuts = (0..=VERTICES).step_by(SPAN as usize).collect();
    let batches = Batches::new(cuts).expect("batches");
    let files: Vec<_> = (0..batches.len()).map(|b| b..b + 1).collect();
    let shape = GraphSpec {
        chunk_bytes: None,
        batches: batches.clone(),
        edge: EdgeKind::None,
        directed: true,
        strip_edges_max: u64::MAX,
        csr_ratio: 32,
        files,
        reverse_files: None,
    };
    let budget = MemoryBudget::new(1 << 30);
    let writer = GraphWriter::create(disk.clone(), budget, path, shape).expect("a graph");
    let mut arcs = arcs();
    let cell = |&(s, d): &(u64, u64)| [d, s].map(|v| batches.batch_of(v));
    arcs.sort_by_key(|arc| (cell(arc), *arc));
    for batch in 0..batches.len() {
        let mut file = writer.column_file(batch).expect("a file");
        let of_column = arcs.iter().filter(|arc| cell(arc)[0] == batch).copied();
        let of_column: Vec<_> = of_column.collect();
        for arcs in of_column.chunk_by(|a, b| cell(a) == cell(b)) {
            let source = cell(&arcs[0])[1];
            let key = |(s, d): &(u64, u64)| {
                (s - batches.start(source)) << 32 | (d - batches.start(batch))
            };
            let keys: Vec<u64> = arcs.iter().map(key).collect();
            file.edges(batch, source, &keys, &[]).expect("edges");
        }
        file.finish().expect("a column");
    }
    let facts = FinishInfo {
        ids: IdsSummary::dense(VERTICES),
        edge_vertices: None,
        input_edges: arcs.len() as u64,
        dropped: Default::default(),
        options: Default::default(),
        program: "a test".into(),
        edge_fields: Default::default(),
    };
    writer.finish(facts).expect("a graph");
}

/// True if a vertex has something to say.
fn sends(v: u64) -> bool {
    !v.is_multiple_of(3)
}

/// Adds up the numbers of all sources.
struct AddUp;

impl EdgeProgram for AddUp {
    type SignalRows = Read<u64>;
    type ApplyRows = Write<u64>;
    type Edge = ();
    type Message = u64;
    type EdgeMessage = u64;
    type Accumulator = u64;
    type Sum = u64;
    const IDENTITY: u64 = 0;
    const ORDER_INDEPENDENT: bool = true;

    fn signal(&self, v: u64, _: &u64) -> Option<u64> {
        sends(v).then_some(v)
    }
    fn on_edge(&self, message: u64, (): ()) -> u64 {
        message
    }
    fn fold(&self, accumulator: &mut u64, carried: u64) {
        *accumulator += carried;
    }
    fn merge(&self, accumulator: &mut u64, later: u64) {
        *accumulator += later;
    }
    fn apply(&self, _: u64, sum: &mut u64, accumulator: u64) -> (u64, Activate) {
        *sum = accumulator;
        (accumulator, Activate::No)
    }
}

/// The engine of one rank.
fn engine(disk: &Arc<dyn Disk>, at: &Path, fabric: &Arc<dyn Fabric>) -> Engine {
    let scratch = at.join(format!("rank-{}", fabric.rank()));
    std::fs::create_dir_all(&scratch).expect("a folder");
    let budget = MemoryBudget::new(1 << 30);
    let graph = StoredGraph::open(disk, &budget, &at.join("graph")).expect("a graph");
    let settings = EngineConfig {
        budget,
        tiers: Tiers::default(),
        disk: disk.clone(),
        workers: Arc::new(WorkerPool::threads(1, disk.clone()).expect("a worker")),
        clock: Arc::new(SystemClock::new()),
        stop: CancelToken::new(),
        scratch,
        fabric: Some(fabric.clone()),
        options: EngineOptions {
            sparse: SparseChoice::Never,
            ..EngineOptions::default()
        },
        sizes: ProgramFootprint::USUAL,
        charge: None,
        on_pass: None,
        checkpoints: None,
    };
    Engine::new(Arc::new(graph), settings).expect("an engine")
}

/// Gives the engine lists in `room` bytes and runs a pass.
///
/// Returns the sum that arrived, the messages sent, and the bytes read of lists.
fn pass(engine: &mut Engine, room: u64) -> (u64, u64, u64) {
    let (filter, _) = MessageFilter::load(&engine.context(false), "needs", room)
        .expect("lists")
        .expect("room for them");
    let on_disk = filter.lists.all_on_disk();
    engine.cache.set_filter_for_test(filter);
    let sum = engine.vertex_array::<u64>("sum").expect("an array");
    let all = engine.full_set().expect("a set");
    let passed = engine.process_edges(&AddUp, sum.read(), sum.write(), &all, Direction::Forward);
    let (sum, _) = passed.expect("a pass");
    let last = engine.metrics().passes.last().expect("a pass");
    assert_eq!(last.filtered_peers, RANKS as u64 - 1);
    assert!(last.bytes_read >= on_disk);
    (sum, last.messages_sent, on_disk)
}

#[test]
fn filter_lists_go_to_disk_when_memory_is_short() {
    let batches = Batches::new((0..=64).map(|batch| batch << 20).collect()).expect("batches");
    let own = 0..16;
    let [least, most] = {
        let bytes = lists_memory(&batches, own.clone(), RANKS);
        [bytes.least, bytes.most].map(|bytes| bytes + selected_bytes(&batches))
    };
    assert!(least * 4 < most, "{least}, {most}");
    let rooms = |orientations, free| {
        let rooms = filter_budgets(&batches, own.clone(), RANKS, (orientations, free));
        rooms.collect::<Vec<_>>()
    };
    for orientations in [1, 2] {
        let free = |room| room * SHARE * orientations;
        assert_eq!(rooms(orientations, free(most) + free(1)), [most, least]);
        assert_eq!(rooms(orientations, free(most - 1)), [most - 1, least]);
        assert_eq!(rooms(orientations, free(least)), [least, least]);
        assert!(rooms(orientations, free(least - 1)).is_empty());
    }
}

#[test]
fn filter_is_used_where_it_saves_more_than_it_costs() {
    let vertices = 1 << 20;
    for (listed, active_own, on_disk, wanted) in [
        (vertices, vertices, 0, false),
        (vertices - vertices / 64, vertices, 0, true),
        (vertices - vertices / 64 + 1, vertices, 0, false),
        // Half of the messages are eight bytes each, and a list has a bit for each vertex.
        (vertices / 2, vertices, vertices / 8, true),
        (vertices / 2, vertices / 32, vertices / 8, true),
        (vertices / 2, vertices / 33, vertices / 8, false),
        (0, 0, 0, true),
    ] {
        let found = is_worthwhile([listed, vertices, active_own], 8, on_disk);
        assert_eq!(
            found, wanted,
            "{listed} listed, {active_own} active, {on_disk}"
        );
    }
}

#[test]
fn filter_lists_on_disk_equal_those_in_memory() {
    let folder = tempfile::tempdir().expect("a folder");
    let disk = open_disk(IoChoice::Auto).expect("a disk");
    store(&disk, &folder.path().join("graph"));
    let rank = |fabric: Arc<dyn Fabric>| {
        let mut engine = engine(&disk, folder.path(), &fabric);
        let (batches, own) = (
            engine.graph().batches().clone(),
            engine.context(false).ranks.own(),
        );
        let bytes = lists_memory(&batches, own.clone(), RANKS);
        let selected = selected_bytes(&batches);
        let needed = |arc: &&(u64, u64)| {
            let [from, to] = [arc.0, arc.1].map(|v| batches.batch_of(v));
            own.contains(&from) && !own.contains(&to) && sends(arc.0)
        };
        let arcs = arcs();
        let owner = |arc: &(u64, u64)| {
            let owner = engine.context(false).ranks.owner(batches.batch_of(arc.1));
            (arc.0, owner)
        };
        let mut wanted: Vec<_> = arcs.iter().filter(needed).map(owner).collect();
        wanted.sort_unstable();
        wanted.dedup();
        let in_memory = pass(&mut engine, bytes.most + selected);
        let on_disk = pass(&mut engine, bytes.least + selected);
        fabric.leave();
        assert_eq!(in_memory.2, 0);
        assert!(on_disk.2 > 0);
        for (sum, sent, _) in [in_memory, on_disk] {
            let all = arcs.iter().filter(|arc| sends(arc.0));
            assert_eq!(sum, all.map(|arc| arc.0).sum::<u64>());
            assert_eq!(sent, wanted.len() as u64);
        }
    };
    std::thread::scope(|scope| {
        for fabric in local(RANKS, 1) {
            let fabric: Arc<dyn Fabric> = Arc::new(fabric);
            scope.spawn(|| rank(fabric));
        }
    });
}
