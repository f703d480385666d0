//! Detection of the files of an input, and of the format of each.
//!
//! A directory stands for all its files, and the files of its directories, in order of their names. Hidden files, and files that
//! by convention describe the edges instead of holding them (names that start with `.` or `_`, `.properties`, `.md`,
//! `.crc`, copies that editors keep), are left out and listed.
//!
//! Beside the edges (`.e`) and vertices (`.v`) of LDBC Graphalytics often lie the answers of its algorithms, which look like
//! edges. So of a directory with a `.e` file, and of any directory that is declared LDBC, only those two kinds are read.
//!
//! The format of a file follows from its name, without an ending of a compression; so `x.csv.gz` is CSV.
//! Whether a text file is compressed follows from its first bytes. Raw pairs may begin with any bytes: for them it follows
//! from the name.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use graphmill_storage::{Disk, MemoryBudget, Open};

use super::compression::{Compression, Unpacker, has_ending};
use super::files::{OnError, ReadOptions};
use super::foreign::{by_ending, by_magic, by_text};
use super::input_file::{FileContent, Format, IdWidth, InputFile, InputFiles};
use super::parquet::ParquetFile;
use super::read_ahead::{ByteRuns, ReadAhead};
use super::text::dialect::{Dialect, DialectRequest, Preamble, RecordKind, Syntax, TextOptions};
use super::text::sniff::sniff;
use crate::error::IngestError;

/// The format of a file, by its name or by option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FileFormat {
    Text(Syntax),
    Pairs(IdWidth),
    Parquet,
}

/// A detector of the files of an input and of their formats.
pub(crate) struct Finder<'a> {
    disk: &'a Arc<dyn Disk>,
    budget: &'a MemoryBudget,
    options: &'a ReadOptions,
    bytes: ReadAhead,
}

/// Directories within each other, at most.
const DEPTH_MAX: usize = 64;

impl<'a> Finder<'a> {
    pub(crate) fn new(
        disk: &'a Arc<dyn Disk>,
        budget: &'a MemoryBudget,
        options: &'a ReadOptions,
    ) -> Result<Self, IngestError> {
        Ok(Self {
            disk,
            budget,
            options,
            bytes: ReadAhead::new(disk, budget)?,
        })
    }

    /// Returns the files that `paths` stand for.
    pub(crate) fn find(&mut self, paths: &[PathBuf]) -> Result<InputFiles, IngestError> {
        let mut input = InputFiles::default();
        for path in paths {
            if !self.disk.is_dir(path)? {
                self.add(&mut input, path)?;
                continue;
            }
            let before = input.edges.len() + input.vertices.len();
            let mut files = Vec::new();
            self.input_files(&mut input, path, &mut files, 0)?;
            for path in files {
                self.add(&mut input, &path)?;
            }
            if input.edges.len() + input.vertices.len() == before {
                let problem = match self.options.format {
                    Format::Ldbc => "the directory holds no LDBC files of edges (.e)",
                    _ => "the directory holds no files of edges",
                };
                return Err(IngestError::input(path, problem));
            }
        }
        Ok(input)
    }

    /// The files of a directory that are meant; the others are noted.
    fn input_files(
        &self,
        input: &mut InputFiles,
        folder: &Path,
        all: &mut Vec<PathBuf>,
        depth: usize,
    ) -> Result<(), IngestError> {
        if depth > DEPTH_MAX {
            return Err(too_deep(folder));
        }
        // With what the directories in it hold, in order of names.
        let mut files = Vec::new();
        for path in self.disk.list(folder)? {
            if content_mismatch(&path) {
                input.left_out.push(path);
            } else if self.disk.is_dir(&path)? {
                self.input_files(input, &path, &mut files, depth + 1)?;
            } else {
                files.push(path);
            }
        }
        let is = |path: &Path, ending| has_ending(&Compression::strip(path).0, ending);
        let ldbc = match self.options.format {
            Format::Ldbc => true,
            Format::Auto => files.iter().any(|path| is(path, "e")),
            _ => false,
        };
        if ldbc {
            let others = files.extract_if(.., |path| !is(path, "e") && !is(path, "v"));
            input.left_out.extend(others);
        }
        // KONECT: a file of facts beside the one with edges.
        let starts = |path: &Path, start: &[u8]| {
            let name = path.file_name().unwrap_or_default();
            name.as_encoded_bytes().starts_with(start)
        };
        if files.iter().any(|path| starts(path, b"meta."))
            && files.iter().any(|path| starts(path, b"out."))
        {
            let others = files.extract_if(.., |path| !starts(path, b"out."));
            input.left_out.extend(others);
        }
        all.extend(files);
        Ok(())
    }

    fn add(&mut self, input: &mut InputFiles, path: &Path) -> Result<(), IngestError> {
        let (name, named_packed) = Compression::strip(path);
        let kind = match self.options.format {
            Format::Auto => kind_of(path, &name, &self.options.text)?,
            Format::Ldbc if has_ending(&name, "v") => None,
            Format::Text | Format::Ldbc => Some(FileFormat::Text(Syntax::Text)),
            Format::Csv => Some(FileFormat::Text(Syntax::Csv)),
            Format::Dimacs => Some(FileFormat::Text(Syntax::Dimacs)),
            Format::RawU32 => Some(FileFormat::Pairs(IdWidth::U32)),
            Format::RawU64 => Some(FileFormat::Pairs(IdWidth::U64)),
            Format::Parquet => Some(FileFormat::Parquet),
        };
        let Some(kind) = kind else {
            input.vertices.push(path.to_path_buf());
            return Ok(());
        };
        self.detect_file(input, path, kind, named_packed, RecordKind::Edge)
    }

    /// Returns the lists of vertices `paths`, with any names, each as a file of edges.
    pub(crate) fn find_vertices(&mut self, paths: &[PathBuf]) -> Result<InputFiles, IngestError> {
        let mut input = InputFiles::default();
        for path in paths {
            let (name, named_packed) = Compression::strip(path);
            let format = match kind_of(path, &name, &self.options.text)? {
                None => FileFormat::Text(Syntax::Text),
                Some(FileFormat::Text(Syntax::Dimacs) | FileFormat::Pairs(_)) => {
                    let problem = "a list of vertices is text with an id a line, or a Parquet file";
                    return Err(IngestError::input(path, problem));
                }
                Some(format) => format,
            };
            let named_packed = named_packed && format != FileFormat::Parquet;
            self.detect_file(&mut input, path, format, named_packed, RecordKind::Vertex)?;
        }
        Ok(input)
    }

    /// Adds a file of edges to `input`: its size and its compression, and how it is read.
    fn detect_file(
        &mut self,
        input: &mut InputFiles,
        path: &Path,
        kind: FileFormat,
        named_packed: bool,
        columns: RecordKind,
    ) -> Result<(), IngestError> {
        let stamp = self.disk.stamp(path)?;
        let length = self.disk.open(path, Open::Read)?.len()?;
        if length == 0 && named_packed {
            let problem = "0 bytes, and a compressed file has more: it is cut short";
            return Err(IngestError::input(path, problem));
        }
        self.bytes.open(path, length, 0, SAMPLE_BYTES)?;
        let (head, last) = self.bytes.next(0)?;
        // A Parquet file with any name shows its format in its first bytes.
        let kind = match kind {
            FileFormat::Text(_) if head.starts_with(b"PAR1") => FileFormat::Parquet,
            kind => kind,
        };
        if let (FileFormat::Text(_), Some(problem)) = (kind, by_magic(head)) {
            return Err(IngestError::input(path, problem));
        }
        let compression = match kind {
            FileFormat::Pairs(_) if !named_packed => Compression::None,
            FileFormat::Parquet => Compression::None,
            _ => Compression::of_head(path, head)?,
        };
        let before = input.edges.last().and_then(|file| file.content.dialect());
        let request = DialectRequest {
            path,
            syntax: match kind {
                FileFormat::Text(syntax) => syntax,
                FileFormat::Pairs(_) | FileFormat::Parquet => Syntax::Text,
            },
            columns,
            weighted: self.options.edge_kind().is_weight(),
            skips: self.options.on_error == OnError::Skip,
            options: &self.options.text,
            before: before.map(Arc::as_ref),
        };
        let content = match kind {
            FileFormat::Pairs(width) => FileContent::Pairs(width),
            FileFormat::Parquet => {
                let file = ParquetFile::open(self.disk, self.budget, request)?;
                FileContent::Parquet(Arc::new(file))
            }
            FileFormat::Text(_) => {
                let (dialect, head) = if compression == Compression::None {
                    dialect_of(request, head, last)?
                } else {
                    self.bytes.open(path, length, 0, SAMPLE_BYTES)?;
                    let mut unpacker = Unpacker::new(self.budget, compression.leased_bytes())?;
                    let mut unpacked = unpacker.open(path, compression, &mut self.bytes)?;
                    let (head, last) = unpacked.next(0)?;
                    dialect_of(request, head, last)?
                };
                let dialect = match before {
                    Some(before) if **before == dialect => Arc::clone(before),
                    _ => Arc::new(dialect),
                };
                FileContent::Text(dialect, head)
            }
        };
        let file = InputFile {
            path: path.to_path_buf(),
            bytes: length,
            stamp,
            content,
            compression,
            states: Vec::new(),
        };
        if let FileFormat::Pairs(width) = kind
            && compression == Compression::None
            && !length.is_multiple_of(width.pair_bytes() as u64)
        {
            return Err(file.no_whole_pairs(length, width));
        }
        input.edges.push(file);
        Ok(())
    }
}

/// Bytes of a file from which it is decided how it is read.
const SAMPLE_BYTES: u64 = 256 << 10;
/// Bytes that the detection searches for bytes that no text has.
const LOOK_BYTES: usize = 4096;

/// Returns the dialect of a text that begins with `head`.
fn dialect_of(
    request: DialectRequest<'_>,
    head: &[u8],
    whole: bool,
) -> Result<(Dialect, Preamble), IngestError> {
    let text = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
    let problem = if let Some(problem) = by_magic(head) {
        problem
    } else if head.starts_with(b"\xff\xfe") || head.starts_with(b"\xfe\xff") {
        "this is text in UTF-16; convert it (iconv -f UTF-16 -t UTF-8)"
    } else if head[..head.len().min(LOOK_BYTES)].contains(&0) {
        "the file holds zero bytes, so it is no text in UTF-8; if it holds raw pairs, say --format raw-u32 or raw-u64"
    } else if request.syntax != Syntax::Dimacs
        && !names_both_ends(request.options)
        && let Some(problem) = by_text(text)
    {
        problem
    } else {
        return sniff(request, head, whole);
    };
    Err(IngestError::input(request.path, problem))
}

/// True if the options name the columns of both ends: such a user knows the file.
fn names_both_ends(options: &TextOptions) -> bool {
    options.source_column.is_some() && options.target_column.is_some()
}

/// Returns the files `paths`, and the files of the directories among them that hold edges.
///
/// Files that hold no edges by convention are left out.
///
/// # Errors
/// A directory cannot be read, or is more than 64 directories deep.
pub fn input_files(disk: &dyn Disk, paths: &[PathBuf]) -> Result<Vec<PathBuf>, IngestError> {
    fn add(
        disk: &dyn Disk,
        path: &Path,
        depth: usize,
        files: &mut Vec<PathBuf>,
    ) -> Result<(), IngestError> {
        if !disk.is_dir(path)? {
            files.push(path.to_path_buf());
            return Ok(());
        }
        if depth > DEPTH_MAX {
            return Err(too_deep(path));
        }
        let mut within = disk.list(path)?;
        within.retain(|path| !content_mismatch(path));
        within
            .iter()
            .try_for_each(|path| add(disk, path, depth + 1, files))
    }
    let mut files = Vec::new();
    for path in paths {
        add(disk, path, 0, &mut files)?;
    }
    Ok(files)
}

fn too_deep(folder: &Path) -> IngestError {
    let problem = "this directory is more than 64 directories deep in an input: is it a link to one above it?";
    IngestError::input(folder, problem)
}

/// True if a file of an input directory holds no edges by convention.
///
/// That is a hidden file, a description, or `FILE.graphmill`, which holds a graph that was made of a file.
pub fn content_mismatch(path: &Path) -> bool {
    let starts = [".", "_", "readme", "license", "licence"];
    let endings = ["properties", "md", "crc", "graphmill", "bak", "swp", "tmp"];
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let name = name.to_ascii_lowercase();
    name.ends_with('~')
        || matches!(name.as_str(), "thumbs.db" | "desktop.ini")
        || starts.iter().any(|start| name.starts_with(start))
        || endings.iter().any(|ending| has_ending(path, ending))
}

/// Returns the format of a file by its name; `None`: a list of vertices.
fn kind_of(
    path: &Path,
    name: &Path,
    text: &TextOptions,
) -> Result<Option<FileFormat>, IngestError> {
    let ending = name.extension().unwrap_or_default().to_string_lossy();
    Ok(Some(match ending.to_ascii_lowercase().as_str() {
        "u32" => FileFormat::Pairs(IdWidth::U32),
        "u64" => FileFormat::Pairs(IdWidth::U64),
        "parquet" | "parq" | "pq" => FileFormat::Parquet,
        "csv" => FileFormat::Text(Syntax::Csv),
        "tsv" => FileFormat::Text(Syntax::Tsv),
        "gr" => FileFormat::Text(Syntax::Dimacs),
        "v" => return Ok(None),
        "bin" => {
            let problem = "the name does not say what this binary file holds; if pairs, say --format raw-u32 or raw-u64";
            return Err(IngestError::input(path, problem));
        }
        ending => {
            if let Some(foreign) = by_ending(ending)
                && !names_both_ends(text)
            {
                let problem =
                    format!("by its name {foreign}; if it is an edge list, say so with --format");
                return Err(IngestError::input(path, problem));
            }
            FileFormat::Text(Syntax::Text)
        }
    }))
}
