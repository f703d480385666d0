//! Folds the cells of a column group into its accumulators, block by block as they arrive.

use graphmill_graph::{BlockView, ExtentReader};
use graphmill_raw::lock;
use graphmill_storage::DataKind;

use crate::context::ExecContext;
use crate::error::{EngineError, ensure};
use crate::exec::column::kernel::cell_stream::CellStreams;
use crate::exec::column::kernel::fold_block::{self, BlockWeights, DecodeScratch, FoldInput};
use crate::exec::column::phase::slot::input::InputState;
use crate::exec::column::phase::slot::phase::SlotPhase;
use crate::exec::column::phase::slot::task::{CellTask, GroupTask, TaskProgress};
use crate::exec::column::phase::sparse::read_plan::BLOCK_BYTES_MAX;
use crate::metrics::traffic::Access;
use crate::program::current_call::CurrentCall;
use crate::program::edge::EdgeProgram;
use crate::schedule::tasks::{ColumnLayout, FoldSide, StripRef};
use crate::state::rows::Rows;
use crate::state::vertex_array::BatchRows;
use crate::value::EdgeValue;

impl<'p, P: EdgeProgram> SlotPhase<'p, P> {
    /// Works on a group until a step's worth is done, its stream runs dry, or it is finished.
    pub(crate) fn fold_some(
        &self,
        group: &mut GroupTask<'p, P>,
        scratch: &mut DecodeScratch<P::Message>,
        worker: usize,
    ) -> Result<TaskProgress, EngineError> {
        if group.input.has_to_pull(self.messages) {
            return Ok(match group.input.pull(self.messages, worker)? {
                true => TaskProgress::Worked,
                false => TaskProgress::Early,
            });
        }
        let mut worked = 0;
        let (mut edges, mut scanned) = (0, 0);
        let outcome = loop {
            let Some(item) = group.items.get(group.at).cloned() else {
                break TaskProgress::Done;
            };
            if worked >= STEP_BYTES {
                break TaskProgress::Worked;
            }
            match group.next_messages(self.messages, &item, worker)? {
                InputState::Here => (),
                InputState::Early => break TaskProgress::Early,
                InputState::Nothing => {
                    let (is_over, skipped) = self.skip(group, &item)?;
                    worked += skipped;
                    if !is_over {
                        break TaskProgress::Starved;
                    }
                    continue;
                }
            }
            let Some((_, messages)) = &group.messages else {
                break TaskProgress::Starved;
            };
            let at = item.part.bytes.start as usize + group.bytes;
            let left = item.part.bytes.end as usize - at;
            let first_edge = item.part.edges.start as usize + group.edges;
            let Some([bytes, weights]) = front_bytes(&item, &mut group.streams, at, left)? else {
                break TaskProgress::Starved;
            };
            let Some((block, used)) = self.parse(&item, bytes, left)? else {
                break TaskProgress::Starved;
            };
            let broken = || self.context.graph.corrupt_cell(item.column, item.cell);
            let block_edges = block.edges();
            let edges_end = (first_edge + block_edges) as u64;
            let is_last = used == left;
            let end = item.part.edges.end;
            ensure(edges_end == end || edges_end < end && !is_last, broken)?;
            let from = item.pinned.map_or(0, |_| first_edge);
            let weights = weights_of::<P>(self.context, weights, from, block_edges);
            let Some(weights) = weights else {
                ensure(item.pinned.is_none(), broken)?;
                break TaskProgress::Starved;
            };
            let input = FoldInput {
                block: &block,
                messages: messages.slice(),
                weights,
                starts: [item.cell.source_batch(), item.column]
                    .map(|batch| self.context.batches.start(batch)),
            };
            let target = group.targets[item.target];
            let accumulators = &mut group.accumulators[item.target];
            let rows = &mut group.rows[item.target];
            let folded = self.block(target, input, accumulators, rows, scratch, worker)?;
            let folded = folded.ok_or_else(broken)?;
            let sources = block.groups() as u64;
            let pinned = item.pinned.map(|_| (used, block_edges));
            self.count(worker, sources, folded, pinned);
            edges += folded;
            scanned += sources;
            group.folded[item.target] |= folded > 0;
            worked += used;
            group.bytes += used;
            group.edges += block_edges;
            if let (None, Some(streams)) = (item.pinned, &mut group.streams) {
                streams.cells.consume(used);
                if let Some(weights) = &mut streams.weights {
                    weights.consume(block_edges * self.context.graph.edge_kind().bytes());
                }
            }
            if is_last && let Some((batch, messages)) = group.next_item(&item) {
                self.messages.release(batch, messages, item.again, worker)?;
            }
        };
        let mut report = lock(&self.report);
        report.edges += edges;
        report.elements_scanned += scanned;
        Ok(match outcome {
            TaskProgress::Starved | TaskProgress::Early if worked > 0 => TaskProgress::Worked,
            outcome => outcome,
        })
    }

    /// Returns the first block of `bytes` and its length; `None` while its end is not read.
    fn parse<'b>(
        &self,
        item: &CellTask<'_>,
        bytes: &'b [u8],
        left: usize,
    ) -> Result<Option<(BlockView<'b>, usize)>, EngineError> {
        let (context, cell) = (self.context, item.cell);
        let offset = context.global_offset(cell.source_batch(), item.column);
        let parsed = BlockView::parse(bytes, offset)
            .map_err(|error| context.broken(item.column, cell, &error))?;
        let is_all = bytes.len() == left || bytes.len() as u64 >= BLOCK_BYTES_MAX;
        match parsed {
            None if is_all => Err(context.graph.corrupt_cell(item.column, cell).into()),
            parsed => Ok(parsed),
        }
    }

    /// Skips an item without messages; returns whether that was all of it, and the bytes skipped.
    fn skip(
        &self,
        group: &mut GroupTask<'p, P>,
        item: &CellTask<'p>,
    ) -> Result<(bool, usize), EngineError> {
        let before = group.bytes + group.weights_skipped;
        let mut is_over = true;
        if let (None, Some(streams)) = (item.pinned, &mut group.streams) {
            let bytes = (item.part.bytes.end - item.part.bytes.start) as usize;
            is_over = skip_to(bytes, &mut streams.cells, &mut group.bytes)?;
            let edges = (item.part.edges.end - item.part.edges.start) as usize;
            let bytes = edges * self.context.graph.edge_kind().bytes();
            if let Some(weights) = streams.weights.as_mut().filter(|_| is_over) {
                is_over = skip_to(bytes, weights, &mut group.weights_skipped)?;
            }
        }
        let skipped = group.bytes + group.weights_skipped - before;
        if is_over {
            group.at += 1;
            (group.bytes, group.edges, group.weights_skipped) = (0, 0, 0);
        }
        Ok((is_over, skipped))
    }

    /// Counts the bytes that folding a block moved.
    ///
    /// These are its sources, its edges that carried a message, and its bytes and edges if it is in memory.
    fn count(&self, worker: usize, sources: u64, folded: u64, pinned: Option<(usize, usize)>) {
        let traffic = self.context.traffic.of(worker);
        if let Some((bytes, edges)) = pinned {
            let bytes = bytes + edges * self.context.weight_bytes(P::Edge::WEIGHTED);
            traffic.read(DataKind::Edges, Access::Sequential, bytes as u64);
        }
        let (messages, accumulators, access) = match self.side {
            FoldSide::Scatter => (sources, folded, Access::Random),
            FoldSide::Gather => (folded, sources, Access::Sequential),
        };
        if self.messages.in_memory() {
            let bytes = messages * size_of::<P::Message>() as u64;
            traffic.read(DataKind::Messages, Access::Random, bytes);
        }
        let bytes = accumulators * size_of::<P::Accumulator>() as u64;
        traffic.change(DataKind::Messages, access, bytes);
    }

    /// Folds one block into its target, as [`fold_block::scatter`] and [`fold_block::gather`] do.
    #[inline]
    fn block(
        &self,
        target: StripRef,
        input: FoldInput<'_, P::Message>,
        accumulators: &mut [P::Accumulator],
        rows: &mut Option<BatchRows<'p>>,
        scratch: &mut DecodeScratch<P::Message>,
        worker: usize,
    ) -> Result<Option<u64>, EngineError> {
        let (context, program) = (self.context, self.program);
        let batch = target.batch;
        if self.side == FoldSide::Scatter {
            if input.messages.few && !input.messages.any_of(input.block) {
                return Ok(Some(0));
            }
            let accumulators = &mut accumulators[..1 << context.batches.bits(batch)];
            return Ok(fold_block::scatter(program, input, accumulators, scratch));
        }
        let accumulators = &mut accumulators[..context.batches.span(batch) as usize];
        // Workers that fold strips of the same batch cannot share its rows.
        if P::EARLY_EXIT && rows.is_none() && context.strips(batch) == 1 {
            let mut io = lock(&context.row_io[worker]);
            *rows = Some(context.arrays.open(batch, self.needs, None, &mut io)?);
        }
        let Some(batch_rows) = rows else {
            let is_wanted = |_| true;
            return Ok(fold_block::gather(
                program,
                input,
                accumulators,
                scratch,
                is_wanted,
            ));
        };
        let mut slices = P::ApplyRows::slices(&mut batch_rows.guards);
        let start = context.batches.start(batch);
        let current = CurrentCall::new();
        let is_wanted = |i: usize| {
            current.at(start + i as u64);
            program.is_pending(start + i as u64, P::ApplyRows::row(&mut slices, i))
        };
        Ok(fold_block::gather(
            program,
            input,
            accumulators,
            scratch,
            is_wanted,
        ))
    }
}

/// Consumes a stream until `done` bytes of it are `bytes`; returns false while they are not read.
fn skip_to(bytes: usize, stream: &mut ExtentReader, done: &mut usize) -> Result<bool, EngineError> {
    while *done < bytes {
        let Some(front) = stream.front()? else {
            return Ok(false);
        };
        let more = front.len().min(bytes - *done);
        stream.consume(more);
        *done += more;
    }
    Ok(true)
}

/// Returns the bytes of an item from one of its bytes on, and weights; `None` while they are not read.
fn front_bytes<'r>(
    item: &CellTask<'r>,
    streams: &'r mut Option<CellStreams>,
    at: usize,
    left: usize,
) -> Result<Option<[&'r [u8]; 2]>, EngineError> {
    match (item.pinned, streams) {
        (Some((bytes, weights)), _) => Ok(Some([&bytes[at..at + left], weights])),
        (None, Some(streams)) => {
            let Some(bytes) = streams.cells.front()? else {
                return Ok(None);
            };
            let weights = match &mut streams.weights {
                Some(weights) => weights.front()?.unwrap_or(&[]),
                None => &[],
            };
            Ok(Some([&bytes[..bytes.len().min(left)], weights]))
        }
        (None, None) => Err(EngineError::NoReaders),
    }
}

/// Returns the weights of a block's edges, in `bytes` from edge `from` on; `None` if not yet read.
fn weights_of<'w, P: EdgeProgram>(
    context: &ExecContext,
    bytes: &'w [u8],
    from: usize,
    edges: usize,
) -> Option<BlockWeights<'w>> {
    if !P::Edge::WEIGHTED {
        return Some(BlockWeights::None);
    }
    let kind = context.graph.edge_kind();
    let bytes = bytes.get(from * kind.bytes()..(from + edges) * kind.bytes())?;
    Some(BlockWeights::of::<P::Edge>(kind, bytes))
}

/// Bytes of cells that one step goes through.
const STEP_BYTES: usize = 1 << 20;
