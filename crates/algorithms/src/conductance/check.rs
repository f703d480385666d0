//! Checks a conductance by counting the arcs again, one by one, and by the sums that must hold between the numbers.

use crate::check::{Violation, ViolationValue, Weigh, number};
use crate::conductance::COLUMNS;

/// Bytes of memory of [`check_row`] without arcs: none that grow.
pub(crate) fn bytes(_: u64, _: u64) -> u64 {
    0
}

/// A sum with the bound on its rounding errors.
#[derive(Clone, Copy, Default)]
struct BoundedSum {
    sum: f64,
    /// What additions lost, so that the sum is nearly exact.
    lost: f64,
    sizes: f64,
    count: f64,
}

impl BoundedSum {
    fn add(&mut self, value: f64) {
        let sum = self.sum + value;
        let part = sum - self.sum;
        self.lost += (self.sum - (sum - part)) + (value - part);
        self.sum = sum;
        self.sizes += value.abs();
        self.count += 1.0;
    }

    fn value(&self) -> f64 {
        self.sum + self.lost
    }

    /// Bounds the error of adding the same values in any other order.
    fn bound(&self) -> f64 {
        (self.count + 4.0) * f64::EPSILON * self.sizes
    }
}

/// Accepts a row only if it is what the arcs say.
///
/// Its numbers are the cut, the volume of the set, the volume of the rest, and the conductance.
/// Counts of arcs must be equal, sums of weights may differ by rounding.
///
/// # Errors
/// The first [`Violation`] found.
pub fn check_row<A: Weigh>(
    arcs: &[A],
    is_member: impl Fn(u64) -> bool,
    is_directed: bool,
    found: &[Option<f64>; 4],
) -> Result<(), Violation> {
    let [mut cut, mut volume, mut volume_rest] = [BoundedSum::default(); 3];
    for arc in arcs {
        let ((source, destination), amount) = (arc.ends(), arc.weight());
        let from = is_member(source as u64);
        match from {
            true => volume.add(amount),
            false => volume_rest.add(amount),
        }
        if from != is_member(destination as u64) && (from || is_directed) {
            cut.add(amount);
        }
    }
    for (place, sum) in [cut, volume, volume_rest].iter().enumerate() {
        let allowed = if A::WEIGHTED { sum.bound() } else { 0.0 };
        compare(place, found[place], Some(sum.value()), allowed)?;
    }
    let smaller = match volume.value() <= volume_rest.value() {
        true => volume,
        false => volume_rest,
    };
    let expected = (smaller.value() != 0.0).then(|| cut.value() / smaller.value());
    let share = (cut.bound() + expected.unwrap_or(0.0).abs() * smaller.bound()) / smaller.value();
    let rounding = 4.0 * f64::EPSILON * expected.unwrap_or(0.0).abs();
    let allowed = if A::WEIGHTED {
        2.0 * share.abs() + rounding
    } else {
        rounding
    };
    compare(3, found[3], expected, allowed)
}

/// Fails unless a number is the expected one, or within `allowed` of it.
fn compare(
    place: usize,
    found: Option<f64>,
    expected: Option<f64>,
    allowed: f64,
) -> Result<(), Violation> {
    let is_right = match (found, expected) {
        (Some(found), Some(expected)) => (found - expected).abs() <= allowed,
        (None, None) => true,
        _ => false,
    };
    if is_right {
        return Ok(());
    }
    let [found, expected] =
        [found, expected].map(|value| value.map_or(ViolationValue::Nothing, number));
    Err(Violation::Column {
        column: COLUMNS[place],
        found,
        expected,
    })
}
