//! [`Engine::pregel`]: a vertex program to its end.
//!
//! Of the two versions *pull* has no locks and gives the same bits whatever the threads and the budget, and its edges may be on disk:
//! each superstep is a pass in which the receivers of broadcasts fold them, in order of the senders. *Push* works in memory: each
//! vertex puts its broadcasts into the mailboxes of its neighbours at once ([`Mailboxes`](graphmill_raw::Mailboxes)).
//!
//! Only vertices that are awake, or that a message has woken, are computed: a sleeping one costs nothing.

use std::sync::Arc;

use crate::cache::adjacency::AdjacencyLists;
use crate::config::Combiner;
use crate::driver::pregel_step::{AggregateSum, PregelStep, combining, message_in};
use crate::driver::{pregel_mail, pregel_push};
use crate::driver_log::call_name;
use crate::engine::Engine;
use crate::error::EngineError;
use crate::program::edge::{Activate, ApplyTo, Direction, EdgeProgram};
use crate::program::footprint::ProgramFootprint;
use crate::program::message::MessageProgram;
use crate::program::outbox::Outbox;
use crate::program::vertex::{SuperstepInfo, VertexProgram};
use crate::state::rows::{OutDegree, Read, Write};
use crate::state::vertex_array::VertexArray;
use crate::value::{Accumulator, EdgeValue, Reduce};

/// How messages reach their mailboxes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PregelMode {
    /// Receivers fetch what their neighbours broadcast.
    #[default]
    Pull,
    /// Senders put messages into the mailboxes of their neighbours.
    Push,
}

impl Engine {
    /// Runs a vertex program to its end or for a maximum number of supersteps.
    ///
    /// `values` holds the vertex values before and after; a new array holds zeros. Returns the aggregate of the last superstep.
    ///
    /// # Errors
    /// Disk, budget or the stored graph failed, the user asked to stop; the edges carry other data than the program reads;
    /// the program sends where it had not said so, or to no vertex;
    /// its [`VertexProgram::IDENTITY`] changes a message that it is combined with; values and mailboxes of a push version do not fit
    /// in memory; the adjacency lists that [`VertexProgram::NEIGHBOURS`] needs do not fit.
    pub fn pregel<P: VertexProgram>(
        &mut self,
        program: P,
        values: VertexArray<P::Value>,
        version: PregelMode,
        supersteps: Option<u64>,
    ) -> Result<P::Aggregate, EngineError> {
        self.check_edges::<P::Edge, P>()?;
        let mut step = PregelStep {
            program: Arc::new(program),
            facts: SuperstepInfo {
                superstep: 0,
                vertices: self.vertices(),
                aggregated: P::Aggregate::ZERO,
            },
            wrong: Arc::default(),
            lists: None,
        };
        let limit = supersteps.unwrap_or(u64::MAX);
        self.common.arrays.check_own(values.id())?;
        if self.vertices() == 0 {
            return Ok(step.facts.aggregated);
        }
        if P::NEIGHBOURS {
            self.needs_columns("a vertex program that reads its neighbours")?;
            step.lists = Some(self.take_lists(P::Edge::WEIGHTED, &values)?);
        }
        let done = self.supersteps(&mut step, values, version, limit);
        self.cache.put_lists(step.lists.and_then(Arc::into_inner));
        done.map(|()| step.facts.aggregated)
    }

    /// Takes the adjacency lists out of the cache, loaded if they are not there.
    fn take_lists<T>(
        &mut self,
        weighted: bool,
        values: &VertexArray<T>,
    ) -> Result<Arc<AdjacencyLists>, EngineError> {
        let lists = match self.push_lists(weighted, values)? {
            true => self.cache.take_lists(),
            false => None,
        };
        lists.map(Arc::new).ok_or_else(|| {
            let context = self.context(false);
            let (kept, loading) = AdjacencyLists::memory(&context, weighted);
            EngineError::NeighboursNeedLists {
                bytes: kept + loading,
                budget: self.common.budget.total(),
                ranks: self.common.ranks.count(),
            }
        })
    }

    /// Runs supersteps until no vertex is awake, or as many as `limit`.
    fn supersteps<P: VertexProgram>(
        &mut self,
        step: &mut PregelStep<P>,
        values: VertexArray<P::Value>,
        version: PregelMode,
        limit: u64,
    ) -> Result<(), EngineError> {
        if P::UNCOMBINED {
            return self.pull_uncombined(step, values, limit);
        }
        match version {
            PregelMode::Push if P::NEIGHBOURS => self.pull(step, values, limit),
            PregelMode::Push if self.common.ranks.alone() => self.push(step, values, limit),
            PregelMode::Push if self.common.options.combiner != Combiner::Auto => {
                let what = "putting messages into mailboxes as they are sent";
                Err(EngineError::OneRank { what })
            }
            // Of several ranks none has the mailboxes of all: broadcasts go by passes over edges, which combine them in the same way.
            PregelMode::Pull | PregelMode::Push => {
                self.metrics.push_became_pull |= version == PregelMode::Push;
                self.pull(step, values, limit)
            }
        }
    }

    /// Advances to the next superstep.
    pub(crate) fn advance_superstep<P: VertexProgram>(
        &mut self,
        step: &mut PregelStep<P>,
        aggregate: P::Aggregate,
    ) -> Result<(), EngineError> {
        step.facts.superstep += 1;
        step.facts.aggregated = aggregate;
        step.wrong.check(self.vertices())
    }

    fn pull<P: VertexProgram>(
        &mut self,
        step: &mut PregelStep<P>,
        values: VertexArray<P::Value>,
        limit: u64,
    ) -> Result<(), EngineError> {
        let (name, forward) = (call_name::<P>, Direction::Forward);
        let out = self.vertex_array::<P::Message>(&name("broadcasts"))?;
        // As long as all are awake and messages go along edges only, a superstep is one pass.
        let (mut awake, mut computed) = (self.full_set()?, self.empty_set()?);
        // Boxes hold `IDENTITY` if there is no message.
        let (mut broadcasts, mut boxes) = (0, None);
        while step.facts.superstep < limit && !(awake.is_empty() && broadcasts == 0) {
            if awake.len() == self.vertices() && !P::SENDS && boxes.is_none() {
                let nobody = self.empty_set()?;
                let senders = if broadcasts > 0 { &awake } else { &nobody };
                let rows = (values.write(), out.write(), OutDegree);
                let every = Everywhere(step.clone());
                let ((aggregate, sent), still) =
                    self.process_edges(&every, out.read(), rows, senders, forward)?;
                computed = std::mem::replace(&mut awake, still);
                broadcasts = sent;
                self.advance_superstep(step, aggregate)?;
                continue;
            }
            let mail = match boxes {
                Some(mail) => mail,
                None => {
                    let array = self.vertex_array::<P::Message>(&name("mail"))?;
                    self.process_vertices(array.write(), None, |_, mail| *mail = P::IDENTITY)?;
                    *boxes.insert(array)
                }
            };
            let mut waken = awake;
            if broadcasts > 0 {
                let deliver = Deliver(Arc::clone(&step.program));
                let (rows, write) = (out.read(), mail.write());
                let ((), reached) =
                    self.process_edges(&deliver, rows, write, &computed, forward)?;
                waken.union(&reached)?;
            }
            if waken.is_empty() {
                break;
            }
            let rows = (values.write(), out.write(), mail.write(), OutDegree);
            let compute = Compute(step.clone());
            let ((aggregate, sent), [still, reached]) =
                self.process_messages(&compute, rows, mail.write(), Some(&waken))?;
            awake = still;
            awake.union(&reached)?;
            (broadcasts, computed) = (sent, waken);
            self.advance_superstep(step, aggregate)?;
        }
        Ok(())
    }
}

/// Returns the footprint of a vertex program in one version.
#[must_use]
pub fn pregel_footprint<P: VertexProgram>(version: PregelMode) -> ProgramFootprint {
    let passes = ProgramFootprint::of::<Everywhere<P>>().or(ProgramFootprint::of::<Deliver<P>>());
    match version {
        PregelMode::Pull if P::UNCOMBINED => pregel_mail::sizes::<P>(),
        // What `Compute` looks at.
        PregelMode::Pull => passes
            .with_rows::<<Compute<P> as MessageProgram>::SendRows>()
            .with_arrays(size_of::<P::Value>() + 2 * size_of::<P::Message>()),
        PregelMode::Push => pregel_push::sizes::<P>(passes),
    }
}

/// A superstep of all vertices in one pass: each receiver computes at once.
struct Everywhere<P: VertexProgram>(PregelStep<P>);

impl<P: VertexProgram> EdgeProgram for Everywhere<P> {
    type SignalRows = Read<P::Message>;
    type ApplyRows = (Write<P::Value>, Write<P::Message>, OutDegree);
    type Sum = AggregateSum<P::Aggregate>;
    const APPLY_TO: ApplyTo = ApplyTo::All;

    combining!(self, self.0.program);
    #[inline(always)]
    fn signal(&self, _: u64, out: &P::Message) -> Option<P::Message> {
        message_in::<P>(*out)
    }
    #[inline(always)]
    fn apply(
        &self,
        v: u64,
        (value, out, degree): (&mut P::Value, &mut P::Message, u64),
        mail: P::Message,
    ) -> (AggregateSum<P::Aggregate>, Activate) {
        let (step, message) = (&self.0, message_in::<P>(mail));
        let computed = step.compute(v, value, degree, (message, &[]), &mut step.refuse());
        *out = computed.broadcast.unwrap_or(P::IDENTITY);
        (computed.tally, computed.awake)
    }
}

/// Returns whether the message in a mailbox wakes its vertex.
fn wakes<P: VertexProgram>(mail: &P::Message) -> Activate {
    Activate::when(!mail.bit_eq(&P::IDENTITY))
}

/// Broadcasts into mailboxes.
struct Deliver<P: VertexProgram>(Arc<P>);

impl<P: VertexProgram> EdgeProgram for Deliver<P> {
    type SignalRows = Read<P::Message>;
    type ApplyRows = Write<P::Message>;
    type Sum = ();

    combining!(self, self.0);
    #[inline(always)]
    fn signal(&self, _: u64, out: &P::Message) -> Option<P::Message> {
        message_in::<P>(*out)
    }
    #[inline(always)]
    fn apply(&self, _: u64, mail: &mut P::Message, fold: P::Message) -> ((), Activate) {
        self.0.combine(mail, fold);
        ((), wakes::<P>(mail))
    }
}

/// A pass in which vertices compute and put their messages into mailboxes.
struct Compute<P: VertexProgram>(PregelStep<P>);

impl<P: VertexProgram> MessageProgram for Compute<P> {
    type SendRows = (
        Write<P::Value>,
        Write<P::Message>,
        Write<P::Message>,
        OutDegree,
    );
    type ApplyRows = Write<P::Message>;
    type Message = P::Message;
    type Accumulator = P::Message;
    type Sum = AggregateSum<P::Aggregate>;
    const IDENTITY: P::Message = P::IDENTITY;

    #[inline(always)]
    fn send(
        &self,
        v: u64,
        (value, out, mail, degree): (&mut P::Value, &mut P::Message, &mut P::Message, u64),
        sink: &mut Outbox<'_, P::Message>,
    ) -> (AggregateSum<P::Aggregate>, Activate) {
        let message = message_in::<P>(std::mem::replace(mail, P::IDENTITY));
        let step = &self.0;
        let computed = match P::SENDS {
            true => {
                let mut sends = |to, message| sink.send(to, message);
                step.compute(v, value, degree, (message, &[]), &mut sends)
            }
            false => step.compute(v, value, degree, (message, &[]), &mut step.refuse()),
        };
        *out = computed.broadcast.unwrap_or(P::IDENTITY);
        (computed.tally, computed.awake)
    }
    #[inline(always)]
    fn fold(&self, mail: &mut P::Message, message: P::Message) {
        self.0.program.combine(mail, message);
    }
    #[inline(always)]
    fn apply(
        &self,
        _: u64,
        mail: &mut P::Message,
        fold: P::Message,
    ) -> (AggregateSum<P::Aggregate>, Activate) {
        self.0.program.combine(mail, fold);
        (Self::Sum::ZERO, wakes::<P>(mail))
    }
}
