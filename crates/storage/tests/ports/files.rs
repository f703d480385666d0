//! Names, directories and small files behave alike on every disk.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "unwraps are how tests fail"
)]

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use crate::disks::{all, byte_at, file_of, read};
use graphmill_storage::{
    Clock, LockMode, Open, Owner, StorageError, SystemClock, WorkDir, host_id, is_this_host,
};

fn kind(error: StorageError) -> std::io::ErrorKind {
    match error {
        StorageError::Path { source, .. } => source.kind(),
        other => panic!("{other}"),
    }
}

#[test]
fn create_needs_absence_and_open_existence() {
    use std::io::ErrorKind::{AlreadyExists, IsADirectory, NotFound};
    for place in all() {
        let (disk, path) = (&place.disk, place.dir.join("file"));
        assert_eq!(kind(disk.open(&path, Open::Read).unwrap_err()), NotFound);
        assert_eq!(kind(disk.open(&path, Open::Update).unwrap_err()), NotFound);
        assert_eq!(disk.open(&path, Open::Create).unwrap().path(), path);
        assert_eq!(
            kind(disk.open(&path, Open::Create).unwrap_err()),
            AlreadyExists
        );
        disk.open(&path, Open::Update).unwrap();
        assert_eq!(
            kind(disk.open(&place.dir, Open::Read).unwrap_err()),
            IsADirectory
        );
        assert_eq!(
            kind(
                disk.open(&place.dir.join("no/file"), Open::Create)
                    .unwrap_err()
            ),
            NotFound
        );
        let text = disk
            .open(&place.dir.join("none"), Open::Read)
            .unwrap_err()
            .to_string();
        assert!(
            text.starts_with("cannot open ") && text.contains("none"),
            "{text}"
        );
    }
}

#[test]
fn directories_swap_names_with_their_content() {
    for place in all() {
        let (disk, at) = (&place.disk, |name: &str| place.dir.join(name));
        disk.create_dir_all(&at("new/deep")).unwrap();
        disk.create_dir_all(&at("old")).unwrap();
        disk.write_small(&at("new/deep/file"), b"new").unwrap();
        disk.write_small(&at("old/file"), b"old").unwrap();
        disk.exchange(&at("new"), &at("old")).unwrap();
        assert_eq!(disk.read_small(&at("old/deep/file"), 9).unwrap(), b"new");
        assert_eq!(disk.read_small(&at("new/file"), 9).unwrap(), b"old");
        assert_eq!(disk.list(&at("old")).unwrap(), [at("old/deep")]);
        assert_eq!(disk.list(&at("new")).unwrap(), [at("new/file")]);
        for (one, other) in [("new", "none"), ("none", "new"), ("old", "old/deep")] {
            assert!(disk.exchange(&at(one), &at(other)).is_err(), "{one}");
        }
    }
}

#[test]
fn directories_are_made_listed_and_removed() {
    for place in all() {
        let (disk, dir) = (&place.disk, place.dir.join("a/b/c"));
        disk.create_dir_all(&dir).unwrap();
        disk.create_dir_all(&dir).unwrap();
        assert!(disk.is_dir(&dir).unwrap() && disk.is_dir(&place.dir.join("a")).unwrap());
        for name in ["z", "k", "a"] {
            disk.write_small(&dir.join(name), b"1").unwrap();
        }
        disk.create_dir_all(&dir.join("d/e")).unwrap();
        let names: Vec<PathBuf> = ["a", "d", "k", "z"]
            .iter()
            .map(|name| dir.join(name))
            .collect();
        assert_eq!(disk.list(&dir).unwrap(), names, "{}", place.name);
        disk.sync_dir(&dir).unwrap();
        assert!(!disk.is_dir(&names[0]).unwrap() && disk.exists(&names[0]).unwrap());
        disk.remove_file(&names[0]).unwrap();
        assert!(!disk.exists(&names[0]).unwrap());
        assert!(disk.remove_file(&names[0]).is_err() && disk.remove_file(&dir).is_err());
        disk.remove_dir_all(&place.dir.join("a")).unwrap();
        assert!(disk.list(&place.dir).unwrap().is_empty());
        assert!(
            disk.list(&dir).is_err()
                && disk.sync_dir(&dir).is_err()
                && disk.remove_dir_all(&dir).is_err()
        );
        assert!(
            !disk.is_dir(&dir).unwrap() && !disk.exists(&dir.join("below/a/missing/one")).unwrap()
        );
    }
}

#[test]
fn remove_takes_an_empty_directory_only() {
    use std::io::ErrorKind::{DirectoryNotEmpty, NotADirectory, NotFound};
    for place in all() {
        let (disk, dir) = (&place.disk, place.dir.join("a/b"));
        disk.create_dir_all(&dir).unwrap();
        disk.write_small(&dir.join("file"), b"1").unwrap();
        assert_eq!(kind(disk.remove_dir(&dir).unwrap_err()), DirectoryNotEmpty);
        assert_eq!(
            kind(disk.remove_dir(&dir.join("file")).unwrap_err()),
            NotADirectory
        );
        disk.remove_file(&dir.join("file")).unwrap();
        disk.remove_dir(&dir).unwrap();
        assert_eq!(kind(disk.remove_dir(&dir).unwrap_err()), NotFound);
        assert!(disk.list(&place.dir.join("a")).unwrap().is_empty());
    }
}

#[test]
fn work_directory_goes_with_its_owner() {
    for place in all() {
        let (disk, dir) = (&place.disk, place.dir.join("a/b"));
        let first = WorkDir::create(disk, &dir, "first").unwrap();
        let second = WorkDir::create(disk, &dir, "second").unwrap();
        assert_eq!(disk.list(&dir).unwrap(), [first.path(), second.path()]);
        disk.create_dir_all(&first.path().join("c")).unwrap();
        disk.write_small(&second.path().join("file"), b"1").unwrap();
        second.rename(&dir.join("kept")).unwrap();
        drop(first);
        assert_eq!(disk.list(&dir).unwrap(), [dir.join("kept")]);
        assert_eq!(disk.read_small(&dir.join("kept/file"), 1).unwrap(), b"1");
        disk.remove_dir_all(&place.dir.join("a")).unwrap();
        drop(WorkDir::create(disk, &dir, "third").unwrap());
        assert!(disk.list(&place.dir).unwrap().is_empty(), "{}", place.name);
    }
}

#[test]
fn directory_lock_is_shared_or_exclusive() {
    use LockMode::{Alone, Shared};
    for place in all() {
        let (disk, dir) = (&place.disk, place.dir.join("held"));
        let hold = |how| disk.hold(&dir, how, Owner::Own).unwrap();
        assert!(hold(Alone).is_none() && hold(Shared).is_none(), "not there");
        disk.create_dir_all(&dir).unwrap();
        let alone = hold(Alone);
        assert!(alone.is_some() && hold(Alone).is_none() && hold(Shared).is_none());
        drop(alone);
        let shared = [hold(Shared), hold(Shared)];
        assert!(shared.iter().all(Option::is_some) && hold(Alone).is_none());
        drop(shared);
        assert!(hold(Alone).is_some(), "{}", place.name);
    }
}

#[test]
fn work_directories_of_dead_processes_are_removed() {
    for place in all() {
        let (disk, dir) = (&place.disk, place.dir.join("a"));
        let living = WorkDir::create(disk, &dir, "run").unwrap();
        let name = living.path().file_name().unwrap().to_str().unwrap();
        // Not held: its process is gone. The other was made on another machine.
        let dead = dir.join(format!("{name}7"));
        let other = dir.join(".graphmill-run@elsewhere.example-1-0");
        for left in [&dead, &other] {
            disk.create_dir_all(&left.join("b")).unwrap();
            disk.write_small(&left.join("b/file"), b"1").unwrap();
        }
        // Made before the machine was started again: a machine may not say which start that was.
        let ours = host_id(&**disk, &dir);
        let before = format!("{}{}", &ours[..8], "0".repeat(ours.len() - 8));
        let earlier = dir.join(format!(".graphmill-run@{before}-1-0"));
        disk.create_dir_all(&earlier).unwrap();
        let goes = is_this_host(&before, &**disk, &dir);
        let next = WorkDir::create(disk, &dir, "import").unwrap();
        let mut left = vec![living.path(), next.path(), &other];
        left.extend((!goes).then_some(&*earlier));
        left.sort();
        assert_eq!(disk.list(&dir).unwrap(), left, "{}", place.name);
    }
}

/// A clock whose first wait drops something.
#[derive(Debug)]
struct LetsGo<'a>(&'a Mutex<Option<WorkDir>>);

impl Clock for LetsGo<'_> {
    fn now(&self) -> Duration {
        Duration::ZERO
    }
    fn wait(&self, _: Duration) {
        *self.0.lock().unwrap() = None;
    }
}

#[test]
fn named_work_directory_waits_for_its_holder() {
    for place in all() {
        let clock = SystemClock::new();
        let named = |clock: &dyn Clock| {
            let named = WorkDir::named((&place.disk, clock), &place.dir, "one");
            named.unwrap()
        };
        let first = named(&clock).unwrap();
        place
            .disk
            .write_small(&first.path().join("file"), b"1")
            .unwrap();
        first.keep_on_drop(true);
        assert!(named(&clock).is_none(), "{}: somebody has it", place.name);
        let first = Mutex::new(Some(first));
        let second = named(&LetsGo(&first)).unwrap();
        assert!(place.disk.exists(&second.path().join("file")).unwrap());
        second.keep_on_drop(false);
    }
}

#[test]
fn stamp_changes_with_the_file() {
    for place in all() {
        let (disk, path) = (&place.disk, place.dir.join("file"));
        assert_eq!(
            kind(disk.stamp(&path).unwrap_err()),
            std::io::ErrorKind::NotFound
        );
        disk.write_small(&path, b"1 2").unwrap();
        let first = disk.stamp(&path).unwrap();
        assert_eq!((first.bytes, disk.stamp(&path).unwrap()), (3, first));
        disk.write_small(&path, b"1 3").unwrap();
        assert_ne!(disk.stamp(&path).unwrap(), first, "{}", place.name);
    }
}

#[test]
fn file_as_a_path_component_is_an_error() {
    for place in all() {
        place
            .disk
            .write_small(&place.dir.join("file"), b"")
            .unwrap();
        assert!(
            place
                .disk
                .create_dir_all(&place.dir.join("file/below"))
                .is_err(),
            "{}",
            place.name
        );
        assert!(!place.disk.exists(&place.dir.join("file/below")).unwrap());
    }
}

#[test]
fn rename_replaces_files_and_empty_directories() {
    for place in all() {
        let (disk, at) = (&place.disk, |name: &str| place.dir.join(name));
        disk.write_small(&at("old"), b"old").unwrap();
        disk.write_small(&at("new"), b"new").unwrap();
        disk.rename(&at("new"), &at("old")).unwrap();
        assert_eq!(disk.read_small(&at("old"), 3).unwrap(), b"new");
        assert!(disk.rename(&at("new"), &at("old")).is_err(), "it is gone");
        disk.create_dir_all(&at("staging/columns")).unwrap();
        disk.write_small(&at("staging/columns/0"), b"0").unwrap();
        disk.create_dir_all(&at("graph")).unwrap();
        disk.rename(&at("staging"), &at("graph")).unwrap();
        assert_eq!(
            disk.read_small(&at("graph/columns/0"), 10).unwrap(),
            b"0",
            "{}",
            place.name
        );
        assert!(!disk.exists(&at("staging")).unwrap());
        disk.create_dir_all(&at("second")).unwrap();
        assert!(
            disk.rename(&at("second"), &at("graph")).is_err(),
            "it is not empty"
        );
        assert!(
            disk.rename(&at("second"), &at("old")).is_err(),
            "it is a file"
        );
        assert!(
            disk.rename(&at("graph"), &at("graph/columns/inside"))
                .is_err(),
            "into itself"
        );
        assert!(disk.rename(&at("old"), &at("no/dir")).is_err());
        assert_eq!(disk.read_small(&at("graph/columns/0"), 10).unwrap(), b"0");
    }
}

#[test]
fn small_file_is_replaced_whole_and_bounded() {
    for place in all() {
        let (disk, path) = (&place.disk, place.dir.join("small"));
        disk.write_small(&path, b"first, and longer").unwrap();
        let opened = disk.open(&path, Open::Read).unwrap();
        disk.write_small(&path, b"second").unwrap();
        assert_eq!(disk.read_small(&path, 6).unwrap(), b"second");
        assert!(matches!(
            disk.read_small(&path, 5),
            Err(StorageError::TooLarge { max: 5, .. })
        ));
        let mut queue = disk.queue(1).unwrap();
        assert_eq!(
            read(queue.as_mut(), &opened, 0, 4096),
            b"first, and longer",
            "who has it open keeps the old bytes"
        );
        assert!(disk.write_small(&place.dir.join("no/small"), b"").is_err());
        assert!(disk.write_small(&place.dir, b"").is_err());
        assert_eq!(
            disk.list(&place.dir).unwrap(),
            std::slice::from_ref(&path),
            "{}: nothing is left aside",
            place.name
        );
        assert!(
            disk.read_small(&place.dir.join("none"), 5).is_err()
                && disk.read_small(&place.dir, 5).is_err()
        );
    }
}

#[test]
fn file_is_truncated_and_extended() {
    for place in all() {
        let file = file_of(&place, "file", 10_000, 4096);
        place.disk.set_len(&file, 5).unwrap();
        place.disk.set_len(&file, 8000).unwrap();
        let mut queue = place.disk.queue(1).unwrap();
        let bytes = read(queue.as_mut(), &file, 0, 12288);
        assert_eq!(bytes.len(), 8000);
        assert!(
            bytes[..5]
                .iter()
                .enumerate()
                .all(|(i, &byte)| byte == byte_at(i as u64))
        );
        assert!(bytes[5..].iter().all(|&byte| byte == 0), "{}", place.name);
        assert!(place.disk.free_bytes(&place.dir).unwrap() > 0);
    }
}

#[test]
fn file_outlives_its_name() {
    for place in all() {
        let file = file_of(&place, "file", 4096, 4096);
        place.disk.remove_file(file.path()).unwrap();
        let mut queue = place.disk.queue(1).unwrap();
        assert_eq!(read(queue.as_mut(), &file, 0, 4096)[7], byte_at(7));
    }
}

#[test]
fn shared_file_systems_are_not_local() {
    for place in all().iter().filter(|place| !place.name.starts_with("sim")) {
        let is_local = |path: &str| place.disk.is_local(Path::new(path));
        assert!(!is_local("/proc") && !is_local("/proc/nowhere"));
        assert_eq!(is_local("nowhere"), is_local("."));
    }
}
