//! A result before its checker: the caller passes arcs and values one by one, then asks for the verdict.
//!
//! A [`RecordedResult`] stores them as the plain lists that the checkers take. Invariant: nothing is allocated before [`ResultChecker::open`], and all later
//! allocations, the checker's own lists included, are at most [`ResultChecker::bytes`].

use graphmill_graph::StoredGraph;

use crate::check::{Violation, bytes_of};

/// A checker of one algorithm's results on one graph, with the options of the run.
pub trait ResultChecker {
    /// Returns the type of the result's values.
    fn takes(&self) -> ResultType;
    /// Bytes of memory, for all that is handed over and for the verdict.
    fn bytes(&self) -> u64;
    /// Allocates memory for arcs and values; the caller has leased the bytes.
    fn open(&mut self);
    /// Hands over an arc; there are as many as the graph has, with weight 1 where it has none.
    fn arc(&mut self, source: u64, destination: u64, weight: f64);
    /// Hands over the value of a vertex of the graph; false when it is none that the algorithm gives.
    fn value(&mut self, vertex: u64, value: ResultValue) -> bool;
    /// Hands over an edge of the result; false if there are more than the algorithm can give.
    fn edge(&mut self, source: u64, destination: u64, weight: f64) -> bool;
    /// Hands over the number of a column; false if the algorithm does not give such a number.
    fn number(&mut self, column: usize, value: ResultValue) -> bool;
    /// The verdict, once every arc and every vertex's value is there.
    ///
    /// # Errors
    /// The first [`Violation`].
    fn verdict(&self) -> Result<(), Violation>;
}

/// The type of a result's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResultType {
    /// Integers.
    Integers,
    /// Floating-point numbers of 32 bits.
    Singles,
    /// Floating-point numbers of 64 bits.
    Doubles,
    /// Indices of vertices.
    Vertices,
    /// Edges with weights, by [`ResultChecker::edge`].
    Edges,
    /// One row of numbers, by [`ResultChecker::number`].
    Numbers,
}

/// A value as a result has it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ResultValue {
    /// None: the vertex was not reached.
    Nothing,
    /// An integer, or the index of a vertex.
    Integer(u64),
    /// A number.
    Float(f64),
}

/// The rows of a result: values of vertices, edges, or numbers.
pub(crate) trait RowList: Default + 'static {
    /// Bytes of the rows of a result on a graph of that many vertices.
    fn bytes(vertices: u64) -> u64;
    /// Allocates memory for the rows.
    fn open(&mut self, vertices: u64);
    /// Sets the value of a vertex, if the rows are values.
    fn value(&mut self, _: u64, _: ResultValue) -> bool {
        false
    }
    /// Adds an edge, if the rows are edges.
    fn edge(&mut self, _: ResultEdge) -> bool {
        false
    }
    /// Sets a number, if the rows are numbers.
    fn number(&mut self, _: usize, _: ResultValue) -> bool {
        false
    }
}

impl<V: FromValue + 'static> RowList for Vec<V> {
    fn bytes(vertices: u64) -> u64 {
        bytes_of(&[(vertices, size_of::<V>())])
    }

    fn open(&mut self, vertices: u64) {
        *self = vec![V::default(); vertices as usize];
    }

    fn value(&mut self, vertex: u64, value: ResultValue) -> bool {
        let place = self.get_mut(vertex as usize).zip(V::of(value));
        place.map(|(place, value)| *place = value).is_some()
    }
}

/// An edge of a result: both ends by ordinal, and the weight.
pub(crate) type ResultEdge = (u64, u64, f64);

impl RowList for Vec<ResultEdge> {
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
pub(crate) struct RecordedResult<A, R, F> {
    takes: ResultType,
    vertices: u64,
    arcs_max: u64,
    /// Bytes of the checker without the lists, from the numbers of vertices and arcs.
    checker_bytes: fn(u64, u64) -> u64,
    arcs: Vec<A>,
    rows: R,
    check: F,
}

impl<A: FromArc + 'static, R: RowList, F> RecordedResult<A, R, F>
where
    F: Fn(u64, &[A], &R) -> Result<(), Violation> + 'static,
{
    pub(crate) fn boxed(
        graph: &StoredGraph,
        takes: ResultType,
        checker_bytes: fn(u64, u64) -> u64,
        check: F,
    ) -> Box<dyn ResultChecker> {
        Box::new(RecordedResult {
            takes,
            vertices: match takes {
                ResultType::Edges | ResultType::Numbers => graph.vertices(),
                _ => graph.named_vertices(),
            },
            arcs_max: graph.arcs(),
            checker_bytes,
            arcs: Vec::new(),
            rows: R::default(),
            check,
        })
    }
}

impl<A: FromArc, R: RowList, F> ResultChecker for RecordedResult<A, R, F>
where
    F: Fn(u64, &[A], &R) -> Result<(), Violation>,
{
    fn takes(&self) -> ResultType {
        self.takes
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

    fn value(&mut self, vertex: u64, value: ResultValue) -> bool {
        self.rows.value(vertex, value)
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

/// An arc as a checker takes it.
pub(crate) trait FromArc {
    fn of(source: u64, destination: u64, weight: f64) -> Self;
}

impl FromArc for (u64, u64) {
    fn of(source: u64, destination: u64, _: f64) -> Self {
        (source, destination)
    }
}

impl FromArc for (u64, u64, f32) {
    /// As the engine narrows weights that are stored wider.
    fn of(source: u64, destination: u64, weight: f64) -> Self {
        (source, destination, weight as f32)
    }
}

impl FromArc for (u64, u64, f64) {
    fn of(source: u64, destination: u64, weight: f64) -> Self {
        (source, destination, weight)
    }
}

/// A value as a checker takes it; none of what cannot be one.
pub(crate) trait FromValue: Copy + Default {
    fn of(value: ResultValue) -> Option<Self>;
}

impl FromValue for u64 {
    fn of(value: ResultValue) -> Option<u64> {
        match value {
            ResultValue::Integer(number) => Some(number),
            // Other programs write whole numbers as floats.
            ResultValue::Float(number) => {
                let is_whole = number.fract() == 0.0 && (0.0..u64::MAX as f64).contains(&number);
                is_whole.then_some(number as u64)
            }
            ResultValue::Nothing => None,
        }
    }
}

impl FromValue for f64 {
    fn of(value: ResultValue) -> Option<f64> {
        match value {
            ResultValue::Integer(number) => Some(number as f64),
            ResultValue::Float(number) => Some(number),
            ResultValue::Nothing => None,
        }
    }
}

impl FromValue for f32 {
    fn of(value: ResultValue) -> Option<f32> {
        f64::of(value).map(|number| number as f32)
    }
}

impl<T: FromValue> FromValue for Option<T> {
    fn of(value: ResultValue) -> Option<Option<T>> {
        match value {
            ResultValue::Nothing => Some(None),
            value => T::of(value).map(Some),
        }
    }
}
