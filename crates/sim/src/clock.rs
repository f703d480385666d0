//! The clock of a simulated machine.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use graphmill_storage::{CancelToken, Clock, SplitMix64};

/// Time by which each read advances the clock.
const TICK: Duration = Duration::from_micros(50);

/// A clock that each read advances, sometimes by much at once.
#[derive(Debug)]
pub(crate) struct Ticking(Mutex<Time>);

#[derive(Debug)]
struct Time {
    now: Duration,
    random: SplitMix64,
    looks: u64,
    /// Requests to stop, each with the number of its read of the clock.
    wishes: Vec<(u64, CancelToken)>,
}

impl Ticking {
    pub(crate) fn new(seed: u64) -> Ticking {
        Ticking(Mutex::new(Time {
            now: Duration::ZERO,
            random: SplitMix64::new(seed),
            looks: 0,
            wishes: Vec::new(),
        }))
    }

    fn time(&self) -> MutexGuard<'_, Time> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Requests `stop` at the `nth` read of the clock.
    ///
    /// A second request to the same [`CancelToken`] makes it stop at once.
    pub(crate) fn ask_at(&self, nth: u64, stop: &CancelToken) {
        self.time().wishes.push((nth, stop.clone()));
    }
}

impl Clock for Ticking {
    fn now(&self) -> Duration {
        let mut time = self.time();
        time.looks += 1;
        for (_, stop) in time.wishes.iter().filter(|(at, _)| *at == time.looks) {
            match stop.is_requested() {
                true => stop.force(),
                false => stop.request(),
            }
        }
        let ticks = match time.random.below(32) {
            0 => time.random.below(1000) as u32,
            _ => 1,
        };
        time.now += TICK * ticks;
        time.now
    }
    fn wait(&self, time: Duration) {
        self.time().now += time;
    }
}
