//! An import resumes after a power cut or a disk error at any operation, and stores the same bytes.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod leftovers;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::common::{Bench, Memory};
use graphmill_fabric::{Fabric, local};
use graphmill_graph::{EdgeKind, Order, StoredGraph, VertexId, verify};
use graphmill_ingest::{
    Duplicates, Generated, GraphRule, Ids, ImportOptions, ImportProgress, ImportResources,
    IngestError, generate, import,
};
use graphmill_storage::{
    CancelToken, Fault, FaultKind, MemoryBudget, On, SimDisk, SplitMix64, SystemClock,
};

const GRAPH: &str = "/data/graph";
const BUDGET: u64 = 8 << 20;

/// The input of an import.
enum From<'a> {
    Edges(&'a Memory),
    Rule(Generated),
}

struct Case<'a> {
    name: &'static str,
    from: From<'a>,
    options: ImportOptions,
    ranks: usize,
    /// Each rank has a disk of its own.
    own_disks: bool,
}

/// A listener that records the steps at which imports resume.
#[derive(Debug, Default)]
struct Heard(Mutex<BTreeSet<&'static str>>);

impl ImportProgress for Heard {
    fn update(&self, _: &'static str, _: u64, _: u64) {}
    fn goes_on(&self, step: &'static str, files: usize) {
        let step = if files > 0 { "column files" } else { step };
        self.0.lock().unwrap().insert(step);
    }
    fn keeps_nothing(&self, _: &Path) {
        self.0.lock().unwrap().insert("nothing is kept");
    }
}

impl Case<'_> {
    fn bench(&self, seed: u64) -> Vec<Bench> {
        let count = if self.own_disks { self.ranks } else { 1 };
        let bench = |disk| {
            let bench = Bench::new(seed ^ disk);
            bench.disk.sync_dir(Path::new("/")).unwrap();
            bench
        };
        (0..count as u64).map(bench).collect()
    }

    fn import(&self, benches: &[Bench], heard: &Heard) -> Vec<Result<(), IngestError>> {
        let one = |bench: &Bench, fabric: Option<&dyn Fabric>| {
            let (budget, clock) = (MemoryBudget::new(BUDGET), SystemClock::new());
            let resources = ImportResources {
                disk: &bench.disk,
                workers: &bench.simulated(1, 2),
                budget: &budget,
                clock: &clock,
                stop: &bench.stop,
                progress: heard,
                fabric,
            };
            let done = match &self.from {
                From::Edges(source) => import(resources, *source, None, &self.options),
                From::Rule(graph) => generate(resources, graph, &self.options),
            };
            assert_eq!(budget.available(), BUDGET, "all leases are given back");
            done.map(drop)
        };
        if self.ranks == 1 {
            return vec![one(&benches[0], None)];
        }
        let one = &one;
        std::thread::scope(|scope| {
            let started: Vec<_> = local(self.ranks, 1)
                .into_iter()
                .enumerate()
                .map(|(rank, fabric)| {
                    let bench = benches.get(rank).unwrap_or(&benches[0]);
                    scope.spawn(move || {
                        let done = one(bench, Some(&fabric));
                        match &done {
                            Ok(()) => fabric.leave(),
                            Err(error) => fabric.fail(&error.to_string()),
                        }
                        done
                    })
                })
                .collect();
            started
                .into_iter()
                .map(|rank| rank.join().unwrap())
                .collect()
        })
    }

    /// The files of the graph on each disk, and nothing else beside it.
    fn files(&self, benches: &[Bench]) -> Vec<BTreeMap<PathBuf, Vec<u8>>> {
        let of = |bench: &Bench| {
            let beside = bench.disk.list(Path::new("/data")).unwrap();
            assert_eq!(beside, [Path::new(GRAPH)], "{}", self.name);
            bench.files(Path::new(GRAPH))
        };
        benches.iter().map(of).collect()
    }

    /// Injects `fault` at about `times` operations of a disk, and resumes after each.
    fn check(&self, times: u64, fault: impl Fn(u64) -> Fault) -> BTreeSet<&'static str> {
        let fresh = self.bench(7);
        for done in self.import(&fresh, &Heard::default()) {
            done.unwrap();
        }
        let wanted = self.files(&fresh);
        let operations: Vec<u64> = fresh.iter().map(|bench| bench.sim.operations()).collect();
        let heard = Heard::default();
        let mut random = SplitMix64::new(5);
        for (of, operations) in operations.into_iter().enumerate() {
            let step = (operations / times).max(1);
            let mut nth = 1 + random.below(step);
            while nth <= operations {
                let benches = self.bench(nth);
                let fault = fault(nth);
                benches[of].sim.inject(fault);
                let failed = self.import(&benches, &Heard::default());
                let what = format!("{}: {fault:?} on disk {of}: {failed:?}", self.name);
                let left: Vec<Bench> = benches
                    .iter()
                    .enumerate()
                    .map(|(disk, bench)| {
                        bench.sim.heal();
                        match fault.kind == FaultKind::PowerCut && disk == of {
                            true => on(bench.sim.after_power_cut(nth)),
                            false => on(bench.sim.copied(nth)),
                        }
                    })
                    .collect();
                let whole = |bench: &Bench| bench.disk.exists(&Path::new(GRAPH).join("graph.json"));
                // A graph that has its name is whole, on each disk.
                let named = left.iter().filter(|bench| whole(bench).unwrap()).count();
                for (bench, wanted) in left.iter().zip(&wanted) {
                    let is_same = || bench.files(Path::new(GRAPH)) == *wanted;
                    assert!(!whole(bench).unwrap() || is_same(), "{what}");
                }
                if named < left.len() {
                    for bench in &left {
                        if whole(bench).unwrap() {
                            bench.disk.remove_dir_all(Path::new(GRAPH)).unwrap();
                        }
                    }
                    for done in self.import(&left, &heard) {
                        done.unwrap_or_else(|error| panic!("{what}: {error}"));
                    }
                    assert!(self.files(&left) == wanted, "{what}");
                }
                nth += 1 + random.below(2 * step - 1);
            }
        }
        heard.0.into_inner().unwrap()
    }
}

/// A test's machine with this disk.
fn on(sim: SimDisk) -> Bench {
    Bench {
        disk: Arc::new(sim.clone()),
        sim,
        stop: CancelToken::new(),
    }
}

fn options() -> ImportOptions {
    ImportOptions {
        keep_every: Some(Duration::ZERO),
        batch_size: Some(64),
        // Two column files.
        reverse: true,
        ..ImportOptions::new(GRAPH)
    }
}

fn edges(ids: Ids, count: u64, id: impl Fn(u64) -> VertexId) -> Memory {
    let mut random = SplitMix64::new(11);
    let edge = |random: &mut SplitMix64| {
        let (from, to) = (random.below(count / 4), random.below(count / 4));
        (id(from), id(to), (random.below(100)) as f64)
    };
    Memory {
        pieces: (0..4)
            .map(|_| (0..count / 4).map(|_| edge(&mut random)).collect())
            .collect(),
        ids,
        weights: EdgeKind::F32,
        vertices: None,
        rereads_fast: ids == Ids::Integer,
    }
}

/// The number of operations with a power cut: `times`, or a multiple by the environment.
fn times(times: u64) -> u64 {
    let more = std::env::var("GRAPHMILL_SEEDS").ok();
    times * more.and_then(|more| more.parse().ok()).unwrap_or(1)
}

fn power_cut(nth: u64) -> Fault {
    Fault {
        kind: FaultKind::PowerCut,
        on: On::Any,
        nth,
        for_good: true,
    }
}

const ALL: [&str; 4] = ["column files", "distribute", "ids", "write"];

#[test]
fn resume_after_power_cut_at_each_step() {
    let close = edges(Ids::Integer, 4000, VertexId::Integer);
    let gaps = edges(Ids::Integer, 4000, |id| VertexId::Integer(3 * id));
    let far = edges(Ids::Integer, 4000, |id| VertexId::Integer(id << 40));
    let names = edges(Ids::Text, 4000, |id| {
        VertexId::Text(format!("vertex {id}").into_bytes())
    });
    let case = |name, source, options| Case {
        name,
        from: From::Edges(source),
        options,
        ranks: 1,
        own_disks: false,
    };
    for case in [
        case("ids are indices", &close, options()),
        case("a bitmap of ids", &gaps, options()),
        case("a dictionary of integers", &far, options()),
        case("a dictionary of texts", &names, options()),
        case(
            "order of degree",
            &gaps,
            ImportOptions {
                order: Order::Degree,
                duplicates: Duplicates::First,
                ..options()
            },
        ),
        case(
            "vertices of edges",
            &names,
            ImportOptions {
                directed: false,
                reverse: false,
                edge_vertices: true,
                ..options()
            },
        ),
        case(
            "order of degree by ranges",
            &far,
            ImportOptions {
                order: Order::Degree,
                work_bytes_max: 1000,
                ..options()
            },
        ),
    ] {
        let heard = case.check(times(60), power_cut);
        assert!(heard.iter().eq(&ALL), "{}: {heard:?}", case.name);
    }
}

#[test]
fn resume_after_power_cut_of_one_rank() {
    let names = edges(Ids::Text, 4000, |id| {
        VertexId::Text(format!("vertex {id}").into_bytes())
    });
    for own_disks in [false, true] {
        let case = Case {
            name: "ranks",
            from: From::Edges(&names),
            options: ImportOptions {
                // Hosts with disks of their own cannot turn arcs round.
                reverse: !own_disks,
                ..options()
            },
            ranks: 3,
            own_disks,
        };
        let heard = case.check(times(60), power_cut);
        assert!(heard.iter().eq(&ALL), "own disks: {own_disks}, {heard:?}");
    }
}

#[test]
fn resume_of_generated_graph_after_power_cut() {
    let rule = GraphRule::Consecutive {
        vertices: 3000,
        degree: 4,
    };
    let case = Case {
        name: "generated",
        from: From::Rule(Generated::new(rule, 1, EdgeKind::F64).unwrap()),
        options: options(),
        ranks: 1,
        own_disks: false,
    };
    let heard = case.check(times(60), power_cut);
    assert!(heard.iter().eq(&["column files"]), "{heard:?}");
}

#[test]
fn resume_after_disk_failure() {
    let gaps = edges(Ids::Integer, 4000, |id| VertexId::Integer(3 * id));
    let case = Case {
        name: "failures",
        from: From::Edges(&gaps),
        options: ImportOptions {
            order: Order::Degree,
            ..options()
        },
        ranks: 1,
        own_disks: false,
    };
    for (kind, on) in [
        (FaultKind::Eio, On::Any),
        (FaultKind::Enospc, On::Write),
        (FaultKind::Eio, On::Sync),
    ] {
        for for_good in [false, true] {
            case.check(times(30), |nth| Fault {
                kind,
                on,
                nth,
                for_good,
            });
        }
    }
}

/// The files and directories beside a graph.
fn beside(benches: &[Bench]) -> Vec<PathBuf> {
    benches[0].disk.list(Path::new("/data")).unwrap()
}

#[test]
fn resume_refuses_damaged_steps() {
    let names = edges(Ids::Text, 4000, |id| {
        VertexId::Text(format!("vertex {id}").into_bytes())
    });
    let case = Case {
        name: "damaged",
        from: From::Edges(&names),
        options: options(),
        ranks: 1,
        own_disks: false,
    };
    let fresh = case.bench(1);
    case.import(&fresh, &Heard::default()).remove(0).unwrap();
    let wanted = case.files(&fresh);
    let operations = fresh[0].sim.operations();
    let mut refused = 0;
    for nth in (1..operations).step_by(operations as usize / 40) {
        let kept = case.bench(1);
        kept[0].sim.inject(power_cut(nth));
        let _ = case.import(&kept, &Heard::default());
        let left = [on(kept[0].sim.after_power_cut(nth))];
        if left[0].disk.exists(Path::new(GRAPH)).unwrap() {
            continue;
        }
        for folder in beside(&left) {
            for path in left[0].disk.list(&folder).unwrap() {
                let is_data = path.extension().is_none_or(|ending| ending != "step");
                if is_data && !left[0].disk.is_dir(&path).unwrap() {
                    let mut bytes = left[0].disk.read_small(&path, 1 << 24).unwrap();
                    let middle = bytes.len() / 2;
                    bytes
                        .iter_mut()
                        .skip(middle)
                        .take(1)
                        .for_each(|byte| *byte ^= 1);
                    left[0].disk.write_small(&path, &bytes).unwrap();
                }
            }
        }
        if case.import(&left, &Heard::default()).remove(0).is_err() {
            refused += 1;
            assert_eq!(beside(&left), [] as [PathBuf; 0], "at {nth}");
            case.import(&left, &Heard::default()).remove(0).unwrap();
        }
        if case.files(&left) != wanted {
            // Column files that were complete say themselves that they are damaged, as if they had been later.
            let budget = MemoryBudget::new(BUDGET);
            let graph = StoredGraph::open(&left[0].disk, &budget, Path::new(GRAPH));
            let verified = graph
                .and_then(|graph| verify(&Arc::new(graph), &budget, &CancelToken::new(), |_| {}));
            assert!(verified.is_err(), "at {nth}");
        }
    }
    assert!(refused > 5, "{refused} refused");
}

#[test]
fn steps_are_not_kept_without_locks() {
    let close = edges(Ids::Integer, 4000, VertexId::Integer);
    for (ranks, without) in [(1, "/data"), (3, "/data"), (3, "/tmp")] {
        let case = Case {
            name: "no locks",
            from: From::Edges(&close),
            options: ImportOptions {
                temporary: Some("/tmp".into()),
                ..options()
            },
            ranks,
            own_disks: false,
        };
        let fresh = case.bench(1);
        for done in case.import(&fresh, &Heard::default()) {
            done.unwrap();
        }
        let benches = case.bench(1);
        benches[0].disk.create_dir_all(Path::new("/tmp")).unwrap();
        benches[0].sim.lose_locks(Path::new(without));
        let heard = Heard::default();
        for done in case.import(&benches, &heard) {
            done.unwrap();
        }
        assert!(case.files(&benches) == case.files(&fresh), "{ranks} ranks");
        assert!(
            benches[0].disk.list(Path::new("/tmp")).unwrap().is_empty(),
            "{ranks} ranks"
        );
        let heard = heard.0.into_inner().unwrap();
        assert!(heard.contains("nothing is kept"), "{heard:?}");
    }
}
