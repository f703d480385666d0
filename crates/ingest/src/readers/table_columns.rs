//! The columns of a table that are the edges: of a Parquet file, or of a stream.

use graphmill_graph::IdType;

use super::edge_columns::DataColumn;
use super::text::columns::{called, choose};
use super::text::dialect::{DialectRequest, RecordKind};
use crate::error::IngestError;

/// The type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnType {
    /// Integers, text or UUIDs.
    Ids(IdType),
    /// Floats.
    Float,
    /// Anything else.
    Other,
}

/// The columns that are read of a table.
#[derive(Clone, Debug)]
pub struct TableColumns {
    /// Columns of source, destination and, where wanted, weight or fields.
    pub wanted: Vec<usize>,
    /// The names of those columns.
    pub(super) wanted_names: Vec<String>,
    types: Vec<ColumnType>,
    /// The fields of a record.
    pub(super) data: Vec<DataColumn>,
    /// The names of source, destination and weight, for notices.
    pub(crate) names: [String; 3],
    /// How many columns are not read.
    pub(crate) ignored: usize,
    pub(super) columns: RecordKind,
}

impl TableColumns {
    /// Finds the columns as [`DialectRequest`] wants them.
    pub(super) fn choose(
        request: &DialectRequest<'_>,
        names: &[String],
        types: &[ColumnType],
    ) -> Result<Self, IngestError> {
        let path = request.path;
        // pandas keeps its index in columns of such names.
        let index = names
            .iter()
            .take_while(|name| name.starts_with("__index_level_") || name.starts_with("Unnamed: "))
            .count();
        let is_fraction = |column| types.get(column) == Some(&ColumnType::Float);
        let chosen = choose(request, Some(names), index, names.len(), &is_fraction)?;
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
            let problem = match types[column] {
                ColumnType::Float if place < 2 => "holds floats: cast its ids to integers or text",
                ColumnType::Ids(IdType::Text | IdType::Uuid) if place >= 2 && data.is_empty() => {
                    "holds text, and weights are numbers"
                }
                ColumnType::Ids(IdType::Text | IdType::Uuid) if place >= 2 => {
                    "holds text, and fields are numbers"
                }
                ColumnType::Float if is_integer(place) => {
                    "holds floats, and its field is an integer: use f32 or f64 in --edge-data"
                }
                ColumnType::Other if place >= 2 && !data.is_empty() => {
                    "holds neither integers nor floats: cast it to either, or leave it out of --edge-data"
                }
                ColumnType::Other => {
                    "holds neither integers nor text nor UUIDs: cast its ids to either (in DuckDB: CAST(x AS VARCHAR)), or name another column with --source-column and --target-column"
                }
                _ => continue,
            };
            return Err(IngestError::input(path, format!("column {name} {problem}")));
        }
        Ok(Self {
            types: wanted.iter().map(|&column| types[column]).collect(),
            ignored: (0..names.len())
                .filter(|column| !wanted.contains(column))
                .count(),
            wanted_names: (wanted.iter().map(|&column| called(column, Some(names)))).collect(),
            data,
            wanted,
            names: chosen.names,
            columns: request.columns,
        })
    }

    /// True if the same columns are read of both.
    pub(super) fn is_read_as(&self, other: &TableColumns) -> bool {
        self.names == other.names && self.ignored == other.ignored
    }

    /// The columns of the ids, each with its type.
    pub fn ids(&self) -> impl Iterator<Item = (usize, IdType)> {
        let ends = self.wanted.iter().zip(&self.types).take(2);
        ends.map(|(&column, column_type)| match column_type {
            ColumnType::Ids(id_type) => (column, *id_type),
            ColumnType::Float | ColumnType::Other => (column, IdType::Text),
        })
    }

    /// Returns the type that both columns of ids fit.
    pub fn id_type(&self) -> IdType {
        let types = self.ids().map(|(_, id_type)| id_type);
        types.reduce(IdType::join).unwrap_or_default()
    }
}
