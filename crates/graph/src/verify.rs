//! Reads a whole graph and checks that it is what was written.
//!
//! 1. Every page of every file against its checksum.
//! 2. Where vertices are not in order of ids, that their order is one: a permutation.
//! 3. Every chunk, in the stream layout; every cell's blocks against the directory: as many edges, in order, inside their batches.
//! 4. [`verify_deep`] alone: all that repeats what the cells say, against the cells.

mod chunks;
mod deep;
mod ids;
mod order;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use graphmill_storage::{CancelToken, MemoryBudget, Queue};

use crate::codec::block::layout::BLOCK_EDGES_MAX;
use crate::codec::block::view::BlockView;
use crate::error::FormatError;
use crate::file::extent::{CHUNK_BYTES, Extent};
use crate::file::page::{FileKind, FileSide};
use crate::manifest::Manifest;
use crate::open::stored_graph::StoredGraph;
use crate::read::extent_stream::ExtentReader;
use deep::{DeepVerifier, WalkPosition};

/// What a graph was found to be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verified {
    /// Files read, without graph.json.
    pub files: u64,
    /// Pages checked.
    pub pages: u64,
    /// Bytes checked: all that the graph has on disk, in the end.
    pub bytes: u64,
    /// Edges counted, in both directions when the graph has a reverse.
    pub edges: u64,
}

/// Reads all of an open graph and checks it.
///
/// Opening it has checked graph.json, lengths and tables. Calls `progress` with the bytes checked so far.
/// Takes about 4 MiB of the budget, or less if less is free.
///
/// # Errors
/// The first page that is not what was written, the first cell that makes no sense, the disk, the budget; when `stop` is
/// requested the walk ends early and says what it has seen.
pub fn verify(
    graph: &Arc<StoredGraph>,
    budget: &MemoryBudget,
    stop: &CancelToken,
    progress: impl FnMut(u64),
) -> Result<Verified, FormatError> {
    walk(graph, budget, stop, progress, None)
}

/// Checks a graph as [`verify`] does, and that all its tables agree with its cells.
///
/// These are indices, bitmaps, degrees, fan-out, the reverse, the order of ids, and the counts of
/// `graph.json`. Takes 64 bytes a batch more, and up to a quarter of a batch's vertices.
///
/// # Errors
/// As for [`verify`]; something disagrees with the cells.
pub fn verify_deep(
    graph: &Arc<StoredGraph>,
    budget: &MemoryBudget,
    stop: &CancelToken,
    progress: impl FnMut(u64),
) -> Result<Verified, FormatError> {
    let deep = DeepVerifier::new(graph, budget)?;
    walk(graph, budget, stop, progress, Some(deep))
}

fn walk(
    graph: &Arc<StoredGraph>,
    budget: &MemoryBudget,
    stop: &CancelToken,
    mut progress: impl FnMut(u64),
    mut deep: Option<DeepVerifier<'_>>,
) -> Result<Verified, FormatError> {
    let is_short = budget.available() < 16 << 20;
    let chunk_bytes = CHUNK_BYTES / if is_short { 16 } else { 1 };
    let mut reader = ExtentReader::new(graph, budget, chunk_bytes, 4)?;
    let mut queue = graph.disk().queue(4)?;
    let mut seen = Verified {
        bytes: Manifest::file_bytes(&**graph.disk(), graph.path())?,
        ..Verified::default()
    };
    for paged in graph.all_files() {
        seen.files += 1;
        seen.pages += paged.root.pages();
        seen.bytes += paged.root.table_padded();
        if paged.id.kind == FileKind::Chunks {
            // Chunks are read whole, and are all bytes of their files but the zeros at the end.
            seen.bytes += paged.root.padded() - paged.root.payload;
            continue;
        }
        if paged.id.kind == FileKind::Data {
            continue;
        }
        let (file, bytes) = (paged.id, 0..paged.root.payload);
        reader.start(vec![Extent { file, bytes }])?;
        while let Some(bytes) = reader.wait(&mut *queue)?.map(<[u8]>::len) {
            reader.consume(bytes);
            if stop.is_cancelled() {
                return Ok(seen);
            }
        }
        seen.bytes += reader.take_bytes_read();
        progress(seen.bytes);
    }
    order::verify(graph, budget, stop)?;
    if deep.is_some() {
        ids::verify(graph, budget, stop)?;
    }
    let mut scratch = Box::new([0; BLOCK_EDGES_MAX]);
    let mut sources = Box::new([0; BLOCK_EDGES_MAX]);
    let mut chunks = graph.chunk_sets();
    for set in graph.sets() {
        let mut file = None;
        deep.iter_mut().for_each(DeepVerifier::set);
        if let Some(chunks) = chunks.next() {
            let seen = (&mut seen, &mut progress as &mut dyn FnMut(u64));
            if !chunks::verify(graph, budget, chunks, seen, stop, deep.as_mut())? {
                break;
            }
        }
        for (d, column) in set.columns().iter().enumerate() {
            let Some(first) = column.cells().first() else {
                continue;
            };
            if file != Some(column.file()) {
                // A file's cells lie back to back, so the stream of the file goes through its columns.
                file = Some(column.file());
                let mut extent = set.data_extent(d, first);
                extent.bytes = 0..graph.paged(extent.file)?.root.payload;
                reader.start(vec![extent])?;
            }
            for &cell in column.cells() {
                let at = WalkPosition {
                    set,
                    column: d,
                    cell,
                };
                let room = (&mut *scratch, &mut *sources);
                verify_cell(graph, at, &mut reader, &mut *queue, room, deep.as_mut())?;
                if stop.is_cancelled() {
                    return Ok(seen);
                }
            }
            seen.edges += column.edges();
            seen.bytes += reader.take_bytes_read();
            progress(seen.bytes);
        }
        if let Some(deep) = &mut deep {
            deep.end_set(set)?;
        }
    }
    deep.map_or(Ok(()), |deep| deep.end())?;
    Ok(seen)
}

/// Checks one cell. The room is too large for the stack of a call.
fn verify_cell(
    graph: &Arc<StoredGraph>,
    at: WalkPosition<'_>,
    reader: &mut ExtentReader,
    queue: &mut dyn Queue,
    (scratch, sources): (&mut [u32; BLOCK_EDGES_MAX], &mut [u32; BLOCK_EDGES_MAX]),
    mut deep: Option<&mut DeepVerifier<'_>>,
) -> Result<(), FormatError> {
    let (set, cell, batches) = (at.set, at.cell, graph.batches());
    let (from, to) = (cell.source_batch(), at.column);
    let global_offset = batches.start(to).wrapping_sub(batches.start(from)) as i64;
    let extent = set.data_extent(to, &cell);
    let broken = |what: &str| {
        let side = match set.side {
            FileSide::Forward => "",
            FileSide::Reverse => " of the reverse graph",
        };
        let what = format!("the cell of batches {from} to {to}{side} {what}");
        graph.corrupt(extent.file, extent.bytes.start, what)
    };
    let (mut left, mut edges) = (cell.data_bytes(), 0u64);
    let (mut last, mut keys) = (None::<(u32, u32)>, Vec::new());
    let _lease = deep.as_ref().map(|deep| deep.memory(at)).transpose()?;
    while left > 0 {
        let Some(bytes) = reader.wait(queue)? else {
            return Err(broken("ends early"));
        };
        let bytes = &bytes[..bytes.len().min(left as usize)];
        let parsed =
            BlockView::parse(bytes, global_offset).map_err(|error| broken(&error.to_string()))?;
        let Some((block, used)) = parsed else {
            return Err(broken("has a block that reaches into the next cell"));
        };
        let groups = block.sources(sources);
        let greatest = sources[..groups].last();
        let mut sound = greatest.is_none_or(|&source| u64::from(source) < batches.span(from));
        block.for_each_edge(scratch, |group, destination, _| {
            let edge = (sources[group], destination);
            sound &=
                last.is_none_or(|last| last <= edge) && u64::from(destination) < batches.span(to);
            last = Some(edge);
            if deep.is_some() {
                keys.push(u64::from(edge.0) << 32 | u64::from(edge.1));
            }
        });
        if !sound {
            return Err(broken("has edges out of order or outside its batches"));
        }
        if let Some(deep) = &mut deep {
            deep.block(at, &bytes[..used], &keys)?;
            keys.clear();
        }
        edges += block.edges() as u64;
        left -= used as u64;
        reader.consume(used);
    }
    if edges != cell.edges() {
        let said = cell.edges();
        let what = format!("has {edges} edges where the directory says {said}");
        return Err(broken(&what));
    }
    deep.map_or(Ok(()), |deep| deep.end_cell(at))
}
