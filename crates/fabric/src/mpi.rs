//! Ranks that are processes of an MPI job.
//!
//! A thread starts MPI, lets it make progress, completes operations, sends a heartbeat to the other ranks, and ends MPI. A rank that fails
//! reports this, with the cause. A rank that sends nothing for [`SILENCE`] is lost.
//!
//! Reports of ranks use a channel of their own, as frames of up to 1,024 bytes. The first byte is the kind:
//!
//! - `.`: alive;
//! - `-`: done with the others;
//! - `!`: failed, and the cause;
//! - `x`: ended because another rank is lost: its number, and the cause.
//!
//! Ranks end together: a rank that fails waits for a limited time for the last reports of the others. `mpirun` kills the remaining ranks
//! when the first has failed. Before that they must report the cause and remove their temporary files.

mod plugin;
mod state;

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::Duration;

use graphmill_raw::lock;

use self::state::{BEAT, MpiState, Peer};
use crate::error::FabricError;
use crate::port::{Fabric, FabricCompletion, FabricOperation, SILENCE};

/// Shortest and longest pause of an idle thread; each pause doubles the one before.
const REST: Duration = Duration::from_micros(20);
const REST_MAX: Duration = Duration::from_millis(1);
/// Maximum time that a failed rank waits for the last reports of the others.
const LAST_WORDS: Duration = Duration::from_secs(3);

/// This process as a rank of an MPI job.
#[derive(Debug)]
pub struct MpiFabric {
    shared: Arc<MpiShared>,
    rank: usize,
    ranks: usize,
    pulse: Option<JoinHandle<()>>,
    /// The thread reports here that MPI has ended.
    finished: Mutex<Receiver<()>>,
}

#[derive(Debug)]
struct MpiShared {
    state: Mutex<MpiState>,
    /// True if all ranks are done: the thread ends MPI, and holds the state meanwhile.
    finishing: AtomicBool,
    finished: AtomicBool,
}

impl MpiFabric {
    /// Starts MPI by a plugin; allowed once in a process.
    ///
    /// # Errors
    /// [`FabricError::Plugin`]: the plugin does not exist or has another version, or MPI does not start.
    pub fn start(plugin: &Path) -> Result<MpiFabric, FabricError> {
        let (started, outcome) = channel();
        let (has_finished, finished) = channel();
        let plugin = plugin.to_path_buf();
        // The same thread starts and ends MPI. It may hang in MPI while other ranks are stopped.
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
        let builder = std::thread::Builder::new().name("mpi".into());
        let pulse = builder.spawn(pulse);
        let pulse = pulse.map_err(|error| FabricError::Thread(error.to_string()))?;
        let shared = outcome.recv();
        let shared = shared.map_err(|error| FabricError::Thread(error.to_string()))??;
        let state = shared.state();
        let (rank, ranks) = (state.rank(), state.peers.len());
        drop(state);
        Ok(MpiFabric {
            shared,
            rank,
            ranks,
            pulse: Some(pulse),
            finished: Mutex::new(finished),
        })
    }

    /// Returns the name and version that MPI reports of itself.
    pub fn library(&self) -> String {
        self.shared.state().plugin.library.clone()
    }

    /// Lets MPI make progress until `is_done`, for at most `limit`.
    fn until(&self, limit: Duration, is_done: impl Fn(&mut MpiState) -> bool) {
        let end = now().checked_add(limit);
        let mut rest = REST;
        loop {
            let mut state = self.shared.state();
            if state.go_on() {
                rest = REST;
            }
            if is_done(&mut state) || end.is_some_and(|end| now() >= end) {
                return;
            }
            drop(state);
            std::thread::sleep(rest);
            rest = (2 * rest).min(REST_MAX);
        }
    }

    fn end_pulse(&mut self) {
        self.shared.state().ended = true;
        if let Some(pulse) = self.pulse.take() {
            // It does not panic; a panic could not be handled here.
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
        lock(&self.state)
    }

    /// Runs the loop of the thread.
    fn beat(&self, has_finished: &Sender<()>) {
        let (mut rest, mut next) = (REST, now());
        loop {
            let mut state = self.state();
            if state.ended {
                return;
            }
            if self.finishing.load(Ordering::Acquire) {
                state.ended = true;
                if let Err(failure) = state.plugin.finish() {
                    let rank = state.rank();
                    state.lose(rank, &failure.text());
                }
                self.finished.store(true, Ordering::Release);
                // The thread that waits may have ended.
                let _ = has_finished.send(());
                return;
            }
            if state.go_on() {
                rest = REST;
            }
            if now() >= next {
                state.beat();
                // Makes up for a late beat, but not for many: a process that was stopped does not find the others silent.
                next = (next + BEAT).max(now() + BEAT / 2);
            }
            drop(state);
            std::thread::sleep(rest);
            rest = (2 * rest).min(REST_MAX);
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
        // The report of another rank may have arrived and not be taken yet.
        state.go_on();
        state.lost.clone()
    }

    fn lost_flag(&self) -> Option<Arc<AtomicBool>> {
        Some(Arc::clone(&self.shared.state().has_lost))
    }

    fn fail(&self, cause: &str) {
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
        drop(state);
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
        let state = self.shared.state();
        if state.lost.is_some() || state.ended {
            return;
        }
        self.shared.finishing.store(true, Ordering::Release);
        drop(state);
        // If a rank is stopped in its last step, the others do not wait forever: they need nothing more of it.
        let _ = lock(&self.finished).recv_timeout(SILENCE);
    }
}

impl Drop for MpiFabric {
    fn drop(&mut self) {
        let finishing = self.shared.finishing.load(Ordering::Acquire);
        if finishing && !self.shared.finished.load(Ordering::Acquire) {
            // MPI hangs while it ends. The system ends the thread with the process.
            return;
        }
        if !self.shared.state().ended {
            self.fail("it ended without a word");
        }
        self.end_pulse();
    }
}
