//! Checks a product by going through a plain list of arcs, with sums that keep what additions lose.

use crate::check::{Violation, bytes_of, check_shape, check_value, number};

/// Bytes of memory of [`check_product`] without arcs and values.
pub(crate) fn bytes(vertices: u64, _: u64) -> u64 {
    bytes_of(&[(vertices, size_of::<[f64; 4]>())])
}

/// Accepts `found` only if each value is the sum of its products, up to what rounding can have done.
///
/// # Errors
/// The first [`Violation`] found.
pub fn check_product(
    vertices: u64,
    arcs: &[(u64, u64, f64)],
    value: impl Fn(u64) -> f64,
    is_transposed: bool,
    found: &[f64],
) -> Result<(), Violation> {
    check_shape(vertices, found.len(), arcs.iter().map(|arc| (arc.0, arc.1)))?;
    // The sum, what additions lost, the sum of sizes, and the number of products.
    let mut sums = vec![[0.0_f64; 4]; vertices as usize];
    for &(source, destination, weight) in arcs {
        let (to, from) = match is_transposed {
            true => (destination, source),
            false => (source, destination),
        };
        let product = weight * value(from);
        let [sum, lost, sizes, count] = &mut sums[to as usize];
        let next = *sum + product;
        let part = next - *sum;
        *lost += (*sum - (next - part)) + (product - part);
        *sum = next;
        *sizes += product.abs();
        *count += 1.0;
    }
    for (vertex, (&found, [sum, lost, sizes, count])) in found.iter().zip(sums).enumerate() {
        let exact = sum + lost;
        // Beyond the range of floats no bound holds.
        let expected = if exact.is_finite() { exact } else { sum };
        let allowed = (count + 2.0) * f64::EPSILON * sizes;
        let is_close = match expected.is_finite() {
            true => (found - expected).abs() <= allowed,
            false => !found.is_finite(),
        };
        let values = [Some(found), Some(expected)];
        let rule = "the sum of weights times values over its arcs";
        check_value(is_close, vertex, values, number, rule)?;
    }
    Ok(())
}
