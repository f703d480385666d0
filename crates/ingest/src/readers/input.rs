//! Which files an input is made of, and what each of them is.
//!
//! A folder stands for all its files in order of their names. Hidden files and those that by convention say something
//! about the edges instead of holding them (names that start with `.` or `_`, `.properties`, `.md`, `.crc`) are left out
//! and listed. A folder inside a folder is an error: it is not clear that its files are meant.
//!
//! Beside the edges (`.e`) and vertices (`.v`) of LDBC Graphalytics often lie the answers of its algorithms, which look like
//! edges. So of a folder with a `.e` file, and of any folder that is said to be LDBC, only those two kinds are taken.
//!
//! The format of a file follows from its name, without an ending that says it is compressed; so `x.csv.gz` is CSV.
//! Whether a text file is compressed follows from its first bytes. Raw pairs may begin with any bytes: for them it follows
//! from the name.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use graphmill_storage::{Disk, FileStamp, Open};

use super::compression::Compression;
use super::file_bytes::{FileBytes, Runs};
use super::raw_pairs::Width;
use super::text::Syntax;
use crate::error::IngestError;

/// What input files are said to be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// By the name of each file, text when it says nothing.
    #[default]
    Auto,
    /// One edge a line, separated by tab, space, comma or semicolon: SNAP, `.el`, `.wel`.
    Text,
    /// Text separated by commas.
    Csv,
    /// LDBC Graphalytics: `.e` files of edges, `.v` files of vertices; other files of a folder are left out.
    Ldbc,
    /// The arcs (`a u v w`) of a file in DIMACS format.
    Dimacs,
    /// Pairs of little-endian 32-bit integers.
    RawU32,
    /// Pairs of little-endian 64-bit integers.
    RawU64,
}

/// What a file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    Text(Syntax),
    Pairs(Width),
}

/// One file of an input.
#[derive(Clone, Debug)]
pub struct InputFile {
    pub(crate) path: PathBuf,
    pub(crate) bytes: u64,
    /// What it was when it was first opened.
    pub(crate) stamp: FileStamp,
    pub(crate) content: Content,
    pub(crate) compression: Compression,
}

impl InputFile {
    /// Where it lies.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its length in bytes, as it lies on disk.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// A raw file of so many (unpacked) bytes ends within a pair.
    pub(crate) fn no_whole_pairs(&self, bytes: u64, width: Width) -> IngestError {
        let (pair, bits) = (width.pair_bytes(), width.pair_bytes() * 4);
        IngestError::input(
            &self.path,
            format!(
                "{bytes} bytes are no whole number of pairs of {bits}-bit integers ({pair} bytes each): cut short, or of another format"
            ),
        )
    }
}

/// The files of an input.
#[derive(Clone, Debug, Default)]
pub(crate) struct Input {
    /// Those with edges, in order.
    pub(crate) edges: Vec<InputFile>,
    /// LDBC files of vertices.
    pub(crate) vertices: Vec<PathBuf>,
    /// Files of folders that were left out.
    pub(crate) left_out: Vec<PathBuf>,
}

impl Input {
    /// What `paths` stand for.
    pub(crate) fn find(
        disk: &Arc<dyn Disk>,
        paths: &[PathBuf],
        format: Format,
        bytes: &mut FileBytes,
    ) -> Result<Self, IngestError> {
        let mut input = Self::default();
        for path in paths {
            if !disk.is_dir(path)? {
                input.add(disk, path, format, bytes)?;
                continue;
            }
            let before = input.edges.len() + input.vertices.len();
            for path in input.files_of(disk, path, format)? {
                input.add(disk, &path, format, bytes)?;
            }
            if input.edges.len() + input.vertices.len() == before {
                return Err(IngestError::input(path, no_edges(format)));
            }
        }
        Ok(input)
    }

    /// The files of a folder that are meant; the others are noted.
    fn files_of(
        &mut self,
        disk: &Arc<dyn Disk>,
        folder: &Path,
        format: Format,
    ) -> Result<Vec<PathBuf>, IngestError> {
        let mut files = Vec::new();
        for path in disk.list(folder)? {
            if says_something_else(&path) {
                self.left_out.push(path);
            } else if disk.is_dir(&path)? {
                let problem = "a folder inside an input folder; give it as an input of its own if its files are meant";
                return Err(IngestError::input(&path, problem));
            } else {
                files.push(path);
            }
        }
        let is = |path: &Path, ending| has_ending(&Compression::strip(path).0, ending);
        let ldbc = match format {
            Format::Ldbc => true,
            Format::Auto => files.iter().any(|path| is(path, "e")),
            _ => false,
        };
        if ldbc {
            let (meant, others): (Vec<_>, Vec<_>) = files
                .into_iter()
                .partition(|path| is(path, "e") || is(path, "v"));
            self.left_out.extend(others);
            files = meant;
        }
        Ok(files)
    }

    fn add(
        &mut self,
        disk: &Arc<dyn Disk>,
        path: &Path,
        format: Format,
        bytes: &mut FileBytes,
    ) -> Result<(), IngestError> {
        let (name, named_packed) = Compression::strip(path);
        let content = match format {
            Format::Auto => content_of(path, &name)?,
            Format::Ldbc if has_ending(&name, "v") => None,
            Format::Text | Format::Ldbc => Some(Content::Text(Syntax::Text)),
            Format::Csv => Some(Content::Text(Syntax::Csv)),
            Format::Dimacs => Some(Content::Text(Syntax::Dimacs)),
            Format::RawU32 => Some(Content::Pairs(Width::U32)),
            Format::RawU64 => Some(Content::Pairs(Width::U64)),
        };
        match content {
            Some(content) => self
                .edges
                .push(look_at(disk, path, content, named_packed, bytes)?),
            None => self.vertices.push(path.to_path_buf()),
        }
        Ok(())
    }
}

/// A list of vertices, whatever its name says.
pub(crate) fn vertex_file(
    disk: &Arc<dyn Disk>,
    path: &Path,
    bytes: &mut FileBytes,
) -> Result<InputFile, IngestError> {
    let (name, named_packed) = Compression::strip(path);
    let syntax = match content_of(path, &name)? {
        None => Syntax::Text,
        Some(Content::Text(syntax)) if syntax != Syntax::Dimacs => syntax,
        Some(_) => {
            return Err(IngestError::input(
                path,
                "a list of vertices is text with an id a line",
            ));
        }
    };
    look_at(disk, path, Content::Text(syntax), named_packed, bytes)
}

/// The size and the compression of a file.
fn look_at(
    disk: &Arc<dyn Disk>,
    path: &Path,
    content: Content,
    named_packed: bool,
    bytes: &mut FileBytes,
) -> Result<InputFile, IngestError> {
    let stamp = disk.stamp(path)?;
    let length = disk.open(path, Open::Read)?.len()?;
    bytes.open(path, length, 0, 0)?;
    let (head, _) = bytes.next(0)?;
    let compression = match content {
        Content::Pairs(_) if !named_packed => Compression::None,
        _ => Compression::of_head(path, head)?,
    };
    let file = InputFile {
        path: path.to_path_buf(),
        bytes: length,
        stamp,
        content,
        compression,
    };
    match content {
        Content::Pairs(width)
            if compression == Compression::None
                && !length.is_multiple_of(width.pair_bytes() as u64) =>
        {
            Err(file.no_whole_pairs(length, width))
        }
        _ => Ok(file),
    }
}

/// What is wrong with a folder of which no file is taken.
fn no_edges(format: Format) -> &'static str {
    match format {
        Format::Ldbc => "the folder holds no LDBC files of edges (.e)",
        _ => "the folder holds no files of edges",
    }
}

fn has_ending(name: &Path, ending: &str) -> bool {
    name.extension()
        .is_some_and(|found| found.eq_ignore_ascii_case(ending))
}

/// Whether what is in an input folder holds no edges by convention: hidden files, descriptions, and `FILE.graphmill`, where a
/// graph is kept that was made of a file.
pub fn says_something_else(path: &Path) -> bool {
    let hidden = path
        .file_name()
        .is_some_and(|name| matches!(name.as_encoded_bytes(), [b'.' | b'_', ..]));
    hidden
        || ["properties", "md", "crc", "graphmill"]
            .iter()
            .any(|ending| has_ending(path, ending))
}

/// Endings of formats that look like text with edges, or like nothing, and are neither.
const FOREIGN: &[(&[&str], &str)] = &[
    (&["mtx", "mm"], "a Matrix Market"),
    (&["graph", "metis"], "a METIS"),
    (&["gml"], "a GML"),
    (&["graphml", "gexf", "xml"], "an XML"),
    (&["dot", "gv"], "a Graphviz"),
    (&["net", "paj"], "a Pajek"),
    (&["json", "jsonl"], "a JSON"),
    (
        &[
            "parquet", "arrow", "feather", "ipc", "orc", "avro", "npy", "npz",
        ],
        "a columnar or array",
    ),
    (
        &["xz", "bz2", "lz4", "zip", "7z", "rar", "tar", "tgz"],
        "an archive or unknown compressed",
    ),
];

/// What a file is by its name; `None`: a list of vertices.
fn content_of(path: &Path, name: &Path) -> Result<Option<Content>, IngestError> {
    let ending = name
        .extension()
        .map(|ending| ending.to_string_lossy().to_ascii_lowercase())
        .unwrap_or_default();
    Ok(Some(match ending.as_str() {
        "u32" => Content::Pairs(Width::U32),
        "u64" => Content::Pairs(Width::U64),
        "csv" => Content::Text(Syntax::Csv),
        "tsv" => Content::Text(Syntax::Tsv),
        "gr" => Content::Text(Syntax::Dimacs),
        "v" => return Ok(None),
        "bin" => {
            let problem = "the name does not say what this binary file holds; if pairs, say --format raw-u32 or raw-u64";
            return Err(IngestError::input(path, problem));
        }
        ending => {
            if let Some((_, kind)) = FOREIGN
                .iter()
                .find(|(endings, _)| endings.contains(&ending))
            {
                let problem = format!(
                    "by its name {kind} file, which is not read; if it is an edge list, say so with --format"
                );
                return Err(IngestError::input(path, problem));
            }
            Content::Text(Syntax::Text)
        }
    }))
}
