//! Entry points of the fuzz targets: they decode records of a checkpoint and the temporary files that the records name.
//!
//! Any bytes must decode without a panic, and within the budget's memory.

use std::path::Path;
use std::sync::Arc;

use graphmill_graph::EdgeKind;
use graphmill_storage::{CancelToken, Disk, MemoryBudget, RandomAccessFile, RecordReader, SimDisk};

use crate::edge_data::EdgeData;
use crate::error::IngestError;
use crate::external::bucket_file::{BucketFile, ChunkReader};
use crate::external::edge_file::{EdgeBatchSink, OrderedEdgeFile};
use crate::ids::bitmap::RankBitmap;
use crate::layout::batch_cut::RangeCounts;

const BUDGET: u64 = 16 << 20;
/// Bytes of a chunk that is read, at most.
const CHUNK_BYTES_MAX: usize = 1 << 20;

/// A sink that ignores all edges.
struct DiscardBatches;

impl EdgeBatchSink for DiscardBatches {
    fn integers(&mut self, _: &[(u64, u64)], _: EdgeData<'_>, _: u64) -> Result<(), IngestError> {
        Ok(())
    }
    fn texts(&mut self, _: &[(&[u8], &[u8])], _: EdgeData<'_>, _: u64) -> Result<(), IngestError> {
        Ok(())
    }
}

/// Decodes a record of a kind with these bytes, and the temporary file that it names.
pub fn record(kind: u8, record: &[u8], file: &[u8]) {
    let disk: Arc<dyn Disk> = Arc::new(SimDisk::new(1));
    let (path, temporary) = (Path::new("/record"), Path::new("/temporary"));
    let budget = MemoryBudget::new(BUDGET);
    let opened = disk
        .write_small(path, record)
        .and_then(|()| disk.write_small(temporary, file))
        .and_then(|()| RandomAccessFile::open(&disk, &budget, path, 4096));
    let Ok(opened) = opened else { return };
    let mut from = RecordReader::at(&opened, 0);
    let chunk_reader = |chunk_bytes: usize| {
        let most = chunk_bytes.min(CHUNK_BYTES_MAX);
        ChunkReader::new(&*disk, &budget, most, 2)
    };
    let stop = CancelToken::new();
    match kind {
        0 => {
            if let Ok(bucket_file) = BucketFile::decode(&*disk, &budget, temporary, &mut from)
                && bucket_file.chunk_bytes <= CHUNK_BYTES_MAX
                && let Ok(mut chunk_reader) = chunk_reader(bucket_file.chunk_bytes)
            {
                for bucket in 0..bucket_file.buckets() {
                    let _ = bucket_file.read(bucket, &mut chunk_reader, &stop, |_| Ok(()));
                }
            }
        }
        1..=3 => {
            // Fields take the place of nothing where the first byte asks for a record.
            let weights = match (kind, record.first()) {
                (1, Some(bytes @ 1..=16)) => EdgeKind::Record(*bytes),
                (1, _) => EdgeKind::None,
                (2, _) => EdgeKind::F32,
                _ => EdgeKind::F64,
            };
            let taken = OrderedEdgeFile::decode(&*disk, &budget, (temporary, weights), &mut from);
            if let Ok(edge_file) = taken
                && let Ok(mut chunk_reader) = chunk_reader(edge_file.chunk_bytes)
            {
                for unit in 0..edge_file.units() {
                    let _ = edge_file.read(unit, &mut chunk_reader, &stop, &mut DiscardBatches);
                }
            }
        }
        4 => {
            if let Ok(ranks) = RankBitmap::decode(&budget, &mut from) {
                for id in 0..100 {
                    let _ = ranks.look_up().rank(id << (id % 40));
                }
            }
        }
        _ => {
            let _ = from
                .number()
                .map(|vertices| RangeCounts::decode(vertices, &mut from));
        }
    }
}
