//! Time as a port: measured on a machine, set by hand in a simulation.

use std::fmt::Debug;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use graphmill_raw::lock;

/// A clock that returns the time since a start of its own; it never goes back.
pub trait Clock: Send + Sync + Debug {
    /// Returns the time since the start.
    fn now(&self) -> Duration;
    /// Blocks the calling thread for `time`.
    fn wait(&self, time: Duration);
}

/// Time by which a sleep ends too late, about. The clock spins for that long at the end of a wait.
const AWAKE: Duration = Duration::from_micros(100);

/// The machine's monotonic clock, which starts when it is made.
#[derive(Debug)]
pub struct SystemClock {
    start: Instant,
}

impl SystemClock {
    /// Makes a clock that starts now.
    #[expect(clippy::disallowed_methods, reason = "this is the port")]
    pub fn new() -> Self {
        let start = Instant::now();
        SystemClock { start }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        SystemClock::new()
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Duration {
        self.start.elapsed()
    }
    fn wait(&self, time: Duration) {
        let end = self.now() + time;
        if time > 2 * AWAKE {
            std::thread::sleep(time - AWAKE);
        }
        while self.now() < end {
            std::hint::spin_loop();
        }
    }
}

/// A clock that only [`SimulatedClock::advance`] moves.
#[derive(Debug, Default)]
pub struct SimulatedClock {
    now: Mutex<Duration>,
}

impl SimulatedClock {
    /// Makes a clock at 0.
    pub fn new() -> Self {
        SimulatedClock::default()
    }

    /// Moves the clock forward.
    pub fn advance(&self, by: Duration) {
        *lock(&self.now) += by;
    }
}

impl Clock for SimulatedClock {
    fn now(&self) -> Duration {
        *lock(&self.now)
    }
    fn wait(&self, time: Duration) {
        self.advance(time);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn simulated_clock_moves_only_when_advanced() {
        let clock = SimulatedClock::new();
        assert_eq!(clock.now(), Duration::ZERO);
        clock.advance(Duration::from_millis(5));
        clock.advance(Duration::from_millis(2));
        assert_eq!(clock.now(), Duration::from_millis(7));
        clock.wait(Duration::from_millis(1));
        assert_eq!(clock.now(), Duration::from_millis(8));
    }

    #[test]
    fn system_clock_never_goes_back() {
        let clock = SystemClock::new();
        let readings: Vec<Duration> = (0..1000).map(|_| clock.now()).collect();
        assert!(readings.is_sorted());
        for micros in [0, 20, 500] {
            let (before, time) = (clock.now(), Duration::from_micros(micros));
            clock.wait(time);
            assert!(clock.now() - before >= time);
        }
    }
}
