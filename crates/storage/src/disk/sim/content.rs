//! The bytes of a simulated file: the current bytes, and those that a power cut leaves.

use graphmill_raw::SplitMix64;

/// The current bytes of a file, and those that a power cut leaves.
#[derive(Clone, Debug, Default)]
pub(super) struct Content {
    pub(super) bytes: Vec<u8>,
    durable: Vec<u8>,
    /// Writes since the last sync: offset and bytes.
    pub(super) written: Vec<(usize, Vec<u8>)>,
    /// Writes whose sync failed. No later sync makes them durable, since the system considers them written.
    lost: Vec<(usize, Vec<u8>)>,
}

/// Bytes of a sector, which a power cut leaves completely written or not at all.
const SECTOR_BYTES: usize = 512;

impl Content {
    /// Makes a durable file.
    pub(super) fn of(bytes: Vec<u8>) -> Self {
        Content {
            durable: bytes.clone(),
            bytes,
            ..Content::default()
        }
    }
    pub(super) fn write(&mut self, start: usize, bytes: &[u8]) {
        write(&mut self.bytes, start, bytes);
        let end = start + bytes.len();
        self.lost
            .retain(|(lost, bytes)| *lost >= end || lost + bytes.len() <= start);
        self.written.push((start, bytes.to_vec()));
    }
    pub(super) fn sync(&mut self) {
        self.durable.resize(self.bytes.len(), 0);
        for (start, bytes) in self.written.drain(..) {
            let end = (start + bytes.len()).min(self.durable.len());
            if start < end {
                self.durable[start..end].copy_from_slice(&bytes[..end - start]);
            }
        }
    }
    pub(super) fn fail_sync(&mut self) {
        self.lost.append(&mut self.written);
    }
    /// Returns what a power cut leaves: of each write all, nothing, or some sectors.
    pub(super) fn after_power_cut(&self, random: &mut SplitMix64) -> Vec<u8> {
        let mut left = self.durable.clone();
        if self.bytes.len() > left.len() && random.below(2) == 0 {
            left.resize(self.bytes.len(), 0);
        }
        for (start, bytes) in self.lost.iter().chain(&self.written) {
            let odds = [0, 4, random.below(5)][random.below(3) as usize];
            for (number, sector) in bytes.chunks(SECTOR_BYTES).enumerate() {
                if random.below(4) < odds {
                    write(&mut left, start + number * SECTOR_BYTES, sector);
                }
            }
        }
        left
    }
}

fn write(bytes: &mut Vec<u8>, start: usize, written: &[u8]) {
    let end = start + written.len();
    if bytes.len() < end {
        bytes.resize(end, 0);
    }
    bytes[start..end].copy_from_slice(written);
}
