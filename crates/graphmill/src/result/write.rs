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

/// Free memory with which a file is written in larger chunks.
const LARGE_BYTES: u64 = 256 << 20;

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
    let _pages = machine
        .budget()
        .lease("pages of the result", FORMAT_BYTES)?;
    deliver(machine, path, format, |sink| {
        let mut pool = EncodePool::new(machine, &rows.graph, &rows.memory())?;
        match format {
            ResultFormat::Parquet => parquet::write(sink, rows, &mut pool, note),
            ResultFormat::Text { tabs, .. } => csv::write(sink, tabs, rows, &mut pool, note),
        }
    })
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
    deliver(machine, path, format, |sink| {
        let bytes = match format {
            ResultFormat::Parquet => numbers::to_parquet(row, has_row)?,
            ResultFormat::Text { tabs, .. } => numbers::to_csv(tabs, row, has_row)?,
        };
        Ok(sink.write_all(&bytes).map_err(ResultError::Write)?)
    })
}

/// Opens `path` or standard output, passes it to `put`, and returns the bytes written.
///
/// It packs what `put` writes if `format` says so.
fn deliver(
    machine: &Machine,
    path: &Path,
    format: ResultFormat,
    put: impl FnOnce(&mut dyn Write) -> Result<(), Error>,
) -> Result<u64, Error> {
    let put = |sink: &mut dyn Write| match format {
        ResultFormat::Text { gzip: true, .. } => {
            let mut packed = GzEncoder::new(sink, Compression::fast());
            put(&mut packed)?;
            Ok(packed.finish().map(drop).map_err(ResultError::Write)?)
        }
        _ => put(sink),
    };
    if is_stdout(path) {
        let mut sink = CountingWriter {
            sink: std::io::stdout(),
            bytes: 0,
        };
        put(&mut sink)?;
        sink.flush().map_err(ResultError::Write)?;
        return Ok(sink.bytes);
    }
    let mut chunk_bytes = CHUNK_BYTES;
    if machine.budget().available() >= LARGE_BYTES {
        // While the workers encode a round of tasks, the disk writes the round before.
        chunk_bytes *= 8;
    }
    let mut sink = OutputFile::create(machine.disk(), machine.budget(), path, chunk_bytes)?;
    put(&mut sink)?;
    Ok(sink.commit()?)
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
