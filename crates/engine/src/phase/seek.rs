//! The sparse pass: when few vertices are active, only their edges are gone to, at a cost in proportion to them.
//!
//! 1. signal: each active vertex emits its message, which is queued at each column that its fan-out list names;
//! 2. each such column, in order: the index of each cell says where a source's edges lie; they fold into
//!    accumulators that are `IDENTITY` everywhere else, and a set remembers which were touched;
//! 3. apply: the touched destinations in order, whose accumulators become `IDENTITY` again.
//!
//! Nothing here walks over all vertices, batches of the graph or cells of a column. Sources are queued in ascending
//! order, so a column folds in the order of the graph, as a scan would; the fold of a column with several strips is
//! cut where its strips are.

use graphmill_graph::{
    BLOCK_EDGES_MAX, BlockView, Cell, EdgeKind, FormatError, Place, SourceIndex,
};
use graphmill_storage::Lease;

use crate::active::{ActiveSet, BatchSet, lock};
use crate::engine::Machine;
use crate::error::EngineError;
use crate::lists::Lists;
use crate::metrics::Superstep;
use crate::pins::Pins;
use crate::program::{Activate, EdgeProgram, EdgeValue, Sum};
use crate::rows::{Need, Rows};

/// What sparse passes keep from one to the next.
pub(crate) struct SeekRoom<P: EdgeProgram> {
    /// `IDENTITY` everywhere between columns.
    accumulators: Vec<P::Accumulator>,
    touched: BatchSet,
    /// Messages by column, sources ascending; empty between passes.
    queues: Vec<Vec<(u64, P::Message)>>,
    /// The columns with messages; empty between passes.
    columns: BatchSet,
    _leases: Vec<Lease>,
}

impl<P: EdgeProgram> Default for SeekRoom<P> {
    fn default() -> Self {
        SeekRoom {
            accumulators: Vec::new(),
            touched: BatchSet::default(),
            queues: Vec::new(),
            columns: BatchSet::default(),
            _leases: Vec::new(),
        }
    }
}

impl<P: EdgeProgram> SeekRoom<P> {
    fn fill(&mut self, machine: &Machine) -> Result<(), EngineError> {
        if self.queues.is_empty() {
            let batches = &machine.batches;
            let entries = (0..batches.len())
                .map(|b| 1usize << batches.bits(b))
                .max()
                .unwrap_or(1);
            let bytes =
                entries * size_of::<P::Accumulator>() + batches.len() * size_of::<Vec<u8>>();
            self._leases
                .push(machine.budget.lease("accumulators", bytes as u64)?);
            self.accumulators = vec![P::IDENTITY; entries];
            self.touched.reserve(entries, &machine.budget)?;
            self.queues.resize_with(batches.len(), Vec::new);
            self.columns.reserve(batches.len(), &machine.budget)?;
        }
        Ok(())
    }
}

/// Messages that one queue entry takes, in bytes.
fn entry_bytes<P: EdgeProgram>() -> u64 {
    size_of::<(u64, P::Message)>() as u64
}

/// Whether the queues of a sparse pass over so many vertices certainly fit in the budget; the lease for them.
pub(crate) fn room<P: EdgeProgram>(machine: &Machine, active: &ActiveSet) -> Option<Lease> {
    let entries = active.len().checked_mul(machine.batches.len() as u64)?;
    // Growing a queue copies it, so twice its entries can be held for a moment.
    machine
        .budget
        .lease(
            "queued messages",
            entries.checked_mul(2 * entry_bytes::<P>())?,
        )
        .ok()
}

/// Both phases of a sparse pass.
#[expect(
    clippy::too_many_arguments,
    reason = "a pass names all that it reads and writes"
)]
pub(crate) fn edges<P: EdgeProgram>(
    machine: &Machine,
    room: &mut SeekRoom<P>,
    pins: &Pins,
    lists: Option<&Lists>,
    program: &P,
    signal_needs: &[Need],
    apply_needs: &[Need],
    active: &ActiveSet,
    activated: &mut ActiveSet,
    report: &mut Superstep,
) -> Result<P::Sum, EngineError> {
    room.fill(machine)?;
    signal(machine, room, pins, program, signal_needs, active, report)?;
    let SeekRoom {
        accumulators,
        touched,
        queues,
        columns,
        ..
    } = room;
    let mut sum = P::Sum::ZERO;
    let mut outcome = Ok(());
    columns.drain(|column| {
        let queue = &mut queues[column];
        if outcome.is_ok() {
            outcome = (|| {
                machine.check_stop()?;
                fold(
                    machine,
                    pins,
                    lists,
                    program,
                    column,
                    queue,
                    accumulators,
                    touched,
                    report,
                )?;
                let one = apply(
                    machine,
                    program,
                    apply_needs,
                    column,
                    accumulators,
                    touched,
                    activated,
                )?;
                sum.add(one);
                Ok(())
            })();
        }
        queue.clear();
    });
    if outcome.is_err() {
        // The pass failed half-way: what it touched must not reach the next one.
        touched.drain(|i| accumulators[i] = P::IDENTITY);
    }
    outcome.map(|()| sum)
}

/// Queues the message of each active vertex at the columns that hold its edges.
fn signal<P: EdgeProgram>(
    machine: &Machine,
    room: &mut SeekRoom<P>,
    pins: &Pins,
    program: &P,
    needs: &[Need],
    active: &ActiveSet,
    report: &mut Superstep,
) -> Result<(), EngineError> {
    let Some(io) = machine.row_io.first() else {
        return Ok(());
    };
    let io = &mut *lock(io);
    for batch in active.batches() {
        let set = active.batch(batch)?;
        let start = machine.batches.start(batch);
        let mut open = machine.arrays.open(batch, needs, io)?;
        let mut failed = None;
        let mut frames = lock(&machine.frames);
        {
            let mut rows = P::SignalRows::slices(&mut open.guards);
            set.for_each(|i| {
                let v = start + i as u64;
                if let Some(message) = program.signal(v, P::SignalRows::row(&mut rows, i)) {
                    report.messages += 1;
                    let queue = |column: usize| {
                        if let Some(queue) = room.queues.get_mut(column) {
                            room.columns.insert(column);
                            queue.push((v, message));
                        }
                    };
                    let queued = match pins.fanout() {
                        Some(table) => table.each(v, queue),
                        None => {
                            let set = machine.graph.forward();
                            machine.graph.fanout_of(set, &mut frames, v, queue)
                        }
                    };
                    failed = failed.take().or(queued.err());
                }
            });
        }
        if let Some(error) = failed {
            return Err(error.into());
        }
        report.bytes_read += frames.take_bytes_read();
        drop(frames);
        machine.arrays.close(open, needs, Some(&set), io)?;
    }
    Ok(())
}

/// Folds the queued messages of a column along the edges of their sources.
#[expect(
    clippy::too_many_arguments,
    reason = "the parts of a room are borrowed one by one"
)]
fn fold<P: EdgeProgram>(
    machine: &Machine,
    pins: &Pins,
    lists: Option<&Lists>,
    program: &P,
    column: usize,
    queue: &[(u64, P::Message)],
    accumulators: &mut [P::Accumulator],
    touched: &mut BatchSet,
    report: &mut Superstep,
) -> Result<(), EngineError> {
    let cells = machine.graph.column(column).cells();
    let mask = (1usize << machine.batches.bits(column)) - 1;
    let accumulators = &mut accumulators[..=mask];
    let mut rest = queue;
    while let Some((first, _)) = rest.first() {
        let batch = machine.batches.batch_of(*first);
        let end = machine.batches.cut(batch + 1);
        let (here, later) = rest.split_at(rest.partition_point(|(source, _)| *source < end));
        rest = later;
        let Ok(position) = cells.binary_search_by_key(&batch, Cell::source_batch) else {
            continue;
        };
        let cell = Sought {
            machine,
            column,
            cell: &cells[position],
            pinned: pins.cell(machine, column, position),
        };
        let start = machine.batches.start(batch);
        let mut take = |message: P::Message, destination: u32, edge: P::Edge| {
            report.edges += 1;
            let local = destination as usize & mask;
            touched.insert(local);
            program.fold(&mut accumulators[local], program.along(message, edge));
        };
        match pins.index(machine, column, position) {
            Some(index) if lists.is_some() && cell.is_ranked(index) => {
                cell.fold_lists::<P>(lists, position, index, here, start, &mut take)?;
            }
            Some(index) => cell.fold::<P>(index, here, start, &mut take, &mut report.bytes_read)?,
            None => {
                let extent = machine.graph.index_extent(column, cell.cell);
                let mut index = Vec::new();
                let _lease = machine
                    .budget
                    .lease("the index of a cell", cell.cell.index_bytes())?;
                let mut frames = lock(&machine.frames);
                frames.read(extent.file, extent.bytes, &mut index)?;
                report.bytes_read += frames.take_bytes_read();
                drop(frames);
                cell.fold::<P>(&index, here, start, &mut take, &mut report.bytes_read)?;
            }
        }
    }
    Ok(())
}

/// One cell whose sources are sought.
struct Sought<'p> {
    machine: &'p Machine,
    column: usize,
    cell: &'p Cell,
    pinned: Option<(&'p [u8], &'p [u8])>,
}

impl Sought<'_> {
    /// Whether the index knows the rank of each source, so that decoded lists can be found.
    fn is_ranked(&self, index: &[u8]) -> bool {
        SourceIndex::parse(index).is_ok_and(|index| index.has_bitmap())
    }

    /// Calls `take` for each edge of each queued source, in order, out of the decoded lists.
    #[inline]
    fn fold_lists<P: EdgeProgram>(
        &self,
        lists: Option<&Lists>,
        position: usize,
        index: &[u8],
        queue: &[(u64, P::Message)],
        start: u64,
        take: &mut impl FnMut(P::Message, u32, P::Edge),
    ) -> Result<(), EngineError> {
        let broken = |error: FormatError| self.machine.broken(self.column, self.cell, &error);
        let index = SourceIndex::parse(index).map_err(broken)?;
        let first = self.machine.graph.column(self.column).cells().first();
        let before = self.cell.first_edge() - first.map_or(0, Cell::first_edge);
        let kind = self.machine.graph.edge_kind();
        let weights = self.pinned.map_or(&[][..], |(_, weights)| weights);
        let (singles, doubles) = (weights.as_chunks::<4>().0, weights.as_chunks::<8>().0);
        for (source, message) in queue {
            let found = index.rank((source - start) as u32);
            let list = found.and_then(|rank| lists?.list(self.column, position, before, rank));
            let Some((list, from)) = list else { continue };
            match kind {
                EdgeKind::F32 if P::Edge::WEIGHTED => {
                    for (destination, weight) in list.iter().zip(singles.get(from..).unwrap_or(&[]))
                    {
                        take(
                            *message,
                            *destination,
                            P::Edge::of_f32(f32::from_le_bytes(*weight)),
                        );
                    }
                }
                EdgeKind::F64 if P::Edge::WEIGHTED => {
                    for (destination, weight) in list.iter().zip(doubles.get(from..).unwrap_or(&[]))
                    {
                        take(
                            *message,
                            *destination,
                            P::Edge::of_f64(f64::from_le_bytes(*weight)),
                        );
                    }
                }
                _ => list
                    .iter()
                    .for_each(|destination| take(*message, *destination, P::Edge::ONE)),
            }
        }
        Ok(())
    }

    /// Calls `take` for each edge of each queued source, in order.
    #[inline]
    fn fold<P: EdgeProgram>(
        &self,
        index: &[u8],
        queue: &[(u64, P::Message)],
        start: u64,
        take: &mut impl FnMut(P::Message, u32, P::Edge),
        bytes_read: &mut u64,
    ) -> Result<(), EngineError> {
        let machine = self.machine;
        let broken = |error: FormatError| machine.broken(self.column, self.cell, &error);
        let index = SourceIndex::parse(index).map_err(broken)?;
        let offset = machine.global_offset(self.cell.source_batch(), self.column);
        // Of a cell that is not pinned, the bytes of the block at hand.
        let mut held = Held::default();
        for (source, message) in queue {
            let source = (source - start) as u32;
            let mut place = index.seek(source);
            while let Some(Place {
                block: number,
                offset: at,
                group,
            }) = place.take()
            {
                let (bytes, weights) = match self.pinned {
                    Some((bytes, weights)) => (
                        bytes.get(at as usize..).unwrap_or(&[]),
                        weights.get(number * self.block_weights()..).unwrap_or(&[]),
                    ),
                    None => {
                        held.block::<P>(self, number, at, index.offset(number + 1), bytes_read)?
                    }
                };
                let (block, _) = BlockView::parse(bytes, offset)
                    .map_err(broken)?
                    .ok_or_else(|| machine.graph.broken_cell(self.column, self.cell))?;
                let Some(group) = group.or_else(|| block.group_of(source)) else {
                    break;
                };
                let kind = machine.graph.edge_kind();
                match kind {
                    EdgeKind::F32 if P::Edge::WEIGHTED => {
                        let weights: &[[u8; 4]] = weights.as_chunks().0;
                        let weight = |edge: usize| {
                            f32::from_le_bytes(weights.get(edge).copied().unwrap_or_default())
                        };
                        block.edges_of(group, source, |d, edge| {
                            take(*message, d, P::Edge::of_f32(weight(edge)))
                        });
                    }
                    EdgeKind::F64 if P::Edge::WEIGHTED => {
                        let weights: &[[u8; 8]] = weights.as_chunks().0;
                        let weight = |edge: usize| {
                            f64::from_le_bytes(weights.get(edge).copied().unwrap_or_default())
                        };
                        block.edges_of(group, source, |d, edge| {
                            take(*message, d, P::Edge::of_f64(weight(edge)))
                        });
                    }
                    _ => block.edges_of(group, source, |d, _| take(*message, d, P::Edge::ONE)),
                }
                // The edges of a source may go on in the next block.
                if group + 1 == block.groups() && index.continues(number + 1) {
                    place = index.offset(number + 1).map(|offset| Place {
                        block: number + 1,
                        offset,
                        group: Some(0),
                    });
                }
            }
        }
        Ok(())
    }

    /// Bytes of the weights of one whole block.
    fn block_weights(&self) -> usize {
        BLOCK_EDGES_MAX * self.machine.graph.edge_kind().bytes()
    }
}

/// The bytes of one block that was read for a seek, and its weights.
#[derive(Default)]
struct Held {
    number: Option<usize>,
    bytes: Vec<u8>,
    weights: Vec<u8>,
}

impl Held {
    /// Block `number` of a cell, which begins at byte `at` of it and ends before `next`, or with the cell.
    fn block<P: EdgeProgram>(
        &mut self,
        sought: &Sought<'_>,
        number: usize,
        at: u64,
        next: Option<u64>,
        bytes_read: &mut u64,
    ) -> Result<(&[u8], &[u8]), EngineError> {
        if self.number != Some(number) {
            let (machine, cell) = (sought.machine, sought.cell);
            self.number = None;
            let mut frames = lock(&machine.frames);
            let data = machine.graph.data_extent(sought.column, cell);
            let next = next.unwrap_or(cell.data_bytes());
            if at > next || next > cell.data_bytes() || next - at > BLOCK_BYTES_MAX {
                return Err(machine.graph.broken_cell(sought.column, cell).into());
            }
            self.bytes.clear();
            frames.read(
                data.file,
                data.bytes.start + at..data.bytes.start + next,
                &mut self.bytes,
            )?;
            self.weights.clear();
            let width = machine.graph.edge_kind().bytes() as u64;
            if P::Edge::WEIGHTED && width > 0 {
                let weights = machine.graph.weights_extent(sought.column, cell);
                let from = weights.bytes.start + (number * sought.block_weights()) as u64;
                let to = weights.bytes.end.min(from + sought.block_weights() as u64);
                frames.read(weights.file, from.min(to)..to, &mut self.weights)?;
            }
            *bytes_read += frames.take_bytes_read();
            self.number = Some(number);
        }
        Ok((&self.bytes, &self.weights))
    }
}

/// No block is longer: two streams of 4,096 fields of 32 bits, a bitmap and the widths.
const BLOCK_BYTES_MAX: u64 = 1 << 16;

/// Applies the touched destinations of a batch, in order.
fn apply<P: EdgeProgram>(
    machine: &Machine,
    program: &P,
    needs: &[Need],
    batch: usize,
    accumulators: &mut [P::Accumulator],
    touched: &mut BatchSet,
    activated: &mut ActiveSet,
) -> Result<P::Sum, EngineError> {
    let Some(io) = machine.row_io.first() else {
        return Ok(P::Sum::ZERO);
    };
    let io = &mut *lock(io);
    let mut open = machine.arrays.open(batch, needs, io)?;
    let start = machine.batches.start(batch);
    let mut sum = P::Sum::ZERO;
    let span = machine.batches.span(batch) as usize;
    let mut outside = None;
    let dirty = if machine.arrays.resident(needs) {
        None
    } else {
        Some(touched.copy(&machine.budget)?)
    };
    {
        let mut next = activated.batch(batch)?;
        let mut rows = P::ApplyRows::slices(&mut open.guards);
        touched.drain(|i| {
            if i >= span {
                outside = Some(i as u64);
                accumulators[i] = P::IDENTITY;
                return;
            }
            let row = P::ApplyRows::row(&mut rows, i);
            let (summand, activate) = program.apply(start + i as u64, row, accumulators[i]);
            sum.add(summand);
            accumulators[i] = P::IDENTITY;
            if activate == Activate::Yes {
                next.insert(i);
            }
        });
    }
    // Bits of a destination can say more than the batch has vertices, in a cell that is not what was written.
    if let Some(local) = outside {
        return Err(machine.graph.outside_batch(batch, local).into());
    }
    activated.recount(batch);
    machine.arrays.close(open, needs, dirty.as_ref(), io)?;
    Ok(sum)
}
