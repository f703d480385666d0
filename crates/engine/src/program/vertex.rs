//! Pregel: programs written from where a vertex stands.
//!
//! The program is called for each awake vertex in each superstep, with what was sent to it in the one before. A vertex falls asleep
//! by its vote to halt, and a message wakes it; the run ends when all are asleep and nothing is on its way (Malewicz et al., SIGMOD
//! 2010; Capelli et al., iPregel).

use std::fmt::{self, Debug};

use graphmill_raw::Element;

use crate::program::send_error::SendError;
use crate::value::{Accumulator, EdgeRecords, EdgeValue, Reduce};

/// A vertex program.
///
/// ```
/// use graphmill_engine::{VertexContext, VertexProgram};
///
/// /// PageRank as in Fig. 2 of the iPregel paper.
/// struct PageRank {
///     rounds: u64,
/// }
///
/// impl VertexProgram for PageRank {
///     type Value = f64;
///     type Message = f64;
///     type Edge = ();
///     type Aggregate = ();
///     const IDENTITY: f64 = -0.0;
///
///     fn compute(&self, vertex: &mut VertexContext<'_, Self>, sum: Option<f64>) {
///         let vertices = vertex.vertices() as f64;
///         *vertex.value = match vertex.superstep() {
///             0 => 1.0 / vertices,
///             _ => 0.15 / vertices + 0.85 * sum.unwrap_or(0.0),
///         };
///         if vertex.superstep() < self.rounds {
///             vertex.broadcast(*vertex.value / vertex.out_degree() as f64);
///         } else {
///             vertex.vote_to_halt();
///         }
///     }
///     fn combine(&self, sum: &mut f64, share: f64) {
///         *sum += share;
///     }
/// }
/// ```
pub trait VertexProgram: Send + Sync + Sized + 'static {
    /// What a vertex holds.
    type Value: Element;
    /// What vertices send each other; an error about [`VertexProgram::IDENTITY`] prints messages.
    type Message: Accumulator + Debug;
    /// The edge's value: `()`, a weight as `f32` or `f64` (1 on a graph without weights), or a record.
    ///
    /// [`edge_record!`](crate::edge_record) makes a struct the record of an edge.
    type Edge: EdgeValue;
    /// The reduction that vertices of a superstep contribute to, and that all see in the next one.
    ///
    /// A number is a sum, [`Least`](crate::Least) and [`Greatest`](crate::Greatest) are a minimum and a maximum, and a tuple or array
    /// holds several reductions. The engine reduces in order of vertices, so the bits do not depend on threads or ranks.
    type Aggregate: Reduce;

    /// The content of an empty mailbox: a message that changes no other when they are combined.
    ///
    /// For a floating-point sum that is `-0.0`, for a minimum the greatest number. If messages combine to it, like +1 and -1 where
    /// it is 0, the mailbox counts as empty for [`VertexProgram::compute`] and need not wake its vertex. Choose a message that the program
    /// does not send, that [`VertexProgram::on_edge`] does not make, and that no messages combine to.
    ///
    /// The run ends with [`EngineError::NotIdentity`](crate::EngineError::NotIdentity) if a vertex sends a message that
    /// [`VertexProgram::combine`] changes when it adds the message to this value. For a broadcast, what `on_edge` makes of the message
    /// on an edge of weight 1 counts too, unless edges carry records.
    const IDENTITY: Self::Message;
    /// Combining gives the same bits in any order (integers, minimum, maximum).
    const ORDER_INDEPENDENT: bool = false;
    /// True if [`VertexContext::send`] is called.
    const SENDS: bool = false;
    /// True if [`VertexContext::messages`] returns each message of the last superstep by itself.
    ///
    /// Messages are not combined then, except two broadcasts of one vertex, and `compute` gets none. The engine uses the pull version.
    /// It keeps the mailboxes of as many batches in memory as fit, and reads the edges once for each such window. Messages of
    /// `send` must fit in memory.
    const UNCOMBINED: bool = false;
    /// True if [`VertexContext::neighbours`] is called.
    ///
    /// The adjacency lists of the graph must fit in the memory of one rank. The engine uses the pull version.
    const NEIGHBOURS: bool = false;

    /// Computes a vertex in a superstep; `message` combines the messages sent to it in the last one.
    fn compute(&self, vertex: &mut VertexContext<'_, Self>, message: Option<Self::Message>);
    /// Takes one more message into a mailbox; in which order they come is not said.
    fn combine(&self, into: &mut Self::Message, message: Self::Message);
    /// What an edge makes of a broadcast.
    #[inline(always)]
    fn on_edge(&self, message: Self::Message, _edge: Self::Edge) -> Self::Message {
        message
    }
}

/// What holds for all vertices of a superstep.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SuperstepInfo<A> {
    pub(crate) superstep: u64,
    pub(crate) vertices: u64,
    pub(crate) aggregated: A,
}

/// A vertex in a superstep.
pub struct VertexContext<'v, P: VertexProgram> {
    /// What it holds: zeros at first.
    pub value: &'v mut P::Value,
    pub(crate) index: u64,
    pub(crate) degree: u64,
    pub(crate) program: &'v P,
    pub(crate) facts: &'v SuperstepInfo<P::Aggregate>,
    pub(crate) broadcast: Option<P::Message>,
    pub(crate) halts: bool,
    pub(crate) aggregate: P::Aggregate,
    pub(crate) sends: &'v mut dyn FnMut(u64, P::Message),
    pub(crate) messages: &'v [P::Message],
    pub(crate) edges: Option<EdgeRecords<'v>>,
    pub(crate) wrong: &'v SendError,
}

impl<'v, P: VertexProgram> VertexContext<'v, P> {
    /// Its index, 0 to |V| - 1.
    #[inline(always)]
    pub fn index(&self) -> u64 {
        self.index
    }
    /// Number of arcs that leave it.
    #[inline(always)]
    pub fn out_degree(&self) -> u64 {
        self.degree
    }
    /// Number of this superstep, from 0.
    #[inline(always)]
    pub fn superstep(&self) -> u64 {
        self.facts.superstep
    }
    /// Number of vertices of the graph.
    #[inline(always)]
    pub fn vertices(&self) -> u64 {
        self.facts.vertices
    }
    /// Returns each message that was sent to it in the last superstep ([`VertexProgram::UNCOMBINED`]).
    ///
    /// They are in ascending order of their senders. The messages of one sender to one vertex come in the order in which it called
    /// [`VertexContext::send`], then its broadcast in order of its edges. Other programs get no messages here.
    #[inline(always)]
    pub fn messages(&self) -> &'v [P::Message] {
        self.messages
    }
    /// Returns the other ends of the arcs that leave it, with the arcs' values, in ascending order.
    ///
    /// The program must declare [`VertexProgram::NEIGHBOURS`]; without it the run ends with an error.
    #[inline]
    pub fn neighbours(&self) -> impl Iterator<Item = (u64, P::Edge)> + use<'v, P> {
        if self.edges.is_none() {
            self.wrong.note_undeclared_neighbours();
        }
        self.edges.into_iter().flat_map(EdgeRecords::edges)
    }
    /// What the vertices added up in the superstep before.
    #[inline(always)]
    pub fn aggregated(&self) -> P::Aggregate {
        self.facts.aggregated
    }
    /// Adds to what all vertices see in the next superstep.
    #[inline(always)]
    pub fn aggregate(&mut self, summand: P::Aggregate) {
        self.aggregate.add(summand);
    }
    /// Sends a message along every arc that leaves it, combined with an earlier one of this superstep.
    #[inline(always)]
    pub fn broadcast(&mut self, message: P::Message) {
        match &mut self.broadcast {
            Some(earlier) => self.program.combine(earlier, message),
            none => *none = Some(message),
        }
    }
    /// Sends a message to the vertex with that index, whether or not an arc leads there.
    ///
    /// The program must declare [`VertexProgram::SENDS`]. Without it, or if there is no such vertex, the run ends with an error.
    #[inline]
    pub fn send(&mut self, to: u64, message: P::Message) {
        (self.sends)(to, message);
    }
    /// Falls asleep until a message comes.
    #[inline(always)]
    pub fn vote_to_halt(&mut self) {
        self.halts = true;
    }
}

impl<P: VertexProgram> Debug for VertexContext<'_, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Vertex")
            .field("index", &self.index)
            .finish_non_exhaustive()
    }
}
