//! Encodes the arcs of a full chunk: a counting sort by destination batch, then packing.

use graphmill_storage::{Lease, MemoryBudget};

use crate::codec::varint;
use crate::error::FormatError;
use crate::stream::pair::{LOCAL_BITS_MAX, PADDING, PairLayout};

/// An arc of an open chunk: its destination, and its source as a local number in the low bits.
#[inline(always)]
pub(crate) fn open_arc(source: u64, destination: u64, layout: PairLayout) -> u64 {
    destination << LOCAL_BITS_MAX | source & layout.mask()
}

/// The local number of the source of an arc of an open chunk.
#[inline(always)]
pub(crate) fn local_source(arc: u64) -> usize {
    (arc & ((1 << LOCAL_BITS_MAX) - 1)) as usize
}

/// One worker's counts.
#[derive(Debug)]
pub(crate) struct ChunkPacker {
    layout: PairLayout,
    /// Per destination batch: the arcs, then the position of the next.
    places: Vec<u32>,
    head: Vec<u8>,
    _lease: Lease,
}

impl ChunkPacker {
    /// Bytes of the budget that the counts take; the head of a chunk is at most as long as the chunk.
    pub(crate) fn memory(batches: usize) -> u64 {
        // A run of the head takes at most ten bytes.
        batches as u64 * 16
    }
    pub(crate) fn new(
        budget: &MemoryBudget,
        batches: usize,
        layout: PairLayout,
    ) -> Result<Self, FormatError> {
        let _lease = budget.lease("counts of the arcs of a chunk", Self::memory(batches))?;
        let places = vec![0; batches];
        let head = Vec::new();
        Ok(ChunkPacker {
            layout,
            places,
            head,
            _lease,
        })
    }
    /// Encodes arcs and their data into `out`, the data behind the chunk; returns the bytes of each.
    ///
    /// `out` has room for both. `data` has `data_bytes` bytes for each arc.
    pub(crate) fn encode(
        &mut self,
        arcs: &[u64],
        data: &[u8],
        data_bytes: usize,
        out: &mut [u8],
    ) -> Option<[usize; 2]> {
        let PairLayout { bits, bytes } = self.layout;
        self.places.fill(0);
        for arc in arcs {
            self.places[(arc >> (LOCAL_BITS_MAX + bits)) as usize] += 1;
        }
        self.head.clear();
        self.head.extend((arcs.len() as u32).to_le_bytes());
        let runs = self.places.iter().filter(|&&count| count > 0).count();
        varint::put(&mut self.head, runs as u64);
        let (mut next, mut first) = (0, 0);
        for (batch, place) in self.places.iter_mut().enumerate() {
            let count = std::mem::replace(place, first);
            if count > 0 {
                varint::put(&mut self.head, (batch - next) as u64);
                varint::put(&mut self.head, count.into());
                (next, first) = (batch + 1, first + count);
            }
        }
        let (head, rest) = out.split_at_mut_checked(self.head.len())?;
        head.copy_from_slice(&self.head);
        let (pairs, rest) = rest.split_at_mut_checked(arcs.len() * bytes)?;
        let (padding, sorted) = rest.split_at_mut_checked(PADDING)?;
        padding.fill(0);
        let sorted = sorted.get_mut(..arcs.len() * data_bytes)?;
        let lengths = [head.len() + pairs.len() + PADDING, sorted.len()];
        match bytes {
            1 => self.place::<1>(arcs, pairs, (data, sorted), data_bytes),
            2 => self.place::<2>(arcs, pairs, (data, sorted), data_bytes),
            3 => self.place::<3>(arcs, pairs, (data, sorted), data_bytes),
            4 => self.place::<4>(arcs, pairs, (data, sorted), data_bytes),
            _ => self.place::<5>(arcs, pairs, (data, sorted), data_bytes),
        }
        Some(lengths)
    }
    #[inline(always)]
    fn place<const BYTES: usize>(
        &mut self,
        arcs: &[u64],
        pairs: &mut [u8],
        (data, sorted): (&[u8], &mut [u8]),
        data_bytes: usize,
    ) {
        let pairs = pairs.as_chunks_mut::<BYTES>().0;
        match data_bytes {
            0 => self.each::<BYTES>(arcs, pairs, |_, _| ()),
            4 => self.each::<BYTES>(arcs, pairs, mover::<4>(data, sorted)),
            8 => self.each::<BYTES>(arcs, pairs, mover::<8>(data, sorted)),
            bytes => self.each::<BYTES>(arcs, pairs, |from, to| {
                let (from, to) = (from * bytes, to * bytes);
                sorted[to..to + bytes].copy_from_slice(&data[from..from + bytes]);
            }),
        }
    }
    /// Puts each pair in its place; calls `moves(from, to)` for its data.
    #[inline(always)]
    fn each<const BYTES: usize>(
        &mut self,
        arcs: &[u64],
        pairs: &mut [[u8; BYTES]],
        mut moves: impl FnMut(usize, usize),
    ) {
        let (bits, mask) = (self.layout.bits, self.layout.mask());
        for (from, arc) in arcs.iter().enumerate() {
            let place = &mut self.places[(arc >> (LOCAL_BITS_MAX + bits)) as usize];
            let to = *place as usize;
            *place += 1;
            let pair = arc & mask | (arc >> LOCAL_BITS_MAX & mask) << bits;
            if let (Some(out), Some(bytes)) = (pairs.get_mut(to), pair.to_le_bytes().first_chunk())
            {
                *out = *bytes;
            }
            moves(from, to);
        }
    }
}

/// Returns a function that moves data of a fixed length.
#[inline(always)]
fn mover<'d, const BYTES: usize>(
    data: &'d [u8],
    sorted: &'d mut [u8],
) -> impl FnMut(usize, usize) + 'd {
    let (data, sorted) = (
        data.as_chunks::<BYTES>().0,
        sorted.as_chunks_mut::<BYTES>().0,
    );
    |from, to| sorted[to] = data[from]
}
