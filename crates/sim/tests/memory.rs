//! Ranks whose machines have different memory agree on what each pass keeps in memory.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use graphmill::advanced::{SimulatedMachine, UpdateResidency};
use graphmill::generate::{Generated, GraphRule, KroneckerLabels};
use graphmill::{
    CancelToken, Config, EdgeKind, ImportConfig, Layout, Machine, MachineConfig, Plan, unwatched,
};
use graphmill_fabric::{NetworkModel, simulated};
use graphmill_storage::{Disk, SimDisk, SimulatedClock};

const GRAPH: &str = "/graph";
const RESULT: &str = "/result.csv";
/// Bytes of memory that hold the accumulators of all batches.
const ENOUGH: u64 = 64 << 20;

fn machine(disk: &SimDisk, memory: u64) -> MachineConfig {
    MachineConfig {
        memory: Some(memory),
        threads: Some(1),
        simulated: Some(SimulatedMachine {
            disk: Arc::new(disk.clone()),
            clock: Arc::new(SimulatedClock::default()),
            seed: 1,
        }),
        ..MachineConfig::default()
    }
}

/// Runs `mis` on ranks with such memory; returns the result, or why there is none.
fn run(disk: &SimDisk, memory: &[u64], updates: UpdateResidency) -> Result<Vec<u8>, String> {
    let runs: Vec<_> = thread::scope(|scope| {
        let fabrics = simulated(1, memory.len(), NetworkModel::default());
        let start = |(fabric, memory): (_, &u64)| {
            let (disk, memory) = (disk.clone(), *memory);
            scope.spawn(move || {
                let mut config = Config::new("mis", GRAPH);
                config.output = Some(PathBuf::from(RESULT));
                config.machine = machine(&disk, memory);
                config.checkpoints.keep = 0;
                config.engine.updates = updates;
                let plan = Plan::new(config)?;
                plan.run_as(Arc::new(fabric), &CancelToken::new(), &unwatched())
            })
        };
        let started: Vec<_> = fabrics.into_iter().zip(memory).map(start).collect();
        let ended = started.into_iter().map(|thread| thread.join());
        ended.map(|run| run.expect("no panic")).collect()
    });
    for run in runs {
        run.map_err(|error| error.to_string())?;
    }
    let result = disk.read_small(Path::new(RESULT), u64::MAX);
    result.map_err(|error| error.to_string())
}

#[test]
fn ranks_with_different_memory_give_same_bytes() {
    let disk = SimDisk::new(1);
    let rule = GraphRule::Kronecker {
        scale: 17,
        degree: 4,
        labels: KroneckerLabels::Permuted,
    };
    let rule = Generated::new(rule, 1, EdgeKind::None).expect("a rule");
    let import = ImportConfig {
        layout: Layout::Stream,
        directed: false,
        batch_size: Some(1 << 12),
        chunk_size: Some(4096),
        ..ImportConfig::default()
    };
    let importer = Machine::open(&machine(&disk, ENOUGH), CancelToken::new()).expect("a machine");
    let made = importer.generate(&rule, Path::new(GRAPH), &import, &unwatched());
    made.expect("a graph");

    let (auto, disk_only) = (UpdateResidency::Auto, UpdateResidency::Disk);
    let wanted = run(&disk, &[ENOUGH], auto).expect("a result");
    let error = run(&disk, &[1, 1], auto).expect_err("no memory");
    let (_, least) = error.split_once("at least ").expect("the least");
    let digits = least.chars().take_while(char::is_ascii_digit);
    let least: u64 = digits.collect::<String>().parse().expect("a number");
    for updates in [auto, disk_only] {
        for memory in [[least, ENOUGH], [ENOUGH, least], [least, least + (1 << 20)]] {
            let found = run(&disk, &memory, updates);
            assert!(
                found.as_ref() == Ok(&wanted),
                "{memory:?}: {:?}",
                found.err()
            );
        }
    }
}
