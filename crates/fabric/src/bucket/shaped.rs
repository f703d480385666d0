//! A limit on the bytes that a rank sends, around any link.
//!
//! A link counts a datagram as the kernel's traffic control does: with 42 bytes of Ethernet, IP and UDP headers.

use std::fmt;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use graphmill_raw::lock;

use crate::bucket::link::{LinkPorts, Port};

/// Bytes of the headers of a datagram.
pub const FRAME_BYTES: u64 = 42;
/// Bytes that a rank may send at once after it sent nothing for a while.
const BURST_BYTES: u64 = 256 << 10;

/// Returns the time.
pub type Now = Arc<dyn Fn() -> Duration + Send + Sync>;

/// The bytes that a rank may send.
struct TokenBucket {
    now: Now,
    /// Bytes a second.
    rate: u64,
    /// When, at this rate, all that was sent so far has gone.
    gone: Duration,
}

impl TokenBucket {
    /// Takes the bytes of as many datagrams as may be sent now, `count` at most; returns their number.
    ///
    /// Those that are urgent go at once, and later ones wait longer.
    fn take(&mut self, count: usize, bytes: usize, is_urgent: bool) -> usize {
        let time = |bytes: u64| Duration::from_secs_f64(bytes as f64 / self.rate as f64);
        let (one, burst) = (time(bytes as u64 + FRAME_BYTES), time(BURST_BYTES));
        let now = (self.now)();
        // What was not sent while there was nothing to send is lost but for a burst.
        self.gone = self.gone.max(now.saturating_sub(burst));
        let free = now.saturating_sub(self.gone);
        let fitting = (free.as_secs_f64() / one.as_secs_f64()) as usize;
        let taken = if is_urgent { count } else { count.min(fitting) };
        self.gone += one * taken as u32;
        taken
    }
}

/// A port that sends at a limited rate.
struct ShapedPort {
    inner: Box<dyn Port>,
    /// It sends acknowledgements, without which the other rank would send again.
    is_urgent: bool,
    tokens: Arc<Mutex<TokenBucket>>,
}

impl fmt::Debug for ShapedPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ShapedPort").field(&self.inner).finish()
    }
}

impl LinkPorts {
    /// Returns the ports with a limit on the bytes that all of them send in a second together.
    #[must_use]
    pub fn shaped(self, rate: u64, now: Now) -> LinkPorts {
        let tokens = Arc::new(Mutex::new(TokenBucket {
            gone: now(),
            rate: rate.max(1),
            now,
        }));
        let shaped = |inner, is_urgent| -> Box<dyn Port> {
            let tokens = Arc::clone(&tokens);
            Box::new(ShapedPort {
                inner,
                is_urgent,
                tokens,
            })
        };
        let (senders, lanes) = (self.senders.into_iter(), self.lanes.into_iter());
        LinkPorts {
            senders: senders.map(|inner| shaped(inner, false)).collect(),
            lanes: lanes.map(|inner| shaped(inner, true)).collect(),
        }
    }
}

impl Port for ShapedPort {
    fn send(&mut self, to: usize, lane: usize, buckets: &[&[u8]]) -> io::Result<usize> {
        let bytes = buckets.first().map_or(0, |bucket| bucket.len());
        let count = lock(&self.tokens).take(buckets.len(), bytes, self.is_urgent);
        match count {
            0 => Ok(0),
            count => self.inner.send(to, lane, &buckets[..count]),
        }
    }

    fn receive(&mut self, visit: &mut dyn FnMut(&mut [u8])) -> io::Result<usize> {
        self.inner.receive(visit)
    }

    fn wait(&mut self, idle: u32, limit: Duration) {
        self.inner.wait(idle, limit);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;
    use crate::bucket::link::BucketLink;
    use crate::bucket::local::LocalLink;

    #[test]
    fn rate_bounds_what_is_sent() {
        const BYTES: usize = 1458;
        let nanos = Arc::new(AtomicU64::new(0));
        let clock = Arc::clone(&nanos);
        let now: Now = Arc::new(move || Duration::from_nanos(clock.load(Ordering::Relaxed)));
        let link = LocalLink::new(&[1, 1], 1 << 20);
        // 1,500 bytes take 1.5 microseconds.
        let mut ports = link.ports(0, 1, 1).shaped(1_000_000_000, now);
        let buckets = vec![&[0; BYTES][..]; 1000];
        let mut sent = 0;
        for micros in 0..10_000 {
            nanos.store(micros * 1000, Ordering::Relaxed);
            sent += ports.senders[0].send(1, 0, &buckets).unwrap();
            let most = micros as usize * 1000 / 1500;
            assert!(sent <= most && sent + 2 >= most, "{micros}: {sent}");
        }
        // After a long silence a burst goes at once, and no more.
        nanos.store(20_000_000_000, Ordering::Relaxed);
        let burst = ports.senders[0].send(1, 0, &buckets).unwrap();
        assert_eq!(burst, BURST_BYTES as usize / 1500);
    }
}
