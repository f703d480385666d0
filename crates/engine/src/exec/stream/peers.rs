//! The other ranks during a phase: requests to their storage engines, requests from them, and data on its way.
//!
//! Every operation is submitted without blocking. [`Peers::poll`] takes what the fabric completed, and reports it as events.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use graphmill_fabric::{Channel, Fabric, FabricCompletion, FabricOperation, protocol_error};
use graphmill_raw::AlignedBuffer;
use graphmill_storage::{Buffer, Lease};

use crate::error::{EngineError, ensure};
use crate::exec::stream::parts::Parts;
use crate::exec::stream::protocol::{
    ANSWERS, CHUNKS, CONTROL, ChunkHeader, Control, HEADER_BYTES, PARTS, PUTS,
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
        header: ChunkHeader,
        buffer: Buffer,
    },
    /// An update chunk arrived to be kept.
    Keep {
        batch: usize,
        bytes: usize,
        buffer: Buffer,
    },
    /// A bin was sent, and its buffer is free.
    BinSent(Buffer),
    /// Messages or accumulators are complete.
    Received { from: usize, buffer: Buffer },
}

/// An owner's answer to an offer of help.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answer {
    pub(crate) owner: usize,
    /// The batch to help with, and the messages of it; `None` if no help is needed.
    pub(crate) accepted: Option<(usize, u64)>,
}

/// The purpose of an operation on its way.
enum FrameInFlight {
    ControlSend,
    ControlReceive {
        from: usize,
    },
    AnswerReceive {
        from: usize,
    },
    ChunkReceive {
        engine: usize,
        began: Duration,
        lease: Lease,
    },
    ChunkSend {
        lease: Lease,
    },
    NoneSend,
    PutSend {
        lease: Lease,
    },
    PutReceive {
        batch: usize,
        bytes: usize,
        lease: Lease,
    },
    PartSend {
        to: usize,
    },
    PartReceive {
        from: usize,
    },
}

/// The state of the exchange with other ranks.
pub(crate) struct Peers {
    fabric: Arc<dyn Fabric>,
    phase: u64,
    control: Vec<AlignedBuffer>,
    flying: BTreeMap<u64, FrameInFlight>,
    next_token: u64,
    /// Ranks that ask for nothing more.
    done: usize,
    said_done: bool,
    /// Requests of other ranks: the rank and the batch.
    pub(crate) gets: VecDeque<(usize, usize)>,
    puts: VecDeque<(usize, usize, usize)>,
    /// Buffers for chunks to other ranks.
    pub(crate) serve: Vec<Buffer>,
    /// Buffers for update chunks from other ranks.
    pub(crate) keep: Vec<Buffer>,
    /// Frames for parts, which the exchange has between phases.
    frames: Vec<AlignedBuffer>,
    offers: VecDeque<usize>,
    answer: Option<Answer>,
    /// Messages and accumulators on their way.
    pub(crate) parts: Parts,
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
            done: 0,
            said_done: false,
            gets: VecDeque::new(),
            puts: VecDeque::new(),
            serve,
            keep,
            frames: Vec::new(),
            offers: VecDeque::new(),
            answer: None,
            parts: Parts::default(),
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

    /// Begins a phase, whose number is the same at every rank; [`Peers::end`] returns the frames.
    pub(crate) fn begin(
        &mut self,
        phase: u64,
        frames: Vec<AlignedBuffer>,
    ) -> Result<(), EngineError> {
        self.phase = phase;
        self.frames = frames;
        (self.done, self.said_done) = (0, false);
        let others = (0..self.fabric.ranks()).filter(|rank| *rank != self.fabric.rank());
        for from in others.collect::<Vec<_>>() {
            self.await_control(from)?;
        }
        Ok(())
    }

    /// True if all ranks are done, and nothing of this rank is on its way.
    pub(crate) fn is_over(&self) -> bool {
        self.said_done && self.done + 1 == self.fabric.ranks() && self.flying.is_empty()
    }

    /// Ends a phase that [is over](Self::is_over).
    pub(crate) fn end(&mut self) -> Vec<AlignedBuffer> {
        std::mem::take(&mut self.frames)
    }

    /// True if this rank reported that it asks for nothing more.
    pub(crate) fn said_done(&self) -> bool {
        self.said_done
    }

    /// True if nothing that this rank asked for or gives is on its way.
    pub(crate) fn is_quiet(&self) -> bool {
        let is_of_others = |of: &FrameInFlight| {
            matches!(
                of,
                FrameInFlight::ControlReceive { .. }
                    | FrameInFlight::ChunkSend { .. }
                    | FrameInFlight::NoneSend
                    | FrameInFlight::PutReceive { .. }
            )
        };
        self.flying.values().all(is_of_others) && self.parts.is_empty()
    }

    /// Reports to all ranks that this one asks for nothing more in this phase.
    pub(crate) fn say_done(&mut self) -> Result<(), EngineError> {
        self.said_done = true;
        let own = self.fabric.rank();
        for to in (0..self.fabric.ranks()).filter(|rank| *rank != own) {
            self.tell(to, Control::Done)?;
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
        let receive = FrameInFlight::ChunkReceive {
            engine,
            began: now,
            lease,
        };
        self.receive(engine, CHUNKS, memory, receive);
        let batch = batch as u32;
        self.tell(engine, Control::Get { batch })
    }

    /// Sends an update chunk to a storage engine.
    pub(crate) fn put(
        &mut self,
        engine: usize,
        batch: usize,
        bytes: usize,
        bin: Buffer,
    ) -> Result<(), EngineError> {
        let (batch, length) = (batch as u32, bytes as u32);
        self.tell(
            engine,
            Control::Put {
                batch,
                bytes: length,
            },
        )?;
        let (memory, lease) = bin.into_parts();
        self.send(
            engine,
            PUTS,
            (memory, 0..bytes),
            FrameInFlight::PutSend { lease },
        );
        Ok(())
    }

    /// Sends a chunk that another rank asked for: `header` says where it is in the buffer.
    pub(crate) fn answer_get(&mut self, to: usize, header: ChunkHeader, mut buffer: Buffer) {
        header.put(&mut buffer);
        let end = header.parts.map(|part| part[1] as usize);
        let range = 0..end[0].max(end[1]);
        let (memory, lease) = buffer.into_parts();
        self.send(
            to,
            CHUNKS,
            (memory, range),
            FrameInFlight::ChunkSend { lease },
        );
    }

    /// Reports that there are no more chunks of a batch.
    pub(crate) fn answer_none(&mut self, to: usize, batch: usize) -> Result<(), EngineError> {
        let header = ChunkHeader {
            batch: batch as u32,
            phase: self.phase,
            has_chunk: false,
            parts: [[0; 2]; 2],
            service: 0,
        };
        let mut memory = self.control_buffer()?;
        header.put(&mut memory);
        self.send(
            to,
            CHUNKS,
            (memory, 0..HEADER_BYTES),
            FrameInFlight::NoneSend,
        );
        Ok(())
    }

    /// Offers help to an owner, whose [`answer`](Self::take_answer) follows.
    pub(crate) fn offer(&mut self, owner: usize) -> Result<(), EngineError> {
        let memory = self.control_buffer()?;
        self.receive(
            owner,
            ANSWERS,
            memory,
            FrameInFlight::AnswerReceive { from: owner },
        );
        self.tell(owner, Control::Offer)
    }

    /// Takes the answer to this rank's offer.
    pub(crate) fn take_answer(&mut self) -> Option<Answer> {
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
        let answer = match accepted {
            None => Control::Decline,
            Some((batch, count)) => Control::Accept {
                batch: batch as u32,
                count,
            },
        };
        self.tell_on(ANSWERS, to, answer)
    }

    /// Takes what the fabric completed, and submits what can be; returns true if anything changed.
    pub(crate) fn poll(
        &mut self,
        is_idle: bool,
        events: &mut Vec<PeerEvent>,
    ) -> Result<bool, EngineError> {
        let mut has_moved = self.submit_parts();
        has_moved |= self.await_puts();
        let wait = match is_idle && !has_moved {
            true => WAIT,
            false => Duration::ZERO,
        };
        let mut next = match wait {
            Duration::ZERO => self.fabric.poll(),
            wait => self.fabric.wait(wait),
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
        let flying = self.flying.remove(&done.token).ok_or_else(protocol_error)?;
        let bytes = done.result?;
        let memory = done.buffer.ok_or_else(protocol_error)?;
        match flying {
            FrameInFlight::ControlSend | FrameInFlight::NoneSend => self.control.push(memory),
            FrameInFlight::AnswerReceive { from } => {
                let control = Control::decode(memory.get(..bytes).unwrap_or_default(), self.phase);
                self.control.push(memory);
                self.answer = Some(Answer {
                    owner: from,
                    accepted: match control {
                        Some(Control::Accept { batch, count }) => Some((batch as usize, count)),
                        Some(Control::Decline) => None,
                        _ => return Err(protocol_error().into()),
                    },
                });
            }
            FrameInFlight::ControlReceive { from } => {
                let control = Control::decode(memory.get(..bytes).unwrap_or_default(), self.phase);
                self.control.push(memory);
                self.heard(from, control.ok_or_else(protocol_error)?)?;
            }
            FrameInFlight::ChunkReceive {
                engine,
                began,
                lease,
            } => {
                let header = ChunkHeader::take(memory.get(..bytes).unwrap_or_default());
                let header = header.filter(|header| header.phase == self.phase);
                events.push(PeerEvent::Chunk {
                    engine,
                    began,
                    header: header.ok_or_else(protocol_error)?,
                    buffer: Buffer::from_parts(memory, lease),
                });
            }
            FrameInFlight::ChunkSend { lease } => {
                self.serve.push(Buffer::from_parts(memory, lease))
            }
            FrameInFlight::PutSend { lease } => {
                events.push(PeerEvent::BinSent(Buffer::from_parts(memory, lease)));
            }
            FrameInFlight::PutReceive {
                batch,
                bytes: announced,
                lease,
            } => {
                ensure(bytes == announced, protocol_error)?;
                events.push(PeerEvent::Keep {
                    batch,
                    bytes,
                    buffer: Buffer::from_parts(memory, lease),
                });
            }
            FrameInFlight::PartSend { to } => {
                self.frames.push(memory);
                self.parts.sent(to);
            }
            FrameInFlight::PartReceive { from } => {
                let part = memory.get(..bytes).unwrap_or_default();
                if let Some(buffer) = self.parts.came(from, part)? {
                    events.push(PeerEvent::Received { from, buffer });
                }
                self.frames.push(memory);
            }
        }
        Ok(())
    }

    /// Acts on a control message.
    fn heard(&mut self, from: usize, control: Control) -> Result<(), EngineError> {
        match control {
            Control::Get { batch } => self.gets.push_back((from, batch as usize)),
            Control::Put { batch, bytes } => {
                self.puts.push_back((from, batch as usize, bytes as usize));
            }
            Control::Offer => self.offers.push_back(from),
            Control::Accept { .. } | Control::Decline => return Err(protocol_error().into()),
            Control::Done => {
                self.done += 1;
                return Ok(());
            }
        }
        self.await_control(from)
    }

    /// Sends and awaits the next part of the first transfer to each rank, and from each rank.
    ///
    /// A rank that is awaited may send late. So the last frame is for what this rank sends.
    fn submit_parts(&mut self) -> bool {
        let mut has_moved = false;
        for other in 0..self.fabric.ranks() {
            if self.frames.len() > 1
                && self.parts.awaits(other)
                && let Some(memory) = self.frames.pop()
            {
                self.receive(
                    other,
                    PARTS,
                    memory,
                    FrameInFlight::PartReceive { from: other },
                );
                has_moved = true;
            }
            if self.parts.has_part(other)
                && let Some(mut memory) = self.frames.pop()
            {
                let length = self.parts.fill(other, &mut memory);
                let flying = FrameInFlight::PartSend { to: other };
                self.send(other, PARTS, (memory, 0..length), flying);
                has_moved = true;
            }
        }
        has_moved
    }

    /// Awaits announced update chunks while there are buffers for them.
    fn await_puts(&mut self) -> bool {
        let mut has_moved = false;
        while !self.keep.is_empty()
            && let Some((from, batch, bytes)) = self.puts.pop_front()
            && let Some(buffer) = self.keep.pop()
        {
            let (memory, lease) = buffer.into_parts();
            let receive = FrameInFlight::PutReceive {
                batch,
                bytes,
                lease,
            };
            self.receive(from, PUTS, memory, receive);
            has_moved = true;
        }
        has_moved
    }

    fn await_control(&mut self, from: usize) -> Result<(), EngineError> {
        let memory = self.control_buffer()?;
        self.receive(
            from,
            CONTROL,
            memory,
            FrameInFlight::ControlReceive { from },
        );
        Ok(())
    }

    fn tell(&mut self, to: usize, control: Control) -> Result<(), EngineError> {
        self.tell_on(CONTROL, to, control)
    }

    fn tell_on(
        &mut self,
        channel: Channel,
        to: usize,
        control: Control,
    ) -> Result<(), EngineError> {
        let mut memory = self.control_buffer()?;
        memory[..HEADER_BYTES].copy_from_slice(&control.encode(self.phase));
        self.send(
            to,
            channel,
            (memory, 0..HEADER_BYTES),
            FrameInFlight::ControlSend,
        );
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
        flying: FrameInFlight,
    ) {
        self.sent += range.len() as u64;
        let operation = FabricOperation::Send {
            to,
            channel,
            buffer,
            range,
        };
        self.submit(operation, flying);
    }

    fn receive(
        &mut self,
        from: usize,
        channel: Channel,
        buffer: AlignedBuffer,
        flying: FrameInFlight,
    ) {
        let operation = FabricOperation::Receive {
            from,
            channel,
            buffer,
        };
        self.submit(operation, flying);
    }

    fn submit(&mut self, operation: FabricOperation, flying: FrameInFlight) {
        let token = self.next_token;
        self.next_token += 1;
        self.flying.insert(token, flying);
        self.fabric.submit(operation, token);
    }
}
