//! PageRank as a vertex program (Fig. 2 of the iPregel paper), with what that leaves out: the rank of vertices without outgoing
//! arcs, jumps to some vertices only, and an end when ranks no longer change.

use std::marker::PhantomData;

use graphmill_engine::{Reduce, VertexContext, VertexProgram};

use super::options::{Dangling, Options};
use super::score::{Real, State, lost};
use super::teleport::Teleport;

/// A walker's program.
pub(super) struct RandomWalk<R, S> {
    jump: Teleport,
    options: Options,
    real: PhantomData<fn() -> (R, S)>,
}

impl<R, S> RandomWalk<R, S> {
    pub(super) fn new(jump: Teleport, options: &Options) -> Self {
        RandomWalk {
            jump,
            options: options.clone(),
            real: PhantomData,
        }
    }
}

impl<R: Real, S: State<R>> VertexProgram for RandomWalk<R, S> {
    type Value = S;
    type Message = S::Message;
    type Edge = S::Edge;
    /// The change of all scores, the score of vertices without out-arcs, and the iterations.
    type Aggregate = ((f64, f64), u64);
    const IDENTITY: S::Message = S::Message::NOTHING;

    #[inline(always)]
    fn compute(&self, vertex: &mut VertexContext<'_, Self>, sum: Option<S::Message>) {
        let (options, superstep) = (&self.options, vertex.superstep());
        let ((change, returned), iterations) = vertex.aggregated();
        // One vertex reports the totals for all.
        let is_first = vertex.index() == 0;
        // The change of a superstep is known in the next, which then leaves all as it is.
        if superstep > 1 && (options.tolerance).is_some_and(|tolerance| change < tolerance) {
            if is_first {
                vertex.aggregate(((change, returned), iterations));
            }
            vertex.vote_to_halt();
            return;
        }
        let chance = self.jump.chance(vertex.index());
        let old = vertex.value.score().value();
        let new = match superstep {
            0 => R::of(chance),
            _ => {
                let returned = match options.dangling {
                    Dangling::Redistribute => returned,
                    Dangling::Drop => 0.0,
                };
                let jumping = 1.0 - options.damping + options.damping * returned;
                R::of(chance * jumping + options.damping * sum.map_or(0.0, S::Message::value))
            }
        };
        vertex.value.set_score(new);
        let degree = vertex.out_degree();
        let (total, lost) = (vertex.value.total(degree), lost(vertex.value, degree));
        let iterations = if is_first { superstep } else { 0 };
        vertex.aggregate((((new.value() - old).abs(), lost), iterations));
        if superstep >= options.iterations.into() {
            vertex.vote_to_halt();
        } else if total > 0.0 {
            vertex.broadcast(S::Message::of(new.value() / total));
        }
    }
    #[inline(always)]
    fn combine(&self, sum: &mut S::Message, share: S::Message) {
        sum.add(share);
    }
    #[inline(always)]
    fn on_edge(&self, share: S::Message, edge: S::Edge) -> S::Message {
        S::on_edge(share, edge)
    }
}
