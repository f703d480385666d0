//! The bytes of a Parquet file as the `parquet` crate reads them, through a disk and within bounds.
//!
//! The crate allocates what the header of a page says. So a header is looked at before the crate parses it: no page may be
//! larger than its row group says. Its panics on broken files become errors.

use std::io::Read;
use std::panic::{AssertUnwindSafe, catch_unwind};

use bytes::Bytes;
use flate2::bufread::MultiGzDecoder;
use graphmill_storage::{ByteFile, ByteReader};
use memchr::memmem;
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::reader::{ChunkReader, Length};

/// Bytes of a page header that hold the sizes of the page.
const HEADER_BYTES: usize = 32;

/// A file, of which no page may unpack to more than so many bytes.
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
            // What is no gzip after all, the library finds out.
            let count = std::io::copy(&mut { unpacked }, &mut std::io::sink()).unwrap_or(0);
            if count > most {
                return Err(broken("a page unpacks to more than its row group says"));
            }
        }
        Ok(bytes.into())
    }
}

/// What a page unpacks to, by its header in Thrift's compact protocol: field 1 is its type, 2 its size, 3 its packed size.
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
    use super::page_bytes;

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
