//! A version as a file: all that a run needs to go on, but for the pages of its rows.
//!
//! ```text
//! magic: 8 bytes | job, number of the version, bytes of the body: u64 | CRC-32 of what is before and of the body: u32 | body
//! body   entries: bytes | arrays: count of (name: bytes, bytes of an element: u32, pages: count of (slot + 1, or 0: u64, CRC-32: u32))
//!        sets: count of (number: u64, batches: count of (batch: u64, form: u8, members))
//! ```
//!
//! Numbers are little-endian; bytes and counts begin with a u64. The members of a batch in a set are all (form 0), a count of u32 (1) or
//! words of 64 bits (2).

use crate::active::BatchSet;
use crate::page_file::{PageTable, Slot};

const MAGIC: &[u8; 8] = b"GMVERS\0\x01";
/// Bytes before the body.
const HEAD: usize = 36;

/// What calls were told, one after the other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Entries(Vec<u8>);

impl Entries {
    /// Bytes of an entry besides what was told.
    const HEAD: usize = 8;

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
    pub(crate) fn checksum(&self) -> u64 {
        crc32fast::hash(&self.0).into()
    }
    pub(crate) fn push(&mut self, name: u32, said: &[u8]) {
        self.0.extend(name.to_le_bytes());
        self.0.extend((said.len() as u32).to_le_bytes());
        self.0.extend(said);
    }
    /// The entry at a byte: its name, what was told, and where the next one begins.
    pub(crate) fn entry(&self, at: usize) -> Option<(u32, &[u8], usize)> {
        let rest = self.0.get(at..)?;
        let (head, rest) = rest.split_first_chunk::<{ Entries::HEAD }>()?;
        let word = |i: usize| u32::from_le_bytes(head.as_chunks::<4>().0[i]);
        let said = rest.get(..word(1) as usize)?;
        Some((word(0), said, at + Self::HEAD + said.len()))
    }
}

/// An array as a version has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SavedArray {
    pub(crate) name: String,
    pub(crate) element_bytes: usize,
    pub(crate) pages: PageTable,
}

/// The members of a set in a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Members {
    All,
    List(Vec<u32>),
    Words(Vec<u64>),
}

/// A set as a version has it: what each batch has of it that has any.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SavedSet(Vec<(usize, Members)>);

impl SavedSet {
    /// Adds what a batch has.
    pub(crate) fn push(&mut self, batch: usize, set: &BatchSet) {
        let words = set.span().div_ceil(64);
        let members = if set.is_full() {
            Members::All
        } else if set.count() <= 2 * words {
            let mut list = Vec::with_capacity(set.count());
            set.for_each(|i| list.push(i as u32));
            Members::List(list)
        } else {
            let mut bits = vec![0u64; words];
            set.for_each(|i| bits[i / 64] |= 1 << (i % 64));
            Members::Words(bits)
        };
        self.0.push((batch, members));
    }

    /// The batches, and of each who is in it, by a function that is called with each.
    pub(crate) fn batches(&self) -> impl Iterator<Item = usize> + '_ {
        self.0.iter().map(|(batch, _)| *batch)
    }

    /// Inserts what a batch has; `false` if that is not of a batch of this span.
    pub(crate) fn fill(&self, batch: usize, set: &mut BatchSet) -> bool {
        let found = self.0.iter().find(|(of, _)| *of == batch);
        let span = set.span();
        match found.map(|(_, members)| members) {
            None => true,
            Some(Members::All) => {
                set.insert_all();
                true
            }
            Some(Members::List(list)) => list.iter().all(|i| {
                let is_inside = (*i as usize) < span;
                if is_inside {
                    set.insert(*i as usize);
                }
                is_inside
            }),
            Some(Members::Words(words)) => {
                let mut is_inside = words.len() <= span.div_ceil(64);
                crate::active::bits(words, 0, |i| match i < span {
                    true => set.insert(i),
                    false => is_inside = false,
                });
                is_inside
            }
        }
    }
}

/// A version.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) job: u64,
    /// Entries that it has.
    pub(crate) number: u64,
    pub(crate) entries: Entries,
    pub(crate) arrays: Vec<SavedArray>,
    pub(crate) sets: Vec<(u64, SavedSet)>,
}

impl Record {
    /// Bytes of it as a file, at most.
    pub(crate) fn bytes(&self) -> u64 {
        let arrays = self
            .arrays
            .iter()
            .map(|array| 64 + array.name.len() + 12 * array.pages.len());
        let of_set = |members: &Members| match members {
            Members::All => 0,
            Members::List(list) => 4 * list.len(),
            Members::Words(words) => 8 * words.len(),
        };
        let sets = self
            .sets
            .iter()
            .map(|(_, set)| 16 + set.0.iter().map(|(_, of)| 17 + of_set(of)).sum::<usize>());
        (HEAD + 64 + self.entries.len() + arrays.sum::<usize>() + sets.sum::<usize>()) as u64
    }

    pub(crate) fn to_bytes(&self, job: u64) -> Vec<u8> {
        let mut body = Vec::new();
        let put = |number: u64| number.to_le_bytes();
        body.extend(put(self.entries.0.len() as u64));
        body.extend(&self.entries.0);
        body.extend(put(self.arrays.len() as u64));
        for array in &self.arrays {
            body.extend(put(array.name.len() as u64));
            body.extend(array.name.as_bytes());
            body.extend((array.element_bytes as u32).to_le_bytes());
            body.extend(put(array.pages.len() as u64));
            for page in &array.pages {
                let (slot, checksum) =
                    page.map_or((0, 0), |slot| (slot.number() + 1, slot.checksum()));
                body.extend(put(slot));
                body.extend(checksum.to_le_bytes());
            }
        }
        body.extend(put(self.sets.len() as u64));
        for (number, set) in &self.sets {
            body.extend(put(*number));
            body.extend(put(set.0.len() as u64));
            for (batch, members) in &set.0 {
                body.extend(put(*batch as u64));
                match members {
                    Members::All => body.push(0),
                    Members::List(list) => {
                        body.push(1);
                        body.extend(put(list.len() as u64));
                        body.extend(list.iter().flat_map(|i| i.to_le_bytes()));
                    }
                    Members::Words(words) => {
                        body.push(2);
                        body.extend(put(words.len() as u64));
                        body.extend(words.iter().flat_map(|word| word.to_le_bytes()));
                    }
                }
            }
        }
        let mut bytes = MAGIC.to_vec();
        for number in [job, self.number, body.len() as u64] {
            bytes.extend(number.to_le_bytes());
        }
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(&bytes);
        hasher.update(&body);
        bytes.extend(hasher.finalize().to_le_bytes());
        bytes.extend(body);
        bytes
    }

    /// What the bytes of a version say; `None` if they are not what was written.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Record> {
        let (head, body) = bytes.split_first_chunk::<HEAD>()?;
        let (numbers, checksum) = head.split_at(HEAD - 4);
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(numbers);
        hasher.update(body);
        if numbers[..8] != *MAGIC || checksum != hasher.finalize().to_le_bytes() {
            return None;
        }
        let mut from = Taking(&numbers[8..]);
        let (job, number, length) = (from.number()?, from.number()?, from.number()?);
        if length != body.len() as u64 {
            return None;
        }
        let mut from = Taking(body);
        let entries = Entries(from.bytes()?.to_vec());
        let mut arrays = Vec::new();
        for _ in 0..from.number()? {
            let name = String::from_utf8(from.bytes()?.to_vec()).ok()?;
            let element_bytes = from.word()? as usize;
            let count = from.count(12)?;
            let mut pages = Vec::with_capacity(count);
            for _ in 0..count {
                let (slot, checksum) = (from.number()?, from.word()?);
                pages.push(slot.checked_sub(1).map(|slot| Slot::new(slot, checksum)));
            }
            arrays.push(SavedArray {
                name,
                element_bytes,
                pages,
            });
        }
        let mut sets = Vec::new();
        for _ in 0..from.number()? {
            let number = from.number()?;
            let mut set = SavedSet::default();
            for _ in 0..from.number()? {
                let batch = from.number()? as usize;
                let members = match from.byte()? {
                    0 => Members::All,
                    1 => {
                        let count = from.count(4)?;
                        Members::List((0..count).map(|_| from.word()).collect::<Option<_>>()?)
                    }
                    2 => {
                        let count = from.count(8)?;
                        Members::Words((0..count).map(|_| from.number()).collect::<Option<_>>()?)
                    }
                    _ => return None,
                };
                set.0.push((batch, members));
            }
            sets.push((number, set));
        }
        from.0.is_empty().then_some(Record {
            job,
            number,
            entries,
            arrays,
            sets,
        })
    }
}

/// Bytes of which the first are taken off.
struct Taking<'b>(&'b [u8]);

impl<'b> Taking<'b> {
    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*taken)
    }
    fn byte(&mut self) -> Option<u8> {
        self.array().map(|[byte]| byte)
    }
    fn word(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }
    fn number(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }
    /// How many things of so many bytes come, which are all there.
    fn count(&mut self, bytes: usize) -> Option<usize> {
        let count = usize::try_from(self.number()?).ok()?;
        (count <= self.0.len() / bytes).then_some(count)
    }
    fn bytes(&mut self) -> Option<&'b [u8]> {
        let count = self.count(1)?;
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }
}

#[cfg(test)]
mod tests {
    use graphmill_storage::Budget;

    use super::*;

    fn example() -> Record {
        let mut entries = Entries::default();
        entries.push(7, b"sum");
        entries.push(8, b"");
        let mut set = SavedSet::default();
        for (batch, members) in [(0, 0..1), (3, 0..200), (4, 0..150)] {
            let mut of_batch = BatchSet::default();
            of_batch.reserve(200, &Budget::new(1 << 20)).unwrap();
            members.for_each(|i| of_batch.insert(i));
            set.push(batch, &of_batch);
        }
        Record {
            job: 5,
            number: 2,
            entries,
            arrays: vec![SavedArray {
                name: "depth".into(),
                element_bytes: 4,
                pages: vec![None, Some(Slot::new(3, 0xdead_beef))],
            }],
            sets: vec![(9, set), (10, SavedSet::default())],
        }
    }

    #[test]
    fn a_version_comes_back_and_no_bit_of_it_can_change() {
        let bytes = example().to_bytes(5);
        assert_eq!(Record::parse(&bytes), Some(example()));
        for at in 0..bytes.len() {
            assert_eq!(Record::parse(&bytes[..at]), None, "cut at {at}");
            for bit in 0..8 {
                let mut bad = bytes.clone();
                bad[at] ^= 1 << bit;
                assert_eq!(Record::parse(&bad), None, "byte {at} bit {bit}");
            }
        }
    }

    #[test]
    fn sets_come_back_in_each_form() {
        let (_, set) = &example().sets[0];
        let counts: Vec<usize> = (set.batches())
            .map(|batch| {
                let mut back = BatchSet::default();
                back.reserve(200, &Budget::new(1 << 20)).unwrap();
                assert!(set.fill(batch, &mut back));
                back.count()
            })
            .collect();
        assert_eq!(counts, [1, 200, 150]);
        // A batch of fewer vertices than the version says.
        let mut small = BatchSet::default();
        small.reserve(100, &Budget::new(1 << 20)).unwrap();
        assert!(!set.fill(4, &mut small));
    }
}
