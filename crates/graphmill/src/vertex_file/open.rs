//! Opens the files of a result: Parquet or text, packed or plain, or a directory of parts.
//!
//! The parts of a directory are read one after the other in order of their names. A file whose name begins with a dot or an underscore is
//! no part: Spark, Dask and others keep notes about the parts there.

use std::io::{BufReader, Read};
use std::iter::once;
use std::path::{Path, PathBuf};

use flate2::bufread::MultiGzDecoder;
use graphmill_storage::RandomAccessFile;

use crate::error::Error;
use crate::machine::resources::Machine;
use crate::paths::DESCRIPTION;
use crate::validate_error::ValidateError;
use crate::vertex_file::parquet;
use crate::vertex_file::text::{ResultRow, RowIter, TextRows, ValueReading};

/// Bytes of a file that are read at a time.
const CHUNK_BYTES: usize = 1 << 18;
/// Bytes of text, plain or unpacked, beside the chunk of the file.
const TEXT_BUFFER_BYTES: usize = 1 << 15;

/// The rows of a file until work is to stop. What the file is, its first bytes say.
///
/// `any_column`: a first line of text with `vertex`, a tab and any name is a header.
pub(crate) fn open(
    machine: &Machine,
    path: &Path,
    reading: ValueReading,
    any_column: bool,
) -> Result<RowIter, ValidateError> {
    let stop = machine.stop().clone();
    let rows = rows_of(machine, path, reading, any_column)?;
    Ok(Box::new(rows.map(move |row| match stop.is_cancelled() {
        true => Err(ValidateError::Stopped),
        false => row,
    })))
}

/// The error of a reader of rows that sorts none.
pub(crate) fn unsorted(error: ValidateError) -> Error {
    match error {
        ValidateError::Budget(error) => Error::Budget(error),
        error => Error::Validate(error),
    }
}

fn rows_of(
    machine: &Machine,
    path: &Path,
    reading: ValueReading,
    any_column: bool,
) -> Result<RowIter, ValidateError> {
    let whole = path.to_path_buf();
    if !machine.disk().exists(path)? {
        return Err(ValidateError::NoFile { path: whole });
    }
    if machine.disk().exists(&path.join(DESCRIPTION))? {
        return Err(ValidateError::IsGraph { path: whole });
    }
    if machine.disk().is_dir(path)? {
        return rows_of_parts(machine, path, reading, any_column);
    }
    let file = RandomAccessFile::open(machine.disk(), machine.budget(), path, CHUNK_BYTES)?;
    let unreadable = |source| ValidateError::Read {
        path: path.to_path_buf(),
        source,
    };
    let mut magic = Vec::new();
    let read = file.reader().take(4).read_to_end(&mut magic);
    read.map_err(unreadable)?;
    let lines = BufReader::with_capacity(TEXT_BUFFER_BYTES, file.reader());
    match magic.as_slice() {
        b"PAR1" => parquet::rows(file, machine.budget(), path, reading),
        [0x1f, 0x8b, ..] => {
            let unpacked = BufReader::with_capacity(TEXT_BUFFER_BYTES, MultiGzDecoder::new(lines));
            Ok(Box::new(TextRows::new(
                unpacked, whole, reading, any_column,
            )))
        }
        _ => Ok(Box::new(TextRows::new(lines, whole, reading, any_column))),
    }
}

/// The rows of a directory of parts.
fn rows_of_parts(
    machine: &Machine,
    path: &Path,
    reading: ValueReading,
    any_column: bool,
) -> Result<RowIter, ValidateError> {
    let is_part = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().as_encoded_bytes();
        !name.starts_with(b".") && !name.starts_with(b"_")
    };
    let mut parts = machine.disk().list(path)?;
    parts.retain(is_part);
    if parts.is_empty() {
        let path = path.to_path_buf();
        return Err(ValidateError::NoParts { path });
    }
    // One part at a time is open.
    let machine = machine.clone();
    let rows = move |part: PathBuf| {
        let rows = rows_of(&machine, &part, reading, any_column);
        rows.unwrap_or_else(|error| Box::new(once(Err(error))))
    };
    // A line of a part is no line of the directory.
    let without_line = |row: ResultRow| ResultRow { line: 0, ..row };
    let rows = parts.into_iter().flat_map(rows);
    Ok(Box::new(rows.map(move |row| row.map(without_line))))
}
