//! Claims the next column group of a worker: its cells in the order of work.

use graphmill_graph::Cell;
use graphmill_raw::lock;

use crate::error::EngineError;
use crate::exec::column::kernel::accumulators::{fill_new, take_near};
use crate::exec::column::kernel::cell_stream::CellStreams;
use crate::exec::column::phase::slot::block_ranges::{CellPart, parts};
use crate::exec::column::phase::slot::input::MessageInput;
use crate::exec::column::phase::slot::phase::SlotPhase;
use crate::exec::column::phase::slot::task::{CellTask, GroupTask, put_in_order};
use crate::graph_view::{join, within};
use crate::program::edge::EdgeProgram;
use crate::schedule::numa;
use crate::schedule::tasks::{ColumnLayout, FoldSide, StripRef};

impl<'p, P: EdgeProgram> SlotPhase<'p, P> {
    /// Claims the next column group, lists its cells and takes its accumulators.
    ///
    /// Returns `None` if no group is left, or if no accumulators are free right now.
    pub(crate) fn next_group(
        &self,
        streams: &mut Vec<CellStreams>,
        worker: usize,
    ) -> Result<Option<GroupTask<'p, P>>, EngineError> {
        let node = numa::current_node();
        let (number, targets, mut accumulators) = {
            let mut idle = lock(&self.idle_accumulators);
            let is_room = |position: usize| idle.len() >= self.groups[position].1.len();
            let Some(position) = self.group_queue.claim_if(is_room) else {
                return Ok(None);
            };
            let (number, targets) = self.groups[position].clone();
            let accumulators = take_near(&mut idle, targets.len(), node);
            (number, targets, accumulators)
        };
        fill_new(&mut accumulators, P::IDENTITY, node);
        let (items, froms) = self.items(number, &targets)?;
        self.messages.restart_cursor(worker)?;
        let mut group = GroupTask {
            rows: targets.iter().map(|_| None).collect(),
            targets,
            folded: vec![false; accumulators.len()],
            accumulators,
            items,
            at: 0,
            bytes: 0,
            edges: 0,
            weights_skipped: 0,
            input: MessageInput::new(number, froms),
            streams: streams.pop(),
            messages: None,
        };
        if let Some(pair) = &mut group.streams {
            let graph = &self.context.graph;
            let width = graph.edge_kind().bytes() as u64;
            let (mut cells, mut weights) = (Vec::new(), Vec::new());
            for item in group.items.iter().filter(|item| item.pinned.is_none()) {
                let CellPart { bytes, edges } = &item.part;
                let blocks = graph.data_extent(item.column, item.cell);
                join(&mut cells, within(blocks, bytes));
                let all = graph.weights_extent(item.column, item.cell);
                join(
                    &mut weights,
                    within(all, &(edges.start * width..edges.end * width)),
                );
            }
            pair.cells.start(cells)?;
            if let Some(reader) = &mut pair.weights {
                reader.start(weights)?;
            }
        }
        Ok(Some(group))
    }

    /// Returns the cells of a group in the order of work, and the batches whose messages they carry.
    ///
    /// The worker processes as many batches as it holds, target by target, then the next ones; each target sees its sources
    /// ascend. Cells whose sources emitted nothing are left out.
    fn items(
        &self,
        group: usize,
        targets: &[StripRef],
    ) -> Result<(Vec<CellTask<'p>>, Vec<usize>), EngineError> {
        let graph = &self.context.graph;
        let mut items = Vec::new();
        let [mut cells, mut indexed, mut looked] = [0; 3];
        for (number, target) in targets.iter().enumerate() {
            let mut add = |column: usize, position: usize, cell: &'p Cell, from: usize| {
                if self.messages.is_ready(from) && !self.messages.has(from, group) {
                    return Ok(());
                }
                let parts = match self.side {
                    FoldSide::Scatter => parts(
                        (self.context, self.cell_cache),
                        (self.messages, self.active),
                        &mut looked,
                        column,
                        position,
                        cell,
                    )?,
                    FoldSide::Gather => vec![CellPart::whole(cell)],
                };
                if let Some(first) = parts.first() {
                    cells += 1;
                    indexed += u64::from(*first != CellPart::whole(cell));
                }
                let pinned = self.cell_cache.cell(self.context, column, position);
                items.extend(parts.into_iter().map(|part| CellTask {
                    target: number,
                    column,
                    cell,
                    from,
                    number: 0,
                    part,
                    again: false,
                    pinned,
                }));
                Ok::<_, EngineError>(())
            };
            match self.side {
                FoldSide::Scatter => {
                    let column = graph.column(target.batch);
                    let strip = column.strips().get(target.strip).cloned().unwrap_or(0..0);
                    let cells = column.cells().iter().enumerate();
                    for (position, cell) in cells.take(strip.end).skip(strip.start) {
                        add(target.batch, position, cell, cell.source_batch())?;
                    }
                }
                FoldSide::Gather => {
                    let batches = (self.context).strip_sources(target.batch, target.strip);
                    let cells = self.context.cells_from(target.batch);
                    let [first, end] = [batches.start, batches.end]
                        .map(|of| cells.partition_point(|place| (place.column as usize) < of));
                    for (column, position, cell) in self.context.cells_at(&cells[first..end]) {
                        add(column, position, cell, column)?;
                    }
                }
            }
        }
        let mut froms: Vec<usize> = items.iter().map(|item| item.from).collect();
        froms.sort_unstable();
        froms.dedup();
        let window_batches = self.messages.window_batches();
        let ranks = &self.context.ranks;
        // A fold that gives the same bits in any order takes the batches that are ready first.
        let comes = |from: &usize| match P::ORDER_INDEPENDENT && !self.messages.is_ready(*from) {
            true => ranks.distance(ranks.owner(*from)),
            false => 0,
        };
        froms.sort_by_cached_key(comes);
        put_in_order(&mut items, &froms, window_batches);
        let mut report = lock(&self.report);
        report.cells += cells;
        report.cells_indexed += indexed;
        report.elements_scanned += looked;
        Ok((items, froms))
    }
}
