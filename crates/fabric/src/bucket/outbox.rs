//! The buckets of one worker: one that is open for each lane of each rank, and the way of full ones.

use graphmill_raw::{Bucket, RingConsumer, RingProducer};

use crate::bucket::layout::{HEADER_BYTES, message_bytes, room};

/// A bucket on its way from a worker to a sender, or to a lane of this rank.
#[derive(Debug)]
pub(crate) struct FullBucket {
    pub(crate) bucket: Bucket,
    /// The worker that gets the bucket back.
    pub(crate) worker: usize,
    /// The lane among all lanes of all ranks.
    pub(crate) place: usize,
    pub(crate) count: u16,
    pub(crate) part: u16,
    pub(crate) goes_on: bool,
}

/// What a worker passes on.
#[derive(Debug)]
pub(crate) enum Passed {
    Full(FullBucket),
    /// The worker has no more messages in this superstep.
    Ended,
}

/// What the workers of a rank pass to one of its threads, and the ways back.
#[derive(Debug)]
pub(crate) struct WorkerRings {
    full: Vec<RingConsumer<Passed>>,
    back: Vec<RingProducer<Bucket>>,
    /// Of each worker, the parts of a jumbo message that has more.
    parts: Vec<Vec<FullBucket>>,
    /// Workers that have no more messages in this superstep.
    ended: usize,
}

impl WorkerRings {
    pub(crate) fn new(full: Vec<RingConsumer<Passed>>, back: Vec<RingProducer<Bucket>>) -> Self {
        WorkerRings {
            parts: full.iter().map(|_| Vec::new()).collect(),
            full,
            back,
            ended: 0,
        }
    }

    pub(crate) fn begin(&mut self) {
        self.ended = 0;
    }

    /// True if no worker has more messages in this superstep.
    pub(crate) fn have_ended(&self) -> bool {
        self.ended == self.full.len()
    }

    /// Gives a bucket back to its worker.
    pub(crate) fn give_back(&mut self, worker: usize, bucket: Bucket) {
        // A way back has room for all buckets of the worker.
        let _ = self.back[worker].put(bucket);
    }

    /// Calls `visit` with each full bucket that has come, or with all parts of a jumbo message.
    ///
    /// Gives the buckets back that `visit` does not take. Returns true if anything has come.
    pub(crate) fn take<E>(
        &mut self,
        mut visit: impl FnMut(&mut Vec<FullBucket>) -> Result<(), E>,
    ) -> Result<bool, E> {
        let mut has_moved = false;
        for worker in 0..self.full.len() {
            while let Some(passed) = self.full[worker].take() {
                has_moved = true;
                let full = match passed {
                    Passed::Full(full) => full,
                    Passed::Ended => {
                        self.ended += 1;
                        continue;
                    }
                };
                let (goes_on, mut parts) = (full.goes_on, std::mem::take(&mut self.parts[worker]));
                parts.push(full);
                if !goes_on {
                    visit(&mut parts)?;
                    for part in parts.drain(..) {
                        self.give_back(worker, part.bucket);
                    }
                }
                self.parts[worker] = parts;
            }
        }
        Ok(has_moved)
    }
}

/// A bucket that is not full.
#[derive(Debug)]
struct OpenBucket {
    bucket: Bucket,
    count: u16,
}

/// The buckets of one worker.
#[derive(Debug)]
pub struct BucketOutbox {
    worker: usize,
    free: Vec<Bucket>,
    open: Vec<Option<OpenBucket>>,
    /// Of each sender and lane that this worker passes buckets to, the way there, and the way back.
    ways: Vec<RingProducer<Passed>>,
    back: Vec<RingConsumer<Bucket>>,
    /// For each lane of all ranks the way to its sender, or to the lane itself.
    way_of: Vec<usize>,
    width: u32,
}

/// The messages that a bucket has room for.
pub struct MessageRoom<'b> {
    bytes: &'b mut [u8],
    count: &'b mut u16,
    message_bytes: usize,
}

impl MessageRoom<'_> {
    /// Number of messages that still fit.
    pub fn left(&self) -> usize {
        self.bytes.len() / self.message_bytes
    }

    /// Returns the bytes of the next `count` messages, which are there from now on.
    ///
    /// A message is the index of the destination in its lane, in 4 bytes, then the value. There are at most
    /// [`left`](Self::left) messages.
    pub fn take(&mut self, count: usize) -> &mut [u8] {
        let bytes = std::mem::take(&mut self.bytes);
        let (taken, rest) = bytes.split_at_mut(count * self.message_bytes);
        self.bytes = rest;
        *self.count += count as u16;
        taken
    }
}

impl BucketOutbox {
    pub(crate) fn new(
        worker: usize,
        free: Vec<Bucket>,
        (ways, back): (Vec<RingProducer<Passed>>, Vec<RingConsumer<Bucket>>),
        way_of: Vec<usize>,
    ) -> Self {
        BucketOutbox {
            worker,
            free,
            open: way_of.iter().map(|_| None).collect(),
            ways,
            back,
            way_of,
            width: 0,
        }
    }

    /// Begins a superstep with values of `width` bytes.
    pub(crate) fn begin(&mut self, width: u32) {
        self.width = width;
    }

    /// Takes back the buckets whose messages have come.
    fn reclaim(&mut self) {
        for back in &mut self.back {
            self.free.extend(std::iter::from_fn(|| back.take()));
        }
    }

    fn free_bucket(&mut self) -> Option<Bucket> {
        if self.free.is_empty() {
            self.reclaim();
        }
        self.free.pop()
    }

    /// Returns the room of the open bucket for a lane, at least that of one message.
    ///
    /// `place` is the number of the lane among all lanes of all ranks. Returns `None` if no bucket is free now.
    pub fn room(&mut self, place: usize) -> Option<MessageRoom<'_>> {
        let message_bytes = message_bytes(self.width);
        let is_full = |open: &OpenBucket| {
            (usize::from(open.count) + 1) * message_bytes > room(open.bucket.len())
        };
        if self.open[place].as_ref().is_some_and(is_full) {
            self.pass(place);
        }
        if self.open[place].is_none() {
            let bucket = self.free_bucket()?;
            self.open[place] = Some(OpenBucket { bucket, count: 0 });
        }
        let OpenBucket { bucket, count } = self.open[place].as_mut()?;
        let begin = HEADER_BYTES + usize::from(*count) * message_bytes;
        let end = HEADER_BYTES + room(bucket.len());
        Some(MessageRoom {
            bytes: &mut bucket[begin..end],
            count,
            message_bytes,
        })
    }

    /// Passes a message on that is longer than a bucket; returns false if too few buckets are free now.
    ///
    /// The message is the index of the destination in its lane, in 4 bytes, then the value.
    pub fn put_jumbo(&mut self, place: usize, message: &[u8]) -> bool {
        let Some(part_bytes) = self.free_bucket().map(|bucket| {
            let bytes = room(bucket.len());
            self.free.push(bucket);
            bytes
        }) else {
            return false;
        };
        let parts = message.len().div_ceil(part_bytes);
        if self.free.len() < parts {
            self.reclaim();
        }
        if self.free.len() < parts {
            return false;
        }
        for (part, bytes) in message.chunks(part_bytes).enumerate() {
            let Some(mut bucket) = self.free.pop() else {
                return false;
            };
            bucket[HEADER_BYTES..HEADER_BYTES + bytes.len()].copy_from_slice(bytes);
            self.send(FullBucket {
                bucket,
                worker: self.worker,
                place,
                count: 1,
                part: part as u16,
                goes_on: part + 1 < parts,
            });
        }
        true
    }

    /// Passes on the open bucket for a lane.
    fn pass(&mut self, place: usize) {
        if let Some(OpenBucket { bucket, count }) = self.open[place].take() {
            self.send(FullBucket {
                bucket,
                worker: self.worker,
                place,
                count,
                part: 0,
                goes_on: false,
            });
        }
    }

    fn send(&mut self, full: FullBucket) {
        // A way has room for all buckets of the worker.
        let _ = self.ways[self.way_of[full.place]].put(Passed::Full(full));
    }

    /// Passes on all open buckets: the worker has no more messages in this superstep.
    pub fn end(&mut self) {
        (0..self.open.len()).for_each(|place| self.pass(place));
        for way in &mut self.ways {
            let _ = way.put(Passed::Ended);
        }
    }
}
