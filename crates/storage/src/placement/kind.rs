//! Kinds of data that are placed.

/// A kind of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Vertex arrays; degrees and ranks of ids in memory.
    Vertices,
    /// Messages, accumulators, mailboxes.
    Messages,
    /// Indices of cells, fan-out, where lists begin.
    Index,
    /// Cells and weights in memory, records of lists.
    Edges,
}

impl Kind {
    /// All of them, in the order of their numbers.
    pub const ALL: [Kind; 4] = [Kind::Vertices, Kind::Messages, Kind::Index, Kind::Edges];

    /// Returns its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Vertices => "vertices",
            Kind::Messages => "messages",
            Kind::Index => "index",
            Kind::Edges => "edges",
        }
    }
}
