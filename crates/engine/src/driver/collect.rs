//! Reads of result rows: the rows of this rank, and the rows that one rank requests from others.

use std::ops::Range;

use graphmill_fabric::protocol_error;
use graphmill_raw::{Element, lock};
use zerocopy::IntoBytes;

use crate::context::EngineState;
use crate::engine::Engine;
use crate::error::EngineError;
use crate::state::rows::ColumnAccess;
use crate::state::vertex_array::{ArrayId, ColumnGuard, VertexArray};

/// The request that ends [`serve`]; any other is the number of an array, and a batch.
const NOTHING: [u64; 2] = [u64::MAX; 2];

impl Engine {
    /// Returns the values of one batch of an array, in order of index.
    ///
    /// A rank can read a batch of another rank while all others serve it ([`serve`]).
    ///
    /// # Errors
    /// Disk or budget failed, or a rank is lost.
    pub fn read_batch<T: Element>(
        &self,
        array: &VertexArray<T>,
        batch: usize,
        out: &mut Vec<T>,
    ) -> Result<(), EngineError> {
        let id = array.id();
        self.common.arrays.check_own(id)?;
        self.active.history().check_readable()?;
        let EngineState { ranks, wire, .. } = &self.common;
        out.clear();
        let owner = ranks.owner(batch);
        match wire {
            Some(wire) if owner != ranks.rank() => {
                let wire = &mut *lock(wire);
                let asked = [u64::from(id.number), batch as u64];
                wire.send_rows(ranks, owner, asked.as_bytes())?;
                let span = self.common.batches.span(batch) as usize;
                out.resize(span, T::new_zeroed());
                wire.receive_rows(ranks, owner, out.as_mut_bytes())
            }
            _ => self.show_batch(id, batch, |guard, span| {
                out.extend_from_slice(&guard.read::<T>()[..span]);
            }),
        }
    }

    /// Shows a batch of this rank.
    fn show_batch(
        &self,
        id: ArrayId,
        batch: usize,
        show: impl FnOnce(&ColumnGuard<'_>, usize),
    ) -> Result<(), EngineError> {
        if self.broken {
            return Err(EngineError::Broken);
        }
        let io = (self.common.row_io.first()).ok_or(EngineError::ForeignArray)?;
        let needs = [ColumnAccess::Read(id)];
        let open = (self.common.arrays).open(batch, &needs, None, &mut lock(io))?;
        show(&open.guards[0], self.common.batches.span(batch) as usize);
        Ok(())
    }
}

/// The batches whose rows this rank has.
#[must_use]
pub fn local_batches(engine: &Engine) -> Range<usize> {
    engine.common.ranks.own()
}

/// Serves this rank's batches to `reader`, another rank, until that rank calls [`stop_serving`].
///
/// # Errors
/// Disk or budget failed, or a rank is lost.
pub fn serve(engine: &Engine, reader: usize) -> Result<(), EngineError> {
    let EngineState { ranks, wire, .. } = &engine.common;
    let Some(wire) = wire else { return Ok(()) };
    let wire = &mut *lock(wire);
    loop {
        let mut asked = NOTHING;
        wire.receive_rows(ranks, reader, asked.as_mut_bytes())?;
        if asked == NOTHING {
            return Ok(());
        }
        let [number, batch] = asked;
        if !ranks.own().contains(&(batch as usize)) {
            return Err(protocol_error().into());
        }
        let id = engine.common.arrays.id(number as u32);
        let element = engine.common.arrays.row_bytes(ColumnAccess::Read(id));
        let mut sent = Ok(());
        engine.show_batch(id, batch as usize, |guard, span| {
            sent = wire.send_rows(ranks, reader, &guard.read::<u8>()[..span * element]);
        })?;
        sent?;
    }
}

/// Ends [`serve`] on the other ranks.
///
/// # Errors
/// A rank is lost.
pub fn stop_serving(engine: &Engine) -> Result<(), EngineError> {
    let EngineState { ranks, wire, .. } = &engine.common;
    if let Some(wire) = wire {
        let wire = &mut *lock(wire);
        for rank in (0..ranks.count()).filter(|rank| *rank != ranks.rank()) {
            wire.send_rows(ranks, rank, NOTHING.as_bytes())?;
        }
    }
    Ok(())
}
