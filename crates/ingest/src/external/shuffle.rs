//! The shuffle: records of a bucket file on their way to the rank that owns their bucket.

use graphmill_fabric::{FabricError, Shuffle, protocol_error};
use graphmill_storage::{Lease, MemoryBudget};

use crate::comm::ImportCommunicator;
use crate::error::IngestError;

/// A shuffle of records into the buckets of a temporary file that are spread over ranks.
///
/// All ranks fill the buckets; a record for a bucket of another rank is sent there.
#[derive(Debug)]
pub(crate) struct BucketShuffle<'a> {
    shuffle: Shuffle<'a>,
    comm: ImportCommunicator<'a>,
    rank: usize,
    /// The rank of each bucket; empty: the sender chooses one for each record.
    owners: Vec<usize>,
    _lease: Lease,
}

impl<'a> BucketShuffle<'a> {
    /// Returns the bytes of memory of a shuffle between `ranks` ranks, for chunks of `chunk_bytes` bytes.
    pub(crate) fn memory(ranks: usize, chunk_bytes: usize) -> u64 {
        Shuffle::memory(ranks, chunk_bytes)
    }

    /// Creates the shuffle for chunks of up to `chunk_bytes` bytes; `None` if this is the only rank.
    ///
    /// `chunk_bytes` is the same on all ranks.
    pub(crate) fn new(
        comm: &ImportCommunicator<'a>,
        budget: &MemoryBudget,
        owners: Vec<usize>,
        chunk_bytes: usize,
    ) -> Result<Option<Self>, IngestError> {
        let Some(fabric) = comm.fabric() else {
            return Ok(None);
        };
        let memory = Self::memory(comm.count(), chunk_bytes);
        Ok(Some(BucketShuffle {
            _lease: budget.lease("parcels for other ranks", memory)?,
            shuffle: Shuffle::new(fabric, chunk_bytes)?,
            comm: *comm,
            rank: comm.rank(),
            owners,
        }))
    }

    /// Sends records on if their bucket is another rank's; whether it is.
    pub(crate) fn send(&self, bucket: usize, records: &[u8]) -> Result<bool, IngestError> {
        let owner = self.owners[bucket];
        if owner != self.rank {
            self.shuffle.send(owner, bucket as u64, records)?;
        }
        Ok(owner != self.rank)
    }

    /// Sends a record to another rank, under any number.
    pub(crate) fn send_to(
        &self,
        rank: usize,
        label: u64,
        record: &[u8],
    ) -> Result<(), IngestError> {
        Ok(self.shuffle.send(rank, label, record)?)
    }

    /// Runs `work`, which fills buckets, and receives from other ranks until all ranks are done.
    ///
    /// `take(from, bucket, records)` receives the records that another rank sends.
    pub(crate) fn while_taking<T: Send>(
        &self,
        mut take: impl FnMut(usize, usize, &[u8]) -> Result<(), IngestError> + Send,
        work: impl FnOnce() -> Result<T, IngestError>,
    ) -> Result<T, IngestError> {
        std::thread::scope(|scope| {
            let taking = std::thread::Builder::new()
                .name("parcels".into())
                .spawn_scoped(scope, move || {
                    let guard = GiveUp(&self.shuffle);
                    let taken = self.shuffle.take_in(
                        |from, bucket, records| {
                            let bucket = usize::try_from(bucket).map_err(|_| protocol_error())?;
                            match self.owners.get(bucket) {
                                Some(owner) if *owner == self.rank => take(from, bucket, records),
                                None if self.owners.is_empty() => take(from, bucket, records),
                                _ => Err(protocol_error().into()),
                            }
                        },
                        &|| self.comm.idle(),
                    );
                    std::mem::forget(guard);
                    taken
                })
                .map_err(|error| FabricError::Thread(error.to_string()))?;
            let guard = GiveUp(&self.shuffle);
            let worked = work().and_then(|done| {
                self.shuffle.end()?;
                Ok(done)
            });
            std::mem::forget(guard);
            if let Err(error) = &worked {
                self.shuffle.give_up(&error.to_string());
            }
            let taken = taking.join();
            let taken = taken.unwrap_or_else(|_| Err(IngestError::internal("a thread panicked")));
            // The first failure is the cause of the other.
            match (worked, taken) {
                (Ok(_) | Err(IngestError::Fabric(_)), Err(taken)) => Err(taken),
                (worked, _) => worked,
            }
        })
    }
}

/// A guard that ends the other side of the shuffle if this one panics.
struct GiveUp<'c, 'f>(&'c Shuffle<'f>);

impl Drop for GiveUp<'_, '_> {
    fn drop(&mut self) {
        self.0.give_up("it panicked");
    }
}
