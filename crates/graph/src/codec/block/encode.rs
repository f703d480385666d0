//! The way into a block: sorted edges to bytes, under the codec that takes fewer.

use graphmill_raw::simd;

use crate::codec::bitpack::{pack, packed_bytes, width_of};
use crate::codec::block::layout::{
    BLOCK_EDGES_MAX, FIRSTS_BYTES, GAP_PERCENT_MAX, HEADER, PADDING,
};
use crate::codec::pfor::PforEncoder;

/// Room for encoding one block.
#[derive(Debug, Default)]
pub struct BlockEncoder {
    deltas: Vec<u32>,
    firsts: Vec<u32>,
    rests: Vec<u32>,
    /// How firsts and rests are written.
    plans: [PforEncoder; 2],
}

impl BlockEncoder {
    /// Appends the block of 1 to 4,096 edges and returns its number of groups.
    ///
    /// `keys` are `source << 32 | destination` in ascending order. Every destination is less than
    /// `1 << dst_bits`.
    pub fn encode(
        &mut self,
        keys: &[u64],
        dst_bits: u32,
        global_offset: i64,
        out: &mut Vec<u8>,
    ) -> usize {
        let source = |key: u64| (key >> 32) as u32;
        let destination = |key: u64| key as u32;
        let zigzag = |key: u64| {
            let relative = i64::from(destination(key)) + global_offset - i64::from(source(key));
            ((relative << 1) ^ (relative >> 63)) as u64
        };
        let start = out.len();
        out.extend_from_slice(&[0; HEADER]);
        for room in [&mut self.deltas, &mut self.firsts, &mut self.rests] {
            room.resize(keys.len(), 0);
        }
        // The encoder writes each edge both as the first of a group and as a further one. The next edge
        // overwrites one of the two: that is faster than an unpredictable branch.
        let mut bitmap = [0u64; BLOCK_EDGES_MAX / 64];
        let (mut groups, mut rests) = (0, 0);
        let (mut deltas, mut zigzags) = (0, 0);
        let mut last = keys.first().map_or(0, |&key| !key);
        for (i, &key) in keys.iter().enumerate() {
            let first = (key ^ last) >> 32 != 0;
            bitmap[i / 64] |= u64::from(first) << (i % 64);
            let delta = source(key).wrapping_sub(source(last)).wrapping_sub(1);
            let mask = u64::from(first).wrapping_neg();
            deltas |= if i == 0 { 0 } else { delta & mask as u32 };
            zigzags |= zigzag(key) & mask;
            // There are at most i groups and rests before edge i, so both are in range.
            self.deltas[groups] = delta;
            self.firsts[groups] = zigzag(key) as u32;
            self.rests[rests] = destination(key).wrapping_sub(destination(last));
            groups += usize::from(first);
            rests += usize::from(!first);
            last = key;
        }
        let src_bits = width_of(u64::from(deltas));
        pack(self.deltas[..groups].iter().skip(1).copied(), src_bits, out);
        for word in &bitmap[..keys.len().div_ceil(64)] {
            out.extend_from_slice(&word.to_le_bytes());
        }
        let parts = [&self.firsts[..groups], &self.rests[..rests]];
        let most = GAP_PERCENT_MAX * packed_bytes(keys.len(), dst_bits) / 100;
        // Planning takes time, and no plan takes fewer bits than the numbers themselves.
        let bits = simd::dispatch(|| {
            let numbers = parts.iter().flat_map(|part| part.iter());
            numbers
                .map(|number| 32 - number.leading_zeros())
                .sum::<u32>()
        });
        let gap = zigzags <= u64::from(u32::MAX)
            && bits as usize <= 8 * most
            && FIRSTS_BYTES
                + parts
                    .iter()
                    .zip(&mut self.plans)
                    .map(|(part, plan)| plan.plan(part))
                    .sum::<usize>()
                <= most;
        if gap {
            let at = out.len();
            out.extend_from_slice(&[0; FIRSTS_BYTES]);
            for plan in &self.plans {
                plan.put_heads(out);
            }
            let from = out.len();
            self.plans[0].put_bodies(parts[0], out);
            let firsts_bytes = (out.len() - from) as u32;
            out[at..at + FIRSTS_BYTES].copy_from_slice(&firsts_bytes.to_le_bytes());
            self.plans[1].put_bodies(parts[1], out);
        } else {
            pack(keys.iter().map(|&key| destination(key)), dst_bits, out);
        }
        out.extend_from_slice(&[0; PADDING]);
        let bytes = (out.len() - start) as u32;
        let header = &mut out[start..start + HEADER];
        header[0] = u8::from(gap);
        header[1] = dst_bits as u8;
        header[2] = src_bits as u8;
        header[4..6].copy_from_slice(&(keys.len() as u16).to_le_bytes());
        header[6..8].copy_from_slice(&(groups as u16).to_le_bytes());
        header[8..12].copy_from_slice(&keys.first().map_or(0, |key| source(*key)).to_le_bytes());
        header[12..16].copy_from_slice(&bytes.to_le_bytes());
        groups
    }
}
