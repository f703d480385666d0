//! The bytes of a Parquet file as the `parquet` crate reads them, through a disk and within bounds.
//!
//! The crate allocates as much as the header of a page says. So this file checks a header before the crate parses it: no page may
//! be larger than its row group says, and its fields must have the types that Parquet defines ([`thrift`]). The crate's panics on
//! broken files become errors.

use std::io::Read;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use flate2::bufread::MultiGzDecoder;
use graphmill_raw::lock;
use graphmill_storage::{BudgetError, ByteReader, Lease, MemoryBudget, RandomAccessFile};
use memchr::memmem;
use parquet::basic::{Compression, Encoding, Type};
use parquet::column::reader::{ColumnReader, get_column_reader};
use parquet::data_type::ByteArray;
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData, ParquetMetaDataReader};
use parquet::file::reader::{ChunkReader, Length};
use parquet::file::serialized_reader::SerializedPageReader;

use super::thrift::{self, PageSize, broken};

/// Bytes of a footer at most.
const FOOTER_BYTES_MAX: u64 = 256 << 20;

/// Reads the footer of a file, with the memory that it takes.
///
/// # Errors
/// Returns `BudgetError` if the footer does not fit in the budget. The inner error describes a broken footer.
pub fn footer(
    file: RandomAccessFile,
    budget: &MemoryBudget,
) -> Result<ParquetResult<(ParquetMetaData, Lease)>, BudgetError> {
    // The footer's length stands before the last four bytes.
    let bytes = file.bytes();
    let mut tail = [0; 8];
    if bytes < 12 {
        return Ok(Err(broken("too short for a Parquet file")));
    }
    if let Err(error) = file.reader_from(bytes - 8).read_exact(&mut tail) {
        return Ok(Err(error.into()));
    }
    let [a, b, c, d, ..] = tail;
    let length = u64::from(u32::from_le_bytes([a, b, c, d]));
    if length > (bytes - 8).min(FOOTER_BYTES_MAX) {
        return Ok(Err(broken(format!("its footer would have {length} bytes"))));
    }
    let parsing = budget.lease("the footer of a Parquet file", 8 * length)?;
    let mut from = file.reader_from(bytes - 8 - length).take(length);
    let metadata = thrift::check_footer(&mut from).and_then(|()| {
        let file = ParquetBytes { file, pages: None };
        guarded(|| ParquetMetaDataReader::new().parse_and_finish(&file))
    });
    drop(parsing);
    let metadata = match metadata {
        Ok(metadata) => metadata,
        Err(error) => return Ok(Err(error)),
    };
    let bytes = metadata.memory_size() as u64;
    let lease = budget.lease("the footer of a Parquet file", bytes)?;
    Ok(Ok((metadata, lease)))
}

/// Returns the bytes of these columns of a row group, packed and unpacked, with their dictionaries.
#[must_use]
pub fn pages_bytes<'c>(chunks: impl Iterator<Item = &'c ColumnChunkMetaData>) -> u64 {
    let sizes = |chunk: &ColumnChunkMetaData| {
        let (values, bytes, _) = dictionary(chunk);
        let sizes = [chunk.uncompressed_size(), chunk.compressed_size()];
        let sizes = sizes.map(|size| size.max(0) as u64).into_iter();
        sizes.fold(values.saturating_mul(bytes), u64::saturating_add)
    };
    chunks.map(sizes).fold(0, u64::saturating_add)
}

/// Returns a reader of one column of a row group of `rows` rows.
///
/// The caller has leased [`pages_bytes`].
///
/// # Errors
/// Returns an error if the file is broken.
pub fn column_reader(
    file: RandomAccessFile,
    budget: &MemoryBudget,
    chunk: &ColumnChunkMetaData,
    rows: u64,
) -> ParquetResult<ColumnReader> {
    let (values, value_bytes, packed) = dictionary(chunk);
    let most = PageSize {
        bytes: chunk.uncompressed_size().max(0) as u64,
        dictionary_values: values,
    };
    let pages = Pages {
        most,
        value_bytes,
        packed,
        is_gzip: matches!(chunk.compression(), Compression::GZIP(_)),
        budget: budget.clone(),
        more_values: Mutex::new(None),
    };
    let pages = Some(pages);
    let bytes = ParquetBytes { file, pages };
    guarded(|| {
        let pages = SerializedPageReader::new(Arc::new(bytes), chunk, rows as usize, None)?;
        Ok(get_column_reader(chunk.column_descr_ptr(), Box::new(pages)))
    })
}

/// Returns three numbers of a column's dictionary.
///
/// These are the expected maximum of its values, the bytes of a value in memory, and the least bytes of a value in a page.
fn dictionary(chunk: &ColumnChunkMetaData) -> (u64, u64, u64) {
    let dictionaries = [Encoding::PLAIN_DICTIONARY, Encoding::RLE_DICTIONARY];
    // Each text has its length before it, and all but one have a character.
    let (packed, bytes) = match chunk.column_type() {
        Type::BOOLEAN => (1, 1),
        Type::INT32 | Type::FLOAT => (4, 4),
        Type::INT64 | Type::DOUBLE => (8, 8),
        Type::INT96 => (12, 12),
        Type::BYTE_ARRAY => (5, size_of::<ByteArray>()),
        Type::FIXED_LEN_BYTE_ARRAY => {
            let length = chunk.column_descr().type_length().max(1);
            (length as u64, size_of::<ByteArray>())
        }
    };
    let has_one = chunk.dictionary_page_offset().is_some()
        || chunk
            .encodings()
            .any(|encoding| dictionaries.contains(&encoding));
    let values = chunk.uncompressed_size().max(0) as u64 / packed + 1;
    let values = values.min(chunk.num_values().max(0) as u64);
    (values * u64::from(has_one), bytes as u64, packed)
}

/// A file as the library reads it.
#[derive(Debug)]
struct ParquetBytes {
    file: RandomAccessFile,
    /// `None`: the footer is read, not pages.
    pages: Option<Pages>,
}

/// Limits of the pages of a column.
#[derive(Debug)]
struct Pages {
    /// The size that is leased.
    most: PageSize,
    /// Bytes of a value of the dictionary in memory, and the least that it has in the page.
    value_bytes: u64,
    packed: u64,
    /// Pages are packed with gzip, whose unpacked size no header bounds.
    is_gzip: bool,
    budget: MemoryBudget,
    /// Memory of values that no row has: categories of other row groups, for example.
    more_values: Mutex<Option<Lease>>,
}

impl Pages {
    fn admit(&self, size: PageSize) -> ParquetResult<()> {
        if size.bytes > self.most.bytes {
            return Err(broken(format!(
                "a page says that it unpacks to {} bytes, and its row group says {}",
                size.bytes, self.most.bytes
            )));
        }
        if size.dictionary_values <= self.most.dictionary_values {
            return Ok(());
        }
        if size.dictionary_values > size.bytes / self.packed + 1 {
            return Err(broken(format!(
                "a dictionary says that it has {} values in {} bytes",
                size.dictionary_values, size.bytes
            )));
        }
        let more = size.dictionary_values - self.most.dictionary_values;
        let bytes = more.saturating_mul(self.value_bytes);
        let lease = self
            .budget
            .lease("the dictionary of a Parquet column", bytes)
            .map_err(|error| broken(error.to_string()))?;
        *lock(&self.more_values) = Some(lease);
        Ok(())
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
        if let Some(pages) = &self.pages {
            pages.admit(thrift::page_size(&mut self.file.reader_from(start))?)?;
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
        if let Some(Pages {
            most,
            is_gzip: true,
            ..
        }) = &self.pages
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
pub(super) fn guarded<T>(step: impl FnOnce() -> ParquetResult<T>) -> ParquetResult<T> {
    catch_unwind(AssertUnwindSafe(step))
        .unwrap_or_else(|_| Err(broken("the Parquet library gave up on it")))
}
