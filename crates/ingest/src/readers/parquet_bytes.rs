//! The bytes of a Parquet file as the `parquet` crate reads them, through a disk and within bounds.
//!
//! The crate allocates as much as the header of a page says. So this file checks a header before the crate parses it: no page may
//! be larger than its row group says, and its fields must have the types that Parquet defines ([`thrift`]). The crate's panics on
//! broken files become errors.

use std::io::Read;
use std::panic::{AssertUnwindSafe, catch_unwind};

use bytes::Bytes;
use flate2::bufread::MultiGzDecoder;
use graphmill_storage::{ByteReader, RandomAccessFile};
use memchr::memmem;
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::reader::{ChunkReader, Length};

use super::thrift::{self, PageSize, broken};

/// A file whose pages have a limited size.
#[derive(Clone, Debug)]
pub struct ParquetBytes {
    file: RandomAccessFile,
    /// `None`: the footer is read, not pages.
    page_size_max: Option<PageSize>,
    /// Pages are packed with gzip, whose unpacked size no header bounds.
    gzip: bool,
}

impl ParquetBytes {
    /// The file, for its footer.
    #[must_use]
    pub fn new(file: RandomAccessFile) -> Self {
        Self {
            file,
            page_size_max: None,
            gzip: false,
        }
    }

    /// Returns the file, for pages of at most this size.
    #[must_use]
    pub(super) fn bounded(file: RandomAccessFile, most: PageSize, gzip: bool) -> Self {
        Self {
            file,
            page_size_max: Some(most),
            gzip,
        }
    }
}

impl Length for ParquetBytes {
    fn len(&self) -> u64 {
        self.file.bytes()
    }
}

impl ChunkReader for ParquetBytes {
    type T = ByteReader;

    fn get_read(&self, start: u64) -> ParquetResult<ByteReader> {
        if let Some(most) = &self.page_size_max {
            let size = thrift::page_size(&mut self.file.reader_from(start))?;
            if size.bytes > most.bytes {
                return Err(broken(format!(
                    "a page says that it unpacks to {} bytes, and its row group says {}",
                    size.bytes, most.bytes
                )));
            }
            if size.dictionary_values > most.dictionary_values {
                return Err(broken(format!(
                    "a dictionary says that it has {} values, and there is room for {}",
                    size.dictionary_values, most.dictionary_values
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
        if let (true, Some(most)) = (self.gzip, &self.page_size_max)
            && let Some(at) = memmem::find(&bytes, b"\x1f\x8b\x08")
        {
            let unpacked = MultiGzDecoder::new(&bytes[at..]).take(most.bytes + 1);
            // If this is no gzip after all, the library reports it.
            let count = std::io::copy(&mut { unpacked }, &mut std::io::sink()).unwrap_or(0);
            if count > most.bytes {
                return Err(broken("a page unpacks to more than its row group says"));
            }
        }
        Ok(bytes.into())
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
