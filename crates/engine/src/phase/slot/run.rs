//! What a run is made of: its targets, its cells in the order of work, and what a worker holds for it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;

use graphmill_graph::Cell;

use super::feed::{Fed, Feed};
use super::parts::{Part, parts};
use super::{Kernel, Slot};
use graphmill_raw::lock;

use crate::accumulators::{Accumulators, fill_new};
use crate::columns::{Columns, Target};
use crate::deal;
use crate::error::EngineError;
use crate::message::{BatchMessages, Messages};
use crate::phase::readers::{Readers, join};
use crate::program::EdgeProgram;
use crate::vertex_array::OpenRows;

/// How far a step has come with a run.
pub(super) enum Advance {
    Worked,
    /// Cells are not read yet.
    Starved,
    /// Messages are not there yet.
    Early,
    Done,
}

/// One cell of a run, or a part of one.
#[derive(Clone, Debug)]
pub(super) struct Item<'p> {
    /// Which target of the run it folds into.
    pub(super) target: usize,
    pub(super) column: usize,
    pub(super) cell: &'p Cell,
    /// The batch whose messages it carries, and the how manieth that is in the order of the run.
    pub(super) from: usize,
    pub(super) number: usize,
    /// Where its bytes and its edges begin and end, from the first of the cell.
    pub(super) part: Part,
    /// A later item of the run carries them too.
    pub(super) again: bool,
    /// The cell's bytes and weights, when they are pinned.
    pub(super) pinned: Option<(&'p [u8], &'p [u8])>,
}

/// A run on its way.
pub(super) struct Run<'p, P: EdgeProgram> {
    pub(super) targets: Vec<Target>,
    pub(super) accumulators: Vec<Accumulators<P::Accumulator>>,
    pub(super) items: Vec<Item<'p>>,
    pub(super) at: usize,
    /// By target: whether an edge was folded into it.
    pub(super) folded: Vec<bool>,
    /// Bytes and edges of the item at hand that are done, and bytes of weights that were passed over.
    pub(super) bytes: usize,
    pub(super) edges: usize,
    pub(super) weights_skipped: usize,
    pub(super) feed: Feed,
    pub(super) readers: Option<Readers>,
    pub(super) messages: Option<(usize, BatchMessages<'p, P::Message>)>,
    /// By target: the rows that a gather asks whether they want messages, kept until they are applied to.
    pub(super) rows: Vec<Option<OpenRows<'p>>>,
}

impl<'p, P: EdgeProgram> Run<'p, P> {
    /// Has the messages of an item at hand, if they are there.
    pub(super) fn feed(
        &mut self,
        all: &'p Messages<P::Message>,
        item: &Item<'p>,
        worker: usize,
    ) -> Result<Fed, EngineError> {
        if let Some((batch, _)) = &self.messages
            && *batch == item.from
        {
            return Ok(Fed::Here);
        }
        if !all.is_there(item.from) {
            return Ok(Fed::Early);
        }
        if all.in_memory() {
            if all.count(item.from) == 0 {
                return Ok(Fed::Nothing);
            }
        } else {
            self.feed.ask(all, worker)?;
            if self.feed.asked <= item.number {
                return Ok(Fed::Early);
            }
            if self.feed.empty.contains(&item.from) {
                return Ok(Fed::Nothing);
            }
        }
        let messages = all.read(item.from, worker)?;
        self.messages = Some((item.from, messages));
        Ok(Fed::Here)
    }
}

impl<'p, P: EdgeProgram> Slot<'p, P> {
    /// The next run, with its cells listed and its accumulators taken; `None` when there is none left, or no
    /// accumulators are free right now.
    pub(super) fn claim(
        &self,
        readers: &mut Vec<Readers>,
        worker: usize,
    ) -> Result<Option<Run<'p, P>>, EngineError> {
        let node = deal::here();
        let (targets, mut accumulators) = {
            let mut free = lock(&self.free);
            let is_room = |run: usize| free.len() >= self.runs[run].1.len();
            let Some(run) = self.deal.take_if(is_room) else {
                return Ok(None);
            };
            let (number, targets) = &self.runs[run];
            ((*number, targets.clone()), free.take(targets.len(), node))
        };
        let (number, targets) = targets;
        fill_new(&mut accumulators, P::IDENTITY, node);
        let (items, froms) = self.items(number, &targets)?;
        self.messages.start(worker)?;
        let mut run = Run {
            targets,
            folded: vec![false; accumulators.len()],
            accumulators,
            items,
            at: 0,
            bytes: 0,
            edges: 0,
            weights_skipped: 0,
            feed: Feed::new(number, froms),
            readers: readers.pop(),
            messages: None,
            rows: Vec::new(),
        };
        run.rows.resize_with(run.targets.len(), || None);
        if let Some(readers) = &mut run.readers {
            let graph = &self.machine.graph;
            let width = graph.edge_kind().bytes() as u64;
            let (mut cells, mut weights) = (Vec::new(), Vec::new());
            for item in run.items.iter().filter(|item| item.pinned.is_none()) {
                let (blocks, all) = (
                    graph.data_extent(item.column, item.cell),
                    graph.weights_extent(item.column, item.cell),
                );
                join(&mut cells, item.part.of_blocks(blocks));
                join(&mut weights, item.part.of_weights(all, width));
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
    fn items(
        &self,
        run: usize,
        targets: &[Target],
    ) -> Result<(Vec<Item<'p>>, Vec<usize>), EngineError> {
        let graph = &self.machine.graph;
        let mut items = Vec::new();
        for (number, target) in targets.iter().enumerate() {
            let mut add = |column: usize, position: usize, cell: &'p Cell, from: usize| {
                if self.messages.is_there(from) && !self.messages.has(from, run) {
                    return Ok(());
                }
                let parts = match self.kernel {
                    Kernel::Scatter => parts(
                        (self.machine, self.pins),
                        (self.messages, self.active),
                        &self.scanned,
                        column,
                        position,
                        cell,
                    )?,
                    Kernel::Gather => vec![Part::whole(cell)],
                };
                if let Some(first) = parts.first() {
                    self.cells.fetch_add(1, Ordering::Relaxed);
                    let sought = u64::from(*first != Part::whole(cell));
                    self.cells_sought.fetch_add(sought, Ordering::Relaxed);
                }
                let pinned = self.pins.cell(self.machine, column, position);
                items.extend(parts.into_iter().map(|part| Item {
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
                        add(target.batch, position, cell, cell.source_batch())?;
                    }
                }
                Kernel::Gather => {
                    let batches = (self.machine).strip_sources(target.batch, target.strip);
                    let row = self.machine.row(target.batch);
                    let first =
                        row.partition_point(|place| (place.column as usize) < batches.start);
                    for place in &row[first..] {
                        let (column, position) = (place.column as usize, place.position as usize);
                        if column >= batches.end {
                            break;
                        }
                        if let Some(cell) = graph.column(column).cells().get(position) {
                            add(column, position, cell, column)?;
                        }
                    }
                }
            }
        }
        let mut froms: Vec<usize> = items.iter().map(|item| item.from).collect();
        froms.sort_unstable();
        froms.dedup();
        let held = self.messages.held();
        let ranks = &self.machine.ranks;
        // A fold that gives the same bits in any order goes on with what comes first.
        let comes = |from: &usize| match P::EXACT && !self.messages.is_there(*from) {
            true => ranks.distance(ranks.owner(*from)),
            false => 0,
        };
        let mut ordered: Vec<(usize, usize)> =
            froms.iter().map(|from| (comes(from), *from)).collect();
        ordered.sort_unstable();
        let froms: Vec<usize> = ordered.into_iter().map(|(_, from)| from).collect();
        put_in_order(&mut items, &froms, held);
        Ok((items, froms))
    }
}

/// Puts the items of a run, which carry the messages of the batches `froms`, in the order of work of a worker that holds those of so many.
/// Compiled once, not for each program.
fn put_in_order(items: &mut [Item<'_>], froms: &[usize], held: usize) {
    let numbers: BTreeMap<usize, usize> = froms.iter().copied().zip(0..).collect();
    for item in items.iter_mut() {
        item.number = numbers.get(&item.from).copied().unwrap_or(0);
    }
    items.sort_by_key(|item| (item.number / held, item.target, item.number));
    // Within one turn the targets come one after the other, so only the last of them is done with the messages.
    let mut later: BTreeSet<usize> = BTreeSet::new();
    for item in items.iter_mut().rev() {
        item.again = !later.insert(item.from);
    }
}
