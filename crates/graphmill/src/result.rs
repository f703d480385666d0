//! A result on its way out: rows of (vertex, value) in ascending order of ids, to a file, to a folder of parts, or to a list of the
//! highest.
//!
//! Steps of [`write`]: a file aside, block by block as the workers encode them, synced, renamed onto its name. Until then nothing
//! stands under the name; on failure the file aside is removed.

mod block;
mod csv;
mod encode;
mod names;
mod pages;
mod parquet;
mod parts;
mod raw;
mod rows;
mod top;
mod walk;
mod window;

use std::io::Write;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use graphmill_storage::{FileAside, Output, StorageError};

pub use block::{Block, Labels, Texts, Values};
pub(crate) use parts::{Parts, is_folder};
pub(crate) use raw::Raw;
pub(crate) use rows::{Rows, bytes_needed, bytes_wanted};
pub use top::TopRow;
pub(crate) use top::{TEXT_BYTES, Top, json_number};

use crate::{Error, Machine};
use encode::Pool;

/// Bytes that a file format takes besides rows and file chunks: a page and its compressed twin.
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

/// Writes rows as `format` to `path`, or to standard output where it names that, and tells `note` of those that are written; returns
/// the bytes written.
///
/// # Errors
/// Ids or values cannot be read or written in this format; the disk fails, or memory runs out; work is to stop. `path` is then as
/// it was.
pub(crate) fn write(
    machine: &Machine,
    path: &Path,
    format: Format,
    rows: &mut Rows<'_>,
    note: &mut dyn FnMut(u64),
) -> Result<u64, Error> {
    let (disk, budget) = (machine.disk(), machine.budget());
    let _pages = budget.lease("pages of the result", FORMAT_BYTES)?;
    if is_stdout(path) {
        let mut pool = Pool::new(machine, &rows.graph, &rows.memory())?;
        let sink = Counted {
            sink: std::io::stdout(),
            bytes: 0,
        };
        let mut sink = write_to(sink, format, rows, &mut pool, note)?;
        sink.flush().map_err(ResultError::from)?;
        return Ok(sink.bytes);
    }
    let sink = Output::create(disk, budget, path, CHUNK_BYTES)?;
    let mut pool = Pool::new(machine, &rows.graph, &rows.memory())?;
    let sink = write_to(sink, format, rows, &mut pool, note)?;
    Ok(sink.publish()?)
}

/// Writes rows to `sink`, and gives it back complete.
fn write_to<W: Write>(
    sink: W,
    format: Format,
    rows: &mut Rows<'_>,
    pool: &mut Pool,
    note: &mut dyn FnMut(u64),
) -> Result<W, Error> {
    match format {
        Format::Parquet => parquet::write(sink, rows, pool, note),
        Format::Text { tabs, gzip: false } => csv::write(sink, tabs, rows, pool, note),
        Format::Text { tabs, gzip: true } => {
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
    rows: &mut Rows<'_>,
    each: &mut dyn FnMut(&Block),
) -> Result<(), Error> {
    let mut pool = Pool::new(machine, &rows.graph, &rows.memory())?;
    walk::each_block(rows, &mut pool, each)
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
    use graphmill_algorithms::{Output, Values as Array};
    use graphmill_engine::VertexArray;
    use graphmill_graph::Order;

    use super::*;
    use crate::{ImportConfig, MachineConfig, Rule, Session, unwatched, validate};

    /// Returns a machine and a stored graph with these ids, each with an arc to itself.
    fn graph(at: &Path, ids: &[&[u8]], order: Order) -> Machine {
        let machine = Machine::open(&MachineConfig::default(), Default::default()).unwrap();
        let mut edges = ::csv::WriterBuilder::new().from_writer(Vec::new());
        edges.write_record(["source", "target"]).unwrap();
        for id in ids {
            edges.write_record([id, id]).unwrap();
        }
        let path = at.join("edges.csv");
        let edges = edges.into_inner().unwrap();
        machine.disk().write_small(&path, &edges).unwrap();
        let config = ImportConfig {
            order,
            batch_size: Some(20_000),
            ..ImportConfig::default()
        };
        let to = at.join("graph");
        machine.import(&[path], &to, &config, &unwatched()).unwrap();
        machine
    }

    fn session(machine: &Machine, at: &Path) -> Session {
        let graph = machine.graph(&at.join("graph")).unwrap();
        machine
            .session(&graph, Default::default(), &unwatched())
            .unwrap()
    }

    /// An array with the values of a list, in order of index.
    fn array<T: graphmill_engine::Element>(session: &mut Session, values: &[T]) -> VertexArray<T> {
        // Of one name there is one array.
        let name = format!("{:p}", values);
        let array = session.vertex_array(&name).unwrap();
        session
            .process_vertices(array.write(), None, |v, value| *value = values[v as usize])
            .unwrap();
        array
    }

    fn output(values: Array, nullable: bool) -> Output {
        Output {
            column: "value",
            values,
            nullable,
        }
    }

    /// Writes both formats, and gives back the CSV after comparing it with the Parquet, and with the rows of blocks.
    fn csv_like_parquet(session: &mut Session, at: &Path, output: &Output) -> String {
        let paths = ["result.csv", "result.parquet"].map(|name| at.join(name));
        let vertices = session.graph().vertices();
        for path in &paths {
            let mut rows = 0;
            let bytes = session.write(output, path, |more| rows += more).unwrap();
            assert_eq!(bytes, path.metadata().unwrap().len());
            assert_eq!(rows, vertices);
        }
        let machine = Machine::open(&MachineConfig::default(), Default::default()).unwrap();
        for (left, right) in [(0, 1), (1, 0)] {
            let verdict = validate(&machine, &paths[left], &paths[right], Rule::Exact).unwrap();
            assert_eq!(verdict.described, Vec::<String>::new());
            assert_eq!(verdict.vertices, vertices);
        }
        let mut of_blocks = ::csv::WriterBuilder::new().from_writer(Vec::new());
        of_blocks.write_record(["vertex", output.column]).unwrap();
        session
            .each_block(output, |block| {
                for row in 0..block.rows() {
                    let value = match (&block.values, block.is_reached(row)) {
                        (Values::Vertex(labels), true) => id(labels, row),
                        (Values::Vertex(_), false) => Vec::new(),
                        (_, false) => b"inf".to_vec(),
                        (Values::F32(values), _) => format!("{:?}", values[row]).into(),
                        (Values::F64(values), _) => format!("{:?}", values[row]).into(),
                        (Values::U32(values), _) => values[row].to_string().into(),
                        (Values::U64(values), _) => values[row].to_string().into(),
                    };
                    of_blocks
                        .write_record([id(&block.ids, row), value])
                        .unwrap();
                }
            })
            .unwrap();
        let csv = machine.disk().read_small(&paths[0], 1 << 30).unwrap();
        assert!(csv == of_blocks.into_inner().unwrap());
        String::from_utf8(csv).unwrap()
    }

    fn id(labels: &Labels, row: usize) -> Vec<u8> {
        match labels {
            Labels::Integers(ids) => ids[row].to_string().into(),
            Labels::Signed(ids) => ids[row].to_string().into(),
            Labels::Texts(texts) => texts.get(row).to_vec(),
        }
    }

    #[test]
    fn floats_keep_their_bits_and_unreached_is_inf() {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path();
        let machine = graph(
            at,
            &[b"0", b"7", b"1099511627776", b"18446744073709551615"],
            Order::Id,
        );
        let mut session = session(&machine, at);
        let values = [0.1 + 0.2, f64::INFINITY, 1e-300, 5.0];
        let values = Array::F64(array(&mut session, &values));
        assert_eq!(
            csv_like_parquet(&mut session, at, &output(values, true)),
            "vertex,value\n0,0.30000000000000004\n7,inf\n1099511627776,1e-300\n18446744073709551615,5.0\n"
        );
        let values = Array::F32(array(&mut session, &[0.1_f32, f32::INFINITY, -0.0, 1e20]));
        assert_eq!(
            csv_like_parquet(&mut session, at, &output(values, false)),
            "vertex,value\n0,0.1\n7,inf\n1099511627776,-0.0\n18446744073709551615,1e20\n"
        );
    }

    #[test]
    fn integers_of_any_size_are_written() {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path();
        let machine = graph(
            at,
            &[b"-9223372036854775808", b"-1", b"0", b"9223372036854775807"],
            Order::Id,
        );
        let mut session = session(&machine, at);
        let header = "vertex,value\n";
        let expect = |values: [&str; 4]| {
            let ids = ["-9223372036854775808", "-1", "0", "9223372036854775807"];
            let rows = ids
                .iter()
                .zip(values)
                .map(|(id, value)| format!("{id},{value}\n"));
            format!("{header}{}", rows.collect::<String>())
        };
        let values = Array::U32(array(&mut session, &[u32::MAX, 0, 1 << 31, 7]));
        assert_eq!(
            csv_like_parquet(&mut session, at, &output(values, false)),
            expect(["4294967295", "0", "2147483648", "7"])
        );
        assert_eq!(
            csv_like_parquet(&mut session, at, &output(values, true)),
            expect(["inf", "0", "2147483648", "7"])
        );
        let values = Array::U64(array(&mut session, &[u64::MAX, 0, 1 << 63, 1]));
        assert_eq!(
            csv_like_parquet(&mut session, at, &output(values, false)),
            expect(["18446744073709551615", "0", "9223372036854775808", "1"])
        );
        // Vertices by their places in order of ids.
        let values = Array::Vertex32(array(&mut session, &[3, u32::MAX, 0, 1]));
        assert_eq!(
            csv_like_parquet(&mut session, at, &output(values, true)),
            expect(["9223372036854775807", "", "-9223372036854775808", "-1"])
        );
    }

    #[test]
    fn odd_text_ids_survive_as_ids_and_as_values() {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path();
        let ids = ["\"", "a b", "c,d", "e\"f", "\u{e4}"].map(str::as_bytes);
        let machine = graph(at, &ids, Order::Id);
        let mut session = session(&machine, at);
        let values = Array::Vertex64(array(&mut session, &[2, 2, u64::MAX, 3, 1]));
        assert_eq!(
            csv_like_parquet(&mut session, at, &output(values, true)),
            "vertex,value\n\"\"\"\",\"c,d\"\na b,\"c,d\"\n\"c,d\",\n\"e\"\"f\",\"e\"\"f\"\n\u{e4},a b\n"
        );
        // Nobody has a value.
        let values = Array::Vertex32(array(&mut session, &[u32::MAX; 5]));
        let csv = csv_like_parquet(&mut session, at, &output(values, true));
        assert!(csv.ends_with("\u{e4},\n"), "{csv}");
    }

    /// Returns `count` ids. Every thousandth is long.
    fn texts(count: u64) -> Vec<Vec<u8>> {
        let id = |v: u64| {
            let more = if v % 1000 == 7 { 1900 + v % 77 } else { v % 5 };
            let id = format!(
                "{:08x}{}",
                v * 2_654_435_761 % (1 << 32),
                "x".repeat(more as usize)
            );
            id.into_bytes()
        };
        (0..count).map(id).collect()
    }

    #[test]
    fn result_has_the_same_bytes_on_any_machine() {
        let count = 150_000;
        let integers: Vec<_> = (0..count)
            .map(|v: u64| (v * 7919).to_string().into_bytes())
            .collect();
        let signed: Vec<_> = (0..count as i64)
            .map(|v| (v * 7919 - (1 << 30)).to_string().into_bytes())
            .collect();
        for (ids, order) in [
            (texts(count), Order::Id),
            (texts(count), Order::Degree),
            (integers, Order::Id),
            (signed, Order::Degree),
        ] {
            let folder = tempfile::tempdir().unwrap();
            let at = folder.path();
            let ids: Vec<_> = ids.iter().map(Vec::as_slice).collect();
            drop(graph(at, &ids, order));
            let mut expected: Vec<Vec<u8>> = Vec::new();
            for (threads, is_least) in [(1, false), (2, false), (3, true), (1, true)] {
                let config = MachineConfig {
                    threads: Some(threads),
                    ..MachineConfig::default()
                };
                let machine = Machine::open(&config, Default::default()).unwrap();
                let mut session = session(&machine, at);
                let scattered: Vec<u32> = (0..count).map(|v| (v * v % count) as u32).collect();
                let few: Vec<u32> = scattered
                    .iter()
                    .map(|v| if v % 3 == 0 { u32::MAX } else { v % 10 })
                    .collect();
                let floats: Vec<f64> = scattered.iter().map(|v| f64::from(*v).sqrt()).collect();
                let outputs = [
                    output(Array::Vertex32(array(&mut session, &scattered)), false),
                    output(Array::Vertex32(array(&mut session, &few)), true),
                    output(Array::F64(array(&mut session, &floats)), false),
                ];
                // All but what a run sets aside for its result is taken.
                let least = bytes_needed(&session.graph().measure());
                let taken = match is_least {
                    true => machine.budget().available() - least,
                    false => 0,
                };
                let _taken = machine.budget().lease("all else", taken).unwrap();
                let mut results = Vec::new();
                for output in &outputs {
                    for name in ["result.csv", "result.parquet", "result.tsv.gz"] {
                        let path = at.join(name);
                        session.write(output, &path, |_| ()).unwrap();
                        results.push(machine.disk().read_small(&path, 1 << 30).unwrap());
                    }
                    if expected.is_empty() {
                        csv_like_parquet(&mut session, at, output);
                    }
                }
                if expected.is_empty() {
                    expected = results;
                } else {
                    for (number, (found, expected)) in results.iter().zip(&expected).enumerate() {
                        assert!(found == expected, "{number}, {threads} threads, {is_least}");
                    }
                }
            }
        }
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
