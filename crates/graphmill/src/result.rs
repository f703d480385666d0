//! A result on its way out: rows of (vertex, value) in ascending order of ids, to a file, to a folder of parts, or to a list of the
//! highest.
//!
//! Steps of [`write`]: a file aside, block by block from the caller's cursor, synced, renamed onto its name. Until then nothing
//! stands under the name; on failure the file aside is removed.

mod block;
mod csv;
mod parquet;
mod parts;
mod raw;
mod rows;
mod top;
mod window;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use flate2::Compression;
use flate2::write::GzEncoder;
use graphmill_storage::{Budget, Disk, FileAside, Output, StorageError};

pub use block::{Block, Labels, Texts, Values};
pub(crate) use parts::{Parts, is_folder};
pub(crate) use raw::Raw;
pub(crate) use rows::{RowCursor, bytes_needed, bytes_wanted};
pub use top::TopRow;
pub(crate) use top::{Top, json_number};

/// Bytes that a file format takes besides rows and file chunks: a page of each column and its compressed twin.
const FORMAT_BYTES: u64 = 4 << 20;
/// Bytes of one write to a file that is written from front to back.
pub(crate) const CHUNK_BYTES: usize = 1 << 20;
/// Bytes that writing a result takes besides its rows.
const WRITER_BYTES: u64 = FileAside::memory(CHUNK_BYTES) + FORMAT_BYTES;

/// Why a result could not be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ResultError {
    /// The name does not say the format.
    #[error("cannot tell the format of {}: end its name with .parquet, .csv, .csv.gz, .tsv or .tsv.gz (and a slash, for a folder of parts), or give - for CSV on standard output", path.display())]
    UnknownFormat {
        /// The result file asked for.
        path: PathBuf,
    },
    /// Parquet text has to be UTF-8.
    #[error("vertex id {id:?} is not UTF-8, which Parquet needs: write .csv instead")]
    NotUtf8 {
        /// The id, with its odd bytes replaced.
        id: String,
    },
    /// The Parquet library refused.
    #[error("writing Parquet failed: {0}")]
    Parquet(#[from] ::parquet::errors::ParquetError),
    /// The CSV library refused.
    #[error("writing CSV failed: {0}")]
    Csv(String),
    /// A write failed on its way to the disk.
    #[error("writing the result failed: {0}")]
    Write(#[from] std::io::Error),
    /// The disk failed, or memory ran out.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

impl From<::csv::Error> for ResultError {
    fn from(error: ::csv::Error) -> Self {
        // An error of theirs does not name its source.
        match error.into_kind() {
            ::csv::ErrorKind::Io(source) => ResultError::Write(source),
            other => ResultError::Csv(format!("{other:?}")),
        }
    }
}

/// What a result file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// Columns `vertex` and the value; unreached is null.
    Parquet,
    /// The same as text with a header; unreached is `inf`, of columns of vertices an empty field.
    Text {
        /// Columns are separated by tabs, else by commas.
        tabs: bool,
        /// Compressed.
        gzip: bool,
    },
}

/// Whether a result goes to standard output.
pub fn is_stdout(path: &Path) -> bool {
    ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"]
        .iter()
        .any(|name| path == Path::new(name))
}

impl Format {
    /// The format by the end of the file's name; that of a folder without an ending is Parquet, that of standard output CSV.
    ///
    /// # Errors
    /// [`ResultError::UnknownFormat`] when it has another ending.
    pub(crate) fn of(path: &Path) -> Result<Format, ResultError> {
        let ending = |path: &Path| {
            let ending = path.extension().unwrap_or_default();
            ending.to_string_lossy().to_ascii_lowercase()
        };
        let (last, stem) = (ending(path), path.with_extension(""));
        let (gzip, last) = match &*last {
            "gz" => (true, ending(&stem)),
            _ => (false, last),
        };
        match (&*last, gzip) {
            ("parquet", false) => Ok(Format::Parquet),
            ("csv", gzip) => Ok(Format::Text { tabs: false, gzip }),
            ("tsv", gzip) => Ok(Format::Text { tabs: true, gzip }),
            ("", false) if is_folder(path) => Ok(Format::Parquet),
            ("", false) if is_stdout(path) => Ok(Format::Text { tabs: false, gzip }),
            _ => Err(ResultError::UnknownFormat {
                path: path.to_path_buf(),
            }),
        }
    }

    /// The end of the name of a file of this format.
    fn ending(self) -> &'static str {
        match self {
            Format::Parquet => "parquet",
            Format::Text { tabs, gzip } => match (tabs, gzip) {
                (false, false) => "csv",
                (false, true) => "csv.gz",
                (true, false) => "tsv",
                (true, true) => "tsv.gz",
            },
        }
    }
}

/// What every block of one result looks like.
#[derive(Debug, Clone)]
pub(crate) struct Shape {
    /// Name of the value's column.
    pub(crate) column: String,
    /// Any ids of the kind of all.
    pub(crate) ids: Labels,
    /// Any values of the kind of all.
    pub(crate) values: Values,
    /// Whether a vertex may be without a value.
    pub(crate) nullable: bool,
}

/// One file format: takes blocks in order, then gives its sink back, complete.
trait RowWriter<W> {
    fn block(&mut self, block: &Block) -> Result<(), ResultError>;
    fn finish(self) -> Result<W, ResultError>;
}

/// Writes the blocks that `next` hands out, until it hands out none, as `format` to `path`, or to standard output where it names
/// that; returns the bytes written.
///
/// # Errors
/// What `next` fails with, or a [`ResultError`] turned into it; `path` is then as it was.
pub(crate) fn write<E: From<ResultError>>(
    disk: &Arc<dyn Disk>,
    budget: &Budget,
    path: &Path,
    format: Format,
    shape: &Shape,
    next: impl FnMut() -> Result<Option<Block>, E>,
) -> Result<u64, E> {
    let _pages = budget
        .lease("pages of the result", FORMAT_BYTES)
        .map_err(StorageError::from)
        .map_err(ResultError::from)?;
    if is_stdout(path) {
        let sink = Counted {
            sink: std::io::stdout(),
            bytes: 0,
        };
        let mut sink = encode(sink, format, shape, next)?;
        sink.flush().map_err(ResultError::from)?;
        return Ok(sink.bytes);
    }
    let sink = Output::create(disk, budget, path, CHUNK_BYTES).map_err(ResultError::from)?;
    let sink = encode(sink, format, shape, next)?;
    Ok(sink.publish().map_err(ResultError::from)?)
}

/// Writes blocks to `sink`, and gives it back complete.
fn encode<W: Write + Send, E: From<ResultError>>(
    sink: W,
    format: Format,
    shape: &Shape,
    next: impl FnMut() -> Result<Option<Block>, E>,
) -> Result<W, E> {
    let column = &shape.column;
    match format {
        Format::Parquet => write_all(parquet::ParquetRows::new(sink, shape)?, next),
        Format::Text { tabs, gzip: false } => {
            write_all(csv::CsvRows::new(sink, column, tabs)?, next)
        }
        Format::Text { tabs, gzip: true } => {
            let sink = GzEncoder::new(sink, Compression::fast());
            let sink = write_all(csv::CsvRows::new(sink, column, tabs)?, next)?;
            Ok(sink.finish().map_err(ResultError::from)?)
        }
    }
}

fn write_all<W, R: RowWriter<W>, E: From<ResultError>>(
    mut rows: R,
    mut next: impl FnMut() -> Result<Option<Block>, E>,
) -> Result<W, E> {
    while let Some(block) = next()? {
        rows.block(&block)?;
    }
    Ok(rows.finish()?)
}

/// A sink that counts its bytes.
struct Counted<W> {
    sink: W,
    bytes: u64,
}

impl<W: Write> Write for Counted<W> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let written = self.sink.write(bytes)?;
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.sink.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Machine, MachineConfig, Rule, validate};

    fn texts(texts: &[&str]) -> Labels {
        let mut labels = Texts::default();
        for text in texts {
            labels.push(text.as_bytes());
        }
        Labels::Texts(labels)
    }

    /// Writes blocks as both formats and gives back the CSV, after comparing it with the Parquet.
    fn csv_like_parquet(blocks: &[Block]) -> String {
        let folder = tempfile::tempdir().unwrap();
        let machine = Machine::open(&MachineConfig::default(), Default::default()).unwrap();
        let shape = Shape {
            column: "value".to_string(),
            ids: blocks[0].ids.clone(),
            values: blocks[0].values.clone(),
            nullable: blocks.iter().any(|block| block.reached.is_some()),
        };
        let paths = ["result.csv", "result.parquet"].map(|name| folder.path().join(name));
        for path in &paths {
            let mut left = blocks.iter();
            let bytes = write::<ResultError>(
                machine.disk(),
                machine.budget(),
                path,
                Format::of(path).unwrap(),
                &shape,
                || Ok(left.next().cloned()),
            );
            assert!(bytes.unwrap() > 0);
        }
        for (left, right) in [(0, 1), (1, 0)] {
            let verdict = validate(&machine, &paths[left], &paths[right], Rule::Exact).unwrap();
            assert_eq!(verdict.described, Vec::<String>::new());
            assert_eq!(
                verdict.vertices as usize,
                blocks.iter().map(Block::rows).sum::<usize>()
            );
        }
        String::from_utf8(machine.disk().read_small(&paths[0], 1 << 20).unwrap()).unwrap()
    }

    fn block(ids: Labels, values: Values, reached: Option<Vec<bool>>) -> Block {
        Block {
            ids,
            values,
            reached,
        }
    }

    #[test]
    fn floats_keep_their_bits_and_unreached_is_inf() {
        let values = Values::F64(vec![0.1 + 0.2, 0.0, 1e-300, 5.0]);
        let reached = Some(vec![true, false, true, true]);
        let ids = Labels::Integers(vec![0, 7, 1 << 40, u64::MAX]);
        assert_eq!(
            csv_like_parquet(&[block(ids, values, reached)]),
            "vertex,value\n0,0.30000000000000004\n7,inf\n1099511627776,1e-300\n18446744073709551615,5.0\n"
        );
        let narrow = Values::F32(vec![0.1, f32::INFINITY]);
        let ids = Labels::Integers(vec![1, 2]);
        assert_eq!(
            csv_like_parquet(&[block(ids, narrow, None)]),
            "vertex,value\n1,0.1\n2,inf\n"
        );
    }

    #[test]
    fn integers_come_in_several_blocks() {
        let first = block(
            Labels::Integers(vec![1, 2]),
            Values::U32(vec![u32::MAX, 0]),
            None,
        );
        let second = block(Labels::Integers(vec![3]), Values::U32(vec![1]), None);
        assert_eq!(
            csv_like_parquet(&[first, second]),
            "vertex,value\n1,4294967295\n2,0\n3,1\n"
        );
        let wide = block(Labels::Integers(vec![3]), Values::U64(vec![1 << 50]), None);
        assert_eq!(
            csv_like_parquet(&[wide]),
            "vertex,value\n3,1125899906842624\n"
        );
    }

    #[test]
    fn odd_text_ids_survive_as_ids_and_as_values() {
        let ids = ["a b", "c,d", "e\"f", "\"", "ä"];
        let values = Values::Vertex(texts(&["c,d", "c,d", "\"", "e\"f", "a b"]));
        let reached = Some(vec![true, true, true, false, true]);
        assert_eq!(
            csv_like_parquet(&[block(texts(&ids), values, reached)]),
            "vertex,value\na b,\"c,d\"\n\"c,d\",\"c,d\"\n\"e\"\"f\",\"\"\"\"\n\"\"\"\",\nä,a b\n"
        );
    }

    #[test]
    fn parquet_refuses_ids_that_are_not_utf8() {
        let mut labels = Texts::default();
        labels.push(&[0xff, 0xfe]);
        let block = block(Labels::Texts(labels), Values::U32(vec![1]), None);
        let shape = Shape {
            column: "value".to_string(),
            ids: block.ids.clone(),
            values: block.values.clone(),
            nullable: false,
        };
        let mut rows = parquet::ParquetRows::new(Vec::new(), &shape).unwrap();
        assert!(matches!(
            rows.block(&block),
            Err(ResultError::NotUtf8 { .. })
        ));
    }

    #[test]
    fn a_name_says_the_format() {
        assert_eq!(Format::of(Path::new("a.parquet")).unwrap(), Format::Parquet);
        for (name, ending) in [
            ("b/a.csv", "csv"),
            ("a.csv/", "csv"),
            ("-", "csv"),
            ("/dev/stdout", "csv"),
            ("A.CSV.GZ", "csv.gz"),
            ("a.b.tsv", "tsv"),
            ("a.tsv.gz/", "tsv.gz"),
        ] {
            assert_eq!(Format::of(Path::new(name)).unwrap().ending(), ending);
        }
        assert_eq!(Format::of(Path::new("b/a/")).unwrap(), Format::Parquet);
        for name in [
            "a",
            "a.txt",
            "csv",
            "a.gz",
            "a.parquet.gz",
            "a.json/",
            "a/-",
            "--",
        ] {
            assert!(Format::of(Path::new(name)).is_err(), "{name}");
        }
    }
}
