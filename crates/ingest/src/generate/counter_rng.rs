//! Random numbers by position, so that any edge can be drawn without those before it.

/// The purpose of a random number; numbers of different purposes are independent.
#[derive(Clone, Copy, Debug)]
pub(super) enum RngStream {
    Ends,
    Labels,
    Weight,
}

/// A random generator by position: SplitMix64 with a start that depends on seed and purpose.
///
/// Its n-th number needs none before it (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CounterRng(u64);

impl CounterRng {
    pub(super) fn new(seed: u64, purpose: RngStream, lane: u64) -> Self {
        let purpose = (purpose as u64) << 32 | lane;
        CounterRng(mix(seed ^ mix(purpose)))
    }

    #[inline(always)]
    pub(super) fn number(self, position: u64) -> u64 {
        mix(self
            .0
            .wrapping_add(position.wrapping_mul(0x9e37_79b9_7f4a_7c15)))
    }
}

#[inline(always)]
fn mix(mut z: u64) -> u64 {
    z = z.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A number below `bound` from one of all 64-bit numbers, uneven by less than `bound` / 2^64.
#[inline(always)]
pub(super) fn below(random: u64, bound: u64) -> u64 {
    ((u128::from(random) * u128::from(bound)) >> 64) as u64
}

/// A bijection of the numbers of `bits` bits: steps that can each be undone.
#[derive(Debug)]
pub(super) struct Permutation {
    mask: u64,
    half: u32,
    keys: [u64; 4],
}

impl Permutation {
    pub(super) fn new(bits: u32, seed: u64) -> Self {
        let keys = CounterRng::new(seed, RngStream::Labels, 0);
        Permutation {
            mask: (1 << bits) - 1,
            half: bits.div_ceil(2),
            keys: std::array::from_fn(|i| keys.number(i as u64)),
        }
    }

    #[inline(always)]
    pub(super) fn map(&self, label: u64) -> u64 {
        let mut x = label;
        for key in self.keys {
            // Adding, multiplying by an odd number and folding high bits onto low ones are bijections modulo 2^bits.
            x = x.wrapping_add(key).wrapping_mul(key | 1) & self.mask;
            x ^= x >> self.half;
        }
        x
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_permuted_one_to_one() {
        for bits in 1..=14 {
            let labels = Permutation::new(bits, 5);
            let mut seen = vec![false; 1 << bits];
            for label in 0..1 << bits {
                let to = labels.map(label) as usize;
                assert!(
                    !std::mem::replace(&mut seen[to], true),
                    "{bits} bits: two labels become {to}"
                );
            }
        }
    }
}
