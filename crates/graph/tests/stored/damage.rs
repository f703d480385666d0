//! Files that are not what was written are an error that names the file, never a wrong answer and never a panic.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::model::{Model, Told, read};
use graphmill_graph::{EdgeKind, FormatError, StoredGraph, VertexId, verify};
use graphmill_storage::{
    CancelToken, Disk, Fault, FaultKind, MemoryBudget, On, SimDisk, SplitMix64,
};

const GRAPH: &str = "graph";

fn example(seed: u64, edges: usize) -> Model {
    let mut model = Model::random(seed, 900, 200, edges);
    (model.edge, model.reverse, model.file_batches) = (EdgeKind::F32, true, 3);
    let ids = (0..900u64).map(|i| VertexId::Text(format!("vertex {:06}", i * 7).into_bytes()));
    model.ids = Some(ids.collect());
    model.order = Some((0..900).map(|rank| (rank * 7 + seed) % 900).collect());
    model
}

struct Stored {
    disk: Arc<dyn Disk>,
    files: Vec<(PathBuf, Vec<u8>)>,
    told: Told,
}

fn store(model: &Model) -> Stored {
    let disk: Arc<dyn Disk> = Arc::new(SimDisk::new(3));
    model
        .write(&disk, &MemoryBudget::new(64 << 20), Path::new(GRAPH))
        .unwrap();
    let mut files = Vec::new();
    for dir in [GRAPH, "graph/columns", "graph/reverse"] {
        for path in disk.list(Path::new(dir)).unwrap() {
            if !disk.is_dir(&path).unwrap() {
                files.push((path.clone(), disk.read_small(&path, 1 << 30).unwrap()));
            }
        }
    }
    assert_eq!(files.len(), 4 + 2 * (3 + 2 * 4));
    Stored {
        disk,
        files,
        told: model.told(),
    }
}

fn open_and_verify(disk: &Arc<dyn Disk>) -> Result<(), FormatError> {
    let budget = MemoryBudget::new(64 << 20);
    let graph = Arc::new(StoredGraph::open(disk, &budget, Path::new(GRAPH))?);
    verify(&graph, &budget, &CancelToken::new(), |_| {}).map(drop)
}

impl Stored {
    /// Replaces a file, expects the error to name it, and puts it back. `whole`: also reads all.
    fn expect_noticed(&self, at: usize, bytes: &[u8], whole: bool, what: &str) {
        let (path, good) = &self.files[at];
        self.disk.write_small(path, bytes).unwrap();
        let error = open_and_verify(&self.disk).expect_err(what).to_string();
        let name = path.to_str().unwrap();
        assert!(error.contains(name), "{what} of {name}: {error}");
        assert!(
            error.contains("page") || name.ends_with("graph.json"),
            "{what} of {name}: {error}"
        );
        if whole {
            match read(&self.disk, &MemoryBudget::new(64 << 20), Path::new(GRAPH)) {
                Ok(told) => assert!(told == self.told, "{what} of {name} gave a wrong answer"),
                Err(error) => assert!(
                    error.to_string().contains(name),
                    "{what} of {name}: {error}"
                ),
            }
        }
        self.disk.write_small(path, good).unwrap();
    }
}

#[test]
fn flipped_bit_in_any_byte_is_detected() {
    // One cell has a list of blocks.
    let mut model = example(1, 1000);
    (model.cuts, model.file_batches) = (vec![0, 700, 900], 1);
    let stored = store(&model);
    let mut random = SplitMix64::new(2);
    for (at, (_, good)) in stored.files.iter().enumerate() {
        let mut bad = good.clone();
        for byte in 0..good.len() {
            // Long runs of zeros are all alike.
            let near = byte.saturating_sub(3)..(byte + 4).min(good.len());
            if good[near].iter().all(|&b| b == 0) && byte % 127 != 0 && byte + 1 != good.len() {
                continue;
            }
            bad[byte] ^= 1 << random.below(8);
            stored.expect_noticed(at, &bad, byte % 29 == 0, "a flip");
            bad[byte] = good[byte];
        }
    }
    assert!(open_and_verify(&stored.disk).is_ok());
}

#[test]
fn flipped_bits_of_a_larger_graph_are_detected() {
    let stored = store(&example(4, 60_000));
    let mut random = SplitMix64::new(5);
    for ending in ["index", "bitmaps"] {
        let is_one = |path: &Path| path.extension().is_some_and(|found| found == ending);
        let mut of_kind = stored.files.iter().filter(|(path, _)| is_one(path));
        assert!(of_kind.any(|(_, bytes)| !bytes.is_empty()), "{ending}");
    }
    for round in 0..1500 {
        let at = random.below(stored.files.len() as u64) as usize;
        let mut bad = stored.files[at].1.clone();
        // A file of bitmaps of cells that have none, or of lists of cells of one block each.
        if bad.is_empty() {
            continue;
        }
        let byte = random.below(bad.len() as u64) as usize;
        bad[byte] ^= 1 << random.below(8);
        stored.expect_noticed(at, &bad, round % 30 == 0, "a flip");
    }
}

#[test]
fn file_truncated_or_extended_is_detected() {
    let stored = store(&example(6, 20_000));
    let mut random = SplitMix64::new(7);
    for (at, (_, good)) in stored.files.iter().enumerate() {
        let mut lengths = vec![
            0,
            1,
            good.len() / 2,
            good.len().saturating_sub(1),
            good.len() + 1,
            good.len() + 4096,
        ];
        lengths.extend((4096..good.len()).step_by(4096));
        lengths.push(random.below(good.len() as u64 + 1) as usize);
        lengths.retain(|length| *length != good.len());
        for length in lengths {
            let mut bad = good.clone();
            bad.resize(length, 0);
            stored.expect_noticed(at, &bad, true, "another length");
        }
    }
}

#[test]
fn file_swapped_or_foreign_is_detected() {
    let stored = store(&example(8, 20_000));
    let other = store(&example(9, 20_000));
    for (at, (path, good)) in stored.files.iter().enumerate() {
        for (_, foreign) in &stored.files {
            if foreign != good {
                stored.expect_noticed(at, foreign, false, "a file of the same graph");
            }
        }
        let is_told_apart =
            !path.ends_with("ids") && !path.ends_with("ids.index") && !path.ends_with("graph.json");
        if is_told_apart && !good.is_empty() {
            stored.expect_noticed(at, &other.files[at].1, true, "a file of another graph");
        }
    }
}

#[test]
fn page_swapped_is_detected() {
    let stored = store(&example(10, 200_000));
    for (at, (_, good)) in stored.files.iter().enumerate() {
        if good.len() < 3 * 65536 {
            continue;
        }
        let mut bad = good.clone();
        let (first, second) = bad.split_at_mut(65536);
        first.swap_with_slice(&mut second[..65536]);
        stored.expect_noticed(at, &bad, true, "two pages swapped");
    }
}

#[test]
fn file_missing_is_detected() {
    let stored = store(&example(11, 3000));
    for (path, good) in &stored.files {
        stored.disk.remove_file(path).unwrap();
        let error = open_and_verify(&stored.disk).unwrap_err();
        let named = error.to_string().contains(path.to_str().unwrap());
        assert!(
            named || matches!(error, FormatError::NotAGraph { .. }),
            "{error}"
        );
        stored.disk.write_small(path, good).unwrap();
    }
}

#[test]
fn bit_flipped_by_the_disk_is_detected() {
    let model = example(12, 30_000);
    let sim = SimDisk::new(13);
    let disk: Arc<dyn Disk> = Arc::new(sim.clone());
    model
        .write(&disk, &MemoryBudget::new(64 << 20), Path::new(GRAPH))
        .unwrap();
    let told = model.told();
    let mut noticed = 0;
    for after in 1..150 {
        sim.inject(Fault {
            kind: FaultKind::FlipBit,
            on: On::Read,
            nth: after,
            for_good: false,
        });
        match read(&disk, &MemoryBudget::new(64 << 20), Path::new(GRAPH)) {
            Ok(found) => assert!(found == told, "a wrong answer after flip {after}"),
            Err(_) => noticed += 1,
        }
        sim.heal();
    }
    assert!(noticed > 50, "{noticed} flips were noticed");
}

#[test]
fn failed_write_leaves_no_graph() {
    let model = example(14, 2000);
    let budget = MemoryBudget::new(64 << 20);
    for on in [On::Write, On::Sync, On::Name] {
        for after in 1.. {
            let sim = SimDisk::new(after);
            let disk: Arc<dyn Disk> = Arc::new(sim.clone());
            sim.inject(Fault {
                kind: FaultKind::Enospc,
                on,
                nth: after,
                for_good: true,
            });
            let written = model.write(&disk, &budget, Path::new(GRAPH));
            sim.heal();
            assert_eq!(budget.available(), budget.total());
            match written {
                Ok(()) => {
                    assert!(after > 5, "{on:?}");
                    break;
                }
                Err(_) => {
                    let opened = StoredGraph::open(&disk, &budget, Path::new(GRAPH));
                    // Only the very last sync comes after graph.json has its name.
                    if let Ok(graph) = opened {
                        assert_eq!(on, On::Sync);
                        verify(&Arc::new(graph), &budget, &CancelToken::new(), |_| {}).unwrap();
                    }
                }
            }
        }
    }
}

#[test]
fn failed_lease_is_named_in_the_error() {
    let model = example(15, 20_000);
    let told = model.told();
    let budget = MemoryBudget::new(64 << 20);
    let disk: Arc<dyn Disk> = Arc::new(SimDisk::new(1));
    model.write(&disk, &budget, Path::new(GRAPH)).unwrap();
    for n in 1.. {
        budget.fail_nth(n);
        let fresh: Arc<dyn Disk> = Arc::new(SimDisk::new(n));
        let written = model.write(&fresh, &budget, Path::new(GRAPH));
        budget.fail_nth(0);
        match written {
            Ok(()) => {
                assert!(n > 20);
                break;
            }
            Err(error) => assert!(error.to_string().contains("--memory"), "{error}"),
        }
        assert_eq!(budget.available(), budget.total());
    }
    for n in 1.. {
        budget.fail_nth(n);
        let found = read(&disk, &budget, Path::new(GRAPH));
        budget.fail_nth(0);
        match found {
            Ok(found) => {
                assert!(n > 20 && found == told);
                break;
            }
            Err(error) => assert!(error.to_string().contains("--memory"), "{error}"),
        }
        assert_eq!(budget.available(), budget.total());
    }
}
