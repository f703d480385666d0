//! A sample of ids, and the splitters that it gives: where buckets of ids begin and end.
//!
//! Every splitter has a bucket for itself, so that an id however frequent never stops another bucket from becoming smaller.

use crate::error::IngestError;
use graphmill_fabric::protocol_error;

/// Ids in a sample before every other one is dropped. The sample is too small to lease.
const IDS_MAX: usize = 4096;
const BYTES_MAX: usize = 256 << 10;

/// A sample of ids of bounded size: every n-th id, where n doubles as the sample fills.
#[derive(Debug, Default)]
pub(crate) struct IdSample {
    ids: Vec<Vec<u8>>,
    /// Bytes that the ids take.
    bytes: usize,
    /// Ids still to pass before the next one is taken.
    skip: u64,
    stride: u64,
}

/// Bytes that an id of a sample takes.
fn bytes_of(id: &[u8]) -> usize {
    size_of::<Vec<u8>>() + id.len()
}

impl IdSample {
    /// Offers an id.
    #[inline]
    pub(crate) fn offer(&mut self, id: impl AsRef<[u8]>) {
        if self.skip > 0 {
            self.skip -= 1;
            return;
        }
        let id = id.as_ref().to_vec();
        self.bytes += bytes_of(&id);
        self.ids.push(id);
        self.bound();
        self.skip = self.stride.max(1) - 1;
    }

    /// The ids, each after its length.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut all = Vec::new();
        for id in &self.ids {
            all.extend((id.len() as u32).to_le_bytes());
            all.extend(id);
        }
        all
    }

    /// The samples of several ranks, whole, from their [bytes](Self::to_bytes).
    pub(crate) fn merged(of_ranks: &[Vec<u8>]) -> Result<Self, IngestError> {
        let mut all = Self::default();
        for mut rest in of_ranks.iter().map(Vec::as_slice) {
            while !rest.is_empty() {
                let id = rest.split_first_chunk().and_then(|(length, rest)| {
                    rest.split_at_checked(u32::from_le_bytes(*length) as usize)
                });
                let (id, left) = id.ok_or_else(protocol_error)?;
                all.bytes += bytes_of(id);
                all.ids.push(id.to_vec());
                rest = left;
            }
        }
        all.bound();
        Ok(all)
    }

    /// Adds the sample of another worker, whole: none counts less than another.
    pub(crate) fn merge(&mut self, other: Self) {
        self.bytes += other.bytes;
        self.ids.extend(other.ids);
    }

    /// Leaves out ids until it is of the size that it may have.
    pub(crate) fn bound(&mut self) {
        while self.ids.len() >= IDS_MAX || self.bytes > BYTES_MAX {
            self.thin();
        }
    }

    /// Leaves out every other id, of those that are here and of those to come.
    fn thin(&mut self) {
        let mut keep = false;
        self.ids.retain(|_| {
            keep = !keep;
            keep
        });
        self.bytes = self.ids.iter().map(|id| bytes_of(id)).sum();
        self.stride = (self.stride * 2).max(2);
    }

    /// At most `count` ids that cut the sample in even parts, ascending and distinct.
    pub(super) fn splitters(mut self, count: usize) -> Splitters {
        self.ids.sort_unstable();
        let total = self.ids.len();
        let mut ids: Vec<Vec<u8>> = (1..=count)
            .filter_map(|i| self.ids.get(i * total / (count + 1)).cloned())
            .collect();
        ids.dedup();
        Splitters {
            prefixes: ids.iter().map(|id| prefix(id)).collect(),
            ids,
        }
    }
}

/// The first eight bytes of an id, as a number of the same order; shorter ids are filled up with zeros.
#[inline(always)]
pub(super) fn prefix(id: &[u8]) -> u64 {
    let mut bytes = [0; 8];
    let length = id.len().min(8);
    bytes[..length].copy_from_slice(&id[..length]);
    u64::from_be_bytes(bytes)
}

/// Ids that separate buckets: bucket `2 i` lies before splitter `i`, bucket `2 i + 1` is the splitter.
#[derive(Debug)]
pub(super) struct Splitters {
    prefixes: Vec<u64>,
    ids: Vec<Vec<u8>>,
}

impl Splitters {
    pub(super) fn buckets(&self) -> usize {
        2 * self.ids.len() + 1
    }

    #[inline]
    pub(super) fn bucket(&self, id: &[u8]) -> usize {
        let prefix = prefix(id);
        let mut at = self.prefixes.partition_point(|&splitter| splitter < prefix);
        while at < self.ids.len() && self.prefixes[at] == prefix {
            match self.ids[at].as_slice().cmp(id) {
                std::cmp::Ordering::Less => at += 1,
                std::cmp::Ordering::Equal => return 2 * at + 1,
                std::cmp::Ordering::Greater => break,
            }
        }
        2 * at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A sample of `count` ids of `bytes` bytes.
    fn sample(count: usize, bytes: usize) -> IdSample {
        let mut sample = IdSample::default();
        for number in 0..count {
            sample.offer(format!("{number:0bytes$}"));
        }
        sample
    }

    #[test]
    fn id_sample_stays_small_for_any_input() {
        for (count, bytes) in [(100, 10), (100_000, 8), (100_000, 2000), (3, 60_000)] {
            let sample = sample(count, bytes);
            assert!(sample.bytes <= BYTES_MAX && sample.ids.len() < IDS_MAX);
            let held = sample.ids.iter().map(|id| bytes_of(id));
            assert_eq!(sample.bytes, held.sum::<usize>());
            let most = count.min(BYTES_MAX / (bytes + 24)).min(IDS_MAX);
            assert!(sample.ids.len() >= most / 2 - 1, "{count} {bytes}");
        }
    }

    #[test]
    fn id_sample_covers_the_whole_input() {
        let ids = sample(100_000, 2000).ids;
        let number = |id: &Vec<u8>| String::from_utf8_lossy(id).parse::<usize>().unwrap();
        let widest = ids.windows(2).map(|ids| number(&ids[1]) - number(&ids[0]));
        assert!(widest.max().unwrap() <= 100_000 / 32 && ids.last().map(number) > Some(90_000));
    }
}
