//! Parquet files: of any bytes edges or an error, no panic, and no more memory than the budget.
//!
//! The first byte of an input says how the file is read; the rest is the file.

#![no_main]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use graphmill_fuzz as _;
use graphmill_graph::EdgeKind;
use graphmill_ingest::{
    EdgeData, EdgeSink, EdgeSource, FileSource, Ids, IngestError, OnError, ReadOptions, TextOptions,
};
use graphmill_storage::{CancelToken, Disk, MemoryBudget, SimDisk};
use libfuzzer_sys::fuzz_target;

/// Edges that are counted, and what they carry.
struct Count(u64, EdgeKind);

impl EdgeSink for Count {
    fn integers(&mut self, edges: &[(u64, u64)], data: EdgeData<'_>) -> Result<(), IngestError> {
        assert!(data.low.is_empty() || data.low.len() == edges.len());
        let mut weights = (0..edges.len()).filter_map(|i| data.weight(i, self.1));
        assert!(weights.all(f64::is_finite));
        self.0 += edges.len() as u64;
        // What unpacks a small file to a huge one is not to take all the time.
        if self.0 > 1 << 20 {
            Err(IngestError::Stopped)
        } else {
            Ok(())
        }
    }

    fn texts(&mut self, edges: &[(&[u8], &[u8])], data: EdgeData<'_>) -> Result<(), IngestError> {
        for (source, destination) in edges {
            for id in [source, destination] {
                assert!(std::str::from_utf8(id).is_ok() && !id.is_empty());
            }
        }
        self.integers(&vec![(0, 0); edges.len()], data)
    }
}

fuzz_target!(|input: &[u8]| {
    let [how, file @ ..] = input else {
        return;
    };
    // The library's panics are errors of the file; libFuzzer would take them for ours.
    std::panic::set_hook(Box::new(|_| {}));
    let path = PathBuf::from("x.parquet");
    let disk: Arc<dyn Disk> = Arc::new(SimDisk::new(1));
    disk.write_small(&path, file).expect("a disk takes a file");
    let mut text = TextOptions::default();
    if how >> 2 & 3 == 3 {
        let fields = ["a=3:i16,b=3:f64", "a=3:i16,b=4:f64"][usize::from(how >> 5 & 1)];
        text.edge_data = fields.parse().expect("fields");
    }
    let options = ReadOptions {
        text,
        ids: [None, Some(Ids::Integer), Some(Ids::Text), None][usize::from(how & 3)],
        weights: [EdgeKind::None, EdgeKind::F32, EdgeKind::F64, EdgeKind::None]
            [usize::from(how >> 2 & 3)],
        on_error: [OnError::Stop, OnError::Skip][usize::from(how >> 4 & 1)],
        ..ReadOptions::default()
    };
    let _ = read(&disk, &path, &options);
});

fn read(disk: &Arc<dyn Disk>, path: &Path, options: &ReadOptions) -> Result<(), IngestError> {
    let budget = MemoryBudget::new(64 << 20);
    let paths = [path.to_path_buf()];
    let source = FileSource::open(disk, &budget, &paths, options, &CancelToken::new())?;
    let mut reader = source.reader(disk, &budget)?;
    let mut edges = Count(0, source.weights());
    for piece in 0..source.pieces() {
        let before = edges.0;
        let report = reader.read(piece, &CancelToken::new(), &mut edges)?;
        assert_eq!(report.edges, edges.0 - before);
    }
    Ok(())
}
