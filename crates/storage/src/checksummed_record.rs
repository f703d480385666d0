//! A file of numbers and bytes with a checksum: a reader gets what was written, or an error.
//!
//! ```text
//! magic: 8 bytes | numbers and bytes | CRC-32 of all before: u32
//! ```
//!
//! Numbers are little-endian; bytes and lists begin with their length as a u64. The reader rejects a length beyond the end of the file.

use std::io::{self, BufReader, Read, Write};

use graphmill_raw::failpoint;

use crate::random_access_file::{ByteReader, RandomAccessFile};

/// Bytes of one read.
const PIECE_BYTES: usize = 4096;
/// Bytes of the checksum at the end.
const SUM_BYTES: u64 = size_of::<u32>() as u64;

/// A writer of a record.
#[derive(Debug)]
pub struct RecordWriter<W> {
    out: W,
    hasher: crc32fast::Hasher,
}

impl<W: Write> Write for RecordWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.hasher.update(&bytes[..written]);
        Ok(written)
    }
    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[expect(
    clippy::missing_errors_doc,
    reason = "all of them pass on what the writer says"
)]
impl<W: Write> RecordWriter<W> {
    /// Starts a record of the kind `magic` in `out`.
    pub fn new(out: W, magic: &[u8; 8]) -> io::Result<Self> {
        let hasher = crc32fast::Hasher::new();
        let mut record = RecordWriter { out, hasher };
        record.write_all(magic)?;
        Ok(record)
    }
    /// Writes a number.
    pub fn put_u64(&mut self, number: u64) -> io::Result<()> {
        self.write_all(&number.to_le_bytes())
    }
    /// Writes a number of 32 bits.
    pub fn put_u32(&mut self, word: u32) -> io::Result<()> {
        self.write_all(&word.to_le_bytes())
    }
    /// Writes bytes, after their number.
    pub fn put_bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.put_u64(bytes.len() as u64)?;
        self.write_all(bytes)
    }
    /// Writes numbers, after their count.
    pub fn put_u64s(&mut self, numbers: impl ExactSizeIterator<Item = u64>) -> io::Result<()> {
        self.put_u64(numbers.len() as u64)?;
        (numbers.into_iter()).try_for_each(|number| self.put_u64(number))
    }
    /// Writes whether there is a value, and the value by `put`.
    pub fn optional<T>(
        &mut self,
        some: Option<T>,
        put: impl FnOnce(T, &mut Self) -> io::Result<()>,
    ) -> io::Result<()> {
        self.put_u32(u32::from(some.is_some()))?;
        some.map_or(Ok(()), |some| put(some, self))
    }
    /// Ends the record and returns `out`.
    pub fn finish(mut self) -> io::Result<W> {
        let sum = self.hasher.finalize();
        self.out.write_all(&sum.to_le_bytes())?;
        Ok(self.out)
    }
}

/// A reader of a record.
#[derive(Debug)]
pub struct RecordReader<'f> {
    file: &'f RandomAccessFile,
    from: BufReader<ByteReader>,
    at: u64,
}

#[expect(
    clippy::missing_errors_doc,
    reason = "all of them: the file cannot be read, or is not what was written"
)]
impl<'f> RecordReader<'f> {
    /// Opens the record in a file; first reads the whole file and checks its checksum.
    pub fn open(file: &'f RandomAccessFile, magic: &[u8; 8]) -> io::Result<Self> {
        let mut all = RecordReader::at(file, 0);
        let mut hasher = crc32fast::Hasher::new();
        let mut left = file.bytes().checked_sub(SUM_BYTES).ok_or_else(corrupt)?;
        let mut piece = [0; PIECE_BYTES];
        while left > 0 {
            let part = &mut piece[..left.min(PIECE_BYTES as u64) as usize];
            all.exact(part)?;
            hasher.update(part);
            left -= part.len() as u64;
        }
        let (stored, found) = (all.word()?, hasher.finalize());
        failpoint!(VersionNotChecked: stored = found);
        if stored != found {
            return Err(corrupt());
        }
        let mut record = RecordReader::at(file, 0);
        let is_known = record.array()? == *magic;
        is_known.then_some(record).ok_or_else(corrupt)
    }
    /// Reads a record that was opened before, from byte `at` of the file on.
    #[must_use]
    pub fn at(file: &'f RandomAccessFile, at: u64) -> Self {
        RecordReader {
            file,
            from: BufReader::with_capacity(PIECE_BYTES, file.reader_from(at)),
            at,
        }
    }
    /// Returns the offset of the next byte in the file.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.at
    }
    /// Skips bytes.
    pub fn pass(&mut self, bytes: u64) {
        if bytes > 0 {
            *self = RecordReader::at(self.file, self.at.saturating_add(bytes));
        }
    }
    /// Fills `bytes`.
    pub fn exact(&mut self, bytes: &mut [u8]) -> io::Result<()> {
        self.at += bytes.len() as u64;
        self.from.read_exact(bytes)
    }
    /// Reads `N` bytes.
    pub fn array<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        let mut array = [0; N];
        self.exact(&mut array)?;
        Ok(array)
    }
    /// Reads a number of 32 bits.
    pub fn word(&mut self) -> io::Result<u32> {
        self.array().map(u32::from_le_bytes)
    }
    /// Reads a number.
    pub fn number(&mut self) -> io::Result<u64> {
        self.array().map(u64::from_le_bytes)
    }
    /// Reads a count of items of `bytes` bytes each, and checks that the file holds them all.
    pub fn count(&mut self, bytes: u64) -> io::Result<u64> {
        let count = self.number()?;
        let left = self.file.bytes().saturating_sub(self.at);
        let fits = count <= left / bytes;
        fits.then_some(count).ok_or_else(corrupt)
    }
    /// Reads bytes, after their number.
    pub fn bytes(&mut self) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; self.count(1)? as usize];
        self.exact(&mut bytes)?;
        Ok(bytes)
    }
    /// Reads numbers, after their count.
    pub fn numbers(&mut self) -> io::Result<Vec<u64>> {
        (0..self.count(8)?).map(|_| self.number()).collect()
    }
    /// Reads a value by `take`; `None` if there is none.
    pub fn optional<T>(
        &mut self,
        take: impl FnOnce(&mut Self) -> io::Result<T>,
    ) -> io::Result<Option<T>> {
        match self.word()? {
            0 => Ok(None),
            1 => take(self).map(Some),
            _ => Err(corrupt()),
        }
    }
    /// Ends the record and checks that no byte is left.
    pub fn end(self) -> io::Result<()> {
        let is_end = self.at.checked_add(SUM_BYTES) == Some(self.file.bytes());
        is_end.then_some(()).ok_or_else(corrupt)
    }
}

/// Returns the error of a file that does not hold what was written.
#[must_use]
pub fn corrupt() -> io::Error {
    io::ErrorKind::InvalidData.into()
}

/// Returns true if an error says that a file does not hold what was written.
#[must_use]
pub fn is_corrupt(error: &io::Error) -> bool {
    use io::ErrorKind::{InvalidData, UnexpectedEof};
    matches!(error.kind(), InvalidData | UnexpectedEof)
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use super::*;
    use crate::disk::port::Disk;
    use crate::disk::sim::SimDisk;
    use crate::memory_budget::MemoryBudget;

    const MAGIC: &[u8; 8] = b"GMTEST\0\x01";

    fn file(bytes: &[u8]) -> RandomAccessFile {
        let disk: Arc<dyn Disk> = Arc::new(SimDisk::new(1));
        let path = Path::new("/record");
        disk.write_small(path, bytes).unwrap();
        RandomAccessFile::open(&disk, &MemoryBudget::new(1 << 20), path, PIECE_BYTES).unwrap()
    }

    fn written() -> Vec<u8> {
        let mut record = RecordWriter::new(Vec::new(), MAGIC).unwrap();
        record.put_u64(7).unwrap();
        record.put_bytes(b"some").unwrap();
        record.put_u64s([1, 2, u64::MAX].into_iter()).unwrap();
        record.put_u32(9).unwrap();
        record
            .optional(Some(8), |number, out| out.put_u64(number))
            .unwrap();
        record
            .optional(None, |number, out| out.put_u64(number))
            .unwrap();
        record.finish().unwrap()
    }

    type Read = (u64, Vec<u8>, Vec<u64>, u32, [Option<u64>; 2]);

    fn read(bytes: &[u8]) -> io::Result<Read> {
        let file = file(bytes);
        let mut record = RecordReader::open(&file, MAGIC)?;
        let all = (
            record.number()?,
            record.bytes()?,
            record.numbers()?,
            record.word()?,
            [
                record.optional(RecordReader::number)?,
                record.optional(RecordReader::number)?,
            ],
        );
        record.end()?;
        Ok(all)
    }

    #[test]
    fn record_round_trips_and_detects_any_flip() {
        let bytes = written();
        let expected = (
            7,
            b"some".to_vec(),
            vec![1, 2, u64::MAX],
            9,
            [Some(8), None],
        );
        assert_eq!(read(&bytes).unwrap(), expected);
        for at in 0..bytes.len() {
            assert!(is_corrupt(&read(&bytes[..at]).unwrap_err()), "cut at {at}");
            for bit in 0..8 {
                let mut bad = bytes.clone();
                bad[at] ^= 1 << bit;
                assert!(is_corrupt(&read(&bad).unwrap_err()), "byte {at} bit {bit}");
            }
        }
    }

    #[test]
    fn record_lengths_beyond_the_file_are_refused() {
        let bytes = written();
        for at in 8..bytes.len() - 4 {
            let mut bad = bytes.clone();
            bad[at] = 0xff;
            let (all, sum) = bad.split_at_mut(bytes.len() - 4);
            sum.copy_from_slice(&crc32fast::hash(all).to_le_bytes());
            if let Err(error) = read(&bad) {
                assert!(is_corrupt(&error), "byte {at}: {error}");
            }
        }
    }
}
