//! How the messages of a foreign program become one.

use graphmill_engine::EdgeValue;

use crate::foreign_program::{ForeignCalls, ForeignType};

/// A way to fold messages.
pub(crate) trait ForeignCombine: Send + Sync + 'static {
    /// What it takes of an edge.
    type Edge: EdgeValue;
    /// The fold gives the same bits in any order.
    const EXACT: bool;
    /// It folds many edges at once.
    const MANY: bool = false;
    /// The accumulator that no message has reached; of its own folds, the calls say it.
    const IDENTITY: u64;
    /// Folds one message.
    fn fold(calls: &ForeignCalls, accumulator: &mut u64, message: u64, edge: Self::Edge);
    /// Merges a later accumulator.
    fn merge(calls: &ForeignCalls, accumulator: &mut u64, later: u64);
    /// Folds many messages.
    fn fold_edges(
        calls: &ForeignCalls,
        accumulators: &mut [u64],
        receivers: &[u32],
        messages: &[u64],
        edges: &[Self::Edge],
    ) {
        for (i, receiver) in receivers.iter().enumerate() {
            Self::fold(
                calls,
                &mut accumulators[*receiver as usize],
                messages[i],
                edges[i],
            );
        }
    }
}

/// Sums of `f64`.
pub(crate) struct SumOfFloats;

impl ForeignCombine for SumOfFloats {
    type Edge = ();
    const EXACT: bool = false;
    const IDENTITY: u64 = (-0.0_f64).to_bits();
    #[inline(always)]
    fn fold(_: &ForeignCalls, sum: &mut u64, message: u64, (): ()) {
        *sum = (f64::from_bits(*sum) + f64::from_bits(message)).to_bits();
    }
    #[inline(always)]
    fn merge(calls: &ForeignCalls, sum: &mut u64, later: u64) {
        Self::fold(calls, sum, later, ());
    }
}

/// Sums of `i64`, modulo 2^64.
pub(crate) struct SumOfIntegers;

impl ForeignCombine for SumOfIntegers {
    type Edge = ();
    const EXACT: bool = true;
    const IDENTITY: u64 = 0;
    #[inline(always)]
    fn fold(_: &ForeignCalls, sum: &mut u64, message: u64, (): ()) {
        *sum = sum.wrapping_add(message);
    }
    #[inline(always)]
    fn merge(calls: &ForeignCalls, sum: &mut u64, later: u64) {
        Self::fold(calls, sum, later, ());
    }
}

/// The least of words that [`order`] made of messages.
pub(crate) struct LeastBits;

impl ForeignCombine for LeastBits {
    type Edge = ();
    const EXACT: bool = true;
    const IDENTITY: u64 = u64::MAX;
    #[inline(always)]
    fn fold(_: &ForeignCalls, least: &mut u64, message: u64, (): ()) {
        *least = message.min(*least);
    }
    #[inline(always)]
    fn merge(calls: &ForeignCalls, least: &mut u64, later: u64) {
        Self::fold(calls, least, later, ());
    }
}

/// Returns a word that is less than another one if the number is less, or greater with `reversed`.
///
/// A NaN is beyond the infinity of its sign.
pub(super) fn order(number: u64, kind: ForeignType, reversed: bool) -> u64 {
    let is_negative = number >> 63 == 1;
    let ordered = match kind {
        ForeignType::Float if is_negative => !number,
        _ => number ^ (1 << 63),
    };
    if reversed { !ordered } else { ordered }
}

/// Returns the number that [`order`] made the word of.
pub(super) fn number(word: u64, kind: ForeignType, reversed: bool) -> u64 {
    let ordered = if reversed { !word } else { word };
    match kind {
        ForeignType::Float if ordered >> 63 == 0 => !ordered,
        _ => ordered ^ (1 << 63),
    }
}

/// A fold of the program itself, which takes a weight or nothing of an edge.
pub(crate) struct OwnFold<E>(E);

macro_rules! own_fold {
    ($edge:ty, |$edges:ident| $weights:expr) => {
        impl ForeignCombine for OwnFold<$edge> {
            type Edge = $edge;
            const EXACT: bool = false;
            const MANY: bool = true;
            const IDENTITY: u64 = 0;
            fn fold(calls: &ForeignCalls, accumulator: &mut u64, message: u64, edge: $edge) {
                let accumulator = std::slice::from_mut(accumulator);
                Self::fold_edges(calls, accumulator, &[0], &[message], &[edge]);
            }
            fn merge(calls: &ForeignCalls, accumulator: &mut u64, later: u64) {
                let functions = &calls.program.functions;
                calls.noted(functions.merge(&calls.shared, accumulator, later));
            }
            fn fold_edges(
                calls: &ForeignCalls,
                accumulators: &mut [u64],
                receivers: &[u32],
                messages: &[u64],
                $edges: &[$edge],
            ) {
                let functions = &calls.program.functions;
                let carried = (messages, $weights);
                calls.noted(functions.fold(&calls.shared, carried, receivers, accumulators));
            }
        }
    };
}
own_fold!((), |_edges| None);
own_fold!(f64, |edges| Some(edges));

#[cfg(test)]
mod tests {
    use super::{number, order};
    use crate::foreign_program::ForeignType::{Float, Integer};

    #[test]
    fn words_have_the_order_of_numbers() {
        let floats = [
            f64::NEG_INFINITY,
            -1.5,
            -0.0,
            0.0,
            1e-300,
            2.0,
            f64::INFINITY,
            f64::NAN,
        ];
        let floats = floats.map(f64::to_bits).map(|bits| (bits, Float));
        let integers = [i64::MIN, -1, 0, 1, i64::MAX];
        let integers = integers.map(i64::cast_unsigned).map(|bits| (bits, Integer));
        for reversed in [false, true] {
            for numbers in [&floats[..], &integers[..]] {
                let words = numbers
                    .iter()
                    .map(|(bits, kind)| order(*bits, *kind, reversed));
                let words: Vec<u64> = words.collect();
                assert!(words.is_sorted_by(|a, b| if reversed { a > b } else { a < b }));
                for (word, (bits, kind)) in words.iter().zip(numbers) {
                    assert_eq!(number(*word, *kind, reversed), *bits);
                }
            }
        }
    }
}
