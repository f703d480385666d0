//! One superstep of a vertex program: the state that its vertices share, and their sums.

use std::any::type_name;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use graphmill_raw::lock;

use crate::error::EngineError;
use crate::program::edge::Activate;
use crate::program::vertex::{SuperstepInfo, VertexContext, VertexProgram};
use crate::value::{Accumulator, EdgeValue, Reduce};

/// What the vertices of a superstep add up, and the number of their broadcasts.
pub(crate) type AggregateSum<A> = (A, u64);

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
    /// The least vertex with a message that `IDENTITY` does not suit, and the error.
    bad_message: Mutex<Option<(u64, EngineError)>>,
}

impl SendError {
    /// Notes a message of a vertex that `IDENTITY` does not suit.
    #[cold]
    #[inline(never)]
    fn note_bad_message(&self, vertex: u64, error: impl FnOnce() -> EngineError) {
        let mut least = lock(&self.bad_message);
        if least.as_ref().is_none_or(|(known, _)| vertex < *known) {
            *least = Some((vertex, error()));
        }
    }

    /// Fails if a vertex of this rank made an illegal send.
    ///
    /// # Errors
    /// It did, and the error names it.
    pub(crate) fn check(&self, vertices: u64) -> Result<(), EngineError> {
        if self.undeclared.load(Ordering::Relaxed) {
            return Err(EngineError::UndeclaredSends);
        }
        if let Some(index) = *lock(&self.nobody) {
            return Err(EngineError::NoSuchIndex { index, vertices });
        }
        match lock(&self.bad_message).take() {
            None => Ok(()),
            Some((_, error)) => Err(error),
        }
    }
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
        let mut sends = |to, message| {
            self.check_identity(index, message);
            sends(to, message);
        };
        let mut vertex = VertexContext {
            value,
            index,
            degree,
            program: &*self.program,
            facts: &self.facts,
            broadcast: None,
            halts: false,
            aggregate: P::Aggregate::ZERO,
            sends: &mut sends,
        };
        self.program.compute(&mut vertex, message);
        let broadcast = vertex.broadcast.filter(|_| degree > 0);
        let broadcast = broadcast.filter(|message| self.is_said(index, *message));
        ComputeResult {
            broadcast,
            tally: (vertex.aggregate, broadcast.is_some().into()),
            awake: Activate::when(!vertex.halts),
        }
    }

    /// Checks that a message stays as it is when it is combined with `IDENTITY`.
    #[inline(always)]
    fn check_identity(&self, index: u64, message: P::Message) {
        let mut combined = P::IDENTITY;
        self.program.combine(&mut combined, message);
        if !combined.bit_eq(&message) {
            self.wrong
                .note_bad_message(index, || EngineError::NotIdentity {
                    program: type_name::<P>(),
                    vertex: index,
                    identity: format!("{:?}", P::IDENTITY),
                    message: format!("{message:?}"),
                    combined: format!("{combined:?}"),
                });
        }
    }

    /// Checks a broadcast; returns false if it is `IDENTITY`, which says nothing.
    #[inline(always)]
    fn is_said(&self, index: u64, message: P::Message) -> bool {
        let on_edge = self.program.on_edge(message, P::Edge::ONE);
        self.check_identity(index, message);
        self.check_identity(index, on_edge);
        let is_said = !message.bit_eq(&P::IDENTITY);
        if !is_said && !on_edge.bit_eq(&P::IDENTITY) {
            self.wrong
                .note_bad_message(index, || EngineError::BroadcastIdentity {
                    program: type_name::<P>(),
                    vertex: index,
                    identity: format!("{:?}", P::IDENTITY),
                    on_edge: format!("{on_edge:?}"),
                });
        }
        is_said
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

/// The items that passes of broadcasts share: receivers combine messages, in order of the senders.
macro_rules! combining {
    ($self:ident, $program:expr) => {
        type Edge = P::Edge;
        type Message = P::Message;
        type EdgeMessage = P::Message;
        type Accumulator = P::Message;
        const IDENTITY: P::Message = P::IDENTITY;
        const ORDER_INDEPENDENT: bool = P::ORDER_INDEPENDENT;

        #[inline(always)]
        fn on_edge(&$self, message: P::Message, edge: P::Edge) -> P::Message {
            $program.on_edge(message, edge)
        }
        #[inline(always)]
        fn fold(&$self, mail: &mut P::Message, message: P::Message) {
            $program.combine(mail, message);
        }
        #[inline(always)]
        fn merge(&$self, mail: &mut P::Message, later: P::Message) {
            $program.combine(mail, later);
        }
    };
}
pub(crate) use combining;

/// Returns the message in a mailbox, or of a broadcast.
#[inline(always)]
pub(crate) fn message_in<P: VertexProgram>(mail: P::Message) -> Option<P::Message> {
    (!mail.bit_eq(&P::IDENTITY)).then_some(mail)
}
