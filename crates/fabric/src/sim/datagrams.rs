//! The queues of datagrams of simulated ranks.

use std::collections::VecDeque;

/// Datagrams that one call receives at most.
const BURST: usize = 64;

/// The datagrams that have come, by rank and lane.
#[derive(Debug, Default)]
pub(super) struct SimDatagrams {
    queues: Vec<Vec<VecDeque<Vec<u8>>>>,
    /// Datagrams of a queue at most; more are lost.
    most: usize,
}

impl SimDatagrams {
    /// Makes a queue for each lane; those that there are stay.
    pub(super) fn resize(&mut self, lanes: &[usize], most: usize) {
        self.most = most;
        self.queues.resize_with(lanes.len(), Vec::new);
        for (queues, lanes) in self.queues.iter_mut().zip(lanes) {
            queues.resize_with(*lanes, VecDeque::new);
        }
    }

    /// Puts a datagram into the queue of a lane, if there is one that has room.
    pub(super) fn put(&mut self, rank: usize, lane: usize, bytes: Vec<u8>) {
        let queue = self.queues[rank].get_mut(lane);
        if let Some(queue) = queue.filter(|queue| queue.len() < self.most) {
            queue.push_back(bytes);
        }
    }

    /// Takes datagrams of a lane.
    pub(super) fn take(&mut self, rank: usize, lane: usize) -> Vec<Vec<u8>> {
        let queue = &mut self.queues[rank][lane];
        let count = queue.len().min(BURST);
        queue.drain(..count).collect()
    }
}
