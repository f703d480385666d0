//! The other ranks during a phase: requests to their storage engines, requests from them, and data on its way.
//!
//! Every operation is submitted without blocking. [`Peers::poll`] takes what the fabric completed, and reports it as events.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use graphmill_fabric::{Channel, Fabric, FabricCompletion, FabricOperation, protocol_error};
use graphmill_raw::AlignedBuffer;
use graphmill_storage::{Buffer, Lease};
use zerocopy::IntoBytes;

use crate::error::{EngineError, ensure};
use crate::exec::stream::protocol::{
    AcceptedHelp, CHUNKS, CONTROL, HEADER_BYTES, MessageHeader, MessageKind, PARTS, PUTS,
};

/// Time that an idle worker waits for another rank.
const WAIT: Duration = Duration::from_millis(1);

/// What the other ranks did.
pub(crate) enum PeerEvent {
    /// A chunk of this rank's request arrived, or the storage engine has none left.
    Chunk {
        engine: usize,
        /// When it was asked for.
        began: Duration,
        header: MessageHeader,
        buffer: Buffer,
    },
    /// An update chunk of a batch arrived to be kept, and its bytes.
    Keep(usize, usize, Buffer),
    /// A bin was sent, and its buffer is free.
    BinSent(Buffer),
}

/// The purpose of an operation, with the lease of its memory.
enum Purpose {
    ControlSend,
    ControlReceive,
    /// A chunk that was asked for at a time.
    ChunkReceive(Duration, Lease),
    ChunkSend(Lease),
    PutSend(Lease),
    /// An update chunk: its batch and its bytes.
    PutReceive(usize, usize, Lease),
    PartSend(Lease),
    /// Messages or accumulators: their batch and their bytes.
    PartReceive(usize, usize, Lease),
}

/// The state of the exchange with other ranks.
pub(crate) struct Peers {
    fabric: Arc<dyn Fabric>,
    phase: u64,
    control: Vec<AlignedBuffer>,
    /// Operations on their way: the other rank and the purpose.
    flying: BTreeMap<u64, (usize, Purpose)>,
    next_token: u64,
    /// Ranks that ask for nothing more.
    done: BTreeSet<usize>,
    said_done: bool,
    /// Requests of other ranks: the rank and the batch.
    pub(crate) gets: VecDeque<(usize, usize)>,
    puts: VecDeque<(usize, usize, usize)>,
    /// Buffers for chunks to other ranks.
    pub(crate) serve: Vec<Buffer>,
    /// Buffers for update chunks from other ranks.
    pub(crate) keep: Vec<Buffer>,
    offers: VecDeque<usize>,
    /// The owner that was offered help, and its answer.
    asked: Option<usize>,
    answer: Option<Option<AcceptedHelp>>,
    /// Messages or accumulators that arrived: their sender and their batch.
    received: Vec<(usize, usize, Buffer)>,
    /// The buffers of messages or accumulators that were sent.
    returned: Vec<Buffer>,
    /// Bytes sent since they were last taken.
    pub(crate) sent: u64,
}

impl Peers {
    pub(crate) fn new(fabric: Arc<dyn Fabric>, serve: Vec<Buffer>, keep: Vec<Buffer>) -> Self {
        Peers {
            fabric,
            phase: 0,
            control: Vec::new(),
            flying: BTreeMap::new(),
            next_token: 0,
            done: BTreeSet::new(),
            said_done: false,
            gets: VecDeque::new(),
            puts: VecDeque::new(),
            serve,
            keep,
            offers: VecDeque::new(),
            asked: None,
            answer: None,
            received: Vec::new(),
            returned: Vec::new(),
            sent: 0,
        }
    }

    /// The number of this rank.
    pub(crate) fn rank(&self) -> usize {
        self.fabric.rank()
    }

    /// Number of ranks.
    pub(crate) fn ranks(&self) -> usize {
        self.fabric.ranks()
    }

    /// Begins a phase, whose number is the same at every rank.
    pub(crate) fn begin(&mut self, phase: u64) -> Result<(), EngineError> {
        self.phase = phase;
        self.done.clear();
        self.said_done = false;
        let others = (0..self.fabric.ranks()).filter(|rank| *rank != self.fabric.rank());
        for from in others.collect::<Vec<_>>() {
            self.await_control(from)?;
        }
        Ok(())
    }

    /// True if all ranks are done, and nothing of this rank is on its way.
    pub(crate) fn is_over(&self) -> bool {
        self.said_done && self.done.len() + 1 == self.fabric.ranks() && self.flying.is_empty()
    }

    /// True if this rank reported that it asks for nothing more.
    pub(crate) fn said_done(&self) -> bool {
        self.said_done
    }

    /// True if nothing is on its way to or from this rank.
    pub(crate) fn is_quiet(&self) -> bool {
        let mut flying = self.flying.values();
        flying.all(|(_, purpose)| matches!(purpose, Purpose::ControlReceive))
    }

    /// True if no messages or accumulators are on their way to or from this rank.
    pub(crate) fn has_no_parts(&self) -> bool {
        let is_part = |of: &Purpose| matches!(of, Purpose::PartSend(_) | Purpose::PartReceive(..));
        !self.flying.values().any(|(_, purpose)| is_part(purpose))
    }

    /// Sends the first bytes of a buffer, which are messages for a helper or accumulators for an owner.
    pub(crate) fn send_part(&mut self, to: usize, buffer: Buffer, bytes: usize) {
        let (memory, lease) = buffer.into_parts();
        self.send(to, PARTS, (memory, 0..bytes), Purpose::PartSend(lease));
    }

    /// Receives messages or accumulators of a batch from a rank into a buffer.
    ///
    /// [`take_received`](Self::take_received) returns the buffer. A rank sends in the order of the calls.
    pub(crate) fn receive_part(
        &mut self,
        (from, batch): (usize, usize),
        buffer: Buffer,
        bytes: usize,
    ) {
        let (memory, lease) = buffer.into_parts();
        let purpose = Purpose::PartReceive(batch, bytes, lease);
        self.receive(from, PARTS, memory, purpose);
    }

    /// Takes the buffers of messages or accumulators that were sent.
    pub(crate) fn take_returned(&mut self) -> Vec<Buffer> {
        std::mem::take(&mut self.returned)
    }

    /// Takes the messages or accumulators of a batch from a rank once they are complete.
    pub(crate) fn take_received(&mut self, (from, batch): (usize, usize)) -> Option<Buffer> {
        let is_it = |of: &(usize, usize, Buffer)| (of.0, of.1) == (from, batch);
        let position = self.received.iter().position(is_it)?;
        Some(self.received.swap_remove(position).2)
    }

    /// Reports to all ranks that this one asks for nothing more in this phase.
    pub(crate) fn say_done(&mut self) -> Result<(), EngineError> {
        self.said_done = true;
        let own = self.fabric.rank();
        for to in (0..self.fabric.ranks()).filter(|rank| *rank != own) {
            self.tell(to, self.header(MessageKind::Done, 0))?;
        }
        Ok(())
    }

    /// Asks a storage engine for a chunk of a batch, into a buffer of the window.
    pub(crate) fn get(
        &mut self,
        engine: usize,
        batch: usize,
        buffer: Buffer,
        now: Duration,
    ) -> Result<(), EngineError> {
        let (memory, lease) = buffer.into_parts();
        self.receive(engine, CHUNKS, memory, Purpose::ChunkReceive(now, lease));
        self.tell(engine, self.header(MessageKind::Get, batch))
    }

    /// Sends an update chunk to a storage engine.
    pub(crate) fn put(
        &mut self,
        engine: usize,
        batch: usize,
        bytes: usize,
        bin: Buffer,
    ) -> Result<(), EngineError> {
        let header = MessageHeader {
            number: bytes as u64,
            ..self.header(MessageKind::Put, batch)
        };
        self.tell(engine, header)?;
        let (memory, lease) = bin.into_parts();
        self.send(engine, PUTS, (memory, 0..bytes), Purpose::PutSend(lease));
        Ok(())
    }

    /// Sends a chunk that another rank asked for: `header` says where it is in the buffer.
    pub(crate) fn answer_get(&mut self, to: usize, header: MessageHeader, mut buffer: Buffer) {
        buffer[..HEADER_BYTES].copy_from_slice(header.as_bytes());
        let end = header.parts.map(|part| part[1] as usize);
        let range = 0..end[0].max(end[1]);
        let (memory, lease) = buffer.into_parts();
        self.send(to, CHUNKS, (memory, range), Purpose::ChunkSend(lease));
    }

    /// Reports that there are no more chunks of a batch.
    pub(crate) fn answer_none(&mut self, to: usize, batch: usize) -> Result<(), EngineError> {
        self.tell_on(CHUNKS, to, self.header(MessageKind::NoChunk, batch))
    }

    /// Offers help to an owner, whose [`answer`](Self::take_answer) follows.
    pub(crate) fn offer(&mut self, owner: usize) -> Result<(), EngineError> {
        self.asked = Some(owner);
        if self.done.contains(&owner) {
            self.take_in_answer(owner, None);
            return Ok(());
        }
        self.tell(owner, self.header(MessageKind::Offer, 0))
    }

    /// Takes in an owner's answer, if it was asked.
    fn take_in_answer(&mut self, owner: usize, accepted: Option<AcceptedHelp>) {
        if self.asked.take_if(|asked| *asked == owner).is_some() {
            self.answer = Some(accepted);
        }
    }

    /// Takes the answer to this rank's offer: the help that the owner accepts, if any.
    pub(crate) fn take_answer(&mut self) -> Option<Option<AcceptedHelp>> {
        self.answer.take()
    }

    /// Takes the next rank that offers help.
    pub(crate) fn take_offer(&mut self) -> Option<usize> {
        self.offers.pop_front()
    }

    /// Answers an offer.
    pub(crate) fn answer_offer(
        &mut self,
        to: usize,
        accepted: Option<(usize, u64)>,
    ) -> Result<(), EngineError> {
        let mut header = self.header(MessageKind::Decline, 0);
        if let Some((batch, count)) = accepted {
            header = self.header(MessageKind::Accept, batch);
            header.number = count;
        }
        self.tell(to, header)
    }

    /// Takes what the fabric completed, and submits what can be; returns true if anything changed.
    pub(crate) fn poll(
        &mut self,
        is_idle: bool,
        events: &mut Vec<PeerEvent>,
    ) -> Result<bool, EngineError> {
        let mut has_moved = self.await_puts();
        let mut next = match is_idle && !has_moved {
            true => self.fabric.wait(WAIT),
            false => self.fabric.poll(),
        };
        while let Some(done) = next {
            has_moved = true;
            self.complete(done, events)?;
            next = self.fabric.poll();
        }
        Ok(has_moved)
    }

    fn complete(
        &mut self,
        done: FabricCompletion,
        events: &mut Vec<PeerEvent>,
    ) -> Result<(), EngineError> {
        let flying = self.flying.remove(&done.token);
        let (peer, purpose) = flying.ok_or_else(protocol_error)?;
        let bytes = done.result?;
        let memory = done.buffer.ok_or_else(protocol_error)?;
        let frame = memory.get(..bytes).unwrap_or_default();
        let header = || MessageHeader::take(frame, self.phase).ok_or_else(protocol_error);
        match purpose {
            Purpose::ControlSend => self.control.push(memory),
            Purpose::ControlReceive => {
                let header = header()?;
                self.control.push(memory);
                self.heard(peer, header)?;
            }
            Purpose::ChunkReceive(began, lease) => events.push(PeerEvent::Chunk {
                engine: peer,
                began,
                header: header()?,
                buffer: Buffer::from_parts(memory, lease),
            }),
            Purpose::ChunkSend(lease) => self.serve.push(Buffer::from_parts(memory, lease)),
            Purpose::PutSend(lease) => {
                events.push(PeerEvent::BinSent(Buffer::from_parts(memory, lease)));
            }
            Purpose::PutReceive(batch, announced, lease) => {
                ensure(bytes == announced, protocol_error)?;
                let buffer = Buffer::from_parts(memory, lease);
                events.push(PeerEvent::Keep(batch, bytes, buffer));
            }
            Purpose::PartSend(lease) => self.returned.push(Buffer::from_parts(memory, lease)),
            Purpose::PartReceive(batch, expected, lease) => {
                ensure(bytes == expected, protocol_error)?;
                let buffer = Buffer::from_parts(memory, lease);
                self.received.push((peer, batch, buffer));
            }
        }
        Ok(())
    }

    /// Acts on a control message.
    fn heard(&mut self, from: usize, header: MessageHeader) -> Result<(), EngineError> {
        let (batch, number) = (header.batch as usize, header.number);
        match header.kind {
            MessageKind::Get => self.gets.push_back((from, batch)),
            MessageKind::Put => self.puts.push_back((from, batch, number as usize)),
            // Who is done needs no help, and said so.
            MessageKind::Offer if self.said_done => (),
            MessageKind::Offer => self.offers.push_back(from),
            MessageKind::Accept => {
                let help = AcceptedHelp {
                    owner: from,
                    batch,
                    count: number,
                };
                self.take_in_answer(from, Some(help));
            }
            MessageKind::Decline => self.take_in_answer(from, None),
            MessageKind::Done => {
                self.done.insert(from);
                self.take_in_answer(from, None);
                return Ok(());
            }
            MessageKind::Chunk | MessageKind::NoChunk => return Err(protocol_error().into()),
        }
        self.await_control(from)
    }

    /// Awaits announced update chunks while there are buffers for them.
    fn await_puts(&mut self) -> bool {
        let mut has_moved = false;
        while !self.keep.is_empty()
            && let Some((from, batch, bytes)) = self.puts.pop_front()
            && let Some(buffer) = self.keep.pop()
        {
            let (memory, lease) = buffer.into_parts();
            self.receive(from, PUTS, memory, Purpose::PutReceive(batch, bytes, lease));
            has_moved = true;
        }
        has_moved
    }

    fn await_control(&mut self, from: usize) -> Result<(), EngineError> {
        let memory = self.control_buffer()?;
        self.receive(from, CONTROL, memory, Purpose::ControlReceive);
        Ok(())
    }

    /// The header of a message of this phase.
    pub(crate) fn header(&self, kind: MessageKind, batch: usize) -> MessageHeader {
        MessageHeader::new(self.phase, kind, batch)
    }

    fn tell(&mut self, to: usize, header: MessageHeader) -> Result<(), EngineError> {
        self.tell_on(CONTROL, to, header)
    }

    fn tell_on(
        &mut self,
        on: Channel,
        to: usize,
        header: MessageHeader,
    ) -> Result<(), EngineError> {
        let mut memory = self.control_buffer()?;
        memory[..HEADER_BYTES].copy_from_slice(header.as_bytes());
        self.send(to, on, (memory, 0..HEADER_BYTES), Purpose::ControlSend);
        Ok(())
    }

    fn control_buffer(&mut self) -> Result<AlignedBuffer, EngineError> {
        match self.control.pop() {
            Some(memory) => Ok(memory),
            None => Ok(AlignedBuffer::zeroed(HEADER_BYTES)?),
        }
    }

    fn send(
        &mut self,
        to: usize,
        channel: Channel,
        (buffer, range): (AlignedBuffer, Range<usize>),
        purpose: Purpose,
    ) {
        self.sent += range.len() as u64;
        let operation = FabricOperation::Send {
            to,
            channel,
            buffer,
            range,
        };
        self.submit(operation, (to, purpose));
    }

    fn receive(&mut self, from: usize, channel: Channel, buffer: AlignedBuffer, purpose: Purpose) {
        let operation = FabricOperation::Receive {
            from,
            channel,
            buffer,
        };
        self.submit(operation, (from, purpose));
    }

    fn submit(&mut self, operation: FabricOperation, flying: (usize, Purpose)) {
        let token = self.next_token;
        self.next_token += 1;
        self.flying.insert(token, flying);
        self.fabric.submit(operation, token);
    }
}
