//! Serial iterations beside a bound on what rounding can have done to the ranks of a run, vertex by vertex.
//!
//! All that is added is 0 or more, so a sum of n numbers, in whatever order, is off by n units of rounding of itself at the most
//! (Higham, Accuracy and Stability of Numerical Algorithms, 2nd edition, section 4.2); a product or a quotient by one. What a
//! vertex is off is shared out along its arcs like its rank, damped like it, and the roundings of the next sum come on top.

use super::options::Dangling;
use super::walk::{PowerIteration, share};
use crate::check::{Violation, Weigh, check_value, number};

/// The rounding of a run's numbers, and of the 64-bit numbers of the checker.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rounding {
    /// Share of a number that one rounding changes at the most.
    unit: f64,
    /// The least number above 0: the change by rounding of numbers so small that they lose digits.
    least: f64,
}

impl Rounding {
    /// The rounding of a run with 32 bits.
    pub const F32: Rounding = Rounding {
        unit: (f32::EPSILON as f64 + f64::EPSILON) / 2.0,
        least: f32::MIN_POSITIVE as f64 * f32::EPSILON as f64,
    };
    /// The rounding of a run with 64 bits.
    pub const F64: Rounding = Rounding {
        unit: f64::EPSILON,
        least: f64::MIN_POSITIVE * f64::EPSILON,
    };

    /// The rounding of a run with 64 bits whose sums have units of 2^-63.
    pub const FIXED: Rounding = Rounding {
        unit: f64::EPSILON,
        least: 1.0 / (1u64 << 63) as f64,
    };

    /// The greatest share of a result that `roundings` successive roundings change.
    fn of(self, roundings: u64) -> f64 {
        let share = roundings as f64 * self.unit;
        if share < 0.5 {
            share / (1.0 - share)
        } else {
            // A sum of that length may lose all late terms.
            1.0
        }
    }
}

/// Ranks after some iterations, each with how far off a run's may be.
pub(super) struct Bounded<'w, A> {
    walk: &'w PowerIteration<'w, A>,
    rounding: Rounding,
    in_degrees: Vec<u64>,
    ranks: Vec<f64>,
    errors: Vec<f64>,
    /// The sum of an iteration at each vertex; the next field bounds its error.
    arrived: Vec<f64>,
    arrived_errors: Vec<f64>,
}

impl<'w, A: Weigh> Bounded<'w, A> {
    /// Before the first iteration.
    pub(super) fn new(walk: &'w PowerIteration<'w, A>, rounding: Rounding) -> Bounded<'w, A> {
        let vertices = walk.jump.len();
        let mut in_degrees = vec![0; vertices];
        for arc in walk.arcs {
            in_degrees[arc.ends().1] += 1;
        }
        let vectors = Rounding::F64.of(walk.vector_roundings());
        let error = |chance: &f64| (rounding.of(2) + vectors) * chance + rounding.least;
        Bounded {
            walk,
            rounding,
            in_degrees,
            ranks: walk.start.clone(),
            errors: walk.start.iter().map(error).collect(),
            arrived: vec![0.0; vertices],
            arrived_errors: vec![0.0; vertices],
        }
    }

    /// One iteration; the change of all ranks together, and how far off that may be in a run.
    pub(super) fn step(&mut self) -> (f64, f64) {
        let walk = self.walk;
        let (rounding, damping) = (self.rounding, walk.equation.damping);
        let (out_degrees, out_weights) = (&walk.out_degrees, &walk.out_weights);
        // The mass that returns, and all changes, are summed in 64 bits whatever the ranks have.
        let all = Rounding::F64.of(self.ranks.len() as u64 + 2);
        let (mut lost, mut lost_error) = (0.0, 0.0);
        if walk.equation.dangling == Dangling::Redistribute {
            for (vertex, _) in out_weights.iter().enumerate().filter(|out| *out.1 == 0.0) {
                lost += self.ranks[vertex];
                lost_error += self.errors[vertex];
            }
        }
        lost_error += all * (lost + lost_error);

        self.arrived.fill(0.0);
        self.arrived_errors.fill(0.0);
        for arc in walk.arcs {
            let (u, v) = arc.ends();
            // Degrees are exact; weights are summed, in any order, and multiply the share.
            let of_sum = match A::WEIGHTED {
                true => Rounding::F64.of(2 * out_degrees[u] + 3) * self.ranks[u],
                false => 0.0,
            };
            self.arrived[v] += share(self.ranks[u], *arc, out_weights[u]);
            self.arrived_errors[v] += share(self.errors[u] + of_sum, *arc, out_weights[u]);
        }

        let (mut change, mut doubt) = (0.0, 0.0);
        let vectors = Rounding::F64.of(walk.vector_roundings());
        for (vertex, (&jump, &share_of_lost)) in walk.jump.iter().zip(&walk.returns).enumerate() {
            let (arrived, error) = (self.arrived[vertex], self.arrived_errors[vertex]);
            // The shares are rounded, then their sum.
            let roundings = self.in_degrees[vertex] + 2;
            let jumped = (1.0 - damping) * jump + damping * lost * share_of_lost;
            let rank = damping * arrived + jumped;
            let arrived_error = error + rounding.of(roundings) * (arrived + error);
            // Eight operations make the rank of the sums.
            let error = damping * (arrived_error + lost_error * share_of_lost)
                + rounding.of(8) * rank
                + vectors * jumped
                + rounding.least * roundings as f64;
            change += (rank - self.ranks[vertex]).abs();
            doubt += error + self.errors[vertex];
            self.ranks[vertex] = rank;
            self.errors[vertex] = error;
        }
        (change, doubt + all * (change + doubt))
    }

    /// Accepts `ranks` only if none is further off than rounding can have led it.
    pub(super) fn check(&self, ranks: &[f64]) -> Result<(), Violation> {
        for (vertex, (&found, &expected)) in ranks.iter().zip(&self.ranks).enumerate() {
            // A thousandth more, for the roundings of the bound itself.
            let allowed = 1.001 * self.errors[vertex];
            let is_close = (found - expected).abs() <= allowed;
            let values = [Some(found), Some(expected)];
            let rule = "the rank by serial iterations, but for rounding";
            check_value(is_close, vertex, values, number, rule)?;
        }
        Ok(())
    }
}
