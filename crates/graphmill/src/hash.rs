//! The hash in names of cached graphs and of directories of checkpoints.

/// 64-bit FNV-1a: names a file's state, guards nothing.
pub(crate) struct Fnv1a(u64);

impl Fnv1a {
    pub(crate) fn new() -> Fnv1a {
        Fnv1a(0xcbf2_9ce4_8422_2325)
    }

    pub(crate) fn add(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        // The end of a part counts, so that moving a byte to the next part changes the hash.
        self.0 = (self.0 ^ 0x100).wrapping_mul(0x0000_0100_0000_01b3);
    }

    pub(crate) fn text(&self) -> String {
        format!("{:016x}", self.0)
    }
}
