//! The exchange of buckets of one rank: its workers, sender threads and lanes, and the rings between them.
//!
//! ```text
//! worker --full--> sender --link--> lane of another rank
//! worker <--back-- sender <--heard-- lane of this rank <--link-- (acknowledgements)
//! worker --full--> lane of this rank --back--> worker
//! ```
//!
//! Each part belongs to one thread, which locks it for a step. No two threads wait for one lock.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use graphmill_raw::{
    AlignedBuffer, Bucket, RingConsumer, RingProducer, Watermark, buckets, lock, ring,
};

use crate::bucket::lane::BucketLane;
use crate::bucket::link::LinkPorts;
use crate::bucket::outbox::{BucketOutbox, Passed, WorkerRings};
use crate::bucket::seal::BucketSeal;
use crate::bucket::sender::{BucketSender, HeardAck};
use crate::bucket::state::{ExchangeCounters, ExchangeShape, ExchangeState, firsts};

/// Acknowledgements on their way from a lane to a sender thread.
const HEARD_MAX: usize = 256;

/// The exchange of one rank.
#[derive(Debug)]
pub struct BucketExchange {
    /// What all threads read.
    pub state: ExchangeState,
    /// One for each worker.
    pub workers: Vec<Mutex<BucketOutbox>>,
    /// One for each sender thread.
    pub senders: Vec<Mutex<BucketSender>>,
    /// One for each lane.
    pub lanes: Vec<Mutex<BucketLane>>,
}

/// The producers by the first threads, and the consumers by the second.
type RingEnds<T> = (Vec<Vec<RingProducer<T>>>, Vec<Vec<RingConsumer<T>>>);

/// Makes rings from each of some threads to each of others.
fn rings<T: Send>(from: usize, to: usize, places: usize) -> RingEnds<T> {
    let mut producers: Vec<Vec<_>> = (0..from).map(|_| Vec::new()).collect();
    let mut consumers: Vec<Vec<_>> = (0..to).map(|_| Vec::new()).collect();
    for producers in &mut producers {
        for consumers in &mut consumers {
            let (producer, consumer) = ring(places);
            producers.push(producer);
            consumers.push(consumer);
        }
    }
    (producers, consumers)
}

impl ExchangeShape {
    /// Bytes of the rings between the threads, each with room for all that may be in it.
    #[must_use]
    pub fn ring_bytes(&self) -> u64 {
        let (own, of_worker) = (self.lanes[self.rank], self.of_worker());
        let full = (of_worker + 1) * size_of::<Option<Passed>>();
        let back = of_worker * size_of::<Option<Bucket>>();
        let heard = own * self.senders * HEARD_MAX * size_of::<Option<HeardAck>>();
        (self.workers * (self.senders + own) * (full + back) + heard) as u64
    }
}

impl BucketExchange {
    /// Makes the exchange of a rank in memory of [`bytes`](ExchangeShape::bytes) bytes.
    ///
    /// The link has a port for each sender thread and each lane. Returns `None` if the memory or the ports are too few.
    pub fn new(
        shape: ExchangeShape,
        seal: BucketSeal,
        ports: LinkPorts,
        memory: AlignedBuffer,
    ) -> Option<Self> {
        let (ranks, own) = (shape.lanes.len(), shape.lanes[shape.rank]);
        let (workers, senders) = (shape.workers, shape.senders);
        let state = ExchangeState {
            firsts: firsts(&shape.lanes),
            seal,
            come: (0..ranks * own).map(|_| Watermark::default()).collect(),
            done: (0..senders + own).map(|_| AtomicBool::new(false)).collect(),
            counters: ExchangeCounters::default(),
            shape,
        };
        let shape = &state.shape;
        let stride = shape.stride();
        let mut all = buckets(memory, shape.bucket_bytes, stride);
        let of_worker = shape.of_worker();
        // Workers pass buckets to sender threads, then to lanes of this rank.
        let (ways, mut full) = rings::<Passed>(workers, senders + own, of_worker + 1);
        let (mut back_ways, backs) = rings::<Bucket>(senders + own, workers, of_worker);
        let (heard_ways, heard) = rings::<HeardAck>(own, senders, HEARD_MAX);
        let way_of = |place: usize| match state.lane_of(place) {
            (rank, lane) if rank == shape.rank => senders + lane,
            _ => state.sender_of(place),
        };
        let way_of: Vec<usize> = (0..state.places()).map(way_of).collect();
        let mut outboxes = Vec::new();
        for (worker, ways) in ways.into_iter().zip(backs).enumerate() {
            let free = all.split_off(all.len().checked_sub(of_worker)?);
            let outbox = BucketOutbox::new(worker, free, ways, way_of.clone(), senders);
            outboxes.push(Mutex::new(outbox));
        }
        let own_full = full.split_off(senders);
        let own_backs = back_ways.split_off(senders);
        let mut of_senders = Vec::new();
        let (rings, of_ports) = (full.into_iter().zip(back_ways).zip(heard), ports.senders);
        for (thread, (((full, back), heard), port)) in rings.zip(of_ports).enumerate() {
            let places = (0..state.places()).filter(|place| way_of[*place] == thread);
            let places = places.map(|place| Some((place, all.pop()?)));
            let places = places.collect::<Option<Vec<_>>>()?;
            let sender = BucketSender::new(
                thread,
                port,
                &state,
                places,
                (WorkerRings::new(full, back), heard),
            );
            of_senders.push(Mutex::new(sender));
        }
        let mut of_lanes = Vec::new();
        let (rings, of_ports) = (
            own_full.into_iter().zip(own_backs).zip(heard_ways),
            ports.lanes,
        );
        for (lane, (((own, back), heard), port)) in rings.zip(of_ports).enumerate() {
            let made = BucketLane::new(
                lane,
                port,
                ranks,
                all.pop()?,
                (WorkerRings::new(own, back), heard),
            );
            of_lanes.push(Mutex::new(made));
        }
        (of_senders.len() == senders && of_lanes.len() == own).then_some(BucketExchange {
            state,
            workers: outboxes,
            senders: of_senders,
            lanes: of_lanes,
        })
    }

    /// Begins a superstep with values of `width` bytes. No thread is in a step.
    pub fn begin(&self, superstep: u32, width: u32) {
        let done = self.state.done.iter();
        done.for_each(|done| done.store(false, Ordering::Relaxed));
        self.workers
            .iter()
            .for_each(|worker| lock(worker).begin(width));
        self.senders
            .iter()
            .for_each(|sender| lock(sender).begin(superstep, width));
        self.lanes
            .iter()
            .for_each(|lane| lock(lane).begin(superstep, width));
    }

    /// Ends a superstep: all ranks have agreed that every bucket has come. No thread is in a step.
    pub fn end(&self) {
        self.senders.iter().for_each(|sender| lock(sender).end());
    }

    /// True if the lanes of this rank have all messages, and all of its buckets were sent once.
    pub fn is_complete(&self) -> bool {
        let mut done = self.state.done.iter();
        done.all(|done| done.load(Ordering::Acquire))
    }
}
