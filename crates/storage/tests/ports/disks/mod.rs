//! The disks that a test runs on, each with an empty directory.
#![allow(
    dead_code,
    clippy::unwrap_used,
    reason = "each test file uses its part, and unwraps are how tests fail"
)]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use graphmill_storage::{
    Disk, FileHandle, IoChoice, MemoryBudget, Open, Operation, Queue, SimDisk, open_disk,
};

/// A disk under test.
pub(crate) struct Place {
    pub(crate) name: String,
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) dir: PathBuf,
    _keep: Option<tempfile::TempDir>,
}

/// Returns every backend, on the file system of temporary files and in shared memory (tmpfs).
///
/// Prints what this machine lacks.
pub(crate) fn all() -> Vec<Place> {
    let mut places = Vec::new();
    for root in [std::env::temp_dir(), PathBuf::from("/dev/shm")] {
        if !root.is_dir() {
            eprintln!("skipped: no {}", root.display());
            continue;
        }
        let mut add = |name: &str, disk: Arc<dyn Disk>| {
            let keep = tempfile::tempdir_in(&root).unwrap();
            let dir = keep.path().to_path_buf();
            places.push(Place {
                name: format!("{name} in {}", root.display()),
                disk,
                dir,
                _keep: Some(keep),
            });
        };
        match open_disk(IoChoice::Uring) {
            Ok(disk) => add("uring", disk),
            Err(error) => eprintln!("skipped: {error}"),
        }
        add("threads", open_disk(IoChoice::Threads).unwrap());
    }
    for seed in [1, 2] {
        let disk = SimDisk::new(seed);
        disk.create_dir_all(Path::new("/t")).unwrap();
        places.push(Place {
            name: format!("sim {seed}"),
            disk: Arc::new(disk),
            dir: "/t".into(),
            _keep: None,
        });
    }
    places
}

/// Byte `i` of every test file.
pub(crate) fn byte_at(i: u64) -> u8 {
    (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as u8
}

/// A file of `length` bytes (the last ones cut off with `set_len`), written in pieces of `piece` bytes.
pub(crate) fn file_of(place: &Place, name: &str, length: u64, piece: usize) -> FileHandle {
    let file = place
        .disk
        .open(&place.dir.join(name), Open::Create)
        .unwrap();
    let budget = MemoryBudget::new(1 << 30);
    let mut queue = place.disk.queue(4).unwrap();
    for offset in (0..length).step_by(piece) {
        let mut buffer = budget.buffer("test", piece).unwrap();
        buffer
            .iter_mut()
            .enumerate()
            .for_each(|(i, byte)| *byte = byte_at(offset + i as u64));
        queue.submit(
            Operation::Write {
                file: file.clone(),
                offset,
                buffer,
                range: 0..piece,
            },
            offset,
        );
    }
    while let Some(done) = queue.wait() {
        assert_eq!(done.result.unwrap(), piece, "{}", place.name);
    }
    assert_eq!(budget.available(), budget.total());
    place.disk.set_len(&file, length).unwrap();
    file
}

/// Reads `bytes` bytes (a multiple of 4096) at `offset` and gives those that came.
pub(crate) fn read(queue: &mut dyn Queue, file: &FileHandle, offset: u64, bytes: usize) -> Vec<u8> {
    let buffer = MemoryBudget::new(1 << 30).buffer("test", bytes).unwrap();
    queue.submit(
        Operation::Read {
            file: file.clone(),
            offset,
            buffer,
            range: 0..bytes,
        },
        0,
    );
    let done = queue.wait().unwrap();
    done.buffer.unwrap()[..done.result.unwrap()].to_vec()
}
