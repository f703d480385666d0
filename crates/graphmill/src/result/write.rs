//! Writes rows to a file or to standard output, or hands them out as blocks.

use std::io::Write;
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;
use graphmill_algorithms::NumberRow;
use graphmill_storage::OutputFile;

use crate::error::Error;
use crate::machine::resources::Machine;
use crate::result::block::Block;
use crate::result::encode::EncodePool;
use crate::result::format::{ResultFormat, is_stdout};
use crate::result::rows::ResultRows;
use crate::result::sizes::{CHUNK_BYTES, FORMAT_BYTES};
use crate::result::{csv, numbers, parquet, walk};
use crate::result_error::ResultError;

/// Writes rows as `format` to `path`, or to standard output if that is its name.
///
/// Passes the number of rows written to `note`. Returns the bytes written.
///
/// # Errors
/// Ids or values cannot be read or written in this format; the disk fails, or memory runs out; work is to stop. `path` is then as
/// it was.
pub(crate) fn write(
    machine: &Machine,
    path: &Path,
    format: ResultFormat,
    rows: &mut ResultRows<'_>,
    note: &mut dyn FnMut(u64),
) -> Result<u64, Error> {
    let (disk, budget) = (machine.disk(), machine.budget());
    let _pages = budget.lease("pages of the result", FORMAT_BYTES)?;
    if is_stdout(path) {
        let mut pool = EncodePool::new(machine, &rows.graph, &rows.memory())?;
        let sink = CountingWriter {
            sink: std::io::stdout(),
            bytes: 0,
        };
        let mut sink = write_to(sink, format, rows, &mut pool, note)?;
        sink.flush().map_err(ResultError::from)?;
        return Ok(sink.bytes);
    }
    let sink = OutputFile::create(disk, budget, path, CHUNK_BYTES)?;
    let mut pool = EncodePool::new(machine, &rows.graph, &rows.memory())?;
    let sink = write_to(sink, format, rows, &mut pool, note)?;
    Ok(sink.commit()?)
}

/// Writes a row of numbers as `format` to `path`, or its columns alone without `has_row`.
///
/// Returns the bytes written.
///
/// # Errors
/// The disk fails, or memory runs out. `path` is then as it was.
pub(crate) fn write_numbers(
    machine: &Machine,
    path: &Path,
    format: ResultFormat,
    row: &NumberRow,
    has_row: bool,
) -> Result<u64, Error> {
    if is_stdout(path) {
        let sink = CountingWriter {
            sink: std::io::stdout(),
            bytes: 0,
        };
        let mut sink = numbers_to(sink, format, row, has_row)?;
        sink.flush().map_err(ResultError::from)?;
        return Ok(sink.bytes);
    }
    let sink = OutputFile::create(machine.disk(), machine.budget(), path, CHUNK_BYTES)?;
    Ok(numbers_to(sink, format, row, has_row)?.commit()?)
}

/// Writes a row of numbers to `sink`, and gives it back complete.
fn numbers_to<W: Write>(
    sink: W,
    format: ResultFormat,
    row: &NumberRow,
    has_row: bool,
) -> Result<W, ResultError> {
    match format {
        ResultFormat::Parquet => numbers::write_parquet(sink, row, has_row),
        ResultFormat::Text { tabs, gzip: false } => numbers::write_csv(sink, tabs, row, has_row),
        ResultFormat::Text { tabs, gzip: true } => {
            let sink = GzEncoder::new(sink, Compression::fast());
            Ok(numbers::write_csv(sink, tabs, row, has_row)?.finish()?)
        }
    }
}

/// Writes rows to `sink`, and gives it back complete.
fn write_to<W: Write>(
    sink: W,
    format: ResultFormat,
    rows: &mut ResultRows<'_>,
    pool: &mut EncodePool,
    note: &mut dyn FnMut(u64),
) -> Result<W, Error> {
    match format {
        ResultFormat::Parquet => parquet::write(sink, rows, pool, note),
        ResultFormat::Text { tabs, gzip: false } => csv::write(sink, tabs, rows, pool, note),
        ResultFormat::Text { tabs, gzip: true } => {
            let sink = GzEncoder::new(sink, Compression::fast());
            let sink = csv::write(sink, tabs, rows, pool, note)?;
            Ok(sink.finish().map_err(ResultError::from)?)
        }
    }
}

/// Calls `each` with rows, a block at a time in ascending order of ids.
///
/// # Errors
/// As for [`write`].
pub(crate) fn each_block(
    machine: &Machine,
    rows: &mut ResultRows<'_>,
    each: &mut dyn FnMut(&Block),
) -> Result<(), Error> {
    let mut pool = EncodePool::new(machine, &rows.graph, &rows.memory())?;
    walk::each_block(rows, &mut pool, each)
}

/// A sink that counts its bytes.
struct CountingWriter<W> {
    sink: W,
    bytes: u64,
}

impl<W: Write> Write for CountingWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let written = self.sink.write(bytes)?;
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.sink.flush()
    }
}
