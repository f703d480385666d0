//! State shared by the parts of a graph writer, and the column files that are complete.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use graphmill_raw::lock;
use graphmill_storage::{Disk, Lease, MemoryBudget};

use crate::cell::directory::{CellSizes, FileRoots};
use crate::error::FormatError;
use crate::file::extent::CHUNK_BYTES;
use crate::file::page::{DISK_PAGE_BYTES, FileId, FileKind, FileRoot, FileSide};
use crate::file::page_writer::Temporary;
use crate::spec::GraphSpec;
use crate::stream::chunk_file::ChunkFile;
use crate::weight_range::WeightRange;

/// What the spool and the directory say of one cell.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CellMeta {
    pub(crate) sizes: CellSizes,
    pub(crate) spool_bytes: u64,
    pub(crate) spool_checksum: u32,
}

/// How the names of temporary files end.
pub(super) const SPOOL: &str = "spool";

/// A column file that is complete.
pub(crate) struct ColumnFileManifest {
    pub(crate) roots: FileRoots,
    pub(crate) cells: Vec<CellMeta>,
    pub(crate) spool: Temporary,
    pub(super) weights: Option<WeightRange>,
    pub(super) _leases: Vec<Lease>,
}

/// What all parts of the writer know.
pub(crate) struct WriterState {
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) budget: MemoryBudget,
    pub(crate) staging: PathBuf,
    pub(crate) shape: GraphSpec,
    pub(crate) graph_id: u64,
    /// True if the files stay when the writer is dropped unfinished, so that another writer can resume.
    pub(super) keeps: bool,
    pub(super) done: Mutex<BTreeMap<(FileSide, usize), ColumnFileManifest>>,
    /// In the stream layout: the files of chunks, and the roots of the degrees.
    pub(super) chunks: Mutex<Vec<ChunkFile>>,
    pub(super) degrees: Mutex<BTreeMap<FileSide, FileRoot>>,
    /// The order of the vertices, where it is not that of ids.
    pub(crate) order: Mutex<Option<FileRoot>>,
}

impl WriterState {
    pub(super) fn files(&self, side: FileSide) -> &[Range<usize>] {
        match side {
            FileSide::Forward => &self.shape.files,
            FileSide::Reverse => self.shape.reverse_files.as_deref().unwrap_or(&[]),
        }
    }
    /// Notes that a column file is complete.
    pub(super) fn note(
        &self,
        side: FileSide,
        number: usize,
        file: ColumnFileManifest,
    ) -> Result<(), FormatError> {
        let before = lock(&self.done).insert((side, number), file);
        let twice = |_| FormatError::misuse(format!("column file {number} was written twice"));
        before.map_or(Ok(()), |before| Err(twice(before)))
    }
    /// The temporary file of a column file.
    pub(super) fn spool(&self, side: FileSide, number: usize) -> Temporary {
        Temporary {
            disk: Arc::clone(&self.disk),
            path: self.spool_path(side, number),
            stays: self.keeps,
        }
    }
    pub(super) fn spool_path(&self, side: FileSide, number: usize) -> PathBuf {
        let data = FileId::new(side, FileKind::Data, number as u32);
        data.path(&self.staging).with_extension(SPOOL)
    }
    /// Returns the bytes of a chunk to write: fewer if memory is short.
    ///
    /// The bytes of the graph do not depend on it.
    pub(crate) fn chunk_bytes(&self) -> usize {
        chunk_bytes(self.budget.total())
    }
}

/// The same of a budget of `total` bytes.
pub(super) fn chunk_bytes(total: u64) -> usize {
    let share = (total / 128).next_power_of_two();
    share.clamp(DISK_PAGE_BYTES, CHUNK_BYTES as u64) as usize
}
