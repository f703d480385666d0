//! The values that programs compute with: weights and records of edges, accumulators and sums.

use graphmill_graph::{EdgeKind, FieldType};
use graphmill_raw::Element;

/// An edge's value as a program sees it.
pub trait EdgeValue: Copy + Send + Sync + 'static {
    /// True if the pass has to read the weights.
    const WEIGHTED: bool;
    /// The value on a graph without weights.
    const ONE: Self;
    /// The names and types of the fields of its record; none for weights.
    const FIELDS: &'static [(&'static str, FieldType)] = &[];
    /// From a stored `f32`.
    fn of_f32(weight: f32) -> Self;
    /// From a stored `f64`.
    fn of_f64(weight: f64) -> Self;
    /// From the bytes of a stored record with these [fields](EdgeValue::FIELDS).
    #[inline(always)]
    fn of_record(_record: &[u8]) -> Self {
        Self::ONE
    }
}

/// The value of edge `i`, whose data lies among `weights`, bytes as the graph keeps them.
#[inline(always)]
pub(crate) fn edge_value<E: EdgeValue>(kind: EdgeKind, weights: &[u8], i: usize) -> E {
    match kind {
        EdgeKind::F32 if E::WEIGHTED => {
            let weight = weights.as_chunks().0.get(i);
            E::of_f32(f32::from_le_bytes(weight.copied().unwrap_or_default()))
        }
        EdgeKind::F64 if E::WEIGHTED => {
            let weight = weights.as_chunks().0.get(i);
            E::of_f64(f64::from_le_bytes(weight.copied().unwrap_or_default()))
        }
        EdgeKind::Record(bytes) if !E::FIELDS.is_empty() => {
            let bytes = usize::from(bytes);
            let record = weights.get(i * bytes..(i + 1) * bytes);
            E::of_record(record.unwrap_or_default())
        }
        _ => E::ONE,
    }
}

/// The value of the edge of a record: the index of the other end, then the data.
#[inline(always)]
pub(crate) fn value_in<E: EdgeValue>(record: &[u32]) -> E {
    match record.get(1..) {
        Some(words) if !E::FIELDS.is_empty() => {
            let mut bytes = [[0; 4]; 4];
            for (bytes, word) in bytes.iter_mut().zip(words) {
                *bytes = word.to_le_bytes();
            }
            E::of_record(bytes.as_flattened())
        }
        Some([weight]) if E::WEIGHTED => E::of_f32(f32::from_bits(*weight)),
        Some([low, high]) if E::WEIGHTED => {
            E::of_f64(f64::from_bits(u64::from(*low) | u64::from(*high) << 32))
        }
        _ => E::ONE,
    }
}

/// The edges of one vertex, as adjacency lists hold them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EdgeRecords<'l> {
    pub(crate) words: &'l [u32],
    /// Words of a record.
    pub(crate) of_record: usize,
}

impl<'l> EdgeRecords<'l> {
    /// Returns the other end of each edge, and its value.
    pub(crate) fn edges<E: EdgeValue>(self) -> impl Iterator<Item = (u64, E)> + use<'l, E> {
        let edge = |record: &[u32]| (u64::from(record[0]), value_in(record));
        self.words.chunks_exact(self.of_record).map(edge)
    }
}

impl EdgeValue for () {
    const WEIGHTED: bool = false;
    const ONE: () = ();
    fn of_f32(_: f32) {}
    fn of_f64(_: f64) {}
}

impl EdgeValue for f32 {
    const WEIGHTED: bool = true;
    const ONE: f32 = 1.0;
    fn of_f32(weight: f32) -> f32 {
        weight
    }
    fn of_f64(weight: f64) -> f32 {
        weight as f32
    }
}

impl EdgeValue for f64 {
    const WEIGHTED: bool = true;
    const ONE: f64 = 1.0;
    fn of_f32(weight: f32) -> f64 {
        f64::from(weight)
    }
    fn of_f64(weight: f64) -> f64 {
        weight
    }
}

/// A value that folds messages; a bitwise comparison with the identity finds reached destinations.
pub trait Accumulator: Element {
    /// Equality of bits: `-0.0` differs from `0.0`, a NaN equals itself.
    #[inline(always)]
    fn bit_eq(&self, other: &Self) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl<T: Accumulator, const N: usize> Accumulator for [T; N] {
    #[inline(always)]
    fn bit_eq(&self, other: &Self) -> bool {
        self.iter().zip(other).all(|(one, other)| one.bit_eq(other))
    }
}

/// A value that a pass adds up, batch by batch in order.
pub trait Reduce: Copy + Send + Sync + 'static {
    /// The empty sum.
    const ZERO: Self;
    /// Adds a later summand.
    fn add(&mut self, later: Self);
    /// Appends bytes that [`Reduce::take`] makes the same of, on its way to another rank.
    fn put(&self, to: &mut Vec<u8>);
    /// Takes one off the front of bytes that [`Reduce::put`] appended; `None` where they are too few.
    fn take(from: &mut &[u8]) -> Option<Self>;
}

impl<T: Reduce, const N: usize> Reduce for [T; N] {
    const ZERO: Self = [T::ZERO; N];
    #[inline(always)]
    fn add(&mut self, later: Self) {
        self.iter_mut()
            .zip(later)
            .for_each(|(one, later)| one.add(later));
    }
    fn put(&self, to: &mut Vec<u8>) {
        self.iter().for_each(|one| one.put(to));
    }
    fn take(from: &mut &[u8]) -> Option<Self> {
        let mut all = Self::ZERO;
        for one in &mut all {
            *one = T::take(from)?;
        }
        Some(all)
    }
}

/// Numbers: when two have the same bits, their sum, and their bytes on the way to another rank.
macro_rules! numbers {
    ($($t:ty)*, $zero:literal, |$one:ident, $other:ident| $bit_eq:expr, $sum:expr) => {$(
        impl Accumulator for $t {
            #[inline(always)]
            fn bit_eq(&self, other: &Self) -> bool {
                let ($one, $other) = (*self, *other);
                $bit_eq
            }
        }
        impl Reduce for $t {
            const ZERO: Self = $zero;
            #[inline(always)]
            fn add(&mut self, later: Self) {
                let ($one, $other) = (*self, later);
                *self = $sum;
            }
            fn put(&self, to: &mut Vec<u8>) {
                to.extend_from_slice(&self.to_le_bytes());
            }
            fn take(from: &mut &[u8]) -> Option<Self> {
                let (bytes, rest) = from.split_first_chunk()?;
                *from = rest;
                Some(Self::from_le_bytes(*bytes))
            }
        }
    )*};
}
numbers!(u8 u16 u32 u64 i32 i64, 0, |a, b| a == b, a.wrapping_add(b));
numbers!(f32 f64, 0.0, |a, b| a.to_bits() == b.to_bits(), a + b);

/// The least of the values that a pass returns; the largest number, or infinity, if none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Least<T>(pub T);

/// The greatest of the values that a pass returns; the smallest number, or -infinity, if none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Greatest<T>(pub T);

/// Reductions that keep one of two numbers.
macro_rules! extremes {
    ($name:ident, $zero:ident, |$one:ident, $later:ident| $is_better:expr, $($t:ty)*) => {$(
        impl Reduce for $name<$t> {
            const ZERO: Self = $name(<$t>::$zero);
            #[inline(always)]
            fn add(&mut self, later: Self) {
                let ($one, $later) = (self.0, later.0);
                if $is_better {
                    *self = later;
                }
            }
            fn put(&self, to: &mut Vec<u8>) {
                self.0.put(to);
            }
            fn take(from: &mut &[u8]) -> Option<Self> {
                <$t>::take(from).map($name)
            }
        }
    )*};
}
extremes!(Least, MAX, |one, later| later < one, u32 u64 i32 i64);
extremes!(Greatest, MIN, |one, later| later > one, u32 u64 i32 i64);
// In the total order of IEEE 754 equal numbers have equal bits; NaN is beyond all numbers.
extremes!(Least, INFINITY, |one, later| later.total_cmp(&one).is_lt(), f32 f64);
extremes!(Greatest, NEG_INFINITY, |one, later| later.total_cmp(&one).is_gt(), f32 f64);

impl Reduce for () {
    const ZERO: () = ();
    fn add(&mut self, (): ()) {}
    fn put(&self, _: &mut Vec<u8>) {}
    fn take(_: &mut &[u8]) -> Option<()> {
        Some(())
    }
}

macro_rules! tuples {
    ($(($($t:ident $i:tt),+))*) => {$(
        impl<$($t: Reduce),+> Reduce for ($($t,)+) {
            const ZERO: Self = ($($t::ZERO,)+);
            #[inline(always)]
            fn add(&mut self, later: Self) {
                $(self.$i.add(later.$i);)+
            }
            fn put(&self, to: &mut Vec<u8>) {
                $(self.$i.put(to);)+
            }
            fn take(from: &mut &[u8]) -> Option<Self> {
                Some(($($t::take(from)?,)+))
            }
        }
    )*};
}
tuples!((A 0, B 1) (A 0, B 1, C 2));
