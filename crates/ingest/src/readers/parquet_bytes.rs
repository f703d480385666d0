//! The bytes of a Parquet file as the `parquet` crate reads them, through a disk and within bounds.
//!
//! The crate allocates as much as the header of a page says. So this file reads a header before the crate parses it: no page may
//! be larger than its row group says. The crate also loops over some lists for as long as their length says: lists of booleans,
//! which no header and no footer has, and lists of numbers behind the end of the file. A file with any is refused. The crate's
//! panics on broken files become errors.

use std::io::{ErrorKind, Read};
use std::panic::{AssertUnwindSafe, catch_unwind};

use bytes::Bytes;
use flate2::bufread::MultiGzDecoder;
use graphmill_storage::{ByteFile, ByteReader};
use memchr::memmem;
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::reader::{ChunkReader, Length};

/// Bytes of a page header that hold the sizes of the page.
const HEADER_BYTES: usize = 32;

/// A file whose pages may unpack to a limited number of bytes.
#[derive(Clone, Debug)]
pub struct ParquetBytes {
    file: ByteFile,
    /// `None`: the footer is read, not pages.
    page_bytes_max: Option<u64>,
    /// Pages are packed with gzip, whose unpacked size no header bounds.
    gzip: bool,
}

impl ParquetBytes {
    /// The file, for its footer.
    #[must_use]
    pub fn new(file: ByteFile) -> Self {
        Self {
            file,
            page_bytes_max: None,
            gzip: false,
        }
    }

    /// The file, for pages that unpack to `most` bytes.
    #[must_use]
    pub fn bounded(file: ByteFile, most: u64, gzip: bool) -> Self {
        Self {
            file,
            page_bytes_max: Some(most),
            gzip,
        }
    }
}

fn broken(what: impl Into<String>) -> ParquetError {
    ParquetError::General(what.into())
}

impl Length for ParquetBytes {
    fn len(&self) -> u64 {
        self.file.bytes()
    }
}

impl ChunkReader for ParquetBytes {
    type T = ByteReader;

    fn get_read(&self, start: u64) -> ParquetResult<ByteReader> {
        if let Some(most) = self.page_bytes_max {
            let mut head = Vec::with_capacity(HEADER_BYTES);
            let mut reader = self.file.reader_from(start).take(HEADER_BYTES as u64);
            reader.read_to_end(&mut head)?;
            let bytes = page_bytes(&head).ok_or_else(|| broken("a page has a broken header"))?;
            if bytes > most {
                return Err(broken(format!(
                    "a page says that it unpacks to {bytes} bytes, and its row group says {most}"
                )));
            }
            refuse_endless_lists(&mut self.file.reader_from(start))?;
        }
        Ok(self.file.reader_from(start))
    }

    fn get_bytes(&self, start: u64, length: usize) -> ParquetResult<Bytes> {
        let end = start.checked_add(length as u64);
        if end.is_none_or(|end| end > self.len()) {
            let what = format!("bytes {start} and {length} on of a file of {}", self.len());
            return Err(ParquetError::EOF(what));
        }
        let mut bytes = vec![0; length];
        self.file.reader_from(start).read_exact(&mut bytes)?;
        if let (true, Some(most)) = (self.gzip, self.page_bytes_max)
            && let Some(at) = memmem::find(&bytes, b"\x1f\x8b\x08")
        {
            let unpacked = MultiGzDecoder::new(&bytes[at..]).take(most + 1);
            // If this is no gzip after all, the library reports it.
            let count = std::io::copy(&mut { unpacked }, &mut std::io::sink()).unwrap_or(0);
            if count > most {
                return Err(broken("a page unpacks to more than its row group says"));
            }
        }
        Ok(bytes.into())
    }
}

/// Returns the bytes that a page unpacks to, by its header in Thrift's compact protocol.
///
/// Field 1 is its type, 2 its size, 3 its packed size.
fn page_bytes(header: &[u8]) -> Option<u64> {
    let mut at = 0;
    let mut number = |field: u8| {
        // The field follows the one before it and is an integer of 32 bits.
        if *header.get(at)? != field {
            return None;
        }
        at += 1;
        let (mut value, mut shift) = (0u64, 0);
        loop {
            let byte = *header.get(at)?;
            at += 1;
            value |= u64::from(byte & 0x7f) << shift;
            shift += 7;
            if byte & 0x80 == 0 {
                break;
            }
            if shift > 28 {
                return None;
            }
        }
        // Zigzag: an odd number is negative.
        (value & 1 == 0).then_some(value >> 1)
    };
    number(0x15)?;
    number(0x15)
}

/// Levels of structures that the library follows.
const LEVELS_MAX: u32 = 64;

/// Refuses a structure in Thrift's compact protocol that is cut off, or has lists whose elements the library takes to be empty.
pub(super) fn refuse_endless_lists(from: &mut dyn Read) -> ParquetResult<()> {
    skip(from, STRUCT, LEVELS_MAX).map_err(|error| match error.kind() {
        ErrorKind::InvalidData => broken("it has a list of booleans where there is none"),
        ErrorKind::UnexpectedEof => broken("a header or its footer makes no sense"),
        _ => error.into(),
    })
}

const TRUE: u8 = 1;
const FALSE: u8 = 2;
const STRUCT: u8 = 12;

/// Skips a value of a type; `InvalidData` if it holds a list of booleans.
fn skip(from: &mut dyn Read, kind: u8, levels: u32) -> std::io::Result<()> {
    let byte = |from: &mut dyn Read| {
        let mut byte = [0];
        from.read_exact(&mut byte).map(|()| byte[0])
    };
    let number = |from: &mut dyn Read| {
        let (mut value, mut shift) = (0u64, 0);
        loop {
            let byte = byte(from)?;
            value |= u64::from(byte & 0x7f).checked_shl(shift).unwrap_or(0);
            shift += 7;
            if byte & 0x80 == 0 {
                return Ok::<_, std::io::Error>(value);
            }
        }
    };
    let bytes = |from: &mut dyn Read, count: u64| {
        let skipped = std::io::copy(&mut from.take(count), &mut std::io::sink())?;
        match skipped == count {
            true => Ok(()),
            false => Err(ErrorKind::UnexpectedEof.into()),
        }
    };
    let levels = levels.checked_sub(1).ok_or(ErrorKind::UnexpectedEof)?;
    let element = |kind| match kind {
        TRUE | FALSE => Err(ErrorKind::InvalidData),
        kind => Ok(kind),
    };
    match kind {
        TRUE | FALSE => Ok(()),
        3 => byte(from).map(drop),
        4..=6 => number(from).map(drop),
        7 => bytes(from, 8),
        8 => {
            let count = number(from)?;
            bytes(from, count)
        }
        // A list or a set: its length is in the same byte where it is short.
        9 | 10 => {
            let head = byte(from)?;
            let count = match head >> 4 {
                15 => number(from)?,
                count => count.into(),
            };
            for _ in 0..count {
                skip(from, element(head & 15)?, levels)?;
            }
            Ok(())
        }
        // A map.
        11 => {
            let count = number(from)?;
            let kinds = if count > 0 { byte(from)? } else { 0 };
            for _ in 0..count {
                skip(from, element(kinds >> 4)?, levels)?;
                skip(from, element(kinds & 15)?, levels)?;
            }
            Ok(())
        }
        STRUCT => loop {
            match byte(from)? {
                0 => return Ok(()),
                head => {
                    if head >> 4 == 0 {
                        number(from)?;
                    }
                    skip(from, head & 15, levels)?;
                }
            }
        },
        13 => bytes(from, 16),
        _ => Err(ErrorKind::UnexpectedEof.into()),
    }
}

/// Runs a step of the library; its panic on a broken file becomes an error.
///
/// # Errors
/// What the step returns, or that it panicked.
pub fn guarded<T>(step: impl FnOnce() -> ParquetResult<T>) -> ParquetResult<T> {
    match catch_unwind(AssertUnwindSafe(step)) {
        Ok(result) => result,
        Err(_) => Err(broken("the Parquet library gave up on it")),
    }
}

#[cfg(test)]
mod tests {
    use super::{page_bytes, refuse_endless_lists};

    #[test]
    fn endless_lists_are_refused_wherever_they_are() {
        // Field 1: a list of two numbers, a list of three booleans; the same in a structure of a structure; what is cut off.
        for (bytes, is_refused) in [
            (&[0x19, 0x25, 1, 1, 0][..], false),
            (&[0x19, 0x31, 1, 1, 1, 0], true),
            (&[0x19, 0x01, 0], false),
            (&[0x1c, 0x1c, 0x1b, 0x05, 0x52, 1, 0, 0, 0, 0], true),
            (&[0x15, 0x80, 0x01, 0x19, 0xf2, 0xff, 0xff, 0x03], true),
            (&[0x18, 0x02, 0x19, 0x31, 0], false),
            (&[0x19, 0x35], true),
            (&[0x19, 0xf7, 0xff, 0xff, 0x03], true),
            (&[0x1c; 100], true),
        ] {
            let refused = refuse_endless_lists(&mut &*bytes).is_err();
            assert_eq!(refused, is_refused, "{bytes:?}");
        }
    }

    #[test]
    fn page_size_is_read_from_a_compact_header() {
        assert_eq!(
            page_bytes(&[0x15, 0x04, 0x15, 0x80, 0x02, 0x15, 0x10]),
            Some(128)
        );
        assert_eq!(page_bytes(&[0x15, 0x00, 0x15, 0x01]), None);
        assert_eq!(
            page_bytes(&[0x15, 0x00, 0x15, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]),
            None
        );
        assert_eq!(page_bytes(&[0x15]), None);
    }
}
