//! Bytes that a program holds for each vertex.

use crate::program::edge::{ApplyTo, EdgeProgram};
use crate::state::rows::{RowBytes, Rows};
use crate::value::EdgeValue;

/// Bytes that a program holds for each vertex: what the memory that its passes take depends on.
#[derive(Clone, Copy, Debug)]
pub struct ProgramFootprint {
    pub(crate) message: usize,
    pub(crate) accumulator: usize,
    /// Of the rows that a worker borrows from disk.
    pub(crate) rows: usize,
    /// Of these, values that the graph keeps.
    pub(crate) graph_values: usize,
    /// Weights are read too.
    pub(crate) weighted: bool,
    /// A gather holds the rows of all strips that it folds side by side, to ask who wants messages.
    pub(crate) pulls: bool,
    /// Its folds give the same bits in any order.
    pub(crate) exact: bool,
    /// Its passes load sketches of degrees, because few vertices may be active.
    pub(crate) sketched: bool,
    /// With its rows in memory, its passes read each edge once.
    pub(crate) reads_edges_once: bool,
    /// What signal and apply move of rows that are on disk.
    pub(crate) signal: RowBytes,
    pub(crate) apply: RowBytes,
    /// In memory for every vertex of the graph, or the program does not run: rows, and messages.
    pub(crate) kept: [usize; 2],
    /// Of the rows of all its vertex arrays; 0 if they are not known.
    pub(crate) arrays: usize,
    /// Bytes that its caller takes after the last pass, beside the rows.
    pub(crate) result: u64,
    /// Bytes of a worker's least window of labels, with its table; 0 without windows.
    pub(crate) windows: u64,
    /// Some passes go against the arcs.
    pub(crate) against: bool,
    /// Some passes send messages to any vertices.
    pub(crate) sends: bool,
}

impl ProgramFootprint {
    /// A program of 8-byte values with three columns on disk, a common size among the algorithms.
    pub const USUAL: ProgramFootprint = ProgramFootprint {
        message: 8,
        accumulator: 8,
        rows: 24,
        graph_values: 8,
        weighted: true,
        pulls: true,
        exact: false,
        sketched: false,
        reads_edges_once: false,
        signal: RowBytes::NONE,
        apply: RowBytes::NONE,
        kept: [0; 2],
        arrays: 0,
        result: 0,
        windows: 0,
        against: false,
        sends: false,
    };

    /// Of a program whose rows are on disk.
    #[must_use]
    pub fn of<P: EdgeProgram>() -> ProgramFootprint {
        let (signal, apply) = (P::SignalRows::BYTES, P::ApplyRows::BYTES);
        ProgramFootprint {
            message: size_of::<P::Message>(),
            accumulator: size_of::<P::Accumulator>(),
            rows: signal.max(apply),
            graph_values: P::SignalRows::GRAPH_BYTES.max(P::ApplyRows::GRAPH_BYTES),
            weighted: P::Edge::WEIGHTED,
            pulls: P::EARLY_EXIT,
            exact: P::ORDER_INDEPENDENT,
            sketched: matches!(P::APPLY_TO, ApplyTo::Touched),
            signal: P::SignalRows::TOUCHED,
            apply: P::ApplyRows::TOUCHED,
            ..ProgramFootprint::USUAL
        }
    }

    /// Of a program whose columns, and whom it applies, are known at run time only.
    #[must_use]
    pub fn of_columns<P: EdgeProgram>(
        columns: usize,
        apply_to: ApplyTo,
        exact: bool,
    ) -> ProgramFootprint {
        let (bytes, of) = (columns * size_of::<u64>(), ProgramFootprint::of::<P>());
        ProgramFootprint {
            rows: bytes + of.graph_values,
            signal: RowBytes::of_columns(bytes, 0),
            apply: RowBytes::of_columns(bytes, bytes),
            sketched: matches!(apply_to, ApplyTo::Touched),
            arrays: bytes,
            exact,
            ..of
        }
    }

    /// States that some passes go against the arcs: the first of them over chunks transposes the graph.
    #[must_use]
    pub fn going_against(self, against: bool) -> ProgramFootprint {
        ProgramFootprint { against, ..self }
    }

    /// States that vertices also send messages to any vertices, or ask them: about one each in a pass.
    #[must_use]
    pub fn sending(self) -> ProgramFootprint {
        ProgramFootprint {
            sends: true,
            ..self
        }
    }

    /// States the bytes of a row in all vertex arrays that the program makes.
    ///
    /// Rows in memory then leave less of the budget free: room to borrow rows only for arrays that may be on disk.
    #[must_use]
    pub fn with_arrays(self, arrays: usize) -> ProgramFootprint {
        ProgramFootprint { arrays, ..self }
    }

    /// States the bytes of the budget that the caller takes after the last pass, beside the rows.
    ///
    /// Rows in memory leave them free. All else that the passes took is free again after the last pass.
    #[must_use]
    pub fn with_result(self, result: u64) -> ProgramFootprint {
        ProgramFootprint { result, ..self }
    }

    /// States that with rows in memory each edge is read once: edges in memory gain nothing.
    #[must_use]
    pub fn reading_edges_once(self) -> ProgramFootprint {
        ProgramFootprint {
            reads_edges_once: true,
            ..self
        }
    }

    /// Adds the bytes of rows and of messages that the program keeps in memory for every vertex.
    #[must_use]
    pub fn keeping(self, rows: usize, messages: usize) -> ProgramFootprint {
        ProgramFootprint {
            kept: [rows, messages],
            ..self
        }
    }

    /// Of such a program that also looks at such rows of all vertices, between its passes over edges.
    #[must_use]
    pub fn with_rows<R: Rows>(self) -> ProgramFootprint {
        ProgramFootprint {
            rows: self.rows.max(R::BYTES),
            graph_values: self.graph_values.max(R::GRAPH_BYTES),
            ..self
        }
    }

    /// Returns the most bytes of a row that a worker borrows, if `on_disk` bytes of it are on disk.
    ///
    /// `unpacked` says whether the values that the graph keeps are borrowed too.
    pub(crate) fn borrowed_bytes(&self, on_disk: usize, unpacked: bool) -> usize {
        let graph_values = if unpacked { self.graph_values } else { 0 };
        match self.arrays {
            0 => self.rows,
            _ => self.rows.min(on_disk + graph_values),
        }
    }

    /// Returns the maximum of two programs' footprints.
    #[must_use]
    pub fn or(self, other: ProgramFootprint) -> ProgramFootprint {
        ProgramFootprint {
            message: self.message.max(other.message),
            accumulator: self.accumulator.max(other.accumulator),
            rows: self.rows.max(other.rows),
            graph_values: self.graph_values.max(other.graph_values),
            weighted: self.weighted || other.weighted,
            pulls: self.pulls || other.pulls,
            exact: self.exact && other.exact,
            sketched: self.sketched || other.sketched,
            reads_edges_once: self.reads_edges_once && other.reads_edges_once,
            signal: self.signal.or(other.signal),
            apply: self.apply.or(other.apply),
            kept: [0, 1].map(|kind| self.kept[kind].max(other.kept[kind])),
            arrays: self.arrays.max(other.arrays),
            result: self.result.max(other.result),
            windows: self.windows.max(other.windows),
            against: self.against || other.against,
            sends: self.sends || other.sends,
        }
    }
}
