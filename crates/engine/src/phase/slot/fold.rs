//! A run's cells into its accumulators, block by block as they arrive.

use std::sync::atomic::Ordering;

use graphmill_graph::{BlockView, EdgeKind};

use super::run::{Run, strip_count};
use super::{Kernel, STEP_BYTES, Slot};
use crate::active::lock;
use crate::error::EngineError;
use crate::kernel::{self, Scratch, Weights};
use crate::machine::Machine;
use crate::program::{EdgeProgram, EdgeValue};
use crate::rows::Rows;
pub(super) enum Advance {
    Worked,
    Starved,
    Done,
}

impl<'p, P: EdgeProgram> Slot<'p, P> {
    /// Works on a run until a step's worth is done, its stream runs dry, or it is through.
    pub(super) fn advance(
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
                    let span = self.machine.batches.span(batch) as usize;
                    let accumulators = &mut accumulators[..span];
                    // Strips of one batch may be folded by several workers, who cannot share its rows.
                    if P::PULLS && rows.is_none() && strip_count(self.machine, batch) == 1 {
                        let mut io = lock(&self.machine.row_io[worker]);
                        *rows = Some(self.machine.arrays.open(batch, self.needs, &mut io)?);
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
