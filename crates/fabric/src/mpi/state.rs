//! The state of one rank in its MPI job: operations in flight, reports of the other ranks, and the lost rank.

use std::collections::{BTreeMap, VecDeque};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use graphmill_raw::AlignedBuffer;

use super::plugin::{Done, Failure, Plugin};
use crate::collective::CHANNEL as COLLECTIVE;
use crate::error::FabricError;
use crate::pending::Pending;
use crate::port::{Channel, FabricCompletion, FabricOperation, SILENCE, SILENT};

/// The channel of the reports of ranks.
const WORDS: Channel = COLLECTIVE - 1;
const WORD_BYTES: usize = 1024;
/// Time between two heartbeats of a rank.
pub(super) const BEAT: Duration = Duration::from_millis(500);
/// Number of beats without a report after which a rank is lost.
const SILENT_BEATS: u32 = (SILENCE.as_millis() / BEAT.as_millis()) as u32;

#[derive(Debug)]
pub(super) struct MpiState {
    pub(super) plugin: Plugin,
    /// Operations in flight, by slot.
    flying: BTreeMap<i32, Flying>,
    pub(super) complete: VecDeque<FabricCompletion>,
    pub(super) in_flight: usize,
    pub(super) peers: Vec<Peer>,
    pub(super) lost: Option<FabricError>,
    /// True if a rank is lost, for threads that do not poll.
    pub(super) has_lost: Arc<AtomicBool>,
    /// True if another rank has reported its failure, which it reports to all.
    pub(super) was_told: bool,
    /// True once the rank has sent its last report: it ignores all others.
    leaving: bool,
    /// True if MPI is no longer called.
    pub(super) ended: bool,
}

#[derive(Clone, Copy, Debug)]
enum Flying {
    /// An operation of the user with another rank; `room` is the memory for a frame of it.
    Frame {
        token: u64,
        other: usize,
        room: usize,
    },
    /// A report to a rank, or from one.
    Word {
        to: usize,
    },
    Heard {
        from: usize,
    },
}

/// The state of another rank.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Peer {
    /// Beats since its last report.
    silent: u32,
    /// True if it is done.
    pub(super) left: bool,
    /// Number of reports to it that have not arrived yet.
    pub(super) telling: u32,
}

impl MpiState {
    /// Starts MPI by a plugin, and receives reports of all ranks.
    pub(super) fn start(plugin: &Path) -> Result<MpiState, FabricError> {
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

    pub(super) fn rank(&self) -> usize {
        self.plugin.rank
    }

    /// Starts to receive the next report of another rank.
    pub(super) fn listen(&mut self, from: usize) -> Result<(), FabricError> {
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
    pub(super) fn say(&mut self, to: usize, word: &str) {
        let bytes = &word.as_bytes()[..word.len().min(WORD_BYTES)];
        let Ok(mut buffer) = AlignedBuffer::zeroed(bytes.len()) else {
            // A later report may get memory.
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

    /// Sends the last report to all ranks; ranks that are done wait for it too.
    pub(super) fn say_to_all(&mut self, word: &str) {
        if !std::mem::replace(&mut self.leaving, true) {
            let own = self.rank();
            for to in (0..self.peers.len()).filter(|to| *to != own) {
                self.say(to, word);
            }
        }
    }

    /// Sends a heartbeat, and finds the ranks that sent none for too long.
    pub(super) fn beat(&mut self) {
        for peer in 0..self.peers.len() {
            if peer == self.rank() || self.lost.is_some() {
                continue;
            }
            // A rank that is done waits for the others.
            if self.peers[peer].telling == 0 && !self.leaving {
                self.say(peer, ".");
            }
            // A rank that is done sends no more reports, but it must learn that this rank lives.
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
    pub(super) fn go_on(&mut self) -> bool {
        if self.ended {
            return false;
        }
        let done = self.plugin.poll().unwrap_or_else(|failure| {
            self.lose(self.rank(), &failure.text());
            Vec::new()
        });
        let any = !done.is_empty();
        done.into_iter().for_each(|done| self.done(done));
        any
    }

    pub(super) fn done(&mut self, done: Done) {
        let Done { buffer, result, .. } = done;
        // A slot without an entry was given up when a rank was lost.
        match self.flying.remove(&done.slot) {
            None => {}
            Some(Flying::Frame { token, other, room }) => {
                let result = result.map_err(|failure| self.failed(other, room, failure));
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

    pub(super) fn hear(&mut self, from: usize, word: &[u8]) {
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

    /// Returns the lost rank, if there is one.
    pub(super) fn lost_rank(&self) -> Option<usize> {
        match self.lost {
            Some(FabricError::Lost { rank, .. }) => Some(rank),
            _ => None,
        }
    }

    pub(super) fn failed(&mut self, other: usize, room: usize, failure: Failure) -> FabricError {
        match failure {
            Failure::TooLong => FabricError::TooLong { from: other, room },
            Failure::Mpi(cause) => {
                self.lose(other, &cause);
                FabricError::Lost { rank: other, cause }
            }
        }
    }

    /// Ends all operations, unless another rank was lost before.
    pub(super) fn lose(&mut self, rank: usize, cause: &str) {
        if self.lost.is_some() {
            return;
        }
        let error = FabricError::lost(rank, cause);
        self.lost = Some(error.clone());
        self.has_lost.store(true, Ordering::Relaxed);
        for (slot, flying) in std::mem::take(&mut self.flying) {
            if let Flying::Frame { token, .. } = flying {
                // MPI still has the memory.
                self.complete.push_back(FabricCompletion {
                    token,
                    buffer: None,
                    result: Err(error.clone()),
                });
            } else {
                self.flying.insert(slot, flying);
            }
        }
    }

    pub(super) fn submit(&mut self, operation: FabricOperation, token: u64) {
        self.in_flight += 1;
        let checked = operation.check(self.peers.len());
        let other = operation.other();
        let left = other != self.rank() && self.peers.get(other).is_some_and(|peer| peer.left);
        let left = left.then_some(FabricError::Left { rank: other });
        if let Some(error) = checked.err().or_else(|| self.lost.clone()).or(left) {
            let refused = Pending { operation, token }.done(Err(error));
            return self.complete.push_back(refused);
        }
        let (room, started) = match operation {
            FabricOperation::Send {
                to,
                channel,
                buffer,
                range,
            } => (0, self.plugin.send(to, channel, buffer, range)),
            FabricOperation::Receive {
                from,
                channel,
                buffer,
            } => (buffer.len(), self.plugin.receive(from, channel, buffer)),
        };
        match started {
            Ok(slot) => {
                let flying = Flying::Frame { token, other, room };
                self.flying.insert(slot, flying);
            }
            Err((buffer, failure)) => {
                let error = self.failed(other, room, failure);
                self.complete.push_back(FabricCompletion {
                    token,
                    buffer: Some(buffer),
                    result: Err(error),
                });
            }
        }
    }

    pub(super) fn take(&mut self) -> Option<FabricCompletion> {
        let completion = self.complete.pop_front()?;
        self.in_flight -= 1;
        Some(completion)
    }
}

impl Failure {
    pub(super) fn text(self) -> String {
        match self {
            Failure::TooLong => "a frame was longer than its memory".into(),
            Failure::Mpi(text) => text,
        }
    }
}
