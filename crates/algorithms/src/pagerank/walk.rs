//! The equation that ranks satisfy, and one serial iteration of it.

use super::options::Dangling;
use crate::check::{Violation, Weigh, check_shape, check_vertex};

/// The equation that ranks have to satisfy.
#[derive(Debug, Clone, Copy)]
pub struct Equation<'a> {
    /// The chance to follow an arc rather than to jump, 0 to 1; commonly 0.85.
    pub damping: f64,
    /// The treatment of the score of vertices without outgoing arcs.
    pub dangling: Dangling,
    /// The vertices that jumps lead to, with equal chance; if empty, jumps lead to any vertex.
    ///
    /// A vertex named twice counts once.
    pub sources: &'a [u64],
    /// Values of 0 or more, in proportion to which jumps lead to vertices; they count instead of `sources`.
    pub jumps: Option<&'a [f64]>,
    /// The same for the score of vertices without outgoing arcs; `None`: it goes where jumps lead.
    pub returns: Option<&'a [f64]>,
    /// The same for the first scores; `None`: they are the chances of a jump.
    pub start: Option<&'a [f64]>,
}

/// The common one: jumps to any vertex with a chance of 0.15, and when there is no arc to follow.
impl Default for Equation<'_> {
    fn default() -> Self {
        Equation {
            damping: 0.85,
            dangling: Dangling::Redistribute,
            sources: &[],
            jumps: None,
            returns: None,
            start: None,
        }
    }
}

/// The checked input of an iteration.
pub(super) struct PowerIteration<'a, A> {
    pub(super) arcs: &'a [A],
    pub(super) equation: Equation<'a>,
    pub(super) out_degrees: Vec<u64>,
    /// The weights of the arcs out of each vertex together: 0 where it is a sink.
    pub(super) out_weights: Vec<f64>,
    /// The chance that a jump leads to each vertex.
    pub(super) jump: Vec<f64>,
    /// The share of the returning mass of each vertex.
    pub(super) returns: Vec<f64>,
    /// The first scores.
    pub(super) start: Vec<f64>,
}

impl<'a, A: Weigh> PowerIteration<'a, A> {
    pub(super) fn new(
        vertices: u64,
        arcs: &'a [A],
        equation: Equation<'a>,
        values: usize,
    ) -> Result<PowerIteration<'a, A>, Violation> {
        let ends = arcs.iter().map(|arc| arc.ends());
        check_shape(vertices, values, ends.map(|(u, v)| (u as u64, v as u64)))?;
        if !(0.0..=1.0).contains(&equation.damping) {
            return Err(Violation::Input {
                what: "the damping",
                found: equation.damping.to_string(),
                expected: "0 to 1",
            });
        }
        let is_anywhere = equation.sources.is_empty();
        let mut jump = vec![if is_anywhere { 1.0 } else { 0.0 }; values];
        for &source in equation.sources {
            check_vertex("a source", source, vertices)?;
            jump[source as usize] = 1.0;
        }
        let scaled = |values: &[f64]| -> Vec<f64> {
            let sum: f64 = values.iter().sum();
            values.iter().map(|value| value / sum).collect()
        };
        let jump = scaled(equation.jumps.unwrap_or(&jump));
        let returns = equation.returns.map_or_else(|| jump.clone(), scaled);
        let start = equation.start.map_or_else(|| jump.clone(), scaled);
        let (mut out_degrees, mut out_weights) = (vec![0; values], vec![0.0; values]);
        for arc in arcs {
            let (weight, u) = (arc.weight(), arc.ends().0);
            if !(weight >= 0.0 && weight.is_finite()) {
                return Err(Violation::Input {
                    what: "a weight",
                    found: weight.to_string(),
                    expected: "a number of 0 or more",
                });
            }
            out_degrees[u] += 1;
            out_weights[u] += weight;
        }
        Ok(PowerIteration {
            arcs,
            equation,
            out_degrees,
            out_weights,
            jump,
            returns,
            start,
        })
    }

    /// Returns the roundings by which vectors of the user become chances.
    pub(super) fn vector_roundings(&self) -> u64 {
        let of = self.equation;
        match of.jumps.or(of.returns).or(of.start) {
            None => 0,
            Some(values) => values.len() as u64 + 2,
        }
    }

    /// One iteration.
    pub(super) fn step(&self, ranks: &[f64]) -> Vec<f64> {
        let damping = self.equation.damping;
        let sinks = ranks.iter().zip(&self.out_weights);
        let sinks = sinks.filter(|(_, weights)| **weights == 0.0);
        let lost: f64 = match self.equation.dangling {
            Dangling::Drop => 0.0,
            Dangling::Redistribute => sinks.map(|(rank, _)| rank).sum(),
        };
        let mut arrived = vec![0.0; ranks.len()];
        for arc in self.arcs {
            let (u, v) = arc.ends();
            arrived[v] += share(ranks[u], *arc, self.out_weights[u]);
        }
        let chances = self.jump.iter().zip(&self.returns);
        let new = |(arrived, (jump, returns)): (f64, (&f64, &f64))| {
            (1.0 - damping) * jump + damping * (arrived + lost * returns)
        };
        arrived.into_iter().zip(chances).map(new).collect()
    }
}

/// Returns the share of a score that an arc carries, if its source's weights sum to `weights`.
///
/// The share is 0 if they sum to 0.
pub(super) fn share(score: f64, arc: impl Weigh, weights: f64) -> f64 {
    match weights > 0.0 {
        true => score / weights * arc.weight(),
        false => 0.0,
    }
}
