//! The values of some vertices as they are in a vertex array.

use std::ops::Range;

use graphmill_algorithms::OutputValues as Array;
use graphmill_engine::Engine;

use crate::error::Error;

/// Elements of a vertex array.
#[derive(Debug)]
pub(crate) enum ValueColumn {
    F32(Vec<f32>),
    F64(Vec<f64>),
    U32(Vec<u32>),
    U64(Vec<u64>),
}

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
        }
    }

    pub(super) fn len(&self) -> usize {
        match self {
            ValueColumn::F32(values) => values.len(),
            ValueColumn::F64(values) => values.len(),
            ValueColumn::U32(values) => values.len(),
            ValueColumn::U64(values) => values.len(),
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
            _ => Ok(()),
        };
        Ok(read?)
    }

    /// Adds elements of `other`, which is of the same kind: of a range all, or those that are marked.
    pub(super) fn append(&mut self, other: &ValueColumn, range: Range<usize>, marks: &[bool]) {
        match (self, other) {
            (ValueColumn::F32(values), ValueColumn::F32(more)) => add(values, &more[range], marks),
            (ValueColumn::F64(values), ValueColumn::F64(more)) => add(values, &more[range], marks),
            (ValueColumn::U32(values), ValueColumn::U32(more)) => add(values, &more[range], marks),
            (ValueColumn::U64(values), ValueColumn::U64(more)) => add(values, &more[range], marks),
            _ => {}
        }
    }

    /// Becomes `count` elements, whatever they are.
    pub(super) fn resize(&mut self, count: usize) {
        match self {
            ValueColumn::F32(values) => values.resize(count, 0.0),
            ValueColumn::F64(values) => values.resize(count, 0.0),
            ValueColumn::U32(values) => values.resize(count, 0),
            ValueColumn::U64(values) => values.resize(count, 0),
        }
    }

    /// Puts each element of `other`, which is of the same kind, to its place, where there is such a place.
    pub(super) fn place(&mut self, other: &ValueColumn, places: impl Iterator<Item = u64>) {
        match (self, other) {
            (ValueColumn::F32(values), ValueColumn::F32(more)) => place(values, more, places),
            (ValueColumn::F64(values), ValueColumn::F64(more)) => place(values, more, places),
            (ValueColumn::U32(values), ValueColumn::U32(more)) => place(values, more, places),
            (ValueColumn::U64(values), ValueColumn::U64(more)) => place(values, more, places),
            _ => {}
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
        }
    }

    /// Replaces element number `row` of integers; the number fits.
    pub(super) fn set_integer(&mut self, row: usize, number: u64) {
        match self {
            ValueColumn::U32(values) => values[row] = number as u32,
            ValueColumn::U64(values) => values[row] = number,
            ValueColumn::F32(_) | ValueColumn::F64(_) => {}
        }
    }

    /// Element number `row` of integers.
    #[inline]
    pub(super) fn integer(&self, row: usize) -> u64 {
        match self {
            ValueColumn::U32(values) => u64::from(values[row]),
            ValueColumn::U64(values) => values[row],
            ValueColumn::F32(_) | ValueColumn::F64(_) => 0,
        }
    }

    /// Returns which elements are values: not infinite floats, not the greatest integer.
    pub(super) fn reached(&self, rows: Range<usize>) -> Vec<bool> {
        match self {
            ValueColumn::F32(values) => values[rows]
                .iter()
                .map(|value| *value != f32::INFINITY)
                .collect(),
            ValueColumn::F64(values) => values[rows]
                .iter()
                .map(|value| *value != f64::INFINITY)
                .collect(),
            ValueColumn::U32(values) => values[rows]
                .iter()
                .map(|value| *value != u32::MAX)
                .collect(),
            ValueColumn::U64(values) => values[rows]
                .iter()
                .map(|value| *value != u64::MAX)
                .collect(),
        }
    }
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
