//! Checks beliefs by serial iterations over edges in memory, with both states of each message and sums that leave one edge out.

use super::BpOptions;
use crate::check::{Violation, bytes_of, check_value, number};

/// The difference of beliefs that is allowed in any case.
const ALLOWED: f64 = 1e-9;

/// Logarithms of the weights of both states.
type States = [f64; 2];

/// A message, and how much rounding can have changed its log odds.
#[derive(Clone, Copy, Default)]
struct Message {
    states: States,
    doubt: f64,
}

/// An edge: its ends, its weight, and the messages to the ends.
#[derive(Clone, Copy)]
struct Edge {
    ends: [u64; 2],
    weight: f64,
    messages: [Message; 2],
}

/// Bytes of memory of [`check_beliefs`] without arcs and values.
pub(crate) fn bytes(vertices: u64, arcs: u64) -> u64 {
    // An edge has two arcs. It is stored with its next messages, and each arc has a place in the order of arcs, a slot, and a message
    // of the vertex with the most edges.
    let arc = (size_of::<Edge>() + size_of::<[Message; 2]>()) / 2
        + 2 * size_of::<usize>()
        + size_of::<Message>();
    let vertex = 2 * size_of::<usize>() + size_of::<States>();
    let ends = vertex + size_of::<Message>();
    bytes_of(&[(vertices, vertex), (arcs, arc), (1, ends)])
}

/// Accepts `found` only if each value is the belief after the iterations, up to rounding.
///
/// Vertices from `vertices` on are edges: an arc leads from the source to the edge, and one from there to the destination. How rounding grows
/// from iteration to iteration is estimated edge by edge. If the change of an iteration is so close to the tolerance that rounding
/// decides whether the run ended there, both results are accepted.
///
/// # Errors
/// The first [`Violation`] found.
pub fn check_beliefs(
    vertices: u64,
    arcs: &[(u64, u64, f64)],
    prior: impl Fn(u64) -> f64,
    options: &BpOptions,
    found: &[f64],
) -> Result<(), Violation> {
    if found.len() as u64 != vertices {
        let values = found.len() as u64;
        return Err(Violation::Length { vertices, values });
    }
    let mut network = Network::new(vertices, arcs, prior)?;
    let [[a, b], [c, d]] = options.potential.map(|row| row.map(f64::ln));
    let logs = [[[a, b], [c, d]], [[a, c], [b, d]]];
    for _ in 0..options.iterations {
        let (change, doubt) = network.step(&logs);
        let Some(tolerance) = options.tolerance else {
            continue;
        };
        if change + doubt < tolerance {
            break;
        }
        if change - doubt < tolerance && network.check(found).is_ok() {
            return Ok(());
        }
    }
    network.check(found)
}

/// The edges, and where each vertex finds its own.
struct Network {
    edges: Vec<Edge>,
    /// For each vertex the end of its part of `slots`: an edge, and which end of it the vertex is.
    starts: Vec<usize>,
    slots: Vec<usize>,
    priors: Vec<States>,
    /// The messages to a vertex from one of its edges on.
    after: Vec<Message>,
}

impl Network {
    fn new(
        vertices: u64,
        arcs: &[(u64, u64, f64)],
        prior: impl Fn(u64) -> f64,
    ) -> Result<Network, Violation> {
        // Both arcs of an edge have its vertex, which comes after all others. The edge of a self-loop has no arcs.
        let mut order: Vec<usize> = (0..arcs.len()).collect();
        order.sort_unstable_by_key(|arc| (arcs[*arc].0.max(arcs[*arc].1), arcs[*arc].0));
        let mut edges = Vec::with_capacity(arcs.len() / 2);
        for pair in order.chunks(2) {
            let (to, from) = (arcs[pair[0]], arcs[pair[pair.len() - 1]]);
            let is_pair = to.0 < vertices && from.1 < vertices && to.1 >= vertices;
            if !is_pair || to.1 != from.0 {
                return Err(Violation::Input {
                    what: "an arc",
                    found: format!("{} to {}", to.0, to.1),
                    expected: "one of the two arcs of the vertex of an edge",
                });
            }
            edges.push(Edge {
                ends: [to.0, from.1],
                weight: to.2,
                messages: [Message::default(); 2],
            });
        }
        drop(order);
        let mut starts = vec![0; vertices as usize + 1];
        for end in edges.iter().flat_map(|edge| edge.ends) {
            starts[end as usize + 1] += 1;
        }
        let mut most = 0;
        for vertex in 0..vertices as usize {
            most = most.max(starts[vertex + 1]);
            starts[vertex + 1] += starts[vertex];
        }
        let mut next = starts.clone();
        let mut slots = vec![0; 2 * edges.len()];
        for (edge, of) in edges.iter().enumerate() {
            for (end, vertex) in of.ends.into_iter().enumerate() {
                slots[next[vertex as usize]] = 2 * edge + end;
                next[vertex as usize] += 1;
            }
        }
        let prior = |v| [(-prior(v)).ln_1p(), prior(v).ln()];
        Ok(Network {
            edges,
            starts,
            slots,
            priors: (0..vertices).map(prior).collect(),
            after: vec![Message::default(); most + 1],
        })
    }

    /// One iteration; returns how much the messages change, and how much of that may be rounding.
    fn step(&mut self, logs: &[[States; 2]; 2]) -> (f64, f64) {
        let mut next = vec![[Message::default(); 2]; self.edges.len()];
        let (mut change, mut doubt) = (0.0, 0.0);
        for vertex in 0..self.priors.len() {
            let slots = &self.slots[self.starts[vertex]..self.starts[vertex + 1]];
            self.after[slots.len()] = Message::default();
            for (place, slot) in slots.iter().enumerate().rev() {
                let message = self.edges[slot / 2].messages[slot % 2];
                self.after[place] = self.after[place + 1].times(message);
            }
            let mut before = Message {
                states: self.priors[vertex],
                doubt: 0.0,
            };
            for (place, slot) in slots.iter().enumerate() {
                let edge = &self.edges[slot / 2];
                // The source is end 0, and sends to end 1.
                let (from, to) = (slot % 2, 1 - slot % 2);
                let others = before.times(self.after[place + 1]);
                let message = others.over(&logs[from], edge.weight);
                let old = edge.messages[to];
                change += (message.probability() - old.probability()).abs();
                doubt += (message.doubt + old.doubt) / 4.0;
                next[slot / 2][to] = message;
                before = before.times(edge.messages[from]);
            }
        }
        for (edge, messages) in self.edges.iter_mut().zip(next) {
            edge.messages = messages;
        }
        (
            change,
            doubt + f64::EPSILON * change * self.slots.len() as f64,
        )
    }

    /// Compares the beliefs.
    fn check(&self, found: &[f64]) -> Result<(), Violation> {
        for (vertex, found) in found.iter().enumerate() {
            let mut belief = Message {
                states: self.priors[vertex],
                doubt: 0.0,
            };
            for slot in &self.slots[self.starts[vertex]..self.starts[vertex + 1]] {
                belief = belief.times(self.edges[slot / 2].messages[slot % 2]);
            }
            let expected = belief.probability();
            let is_close = (found - expected).abs() <= ALLOWED + belief.doubt / 4.0;
            let values = [Some(*found), Some(expected)];
            let rule = "the prior times the messages of its edges, after as many iterations";
            check_value(is_close, vertex, values, number, rule)?;
        }
        Ok(())
    }
}

/// The logarithm of the sum of both.
fn log_sum([one, other]: States) -> f64 {
    match one > other {
        true => one + (other - one).exp().ln_1p(),
        false => other + (one - other).exp().ln_1p(),
    }
}

impl Message {
    /// The share of state 1.
    fn probability(self) -> f64 {
        (self.states[1] - log_sum(self.states)).exp()
    }

    /// Both messages together.
    fn times(self, other: Message) -> Message {
        let states = [0, 1].map(|state| self.states[state] + other.states[state]);
        let sizes = states.iter().filter(|log| log.is_finite());
        let rounding = 4.0 * f64::EPSILON * sizes.map(|log| log.abs()).fold(0.0, f64::max);
        Message {
            states,
            doubt: self.doubt + other.doubt + rounding,
        }
    }

    /// What an edge of this weight makes of it.
    fn over(self, logs: &[States; 2], weight: f64) -> Message {
        let exponent = |from: usize, to: usize| {
            let most = super::EXPONENT_MAX;
            (weight * logs[from][to]).clamp(-most, most)
        };
        let joint = |to: usize| [0, 1].map(|from: usize| self.states[from] + exponent(from, to));
        let states = [0, 1].map(|to| log_sum(joint(to)));
        let both = log_sum(states);
        // How far the log odds follow those that came in.
        let share = |to: usize| (joint(to)[1] - states[to]).exp();
        let slope = (share(1) - share(0)).abs();
        let size = [
            exponent(0, 0),
            exponent(0, 1),
            exponent(1, 0),
            exponent(1, 1),
        ];
        let size = size.iter().fold(1.0, |most: f64, log| most.max(log.abs()));
        Message {
            states: states.map(|log| log - both),
            doubt: slope * self.doubt + 8.0 * f64::EPSILON * size,
        }
    }
}
