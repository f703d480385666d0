//! PageRank as a vertex program (Fig. 2 of the iPregel paper), with what that leaves out: the rank of vertices without outgoing
//! arcs, jumps to some vertices only, and an end when ranks no longer change.

use std::marker::PhantomData;

use graphmill_engine::{Pregel, Vertex};

use super::{Dangling, Jump, Options, Real};

/// A walker's program.
pub(super) struct Walk<R> {
    jump: Jump,
    damping: f64,
    iterations: u64,
    tolerance: Option<f64>,
    dangling: Dangling,
    real: PhantomData<fn() -> R>,
}

impl<R> Walk<R> {
    pub(super) fn new(jump: Jump, options: &Options) -> Self {
        Walk {
            jump,
            damping: options.damping,
            iterations: options.iterations.into(),
            tolerance: options.tolerance,
            dangling: options.dangling,
            real: PhantomData,
        }
    }
}

impl<R: Real> Pregel for Walk<R> {
    type Value = R;
    type Message = R;
    type Edge = ();
    /// The change of all ranks together, and the rank of vertices without outgoing arcs.
    type Aggregate = (f64, f64);
    const NOTHING: R = R::NOTHING;

    #[inline(always)]
    fn compute(&self, vertex: &mut Vertex<'_, Self>, sum: Option<R>) {
        let superstep = vertex.superstep();
        let (change, returned) = vertex.aggregated();
        // The change of a superstep is known in the next, which then leaves all as it is.
        if superstep > 1 && self.tolerance.is_some_and(|tolerance| change < tolerance) {
            vertex.vote_to_halt();
            return;
        }
        let chance = self.jump.chance(vertex.index());
        let old = vertex.value.value();
        *vertex.value = match superstep {
            0 => R::of(chance),
            _ => {
                let returned = match self.dangling {
                    Dangling::Redistribute => returned,
                    Dangling::Drop => 0.0,
                };
                let jumping = 1.0 - self.damping + self.damping * returned;
                R::of(chance * jumping + self.damping * sum.map_or(0.0, R::value))
            }
        };
        let new = vertex.value.value();
        let lost = if vertex.out_degree() == 0 { new } else { 0.0 };
        vertex.aggregate(((new - old).abs(), lost));
        if superstep < self.iterations {
            vertex.broadcast(R::of(new / vertex.out_degree() as f64));
        } else {
            vertex.vote_to_halt();
        }
    }
    #[inline(always)]
    fn combine(&self, sum: &mut R, share: R) {
        *sum = sum.plus(share);
    }
}
