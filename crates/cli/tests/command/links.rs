//! Links and directories that others planted: none is followed or trusted, and outputs go where a user's own links lead.

use std::fs::{self, Permissions};
use std::io::Read;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::{call, fail, succeed};

/// A user id that no account has.
const OTHER: u32 = 54_321;

/// A folder with edges, and beside them a directory with a file that must stay.
fn folder() -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("edges.txt"), "1 2\n2 3\n").expect("edges");
    fs::create_dir_all(folder.path().join("victim/empty")).expect("a directory");
    fs::write(folder.path().join("victim/precious"), "data").expect("a file");
    folder
}

fn assert_intact(folder: &Path) {
    let precious = fs::read_to_string(folder.join("victim/precious"));
    assert_eq!(precious.expect("the file is there"), "data");
    assert!(folder.join("victim/empty").is_dir());
}

fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|facts| facts.uid() == 0)
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).expect("it is there").mode() & 0o777
}

/// The directory of an import into `folder/graph` that is kept where it is interrupted.
fn kept(folder: &Path, what: &str) -> PathBuf {
    let folder = fs::canonicalize(folder).expect("it is there");
    let name = format!("{:?} {:?}", folder.join("graph"), Path::new(""));
    let sum = name.bytes().fold(u32::MAX, |sum, byte| {
        (0..8).fold(sum ^ u32::from(byte), |sum, _| {
            (sum >> 1) ^ (0xedb8_8320 * (sum & 1))
        })
    });
    folder.join(format!(".graphmill-{what}-{:08x}-00000", !sum))
}

#[test]
fn import_planted_link_is_refused() {
    for what in ["graph", "import"] {
        let folder = folder();
        let folder = folder.path();
        symlink(folder.join("victim"), kept(folder, what)).expect("a link");
        let folder = &fs::canonicalize(folder).expect("it is there");
        let said = fail(folder, 1, &["import", "edges.txt", "-o", "graph", "-q"]);
        assert!(said.contains("it is a symbolic link"), "{said}");
        assert_intact(folder);
        assert!(!folder.join("graph").exists());
    }
}

#[test]
fn import_link_in_kept_directory_is_not_followed() {
    let folder = folder();
    let folder = &fs::canonicalize(folder.path()).expect("it is there");
    for what in ["graph", "import"] {
        fs::create_dir(kept(folder, what)).expect("a directory");
        symlink("../victim", kept(folder, what).join("columns")).expect("a link");
    }
    succeed(folder, &["import", "edges.txt", "-o", "graph", "-q"]);
    assert_intact(folder);
    assert_eq!(mode(&folder.join("graph")), mode(&folder.join("victim")));
}

#[test]
fn kept_directory_of_another_user_is_refused() {
    if !is_root() {
        return eprintln!("skipped: only root gives directories away");
    }
    for what in ["graph", "import"] {
        let folder = folder();
        let folder = &fs::canonicalize(folder.path()).expect("it is there");
        let kept = kept(folder, what);
        fs::create_dir(&kept).expect("a directory");
        fs::write(kept.join("job.step"), "theirs").expect("a file");
        chown(&kept, Some(OTHER), None).expect("root may");
        let said = fail(folder, 1, &["import", "edges.txt", "-o", "graph", "-q"]);
        assert!(said.contains("it belongs to user 54321"), "{said}");
        assert!(kept.join("job.step").exists());
    }
}

#[test]
fn run_planted_checkpoint_link_is_not_followed() {
    let folder = folder();
    let folder = folder.path();
    fs::create_dir(folder.join("tmp")).expect("a directory");
    symlink("../victim", folder.join("tmp/.graphmill-checkpoints-0")).expect("a link");
    fs::create_dir(folder.join("checkpoints")).expect("a directory");
    let run = ["run", "bfs", "edges.txt", "--source", "1", "-q"];
    succeed(folder, &[&run[..], &["--tmp", "tmp"]].concat());
    assert_intact(folder);
    symlink("../victim", folder.join("checkpoints/rank-00000")).expect("a link");
    let named = [&run[..], &["--checkpoint-dir", "checkpoints"]].concat();
    fs::remove_file(folder.join("victim/precious")).expect("the file goes");
    fs::remove_dir(folder.join("victim/empty")).expect("it is empty");
    let said = fail(folder, 1, &named);
    assert!(said.contains("it is a symbolic link"), "{said}");
    assert!(folder.join("victim").is_dir());
}

#[test]
fn cache_of_another_user_is_refused() {
    if !is_root() {
        return eprintln!("skipped: only root gives directories away");
    }
    let folder = folder();
    let folder = folder.path();
    let run = ["run", "wcc", "edges.txt"];
    let (edges, cache) = (folder.join("edges.txt"), folder.join("edges.txt.graphmill"));
    let give = |path: &Path, user: u32| chown(path, Some(user), None).expect("root may");
    // The owner of the file decides its content anyway.
    give(&edges, OTHER);
    succeed(folder, &run);
    let graph = fs::read_dir(&cache).expect("a cache").next();
    let graph = graph.expect("a graph").expect("an entry").path();
    for owners in [[OTHER, OTHER], [0, OTHER], [0, 0]] {
        give(&cache, owners[0]);
        give(&graph, owners[1]);
        let ran = call(folder, &run);
        let said = String::from_utf8_lossy(&ran.stderr);
        assert!(
            ran.status.success() && said.contains("imported before"),
            "{said}"
        );
    }
    for theirs in [&cache, &graph] {
        give(theirs, OTHER + 1);
        let said = fail(folder, 1, &run);
        assert!(said.contains("it belongs to user 54322"), "{said}");
        give(theirs, 0);
    }
    fs::set_permissions(&cache, Permissions::from_mode(0o777)).expect("its mode");
    let said = fail(folder, 1, &run);
    assert!(said.contains("everybody can write there"), "{said}");
    fs::remove_dir_all(&cache).expect("it goes");
    symlink("victim", &cache).expect("a link");
    let said = fail(folder, 1, &run);
    assert!(said.contains("it is a symbolic link"), "{said}");
    assert_intact(folder);
}

#[test]
fn output_replaced_keeps_its_mode_and_links() {
    let folder = folder();
    let folder = folder.path();
    for name in ["kept.csv", "kept.json", "target.csv", "target.json"] {
        fs::write(folder.join(name), "old").expect("a file");
        let mode = Permissions::from_mode(0o640);
        fs::set_permissions(folder.join(name), mode).expect("its mode");
    }
    fs::create_dir(folder.join("links")).expect("a directory");
    for ending in ["csv", "json"] {
        for (to, link) in [("target", "link"), ("new", "dangling")] {
            let link = folder.join(format!("links/{link}.{ending}"));
            symlink(format!("../{to}.{ending}"), link).expect("a link");
        }
    }
    for (to, of, is_new) in [
        ("kept", "kept", false),
        ("links/link", "target", false),
        ("links/dangling", "new", true),
    ] {
        let [rows, metrics] = ["csv", "json"].map(|ending| format!("{to}.{ending}"));
        let outputs = ["-o", &rows, "--metrics", &metrics];
        succeed(
            folder,
            &[&["run", "wcc", "edges.txt", "-q"], &outputs[..]].concat(),
        );
        for (ending, begin) in [("csv", "vertex,"), ("json", "{")] {
            let target = folder.join(format!("{of}.{ending}"));
            let text = fs::read_to_string(&target).expect("it was written");
            assert!(text.starts_with(begin), "{text}");
            assert!(is_new || mode(&target) == 0o640);
            let link = fs::symlink_metadata(folder.join(format!("{to}.{ending}")));
            assert_eq!(link.expect("it stays").is_symlink(), to.contains('/'));
        }
    }
}

#[test]
fn output_device_is_written_in_place() {
    let folder = folder();
    let folder = folder.path();
    let pipes = ["rows.csv", "rows.parquet", "facts.json"].map(|name| folder.join(name));
    let made = Command::new("mkfifo").args(&pipes).status();
    assert!(made.expect("mkfifo").success());
    symlink("/dev/null", folder.join("null.csv")).expect("a link");
    symlink("/dev/null", folder.join("null.json")).expect("a link");
    let run = ["run", "wcc", "edges.txt", "-q"];
    let to = |rows: &str, facts: &str| {
        succeed(
            folder,
            &[&run[..], &["-o", rows, "--metrics", facts]].concat(),
        );
    };
    to("null.csv", "null.json");
    for (rows, begins) in [("rows.csv", "vertex,"), ("rows.parquet", "PAR1")] {
        std::thread::scope(|scope| {
            let read = |name: &str| {
                let path = folder.join(name);
                scope.spawn(move || {
                    let mut text = Vec::new();
                    let pipe = fs::File::open(path).and_then(|mut of| of.read_to_end(&mut text));
                    pipe.map(|_| text)
                })
            };
            let read = [(read(rows), begins), (read("facts.json"), "{")];
            to(rows, "facts.json");
            for (reader, begins) in read {
                let text = reader.join().expect("it ends").expect("it is read");
                assert!(text.starts_with(begins.as_bytes()));
            }
        });
    }
    for pipe in &pipes {
        let kind = fs::symlink_metadata(pipe).expect("it stays").file_type();
        assert!(kind.is_fifo(), "{}", pipe.display());
    }
    let printed = succeed(folder, &[&run[..], &["--metrics", "/dev/stdout"]].concat());
    assert!(printed.contains("\"algorithm\": \"wcc\""), "{printed}");
}

#[test]
fn metrics_name_too_long_is_refused_before_work() {
    let folder = folder();
    let folder = folder.path();
    let name = |length: usize| "m".repeat(length);
    for (length, code) in [(255, 0), (256, 1)] {
        let output = call(
            folder,
            &[
                "run",
                "wcc",
                "edges.txt",
                "-q",
                "-o",
                "r.csv",
                "--metrics",
                &name(length),
            ],
        );
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{said}");
        assert_eq!(folder.join("r.csv").exists(), code == 0);
        let _ = fs::remove_file(folder.join("r.csv"));
    }
    assert!(folder.join(name(255)).exists());
}

#[test]
fn filter_ratio_not_a_number_is_refused() {
    let folder = folder();
    for ratio in ["nan", "-1"] {
        let ratio = format!("--filter-ratio={ratio}");
        fail(folder.path(), 2, &["run", "wcc", "edges.txt", &ratio]);
    }
}
