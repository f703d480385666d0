//! A stream gives the bytes of its extents in order, however they are cut, consumed and started over.

use std::path::Path;
use std::sync::Arc;

use crate::model::Model;
use graphmill_graph::{Extent, ExtentReader, FileId, FileKind, FileSide, PageCache, StoredGraph};
use graphmill_storage::{Disk, MemoryBudget, SimDisk, SplitMix64};

struct Setup {
    disk: Arc<dyn Disk>,
    budget: MemoryBudget,
    graph: Arc<StoredGraph>,
    file: FileId,
    bytes: Vec<u8>,
}

fn setup(seed: u64) -> Setup {
    let disk: Arc<dyn Disk> = Arc::new(SimDisk::new(seed));
    let budget = MemoryBudget::new(64 << 20);
    let mut model = Model::random(seed, 100_000, 100_000, 400_000);
    model.file_batches = 1;
    model.write(&disk, &budget, Path::new("graph")).unwrap();
    let graph = Arc::new(StoredGraph::open(&disk, &budget, Path::new("graph")).unwrap());
    let file = FileId {
        side: FileSide::Forward,
        kind: FileKind::Data,
        number: 0,
    };
    let mut bytes = Vec::new();
    let all = 0..graph.forward().bytes(FileKind::Data);
    PageCache::new(&graph, &budget, 4)
        .unwrap()
        .read(file, all, &mut bytes)
        .unwrap();
    assert!(bytes.len() > 500_000);
    Setup {
        disk,
        budget,
        graph,
        file,
        bytes,
    }
}

#[test]
fn extent_reader_takes_any_extents_and_parts() {
    let s = setup(1);
    let mut random = SplitMix64::new(2);
    for round in 0..60 {
        let mut reader =
            ExtentReader::new(&s.graph, &s.budget, 65536 << (round % 3), 2 + round % 4).unwrap();
        let mut queue = s.disk.queue(1 + round % 5).unwrap();
        let length = s.bytes.len() as u64;
        for _ in 0..3 {
            let extents: Vec<Extent> = (0..random.below(12))
                .map(|_| {
                    let start = random.below(length);
                    let most = [1, 100, 70_000, length][random.below(4) as usize];
                    Extent {
                        file: s.file,
                        bytes: start..(start + random.below(most)).min(length),
                    }
                })
                .collect();
            reader.start(extents.clone()).unwrap();
            // Sometimes a stream is given up half-way, with reads on their way.
            let patience = if random.below(2) == 0 {
                u64::MAX
            } else {
                random.below(30)
            };
            let mut got: Vec<Vec<u8>> = vec![Vec::new(); extents.len()];
            let mut steps = 0;
            while !reader.is_done() && steps < patience {
                steps += 1;
                reader.pump(&mut *queue).unwrap();
                if let Some(front) = reader.view().unwrap() {
                    assert!(front.last || front.bytes.len() >= 65536);
                    let all = front.bytes.len();
                    let now = if random.below(3) == 0 {
                        all
                    } else {
                        1 + random.below(all as u64) as usize
                    };
                    // What a consumer must see: a part of at most 64 KiB is never torn.
                    got[front.extent].extend_from_slice(&front.bytes[..now]);
                    reader.consume(now);
                } else if let Some(done) = queue.wait() {
                    assert!(reader.owns(done.token));
                    assert!(reader.accept(done).unwrap().is_none());
                }
            }
            for (extent, got) in extents.iter().zip(&got) {
                let want = &s.bytes[extent.bytes.start as usize..extent.bytes.end as usize];
                assert!(want.starts_with(got), "round {round}");
                assert!(
                    patience < u64::MAX || want.len() == got.len(),
                    "round {round}"
                );
            }
        }
        while let Some(done) = queue.wait() {
            reader.accept(done).unwrap();
        }
        assert_eq!(reader.in_flight(), 0);
    }
}

#[test]
fn extent_readers_share_a_queue() {
    let s = setup(3);
    let mut queue = s.disk.queue(4).unwrap();
    let mut readers: Vec<ExtentReader> = (0..3)
        .map(|_| ExtentReader::new(&s.graph, &s.budget, 65536, 2).unwrap())
        .collect();
    let mut got = vec![Vec::new(); readers.len()];
    for reader in &mut readers {
        reader
            .start(vec![Extent {
                file: s.file,
                bytes: 0..s.bytes.len() as u64,
            }])
            .unwrap();
    }
    while readers.iter().any(|reader| !reader.is_done()) {
        for (reader, got) in readers.iter_mut().zip(&mut got) {
            reader.pump(&mut *queue).unwrap();
            if let Some(bytes) = reader.front().unwrap() {
                got.extend_from_slice(bytes);
                let all = bytes.len();
                reader.consume(all);
            }
        }
        let mut done = queue.wait();
        for reader in &mut readers {
            done = done.and_then(|done| reader.accept(done).unwrap());
        }
        assert!(done.is_none());
    }
    assert!(got.iter().all(|got| *got == s.bytes));
    assert!(
        readers
            .iter_mut()
            .all(|reader| reader.take_bytes_read() as usize >= s.bytes.len())
    );
}

#[test]
fn extent_outside_its_file_is_refused() {
    let s = setup(4);
    let mut reader = ExtentReader::new(&s.graph, &s.budget, 1, 1).unwrap();
    let end = s.bytes.len() as u64;
    for bytes in [
        0..end + 1,
        end + 1..end + 2,
        std::ops::Range { start: 5, end: 4 },
    ] {
        assert!(
            reader
                .start(vec![Extent {
                    file: s.file,
                    bytes
                }])
                .is_err()
        );
    }
    for file in [
        FileId {
            number: 1,
            ..s.file
        },
        FileId {
            side: FileSide::Reverse,
            ..s.file
        },
    ] {
        assert!(reader.start(vec![Extent { file, bytes: 0..1 }]).is_err());
    }
}
