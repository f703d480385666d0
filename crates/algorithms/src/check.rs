//! Parts that the checkers share: their objections, and arcs grouped by source.
//!
//! A checker takes the arcs of a graph as a plain list and a result as a plain vector, both in one numbering `0..vertices`, and
//! checks the result by another method than the engine's: serially, in memory, without any type of the engine. An undirected
//! edge is two arcs, a self-loop one.

use std::fmt::Display;

/// Why a checker refuses a result (or cannot check it).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Violation {
    /// The vector is not one value a vertex.
    #[error("the graph has {vertices} vertices, the result {values} values")]
    Length {
        /// Vertices of the graph.
        vertices: u64,
        /// Values of the result.
        values: u64,
    },
    /// An option or a value names a vertex that the graph does not have.
    #[error("{what} names vertex {vertex}, but the vertices are 0..{vertices}")]
    NoSuchVertex {
        /// The part that names it: an arc, the source, a label.
        what: &'static str,
        /// The vertex named.
        vertex: u64,
        /// Vertices of the graph.
        vertices: u64,
    },
    /// A number no checker can work with, such as a negative weight.
    #[error("{what} is {found}, expected {expected}")]
    Input {
        /// Which number.
        what: &'static str,
        /// Its value.
        found: String,
        /// The expected value.
        expected: &'static str,
    },
    /// One vertex has the wrong value.
    #[error("vertex {vertex} has {found}, expected {expected}: {rule}")]
    Vertex {
        /// The vertex.
        vertex: u64,
        /// Its value in the result.
        found: ViolationValue,
        /// The value that the checker computed.
        expected: ViolationValue,
        /// The condition that fails.
        rule: &'static str,
    },
    /// An edge of the result is wrong, or one that should be there is missing.
    #[error("edge {} - {} of weight {weight}: expected {rule}", ends[0], ends[1])]
    Edge {
        /// Its two vertices.
        ends: [u64; 2],
        /// Its weight.
        weight: String,
        /// The condition that fails.
        rule: &'static str,
    },
    /// A number of the result is wrong.
    #[error("{column} is {found}, expected {expected}")]
    Column {
        /// The name of its column.
        column: &'static str,
        /// The number in the result.
        found: ViolationValue,
        /// The number that the checker computed.
        expected: ViolationValue,
    },
    /// The result as a whole is off.
    #[error("{what} is {found}, at most {allowed} is allowed")]
    Whole {
        /// The measured quantity.
        what: &'static str,
        /// Its value.
        found: String,
        /// The bound.
        allowed: String,
    },
}

/// A value that an objection names.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ViolationValue {
    /// None.
    #[error("nothing")]
    Nothing,
    /// A number, as text.
    #[error("{0}")]
    Number(String),
    /// The index of a vertex.
    #[error("{0}")]
    Vertex(u64),
}

/// An arc as a checker takes it: with a weight of its own, or 1.
pub trait Weigh: Copy {
    /// True if arcs have weights of their own.
    const WEIGHTED: bool;
    /// Returns the source and the destination.
    fn ends(self) -> (usize, usize);
    /// Returns the weight.
    fn weight(self) -> f64;
}

impl Weigh for (u64, u64) {
    const WEIGHTED: bool = false;
    fn ends(self) -> (usize, usize) {
        (self.0 as usize, self.1 as usize)
    }
    fn weight(self) -> f64 {
        1.0
    }
}

impl Weigh for (u64, u64, f64) {
    const WEIGHTED: bool = true;
    fn ends(self) -> (usize, usize) {
        (self.0 as usize, self.1 as usize)
    }
    fn weight(self) -> f64 {
        self.2
    }
}

/// Checks that the graph has `values` vertices and that every arc stays inside it.
///
/// After that a checker may index freely.
pub(crate) fn check_shape(
    vertices: u64,
    values: usize,
    mut arcs: impl Iterator<Item = (u64, u64)>,
) -> Result<(), Violation> {
    let values = values as u64;
    if values != vertices {
        return Err(Violation::Length { vertices, values });
    }
    arcs.try_for_each(|(u, v)| check_vertex("an arc", u.max(v), vertices))
}

pub(crate) fn check_vertex(
    what: &'static str,
    vertex: u64,
    vertices: u64,
) -> Result<(), Violation> {
    match vertex < vertices {
        true => Ok(()),
        false => Err(Violation::NoSuchVertex {
            what,
            vertex,
            vertices,
        }),
    }
}

/// Fails unless `is_right`: the vertex has the first of two values and should have the second.
///
/// `name` says what kind of values they are.
pub(crate) fn check_value<T>(
    is_right: bool,
    vertex: usize,
    values: [Option<T>; 2],
    name: fn(T) -> ViolationValue,
    rule: &'static str,
) -> Result<(), Violation> {
    if is_right {
        return Ok(());
    }
    let [found, expected] = values.map(|value| value.map_or(ViolationValue::Nothing, name));
    Err(Violation::Vertex {
        vertex: vertex as u64,
        found,
        expected,
        rule,
    })
}

/// Fails at the first vertex whose value is not the expected one.
pub(crate) fn check_values<T: Copy + PartialEq>(
    found: &[Option<T>],
    expected: Vec<Option<T>>,
    name: fn(T) -> ViolationValue,
    rule: &'static str,
) -> Result<(), Violation> {
    let mut each = found.iter().zip(expected).enumerate();
    each.try_for_each(|(vertex, (&found, expected))| {
        check_value(found == expected, vertex, [found, expected], name, rule)
    })
}

/// Names a value that is a number.
pub(crate) fn number<T: Display>(value: T) -> ViolationValue {
    ViolationValue::Number(value.to_string())
}

/// Sums the bytes of lists of `(elements, bytes per element)`; saturates at `u64::MAX`.
pub(crate) fn bytes_of(lists: &[(u64, usize)]) -> u64 {
    lists.iter().fold(0, |sum: u64, &(elements, bytes)| {
        sum.saturating_add(elements.saturating_mul(bytes as u64))
    })
}

/// The numbers of the arcs that leave each vertex, in the order of the list.
pub(crate) struct BySource {
    starts: Vec<usize>,
    arcs: Vec<usize>,
}

impl BySource {
    /// Bytes of memory that grouping takes.
    pub(crate) fn bytes(vertices: u64, arcs: u64) -> u64 {
        let starts = 2 * size_of::<usize>();
        bytes_of(&[(vertices, starts), (1, starts), (arcs, size_of::<usize>())])
    }

    /// Groups arcs by a counting sort; every source must be below `vertices`.
    pub(crate) fn new(vertices: usize, sources: impl Iterator<Item = u64> + Clone) -> BySource {
        let mut starts = vec![0; vertices + 1];
        for source in sources.clone() {
            starts[source as usize + 1] += 1;
        }
        for vertex in 0..vertices {
            starts[vertex + 1] += starts[vertex];
        }
        let mut next = starts.clone();
        let mut arcs = vec![0; starts[vertices]];
        for (arc, source) in sources.enumerate() {
            arcs[next[source as usize]] = arc;
            next[source as usize] += 1;
        }
        BySource { starts, arcs }
    }

    /// The arcs that leave `vertex`.
    pub(crate) fn of(&self, vertex: usize) -> &[usize] {
        &self.arcs[self.starts[vertex]..self.starts[vertex + 1]]
    }
}
