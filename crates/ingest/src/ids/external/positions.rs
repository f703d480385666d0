//! Positions: where in the input the ends of edges are, in buckets that are runs of edges.
//!
//! 1. [`position_starts`] cuts the input in runs whose indices one worker can hold.
//! 2. Leaves put what they resolve into those buckets, in any order.
//! 3. [`join`] puts the indices of a bucket in place and writes its edges, with the weights that the input has for them.
//!
//! A record is the end's place in its bucket, the number of its sorted run and its rank there, four bytes each.

use std::sync::atomic::Ordering::Relaxed;

use graphmill_graph::EdgeKind;

use super::context::{EdgeEnds, SortContext, WRITE_AHEAD};
use crate::comm::ImportCommunicator;
use crate::edge_data::EdgeData;
use crate::error::IngestError;
use crate::external::bucket_file::BucketFile;
use crate::external::edge_file::{EdgeBatchSink, EdgeFileWriter, OrderedEdgeFile, TempEdgeFile};
use crate::options::ImportResources;
use crate::progress::Meter;

/// Bytes of a record of a position: the end's place in its bucket, its sorted run, its rank there.
pub(super) const RESOLVED_BYTES: usize = 12;

/// Returns the first edge of each bucket of the positions of this rank.
///
/// With weights, a bucket consists of whole units of the source, which are read once more for the weights.
///
/// # Errors
/// The indices of a bucket exceed memory even with as many buckets as possible.
pub(super) fn position_starts(
    context: &SortContext<'_>,
    ends: &EdgeEnds<'_>,
) -> Result<Vec<u64>, IngestError> {
    if ends.edges_here == 0 {
        return Ok(Vec::new());
    }
    let edge_bytes = 2 * size_of::<u64>() as u64;
    // Every worker has an open chunk for each bucket of all ranks.
    let buckets_max = (context.shares.positions_max / context.comm.count() as u64).max(1);
    let least = ends.edges_here.div_ceil(buckets_max);
    let edges_max = (context.shares.sort_bytes / edge_bytes)
        .max(least)
        .clamp(1, 1 << 30);
    if edges_max * edge_bytes > context.shares.join_bytes {
        // Half a worker's share holds the indices of a bucket, an eighth the open chunks of all.
        let chunks = 16 * (context.shares.chunk_bytes * context.comm.count()) as u64;
        let squared = (ends.edges_here * edge_bytes).saturating_mul(chunks);
        let share = squared.isqrt();
        return Err(IngestError::too_little_memory(
            "the ends of edges",
            share * context.resources.workers.count() as u64 + context.shares.passing_bytes,
            context.resources.budget,
        ));
    }
    if ends.weights == EdgeKind::None {
        let buckets = 0..ends.edges_here.div_ceil(edges_max);
        let start = |bucket| ends.first + bucket * edges_max;
        return Ok(buckets.map(start).collect());
    }
    let unit_starts: Vec<u64> = ends.source.unit_starts();
    let mut starts = Vec::new();
    for (unit, &start) in unit_starts.iter().enumerate() {
        let all = ends.first + ends.edges_here;
        let end = unit_starts.get(unit + 1).copied().unwrap_or(all);
        if starts.last().is_none_or(|first| end - first > edges_max) {
            starts.push(start);
        }
    }
    Ok(starts)
}

/// The first edge of each bucket of all ranks, and which rank has the bucket.
pub(super) fn of_all_ranks(
    context: &SortContext<'_>,
    mine: &[u64],
) -> Result<(Vec<u64>, Vec<usize>), IngestError> {
    let (mut starts, mut owners) = (Vec::new(), Vec::new());
    for (rank, payload) in context.comm.gather(bytes_of(mine))?.iter().enumerate() {
        starts.extend(numbers_of(payload));
        owners.resize(starts.len(), rank);
    }
    Ok((starts, owners))
}

/// The index of the first id of each sorted run.
pub(super) struct IndexBases {
    /// The bases of each rank, by number.
    of_ranks: Vec<Vec<u64>>,
}

impl IndexBases {
    /// Gathers the bases from the sorted runs of all ranks.
    pub(super) fn of_all_ranks(
        comm: &ImportCommunicator<'_>,
        mine: &[u64],
    ) -> Result<Self, IngestError> {
        let of_ranks = comm.gather(bytes_of(mine))?;
        let of_ranks = of_ranks.iter().map(|payload| numbers_of(payload).collect());
        Ok(IndexBases {
            of_ranks: of_ranks.collect(),
        })
    }

    /// Returns the code of a sorted run of this rank in records.
    pub(super) fn code(comm: &ImportCommunicator<'_>, number: u32) -> Result<u32, IngestError> {
        let code = u64::from(number) * comm.count() as u64 + comm.rank() as u64;
        u32::try_from(code)
            .map_err(|_| IngestError::internal("more than 2^32 parts of a dictionary"))
    }

    fn base(&self, code: u32) -> Option<u64> {
        let ranks = self.of_ranks.len();
        let sorted_runs = self.of_ranks.get(code as usize % ranks)?;
        sorted_runs.get(code as usize / ranks).copied()
    }
}

fn bytes_of(numbers: &[u64]) -> Vec<u8> {
    numbers.iter().flat_map(|n| n.to_le_bytes()).collect()
}

fn numbers_of(bytes: &[u8]) -> impl Iterator<Item = u64> {
    bytes.as_chunks().0.iter().map(|n| u64::from_le_bytes(*n))
}

/// Writes the edges of this rank between indices, in the order of the input.
pub(super) fn join(
    context: &SortContext<'_>,
    ends: &EdgeEnds<'_>,
    positions: &BucketFile,
    starts: &[u64],
    owners: &[usize],
    bases: &IndexBases,
) -> Result<OrderedEdgeFile, IngestError> {
    let ImportResources {
        disk, budget, stop, ..
    } = context.resources;
    let edge_file = TempEdgeFile::create(
        &**disk,
        context.path("edges"),
        context.shares.write_bytes,
        ends.weights,
    )?;
    let unit_starts = match ends.weights {
        EdgeKind::None => Vec::new(),
        EdgeKind::F32 | EdgeKind::F64 | EdgeKind::Record(_) => ends.source.unit_starts(),
    };
    let rank = context.comm.rank();
    let buckets = owners.partition_point(|owner| *owner < rank)
        ..owners.partition_point(|owner| *owner <= rank);
    let meter = Meter::new(ends.progress, "ids: number", ends.edges_here);
    let make = || {
        let reader = ends.source.reader(disk, budget)?;
        let writer = EdgeFileWriter::new(&edge_file, &**disk, budget, WRITE_AHEAD)?;
        Ok((context.chunk_reader()?, reader, writer))
    };
    let tasks = buckets.len() as u64;
    let states = context.run(tasks, make, |(chunk_reader, reader, writer), task| {
        let bucket = buckets.start + task as usize;
        let start = starts[bucket];
        let end = starts.get(bucket + 1).copied().unwrap_or(ends.edges);
        let slots = 2 * (end - start) as usize;
        let what = "indices of the ends of edges";
        let mut indices = budget.buffer(what, slots * size_of::<u64>())?;
        let list = &mut indices.typed_mut::<u64>()[..slots];
        let mut filled = 0;
        positions.read(bucket, chunk_reader, stop, |records| {
            for record in records.as_chunks::<4>().0.as_chunks::<3>().0 {
                let [slot, code, rank] = record.map(u32::from_le_bytes);
                let (Some(slot), Some(base)) = (list.get_mut(slot as usize), bases.base(code))
                else {
                    let what = "an end of an edge lies outside its bucket";
                    return Err(IngestError::internal(what));
                };
                *slot = base + u64::from(rank);
                filled += 1;
            }
            Ok(())
        })?;
        if filled != slots {
            let what = "ends of edges got lost in the dictionary";
            return Err(IngestError::internal(what));
        }
        meter.advance(end - start);
        let mut sink = JoinSink {
            list,
            start,
            writer,
        };
        if ends.weights == EdgeKind::None {
            return sink.take((end - start) as usize, EdgeData::default(), start);
        }
        let from = unit_starts.partition_point(|&unit| unit < start);
        let to = unit_starts.partition_point(|&unit| unit < end);
        (from..to).try_for_each(|unit| ends.source.read(unit as u64, reader, stop, &mut sink))
    })?;
    for (_, _, writer) in states {
        context.written.fetch_add(writer.finish()?, Relaxed);
    }
    Ok(edge_file.arrange(|_| 0))
}

/// Writes edges by index, with the weights that pass by.
struct JoinSink<'a, 'b> {
    list: &'a [u64],
    start: u64,
    writer: &'a mut EdgeFileWriter<'b>,
}

impl JoinSink<'_, '_> {
    /// The `count` edges from number `sequence` on.
    fn take(&mut self, count: usize, data: EdgeData<'_>, sequence: u64) -> Result<(), IngestError> {
        let mut edges = [(0, 0); 256];
        let from = 2 * (sequence - self.start) as usize;
        let list = self.list.get(from..from + 2 * count);
        let list = list.ok_or_else(IngestError::input_changed)?;
        for (block, list) in list.chunks(2 * edges.len()).enumerate() {
            let done = block * edges.len();
            let count = list.len() / 2;
            for (edge, ends) in edges.iter_mut().zip(list.chunks_exact(2)) {
                *edge = (ends[0], ends[1]);
            }
            self.writer
                .integers(0, sequence + done as u64, &edges[..count], data.skip(done))?;
        }
        Ok(())
    }
}

impl EdgeBatchSink for JoinSink<'_, '_> {
    fn integers(
        &mut self,
        edges: &[(u64, u64)],
        data: EdgeData<'_>,
        sequence: u64,
    ) -> Result<(), IngestError> {
        self.take(edges.len(), data, sequence)
    }

    fn texts(
        &mut self,
        edges: &[(&[u8], &[u8])],
        data: EdgeData<'_>,
        sequence: u64,
    ) -> Result<(), IngestError> {
        self.take(edges.len(), data, sequence)
    }
}
