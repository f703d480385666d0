//! How many requests for chunks a rank keeps outstanding (Chaos, section 6.5).

use std::time::Duration;

/// The least utilization of a storage engine that the batch factor gives.
const UTILIZATION: f64 = 0.995;

/// The weight of a new sample in a moving mean.
const WEIGHT: f64 = 1.0 / 16.0;

/// The amplification before the first sample: the network takes as long as the storage.
const AMPLIFICATION: f64 = 2.0;

/// The greatest amplification: round trips grow with the window where the network is the bottleneck.
const AMPLIFICATION_MAX: f64 = 8.0;

/// Returns the chance that a storage engine has a request (equation 2).
///
/// Each of `engines` clients has `k` requests at engines drawn uniformly.
pub fn utilization(engines: usize, k: usize) -> f64 {
    let engines = engines.max(1);
    1.0 - (1.0 - k.min(engines) as f64 / engines as f64).powi(engines as i32)
}

/// Returns the least number of requests of a client that keeps engines busy 99.5 % of the time.
pub fn batch_factor(engines: usize) -> usize {
    (1..engines)
        .find(|&k| utilization(engines, k) >= UTILIZATION)
        .unwrap_or(engines.max(1))
}

/// Moving means of how long requests for chunks take.
#[derive(Clone, Copy, Debug, Default)]
pub struct RequestTimes {
    /// Means in seconds: round trip on the network, service at the storage.
    means: Option<(f64, f64)>,
}

impl RequestTimes {
    /// Adds a request to another rank: its time outside of the storage, and its service there.
    ///
    /// Requests to the rank itself take no network and stay out of the means.
    pub fn record(&mut self, round_trip: Duration, service: Duration) {
        let new = (round_trip.as_secs_f64(), service.as_secs_f64());
        let (network, storage) = self.means.unwrap_or(new);
        self.means = Some((
            network + WEIGHT * (new.0 - network),
            storage + WEIGHT * (new.1 - storage),
        ));
    }

    /// Returns phi, requests on their way for each one at an engine (equation 1), at most 8.
    pub fn amplification(&self) -> f64 {
        match self.means {
            Some((network, storage)) if storage > 0.0 => {
                AMPLIFICATION_MAX.min(1.0 + network / storage)
            }
            _ => AMPLIFICATION,
        }
    }

    /// Returns the number of chunks that a rank with `workers` has asked for at a time.
    ///
    /// `fixed` overrides the rule.
    pub fn window(&self, engines: usize, workers: usize, fixed: Option<usize>) -> usize {
        let needed = (self.amplification() * batch_factor(engines) as f64).ceil() as usize;
        fixed.unwrap_or(needed.max(2 * workers)).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batch_factor_is_the_least_that_keeps_engines_busy() {
        for (engines, k) in [(0, 1), (1, 1), (2, 2), (4, 3), (8, 4), (16, 5), (32, 5)] {
            assert_eq!(batch_factor(engines), k, "{engines} engines");
        }
        for engines in 1..200 {
            let k = batch_factor(engines);
            assert!(k <= engines && utilization(engines, k) >= UTILIZATION);
            assert!(k == 1 || utilization(engines, k - 1) < UTILIZATION);
        }
    }

    #[test]
    fn utilization_is_that_of_the_paper() {
        for (engines, k, expected) in [
            (1, 1, 1.0),
            (2, 1, 0.75),
            (4, 3, 0.9961),
            (32, 1, 0.6379),
            (32, 5, 0.9956),
            (32, 32, 1.0),
        ] {
            let found = utilization(engines, k);
            assert!((found - expected).abs() < 1e-4, "{engines}, {k}: {found}");
        }
    }

    #[test]
    fn window_follows_the_times_of_requests() {
        let after = |round_trip, service| {
            let mut times = RequestTimes::default();
            let of = Duration::from_micros;
            (0..200).for_each(|_| times.record(of(10), of(1000)));
            (0..200).for_each(|_| times.record(of(round_trip), of(service)));
            times
        };
        assert_eq!(RequestTimes::default().window(32, 1, None), 10);
        for (round_trip, service, engines, workers, fixed, expected) in [
            (1000, 1000, 32, 1, None, 10),
            (100, 10_000, 32, 1, None, 6),
            (3000, 1000, 32, 1, None, 20),
            (90_000, 1000, 32, 1, None, 40),
            (100, 10_000, 1, 1, None, 2),
            (100, 10_000, 32, 16, None, 32),
            (1000, 1000, 32, 16, Some(3), 3),
            (1000, 1000, 32, 16, Some(0), 1),
        ] {
            let window = after(round_trip, service).window(engines, workers, fixed);
            assert_eq!(window, expected, "{round_trip}, {service}");
        }
        let mut idle = RequestTimes::default();
        idle.record(Duration::from_micros(100), Duration::ZERO);
        assert_eq!(idle.amplification(), AMPLIFICATION);
    }
}
