//! The role of a worker: goes through the rows of cells of this rank, and fills buckets, one block in a step.
//!
//! Cells come in order of destination batch. The batches of the next rank come first, and the batches of this rank last. So the
//! accumulators of one batch stay in the receiver's cache, and the ranks do not all send to one at the same time.

use std::sync::atomic::{AtomicUsize, Ordering};

use graphmill_fabric::bucket::BucketOutbox;
use graphmill_graph::{BlockView, Cell};

use crate::cache::cells::CellCache;
use crate::context::ExecContext;
use crate::error::{EngineError, ensure};
use crate::exec::bucket::kernel::{BlockInput, BlockMessages, BucketKernel};
use crate::exec::bucket::plane::BucketPlane;
use crate::messages::batch::SignalledMessages;

/// A cell with messages: its column and its position there.
type EmitTask = (usize, usize);

/// The cells of a pass, which workers take one by one.
pub(crate) struct CellTasks<'p> {
    pub(crate) context: &'p ExecContext<'p>,
    plane: &'p BucketPlane,
    cells: &'p CellCache,
    kernel: &'p dyn BucketKernel,
    /// Of each own batch.
    messages: &'p [SignalledMessages],
    tasks: Vec<EmitTask>,
    next: AtomicUsize,
}

/// The state of one worker.
pub(crate) struct Emitter {
    /// The cell that it is in, and the bytes and the edges of it that are done.
    current: Option<(EmitTask, usize, usize)>,
    messages: BlockMessages,
    /// Bytes of the messages of the last block that are in buckets, and the place of their lane.
    passed: usize,
    place: usize,
    pub(crate) has_ended: bool,
    pub(crate) edges: u64,
    pub(crate) cells: u64,
}

impl Emitter {
    pub(crate) fn new(width: usize) -> Self {
        Emitter {
            current: None,
            messages: BlockMessages::new(width),
            passed: 0,
            place: 0,
            has_ended: false,
            edges: 0,
            cells: 0,
        }
    }
}

impl<'p> CellTasks<'p> {
    pub(crate) fn new(
        context: &'p ExecContext<'p>,
        plane: &'p BucketPlane,
        cells: &'p CellCache,
        kernel: &'p dyn BucketKernel,
        messages: &'p [SignalledMessages],
    ) -> Self {
        let (own, all) = (context.ranks.own(), context.batches.len());
        let columns = (own.end..all).chain(0..own.end);
        let tasks = columns.flat_map(|column| {
            let cells = context.own_cells(column).iter().enumerate();
            let has_messages =
                |(_, cell): &(usize, &Cell)| messages[cell.source_batch() - own.start].count > 0;
            cells
                .filter(has_messages)
                .map(move |(position, _)| (column, position))
                .collect::<Vec<_>>()
        });
        CellTasks {
            context,
            plane,
            cells,
            kernel,
            messages,
            tasks: tasks.collect(),
            next: AtomicUsize::new(0),
        }
    }

    /// Passes on what waits, or emits the next block; returns true if anything changed.
    pub(crate) fn step(
        &self,
        emitter: &mut Emitter,
        outbox: &mut BucketOutbox,
    ) -> Result<bool, EngineError> {
        if emitter.has_ended {
            return Ok(false);
        }
        if emitter.passed < emitter.messages.bytes().len() {
            return Ok(self.pass(emitter, outbox));
        }
        let Some((task, bytes, edges)) = emitter.current.take().or_else(|| self.take()) else {
            outbox.end();
            emitter.has_ended = true;
            return Ok(true);
        };
        let (used, of_block) = self.emit(emitter, task, bytes, edges)?;
        let (column, position) = task;
        let cell = &self.context.own_cells(column)[position];
        let (bytes, edges) = (bytes + used, edges + of_block);
        if (bytes as u64) < cell.data_bytes() {
            emitter.current = Some((task, bytes, edges));
        } else {
            ensure(edges as u64 == cell.edges(), || {
                self.context.graph.corrupt_cell(column, cell)
            })?;
            emitter.cells += 1;
        }
        self.pass(emitter, outbox);
        Ok(true)
    }

    fn take(&self) -> Option<(EmitTask, usize, usize)> {
        let task = self.tasks.get(self.next.fetch_add(1, Ordering::Relaxed))?;
        Some((*task, 0, 0))
    }

    /// Makes the messages of the block at byte `at` of a cell, whose first edge is number `first`.
    ///
    /// Returns its bytes and its edges.
    fn emit(
        &self,
        emitter: &mut Emitter,
        (column, position): EmitTask,
        at: usize,
        first: usize,
    ) -> Result<(usize, usize), EngineError> {
        let context = self.context;
        let cell = &context.own_cells(column)[position];
        let broken = || context.graph.corrupt_cell(column, cell);
        let (data, weights) = self
            .cells
            .cell(context, column, position)
            .ok_or(EngineError::Broken)?;
        let (from, ranks) = (cell.source_batch(), &context.ranks);
        let offset = context.global_offset(from, column);
        let block = BlockView::parse(data.get(at..).unwrap_or_default(), offset);
        let block = block.map_err(|error| context.broken(column, cell, &error))?;
        let (block, used) = block.ok_or_else(broken)?;
        let messages = &self.messages[from - ranks.own().start];
        let owner = ranks.owner(column);
        let lane = self.plane.lanes.lane_of(owner, column);
        let batches = &context.batches;
        let lane_start = batches.start(self.plane.lanes.batches(owner, lane).start);
        let width = context.graph.edge_kind().bytes();
        let weights = match self.kernel.is_weighted() {
            true => weights
                .get(first * width..(first + block.edges()) * width)
                .ok_or_else(broken)?,
            false => &[],
        };
        let input = BlockInput {
            block: &block,
            messages,
            weights,
            starts: [batches.start(from), batches.start(column)],
            span: batches.span(column) as u32,
            base: (batches.start(column) - lane_start) as u32,
        };
        let emitted = self
            .kernel
            .emit(&input, &mut emitter.messages)
            .ok_or_else(broken)?;
        emitter.edges += emitted;
        emitter.passed = 0;
        emitter.place = self.plane.exchange.state.place_of(owner, lane);
        Ok((used, block.edges()))
    }

    /// Copies messages into buckets while some are free; returns true if any was.
    fn pass(&self, emitter: &mut Emitter, outbox: &mut BucketOutbox) -> bool {
        let before = emitter.passed;
        let one = size_of::<u32>() + self.kernel.width();
        loop {
            let left = &emitter.messages.bytes()[emitter.passed..];
            if left.is_empty() {
                break;
            }
            if self.plane.is_jumbo(one) {
                if !outbox.put_jumbo(emitter.place, &left[..one]) {
                    break;
                }
                emitter.passed += one;
                continue;
            }
            let Some(mut room) = outbox.room(emitter.place) else {
                break;
            };
            let count = room.left().min(left.len() / one);
            room.take(count).copy_from_slice(&left[..count * one]);
            emitter.passed += count * one;
        }
        emitter.passed > before
    }
}
