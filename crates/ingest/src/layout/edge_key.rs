//! Where an arc goes: the column file that its destination's batch lies in, and the key that orders it there.
//!
//! The key is (destination batch within the file, source, destination within its batch), most significant first; the
//! files are cut so that it fits 64 bits. Sorted by it, the arcs of a file stand in the order of the stored graph: cell by
//! cell, and within a cell by source and destination.

use std::ops::Range;

use graphmill_graph::EdgeKind;

use super::batch_cut::{BatchLookup, destination_bits};
use super::histogram::bits_of;
use crate::edge_data::{EdgeData, HALF_BYTES};
use crate::external::edge_file::word;

/// One set of columns: forward, or reversed.
#[derive(Debug)]
pub(crate) struct ColumnFiles {
    /// The batches of each column file.
    pub(crate) files: Vec<Range<usize>>,
    targets: Vec<KeyPrefix>,
    /// The bucket of the first file.
    pub(crate) bucket_first: usize,
}

/// The bucket and the key prefix of all arcs into one batch.
#[derive(Clone, Copy, Debug)]
struct KeyPrefix {
    bucket: usize,
    /// The key of source 0 and destination 0 of the batch.
    key: u64,
    start: u64,
}

/// The layout of keys: bits of vertices and of destinations within a batch.
#[derive(Debug)]
pub(crate) struct EdgeKeyLayout {
    /// The batch of an index.
    pub(crate) batch_of: BatchLookup,
    vertex_bits: u32,
    /// Bits of a destination in a key.
    pub(crate) destination_bits: u32,
}

impl EdgeKeyLayout {
    /// `cuts`: the boundaries of the batches.
    pub(crate) fn new(cuts: Vec<u64>) -> Self {
        let vertex_bits = bits_of(cuts.last().copied().unwrap_or(0));
        let destination_bits = destination_bits(&cuts);
        Self {
            batch_of: BatchLookup::new(cuts),
            vertex_bits,
            destination_bits,
        }
    }

    /// The boundaries of the batches.
    pub(crate) fn cuts(&self) -> &[u64] {
        &self.batch_of.cuts
    }

    /// A set of columns whose files become the buckets from `bucket_first` on.
    pub(crate) fn columns(&self, files: Vec<Range<usize>>, bucket_first: usize) -> ColumnFiles {
        let mut targets = Vec::with_capacity(self.cuts().len());
        for (file, batches) in files.iter().enumerate() {
            for batch in batches.clone() {
                let key = shl(
                    (batch - batches.start) as u64,
                    self.vertex_bits + self.destination_bits,
                );
                targets.push(KeyPrefix {
                    bucket: bucket_first + file,
                    key,
                    start: self.cuts()[batch],
                });
            }
        }
        ColumnFiles {
            files,
            targets,
            bucket_first,
        }
    }

    /// Returns the bits of the keys of a file of `batches` batches.
    pub(crate) fn key_bits(&self, batches: usize) -> u32 {
        bits_of(batches as u64) + self.vertex_bits + self.destination_bits
    }

    /// The bucket and the key of an arc between two vertex indices.
    #[inline(always)]
    pub(crate) fn locate(
        &self,
        columns: &ColumnFiles,
        source: u64,
        destination: u64,
    ) -> (usize, u64) {
        let target = &columns.targets[self.batch_of.batch(destination)];
        let offset = destination - target.start;
        (
            target.bucket,
            target.key | shl(source, self.destination_bits) | offset,
        )
    }

    /// Destination batch within the file, source, and destination within its batch, of a key.
    #[inline(always)]
    pub(crate) fn parts(&self, key: u64) -> (usize, u64, u64) {
        let batch = shr(key, self.vertex_bits + self.destination_bits);
        let source = shr(key, self.destination_bits) & low_bits(self.vertex_bits);
        (
            batch as usize,
            source,
            key & low_bits(self.destination_bits),
        )
    }

    /// True if the key joins a vertex to itself, in a file that starts with batch `batch_first`.
    pub(crate) fn is_loop(&self, batch_first: usize, key: u64) -> bool {
        let (batch, source, destination) = self.parts(key);
        self.cuts()[batch_first + batch] + destination == source
    }
}

/// `value << bits`, 0 when all bits go.
#[inline(always)]
fn shl(value: u64, bits: u32) -> u64 {
    value.checked_shl(bits).unwrap_or(0)
}

/// `value >> bits`, 0 when all bits go.
#[inline(always)]
fn shr(value: u64, bits: u32) -> u64 {
    value.checked_shr(bits).unwrap_or(0)
}

/// Returns a mask of the low `bits` bits.
#[inline(always)]
pub(crate) fn low_bits(bits: u32) -> u64 {
    shr(u64::MAX, u64::BITS - bits)
}

/// The encoding of arcs in temporary files: the low bytes of key, data and sequence number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RecordPacking {
    /// 1 to 8.
    pub(crate) key_bytes: usize,
    /// 0 to 16.
    pub(crate) data_bytes: usize,
    /// 0 or 8.
    pub(crate) sequence_bytes: usize,
}

impl RecordPacking {
    /// Keys of at most `key_bits`.
    pub(crate) fn new(key_bits: u32, weights: EdgeKind, sequenced: bool) -> Self {
        Self {
            key_bytes: key_bits.div_ceil(8).max(1) as usize,
            data_bytes: weights.bytes(),
            sequence_bytes: if sequenced { 8 } else { 0 },
        }
    }

    /// Bytes of one arc.
    pub(crate) fn bytes(&self) -> usize {
        self.key_bytes + self.data_bytes + self.sequence_bytes
    }

    /// True if a record holds more than the key.
    #[inline(always)]
    pub(crate) fn has_payload(&self) -> bool {
        self.data_bytes + self.sequence_bytes > 0
    }

    /// Packs arcs into `out`, which has space for exactly as many.
    ///
    /// The function ignores data and sequence numbers that the packing does not hold.
    #[inline]
    pub(crate) fn pack(&self, keys: &[u64], data: EdgeData<'_>, sequences: &[u64], out: &mut [u8]) {
        if !self.has_payload() {
            match self.key_bytes {
                1 => pack_keys::<1>(keys, out),
                2 => pack_keys::<2>(keys, out),
                3 => pack_keys::<3>(keys, out),
                4 => pack_keys::<4>(keys, out),
                5 => pack_keys::<5>(keys, out),
                6 => pack_keys::<6>(keys, out),
                7 => pack_keys::<7>(keys, out),
                _ => pack_keys::<8>(keys, out),
            }
            return;
        }
        match self.data_bytes {
            0..=HALF_BYTES => self.pack_payload::<false>(keys, data, sequences, out),
            _ => self.pack_payload::<true>(keys, data, sequences, out),
        }
    }

    #[inline(always)]
    fn pack_payload<const WIDE: bool>(
        &self,
        keys: &[u64],
        data: EdgeData<'_>,
        sequences: &[u64],
        out: &mut [u8],
    ) {
        // A whole word for each part: the next part, or the next record, overwrites the bytes that it does not have.
        let put = |record: &mut [u8; RECORD_BYTES_MAX], i: usize| {
            put_word(record, 0, keys[i]);
            put_word(record, self.key_bytes, data.low[i]);
            if WIDE {
                put_word(record, self.key_bytes + HALF_BYTES, data.high[i]);
            }
            if self.sequence_bytes > 0 {
                put_word(record, self.key_bytes + self.data_bytes, sequences[i]);
            }
        };
        let mut rest = out;
        for i in 0..keys.len() {
            match rest.first_chunk_mut() {
                Some(record) => put(record, i),
                None => {
                    let mut record = [0; RECORD_BYTES_MAX];
                    put(&mut record, i);
                    let last = rest.iter_mut().zip(record).take(self.bytes());
                    last.for_each(|(out, byte)| *out = byte);
                }
            }
            rest = rest.get_mut(self.bytes()..).unwrap_or_default();
        }
    }

    /// Calls `each(key, data, sequence)` for every packed arc.
    #[inline(always)]
    pub(crate) fn unpack(&self, records: &[u8], mut each: impl FnMut(u64, u128, u64)) {
        if !self.has_payload() {
            match self.key_bytes {
                1 => unpack_keys::<1>(records, |key| each(key, 0, 0)),
                2 => unpack_keys::<2>(records, |key| each(key, 0, 0)),
                3 => unpack_keys::<3>(records, |key| each(key, 0, 0)),
                4 => unpack_keys::<4>(records, |key| each(key, 0, 0)),
                5 => unpack_keys::<5>(records, |key| each(key, 0, 0)),
                6 => unpack_keys::<6>(records, |key| each(key, 0, 0)),
                7 => unpack_keys::<7>(records, |key| each(key, 0, 0)),
                _ => unpack_keys::<8>(records, |key| each(key, 0, 0)),
            }
            return;
        }
        match self.data_bytes {
            0..=HALF_BYTES => self.unpack_payload::<false>(records, each),
            _ => self.unpack_payload::<true>(records, each),
        }
    }

    #[inline(always)]
    fn unpack_payload<const WIDE: bool>(
        &self,
        records: &[u8],
        mut each: impl FnMut(u64, u128, u64),
    ) {
        let mask = |bytes: usize| low_bits(8 * bytes as u32);
        let low_bytes = self.data_bytes.min(HALF_BYTES);
        let high_mask = mask(self.data_bytes - low_bytes);
        let masks = [self.key_bytes, low_bytes, self.sequence_bytes].map(mask);
        let mut each = |record: &[u8; RECORD_BYTES_MAX]| {
            let mut data = u128::from(word_at(record, self.key_bytes) & masks[1]);
            if WIDE {
                let high = word_at(record, self.key_bytes + HALF_BYTES) & high_mask;
                data |= u128::from(high) << u64::BITS;
            }
            each(
                word_at(record, 0) & masks[0],
                data,
                word_at(record, self.key_bytes + self.data_bytes) & masks[2],
            );
        };
        let mut rest = records;
        while let Some(record) = rest.first_chunk() {
            each(record);
            rest = &rest[self.bytes()..];
        }
        for last in rest.chunks_exact(self.bytes()) {
            let mut record = [0; RECORD_BYTES_MAX];
            record[..last.len()].copy_from_slice(last);
            each(&record);
        }
    }
}

/// Bytes of the longest record: key, data and sequence number.
const RECORD_BYTES_MAX: usize = 32;

/// The 8 bytes at `at`, at most 24.
#[inline(always)]
fn word_at(record: &[u8; RECORD_BYTES_MAX], at: usize) -> u64 {
    let bytes = record.get(at..).and_then(|rest| rest.first_chunk());
    bytes.map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

/// Writes the 8 bytes at `at`, at most 24.
#[inline(always)]
fn put_word(record: &mut [u8; RECORD_BYTES_MAX], at: usize, word: u64) {
    if let Some(out) = record.get_mut(at..).and_then(|rest| rest.first_chunk_mut()) {
        *out = word.to_le_bytes();
    }
}

/// A little-endian number of at most 8 bytes.
#[inline(always)]
fn pack_keys<const BYTES: usize>(keys: &[u64], mut out: &mut [u8]) {
    for key in keys {
        let bytes = key.to_le_bytes();
        match out.first_chunk_mut() {
            Some(word) => *word = bytes,
            None => out
                .iter_mut()
                .zip(bytes)
                .for_each(|(out, byte)| *out = byte),
        }
        out = out.get_mut(BYTES..).unwrap_or_default();
    }
}

#[inline(always)]
fn unpack_keys<const BYTES: usize>(mut records: &[u8], mut each: impl FnMut(u64)) {
    while let Some(word) = records.first_chunk() {
        each(u64::from_le_bytes(*word) & low_bits(8 * BYTES as u32));
        records = &records[BYTES..];
    }
    for record in records.as_chunks::<BYTES>().0 {
        each(word(record));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::edge_data::EdgeDataBatch;
    use graphmill_storage::SplitMix64;

    #[test]
    fn edge_key_sorts_like_the_stored_graph() {
        for (cuts, ends) in [
            (vec![0u64, 5, 6, 20, 21], vec![2usize, 3, 4]),
            (vec![0, 1], vec![1]),
            ((0..=16).map(|b| b << 24).collect(), vec![16]),
        ] {
            let mut start = 0;
            let files: Vec<_> = ends
                .into_iter()
                .map(|end| std::mem::replace(&mut start, end)..end)
                .collect();
            let layout = EdgeKeyLayout::new(cuts.clone());
            let columns = layout.columns(files.clone(), 3);
            let mut random = SplitMix64::new(9);
            let vertices = *cuts.last().unwrap();
            let mut placed = Vec::new();
            for _ in 0..500 {
                let (source, destination) =
                    (random.next_u64() % vertices, random.next_u64() % vertices);
                let (bucket, key) = layout.locate(&columns, source, destination);
                let file = &files[bucket - 3];
                let batch = cuts.partition_point(|&cut| cut <= destination) - 1;
                assert!(file.contains(&batch));
                assert!(layout.key_bits(file.len()) >= bits_of(key.saturating_add(1)));
                assert_eq!(
                    layout.parts(key),
                    (batch - file.start, source, destination - cuts[batch])
                );
                assert_eq!(layout.is_loop(file.start, key), source == destination);
                placed.push(((bucket, key), (batch, source, destination)));
            }
            placed.sort_unstable();
            assert!(placed.is_sorted_by_key(|(_, arc)| *arc));
        }
    }

    #[test]
    fn edge_key_packing_round_trips() {
        let mut random = SplitMix64::new(4);
        for bits in [1u32, 8, 9, 20, 30, 33, 43, 56, 64] {
            for (kind, sequenced) in [
                (EdgeKind::None, false),
                (EdgeKind::F32, false),
                (EdgeKind::F64, false),
                (EdgeKind::F32, true),
                (EdgeKind::F64, true),
                (EdgeKind::Record(1), false),
                (EdgeKind::Record(7), true),
                (EdgeKind::Record(9), false),
                (EdgeKind::Record(13), true),
                (EdgeKind::Record(16), true),
            ] {
                let packing = RecordPacking::new(bits, kind, sequenced);
                let keys: Vec<u64> = (0..100).map(|_| random.next_u64() >> (64 - bits)).collect();
                let mut data = EdgeDataBatch::default();
                for _ in 0..100 {
                    let [low, high] = [(); 2].map(|()| u128::from(random.next_u64()));
                    let unused = 128 - 8 * kind.bytes() as u32;
                    let bits = (high << 64 | low).checked_shr(unused).unwrap_or(0);
                    data.push(bits, EdgeKind::Record(16));
                }
                let all: Vec<u128> = (0..100).map(|i| data.data().get(i)).collect();
                let sequences: Vec<u64> = keys
                    .iter()
                    .map(|_| if sequenced { random.next_u64() } else { 0 })
                    .collect();
                let mut out = vec![0; packing.bytes() * keys.len()];
                packing.pack(&keys, data.data(), &sequences, &mut out);
                let mut back = (Vec::new(), Vec::new(), Vec::new());
                packing.unpack(&out, |key, data, sequence| {
                    back.0.push(key);
                    back.1.push(data);
                    back.2.push(sequence);
                });
                assert_eq!(back, (keys, all, sequences), "{packing:?}");
            }
        }
    }
}
