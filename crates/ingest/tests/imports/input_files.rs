//! Which files of an input are read, and which of their lines are edges.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use graphmill_ingest::{
    EdgeData, EdgeSink, EdgeSource, FileSource, Format, Ids, ImportOptions, ImportProgress,
    ImportResources, IngestError, PieceReport, ReadOptions, import,
};
use graphmill_storage::{CancelToken, Disk, MemoryBudget, SimDisk, SystemClock, WorkerPool};

/// A folder with files of these names and contents, on a disk of its own.
fn folder(files: &[(&str, &str)]) -> Arc<dyn Disk> {
    let disk: Arc<dyn Disk> = Arc::new(SimDisk::new(1));
    disk.create_dir_all(Path::new("/in")).unwrap();
    for (name, text) in files {
        let path = Path::new("/in").join(name);
        disk.write_small(&path, text.as_bytes()).unwrap();
    }
    disk
}

fn open(disk: &Arc<dyn Disk>, options: &ReadOptions) -> Result<FileSource, IngestError> {
    let budget = MemoryBudget::new(64 << 20);
    FileSource::open(disk, &budget, &["/in".into()], options, &CancelToken::new())
}

/// The names of some paths, on one line.
fn names<'a>(paths: impl IntoIterator<Item = &'a Path>) -> String {
    let name = |path: &Path| path.file_name().unwrap().to_string_lossy().into_owned();
    let names: Vec<String> = paths.into_iter().map(name).collect();
    names.join(" ")
}

/// The files of edges, the files of vertices, and those that are left out.
fn files(source: &FileSource) -> [String; 3] {
    [
        names(source.files().iter().map(|file| file.path())),
        names(source.vertex_files().iter().map(PathBuf::as_path)),
        names(source.left_out().iter().map(PathBuf::as_path)),
    ]
}

const LDBC: &[(&str, &str)] = &[
    ("x-BFS", "1 0\n2 1\n"),
    ("x-WCC", "1 1\n2 1\n"),
    ("x.e", "1 2\n"),
    ("x.properties", "a = b\n"),
    ("x.v", "1\n2\n"),
    ("y.e.gz", "3 4\n"),
    ("z.json", "{}\n"),
];

#[test]
fn ldbc_answers_are_no_edges() {
    let disk = folder(LDBC);
    for format in [Format::Auto, Format::Ldbc] {
        let options = ReadOptions {
            format,
            ..ReadOptions::default()
        };
        let expected = ["x.e y.e.gz", "x.v", "x.properties x-BFS x-WCC z.json"];
        assert_eq!(files(&open(&disk, &options).unwrap()), expected);
    }
    let packed = folder(&[LDBC[0], LDBC[5]]);
    let source = open(&packed, &ReadOptions::default()).unwrap();
    assert_eq!(files(&source), ["y.e.gz", "", "x-BFS"]);
}

#[test]
fn directory_without_ldbc_files_is_read_by_name() {
    let disk = folder(&LDBC[..2]);
    let source = open(&disk, &ReadOptions::default()).unwrap();
    assert_eq!(files(&source), ["x-BFS x-WCC", "", ""]);
    let ldbc = ReadOptions {
        format: Format::Ldbc,
        ..ReadOptions::default()
    };
    let error = open(&disk, &ldbc).unwrap_err().to_string();
    assert!(error.contains("no LDBC files"), "{error}");
}

/// A sink that ignores all edges.
struct Nowhere;

impl EdgeSink for Nowhere {
    fn integers(&mut self, _: &[(u64, u64)], _: EdgeData<'_>) -> Result<(), IngestError> {
        Ok(())
    }

    fn texts(&mut self, _: &[(&[u8], &[u8])], _: EdgeData<'_>) -> Result<(), IngestError> {
        Ok(())
    }
}

/// Reads everything.
fn read(disk: &Arc<dyn Disk>, options: &ReadOptions) -> Result<PieceReport, IngestError> {
    let source = open(disk, options)?;
    let mut reader = source.reader(disk, &MemoryBudget::new(64 << 20))?;
    let mut report = PieceReport::default();
    for piece in 0..source.pieces() {
        report.add(reader.read(piece, &CancelToken::new(), &mut Nowhere)?);
    }
    Ok(report)
}

#[test]
fn header_only_file_does_not_decide_ids() {
    let header = ("a.csv", "src,dst\n");
    for (files, ids) in [
        (&[header, ("b.csv", "src,dst\n1,2\n")][..], Ids::Integer),
        (&[("0.csv", "1,2\n"), header], Ids::Integer),
        (&[header, ("b.u32", "12345678")], Ids::Integer),
        (&[header, ("b.csv", "src,dst\n1,x\n")], Ids::Text),
        (&[header, ("b.csv", "src,dst\n")], Ids::Text),
        (&[("b.csv", "ann,bob\n")], Ids::Text),
    ] {
        let source = open(&folder(files), &ReadOptions::default()).unwrap();
        assert_eq!(source.ids(), ids, "{files:?}");
    }
    let report = read(
        &folder(&[header, ("b.csv", "src,dst\n1,2\n")]),
        &ReadOptions::default(),
    )
    .unwrap();
    assert_eq!((report.edges, report.headers), (1, 2));
}

#[test]
fn numbers_are_no_header() {
    let integers = ReadOptions {
        ids: Some(Ids::Integer),
        ..ReadOptions::default()
    };
    for first in ["1.5,2.5", "1e3,+4", "99999999999999999999,-1"] {
        let disk = folder(&[("a.csv", &format!("{first}\n1,2\n"))]);
        let error = read(&disk, &integers).unwrap_err().to_string();
        assert!(error.contains("a.csv, line 1"), "{first}: {error}");
        // As on any other line.
        let source = open(&disk, &ReadOptions::default()).unwrap();
        assert_eq!(source.ids(), Ids::Text, "{first}");
    }
}

#[test]
fn endless_line_is_named_for_any_ids() {
    let endless = format!("1 2\n# {}\n3 4\n", "x".repeat(1 << 20));
    let disk = folder(&[("a.el", &endless)]);
    for ids in [None, Some(Ids::Integer), Some(Ids::Text)] {
        let options = ReadOptions {
            ids,
            ..ReadOptions::default()
        };
        let error = read(&disk, &options).unwrap_err().to_string();
        assert!(error.contains("a.el, line 2: it is longer than"), "{error}");
    }
}

/// Writes other edges over a file when a step begins.
#[derive(Debug)]
struct Meddler {
    disk: Arc<dyn Disk>,
    step: &'static str,
    path: &'static Path,
    bytes: Vec<u8>,
}

impl ImportProgress for Meddler {
    fn update(&self, step: &'static str, done: u64, _total: u64) {
        if step == self.step && done == 0 {
            self.disk.write_small(self.path, &self.bytes).unwrap();
        }
    }
}

/// Pairs that lie far apart when `factor` is large.
fn pairs(factor: u64, turn: u64) -> Vec<u8> {
    let ends = (0..1000).flat_map(|i| [i, (i + turn) % 1000]);
    ends.flat_map(|end| (end * factor).to_le_bytes()).collect()
}

#[test]
fn input_changed_while_read_is_an_error() {
    // Of the same length as before.
    let text = |end| format!("{}{end}\n", "1 2\n".repeat(1000)).into_bytes();
    for (name, before, after, step) in [
        ("/in/edges.u64", pairs(1, 1), pairs(1, 2), "scan"),
        ("/in/edges.u64", pairs(1, 1), pairs(1, 2), "distribute"),
        (
            "/in/edges.u64",
            pairs(1 << 50, 1),
            pairs(1 << 50, 2),
            "ids: collect",
        ),
        ("/in/edges.u64", pairs(1, 1), pairs(1, 2), "write"),
        ("/in/edges.el", text("3 4"), text("5 6"), "scan"),
    ] {
        let disk = folder(&[]);
        let path = Path::new(name);
        disk.write_small(path, &before).unwrap();
        let source = open(&disk, &ReadOptions::default()).unwrap();
        let meddler = Meddler {
            disk: Arc::clone(&disk),
            step,
            path,
            bytes: after,
        };
        let resources = ImportResources {
            disk: &disk,
            workers: &WorkerPool::threads(1, Arc::clone(&disk)).unwrap(),
            budget: &MemoryBudget::new(64 << 20),
            clock: &SystemClock::new(),
            stop: &CancelToken::new(),
            progress: &meddler,
            fabric: None,
        };
        let outcome = import(resources, &source, None, &ImportOptions::new("/graph"));
        if step == "write" {
            // From here on nothing is read of them.
            outcome.unwrap();
            continue;
        }
        let error = outcome.unwrap_err().to_string();
        assert!(
            error.contains(&format!("cannot import {name}: it changed")),
            "{name}, {step}: {error}"
        );
    }
}
