//! The directory of the chunks of one side, once all files of chunks are complete.

use graphmill_raw::lock;

use crate::codec::varint;
use crate::error::FormatError;
use crate::file::page::{DISK_PAGE_BYTES, FileId, FileKind, FileRoot, FileSide};
use crate::file::page_writer::PagedWriter;
use crate::manifest::ColumnsMeta;
use crate::stream::directory::put_file;
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
    let mut all = lock(&shared.chunks);
    all.sort_by_key(|file| (file.side, file.number));
    let files = || all.iter().filter(|file| file.side == side);
    let folder = shared.staging.join(side.chunk_folder());
    shared.disk.create_dir_all(&folder)?;
    let degrees = lock(&shared.degrees).get(&side).copied();
    let degrees = degrees.ok_or_else(|| FormatError::misuse("no degrees were written"))?;
    let (disk, budget) = (&*shared.disk, &shared.budget);
    let mut writer = PagedWriter::new(disk, budget, shared.graph_id)?;
    let id = FileId::new(side, FileKind::ChunkDirectory, 0);
    let stream = writer.add(disk, &shared.staging, id, DISK_PAGE_BYTES as usize)?;
    let mut bytes = Vec::new();
    let (mut arcs, mut weights) = (0, None);
    let mut into = vec![0u64; shared.shape.batches.len()];
    varint::put(&mut bytes, files().count() as u64);
    for (number, file) in files().enumerate() {
        if file.number as usize != number || file.arcs_into.len() != into.len() {
            let what = format!("file {number} of chunks was not finished");
            return Err(FormatError::misuse(what));
        }
        let leased = ENTRY_BYTES * file.chunks.len() as u64;
        let _lease = budget.lease("the directory of chunks", leased)?;
        put_file(&mut bytes, &file.roots, &file.chunks);
        writer.append(stream, &bytes)?;
        bytes.clear();
        arcs += file.arcs();
        weights = WeightRange::join(weights, file.weights);
        into.iter_mut()
            .zip(&file.arcs_into)
            .for_each(|(sum, arcs)| *sum += arcs);
    }
    into.iter().for_each(|&arcs| varint::put(&mut bytes, arcs));
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
        arcs,
        weights,
    })
}
