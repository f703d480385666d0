//! The kinds of data that a placement names.

/// A kind of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataKind {
    /// Vertex arrays; degrees and ranks of ids in memory.
    Vertices,
    /// Messages, accumulators, mailboxes.
    Messages,
    /// Indexes of cells, fan-out lists, offsets of lists.
    Index,
    /// Cells and weights in memory, records of lists.
    Edges,
}

impl DataKind {
    /// All of them, in the order of their numbers.
    pub const ALL: [DataKind; 4] = [
        DataKind::Vertices,
        DataKind::Messages,
        DataKind::Index,
        DataKind::Edges,
    ];

    /// Returns its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            DataKind::Vertices => "vertices",
            DataKind::Messages => "messages",
            DataKind::Index => "index",
            DataKind::Edges => "edges",
        }
    }
}
