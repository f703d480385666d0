//! Parquet files: which columns are the edges, and their rows, a row group at a time.
//!
//! A row group is a piece. A reader leases what the wanted columns of the largest row group unpack to, as the footer says;
//! `parquet_bytes.rs` refuses pages that are larger.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use graphmill_graph::EdgeKind;
use graphmill_storage::{Budget, ByteFile, Disk, Lease, Stop};
use parquet::basic::{Compression, ConvertedType, LogicalType, Type as Physical};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{ByteArray, DataType};
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData};
use parquet::schema::types::ColumnDescriptor;

use super::parquet_bytes::{column_reader, footer, guarded, pages_bytes};
use super::text::{Ask, Chosen, Columns, Integer, choose, text_id};
use crate::edge::{BATCH_EDGES_MAX, EdgeSink, Ids, PieceReport, SIGN};
use crate::error::{IngestError, LineProblem};

/// Bytes of a column that are read at a time.
const CHUNK_BYTES: usize = 256 << 10;

/// What the values of a column are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Signed,
    Unsigned,
    Text,
    Float,
    Other,
}

/// A file, and what is taken of it.
pub(crate) struct ParquetFile {
    metadata: ParquetMetaData,
    _lease: Lease,
    /// Columns of source, destination and, where wanted, weight.
    wanted: Vec<usize>,
    kinds: Vec<Kind>,
    pub(crate) names: [String; 3],
    pub(crate) ignored: usize,
    columns: Columns,
}

impl fmt::Debug for ParquetFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let groups = self.metadata.row_groups();
        let rows: Vec<i64> = groups.iter().map(|group| group.num_rows()).collect();
        write!(f, "Parquet {:?} {:?} {rows:?}", self.names, self.kinds)
    }
}

impl ParquetFile {
    /// Reads the footer, and finds the columns as [`Ask`] wants them.
    pub(crate) fn open(
        disk: &Arc<dyn Disk>,
        budget: &Budget,
        ask: Ask<'_>,
    ) -> Result<Self, IngestError> {
        let path = ask.path;
        let file = ByteFile::open(disk, budget, path, 64 << 10)?;
        let bytes = file.bytes();
        let (metadata, lease) = footer(file, budget)?.map_err(|error| broken(path, error))?;
        let schema = metadata.file_metadata().schema_descr();
        let names: Vec<String> = schema
            .columns()
            .iter()
            .map(|column| column.path().string())
            .collect();
        let kinds: Vec<Kind> = schema
            .columns()
            .iter()
            .map(|column| kind_of(column))
            .collect();
        // pandas keeps its index in columns of such names.
        let index = names
            .iter()
            .take_while(|name| name.starts_with("__index_level_") || name.starts_with("Unnamed: "))
            .count();
        let chosen = choose(&ask, Some(&names), index, names.len(), &|column| {
            kinds.get(column) == Some(&Kind::Float)
        })?;
        let Chosen {
            columns,
            names: called,
        } = chosen;
        let wanted = match (ask.columns, ask.weighted) {
            (Columns::Vertex, _) => columns[..1].to_vec(),
            (Columns::Edge, false) => columns[..2].to_vec(),
            (Columns::Edge, true) => columns.to_vec(),
        };
        for (place, &column) in wanted.iter().enumerate() {
            let Some(name) = names.get(column) else {
                let all = names.join(", ");
                return Err(IngestError::input(
                    path,
                    format!("column {} is wanted and the columns are {all}", column + 1),
                ));
            };
            let problem = match kinds[column] {
                Kind::Float if place < 2 => "holds floats: cast its ids to integers or text",
                Kind::Text if place == 2 => "holds text, and weights are numbers",
                Kind::Other => {
                    "holds neither integers nor text: cast its ids to either (in DuckDB: CAST(x AS VARCHAR)), or name another column with --source-column and --target-column"
                }
                _ => continue,
            };
            return Err(IngestError::input(path, format!("column {name} {problem}")));
        }
        // Chunks that overlap would be read again and again.
        let mut chunk_bytes = 0_u64;
        for group in metadata.row_groups() {
            let chunks = wanted.iter().map(|&column| group.column(column));
            let sizes = (chunks.clone()).map(|chunk| chunk.compressed_size().max(0) as u64);
            chunk_bytes = sizes.fold(chunk_bytes, u64::saturating_add);
            if chunk_bytes > bytes {
                return Err(broken(path, "its columns have more bytes than the file"));
            }
            if chunks
                .into_iter()
                .any(|chunk| chunk.compression() == Compression::LZ4)
            {
                return Err(IngestError::input(
                    path,
                    "it is packed with the old LZ4 of Hadoop; write it with zstd, snappy or lz4_raw",
                ));
            }
        }
        let ignored = names.len() - wanted.len();
        Ok(Self {
            kinds: wanted.iter().map(|&column| kinds[column]).collect(),
            wanted,
            metadata,
            _lease: lease,
            names: called,
            ignored,
            columns: ask.columns,
        })
    }

    /// Row groups.
    pub(crate) fn pieces(&self) -> u64 {
        self.metadata.num_row_groups() as u64
    }

    /// What the columns of ids hold.
    pub(crate) fn ids(&self) -> Ids {
        let mut ids = Ids::Integer;
        let ends = self.wanted.iter().zip(&self.kinds).take(2);
        for (&column, kind) in ends {
            match kind {
                Kind::Text => return Ids::Text,
                Kind::Signed if self.may_be_negative(column) => ids = Ids::Signed,
                _ => {}
            }
        }
        ids
    }

    /// Whether statistics do not rule out that a column holds negative integers.
    fn may_be_negative(&self, column: usize) -> bool {
        self.metadata.row_groups().iter().any(|group| {
            let chunk = group.column(column);
            let least = chunk
                .statistics()
                .and_then(|statistics| statistics.min_bytes_opt());
            match (least, chunk.column_type()) {
                (Some(&[a, b, c, d]), Physical::INT32) => i32::from_le_bytes([a, b, c, d]) < 0,
                (Some(least), Physical::INT64) => least
                    .try_into()
                    .is_ok_and(|least| i64::from_le_bytes(least) < 0),
                // A group of nulls alone has no least value.
                _ => group.num_rows() > 0,
            }
        })
    }

    fn chunks(&self, group: usize) -> impl Iterator<Item = &ColumnChunkMetaData> {
        let group = self.metadata.row_group(group);
        self.wanted.iter().map(|&column| group.column(column))
    }

    /// Bytes that a reader leases for the files of columns that it has open.
    pub(crate) fn chunk_bytes(&self) -> u64 {
        (self.wanted.len() * CHUNK_BYTES) as u64
    }

    /// Bytes that a reader leases for any of its row groups, packed and unpacked, with the values of their dictionaries.
    pub(crate) fn group_bytes(&self) -> u64 {
        (0..self.metadata.num_row_groups())
            .map(|group| pages_bytes(self.chunks(group)))
            .max()
            .unwrap_or(0)
    }

    /// Delivers the rows of row group `group`; the caller has leased [`group_bytes`](Self::group_bytes).
    #[expect(
        clippy::too_many_arguments,
        reason = "one caller, who has just read each of them"
    )]
    pub(crate) fn read(
        &self,
        disk: &Arc<dyn Disk>,
        budget: &Budget,
        path: &Path,
        group: usize,
        want: Want,
        stop: &Stop,
        sink: &mut dyn EdgeSink,
    ) -> Result<PieceReport, IngestError> {
        let rows_before = self.metadata.row_groups()[..group]
            .iter()
            .fold(0_i64, |rows, group| rows.saturating_add(group.num_rows()));
        let rows = self.metadata.row_group(group).num_rows().max(0) as u64;
        let group_bytes = self
            .chunks(group)
            .map(|chunk| chunk.compressed_size().max(0) as u64)
            .fold(0, u64::saturating_add);
        let mut readers = Vec::with_capacity(self.wanted.len());
        for chunk in self.chunks(group) {
            let file = ByteFile::open(disk, budget, path, CHUNK_BYTES)?;
            let reader = column_reader(file, budget, chunk, rows);
            readers.push(reader.map_err(|error| broken(path, error))?);
        }
        let mut report = PieceReport::default();
        let mut batch = Batch::new(want);
        let (mut done, mut told) = (0, 0);
        while done < rows {
            if stop.requested() {
                return Err(IngestError::Stopped);
            }
            let cells = guarded(|| {
                let columns = readers.iter_mut().zip(&self.kinds);
                columns
                    .map(|(column, kind)| cells(column, *kind))
                    .collect::<ParquetResult<Vec<_>>>()
            });
            let cells = cells.map_err(|error| broken(path, error))?;
            let count = cells[0].len();
            if count == 0 || cells.iter().any(|column| column.len() != count) {
                return Err(broken(
                    path,
                    format!("row group {group} has fewer rows than it says"),
                ));
            }
            for row in 0..count {
                let column = |place: usize| cells.get(place).map(|column| &column[row]);
                let (Some(source), destination, weight) = (column(0), column(1), column(2)) else {
                    break;
                };
                let destination = match self.columns {
                    Columns::Vertex => source,
                    Columns::Edge => destination.unwrap_or(source),
                };
                if let Err((place, problem)) = batch.push(source, destination, weight) {
                    if want.skips {
                        report.skipped += 1;
                        continue;
                    }
                    return Err(IngestError::Row {
                        path: path.to_path_buf(),
                        row: rows_before as u64 + done + row as u64 + 1,
                        column: self.names[place].clone(),
                        problem,
                    });
                }
                report.edges += 1;
            }
            batch.deliver(sink)?;
            done += count as u64;
            let bytes = (u128::from(group_bytes) * u128::from(done) / u128::from(rows)) as u64;
            sink.progress(bytes - told);
            told = bytes;
        }
        report.lines = report.edges + report.skipped;
        Ok(report)
    }
}

/// What is made of rows.
#[derive(Clone, Copy)]
pub(crate) struct Want {
    pub(crate) ids: Ids,
    pub(crate) weights: EdgeKind,
    pub(crate) skips: bool,
}

/// What is wrong with a cell of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CellProblem {
    /// There is nothing in it.
    #[error("is null")]
    Null,
    /// Its text is no integer.
    #[error("is no integer of 64 bits as it would be written (--ids string takes any id)")]
    NotInteger,
    /// It is negative, and the ids are not signed.
    #[error("is negative, and the ids of other files go beyond 2^63 (--ids string takes any id)")]
    Negative,
    /// It is 2^63 or more, and the ids are signed.
    #[error("is 2^63 or more, and other ids are negative (--ids string takes any id)")]
    Huge,
    /// It is empty text.
    #[error("is empty")]
    Empty,
    /// Its text is no id.
    #[error(
        "holds text that is not UTF-8, or too long: an id has at most {} bytes",
        crate::edge::ID_BYTES_MAX
    )]
    NoId,
    /// It is no finite number of the precision.
    #[error("is no finite number of the precision asked for")]
    NotWeight,
}

/// A value of a wanted column.
enum Cell {
    Null,
    Signed(i64),
    Unsigned(u64),
    Float(f64),
    Text(ByteArray),
}

/// Edges to be delivered.
struct Batch {
    want: Want,
    integers: Vec<(u64, u64)>,
    texts: Vec<(TextId, TextId)>,
    weights: Vec<f64>,
}

/// A text id: of the page, or of a number.
enum TextId {
    Page(ByteArray),
    Number(String),
}

impl TextId {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Page(bytes) => bytes.data(),
            Self::Number(text) => text.as_bytes(),
        }
    }
}

impl Batch {
    fn new(want: Want) -> Self {
        Self {
            want,
            integers: Vec::with_capacity(BATCH_EDGES_MAX),
            texts: Vec::new(),
            weights: Vec::new(),
        }
    }

    /// Adds an edge; the error says which of the cells is wrong.
    fn push(
        &mut self,
        source: &Cell,
        destination: &Cell,
        weight: Option<&Cell>,
    ) -> Result<(), (usize, CellProblem)> {
        let weight = match weight {
            Some(weight) => {
                Some(weight_of(weight, self.want.weights).map_err(|problem| (2, problem))?)
            }
            None => None,
        };
        match self.want.ids {
            Ids::Text => {
                let source = text_of(source).map_err(|problem| (0, problem))?;
                let destination = text_of(destination).map_err(|problem| (1, problem))?;
                self.texts.push((source, destination));
            }
            ids => {
                let signed = ids == Ids::Signed;
                let source = integer_of(source, signed).map_err(|problem| (0, problem))?;
                let destination =
                    integer_of(destination, signed).map_err(|problem| (1, problem))?;
                self.integers.push((source, destination));
            }
        }
        self.weights.extend(weight);
        Ok(())
    }

    fn deliver(&mut self, sink: &mut dyn EdgeSink) -> Result<(), IngestError> {
        if !self.integers.is_empty() {
            sink.integers(&self.integers, &self.weights)?;
        }
        if !self.texts.is_empty() {
            let texts: Vec<(&[u8], &[u8])> = self
                .texts
                .iter()
                .map(|(source, destination)| (source.bytes(), destination.bytes()))
                .collect();
            sink.texts(&texts, &self.weights)?;
        }
        self.integers.clear();
        self.texts.clear();
        self.weights.clear();
        Ok(())
    }
}

fn integer_of(cell: &Cell, signed: bool) -> Result<u64, CellProblem> {
    let number = match cell {
        Cell::Null => return Err(CellProblem::Null),
        Cell::Signed(number) if *number < 0 => Integer::Negative(*number),
        Cell::Signed(number) => Integer::Unsigned(*number as u64),
        Cell::Unsigned(number) => Integer::Unsigned(*number),
        Cell::Float(_) => return Err(CellProblem::NotInteger),
        Cell::Text(text) => Integer::parse(text.data()).ok_or(CellProblem::NotInteger)?,
    };
    match (number, signed) {
        (Integer::Unsigned(number), false) => Ok(number),
        (Integer::Unsigned(number), true) if number < SIGN => Ok(number ^ SIGN),
        (Integer::Unsigned(_), true) => Err(CellProblem::Huge),
        (Integer::Negative(number), true) => Ok(number as u64 ^ SIGN),
        (Integer::Negative(_), false) => Err(CellProblem::Negative),
    }
}

fn text_of(cell: &Cell) -> Result<TextId, CellProblem> {
    match cell {
        Cell::Null => Err(CellProblem::Null),
        Cell::Signed(number) => Ok(TextId::Number(number.to_string())),
        Cell::Unsigned(number) => Ok(TextId::Number(number.to_string())),
        Cell::Float(_) => Err(CellProblem::NoId),
        Cell::Text(text) if text.is_empty() => Err(CellProblem::Empty),
        Cell::Text(text) => match text_id(text.data(), 1) {
            Ok(_) => Ok(TextId::Page(text.clone())),
            Err(LineProblem::LongId { .. } | _) => Err(CellProblem::NoId),
        },
    }
}

fn weight_of(cell: &Cell, kind: EdgeKind) -> Result<f64, CellProblem> {
    let weight = match cell {
        Cell::Null => return Err(CellProblem::Null),
        Cell::Signed(number) => *number as f64,
        Cell::Unsigned(number) => *number as f64,
        Cell::Float(number) => *number,
        Cell::Text(_) => return Err(CellProblem::NotWeight),
    };
    let rounded = match kind {
        EdgeKind::F32 => f64::from(weight as f32),
        EdgeKind::F64 | EdgeKind::None => weight,
    };
    if rounded.is_finite() {
        Ok(rounded)
    } else {
        Err(CellProblem::NotWeight)
    }
}

/// The next cells of a column, at most a batch.
fn cells(column: &mut ColumnReader, kind: Kind) -> ParquetResult<Vec<Cell>> {
    use ColumnReader::*;
    match column {
        Int32ColumnReader(column) => cells_of(column, |&value| match kind {
            Kind::Unsigned => Cell::Unsigned(u64::from(value as u32)),
            _ => Cell::Signed(value.into()),
        }),
        Int64ColumnReader(column) => cells_of(column, |&value| match kind {
            Kind::Unsigned => Cell::Unsigned(value as u64),
            _ => Cell::Signed(value),
        }),
        FloatColumnReader(column) => cells_of(column, |&value| Cell::Float(value.into())),
        DoubleColumnReader(column) => cells_of(column, |&value| Cell::Float(value)),
        ByteArrayColumnReader(column) => cells_of(column, |value| Cell::Text(value.clone())),
        _ => Err(ParquetError::General(
            "a column has another type than its schema says".into(),
        )),
    }
}

fn cells_of<T: DataType>(
    column: &mut ColumnReaderImpl<T>,
    cell: impl Fn(&T::T) -> Cell,
) -> ParquetResult<Vec<Cell>> {
    let (mut levels, mut values) = (Vec::new(), Vec::new());
    let (records, _, _) =
        column.read_records(BATCH_EDGES_MAX, Some(&mut levels), None, &mut values)?;
    if levels.is_empty() {
        // Without nulls there are no levels.
        return Ok(values.iter().map(cell).collect());
    }
    let mut values = values.iter();
    let mut next = |level: &i16| match level {
        0 => Some(Cell::Null),
        _ => values.next().map(&cell),
    };
    let cells: Option<Vec<Cell>> = levels.iter().take(records).map(&mut next).collect();
    cells.ok_or_else(|| {
        ParquetError::General("a column has fewer values than its levels say".into())
    })
}

/// What the values of a column are.
fn kind_of(column: &ColumnDescriptor) -> Kind {
    if column.max_rep_level() > 0 || column.max_def_level() > 1 {
        return Kind::Other;
    }
    let unsigned = |is_signed: bool| {
        if is_signed {
            Kind::Signed
        } else {
            Kind::Unsigned
        }
    };
    match (
        column.physical_type(),
        column.logical_type_ref(),
        column.converted_type(),
    ) {
        (Physical::INT32 | Physical::INT64, Some(LogicalType::Integer(integer)), _) => {
            unsigned(integer.is_signed)
        }
        // A column of nulls alone has no type.
        (_, Some(LogicalType::Unknown), _) => Kind::Text,
        (Physical::INT32 | Physical::INT64, Some(_), _) => Kind::Other,
        (Physical::INT32 | Physical::INT64, None, converted) => match converted {
            ConvertedType::NONE
            | ConvertedType::INT_8
            | ConvertedType::INT_16
            | ConvertedType::INT_32
            | ConvertedType::INT_64 => Kind::Signed,
            ConvertedType::UINT_8
            | ConvertedType::UINT_16
            | ConvertedType::UINT_32
            | ConvertedType::UINT_64 => Kind::Unsigned,
            _ => Kind::Other,
        },
        (Physical::FLOAT | Physical::DOUBLE, ..) => Kind::Float,
        (
            Physical::BYTE_ARRAY,
            Some(LogicalType::String | LogicalType::Enum | LogicalType::Json) | None,
            converted,
        ) => match converted {
            ConvertedType::DECIMAL | ConvertedType::BSON => Kind::Other,
            _ => Kind::Text,
        },
        _ => Kind::Other,
    }
}

fn broken(path: &Path, error: impl fmt::Display) -> IngestError {
    IngestError::input(path, format!("not read as Parquet: {error}"))
}
