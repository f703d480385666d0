//! Parcels from every rank to every other while all of them work.
//!
//! Any thread of a rank sends parcels. It waits while the memory for parcels to that rank is in flight. One thread of each rank receives
//! ([`Shuffle::take_in`]). A receiver sends nothing in response, so some thread always makes progress.
//!
//! Imports use it. The passes of the engine exchange frames in turns instead.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use graphmill_raw::{AlignedBuffer, lock};

use crate::error::FabricError;
use crate::port::{Channel, Fabric, FabricOperation};

/// The channel of parcels.
const CHANNEL: Channel = crate::collective::CHANNEL - 2;
/// Bytes of a parcel's label, which its bytes follow.
const LABEL_BYTES: usize = size_of::<u64>();
/// The label of the last parcel, which has no bytes.
const LAST: u64 = u64::MAX;
/// Number of parcels in flight to one rank.
const FLYING: usize = 4;
/// Maximum time that a sender waits before it checks whether a rank is lost.
const LOOK: Duration = Duration::from_millis(50);
/// Time between two checks for completions of sends.
const REST: Duration = Duration::from_millis(1);

/// The exchange of parcels of one rank with the others.
#[derive(Debug)]
pub struct Shuffle<'f> {
    fabric: &'f dyn Fabric,
    parcel_bytes: usize,
    state: Mutex<ShuffleState>,
    event: Condvar,
}

#[derive(Debug)]
struct ShuffleState {
    /// Free memory for parcels to each rank.
    free: Vec<Vec<AlignedBuffer>>,
    flying: usize,
    /// True if this rank sends no more parcels.
    ended: bool,
    failure: Option<FabricError>,
}

impl<'f> Shuffle<'f> {
    /// Returns the bytes of one shuffle between `ranks` ranks, for parcels of up to `parcel_bytes`.
    pub fn memory(ranks: usize, parcel_bytes: usize) -> u64 {
        let frame = AlignedBuffer::footprint(LABEL_BYTES + parcel_bytes);
        ranks.saturating_sub(1) as u64 * (FLYING as u64 + 1) * frame
    }

    /// Makes a shuffle for parcels of up to `parcel_bytes`.
    ///
    /// All ranks make one. No other code may use the fabric until all ranks have [received](Shuffle::take_in) all parcels.
    ///
    /// # Errors
    /// The system has no memory for the buffers.
    pub fn new(fabric: &'f dyn Fabric, parcel_bytes: usize) -> Result<Self, FabricError> {
        let (rank, ranks) = (fabric.rank(), fabric.ranks());
        let mut free = Vec::new();
        for to in 0..ranks {
            let count = if to == rank { 0 } else { FLYING };
            let frame = || AlignedBuffer::zeroed(LABEL_BYTES + parcel_bytes);
            free.push((0..count).map(|_| frame()).collect::<Result<_, _>>()?);
        }
        Ok(Shuffle {
            fabric,
            parcel_bytes,
            state: Mutex::new(ShuffleState {
                free,
                flying: 0,
                ended: false,
                failure: None,
            }),
            event: Condvar::new(),
        })
    }

    fn state(&self) -> MutexGuard<'_, ShuffleState> {
        lock(&self.state)
    }

    /// Sends a parcel to another rank; waits while there is no memory for it.
    ///
    /// # Errors
    /// A rank is lost, or [`Shuffle::take_in`] has ended with an error.
    pub fn send(&self, to: usize, label: u64, bytes: &[u8]) -> Result<(), FabricError> {
        let misuse = |what| Err(FabricError::Misuse { what });
        if bytes.len() > self.parcel_bytes || label == LAST {
            return misuse("a parcel that is too large");
        }
        self.put(to, label, bytes)
    }

    fn put(&self, to: usize, label: u64, bytes: &[u8]) -> Result<(), FabricError> {
        let mut state = self.state();
        let mut buffer = loop {
            if let Some(failure) = &state.failure {
                return Err(failure.clone());
            }
            if let Some(buffer) = state.free.get_mut(to).and_then(Vec::pop) {
                break buffer;
            }
            let waited = self.event.wait_timeout(state, LOOK);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        };
        state.flying += 1;
        drop(state);
        let end = LABEL_BYTES + bytes.len();
        buffer[..LABEL_BYTES].copy_from_slice(&label.to_le_bytes());
        buffer[LABEL_BYTES..end].copy_from_slice(bytes);
        let send = FabricOperation::Send {
            to,
            channel: CHANNEL,
            buffer,
            range: 0..end,
        };
        self.fabric.submit(send, to as u64);
        Ok(())
    }

    /// Tells all ranks that this one sends no more.
    ///
    /// # Errors
    /// As for [`send`](Shuffle::send).
    pub fn end(&self) -> Result<(), FabricError> {
        let (rank, ranks) = (self.fabric.rank(), self.fabric.ranks());
        (1..ranks).try_for_each(|distance| self.put((rank + distance) % ranks, LAST, &[]))?;
        self.state().ended = true;
        Ok(())
    }

    /// Ends all senders and the receiver of this rank with an error, because the rank failed.
    pub fn give_up(&self, cause: &str) {
        let failure = FabricError::lost(self.fabric.rank(), cause);
        self.state().failure.get_or_insert(failure);
        self.event.notify_all();
    }

    /// Receives parcels and passes each to `take(rank, label, bytes)`, until every rank has ended.
    ///
    /// It also waits until all parcels of this rank are sent. While it waits it calls `idle` repeatedly; an error of `idle` ends it. Parcels
    /// of one rank arrive in the order in which they were sent.
    ///
    /// # Errors
    /// A rank is lost, or `take` or `idle` failed; senders of this rank then end with an error.
    pub fn take_in<E: From<FabricError>>(
        &self,
        mut take: impl FnMut(usize, u64, &[u8]) -> Result<(), E>,
        idle: &dyn Fn() -> Result<(), E>,
    ) -> Result<(), E> {
        let outcome = self.all(&mut take, idle);
        if outcome.is_err() {
            self.give_up("it could not take in what others sent");
        }
        outcome
    }

    fn all<E: From<FabricError>>(
        &self,
        take: &mut impl FnMut(usize, u64, &[u8]) -> Result<(), E>,
        idle: &dyn Fn() -> Result<(), E>,
    ) -> Result<(), E> {
        let (rank, ranks) = (self.fabric.rank(), self.fabric.ranks());
        for from in (0..ranks).filter(|from| *from != rank) {
            let memory = AlignedBuffer::zeroed(LABEL_BYTES + self.parcel_bytes);
            self.receive(from, memory.map_err(FabricError::from)?);
        }
        let mut left = ranks - 1;
        loop {
            let state = self.state();
            if let Some(failure) = &state.failure {
                return Err(failure.clone().into());
            }
            if left == 0 && state.flying == 0 && state.ended {
                return Ok(());
            }
            drop(state);
            let Some(done) = self.fabric.wait(REST) else {
                idle()?;
                continue;
            };
            let (place, bytes) = (done.token as usize, done.result?);
            let Some(buffer) = done.buffer else {
                continue;
            };
            let Some(from) = place.checked_sub(ranks) else {
                let mut state = self.state();
                state.free[place].push(buffer);
                state.flying -= 1;
                drop(state);
                self.event.notify_all();
                continue;
            };
            let Some((label, parcel)) = buffer[..bytes].split_first_chunk() else {
                let what = "a parcel without a label";
                return Err(FabricError::Misuse { what }.into());
            };
            match u64::from_le_bytes(*label) {
                LAST => left -= 1,
                label => {
                    take(from, label, parcel)?;
                    self.receive(from, buffer);
                }
            }
        }
    }

    fn receive(&self, from: usize, buffer: AlignedBuffer) {
        let token = (self.fabric.ranks() + from) as u64;
        let receive = FabricOperation::Receive {
            from,
            channel: CHANNEL,
            buffer,
        };
        self.fabric.submit(receive, token);
    }
}
