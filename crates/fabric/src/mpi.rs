//! Ranks that are processes of an MPI job.
//!
//! A thread starts MPI, lets it make progress, completes operations, sends a heartbeat to the other ranks, and ends MPI. A rank that fails
//! reports it, with the cause. A rank that sends nothing for [`SILENCE`] is lost.
//!
//! Reports of ranks use a channel of their own, as frames of up to [`WORD_BYTES`] bytes. The first byte is the kind:
//!
//! - `.`: alive;
//! - `-`: done with the others;
//! - `!`: failed, and the cause;
//! - `x`: ended because another rank is lost: its number, and the cause.
//!
//! Ranks end together: a rank that fails waits a little for the last reports of the others. `mpirun` kills the remaining ranks when the
//! first has failed. By that time they must have reported the cause and removed their temporary files.

mod plugin;

/// The source of the plugin, to be compiled against an MPI.
pub const MPI_PLUGIN: &str = include_str!("mpi/plugin.c");

use std::collections::{BTreeMap, VecDeque};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use graphmill_raw::AlignedBuffer;

use self::plugin::{Done, Failure, Plugin};
use crate::collective::CHANNEL as COLLECTIVE;
use crate::error::FabricError;
use crate::port::{Channel, Fabric, FabricCompletion, FabricOperation, SILENCE, SILENT};

/// The channel of what ranks say of themselves.
const WORDS: Channel = COLLECTIVE - 1;
const WORD_BYTES: usize = 1024;
/// Time between two words of a rank.
const BEAT: Duration = Duration::from_millis(500);
/// Beats without a word after which a rank is lost.
const SILENT_BEATS: u32 = (SILENCE.as_millis() / BEAT.as_millis()) as u32;
/// Shortest and longest rest of an idle thread; rests double in between.
const REST: Duration = Duration::from_micros(20);
const REST_MAX: Duration = Duration::from_millis(1);
/// The longest that a rank that fails waits for the last words of the others.
const LAST_WORDS: Duration = Duration::from_secs(3);

/// This process as a rank of an MPI job.
#[derive(Debug)]
pub struct MpiFabric {
    shared: Arc<MpiShared>,
    rank: usize,
    ranks: usize,
    pulse: Option<JoinHandle<()>>,
    /// MPI is at its end, as the thread says.
    finished: Mutex<Receiver<()>>,
}

#[derive(Debug)]
struct MpiShared {
    state: Mutex<MpiState>,
    /// All are done with each other: the thread ends MPI, and has the state meanwhile.
    finishing: AtomicBool,
    finished: AtomicBool,
}

#[derive(Debug)]
struct MpiState {
    plugin: Plugin,
    /// Operations in flight, by slot.
    flying: BTreeMap<i32, Flying>,
    complete: VecDeque<FabricCompletion>,
    in_flight: usize,
    peers: Vec<Peer>,
    lost: Option<FabricError>,
    /// Whether a rank is, for those who do not ask.
    has_lost: Arc<AtomicBool>,
    /// Another rank said that it fails, and says so to all.
    was_told: bool,
    /// True once the rank has sent its last report: it ignores all others.
    leaving: bool,
    /// Nothing is asked of MPI any more.
    ended: bool,
}

#[derive(Clone, Copy, Debug)]
enum Flying {
    /// An operation of the user's.
    Sent {
        token: u64,
        to: usize,
    },
    Awaited {
        token: u64,
        from: usize,
        room: usize,
    },
    /// Words to a rank, and of one.
    Word {
        to: usize,
    },
    Heard {
        from: usize,
    },
}

/// The state of another rank.
#[derive(Clone, Copy, Debug, Default)]
struct Peer {
    /// Beats since it was heard.
    silent: u32,
    /// It is done.
    left: bool,
    /// Words to it that have not arrived yet.
    telling: u32,
}

impl MpiFabric {
    /// Starts MPI by a plugin, once in a process.
    ///
    /// # Errors
    /// [`FabricError::Plugin`]: it is not there, or of another version, or MPI does not start.
    pub fn start(plugin: &Path) -> Result<MpiFabric, FabricError> {
        let (started, outcome) = channel();
        let (has_finished, finished) = channel();
        let plugin = plugin.to_path_buf();
        // MPI is to be started and ended by the same thread; which may hang in it, while others are stopped.
        let pulse = move || match MpiState::start(&plugin) {
            Err(error) => drop(started.send(Err(error))),
            Ok(state) => {
                let shared = Arc::new(MpiShared {
                    state: Mutex::new(state),
                    finishing: AtomicBool::new(false),
                    finished: AtomicBool::new(false),
                });
                if started.send(Ok(Arc::clone(&shared))).is_ok() {
                    shared.beat(&has_finished);
                }
            }
        };
        let no_thread = |error: String| FabricError::Thread(error);
        let builder = std::thread::Builder::new().name("mpi".into());
        let pulse = builder.spawn(pulse);
        let pulse = pulse.map_err(|error| no_thread(error.to_string()))?;
        let shared = outcome.recv();
        let shared = shared.map_err(|error| no_thread(error.to_string()))??;
        let (rank, ranks) = {
            let state = shared.state();
            (state.rank(), state.peers.len())
        };
        Ok(MpiFabric {
            shared,
            rank,
            ranks,
            pulse: Some(pulse),
            finished: Mutex::new(finished),
        })
    }

    /// Which MPI it is, as it says itself.
    pub fn library(&self) -> String {
        self.shared.state().plugin.library().to_string()
    }

    /// Lets MPI make progress until `is_done`, for at most `limit`.
    fn until(&self, limit: Duration, is_done: impl Fn(&mut MpiState) -> bool) {
        let end = now().checked_add(limit);
        let mut rest = REST;
        loop {
            {
                let mut state = self.shared.state();
                if state.go_on() {
                    rest = REST;
                }
                if is_done(&mut state) || end.is_some_and(|end| now() >= end) {
                    return;
                }
            }
            std::thread::sleep(rest);
            rest = (2 * rest).min(REST_MAX);
        }
    }

    fn end_pulse(&mut self) {
        self.shared.state().ended = true;
        if let Some(pulse) = self.pulse.take() {
            // It does not panic, and if it did there would be nothing to do about it.
            let _ = pulse.join();
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "what other processes do takes real time, whatever the clock of the work says"
)]
fn now() -> std::time::Instant {
    std::time::Instant::now()
}

impl MpiShared {
    fn state(&self) -> MutexGuard<'_, MpiState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The loop of the thread.
    fn beat(&self, has_finished: &Sender<()>) {
        let (mut rest, mut next) = (REST, now());
        loop {
            {
                let mut state = self.state();
                if state.ended {
                    return;
                }
                if self.finishing.load(Ordering::Acquire) {
                    state.ended = true;
                    if let Err(failure) = state.plugin.finish() {
                        let (rank, cause) = (state.rank(), failure.text());
                        state.lose(rank, &cause);
                    }
                    self.finished.store(true, Ordering::Release);
                    // The waiting thread may have ended.
                    let _ = has_finished.send(());
                    return;
                }
                if state.go_on() {
                    rest = REST;
                }
                if now() >= next {
                    state.beat();
                    // From now on: a process that was stopped is not taken for one that was silent.
                    next = now() + BEAT;
                }
            }
            std::thread::sleep(rest);
            rest = (2 * rest).min(REST_MAX);
        }
    }
}

impl MpiState {
    /// Starts MPI by a plugin, and listens to all.
    fn start(plugin: &Path) -> Result<MpiState, FabricError> {
        let plugin = Plugin::start(plugin)?;
        let (rank, ranks) = (plugin.rank, plugin.ranks);
        let mut state = MpiState {
            plugin,
            flying: BTreeMap::new(),
            complete: VecDeque::new(),
            in_flight: 0,
            peers: vec![Peer::default(); ranks],
            lost: None,
            has_lost: Arc::default(),
            was_told: false,
            leaving: false,
            ended: false,
        };
        state.peers[rank].left = true;
        (0..ranks).try_for_each(|peer| state.listen(peer))?;
        Ok(state)
    }

    fn rank(&self) -> usize {
        self.plugin.rank
    }

    /// Waits for the next word of another rank.
    fn listen(&mut self, from: usize) -> Result<(), FabricError> {
        if self.peers[from].left {
            return Ok(());
        }
        let room = AlignedBuffer::zeroed(WORD_BYTES)?;
        match self.plugin.receive(from, WORDS, room) {
            Ok(slot) => {
                self.flying.insert(slot, Flying::Heard { from });
            }
            Err((_, failure)) => self.lose(from, &failure.text()),
        }
        Ok(())
    }

    /// Sends a report to another rank.
    fn say(&mut self, to: usize, word: &str) {
        let bytes = &word.as_bytes()[..word.len().min(WORD_BYTES)];
        let Ok(mut buffer) = AlignedBuffer::zeroed(bytes.len()) else {
            // There will be memory for a later one.
            return;
        };
        buffer.copy_from_slice(bytes);
        match self.plugin.send(to, WORDS, buffer, 0..bytes.len()) {
            Ok(slot) => {
                self.peers[to].telling += 1;
                self.flying.insert(slot, Flying::Word { to });
            }
            Err((_, failure)) => self.lose(to, &failure.text()),
        }
    }

    /// Sends the last report to all ranks, those that are done too, since they wait for it.
    fn say_to_all(&mut self, word: &str) {
        if !std::mem::replace(&mut self.leaving, true) {
            let own = self.rank();
            for to in (0..self.peers.len()).filter(|to| *to != own) {
                self.say(to, word);
            }
        }
    }

    /// Once in a while: says that this rank is there, and notes who has not for long.
    fn beat(&mut self) {
        for peer in 0..self.peers.len() {
            if peer == self.rank() || self.lost.is_some() {
                continue;
            }
            // One that is done with the others waits for them.
            if self.peers[peer].telling == 0 && !self.leaving {
                self.say(peer, ".");
            }
            // One that is done says nothing more, but it has to hear that this one is.
            if self.peers[peer].left && (self.peers[peer].telling == 0 || !self.leaving) {
                continue;
            }
            self.peers[peer].silent += 1;
            if self.peers[peer].silent > SILENT_BEATS {
                self.lose(peer, SILENT);
            }
        }
    }

    /// Handles finished operations; true if there were any.
    fn go_on(&mut self) -> bool {
        if self.ended {
            return false;
        }
        match self.plugin.poll() {
            Ok(done) => {
                let any = !done.is_empty();
                done.into_iter().for_each(|done| self.done(done));
                any
            }
            Err(failure) => {
                self.lose(self.rank(), &failure.text());
                false
            }
        }
    }

    fn done(&mut self, done: Done) {
        let Done {
            slot,
            buffer,
            result,
        } = done;
        // A slot without an entry was given up when a rank was lost.
        match self.flying.remove(&slot) {
            None => {}
            Some(Flying::Sent { token, to }) => {
                let result = result.map_err(|failure| self.failed(to, 0, failure));
                self.complete.push_back(FabricCompletion {
                    token,
                    buffer,
                    result,
                });
            }
            Some(Flying::Awaited { token, from, room }) => {
                let result = result.map_err(|failure| self.failed(from, room, failure));
                self.complete.push_back(FabricCompletion {
                    token,
                    buffer,
                    result,
                });
            }
            Some(Flying::Word { to }) => {
                self.peers[to].telling -= 1;
                if let Err(failure) = result {
                    self.lose(to, &failure.text());
                }
            }
            Some(Flying::Heard { from }) => {
                match result {
                    Ok(bytes) => {
                        let word = buffer.as_ref().and_then(|buffer| buffer.get(..bytes));
                        self.hear(from, word.unwrap_or_default());
                    }
                    Err(failure) => self.lose(from, &failure.text()),
                }
                if let Err(error) = self.listen(from) {
                    self.lose(self.rank(), &error.to_string());
                }
            }
        }
    }

    fn hear(&mut self, from: usize, word: &[u8]) {
        self.peers[from].silent = 0;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (rank, cause) = match word.split_first() {
            Some((b'-', _)) => {
                self.peers[from].left = true;
                return;
            }
            Some((b'!', cause)) => (from, text(cause)),
            Some((b'x', of)) => {
                let of = text(of);
                let named = of.split_once(' ').and_then(|(rank, cause)| {
                    let rank = rank.parse().ok().filter(|rank| *rank < self.peers.len())?;
                    Some((rank, cause.to_string()))
                });
                named.unwrap_or((from, of))
            }
            _ => return,
        };
        self.peers[from].left = true;
        self.was_told = true;
        self.lose(rank, &cause);
    }

    /// The rank that is lost.
    fn lost_rank(&self) -> Option<usize> {
        match self.lost {
            Some(FabricError::Lost { rank, .. }) => Some(rank),
            _ => None,
        }
    }

    fn failed(&mut self, other: usize, room: usize, failure: Failure) -> FabricError {
        match failure {
            Failure::TooLong => FabricError::TooLong { from: other, room },
            Failure::Mpi(cause) => {
                self.lose(other, &cause);
                FabricError::Lost { rank: other, cause }
            }
        }
    }

    /// Ends all operations, unless another rank was lost before.
    fn lose(&mut self, rank: usize, cause: &str) {
        if self.lost.is_some() {
            return;
        }
        let error = FabricError::Lost {
            rank,
            cause: cause.to_string(),
        };
        self.lost = Some(error.clone());
        self.has_lost.store(true, Ordering::Relaxed);
        let given_up = std::mem::take(&mut self.flying);
        for (slot, flying) in given_up {
            match flying {
                Flying::Sent { token, .. } | Flying::Awaited { token, .. } => {
                    // MPI still has the memory.
                    self.complete.push_back(FabricCompletion {
                        token,
                        buffer: None,
                        result: Err(error.clone()),
                    });
                }
                Flying::Word { .. } | Flying::Heard { .. } => {
                    self.flying.insert(slot, flying);
                }
            }
        }
    }

    fn submit(&mut self, operation: FabricOperation, token: u64) {
        self.in_flight += 1;
        let possible = operation.check(self.peers.len()).and(match &self.lost {
            Some(error) => Err(error.clone()),
            None => Ok(()),
        });
        let other = operation.other();
        let left = other != self.rank() && self.peers.get(other).is_some_and(|peer| peer.left);
        let refusal = match possible {
            Err(error) => Some(error),
            Ok(()) => left.then_some(FabricError::Left { rank: other }),
        };
        let refused = match (refusal, operation) {
            (Some(error), operation) => Some((operation.into_buffer(), error)),
            (
                None,
                FabricOperation::Send {
                    to,
                    channel,
                    buffer,
                    range,
                },
            ) => match self.plugin.send(to, channel, buffer, range) {
                Ok(slot) => {
                    self.flying.insert(slot, Flying::Sent { token, to });
                    None
                }
                Err((buffer, failure)) => Some((buffer, self.failed(to, 0, failure))),
            },
            (
                None,
                FabricOperation::Receive {
                    from,
                    channel,
                    buffer,
                },
            ) => {
                let room = buffer.len();
                match self.plugin.receive(from, channel, buffer) {
                    Ok(slot) => {
                        self.flying
                            .insert(slot, Flying::Awaited { token, from, room });
                        None
                    }
                    Err((buffer, failure)) => Some((buffer, self.failed(from, room, failure))),
                }
            }
        };
        if let Some((buffer, error)) = refused {
            self.complete.push_back(FabricCompletion {
                token,
                buffer: Some(buffer),
                result: Err(error),
            });
        }
    }

    fn take(&mut self) -> Option<FabricCompletion> {
        let completion = self.complete.pop_front()?;
        self.in_flight -= 1;
        Some(completion)
    }
}

impl Failure {
    fn text(self) -> String {
        match self {
            Failure::TooLong => "a frame was longer than its memory".into(),
            Failure::Mpi(text) => text,
        }
    }
}

impl Fabric for MpiFabric {
    fn rank(&self) -> usize {
        self.rank
    }

    fn ranks(&self) -> usize {
        self.ranks
    }

    fn submit(&self, operation: FabricOperation, token: u64) {
        self.shared.state().submit(operation, token);
    }

    fn poll(&self) -> Option<FabricCompletion> {
        let mut state = self.shared.state();
        if state.complete.is_empty() {
            state.go_on();
        }
        state.take()
    }

    fn wait(&self, limit: Duration) -> Option<FabricCompletion> {
        self.until(limit, |state| !state.complete.is_empty());
        self.shared.state().take()
    }

    fn in_flight(&self) -> usize {
        self.shared.state().in_flight
    }

    fn lost(&self) -> Option<FabricError> {
        let mut state = self.shared.state();
        // The word of another may be there, and not be taken yet.
        state.go_on();
        state.lost.clone()
    }

    fn lost_flag(&self) -> Option<Arc<AtomicBool>> {
        Some(Arc::clone(&self.shared.state().has_lost))
    }

    fn fail(&self, cause: &str) {
        {
            let mut state = self.shared.state();
            let word = match &state.lost {
                _ if state.was_told => "-".into(),
                Some(FabricError::Lost { rank, cause }) if *rank != self.rank => {
                    format!("x{rank} {cause}")
                }
                _ => format!("!{cause}"),
            };
            state.say_to_all(&word);
            state.lose(self.rank, cause);
        }
        self.until(LAST_WORDS, |state| {
            let lost = state.lost_rank().filter(|rank| *rank != self.rank);
            let mut peers = (0..).zip(&state.peers);
            // A lost rank sends no last report.
            peers.all(|(rank, peer)| Some(rank) == lost || peer.left && peer.telling == 0)
        });
    }

    fn leave(&self) {
        self.shared.state().say_to_all("-");
        self.until(Duration::MAX, |state| {
            let is_done = |peer: &Peer| peer.left && peer.telling == 0;
            state.lost.is_some() || state.peers.iter().all(is_done)
        });
        {
            let state = self.shared.state();
            if state.lost.is_some() || state.ended {
                return;
            }
            self.shared.finishing.store(true, Ordering::Release);
        }
        // Where one is stopped on its last step the others do not wait for ever: they have all they need of it.
        let finished = self.finished.lock();
        let finished = finished.unwrap_or_else(PoisonError::into_inner);
        let _ = finished.recv_timeout(SILENCE);
    }
}

impl Drop for MpiFabric {
    fn drop(&mut self) {
        let finishing = self.shared.finishing.load(Ordering::Acquire);
        if finishing && !self.shared.finished.load(Ordering::Acquire) {
            // MPI hangs in its end. The system takes the thread when the process ends.
            return;
        }
        if !self.shared.state().ended {
            self.fail("it ended without a word");
        }
        self.end_pulse();
    }
}
