//! The chunks of a phase on their way: requests to storage engines, reads of this rank's disk, writes of update chunks.
//!
//! The state is under one lock. Any worker moves it on, and no step blocks but that of an idle worker. A window of buffers bounds
//! the requests on their way (Chaos, section 6.5). A chunk that arrived waits there until a worker takes it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, TryLockError};
use std::time::Duration;

use graphmill_fabric::protocol_error;
use graphmill_graph::{ChunkSet, ChunkView};
use graphmill_raw::{SplitMix64, failpoint, lock};
use graphmill_storage::{Buffer, Queue, Step};

use crate::context::ExecContext;
use crate::error::{EngineError, ensure};
use crate::exec::stream::peers::{PeerEvent, Peers};
use crate::exec::stream::protocol::MessageKind;
use crate::exec::stream::storage_engine::{ChunkRef, PhaseKind, StorageEngine};
use crate::exec::stream::updates::{self, UpdateFile, UpdateId};
use crate::schedule::window::RequestTimes;

/// Operations of the disk on their way at most.
pub(crate) const QUEUE_DEPTH: usize = 32;
/// The tokens of writes of this rank's bins, and of bins from other ranks; reads have smaller ones.
const WRITE: u64 = u64::MAX;
pub(super) const KEPT: u64 = u64::MAX - 1;

/// The state of the service, which lives from pass to pass.
pub(crate) struct ServiceState {
    pub(super) queue: Box<dyn Queue>,
    pub(crate) engine: StorageEngine,
    /// Times of requests to other ranks, by which the window grows and shrinks within its buffers.
    times: RequestTimes,
    /// Number of buffers of the window.
    buffers: usize,
    /// The buffers without a request.
    pub(super) free: Vec<Buffer>,
    pub(super) reading: BTreeMap<u64, Reading>,
    pub(super) next_token: u64,
    /// The batches whose chunks this rank processes.
    pub(super) requests: BTreeMap<usize, Requests>,
    /// Empty bins, to exchange for full ones.
    pub(super) spare_bins: Vec<Buffer>,
    /// Bytes read and written since they were last taken.
    pub(super) moved: [u64; 2],
    /// The other ranks, if there are any.
    pub(crate) peers: Option<Peers>,
    pub(super) random: SplitMix64,
}

/// A read on its way.
#[derive(Clone, Copy)]
pub(super) struct Reading {
    pub(super) batch: usize,
    pub(super) chunk: ChunkRef,
    /// The rank that asked for it, if it is another one.
    pub(super) asked_by: Option<usize>,
    pub(super) began: Duration,
}

/// The requests for the chunks of one batch.
pub(super) struct Requests {
    /// The storage engines that are not known to lack unprocessed chunks.
    pub(super) engines: Vec<usize>,
    pub(super) in_flight: usize,
    pub(super) arrived: VecDeque<Arrived>,
    /// Chunks that workers process.
    pub(super) taken: usize,
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
    pub(super) content: ChunkContent,
    pub(super) buffer: Buffer,
}

/// The known facts about the bytes of a chunk.
pub(super) enum ChunkContent {
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
            times: RequestTimes::default(),
            buffers: window.len(),
            free: window,
            reading: BTreeMap::new(),
            next_token: 0,
            requests: BTreeMap::new(),
            spare_bins,
            moved: [0; 2],
            random: SplitMix64::new(peers.as_ref().map_or(0, Peers::rank) as u64),
            peers,
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
    pub(super) context: &'p ExecContext<'p>,
    pub(super) chunks: &'p ChunkSet,
    pub(super) kind: PhaseKind,
    /// The number of the phase, which no other phase of the run has.
    pub(super) phase: u64,
    /// Workers read the data of edges too.
    pub(super) reads_data: bool,
    pub(super) state: Mutex<&'p mut ServiceState>,
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

    /// True if no storage engine has chunks left of the batches whose chunks are asked for.
    pub(crate) fn are_all_dry(&self) -> bool {
        let state = lock(&self.state);
        state.requests.values().all(Requests::is_dry)
    }

    /// True if no chunk is on its way or processed, and no batch has chunks left.
    ///
    /// It ends the requests for batches without chunks.
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

    /// Advances the service for an idle worker.
    ///
    /// The worker waits for the disk or for another rank if there is nothing else to do.
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
    pub(super) fn advance(
        &self,
        state: &mut ServiceState,
        is_idle: bool,
    ) -> Result<bool, EngineError> {
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
                PeerEvent::Chunk {
                    engine,
                    began,
                    header,
                    buffer,
                } => {
                    let batch = header.batch as usize;
                    failpoint!(AnswerOfOtherBatch: batch = {
                        let mut asking = state.requests.iter().filter(|(_, of)| of.in_flight > 0);
                        asking.next().map_or(batch, |(first, _)| *first)
                    });
                    let requests = state.requests.get_mut(&batch);
                    let requests = requests.ok_or_else(protocol_error)?;
                    let is_answer =
                        matches!(header.kind, MessageKind::Chunk | MessageKind::NoChunk);
                    ensure(is_answer && requests.in_flight > 0, protocol_error)?;
                    requests.in_flight -= 1;
                    if header.kind == MessageKind::Chunk {
                        let service = Duration::from_micros(header.service.into());
                        let whole = self.context.clock.now().saturating_sub(began);
                        state.times.record(whole.saturating_sub(service), service);
                        requests.arrived.push_back(Arrived {
                            batch,
                            content: ChunkContent::Came(header.parts),
                            buffer,
                        });
                    } else {
                        requests.engines.retain(|other| *other != engine);
                        state.free.push(buffer);
                    }
                }
                PeerEvent::Keep(batch, bytes, buffer) => {
                    self.write(state, (batch, bytes, buffer), KEPT)?;
                }
                PeerEvent::BinSent(buffer) => state.spare_bins.push(buffer),
            }
        }
        Ok(has_moved)
    }

    /// Serves the requests of other ranks while there are buffers for them.
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

    /// Asks for more chunks while the window has buffers.
    fn ask(&self, state: &mut ServiceState) -> Result<bool, EngineError> {
        let mut has_moved = false;
        let (ranks, workers) = (&self.context.ranks, self.context.workers.count());
        let fixed = self.context.options.window;
        let window = state.times.window(ranks.count(), workers, fixed);
        while !state.free.is_empty() && state.buffers - state.free.len() < window {
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
                peers.get(engine, batch, buffer, self.context.clock.now())?;
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

    /// Returns the bytes of a chunk, and of the data of its edges.
    fn bytes_of<'a>(&self, arrived: &'a Arrived) -> Result<[&'a [u8]; 2], EngineError> {
        let parts = match &arrived.content {
            ChunkContent::Own(chunk) => self.parts(chunk, &arrived.buffer)?,
            ChunkContent::Came(parts) => *parts,
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
        let batches = self.context.graph.batches();
        let view = match &arrived.content {
            ChunkContent::Own(ChunkRef::Arcs(chunk)) => self.chunks.parse(chunk, arcs, batches)?,
            _ => ChunkView::parse(arcs, batches, arrived.batch)?,
        };
        let bytes = match self.reads_data {
            true => view.edges() * self.context.graph.edge_kind().bytes(),
            false => 0,
        };
        ensure(data.len() == bytes, protocol_error)?;
        Ok((view, data))
    }

    /// Checks an update chunk; returns the destinations of its updates, and the bytes of their values.
    pub(crate) fn updates<'a>(
        &self,
        arrived: &'a Arrived,
        width: usize,
    ) -> Result<(&'a [u32], &'a [u8]), EngineError> {
        let [bytes, _] = self.bytes_of(arrived)?;
        let found = updates::parts(bytes, self.update_id(arrived.batch), width);
        let corrupt = || match &arrived.content {
            ChunkContent::Own(ChunkRef::Updates(chunk)) => EngineError::CorruptPage {
                path: UpdateFile::path(self.context),
                offset: chunk.offset,
            },
            _ => protocol_error().into(),
        };
        found.ok_or_else(corrupt)
    }

    /// The identity of the update chunks of a batch that scatter writes and gather reads.
    pub(super) fn update_id(&self, batch: usize) -> UpdateId {
        UpdateId {
            batch,
            phase: self.phase,
        }
    }

    /// The number of the phase on the way to other ranks.
    pub(crate) fn fabric_phase(&self) -> u64 {
        2 * self.phase + u64::from(self.kind == PhaseKind::Gather)
    }

    /// Sends a full bin as an update chunk to a random storage engine.
    ///
    /// It exchanges the bin's buffer for an empty one.
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

    /// Bytes of a batch at all storage engines that were not handed out, by those at this rank.
    pub(crate) fn bytes_left(&self, batch: usize) -> u64 {
        let state = lock(&self.state);
        let left = state.engine.bytes_left(self.kind, self.chunks, batch);
        left * self.context.ranks.count() as u64
    }

    /// Calls `work` with the other ranks; returns `None` if there are none.
    pub(crate) fn with_peers<T>(&self, work: impl FnOnce(&mut Peers) -> T) -> Option<T> {
        lock(&self.state).peers.as_mut().map(work)
    }

    /// Takes the buffers of messages or accumulators that were sent.
    pub(crate) fn take_returned(&self) -> Vec<Buffer> {
        self.with_peers(Peers::take_returned).unwrap_or_default()
    }

    /// Takes the messages or accumulators of a batch from a rank once they are complete.
    pub(crate) fn take_received(&self, of: (usize, usize)) -> Option<Buffer> {
        self.with_peers(|peers| peers.take_received(of))?
    }

    /// Begins the phase for other ranks.
    pub(crate) fn begin(&self) -> Result<(), EngineError> {
        let begun = self.with_peers(|peers| peers.begin(self.fabric_phase()));
        begun.unwrap_or(Ok(()))
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
        let is_idle = |of: &Requests| of.busy() == 0;
        ensure(state.requests.values().all(is_idle), || EngineError::Broken)?;
        state.requests.clear();
        Ok(())
    }
}
