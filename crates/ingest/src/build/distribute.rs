//! The second reading of the edges: each arc goes to the bucket of its column file.
//!
//! A worker gathers the keys of a bucket in a line of a few cache lines before it packs them into the bucket's open
//! chunk: the hot loop touches one small line a bucket, and packing runs over many keys at once. While a line is packed
//! its keys are counted by *part*, a range of keys, so that the write step can put every key in its place when it reads
//! the bucket.

use graphmill_graph::EdgeKind;
use graphmill_raw::AlignedBuffer;
use graphmill_storage::{Buffer, MemoryBudget};

use crate::edge_data::{EdgeData, HALF_BYTES};
use crate::error::IngestError;
use crate::external::bucket_file::BucketWriter;
use crate::external::edge_file::EdgeBatchSink;
use crate::ids::index_map::IndexLookup;
use crate::layout::edge_key::{ColumnFiles, EdgeKeyLayout, RecordPacking};
use crate::options::{Duplicates, SelfLoops};
use crate::progress::Meter;

/// Keys of a line.
const LINE: usize = 64;
/// Edges whose indices are looked up before the first of them is placed.
const BLOCK: usize = 256;

/// The plan of a distribution, shared by all workers.
#[derive(Debug)]
pub(crate) struct DistributionPlan {
    pub(crate) layout: EdgeKeyLayout,
    pub(crate) forward: ColumnFiles,
    pub(crate) reverse: Option<ColumnFiles>,
    pub(crate) packing: RecordPacking,
    pub(crate) weights: EdgeKind,
    pub(crate) directed: bool,
    /// The index of the vertex of the first edge of the input, if edges have vertices.
    pub(crate) first_edge_vertex: Option<u64>,
    pub(crate) self_loops: SelfLoops,
    pub(crate) duplicates: Duplicates,
    /// Edges to be distributed.
    pub(crate) edges: u64,
    /// Per bucket, the bits a key is shifted by to give its part.
    pub(crate) part_shifts: Vec<u32>,
    /// Parts of a bucket, a power of two.
    pub(crate) parts: usize,
    pub(crate) vertices: u64,
}

impl DistributionPlan {
    /// Number of buckets: the files of all sets of columns.
    pub(crate) fn buckets(&self) -> usize {
        self.part_shifts.len()
    }

    /// The sets of columns.
    pub(crate) fn sides(&self) -> impl Iterator<Item = &ColumnFiles> {
        [Some(&self.forward), self.reverse.as_ref()]
            .into_iter()
            .flatten()
    }

    /// The plan that gathers edges by ranges of `span` of the `numbers` destinations, before this plan.
    ///
    /// It stores each edge in one direction and drops none.
    pub(crate) fn by_destination(&self, numbers: u64, span: u64) -> Self {
        let ranges = numbers.div_ceil(span);
        let cut = |range: u64| numbers.min(range * span);
        let layout = EdgeKeyLayout::new((0..=ranges).map(cut).collect());
        let files = (0..ranges as usize).map(|range| range..range + 1);
        let sequenced = self.packing.sequence_bytes > 0;
        Self {
            forward: layout.columns(files.collect(), 0),
            reverse: None,
            packing: RecordPacking::new(layout.key_bits(1), self.weights, sequenced),
            layout,
            directed: true,
            first_edge_vertex: None,
            self_loops: SelfLoops::Keep,
            // Gathered edges stay unsorted.
            part_shifts: vec![0; ranges as usize],
            parts: 1,
            vertices: numbers,
            ..*self
        }
    }

    /// The arcs of one set of columns at most.
    pub(crate) fn arcs_max(&self) -> u64 {
        let is_one = self.directed && self.first_edge_vertex.is_none();
        self.edges * if is_one { 1 } else { 2 }
    }
}

/// The payload of arcs: nothing; data of at most 8 bytes and a sequence number; or more data.
const NONE: u8 = 0;
const LOW: u8 = 1;
const WIDE: u8 = 2;

/// One worker's share of the distribution.
#[derive(Debug)]
pub(crate) struct Distributor<'a> {
    plan: &'a DistributionPlan,
    indices: IndexLookup<'a>,
    meter: &'a Meter<'a>,
    writer: BucketWriter<'a>,
    /// Per bucket a line of keys; of arcs with a payload also of halves of data and sequence numbers.
    keys: Buffer,
    low: Buffer,
    high: Buffer,
    sequences: Buffer,
    fill: Vec<u32>,
    /// Per bucket the counts of its parts.
    counts: Buffer,
    /// Edges taken in.
    edges: u64,
}

/// Bytes that a worker leases in addition to its chunks.
pub(crate) fn fixed_bytes(buckets: usize, parts: usize, packing: RecordPacking) -> u64 {
    let lines = match packing.data_bytes {
        0 if !packing.has_payload() => 1,
        0..=HALF_BYTES => 3,
        _ => 4,
    };
    lines * AlignedBuffer::footprint(buckets * LINE * size_of::<u64>())
        + counts_bytes(buckets, parts)
}

/// Bytes of the counts of all parts.
pub(crate) fn counts_bytes(buckets: usize, parts: usize) -> u64 {
    AlignedBuffer::footprint(buckets * parts * size_of::<u64>())
}

/// Bytes of a full line, which lies in one chunk.
pub(crate) fn line_bytes(packing: RecordPacking) -> usize {
    LINE * packing.bytes()
}

impl<'a> Distributor<'a> {
    /// Leases its lines and counters; chunks and slabs follow as they are first needed.
    pub(crate) fn new(
        plan: &'a DistributionPlan,
        indices: IndexLookup<'a>,
        writer: BucketWriter<'a>,
        budget: &MemoryBudget,
        meter: &'a Meter<'a>,
    ) -> Result<Self, IngestError> {
        let buckets = plan.buckets();
        let line_bytes = buckets * LINE * size_of::<u64>();
        let lines = |used: bool| budget.buffer("lines of arcs", if used { line_bytes } else { 0 });
        Ok(Self {
            plan,
            indices,
            meter,
            writer,
            keys: lines(true)?,
            low: lines(plan.packing.has_payload())?,
            high: lines(plan.packing.data_bytes > HALF_BYTES)?,
            sequences: lines(plan.packing.has_payload())?,
            fill: vec![0; buckets],
            counts: budget.buffer("counts of arcs", buckets * plan.parts * size_of::<u64>())?,
            edges: 0,
        })
    }

    /// The lines and what they are flushed to, apart from what edges are read into.
    fn lines(&mut self) -> WriteCombiner<'_, 'a> {
        WriteCombiner {
            plan: self.plan,
            keys: self.keys.typed_mut(),
            low: self.low.typed_mut(),
            high: self.high.typed_mut(),
            sequences: self.sequences.typed_mut(),
            fill: &mut self.fill,
            counts: self.counts.typed_mut(),
            writer: &mut self.writer,
        }
    }

    /// Adds edges; `sequence` gives each edge's number in the input.
    pub(crate) fn take(
        &mut self,
        edges: &[(u64, u64)],
        data: EdgeData<'_>,
        sequence: impl Fn(usize) -> u64,
    ) -> Result<(), IngestError> {
        self.edges += edges.len() as u64;
        let (plan, indices) = (self.plan, self.indices);
        let mut mapped = [(0, 0); BLOCK];
        let mut lines = self.lines();
        for (block, edges) in edges.chunks(BLOCK).enumerate() {
            let mapped = &mut mapped[..edges.len()];
            let last = indices.map(edges, mapped);
            if last >= plan.first_edge_vertex.unwrap_or(plan.vertices) {
                return Err(IngestError::input_changed());
            }
            let data = data.skip(block * BLOCK);
            let sequence = |i| sequence(block * BLOCK + i);
            match plan.packing.data_bytes {
                0 if !plan.packing.has_payload() => {
                    for (i, &(source, destination)) in mapped.iter().enumerate() {
                        lines.edge::<NONE>(source, destination, 0, sequence(i))?;
                    }
                }
                0..=HALF_BYTES => {
                    let low = |i: usize| u128::from(data.low.get(i).copied().unwrap_or_default());
                    for (i, &(source, destination)) in mapped.iter().enumerate() {
                        lines.edge::<LOW>(source, destination, low(i), sequence(i))?;
                    }
                }
                _ => {
                    for (i, &(source, destination)) in mapped.iter().enumerate() {
                        lines.edge::<WIDE>(source, destination, data.get(i), sequence(i))?;
                    }
                }
            }
        }
        self.meter.advance(edges.len() as u64);
        Ok(())
    }

    /// Flushes all lines and waits for the disk.
    ///
    /// Returns the counts of all parts, the edges it received and the bytes it wrote.
    pub(crate) fn finish(mut self) -> Result<(Buffer, u64, u64), IngestError> {
        let mut lines = self.lines();
        for bucket in 0..lines.fill.len() {
            if lines.fill[bucket] > 0 {
                lines.flush(bucket)?;
            }
        }
        Ok((self.counts, self.edges, self.writer.finish()?))
    }
}

/// The lines of a worker while edges are placed.
struct WriteCombiner<'l, 'a> {
    plan: &'a DistributionPlan,
    keys: &'l mut [u64],
    low: &'l mut [u64],
    high: &'l mut [u64],
    sequences: &'l mut [u64],
    fill: &'l mut [u32],
    counts: &'l mut [u64],
    writer: &'l mut BucketWriter<'a>,
}

impl WriteCombiner<'_, '_> {
    #[inline(always)]
    fn edge<const PAYLOAD: u8>(
        &mut self,
        source: u64,
        destination: u64,
        data: u128,
        sequence: u64,
    ) -> Result<(), IngestError> {
        let plan = self.plan;
        if source == destination && plan.self_loops == SelfLoops::Drop {
            return Ok(());
        }
        if let Some(first) = plan.first_edge_vertex {
            let between = first + sequence;
            if between >= plan.vertices {
                return Err(IngestError::input_changed());
            }
            self.arc::<PAYLOAD>(&plan.forward, source, between, data, sequence)?;
            return self.arc::<PAYLOAD>(&plan.forward, between, destination, data, sequence);
        }
        self.arc::<PAYLOAD>(&plan.forward, source, destination, data, sequence)?;
        if !plan.directed && source != destination {
            self.arc::<PAYLOAD>(&plan.forward, destination, source, data, sequence)?;
        }
        if let Some(reverse) = &plan.reverse {
            self.arc::<PAYLOAD>(reverse, destination, source, data, sequence)?;
        }
        Ok(())
    }

    #[inline(always)]
    fn arc<const PAYLOAD: u8>(
        &mut self,
        columns: &ColumnFiles,
        source: u64,
        destination: u64,
        data: u128,
        sequence: u64,
    ) -> Result<(), IngestError> {
        let (bucket, key) = self.plan.layout.locate(columns, source, destination);
        let fill = self.fill[bucket] as usize;
        let at = bucket * LINE + fill;
        self.keys[at] = key;
        if PAYLOAD != NONE {
            self.low[at] = data as u64;
            self.sequences[at] = sequence;
        }
        if PAYLOAD == WIDE {
            self.high[at] = (data >> u64::BITS) as u64;
        }
        self.fill[bucket] = fill as u32 + 1;
        if fill + 1 == LINE {
            self.flush(bucket)?;
        }
        Ok(())
    }

    /// Packs the line of a bucket into its open chunk.
    fn flush(&mut self, bucket: usize) -> Result<(), IngestError> {
        let plan = self.plan;
        let count = std::mem::take(&mut self.fill[bucket]) as usize;
        let line = bucket * LINE..bucket * LINE + count;
        let keys = &self.keys[line.clone()];
        let counts = &mut self.counts[bucket * plan.parts..(bucket + 1) * plan.parts];
        let shift = plan.part_shifts[bucket];
        for key in keys {
            counts[(key >> shift) as usize & (plan.parts - 1)] += 1;
        }
        let payload = if plan.packing.has_payload() {
            line
        } else {
            0..0
        };
        let out = self.writer.reserve(bucket, count * plan.packing.bytes())?;
        let data = EdgeData {
            low: &self.low[payload.clone()],
            high: self.high.get(payload.clone()).unwrap_or_default(),
        };
        plan.packing.pack(keys, data, &self.sequences[payload], out);
        Ok(())
    }
}

impl EdgeBatchSink for Distributor<'_> {
    fn integers(
        &mut self,
        edges: &[(u64, u64)],
        data: EdgeData<'_>,
        sequence: u64,
    ) -> Result<(), IngestError> {
        self.take(edges, data, |edge| sequence + edge as u64)
    }
}
