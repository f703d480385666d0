//! Checks ranks by serial iterations, or by how little one more of them changes.

use super::rounding::Bounded;
use super::walk::PowerIteration;
use crate::check::{Violation, Weigh, bytes_of, check_value, number};

pub use super::rounding::Rounding;
pub use super::walk::Equation;

/// Accepts `ranks` only if each is within a relative `tolerance` of `iterations` serial iterations.
///
/// The iterations start from the chances of a jump (1/|V| everywhere without sources). Parallel arcs count each.
///
/// # Errors
/// The first [`Violation`] found.
pub fn check_iterations<A: Weigh>(
    vertices: u64,
    arcs: &[A],
    equation: Equation<'_>,
    iterations: u32,
    ranks: &[f64],
    tolerance: f64,
) -> Result<(), Violation> {
    let walk = PowerIteration::new(vertices, arcs, equation, ranks.len())?;
    let mut expected = walk.start.clone();
    for _ in 0..iterations {
        expected = walk.step(&expected);
    }
    for (vertex, (&found, expected)) in ranks.iter().zip(expected).enumerate() {
        let close = (found - expected).abs() <= tolerance * expected.abs();
        let values = [Some(found), Some(expected)];
        let rule = "the rank by serial iterations";
        check_value(close, vertex, values, number, rule)?;
    }
    Ok(())
}

/// When a run ends.
#[derive(Debug, Clone, Copy)]
pub struct Ending {
    /// The greatest number of iterations.
    pub iterations: u32,
    /// As soon as an iteration changes all ranks together by less than this.
    pub tolerance: Option<f64>,
}

/// Accepts `ranks` only if they match serial iterations that end as `ending` says, up to rounding.
///
/// The bound on rounding errors is computed vertex by vertex. So the error of a hub's long sum is allowed to the hub and to the vertices
/// that its score reaches, and to no other. Parallel arcs count each.
///
/// If the change of an iteration is so close to the tolerance that rounding decides whether the run ended there, both results are accepted.
///
/// # Errors
/// The first [`Violation`] found.
pub fn check_run<A: Weigh>(
    vertices: u64,
    arcs: &[A],
    equation: Equation<'_>,
    ending: Ending,
    ranks: &[f64],
    rounding: Rounding,
) -> Result<(), Violation> {
    let walk = PowerIteration::new(vertices, arcs, equation, ranks.len())?;
    let mut expected = Bounded::new(&walk, rounding);
    for _ in 0..ending.iterations {
        let (change, doubt) = expected.step();
        let Some(tolerance) = ending.tolerance else {
            continue;
        };
        if change + doubt < tolerance {
            break;
        }
        if change - doubt < tolerance && expected.check(ranks).is_ok() {
            return Ok(());
        }
    }
    expected.check(ranks)
}

/// Bytes of memory of [`check_run`], without arcs and scores.
pub(crate) fn bytes(vertices: u64, _: u64) -> u64 {
    // Out-degrees, their weights and chances of a jump, and the five lists of the bound.
    bytes_of(&[(vertices.saturating_mul(8), size_of::<u64>())])
}

/// Accepts `ranks` only if one more iteration changes them by at most `tolerance` in total.
///
/// The change is the sum of absolute differences. As an iteration shrinks any error by `damping`, the scores are then within
/// `tolerance * damping / (1 - damping)` of the fixed point after that iteration.
///
/// # Errors
/// The first [`Violation`] found.
pub fn check_fixed_point<A: Weigh>(
    vertices: u64,
    arcs: &[A],
    equation: Equation<'_>,
    ranks: &[f64],
    tolerance: f64,
) -> Result<(), Violation> {
    let walk = PowerIteration::new(vertices, arcs, equation, ranks.len())?;
    let next = walk.step(ranks);
    let both = ranks.iter().zip(next);
    let change: f64 = both.map(|(rank, next)| (rank - next).abs()).sum();
    match change <= tolerance {
        true => Ok(()),
        false => Err(Violation::Whole {
            what: "the change of all ranks by one more iteration",
            found: change.to_string(),
            allowed: tolerance.to_string(),
        }),
    }
}
