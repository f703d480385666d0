//! The chunks of a phase on their way: requests to storage engines, reads of this rank's disk, writes of update chunks.
//!
//! The state is under one lock. Any worker moves it on, and no step blocks but that of an idle worker. A window of buffers bounds
//! the requests on their way (Chaos, section 6.5). A chunk that arrived waits there until a worker takes it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, TryLockError};

use graphmill_fabric::protocol_error;
use graphmill_graph::{ChunkPart, ChunkSet, ChunkView, StoredGraph};
use graphmill_raw::{Element, SplitMix64, lock};
use graphmill_storage::{Buffer, Completion, Operation, Queue, Step};

use crate::context::ExecContext;
use crate::error::{EngineError, ensure};
use crate::exec::stream::peers::{Answer, Event, Peers, SharedBytes};
use crate::exec::stream::protocol::ChunkHeader;
use crate::exec::stream::storage_engine::{ChunkRef, PhaseKind, StorageEngine};
use crate::exec::stream::updates::{self, UpdateId};
use crate::memory::stream::SLOT_HEADER_BYTES;

/// Operations of the disk on their way at most.
pub(crate) const QUEUE_DEPTH: usize = 32;
/// The tokens of writes of this rank's bins, and of those of other ranks; reads have smaller ones.
const WRITE: u64 = u64::MAX;
const KEPT: u64 = u64::MAX - 1;

/// The state of the service, which lives from pass to pass.
pub(crate) struct ServiceState {
    queue: Box<dyn Queue>,
    pub(crate) engine: StorageEngine,
    /// The window: buffers without a request.
    free: Vec<Buffer>,
    reading: BTreeMap<u64, Reading>,
    next_token: u64,
    /// The batches whose chunks this rank processes.
    requests: BTreeMap<usize, Requests>,
    /// Empty bins, to exchange for full ones.
    spare_bins: Vec<Buffer>,
    /// Bytes read and written since they were last taken.
    moved: [u64; 2],
    /// The other ranks, if there are any.
    pub(crate) peers: Option<Peers>,
    random: SplitMix64,
    /// Messages or accumulators that arrived, and their sender.
    received: Vec<(usize, Buffer)>,
}

/// A read on its way.
#[derive(Clone, Copy)]
struct Reading {
    batch: usize,
    chunk: ChunkRef,
    /// The rank that asked for it, if it is another one.
    asked_by: Option<usize>,
    /// Where the part that is read ends in the buffer.
    end: usize,
    /// The part behind it is read next.
    has_more: bool,
}

/// The requests for the chunks of one batch.
struct Requests {
    /// The storage engines that have unprocessed chunks, as far as is known.
    engines: Vec<usize>,
    in_flight: usize,
    arrived: VecDeque<Arrived>,
    /// Chunks that workers process.
    taken: usize,
}

impl Requests {
    fn is_dry(&self) -> bool {
        self.engines.is_empty()
    }
    fn busy(&self) -> usize {
        self.in_flight + self.arrived.len() + self.taken
    }
}

/// A chunk in a buffer of the window.
pub(crate) struct Arrived {
    pub(crate) batch: usize,
    content: Content,
    buffer: Buffer,
}

/// What is known of the bytes of a chunk.
enum Content {
    /// They were read here and not checked.
    Own(ChunkRef),
    /// Where the chunk is, and the data of its edges, as another rank found them.
    Came([[u32; 2]; 2]),
}

impl ServiceState {
    pub(crate) fn new(
        queue: Box<dyn Queue>,
        engine: StorageEngine,
        window: Vec<Buffer>,
        spare_bins: Vec<Buffer>,
        peers: Option<Peers>,
    ) -> Self {
        ServiceState {
            queue,
            engine,
            free: window,
            reading: BTreeMap::new(),
            next_token: 0,
            requests: BTreeMap::new(),
            spare_bins,
            moved: [0; 2],
            random: SplitMix64::new(peers.as_ref().map_or(0, Peers::rank) as u64),
            peers,
            received: Vec::new(),
        }
    }

    /// Bytes sent to other ranks since the last call.
    pub(crate) fn take_sent(&mut self) -> u64 {
        let peers = self.peers.as_mut();
        peers.map_or(0, |peers| std::mem::take(&mut peers.sent))
    }

    /// Bytes read and written since the last call.
    pub(crate) fn take_traffic(&mut self) -> [u64; 2] {
        std::mem::take(&mut self.moved)
    }
}

/// The service during one phase.
pub(crate) struct ChunkService<'p> {
    context: &'p ExecContext<'p>,
    graph: &'p Arc<StoredGraph>,
    chunks: &'p ChunkSet,
    kind: PhaseKind,
    /// The number of the phase, which no other phase of the run has.
    phase: u64,
    /// Workers read the data of edges too.
    reads_data: bool,
    state: Mutex<&'p mut ServiceState>,
}

impl<'p> ChunkService<'p> {
    pub(crate) fn new(
        context: &'p ExecContext<'p>,
        chunks: &'p ChunkSet,
        (kind, phase): (PhaseKind, u64),
        reads_data: bool,
        state: &'p mut ServiceState,
    ) -> Self {
        ChunkService {
            context,
            graph: context.graph,
            chunks,
            kind,
            phase,
            reads_data,
            state: Mutex::new(state),
        }
    }

    /// Asks for the chunks of a batch from now on.
    pub(crate) fn open(&self, batch: usize) {
        let state = &mut **lock(&self.state);
        let engines = match &state.peers {
            Some(peers) => (0..peers.ranks()).collect(),
            None => vec![self.context.ranks.rank()],
        };
        state.requests.entry(batch).or_insert(Requests {
            engines,
            in_flight: 0,
            arrived: VecDeque::new(),
            taken: 0,
        });
    }

    /// True if all chunks of a batch were processed by this rank or are processed by others.
    pub(crate) fn is_done(&self, batch: usize) -> bool {
        let state = lock(&self.state);
        let requests = state.requests.get(&batch);
        requests.is_none_or(|requests| requests.is_dry() && requests.busy() == 0)
    }

    /// True if no more chunks of a batch will arrive at a worker.
    pub(crate) fn is_drained(&self, batch: usize) -> bool {
        let state = lock(&self.state);
        let requests = state.requests.get(&batch);
        requests.is_none_or(|requests| {
            requests.is_dry() && requests.in_flight + requests.arrived.len() == 0
        })
    }

    /// True if no chunk is on its way or processed, and no batch has chunks left; ends the requests for all batches.
    pub(crate) fn all_done(&self) -> bool {
        let state = &mut **lock(&self.state);
        state.requests.retain(|_, of| !of.is_dry() || of.busy() > 0);
        state.requests.is_empty()
    }

    /// Ends the requests for a batch.
    pub(crate) fn close(&self, batch: usize) {
        lock(&self.state).requests.remove(&batch);
    }

    /// Takes a chunk that arrived, of one batch or of any.
    pub(crate) fn take(&self, of: Option<usize>) -> Result<Option<Arrived>, EngineError> {
        let state = &mut **lock(&self.state);
        self.advance(state, false)?;
        let has_one = |requests: &Requests| !requests.arrived.is_empty();
        let found = match of {
            Some(batch) => state.requests.get_mut(&batch).filter(|of| has_one(of)),
            None => state.requests.values_mut().find(|of| has_one(of)),
        };
        Ok(found.and_then(|requests| {
            requests.taken += 1;
            requests.arrived.pop_front()
        }))
    }

    /// Gives back the buffer of a chunk that was processed.
    pub(crate) fn release(&self, arrived: Arrived) {
        let state = &mut **lock(&self.state);
        if let Some(requests) = state.requests.get_mut(&arrived.batch) {
            requests.taken -= 1;
        }
        state.free.push(arrived.buffer);
    }

    /// Moves the chunks on for an idle worker, which waits for the disk or for another rank if nothing else is to be done.
    pub(crate) fn idle(&self) -> Result<Step, EngineError> {
        let mut state = match self.state.try_lock() {
            Ok(state) => state,
            Err(TryLockError::WouldBlock) => return Ok(Step::Waiting),
            Err(TryLockError::Poisoned(_)) => return Err(EngineError::Broken),
        };
        Ok(match self.advance(&mut state, true)? {
            true => Step::Worked,
            false => Step::Waiting,
        })
    }

    /// Takes what the disk and other ranks have completed, serves them, and asks for more chunks.
    ///
    /// Returns true if anything changed. An idle worker waits a moment if nothing did.
    fn advance(&self, state: &mut ServiceState, is_idle: bool) -> Result<bool, EngineError> {
        let mut has_moved = self.take_completed(state)?;
        has_moved |= self.hear(state, false)?;
        has_moved |= self.serve(state)?;
        has_moved |= self.ask(state)?;
        if has_moved || !is_idle {
            return Ok(has_moved);
        }
        if state.queue.in_flight() > 0 {
            state.queue.block();
            return self.take_completed(state);
        }
        self.hear(state, true)
    }

    /// Takes what the disk has completed.
    fn take_completed(&self, state: &mut ServiceState) -> Result<bool, EngineError> {
        let mut has_moved = false;
        while let Some(done) = state.queue.poll() {
            self.complete(state, done)?;
            has_moved = true;
        }
        Ok(has_moved)
    }

    /// Takes what other ranks sent.
    fn hear(&self, state: &mut ServiceState, is_idle: bool) -> Result<bool, EngineError> {
        let Some(peers) = &mut state.peers else {
            return Ok(false);
        };
        let mut events = Vec::new();
        let has_moved = peers.poll(is_idle, &mut events)?;
        for event in events {
            match event {
                Event::Chunk {
                    engine,
                    header,
                    buffer,
                } => {
                    let batch = header.batch as usize;
                    let requests = state.requests.get_mut(&batch);
                    let requests = requests.ok_or_else(protocol_error)?;
                    requests.in_flight -= 1;
                    if header.has_chunk {
                        requests.arrived.push_back(Arrived {
                            batch,
                            content: Content::Came(header.parts),
                            buffer,
                        });
                    } else {
                        requests.engines.retain(|other| *other != engine);
                        state.free.push(buffer);
                    }
                }
                Event::Keep {
                    batch,
                    bytes,
                    buffer,
                } => self.write(state, (batch, bytes, buffer), KEPT)?,
                Event::BinSent(buffer) => state.spare_bins.push(buffer),
                Event::Received { from, buffer } => state.received.push((from, buffer)),
            }
        }
        Ok(has_moved)
    }

    /// Serves the requests of other ranks, as far as there are buffers for them.
    fn serve(&self, state: &mut ServiceState) -> Result<bool, EngineError> {
        let mut has_moved = false;
        loop {
            let Some(peers) = &mut state.peers else {
                return Ok(false);
            };
            if peers.serve.is_empty() {
                return Ok(has_moved);
            }
            let Some((rank, batch)) = peers.gets.pop_front() else {
                return Ok(has_moved);
            };
            has_moved = true;
            ensure(batch < self.context.batches.len(), protocol_error)?;
            match state.engine.next(self.kind, self.chunks, batch) {
                None => peers.answer_none(rank, batch)?,
                Some(chunk) => {
                    if let Some(buffer) = peers.serve.pop() {
                        self.read(state, (batch, chunk, Some(rank)), buffer)?;
                    }
                }
            }
        }
    }

    /// Asks for more chunks, as far as the window has buffers.
    fn ask(&self, state: &mut ServiceState) -> Result<bool, EngineError> {
        let mut has_moved = false;
        while !state.free.is_empty() {
            let open = state.requests.iter_mut().filter(|(_, of)| !of.is_dry());
            let Some((&batch, requests)) = open.min_by_key(|(_, requests)| requests.busy()) else {
                break;
            };
            has_moved = true;
            let drawn = state.random.below(requests.engines.len() as u64) as usize;
            let engine = requests.engines[drawn];
            if engine != self.context.ranks.rank() {
                let Some((peers, buffer)) = state.peers.as_mut().zip(state.free.pop()) else {
                    break;
                };
                requests.in_flight += 1;
                peers.get(engine, batch, buffer)?;
                continue;
            }
            match state.engine.next(self.kind, self.chunks, batch) {
                None => {
                    requests.engines.swap_remove(drawn);
                }
                Some(chunk) => {
                    requests.in_flight += 1;
                    if let Some(buffer) = state.free.pop() {
                        self.read(state, (batch, chunk, None), buffer)?;
                    }
                }
            }
        }
        Ok(has_moved)
    }

    /// Reads a chunk of this rank's storage engine, for a rank that asked for it or for this one.
    fn read(
        &self,
        state: &mut ServiceState,
        (batch, chunk, asked_by): (usize, ChunkRef, Option<usize>),
        buffer: Buffer,
    ) -> Result<(), EngineError> {
        let reading = Reading {
            batch,
            chunk,
            asked_by,
            end: SLOT_HEADER_BYTES,
            has_more: false,
        };
        match chunk {
            ChunkRef::Arcs(_) => self.read_part(state, reading, ChunkPart::Arcs, buffer),
            ChunkRef::Updates(update) => {
                let file = state.engine.updates()?.file.clone();
                let range = SLOT_HEADER_BYTES..SLOT_HEADER_BYTES + update.bytes;
                let end = range.end;
                let read = Operation::Read {
                    file,
                    offset: update.offset,
                    buffer,
                    range,
                };
                state.submit(Reading { end, ..reading }, read);
                Ok(())
            }
        }
    }

    /// Reads the arcs of a chunk, or their data behind them.
    fn read_part(
        &self,
        state: &mut ServiceState,
        reading: Reading,
        part: ChunkPart,
        buffer: Buffer,
    ) -> Result<(), EngineError> {
        let ChunkRef::Arcs(chunk) = reading.chunk else {
            return Err(EngineError::Broken);
        };
        let pages = self.graph.chunk_read(&chunk, part)?;
        let range = reading.end..reading.end + pages.bytes;
        let reading = Reading {
            end: range.end,
            has_more: self.reads_data && part == ChunkPart::Arcs,
            ..reading
        };
        let read = Operation::Read {
            file: pages.file,
            offset: pages.offset,
            buffer,
            range,
        };
        state.submit(reading, read);
        Ok(())
    }

    /// Takes a finished operation of the disk.
    fn complete(&self, state: &mut ServiceState, done: Completion) -> Result<(), EngineError> {
        let bytes = done.result? as u64;
        let buffer = done.buffer.ok_or(EngineError::Broken)?;
        if done.token >= KEPT {
            state.moved[1] += bytes;
            match &mut state.peers {
                Some(peers) if done.token == KEPT => peers.keep.push(buffer),
                _ => state.spare_bins.push(buffer),
            }
            return Ok(());
        }
        state.moved[0] += bytes;
        let reading = state.reading.remove(&done.token);
        let reading = reading.ok_or(EngineError::Broken)?;
        if reading.has_more {
            return self.read_part(state, reading, ChunkPart::Data, buffer);
        }
        let Reading { batch, chunk, .. } = reading;
        if let Some(rank) = reading.asked_by {
            let header = ChunkHeader {
                batch: batch as u32,
                phase: self.fabric_phase(),
                has_chunk: true,
                parts: self.parts(&chunk, &buffer)?,
            };
            let peers = state.peers.as_mut().ok_or(EngineError::Broken)?;
            peers.answer_get(rank, header, buffer);
            return Ok(());
        }
        let requests = state.requests.get_mut(&batch);
        let requests = requests.ok_or(EngineError::Broken)?;
        requests.in_flight -= 1;
        requests.arrived.push_back(Arrived {
            batch,
            content: Content::Own(chunk),
            buffer,
        });
        Ok(())
    }

    /// Checks the pages of a chunk that was read here; returns where it is, and the data of its edges.
    fn parts(&self, chunk: &ChunkRef, buffer: &[u8]) -> Result<[[u32; 2]; 2], EngineError> {
        let mut at = SLOT_HEADER_BYTES;
        let chunk = match chunk {
            ChunkRef::Arcs(chunk) => chunk,
            ChunkRef::Updates(update) => {
                return Ok([[at as u32, (at + update.bytes) as u32], [0; 2]]);
            }
        };
        let mut part = |part| -> Result<[u32; 2], EngineError> {
            let read = self.graph.chunk_read(chunk, part)?;
            let range = self
                .graph
                .check_chunk(&read, &buffer[at..at + read.bytes])?;
            let found = [at + range.start, at + range.end].map(|at| at as u32);
            at += read.bytes;
            Ok(found)
        };
        let arcs = part(ChunkPart::Arcs)?;
        Ok(match self.reads_data {
            true => [arcs, part(ChunkPart::Data)?],
            false => [arcs, [0; 2]],
        })
    }

    /// Returns the bytes of a chunk, and of the data of its edges.
    fn bytes_of<'a>(&self, arrived: &'a Arrived) -> Result<[&'a [u8]; 2], EngineError> {
        let parts = match &arrived.content {
            Content::Own(chunk) => self.parts(chunk, &arrived.buffer)?,
            Content::Came(parts) => *parts,
        };
        let slice = |[from, to]: [u32; 2]| arrived.buffer.get(from as usize..to as usize);
        match parts.map(slice) {
            [Some(chunk), Some(data)] => Ok([chunk, data]),
            _ => Err(protocol_error().into()),
        }
    }

    /// Parses a chunk of arcs; returns it with the data of its edges.
    pub(crate) fn arcs<'a>(
        &self,
        arrived: &'a Arrived,
    ) -> Result<(ChunkView<'a>, &'a [u8]), EngineError> {
        let [arcs, data] = self.bytes_of(arrived)?;
        let view = ChunkView::parse(arcs, self.graph.batches(), arrived.batch)?;
        let bytes = match self.reads_data {
            true => view.edges() * self.graph.edge_kind().bytes(),
            false => 0,
        };
        ensure(data.len() == bytes, protocol_error)?;
        Ok((view, data))
    }

    /// Checks an update chunk; returns the destinations of its updates, and their values.
    pub(crate) fn updates<'a, A: Element>(
        &self,
        arrived: &'a Arrived,
    ) -> Result<(&'a [u32], &'a [A]), EngineError> {
        let [bytes, _] = self.bytes_of(arrived)?;
        let found = updates::parts(bytes, self.update_id(arrived.batch));
        let corrupt = || match &arrived.content {
            Content::Own(ChunkRef::Updates(chunk)) => match lock(&self.state).engine.updates() {
                Ok(updates) => updates.corrupt(chunk.offset),
                Err(error) => error,
            },
            _ => protocol_error().into(),
        };
        found.ok_or_else(corrupt)
    }

    /// The identity of the update chunks of a batch that scatter writes and gather reads.
    fn update_id(&self, batch: usize) -> UpdateId {
        UpdateId {
            batch,
            phase: self.phase,
        }
    }

    /// The number of the phase on the way to other ranks.
    fn fabric_phase(&self) -> u64 {
        2 * self.phase + u64::from(self.kind == PhaseKind::Gather)
    }

    /// Sends a full bin as an update chunk to a random storage engine, and exchanges its buffer for an empty one.
    pub(crate) fn put(
        &self,
        batch: usize,
        bin: &mut Buffer,
        (count, capacity, width): (usize, usize, usize),
    ) -> Result<(), EngineError> {
        let bytes = updates::seal(bin, self.update_id(batch), count, capacity, width);
        let state = &mut **lock(&self.state);
        let spare = loop {
            if let Some(spare) = state.spare_bins.pop() {
                break spare;
            }
            self.context.ranks.check_stop()?;
            self.advance(state, true)?;
        };
        let buffer = std::mem::replace(bin, spare);
        let ranks = &self.context.ranks;
        let engine = state.random.below(ranks.count() as u64) as usize;
        match &mut state.peers {
            Some(peers) if engine != ranks.rank() => peers.put(engine, batch, bytes, buffer),
            _ => self.write(state, (batch, bytes, buffer), WRITE),
        }
    }

    /// Writes an update chunk to this rank's storage engine.
    fn write(
        &self,
        state: &mut ServiceState,
        (batch, bytes, buffer): (usize, usize, Buffer),
        token: u64,
    ) -> Result<(), EngineError> {
        ensure(batch < self.context.batches.len(), protocol_error)?;
        state.write(batch, bytes, buffer, token)
    }

    /// True if nothing is sent to an owner any more, or awaited from one.
    pub(crate) fn is_delivered(&self) -> bool {
        let state = lock(&self.state);
        state.peers.as_ref().is_none_or(Peers::has_no_parts)
    }

    /// Offers help to an owner.
    pub(crate) fn offer(&self, owner: usize) -> Result<(), EngineError> {
        self.with_peers(|peers| peers.offer(owner))
    }

    /// Takes the answer to an offer of this rank.
    pub(crate) fn take_answer(&self) -> Option<Answer> {
        lock(&self.state).peers.as_mut()?.take_answer()
    }

    /// Takes the next rank that offers help.
    pub(crate) fn take_offer(&self) -> Option<usize> {
        lock(&self.state).peers.as_mut()?.take_offer()
    }

    /// Answers an offer: the batch to help with and its messages, or no help.
    pub(crate) fn answer_offer(
        &self,
        rank: usize,
        accepted: Option<(usize, u64)>,
    ) -> Result<(), EngineError> {
        self.with_peers(|peers| peers.answer_offer(rank, accepted))
    }

    /// Sends messages to a helper, or accumulators to an owner.
    pub(crate) fn send_bytes(
        &self,
        to: usize,
        bytes: Arc<dyn SharedBytes>,
    ) -> Result<(), EngineError> {
        self.with_peers(|peers| {
            peers.send_bytes(to, bytes);
            Ok(())
        })
    }

    /// Receives `bytes` bytes of a rank into a buffer; [`take_received`](Self::take_received) returns it.
    pub(crate) fn receive_bytes(
        &self,
        from: usize,
        buffer: Buffer,
        bytes: usize,
    ) -> Result<(), EngineError> {
        self.with_peers(|peers| {
            peers.receive_bytes(from, buffer, bytes);
            Ok(())
        })
    }

    /// Takes the bytes of a rank once they are complete.
    pub(crate) fn take_received(&self, from: usize) -> Option<Buffer> {
        let received = &mut lock(&self.state).received;
        let position = received.iter().position(|(other, _)| *other == from)?;
        Some(received.swap_remove(position).1)
    }

    fn with_peers<T>(
        &self,
        work: impl FnOnce(&mut Peers) -> Result<T, EngineError>,
    ) -> Result<T, EngineError> {
        work(
            lock(&self.state)
                .peers
                .as_mut()
                .ok_or(EngineError::Broken)?,
        )
    }

    /// Bytes of a batch at all storage engines that were not handed out, by those at this rank.
    pub(crate) fn bytes_left(&self, batch: usize) -> u64 {
        let state = lock(&self.state);
        let left = state.engine.bytes_left(self.kind, self.chunks, batch);
        left * self.context.ranks.count() as u64
    }

    /// The number of the phase, which no other phase of the run has.
    pub(crate) fn number(&self) -> u64 {
        self.fabric_phase()
    }

    /// Begins the phase for other ranks.
    pub(crate) fn begin(&self) -> Result<(), EngineError> {
        match (&mut lock(&self.state).peers, &self.context.wire) {
            (Some(peers), Some(wire)) => {
                let frames = std::mem::take(&mut lock(wire).free);
                peers.begin(self.fabric_phase(), frames)
            }
            _ => Ok(()),
        }
    }

    /// Serves other ranks until all have ended the phase: the global barrier.
    ///
    /// This rank asks for nothing more. At the end all its writes are done.
    pub(crate) fn end(&self) -> Result<(), EngineError> {
        let state = &mut **lock(&self.state);
        loop {
            if let Some(peers) = &mut state.peers {
                while let Some(rank) = peers.take_offer() {
                    peers.answer_offer(rank, None)?;
                }
                if !peers.said_done() && peers.is_quiet() {
                    peers.say_done()?;
                }
                if !peers.is_over() {
                    self.context.ranks.check_stop()?;
                    self.advance(state, true)?;
                    continue;
                }
            }
            let Some(done) = state.queue.wait() else {
                break;
            };
            self.complete(state, done)?;
        }
        state.requests.clear();
        if let (Some(peers), Some(wire)) = (&mut state.peers, &self.context.wire) {
            lock(wire).free = peers.end();
        }
        Ok(())
    }
}

impl ServiceState {
    /// Writes a bin to this rank's storage engine between two phases, and exchanges its buffer for an empty one.
    pub(crate) fn put_own(
        &mut self,
        batch: usize,
        phase: u64,
        bin: &mut Buffer,
        (count, capacity, width): (usize, usize, usize),
    ) -> Result<(), EngineError> {
        let bytes = updates::seal(bin, UpdateId { batch, phase }, count, capacity, width);
        let spare = self.spare_bins.pop().ok_or(EngineError::Broken)?;
        let buffer = std::mem::replace(bin, spare);
        self.write(batch, bytes, buffer, WRITE)?;
        // No more than one is on its way, as nothing else goes on.
        let done = self.queue.wait().ok_or(EngineError::Broken)?;
        self.moved[1] += done.result? as u64;
        self.spare_bins.extend(done.buffer);
        Ok(())
    }

    fn write(
        &mut self,
        batch: usize,
        bytes: usize,
        buffer: Buffer,
        token: u64,
    ) -> Result<(), EngineError> {
        let updates = self.engine.updates()?;
        let (file, chunk) = (updates.file.clone(), updates.append(batch, bytes)?);
        let write = Operation::Write {
            file,
            offset: chunk.offset,
            buffer,
            range: 0..chunk.bytes,
        };
        self.queue.submit(write, token);
        Ok(())
    }

    fn submit(&mut self, reading: Reading, read: Operation) {
        let token = self.next_token;
        self.next_token = (self.next_token + 1) % KEPT;
        self.reading.insert(token, reading);
        self.queue.submit(read, token);
    }
}
