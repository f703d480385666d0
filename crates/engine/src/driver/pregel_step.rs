//! One superstep of a vertex program: the state that its vertices share, and their sums.

use std::any::type_name;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use graphmill_raw::lock;

use crate::cache::adjacency::AdjacencyLists;
use crate::error::EngineError;
use crate::program::edge::Activate;
use crate::program::send_error::SendError;
use crate::program::vertex::{SuperstepInfo, VertexContext, VertexProgram};
use crate::value::{Accumulator, EdgeValue, Reduce};

/// What the vertices of a superstep add up, and the number of their broadcasts.
pub(crate) type AggregateSum<A> = (A, u64);

/// A program in one superstep.
pub(crate) struct PregelStep<P: VertexProgram> {
    pub(crate) program: Arc<P>,
    pub(crate) facts: SuperstepInfo<P::Aggregate>,
    pub(crate) wrong: Arc<SendError>,
    /// The edges of all vertices, if the program reads neighbours.
    pub(crate) lists: Option<Arc<AdjacencyLists>>,
}

impl<P: VertexProgram> Clone for PregelStep<P> {
    fn clone(&self) -> Self {
        PregelStep {
            program: Arc::clone(&self.program),
            facts: self.facts,
            wrong: Arc::clone(&self.wrong),
            lists: self.lists.clone(),
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
    /// Computes a vertex; `messages` are those sent to it if the program does not combine them.
    #[inline(always)]
    pub(crate) fn compute(
        &self,
        index: u64,
        value: &mut P::Value,
        degree: u64,
        (message, messages): (Option<P::Message>, &[P::Message]),
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
            messages,
            edges: (self.lists.as_ref()).map(|lists| lists.records_of(index as usize)),
            wrong: &self.wrong,
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
        if P::UNCOMBINED {
            return;
        }
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
    ///
    /// It checks `on_edge` on an edge of weight 1. With records it does not: `on_edge` may rely on their values.
    #[inline(always)]
    fn is_said(&self, index: u64, message: P::Message) -> bool {
        let on_edge = match P::Edge::FIELDS {
            [] => self.program.on_edge(message, P::Edge::ONE),
            _ => message,
        };
        self.check_identity(index, message);
        self.check_identity(index, on_edge);
        let is_said = !message.bit_eq(&P::IDENTITY);
        if !is_said && (P::UNCOMBINED || !on_edge.bit_eq(&P::IDENTITY)) {
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
    pub(crate) fn note_unknown_receiver(&self, to: u64) {
        let mut receiver = lock(&self.wrong.unknown_receiver);
        *receiver = Some(receiver.map_or(to, |least| least.min(to)));
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
