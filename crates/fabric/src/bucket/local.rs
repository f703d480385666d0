//! Buckets between ranks that are threads of one process: a bounded queue for each lane, which drops when it is full.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use graphmill_raw::lock;

use crate::bucket::link::{BucketLink, LinkPorts, Port, yields};
use crate::bucket::state::firsts;

/// Datagrams that a call receives at most.
const BURST: usize = 64;

/// The queues of all lanes of all ranks.
#[derive(Clone, Debug)]
pub struct LocalLink {
    queues: Arc<Vec<Mutex<LaneQueue>>>,
    /// The first queue of each rank.
    firsts: Arc<Vec<usize>>,
    datagrams_max: usize,
}

/// The datagrams of a lane that have come, and memory for more.
#[derive(Debug, Default)]
struct LaneQueue {
    come: VecDeque<Vec<u8>>,
    free: Vec<Vec<u8>>,
}

impl LocalLink {
    /// Makes queues of at most `datagrams_max` datagrams for ranks with such numbers of lanes.
    #[must_use]
    pub fn new(lanes: &[usize], datagrams_max: usize) -> Self {
        let queues = (0..lanes.iter().sum()).map(|_| Mutex::default());
        LocalLink {
            firsts: Arc::new(firsts(lanes)),
            queues: Arc::new(queues.collect()),
            datagrams_max,
        }
    }
}

impl BucketLink for LocalLink {
    fn ports(&self, rank: usize, senders: usize, lanes: usize) -> LinkPorts {
        let port = |own: Option<usize>| -> Box<dyn Port> {
            Box::new(LocalPort {
                link: self.clone(),
                own,
            })
        };
        let first = self.firsts[rank];
        LinkPorts {
            senders: (0..senders).map(|_| port(None)).collect(),
            lanes: (first..first + lanes).map(|own| port(Some(own))).collect(),
        }
    }
}

/// A port of one thread.
#[derive(Debug)]
struct LocalPort {
    link: LocalLink,
    /// The queue that it receives from; none if it only sends.
    own: Option<usize>,
}

impl Port for LocalPort {
    fn send(&mut self, to: usize, lane: usize, buckets: &[&[u8]]) -> io::Result<usize> {
        let queue = &mut *lock(&self.link.queues[self.link.firsts[to] + lane]);
        for bucket in buckets {
            if queue.come.len() < self.link.datagrams_max {
                let mut bytes = queue.free.pop().unwrap_or_default();
                bytes.clear();
                bytes.extend_from_slice(bucket);
                queue.come.push_back(bytes);
            }
        }
        Ok(buckets.len())
    }

    fn receive(&mut self, visit: &mut dyn FnMut(&mut [u8])) -> io::Result<usize> {
        let Some(own) = self.own else {
            return Ok(0);
        };
        let queue = &self.link.queues[own];
        let mut come: Vec<Vec<u8>> = {
            let queue = &mut *lock(queue);
            let count = queue.come.len().min(BURST);
            queue.come.drain(..count).collect()
        };
        come.iter_mut().for_each(|bytes| visit(bytes));
        let count = come.len();
        lock(queue).free.append(&mut come);
        Ok(count)
    }

    fn wait(&mut self, idle: u32, limit: Duration) {
        if !yields(idle) {
            std::thread::sleep(limit.min(Duration::from_micros(100)));
        }
    }
}
