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

/// The buckets of one worker.
#[derive(Debug)]
pub struct BucketOutbox {
    worker: usize,
    free: Vec<Bucket>,
    /// Buckets of this worker, free or not.
    buckets: usize,
    /// For each lane of all ranks, the bucket that is not full, and its messages.
    open: Vec<(Option<Bucket>, u16)>,
    /// Of each sender and lane that this worker passes buckets to, the way there, and the way back.
    ways: Vec<RingProducer<Passed>>,
    back: Vec<RingConsumer<Bucket>>,
    /// For each lane of all ranks the way to its sender, or to the lane itself.
    way_of: Vec<usize>,
    /// The ways that are to sender threads: the first ones.
    senders: usize,
    /// Bytes of a bucket that messages may take, and bytes of a message.
    room: usize,
    message_bytes: usize,
}

impl BucketOutbox {
    pub(crate) fn new(
        worker: usize,
        free: Vec<Bucket>,
        (ways, back): (Vec<RingProducer<Passed>>, Vec<RingConsumer<Bucket>>),
        way_of: Vec<usize>,
        senders: usize,
    ) -> Self {
        BucketOutbox {
            worker,
            senders,
            room: free.first().map_or(0, |bucket| room(bucket.len())),
            message_bytes: 0,
            buckets: free.len(),
            free,
            open: way_of.iter().map(|_| (None, 0)).collect(),
            ways,
            back,
            way_of,
        }
    }

    /// Begins a superstep with values of `width` bytes.
    pub(crate) fn begin(&mut self, width: u32) {
        self.message_bytes = message_bytes(width);
    }

    /// Returns true once `count` buckets are free: takes back those whose messages have come.
    fn has_free(&mut self, count: usize) -> bool {
        if self.free.len() < count {
            for back in &mut self.back {
                self.free.extend(std::iter::from_fn(|| back.take()));
            }
        }
        self.free.len() >= count
    }

    /// Returns true if buckets are free for `messages` messages to one lane, or half of all are free.
    pub fn has_room_for(&mut self, messages: usize) -> bool {
        let of_bucket = (self.room / self.message_bytes).max(1);
        let needed = messages.div_ceil(of_bucket) + 1;
        self.has_free(needed.min(self.buckets / 2))
    }

    /// Bytes of a message: the index of the destination in its lane, in 4 bytes, then the value.
    pub fn message_bytes(&self) -> usize {
        self.message_bytes
    }

    /// True if a message is longer than a bucket.
    pub fn is_jumbo(&self) -> bool {
        self.message_bytes > self.room
    }

    /// Returns the bytes for more messages to a lane in its open bucket, one message at least.
    ///
    /// [`pass`](Self::pass) then takes the messages that were written. `place` is the number of the lane among all lanes of all ranks.
    /// Returns `None` if no bucket is free now.
    pub fn room(&mut self, place: usize) -> Option<&mut [u8]> {
        if self.open[place].0.is_none() {
            let bucket = self.has_free(1).then(|| self.free.pop()).flatten();
            self.open[place] = (Some(bucket?), 0);
        }
        let of_bucket = self.room / self.message_bytes;
        let (open, count) = &mut self.open[place];
        let taken = HEADER_BYTES + usize::from(*count) * self.message_bytes;
        let end = HEADER_BYTES + of_bucket * self.message_bytes;
        open.as_mut()?.get_mut(taken..end)
    }

    /// Takes messages that were written into the room of a lane; passes the bucket on if it is full.
    pub fn pass(&mut self, place: usize, messages: usize) {
        let (open, count) = &mut self.open[place];
        let count = (usize::from(*count) + messages).min(usize::from(u16::MAX));
        match open.take_if(|_| count == self.room / self.message_bytes) {
            Some(full) => self.send(full, place, count, (0, false)),
            None => self.open[place].1 = count as u16,
        }
    }

    /// Copies messages to a lane into buckets; returns their bytes: fewer if too few buckets are free now.
    pub fn put(&mut self, place: usize, messages: &[u8]) -> usize {
        let mut left = messages;
        while !left.is_empty() {
            let bytes = if self.message_bytes > self.room {
                let bytes = self.message_bytes.min(left.len());
                if !self.put_jumbo(place, &left[..bytes]) {
                    break;
                }
                bytes
            } else {
                let Some(room) = self.room(place) else {
                    break;
                };
                let bytes = room.len().min(left.len());
                room[..bytes].copy_from_slice(&left[..bytes]);
                self.pass(place, bytes / self.message_bytes);
                bytes
            };
            left = &left[bytes..];
        }
        messages.len() - left.len()
    }

    /// Passes a message on that is longer than a bucket; returns false if too few buckets are free now.
    fn put_jumbo(&mut self, place: usize, message: &[u8]) -> bool {
        let parts = message.len().div_ceil(self.room.max(1));
        if !self.has_free(parts) {
            return false;
        }
        for (part, bytes) in message.chunks(self.room.max(1)).enumerate() {
            let Some(mut bucket) = self.free.pop() else {
                return false;
            };
            bucket[HEADER_BYTES..HEADER_BYTES + bytes.len()].copy_from_slice(bytes);
            self.send(bucket, place, 1, (part, part + 1 < parts));
        }
        true
    }

    fn send(&mut self, bucket: Bucket, place: usize, count: usize, (part, goes_on): (usize, bool)) {
        let full = FullBucket {
            bucket,
            worker: self.worker,
            place,
            count: count as u16,
            part: part as u16,
            goes_on,
        };
        // A way has room for all buckets of the worker.
        let _ = self.ways[self.way_of[place]].put(Passed::Full(full));
    }

    /// Passes on all open buckets to lanes of this rank, or to lanes of other ranks.
    ///
    /// The worker has no more messages to them in this superstep.
    pub fn end(&mut self, own: bool) {
        for place in 0..self.open.len() {
            if (self.way_of[place] >= self.senders) == own
                && let (Some(bucket), count) = std::mem::take(&mut self.open[place])
            {
                self.send(bucket, place, count.into(), (0, false));
            }
        }
        let (to_senders, to_lanes) = self.ways.split_at_mut(self.senders);
        for way in if own { to_lanes } else { to_senders } {
            let _ = way.put(Passed::Ended);
        }
    }
}
