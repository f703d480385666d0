//! What an import read, kept and dropped, and how long each step took.

use std::time::Duration;

/// Bytes that a rank moved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ImportTraffic {
    /// Read from disk: input, temporary files.
    pub read: u64,
    /// Written to disk: temporary files, the stored graph.
    pub written: u64,
    /// Sent to other ranks.
    pub sent: u64,
}

/// The report of one import.
///
/// It balances: `edges = edges_kept + dropped_self_loops + dropped_duplicates`, and
/// `lines = edges + skipped + comments + blank`.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct ImportReport {
    /// Lines read; of binary input and of a generator: edges.
    pub lines: u64,
    /// Lines that are comments or headers.
    pub comments: u64,
    /// Empty lines.
    pub blank: u64,
    /// Malformed lines that were skipped because that was asked for.
    pub skipped: u64,
    /// Lines read of lists of vertices; they are no part of `lines`.
    pub vertex_lines: u64,
    /// Malformed ones among them that were skipped because that was asked for.
    pub vertex_lines_skipped: u64,
    /// Edges read.
    pub edges: u64,
    /// Edges in the graph. An undirected one counts once.
    pub edges_kept: u64,
    /// Edges dropped because they join a vertex to itself.
    pub dropped_self_loops: u64,
    /// Edges dropped as duplicates of others.
    pub dropped_duplicates: u64,
    /// Vertices of the graph.
    pub vertices: u64,
    /// Arcs of the graph: an undirected edge is two, a self-loop one.
    pub arcs: u64,
    /// Batches of vertices.
    pub batches: u64,
    /// Bytes of temporary files written.
    pub temporary_bytes: u64,
    /// The most memory leased at one time, in bytes.
    pub peak_memory: u64,
    /// The bytes that each rank read, wrote and sent.
    pub each_rank: Vec<ImportTraffic>,
    /// How the input was read, one line a way: for [`FileSource::notices`](crate::FileSource::notices).
    pub read: Vec<String>,
    /// The steps in order, each with the time it took.
    pub steps: Vec<(&'static str, Duration)>,
}

impl ImportReport {
    /// The time of all steps.
    pub fn total(&self) -> Duration {
        self.steps.iter().map(|(_, time)| *time).sum()
    }

    /// True if the numbers of lines and of edges balance.
    pub fn reconciles(&self) -> bool {
        self.lines == self.edges + self.skipped + self.comments + self.blank
            && self.edges == self.edges_kept + self.dropped_self_loops + self.dropped_duplicates
    }
}
