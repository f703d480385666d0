//! The directory of the chunks of one side, once all files of chunks are complete.

use graphmill_raw::lock;

use crate::error::FormatError;
use crate::file::page::{DISK_PAGE_BYTES, FileId, FileKind, FileRoot, FileSide};
use crate::file::page_writer::PagedWriter;
use crate::manifest::ColumnsMeta;
use crate::stream::chunk_file::ChunkFile;
use crate::stream::directory::ChunkList;
use crate::weight_range::WeightRange;
use crate::write::shared::WriterState;

/// What `graph.json` says of one side.
#[derive(Clone, Copy)]
pub(crate) struct SideTables {
    pub(crate) columns: ColumnsMeta,
    /// The directory of chunks, in the stream layout.
    pub(crate) chunks: FileRoot,
    pub(crate) arcs: u64,
    pub(crate) weights: Option<WeightRange>,
}

/// Bytes of an entry of the directory while it is written.
const ENTRY_BYTES: u64 = 15;

/// Writes the directory of the chunks of a side.
pub(crate) fn write(shared: &WriterState, side: FileSide) -> Result<SideTables, FormatError> {
    let mut files: Vec<ChunkFile> = (lock(&shared.chunks))
        .extract_if(.., |file| file.side == side)
        .collect();
    files.sort_by_key(|file| file.list.roots.len());
    let folder = shared.staging.join(side.chunk_folder());
    shared.disk.create_dir_all(&folder)?;
    let degrees = lock(&shared.degrees).get(&side).copied();
    let degrees = degrees.ok_or_else(|| FormatError::misuse("no degrees were written"))?;
    let (mut list, mut weights) = (ChunkList::default(), None);
    for (number, file) in files.into_iter().enumerate() {
        if file.list.roots.len() != number + 1 {
            let what = format!("file {number} of chunks was not finished");
            return Err(FormatError::misuse(what));
        }
        weights = WeightRange::join(weights, file.weights);
        list.join(file.list);
    }
    let (disk, budget) = (&*shared.disk, &shared.budget);
    let leased = ENTRY_BYTES * list.chunks.len() as u64;
    let _lease = budget.lease("the directory of chunks", leased)?;
    let mut bytes = Vec::new();
    list.put(&mut bytes);
    let mut writer = PagedWriter::new(disk, budget, shared.graph_id)?;
    let id = FileId::new(side, FileKind::ChunkDirectory, 0);
    let stream = writer.add(disk, &shared.staging, id, DISK_PAGE_BYTES as usize)?;
    writer.append(stream, &bytes)?;
    let chunks = writer.finish()?[0];
    disk.sync_dir(&folder)?;
    Ok(SideTables {
        columns: ColumnsMeta {
            directory: FileRoot::default(),
            degrees,
            fanout: FileRoot::default(),
        },
        chunks,
        arcs: list.arcs,
        weights,
    })
}
