//! Files as a source of edges, and the pieces they are cut in.
//!
//! A piece of plain text is the lines that begin in a range of bytes, so every line is in one piece. A piece of raw pairs
//! is a range of bytes. A compressed file is one piece, since it can only be read from its start.

use std::path::{Path, PathBuf};

use graphmill_graph::{EdgeFields, EdgeKind, IdType};
use graphmill_storage::{GRAIN_BYTES, Lease, MemoryBudget};

use super::compression::Compression;
use super::id_range::IdRange;
use super::input_file::{FileContent, Format, InputFile, InputFiles};
use super::parquet::ParquetFile;
use super::table_columns::{ColumnType, TableColumns};
use super::table_rows::RowRequest;
use super::text::dialect::{DialectRequest, RecordKind, Syntax, TextOptions};
use crate::error::IngestError;
use crate::source::Ids;

/// A policy for malformed lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum OnError {
    /// Fail at the first one.
    #[default]
    Stop,
    /// Skip and count them.
    Skip,
}

/// Options for reading files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadOptions {
    /// The format of the files.
    pub format: Format,
    /// The type of the ids; `None`: integers if all ids in the first 64 MiB are, else text.
    ///
    /// [`Ids::Integer`] stands for signed integers too, if one of those ids is negative.
    pub ids: Option<Ids>,
    /// The exact type of the ids, which decides instead of `ids`.
    ///
    /// `None`: the type of the columns of Parquet files, else `Int64`.
    pub id_type: Option<IdType>,
    /// `Some(n)`: the vertices are all integers below `n`, and no edge has another id.
    pub vertices_below: Option<u64>,
    /// The type of the weights: a column of finite numbers, also negative, is rounded to this type.
    ///
    /// It is ignored if the options of text name [columns of a record](TextOptions::edge_data).
    pub weights: EdgeKind,
    /// The options of text files.
    pub text: TextOptions,
    /// The policy for malformed lines.
    pub on_error: OnError,
    /// Bytes of a piece of a file that is not compressed; it does not change the edges.
    pub piece_bytes: u64,
}

impl Default for ReadOptions {
    fn default() -> Self {
        Self {
            format: Format::Auto,
            ids: None,
            id_type: None,
            vertices_below: None,
            weights: EdgeKind::None,
            text: TextOptions::default(),
            on_error: OnError::Stop,
            piece_bytes: FileSource::PIECE_BYTES,
        }
    }
}

impl ReadOptions {
    /// Returns how the ids are delivered, if that was asked for.
    pub(crate) fn asked_ids(&self) -> Option<Ids> {
        match self.id_type {
            None => self.ids,
            Some(IdType::Int32 | IdType::Int64) => Some(Ids::Wrapping),
            Some(IdType::UInt32 | IdType::UInt64) => Some(Ids::Integer),
            Some(IdType::Text) => Some(Ids::Text),
            Some(IdType::Uuid) => Some(Ids::Uuid),
        }
    }

    /// Finds the columns of edges in a table that is called `path`.
    ///
    /// # Errors
    /// The options name no column of the table, or a column has a type that is not for its use.
    pub fn columns(
        &self,
        path: &Path,
        names: &[String],
        types: &[ColumnType],
    ) -> Result<TableColumns, IngestError> {
        let request = DialectRequest {
            path,
            syntax: Syntax::Csv,
            columns: RecordKind::Edge,
            weighted: self.edge_kind().is_weight(),
            skips: false,
            options: &self.text,
            before: None,
        };
        TableColumns::choose(&request, names, types)
    }

    /// Returns what rows are converted to, with ids that are delivered as `ids` says.
    #[must_use]
    pub fn rows(&self, ids: Ids) -> RowRequest {
        RowRequest {
            ids: IdRange {
                ids,
                below: self.vertices_below,
                asked: self.id_type,
            },
            weights: self.edge_kind(),
            skips: self.on_error == OnError::Skip,
        }
    }

    /// What edges carry: a record of fields, else a weight, else nothing.
    #[must_use]
    pub fn edge_kind(&self) -> EdgeKind {
        let record = self.text.edge_data.fields().kind();
        record.unwrap_or(self.weights)
    }
}

/// Edge files, or a list of vertices.
#[derive(Debug)]
pub struct FileSource {
    pub(super) input: InputFiles,
    pub(super) columns: RecordKind,
    pub(super) ids: Ids,
    /// The type of the ids that was asked for.
    pub(super) asked: Option<IdType>,
    pub(super) vertices_below: Option<u64>,
    pub(super) weights: EdgeKind,
    pub(super) fields: EdgeFields,
    pub(super) skip: bool,
    pub(super) piece_bytes: u64,
    /// The number of the first piece of each file, and of all pieces.
    pub(super) first_pieces: Vec<u64>,
    /// The id that made all ids text.
    pub(super) first_text: Option<FirstText>,
    /// The memory of the list of files.
    pub(super) _list: Lease,
}

/// The first id that is no integer, where others before it are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FirstText {
    pub(super) path: PathBuf,
    pub(super) line: u64,
    pub(super) found: String,
}

/// A notice about how some files are read, in one line; see docs/guide/formats-and-ids.md.
pub type ReadNotice = String;

impl FileSource {
    /// Bytes of a piece of a file, unless it is asked for others.
    pub(crate) const PIECE_BYTES: u64 = 16 << 20;

    /// Bytes of the budget for the list of these files.
    pub fn list_bytes(paths: &[PathBuf]) -> u64 {
        let bytes = |path: &PathBuf| name_bytes(path) + size_of::<InputFile>() as u64;
        paths.iter().map(bytes).sum()
    }

    pub(super) fn open_input(
        input: InputFiles,
        columns: RecordKind,
        options: &ReadOptions,
        budget: &MemoryBudget,
    ) -> Result<Self, IngestError> {
        let file = |file: &InputFile| name_bytes(&file.path) + size_of::<InputFile>() as u64;
        let others = input.vertices.iter().chain(&input.left_out);
        let list_bytes = input.edges.iter().map(file).sum::<u64>()
            + others.map(|path| name_bytes(path)).sum::<u64>();
        let list = budget.lease("the list of input files", list_bytes)?;
        // A multiple of the grain, and so of a pair.
        let piece_bytes = options.piece_bytes.clamp(1, 1 << 40);
        let piece_bytes = piece_bytes.next_multiple_of(GRAIN_BYTES as u64);
        let mut first_pieces = vec![0];
        let mut pieces = 0;
        for file in &input.edges {
            pieces += match (&file.content, file.compression) {
                (FileContent::Parquet(parquet), _) => parquet.pieces(),
                (_, Compression::None) => file.bytes.div_ceil(piece_bytes),
                _ => 1,
            };
            first_pieces.push(pieces);
        }
        Ok(Self {
            input,
            columns,
            ids: options.asked_ids().unwrap_or(Ids::Integer),
            asked: options.id_type,
            vertices_below: options.vertices_below,
            weights: options.edge_kind(),
            fields: options.text.edge_data.fields().clone(),
            skip: options.on_error == OnError::Skip,
            piece_bytes,
            first_pieces,
            first_text: None,
            _list: list,
        })
    }

    /// Returns the ids that an edge may have.
    pub(super) fn id_range(&self) -> IdRange {
        IdRange {
            ids: self.ids,
            below: self.vertices_below,
            asked: self.asked,
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

    /// Files of the directories among the inputs that were left out.
    pub fn left_out(&self) -> &[PathBuf] {
        &self.input.left_out
    }

    /// The most of what Parquet files take of each reader.
    pub(super) fn parquet_bytes(&self, bytes: fn(&ParquetFile) -> u64) -> u64 {
        let bytes = |file: &InputFile| match &file.content {
            FileContent::Parquet(parquet) => bytes(parquet),
            _ => 0,
        };
        self.input.edges.iter().map(bytes).max().unwrap_or(0)
    }

    pub(super) fn unpacker_bytes(&self) -> u64 {
        let bytes = |file: &InputFile| file.compression.leased_bytes();
        self.input.edges.iter().map(bytes).max().unwrap_or(0)
    }
}

fn name_bytes(path: &Path) -> u64 {
    (path.as_os_str().len() + size_of::<PathBuf>()) as u64
}
