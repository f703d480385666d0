//! The ranks that work on one graph together: which batches are whose, and what all of them agree on.
//!
//! Every rank carries out the same calls of the same driver in the same order. Vertex rows, active sets and cells are with the rank
//! that owns their batch (DFOGraph, section 2.2); what a driver decides by, sums and how many vertices are active, is the same at
//! all of them, put together in order of batches: so it has the same bits for any number of ranks.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use graphmill_fabric::{Fabric, FabricError, all_gather, all_reduce, protocol_error};
use graphmill_raw::failpoint;
use graphmill_storage::CancelToken;

use crate::error::{EngineError, ensure};
use crate::value::Reduce;

/// This rank and the others.
#[derive(Debug)]
pub(crate) struct Communicator {
    pub(crate) fabric: Option<Arc<dyn Fabric>>,
    rank: usize,
    /// The batch that the part of each rank begins with, and where the last one ends.
    cuts: Vec<usize>,
    stop: CancelToken,
    /// Number of the next call that the ranks compare; `NOT_COMPARED` if they compare none.
    calls: AtomicU64,
}

/// The number of calls of ranks that do not compare them.
const NOT_COMPARED: u64 = u64::MAX;
/// The start of the bytes by which ranks compare a call, so that no other exchange looks like it.
const CALL: &[u8] = b"call ";

impl Communicator {
    /// The ranks of a fabric, which own these runs of batches, or this one alone, which owns all.
    pub(crate) fn new(
        fabric: Option<Arc<dyn Fabric>>,
        cuts: Vec<usize>,
        stop: CancelToken,
    ) -> Self {
        Communicator {
            rank: fabric.as_ref().map_or(0, |fabric| fabric.rank()),
            fabric,
            cuts,
            stop,
            calls: AtomicU64::new(NOT_COMPARED),
        }
    }

    /// Compares the calls of all ranks from now on.
    pub(crate) fn compare_calls(&self) {
        if !self.alone() {
            self.calls.store(0, Ordering::Relaxed);
        }
    }

    /// Fails if another rank makes another call than this one, and the ranks compare calls.
    pub(crate) fn compare_call(&self, ours: &str) -> Result<(), EngineError> {
        let number = self.calls.load(Ordering::Relaxed);
        if number == NOT_COMPARED {
            return Ok(());
        }
        self.calls.store(number + 1, Ordering::Relaxed);
        let differ = |rank, theirs: &str| EngineError::CallsDiffer {
            number,
            rank,
            theirs: theirs.into(),
            ours: ours.into(),
        };
        let mine = [CALL, &number.to_le_bytes(), ours.as_bytes()].concat();
        let called = match self.gather(mine.clone()) {
            Err(EngineError::Fabric(FabricError::Left { rank })) => {
                return Err(differ(rank, "nothing more"));
            }
            called => called?,
        };
        let Some(rank) = called.iter().position(|theirs| *theirs != mine) else {
            return Ok(());
        };
        let name = (called[rank].strip_prefix(CALL))
            .and_then(|theirs| theirs.split_first_chunk::<8>())
            .map(|(_, name)| String::from_utf8_lossy(name));
        Err(differ(rank, name.as_deref().unwrap_or("another function")))
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.cuts.len() - 1
    }
    /// Which one this is.
    pub(crate) fn rank(&self) -> usize {
        self.rank
    }
    /// True if there is no other.
    pub(crate) fn alone(&self) -> bool {
        self.count() == 1
    }
    /// The batches that a rank owns.
    pub(crate) fn of(&self, rank: usize) -> Range<usize> {
        self.cuts[rank]..self.cuts[rank + 1]
    }
    /// The batches that this rank owns.
    pub(crate) fn own(&self) -> Range<usize> {
        self.of(self.rank)
    }
    /// The rank that owns a batch.
    pub(crate) fn owner(&self, batch: usize) -> usize {
        self.cuts.partition_point(|cut| *cut <= batch) - 1
    }

    /// In which turn something comes from a rank.
    pub(crate) fn distance(&self, from: usize) -> usize {
        (self.rank + self.count() - from) % self.count()
    }

    /// Ends what waits for others where the user asked to stop.
    pub(crate) fn check_stop(&self) -> Result<(), EngineError> {
        ensure(!self.stop.is_cancelled(), || EngineError::Stopped)
    }

    /// What each rank says, in order.
    pub(crate) fn gather(&self, mine: Vec<u8>) -> Result<Vec<Vec<u8>>, EngineError> {
        match self.fabric.as_deref().filter(|_| !self.alone()) {
            Some(fabric) => all_gather(fabric, &mine, &|| self.check_stop()),
            None => Ok(vec![mine]),
        }
    }

    /// Adds up, place by place, as many numbers as every rank has.
    pub(crate) fn add_up(&self, numbers: &mut [u64]) -> Result<(), EngineError> {
        match self.fabric.as_deref().filter(|_| !self.alone()) {
            Some(fabric) => all_reduce(fabric, numbers, |a, b| a + b, &|| self.check_stop()),
            None => Ok(()),
        }
    }

    /// The least of what the ranks say.
    pub(crate) fn least(&self, mine: u64) -> Result<u64, EngineError> {
        let payload = self.gather(mine.to_le_bytes().to_vec())?;
        let all = payload
            .iter()
            .map(|payload| u64::take(&mut payload.as_slice()));
        Ok(all.min().flatten().ok_or_else(protocol_error)?)
    }

    /// The sum over all ranks of each of some numbers.
    pub(crate) fn total<const N: usize>(&self, mine: [u64; N]) -> Result<[u64; N], EngineError> {
        Ok(self.agree::<(), 0, N>([], mine)?.1)
    }

    /// Sums numbers over phases, over all batches of a phase in order, and over all ranks.
    ///
    /// Each rank contributes the sum of each of its batches in each phase.
    pub(crate) fn agree<S: Reduce, const K: usize, const N: usize>(
        &self,
        phases: [Vec<S>; K],
        mine: [u64; N],
    ) -> Result<(S, [u64; N]), EngineError> {
        let mut sum = S::ZERO;
        if self.alone() {
            phases.into_iter().flatten().for_each(|of| sum.add(of));
            return Ok((sum, mine));
        }
        let mut payload = Vec::new();
        mine.put(&mut payload);
        for of_batches in &phases {
            (of_batches.len() as u64).put(&mut payload);
            of_batches.iter().for_each(|of| of.put(&mut payload));
        }
        let payload = self.gather(payload)?;
        let mut payload: Vec<&[u8]> = payload.iter().map(|of| &of[..]).collect();
        let mut totals = [0; N];
        for payload in &mut payload {
            totals.add(<[u64; N]>::take(payload).ok_or_else(protocol_error)?);
        }
        failpoint!(SumsOutOfOrder => payload.reverse());
        for _ in phases {
            for payload in &mut payload {
                for _ in 0..u64::take(payload).ok_or_else(protocol_error)? {
                    sum.add(S::take(payload).ok_or_else(protocol_error)?);
                }
            }
        }
        Ok((sum, totals))
    }
}
