//! The role of a worker: goes through the rows of cells of this rank, and writes messages into buckets, about a block in a step.
//!
//! Cells come in order of destination batch. The batches of the next rank come first, and the batches of this rank last. So the
//! accumulators of one batch stay in the receiver's cache, and the ranks do not all send to one at the same time. For the same reason
//! each worker begins with another lane of a rank, and helps with the lanes of others later. While the network is full, an idle worker
//! makes messages for its own rank.
//!
//! The messages of a column may be combined first: folded into accumulators of the worker, which are then sent.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use graphmill_fabric::bucket::BucketOutbox;
use graphmill_graph::{BLOCK_EDGES_MAX, BlockView, Cell};
use graphmill_storage::Buffer;

use crate::cache::cells::CellCache;
use crate::config::CombineChoice;
use crate::context::ExecContext;
use crate::error::{EngineError, ensure};
use crate::exec::bucket::kernel::{BlockInput, BucketKernel, EmitScratch};
use crate::exec::bucket::plane::BucketPlane;
use crate::exec::column::phase::slot::block_ranges::{CellPart, sought_parts};
use crate::frontier::bitmap::bits;
use crate::messages::batch::SignalledMessages;

/// Messages of a column are combined if a vertex gets this many on average.
pub(crate) const COMBINED_FROM: u64 = 2;

/// Cells of one column: all with messages if they are combined, else one.
#[derive(Clone, Debug)]
struct EmitTask {
    column: usize,
    /// Of the cells of this rank in the column.
    positions: Range<usize>,
    is_combined: bool,
}

/// The tasks of one lane.
struct LaneTasks {
    tasks: Vec<EmitTask>,
    /// The lane among all lanes of all ranks.
    place: usize,
    next: AtomicUsize,
}

/// The cells of a pass, which workers take task by task.
pub(crate) struct CellTasks<'p> {
    pub(crate) context: &'p ExecContext<'p>,
    plane: &'p BucketPlane,
    cells: &'p CellCache,
    kernel: &'p dyn BucketKernel,
    /// Of each own batch.
    messages: &'p [SignalledMessages],
    lanes: Vec<LaneTasks>,
    /// For each worker, the order in which it goes through the lanes of other ranks, and of its own.
    orders: Vec<[Vec<usize>; 2]>,
}

/// What a worker does next.
enum EmitState {
    /// Takes a task.
    Idle,
    /// Begins the next cell of its task.
    Cells(EmitTask),
    /// Writes or folds the messages of a cell. These parts of it are left, the next one last.
    Cell(EmitTask, usize, Vec<CellPart>),
    /// Writes combined messages of a column, from a vertex of it on.
    Combined(usize, usize),
    Ended,
}

impl EmitState {
    /// True if the accumulators of the worker may hold messages.
    fn is_combining(&self) -> bool {
        match self {
            EmitState::Cells(task) | EmitState::Cell(task, ..) => task.is_combined,
            EmitState::Combined(..) => true,
            EmitState::Idle | EmitState::Ended => false,
        }
    }
}

/// How far a worker is with the lanes of other ranks, or of its own.
struct EmitCursor {
    state: EmitState,
    /// Lanes without tasks left, in the order of this worker.
    lanes_done: usize,
    /// The lane of the current column among all lanes of all ranks.
    place: usize,
    /// The first vertex of the column, counted from that of its lane.
    base: u32,
}

/// The lanes of other ranks, as a number of a cursor.
const FOREIGN: usize = 0;
/// The lanes of the own rank.
const OWN: usize = 1;

/// The state of one worker.
pub(crate) struct Emitter {
    worker: usize,
    cursors: [EmitCursor; 2],
    /// The cursor that last advanced.
    current: usize,
    scratch: EmitScratch,
    /// The messages in `scratch` that are not in buckets yet.
    pending: Range<usize>,
    /// One message, if it is longer than a bucket.
    jumbo: Vec<u8>,
    /// The accumulators of combined messages, at the identity between two columns.
    combined: Option<Buffer>,
    pub(crate) edges: u64,
    pub(crate) cells: u64,
    pub(crate) looked_up: u64,
}

impl Emitter {
    /// Returns a worker for a program; it combines messages if it has accumulators.
    pub(crate) fn new(
        worker: usize,
        kernel: &dyn BucketKernel,
        combined: Option<Buffer>,
    ) -> Result<Self, EngineError> {
        Ok(Emitter {
            worker,
            cursors: [FOREIGN, OWN].map(|_| EmitCursor {
                state: EmitState::Idle,
                lanes_done: 0,
                place: 0,
                base: 0,
            }),
            current: FOREIGN,
            scratch: EmitScratch::new(kernel.width(), kernel.signal_width())?,
            pending: 0..0,
            jumbo: Vec::new(),
            combined,
            edges: 0,
            cells: 0,
            looked_up: 0,
        })
    }

    /// Returns the accumulators.
    pub(crate) fn into_combined(self) -> Option<Buffer> {
        self.combined
    }

    pub(crate) fn has_ended(&self) -> bool {
        let has_ended = |of: &EmitCursor| matches!(of.state, EmitState::Ended);
        self.cursors.iter().all(has_ended)
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
        let (ranks, first) = (&context.ranks, context.ranks.own().start);
        let tasks = |column: usize| {
            let cells = context.own_cells(column);
            // As many edges have a message as sources of their batch have one.
            let expected = cells.iter().map(|cell| {
                let of_batch = &messages[cell.source_batch() - first];
                cell.edges().saturating_mul(of_batch.count) / (of_batch.span as u64).max(1)
            });
            let is_combined = match plane.combine {
                _ if !kernel.combines() => false,
                CombineChoice::Never => false,
                CombineChoice::Always => true,
                CombineChoice::Auto => {
                    expected.sum::<u64>() >= COMBINED_FROM * context.batches.span(column)
                }
            };
            let count = cells.len();
            let step = if is_combined { count.max(1) } else { 1 };
            let has_messages = move |at: &usize| {
                let has = |cell: &Cell| messages[cell.source_batch() - first].count > 0;
                cells[*at..*at + step].iter().any(has)
            };
            let positions = (0..count).step_by(step).filter(has_messages);
            positions.map(move |at| EmitTask {
                column,
                positions: at..at + step,
                is_combined,
            })
        };
        let (mut lanes, mut orders) = (
            Vec::new(),
            vec![[Vec::new(), Vec::new()]; plane.roles.counts[0]],
        );
        let in_turn = (1..=ranks.count()).map(|step| (ranks.rank() + step) % ranks.count());
        for (rank, count) in in_turn.map(|rank| (rank, plane.lanes.count(rank))) {
            let which = if rank == ranks.rank() { OWN } else { FOREIGN };
            for (worker, order) in orders.iter_mut().enumerate() {
                order[which].extend((0..count).map(|lane| lanes.len() + (worker + lane) % count));
            }
            lanes.extend((0..count).map(|lane| LaneTasks {
                tasks: plane.lanes.batches(rank, lane).flat_map(tasks).collect(),
                place: plane.exchange.state.place_of(rank, lane),
                next: AtomicUsize::new(0),
            }));
        }
        CellTasks {
            context,
            plane,
            cells,
            kernel,
            messages,
            lanes,
            orders,
        }
    }

    /// Takes a task of the next lane that has one.
    fn take(&self, emitter: &mut Emitter) -> Option<EmitTask> {
        let order = &self.orders[emitter.worker][emitter.current];
        let cursor = &mut emitter.cursors[emitter.current];
        while let Some(lane) = order.get(cursor.lanes_done) {
            let lane = &self.lanes[*lane];
            if let Some(task) = lane.tasks.get(lane.next.fetch_add(1, Ordering::Relaxed)) {
                (cursor.place, cursor.base) = (lane.place, self.base(task.column));
                return Some(task.clone());
            }
            cursor.lanes_done += 1;
        }
        None
    }

    /// Chooses the cursor that advances; returns false if the worker does better to wait.
    ///
    /// Messages for other ranks come first, while there are buckets for a block of them. If there are not, an idle thread takes own messages:
    /// one that can fold what has come would only disturb its cache.
    fn choose(&self, emitter: &mut Emitter, outbox: &mut BucketOutbox, is_idle: bool) -> bool {
        let [foreign, own] = &emitter.cursors;
        if emitter.cursors[emitter.current].state.is_combining() {
            return true;
        }
        emitter.current = match (&foreign.state, &own.state) {
            (EmitState::Ended, _) => OWN,
            (_, EmitState::Ended) => FOREIGN,
            _ if outbox.has_room_for(BLOCK_EDGES_MAX) => FOREIGN,
            _ if is_idle => OWN,
            _ => return false,
        };
        true
    }

    /// Emits about a block; returns true if anything changed.
    ///
    /// `is_idle` says that the last step of the thread changed nothing, in no role.
    pub(crate) fn step(
        &self,
        emitter: &mut Emitter,
        outbox: &mut BucketOutbox,
        is_idle: bool,
    ) -> Result<bool, EngineError> {
        let mut work = 0;
        while !emitter.has_ended() {
            work += self.pass_on(emitter, outbox)?;
            let is_over = !emitter.pending.is_empty() || work >= BLOCK_EDGES_MAX;
            if is_over || !self.choose(emitter, outbox, is_idle) {
                break;
            }
            work += self.advance(emitter, outbox)?;
        }
        Ok(work > 0)
    }

    /// Writes the messages that wait into buckets, while buckets are free; returns their number.
    fn pass_on(
        &self,
        emitter: &mut Emitter,
        outbox: &mut BucketOutbox,
    ) -> Result<usize, EngineError> {
        let Emitter {
            scratch,
            pending,
            jumbo,
            ..
        } = emitter;
        let EmitCursor { place, base, .. } = emitter.cursors[emitter.current];
        let begin = pending.start;
        while pending.start < pending.end {
            let written = if outbox.is_jumbo() {
                jumbo.resize(outbox.message_bytes(), 0);
                let next = pending.start..pending.start + 1;
                let written = self.kernel.write(scratch, next, base, jumbo);
                match outbox.put(place, jumbo) {
                    0 => break,
                    _ => written,
                }
            } else {
                let Some(room) = outbox.room(place) else {
                    break;
                };
                let written = (self.kernel).write(scratch, pending.clone(), base, room);
                outbox.pass(place, written);
                written
            };
            ensure(written > 0, || EngineError::Broken)?;
            pending.start += written;
        }
        Ok(pending.start - begin)
    }

    /// Does the next thing; returns about how many edges that was. No messages wait.
    fn advance(
        &self,
        emitter: &mut Emitter,
        outbox: &mut BucketOutbox,
    ) -> Result<usize, EngineError> {
        let mut done = 1;
        let current = emitter.current;
        let state = &mut emitter.cursors[current].state;
        let next = match std::mem::replace(state, EmitState::Ended) {
            EmitState::Idle => match self.take(emitter) {
                Some(task) => EmitState::Cells(task),
                None => {
                    outbox.end(current == OWN);
                    EmitState::Ended
                }
            },
            EmitState::Cells(mut task) => match task.positions.next() {
                Some(position) => {
                    let parts = self.parts(emitter, task.column, position)?;
                    emitter.cells += u64::from(!parts.is_empty());
                    EmitState::Cell(task, position, parts)
                }
                None if task.is_combined => EmitState::Combined(task.column, 0),
                None => EmitState::Idle,
            },
            EmitState::Cell(task, position, mut parts) => match parts.pop() {
                Some(part) => {
                    let at = (task.column, position);
                    let (rest, edges) = self.emit(emitter, at, &part, task.is_combined)?;
                    parts.extend(rest);
                    done = edges;
                    EmitState::Cell(task, position, parts)
                }
                None => EmitState::Cells(task),
            },
            EmitState::Combined(column, from) => {
                let span = self.context.batches.span(column) as usize;
                let to = span.min(from + BLOCK_EDGES_MAX);
                let accumulators = emitter.combined.as_mut().ok_or(EngineError::Broken)?;
                let scratch = &mut emitter.scratch;
                let made = (self.kernel).emit_combined(accumulators, from..to, scratch);
                emitter.pending = 0..made.ok_or(EngineError::Broken)?;
                done = to - from;
                match to < span {
                    true => EmitState::Combined(column, to),
                    false => EmitState::Idle,
                }
            }
            EmitState::Ended => EmitState::Ended,
        };
        emitter.cursors[current].state = next;
        Ok(done)
    }

    /// Returns the parts of a cell with edges of sources that have messages, the first one last.
    fn parts(
        &self,
        emitter: &mut Emitter,
        column: usize,
        position: usize,
    ) -> Result<Vec<CellPart>, EngineError> {
        let context = self.context;
        let cell = &context.own_cells(column)[position];
        let messages = &self.messages[cell.source_batch() - context.ranks.own().start];
        if messages.count == 0 {
            return Ok(Vec::new());
        }
        let (cells, looked) = ((context, self.cells), &mut emitter.looked_up);
        let sources = |add: &mut dyn FnMut(usize)| {
            bits(self.kernel.present(messages), 0, add);
            Ok(())
        };
        let at = (column, position, cell);
        let mut parts = sought_parts(cells, at, messages.count, looked, sources)?;
        parts.reverse();
        Ok(parts)
    }

    /// Returns the first vertex of a batch, counted from that of its lane.
    fn base(&self, batch: usize) -> u32 {
        let (batches, lanes) = (&self.context.batches, &self.plane.lanes);
        let owner = self.context.ranks.owner(batch);
        let first = lanes.batches(owner, lanes.lane_of(owner, batch)).start;
        (batches.start(batch) - batches.start(first)) as u32
    }

    /// Makes, or combines, the messages of the first block of a part of a cell.
    ///
    /// Returns the rest of the part, and the edges of the block.
    fn emit(
        &self,
        emitter: &mut Emitter,
        (column, position): (usize, usize),
        part: &CellPart,
        is_combined: bool,
    ) -> Result<(Option<CellPart>, usize), EngineError> {
        let context = self.context;
        let cell = &context.own_cells(column)[position];
        let broken = || context.graph.corrupt_cell(column, cell);
        let cached = self.cells.cell(context, column, position);
        let (data, weights) = cached.ok_or(EngineError::Broken)?;
        let from = cell.source_batch();
        let data = data.get(part.bytes.start as usize..part.bytes.end as usize);
        let offset = context.global_offset(from, column);
        let block = BlockView::parse(data.ok_or_else(broken)?, offset);
        let block = block.map_err(|error| context.broken(column, cell, &error))?;
        let (block, used) = block.ok_or_else(broken)?;
        let (width, first) = (context.graph.edge_kind().bytes(), part.edges.start as usize);
        let weights = match self.kernel.is_weighted() {
            true => weights
                .get(first * width..(first + block.edges()) * width)
                .ok_or_else(broken)?,
            false => &[],
        };
        let batches = &context.batches;
        let input = BlockInput {
            block: &block,
            messages: &self.messages[from - context.ranks.own().start],
            weights,
            starts: [batches.start(from), batches.start(column)],
            span: batches.span(column) as u32,
        };
        let Emitter {
            scratch, combined, ..
        } = emitter;
        let emitted = match combined.as_mut().filter(|_| is_combined) {
            Some(combined) => self.kernel.combine(&input, scratch, combined),
            None => {
                let made = self.kernel.emit(&input, scratch);
                emitter.pending = 0..made.unwrap_or(0);
                made.map(|made| made as u64)
            }
        };
        emitter.edges += emitted.ok_or_else(broken)?;
        let rest = CellPart {
            bytes: part.bytes.start + used as u64..part.bytes.end,
            edges: part.edges.start + block.edges() as u64..part.edges.end,
        };
        let is_left = !rest.bytes.is_empty();
        ensure(is_left != rest.edges.is_empty(), broken)?;
        Ok((is_left.then_some(rest), block.edges()))
    }
}
