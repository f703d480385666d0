//! The result of a run: one value a vertex, edges, or one row of numbers.

use graphmill_engine::VertexArray;

/// The result of a run.
///
/// If it is `nullable`, infinity or the greatest integer means that a vertex has no value.
#[derive(Debug, Clone, Copy)]
pub struct Output {
    /// Name of the result's column; of edges and of a row of numbers, of the main one.
    pub column: &'static str,
    /// Where the values are.
    pub values: OutputValues,
    /// True if a vertex may have no value; without effect on edges and rows of numbers.
    pub nullable: bool,
}

impl Output {
    pub(crate) fn new(column: &'static str, values: OutputValues, nullable: bool) -> Output {
        Output {
            column,
            values,
            nullable,
        }
    }
}

/// The array that holds a result; a vertex that is a value is written as its id.
#[derive(Debug, Clone, Copy)]
pub enum OutputValues {
    /// Floating-point numbers of 32 bits.
    F32(VertexArray<f32>),
    /// Floating-point numbers of 64 bits.
    F64(VertexArray<f64>),
    /// Integers.
    U32(VertexArray<u32>),
    /// Integers.
    U64(VertexArray<u64>),
    /// Vertices, by index.
    Vertex32(VertexArray<u32>),
    /// Vertices, by index.
    Vertex64(VertexArray<u64>),
    /// Vertices, by the ordinal of their id ([`IdOrdinal`](graphmill_engine::IdOrdinal)).
    Ordinal32(VertexArray<u32>),
    /// Vertices, by the ordinal of their id.
    Ordinal64(VertexArray<u64>),
    /// Edges: the row of a vertex is an [`edge_row`], or [`NO_EDGE`].
    ///
    /// The result has the columns `source`, `destination` and `weight`, and a row for each edge, in order of the ids of the vertices
    /// whose rows hold the edges. The smaller id is the source. Writing takes more memory than of one value a vertex.
    Edges(VertexArray<[u64; 3]>),
    /// One row of numbers, without any vertex. All ranks have the same.
    Numbers(NumberRow),
}

/// The row of a vertex that holds no edge of the result.
///
/// Rows of a new vertex array are 0, which is an edge: a program first sets all rows to this.
pub const NO_EDGE: [u64; 3] = [u64::MAX; 3];

/// Returns the row of a vertex that holds an edge of the result.
///
/// The ends are ordinals of ids ([`IdOrdinal`](graphmill_engine::IdOrdinal)), in any order. Rows compare by weight, then by source.
#[must_use]
pub fn edge_row(weight: f64, source: u64, destination: u64) -> [u64; 3] {
    [weight_key(weight), source, destination]
}

/// True if the row of a vertex holds an edge.
#[inline]
#[must_use]
pub fn holds_edge(row: &[u64; 3]) -> bool {
    row[1] != u64::MAX
}

/// Returns an integer that compares with others as the weights do; zeros of both signs are the same.
#[inline]
#[must_use]
pub fn weight_key(weight: f64) -> u64 {
    let bits = (weight + 0.0).to_bits();
    match bits >> 63 {
        0 => bits | 1 << 63,
        _ => !bits,
    }
}

/// Returns the weight of a [`weight_key`].
#[inline]
#[must_use]
pub fn key_weight(key: u64) -> f64 {
    f64::from_bits(match key >> 63 {
        0 => !key,
        _ => key & !(1 << 63),
    })
}

/// Numbers of a row, at most.
const NUMBERS_MAX: usize = 8;

/// A result that is one row of numbers: columns with their names.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NumberRow {
    names: &'static [&'static str],
    numbers: [NumberValue; NUMBERS_MAX],
}

/// A number of such a row; `None` if it is undefined.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum NumberValue {
    /// A count.
    Integer(Option<u64>),
    /// A number.
    Float(Option<f64>),
}

impl NumberRow {
    /// Creates a row from the names of its columns and their numbers: at most eight.
    #[must_use]
    pub fn new(names: &'static [&'static str], numbers: &[NumberValue]) -> NumberRow {
        let count = names.len().min(numbers.len()).min(NUMBERS_MAX);
        let mut row = NumberRow {
            names: &names[..count],
            numbers: [NumberValue::Integer(None); NUMBERS_MAX],
        };
        row.numbers[..count].copy_from_slice(&numbers[..count]);
        row
    }

    /// The columns in their order.
    pub fn columns(&self) -> impl Iterator<Item = (&'static str, NumberValue)> + '_ {
        self.names.iter().copied().zip(self.numbers)
    }
}

impl NumberValue {
    /// The number as text, with the digits that read back to it; `None` if it is undefined.
    #[must_use]
    pub fn text(self) -> Option<String> {
        match self {
            NumberValue::Integer(number) => number.map(|number| number.to_string()),
            NumberValue::Float(number) => number.map(|number| format!("{number:?}")),
        }
    }
}

/// What the rows of an algorithm's result are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResultShape {
    /// One value a vertex.
    Vertices,
    /// The edges of a forest: with each edge there is one tree less.
    Forest,
    /// One row of numbers, in columns of these names.
    Numbers(&'static [&'static str]),
}
