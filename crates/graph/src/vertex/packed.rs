//! Fields of packed bits, and the size of a page.

/// Vertices of a page.
pub const PAGE_VERTICES: u64 = 4096;

/// Bits that `n` takes, at least 1.
pub(super) fn width(n: u64) -> u32 {
    (64 - n.leading_zeros()).max(1)
}

/// The field of `bits` (at most 56) that begins at bit `at`; bits beyond the bytes are 0.
#[inline]
pub(super) fn field(bytes: &[u8], at: usize, bits: u32) -> u64 {
    let from = at / 8;
    let word = match bytes.get(from..from + 8) {
        Some(word) => word.try_into().map_or(0, u64::from_le_bytes),
        None => {
            let mut word = [0; 8];
            let rest = bytes.get(from..).unwrap_or(&[]);
            word[..rest.len()].copy_from_slice(rest);
            u64::from_le_bytes(word)
        }
    };
    (word >> (at % 8)) & ((1 << bits) - 1)
}

/// Appends fields of packed bits; zero bits fill the last byte.
pub(super) struct Packer<'o> {
    out: &'o mut Vec<u8>,
    word: u64,
    filled: u32,
}

impl<'o> Packer<'o> {
    pub(super) fn new(out: &'o mut Vec<u8>) -> Self {
        Packer {
            out,
            word: 0,
            filled: 0,
        }
    }
    /// `bits` is at most 56.
    #[inline]
    pub(super) fn push(&mut self, value: u64, bits: u32) {
        self.word |= value << self.filled;
        self.filled += bits;
        while self.filled >= 8 {
            self.out.push(self.word as u8);
            self.word >>= 8;
            self.filled -= 8;
        }
    }
    pub(super) fn end(self) {
        if self.filled > 0 {
            self.out.push(self.word as u8);
        }
    }
}
