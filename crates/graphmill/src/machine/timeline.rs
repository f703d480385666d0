//! How busy a rank's disk, network and cores were while it worked (DFOGraph, Fig. 5).
//!
//! A thread looks at counters of bytes and of processor time in equal steps. A longer run has longer steps, not more of them.

use std::array::from_fn;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::machine::resources::Machine;

/// The first step.
const STEP: Duration = Duration::from_millis(20);
/// Steps that are kept: when there are as many, two become one.
const STEPS_MAX: usize = 512;
/// Bytes read, written, sent and received, and nanoseconds of processor time of workers.
const COUNTERS: usize = 5;

/// What moved in each step of a rank's time.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Timeline {
    /// Length of a step, in seconds.
    pub step: f64,
    /// Bytes read from disk.
    pub read: Vec<u64>,
    /// Bytes written to disk.
    pub written: Vec<u64>,
    /// Bytes sent to other ranks.
    pub sent: Vec<u64>,
    /// Bytes received from them.
    pub received: Vec<u64>,
    /// Cores that workers had, in the mean over the step.
    pub cores: Vec<f64>,
}

/// A timeline on its way.
pub(crate) struct Recording {
    end: Arc<(Mutex<bool>, Condvar)>,
    thread: Option<JoinHandle<Recorded>>,
}

/// The counters of each step, a step being `STEP` times 2 to the power of `doubled`.
#[derive(Default, Serialize, Deserialize)]
struct Recorded {
    doubled: u32,
    steps: Vec<[u64; COUNTERS]>,
}

impl Recording {
    /// Starts to record what a machine does; records nothing if it cannot start a thread.
    pub(crate) fn begin(machine: &Machine) -> Recording {
        let end = Arc::new((Mutex::new(false), Condvar::new()));
        let (machine, ended) = (machine.clone(), Arc::clone(&end));
        // The thread may start late.
        let began = (counters(&machine), machine.clock().now());
        let record = move || record(&machine, began, &ended);
        let thread = thread::Builder::new().name("timeline".into()).spawn(record);
        Recording {
            end,
            thread: thread.ok(),
        }
    }

    /// The timelines of all ranks, in order. Every rank calls it.
    ///
    /// # Errors
    /// A rank is lost.
    pub(crate) fn end(mut self, machine: &Machine) -> Result<Vec<Timeline>, Error> {
        let recorded = self.join().unwrap_or_default();
        let said = machine.gather(&recorded.bytes())?;
        let timelines = said.iter().map(|said| Recorded::of(said).timeline());
        Ok(timelines.collect())
    }

    fn join(&mut self) -> Option<Recorded> {
        let (ended, wake) = &*self.end;
        *ended.lock().unwrap_or_else(PoisonError::into_inner) = true;
        wake.notify_all();
        self.thread.take()?.join().ok()
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        self.join();
    }
}

fn counters(machine: &Machine) -> [u64; COUNTERS] {
    let [read, written, sent, received] = machine.moved();
    let busy = machine.workers().busy().as_nanos() as u64;
    [read, written, sent, received, busy]
}

fn record(
    machine: &Machine,
    (mut before, mut due): ([u64; COUNTERS], Duration),
    (ended, wake): &(Mutex<bool>, Condvar),
) -> Recorded {
    let mut recorded = Recorded::default();
    let clock = machine.clock();
    let mut is_over = ended.lock().unwrap_or_else(PoisonError::into_inner);
    while !*is_over {
        due += STEP * (1 << recorded.doubled);
        while !*is_over
            && let left = due.saturating_sub(clock.now())
            && !left.is_zero()
        {
            let waited = wake.wait_timeout(is_over, left);
            is_over = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        let now = counters(machine);
        recorded.push(from_fn(|of| now[of].saturating_sub(before[of])));
        before = now;
    }
    recorded
}

impl Recorded {
    fn push(&mut self, step: [u64; COUNTERS]) {
        self.steps.push(step);
        if self.steps.len() == STEPS_MAX {
            let both = |pair: &[[u64; COUNTERS]]| {
                from_fn(|counter| pair.iter().map(|step| step[counter]).sum())
            };
            self.steps = self.steps.chunks(2).map(both).collect();
            self.doubled += 1;
        }
    }

    fn bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }

    fn of(bytes: &[u8]) -> Recorded {
        serde_json::from_slice(bytes).unwrap_or_default()
    }

    fn timeline(&self) -> Timeline {
        let step =
            STEP.as_secs_f64() * f64::from(1u32.checked_shl(self.doubled).unwrap_or(u32::MAX));
        let of = |counter: usize| self.steps.iter().map(move |step| step[counter]);
        Timeline {
            step,
            read: of(0).collect(),
            written: of(1).collect(),
            sent: of(2).collect(),
            received: of(3).collect(),
            cores: of(4).map(|busy| busy as f64 / 1e9 / step).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timeline_of_long_runs_has_longer_steps() {
        let mut recorded = Recorded::default();
        let mut steps = 0;
        while steps < 3000 {
            // Each is as long as the last ones have become.
            let first_steps = 1 << recorded.doubled;
            recorded.push([7, 1, 0, 2, 20_000_000].map(|of_one| of_one * first_steps));
            steps += first_steps;
        }
        let recorded = Recorded::of(&recorded.bytes());
        assert!(recorded.steps.len() < STEPS_MAX);
        let line = recorded.timeline();
        assert_eq!(line.read.iter().sum::<u64>(), 7 * steps);
        assert_eq!(line.received.iter().sum::<u64>(), 2 * steps);
        assert!(line.cores.iter().all(|cores| (cores - 1.0).abs() < 1e-9));
        assert!((line.step - 0.16).abs() < 1e-9, "{}", line.step);
    }
}
