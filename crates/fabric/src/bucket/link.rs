//! The port of a link: how one thread sends and receives datagrams.

use std::fmt::Debug;
use std::io;
use std::time::Duration;

/// A thread's end of a link.
///
/// A link may lose, double, reorder and change datagrams. Each has the length of a bucket.
pub trait Port: Send + Debug {
    /// Sends datagrams to a lane of another rank; returns how many it took, from the first on.
    ///
    /// # Errors
    /// The link is broken for good.
    fn send(&mut self, to: usize, lane: usize, buckets: &[&[u8]]) -> io::Result<usize>;

    /// Calls `visit` with each datagram that has come for the lane of this port; returns their number.
    ///
    /// It takes a bounded number of datagrams.
    ///
    /// # Errors
    /// The link is broken for good.
    fn receive(&mut self, visit: &mut dyn FnMut(&mut [u8])) -> io::Result<usize>;

    /// Waits until a datagram has come, up to `limit`, after `idle` waits of this thread in a row.
    fn wait(&mut self, idle: u32, limit: Duration);
}

/// Waits in a row that only yield, before a thread sleeps: buckets mostly come within microseconds.
const YIELDS: u32 = 1024;

/// Yields to other threads; returns false if it is time to sleep, after `idle` waits in a row.
pub fn yields(idle: u32) -> bool {
    let is_early = idle < YIELDS;
    if is_early {
        std::thread::yield_now();
    }
    is_early
}

/// A link between the ranks of one process.
pub trait BucketLink: Debug {
    /// Returns the ports of a rank.
    fn ports(&self, rank: usize, senders: usize, lanes: usize) -> LinkPorts;
}

/// The ports of the threads of one rank.
#[derive(Debug)]
pub struct LinkPorts {
    /// One for each sender thread.
    pub senders: Vec<Box<dyn Port>>,
    /// One for each lane.
    pub lanes: Vec<Box<dyn Port>>,
}
