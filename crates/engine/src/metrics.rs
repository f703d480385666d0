//! What a run did, pass by pass.

use serde::Serialize;

/// How the edges of a pass were gone through.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// From each source to its list, column by column.
    Scatter,
    /// From its list to each source, row by row.
    Gather,
    /// Only the lists of the few active sources, by their places.
    Seek,
    /// No edges: rows only.
    Vertices,
}

/// One pass.
#[derive(Clone, Debug, Serialize)]
pub struct Superstep {
    /// Wall-clock seconds.
    pub seconds: f64,
    /// Active vertices.
    pub active: u64,
    /// Messages emitted.
    pub messages: u64,
    /// Messages sent to other ranks.
    pub messages_sent: u64,
    /// Edges that carried a message.
    pub edges: u64,
    /// Bytes read from disk.
    pub bytes_read: u64,
    /// Bytes written to disk.
    pub bytes_written: u64,
    /// Bytes sent to other ranks.
    pub bytes_sent: u64,
    /// How the edges were gone through.
    pub mode: Mode,
}

/// All passes of an engine, in order.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Metrics {
    /// One entry a pass.
    pub supersteps: Vec<Superstep>,
    /// Cells held in memory, in bytes of the stored graph.
    pub pinned_bytes: u64,
    /// Whether all vertex rows that passes named were in memory.
    pub rows_resident: bool,
    /// Whether messages were kept in memory.
    pub messages_resident: bool,
}
