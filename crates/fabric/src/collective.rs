//! Collective operations over the frames of any fabric, in a logarithmic number of rounds.
//!
//! In round `k` each rank sends its parts to the rank `2^k` below it, and receives as many from the rank `2^k` above. This is
//! the algorithm of Bruck, Ho, Kipnis, Upfal and Weathersby, "Efficient algorithms for all-to-all communications in multiport
//! message-passing systems", IEEE TPDS 8(11), 1997.
//!
//! A rank stores the parts in order of rank, its own first. A caller that folds them in order of rank gets the same bits everywhere.

use std::ops::Range;
use std::time::Duration;

use graphmill_raw::AlignedBuffer;

use crate::error::FabricError;
use crate::port::{Channel, Fabric, FabricOperation};

/// The channel that only collectives use: the highest tag that every MPI allows.
pub(crate) const CHANNEL: Channel = 32_767;
/// Maximum bytes of a frame, and bytes of the first frame of each round.
const FRAME_BYTES: usize = 64 << 10;
const FIRST_BYTES: usize = 4 << 10;
const NUMBER_BYTES: usize = size_of::<u64>();
/// Time between two calls of `idle` during a wait.
const LOOK: Duration = Duration::from_millis(50);

/// Returns the bytes of every rank, in order of rank, at every rank.
///
/// It is for small data: each rank holds a copy. All ranks call it, with no other operation in flight. While it waits for others it calls
/// `idle` repeatedly; an error of `idle` ends it.
///
/// # Errors
/// A rank is lost, or `idle` ended it.
pub fn all_gather<E: From<FabricError>>(
    fabric: &dyn Fabric,
    mine: &[u8],
    idle: &dyn Fn() -> Result<(), E>,
) -> Result<Vec<Vec<u8>>, E> {
    let (rank, ranks) = (fabric.rank(), fabric.ranks());
    // In order of rank from this one on, around to the one before it.
    let mut known = vec![mine.to_vec()];
    while known.len() < ranks {
        let distance = known.len();
        let count = distance.min(ranks - distance);
        let to = (rank + ranks - distance) % ranks;
        let from = (rank + distance) % ranks;
        let sent = joined(&known[..count]);
        let received = exchange(fabric, to, from, &sent, idle)?;
        known.extend(split(&received, count)?);
    }
    known.rotate_right(rank);
    Ok(known)
}

/// Returns when every rank has called it.
///
/// # Errors
/// As for [`all_gather`].
pub fn barrier<E: From<FabricError>>(
    fabric: &dyn Fabric,
    idle: &dyn Fn() -> Result<(), E>,
) -> Result<(), E> {
    all_gather(fabric, &[], idle).map(drop)
}

/// Folds the numbers of all ranks at each index into one, the same at every rank.
///
/// `fold` must give the same result in any order. Each rank sends and receives about twice the bytes of the numbers, in a ring. First each
/// rank folds the numbers of all ranks for a part of the indices. Then the folded parts travel around the ring.
///
/// # Errors
/// As for [`all_gather`]; the numbers are undefined then.
pub fn all_reduce<E: From<FabricError>>(
    fabric: &dyn Fabric,
    numbers: &mut [u64],
    fold: impl Fn(u64, u64) -> u64,
    idle: &dyn Fn() -> Result<(), E>,
) -> Result<(), E> {
    let (rank, ranks, count) = (fabric.rank(), fabric.ranks(), numbers.len());
    let (to, from) = ((rank + 1) % ranks, (rank + ranks - 1) % ranks);
    let part = |number: usize| {
        let number = number % ranks;
        number * count / ranks..(number + 1) * count / ranks
    };
    for step in 0..2 * (ranks - 1) {
        let place = rank + 2 * ranks - step;
        let (mut sent, mut received) = (part(place), part(place - 1));
        let is_folding = step < ranks - 1;
        while !sent.is_empty() || !received.is_empty() {
            let now = take(&mut sent);
            let bytes: Vec<u8> = numbers[now].iter().flat_map(|n| n.to_le_bytes()).collect();
            let awaited = take(&mut received);
            let send = (!bytes.is_empty()).then_some((to, &bytes[..]));
            let receive = (!awaited.is_empty()).then_some((from, awaited.len() * NUMBER_BYTES));
            let came = frames(fabric, send, receive, idle)?;
            let came = came.as_chunks::<NUMBER_BYTES>().0;
            if came.len() != awaited.len() {
                return Err(protocol_error().into());
            }
            for (number, came) in numbers[awaited].iter_mut().zip(came) {
                let came = u64::from_le_bytes(*came);
                *number = if is_folding {
                    fold(*number, came)
                } else {
                    came
                };
            }
        }
    }
    Ok(())
}

/// Splits the part of one frame off the front.
fn take(places: &mut Range<usize>) -> Range<usize> {
    let end = places.end.min(places.start + FRAME_BYTES / NUMBER_BYTES);
    let now = places.start..end;
    places.start = end;
    now
}

/// A stream of any number of bytes to one rank, which calls [`receive_all`] meanwhile.
#[derive(Debug)]
pub struct FramedSender<'f> {
    fabric: &'f dyn Fabric,
    to: usize,
    frame: Vec<u8>,
}

/// The first byte of a frame of a [`FramedSender`], which says whether the frame is the last.
const MORE: u8 = 0;
const LAST: u8 = 1;

impl<'f> FramedSender<'f> {
    /// Starts a stream to rank `to`.
    pub fn new(fabric: &'f dyn Fabric, to: usize) -> Self {
        FramedSender {
            fabric,
            to,
            frame: vec![MORE],
        }
    }

    /// Sends more bytes.
    ///
    /// # Errors
    /// As for [`all_gather`].
    pub fn put<E: From<FabricError>>(
        &mut self,
        mut bytes: &[u8],
        idle: &dyn Fn() -> Result<(), E>,
    ) -> Result<(), E> {
        while !bytes.is_empty() {
            let (now, later) = bytes.split_at(bytes.len().min(FRAME_BYTES - self.frame.len()));
            self.frame.extend(now);
            bytes = later;
            if self.frame.len() == FRAME_BYTES {
                frames(self.fabric, Some((self.to, &self.frame)), None, idle)?;
                self.frame.truncate(1);
            }
        }
        Ok(())
    }

    /// Tells the receiver that there are no more bytes.
    ///
    /// # Errors
    /// As for [`all_gather`].
    pub fn end<E: From<FabricError>>(mut self, idle: &dyn Fn() -> Result<(), E>) -> Result<(), E> {
        self.frame[0] = LAST;
        frames(self.fabric, Some((self.to, &self.frame)), None, idle).map(drop)
    }
}

/// Passes all bytes of a [`FramedSender`] of another rank to `take`, in parts of any length.
///
/// # Errors
/// As for [`all_gather`], and errors of `take`.
pub fn receive_all<E: From<FabricError>>(
    fabric: &dyn Fabric,
    from: usize,
    idle: &dyn Fn() -> Result<(), E>,
    mut take: impl FnMut(&[u8]) -> Result<(), E>,
) -> Result<(), E> {
    loop {
        let frame = frames(fabric, None, Some((from, FRAME_BYTES)), idle)?;
        let Some((is_last, bytes)) = frame.split_first() else {
            return Err(protocol_error().into());
        };
        take(bytes)?;
        if *is_last == LAST {
            return Ok(());
        }
    }
}

/// Reads parts, each after its length.
fn joined(parts: &[Vec<u8>]) -> Vec<u8> {
    let mut all = Vec::new();
    for part in parts {
        all.extend((part.len() as u64).to_le_bytes());
        all.extend(part);
    }
    all
}

fn split(mut all: &[u8], count: usize) -> Result<Vec<Vec<u8>>, FabricError> {
    let mut next = || {
        let (bytes, rest) = length(all)?;
        let (part, rest) = rest.split_at_checked(bytes).ok_or_else(protocol_error)?;
        all = rest;
        Ok(part.to_vec())
    };
    (0..count).map(|_| next()).collect()
}

/// Reads the length that bytes begin with, and returns it with the others.
fn length(bytes: &[u8]) -> Result<(usize, &[u8]), FabricError> {
    let (length, rest) = bytes.split_first_chunk().ok_or_else(protocol_error)?;
    let length = usize::try_from(u64::from_le_bytes(*length));
    Ok((length.map_err(|_| protocol_error())?, rest))
}

/// Sends bytes to one rank and receives bytes of another at the same time.
fn exchange<E: From<FabricError>>(
    fabric: &dyn Fabric,
    to: usize,
    from: usize,
    bytes: &[u8],
    idle: &dyn Fn() -> Result<(), E>,
) -> Result<Vec<u8>, E> {
    // Most data fit in the first frame, which contains their length.
    let (now, mut left) = bytes.split_at(bytes.len().min(FIRST_BYTES - 8));
    let first = [&(bytes.len() as u64).to_le_bytes(), now].concat();
    let first = frames(fabric, Some((to, &first)), Some((from, FIRST_BYTES)), idle)?;
    let (length, first) = length(&first)?;
    let mut received = first.to_vec();
    while !left.is_empty() || received.len() < length {
        let (now, later) = left.split_at(left.len().min(FRAME_BYTES));
        let more = length.saturating_sub(received.len()).min(FRAME_BYTES);
        let send = (!now.is_empty()).then_some((to, now));
        let receive = (more > 0).then_some((from, more));
        received.extend(frames(fabric, send, receive, idle)?);
        left = later;
    }
    match received.len() == length {
        true => Ok(received),
        false => Err(protocol_error().into()),
    }
}

/// Returns the error for ranks that do not make the same calls.
#[must_use]
pub fn protocol_error() -> FabricError {
    FabricError::Misuse {
        what: "ranks do not do the same together",
    }
}

/// Sends a frame, receives one, or both; returns the received one.
fn frames<E: From<FabricError>>(
    fabric: &dyn Fabric,
    send: Option<(usize, &[u8])>,
    receive: Option<(usize, usize)>,
    idle: &dyn Fn() -> Result<(), E>,
) -> Result<Vec<u8>, E> {
    const RECEIVED: u64 = 1;
    if let Some((from, bytes)) = receive {
        let buffer = AlignedBuffer::zeroed(bytes).map_err(FabricError::from)?;
        let operation = FabricOperation::Receive {
            from,
            channel: CHANNEL,
            buffer,
        };
        fabric.submit(operation, RECEIVED);
    }
    if let Some((to, bytes)) = send {
        let mut buffer = AlignedBuffer::zeroed(bytes.len()).map_err(FabricError::from)?;
        buffer.copy_from_slice(bytes);
        let operation = FabricOperation::Send {
            to,
            channel: CHANNEL,
            buffer,
            range: 0..bytes.len(),
        };
        fabric.submit(operation, 0);
    }
    let mut received = Vec::new();
    let mut left = usize::from(send.is_some()) + usize::from(receive.is_some());
    while left > 0 {
        let Some(completion) = fabric.wait(LOOK) else {
            idle()?;
            continue;
        };
        let bytes = completion.result?;
        left -= 1;
        if let Some(buffer) = completion.buffer.filter(|_| completion.token == RECEIVED) {
            received.extend(&buffer[..bytes]);
        }
    }
    Ok(received)
}
