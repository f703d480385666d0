//! Is a result the same as a reference? By the three rules of LDBC Graphalytics, vertex by vertex, in whatever order the files are.
//! Without a reference, is it right for its graph? By the judge of its algorithm: `judged.rs`.
//!
//! Steps of a comparison: both files are read side by side as long as their ids ascend, in constant memory. A file that turns out not to ascend is
//! read again, into leased memory, and sorted; the other still streams. Each pair of rows is compared; a vertex that only one of
//! the two names is a difference of its own kind.

pub(crate) mod arcs;
pub(crate) mod comparison;
pub(crate) mod judged;
pub(crate) mod memory;
pub(crate) mod merge;
pub(crate) mod names;
pub(crate) mod parquet;
pub(crate) mod parts;
pub(crate) mod rows;
#[cfg(test)]
mod tests;

use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

use flate2::bufread::MultiGzDecoder;
use graphmill_storage::{BudgetError, ByteFile, StorageError};

use crate::machine::Machine;
use crate::places::DESCRIPTION;
use merge::compare;
use rows::{Lines, Reading, Rows};

/// Differences that a [`Verdict`] describes one by one.
const DESCRIBED_MAX: usize = 10;
/// Bytes of a file that are read at a time.
const CHUNK_BYTES: usize = 1 << 18;
/// Bytes of text, plain or unpacked, beside the chunk of the file.
const TEXT_BUFFER_BYTES: usize = 1 << 15;

/// What counts as the same.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Rule {
    /// The same values: bfs.
    Exact,
    /// Numbers with |found - expected| <= share * |expected|, and unreached where the reference has it: pagerank and sssp, where
    /// LDBC takes 1e-4.
    Epsilon(f64),
    /// The same groups of vertices, whatever the groups are called: wcc.
    Equivalence,
}

/// Why two files could not be compared.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ValidateError {
    /// Somebody asked to stop.
    #[error("interrupted")]
    Stopped,
    /// A file is not there.
    #[error("{}: there is no such file", path.display())]
    NoFile {
        /// What was given.
        path: PathBuf,
    },
    /// A folder without parts of a result.
    #[error("{}: there is no part of a result in this folder", path.display())]
    NoParts {
        /// The folder.
        path: PathBuf,
    },
    /// The disk failed.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// Sorting, or the names of groups, do not fit the memory.
    #[error("{0}; files whose ids ascend are compared without sorting")]
    Budget(#[from] BudgetError),
    /// A compressed or Parquet file is broken.
    #[error("{} cannot be read: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What its decoder says.
        source: std::io::Error,
    },
    /// A line is not a row.
    #[error("{} line {line} is {found:?}, expected {expected}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// Counted from 1, in the unpacked file.
        line: u64,
        /// The line, or its start.
        found: String,
        /// What it should look like.
        expected: &'static str,
    },
    /// A vertex has two rows.
    #[error("{} has vertex {vertex} twice", path.display())]
    Twice {
        /// The file.
        path: PathBuf,
        /// The id.
        vertex: String,
    },
    /// A stored graph was given where a file of values belongs.
    #[error(
        "{} is a stored graph, not a file of values: to judge a result by its graph give both and name the algorithm (RESULT GRAPH --algorithm NAME)",
        path.display()
    )]
    IsGraph {
        /// The stored graph.
        path: PathBuf,
    },
    /// The share that a rule allows is no number of 0 or more.
    #[error("the difference that rule epsilon allows is {share}, expected 0 or more")]
    Share {
        /// The share asked for.
        share: f64,
    },
}

/// How a result compares with its reference, or with its graph.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Verdict {
    /// Vertices of the reference, or of the graph.
    pub vertices: u64,
    /// Vertices that are not the same in both, `missing` and `unexpected` included.
    pub differences: u64,
    /// Vertices that only the reference, or the graph, has.
    pub missing: u64,
    /// Vertices that only the result has.
    pub unexpected: u64,
    /// Whether there may be more differences: a judge stops at its first objection.
    pub may_be_more: bool,
    /// The first differences in order of vertex ids, or of the result's rows before a judge, ten at most, a line each.
    pub described: Vec<String>,
}

impl Verdict {
    /// Whether there is no difference.
    pub fn is_same(&self) -> bool {
        self.differences == 0
    }

    fn differs(&mut self, describe: impl FnOnce() -> String) {
        self.differences += 1;
        if self.described.len() < DESCRIBED_MAX {
            self.described.push(describe());
        }
    }
}

/// Compares `result` with `reference`.
///
/// Either file is what `run` writes (Parquet, or CSV with a header `vertex,...`) or LDBC's text, an id and a value on each line;
/// text may be packed with gzip. A folder stands for its files in order of their names, but for those that begin with a dot or an
/// underscore. Null, an empty field of CSV, `inf`, `infinity` and 9223372036854775807 mean unreached; the last
/// three also equal a vertex of that name, where values are vertices.
///
/// # Errors
/// A [`ValidateError`] when the files cannot be compared. Differences are no errors: they are in the [`Verdict`].
pub fn validate(
    machine: &Machine,
    result: &Path,
    reference: &Path,
    rule: Rule,
) -> Result<Verdict, ValidateError> {
    if let Rule::Epsilon(share) = rule
        && !(share >= 0.0 && share.is_finite())
    {
        return Err(ValidateError::Share { share });
    }
    let reading = match rule {
        Rule::Exact | Rule::Epsilon(_) => Reading::Numbers,
        Rule::Equivalence => Reading::Names,
    };
    compare(machine.budget(), [result, reference], rule, |path| {
        open(machine, path, reading)
    })
}

/// The rows of a file until work is to stop. What the file is, its first bytes say.
fn open(machine: &Machine, path: &Path, reading: Reading) -> Result<Rows, ValidateError> {
    let stop = machine.stop().clone();
    let rows = rows_of(machine, path, reading)?;
    Ok(Box::new(rows.map(move |row| match stop.requested() {
        true => Err(ValidateError::Stopped),
        false => row,
    })))
}

fn rows_of(machine: &Machine, path: &Path, reading: Reading) -> Result<Rows, ValidateError> {
    if !machine.disk().exists(path)? {
        return Err(ValidateError::NoFile {
            path: path.to_path_buf(),
        });
    }
    if machine.disk().exists(&path.join(DESCRIPTION))? {
        return Err(ValidateError::IsGraph {
            path: path.to_path_buf(),
        });
    }
    if machine.disk().is_dir(path)? {
        return parts::rows(machine, path, reading);
    }
    let file = ByteFile::open(machine.disk(), machine.budget(), path, CHUNK_BYTES)?;
    let unreadable = |source| ValidateError::Read {
        path: path.to_path_buf(),
        source,
    };
    let mut magic = Vec::new();
    file.reader()
        .take(4)
        .read_to_end(&mut magic)
        .map_err(unreadable)?;
    let lines = BufReader::with_capacity(TEXT_BUFFER_BYTES, file.reader());
    match magic.as_slice() {
        b"PAR1" => parquet::rows(file, machine.budget(), path, reading),
        [0x1f, 0x8b, ..] => {
            let unpacked = BufReader::with_capacity(TEXT_BUFFER_BYTES, MultiGzDecoder::new(lines));
            Ok(Box::new(Lines::new(unpacked, path.to_path_buf(), reading)))
        }
        _ => Ok(Box::new(Lines::new(lines, path.to_path_buf(), reading))),
    }
}
