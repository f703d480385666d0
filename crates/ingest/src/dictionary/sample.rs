//! A sample of ids, and the splitters that it gives: where buckets of ids begin and end.
//!
//! Every splitter has a bucket for itself, so that an id however frequent never stops another bucket from becoming smaller.

/// Ids in a sample before every other one is left out.
const SAMPLE_MAX: usize = 4096;

/// A sample of the ids that pass by, of bounded size: every so many, ever fewer.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sample {
    ids: Vec<Vec<u8>>,
    /// Ids still to pass before the next one is taken.
    skip: u64,
    stride: u64,
}

impl Sample {
    /// Offers an id.
    #[inline]
    pub(crate) fn offer(&mut self, id: impl AsRef<[u8]>) {
        if self.skip > 0 {
            self.skip -= 1;
            return;
        }
        self.ids.push(id.as_ref().to_vec());
        if self.ids.len() >= SAMPLE_MAX {
            let mut keep = false;
            self.ids.retain(|_| {
                keep = !keep;
                keep
            });
            self.stride = (self.stride * 2).max(2);
        }
        self.skip = self.stride.max(1) - 1;
    }

    /// Adds the sample of another worker.
    pub(crate) fn merge(&mut self, other: Self) {
        self.ids.extend(other.ids);
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

/// Ids that separate buckets: bucket `2 i` lies before splitter `i`, bucket `2 i + 1` is splitter `i` itself.
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
