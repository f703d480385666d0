//! A checkpoint as a record: the whole state of a run except for its pages.
//!
//! ```text
//! job, number of the checkpoint: u64, whether it follows another: u8 | told, arrays, sets
//! told   CRC-32 of the logged results: u32 | its full pages: count of (slot + 1: u64, CRC-32: u32) | the rest: bytes
//! arrays count of (name: bytes, bytes of an element: u32, pages: count of (slot + 1, or 0: u64, CRC-32: u32))
//! sets   count of (number: u64, batches: count of (batch: u64, who is in the set: frontier/codec.rs))
//! ```

use std::io;
use std::io::Write;
use std::sync::Arc;

use graphmill_raw::lock;
use graphmill_storage::{RandomAccessFile, RecordReader, RecordWriter, corrupt};

use crate::frontier::bitmap::{BatchBitmaps, HierarchicalBitmap};
use crate::frontier::codec;
use crate::state::checkpoint_copy::SavedColumn;
use crate::state::row_file::{PageTable, SlotRef};

const MAGIC: &[u8; 8] = b"GMVERS\0\x03";

/// The log in a checkpoint: pages do not change once they are full.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LogPage {
    pub(crate) checksum: u32,
    pub(crate) pages: PageTable,
    pub(crate) rest: Vec<u8>,
}

/// A checkpoint.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Snapshot {
    pub(crate) job: u64,
    /// Entries that it has.
    pub(crate) number: u64,
    /// All ranks had one before it.
    pub(crate) follows: bool,
    pub(crate) log: LogPage,
    pub(crate) arrays: Vec<SavedColumn>,
    /// The sets by number, each with the byte of the file where its batches begin.
    pub(crate) sets: Vec<(u64, u64)>,
}

impl Snapshot {
    /// All pages that it has.
    pub(crate) fn slots(&self) -> impl Iterator<Item = &SlotRef> {
        let arrays = self.arrays.iter().flat_map(|array| &array.pages);
        self.log.pages.iter().chain(arrays).flatten()
    }

    /// Writes it with these sets.
    pub(crate) fn write(
        &self,
        sets: &[(u64, Arc<BatchBitmaps>)],
        out: impl Write,
    ) -> io::Result<()> {
        let mut out = RecordWriter::new(out, MAGIC)?;
        out.put_u64(self.job)?;
        out.put_u64(self.number)?;
        out.write_all(&[u8::from(self.follows)])?;
        out.put_u32(self.log.checksum)?;
        put_pages(&mut out, &self.log.pages)?;
        out.put_bytes(&self.log.rest)?;
        out.put_u64(self.arrays.len() as u64)?;
        for array in &self.arrays {
            out.put_bytes(array.name.as_bytes())?;
            out.put_u32(array.element_bytes as u32)?;
            put_pages(&mut out, &array.pages)?;
        }
        out.put_u64(sets.len() as u64)?;
        for (number, of_batches) in sets {
            out.put_u64(*number)?;
            let has_any = |set: &&std::sync::Mutex<HierarchicalBitmap>| lock(set).count > 0;
            out.put_u64(of_batches.iter().filter(has_any).count() as u64)?;
            for (batch, set) in of_batches.iter().enumerate() {
                let set = lock(set);
                if set.count > 0 {
                    out.put_u64(batch as u64)?;
                    codec::put(&mut out, &set)?;
                }
            }
        }
        out.finish().map(drop)
    }

    /// What a file says.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidData`]: it is not what was written.
    pub(crate) fn read(file: &RandomAccessFile) -> io::Result<Snapshot> {
        let mut from = RecordReader::open(file, MAGIC)?;
        let mut record = Snapshot {
            job: from.number()?,
            number: from.number()?,
            follows: from.array()? == [1],
            ..Snapshot::default()
        };
        record.log = LogPage {
            checksum: from.word()?,
            pages: pages(&mut from)?,
            rest: from.bytes()?,
        };
        for _ in 0..from.number()? {
            record.arrays.push(SavedColumn {
                name: String::from_utf8(from.bytes()?).map_err(|_| corrupt())?,
                element_bytes: from.word()? as usize,
                pages: pages(&mut from)?,
            });
        }
        for _ in 0..from.number()? {
            record.sets.push((from.number()?, from.position()));
            for _ in 0..from.number()? {
                from.number()?;
                codec::pass(&mut from)?;
            }
        }
        from.end()?;
        Ok(record)
    }
}

/// Puts a table of pages.
fn put_pages(out: &mut RecordWriter<impl Write>, pages: &PageTable) -> io::Result<()> {
    out.put_u64(pages.len() as u64)?;
    for page in pages {
        let (slot, checksum) = page.map_or((0, 0), |slot| (slot.number + 1, slot.checksum));
        out.put_u64(slot)?;
        out.put_u32(checksum)?;
    }
    Ok(())
}

/// A table of pages.
fn pages(from: &mut RecordReader<'_>) -> io::Result<PageTable> {
    let count = from.count(12)?;
    let one = |_| {
        let (slot, checksum) = (from.number()?, from.word()?);
        Ok((slot.checked_sub(1)).map(|number| SlotRef { number, checksum }))
    };
    (0..count).map(one).collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Mutex;

    use graphmill_storage::{Disk, MemoryBudget, SimDisk, is_corrupt};

    use super::*;

    fn example() -> (Snapshot, BatchBitmaps) {
        let of_batch = |members: std::ops::Range<usize>| {
            let mut of_batch = HierarchicalBitmap::default();
            of_batch.reserve(200, &MemoryBudget::new(1 << 20)).unwrap();
            members.for_each(|i| of_batch.insert(i));
            Mutex::new(of_batch)
        };
        let slot = |number, checksum| Some(SlotRef { number, checksum });
        let record = Snapshot {
            job: 5,
            number: 2,
            follows: true,
            log: LogPage {
                checksum: 9,
                pages: vec![slot(0, 7)],
                rest: b"sum".to_vec(),
            },
            arrays: vec![SavedColumn {
                name: "depth".into(),
                element_bytes: 4,
                pages: vec![None, slot(3, 0xdead_beef)],
            }],
            sets: Vec::new(),
        };
        let sets = [0..1, 0..0, 0..200, 0..150].map(of_batch);
        (record, sets.into_iter().collect())
    }

    fn written() -> Vec<u8> {
        let (record, sets) = example();
        let mut bytes = Vec::new();
        let none = (0..4).map(|_| Mutex::default()).collect();
        let sets = [(9, Arc::new(sets)), (10, Arc::new(none))];
        record.write(&sets, &mut bytes).unwrap();
        bytes
    }

    fn file(bytes: &[u8]) -> RandomAccessFile {
        let disk: Arc<dyn Disk> = Arc::new(SimDisk::new(1));
        let path = Path::new("/version");
        disk.write_small(path, bytes).unwrap();
        RandomAccessFile::open(&disk, &MemoryBudget::new(1 << 20), path, 4096).unwrap()
    }

    #[test]
    fn snapshot_round_trips_and_detects_any_flip() {
        let bytes = written();
        let back = Snapshot::read(&file(&bytes)).unwrap();
        let sets = back.sets.clone();
        assert_eq!(sets.iter().map(|set| set.0).collect::<Vec<_>>(), [9, 10]);
        assert_eq!(
            Snapshot {
                sets,
                ..example().0
            },
            back
        );
        let is_noticed = |bytes: &[u8]| is_corrupt(&Snapshot::read(&file(bytes)).unwrap_err());
        for at in 0..bytes.len() {
            assert!(is_noticed(&bytes[..at]), "cut at {at}");
            for bit in 0..8 {
                let mut bad = bytes.clone();
                bad[at] ^= 1 << bit;
                assert!(is_noticed(&bad), "byte {at} bit {bit}");
            }
        }
    }

    #[test]
    fn snapshot_counts_beyond_the_file_are_refused() {
        let bytes = written();
        for at in 0..bytes.len() - 4 {
            let mut bad = bytes.clone();
            bad[at] = 0xff;
            let (all, sum) = bad.split_at_mut(bytes.len() - 4);
            sum.copy_from_slice(&crc32fast::hash(all).to_le_bytes());
            if let Err(error) = Snapshot::read(&file(&bad)) {
                assert!(is_corrupt(&error), "byte {at}: {error}");
            }
        }
    }

    #[test]
    fn snapshot_sets_round_trip_in_each_form() {
        let file = file(&written());
        let record = Snapshot::read(&file).unwrap();
        let mut from = RecordReader::at(&file, record.sets[0].1);
        let mut counts = Vec::new();
        for _ in 0..from.number().unwrap() {
            let batch = from.number().unwrap();
            let mut back = HierarchicalBitmap::default();
            back.reserve(200, &MemoryBudget::new(1 << 20)).unwrap();
            assert!(codec::take(&mut from, &mut back).unwrap());
            counts.push((batch, back.count));
        }
        assert_eq!(counts, [(0, 1), (2, 200), (3, 150)]);
        // A batch of fewer vertices than the checkpoint says.
        let mut from = RecordReader::at(&file, record.sets[0].1);
        let mut small = HierarchicalBitmap::default();
        small.reserve(100, &MemoryBudget::new(1 << 20)).unwrap();
        from.number().unwrap();
        for expected in [true, true, false] {
            from.number().unwrap();
            assert_eq!(codec::take(&mut from, &mut small).unwrap(), expected);
        }
    }
}
