//! Whatever operation of the disk fails, or whenever somebody asks to stop: an error that says what happened, and no
//! graph. A bit that flips unnoticed never makes a graph that reads well and is wrong.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::common::{Bench, Look, Memory, random_source};
use graphmill_graph::{EdgeKind, Order, StoredGraph, verify};
use graphmill_ingest::{Duplicates, ImportOptions, ImportReport, IngestError};
use graphmill_storage::{Fault, FaultKind, MemoryBudget, On};

const GRAPH: &str = "/data/graph";

fn options(order: Order) -> ImportOptions {
    ImportOptions {
        order,
        reverse: true,
        duplicates: Duplicates::Sum,
        batch_size: Some(64),
        ..ImportOptions::new(GRAPH)
    }
}

/// A graph by the bitmap, spooled or not, and one by the dictionary; and one in order of degree.
fn sources() -> Vec<(Memory, Order)> {
    let by_degree = random_source(4, Look::Gaps, 200, 2000, EdgeKind::F32, true);
    let by_id = vec![
        random_source(1, Look::Gaps, 200, 2000, EdgeKind::F32, true),
        random_source(2, Look::Sparse, 200, 2000, EdgeKind::None, false),
        random_source(3, Look::Words, 200, 2000, EdgeKind::F64, false),
    ];
    let by_id = by_id.into_iter().map(|source| (source, Order::Id));
    by_id.chain([(by_degree, Order::Degree)]).collect()
}

fn import(bench: &Bench, (source, order): &(Memory, Order)) -> Result<ImportReport, IngestError> {
    bench.import(
        source,
        None,
        &options(*order),
        &bench.simulated(5, 2),
        32 << 20,
    )
}

/// The operations of one import, and the files of the graph.
fn undisturbed(source: &(Memory, Order)) -> (u64, BTreeMap<PathBuf, Vec<u8>>) {
    let bench = Bench::new(1);
    let before = bench.sim.operations();
    import(&bench, source).expect("an import without faults");
    (
        bench.sim.operations() - before,
        bench.files(Path::new(GRAPH)),
    )
}

#[test]
fn disk_fault_at_any_operation_leaves_no_graph() {
    for source in sources() {
        let (operations, files) = undisturbed(&source);
        assert!(operations > 50);
        for nth in 1..=operations {
            let kind = if nth % 2 == 0 {
                FaultKind::Eio
            } else {
                FaultKind::Enospc
            };
            let bench = Bench::new(1);
            bench.sim.inject(Fault {
                kind,
                on: On::Any,
                nth,
                for_good: nth % 3 == 0,
            });
            let outcome = import(&bench, &source);
            bench.sim.heal();
            let left = bench.disk.list(Path::new("/data")).expect("a list");
            match outcome {
                Ok(_) => {
                    // Only the removal of temporary files may fail unnoticed.
                    let mut found = bench.files(Path::new(GRAPH));
                    found.retain(|path, _| path.extension().is_none_or(|ending| ending != "spool"));
                    assert!(
                        found == files,
                        "operation {nth} of {operations}: {:?}",
                        found.keys()
                    );
                }
                Err(error) => {
                    let text = error.to_string();
                    assert!(
                        text.contains("/data"),
                        "operation {nth}: the path is missing: {text}"
                    );
                    let hidden = |path: &PathBuf| path.to_string_lossy().contains("/.graphmill-");
                    // One that has its name, and could not be made durable under it, is whole.
                    let is_named = left.contains(&PathBuf::from(GRAPH));
                    if is_named {
                        assert!(
                            bench.files(Path::new(GRAPH)) == files,
                            "operation {nth}: not whole"
                        );
                    }
                    let others = left.len() - usize::from(is_named);
                    let are_hidden = left.iter().filter(|path| hidden(path)).count() == others;
                    assert!(are_hidden, "operation {nth}: {left:?}");
                    assert!(nth % 3 == 0 || others <= 1, "operation {nth}: {left:?}");
                }
            }
        }
    }
}

#[test]
fn short_transfers_are_continued() {
    for source in sources() {
        let (operations, files) = undisturbed(&source);
        let bench = Bench::new(1);
        for nth in (1..=operations).step_by(11) {
            bench.sim.inject(Fault {
                kind: FaultKind::Short,
                on: On::Any,
                nth,
                for_good: false,
            });
        }
        import(&bench, &source).expect("an import on a slow disk");
        assert!(bench.files(Path::new(GRAPH)) == files);
    }
}

#[test]
fn flipped_bit_is_detected_now_or_on_read() {
    let mut seen = 0;
    for source in sources() {
        let (operations, files) = undisturbed(&source);
        for nth in 1..=operations {
            let bench = Bench::new(nth);
            bench.sim.inject(Fault {
                kind: FaultKind::FlipBit,
                on: On::Any,
                nth,
                for_good: false,
            });
            let outcome = import(&bench, &source);
            bench.sim.heal();
            if outcome.is_err() {
                seen += 1;
                continue;
            }
            if bench.files(Path::new(GRAPH)) == files {
                continue;
            }
            let budget = MemoryBudget::new(64 << 20);
            let check = StoredGraph::open(&bench.disk, &budget, Path::new(GRAPH))
                .and_then(|graph| verify(&Arc::new(graph), &budget, &bench.stop, |_| {}));
            assert!(
                check.is_err(),
                "operation {nth} of {operations}: a wrong graph that reads well"
            );
        }
    }
    assert!(seen > 20, "flips in temporary files are seen: {seen}");
}

#[test]
fn refused_lease_leaves_no_graph() {
    for (source, order) in sources() {
        for nth in (1..400).step_by(7) {
            let bench = Bench::new(1);
            match bench.import_with_refusal(&source, &options(order), nth) {
                Ok(_) => break,
                Err(error) => {
                    assert!(
                        error.to_string().contains("--memory"),
                        "lease {nth}: {error}"
                    );
                    assert!(
                        bench
                            .disk
                            .list(Path::new("/data"))
                            .expect("a list")
                            .is_empty()
                    );
                }
            }
        }
    }
}

#[test]
fn cancelled_import_leaves_nothing() {
    let bench = Bench::new(1);
    bench.stop.request();
    for source in sources() {
        assert!(matches!(import(&bench, &source), Err(IngestError::Stopped)));
        assert!(
            bench
                .disk
                .list(Path::new("/data"))
                .expect("a list")
                .is_empty()
        );
    }
}

#[test]
fn existing_graph_stays() {
    let bench = Bench::new(1);
    let source = &sources()[0];
    import(&bench, source).expect("the first import");
    let files = bench.files(Path::new(GRAPH));
    let error = import(&bench, &sources()[1])
        .expect_err("the name is taken")
        .to_string();
    assert!(error.contains(GRAPH), "{error}");
    assert!(bench.files(Path::new(GRAPH)) == files);
}
