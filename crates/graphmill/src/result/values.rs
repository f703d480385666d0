//! The values of some vertices as they are in a vertex array, and edges that its rows hold.

use std::ops::Range;

use graphmill_algorithms::{NO_EDGE, OutputValues as Array, holds_edge, key_weight};
use graphmill_engine::Engine;

use crate::error::Error;

/// Elements of a vertex array.
#[derive(Debug)]
pub(crate) enum ValueColumn {
    F32(Vec<f32>),
    F64(Vec<f64>),
    U32(Vec<u32>),
    U64(Vec<u64>),
    /// Rows that hold edges or none, as the array has them.
    Edges(Vec<[u64; 3]>),
}

/// What a column holds of rows that are edges; of other rows it holds the values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EdgePart {
    /// The whole edges.
    Whole,
    /// The smaller ordinal of both ends.
    Source,
    /// The greater ordinal of both ends.
    Destination,
    /// The weight, with 32 bits or with 64.
    Weight {
        /// With 32 bits.
        single: bool,
    },
}

/// Returns both ends of a row that is an edge, the smaller ordinal first.
pub(super) fn ends([_, a, b]: &[u64; 3]) -> [u64; 2] {
    [*a.min(b), *a.max(b)]
}

/// Returns the bytes of an element of `array`, counted as 8 for a value of a vertex.
pub(crate) fn element_bytes(array: &Array) -> u64 {
    match array {
        Array::Edges(_) => EDGE_BYTES,
        _ => VALUE_BYTES,
    }
}

/// Bytes of a value of a vertex, at most.
pub(crate) const VALUE_BYTES: u64 = size_of::<u64>() as u64;
/// Bytes of a row that holds an edge.
pub(crate) const EDGE_BYTES: u64 = size_of::<[u64; 3]>() as u64;

impl Default for ValueColumn {
    fn default() -> ValueColumn {
        ValueColumn::U32(Vec::new())
    }
}

impl ValueColumn {
    pub(crate) fn empty(array: &Array) -> ValueColumn {
        match array {
            Array::F32(_) => ValueColumn::F32(Vec::new()),
            Array::F64(_) => ValueColumn::F64(Vec::new()),
            Array::U32(_) | Array::Vertex32(_) | Array::Ordinal32(_) => {
                ValueColumn::U32(Vec::new())
            }
            Array::U64(_) | Array::Vertex64(_) | Array::Ordinal64(_) => {
                ValueColumn::U64(Vec::new())
            }
            Array::Edges(_) => ValueColumn::Edges(Vec::new()),
            Array::Numbers(_) => ValueColumn::default(),
        }
    }

    /// Returns an empty column for a part of the rows of `array`.
    pub(super) fn empty_part(array: &Array, part: EdgePart) -> ValueColumn {
        match part {
            EdgePart::Whole => ValueColumn::empty(array),
            EdgePart::Source | EdgePart::Destination => ValueColumn::U64(Vec::new()),
            EdgePart::Weight { single: true } => ValueColumn::F32(Vec::new()),
            EdgePart::Weight { single: false } => ValueColumn::F64(Vec::new()),
        }
    }

    pub(super) fn len(&self) -> usize {
        match self {
            ValueColumn::F32(values) => values.len(),
            ValueColumn::F64(values) => values.len(),
            ValueColumn::U32(values) => values.len(),
            ValueColumn::U64(values) => values.len(),
            ValueColumn::Edges(rows) => rows.len(),
        }
    }

    /// Replaces the elements by the elements of a batch of `array`, which has the type of `self`.
    pub(crate) fn read(
        &mut self,
        engine: &Engine,
        array: &Array,
        batch: usize,
    ) -> Result<(), Error> {
        let read = match (self, array) {
            (ValueColumn::F32(to), Array::F32(array)) => engine.read_batch(array, batch, to),
            (ValueColumn::F64(to), Array::F64(array)) => engine.read_batch(array, batch, to),
            (
                ValueColumn::U32(to),
                Array::U32(array) | Array::Vertex32(array) | Array::Ordinal32(array),
            ) => engine.read_batch(array, batch, to),
            (
                ValueColumn::U64(to),
                Array::U64(array) | Array::Vertex64(array) | Array::Ordinal64(array),
            ) => engine.read_batch(array, batch, to),
            (ValueColumn::Edges(to), Array::Edges(array)) => engine.read_batch(array, batch, to),
            _ => Ok(()),
        };
        Ok(read?)
    }

    /// Adds elements of `other` in a range, or the marked ones of them.
    ///
    /// `self` is of the same kind, or [`empty_part`](ValueColumn::empty_part) made it for `part`.
    pub(super) fn append(
        &mut self,
        other: &ValueColumn,
        range: Range<usize>,
        marks: &[bool],
        part: EdgePart,
    ) {
        if let ValueColumn::Edges(rows) = other {
            return self.append_edges(&rows[range], marks, part);
        }
        match (self, other) {
            (ValueColumn::F32(values), ValueColumn::F32(more)) => add(values, &more[range], marks),
            (ValueColumn::F64(values), ValueColumn::F64(more)) => add(values, &more[range], marks),
            (ValueColumn::U32(values), ValueColumn::U32(more)) => add(values, &more[range], marks),
            (ValueColumn::U64(values), ValueColumn::U64(more)) => add(values, &more[range], marks),
            _ => {}
        }
    }

    /// Adds parts of the rows that are edges and are marked.
    fn append_edges(&mut self, rows: &[[u64; 3]], marks: &[bool], part: EdgePart) {
        let places = rows.iter().enumerate();
        let is_marked = |place: usize| marks.get(place) != Some(&false);
        let edges = places.filter(|(place, row)| is_marked(*place) && holds_edge(row));
        let edges = edges.map(|(_, row)| row);
        match (self, part) {
            (ValueColumn::Edges(to), _) => to.extend(edges),
            (ValueColumn::U64(to), EdgePart::Destination) => {
                to.extend(edges.map(|row| ends(row)[1]))
            }
            (ValueColumn::U64(to), _) => to.extend(edges.map(|row| ends(row)[0])),
            (ValueColumn::F32(to), _) => to.extend(edges.map(|row| key_weight(row[0]) as f32)),
            (ValueColumn::F64(to), _) => to.extend(edges.map(|row| key_weight(row[0]))),
            (ValueColumn::U32(_), _) => {}
        }
    }

    /// Becomes `count` elements, whatever they are.
    pub(crate) fn resize(&mut self, count: usize) {
        match self {
            ValueColumn::F32(values) => values.resize(count, 0.0),
            ValueColumn::F64(values) => values.resize(count, 0.0),
            ValueColumn::U32(values) => values.resize(count, 0),
            ValueColumn::U64(values) => values.resize(count, 0),
            ValueColumn::Edges(rows) => rows.resize(count, NO_EDGE),
        }
    }

    /// Puts each element of `other`, which is of the same kind, to its place, where there is such a place.
    pub(super) fn place(&mut self, other: &ValueColumn, places: impl Iterator<Item = u64>) {
        match (self, other) {
            (ValueColumn::F32(values), ValueColumn::F32(more)) => place(values, more, places),
            (ValueColumn::F64(values), ValueColumn::F64(more)) => place(values, more, places),
            (ValueColumn::U32(values), ValueColumn::U32(more)) => place(values, more, places),
            (ValueColumn::U64(values), ValueColumn::U64(more)) => place(values, more, places),
            (ValueColumn::Edges(rows), ValueColumn::Edges(more)) => place(rows, more, places),
            _ => {}
        }
    }

    /// Calls `each` with the weight of each row that is an edge.
    pub(crate) fn each_weight(&self, each: impl FnMut(f64)) {
        if let ValueColumn::Edges(rows) = self {
            let edges = rows.iter().filter(|row| holds_edge(row));
            edges.map(|row| key_weight(row[0])).for_each(each);
        }
    }

    /// Whether elements of both are of the same kind.
    pub(super) fn is_like(&self, other: &ValueColumn) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }

    /// Whether element number `row` of integers says that there is no value.
    #[inline]
    pub(super) fn is_null(&self, row: usize) -> bool {
        match self {
            ValueColumn::U32(values) => values[row] == u32::MAX,
            ValueColumn::U64(values) => values[row] == u64::MAX,
            ValueColumn::F32(_) | ValueColumn::F64(_) => false,
            ValueColumn::Edges(rows) => !holds_edge(&rows[row]),
        }
    }

    /// Replaces element number `row` of integers; the number fits.
    pub(super) fn set_integer(&mut self, row: usize, number: u64) {
        match self {
            ValueColumn::U32(values) => values[row] = number as u32,
            ValueColumn::U64(values) => values[row] = number,
            ValueColumn::F32(_) | ValueColumn::F64(_) | ValueColumn::Edges(_) => {}
        }
    }

    /// Element number `row` of integers.
    #[inline]
    pub(super) fn integer(&self, row: usize) -> u64 {
        match self {
            ValueColumn::U32(values) => u64::from(values[row]),
            ValueColumn::U64(values) => values[row],
            ValueColumn::F32(_) | ValueColumn::F64(_) | ValueColumn::Edges(_) => 0,
        }
    }

    /// Returns which elements are values: not infinite floats, not the greatest integer.
    pub(super) fn reached(&self, rows: Range<usize>) -> Vec<bool> {
        match self {
            ValueColumn::F32(values) => differ(&values[rows], f32::INFINITY),
            ValueColumn::F64(values) => differ(&values[rows], f64::INFINITY),
            ValueColumn::U32(values) => differ(&values[rows], u32::MAX),
            ValueColumn::U64(values) => differ(&values[rows], u64::MAX),
            ValueColumn::Edges(edges) => edges[rows].iter().map(holds_edge).collect(),
        }
    }
}

/// Returns which values are not `none`.
fn differ<T: PartialEq>(values: &[T], none: T) -> Vec<bool> {
    values.iter().map(|value| *value != none).collect()
}

fn add<T: Copy>(values: &mut Vec<T>, more: &[T], marks: &[bool]) {
    if marks.is_empty() {
        return values.extend_from_slice(more);
    }
    let marked = more.iter().zip(marks).filter(|row| *row.1);
    values.extend(marked.map(|row| *row.0));
}

fn place<T: Copy>(values: &mut [T], more: &[T], places: impl Iterator<Item = u64>) {
    for (value, place) in more.iter().zip(places) {
        if let Some(to) = values.get_mut(place as usize) {
            *to = *value;
        }
    }
}
