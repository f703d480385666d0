//! Entry points of fuzz targets: no bytes may cause a panic, or a number out of range.

use std::path::Path;
use std::sync::Arc;

use graphmill_storage::{Disk, MemoryBudget, RandomAccessFile, RecordReader, SimDisk};

use crate::checkpoint::snapshot::Snapshot;
use crate::exchange::frame::sections;
use crate::frontier::bitmap::HierarchicalBitmap;
use crate::frontier::codec;

const BUDGET: u64 = 16 << 20;

/// Reads a checkpoint file with these bytes before its checksum.
///
/// Its sets have batches of `span` vertices.
pub fn version(bytes: &[u8], span: usize) {
    let disk: Arc<dyn Disk> = Arc::new(SimDisk::new(1));
    let path = Path::new("/version");
    let sum = crc32fast::hash(bytes).to_le_bytes();
    let budget = MemoryBudget::new(BUDGET);
    let file = disk
        .write_small(path, &[bytes, &sum].concat())
        .and_then(|()| RandomAccessFile::open(&disk, &budget, path, 4096));
    let Ok(file) = file else { return };
    let Ok(record) = Snapshot::read(&file) else {
        return;
    };
    for (_, at) in &record.sets {
        let mut from = RecordReader::at(&file, *at);
        for _ in 0..from.number().unwrap_or(0) {
            let mut set = HierarchicalBitmap::default();
            let made = set.reserve(span, &budget).is_ok();
            // The batch, and who is in it.
            if !made || from.number().is_err() || codec::take(&mut from, &mut set).is_err() {
                break;
            }
            assert!(set.count <= span);
        }
    }
}

/// A frame of another rank with these bytes, whose messages take four bytes each or eight.
pub fn frame(bytes: &[u8], message: usize) {
    let Some((sections, _)) = sections(bytes, message) else {
        return;
    };
    let mut all = 0;
    for section in sections {
        let mut count = 0;
        match message {
            4 => section.each::<u32>(|_, _| count += 1),
            _ => section.each::<u64>(|_, _| count += 1),
        }
        assert!(count <= section.count());
        if let Some(columns) = section.columns() {
            assert_eq!(columns.count(), section.count());
        }
        all += section.bytes().len();
    }
    assert!(all <= bytes.len());
}
