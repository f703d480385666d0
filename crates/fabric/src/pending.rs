//! Frames without a receive, and receives without a frame, which wait for each other.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

use graphmill_raw::AlignedBuffer;

use crate::error::FabricError;
use crate::port::{Channel, FabricCompletion};

/// A frame that was sent.
#[derive(Debug)]
pub(crate) struct Sent {
    pub(crate) token: u64,
    pub(crate) buffer: AlignedBuffer,
    pub(crate) range: Range<usize>,
}

/// Memory that waits for a frame.
#[derive(Debug)]
pub(crate) struct Awaited {
    pub(crate) token: u64,
    pub(crate) buffer: AlignedBuffer,
}

/// The waiting frames of one sender on one channel, or the receives that wait for them.
#[derive(Debug, Default)]
struct PendingLine {
    sent: VecDeque<Sent>,
    awaited: VecDeque<Awaited>,
}

/// The unmatched frames and receives of one rank, by sender and channel.
#[derive(Debug, Default)]
pub(crate) struct PendingFrames(BTreeMap<(usize, Channel), PendingLine>);

impl PendingFrames {
    /// Adds a frame; returns it with the memory that waits for it, if there is some.
    pub(crate) fn send(
        &mut self,
        from: usize,
        channel: Channel,
        sent: Sent,
    ) -> Option<(Sent, Awaited)> {
        let line = self.0.entry((from, channel)).or_default();
        line.sent.push_back(sent);
        line.pair()
    }

    /// Adds memory for a frame; returns it with the frame that waits, if there is one.
    pub(crate) fn receive(
        &mut self,
        from: usize,
        channel: Channel,
        awaited: Awaited,
    ) -> Option<(Sent, Awaited)> {
        let line = self.0.entry((from, channel)).or_default();
        line.awaited.push_back(awaited);
        line.pair()
    }

    /// Removes and returns the frames of chosen senders, each with its sender.
    pub(crate) fn drain_sent(&mut self, choose: impl Fn(usize) -> bool) -> Vec<(usize, Sent)> {
        let chosen = self.0.iter_mut().filter(|((from, _), _)| choose(*from));
        chosen
            .flat_map(|((from, _), line)| line.sent.drain(..).map(|frame| (*from, frame)))
            .collect()
    }

    /// Removes and returns the buffers that wait for frames of chosen senders.
    pub(crate) fn drain_awaited(&mut self, choose: impl Fn(usize) -> bool) -> Vec<Awaited> {
        let chosen = self.0.iter_mut().filter(|((from, _), _)| choose(*from));
        chosen
            .flat_map(|(_, line)| line.awaited.drain(..))
            .collect()
    }
}

impl PendingLine {
    fn pair(&mut self) -> Option<(Sent, Awaited)> {
        let awaited = self.awaited.pop_front()?;
        match self.sent.pop_front() {
            Some(sent) => Some((sent, awaited)),
            None => {
                self.awaited.push_front(awaited);
                None
            }
        }
    }
}

/// Moves a frame to the memory that waits for it; returns the completions of sender and receiver.
pub(crate) fn deliver(from: usize, sent: Sent, mut awaited: Awaited) -> [FabricCompletion; 2] {
    let bytes = sent.range.len();
    let room = awaited.buffer.len();
    let result = match awaited.buffer.get_mut(..bytes) {
        Some(to) => {
            to.copy_from_slice(&sent.buffer[sent.range]);
            Ok(bytes)
        }
        None => Err(FabricError::TooLong { from, room }),
    };
    [
        FabricCompletion {
            token: sent.token,
            buffer: Some(sent.buffer),
            result: Ok(bytes),
        },
        FabricCompletion {
            token: awaited.token,
            buffer: Some(awaited.buffer),
            result,
        },
    ]
}
