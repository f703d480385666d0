//! The blocks that a sparse pass reads: found by the lists of blocks of a column's cells, each read as one stream.
//!
//! A column is planned before it is folded: its reads are on their way while the columns before it are worked on. Lists, and blocks,
//! that lie in the same frames or in frames that follow each other are one extent, so no frame is read that holds
//! nothing sought, and none twice. Bitmaps are not read: every source has edges in the cells it is sought in, and what they spare of a walk over a block's sources is
//! less than what reading them takes.

use std::ops::Range;

use graphmill_graph::{BLOCK_EDGES_MAX, Cell, DISK_PAGE_BYTES, Extent, ExtentReader, SourceIndex};
use graphmill_storage::Queue;

use crate::cache::cells::CellCache;
use crate::context::ExecContext;
use crate::error::{EngineError, ensure};
use crate::exec::column::kernel::cell_stream::CellStreams;
use crate::graph_view::within;
use crate::program::edge::EdgeProgram;
use crate::value::EdgeValue;

/// No block is longer: two streams of 4,096 fields of 32 bits, a bitmap and the widths.
pub(crate) const BLOCK_BYTES_MAX: u64 = 1 << 16;

/// A column whose queue is about to be folded.
pub(crate) struct ColumnReadPlan {
    pub(crate) column: usize,
    pub(crate) cells: Vec<CellLookup>,
    /// The block lists of the uncached cells, with the bytes between them in the frames that are read.
    block_lists: Vec<u8>,
    /// The streams of the column's cells and weights, if some are not cached.
    pub(crate) streams: Option<ColumnStreams>,
}

/// The part of a queue that a cell's edges carry.
pub(crate) struct CellLookup {
    pub(crate) position: usize,
    pub(crate) queue: Range<usize>,
    /// The position of its block list, if that is not cached.
    block_list: Option<Range<usize>>,
}

impl ColumnReadPlan {
    /// The index of a cell.
    #[inline]
    pub(crate) fn index<'p>(
        &'p self,
        context: &ExecContext,
        cell_cache: &'p CellCache,
        planned: &CellLookup,
    ) -> Result<SourceIndex<'p>, EngineError> {
        let [pinned, bitmap] = cell_cache.index(context, self.column, planned.position);
        let blocks = match &planned.block_list {
            Some(range) => self.block_lists.get(range.clone()),
            None => pinned,
        };
        let (blocks, bitmap) = (blocks.unwrap_or(&[]), bitmap.unwrap_or(&[]));
        SourceIndex::parse(blocks, bitmap).map_err(|error| {
            let cell = &context.graph.column(self.column).cells()[planned.position];
            context.broken(self.column, cell, &error)
        })
    }
}

/// Finds the cells with edges of the queued sources, reads their block lists, and starts block reads.
pub(crate) fn plan<P: EdgeProgram>(
    context: &ExecContext,
    cell_cache: &CellCache,
    column: usize,
    queue: &[(u64, P::Message)],
    idle: &mut Vec<CellStreams>,
    disk: &mut dyn Queue,
    others: &mut [ColumnReadPlan],
) -> Result<ColumnReadPlan, EngineError> {
    let graph = &context.graph;
    let cells = graph.column(column).cells();
    let mut plan = ColumnReadPlan {
        column,
        cells: Vec::new(),
        block_lists: Vec::new(),
        streams: None,
    };
    let mut at = 0;
    let mut unread = ExtentBuilder::default();
    while let Some((first, _)) = queue.get(at) {
        let batch = context.batches.batch_of(*first);
        let end = context.batches.cut(batch + 1);
        let from = at;
        at += queue[from..].partition_point(|(source, _)| *source < end);
        let Ok(position) = cells.binary_search_by_key(&batch, Cell::source_batch) else {
            continue;
        };
        let [pinned, _] = cell_cache.index(context, column, position);
        let list = graph.block_list_extent(column, &cells[position]);
        plan.cells.push(CellLookup {
            position,
            queue: from..at,
            block_list: pinned.is_none().then(|| unread.add(list)),
        });
    }
    let has_all = |planned: &CellLookup| {
        planned.block_list.is_none() && cell_cache.cell(context, column, planned.position).is_some()
    };
    if plan.cells.iter().all(has_all) {
        return Ok(plan);
    }
    let readers = idle.pop().ok_or(EngineError::NoReaders)?;
    let mut streams = ColumnStreams {
        readers,
        cells: StreamPosition::default(),
        weights: StreamPosition::default(),
    };
    streams.read_all(unread.extents, &mut plan.block_lists, disk, others)?;
    let mut looked_up = BlockRanges::default();
    for planned in &plan.cells {
        if cell_cache.cell(context, column, planned.position).is_some() {
            continue;
        }
        let cell = &cells[planned.position];
        let index = plan.index(context, cell_cache, planned)?;
        let start = context.batches.start(cell.source_batch());
        for (source, _) in &queue[planned.queue.clone()] {
            for block in blocks_of(&index, (source - start) as u32) {
                looked_up.block::<P>(context, column, cell, &index, block)?;
            }
        }
    }
    streams.start(looked_up, disk)?;
    plan.streams = Some(streams);
    Ok(plan)
}

/// Returns the blocks of a cell that hold edges of a source, ascending.
pub(crate) fn blocks_of(index: &SourceIndex<'_>, source: u32) -> impl Iterator<Item = usize> {
    let first = index.seek(source).map(|place| place.block);
    // The edges of a source may continue in the next block.
    let next = move |block: &usize| index.goes_on(block + 1, source).then_some(block + 1);
    std::iter::successors(first, next)
}

/// Where a block of a cell lies among the cell's bytes.
pub(crate) fn block_range(
    context: &ExecContext,
    column: usize,
    cell: &Cell,
    index: &SourceIndex<'_>,
    block: usize,
) -> Result<Range<u64>, EngineError> {
    let at = index.offset(block).unwrap_or(0);
    let next = index.offset(block + 1).unwrap_or(cell.data_bytes());
    let is_sound = at <= next && next <= cell.data_bytes() && next - at <= BLOCK_BYTES_MAX;
    ensure(is_sound, || context.graph.corrupt_cell(column, cell))?;
    Ok(at..next)
}

/// Where the weights of a block lie in the file of weights; empty when the program reads none.
pub(crate) fn weights_extent<P: EdgeProgram>(
    context: &ExecContext,
    column: usize,
    cell: &Cell,
    block: usize,
) -> Extent {
    let mut extent = context.graph.weights_extent(column, cell);
    let width = context.weight_bytes(P::Edge::WEIGHTED) * BLOCK_EDGES_MAX;
    let from = extent.bytes.start + (block * width) as u64;
    extent.bytes = from.min(extent.bytes.end)..(from + width as u64).min(extent.bytes.end);
    extent
}

/// The block ranges to look up in a column, while they grow.
#[derive(Default)]
struct BlockRanges {
    cells: Vec<Extent>,
    weights: Vec<Extent>,
}

impl BlockRanges {
    fn block<P: EdgeProgram>(
        &mut self,
        context: &ExecContext,
        column: usize,
        cell: &Cell,
        index: &SourceIndex<'_>,
        block: usize,
    ) -> Result<(), EngineError> {
        let range = block_range(context, column, cell, index, block)?;
        let data = context.graph.data_extent(column, cell);
        cover(&mut self.cells, within(data, &range));
        if context.weight_bytes(P::Edge::WEIGHTED) > 0 {
            let weights = weights_extent::<P>(context, column, cell, block);
            cover(&mut self.weights, weights);
        }
        Ok(())
    }
}

/// Adds an extent to ascending ones; it extends the last one if they share a frame or touch.
fn cover(extents: &mut Vec<Extent>, next: Extent) {
    if next.bytes.is_empty() {
        return;
    }
    let frame = next.bytes.start / DISK_PAGE_BYTES;
    match extents.last_mut() {
        Some(last)
            if last.file == next.file && frame <= last.bytes.end.div_ceil(DISK_PAGE_BYTES) =>
        {
            last.bytes.end = last.bytes.end.max(next.bytes.end);
        }
        _ => extents.push(next),
    }
}

/// Extents that are read as one, growing.
#[derive(Default)]
struct ExtentBuilder {
    extents: Vec<Extent>,
    /// Bytes of all but the last.
    before: u64,
}

impl ExtentBuilder {
    /// Adds an extent behind the others; returns the position of its bytes among the bytes of all.
    fn add(&mut self, next: Extent) -> Range<usize> {
        let bytes = next.bytes.clone();
        if bytes.is_empty() {
            return 0..0;
        }
        let count = self.extents.len();
        let last = self.extents.last();
        let last = last.map_or(0, |last| last.bytes.end - last.bytes.start);
        cover(&mut self.extents, next);
        if self.extents.len() > count {
            self.before += last;
        }
        let start = self.extents.last().map_or(0, |last| last.bytes.start);
        let at = self.before + bytes.start - start;
        at as usize..(at + bytes.end - bytes.start) as usize
    }
}

/// The streams of one column: blocks, and their weights.
pub(crate) struct ColumnStreams {
    readers: CellStreams,
    cells: StreamPosition,
    weights: StreamPosition,
}

/// How far a stream is.
#[derive(Default)]
struct StreamPosition {
    extents: Vec<Extent>,
    /// The extent at the front, and the byte of its file that the front begins with.
    extent: usize,
    byte: u64,
}

impl StreamPosition {
    fn new(extents: Vec<Extent>) -> Self {
        StreamPosition {
            byte: extents.first().map_or(0, |extent| extent.bytes.start),
            extent: 0,
            extents,
        }
    }
}

impl ColumnStreams {
    fn start(&mut self, looked_up: BlockRanges, disk: &mut dyn Queue) -> Result<(), EngineError> {
        self.readers.cells.start(looked_up.cells.clone())?;
        self.cells = StreamPosition::new(looked_up.cells);
        if let Some(weights) = &mut self.readers.weights {
            weights.start(looked_up.weights.clone())?;
            self.weights = StreamPosition::new(looked_up.weights);
        }
        self.readers.pump(disk)
    }

    /// Appends all bytes of `extents`.
    fn read_all(
        &mut self,
        extents: Vec<Extent>,
        out: &mut Vec<u8>,
        disk: &mut dyn Queue,
        others: &mut [ColumnReadPlan],
    ) -> Result<(), EngineError> {
        let bytes_of = |extent: &Extent| extent.bytes.end - extent.bytes.start;
        let mut left = extents.iter().map(bytes_of).sum::<u64>() as usize;
        out.reserve_exact(left);
        self.readers.cells.start(extents)?;
        while left > 0 {
            self.readers.cells.pump(disk)?;
            match self.readers.cells.front()? {
                Some(front) if !front.is_empty() => {
                    let now = front.len().min(left);
                    out.extend_from_slice(&front[..now]);
                    self.readers.cells.consume(now);
                    left -= now;
                }
                _ => wait(disk, &mut self.readers, others)?,
            }
        }
        Ok(())
    }

    /// Returns the stream of blocks, or of weights, and how far it is.
    fn stream(
        &mut self,
        weights: bool,
    ) -> Result<(&mut ExtentReader, &mut StreamPosition), EngineError> {
        match (weights, &mut self.readers.weights) {
            (false, _) => Ok((&mut self.readers.cells, &mut self.cells)),
            (true, Some(reader)) => Ok((reader, &mut self.weights)),
            (true, None) => Err(EngineError::NoReaders),
        }
    }

    /// Returns the bytes of a block, or of its weights, at or after the last one asked for.
    pub(crate) fn bytes(
        &mut self,
        weights: bool,
        looked_up: &Extent,
        disk: &mut dyn Queue,
        others: &mut [ColumnReadPlan],
    ) -> Result<&[u8], EngineError> {
        loop {
            self.readers.pump(disk)?;
            let (reader, position) = self.stream(weights)?;
            let Some(front) = reader.view()? else {
                ensure(!reader.is_done(), || EngineError::NoReaders)?;
                wait(disk, &mut self.readers, others)?;
                continue;
            };
            let extent = position.extents.get(front.extent);
            if front.extent != position.extent {
                position.extent = front.extent;
                position.byte = extent.map_or(0, |extent| extent.bytes.start);
            }
            let is_here = extent.is_some_and(|extent| {
                extent.file == looked_up.file && looked_up.bytes.end <= extent.bytes.end
            });
            let mut skip = front.bytes.len() as u64;
            if is_here {
                let before = looked_up.bytes.start.checked_sub(position.byte);
                skip = skip.min(before.ok_or(EngineError::NoReaders)?);
                if before == Some(0) {
                    break;
                }
            }
            position.byte += skip;
            reader.consume(skip as usize);
        }
        let (reader, _) = self.stream(weights)?;
        let bytes = (looked_up.bytes.end - looked_up.bytes.start) as usize;
        let front = reader.front()?.and_then(|front| front.get(..bytes));
        front.ok_or(EngineError::NoReaders)
    }

    /// Ends the streams; the readers, and the bytes they read.
    pub(crate) fn end(
        mut self,
        disk: &mut dyn Queue,
        others: &mut [ColumnReadPlan],
    ) -> Result<(CellStreams, u64), EngineError> {
        while self.readers.in_flight() > 0 {
            wait(disk, &mut self.readers, others)?;
        }
        let read = self.readers.take_bytes_read();
        Ok((self.readers, read))
    }
}

/// Waits for a read and hands it to the stream it belongs to.
fn wait(
    disk: &mut dyn Queue,
    mine: &mut CellStreams,
    others: &mut [ColumnReadPlan],
) -> Result<(), EngineError> {
    let mut completion = disk.wait();
    let others = others.iter_mut().filter_map(|plan| plan.streams.as_mut());
    for readers in std::iter::once(mine).chain(others.map(|streams| &mut streams.readers)) {
        if let Some(next) = completion.take() {
            completion = readers.accept(next)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    use graphmill_graph::{FileId, FileKind, FileSide};

    #[test]
    fn merged_extents_hold_each_at_its_offset() {
        const F: u64 = DISK_PAGE_BYTES;
        let file = FileId {
            side: FileSide::Forward,
            kind: FileKind::Index,
            number: 0,
        };
        // In one frame, in the next one, empty, far away, and next to that.
        let parts = [
            10..30,
            50..90,
            F - 5..F + 7,
            F + 8..F + 8,
            5 * F + 3..6 * F,
            6 * F..6 * F + 1,
            9 * F..9 * F + 2,
        ];
        let mut joined = ExtentBuilder::default();
        let found: Vec<_> = (parts.iter())
            .map(|bytes| {
                joined.add(Extent {
                    file,
                    bytes: bytes.clone(),
                })
            })
            .collect();
        let read: Vec<u64> = joined
            .extents
            .iter()
            .flat_map(|of| of.bytes.clone())
            .collect();
        assert_eq!(joined.extents.len(), 3);
        for (bytes, found) in parts.iter().zip(found) {
            assert!(read[found].iter().copied().eq(bytes.clone()), "{bytes:?}");
        }
    }
}
