//! The slot phase: cells to accumulators, accumulators to rows and the next active set.
//!
//! The work of a pass is a list of *runs*. A run is one or more targets, each a strip with its accumulators, and
//! the cells that fold into them in order. With messages in memory a run is one strip. With messages on disk it is
//! as many strips as the budget holds accumulators for. The run then takes as many batches of messages as a worker
//! holds, folds their cells strip by strip, and takes the next: a batch of messages is read once for all strips, and
//! the accumulators of a strip stay in the cache for many cells. A worker owns the run it works on and streams the run's cells
//! through its own readers while the cells of the run after it are on their way.
//!
//! The fold order of a destination is the graph's, whatever a run is: ascending sources within a strip, strips
//! merged in order by [`Merge`].

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use graphmill_graph::{BlockView, Cell, EdgeKind};
use graphmill_storage::{Job, JobError, Step, Worker};

use crate::accumulators::Accumulators;
use crate::active::{ActiveSet, BatchSet, lock};
use crate::engine::Machine;
use crate::error::EngineError;
use crate::kernel::{self, Scratch, Weights};
use crate::message::{BatchMessages, Messages};
use crate::phase::readers::{Readers, Stream, join};
use crate::pins::Pins;
use crate::program::{Accumulator, Activate, EdgeProgram, EdgeValue, Reach, Sum};
use crate::rows::{Need, Rows};
use crate::vertex_array::OpenRows;

/// Bytes of cells that one step goes through.
const STEP_BYTES: usize = 1 << 20;

/// Which side of an arc folds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kernel {
    /// Destinations fold; a target is a strip of a column.
    Scatter,
    /// Sources fold; a target is a strip of a row, cut where the column of the same batch is cut.
    Gather,
}

/// What a run folds into: one strip of the fold of one batch.
#[derive(Clone, Copy, Debug)]
struct Target {
    batch: usize,
    strip: usize,
}

/// One cell of a run.
#[derive(Clone, Copy, Debug)]
struct Item<'p> {
    /// Which target of the run it folds into.
    target: usize,
    column: usize,
    cell: &'p Cell,
    /// The batch whose messages it carries.
    from: usize,
    /// A later cell of the run carries them too.
    again: bool,
    /// The cell's bytes and weights, when they are pinned.
    pinned: Option<(&'p [u8], &'p [u8])>,
}

/// What slot phases keep from one pass to the next.
pub(crate) struct SlotRoom<A, M> {
    /// All `IDENTITY`.
    free: Vec<Accumulators<A>>,
    pub(crate) readers: Vec<Readers>,
    scratch: Vec<Scratch<M>>,
    /// Targets of one run.
    pub(crate) group: usize,
}

impl<A, M> Default for SlotRoom<A, M> {
    fn default() -> Self {
        SlotRoom {
            free: Vec::new(),
            readers: Vec::new(),
            scratch: Vec::new(),
            group: 0,
        }
    }
}

impl<A: Accumulator, M> SlotRoom<A, M> {
    /// Makes room for `accumulators` sets of `entries` accumulators each, and `readers` pairs of streams.
    pub(crate) fn fill(
        &mut self,
        machine: &Machine,
        identity: A,
        accumulators: usize,
        entries: usize,
        readers: usize,
        stream: Stream,
    ) -> Result<(), EngineError> {
        while self.free.len() < accumulators {
            self.free
                .push(Accumulators::new(&machine.budget, entries, identity)?);
        }
        while self.readers.len() < readers {
            self.readers.push(Readers::new(machine, stream)?);
        }
        Ok(())
    }
}

/// The strips of a batch that are folded but not yet merged.
struct Merge<A> {
    strips: usize,
    next: usize,
    total: Option<Accumulators<A>>,
    waiting: BTreeMap<usize, Accumulators<A>>,
}

/// A slot phase as a job.
pub(crate) struct Slot<'p, P: EdgeProgram> {
    machine: &'p Machine,
    program: &'p P,
    kernel: Kernel,
    needs: Vec<Need>,
    messages: &'p Messages<P::Message>,
    pins: &'p Pins,
    runs: Vec<Vec<Target>>,
    next_run: AtomicUsize,
    merges: Vec<Mutex<Merge<P::Accumulator>>>,
    free: Mutex<Vec<Accumulators<P::Accumulator>>>,
    sums: Vec<Mutex<P::Sum>>,
    activated: &'p ActiveSet,
    workers: Vec<Mutex<WorkerState<'p, P>>>,
    edges: AtomicU64,
    bytes_read: AtomicU64,
}

/// What one worker holds through a pass.
struct WorkerState<'p, P: EdgeProgram> {
    current: Option<Run<'p, P>>,
    ahead: Option<Run<'p, P>>,
    readers: Vec<Readers>,
    scratch: Scratch<P::Message>,
}

/// A run on its way.
struct Run<'p, P: EdgeProgram> {
    targets: Vec<Target>,
    accumulators: Vec<Accumulators<P::Accumulator>>,
    items: Vec<Item<'p>>,
    at: usize,
    /// Bytes and edges of the cell at hand that are done.
    bytes: usize,
    edges: usize,
    readers: Option<Readers>,
    messages: Option<(usize, BatchMessages<'p, P::Message>)>,
    /// By target: the rows that a gather asks whether they want messages, kept until they are applied to.
    rows: Vec<Option<OpenRows<'p>>>,
}

enum Advance {
    Worked,
    Starved,
    Done,
}

impl<'p, P: EdgeProgram> Slot<'p, P> {
    /// The phase with all that it needs; `finish` gives the kept buffers back.
    #[expect(
        clippy::too_many_arguments,
        reason = "a phase names all that it reads and writes"
    )]
    pub(crate) fn new(
        machine: &'p Machine,
        program: &'p P,
        kernel: Kernel,
        needs: Vec<Need>,
        messages: &'p Messages<P::Message>,
        pins: &'p Pins,
        room: &mut SlotRoom<P::Accumulator, P::Message>,
        activated: &'p ActiveSet,
    ) -> Self {
        let batches = machine.batches.len();
        let mut strips = Vec::with_capacity(batches);
        let mut targets = Vec::new();
        for batch in 0..batches {
            let count = strip_count(machine, batch);
            strips.push(count);
            targets.extend((0..count).map(|strip| Target { batch, strip }));
        }
        let group = room.group.max(1);
        let mut runs: Vec<Vec<Target>> = targets.chunks(group).map(<[Target]>::to_vec).collect();
        if group == 1 {
            // The longest run first, so that no worker is left with it at the end.
            runs.sort_by_key(|run| {
                std::cmp::Reverse(
                    run.iter()
                        .map(|target| machine.graph.column(target.batch).edges())
                        .sum::<u64>(),
                )
            });
        }
        let workers = machine.workers.count();
        let mut readers: Vec<Vec<Readers>> = (0..workers).map(|_| Vec::new()).collect();
        for (i, reader) in room.readers.drain(..).enumerate() {
            readers[i % workers].push(reader);
        }
        Slot {
            machine,
            program,
            kernel,
            needs,
            messages,
            pins,
            runs,
            next_run: AtomicUsize::new(0),
            merges: strips
                .into_iter()
                .map(|strips| {
                    Mutex::new(Merge {
                        strips,
                        next: 0,
                        total: None,
                        waiting: BTreeMap::new(),
                    })
                })
                .collect(),
            free: Mutex::new(std::mem::take(&mut room.free)),
            sums: (0..batches).map(|_| Mutex::new(P::Sum::ZERO)).collect(),
            activated,
            workers: readers
                .into_iter()
                .map(|readers| {
                    let scratch = room.scratch.pop().unwrap_or_else(Scratch::new);
                    Mutex::new(WorkerState {
                        current: None,
                        ahead: None,
                        readers,
                        scratch,
                    })
                })
                .collect(),
            edges: AtomicU64::new(0),
            bytes_read: AtomicU64::new(0),
        }
    }

    /// Gives the buffers back; the sum over all batches in order, the edges folded and the bytes read.
    pub(crate) fn finish(
        self,
        room: &mut SlotRoom<P::Accumulator, P::Message>,
    ) -> (P::Sum, u64, u64) {
        room.free = self
            .free
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner);
        for state in self.workers {
            let state = state.into_inner().unwrap_or_else(PoisonError::into_inner);
            room.readers.extend(state.readers);
            room.scratch.push(state.scratch);
        }
        let mut sum = P::Sum::ZERO;
        for part in &self.sums {
            sum.add(*lock(part));
        }
        (sum, self.edges.into_inner(), self.bytes_read.into_inner())
    }

    /// The next run, with its cells listed and its accumulators taken; `None` when there is none left, or no
    /// accumulators are free right now.
    fn claim(
        &self,
        readers: &mut Vec<Readers>,
        worker: usize,
    ) -> Result<Option<Run<'p, P>>, EngineError> {
        let accumulators = {
            let mut free = lock(&self.free);
            let Some(targets) = self.runs.get(self.next_run.load(Ordering::Relaxed)) else {
                return Ok(None);
            };
            if free.len() < targets.len() {
                return Ok(None);
            }
            // The counter moves under the lock, with the accumulators.
            self.next_run.fetch_add(1, Ordering::Relaxed);
            let from = free.len() - targets.len();
            (targets.clone(), free.split_off(from))
        };
        let (targets, accumulators) = accumulators;
        let (items, froms) = self.items(&targets);
        self.messages.expect(froms.into_iter(), worker)?;
        let mut run = Run {
            targets,
            accumulators,
            items,
            at: 0,
            bytes: 0,
            edges: 0,
            readers: readers.pop(),
            messages: None,
            rows: Vec::new(),
        };
        run.rows.resize_with(run.targets.len(), || None);
        if let Some(readers) = &mut run.readers {
            let graph = &self.machine.graph;
            let (mut cells, mut weights) = (Vec::new(), Vec::new());
            for item in run.items.iter().filter(|item| item.pinned.is_none()) {
                join(&mut cells, graph.data_extent(item.column, item.cell));
                join(&mut weights, graph.weights_extent(item.column, item.cell));
            }
            readers.cells.start(cells)?;
            if let Some(reader) = &mut readers.weights {
                reader.start(weights)?;
            }
        }
        Ok(Some(run))
    }

    /// The cells of a run in the order of work, and the batches whose messages they carry. As many of these as a
    /// worker holds are gone through target by target, then the next; each target sees its sources ascend. A cell
    /// whose sources emitted nothing is passed by.
    fn items(&self, targets: &[Target]) -> (Vec<Item<'p>>, Vec<usize>) {
        let graph = &self.machine.graph;
        let mut items = Vec::new();
        for (number, target) in targets.iter().enumerate() {
            let mut add = |column: usize, position: usize, cell: &'p Cell, from: usize| {
                if self.messages.count(from) > 0 {
                    let pinned = self.pins.cell(self.machine, column, position);
                    items.push(Item {
                        target: number,
                        column,
                        cell,
                        from,
                        again: false,
                        pinned,
                    });
                }
            };
            match self.kernel {
                Kernel::Scatter => {
                    let column = graph.column(target.batch);
                    let strip = column.strips().get(target.strip).cloned().unwrap_or(0..0);
                    for (position, cell) in column
                        .cells()
                        .iter()
                        .enumerate()
                        .take(strip.end)
                        .skip(strip.start)
                    {
                        add(target.batch, position, cell, cell.source_batch());
                    }
                }
                Kernel::Gather => {
                    let batches = strip_sources(self.machine, target.batch, target.strip);
                    let row = self.machine.row(target.batch);
                    let first =
                        row.partition_point(|place| (place.column as usize) < batches.start);
                    for place in &row[first..] {
                        let (column, position) = (place.column as usize, place.position as usize);
                        if column >= batches.end {
                            break;
                        }
                        if let Some(cell) = graph.column(column).cells().get(position) {
                            add(column, position, cell, column);
                        }
                    }
                }
            }
        }
        let mut froms: Vec<usize> = items.iter().map(|item| item.from).collect();
        froms.sort_unstable();
        froms.dedup();
        let held = self.messages.held();
        let turn = |item: &Item| froms.partition_point(|from| *from < item.from) / held;
        items.sort_by_cached_key(|item| (turn(item), item.target, item.from));
        // Within one turn the targets come one after the other, so only the last of them is done with the messages.
        let mut later: BTreeSet<usize> = BTreeSet::new();
        for item in items.iter_mut().rev() {
            item.again = !later.insert(item.from);
        }
        (items, froms)
    }

    /// Works on a run until a step's worth is done, its stream runs dry, or it is through.
    fn advance(
        &self,
        run: &mut Run<'p, P>,
        scratch: &mut Scratch<P::Message>,
        worker: usize,
    ) -> Result<Advance, EngineError> {
        let mut worked = 0;
        let mut edges = 0;
        let outcome = loop {
            let Some(item) = run.items.get(run.at).copied() else {
                break Advance::Done;
            };
            if worked >= STEP_BYTES {
                break Advance::Worked;
            }
            if run
                .messages
                .as_ref()
                .is_none_or(|(batch, _)| *batch != item.from)
            {
                let messages = self.messages.read(item.from, worker)?;
                run.messages = Some((item.from, messages));
            }
            let Some((_, messages)) = &run.messages else {
                break Advance::Starved;
            };
            let left = item.cell.data_bytes() as usize - run.bytes;
            let (bytes, weights) = match (item.pinned, &mut run.readers) {
                (Some((bytes, weights)), _) => (&bytes[run.bytes..], weights),
                (None, Some(readers)) => {
                    let Some(bytes) = readers.cells.front()? else {
                        break Advance::Starved;
                    };
                    let weights = match &mut readers.weights {
                        Some(weights) => weights.front()?.unwrap_or(&[]),
                        None => &[],
                    };
                    (&bytes[..bytes.len().min(left)], weights)
                }
                (None, None) => return Err(EngineError::NoReaders),
            };
            let offset = self
                .machine
                .global_offset(item.cell.source_batch(), item.column);
            let parsed = BlockView::parse(bytes, offset)
                .map_err(|error| self.machine.broken(item.column, item.cell, &error))?;
            let Some((block, used)) = parsed else {
                if bytes.len() == left {
                    return Err(self
                        .machine
                        .graph
                        .broken_cell(item.column, item.cell)
                        .into());
                }
                break Advance::Starved;
            };
            let from = if item.pinned.is_some() { run.edges } else { 0 };
            let Some(weights) = weights_of::<P>(self.machine, weights, from, block.edges()) else {
                break Advance::Starved;
            };
            let accumulators = &mut run.accumulators[item.target];
            let slots = messages.slots();
            let folded = match self.kernel {
                Kernel::Scatter if slots.sparse && !slots.any_of(&block) => Ok(0),
                Kernel::Scatter => {
                    let mask = 1usize << self.machine.batches.bits(run.targets[item.target].batch);
                    kernel::scatter(
                        self.program,
                        &block,
                        slots,
                        weights,
                        &mut accumulators[..mask],
                        scratch,
                    )
                }
                Kernel::Gather => {
                    let batch = run.targets[item.target].batch;
                    let rows = &mut run.rows[item.target];
                    // Strips of one batch may be folded by several workers, who cannot share its rows.
                    if P::PULLS && rows.is_none() && strip_count(self.machine, batch) == 1 {
                        let mut io = lock(&self.machine.row_io[worker]);
                        *rows = Some(self.machine.arrays.open(batch, &self.needs, &mut io)?);
                    }
                    match rows {
                        Some(open) => {
                            let mut slices = P::ApplyRows::slices(&mut open.guards);
                            let start = self.machine.batches.start(batch);
                            let wants = |i: usize| {
                                self.program
                                    .wants(start + i as u64, P::ApplyRows::row(&mut slices, i))
                            };
                            kernel::gather(
                                self.program,
                                &block,
                                slots,
                                weights,
                                accumulators,
                                scratch,
                                wants,
                            )
                        }
                        None => kernel::gather(
                            self.program,
                            &block,
                            slots,
                            weights,
                            accumulators,
                            scratch,
                            |_| true,
                        ),
                    }
                }
            };
            let block_edges = block.edges();
            edges += folded.map_err(|_| self.machine.graph.broken_cell(item.column, item.cell))?;
            worked += used;
            run.bytes += used;
            run.edges += block_edges;
            if let (None, Some(readers)) = (item.pinned, &mut run.readers) {
                readers.cells.consume(used);
                if let Some(weights) = &mut readers.weights {
                    weights.consume(block_edges * self.machine.graph.edge_kind().bytes());
                }
            }
            if run.bytes as u64 >= item.cell.data_bytes() {
                run.at += 1;
                run.bytes = 0;
                run.edges = 0;
                let next = run.items.get(run.at);
                if next.is_none_or(|next| next.from != item.from)
                    && let Some((batch, messages)) = run.messages.take()
                {
                    self.messages
                        .give_back(batch, messages, item.again, worker)?;
                }
            }
        };
        self.edges.fetch_add(edges, Ordering::Relaxed);
        Ok(match outcome {
            Advance::Starved if worked > 0 => Advance::Worked,
            outcome => outcome,
        })
    }

    /// Merges the strips of a run into their batches, and applies each batch whose strips are all merged.
    fn settle(&self, mut run: Run<'p, P>, worker: usize) -> Result<Option<Readers>, EngineError> {
        let rows = std::mem::take(&mut run.rows);
        let folded = std::mem::take(&mut run.accumulators);
        for ((target, accumulators), rows) in run.targets.iter().zip(folded).zip(rows) {
            if let Some(total) = self.merge(*target, accumulators) {
                self.apply(target.batch, total, rows, worker)?;
            }
        }
        if let Some(readers) = &mut run.readers {
            self.bytes_read
                .fetch_add(readers.take_bytes_read(), Ordering::Relaxed);
        }
        Ok(run.readers)
    }

    /// Takes in the fold of one strip; the whole fold of its batch once it was the last.
    fn merge(
        &self,
        target: Target,
        accumulators: Accumulators<P::Accumulator>,
    ) -> Option<Accumulators<P::Accumulator>> {
        let merge = &mut *lock(&self.merges[target.batch]);
        if merge.strips == 1 {
            return Some(accumulators);
        }
        merge.waiting.insert(target.strip, accumulators);
        while let Some(mut later) = merge.waiting.remove(&merge.next) {
            merge.next += 1;
            match &mut merge.total {
                None => merge.total = Some(later),
                Some(total) => {
                    for (total, later) in total.iter_mut().zip(&mut *later) {
                        if !later.same(&P::IDENTITY) {
                            self.program.merge(total, *later);
                            *later = P::IDENTITY;
                        }
                    }
                    lock(&self.free).push(later);
                }
            }
        }
        if merge.next == merge.strips {
            merge.total.take()
        } else {
            None
        }
    }

    /// Calls the program's `apply` for a batch and leaves the accumulators as they were before the pass.
    fn apply(
        &self,
        batch: usize,
        mut total: Accumulators<P::Accumulator>,
        rows: Option<OpenRows<'p>>,
        worker: usize,
    ) -> Result<(), EngineError> {
        let mut io = lock(&self.machine.row_io[worker]);
        let mut open = match rows {
            Some(open) => open,
            None => self.machine.arrays.open(batch, &self.needs, &mut io)?,
        };
        let start = self.machine.batches.start(batch);
        let span = self.machine.batches.span(batch) as usize;
        let mut next = self.activated.batch(batch)?;
        let mut reached = BatchSet::default();
        let track = P::REACH == Reach::Reached && !self.machine.arrays.resident(&self.needs);
        if track {
            reached.reserve(span, &self.machine.budget)?;
        }
        let mut sum = P::Sum::ZERO;
        {
            let mut rows = P::ApplyRows::slices(&mut open.guards);
            for (i, accumulator) in total[..span].iter_mut().enumerate() {
                if P::REACH == Reach::Every || !accumulator.same(&P::IDENTITY) {
                    let row = P::ApplyRows::row(&mut rows, i);
                    let (summand, activate) =
                        self.program.apply(start + i as u64, row, *accumulator);
                    sum.add(summand);
                    if activate == Activate::Yes {
                        next.insert(i);
                    }
                    *accumulator = P::IDENTITY;
                    if track {
                        reached.insert(i);
                    }
                }
            }
        }
        drop(next);
        *lock(&self.sums[batch]) = sum;
        // Bits of a destination can say more than the batch has vertices, in a cell that is not what was written.
        if let Some(beyond) = total[span..1usize << self.machine.batches.bits(batch)]
            .iter()
            .position(|a| !a.same(&P::IDENTITY))
        {
            return Err(self
                .machine
                .graph
                .outside_batch(batch, (span + beyond) as u64)
                .into());
        }
        lock(&self.free).push(total);
        self.machine
            .arrays
            .close(open, &self.needs, track.then_some(&reached), &mut io)
    }
}

impl<P: EdgeProgram> Job for Slot<'_, P> {
    fn step(&self, worker: &mut Worker) -> Result<Step, JobError> {
        self.machine.check_stop()?;
        let mut state = lock(&self.workers[worker.index]);
        let WorkerState {
            current,
            ahead,
            readers,
            scratch,
        } = &mut *state;
        let queue = worker.queue.as_mut();
        while let Some(done) = queue.poll() {
            let mut done = Some(done);
            for run in [&mut *current, &mut *ahead].into_iter().flatten() {
                if let (Some(readers), Some(mine)) = (&mut run.readers, done.take()) {
                    done = readers.accept(mine)?;
                }
            }
        }
        if current.is_none() {
            *current = match ahead.take() {
                Some(run) => Some(run),
                None => self.claim(readers, worker.index)?,
            };
        }
        let Some(run) = current else {
            let left = self.next_run.load(Ordering::Relaxed) < self.runs.len();
            return Ok(if left { Step::Waiting } else { Step::Finished });
        };
        // Streaming a run ahead keeps the disk busy, but a run held back keeps another worker idle at the end.
        let left = self
            .runs
            .len()
            .saturating_sub(self.next_run.load(Ordering::Relaxed));
        if ahead.is_none() && !readers.is_empty() && left > self.workers.len() {
            *ahead = self.claim(readers, worker.index)?;
        }
        for run in [Some(&mut *run), ahead.as_mut()].into_iter().flatten() {
            if let Some(readers) = &mut run.readers {
                readers.pump(queue)?;
            }
        }
        match self.advance(run, scratch, worker.index)? {
            Advance::Worked => Ok(Step::Worked),
            Advance::Starved => Ok(Step::Waiting),
            Advance::Done => {
                if let Some(run) = current.take() {
                    readers.extend(self.settle(run, worker.index)?);
                }
                Ok(Step::Worked)
            }
        }
    }
}

/// Number of strips that the fold of a batch is made of.
fn strip_count(machine: &Machine, batch: usize) -> usize {
    machine.graph.column(batch).strips().len().max(1)
}

/// The source batches that a strip of a column covers, with those whose cells are empty.
fn strip_sources(machine: &Machine, batch: usize, strip: usize) -> std::ops::Range<usize> {
    let column = machine.graph.column(batch);
    let first = |strip: usize| {
        let cells = column.strips().get(strip)?;
        Some(column.cells().get(cells.start)?.source_batch())
    };
    let from = if strip == 0 {
        0
    } else {
        first(strip).unwrap_or(0)
    };
    from..first(strip + 1).unwrap_or(machine.batches.len())
}

/// The weights of the edges of a block, out of `bytes` from edge `from` on; `None` when they have not arrived.
fn weights_of<'w, P: EdgeProgram>(
    machine: &Machine,
    bytes: &'w [u8],
    from: usize,
    edges: usize,
) -> Option<Weights<'w>> {
    if !P::Edge::WEIGHTED {
        return Some(Weights::None);
    }
    Some(match machine.graph.edge_kind() {
        EdgeKind::None => Weights::None,
        EdgeKind::F32 => Weights::F32(bytes.as_chunks().0.get(from..from + edges)?),
        EdgeKind::F64 => Weights::F64(bytes.as_chunks().0.get(from..from + edges)?),
    })
}
