//! A stream of Arrow record batches as a source of edges.
//!
//! Workers take turns at the stream: one takes the next rows, some batches or a part of one, and turns them into edges while another takes the
//! rows after them. Rows that are taken together are a piece, and pieces are numbered in the order of the stream.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::ArrowError;
use graphmill_graph::{EdgeFields, EdgeKind, IdType};
use graphmill_ingest::tables::{ColumnType, RowRequest, TableColumns, TableRows};
use graphmill_ingest::{
    BATCH_EDGES_MAX, EdgeSink, EdgeSource, Ids, IngestError, PieceReader, PieceReport, ReadOptions,
};
use graphmill_raw::lock;
use graphmill_storage::{CancelToken, Disk, MemoryBudget};

use crate::arrow_cells::{ArrayCells, column_type};

/// Rows of a piece, as a rule.
const PIECE_ROWS: usize = 1 << 17;
/// Readers at a time, at most.
const READERS_MAX: u64 = 1 << 10;
/// Bytes of the cells of a reader.
const READER_BYTES: u64 = (BATCH_EDGES_MAX * 256) as u64;

/// Edges in a stream of record batches.
///
/// The batches themselves are the memory of the producer. Each worker holds the batches of one piece, and the stream one more.
pub struct ArrowEdges {
    stream: Mutex<BatchStream>,
    /// What errors call the stream.
    name: PathBuf,
    columns: TableColumns,
    ids: Ids,
    id_type: IdType,
    want: RowRequest,
    options: ReadOptions,
}

/// The part of a stream that was not read.
struct BatchStream {
    batches: Box<dyn RecordBatchReader + Send>,
    /// The batch that was begun, and its rows that were taken.
    begun: Option<(RecordBatch, usize)>,
    rows: u64,
    pieces: u64,
}

/// Consecutive rows of a stream.
struct Piece {
    number: u64,
    batches: Vec<RecordBatch>,
    /// Rows of the stream before it.
    before: u64,
}

impl ArrowEdges {
    /// The edges in the columns that `options` names, of a stream that errors call `name`.
    ///
    /// Of the options, columns, ids, weights and what becomes of bad rows count.
    ///
    /// # Errors
    /// The options name no column of the stream, or a column has a type that is not for its use.
    pub fn new(
        batches: Box<dyn RecordBatchReader + Send>,
        name: &str,
        options: &ReadOptions,
    ) -> Result<ArrowEdges, IngestError> {
        let schema = batches.schema();
        let fields = schema.fields().iter();
        let (names, types): (Vec<String>, Vec<ColumnType>) = fields
            .map(|field| (field.name().clone(), column_type(field.data_type())))
            .unzip();
        let name = PathBuf::from(name);
        let columns = options.columns(&name, &names, &types)?;
        let id_type = match (options.id_type, options.ids) {
            (Some(asked), _) => asked,
            (None, Some(Ids::Text)) => IdType::Text,
            (None, Some(Ids::Integer)) if columns.id_type().integer_max().is_none() => {
                IdType::Int64
            }
            (None, _) => columns.id_type(),
        };
        let ids = match id_type {
            IdType::Int32 | IdType::Int64 => Ids::Wrapping,
            IdType::UInt32 | IdType::UInt64 => Ids::Integer,
            IdType::Text => Ids::Text,
            IdType::Uuid => Ids::Uuid,
        };
        if options.vertices_below.is_some() && ids.are_bytes() {
            return Err(IngestError::BelowOfText);
        }
        // Vertices below a number are not negative.
        let ids = match options.vertices_below {
            Some(_) => Ids::Integer,
            None => ids,
        };
        Ok(ArrowEdges {
            stream: Mutex::new(BatchStream {
                batches,
                begun: None,
                rows: 0,
                pieces: 0,
            }),
            name,
            columns,
            ids,
            id_type,
            want: options.rows(ids),
            options: options.clone(),
        })
    }

    /// Takes the next piece; `None` at the end of the stream.
    fn next(&self, stop: &CancelToken) -> Result<Option<Piece>, IngestError> {
        let mut stream = lock(&self.stream);
        let (number, before) = (stream.pieces, stream.rows);
        let (mut batches, mut rows) = (Vec::new(), 0);
        while rows < PIECE_ROWS {
            // Batches may be small, and come slowly.
            if stop.is_cancelled() {
                return Err(IngestError::Stopped);
            }
            let (batch, from) = match stream.begun.take() {
                Some(begun) => begun,
                None => match stream.batches.next() {
                    Some(batch) => (self.wanted(batch)?, 0),
                    None => break,
                },
            };
            let count = (batch.num_rows() - from).min(PIECE_ROWS - rows);
            batches.push(batch.slice(from, count));
            rows += count;
            if from + count < batch.num_rows() {
                stream.begun = Some((batch, from + count));
            }
        }
        stream.rows += rows as u64;
        stream.pieces += 1;
        Ok((!batches.is_empty()).then_some(Piece {
            number,
            batches,
            before,
        }))
    }

    /// The columns of a batch that are read.
    fn wanted(&self, batch: Result<RecordBatch, ArrowError>) -> Result<RecordBatch, IngestError> {
        let columns = |batch: RecordBatch| batch.project(&self.columns.wanted);
        batch.and_then(columns).map_err(|error| {
            let problem = format!("it ends with an error: {error}");
            let path = self.name.clone();
            IngestError::Input { path, problem }
        })
    }
}

impl fmt::Debug for ArrowEdges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ArrowEdges")
            .field("columns", &self.columns)
            .finish_non_exhaustive()
    }
}

impl EdgeSource for ArrowEdges {
    fn pieces(&self) -> u64 {
        READERS_MAX
    }

    fn is_stream(&self) -> bool {
        true
    }

    fn ids(&self) -> Ids {
        self.ids
    }

    fn id_type(&self) -> IdType {
        self.id_type
    }

    fn weights(&self) -> EdgeKind {
        self.options.edge_kind()
    }

    fn fields(&self) -> EdgeFields {
        self.options.text.edge_data.fields().clone()
    }

    fn vertices(&self) -> Option<u64> {
        self.options.vertices_below
    }

    fn edges(&self) -> Option<u64> {
        None
    }

    fn amount(&self) -> u64 {
        0
    }

    fn rereads_fast(&self) -> bool {
        false
    }

    fn reader_bytes(&self) -> u64 {
        READER_BYTES
    }

    fn reader(
        &self,
        _: &Arc<dyn Disk>,
        budget: &MemoryBudget,
    ) -> Result<Box<dyn PieceReader + '_>, IngestError> {
        let lease = budget.lease("the cells of rows", READER_BYTES)?;
        Ok(Box::new(ArrowReader {
            source: self,
            _lease: lease,
        }))
    }
}

/// Reads pieces of a stream.
struct ArrowReader<'a> {
    source: &'a ArrowEdges,
    _lease: graphmill_storage::Lease,
}

impl PieceReader for ArrowReader<'_> {
    fn read(
        &mut self,
        _: u64,
        stop: &CancelToken,
        sink: &mut dyn EdgeSink,
    ) -> Result<PieceReport, IngestError> {
        let source = self.source;
        let mut rows = TableRows::new(&source.columns, Path::new(&source.name), source.want);
        while let Some(piece) = source.next(stop)? {
            sink.begin_piece(piece.number);
            let mut before = piece.before;
            for batch in &piece.batches {
                let columns = batch.columns().iter().cloned();
                let columns: Vec<ArrayCells> = columns.map(ArrayCells::new).collect();
                for from in (0..batch.num_rows()).step_by(BATCH_EDGES_MAX) {
                    if stop.is_cancelled() {
                        return Err(IngestError::Stopped);
                    }
                    let to = batch.num_rows().min(from + BATCH_EDGES_MAX);
                    let cells = columns.iter().map(|column| column.cells(from..to));
                    rows.push(&cells.collect::<Vec<_>>(), before, sink)?;
                    sink.progress((to - from) as u64);
                    before += (to - from) as u64;
                }
            }
        }
        Ok(rows.report())
    }
}
