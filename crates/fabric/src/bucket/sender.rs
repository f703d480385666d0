//! A sender thread: numbers, seals and sends full buckets, and keeps them until they have come (BlitzG, section V-A).

use std::collections::{BTreeSet, VecDeque};
use std::io;
use std::sync::atomic::Ordering;
use std::time::Duration;

use graphmill_raw::{Bucket, RingConsumer, failpoint};

use crate::bucket::layout::{
    BucketHeader, BucketKind, HEADER_BYTES, MAP_WORDS, TAG_BYTES, message_bytes, room,
};
use crate::bucket::link::Port;
use crate::bucket::outbox::{FullBucket, WorkerRings};
use crate::bucket::state::ExchangeState;
use crate::bucket::stream::Outgoing;

/// Buckets of one call to the link at most: the kernel takes a buffer of 64 KiB.
const BURST: usize = 44;

/// What a lane of this rank learned of a stream to another rank.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HeardAck {
    /// The lane among all lanes of all ranks.
    pub(crate) place: usize,
    pub(crate) all_below: u64,
    pub(crate) map: Option<[u64; MAP_WORDS]>,
}

/// A bucket that is kept, and the worker that gets it back.
#[derive(Debug)]
struct KeptBucket {
    bucket: Bucket,
    /// `None` for a bucket of the sender itself.
    worker: Option<usize>,
}

/// The stream to one lane.
#[derive(Debug)]
struct LaneStream {
    /// The lane among all lanes of all ranks.
    place: usize,
    outgoing: Outgoing<KeptBucket>,
    waiting: VecDeque<FullBucket>,
    /// The bucket that says `last`, if no other one can.
    spare: Option<Bucket>,
    /// `last` is among the buckets that are kept.
    has_ended: bool,
}

/// A sender thread.
#[derive(Debug)]
pub struct BucketSender {
    thread: usize,
    port: Box<dyn Port>,
    streams: Vec<LaneStream>,
    /// For each lane of all ranks, the stream to it, if this thread has it.
    stream_of: Vec<Option<usize>>,
    workers: WorkerRings,
    /// From each lane of this rank.
    heard: Vec<RingConsumer<HeardAck>>,
    superstep: u32,
    width: u32,
    /// The stream that begins the next step.
    turn: usize,
}

impl BucketSender {
    pub(crate) fn new(
        thread: usize,
        port: Box<dyn Port>,
        state: &ExchangeState,
        places: Vec<(usize, Bucket)>,
        (workers, heard): (WorkerRings, Vec<RingConsumer<HeardAck>>),
    ) -> Self {
        let mut stream_of = vec![None; state.places()];
        for (at, (place, _)) in places.iter().enumerate() {
            stream_of[*place] = Some(at);
        }
        let stream = |(place, spare)| LaneStream {
            place,
            outgoing: Outgoing::new(state.shape.window),
            waiting: VecDeque::new(),
            spare: Some(spare),
            has_ended: false,
        };
        BucketSender {
            thread,
            port,
            streams: places.into_iter().map(stream).collect(),
            stream_of,
            workers,
            heard,
            superstep: 0,
            width: 0,
            turn: 0,
        }
    }

    pub(crate) fn begin(&mut self, superstep: u32, width: u32) {
        (self.superstep, self.width) = (superstep, width);
        self.workers.begin();
        for stream in &mut self.streams {
            stream.has_ended = false;
        }
    }

    /// Does a part of the work; returns true if anything changed.
    ///
    /// # Errors
    /// The link is broken, or the seal refuses a bucket.
    pub fn step(&mut self, state: &ExchangeState, now: Duration) -> io::Result<bool> {
        let has_heard = self.hear(now);
        let has_collected = self.collect()?;
        let mut has_moved = has_heard || has_collected;
        let count = self.streams.len();
        for at in 0..count {
            let at = (self.turn + at) % count;
            has_moved |= self.fill_window(at, state)?;
            // While workers fill more, a burst waits until it is as long as the link takes.
            let least = if has_collected { BURST } else { 1 };
            has_moved |= self.send(at, least, state, now)?;
        }
        self.turn = (self.turn + 1) % count.max(1);
        state.note_done(self.thread, || self.has_sent_all());
        Ok(has_moved)
    }

    /// Takes what the lanes heard of its streams.
    fn hear(&mut self, now: Duration) -> bool {
        let mut has_moved = false;
        for heard in &mut self.heard {
            while let Some(ack) = heard.take() {
                let Some(at) = self.stream_of.get(ack.place).copied().flatten() else {
                    continue;
                };
                has_moved = true;
                let LaneStream {
                    outgoing, spare, ..
                } = &mut self.streams[at];
                outgoing.acknowledge(ack.all_below, ack.map, now, |kept| {
                    give_back(kept, &mut self.workers, spare);
                });
            }
        }
        has_moved
    }

    /// Takes the buckets that workers have filled.
    fn collect(&mut self) -> io::Result<bool> {
        let (streams, stream_of) = (&mut self.streams, &self.stream_of);
        self.workers.take(|full| {
            // All parts of a message are behind each other.
            let place = full.first().map(|first| first.place);
            if let Some(at) = place.and_then(|place| stream_of[place]) {
                streams[at].waiting.extend(full.drain(..));
            }
            Ok(())
        })
    }

    /// Numbers and seals buckets while the window of a stream has room.
    fn fill_window(&mut self, at: usize, state: &ExchangeState) -> io::Result<bool> {
        let have_ended = self.workers.have_ended();
        let stream = &mut self.streams[at];
        let (to, lane) = state.lane_of(stream.place);
        let mut has_moved = false;
        while let Some(number) = stream.outgoing.next() {
            let mut header = BucketHeader {
                kind: BucketKind::Messages,
                from: state.shape.rank,
                to,
                number,
                thread: self.thread as u8,
                lane: lane as u8,
                is_last: false,
                goes_on: false,
                acknowledged: state.acknowledged(to, number),
                count: 0,
                part: 0,
                superstep: self.superstep,
                width: self.width,
            };
            let (mut bucket, worker) = match stream.waiting.pop_front() {
                Some(full) => {
                    header.is_last = have_ended && stream.waiting.is_empty();
                    (header.count, header.part) = (full.count, full.part);
                    header.goes_on = full.goes_on;
                    (full.bucket, Some(full.worker))
                }
                None if have_ended && !stream.has_ended => match stream.spare.take() {
                    Some(spare) => {
                        header.is_last = true;
                        (spare, None)
                    }
                    None => break,
                },
                None => break,
            };
            stream.has_ended |= header.is_last;
            has_moved = true;
            let bytes = bucket.len();
            let used = match header.count {
                0 => 0,
                // A part of a jumbo message takes all of the bucket.
                count => (message_bytes(self.width) * usize::from(count)).min(room(bytes)),
            };
            bucket[HEADER_BYTES + used..bytes - TAG_BYTES].fill(0);
            header.write(&mut bucket);
            if !state.seal.seal(&header, &mut bucket) {
                return Err(io::Error::other("the seal refused a bucket"));
            }
            state
                .counters
                .messages_sent
                .fetch_add(header.count.into(), Ordering::Relaxed);
            stream.outgoing.keep(KeptBucket { bucket, worker });
        }
        Ok(has_moved)
    }

    /// Hands the buckets of a stream to the link that are due, in bursts of `least` at least.
    fn send(
        &mut self,
        at: usize,
        least: usize,
        state: &ExchangeState,
        now: Duration,
    ) -> io::Result<bool> {
        let stream = &mut self.streams[at];
        let (to, lane) = state.lane_of(stream.place);
        let sent_bytes = &state.counters.bytes_sent;
        let mut has_moved = false;
        loop {
            let unsent = stream.outgoing.unsent().take(BURST);
            let burst: Vec<&[u8]> = unsent.map(|kept| &*kept.bucket).collect();
            if burst.len() < least {
                break;
            }
            let taken = self.port.send(to, lane, &burst)?;
            let bytes: usize = burst[..taken].iter().map(|bucket| bucket.len()).sum();
            sent_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
            let is_all = taken == burst.len();
            stream.outgoing.mark_sent(taken, now);
            has_moved |= taken > 0;
            if !is_all {
                break;
            }
        }
        let (port, mut failed) = (&mut self.port, Ok(0));
        let before = stream.outgoing.resent;
        stream.outgoing.resend(now, |kept| {
            failpoint!(ResentElsewhere: lane = (lane + 1) % state.shape.lanes[to]);
            failed = port.send(to, lane, &[&kept.bucket]);
            let bytes = kept.bucket.len() * *failed.as_ref().unwrap_or(&0);
            sent_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
            bytes > 0
        });
        failed?;
        let again = stream.outgoing.resent - before;
        state.counters.resent.fetch_add(again, Ordering::Relaxed);
        Ok(has_moved || again > 0)
    }

    /// True if every bucket of this superstep was given to the link once.
    fn has_sent_all(&self) -> bool {
        self.workers.have_ended()
            && (self.streams.iter()).all(|stream| {
                stream.has_ended
                    && stream.waiting.is_empty()
                    && stream.outgoing.unsent().next().is_none()
            })
    }

    /// Returns a rank that has acknowledged nothing for `limit`, if there is one.
    ///
    /// If all of several ranks are silent, it waits half as long again, so that the others can name this rank.
    pub fn silent_rank(
        &self,
        state: &ExchangeState,
        now: Duration,
        limit: Duration,
    ) -> Option<usize> {
        let after = |limit: Duration| {
            let silent = move |stream: &&LaneStream| stream.outgoing.silence(now) >= limit;
            let streams = self.streams.iter().filter(silent);
            streams
                .map(|stream| state.lane_of(stream.place).0)
                .collect::<BTreeSet<_>>()
        };
        let silent = after(limit).first().copied()?;
        let others = state.shape.lanes.len() - 1;
        let are_all = others > 1 && after(limit / 2).len() == others;
        match are_all {
            true => after(limit + limit / 2).first().copied(),
            false => Some(silent),
        }
    }

    /// Frees all buckets: all ranks have agreed that every one has come.
    pub(crate) fn end(&mut self) {
        for LaneStream {
            outgoing, spare, ..
        } in &mut self.streams
        {
            outgoing.end(|kept| give_back(kept, &mut self.workers, spare));
        }
    }
}

/// Gives a bucket back to the worker that it is from, or keeps it for the next `last`.
fn give_back(kept: KeptBucket, workers: &mut WorkerRings, spare: &mut Option<Bucket>) {
    match kept.worker {
        Some(worker) => workers.give_back(worker, kept.bucket),
        None => *spare = Some(kept.bucket),
    }
}
