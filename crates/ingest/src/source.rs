//! The interface between readers, generators and the pipeline that stores their edges.
//!
//! 1. An [`EdgeSource`] is cut in numbered pieces. Pieces are independent, so workers take them in any order; their
//!    numbers are their order in the input, and so the order of all edges is (piece, position in the piece).
//! 2. Each worker makes one [`PieceReader`], which owns the worker's buffers and its queue to the disk.
//! 3. A reader delivers the edges of a piece to an [`EdgeSink`] in batches, in order.
//!
//! Reading a piece again delivers the same edges, as long as no process changes the files.

use std::fmt::Debug;
use std::sync::Arc;

use graphmill_graph::{EdgeFields, EdgeKind, IdType};
use graphmill_storage::{CancelToken, Disk, MemoryBudget};

use crate::edge_data::EdgeData;
use crate::error::IngestError;

/// The sign bit of integers; with it flipped, signed integers have the order of unsigned ones.
pub(crate) const SIGN: u64 = 1 << 63;

/// The type of the ids of a source's vertices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ids {
    /// Unsigned 64-bit integers.
    Integer,
    /// Signed 64-bit integers; a source delivers each with its sign bit turned, which keeps their order.
    Signed,
    /// Signed 64-bit integers in two's complement: reading them shows whether some are negative.
    Wrapping,
    /// Text in UTF-8, of at most [`ID_BYTES_MAX`](crate::ID_BYTES_MAX) bytes.
    Text,
    /// UUIDs, each delivered as its 16 bytes.
    Uuid,
}

impl Ids {
    /// True if ids are delivered as bytes, by [`EdgeSink::texts`].
    pub fn are_bytes(self) -> bool {
        matches!(self, Ids::Text | Ids::Uuid)
    }

    /// Returns the bit that gives delivered integers the order of unsigned ones.
    pub(crate) fn sign(self) -> u64 {
        if self == Ids::Wrapping { SIGN } else { 0 }
    }
}

/// Edges in numbered, independent pieces.
pub trait EdgeSource: Debug + Send + Sync {
    /// Number of pieces; of a [stream](EdgeSource::is_stream) any number that is enough for all workers.
    fn pieces(&self) -> u64;

    /// True if the edges can be read once only, and where pieces begin is found while they are read.
    ///
    /// Then each call of [`PieceReader::read`] delivers as many pieces as it gets, and announces each with [`EdgeSink::begin_piece`].
    /// The first rank reads all of them.
    fn is_stream(&self) -> bool {
        false
    }

    /// Returns the type of the ids, which selects the method of the sink that is called.
    fn ids(&self) -> Ids;

    /// Returns the type that results give to ids; `Int64` becomes `UInt64` if an id needs it.
    fn id_type(&self) -> IdType {
        match self.ids() {
            Ids::Integer | Ids::Signed | Ids::Wrapping => IdType::Int64,
            Ids::Text => IdType::Text,
            Ids::Uuid => IdType::Uuid,
        }
    }

    /// What edges carry. Weights are finite.
    fn weights(&self) -> EdgeKind;

    /// The fields of the record that edges carry; none if they carry a weight or nothing.
    fn fields(&self) -> EdgeFields {
        EdgeFields::default()
    }

    /// `Some(n)`: the vertices are exactly the integers below `n`, whether or not an edge names them.
    fn vertices(&self) -> Option<u64>;

    /// The number of edges, where it is known before they are read.
    fn edges(&self) -> Option<u64>;

    /// Returns the amount to read, in the unit of [progress](EdgeSink::progress); 0 of a stream.
    fn amount(&self) -> u64;

    /// True if a second reading costs little more than the disk's transfer: no parsing, no unpacking.
    fn rereads_fast(&self) -> bool;

    /// The lengths of what it reads, by which ranks that read it together see that it is the same.
    fn lengths(&self) -> Vec<u64> {
        vec![self.amount()]
    }

    /// Returns a text that only this source has, and only until it changes; `None` if there is none.
    ///
    /// An import resumes from a checkpoint of a source with the same identity.
    fn identity(&self) -> Option<String> {
        None
    }

    /// Checks that the input has not changed since the source was made; called after the last reading.
    ///
    /// # Errors
    /// [`IngestError::InputChanged`], or the disk cannot say.
    fn check_unchanged(&self, _disk: &dyn Disk) -> Result<(), IngestError> {
        Ok(())
    }

    /// Bytes that each reader leases.
    fn reader_bytes(&self) -> u64;

    /// A reader for one worker, with its own buffers leased from `budget`.
    ///
    /// # Errors
    /// The budget or the system has no memory for the buffers, or the disk gives no queue.
    fn reader(
        &self,
        disk: &Arc<dyn Disk>,
        budget: &MemoryBudget,
    ) -> Result<Box<dyn PieceReader + '_>, IngestError>;
}

/// One worker's way to read the pieces of a source.
pub trait PieceReader: Send {
    /// Delivers all edges of piece `piece`, in order.
    ///
    /// # Errors
    /// A file cannot be read or is not what it seems, a line is malformed (unless such lines are skipped), `stop` was
    /// requested, or the sink returned an error.
    fn read(
        &mut self,
        piece: u64,
        stop: &CancelToken,
        sink: &mut dyn EdgeSink,
    ) -> Result<PieceReport, IngestError>;
}

/// A receiver of the edges of a piece.
pub trait EdgeSink {
    /// Takes 1 to [`BATCH_EDGES_MAX`](crate::BATCH_EDGES_MAX) consecutive edges (source, destination).
    ///
    /// `data` has the stored bits of each edge, or none if edges carry nothing.
    ///
    /// # Errors
    /// The errors of the sink; the reader passes them on.
    fn integers(&mut self, edges: &[(u64, u64)], data: EdgeData<'_>) -> Result<(), IngestError>;

    /// Takes consecutive edges between ids of bytes.
    ///
    /// # Errors
    /// As above.
    fn texts(&mut self, edges: &[(&[u8], &[u8])], data: EdgeData<'_>) -> Result<(), IngestError>;

    /// Begins the piece of this number: the edges that follow are the first ones of it.
    fn begin_piece(&mut self, _piece: u64) {}

    /// Reports that the reader has read `amount` more: bytes of files on disk, or edges of generators.
    ///
    /// Over all pieces the sum is about [`EdgeSource::amount`].
    fn progress(&mut self, _amount: u64) {}
}

/// The counts of a piece.
///
/// `lines == edges + comments + blank + headers + skipped` for text; raw pairs and generators have
/// no lines, but `edges + skipped` records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PieceReport {
    /// Lines of text, or records.
    pub lines: u64,
    /// Edges delivered.
    pub edges: u64,
    /// Lines that are comments.
    pub comments: u64,
    /// Lines that hold nothing but white space.
    pub blank: u64,
    /// Lines that name the columns.
    pub headers: u64,
    /// Malformed lines left out.
    pub skipped: u64,
}

impl PieceReport {
    /// Adds what was in another piece.
    pub fn add(&mut self, other: Self) {
        self.lines += other.lines;
        self.edges += other.edges;
        self.comments += other.comments;
        self.blank += other.blank;
        self.headers += other.headers;
        self.skipped += other.skipped;
    }
}
