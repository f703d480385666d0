//! Claims the next column group of a worker: its cells in the order of work.

use graphmill_graph::Cell;
use graphmill_raw::lock;

use crate::error::EngineError;
use crate::exec::column::kernel::accumulators::{fill_new, take_near};
use crate::exec::column::kernel::cell_stream::CellStreams;
use crate::exec::column::phase::slot::block_ranges::{CellPart, Senders, parts};
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
        fill_new(&mut accumulators, self.program.identity(), node);
        self.messages.restart_cursor(worker)?;
        let (items, froms) = self.items(number, &targets, worker)?;
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
        worker: usize,
    ) -> Result<(Vec<CellTask<'p>>, Vec<usize>), EngineError> {
        let mut cells: Vec<(usize, usize, usize, &'p Cell, usize)> = Vec::new();
        for (number, target) in targets.iter().enumerate() {
            match self.side {
                FoldSide::Scatter => {
                    let column = self.context.graph.column(target.batch);
                    let strip = column.strips().get(target.strip).cloned().unwrap_or(0..0);
                    let of_strip = column.cells().iter().enumerate();
                    let of_strip = of_strip.take(strip.end).skip(strip.start);
                    cells.extend(of_strip.map(|(position, cell)| {
                        (number, target.batch, position, cell, cell.source_batch())
                    }));
                }
                FoldSide::Gather => {
                    let batches = (self.context).strip_sources(target.batch, target.strip);
                    let row = self.context.cells_from(target.batch);
                    let [first, end] = [batches.start, batches.end]
                        .map(|of| row.partition_point(|place| (place.column as usize) < of));
                    let row = self.context.cells_at(&row[first..end]);
                    cells.extend(
                        row.map(|(column, position, cell)| {
                            (number, column, position, cell, column)
                        }),
                    );
                }
            }
        }
        cells
            .retain(|(.., from)| !self.messages.is_ready(*from) || self.messages.has(*from, group));
        // The messages of a batch are read once for the cells of all targets.
        cells.sort_by_key(|(.., from)| *from);
        let mut senders = Senders {
            messages: self.messages,
            active: self.active,
            group,
            worker,
            read: None,
        };
        let mut items = Vec::new();
        let [mut count, mut indexed, mut looked] = [0; 3];
        for (target, column, position, cell, from) in cells {
            let parts = match self.side {
                FoldSide::Scatter => {
                    let of = (self.context, self.cell_cache);
                    parts(of, &mut senders, &mut looked, column, position, cell)?
                }
                FoldSide::Gather => vec![CellPart::whole(cell)],
            };
            if let Some(first) = parts.first() {
                count += 1;
                indexed += u64::from(*first != CellPart::whole(cell));
            }
            let pinned = self.cell_cache.cell(self.context, column, position);
            items.extend(parts.into_iter().map(|part| CellTask {
                target,
                column,
                cell,
                from,
                number: 0,
                part,
                again: false,
                pinned,
            }));
        }
        senders.release()?;
        let mut froms: Vec<usize> = items.iter().map(|item| item.from).collect();
        froms.sort_unstable();
        froms.dedup();
        let window_batches = self.messages.window_batches();
        let ranks = &self.context.ranks;
        // A fold that gives the same bits in any order takes the batches that are ready first.
        let comes = |from: &usize| match self.program.is_exact() && !self.messages.is_ready(*from) {
            true => ranks.distance(ranks.owner(*from)),
            false => 0,
        };
        froms.sort_by_cached_key(comes);
        put_in_order(&mut items, &froms, window_batches);
        let mut report = lock(&self.report);
        report.cells += count;
        report.cells_indexed += indexed;
        report.elements_scanned += looked;
        Ok((items, froms))
    }
}
