//! The values of some vertices as they are in a vertex array.

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

impl ValueColumn {
    pub(crate) fn empty(array: &Array) -> ValueColumn {
        match array {
            Array::F32(_) => ValueColumn::F32(Vec::new()),
            Array::F64(_) => ValueColumn::F64(Vec::new()),
            Array::U32(_) | Array::Vertex32(_) => ValueColumn::U32(Vec::new()),
            Array::U64(_) | Array::Vertex64(_) => ValueColumn::U64(Vec::new()),
        }
    }

    /// No elements of the kind of `other`.
    pub(super) fn like(other: &ValueColumn) -> ValueColumn {
        match other {
            ValueColumn::F32(_) => ValueColumn::F32(Vec::new()),
            ValueColumn::F64(_) => ValueColumn::F64(Vec::new()),
            ValueColumn::U32(_) => ValueColumn::U32(Vec::new()),
            ValueColumn::U64(_) => ValueColumn::U64(Vec::new()),
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
        match (self, array) {
            (ValueColumn::F32(values), Array::F32(array)) => {
                engine.read_batch(array, batch, values)?
            }
            (ValueColumn::F64(values), Array::F64(array)) => {
                engine.read_batch(array, batch, values)?
            }
            (ValueColumn::U32(values), Array::U32(array) | Array::Vertex32(array)) => {
                engine.read_batch(array, batch, values)?
            }
            (ValueColumn::U64(values), Array::U64(array) | Array::Vertex64(array)) => {
                engine.read_batch(array, batch, values)?
            }
            _ => {}
        }
        Ok(())
    }

    /// Adds `count` elements of `other`, which is of the same kind, from `at` on.
    pub(super) fn append(&mut self, other: &ValueColumn, at: usize, count: usize) {
        match (self, other) {
            (ValueColumn::F32(values), ValueColumn::F32(more)) => {
                values.extend_from_slice(&more[at..at + count])
            }
            (ValueColumn::F64(values), ValueColumn::F64(more)) => {
                values.extend_from_slice(&more[at..at + count])
            }
            (ValueColumn::U32(values), ValueColumn::U32(more)) => {
                values.extend_from_slice(&more[at..at + count])
            }
            (ValueColumn::U64(values), ValueColumn::U64(more)) => {
                values.extend_from_slice(&more[at..at + count])
            }
            _ => {}
        }
    }

    /// Adds those elements of `other`, which is of the same kind, from `at` on that are marked.
    pub(super) fn append_marked(&mut self, other: &ValueColumn, at: usize, marks: &[bool]) {
        match (self, other) {
            (ValueColumn::F32(values), ValueColumn::F32(more)) => {
                values.extend(marked(&more[at..], marks))
            }
            (ValueColumn::F64(values), ValueColumn::F64(more)) => {
                values.extend(marked(&more[at..], marks))
            }
            (ValueColumn::U32(values), ValueColumn::U32(more)) => {
                values.extend(marked(&more[at..], marks))
            }
            (ValueColumn::U64(values), ValueColumn::U64(more)) => {
                values.extend(marked(&more[at..], marks))
            }
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
    pub(super) fn reached(&self) -> Vec<bool> {
        match self {
            ValueColumn::F32(values) => {
                values.iter().map(|value| *value != f32::INFINITY).collect()
            }
            ValueColumn::F64(values) => {
                values.iter().map(|value| *value != f64::INFINITY).collect()
            }
            ValueColumn::U32(values) => values.iter().map(|value| *value != u32::MAX).collect(),
            ValueColumn::U64(values) => values.iter().map(|value| *value != u64::MAX).collect(),
        }
    }
}

fn marked<T: Copy>(values: &[T], marks: &[bool]) -> impl Iterator<Item = T> {
    let marked = values
        .iter()
        .zip(marks)
        .filter(|(_, is_marked)| **is_marked);
    marked.map(|(value, _)| *value)
}

fn place<T: Copy>(values: &mut [T], more: &[T], places: impl Iterator<Item = u64>) {
    for (value, place) in more.iter().zip(places) {
        if let Some(to) = values.get_mut(place as usize) {
            *to = *value;
        }
    }
}
