//! Mini-blocks: a sequence of numbers, 32 at a time in as few bits as most of them need, with patches for the others.
//!
//! Lists of neighbours are runs of small gaps with a long jump here and there, and one jump must not make all fields
//! of its mini-block as wide as itself. The scheme is that of patched frames of reference (Zukowski, Héman, Nes and
//! Boncz, "Super-scalar RAM-CPU cache compression", ICDE 2006), the patches kept as bytes.
//!
//! Whatever bytes a sequence is made of, nothing is read outside them.

use std::ops::Range;

use crate::codec::bitpack::{pack, unpack, width_of};

/// Fields that share one width.
pub(crate) const MINI: usize = 32;
/// The bit of a head that says that patches follow the fields.
const PATCHED: u8 = 0x80;
/// What follows the fields of a mini-block without patches.
const NO_PATCHES: Exceptions<'static> = Exceptions {
    places: &[],
    highs: &[],
    high_bytes: 0,
};

/// A sequence, to read.
#[derive(Clone, Copy)]
pub(crate) struct PforBlocks<'a> {
    /// A byte a mini-block: bits of its fields, and whether patches follow them.
    pub(crate) heads: &'a [u8],
    pub(crate) bodies: &'a [u8],
}

/// The patches of one mini-block.
#[derive(Clone, Copy)]
struct Exceptions<'a> {
    places: &'a [u8],
    highs: &'a [u8],
    high_bytes: usize,
}

impl<'a> Exceptions<'a> {
    /// The patches at the start of `bytes`, and how many bytes they take.
    #[inline(always)]
    fn parse(bytes: &'a [u8]) -> (Self, usize) {
        let Some((&head, rest)) = bytes.split_first() else {
            return (NO_PATCHES, 0);
        };
        let count = usize::from(head & 31) + 1;
        let high_bytes = usize::from(head >> 5 & 3) + 1;
        let (places, rest) = rest.split_at(rest.len().min(count));
        let patches = Exceptions {
            places,
            highs: rest,
            high_bytes,
        };
        (patches, 1 + count * (1 + high_bytes))
    }

    /// Adds the high parts to fields of `width` bits.
    #[inline(always)]
    fn apply(&self, fields: &mut [u32], width: u32) {
        let mask = (1u64 << (8 * self.high_bytes)) - 1;
        for (i, &place) in self.places.iter().enumerate() {
            let at = i * self.high_bytes;
            let high = match self.highs.get(at..at + 4) {
                Some(high) => high.try_into().map_or(0, u32::from_le_bytes),
                None => {
                    let mut high = [0; 4];
                    let rest = self.highs.get(at..).unwrap_or(&[]);
                    high[..rest.len()].copy_from_slice(rest);
                    u32::from_le_bytes(high)
                }
            };
            if let Some(field) = fields.get_mut(usize::from(place)) {
                *field |= ((u64::from(high) & mask) << width) as u32;
            }
        }
    }
}

impl<'a> PforBlocks<'a> {
    /// Fills `out` with the first numbers.
    #[inline(always)]
    pub(crate) fn unpack(&self, out: &mut [u32]) {
        let mut at = 0;
        for (fields, head) in out.chunks_mut(MINI).zip(self.heads) {
            at += self.mini(*head, at, fields);
        }
    }

    /// Calls `f` with each number of a range, in order.
    #[inline]
    pub(crate) fn for_each(&self, range: Range<usize>, mut f: impl FnMut(u32)) {
        let mut at = 0;
        for (i, head) in self.heads.iter().enumerate() {
            let from = i * MINI;
            if from >= range.end {
                return;
            }
            if from + MINI <= range.start {
                at += 4 * usize::from(head & !PATCHED);
                if head & PATCHED != 0 {
                    at += Exceptions::parse(self.bodies.get(at..).unwrap_or(&[])).1;
                }
                continue;
            }
            let mut fields = [0; MINI];
            at += self.mini(*head, at, &mut fields);
            let wanted = range.start.max(from) - from..(range.end - from).min(MINI);
            fields[wanted].iter().for_each(|field| f(*field));
        }
    }

    /// Reads the mini-block at byte `at`; the bytes it takes.
    #[inline(always)]
    fn mini(&self, head: u8, at: usize, fields: &mut [u32]) -> usize {
        let bits = head & !PATCHED;
        let width = u32::from(bits).min(32);
        unpack(self.bodies.get(at..).unwrap_or(&[]), width, fields);
        let bytes = 4 * usize::from(bits);
        if head & PATCHED == 0 {
            return bytes;
        }
        let (patches, more) = Exceptions::parse(self.bodies.get(at + bytes..).unwrap_or(&[]));
        patches.apply(fields, width);
        bytes + more
    }
}

/// How a mini-block is to be written.
#[derive(Clone, Copy, Debug)]
struct PforPlan {
    width: u8,
    patches: u8,
    high_bytes: u8,
}

impl PforPlan {
    /// The way to write a mini-block that takes fewest bytes.
    fn of(mini: &[u32]) -> Self {
        let mut counts = [0u8; 33];
        for &value in mini {
            counts[width_of(u64::from(value)) as usize] += 1;
        }
        let widest = counts.iter().rposition(|&count| count > 0).unwrap_or(0);
        let mut best = PforPlan {
            width: widest as u8,
            patches: 0,
            high_bytes: 0,
        };
        let mut patches = 0;
        for width in (0..widest).rev() {
            patches += counts[width + 1];
            let plan = PforPlan {
                width: width as u8,
                patches,
                high_bytes: (widest - width).div_ceil(8) as u8,
            };
            if plan.bytes() < best.bytes() {
                best = plan;
            }
        }
        best
    }

    /// Bytes of the body.
    fn bytes(self) -> usize {
        let patches = match self.patches {
            0 => 0,
            count => 1 + usize::from(count) * (1 + usize::from(self.high_bytes)),
        };
        4 * usize::from(self.width) + patches
    }

    fn head(self) -> u8 {
        self.width | if self.patches > 0 { PATCHED } else { 0 }
    }

    fn put(self, mini: &[u32], out: &mut Vec<u8>) {
        let width = u32::from(self.width);
        let end = out.len() + 4 * width as usize;
        let mask = ((1u64 << width) - 1) as u32;
        pack(mini.iter().map(|value| value & mask), width, out);
        out.resize(end, 0);
        if self.patches == 0 {
            return;
        }
        out.push((self.patches - 1) | (self.high_bytes - 1) << 5);
        let wide = || mini.iter().enumerate().filter(|(_, v)| **v > mask);
        out.extend(wide().map(|(place, _)| place as u8));
        for (_, value) in wide() {
            let high = u64::from(*value) >> width;
            out.extend_from_slice(&high.to_le_bytes()[..usize::from(self.high_bytes)]);
        }
    }
}

/// A sequence, to write.
#[derive(Debug, Default)]
pub(crate) struct PforEncoder {
    plans: Vec<PforPlan>,
}

impl PforEncoder {
    /// Plans how to write `values`; the bytes of heads and bodies.
    pub(crate) fn plan(&mut self, values: &[u32]) -> usize {
        self.plans.clear();
        self.plans.extend(values.chunks(MINI).map(PforPlan::of));
        self.plans.iter().map(|plan| 1 + plan.bytes()).sum()
    }
    /// Appends the heads of what was planned.
    pub(crate) fn put_heads(&self, out: &mut Vec<u8>) {
        out.extend(self.plans.iter().map(|plan| plan.head()));
    }
    /// Appends the bodies; `values` as they were planned.
    pub(crate) fn put_bodies(&self, values: &[u32], out: &mut Vec<u8>) {
        for (mini, plan) in values.chunks(MINI).zip(&self.plans) {
            plan.put(mini, out);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use graphmill_storage::SplitMix64;

    fn write(values: &[u32]) -> (Vec<u8>, Vec<u8>) {
        let (mut heads, mut bodies) = (Vec::new(), Vec::new());
        let mut writer = PforEncoder::default();
        let planned = writer.plan(values);
        writer.put_heads(&mut heads);
        writer.put_bodies(values, &mut bodies);
        assert_eq!(planned, heads.len() + bodies.len());
        (heads, bodies)
    }

    #[test]
    fn pfor_round_trips_any_mix_of_widths() {
        let mut random = SplitMix64::new(5);
        for round in 0..2000u64 {
            let count = random.below(200) as usize;
            let narrow = random.below(33) as u32;
            let values: Vec<u32> = (0..count)
                .map(|_| {
                    let bits = match random.below(8) {
                        0 => random.below(33) as u32,
                        _ => narrow,
                    };
                    random.below(1 << bits) as u32
                })
                .collect();
            let (heads, bodies) = write(&values);
            let minis = PforBlocks {
                heads: &heads,
                bodies: &bodies,
            };
            let mut all = vec![0; count];
            minis.unpack(&mut all);
            assert_eq!(all, values, "round {round}");
            let from = random.below(count as u64 + 1) as usize;
            let to = from + random.below((count - from) as u64 + 1) as usize;
            let mut part = Vec::new();
            minis.for_each(from..to, |value| part.push(value));
            assert_eq!(part, &values[from..to], "round {round}");
        }
    }

    #[test]
    fn pfor_jump_does_not_widen_neighbours() {
        let mut values = vec![3; MINI];
        values[7] = 1 << 30;
        let (heads, bodies) = write(&values);
        assert_eq!(heads, [2 | PATCHED]);
        // 32 fields of 2 bits, then: how many and how long, which, and the upper 29 bits in four bytes.
        assert_eq!(bodies.len(), 8 + 1 + 1 + 4);
    }

    #[test]
    fn pfor_of_any_bytes_stays_in_bounds() {
        let mut random = SplitMix64::new(6);
        for _ in 0..2000 {
            let heads: Vec<u8> = (0..random.below(6))
                .map(|_| random.below(256) as u8)
                .collect();
            let bodies: Vec<u8> = (0..random.below(300))
                .map(|_| random.below(256) as u8)
                .collect();
            let minis = PforBlocks {
                heads: &heads,
                bodies: &bodies,
            };
            minis.unpack(&mut [0; 170]);
            minis.for_each(random.below(90) as usize..170, |_| ());
        }
    }
}
