//! Files as a source of edges, and the pieces they are cut in.
//!
//! A piece of plain text is the lines that begin in a range of bytes, so every line is in one piece. A piece of raw pairs
//! is a range of bytes. A compressed file is one piece, since it can only be read from its start.

mod reader;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use graphmill_graph::EdgeKind;
use graphmill_storage::{Budget, Disk, GRAIN_BYTES, Stop};

use self::reader::{FileReader, READER_BYTES};
use super::compression::Compression;
use super::file_bytes::{FileBytes, changed};
use super::input::{Content, Format, Input, InputFile, vertex_file};
use super::text::{Columns, Parser, Rules};
use crate::edge::{EdgeSink, EdgeSource, Ids, PieceReader};
use crate::error::IngestError;

/// Unpacked bytes from which the kind of the ids is found out.
const DETECT_BYTES: u64 = 64 << 20;
/// Bytes of a piece, unless said otherwise.
const PIECE_BYTES: u64 = 16 << 20;

/// What to do with a malformed line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnError {
    /// It is an error.
    #[default]
    Stop,
    /// It is left out and counted.
    Skip,
}

/// How files are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadOptions {
    /// What the files are.
    pub format: Format,
    /// What the ids are; `None`: integers if all are in the first 64 MiB, else text.
    pub ids: Option<Ids>,
    /// Whether the third column is a weight: a finite number, negative ones too, that is rounded to this type.
    pub weights: EdgeKind,
    /// What to do with a malformed line.
    pub on_error: OnError,
    /// Bytes of a piece of a file that is not compressed; does not change what is read.
    pub piece_bytes: u64,
}

impl Default for ReadOptions {
    fn default() -> Self {
        Self {
            format: Format::Auto,
            ids: None,
            weights: EdgeKind::None,
            on_error: OnError::Stop,
            piece_bytes: PIECE_BYTES,
        }
    }
}

/// Edge files, or a list of vertices.
#[derive(Debug)]
pub struct FileSource {
    input: Input,
    columns: Columns,
    ids: Ids,
    weights: EdgeKind,
    skip: bool,
    piece_bytes: u64,
    /// The number of the first piece of each file, and of all pieces.
    first_pieces: Vec<u64>,
    /// A line that may have been meant as a header.
    odd_first: Option<(PathBuf, u64)>,
}

impl FileSource {
    /// Bytes of a piece of a file, unless it is asked for others.
    pub(crate) const PIECE_BYTES: u64 = PIECE_BYTES;

    /// Bytes of the budget that a reader of these files takes, as far as their names tell: those of folders are not looked at.
    pub fn reader_bytes_by_name<'p>(paths: impl IntoIterator<Item = &'p PathBuf>) -> u64 {
        let unpacker = |path: &PathBuf| Compression::of_name(path).leased_bytes();
        READER_BYTES + paths.into_iter().map(unpacker).max().unwrap_or(0)
    }

    /// The edges of `paths`: files, or folders of them (see [`InputFile`] for which), in this order.
    ///
    /// Looks at the names, the first bytes and, where the ids may be anything, the first 64 MiB.
    ///
    /// # Errors
    /// A file cannot be read, is of a format that is not read, or does not fit `options` or the other files.
    pub fn open(
        disk: &Arc<dyn Disk>,
        budget: &Budget,
        paths: &[PathBuf],
        options: &ReadOptions,
        stop: &Stop,
    ) -> Result<Self, IngestError> {
        let input = Input::find(
            disk,
            paths,
            options.format,
            &mut FileBytes::new(disk, budget)?,
        )?;
        let Some(first) = input.edges.first() else {
            let path = paths.first().map_or(Path::new(""), PathBuf::as_path);
            return Err(IngestError::input(
                path,
                "no file of edges is among the inputs",
            ));
        };
        let pairs = |file: &&InputFile| matches!(file.content, Content::Pairs(_));
        let raw = input.edges.iter().find(pairs);
        if let Some(raw) = raw
            && options.weights != EdgeKind::None
        {
            return Err(IngestError::input(
                &raw.path,
                "raw pairs have no weights (--weights none)",
            ));
        }
        if let Some(raw) = raw
            && options.ids == Some(Ids::Text)
        {
            return Err(IngestError::input(
                &raw.path,
                "the ids of raw pairs are integers (--ids int)",
            ));
        }
        let first = first.path.clone();
        let mut source = Self::of(input, Columns::Edge, options);
        if options.ids.is_none() {
            (source.ids, source.odd_first) = source.detect(disk, budget, stop)?;
            let raw = source.input.edges.iter().find(pairs);
            if source.ids == Ids::Text
                && let Some(raw) = raw
            {
                let problem = format!(
                    "raw pairs have integer ids, but not all ids of the other files are ({})",
                    first.display()
                );
                return Err(IngestError::input(&raw.path, problem));
            }
        }
        Ok(source)
    }

    /// The vertices in the first column of the files `paths`, each as an edge from itself to itself.
    ///
    /// # Errors
    /// As for [`open`](Self::open).
    pub fn open_vertices(
        disk: &Arc<dyn Disk>,
        budget: &Budget,
        paths: &[PathBuf],
        ids: Ids,
        on_error: OnError,
    ) -> Result<Self, IngestError> {
        let mut bytes = FileBytes::new(disk, budget)?;
        let edges = paths
            .iter()
            .map(|path| vertex_file(disk, path, &mut bytes))
            .collect::<Result<_, _>>()?;
        let options = ReadOptions {
            ids: Some(ids),
            on_error,
            ..ReadOptions::default()
        };
        Ok(Self::of(
            Input {
                edges,
                ..Input::default()
            },
            Columns::Vertex,
            &options,
        ))
    }

    fn of(input: Input, columns: Columns, options: &ReadOptions) -> Self {
        // A multiple of the grain, and so of a pair.
        let piece_bytes = options
            .piece_bytes
            .clamp(1, 1 << 40)
            .next_multiple_of(GRAIN_BYTES as u64);
        let mut first_pieces = vec![0];
        let mut pieces = 0;
        for file in &input.edges {
            pieces += match file.compression {
                Compression::None => file.bytes.div_ceil(piece_bytes),
                _ => 1,
            };
            first_pieces.push(pieces);
        }
        Self {
            input,
            columns,
            ids: options.ids.unwrap_or(Ids::Integer),
            weights: options.weights,
            skip: options.on_error == OnError::Skip,
            piece_bytes,
            first_pieces,
            odd_first: None,
        }
    }

    /// The files, in order.
    pub fn files(&self) -> &[InputFile] {
        &self.input.edges
    }

    /// LDBC files of vertices (`.v`) among the inputs.
    pub fn vertex_files(&self) -> &[PathBuf] {
        &self.input.vertices
    }

    /// Files of the folders among the inputs that were left out.
    pub fn left_out(&self) -> &[PathBuf] {
        &self.input.left_out
    }

    /// A first line, and its file, that makes ids text though all others looked at have integers: maybe a header. It is an edge.
    pub fn odd_first_line(&self) -> Option<(&Path, u64)> {
        self.odd_first
            .as_ref()
            .map(|(path, line)| (path.as_path(), *line))
    }

    fn unpacker_bytes(&self) -> u64 {
        self.input
            .edges
            .iter()
            .map(|file| file.compression.leased_bytes())
            .max()
            .unwrap_or(0)
    }

    /// What the ids of the first bytes are, and which line alone says so, if it may be a header.
    fn detect(
        &self,
        disk: &Arc<dyn Disk>,
        budget: &Budget,
        stop: &Stop,
    ) -> Result<(Ids, Option<(PathBuf, u64)>), IngestError> {
        let mut reader = FileReader::new(self, disk, budget)?;
        let mut left = DETECT_BYTES;
        let (mut headers, mut edges) = (false, false);
        for file in &self.input.edges {
            let Content::Text(syntax) = file.content else {
                edges = true;
                continue;
            };
            let rules = Rules {
                syntax,
                columns: self.columns,
                ids: Ids::Integer,
                weights: EdgeKind::None,
                skip: true,
            };
            let mut parser = Parser::new(rules, true);
            let read = reader
                .text(file, 0..left, &mut parser, stop, &mut Nowhere)
                .or_else(|fault| reader.fail(fault, file, 0, &parser, stop))?;
            let report = parser.report();
            if parser.not_integers() > 0 {
                let odd = parser.odd_first().map(|line| (file.path.clone(), line));
                return Ok((Ids::Text, odd));
            }
            headers |= report.headers > 0;
            edges |= report.edges > 0;
            left = left.saturating_sub(read);
            if left == 0 {
                break;
            }
        }
        // A single line of text looks like a header until it turns out that nothing follows, in any file: programs that
        // write in parts write some with a header alone.
        let ids = if headers && !edges {
            Ids::Text
        } else {
            Ids::Integer
        };
        Ok((ids, None))
    }
}

/// What takes edges that are only looked at.
struct Nowhere;

impl EdgeSink for Nowhere {
    fn integers(&mut self, _: &[(u64, u64)], _: &[f64]) -> Result<(), IngestError> {
        Ok(())
    }

    fn texts(&mut self, _: &[(&[u8], &[u8])], _: &[f64]) -> Result<(), IngestError> {
        Ok(())
    }
}

impl EdgeSource for FileSource {
    fn pieces(&self) -> u64 {
        self.first_pieces.last().copied().unwrap_or(0)
    }

    fn ids(&self) -> Ids {
        self.ids
    }

    fn weights(&self) -> EdgeKind {
        self.weights
    }

    fn vertices(&self) -> Option<u64> {
        None
    }

    fn edges(&self) -> Option<u64> {
        self.input
            .edges
            .iter()
            .map(|file| match (file.content, file.compression) {
                (Content::Pairs(width), Compression::None) => {
                    Some(file.bytes / width.pair_bytes() as u64)
                }
                _ => None,
            })
            .sum()
    }

    fn amount(&self) -> u64 {
        self.input.edges.iter().map(|file| file.bytes).sum()
    }

    fn rereads_fast(&self) -> bool {
        self.edges().is_some()
    }

    fn lengths(&self) -> Vec<u64> {
        self.input.edges.iter().map(|file| file.bytes).collect()
    }

    fn identity(&self) -> Option<String> {
        // What the files are and when they were changed, and what is made of them.
        Some(format!("{self:?}"))
    }

    fn check_unchanged(&self, disk: &dyn Disk) -> Result<(), IngestError> {
        for file in &self.input.edges {
            if disk.stamp(&file.path)? != file.stamp {
                return Err(changed(&file.path));
            }
        }
        Ok(())
    }

    fn reader_bytes(&self) -> u64 {
        READER_BYTES + self.unpacker_bytes()
    }

    fn reader(
        &self,
        disk: &Arc<dyn Disk>,
        budget: &Budget,
    ) -> Result<Box<dyn PieceReader + '_>, IngestError> {
        Ok(Box::new(FileReader::new(self, disk, budget)?))
    }
}
