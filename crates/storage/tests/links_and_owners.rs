//! A directory of this user that is held: no link is followed to it or below it, and its paths lead to it whatever has its name.

#![expect(
    clippy::disallowed_methods,
    reason = "plants links and reads modes beside the port"
)]

use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::Path;
use std::sync::Arc;

use graphmill_storage::{
    Disk, IoChoice, LockMode, Open, Owner, StorageError, Target, WorkDir, locks_unsupported,
    open_disk,
};
use tempfile::TempDir;

fn disk() -> (TempDir, Arc<dyn Disk>) {
    let folder = tempfile::tempdir().expect("the system does it");
    fs::create_dir(folder.path().join("victim")).expect("the system does it");
    fs::write(folder.path().join("victim/precious"), "data").expect("the system does it");
    (
        folder,
        open_disk(IoChoice::Threads).expect("the system does it"),
    )
}

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path)
        .expect("the system does it")
        .mode()
        & 0o777
}

#[test]
fn held_directory_link_is_refused() {
    let (folder, disk) = disk();
    let link = folder.path().join("link");
    symlink("victim", &link).unwrap();
    for how in [LockMode::Alone, LockMode::Shared, LockMode::Unlocked] {
        let held = disk.hold(&link, how, Owner::Own);
        assert!(matches!(held, Err(StorageError::NotOwn { .. })));
        assert!(disk.hold(&link, how, Owner::Anybody).unwrap().is_some());
    }
    assert!(disk.remove_dir_all(&link).is_err());
    let file = disk.hold(
        &folder.path().join("victim/precious"),
        LockMode::Alone,
        Owner::Own,
    );
    assert!(matches!(file, Err(StorageError::NotOwn { .. })));
    assert!(folder.path().join("victim/precious").exists());
}

#[test]
fn held_directory_survives_replacement_by_link() {
    let (folder, disk) = disk();
    let (own, away) = (folder.path().join("own"), folder.path().join("away"));
    disk.create_dir(&own).unwrap();
    assert_eq!(mode(&own), 0o700);
    let hold = disk.hold(&own, LockMode::Alone, Owner::Own).unwrap();
    assert!(hold.is_some());
    fs::rename(&own, &away).unwrap();
    symlink("victim", &own).unwrap();
    disk.create_dir_all(&own.join("a/b")).unwrap();
    disk.write_small(&own.join("a/b/small"), b"1").unwrap();
    disk.open(&own.join("precious"), Open::CreatePrivate)
        .unwrap();
    assert_eq!(mode(&away.join("precious")), 0o600);
    disk.rename(&own.join("a/b/small"), &own.join("small"))
        .unwrap();
    assert_eq!(disk.read_small(&own.join("small"), 1).unwrap(), b"1");
    let there = [own.join("a"), own.join("precious"), own.join("small")];
    assert_eq!(disk.list(&own).unwrap(), there);
    // Nor is a link below it followed.
    symlink("../victim", away.join("link")).unwrap();
    let below = own.join("link/precious");
    assert!(disk.read_small(&below, 9).is_err() && disk.remove_file(&below).is_err());
    assert!(disk.open(&below, Open::Read).is_err());
    assert!(!disk.is_dir(&own.join("link")).unwrap());
    assert!(disk.sync_dir(&own.join("link")).is_err());
    // The name is another's by now.
    assert!(disk.remove_dir_all(&own).is_err());
    fs::remove_file(&own).unwrap();
    fs::rename(&away, &own).unwrap();
    disk.remove_dir_all(&own).unwrap();
    assert!(!own.exists());
    assert_eq!(
        fs::read(folder.path().join("victim/precious")).unwrap(),
        b"data"
    );
}

#[test]
fn held_directory_renamed_keeps_its_handle() {
    let (folder, disk) = disk();
    let [one, other, third] = ["one", "other", "third"].map(|name| folder.path().join(name));
    let write = |path: &Path, text: &[u8]| disk.write_small(&path.join("file"), text).unwrap();
    for (path, text) in [(&one, b"1"), (&other, b"2")] {
        disk.create_dir(path).unwrap();
        write(path, text);
    }
    let _hold = disk.hold(&one, LockMode::Alone, Owner::Own).unwrap();
    disk.exchange(&one, &other).unwrap();
    let read = |path: &Path| disk.read_small(&path.join("file"), 1).unwrap();
    assert_eq!([read(&one), read(&other)], [b"2", b"1"]);
    disk.rename(&other, &third).unwrap();
    disk.remove_dir_all(&one).unwrap();
    assert_eq!(read(&third), b"1");
}

#[test]
fn scratch_is_private_until_it_is_renamed() {
    let (folder, disk) = disk();
    let scratch = WorkDir::create(&disk, folder.path(), "run").unwrap();
    assert_eq!(mode(scratch.path()), 0o700);
    let to = folder.path().join("graph");
    scratch.rename(&to).unwrap();
    assert_eq!(mode(&to), mode(&folder.path().join("victim")));
}

#[test]
fn target_follows_links_to_files_alone() {
    let (folder, disk) = disk();
    let path = |name: &str| folder.path().join(name);
    symlink("victim/precious", path("link")).unwrap();
    symlink("link", path("twice")).unwrap();
    symlink("missing", path("dangling")).unwrap();
    symlink("/dev/null", path("null")).unwrap();
    symlink("round", path("round")).unwrap();
    let file = |name: &str| Target::File(path(name));
    for (name, target) in [
        ("twice", file("victim/precious")),
        ("dangling", file("missing")),
        ("new", file("new")),
        ("null", Target::Stream),
    ] {
        assert_eq!(disk.target(&path(name)).unwrap(), target);
    }
    assert!(disk.target(&path("round")).is_err());
    assert_eq!(
        disk.target(Path::new("/dev/stdout")).unwrap(),
        Target::Stream
    );
}

#[test]
fn silent_lock_server_means_no_locks() {
    let source = io::Error::from_raw_os_error(libc::ENOLCK);
    let (action, path) = ("lock", "/tmp".into());
    assert!(locks_unsupported(&StorageError::Path {
        action,
        path,
        source
    }));
}
