//! Results of other shapes before their checkers: edges, and rows of numbers.
//!
//! They follow the rules of [`RecordedResult`](crate::recorded::RecordedResult): nothing is allocated before
//! [`ResultChecker::open`], and no more than [`ResultChecker::bytes`] afterwards.

use graphmill_graph::StoredGraph;

use crate::check::{Violation, bytes_of};
use crate::recorded::{FromArc, FromValue, ResultChecker, ResultType, ResultValue};

/// An edge of a result: both ends by ordinal, and the weight.
pub(crate) type ResultEdge = (u64, u64, f64);

/// The rows of a result that are no values of vertices.
pub(crate) trait RowList: Default + 'static {
    /// What the rows are.
    const TAKES: ResultType;
    /// Bytes of the rows of a result on a graph of that many vertices.
    fn bytes(vertices: u64) -> u64;
    /// Allocates memory for the rows.
    fn open(&mut self, vertices: u64);
    /// Adds an edge, if the rows are edges.
    fn edge(&mut self, _: ResultEdge) -> bool {
        false
    }
    /// Sets a number, if the rows are numbers.
    fn number(&mut self, _: usize, _: ResultValue) -> bool {
        false
    }
}

impl RowList for Vec<ResultEdge> {
    const TAKES: ResultType = ResultType::Edges;

    /// One edge a vertex is the most.
    fn bytes(vertices: u64) -> u64 {
        bytes_of(&[(vertices, size_of::<ResultEdge>())])
    }

    fn open(&mut self, vertices: u64) {
        self.reserve_exact(vertices as usize);
    }

    fn edge(&mut self, edge: ResultEdge) -> bool {
        let has_room = self.len() < self.capacity();
        if has_room {
            self.push(edge);
        }
        has_room
    }
}

/// Numbers of a row by the places of their columns.
pub(crate) type ResultNumbers = [Option<f64>; 4];

impl RowList for ResultNumbers {
    const TAKES: ResultType = ResultType::Numbers;

    fn bytes(_: u64) -> u64 {
        0
    }

    fn open(&mut self, _: u64) {}

    fn number(&mut self, column: usize, value: ResultValue) -> bool {
        let place = self.get_mut(column).zip(Option::<f64>::of(value));
        place.map(|(place, value)| *place = value).is_some()
    }
}

/// The arcs of a graph and the rows of a result, and the check of one checker.
pub(crate) struct RecordedRows<A, R, F> {
    vertices: u64,
    arcs_max: u64,
    /// Bytes of the checker without the lists, from the numbers of vertices and arcs.
    checker_bytes: fn(u64, u64) -> u64,
    arcs: Vec<A>,
    rows: R,
    check: F,
}

impl<A: FromArc + 'static, R: RowList, F> RecordedRows<A, R, F>
where
    F: Fn(u64, &[A], &R) -> Result<(), Violation> + 'static,
{
    pub(crate) fn boxed(
        graph: &StoredGraph,
        checker_bytes: fn(u64, u64) -> u64,
        check: F,
    ) -> Box<dyn ResultChecker> {
        Box::new(RecordedRows {
            vertices: graph.vertices(),
            arcs_max: graph.arcs(),
            checker_bytes,
            arcs: Vec::new(),
            rows: R::default(),
            check,
        })
    }
}

impl<A: FromArc, R: RowList, F> ResultChecker for RecordedRows<A, R, F>
where
    F: Fn(u64, &[A], &R) -> Result<(), Violation>,
{
    fn takes(&self) -> ResultType {
        R::TAKES
    }

    fn bytes(&self) -> u64 {
        let arcs = bytes_of(&[(self.arcs_max, size_of::<A>())]);
        let rows = R::bytes(self.vertices);
        let checker = (self.checker_bytes)(self.vertices, self.arcs_max);
        arcs.saturating_add(rows).saturating_add(checker)
    }

    fn open(&mut self) {
        self.arcs.reserve_exact(self.arcs_max as usize);
        self.rows.open(self.vertices);
    }

    fn arc(&mut self, source: u64, destination: u64, weight: f64) {
        self.arcs.push(A::of(source, destination, weight));
    }

    fn value(&mut self, _: u64, _: ResultValue) -> bool {
        false
    }

    fn edge(&mut self, source: u64, destination: u64, weight: f64) -> bool {
        self.rows.edge((source, destination, weight))
    }

    fn number(&mut self, column: usize, value: ResultValue) -> bool {
        self.rows.number(column, value)
    }

    fn verdict(&self) -> Result<(), Violation> {
        (self.check)(self.vertices, &self.arcs, &self.rows)
    }
}
