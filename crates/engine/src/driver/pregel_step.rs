//! One superstep of a vertex program: the state that its vertices share, and their sums.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use graphmill_raw::lock;

use crate::program::edge::Activate;
use crate::program::vertex::{SuperstepInfo, VertexContext, VertexProgram};
use crate::value::{Accumulator, Reduce};

/// The sums over the vertices of a superstep.
#[derive(Clone, Copy)]
pub(crate) struct AggregateSum<A> {
    pub(crate) aggregate: A,
    pub(crate) broadcasts: u64,
}

impl<A: Reduce> Reduce for AggregateSum<A> {
    const ZERO: Self = AggregateSum {
        aggregate: A::ZERO,
        broadcasts: 0,
    };
    #[inline(always)]
    fn add(&mut self, later: Self) {
        self.aggregate.add(later.aggregate);
        self.broadcasts += later.broadcasts;
    }
    fn put(&self, to: &mut Vec<u8>) {
        self.aggregate.put(to);
        self.broadcasts.put(to);
    }
    fn take(from: &mut &[u8]) -> Option<Self> {
        Some(AggregateSum {
            aggregate: A::take(from)?,
            broadcasts: u64::take(from)?,
        })
    }
}

/// A program in one superstep.
pub(crate) struct PregelStep<P: VertexProgram> {
    pub(crate) program: Arc<P>,
    pub(crate) facts: SuperstepInfo<P::Aggregate>,
    pub(crate) wrong: Arc<SendError>,
}

/// An illegal send of a program.
#[derive(Default)]
pub(crate) struct SendError {
    /// It sent a message and had not said that it sends any.
    pub(crate) undeclared: AtomicBool,
    /// The least index that it sent a message to and that is no vertex's.
    pub(crate) nobody: Mutex<Option<u64>>,
}

impl<P: VertexProgram> Clone for PregelStep<P> {
    fn clone(&self) -> Self {
        PregelStep {
            program: Arc::clone(&self.program),
            facts: self.facts,
            wrong: Arc::clone(&self.wrong),
        }
    }
}

/// The actions of a vertex in a superstep.
pub(crate) struct ComputeResult<P: VertexProgram> {
    pub(crate) broadcast: Option<P::Message>,
    pub(crate) tally: AggregateSum<P::Aggregate>,
    pub(crate) awake: Activate,
}

impl<P: VertexProgram> PregelStep<P> {
    #[inline(always)]
    pub(crate) fn compute(
        &self,
        index: u64,
        value: &mut P::Value,
        degree: u64,
        message: Option<P::Message>,
        sends: &mut dyn FnMut(u64, P::Message),
    ) -> ComputeResult<P> {
        let mut vertex = VertexContext {
            value,
            index,
            degree,
            facts: &self.facts,
            broadcast: None,
            halts: false,
            aggregate: P::Aggregate::ZERO,
            sends,
        };
        self.program.compute(&mut vertex, message);
        let broadcast = vertex
            .broadcast
            .filter(|message| degree > 0 && !message.bit_eq(&P::IDENTITY));
        ComputeResult {
            broadcast,
            tally: AggregateSum {
                aggregate: vertex.aggregate,
                broadcasts: u64::from(broadcast.is_some()),
            },
            awake: Activate::when(!vertex.halts),
        }
    }

    /// Takes a message of a program that had not said that it sends any.
    pub(crate) fn refuse(&self) -> impl FnMut(u64, P::Message) + '_ {
        |_, _| self.wrong.undeclared.store(true, Ordering::Relaxed)
    }
    /// Takes a message to a vertex that there is not.
    pub(crate) fn nobody(&self, to: u64) {
        let mut nobody = lock(&self.wrong.nobody);
        *nobody = Some(nobody.map_or(to, |least| least.min(to)));
    }
}
