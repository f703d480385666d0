//! The ports of a simulated rank for datagrams.

use std::io;
use std::time::Duration;

use crate::bucket::{BucketLink, LinkPorts, Port};
use crate::sim::{Event, RankState, TurnTaker};

impl BucketLink for TurnTaker {
    fn ports(&self, _: usize, senders: usize, lanes: usize) -> LinkPorts {
        let port = |lane| -> Box<dyn Port> {
            let turns = self.clone();
            Box::new(SimPort { turns, lane })
        };
        LinkPorts {
            senders: (0..senders).map(|_| port(None)).collect(),
            lanes: (0..lanes).map(|lane| port(Some(lane))).collect(),
        }
    }
}

/// A port of a simulated rank.
#[derive(Debug)]
struct SimPort {
    turns: TurnTaker,
    /// The lane that it receives for; none if it only sends.
    lane: Option<usize>,
}

impl Port for SimPort {
    fn send(&mut self, to: usize, lane: usize, buckets: &[&[u8]]) -> io::Result<usize> {
        let (way, state) = ([self.turns.rank, to, lane], &mut *self.turns.turn());
        let is_cut = (state.network.cut)
            .is_some_and(|(from, of)| from == self.turns.rank && of.is_none_or(|of| of == to));
        if state.ranks[self.turns.rank].lost.is_none() && !is_cut {
            for bucket in buckets {
                let model = state.network.datagrams;
                for (takes, bytes) in model.copies(&mut state.random, bucket) {
                    state.happen(state.now + takes, Event::Datagram(way, bytes));
                }
            }
        }
        Ok(buckets.len())
    }

    fn receive(&mut self, visit: &mut dyn FnMut(&mut [u8])) -> io::Result<usize> {
        let Some(lane) = self.lane else {
            return Ok(0);
        };
        let mut came = self.turns.turn().datagrams.take(self.turns.rank, lane);
        came.iter_mut().for_each(|bytes| visit(bytes));
        Ok(came.len())
    }

    fn wait(&mut self, _: u32, limit: Duration) {
        let until = self.turns.turn().now + limit;
        self.turns.yield_as(RankState::Waiting(until));
    }
}
