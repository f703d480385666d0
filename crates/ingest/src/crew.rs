//! The ranks that import together. Each reads a part of the input, what they find out is put together at all of them, and each writes
//! a part of the column files: so all know the same at every step, and the graph is the one that a single rank would have written.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;
use std::sync::Arc;

use graphmill_fabric::{
    Courier, Fabric, FabricError, Outflow, all_gather, all_reduce, receive_all,
};
use graphmill_graph::EdgeKind;
use graphmill_storage::{Budget, Disk, Lease, Stop};

use crate::edge::{EdgeSink, EdgeSource, Ids, PieceReader, PieceReport};
use crate::error::IngestError;
use crate::import::ImportOptions;

/// This rank and the others.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Crew<'a> {
    fabric: Option<&'a dyn Fabric>,
    stop: &'a Stop,
}

impl<'a> Crew<'a> {
    /// The ranks of a fabric; without one this rank alone.
    pub(crate) fn new(fabric: Option<&'a dyn Fabric>, stop: &'a Stop) -> Self {
        Crew {
            fabric: fabric.filter(|fabric| fabric.ranks() > 1),
            stop,
        }
    }

    /// The way to the others, where there are some.
    pub(crate) fn fabric(&self) -> Option<&'a dyn Fabric> {
        self.fabric
    }
    /// Which rank this is.
    pub(crate) fn rank(&self) -> usize {
        self.fabric.map_or(0, Fabric::rank)
    }
    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.fabric.map_or(1, Fabric::ranks)
    }
    /// Whether this is the one that writes what there is once.
    pub(crate) fn is_first(&self) -> bool {
        self.rank() == 0
    }

    fn idle(&self) -> Result<(), IngestError> {
        match self.stop.requested() {
            true => Err(IngestError::Stopped),
            false => Ok(()),
        }
    }

    /// What each rank says, in order.
    pub(crate) fn gather(&self, mine: Vec<u8>) -> Result<Vec<Vec<u8>>, IngestError> {
        match self.fabric {
            Some(fabric) => all_gather(fabric, &mine, &|| self.idle()),
            None => Ok(vec![mine]),
        }
    }

    /// The same of a number.
    pub(crate) fn numbers(&self, mine: u64) -> Result<Vec<u64>, IngestError> {
        let said = self.gather(mine.to_le_bytes().to_vec())?;
        let number = |said: Vec<u8>| said.try_into().map(u64::from_le_bytes);
        said.into_iter()
            .map(|said| number(said).map_err(|_| mismatch()))
            .collect()
    }

    /// The sum of what all ranks say.
    pub(crate) fn sum(&self, mine: u64) -> Result<u64, IngestError> {
        Ok(self.numbers(mine)?.into_iter().sum())
    }
    /// The least of it.
    pub(crate) fn least(&self, mine: u64) -> Result<u64, IngestError> {
        Ok(self.numbers(mine)?.into_iter().min().unwrap_or(mine))
    }
    /// The sum of what the ranks before this one say.
    pub(crate) fn before(&self, mine: u64) -> Result<u64, IngestError> {
        Ok(self.numbers(mine)?.into_iter().take(self.rank()).sum())
    }
    /// Whether all ranks say so.
    pub(crate) fn all(&self, mine: bool) -> Result<bool, IngestError> {
        Ok(self.least(mine.into())? == 1)
    }

    /// Folds what all ranks have at each place, in any order.
    pub(crate) fn reduce(
        &self,
        numbers: &mut [u64],
        fold: impl Fn(u64, u64) -> u64,
    ) -> Result<(), IngestError> {
        match self.fabric {
            Some(fabric) => all_reduce(fabric, numbers, fold, &|| self.idle()),
            None => Ok(()),
        }
    }

    /// Adds up what all ranks have at each place.
    pub(crate) fn add_up(&self, numbers: &mut [u64]) -> Result<(), IngestError> {
        self.reduce(numbers, |a, b| a + b)
    }

    /// Has the first rank `take` what each other one `says`, one rank after the other; a rank says it by calling what it is given.
    pub(crate) fn tell_first(
        &self,
        says: impl FnOnce(&mut Says<'_>) -> Result<(), IngestError>,
        mut take: impl FnMut(usize, &[u8]) -> Result<(), IngestError>,
    ) -> Result<(), IngestError> {
        match self.is_first() {
            true => (1..self.count()).try_for_each(|from| self.hear(from, |b| take(from, b))),
            false => self.tell(0, says),
        }
    }

    /// Has another rank [hear](Crew::hear) what this one `says`.
    pub(crate) fn tell(
        &self,
        to: usize,
        says: impl FnOnce(&mut Says<'_>) -> Result<(), IngestError>,
    ) -> Result<(), IngestError> {
        let Some(fabric) = self.fabric else {
            return Ok(());
        };
        let mut flow = Outflow::new(fabric, to);
        says(&mut |bytes| flow.put(bytes, &|| self.idle()))?;
        flow.end(&|| self.idle())
    }

    /// Takes what another rank tells this one.
    pub(crate) fn hear(
        &self,
        from: usize,
        take: impl FnMut(&[u8]) -> Result<(), IngestError>,
    ) -> Result<(), IngestError> {
        match self.fabric {
            Some(fabric) => receive_all(fabric, from, &|| self.idle(), take),
            None => Ok(()),
        }
    }

    /// An error unless all ranks read the same input and were asked for the same graph.
    pub(crate) fn check_same(
        &self,
        source: &dyn EdgeSource,
        vertices: Option<&dyn EdgeSource>,
        options: &ImportOptions,
    ) -> Result<(), IngestError> {
        let mut said = format!("{} {}", options.of_graph(), options.keep_every.is_some());
        for source in [Some(source), vertices].into_iter().flatten() {
            let of_source = (
                source.pieces(),
                source.ids(),
                source.weights(),
                source.vertices(),
            );
            said += &format!(" {of_source:?} {:?}", source.lengths());
        }
        // A digest: of many files there is much to say, and every rank hears it of all.
        let mut digest = DefaultHasher::new();
        said.hash(&mut digest);
        let digest = [digest.finish(), said.len() as u64].map(u64::to_le_bytes);
        let of_ranks = self.gather(digest.concat())?;
        match of_ranks.iter().position(|of_rank| *of_rank != of_ranks[0]) {
            Some(rank) => Err(IngestError::OtherInput { rank }),
            None => Ok(()),
        }
    }

    /// Of so many things in order, those that are this rank's.
    fn part(&self, all: u64) -> Range<u64> {
        let (rank, count) = (self.rank() as u128, self.count() as u128);
        let cut = |number: u128| (u128::from(all) * number / count) as u64;
        cut(rank)..cut(rank + 1)
    }

    /// The part of the edges that this rank reads.
    pub(crate) fn part_of(&self, source: &'a dyn EdgeSource) -> Part<'a> {
        Part {
            source,
            pieces: self.part(source.pieces()),
        }
    }
}

/// How a rank says something.
pub(crate) type Says<'s> = dyn FnMut(&[u8]) -> Result<(), IngestError> + 's;

/// The error of ranks that are not at the same step.
pub(crate) fn mismatch() -> IngestError {
    IngestError::internal("ranks do not do the same together")
}

/// A run of the pieces of a source.
#[derive(Debug)]
pub(crate) struct Part<'a> {
    source: &'a dyn EdgeSource,
    pieces: Range<u64>,
}

impl EdgeSource for Part<'_> {
    fn pieces(&self) -> u64 {
        self.pieces.end - self.pieces.start
    }
    fn ids(&self) -> Ids {
        self.source.ids()
    }
    fn weights(&self) -> EdgeKind {
        self.source.weights()
    }
    fn vertices(&self) -> Option<u64> {
        self.source.vertices()
    }
    fn edges(&self) -> Option<u64> {
        self.source.edges()
    }
    fn amount(&self) -> u64 {
        let (all, part) = (self.source.pieces().max(1), self.pieces());
        (u128::from(self.source.amount()) * u128::from(part) / u128::from(all)) as u64
    }
    fn rereads_fast(&self) -> bool {
        self.source.rereads_fast()
    }
    fn lengths(&self) -> Vec<u64> {
        self.source.lengths()
    }
    fn identity(&self) -> Option<String> {
        let source = self.source.identity()?;
        Some(format!("{source} {:?}", self.pieces))
    }
    fn check_unchanged(&self, disk: &dyn Disk) -> Result<(), IngestError> {
        self.source.check_unchanged(disk)
    }
    fn reader_bytes(&self) -> u64 {
        self.source.reader_bytes()
    }
    fn reader(
        &self,
        disk: &Arc<dyn Disk>,
        budget: &Budget,
    ) -> Result<Box<dyn PieceReader + '_>, IngestError> {
        Ok(Box::new(PartReader {
            reader: self.source.reader(disk, budget)?,
            first: self.pieces.start,
        }))
    }
}

struct PartReader<'a> {
    reader: Box<dyn PieceReader + 'a>,
    first: u64,
}

impl PieceReader for PartReader<'_> {
    fn read(
        &mut self,
        piece: u64,
        stop: &Stop,
        sink: &mut dyn EdgeSink,
    ) -> Result<PieceReport, IngestError> {
        self.reader.read(self.first + piece, stop, sink)
    }
}

/// A temporary file whose buckets belong to ranks, while all of them fill it: what is put in a bucket of another rank goes there.
#[derive(Debug)]
pub(crate) struct Post<'a> {
    courier: Courier<'a>,
    crew: Crew<'a>,
    rank: usize,
    /// The rank of each bucket.
    owners: Vec<usize>,
    _lease: Lease,
}

impl<'a> Post<'a> {
    /// Bytes of memory that it takes between so many ranks, for chunks of so many bytes.
    pub(crate) fn memory(ranks: usize, chunk_bytes: usize) -> u64 {
        Courier::memory(ranks, chunk_bytes)
    }

    /// For chunks of up to so many bytes, the same at all ranks; `None` where there are no others.
    pub(crate) fn new(
        crew: &Crew<'a>,
        budget: &Budget,
        owners: Vec<usize>,
        chunk_bytes: usize,
    ) -> Result<Option<Self>, IngestError> {
        let Some(fabric) = crew.fabric() else {
            return Ok(None);
        };
        let memory = Self::memory(crew.count(), chunk_bytes);
        Ok(Some(Post {
            _lease: budget.lease("parcels for other ranks", memory)?,
            courier: Courier::new(fabric, chunk_bytes)?,
            crew: *crew,
            rank: crew.rank(),
            owners,
        }))
    }

    /// Sends records on if their bucket is another rank's; whether it is.
    pub(crate) fn send(&self, bucket: usize, records: &[u8]) -> Result<bool, IngestError> {
        let owner = self.owners[bucket];
        if owner != self.rank {
            self.courier.send(owner, bucket as u64, records)?;
        }
        Ok(owner != self.rank)
    }

    /// Does `work`, which fills buckets, while `take(from, bucket, records)` takes in what other ranks send, until all ranks have done
    /// theirs.
    pub(crate) fn while_taking<T: Send>(
        &self,
        take: impl FnMut(usize, usize, &[u8]) -> Result<(), IngestError> + Send,
        work: impl FnOnce() -> Result<T, IngestError>,
    ) -> Result<T, IngestError> {
        let mut take = take;
        std::thread::scope(|scope| {
            let taking = std::thread::Builder::new()
                .name("parcels".into())
                .spawn_scoped(scope, move || {
                    let guard = GiveUp(&self.courier);
                    let taken = self.courier.take_in(
                        |from, bucket, records| {
                            let bucket = usize::try_from(bucket).map_err(|_| mismatch())?;
                            match self.owners.get(bucket) {
                                Some(owner) if *owner == self.rank => take(from, bucket, records),
                                _ => Err(mismatch()),
                            }
                        },
                        &|| self.crew.idle(),
                    );
                    std::mem::forget(guard);
                    taken
                })
                .map_err(|error| FabricError::Thread(error.to_string()))?;
            let guard = GiveUp(&self.courier);
            let worked = work().and_then(|done| {
                self.courier.end()?;
                Ok(done)
            });
            std::mem::forget(guard);
            if let Err(error) = &worked {
                self.courier.give_up(&error.to_string());
            }
            let taken = taking.join();
            let taken = taken.unwrap_or_else(|_| Err(IngestError::internal("a thread panicked")));
            // What failed first says why the other did.
            match (worked, taken) {
                (Err(IngestError::Fabric(_)), Err(taken)) => Err(taken),
                (worked, Ok(())) => worked,
                (Err(worked), Err(_)) => Err(worked),
                (Ok(_), Err(taken)) => Err(taken),
            }
        })
    }
}

/// Has the other side of a courier end when this one panics.
struct GiveUp<'c, 'f>(&'c Courier<'f>);

impl Drop for GiveUp<'_, '_> {
    fn drop(&mut self) {
        self.0.give_up("it panicked");
    }
}
