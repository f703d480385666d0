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
    /// For each lane of all ranks, the bucket that is not full, and its messages.
    open: Vec<(Option<Bucket>, u16)>,
    /// The buckets that messages are written into now, the open one first.
    filling: Vec<Bucket>,
    /// Of each sender and lane that this worker passes buckets to, the way there, and the way back.
    ways: Vec<RingProducer<Passed>>,
    back: Vec<RingConsumer<Bucket>>,
    /// For each lane of all ranks the way to its sender, or to the lane itself.
    way_of: Vec<usize>,
    /// Bytes of a bucket that messages may take, and bytes of a message.
    room: usize,
    message_bytes: usize,
}

/// The bytes of buckets that messages are written into, one bucket after the other.
///
/// A message is the index of the destination in its lane, in 4 bytes, then the value.
#[derive(Debug)]
pub struct MessageRooms<'b> {
    buckets: std::slice::IterMut<'b, Bucket>,
    /// Bytes of the first bucket that are taken.
    taken: usize,
    /// Bytes of a full bucket's messages.
    full: usize,
}

impl<'b> MessageRooms<'b> {
    /// Returns the bytes for messages of the next bucket.
    #[cold]
    pub fn next_room(&mut self) -> Option<&'b mut [u8]> {
        let bucket = self.buckets.next()?;
        let room = &mut bucket[HEADER_BYTES..HEADER_BYTES + self.full];
        Some(&mut room[std::mem::take(&mut self.taken)..])
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
            room: free.first().map_or(0, |bucket| room(bucket.len())),
            message_bytes: 0,
            free,
            open: way_of.iter().map(|_| (None, 0)).collect(),
            filling: Vec::new(),
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

    /// Returns buckets with room for `messages` more messages to a lane.
    ///
    /// [`pass`](Self::pass) then takes the messages that were written.
    ///
    /// `place` is the number of the lane among all lanes of all ranks. Returns `None` if too few buckets are free now.
    pub fn rooms(&mut self, place: usize, messages: usize) -> Option<MessageRooms<'_>> {
        let of_bucket = self.room / self.message_bytes;
        let (open, count) = &self.open[place];
        let in_open = open.as_ref().map_or(0, |_| of_bucket - usize::from(*count));
        let more = messages.saturating_sub(in_open).div_ceil(of_bucket.max(1));
        if !self.has_free(more) {
            return None;
        }
        let (open, count) = &mut self.open[place];
        self.filling.extend(open.take());
        self.filling
            .extend(self.free.drain(self.free.len() - more..));
        Some(MessageRooms {
            buckets: self.filling.iter_mut(),
            taken: usize::from(*count) * self.message_bytes,
            full: of_bucket * self.message_bytes,
        })
    }

    /// Passes on the full buckets of a lane, after `messages` messages were written into its rooms.
    pub fn pass(&mut self, place: usize, messages: usize) {
        let of_bucket = self.room / self.message_bytes;
        let mut left = usize::from(std::mem::take(&mut self.open[place].1)) + messages;
        let mut filling = std::mem::take(&mut self.filling);
        for bucket in filling.drain(..) {
            let count = left.min(of_bucket);
            left -= count;
            match count {
                0 => self.free.push(bucket),
                count if count == of_bucket => self.send(bucket, place, count, (0, false)),
                count => self.open[place] = (Some(bucket), count as u16),
            }
        }
        self.filling = filling;
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
                let mut rooms = self.rooms(place, 1);
                let Some(room) = rooms.as_mut().and_then(MessageRooms::next_room) else {
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

    /// Passes on all open buckets: the worker has no more messages in this superstep.
    pub fn end(&mut self) {
        for place in 0..self.open.len() {
            if let (Some(bucket), count) = std::mem::take(&mut self.open[place]) {
                self.send(bucket, place, count.into(), (0, false));
            }
        }
        for way in &mut self.ways {
            let _ = way.put(Passed::Ended);
        }
    }
}
