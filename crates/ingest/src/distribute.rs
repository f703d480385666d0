//! The second reading of the edges: each arc goes to the bucket of its column file.
//!
//! A worker gathers the keys of a bucket in a line of a few cache lines before it packs them into the bucket's open
//! chunk: the hot loop touches one small line a bucket, and packing runs over many keys at once. While a line is packed
//! its keys are counted by *part*, a range of keys, so that the write step can put every key in its place when it reads
//! the bucket.

use graphmill_graph::EdgeKind;
use graphmill_storage::{Budget, Buffer, Disk};

use crate::error::IngestError;
use crate::import::Meter;
use crate::layout::{Columns, Layout, Packing};
use crate::policy::{SelfLoops, bits};
use crate::presence::Ranks;
use crate::spill::{Spill, SpillWriter};
use crate::spool::Edges;

/// Keys of a line.
const LINE: usize = 64;
/// Edges whose indices are looked up before the first of them is placed.
const BLOCK: usize = 256;

/// How an integer id becomes the index of its vertex.
#[derive(Debug)]
pub(crate) enum Indices {
    /// It is one already.
    Same,
    /// It is its rank among the ids that occur.
    Rank(Ranks),
}

impl Indices {
    /// The index of an id; of one that does not occur some number, perhaps no index.
    #[inline(always)]
    pub(crate) fn of(&self, id: u64) -> u64 {
        match self {
            Self::Same => id,
            Self::Rank(ranks) => ranks.rank(id),
        }
    }
}

/// What distribution needs to know, shared by all workers.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) layout: Layout,
    pub(crate) forward: Columns,
    pub(crate) reverse: Option<Columns>,
    pub(crate) packing: Packing,
    pub(crate) weights: EdgeKind,
    pub(crate) directed: bool,
    pub(crate) self_loops: SelfLoops,
    /// Per bucket, the bits a key is shifted by to give its part.
    pub(crate) part_shifts: Vec<u32>,
    /// Parts of a bucket, a power of two.
    pub(crate) parts: usize,
    pub(crate) vertices: u64,
}

impl Plan {
    /// Number of buckets: the files of all sets of columns.
    pub(crate) fn buckets(&self) -> usize {
        self.part_shifts.len()
    }
}

/// One worker's share of the distribution.
#[derive(Debug)]
pub(crate) struct Distributor<'a> {
    plan: &'a Plan,
    indices: &'a Indices,
    meter: &'a Meter<'a>,
    writer: SpillWriter<'a>,
    /// Per bucket a line of keys, and where the packing needs them of weights and of sequence numbers.
    keys: Buffer,
    weights: Buffer,
    sequences: Buffer,
    fill: Vec<u32>,
    /// Per bucket the counts of its parts.
    counts: Buffer,
    sources: [u64; BLOCK],
    destinations: [u64; BLOCK],
    /// Edges taken in.
    edges: u64,
}

/// Bytes that a worker leases besides its chunks.
pub(crate) fn fixed_bytes(buckets: usize, parts: usize, packing: Packing) -> u64 {
    let lines = 1 + usize::from(packing.weight_bytes > 0) + usize::from(packing.sequence_bytes > 0);
    (buckets * (lines * LINE + parts) * size_of::<u64>()) as u64
}

impl<'a> Distributor<'a> {
    /// Leases its lines and counters; the chunks follow as buckets are first written to, `ahead` more to write behind.
    pub(crate) fn new(
        plan: &'a Plan,
        indices: &'a Indices,
        spill: &'a Spill,
        disk: &dyn Disk,
        budget: &Budget,
        ahead: usize,
        meter: &'a Meter<'a>,
    ) -> Result<Self, IngestError> {
        let buckets = plan.buckets();
        let line_bytes = buckets * LINE * size_of::<u64>();
        let lines = |used: bool| budget.buffer("lines of arcs", if used { line_bytes } else { 0 });
        Ok(Self {
            plan,
            indices,
            meter,
            writer: SpillWriter::new(spill, disk, budget, ahead)?,
            keys: lines(true)?,
            weights: lines(plan.packing.weight_bytes > 0)?,
            sequences: lines(plan.packing.sequence_bytes > 0)?,
            fill: vec![0; buckets],
            counts: budget.buffer("counts of arcs", buckets * plan.parts * size_of::<u64>())?,
            sources: [0; BLOCK],
            destinations: [0; BLOCK],
            edges: 0,
        })
    }

    fn take(&mut self, edges: &[(u64, u64)], weights: &[f64], sequence: u64) -> Result<(), IngestError> {
        self.edges += edges.len() as u64;
        for (block, edges) in edges.chunks(BLOCK).enumerate() {
            let from = block * BLOCK;
            let (plan, indices) = (self.plan, self.indices);
            let last = graphmill_raw::simd::dispatch(|| {
                let mut last = 0;
                for (i, &(source, destination)) in edges.iter().enumerate() {
                    let (source, destination) = (indices.of(source), indices.of(destination));
                    last = last.max(source).max(destination);
                    self.sources[i] = source;
                    self.destinations[i] = destination;
                }
                last
            });
            if !edges.is_empty() && last >= plan.vertices {
                return Err(IngestError::input_changed());
            }
            if plan.packing.weight_bytes == 0 && plan.packing.sequence_bytes == 0 {
                for i in 0..edges.len() {
                    self.edge(self.sources[i], self.destinations[i], 0, 0)?;
                }
            } else {
                for i in 0..edges.len() {
                    let weight = weights.get(from + i).map_or(0, |&weight| bits(weight, plan.weights));
                    self.edge(self.sources[i], self.destinations[i], weight, sequence + (from + i) as u64)?;
                }
            }
        }
        Ok(())
    }

    #[inline(always)]
    fn edge(&mut self, source: u64, destination: u64, weight: u64, sequence: u64) -> Result<(), IngestError> {
        let plan = self.plan;
        if source == destination && plan.self_loops == SelfLoops::Drop {
            return Ok(());
        }
        self.arc(&plan.forward, source, destination, weight, sequence)?;
        if !plan.directed && source != destination {
            self.arc(&plan.forward, destination, source, weight, sequence)?;
        }
        if let Some(reverse) = &plan.reverse {
            self.arc(reverse, destination, source, weight, sequence)?;
        }
        Ok(())
    }

    #[inline(always)]
    fn arc(
        &mut self,
        columns: &Columns,
        source: u64,
        destination: u64,
        weight: u64,
        sequence: u64,
    ) -> Result<(), IngestError> {
        let (bucket, key) = self.plan.layout.place(columns, source, destination);
        let fill = self.fill[bucket] as usize;
        let at = bucket * LINE + fill;
        self.keys.typed_mut::<u64>()[at] = key;
        if self.plan.packing.weight_bytes > 0 {
            self.weights.typed_mut::<u64>()[at] = weight;
        }
        if self.plan.packing.sequence_bytes > 0 {
            self.sequences.typed_mut::<u64>()[at] = sequence;
        }
        self.fill[bucket] = fill as u32 + 1;
        if fill + 1 == LINE {
            self.flush(bucket)?;
        }
        Ok(())
    }

    /// Packs the line of a bucket into its open chunk.
    fn flush(&mut self, bucket: usize) -> Result<(), IngestError> {
        let count = std::mem::take(&mut self.fill[bucket]) as usize;
        let line = bucket * LINE..bucket * LINE + count;
        let keys = &self.keys.typed::<u64>()[line.clone()];
        let plan = self.plan;
        let counts = &mut self.counts.typed_mut::<u64>()[bucket * plan.parts..(bucket + 1) * plan.parts];
        let shift = plan.part_shifts[bucket];
        for key in keys {
            counts[(key >> shift) as usize & (plan.parts - 1)] += 1;
        }
        let weights = self.weights.typed::<u64>().get(line.clone()).unwrap_or(&[]);
        let sequences = self.sequences.typed::<u64>().get(line).unwrap_or(&[]);
        let out = self.writer.room(bucket, count * plan.packing.bytes())?;
        plan.packing.pack(keys, weights, sequences, out);
        Ok(())
    }

    /// Flushes all lines and waits for the disk; returns the counts of all parts, the edges taken in, the bytes written.
    pub(crate) fn finish(mut self) -> Result<(Buffer, u64, u64), IngestError> {
        for bucket in 0..self.fill.len() {
            if self.fill[bucket] > 0 {
                self.flush(bucket)?;
            }
        }
        Ok((self.counts, self.edges, self.writer.finish()?))
    }
}

impl Edges for Distributor<'_> {
    fn integers(&mut self, edges: &[(u64, u64)], weights: &[f64], sequence: u64) -> Result<(), IngestError> {
        self.take(edges, weights, sequence)?;
        self.meter.advance(edges.len() as u64);
        Ok(())
    }

    fn texts(&mut self, _: &[(&[u8], &[u8])], _: &[f64], _: u64) -> Result<(), IngestError> {
        Err(IngestError::internal("text ids where indices are expected"))
    }
}
