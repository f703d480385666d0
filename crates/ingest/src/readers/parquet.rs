//! Parquet files: which columns are the edges, and their rows, a row group at a time.
//!
//! A row group is a piece. A reader leases what the wanted columns of the largest row group unpack to, as the footer says;
//! `parquet_bytes.rs` refuses pages that are larger.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use graphmill_storage::{CancelToken, Disk, Lease, MemoryBudget, RandomAccessFile};
use parquet::basic::{Compression, ConvertedType, LogicalType, Type as Physical};
use parquet::errors::Result as ParquetResult;
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData, RowGroupMetaData};
use parquet::file::statistics::Statistics;
use parquet::schema::types::ColumnDescriptor;

use super::edge_columns::DataColumn;
use super::parquet_bytes::{column_reader, footer, pages_bytes};
use super::parquet_cells::cells;
use super::parquet_rows::{EdgeBatch, ParquetType, RowRequest};
use super::text::columns::{called, choose};
use super::text::dialect::{DialectRequest, RecordKind};
use crate::error::IngestError;
use crate::source::{EdgeSink, Ids, PieceReport};

/// Bytes of a column that are read at a time.
const CHUNK_BYTES: usize = 256 << 10;

/// A file, and the columns that are read of it.
#[derive(Debug)]
pub(crate) struct ParquetFile {
    metadata: ParquetMetaData,
    _lease: Lease,
    /// Columns of source, destination and, where wanted, weight or fields.
    pub(super) wanted: Vec<usize>,
    kinds: Vec<ParquetType>,
    /// The names of those columns.
    wanted_names: Vec<String>,
    /// The fields of a record.
    data: Vec<DataColumn>,
    pub(crate) names: [String; 3],
    pub(crate) ignored: usize,
    columns: RecordKind,
}

impl ParquetFile {
    /// Reads the footer, and finds the columns as [`DialectRequest`] wants them.
    pub(crate) fn open(
        disk: &Arc<dyn Disk>,
        budget: &MemoryBudget,
        request: DialectRequest<'_>,
    ) -> Result<Self, IngestError> {
        let path = request.path;
        let file = RandomAccessFile::open(disk, budget, path, 64 << 10)?;
        let bytes = file.bytes();
        let (metadata, lease) = footer(file, budget)?.map_err(|error| broken(path, error))?;
        let columns = metadata.file_metadata().schema_descr().columns().iter();
        let (names, kinds): (Vec<String>, Vec<ParquetType>) = columns
            .map(|column| (column.path().string(), kind_of(column)))
            .unzip();
        // pandas keeps its index in columns of such names.
        let index = names
            .iter()
            .take_while(|name| name.starts_with("__index_level_") || name.starts_with("Unnamed: "))
            .count();
        let is_fraction = |column| kinds.get(column) == Some(&ParquetType::Float);
        let chosen = choose(&request, Some(&names), index, names.len(), &is_fraction)?;
        let count = match (request.columns, request.weighted) {
            (RecordKind::Vertex, _) => 1,
            (RecordKind::Edge, false) => 2,
            (RecordKind::Edge, true) => 3,
        };
        let mut wanted = chosen.columns[..count].to_vec();
        wanted.extend(&chosen.data);
        let data = DataColumn::all(request.options.edge_data.fields(), &chosen.data);
        let is_integer = |place: usize| {
            let field = place.checked_sub(2).and_then(|field| data.get(field));
            field.is_some_and(|field| field.kind.integers().is_some())
        };
        for (place, &column) in wanted.iter().enumerate() {
            let Some(name) = names.get(column) else {
                let (all, number) = (names.join(", "), column + 1);
                let problem = format!("it has no column {number}, and its columns are {all}");
                return Err(IngestError::input(path, problem));
            };
            let problem = match kinds[column] {
                ParquetType::Float if place < 2 => "holds floats: cast its ids to integers or text",
                ParquetType::Text if place >= 2 && data.is_empty() => {
                    "holds text, and weights are numbers"
                }
                ParquetType::Text if place >= 2 => "holds text, and fields are numbers",
                ParquetType::Float if is_integer(place) => {
                    "holds floats, and its field is an integer: use f32 or f64 in --edge-data"
                }
                ParquetType::Other if place >= 2 && !data.is_empty() => {
                    "holds neither integers nor floats: cast it to either, or leave it out of --edge-data"
                }
                ParquetType::Other => {
                    "holds neither integers nor text: cast its ids to either (in DuckDB: CAST(x AS VARCHAR)), or name another column with --source-column and --target-column"
                }
                _ => continue,
            };
            return Err(IngestError::input(path, format!("column {name} {problem}")));
        }
        check_chunks(path, &metadata, &wanted, bytes)?;
        Ok(Self {
            kinds: wanted.iter().map(|&column| kinds[column]).collect(),
            ignored: (0..names.len())
                .filter(|column| !wanted.contains(column))
                .count(),
            wanted_names: (wanted.iter().map(|&column| called(column, Some(&names)))).collect(),
            data,
            wanted,
            metadata,
            _lease: lease,
            names: chosen.names,
            columns: request.columns,
        })
    }

    /// Row groups.
    pub(crate) fn pieces(&self) -> u64 {
        self.metadata.num_row_groups() as u64
    }

    /// Returns the type of the ids in their columns.
    pub(crate) fn ids(&self) -> Ids {
        let mut ids = Ids::Integer;
        let ends = self.wanted.iter().zip(&self.kinds).take(2);
        for (&column, kind) in ends {
            match kind {
                ParquetType::Text => return Ids::Text,
                ParquetType::Signed if self.may_be_negative(column) => ids = Ids::Signed,
                _ => {}
            }
        }
        ids
    }

    /// True unless statistics show that a column holds no negative integers.
    fn may_be_negative(&self, column: usize) -> bool {
        self.metadata.row_groups().iter().any(|group| {
            let chunk = group.column(column);
            let least = chunk.statistics().and_then(Statistics::min_bytes_opt);
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

    /// Bytes that a reader leases for any row group, packed and unpacked, with its dictionaries.
    pub(crate) fn group_bytes(&self) -> u64 {
        let groups = 0..self.metadata.num_row_groups();
        let bytes = groups.map(|group| pages_bytes(self.chunks(group)));
        bytes.max().unwrap_or(0)
    }

    /// Delivers the rows of a row group; the caller has leased [`group_bytes`](Self::group_bytes).
    pub(crate) fn read(
        &self,
        disk: &Arc<dyn Disk>,
        budget: &MemoryBudget,
        path: &Path,
        want: RowRequest,
        stop: &CancelToken,
        sink: &mut dyn EdgeSink,
    ) -> Result<PieceReport, IngestError> {
        let group = want.group;
        let before = self.metadata.row_groups()[..group].iter();
        let rows_before = before.fold(0_i64, |rows, group| rows.saturating_add(group.num_rows()));
        let rows = self.metadata.row_group(group).num_rows().max(0) as u64;
        let group_bytes = packed_bytes(self.metadata.row_group(group), &self.wanted);
        let mut readers = Vec::with_capacity(self.wanted.len());
        for chunk in self.chunks(group) {
            let file = RandomAccessFile::open(disk, budget, path, CHUNK_BYTES)?;
            let reader = column_reader(file, budget, chunk, rows);
            readers.push(reader.map_err(|error| broken(path, error))?);
        }
        let mut report = PieceReport::default();
        let mut batch = EdgeBatch::new(want);
        let (mut done, mut reported) = (0, 0);
        while done < rows {
            IngestError::check_stop(stop)?;
            let columns = readers.iter_mut().zip(&self.kinds);
            let cells = columns.map(|(column, kind)| cells(column, *kind == ParquetType::Unsigned));
            let cells = cells.collect::<ParquetResult<Vec<_>>>();
            let cells = cells.map_err(|error| broken(path, error))?;
            let count = cells[0].len();
            if count == 0 || cells.iter().any(|column| column.len() != count) {
                let problem = format!("row group {group} has fewer rows than it says");
                return Err(broken(path, problem));
            }
            for row in 0..count {
                let column = |place: usize| cells.get(place).map(|column| &column[row]);
                let (Some(source), destination) = (column(0), column(1)) else {
                    break;
                };
                let destination = match self.columns {
                    RecordKind::Vertex => source,
                    RecordKind::Edge => destination.unwrap_or(source),
                };
                let data = cells.iter().skip(2).map(|column| &column[row]);
                if let Err((place, problem)) = batch.push(source, destination, data, &self.data) {
                    if want.skips {
                        report.skipped += 1;
                        continue;
                    }
                    return Err(IngestError::Row {
                        path: path.to_path_buf(),
                        row: rows_before as u64 + done + row as u64 + 1,
                        column: self.wanted_names[place].clone(),
                        problem,
                    });
                }
                report.edges += 1;
            }
            batch.deliver(sink)?;
            done += count as u64;
            let bytes = (u128::from(group_bytes) * u128::from(done) / u128::from(rows)) as u64;
            sink.progress(bytes - reported);
            reported = bytes;
        }
        report.lines = report.edges + report.skipped;
        Ok(report)
    }
}

/// Refuses chunks of the `wanted` columns that overlap or are packed in an old way.
///
/// Overlapping chunks would be read again and again.
fn check_chunks(
    path: &Path,
    metadata: &ParquetMetaData,
    wanted: &[usize],
    bytes: u64,
) -> Result<(), IngestError> {
    let mut chunk_bytes = 0_u64;
    for group in metadata.row_groups() {
        chunk_bytes = chunk_bytes.saturating_add(packed_bytes(group, wanted));
        if chunk_bytes > bytes {
            return Err(broken(path, "its columns have more bytes than the file"));
        }
        let mut packings = wanted
            .iter()
            .map(|&column| group.column(column).compression());
        if packings.any(|packing| packing == Compression::LZ4) {
            return Err(IngestError::input(
                path,
                "it is packed with the old LZ4 of Hadoop; write it with zstd, snappy or lz4_raw",
            ));
        }
    }
    Ok(())
}

/// Returns the packed bytes of the `wanted` columns; a column that several fields read counts once.
fn packed_bytes(group: &RowGroupMetaData, wanted: &[usize]) -> u64 {
    let first = |(place, column): &(usize, &usize)| !wanted[..*place].contains(column);
    let chunks = wanted.iter().enumerate().filter(first);
    let sizes = chunks.map(|(_, &column)| group.column(column).compressed_size().max(0) as u64);
    sizes.fold(0, u64::saturating_add)
}

/// Returns the type of a column.
fn kind_of(column: &ColumnDescriptor) -> ParquetType {
    if column.max_rep_level() > 0 || column.max_def_level() > 1 {
        return ParquetType::Other;
    }
    match (
        column.physical_type(),
        column.logical_type_ref(),
        column.converted_type(),
    ) {
        (Physical::INT32 | Physical::INT64, Some(LogicalType::Integer(integer)), _) => {
            match integer.is_signed {
                true => ParquetType::Signed,
                false => ParquetType::Unsigned,
            }
        }
        // A column of nulls alone has no type.
        (_, Some(LogicalType::Unknown), _) => ParquetType::Text,
        (
            Physical::INT32 | Physical::INT64,
            None,
            ConvertedType::NONE
            | ConvertedType::INT_8
            | ConvertedType::INT_16
            | ConvertedType::INT_32
            | ConvertedType::INT_64,
        ) => ParquetType::Signed,
        (
            Physical::INT32 | Physical::INT64,
            None,
            ConvertedType::UINT_8
            | ConvertedType::UINT_16
            | ConvertedType::UINT_32
            | ConvertedType::UINT_64,
        ) => ParquetType::Unsigned,
        (Physical::FLOAT | Physical::DOUBLE, ..) => ParquetType::Float,
        (Physical::BYTE_ARRAY, _, ConvertedType::DECIMAL | ConvertedType::BSON) => {
            ParquetType::Other
        }
        (
            Physical::BYTE_ARRAY,
            Some(LogicalType::String | LogicalType::Enum | LogicalType::Json) | None,
            _,
        ) => ParquetType::Text,
        _ => ParquetType::Other,
    }
}

fn broken(path: &Path, error: impl fmt::Display) -> IngestError {
    IngestError::input(path, format!("it is not valid Parquet: {error}"))
}
