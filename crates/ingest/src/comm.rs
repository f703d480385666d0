//! The ranks that import together. Each reads a part of the input, what they find out is put together at all of them, and each writes
//! a part of the column files: so all know the same at every step, and the graph is the one that a single rank would have written.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;
use std::sync::Arc;

use graphmill_fabric::{Fabric, FramedSender, all_gather, all_reduce, protocol_error, receive_all};
use graphmill_graph::{EdgeFields, EdgeKind, IdType};
use graphmill_storage::{CancelToken, Disk, MemoryBudget};

use crate::error::IngestError;
use crate::options::ImportOptions;
use crate::source::{EdgeSink, EdgeSource, Ids, PieceReader, PieceReport};

/// This rank and the others.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ImportCommunicator<'a> {
    fabric: Option<&'a dyn Fabric>,
    stop: &'a CancelToken,
}

impl<'a> ImportCommunicator<'a> {
    /// The ranks of a fabric; without one this rank alone.
    pub(crate) fn new(fabric: Option<&'a dyn Fabric>, stop: &'a CancelToken) -> Self {
        ImportCommunicator {
            fabric: fabric.filter(|fabric| fabric.ranks() > 1),
            stop,
        }
    }

    /// The way to the others, where there are some.
    pub(crate) fn fabric(&self) -> Option<&'a dyn Fabric> {
        self.fabric
    }
    /// Returns this rank's number.
    pub(crate) fn rank(&self) -> usize {
        self.fabric.map_or(0, Fabric::rank)
    }
    /// Returns the number of ranks.
    pub(crate) fn count(&self) -> usize {
        self.fabric.map_or(1, Fabric::ranks)
    }
    /// True if this rank is the root, which writes the common files.
    pub(crate) fn is_first(&self) -> bool {
        self.rank() == 0
    }

    pub(crate) fn idle(&self) -> Result<(), IngestError> {
        IngestError::check_stop(self.stop)
    }

    /// Gathers the bytes of every rank on all ranks, in order of rank.
    pub(crate) fn gather(&self, mine: Vec<u8>) -> Result<Vec<Vec<u8>>, IngestError> {
        match self.fabric {
            Some(fabric) => all_gather(fabric, &mine, &|| self.idle()),
            None => Ok(vec![mine]),
        }
    }

    /// Gathers a number of every rank on all ranks.
    pub(crate) fn all_gather_u64(&self, mine: u64) -> Result<Vec<u64>, IngestError> {
        let payload = self.gather(mine.to_le_bytes().to_vec())?;
        let number = |payload: Vec<u8>| payload.try_into().map(u64::from_le_bytes);
        payload
            .into_iter()
            .map(|payload| Ok(number(payload).map_err(|_| protocol_error())?))
            .collect()
    }

    /// The sum of what all ranks say.
    pub(crate) fn sum(&self, mine: u64) -> Result<u64, IngestError> {
        Ok(self.all_gather_u64(mine)?.into_iter().sum())
    }
    /// The least of it.
    pub(crate) fn all_reduce_min(&self, mine: u64) -> Result<u64, IngestError> {
        Ok(self.all_gather_u64(mine)?.into_iter().min().unwrap_or(mine))
    }
    /// The sum of what the ranks before this one say.
    pub(crate) fn exclusive_prefix_sum(&self, mine: u64) -> Result<u64, IngestError> {
        Ok(self
            .all_gather_u64(mine)?
            .into_iter()
            .take(self.rank())
            .sum())
    }
    /// True if `mine` is true on all ranks.
    pub(crate) fn all_true(&self, mine: bool) -> Result<bool, IngestError> {
        Ok(self.all_reduce_min(mine.into())? == 1)
    }

    /// Folds what all ranks have at each place, in any order.
    pub(crate) fn reduce(
        &self,
        all_gather_u64: &mut [u64],
        fold: impl Fn(u64, u64) -> u64,
    ) -> Result<(), IngestError> {
        match self.fabric {
            Some(fabric) => all_reduce(fabric, all_gather_u64, fold, &|| self.idle()),
            None => Ok(()),
        }
    }

    /// Adds up what all ranks have at each place.
    pub(crate) fn sum_elementwise(&self, all_gather_u64: &mut [u64]) -> Result<(), IngestError> {
        self.reduce(all_gather_u64, |a, b| a + b)
    }

    /// Adds up each counter over all ranks.
    pub(crate) fn sum_counters<const COUNT: usize>(
        &self,
        counters: [&mut u64; COUNT],
    ) -> Result<(), IngestError> {
        let mut sums = counters.each_ref().map(|counter| **counter);
        self.sum_elementwise(&mut sums)?;
        std::iter::zip(counters, sums).for_each(|(counter, sum)| *counter = sum);
        Ok(())
    }

    /// Adds up what all ranks read, and the self-loops in it.
    pub(crate) fn sum_read(
        &self,
        read: &mut PieceReport,
        loops: &mut u64,
    ) -> Result<(), IngestError> {
        self.sum_counters([
            &mut read.lines,
            &mut read.edges,
            &mut read.comments,
            &mut read.blank,
            &mut read.headers,
            &mut read.skipped,
            loops,
        ])
    }

    /// Sends the bytes of every other rank to the root, which passes them to `take` rank by rank.
    ///
    /// A rank sends bytes by calling the argument of `send`.
    pub(crate) fn send_to_root(
        &self,
        send: impl FnOnce(&mut PayloadWriter<'_>) -> Result<(), IngestError>,
        mut take: impl FnMut(usize, &[u8]) -> Result<(), IngestError>,
    ) -> Result<(), IngestError> {
        match self.is_first() {
            true => {
                (1..self.count()).try_for_each(|from| self.receive_from(from, |b| take(from, b)))
            }
            false => self.send_to(0, send),
        }
    }

    /// Sends bytes to another rank, which [receives](ImportCommunicator::receive_from) them.
    pub(crate) fn send_to(
        &self,
        to: usize,
        send: impl FnOnce(&mut PayloadWriter<'_>) -> Result<(), IngestError>,
    ) -> Result<(), IngestError> {
        let Some(fabric) = self.fabric else {
            return Ok(());
        };
        let mut flow = FramedSender::new(fabric, to);
        send(&mut |bytes| flow.put(bytes, &|| self.idle()))?;
        flow.end(&|| self.idle())
    }

    /// Receives the bytes that another rank sends, and passes them to `take`.
    pub(crate) fn receive_from(
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
    pub(crate) fn check_identical_input(
        &self,
        source: &dyn EdgeSource,
        vertices: Option<&dyn EdgeSource>,
        options: &ImportOptions,
    ) -> Result<(), IngestError> {
        let mut payload = format!("{} {}", options.of_graph(), options.keep_every.is_some());
        for source in [Some(source), vertices].into_iter().flatten() {
            let of_source = (
                source.pieces(),
                source.ids(),
                source.id_type(),
                source.weights(),
                source.vertices(),
            );
            payload += &format!(" {of_source:?} {:?}", source.lengths());
        }
        // A digest, since the text of many files is long, and every rank receives it from all.
        let mut digest = DefaultHasher::new();
        payload.hash(&mut digest);
        let digest = [digest.finish(), payload.len() as u64].map(u64::to_le_bytes);
        let of_ranks = self.gather(digest.concat())?;
        match of_ranks.iter().position(|of_rank| *of_rank != of_ranks[0]) {
            Some(rank) => Err(IngestError::OtherInput { rank }),
            None => Ok(()),
        }
    }

    /// The part of the edges that this rank reads.
    pub(crate) fn part_of(&self, source: &'a dyn EdgeSource) -> SourcePart<'a> {
        let (rank, count) = (self.rank() as u128, self.count() as u128);
        let cut = |number: u128| (u128::from(source.pieces()) * number / count) as u64;
        let pieces = match (source.is_stream(), rank) {
            (false, _) => cut(rank)..cut(rank + 1),
            (true, 0) => 0..source.pieces(),
            (true, _) => 0..0,
        };
        SourcePart { source, pieces }
    }
}

/// A function that sends bytes to another rank.
pub(crate) type PayloadWriter<'s> = dyn FnMut(&[u8]) -> Result<(), IngestError> + 's;

/// A run of the pieces of a source.
#[derive(Debug)]
pub(crate) struct SourcePart<'a> {
    source: &'a dyn EdgeSource,
    pieces: Range<u64>,
}

impl EdgeSource for SourcePart<'_> {
    fn pieces(&self) -> u64 {
        self.pieces.end - self.pieces.start
    }
    fn ids(&self) -> Ids {
        self.source.ids()
    }
    fn is_stream(&self) -> bool {
        self.source.is_stream()
    }
    fn id_type(&self) -> IdType {
        self.source.id_type()
    }
    fn weights(&self) -> EdgeKind {
        self.source.weights()
    }
    fn fields(&self) -> EdgeFields {
        self.source.fields()
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
        budget: &MemoryBudget,
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
        stop: &CancelToken,
        sink: &mut dyn EdgeSink,
    ) -> Result<PieceReport, IngestError> {
        self.reader.read(self.first + piece, stop, sink)
    }
}
