//! What a scatter reads of a cell: all of it, or the blocks that its index says hold edges of the sources that emitted a
//! message (DFOGraph, section 4.1, chooses between CSR and DCSR for each chunk in the same way).

use std::ops::Range;

use graphmill_graph::{BLOCK_EDGES_MAX, Cell, DISK_PAGE_BYTES, SourceIndex};
use graphmill_raw::Element;

use crate::cache::cells::CellCache;
use crate::config::EngineOptions;
use crate::context::ExecContext;
use crate::error::EngineError;
use crate::exec::column::phase::sparse::read_plan::{block_range, blocks_of};
use crate::frontier::active_set::ActiveSet;
use crate::frontier::bitmap::bits;
use crate::messages::batch::BatchMessages;
use crate::messages::buffer::MessageBuffer;
use crate::messages::routing::RoutingMode;
use crate::planner::kernel::looks_up_in_cell;

/// Blocks of a cell, one after the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CellPart {
    /// Their bytes, from the first of the cell.
    pub(crate) bytes: Range<u64>,
    /// Their edges, from the first of the cell.
    pub(crate) edges: Range<u64>,
}

impl CellPart {
    pub(crate) fn whole(cell: &Cell) -> Self {
        CellPart {
            bytes: 0..cell.data_bytes(),
            edges: 0..cell.edges(),
        }
    }
}

/// The sources that emitted a message, batch by batch, as a group looks them up in cells.
pub(crate) struct Senders<'p, M: Element> {
    pub(crate) messages: &'p MessageBuffer<M>,
    pub(crate) active: &'p ActiveSet,
    /// The number of the group, and its worker.
    pub(crate) group: usize,
    pub(crate) worker: usize,
    /// The batch that was read last, for all cells of it.
    pub(crate) read: Option<(usize, BatchMessages<'p, M>)>,
}

impl<M: Element> Senders<'_, M> {
    /// Calls `f` with each source of a batch that may have sent something to the group, ascending.
    ///
    /// Of its own batches on disk these are the active vertices. Batches of other ranks are read.
    fn each(
        &mut self,
        context: &ExecContext,
        batch: usize,
        mut f: impl FnMut(usize),
    ) -> Result<(), EngineError> {
        let (messages, worker) = (self.messages, self.worker);
        let is_own = context.ranks.own().contains(&batch);
        if is_own && !messages.in_memory() {
            self.active.batch(batch)?.for_each(f);
            return Ok(());
        }
        if self.read.as_ref().is_none_or(|(read, _)| *read != batch) {
            self.release()?;
            let is_any = match messages.routing(batch) {
                RoutingMode::Push => messages.prefetch_for_group(batch, self.group, worker)?,
                RoutingMode::None | RoutingMode::Pull => messages.prefetch(batch, worker)?,
            };
            if !is_any {
                return Ok(());
            }
            self.read = Some((batch, messages.read(batch, worker)?));
        }
        let Some((_, read)) = &self.read else {
            return Ok(());
        };
        let slice = read.slice();
        match is_own {
            true => self.active.batch(batch)?.for_each(|source| {
                if slice.has(source) {
                    f(source);
                }
            }),
            // Active vertices of other ranks are known only by their messages.
            false => bits(slice.present, 0, f),
        }
        Ok(())
    }

    /// Gives the batch that was read last back.
    pub(crate) fn release(&mut self) -> Result<(), EngineError> {
        match self.read.take() {
            Some((batch, read)) => self.messages.release(batch, read, false, self.worker),
            None => Ok(()),
        }
    }
}

/// Returns the parts to read of a cell whose sources emitted messages, or none without edges of these.
///
/// Adds the sources that it looked up in the cell's index to `looked`.
pub(crate) fn parts<M: Element>(
    (context, cell_cache): (&ExecContext, &CellCache),
    senders: &mut Senders<'_, M>,
    looked: &mut u64,
    column: usize,
    position: usize,
    cell: &Cell,
) -> Result<Vec<CellPart>, EngineError> {
    let from = cell.source_batch();
    if !senders.messages.is_ready(from) {
        return Ok(vec![CellPart::whole(cell)]);
    }
    let sources = senders.messages.count(from);
    if sources == 0 {
        // It has come since, and has no messages.
        return Ok(Vec::new());
    }
    let caches = (context, cell_cache);
    sought_parts(caches, (column, position, cell), sources, looked, |add| {
        senders.each(context, from, add)
    })
}

/// Returns the parts to read of a cell if `sources` sources of its batch emitted messages.
///
/// `each` calls its argument with these sources, ascending.
///
/// Adds the sources that it looked up in the cell's index to `looked`.
pub(crate) fn sought_parts(
    (context, cell_cache): (&ExecContext, &CellCache),
    (column, position, cell): (usize, usize, &Cell),
    sources: u64,
    looked: &mut u64,
    each: impl FnOnce(&mut dyn FnMut(usize)) -> Result<(), EngineError>,
) -> Result<Vec<CellPart>, EngineError> {
    let whole = || Ok(vec![CellPart::whole(cell)]);
    let is_pinned = cell_cache.cell(context, column, position).is_some();
    let EngineOptions { sparse, gamma, .. } = context.options;
    if !looks_up_in_cell(sparse, gamma, sources, cell.edges(), is_pinned) {
        return whole();
    }
    let [Some(blocks), bitmap] = cell_cache.index(context, column, position) else {
        return whole();
    };
    let index = SourceIndex::parse(blocks, bitmap.unwrap_or(&[]))
        .map_err(|error| context.broken(column, cell, &error))?;
    // A read from disk covers whole frames.
    let gap = if is_pinned { 0 } else { DISK_PAGE_BYTES };
    let mut parts = Vec::new();
    let mut outcome = Ok(());
    each(&mut |source| {
        *looked += 1;
        for block in blocks_of(&index, source as u32) {
            match block_range(context, column, cell, &index, block) {
                Ok(bytes) => cover(&mut parts, cell, block, bytes, gap),
                Err(error) => outcome = Err(error),
            }
        }
    })?;
    outcome.map(|()| parts)
}

/// Adds a block to ascending parts; it extends the last one if at most `gap` bytes lie between them.
fn cover(parts: &mut Vec<CellPart>, cell: &Cell, block: usize, bytes: Range<u64>, gap: u64) {
    let first = (block * BLOCK_EDGES_MAX) as u64;
    let edges = first..(first + BLOCK_EDGES_MAX as u64).min(cell.edges());
    match parts.last_mut() {
        Some(last) if bytes.start <= last.bytes.end + gap => {
            last.bytes.end = last.bytes.end.max(bytes.end);
            last.edges.end = last.edges.end.max(edges.end);
        }
        _ => parts.push(CellPart { bytes, edges }),
    }
}
