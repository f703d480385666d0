//! Serial iterations beside a bound on what rounding can have done to the ranks of a run, vertex by vertex.
//!
//! All that is added is 0 or more, so a sum of n numbers, in whatever order, is off by n units of rounding of itself at the most
//! (Higham, Accuracy and Stability of Numerical Algorithms, 2nd edition, section 4.2); a product or a quotient by one. What a
//! vertex is off is shared out along its arcs like its rank, damped like it, and the roundings of the next sum come on top.

use super::Dangling;
use super::judge::Walk;
use crate::judge::{Objection, wrong};

/// How much the numbers of a run are rounded, those of the judge, which have 64 bits, included.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rounding {
    /// Share of a number that one rounding changes at the most.
    unit: f64,
    /// The least number above 0: what a rounding may change where numbers are so small that they lose digits.
    least: f64,
}

impl Rounding {
    /// Of a run with 32 bits.
    pub const F32: Rounding = Rounding {
        unit: (f32::EPSILON as f64 + f64::EPSILON) / 2.0,
        least: f32::MIN_POSITIVE as f64 * f32::EPSILON as f64,
    };
    /// Of a run with 64 bits.
    pub const F64: Rounding = Rounding {
        unit: f64::EPSILON,
        least: f64::MIN_POSITIVE * f64::EPSILON,
    };

    /// The share of a result that so many roundings one after the other change at the most.
    fn of(self, roundings: u64) -> f64 {
        let share = roundings as f64 * self.unit;
        if share < 0.5 {
            share / (1.0 - share)
        } else {
            // So long a sum may lose all that is added late.
            1.0
        }
    }
}

/// Ranks after some iterations, each with how far off a run's may be.
pub(super) struct Bounded<'w> {
    walk: &'w Walk<'w>,
    rounding: Rounding,
    in_degrees: Vec<u64>,
    ranks: Vec<f64>,
    errors: Vec<f64>,
    /// What an iteration brings to each vertex, and how far off that may be.
    arrived: Vec<f64>,
    arrived_errors: Vec<f64>,
}

impl<'w> Bounded<'w> {
    /// Before the first iteration.
    pub(super) fn new(walk: &'w Walk<'w>, rounding: Rounding) -> Bounded<'w> {
        let vertices = walk.jump.len();
        let mut in_degrees = vec![0; vertices];
        for arc in walk.arcs {
            in_degrees[arc.1 as usize] += 1;
        }
        let error = |chance: &f64| rounding.of(2) * chance + rounding.least;
        Bounded {
            walk,
            rounding,
            in_degrees,
            ranks: walk.jump.clone(),
            errors: walk.jump.iter().map(error).collect(),
            arrived: vec![0.0; vertices],
            arrived_errors: vec![0.0; vertices],
        }
    }

    /// One iteration; the change of all ranks together, and how far off that may be in a run.
    pub(super) fn step(&mut self) -> (f64, f64) {
        let Walk {
            arcs,
            equation,
            out_degrees,
            jump,
        } = self.walk;
        let (rounding, damping) = (self.rounding, equation.damping);
        // The mass that returns, and all changes, are summed in 64 bits whatever the ranks have.
        let all = Rounding::F64.of(self.ranks.len() as u64 + 2);
        let (mut lost, mut lost_error) = (0.0, 0.0);
        if equation.dangling == Dangling::Redistribute {
            for (vertex, _) in out_degrees.iter().enumerate().filter(|out| *out.1 == 0) {
                lost += self.ranks[vertex];
                lost_error += self.errors[vertex];
            }
        }
        lost_error += all * (lost + lost_error);

        self.arrived.fill(0.0);
        self.arrived_errors.fill(0.0);
        for &(u, v) in *arcs {
            let (u, v) = (u as usize, v as usize);
            let degree = out_degrees[u] as f64;
            self.arrived[v] += self.ranks[u] / degree;
            self.arrived_errors[v] += self.errors[u] / degree;
        }

        let (mut change, mut doubt) = (0.0, 0.0);
        for (vertex, &jump) in jump.iter().enumerate() {
            let (arrived, error) = (self.arrived[vertex], self.arrived_errors[vertex]);
            // The shares are rounded, then their sum.
            let roundings = self.in_degrees[vertex] + 2;
            let rank = (1.0 - damping) * jump + damping * (arrived + lost * jump);
            let arrived_error = error + rounding.of(roundings) * (arrived + error);
            // Eight operations make the rank of the sums.
            let error = damping * (arrived_error + lost_error * jump)
                + rounding.of(8) * rank
                + rounding.least * roundings as f64;
            change += (rank - self.ranks[vertex]).abs();
            doubt += error + self.errors[vertex];
            self.ranks[vertex] = rank;
            self.errors[vertex] = error;
        }
        (change, doubt + all * (change + doubt))
    }

    /// Accepts `ranks` only if none is further off than rounding can have led it.
    pub(super) fn check(&self, ranks: &[f64]) -> Result<(), Objection> {
        for (vertex, (&found, &expected)) in ranks.iter().zip(&self.ranks).enumerate() {
            // A thousandth more, for the roundings of the bound itself.
            let allowed = 1.001 * self.errors[vertex];
            let is_close = (found - expected).abs() <= allowed;
            if !is_close {
                return Err(wrong(
                    vertex,
                    Some(found),
                    Some(expected),
                    "the rank by serial iterations, but for rounding",
                ));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::judge::{Ending, Equation, judge_run};
    use super::*;
    use crate::judge::odd;

    /// Ranks in 32 bits, arcs added up from the last to the first: the formula of the run in another order than the judge's. It ends
    /// as a run does; the second number is how many iterations that took.
    fn narrow(
        vertices: u64,
        arcs: &[(u64, u64)],
        equation: Equation<'_>,
        ending: Ending,
    ) -> (Vec<f64>, u32) {
        let n = vertices as usize;
        let walk = Walk::new(vertices, arcs, equation, n).expect("a graph");
        let mut ranks: Vec<f32> = walk.jump.iter().map(|chance| *chance as f32).collect();
        let mut done = 0;
        while done < ending.iterations {
            let lost: f64 = (0..n)
                .filter(|v| {
                    walk.out_degrees[*v] == 0 && equation.dangling == Dangling::Redistribute
                })
                .map(|v| f64::from(ranks[v]))
                .sum();
            let mut sums = vec![0.0_f32; n];
            for &(u, v) in arcs.iter().rev() {
                let u = u as usize;
                sums[v as usize] += (f64::from(ranks[u]) / walk.out_degrees[u] as f64) as f32;
            }
            let jumping = 1.0 - equation.damping + equation.damping * lost;
            let new: Vec<f32> = (0..n)
                .map(|v| (walk.jump[v] * jumping + equation.damping * f64::from(sums[v])) as f32)
                .collect();
            let change: f64 = (0..n).map(|v| f64::from((new[v] - ranks[v]).abs())).sum();
            ranks = new;
            done += 1;
            if ending.tolerance.is_some_and(|tolerance| change < tolerance) {
                break;
            }
        }
        (ranks.into_iter().map(f64::from).collect(), done)
    }

    #[test]
    fn what_32_bits_round_is_allowed_to_them_and_no_more() {
        let sum = |leaves: u64| (1..leaves).map(|v| (v, 0)).collect();
        let mut graphs = odd::graphs();
        graphs.push(("a hub", 20_000, sum(20_000)));
        for (name, vertices, arcs) in graphs {
            for (sources, iterations) in [(&[][..], 20), (&[0][..], 7), (&[][..], 0)] {
                let equation = Equation {
                    sources,
                    ..Equation::default()
                };
                let ending = Ending {
                    iterations,
                    tolerance: None,
                };
                let (right, _) = narrow(vertices, &arcs, equation, ending);
                let judge = |ranks: &[f64], rounding| {
                    judge_run(vertices, &arcs, equation, ending, ranks, rounding)
                };
                assert_eq!(judge(&right, Rounding::F32), Ok(()), "{name}");
                // What the longest sum may lose comes back to everyone as mass that returns.
                let mut sums = vec![0; vertices as usize];
                arcs.iter().for_each(|arc| sums[arc.1 as usize] += 1);
                let longest: u32 = sums.into_iter().max().unwrap_or(0);
                let share = 1e-4 + 6e-7 * f64::from(longest);
                for vertex in (0..right.len()).step_by(1 + right.len() / 20) {
                    for share in [share, -share] {
                        let mut ranks = right.clone();
                        ranks[vertex] += share * ranks[vertex] + 1e-12 * share.signum();
                        assert!(judge(&ranks, Rounding::F32).is_err(), "{name}: {vertex}");
                    }
                }
            }
        }
    }

    #[test]
    fn ranks_of_32_bits_are_no_ranks_of_64() {
        let arcs: Vec<(u64, u64)> = (0..99).map(|v| (v, v / 2)).collect();
        let ending = Ending {
            iterations: 20,
            tolerance: None,
        };
        let (ranks, _) = narrow(99, &arcs, Equation::default(), ending);
        let judge = |rounding| judge_run(99, &arcs, Equation::default(), ending, &ranks, rounding);
        assert_eq!(judge(Rounding::F32), Ok(()));
        assert!(judge(Rounding::F64).is_err());
    }

    #[test]
    fn a_run_that_converged_is_judged_by_where_it_ended() {
        let arcs: Vec<(u64, u64)> = (0..99).map(|v| (v, (v * v + 3) % 99)).collect();
        for tolerance in [1e-1, 1e-3, 1e-5, 1e-7, 1e-12] {
            let ending = Ending {
                iterations: 300,
                tolerance: Some(tolerance),
            };
            let (ranks, done) = narrow(99, &arcs, Equation::default(), ending);
            let judge = |ranks: &[f64]| {
                judge_run(99, &arcs, Equation::default(), ending, ranks, Rounding::F32)
            };
            assert_eq!(judge(&ranks), Ok(()), "{tolerance}, {done}");
            let mut wrong = ranks.clone();
            wrong[3] *= 1.001;
            assert!(judge(&wrong).is_err(), "{tolerance}");
            if tolerance > 1e-4 {
                for iterations in [done - 1, done + 1] {
                    let other = Ending {
                        iterations,
                        tolerance: None,
                    };
                    let (other, _) = narrow(99, &arcs, Equation::default(), other);
                    assert!(
                        judge(&other).is_err(),
                        "{tolerance}: {iterations} for {done}"
                    );
                }
            }
        }
    }

    #[test]
    fn the_empty_graph_has_no_rank_that_could_be_wrong() {
        let ending = Ending {
            iterations: 5,
            tolerance: Some(1e-3),
        };
        assert_eq!(
            judge_run(0, &[], Equation::default(), ending, &[], Rounding::F64),
            Ok(())
        );
    }
}
