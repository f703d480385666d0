//! The sparse pass: when few vertices are active, only their edges are gone to, at a cost in proportion to them.
//!
//! 1. signal: each active vertex emits its message, which is queued at each column that its fan-out list names;
//! 2. each such column, in order: the index of each cell says where a source's edges lie; they fold into
//!    accumulators that are `IDENTITY` everywhere else, and a set remembers which were reached;
//! 3. apply: the reached destinations in order, whose accumulators become `IDENTITY` again.
//!
//! Nothing here walks over all vertices, batches of the graph or cells of a column. Sources are queued in ascending
//! order, so a column folds in the order of the graph, as a scan would. Of cells on disk the blocks that hold a queued
//! source are read, for a few columns at a time ([`read_plan`]).

use std::collections::VecDeque;

use graphmill_fabric::protocol_error;
use graphmill_graph::{BLOCK_EDGES_MAX, BlockView, EdgePosition, Group, GroupWalk};
use graphmill_raw::{Element, lock};
use graphmill_storage::{DataKind, Lease, Queue};

use crate::cache::cells::CellCache;
use crate::context::ExecContext;
use crate::error::{EngineError, ensure, made};
use crate::exchange::all_to_all::{Exchange, FillStatus, FrameSource, Received};
use crate::exchange::frame::Frame;
use crate::exec::column::kernel::accumulators::Accumulators;
use crate::exec::column::kernel::cell_stream::CellStreams;
use crate::exec::column::kernel::pass::{Pass, PassOutput, apply_reached};
use crate::exec::column::phase::sparse::read_plan::{self, CellLookup, ColumnReadPlan};
use crate::frontier::bitmap::HierarchicalBitmap;
use crate::graph_view::within;
use crate::metrics::run::PassMetrics;
use crate::metrics::traffic::Access;
use crate::program::current_call::CurrentCall;
use crate::program::edge::EdgeProgram;
use crate::state::row_set::RowSet;
use crate::state::rows::Rows;
use crate::value::{EdgeValue, edge_value};

/// Reads in flight for a sparse pass, at most.
const READS: usize = 32;

/// The scratch memory that sparse passes reuse.
pub(crate) struct SparseScratch<P: EdgeProgram> {
    /// `IDENTITY` everywhere between columns.
    accumulators: Option<Accumulators<P::Accumulator>>,
    reached: HierarchicalBitmap,
    /// Messages by column, sources ascending once all are there; empty between passes.
    queues: Vec<Vec<(u64, P::Message)>>,
    /// The columns with messages; empty between passes.
    columns: HierarchicalBitmap,
    /// Where blocks are read from; made with the first pass that reads any.
    disk: Option<Box<dyn Queue>>,
    _lease: Option<Lease>,
    /// True if messages to other ranks carry their columns, so that no rank has to read fan-out lists.
    pub(crate) placed: bool,
    /// For the queues, and the lists of blocks on the way, of the pass to come.
    pub(crate) reserved: Option<Lease>,
}

impl<P: EdgeProgram> Default for SparseScratch<P> {
    fn default() -> Self {
        SparseScratch {
            accumulators: None,
            reached: HierarchicalBitmap::default(),
            queues: Vec::new(),
            columns: HierarchicalBitmap::default(),
            disk: None,
            _lease: None,
            placed: false,
            reserved: None,
        }
    }
}

impl<P: EdgeProgram> SparseScratch<P> {
    /// Bytes of the budget that the scratch memory takes once it is filled.
    fn memory(context: &ExecContext) -> u64 {
        let entries = context.shape.entries as u64;
        let columns = context.batches.len() as u64;
        // Sets take a bit an entry and a little more, rounded up to words.
        Accumulators::<P::Accumulator>::bytes(entries as usize)
            + columns * size_of::<Vec<u8>>() as u64
            + (entries + columns) / 7
            + 64
    }

    fn fill(&mut self, context: &ExecContext, identity: P::Accumulator) -> Result<(), EngineError> {
        if self.queues.is_empty() {
            let (columns, entries) = (context.batches.len(), context.shape.entries);
            let queues = (columns * size_of::<Vec<u8>>()) as u64;
            self._lease = Some(context.budget.lease("queued messages", queues)?);
            let accumulators = Accumulators::new(context, entries, identity)?;
            self.accumulators = Some(accumulators);
            self.reached.reserve(entries, &context.budget)?;
            self.queues.resize_with(columns, Vec::new);
            self.columns.reserve(columns, &context.budget)?;
        }
        Ok(())
    }

    /// Leases the queues of a sparse pass over vertices of at most `edges` edges, and its block lists.
    ///
    /// Returns `false` if the budget might not hold them and `leave` bytes for what the pass takes later.
    pub(crate) fn reserve(
        &mut self,
        pass: &Pass<'_, P>,
        cell_cache: &CellCache,
        edges: u64,
        streams: usize,
        leave: u64,
    ) -> bool {
        self.reserved = None;
        let context = pass.context;
        let unfilled = match self.queues.is_empty() {
            true => Self::memory(context),
            false => 0,
        };
        let (ranks, active) = (&context.ranks, pass.active);
        let [columns, own] = [context.batches.len(), ranks.own().len()].map(|count| count as u64);
        let of = |vertices: u64, places: u64, bytes: usize| {
            let entries = vertices.saturating_mul(places).min(edges);
            entries.saturating_mul(bytes as u64)
        };
        let entry = size_of::<(u64, P::Message)>();
        let block_lists = match cell_cache.all_block_lists {
            true => 0,
            false => context.view.longest_block_lists * own.min(streams as u64),
        };
        // Messages to other ranks, and received ones to look up.
        let others = active.len().saturating_sub(active.own_len());
        let (places, to_look_up) = match self.placed {
            _ if ranks.alone() => (0, 0),
            true => (columns - own, 0),
            false => (ranks.count() as u64 - 1, others),
        };
        let routed = size_of::<RoutedMessage<P::Message>>();
        let passed = of(active.own_len(), places, routed).saturating_add(of(to_look_up, 1, entry));
        // Growing a queue copies it, so twice its entries can be held for a moment.
        let queues = of(active.len(), own, entry).saturating_add(passed);
        // One that begins has room for a few.
        let queues = queues.saturating_add(of(own, 1, 4 * entry));
        let bytes = queues.saturating_mul(2).saturating_add(block_lists);
        let lease = context.budget.lease("queued messages", bytes).ok();
        self.reserved = lease.filter(|_| unfilled + leave <= context.budget.available());
        self.reserved.is_some()
    }
}

/// Runs both phases of a sparse pass.
///
/// `idle` are streams to read by, needed unless cells and lists of blocks are cached.
pub(crate) fn edges<P: EdgeProgram>(
    pass: Pass<'_, P>,
    scratch: &mut SparseScratch<P>,
    cell_cache: &CellCache,
    idle: &mut Vec<CellStreams>,
    output: &mut PassOutput<P::Sum>,
) -> Result<(), EngineError> {
    let (context, program) = (pass.context, pass.program);
    let _reserved = scratch.reserved.take();
    scratch.fill(context, program.identity())?;
    match context.ranks.alone() {
        true => {
            let (queues, columns) = (&mut scratch.queues, &mut scratch.columns);
            signal(
                pass,
                cell_cache,
                &mut output.report,
                |v, message, column| {
                    queue(queues, columns, column, (v, message));
                },
            )?;
        }
        false => signal_to_all(pass, scratch, cell_cache, &mut output.report)?,
    }
    context.arrays.end_phase();
    let (queues, reached) = (&mut scratch.queues, &mut scratch.reached);
    let accumulators = scratch.accumulators.as_deref_mut().unwrap_or_default();
    let disk = made(&mut scratch.disk, || context.graph.disk().queue(READS))?;
    let mut todo = sorted_columns(context, queues, &mut scratch.columns)?;
    let mut ahead: VecDeque<ColumnReadPlan> = VecDeque::new();
    loop {
        context.ranks.check_stop()?;
        // Columns are planned as far ahead as there are streams; one without reads needs none.
        while let Some(&column) = todo.front()
            && (ahead.is_empty() || (!idle.is_empty() && !cell_cache.all))
        {
            let (queue, disk, others) = (&queues[column], disk.as_mut(), ahead.make_contiguous());
            let plan =
                read_plan::plan::<P>(context, cell_cache, column, queue, idle, disk, others)?;
            todo.pop_front();
            ahead.push_back(plan);
        }
        let Some(mut plan) = ahead.pop_front() else {
            return Ok(());
        };
        let mut streams = plan.streams.take();
        let column = plan.column;
        let mut fold = ColumnFold {
            context,
            program,
            cell_cache,
            plan: &plan,
            streams: &mut streams,
            disk: disk.as_mut(),
            others: ahead.make_contiguous(),
            accumulators,
            reached,
            edges: 0,
            looked: 0,
        };
        for cell in &plan.cells {
            fold.cell(cell, &queues[column][cell.queue.clone()])?;
        }
        let edges = fold.edges;
        output.report.edges += edges;
        output.report.elements_scanned += fold.looked;
        let bytes = edges * size_of::<P::Accumulator>() as u64;
        let traffic = context.traffic.of(0);
        traffic.change(DataKind::Messages, Access::Random, bytes);
        output.report.cells += plan.cells.len() as u64;
        output.report.cells_indexed += plan.cells.len() as u64;
        if let Some(streams) = streams {
            let (streams, read) = streams.end(disk.as_mut(), ahead.make_contiguous())?;
            output.report.bytes_read += read;
            idle.push(streams);
        }
        // The lease for the queues ends with the pass, so what they took has to be given back.
        queues[column] = Vec::new();
        let io = &mut lock(&context.row_io[0]);
        let places = 0..accumulators.len();
        apply_reached(pass, column, accumulators, reached, places, io, output)?;
    }
}

/// Returns the columns with queued messages, whose queues it sorts if others sent some.
fn sorted_columns<M>(
    context: &ExecContext,
    queues: &mut [Vec<(u64, M)>],
    columns: &mut HierarchicalBitmap,
) -> Result<VecDeque<usize>, EngineError> {
    let (mut todo, mut is_sound) = (VecDeque::new(), true);
    columns.drain(|column| {
        if !context.ranks.alone() {
            let queue = &mut queues[column];
            sort_by_vertex(queue);
            is_sound &= queue.is_sorted_by(|(v, _), (next, _)| v < next);
        }
        todo.push_back(column);
    });
    ensure(is_sound, protocol_error)?;
    Ok(todo)
}

/// Queues a message at a column that holds edges of its source.
fn queue<M>(
    queues: &mut [Vec<(u64, M)>],
    columns: &mut HierarchicalBitmap,
    column: usize,
    message: (u64, M),
) {
    if let Some(queue) = queues.get_mut(column) {
        columns.insert(column);
        queue.push(message);
    }
}

/// Sends the message of each active vertex to the ranks that hold its edges, and queues received ones.
///
/// Messages arrive from ranks in any order and are queued at the columns of this rank. A sender that read a fan-out list to
/// find the ranks sends the columns too, so the receiver need not read it again.
fn signal_to_all<P: EdgeProgram>(
    pass: Pass<'_, P>,
    scratch: &mut SparseScratch<P>,
    cell_cache: &CellCache,
    report: &mut PassMetrics,
) -> Result<(), EngineError> {
    let context = pass.context;
    let ranks = &context.ranks;
    let own = ranks.own();
    let is_placed = scratch.placed;
    let mut goes: Vec<Vec<RoutedMessage<P::Message>>> = vec![Vec::new(); ranks.count()];
    let (queues, columns) = (&mut scratch.queues, &mut scratch.columns);
    signal(pass, cell_cache, report, |v, message, column| {
        if own.contains(&column) {
            return queue(queues, columns, column, (v, message));
        }
        let to = &mut goes[ranks.owner(column)];
        // Columns of one rank follow each other.
        if is_placed || to.last().is_none_or(|(last, ..)| *last != v) {
            to.push((v, column as u32, message));
        }
    })?;
    let mut to_look_up = Vec::new();
    Exchange::run(
        context,
        size_of::<P::Message>(),
        |to, _| MessageList {
            context,
            is_placed,
            left: &goes[to],
        },
        |from, received| {
            let Received::Section(section) = received else {
                return Ok(());
            };
            ensure(ranks.of(from).contains(&section.batch), protocol_error)?;
            let range = context.batches.range(section.batch);
            let mut outside = false;
            let mut placed = section.columns();
            section.each(|source, message| {
                let v = range.start + source as u64;
                match placed.as_mut().map(Iterator::next) {
                    _ if !range.contains(&v) => outside = true,
                    None => to_look_up.push((v, message)),
                    Some(Some(column)) if own.contains(&column) => {
                        queue(queues, columns, column, (v, message));
                    }
                    Some(_) => outside = true,
                }
            });
            ensure(!outside, protocol_error)
        },
    )?;
    let [sent, bytes] = context.take_sent();
    report.messages_sent += sent;
    report.bytes_sent += bytes;
    let mut frames = lock(&context.frames);
    sort_by_vertex(&mut to_look_up);
    for (v, message) in to_look_up {
        let mut of_vertex = |column: usize| {
            if own.contains(&column) {
                queue(queues, columns, column, (v, message));
            }
        };
        context.fanout_of(cell_cache.fanout.as_ref(), &mut frames, v, &mut of_vertex)?;
    }
    report.bytes_read += frames.take_bytes_read();
    Ok(())
}

/// A message on its way to another rank: its source, and a column that it is for.
type RoutedMessage<M> = (u64, u32, M);

/// A list of messages on its way.
struct MessageList<'l, M> {
    context: &'l ExecContext<'l>,
    /// True if messages go with their columns, or once each.
    is_placed: bool,
    left: &'l [RoutedMessage<M>],
}

impl<M: Element> FrameSource for MessageList<'_, M> {
    fn fill(&mut self, frame: &mut Frame<'_>) -> Result<FillStatus, EngineError> {
        while let Some((first, ..)) = self.left.first() {
            let batches = &self.context.batches;
            let batch = batches.batch_of(*first);
            let end = batches.cut(batch + 1);
            let of_batch = self.left.partition_point(|(source, ..)| *source < end);
            let of_batch = &self.left[..of_batch];
            let taken = frame.list((batch, batches.start(batch)), self.is_placed, of_batch);
            self.left = &self.left[taken..];
            if taken < of_batch.len() {
                return Ok(FillStatus::Full);
            }
        }
        Ok(FillStatus::All)
    }
}

/// Calls `say(vertex, message, column)` for each column with edges of an active vertex, ascending.
fn signal<P: EdgeProgram>(
    pass: Pass<'_, P>,
    cell_cache: &CellCache,
    report: &mut PassMetrics,
    mut say: impl FnMut(u64, P::Message, usize),
) -> Result<(), EngineError> {
    let (context, program, needs, active) = (pass.context, pass.program, pass.signal, pass.active);
    let io = &mut *lock(&context.row_io[0]);
    for batch in active.batches() {
        let set = active.batch(batch)?;
        let start = context.batches.start(batch);
        let some = RowSet::of(&set);
        let mut batch_rows = context.arrays.open(batch, needs, some.as_ref(), io)?;
        let mut failed = None;
        let mut frames = lock(&context.frames);
        {
            let mut rows = P::SignalRows::slices(&mut batch_rows.guards);
            let current = CurrentCall::new();
            set.for_each(|i| {
                let v = start + i as u64;
                current.at(v);
                if let Some(message) = program.signal(v, P::SignalRows::row(&mut rows, i)) {
                    report.messages += 1;
                    let mut say_at = |column| say(v, message, column);
                    let outcome =
                        context.fanout_of(cell_cache.fanout.as_ref(), &mut frames, v, &mut say_at);
                    failed = failed.take().or(outcome.err());
                }
            });
        }
        if let Some(error) = failed {
            return Err(error.into());
        }
        report.bytes_read += frames.take_bytes_read();
        drop(frames);
        context.count_rows(0, needs, active.count_in(batch), set.is_full());
        context.arrays.close(batch_rows, needs, None, io)?;
    }
    Ok(())
}

/// One column on its way.
struct ColumnFold<'f, P: EdgeProgram> {
    context: &'f ExecContext<'f>,
    program: &'f P,
    cell_cache: &'f CellCache,
    plan: &'f ColumnReadPlan,
    streams: &'f mut Option<read_plan::ColumnStreams>,
    disk: &'f mut dyn Queue,
    /// Columns whose reads are on their way meanwhile.
    others: &'f mut [ColumnReadPlan],
    accumulators: &'f mut [P::Accumulator],
    reached: &'f mut HierarchicalBitmap,
    edges: u64,
    /// Sources scanned to find these: one with a bitmap, or all of its block from the nearest sample on.
    looked: u64,
}

impl<P: EdgeProgram> ColumnFold<'_, P> {
    /// Folds the queued messages along the edges of their sources in one cell.
    fn cell(
        &mut self,
        planned: &CellLookup,
        queue: &[(u64, P::Message)],
    ) -> Result<(), EngineError> {
        let (context, program, column) = (self.context, self.program, self.plan.column);
        let cell = &context.graph.column(column).cells()[planned.position];
        let broken = |error| context.broken(column, cell, &error);
        let index = self.plan.index(context, self.cell_cache, planned)?;
        let pinned = self.cell_cache.cell(context, column, planned.position);
        let offset = context.global_offset(cell.source_batch(), column);
        let start = context.batches.start(cell.source_batch());
        // Of a pinned cell its edges' part of its bytes, of its index one word for each source.
        let (edges_before, cell_bytes) = (self.edges, cell.data_bytes() as u128);
        let mask = (1usize << context.batches.bits(column)) - 1;
        let accumulators = &mut self.accumulators[..=mask];
        let kind = context.graph.edge_kind();
        let width = context.weight_bytes(P::Edge::WEIGHTED);
        // The weights of the current block are copied, since both streams are read at once.
        let mut held = Vec::new();
        // The last block and where it began: only an index that is not what was written leads back.
        let mut last = (0, 0);
        let mut walk = GroupWalk::default();
        let current = CurrentCall::new();
        let column_start = context.batches.start(column);
        for (source, message) in queue {
            let source = (source - start) as u32;
            let mut place = index.seek(source);
            while let Some(found) = place.take() {
                let (number, at) = (found.block, found.offset);
                let is_ahead = number >= last.0 && at >= last.1;
                ensure(is_ahead, || context.graph.corrupt_cell(column, cell))?;
                if number > last.0 {
                    walk.restart();
                }
                last = (number, at);
                let (bytes, weights) = match (pinned, self.streams.as_mut()) {
                    (Some((bytes, weights)), _) => {
                        let of_block = weights.get(number * width * BLOCK_EDGES_MAX..);
                        let bytes = bytes.get(at as usize..).unwrap_or(&[]);
                        (bytes, of_block.unwrap_or(&[]))
                    }
                    (None, Some(streams)) => {
                        if width > 0 {
                            let of = read_plan::weights_extent::<P>(context, column, cell, number);
                            let weights = streams.bytes(true, &of, self.disk, self.others)?;
                            held.clear();
                            held.extend_from_slice(weights);
                        }
                        let range = read_plan::block_range(context, column, cell, &index, number)?;
                        let of = within(context.graph.data_extent(column, cell), &range);
                        let bytes = streams.bytes(false, &of, self.disk, self.others)?;
                        (bytes, &held[..])
                    }
                    (None, None) => return Err(EngineError::NoReaders),
                };
                let (block, _) = BlockView::parse(bytes, offset)
                    .map_err(broken)?
                    .ok_or_else(|| context.graph.corrupt_cell(column, cell))?;
                let Some(group) = block.group_by(&mut walk, found.group, source) else {
                    break;
                };
                block.edges_of(group, source, |destination, edge| {
                    self.edges += 1;
                    let local = destination as usize & mask;
                    self.reached.insert(local);
                    let value = edge_value::<P::Edge>(kind, weights, edge);
                    let (from, to) = (start + u64::from(source), column_start + local as u64);
                    current.on(from, to);
                    let carried = program.on_arc(from, to, *message, value);
                    program.fold(&mut accumulators[local], carried);
                });
                // The edges of a source may continue in the next block.
                if index.goes_on(number + 1, source) {
                    place = index.offset(number + 1).map(|offset| EdgePosition {
                        block: number + 1,
                        offset,
                        group: Group::Number(0),
                    });
                }
            }
        }
        self.looked += walk.looked();
        let edges = self.edges - edges_before;
        let traffic = context.traffic.of(0);
        if pinned.is_some() {
            let of_edges = cell_bytes * u128::from(edges) / u128::from(cell.edges().max(1));
            let bytes = of_edges as u64 + edges * width as u64;
            traffic.read(DataKind::Edges, Access::Random, bytes);
        }
        if self.cell_cache.all_block_lists {
            let words = (queue.len() * size_of::<u64>()) as u64;
            traffic.read(DataKind::Index, Access::Random, words);
        }
        Ok(())
    }
}

/// Sorts messages by their vertices. Compiled for each type of message, not for each program.
fn sort_by_vertex<M>(messages: &mut [(u64, M)]) {
    messages.sort_unstable_by_key(|(v, _)| *v);
}
