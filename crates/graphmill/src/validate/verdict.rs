//! The rules of a comparison, and its verdict.

use std::fmt;

/// Differences that a [`Verdict`] describes one by one.
pub(super) const DESCRIBED_MAX: usize = 10;

/// What counts as the same.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Rule {
    /// The same values: bfs.
    Exact,
    /// Numbers with |found - expected| <= share * |expected|, and unreached where the reference has it.
    ///
    /// For pagerank and sssp, where LDBC takes 1e-4.
    Epsilon(f64),
    /// The same groups of vertices, whatever the groups are called: wcc.
    Equivalence,
}

/// What the rows of a result are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RowKind {
    /// Vertices with values.
    #[default]
    Vertices,
    /// Edges with weights.
    Edges,
    /// Columns of one row of numbers.
    Columns,
}

impl fmt::Display for RowKind {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(match self {
            RowKind::Vertices => "vertices",
            RowKind::Edges => "edges",
            RowKind::Columns => "columns",
        })
    }
}

/// How a result compares with its reference, or with its graph.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Verdict {
    /// What the rows are.
    pub rows: RowKind,
    /// Vertices of the reference, or of the graph.
    ///
    /// Of other rows it is their number in the reference, or in the result.
    pub vertices: u64,
    /// Vertices that are not the same in both, `missing` and `unexpected` included.
    pub differences: u64,
    /// Vertices that only the reference, or the graph, has.
    pub missing: u64,
    /// Vertices that only the result has.
    pub unexpected: u64,
    /// Whether there may be more differences: a checker stops at its first objection.
    pub may_be_more: bool,
    /// The first differences, at most ten, one a line.
    ///
    /// They are in order of vertex ids, or of the result's rows before a checker.
    pub described: Vec<String>,
}

impl Verdict {
    /// Whether there is no difference.
    pub fn is_same(&self) -> bool {
        self.differences == 0
    }

    pub(super) fn differs(&mut self, describe: impl FnOnce() -> String) {
        self.differences += 1;
        if self.described.len() < DESCRIBED_MAX {
            self.described.push(describe());
        }
    }
}
