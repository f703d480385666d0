//! The encoding of a set, batch by batch, in about as many bits as its entropy.
//!
//! ```text
//! form: u8 | of forms 1 and 2: low bits k: u8, how many: u64, words: count of u64
//! ```
//!
//! All of the batch are in the set (form 0), or it says who is (1) or who is not (2), whichever are fewer: in ascending order the gap from each
//! to the next, `gap >> k` in unary (that many zero bits and a one) and `k` low bits, from the lowest bit of each word on. That is Golomb's
//! code with Rice's parameter: members that are drawn by chance take two or three hundredths more than their entropy, and with `k = 0` it is a
//! bit for each vertex. Sets may be large: they are written and read member by member.

use std::io;
use std::io::Write;

use graphmill_storage::{RecordReader, RecordWriter, corrupt};

use crate::frontier::bitmap::{HierarchicalBitmap, bits};

/// Forms of members.
const ALL: u8 = 0;
const IN: u8 = 1;
const OUT: u8 = 2;
/// Bits of a word.
const WORD: u32 = u64::BITS;

/// The encoded vertices of a batch: the members of the set, or the others.
#[derive(Clone, Copy)]
struct EncodedMembers<'s> {
    set: &'s HierarchicalBitmap,
    form: u8,
}

impl EncodedMembers<'_> {
    fn count(&self) -> usize {
        match self.form {
            IN => self.set.count,
            _ => self.set.span - self.set.count,
        }
    }

    /// The gap before each.
    fn gaps(&self, mut f: impl FnMut(usize)) {
        let mut next = 0;
        let mut each = |i: usize| {
            f(i - next);
            next = i + 1;
        };
        if self.form == IN {
            return self.set.for_each(each);
        }
        let span = self.set.span;
        for (w, word) in self.set.words.iter().enumerate() {
            bits(&[!word], w * WORD as usize, |i| {
                if i < span {
                    each(i);
                }
            });
        }
    }

    /// Bits that they take with `k` low bits each.
    fn bits(&self, k: u32) -> u64 {
        let mut bits = self.count() as u64 * u64::from(k + 1);
        self.gaps(|gap| bits += gap as u64 >> k);
        bits
    }

    /// The low bits with which they take fewest, and how many bits that is.
    fn low_bits(&self) -> (u32, u64) {
        // The best is about the logarithm of the middle gap.
        let middle = (self.set.span * 11 / 16 / self.count().max(1)).max(1);
        let near = [middle.ilog2(), middle.ilog2() + 1];
        let [one, other] = near.map(|k| (k, self.bits(k)));
        if other.1 < one.1 { other } else { one }
    }
}

/// Puts the members of a batch in a set.
pub(crate) fn put(out: &mut RecordWriter<impl Write>, set: &HierarchicalBitmap) -> io::Result<()> {
    if set.is_full() {
        return out.write_all(&[ALL]);
    }
    let form = if set.count <= set.span / 2 { IN } else { OUT };
    let members = EncodedMembers { set, form };
    let (k, bits) = members.low_bits();
    out.write_all(&[form, k as u8])?;
    out.put_u64(members.count() as u64)?;
    out.put_u64(bits.div_ceil(u64::from(WORD)))?;
    let mut words = BitWriter {
        out,
        word: 0,
        used: 0,
        done: Ok(()),
    };
    members.gaps(|gap| {
        words.zeros(gap as u64 >> k);
        words.bits(1, 1);
        words.bits(gap as u64 & ((1 << k) - 1), k);
    });
    words.end()
}

/// Goes past the members of a batch.
pub(crate) fn pass(from: &mut RecordReader<'_>) -> io::Result<()> {
    if head(from)?.is_none() {
        return Ok(());
    }
    from.number()?;
    let words = from.count(8)?;
    from.pass(8 * words);
    Ok(())
}

/// Reads a form and its low bits; `None` if all of the batch are in the set.
fn head(from: &mut RecordReader<'_>) -> io::Result<Option<(u8, u32)>> {
    let [form] = from.array()?;
    if form == ALL {
        return Ok(None);
    }
    let [k] = from.array()?.map(u32::from);
    match matches!(form, IN | OUT) && k < WORD {
        true => Ok(Some((form, k))),
        false => Err(corrupt()),
    }
}

/// Reads the members of a batch into an empty set; returns `false` if the span does not match.
pub(crate) fn take(from: &mut RecordReader<'_>, set: &mut HierarchicalBitmap) -> io::Result<bool> {
    let head = head(from)?;
    if head.is_none_or(|(form, _)| form == OUT) {
        set.insert_all();
    }
    let Some((form, k)) = head else {
        return Ok(true);
    };
    let count = from.number()?;
    let left = from.count(8)?;
    let mut words = BitReader {
        from,
        left,
        word: 0,
        used: WORD,
    };
    let mut next = 0;
    for _ in 0..count {
        let high = words.zeros()?.checked_mul(1 << k).ok_or_else(corrupt)?;
        let gap = high | words.bits(k)?;
        let i = gap.saturating_add(next);
        if i >= set.span as u64 {
            return Ok(false);
        }
        match form {
            IN => set.insert(i as usize),
            _ => set.remove(i as usize),
        }
        next = i + 1;
    }
    words.end()
}

/// Words that are written, bit by bit.
struct BitWriter<'o, W> {
    out: &'o mut RecordWriter<W>,
    word: u64,
    used: u32,
    done: io::Result<()>,
}

impl<W: Write> BitWriter<'_, W> {
    fn zeros(&mut self, mut count: u64) {
        while count > 0 {
            let some = count.min(u64::from(WORD - self.used)) as u32;
            self.skip(some);
            count -= u64::from(some);
        }
    }
    /// The `count` low bits of `bits`, which has no others: fewer than there are in a word.
    fn bits(&mut self, bits: u64, count: u32) {
        self.word |= bits << self.used;
        let fit = (WORD - self.used).min(count);
        self.skip(fit);
        if fit < count {
            self.word = bits >> fit;
            self.skip(count - fit);
        }
    }
    /// Skips `count` bits of this word.
    fn skip(&mut self, count: u32) {
        self.used += count;
        if self.used == WORD {
            if self.done.is_ok() {
                self.done = self.out.put_u64(self.word);
            }
            (self.word, self.used) = (0, 0);
        }
    }
    fn end(self) -> io::Result<()> {
        self.done?;
        match self.used {
            0 => Ok(()),
            _ => self.out.put_u64(self.word),
        }
    }
}

/// Words that are read, bit by bit.
struct BitReader<'r, 'f> {
    from: &'r mut RecordReader<'f>,
    /// Words that come after this one.
    left: u64,
    word: u64,
    used: u32,
}

impl BitReader<'_, '_> {
    /// Returns the unread bits of the current word.
    fn rest(&mut self) -> io::Result<u64> {
        if self.used == WORD {
            self.left = self.left.checked_sub(1).ok_or_else(corrupt)?;
            (self.word, self.used) = (self.from.number()?, 0);
        }
        Ok(self.word >> self.used)
    }
    /// How many zeros are before a one, which is passed too.
    fn zeros(&mut self) -> io::Result<u64> {
        let mut count = 0;
        loop {
            let rest = self.rest()?;
            if rest != 0 {
                let zeros = rest.trailing_zeros();
                self.used += zeros + 1;
                return Ok(count + u64::from(zeros));
            }
            count += u64::from(WORD - self.used);
            self.used = WORD;
        }
    }
    /// Reads `count` bits, fewer than a word has.
    fn bits(&mut self, count: u32) -> io::Result<u64> {
        let (mut bits, mut got) = (0, 0);
        while got < count {
            bits |= self.rest()? << got;
            let fit = (WORD - self.used).min(count - got);
            self.used += fit;
            got += fit;
        }
        Ok(bits & ((1 << count) - 1))
    }
    /// Nothing is left but what fills the last word.
    fn end(self) -> io::Result<bool> {
        let is_empty = self.left == 0 && self.word.checked_shr(self.used).unwrap_or(0) == 0;
        if is_empty { Ok(true) } else { Err(corrupt()) }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use graphmill_storage::{Disk, MemoryBudget, RandomAccessFile, SimDisk};

    use super::*;

    const MAGIC: &[u8; 8] = b"GMTEST\0\x01";

    fn set(span: usize, members: impl Iterator<Item = usize>) -> HierarchicalBitmap {
        let mut set = HierarchicalBitmap::default();
        set.reserve(span, &MemoryBudget::new(1 << 20)).unwrap();
        members.for_each(|i| set.insert(i));
        set
    }

    fn file(bytes: &[u8]) -> RandomAccessFile {
        let disk: Arc<dyn Disk> = Arc::new(SimDisk::new(1));
        let path = Path::new("/set");
        disk.write_small(path, bytes).unwrap();
        RandomAccessFile::open(&disk, &MemoryBudget::new(1 << 20), path, 4096).unwrap()
    }

    fn written(set: &HierarchicalBitmap) -> Vec<u8> {
        let mut out = RecordWriter::new(Vec::new(), MAGIC).unwrap();
        put(&mut out, set).unwrap();
        out.finish().unwrap()
    }

    /// Numbers below `span`, each with a chance of `parts` in a thousand.
    fn drawn(span: usize, parts: u64) -> impl Iterator<Item = usize> {
        let mut x = 99u64;
        (0..span).filter(move |_| {
            x = (x ^ (x << 13)) ^ ((x ^ (x << 13)) >> 7);
            x ^= x << 17;
            x % 1000 < parts
        })
    }

    #[test]
    fn set_codec_round_trips_near_entropy() {
        for span in [1, 63, 64, 65, 1000, 70_000] {
            for parts in [0, 1, 10, 100, 190, 310, 500, 700, 990, 999, 1000] {
                let before = set(span, drawn(span, parts));
                let bytes = written(&before);
                let file = file(&bytes);
                let mut from = RecordReader::open(&file, MAGIC).unwrap();
                let begin = from.position();
                let mut after = set(span, std::iter::empty());
                assert!(take(&mut from, &mut after).unwrap());
                assert_eq!((&before.words, before.count), (&after.words, after.count));
                from.end().unwrap();
                let mut from = RecordReader::at(&file, begin);
                pass(&mut from).unwrap();
                from.end().unwrap();

                let p = before.count as f64 / span as f64;
                let entropy = |p: f64| if p > 0.0 { -p * p.log2() } else { 0.0 };
                let least = span as f64 * (entropy(p) + entropy(1.0 - p)) / 8.0;
                let least = least.max(before.count.min(span - before.count) as f64 / 8.0);
                // The rest: magic, the header before the words, the last word, the checksum.
                let bound = 1.05 * least + 8.0 + 18.0 + 8.0 + 4.0;
                assert!(
                    bytes.len() as f64 <= bound,
                    "{parts} of 1000 of {span}: {} bytes, {bound} at most",
                    bytes.len()
                );
            }
        }
    }

    #[test]
    fn set_members_beyond_batch_are_refused() {
        for members in [900..901, 0..900] {
            let file = file(&written(&set(1000, members)));
            let mut from = RecordReader::open(&file, MAGIC).unwrap();
            assert!(!take(&mut from, &mut set(800, std::iter::empty())).unwrap());
        }
    }

    #[test]
    fn set_words_left_unused_are_refused() {
        let mut out = RecordWriter::new(Vec::new(), MAGIC).unwrap();
        out.write_all(&[IN, 0]).unwrap();
        out.put_u64(1).unwrap();
        out.put_u64s([0b101].into_iter()).unwrap();
        let file = file(&out.finish().unwrap());
        let mut from = RecordReader::open(&file, MAGIC).unwrap();
        assert!(take(&mut from, &mut set(64, std::iter::empty())).is_err());
    }
}
