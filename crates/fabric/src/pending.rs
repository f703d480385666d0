//! Frames without a receive, and receives without a frame, which wait for each other.

use std::collections::{BTreeMap, VecDeque};

use crate::error::FabricError;
use crate::port::{Channel, FabricCompletion, FabricOperation, Line};

/// A submitted operation, which waits for the one of the other rank.
#[derive(Debug)]
pub(crate) struct Pending {
    pub(crate) operation: FabricOperation,
    pub(crate) token: u64,
}

impl Pending {
    /// Returns its completion.
    pub(crate) fn done(self, result: Result<usize, FabricError>) -> FabricCompletion {
        FabricCompletion {
            token: self.token,
            buffer: Some(self.operation.into_buffer()),
            result,
        }
    }
}

/// The waiting frames of one sender on one channel, or the receives that wait for them.
#[derive(Debug, Default)]
struct PendingLine {
    sent: VecDeque<Pending>,
    awaited: VecDeque<Pending>,
}

/// The unmatched frames and receives of one rank, by sender and channel.
#[derive(Debug, Default)]
pub(crate) struct PendingFrames(BTreeMap<(usize, Channel), PendingLine>);

impl PendingFrames {
    /// Adds an operation; returns the oldest frame and receive of its line, if it has both.
    pub(crate) fn add(
        &mut self,
        (from, _, channel): Line,
        added: Pending,
    ) -> Option<(Pending, Pending)> {
        let line = self.0.entry((from, channel)).or_default();
        match added.operation {
            FabricOperation::Send { .. } => line.sent.push_back(added),
            FabricOperation::Receive { .. } => line.awaited.push_back(added),
        }
        match line.sent.is_empty() || line.awaited.is_empty() {
            true => None,
            false => line.sent.pop_front().zip(line.awaited.pop_front()),
        }
    }

    /// Removes and returns the frames of chosen senders, each with its sender.
    pub(crate) fn drain_sent(&mut self, choose: impl Fn(usize) -> bool) -> Vec<(usize, Pending)> {
        let chosen = self.0.iter_mut().filter(|((from, _), _)| choose(*from));
        chosen
            .flat_map(|((from, _), line)| line.sent.drain(..).map(|frame| (*from, frame)))
            .collect()
    }

    /// Removes and returns the receives that wait for frames of chosen senders.
    pub(crate) fn drain_awaited(&mut self, choose: impl Fn(usize) -> bool) -> Vec<Pending> {
        let chosen = self.0.iter_mut().filter(|((from, _), _)| choose(*from));
        chosen
            .flat_map(|(_, line)| line.awaited.drain(..))
            .collect()
    }
}

/// Moves a frame to the memory that waits for it; returns the completions of sender and receiver.
pub(crate) fn deliver(
    from: usize,
    mut sent: Pending,
    mut awaited: Pending,
) -> [FabricCompletion; 2] {
    let (frame, memory) = (sent.operation.memory(), awaited.operation.memory());
    let (bytes, room) = (frame.len(), memory.len());
    let result = match memory.get_mut(..bytes) {
        Some(to) => {
            to.copy_from_slice(frame);
            Ok(bytes)
        }
        None => Err(FabricError::TooLong { from, room }),
    };
    [sent.done(Ok(bytes)), awaited.done(result)]
}
