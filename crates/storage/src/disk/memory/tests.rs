use super::*;
use crate::disk::port::Operation;
use crate::disk::sim::SimDisk;

fn disk(bytes: u64) -> MemoryDisk {
    let below = Arc::new(SimDisk::new(1));
    let files = MemoryFiles::new("/memory".into());
    MemoryDisk::new(files, below, MemoryBudget::new(bytes))
}

/// Writes and reads a range of a file by a queue.
fn moved(disk: &MemoryDisk, path: &str, offset: u64, bytes: &[u8]) -> Vec<u8> {
    let file = disk.open(Path::new(path), Open::Create).expect("a file");
    let mut queue = disk.queue(4).expect("a queue");
    let budget = MemoryBudget::new(1 << 20);
    let mut buffer = budget.buffer("a test", bytes.len()).expect("memory");
    buffer.copy_from_slice(bytes);
    let (range, write) = (0..bytes.len(), Arc::clone(&file));
    queue.submit(
        Operation::Write {
            file: write,
            offset,
            buffer,
            range: range.clone(),
        },
        1,
    );
    let done = queue.wait().expect("a completion");
    assert_eq!(done.result.expect("it is written"), bytes.len());
    let buffer = budget.buffer("a test", bytes.len()).expect("memory");
    let read = Operation::Read {
        file,
        offset,
        buffer,
        range,
    };
    queue.submit(read, 2);
    let done = queue.wait().expect("a completion");
    let count = done.result.expect("it is read");
    done.buffer.expect("its buffer")[..count].to_vec()
}

#[test]
fn files_of_the_directory_are_memory_and_others_are_below() {
    let disk = disk(1 << 20);
    disk.create_dir_all(Path::new("/memory/a/b"))
        .expect("a directory");
    disk.below
        .create_dir_all(Path::new("/disk"))
        .expect("a directory");
    let bytes: Vec<u8> = (0..150_u32 << 10)
        .map(|n| n as u8 ^ (n >> 8) as u8)
        .collect();
    let bytes = &bytes[..bytes.len() / 4096 * 4096];
    for path in ["/memory/a/b/file", "/disk/file"] {
        assert_eq!(moved(&disk, path, 8192, bytes), bytes);
        let whole = disk.read_small(Path::new(path), 1 << 20).expect("bytes");
        assert!(whole[..8192].iter().all(|byte| *byte == 0) && whole[8192..] == *bytes);
        assert!(disk.read_small(Path::new(path), 100).is_err());
    }
    assert!(
        !disk
            .below
            .exists(Path::new("/memory/a/b/file"))
            .expect("an answer")
    );
    assert!(
        disk.below
            .exists(Path::new("/disk/file"))
            .expect("an answer")
    );
    let across = disk.rename(Path::new("/memory/a/b/file"), Path::new("/disk/other"));
    assert!(across.is_err());
}

#[test]
fn memory_of_files_is_leased_and_given_back() {
    let disk = disk(200 << 10);
    let path = Path::new("/memory/file");
    disk.write_small(path, &[7; 100 << 10]).expect("a file");
    assert!(disk.budget.available() <= 100 << 10);
    let full = disk.write_small(Path::new("/memory/other"), &[7; 150 << 10]);
    assert!(full.is_err());
    let file = disk.open(path, Open::Update).expect("a file");
    disk.set_len(&file, 10).expect("it is cut");
    disk.set_len(&file, 70 << 10).expect("it is extended");
    let bytes = disk.read_small(path, 1 << 20).expect("bytes");
    assert!(bytes[..10] == [7; 10] && bytes[10..].iter().all(|byte| *byte == 0));
    disk.remove_file(path).expect("it is removed");
    drop(file);
    assert_eq!(disk.budget.available(), 200 << 10);
}

#[test]
fn directories_are_renamed_and_held() {
    let disk = disk(1 << 20);
    let [old, new] = ["/memory/old", "/memory/new"].map(Path::new);
    disk.create_dir(old).expect("a directory");
    disk.write_small(&old.join("file"), b"text")
        .expect("a file");
    let held = disk
        .hold(old, LockMode::Alone, Owner::Own)
        .expect("an answer");
    let again = disk
        .hold(old, LockMode::Shared, Owner::Own)
        .expect("an answer");
    assert!(held.is_some() && again.is_none());
    disk.rename(old, new).expect("it is renamed");
    assert_eq!(disk.list(new).expect("names"), [new.join("file")]);
    assert!(disk.remove_dir(new).is_err() && !disk.exists(old).expect("an answer"));
    disk.remove_dir_all(new).expect("it is removed");
    assert!(!disk.exists(new).expect("an answer"));
}
