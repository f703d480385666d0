//! An exchange: every rank says something to every other.
//!
//! A rank sends to i + 1, ..., P - 1, 0, ..., i - 1, and receives from i - 1, ..., 0, P - 1, ..., i + 1 meanwhile (DFOGraph, section
//! 4.4): everybody has one to send to and one to receive from. Where the one in turn takes no more for now, or all was said to it, the
//! next one has its turn beside it. A rank that takes nothing in holds up those who send to it, and nothing piles up in between.
//!
//! Some distance is the least one at which frames are still to come anywhere. Who waits for these has memory for them, and who sends
//! them sends to no nearer rank: so some frame can always move.

use std::sync::Mutex;
use std::time::Duration;

use graphmill_fabric::{Channel, Fabric, FabricCompletion, FabricOperation, protocol_error};
use graphmill_raw::{AlignedBuffer, lock};

use crate::comm::communicator::Communicator;
use crate::comm::wire::{FLYING, LOOK, PEERS, Wire};
use crate::context::ExecContext;
use crate::error::EngineError;
use crate::exchange::frame::{FRAME_HEADER, Frame, Section, sections};
use crate::value::Reduce;

/// Of messages.
const CHANNEL: Channel = 0;
/// Frames that one call takes in, at most.
const TURNS: usize = 16;

const SEND: u64 = 0;
const RECEIVE: u64 = 1;

/// The source of frames to one other rank.
pub(crate) trait FrameSource {
    /// Appends the available data, up to the size of the frame.
    fn fill(&mut self, frame: &mut Frame<'_>) -> Result<FillStatus, EngineError>;
}

/// Where a frame that was filled stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FillStatus {
    /// There is no room left in it.
    Full,
    /// There will be more to say, which is not known yet.
    Later,
    /// All is said.
    All,
}

/// A section of a frame from another rank, or its end.
pub(crate) enum Received<'f> {
    Section(Section<'f>),
    /// That was all.
    All,
}

/// The progress of an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExchangeProgress {
    Moved,
    Waiting,
    Complete,
}

/// An exchange of frames with every other rank.
///
/// It sends what `outgoing(rank, peer_index)` yields to every other rank, and passes what arrives from one to `incoming(rank, ...)`,
/// in order. Ranks that receive at the same time have different peer indices.
pub(crate) struct Exchange<'e, O, F, G> {
    ranks: &'e Communicator,
    fabric: &'e dyn Fabric,
    wire: &'e Mutex<Wire>,
    free: Vec<AlignedBuffer>,
    /// Bytes of a message.
    width: usize,
    /// Ranks to send to at the same time, and to receive from.
    peers: usize,
    outgoing: F,
    incoming: G,
    /// How far away the next to send to is, and the next to receive from.
    next: [usize; 2],
    sending: Vec<PeerStream<O>>,
    receiving: Vec<usize>,
    is_complete: bool,
}

/// One rank to which something is said.
struct PeerStream<O> {
    to: usize,
    /// Its number among the ranks that are sent to at the same time.
    peer_index: usize,
    out: O,
    /// A frame that is not full yet: bytes used, and messages.
    partial: Option<(AlignedBuffer, usize, u64)>,
    flying: usize,
    all_said: bool,
}

impl<'e, O, F, G> Exchange<'e, O, F, G>
where
    O: FrameSource,
    F: FnMut(usize, usize) -> O,
    G: FnMut(usize, Received<'_>) -> Result<(), EngineError>,
{
    /// Prepares an exchange of messages of `width` bytes; returns `None` if there are no other ranks.
    pub(crate) fn begin(
        context: &'e ExecContext<'e>,
        width: usize,
        peers: usize,
        outgoing: F,
        incoming: G,
    ) -> Option<Self> {
        let ranks = &context.ranks;
        let (fabric, wire) = (ranks.fabric.as_deref()?, context.wire.as_ref()?);
        Some(Exchange {
            free: std::mem::take(&mut lock(wire).free),
            ranks,
            fabric,
            wire,
            width,
            peers: peers.clamp(1, PEERS),
            outgoing,
            incoming,
            next: [1, 1],
            sending: Vec::new(),
            receiving: Vec::new(),
            is_complete: false,
        })
    }

    /// Does all of one at once.
    pub(crate) fn run(
        context: &'e ExecContext<'e>,
        width: usize,
        outgoing: F,
        incoming: G,
    ) -> Result<(), EngineError> {
        if let Some(mut exchange) = Self::begin(context, width, PEERS, outgoing, incoming) {
            while exchange.advance(LOOK)? != ExchangeProgress::Complete {}
        }
        Ok(())
    }

    /// Sends and takes frames; without any, waits for them, at most `wait`.
    pub(crate) fn advance(&mut self, wait: Duration) -> Result<ExchangeProgress, EngineError> {
        if self.is_complete {
            return Ok(ExchangeProgress::Complete);
        }
        let mut moved = false;
        for _ in 0..TURNS {
            self.ranks.check_stop()?;
            self.next_turns()?;
            moved |= self.send()?;
            match self.fabric.poll() {
                Some(completion) => self.take(completion)?,
                None => break,
            }
            moved = true;
        }
        if !moved
            && !wait.is_zero()
            && let Some(completion) = self.fabric.wait(wait)
        {
            self.take(completion)?;
            moved = true;
        }
        let all = self.next == [self.ranks.count(); 2];
        if all && self.sending.is_empty() && self.receiving.is_empty() {
            self.is_complete = true;
            lock(self.wire).free.append(&mut self.free);
            return Ok(ExchangeProgress::Complete);
        }
        Ok(match moved {
            true => ExchangeProgress::Moved,
            false => ExchangeProgress::Waiting,
        })
    }

    /// Turns to the next ranks where there is a way to.
    fn next_turns(&mut self) -> Result<(), EngineError> {
        let (rank, count) = (self.ranks.rank(), self.ranks.count());
        let is_stuck = |sending: &PeerStream<O>| sending.all_said || sending.flying == FLYING;
        while self.next[0] < count
            && self.sending.len() < self.peers
            && self.sending.iter().all(is_stuck)
        {
            let to = (rank + self.next[0]) % count;
            self.next[0] += 1;
            let is_free = |peer_index: &usize| {
                self.sending
                    .iter()
                    .all(|other| other.peer_index != *peer_index)
            };
            let peer_index = (0..self.peers).find(is_free).unwrap_or_default();
            self.sending.push(PeerStream {
                to,
                peer_index,
                out: (self.outgoing)(to, peer_index),
                partial: None,
                flying: 0,
                all_said: false,
            });
        }
        while self.next[1] < count && self.receiving.len() < self.peers {
            let from = (rank + count - self.next[1]) % count;
            self.next[1] += 1;
            self.receiving.push(from);
            self.receive(from)?;
        }
        Ok(())
    }

    /// Fills frames, and sends those that are full or the last; whether any was.
    fn send(&mut self) -> Result<bool, EngineError> {
        let mut moved = false;
        for sending in &mut self.sending {
            if sending.all_said || sending.flying == FLYING {
                continue;
            }
            let (mut buffer, used, count) = match sending.partial.take() {
                Some(partial) => partial,
                None => (self.free.pop().ok_or_else(protocol_error)?, FRAME_HEADER, 0),
            };
            let mut frame = Frame {
                bytes: &mut buffer,
                used,
                count,
            };
            let filled = sending.out.fill(&mut frame)?;
            let (used, count) = (frame.used, frame.count);
            if filled == FillStatus::Later {
                sending.partial = Some((buffer, used, count));
                continue;
            }
            sending.all_said = filled == FillStatus::All;
            sending.flying += 1;
            buffer[..4].copy_from_slice(&u32::from(sending.all_said).to_le_bytes());
            let to = sending.to;
            let moved_now = [count, used as u64];
            let mut wire = lock(self.wire);
            wire.sent.add(moved_now);
            wire.to[to].add(moved_now);
            drop(wire);
            let send = FabricOperation::Send {
                to,
                channel: CHANNEL,
                buffer,
                range: 0..used,
            };
            self.fabric.submit(send, token(SEND, to));
            moved = true;
        }
        Ok(moved)
    }

    fn receive(&mut self, from: usize) -> Result<(), EngineError> {
        let receive = FabricOperation::Receive {
            from,
            channel: CHANNEL,
            buffer: self.free.pop().ok_or_else(protocol_error)?,
        };
        self.fabric.submit(receive, token(RECEIVE, from));
        Ok(())
    }

    /// Takes in what the fabric has carried out.
    fn take(&mut self, completion: FabricCompletion) -> Result<(), EngineError> {
        let bytes = completion.result?;
        let buffer = completion.buffer.ok_or_else(protocol_error)?;
        let other = (completion.token >> 1) as usize;
        if completion.token & 1 == SEND {
            self.free.push(buffer);
            for sending in self.sending.iter_mut().filter(|of| of.to == other) {
                sending.flying -= 1;
            }
            self.sending.retain(|of| !of.all_said || of.flying > 0);
            return Ok(());
        }
        let frame = buffer.get(..bytes).ok_or_else(protocol_error)?;
        let (sections, last) = sections(frame, self.width).ok_or_else(protocol_error)?;
        // The next one is on its way while this one is taken apart.
        if !last {
            self.receive(other)?;
        }
        for section in sections {
            (self.incoming)(other, Received::Section(section))?;
        }
        if last {
            self.receiving.retain(|from| *from != other);
            (self.incoming)(other, Received::All)?;
        }
        self.free.push(buffer);
        Ok(())
    }
}

fn token(kind: u64, other: usize) -> u64 {
    kind | (other as u64) << 1
}
