//! A lane: checks and opens what arrives, has each bucket folded once, and acknowledges it (BlitzG, section IV).

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::Ordering;
use std::time::Duration;

use graphmill_raw::{Bucket, RingProducer, failpoint};

use crate::bucket::layout::{
    BucketHeader, BucketKind, HEADER_BYTES, MAP_WORDS, Refusal, TAG_BYTES, message_bytes, room,
};
use crate::bucket::link::Port;
use crate::bucket::outbox::{FullBucket, WorkerRings};
use crate::bucket::sender::HeardAck;
use crate::bucket::state::ExchangeState;
use crate::bucket::stream::{Arrival, Incoming};

/// Acknowledgements of the buckets of a window.
const ACKNOWLEDGEMENTS: usize = 4;
/// Time after which a bucket is acknowledged although few have come.
///
/// An acknowledgement takes as much of the network as a bucket.
const ACKNOWLEDGE_AFTER: Duration = Duration::from_millis(1);
/// Bursts that a step receives at most.
const BURSTS: usize = 64;

/// Folds messages: each is the index of a destination in the lane, in 4 bytes, then a value.
///
/// Returns false, and folds none, if a destination is not in the lane.
pub type Fold<'f> = &'f mut dyn FnMut(&[u8]) -> bool;

/// The parts of a jumbo message that have come.
#[derive(Debug)]
struct JumboParts {
    message: Vec<u8>,
    missing: usize,
}

/// A lane.
#[derive(Debug)]
pub struct BucketLane {
    port: Box<dyn Port>,
    streams: LaneStreams,
    workers: WorkerRings,
    /// For acknowledgements alone, and the number of the next one to each rank.
    alone: Bucket,
    numbers: Vec<u64>,
    /// When each rank last got one.
    acknowledged: Vec<Duration>,
}

/// The streams into a lane.
#[derive(Debug)]
struct LaneStreams {
    lane: usize,
    /// From each rank.
    incoming: Vec<Incoming>,
    /// To each sender thread of this rank.
    heard: Vec<RingProducer<HeardAck>>,
    /// By rank and number of the first part.
    aside: BTreeMap<(usize, u64), JumboParts>,
    superstep: u32,
    width: u32,
}

impl BucketLane {
    pub(crate) fn new(
        lane: usize,
        port: Box<dyn Port>,
        ranks: usize,
        alone: Bucket,
        (workers, heard): (WorkerRings, Vec<RingProducer<HeardAck>>),
    ) -> Self {
        BucketLane {
            port,
            streams: LaneStreams {
                lane,
                incoming: (0..ranks).map(|_| Incoming::default()).collect(),
                heard,
                aside: BTreeMap::new(),
                superstep: 0,
                width: 0,
            },
            workers,
            alone,
            numbers: vec![0; ranks],
            acknowledged: vec![Duration::ZERO; ranks],
        }
    }

    pub(crate) fn begin(&mut self, superstep: u32, width: u32) {
        self.workers.begin();
        (self.streams.superstep, self.streams.width) = (superstep, width);
        self.streams.aside.clear();
        self.streams.incoming.iter_mut().for_each(Incoming::begin);
    }

    /// Does a part of the work; returns true if anything changed.
    ///
    /// # Errors
    /// The link is broken, or a message of this rank is for no vertex of the lane.
    pub fn step(
        &mut self,
        state: &ExchangeState,
        now: Duration,
        fold: Fold<'_>,
    ) -> io::Result<bool> {
        let mut has_moved = self.take_own(fold)?;
        let (port, streams) = (&mut self.port, &mut self.streams);
        // A flood of datagrams that bring no news keeps no rank from its end.
        for _ in 0..BURSTS {
            let mut is_idle = true;
            let came = port.receive(&mut |datagram| match streams.take(state, datagram, fold) {
                Ok(is_news) => is_idle &= !is_news,
                Err(refusal) => {
                    state.counters.refused[refusal as usize].fetch_add(1, Ordering::Relaxed);
                }
            })?;
            has_moved |= !is_idle;
            if came == 0 {
                break;
            }
        }
        for from in 0..streams.incoming.len() {
            let waited = now.saturating_sub(self.acknowledged[from]);
            let most = (state.shape.window / ACKNOWLEDGEMENTS).max(1) as u32;
            if self.streams.incoming[from].owes(most, waited >= ACKNOWLEDGE_AFTER) {
                self.acknowledged[from] = now;
                self.acknowledge(state, from)?;
            }
        }
        let part = state.shape.senders + self.streams.lane;
        state.note_done(part, || self.is_complete(state));
        Ok(has_moved)
    }

    /// Folds the messages of this rank's workers.
    fn take_own(&mut self, fold: Fold<'_>) -> io::Result<bool> {
        let bytes = message_bytes(self.streams.width);
        self.workers.take(|full| {
            let is_sound = match &full[..] {
                [one] if bytes <= room(one.bucket.len()) => {
                    let end = HEADER_BYTES + bytes * usize::from(one.count);
                    fold(&one.bucket[HEADER_BYTES..end])
                }
                parts => {
                    let body = |part: &FullBucket| {
                        part.bucket[HEADER_BYTES..part.bucket.len() - TAG_BYTES].to_vec()
                    };
                    let message: Vec<u8> = parts.iter().flat_map(body).collect();
                    fold(&message[..bytes])
                }
            };
            match is_sound {
                true => Ok(()),
                false => Err(io::Error::other("a message is for no vertex of its lane")),
            }
        })
    }

    /// Sends a rank an acknowledgement alone.
    fn acknowledge(&mut self, state: &ExchangeState, to: usize) -> io::Result<()> {
        let (all_below, map) = self.streams.incoming[to].acknowledgement();
        let lane = self.streams.lane;
        let header = BucketHeader {
            kind: BucketKind::Acknowledgement,
            from: state.shape.rank,
            to,
            number: self.numbers[to],
            thread: 0,
            lane: (lane % state.shape.lanes[to]) as u8,
            is_last: false,
            goes_on: false,
            acknowledged: Some((lane as u8, all_below)),
            count: 0,
            part: 0,
            superstep: self.streams.superstep,
            width: 0,
        };
        self.numbers[to] += 1;
        let bytes = self.alone.len();
        self.alone[HEADER_BYTES..bytes - TAG_BYTES].fill(0);
        for (word, at) in map.iter().zip((HEADER_BYTES..).step_by(8)) {
            self.alone[at..at + 8].copy_from_slice(&word.to_le_bytes());
        }
        header.write(&mut self.alone);
        if !state.seal.seal(&header, &mut self.alone) {
            return Err(io::Error::other("the seal refused an acknowledgement"));
        }
        // One that the link does not take is as good as lost.
        self.port
            .send(to, usize::from(header.lane), &[&self.alone])?;
        let counters = &state.counters;
        counters
            .bytes_sent
            .fetch_add(bytes as u64, Ordering::Relaxed);
        Ok(())
    }

    /// True if the lane has all messages of this superstep.
    fn is_complete(&self, state: &ExchangeState) -> bool {
        let incoming = self.streams.incoming.iter().enumerate();
        let mut others = incoming.filter(|(from, _)| *from != state.shape.rank);
        self.workers.have_ended() && others.all(|(_, stream)| stream.is_complete())
    }

    /// Waits until a datagram has come, up to `limit`, after `idle` waits of this thread in a row.
    pub fn wait(&mut self, idle: u32, limit: Duration) {
        self.port.wait(idle, limit);
    }
}

impl LaneStreams {
    /// Takes a datagram that has come from anywhere; returns true if it brings news.
    fn take(
        &mut self,
        state: &ExchangeState,
        datagram: &mut [u8],
        fold: Fold<'_>,
    ) -> Result<bool, Refusal> {
        if datagram.len() != state.shape.bucket_bytes {
            return Err(Refusal::Length);
        }
        let header = BucketHeader::parse(datagram)?;
        let shape = &state.shape;
        let is_known = header.to == shape.rank
            && header.from != shape.rank
            && header.from < shape.lanes.len()
            && usize::from(header.lane) == self.lane;
        if !is_known {
            return Err(Refusal::Address);
        }
        if header.kind == BucketKind::Acknowledgement {
            state.seal.open(&header, datagram)?;
            let words = datagram[HEADER_BYTES..].as_chunks::<8>().0;
            let mut map = [0; MAP_WORDS];
            for (word, bytes) in map.iter_mut().zip(words) {
                *word = u64::from_le_bytes(*bytes);
            }
            self.hear(state, &header, Some(map));
            return Ok(true);
        }
        let arrival = self.incoming[header.from].check(header.number);
        failpoint!(DoubledFolded: arrival = Arrival::New);
        match arrival {
            Arrival::New => (),
            Arrival::Beyond => return Err(Refusal::Window),
            Arrival::Doubled => {
                state.seal.open(&header, datagram)?;
                self.incoming[header.from].mark_doubled();
                state.counters.doubled.fetch_add(1, Ordering::Relaxed);
                return Ok(false);
            }
        }
        if (header.superstep, header.width) != (self.superstep, self.width) {
            return Err(Refusal::Superstep);
        }
        failpoint!(AcknowledgedFirst => {
            self.incoming[header.from].mark(header.number, header.is_last);
        });
        state.seal.open(&header, datagram)?;
        let body = &datagram[HEADER_BYTES..datagram.len() - TAG_BYTES];
        let message = message_bytes(self.width);
        let is_sound = match message > body.len() && header.count > 0 {
            true => self.put_aside(&header, body, fold),
            false => fold(&body[..message * usize::from(header.count)]),
        };
        if !is_sound {
            return Err(Refusal::Strange);
        }
        // Only what was folded is marked, and so acknowledged.
        let incoming = &mut self.incoming[header.from];
        incoming.mark(header.number, header.is_last);
        let come = &state.come[header.from * shape.lanes[shape.rank] + self.lane];
        come.raise(incoming.all_below());
        self.hear(state, &header, None);
        Ok(true)
    }

    /// Tells the sender thread of a stream what has come of it.
    fn hear(
        &mut self,
        state: &ExchangeState,
        header: &BucketHeader,
        map: Option<[u64; MAP_WORDS]>,
    ) {
        let Some((lane, all_below)) = header.acknowledged else {
            return;
        };
        if usize::from(lane) < state.shape.lanes[header.from] {
            let place = state.place_of(header.from, lane.into());
            let ack = HeardAck {
                place,
                all_below,
                map,
            };
            // One that finds no room is as good as lost.
            let _ = self.heard[state.sender_of(place)].put(ack);
        }
    }

    /// Puts a part of a jumbo message aside, and folds the message once all its parts are there.
    fn put_aside(&mut self, header: &BucketHeader, body: &[u8], fold: Fold<'_>) -> bool {
        let bytes = message_bytes(self.width);
        let parts = bytes.div_ceil(body.len());
        let part = usize::from(header.part);
        let Some(first) = header
            .number
            .checked_sub(part as u64)
            .filter(|_| part < parts)
        else {
            return false;
        };
        let key = (header.from, first);
        let aside = self.aside.entry(key).or_insert_with(|| JumboParts {
            message: vec![0; parts * body.len()],
            missing: parts,
        });
        aside.message[part * body.len()..][..body.len()].copy_from_slice(body);
        aside.missing -= 1;
        failpoint!(JumboPartLost => aside.missing = aside.missing.saturating_sub(1));
        if aside.missing > 0 {
            return true;
        }
        let whole = self.aside.remove(&key);
        whole.is_some_and(|whole| fold(&whole.message[..bytes]))
    }
}
