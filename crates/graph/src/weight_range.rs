//! From the least to the greatest weight of a graph: found out while edges are written, kept in `graph.json`.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::spec::EdgeKind;

/// The range of a graph's weights. Both ends are finite.
///
/// An infinite sum counts as the nearest 64-bit number.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WeightRange {
    /// No weight is less.
    pub least: f64,
    /// No weight is greater.
    pub greatest: f64,
}

impl WeightRange {
    /// The problem of a weight that a graph cannot have.
    pub(crate) const NOT_HELD: &str = "a weight is no number, or outside the range of graph.json";
    /// Returns the range of the little-endian weights in `bytes`; `None` if it holds none.
    ///
    /// It ignores a weight that is not a number.
    pub(crate) fn of(bytes: &[u8], kind: EdgeKind) -> Option<Self> {
        match kind {
            EdgeKind::None | EdgeKind::Record(_) => None,
            EdgeKind::F32 => {
                let weights = bytes.as_chunks().0.iter().map(|b| f32::from_le_bytes(*b));
                let ends = (f32::INFINITY, f32::NEG_INFINITY);
                let (least, greatest) =
                    weights.fold(ends, |(least, greatest), w| (w.min(least), w.max(greatest)));
                Self::between(f64::from(least), f64::from(greatest))
            }
            EdgeKind::F64 => {
                let weights = bytes.as_chunks().0.iter().map(|b| f64::from_le_bytes(*b));
                let ends = (f64::INFINITY, f64::NEG_INFINITY);
                let (least, greatest) =
                    weights.fold(ends, |(least, greatest), w| (w.min(least), w.max(greatest)));
                Self::between(least, greatest)
            }
        }
    }
    /// True if all weights that `bytes` hold are numbers in `range`; without a range any numbers are.
    pub(crate) fn holds(range: Option<Self>, bytes: &[u8], kind: EdgeKind) -> bool {
        // The ends stand for infinite weights too.
        let (least, greatest) = match range {
            Some(range) => (range.least, range.greatest),
            None => (f64::MIN, f64::MAX),
        };
        let open = |end: f64, last: f64| if end == last { last * 2.0 } else { end };
        let ends = (open(least, f64::MIN), open(greatest, f64::MAX));
        match kind {
            EdgeKind::None | EdgeKind::Record(_) => true,
            EdgeKind::F32 => {
                let ends = (ends.0 as f32, ends.1 as f32);
                let weights = bytes.as_chunks().0.iter().map(|b| f32::from_le_bytes(*b));
                weights.fold(true, |all, w| all & (w >= ends.0) & (w <= ends.1))
            }
            EdgeKind::F64 => {
                let weights = bytes.as_chunks().0.iter().map(|b| f64::from_le_bytes(*b));
                weights.fold(true, |all, w| all & (w >= ends.0) & (w <= ends.1))
            }
        }
    }
    fn between(least: f64, greatest: f64) -> Option<Self> {
        // Adding zero makes one number of the two zeros, so that it does not matter which was seen first.
        let finite = |end: f64| end.clamp(f64::MIN, f64::MAX) + 0.0;
        (least <= greatest).then_some(WeightRange {
            least: finite(least),
            greatest: finite(greatest),
        })
    }
    /// The range of the weights of both.
    pub(crate) fn join(one: Option<Self>, other: Option<Self>) -> Option<Self> {
        match (one, other) {
            (Some(one), Some(other)) => Some(WeightRange {
                least: one.least.min(other.least),
                greatest: one.greatest.max(other.greatest),
            }),
            (one, other) => one.or(other),
        }
    }
}

/// Displays `0.5 to 7`.
///
/// An end that 32 bits hold gets the digits that distinguish it from its 32-bit neighbours.
impl fmt::Display for WeightRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The shortest digits that read back, with an exponent where the number is large or small.
        let text = |weight: f64| {
            let single = weight as f32;
            if f64::from(single) == weight {
                format!("{single:?}")
            } else {
                format!("{weight:?}")
            }
        };
        write!(f, "{} to {}", text(self.least), text(self.greatest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_f32(weights: &[f32]) -> Option<WeightRange> {
        let bytes: Vec<u8> = weights.iter().flat_map(|w| w.to_le_bytes()).collect();
        WeightRange::of(&bytes, EdgeKind::F32)
    }

    #[test]
    fn weight_range_holds_weights_in_any_order() {
        assert_eq!(of_f32(&[]), None);
        assert_eq!(WeightRange::of(&[], EdgeKind::None), None);
        let range = of_f32(&[0.1, 7.0, -2.5]);
        assert_eq!(
            range.map(|range| range.to_string()).as_deref(),
            Some("-2.5 to 7.0")
        );
        assert_eq!(
            of_f32(&[0.1]).map(|range| range.to_string()).as_deref(),
            Some("0.1 to 0.1")
        );
        assert_eq!(
            WeightRange::join(of_f32(&[7.0, 0.1]), of_f32(&[-2.5])),
            range
        );
        assert_eq!(WeightRange::join(None, range), range);
        let bytes: Vec<u8> = [1e300f64, -1e-300]
            .iter()
            .flat_map(|w| w.to_le_bytes())
            .collect();
        let range = WeightRange::of(&bytes, EdgeKind::F64).unwrap();
        assert_eq!((range.least, range.greatest), (-1e-300, 1e300));
        assert_eq!(range.to_string(), "-1e-300 to 1e300");
    }

    #[test]
    fn weight_range_reports_weights_outside() {
        let holds = |range, weight: f64| {
            let is_in = WeightRange::holds(range, &weight.to_le_bytes(), EdgeKind::F64);
            let single = (weight as f32).to_le_bytes();
            assert_eq!(WeightRange::holds(range, &single, EdgeKind::F32), is_in);
            is_in
        };
        let range = Some(WeightRange {
            least: 0.0,
            greatest: 2.0,
        });
        assert!([0.0, -0.0, 0.5, 2.0].iter().all(|w| holds(range, *w)));
        let outside = [-1e-30, 2.5, f64::NAN, f64::INFINITY, f64::NEG_INFINITY];
        assert!(!outside.iter().any(|w| holds(range, *w)));
        let all = of_f32(&[f32::INFINITY, f32::NEG_INFINITY]);
        for range in [None, all] {
            let weights = [f64::INFINITY, f64::NEG_INFINITY, 1e300, -7.0];
            assert!(weights.iter().all(|w| holds(range, *w)));
            assert!(!holds(range, f64::NAN));
        }
    }

    #[test]
    fn weight_range_of_zeros_and_infinities() {
        for zeros in [[0.0, -0.0], [-0.0, 0.0]] {
            let range = of_f32(&zeros).unwrap();
            assert!(range.least.is_sign_positive() && range.greatest.is_sign_positive());
        }
        let range = of_f32(&[f32::INFINITY, f32::NEG_INFINITY]).unwrap();
        assert_eq!((range.least, range.greatest), (f64::MIN, f64::MAX));
    }
}
