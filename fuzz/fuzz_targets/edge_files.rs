//! Files of edges: of any bytes edges or an error, the same however the file is cut in pieces.
//!
//! The first byte of an input says what the file is called, the second how it is read; the rest is the file.

#![no_main]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use graphmill_fuzz as _;
use graphmill_graph::{EdgeKind, StoredGraph, verify};
use graphmill_ingest::{
    EdgeData, EdgeSink, EdgeSource, FileSource, Ids, ImportOptions, ImportResources, IngestError,
    NoProgress, OnError, PieceReport, ReadOptions, TextOptions, import,
};
use graphmill_storage::{CancelToken, Disk, MemoryBudget, SimDisk, SystemClock, WorkerPool};
use libfuzzer_sys::fuzz_target;

const NAMES: [&str; 12] = [
    "x.el",
    "x.csv",
    "x.tsv",
    "x.gr",
    "x.e",
    "x.v",
    "x.u32",
    "x.u64",
    "x.txt.gz",
    "x.csv.zst",
    "x.u32.gz",
    "x.u64.zst",
];
const BUDGET: u64 = 192 << 20;

fuzz_target!(|input: &[u8]| {
    let [name, how, file @ ..] = input else {
        return;
    };
    let path = PathBuf::from(NAMES[usize::from(*name) % NAMES.len()]);
    let disk: Arc<dyn Disk> = Arc::new(SimDisk::new(1));
    disk.write_small(&path, file).expect("a disk takes a file");
    let vertices = path == Path::new("x.v");
    let ids = [None, Some(Ids::Integer), Some(Ids::Text), None][usize::from(how & 3)];
    let mut text = TextOptions::default();
    if how >> 2 & 3 == 3 {
        // Fields of columns in order take the short loop; two fields of one column do not.
        let fields = ["a=3:i16,b=3:f64", "a=3:i16,b=4:f64"][usize::from(how >> 5 & 1)];
        text.edge_data = fields.parse().expect("fields");
    }
    let options = ReadOptions {
        text,
        ids: if vertices {
            ids.or(Some(Ids::Text))
        } else {
            ids
        },
        weights: [EdgeKind::None, EdgeKind::F32, EdgeKind::F64, EdgeKind::None]
            [usize::from(how >> 2 & 3)],
        piece_bytes: 1 << 40,
        ..ReadOptions::default()
    };
    let cut = |options: &ReadOptions| ReadOptions {
        piece_bytes: 1,
        ..options.clone()
    };
    let whole = read(&disk, &path, &options);
    let pieces = read(&disk, &path, &cut(&options));
    assert_same(&whole, &pieces);
    let skip = ReadOptions {
        on_error: OnError::Skip,
        ..options.clone()
    };
    let skipped = read(&disk, &path, &skip);
    assert_same(&skipped, &read(&disk, &path, &cut(&skip)));
    match (&whole, &skipped) {
        (Ok(edges), Ok(others)) => assert!(edges == others, "there was nothing to skip"),
        (Ok(_), Err(error)) => panic!("with lines to be skipped: {error}"),
        (_, Err(IngestError::Line { .. })) => panic!("a malformed line was not skipped"),
        _ => {}
    }
    if let Ok(edges) = whole
        && how & 0x80 != 0
        && !vertices
    {
        store(&disk, &path, &options, how & 0x40 != 0, edges.count());
    }
});

/// What was read of a file, to be compared.
#[derive(Debug, PartialEq)]
struct Edges {
    integers: Vec<(u64, u64)>,
    texts: Vec<(Vec<u8>, Vec<u8>)>,
    data: Vec<u128>,
    report: PieceReport,
    kind: EdgeKind,
}

impl Edges {
    fn count(&self) -> u64 {
        (self.integers.len() + self.texts.len()) as u64
    }

    fn take(&mut self, data: EdgeData<'_>, edges: usize) {
        assert!(data.low.is_empty() || data.low.len() == edges);
        assert!(data.high.is_empty() || data.high.len() == edges);
        for i in 0..data.low.len() {
            let weight = data.weight(i, self.kind);
            assert!(weight.is_none_or(f64::is_finite));
            self.data.push(data.get(i));
        }
    }
}

impl EdgeSink for Edges {
    fn integers(&mut self, edges: &[(u64, u64)], data: EdgeData<'_>) -> Result<(), IngestError> {
        assert!(!edges.is_empty());
        self.take(data, edges.len());
        self.integers.extend_from_slice(edges);
        // What unpacks a small file to a huge one is not to fill the memory here.
        if self.integers.len() > 1 << 18 {
            return Err(IngestError::Stopped);
        }
        Ok(())
    }

    fn texts(&mut self, edges: &[(&[u8], &[u8])], data: EdgeData<'_>) -> Result<(), IngestError> {
        assert!(!edges.is_empty());
        self.take(data, edges.len());
        for (source, destination) in edges {
            for id in [source, destination] {
                assert!(std::str::from_utf8(id).is_ok() && !id.is_empty());
            }
            self.texts.push((source.to_vec(), destination.to_vec()));
        }
        if self.texts.len() > 1 << 18 {
            return Err(IngestError::Stopped);
        }
        Ok(())
    }
}

fn open(
    disk: &Arc<dyn Disk>,
    budget: &MemoryBudget,
    path: &Path,
    options: &ReadOptions,
) -> Result<FileSource, IngestError> {
    let paths = [path.to_path_buf()];
    if let (Some("v"), Some(ids)) = (path.extension().and_then(|e| e.to_str()), options.ids) {
        FileSource::open_vertices(disk, budget, &paths, ids, options, &CancelToken::new())
    } else {
        FileSource::open(disk, budget, &paths, options, &CancelToken::new())
    }
}

fn read(disk: &Arc<dyn Disk>, path: &Path, options: &ReadOptions) -> Result<Edges, IngestError> {
    let budget = MemoryBudget::new(BUDGET);
    let source = open(disk, &budget, path, options)?;
    let mut reader = source.reader(disk, &budget)?;
    let mut edges = Edges {
        integers: Vec::new(),
        texts: Vec::new(),
        data: Vec::new(),
        report: PieceReport::default(),
        kind: source.weights(),
    };
    for piece in 0..source.pieces() {
        let report = reader.read(piece, &CancelToken::new(), &mut edges)?;
        edges.report.add(report);
    }
    let report = edges.report;
    assert_eq!(report.edges, edges.count());
    assert_eq!(
        report.lines,
        report.edges + report.comments + report.blank + report.headers + report.skipped
    );
    Ok(edges)
}

fn assert_same(whole: &Result<Edges, IngestError>, pieces: &Result<Edges, IngestError>) {
    match (whole, pieces) {
        (Ok(whole), Ok(pieces)) => assert!(whole == pieces, "pieces have other edges"),
        // Where a line is too long to be read depends on where reads end.
        (Err(IngestError::EndlessLine { .. }), _) | (_, Err(IngestError::EndlessLine { .. })) => {}
        (Err(whole), Err(pieces)) => assert_eq!(whole.to_string(), pieces.to_string()),
        _ => panic!(
            "{:?}, in pieces {:?}",
            whole.as_ref().err(),
            pieces.as_ref().err()
        ),
    }
}

/// Imports the file and reads the graph back.
fn store(disk: &Arc<dyn Disk>, path: &Path, read: &ReadOptions, turned: bool, edges: u64) {
    let budget = MemoryBudget::new(BUDGET);
    let source = open(disk, &budget, path, read).expect("a file opens again");
    let resources = ImportResources {
        disk,
        workers: &WorkerPool::simulated(1, 2, Arc::clone(disk)).expect("workers"),
        budget: &budget,
        clock: &SystemClock::default(),
        stop: &CancelToken::new(),
        progress: &NoProgress,
        fabric: None,
    };
    let options = ImportOptions {
        reverse: turned,
        batch_size: Some(64),
        ..ImportOptions::new("graph")
    };
    import(resources, &source, None, &options).expect("edges that can be read can be stored");
    let graph = Arc::new(StoredGraph::open(disk, &budget, Path::new("graph")).expect("a graph"));
    assert_eq!(graph.arcs(), edges);
    verify(&graph, &budget, &CancelToken::new(), |_| {}).expect("a sound graph");
}
