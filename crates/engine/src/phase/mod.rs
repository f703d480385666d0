//! The phases of a pass: leaves that the superstep calls in order.

use std::ops::Range;

use crate::active::{ActiveSet, BatchSet};
use crate::error::EngineError;
use crate::machine::Machine;
use crate::page_file::RowIo;
use crate::program::{Accumulator, Activate, EdgeProgram, Sum};
use crate::rows::{Need, Rows};

pub(crate) mod follow;
pub(crate) mod readers;
pub(crate) mod seek;
pub(crate) mod signal;
pub(crate) mod slot;
pub(crate) mod sought;
pub(crate) mod vertices;

/// Ends a sparse pass for one batch: applies its reached destinations in order, and leaves their accumulators at
/// `IDENTITY`. The batch's part of `reached` is `places`, its first vertex at the start.
#[expect(
    clippy::too_many_arguments,
    reason = "a pass names all that it reads and writes"
)]
fn apply_reached<P: EdgeProgram>(
    machine: &Machine,
    program: &P,
    needs: &[Need],
    batch: usize,
    accumulators: &mut [P::Accumulator],
    reached: &mut BatchSet,
    places: Range<usize>,
    activated: &mut ActiveSet,
    io: &mut RowIo,
) -> Result<P::Sum, EngineError> {
    let mut open = machine.arrays.open(batch, needs, io)?;
    let start = machine.batches.start(batch);
    let mut sum = P::Sum::ZERO;
    let span = machine.batches.span(batch) as usize;
    let mut outside = None;
    let mut dirty = BatchSet::default();
    let track = !machine.arrays.resident(needs);
    if track {
        dirty.reserve(span, &machine.budget)?;
    }
    {
        let mut next = activated.batch(batch)?;
        let mut rows = P::ApplyRows::slices(&mut open.guards);
        reached.drain_part(places.clone(), |place| {
            let i = place - places.start;
            let accumulator = std::mem::replace(&mut accumulators[i], P::IDENTITY);
            if i >= span {
                outside = Some(i as u64);
                return;
            }
            if accumulator.same(&P::IDENTITY) {
                return;
            }
            let row = P::ApplyRows::row(&mut rows, i);
            let (summand, activate) = program.apply(start + i as u64, row, accumulator);
            sum.add(summand);
            if activate == Activate::Yes {
                next.insert(i);
            }
            if track {
                dirty.insert(i);
            }
        });
    }
    // Bits of a destination can say more than the batch has vertices, in a cell that is not what was written.
    if let Some(local) = outside {
        return Err(machine.graph.outside_batch(batch, local).into());
    }
    activated.recount(batch);
    machine
        .arrays
        .close(open, needs, track.then_some(&dirty), io)?;
    Ok(sum)
}
