//! A stream of buckets from one rank to one lane of another: its state at the sender, and at the receiver.
//!
//! Neither knows a network or a clock: the caller gives the time, sends all that is due and receives what arrives. So the same code runs
//! over every link, and in virtual time.

use std::collections::VecDeque;
use std::time::Duration;

use graphmill_raw::failpoint;

use crate::bucket::layout::MAP_WORDS;

/// Buckets of a stream on their way at most.
pub const WINDOW_MAX: usize = 64 * MAP_WORDS;
/// The time-out before a round trip is known.
const FIRST_TIMEOUT: Duration = Duration::from_millis(100);
/// The time-out at least.
const LEAST_TIMEOUT: Duration = Duration::from_millis(2);
/// The time-out grows to this many times its first value.
const BACKOFF_MAX: u32 = 16;
/// Later buckets that have come before one that is missing is sent again.
const OVERTAKEN: u64 = 3;

/// A bucket that is sent and not acknowledged.
#[derive(Debug)]
struct Unacknowledged<B> {
    bucket: Option<B>,
    sent_at: Duration,
    is_again: bool,
}

/// A stream at its sender, which keeps buckets `B` until they are acknowledged.
#[derive(Debug)]
pub struct Outgoing<B> {
    window: usize,
    /// The number of the first bucket that is kept.
    first: u64,
    kept: VecDeque<Unacknowledged<B>>,
    /// Of these, buckets from the front on that the link took.
    sent: usize,
    /// The mean time from a bucket to its acknowledgement.
    round_trip: Option<Duration>,
    backoff: u32,
    /// When a bucket was last acknowledged, or sent while no other one was on its way.
    progress: Duration,
    /// Buckets that were sent again.
    pub resent: u64,
}

impl<B> Outgoing<B> {
    /// Returns a stream without buckets, which has at most `window` of them on their way.
    #[must_use]
    pub fn new(window: usize) -> Self {
        Outgoing {
            window: window.clamp(1, WINDOW_MAX),
            first: 0,
            kept: VecDeque::new(),
            sent: 0,
            round_trip: None,
            backoff: 1,
            progress: Duration::ZERO,
            resent: 0,
        }
    }

    /// Returns the number of the next bucket; `None` while the window is full.
    pub fn next(&self) -> Option<u64> {
        (self.kept.len() < self.window).then(|| self.first + self.kept.len() as u64)
    }

    /// Keeps the bucket with the [`next`](Self::next) number.
    pub fn keep(&mut self, bucket: B) {
        self.kept.push_back(Unacknowledged {
            bucket: Some(bucket),
            sent_at: Duration::ZERO,
            is_again: false,
        });
    }

    /// Returns the buckets that the link has not taken yet, in order.
    pub fn unsent(&self) -> impl Iterator<Item = &B> {
        (self.kept.iter().skip(self.sent)).filter_map(|kept| kept.bucket.as_ref())
    }

    /// Records that the link took the first `count` of the [`unsent`](Self::unsent) buckets.
    pub fn mark_sent(&mut self, count: usize, now: Duration) {
        if self.sent == 0 && count > 0 {
            self.progress = now;
        }
        for kept in self.kept.iter_mut().skip(self.sent).take(count) {
            kept.sent_at = now;
        }
        self.sent = (self.sent + count).min(self.kept.len());
    }

    /// Takes an acknowledgement: all buckets below `ack` have come, and of the later ones those in the map.
    ///
    /// Gives the buckets that have come to `free`. Does nothing if `ack` is beyond what was sent.
    pub fn acknowledge(
        &mut self,
        ack: u64,
        map: Option<[u64; MAP_WORDS]>,
        now: Duration,
        mut free: impl FnMut(B),
    ) {
        if ack > self.first + self.sent as u64 {
            return;
        }
        let mut newest = None;
        let mut has_come = |kept: &mut Unacknowledged<B>| {
            if let Some(bucket) = kept.bucket.take() {
                // Only of a bucket that was sent once it is known which sending came.
                newest = (!kept.is_again).then_some(kept.sent_at).max(newest);
                free(bucket);
                return true;
            }
            false
        };
        let mut is_news = false;
        while self.first < ack {
            if let Some(mut kept) = self.kept.pop_front() {
                is_news |= has_come(&mut kept);
                self.sent -= 1;
            }
            self.first += 1;
        }
        for (word, bits) in map.into_iter().flatten().enumerate() {
            let mut bits = bits;
            while bits != 0 {
                let number = ack + 64 * word as u64 + u64::from(bits.trailing_zeros());
                bits &= bits - 1;
                let mut sent = self.kept.iter_mut().take(self.sent);
                if let Some(at) = number.checked_sub(self.first)
                    && let Some(kept) = sent.nth(at as usize)
                {
                    is_news |= has_come(kept);
                }
            }
        }
        if is_news {
            self.progress = now;
        }
        if let Some(sent_at) = newest {
            let took = now.saturating_sub(sent_at);
            // Queues of a slow network fill faster than they drain.
            self.round_trip = Some(match self.round_trip {
                None => took,
                Some(mean) if took > mean => (mean + took) / 2,
                Some(mean) => (7 * mean + took) / 8,
            });
            // Without a new round trip, the time-out that was too short would be the next one too (RFC 6298).
            self.backoff = 1;
        }
    }

    /// Calls `send` with each bucket that is to be sent again now.
    ///
    /// Ends when `send` returns false: the link takes no more.
    pub fn resend(&mut self, now: Duration, mut send: impl FnMut(&B) -> bool) {
        let (timeout, before) = (self.timeout(), self.resent);
        let is_late = |kept: &Unacknowledged<B>| now.saturating_sub(kept.sent_at) >= timeout;
        let all = self
            .kept
            .iter()
            .take(self.sent)
            .find(|kept| kept.bucket.is_some())
            .is_some_and(is_late);
        let overtaking = self.round_trip.map(|mean| mean + mean / 2);
        let mut later = self
            .kept
            .iter()
            .filter(|kept| kept.bucket.is_none())
            .count() as u64;
        for kept in self.kept.iter_mut().take(self.sent) {
            let Some(bucket) = &kept.bucket else {
                later -= 1;
                continue;
            };
            let waited = now.saturating_sub(kept.sent_at);
            let is_missing = later >= OVERTAKEN
                && overtaking.is_some_and(|time| waited >= time.max(LEAST_TIMEOUT / 2));
            if all || is_missing {
                if !send(bucket) {
                    break;
                }
                (kept.sent_at, kept.is_again) = (now, true);
                self.resent += 1;
            }
        }
        if all && self.resent > before {
            self.backoff = (2 * self.backoff).min(BACKOFF_MAX);
        }
    }

    /// The time after which all buckets that are not known to have come are sent again.
    fn timeout(&self) -> Duration {
        let usual = self
            .round_trip
            .map_or(FIRST_TIMEOUT, |mean| (4 * mean).max(LEAST_TIMEOUT));
        usual * self.backoff
    }

    /// Returns how long no bucket was acknowledged although some were sent.
    pub fn silence(&self, now: Duration) -> Duration {
        match self.sent {
            0 => Duration::ZERO,
            _ => now.saturating_sub(self.progress),
        }
    }

    /// Gives all buckets to `free`: every one of them has come, by what all ranks agreed on.
    pub fn end(&mut self, free: impl FnMut(B)) {
        self.first += self.kept.len() as u64;
        failpoint!(NumberReused => self.first = self.first.saturating_sub(self.kept.len() as u64));
        self.sent = 0;
        self.kept
            .drain(..)
            .filter_map(|kept| kept.bucket)
            .for_each(free);
    }
}

/// Whether a bucket that arrives is to be folded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// It is new: fold it, then [`mark`](Incoming::mark) it.
    New,
    /// It has come before.
    Doubled,
    /// Its number is beyond the window.
    Beyond,
}

/// A stream at its receiver.
#[derive(Debug, Default)]
pub struct Incoming {
    /// All buckets below have come.
    all_below: u64,
    /// Which of the buckets from there on have come.
    map: [u64; MAP_WORDS],
    /// The number of the last bucket of this superstep, once it has come.
    last: Option<u64>,
    /// Buckets that have come since the last acknowledgement.
    owed: u32,
    /// A bucket came that shows a gap, or came twice.
    is_urgent: bool,
}

impl Incoming {
    /// Returns whether the bucket with a number is new.
    #[must_use]
    pub fn check(&self, number: u64) -> Arrival {
        let Some(ahead) = number.checked_sub(self.all_below) else {
            return Arrival::Doubled;
        };
        match ahead < WINDOW_MAX as u64 {
            false => Arrival::Beyond,
            true if self.map[ahead as usize / 64] >> (ahead % 64) & 1 == 1 => Arrival::Doubled,
            true => Arrival::New,
        }
    }

    /// Records that the bucket with a number has come and was folded.
    pub fn mark(&mut self, number: u64, is_last: bool) {
        let ahead = number.saturating_sub(self.all_below);
        if ahead >= WINDOW_MAX as u64 {
            return;
        }
        self.map[ahead as usize / 64] |= 1 << (ahead % 64);
        self.owed += 1;
        failpoint!(LastIgnored: is_last = false);
        if is_last {
            self.last = Some(number);
        }
        if ahead > 0 {
            self.is_urgent = true;
            return;
        }
        // Moves the map on by the run of ones at its start.
        let run = self.map.iter().position(|word| *word != u64::MAX);
        let words = run.unwrap_or(MAP_WORDS);
        let ones = self.map.get(words).map_or(0, |word| word.trailing_ones());
        self.map.rotate_left(words);
        self.map[MAP_WORDS - words..].fill(0);
        if ones > 0 {
            for at in 0..MAP_WORDS {
                let next = self.map.get(at + 1).copied().unwrap_or(0);
                self.map[at] = self.map[at] >> ones | next << (u64::BITS - ones);
            }
        }
        self.all_below += 64 * words as u64 + u64::from(ones);
    }

    /// Records a bucket that has come before: its acknowledgement was lost.
    pub fn mark_doubled(&mut self) {
        self.is_urgent = true;
    }

    /// Returns true if all buckets of this superstep have come.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        failpoint!(LastBeforeGap => return self.last.is_some());
        self.last.is_some_and(|last| last < self.all_below)
    }

    /// Returns true if an acknowledgement is due: for `most` buckets, or for any after a while.
    #[must_use]
    pub fn owes(&self, most: u32, long_ago: bool) -> bool {
        self.is_urgent || self.owed >= most || long_ago && self.owed > 0
    }

    /// Returns what has come, for an acknowledgement that is sent now.
    pub fn acknowledgement(&mut self) -> (u64, [u64; MAP_WORDS]) {
        (self.owed, self.is_urgent) = (0, false);
        (self.all_below, self.map)
    }

    /// Returns the number below which all buckets have come.
    #[must_use]
    pub fn all_below(&self) -> u64 {
        self.all_below
    }

    /// Begins the next superstep.
    pub fn begin(&mut self) {
        self.last = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn sent(window: usize, count: u64) -> Outgoing<u64> {
        let mut stream = Outgoing::new(window);
        for number in 0..count {
            assert_eq!(stream.next(), Some(number));
            stream.keep(number);
        }
        stream.mark_sent(count as usize, Duration::ZERO);
        stream
    }

    fn again(stream: &mut Outgoing<u64>, now: Duration) -> Vec<u64> {
        let mut numbers = Vec::new();
        stream.resend(now, |number| {
            numbers.push(*number);
            true
        });
        numbers
    }

    #[test]
    fn window_bounds_buckets_on_their_way() {
        let mut stream = sent(4, 4);
        assert_eq!(stream.next(), None);
        let mut free = Vec::new();
        stream.acknowledge(2, None, MS, |bucket| free.push(bucket));
        assert_eq!((free, stream.next()), (vec![0, 1], Some(4)));
    }

    #[test]
    fn map_frees_later_buckets_but_window_waits_for_the_first() {
        let mut stream = sent(4, 4);
        let mut free = Vec::new();
        stream.acknowledge(0, Some([0b1010, 0, 0, 0]), MS, |bucket| free.push(bucket));
        assert_eq!((&free[..], stream.next()), (&[1, 3][..], None));
        // What comes twice frees nothing more.
        stream.acknowledge(2, Some([0b10, 0, 0, 0]), MS, |bucket| free.push(bucket));
        assert_eq!((free, stream.next()), (vec![1, 3, 0], Some(4)));
    }

    #[test]
    fn acknowledgement_of_what_was_not_sent_is_ignored() {
        let mut stream = sent(4, 2);
        let free = |_| panic!("nothing has come");
        stream.acknowledge(3, Some([!0; MAP_WORDS]), MS, free);
        stream.acknowledge(2, Some([!0; MAP_WORDS]), MS, drop);
        assert_eq!(stream.next(), Some(2));
    }

    #[test]
    fn all_buckets_are_sent_again_after_timeout() {
        let mut stream = sent(8, 3);
        assert_eq!(again(&mut stream, 99 * MS), []);
        assert_eq!(again(&mut stream, 100 * MS), [0, 1, 2]);
        assert_eq!(again(&mut stream, 299 * MS), [], "the time-out doubles");
        assert_eq!(again(&mut stream, 300 * MS), [0, 1, 2]);
        assert_eq!((stream.resent, stream.silence(300 * MS)), (6, 300 * MS));
    }

    #[test]
    fn missing_bucket_is_sent_again_once_three_overtook_it() {
        let mut stream = sent(8, 5);
        let two_later = [0b0110, 0, 0, 0];
        stream.acknowledge(0, Some(two_later), MS, drop);
        assert_eq!(again(&mut stream, 2 * MS), [], "two later ones");
        stream.acknowledge(0, Some([0b1110, 0, 0, 0]), MS, drop);
        assert_eq!(again(&mut stream, 2 * MS), [0]);
        assert_eq!(again(&mut stream, 2 * MS), [], "it is on its way again");
    }

    #[test]
    fn bucket_that_the_link_refused_is_neither_late_nor_acknowledged() {
        let mut stream = Outgoing::new(4);
        stream.keep(0);
        stream.keep(1);
        stream.mark_sent(1, MS);
        assert_eq!(stream.unsent().copied().collect::<Vec<u64>>(), [1]);
        assert_eq!(again(&mut stream, 200 * MS), [0]);
        stream.acknowledge(2, None, 200 * MS, drop);
        assert_eq!(stream.silence(201 * MS), 200 * MS);
        stream.acknowledge(1, None, 200 * MS, drop);
        assert_eq!(again(&mut stream, 900 * MS), []);
    }

    #[test]
    fn round_trip_is_of_buckets_that_were_sent_once() {
        let mut stream = sent(8, 2);
        assert_eq!(again(&mut stream, 100 * MS), [0, 1]);
        stream.acknowledge(1, None, 101 * MS, drop);
        assert_eq!(stream.round_trip, None);
        stream.keep(2);
        stream.mark_sent(1, 101 * MS);
        stream.acknowledge(3, None, 105 * MS, drop);
        assert_eq!(stream.round_trip, Some(4 * MS));
    }

    #[test]
    fn any_order_of_buckets_completes_a_superstep_once() {
        let mut random = graphmill_raw::SplitMix64::new(1);
        for window in [1, 2, 63, 64, 65, 200, 256] {
            let mut stream = Incoming::default();
            let mut numbers: Vec<u64> = (0..window).collect();
            for round in 0..40 {
                for last in (1..numbers.len()).rev() {
                    numbers.swap(last, random.below(last as u64 + 1) as usize);
                }
                let first = round * window;
                stream.begin();
                for number in numbers.iter().map(|number| first + number) {
                    assert!(!stream.is_complete());
                    assert_eq!(stream.check(number), Arrival::New);
                    stream.mark(number, number + 1 == first + window);
                    assert_eq!(stream.check(number), Arrival::Doubled);
                }
                assert!(stream.is_complete());
                assert_eq!(stream.all_below(), first + window);
                assert_eq!(stream.check(first + window + 255), Arrival::New);
                assert_eq!(stream.check(first + window + 256), Arrival::Beyond);
            }
        }
    }

    #[test]
    fn bucket_that_no_link_took_is_not_silent() {
        let mut stream = sent(4, 2);
        stream.acknowledge(2, None, MS, |_| ());
        stream.keep(2);
        stream.mark_sent(0, 2 * MS);
        assert_eq!(stream.silence(30_000 * MS), Duration::ZERO);
        stream.mark_sent(1, 30_000 * MS);
        assert_eq!(stream.silence(30_001 * MS), MS);
        let mut refused = 0;
        stream.resend(31_000 * MS, |_| {
            refused += 1;
            false
        });
        assert_eq!((refused, stream.resent), (1, 0));
    }

    #[test]
    fn acknowledgement_is_due_for_gaps_doubles_and_silence() {
        let mut stream = Incoming::default();
        assert!(!stream.owes(64, true));
        stream.mark(0, false);
        assert!(!stream.owes(64, false) && stream.owes(64, true));
        stream.mark(2, false);
        assert!(stream.owes(64, false), "a gap");
        assert_eq!(stream.acknowledgement(), (1, [0b10, 0, 0, 0]));
        stream.mark_doubled();
        assert!(stream.owes(64, false), "a lost acknowledgement");
        stream.acknowledgement();
        (3..66).for_each(|number| stream.mark(number, false));
        stream.acknowledgement();
        stream.mark(1, false);
        assert_eq!(stream.acknowledgement(), (66, [0; MAP_WORDS]));
        (66..130).for_each(|number| stream.mark(number, false));
        assert!(stream.owes(64, false), "many");
    }
}
