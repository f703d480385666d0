//! The data of edges as stored bits: weights, or records of fields, from a reader to the column file.
//!
//! The data of one edge is a `u128` whose lowest byte is the first stored one. Batches keep its halves apart, so that
//! data of at most 8 bytes moves as words of 64 bits.

use graphmill_graph::EdgeKind;

/// Bytes of the first half of an edge's data.
pub(crate) const HALF_BYTES: usize = size_of::<u64>();

/// The data of consecutive edges.
#[derive(Clone, Copy, Debug, Default)]
pub struct EdgeData<'a> {
    /// The first 8 bytes of each edge; empty if edges have no data.
    pub low: &'a [u64],
    /// The other bytes of each edge; empty unless edges have more than 8.
    pub high: &'a [u64],
}

impl<'a> EdgeData<'a> {
    /// Returns the data of edge `i`; 0 if there is none.
    #[inline(always)]
    #[must_use]
    pub fn get(self, i: usize) -> u128 {
        let half = |half: &[u64]| u128::from(half.get(i).copied().unwrap_or_default());
        half(self.low) | half(self.high) << u64::BITS
    }

    /// Returns the weight of edge `i`, where edges have weights.
    #[must_use]
    pub fn weight(self, i: usize, kind: EdgeKind) -> Option<f64> {
        let is_there = kind.is_weight() && i < self.low.len();
        is_there.then(|| weight_of_bits(self.get(i), kind))
    }

    /// Returns the data from edge `from` on.
    pub(crate) fn skip(self, from: usize) -> Self {
        EdgeData {
            low: self.low.get(from..).unwrap_or_default(),
            high: self.high.get(from..).unwrap_or_default(),
        }
    }
}

/// The data of a batch of edges that grows.
#[derive(Clone, Debug, Default)]
pub struct EdgeDataBatch {
    low: Vec<u64>,
    high: Vec<u64>,
}

impl EdgeDataBatch {
    /// Space for `edges` edges of such data.
    #[must_use]
    pub fn with_capacity(edges: usize, kind: EdgeKind) -> Self {
        let half = |from: usize| Vec::with_capacity(if kind.bytes() > from { edges } else { 0 });
        Self {
            low: half(0),
            high: half(HALF_BYTES),
        }
    }

    /// Appends the data of an edge, of at most 8 bytes.
    #[inline(always)]
    pub(crate) fn push_low(&mut self, data: u64) {
        self.low.push(data);
    }

    /// Appends the data of an edge; without data it does nothing.
    #[inline(always)]
    pub fn push(&mut self, data: u128, kind: EdgeKind) {
        if kind.bytes() > 0 {
            self.low.push(data as u64);
        }
        if kind.bytes() > HALF_BYTES {
            self.high.push((data >> u64::BITS) as u64);
        }
    }

    /// Appends data of at most 8 bytes.
    #[inline(always)]
    pub(crate) fn extend_low(&mut self, data: impl Iterator<Item = u64>) {
        self.low.extend(data);
    }

    /// Removes all.
    pub fn clear(&mut self) {
        self.low.clear();
        self.high.clear();
    }

    /// The data of all edges.
    #[must_use]
    pub fn data(&self) -> EdgeData<'_> {
        EdgeData {
            low: &self.low,
            high: &self.high,
        }
    }
}

/// The bits under which a weight is stored.
#[inline(always)]
#[must_use]
pub fn weight_bits(weight: f64, kind: EdgeKind) -> u64 {
    match kind {
        EdgeKind::F32 => u64::from((weight as f32).to_bits()),
        EdgeKind::None | EdgeKind::F64 | EdgeKind::Record(_) => weight.to_bits(),
    }
}

/// The weight of those bits.
#[inline(always)]
pub(crate) fn weight_of_bits(bits: u128, kind: EdgeKind) -> f64 {
    match kind {
        EdgeKind::F32 => f64::from(f32::from_bits(bits as u32)),
        EdgeKind::None | EdgeKind::F64 | EdgeKind::Record(_) => f64::from_bits(bits as u64),
    }
}
