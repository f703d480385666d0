//! Reads of result rows: the rows of this rank, and the rows that rank 0 requests from others.

use std::ops::Range;

use graphmill_fabric::protocol_error;
use graphmill_raw::{Element, lock};
use zerocopy::IntoBytes;

use crate::context::EngineState;
use crate::engine::Engine;
use crate::error::EngineError;
use crate::state::rows::ColumnAccess;
use crate::state::vertex_array::{ArrayId, ColumnGuard, VertexArray};
use crate::value::Reduce;

impl Engine {
    /// Returns the values of one batch of an array, in order of index.
    ///
    /// Only rank 0 can read a batch of another rank, while the others are in [`serve`].
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
        self.common.arrays.check(&[ColumnAccess::Read(id)])?;
        let EngineState { ranks, wire, .. } = &self.common;
        out.clear();
        let owner = ranks.owner(batch);
        match wire {
            Some(wire) if owner != ranks.rank() => {
                let wire = &mut *lock(wire);
                let asked = CollectRequest::Batch([u64::from(id.number()), batch as u64]);
                wire.send_rows(ranks, owner, &asked.bytes())?;
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
        let needs = [ColumnAccess::Read(id)];
        self.common.arrays.check(&needs)?;
        let mut io = match self.common.row_io.first() {
            Some(io) => lock(io),
            None => return Err(EngineError::ForeignArray),
        };
        let open = self.common.arrays.open(batch, &needs, &mut io)?;
        let span = self.common.batches.span(batch) as usize;
        if let Some(guard) = open.guards.first() {
            show(guard, span);
        }
        Ok(())
    }
}

/// The batches whose rows this rank has.
#[must_use]
pub fn local_batches(engine: &Engine) -> Range<usize> {
    engine.common.ranks.own()
}

/// Serves this rank's batches to rank 0, until rank 0 calls [`stop_serving`].
///
/// # Errors
/// Disk or budget failed, or a rank is lost.
pub fn serve(engine: &Engine) -> Result<(), EngineError> {
    let EngineState { ranks, wire, .. } = &engine.common;
    let Some(wire) = wire else {
        return Ok(());
    };
    let wire = &mut *lock(wire);
    loop {
        let mut asked = [0; 16];
        wire.receive_rows(ranks, 0, &mut asked)?;
        let CollectRequest::Batch([number, batch]) = CollectRequest::of(&asked) else {
            return Ok(());
        };
        if !ranks.own().contains(&(batch as usize)) {
            return Err(protocol_error().into());
        }
        let id = engine.common.arrays.id(number as u32);
        let element = engine.common.arrays.element_bytes(id);
        let mut sent = Ok(());
        engine.show_batch(id, batch as usize, |guard, span| {
            sent = wire.send_rows(ranks, 0, &guard.read::<u8>()[..span * element]);
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
        for rank in 1..ranks.count() {
            wire.send_rows(ranks, rank, &CollectRequest::Nothing.bytes())?;
        }
    }
    Ok(())
}

/// A request of rank 0 to another rank.
enum CollectRequest {
    /// The rows of a batch: the number of the array, and the batch.
    Batch([u64; 2]),
    /// No more.
    Nothing,
}

impl CollectRequest {
    fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        match self {
            CollectRequest::Batch(asked) => asked.put(&mut bytes),
            CollectRequest::Nothing => [u64::MAX; 2].put(&mut bytes),
        }
        bytes
    }

    fn of(mut bytes: &[u8]) -> CollectRequest {
        match <[u64; 2]>::take(&mut bytes) {
            Some(asked) if asked != [u64::MAX; 2] => CollectRequest::Batch(asked),
            _ => CollectRequest::Nothing,
        }
    }
}
