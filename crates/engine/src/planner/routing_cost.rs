//! The cost of a routing: bytes from and to disk, and elements scanned.

use crate::messages::routing::{Routing, RoutingMode};
use crate::planner::routing_stats::RoutingSample;

/// Bytes that the end of a message run wastes on disk, when it is written and read.
const PADDING: f64 = 2.0 * 2048.0;
/// A push is worth its extra work if it moves at most this share of the bytes.
const WORTH_IT: f64 = 0.9;
/// A routing may scan this many times the elements.
///
/// It may scan more if it moves less than `FEWER_BYTES` of the bytes.
const MORE_ELEMENTS: f64 = 1.05;
const FEWER_BYTES: f64 = 0.9;
/// Bytes of a source in a list.
const LISTED: f64 = 4.0;

/// The inputs of the cost of a routing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RoutingStats {
    /// Active vertices of this rank, and of all others, if known.
    pub(crate) active: [u64; 2],
    /// Bytes of a message.
    pub(crate) width: usize,
    pub(crate) vertices: u64,
    pub(crate) batches: usize,
    /// Of this rank's columns: edges, and bytes of cells.
    pub(crate) edges: u64,
    pub(crate) cells: u64,
    /// Runs that read a batch of messages, in the mean over vertices.
    pub(crate) reads: f64,
    /// The estimated senders and receivers of messages.
    pub(crate) sample: RoutingSample,
    /// Bytes of the routing table that a pass reads.
    pub(crate) lists: u64,
    /// True if there is no other rank to send messages on disk to.
    pub(crate) is_alone: bool,
    /// Runs of this pass may have to wait for messages of other ranks while others are there.
    pub(crate) waits: bool,
}

impl RoutingStats {
    /// Active vertices of this rank, or of the others, and of all.
    fn active(&self, is_own: bool) -> [f64; 2] {
        let [own, others] = self.active.map(|active| active as f64);
        [if is_own { own } else { others }, (own + others).max(1.0)]
    }

    /// Messages of this rank, or of the others, that are there.
    fn messages(&self, is_own: bool) -> f64 {
        let [active, _] = self.active(is_own);
        active * self.sample.messages[usize::from(!is_own)]
    }

    /// Returns the bytes read and written for this rank's messages, or for the others' messages.
    fn bytes(&self, mode: RoutingMode, is_own: bool) -> f64 {
        let width = self.width as f64;
        match mode {
            RoutingMode::None | RoutingMode::Pull => {
                // Messages to other ranks are on disk in any case.
                let written = f64::from(u8::from(self.is_alone || !is_own));
                self.messages(is_own) * width * (written + self.reads)
            }
            RoutingMode::Push => {
                let ([active, all], spread) = (self.active(is_own), self.sample.spread);
                let needed = (spread * all).max(1.0);
                let bits = self.reads * self.vertices as f64 / 8.0;
                let source = (bits / needed).min(LISTED);
                let rest = self.lists as f64 + self.batches as f64 * self.reads * PADDING;
                2.0 * active * spread * (width + source) + active / all * rest
            }
        }
    }

    /// Returns the elements scanned: messages read, or routed first, and words of the routing lists.
    fn elements(&self, mode: RoutingMode, is_own: bool) -> f64 {
        match mode {
            RoutingMode::None | RoutingMode::Pull => self.messages(is_own) * self.reads,
            RoutingMode::Push => {
                let ([active, all], spread) = (self.active(is_own), self.sample.spread);
                let vertices = self.vertices as f64;
                let words = (self.reads / 64.0).min(spread) * vertices;
                2.0 * active * spread + active / all * words
            }
        }
    }

    /// Returns all bytes that a pass with this routing moves, without rows, and all elements that it scans.
    fn whole(&self, dispatch: Routing) -> [f64; 2] {
        let of_both = |cost: fn(&RoutingStats, RoutingMode, bool) -> f64| {
            cost(self, dispatch.own, true) + cost(self, dispatch.others, false)
        };
        let [_, active] = self.active(true);
        let share = active / (self.vertices as f64).max(1.0);
        [
            of_both(RoutingStats::bytes) + self.cells as f64,
            of_both(RoutingStats::elements) + self.edges as f64 * share,
        ]
    }

    /// True if a routing is chosen, and moves less than no routing with `reads` reads of each batch.
    pub(crate) fn pays(&self, reads: f64) -> bool {
        let plain = RoutingStats { reads, ..*self };
        let (dispatch, _) = self.choose();
        self.whole(dispatch)[0] < plain.whole(Routing::default())[0]
    }

    /// Returns the cheapest routing if there is a table, and the bytes that it saves.
    ///
    /// The bytes count against no routing, or as reads while a group would otherwise be idle.
    pub(crate) fn choose(&self) -> (Routing, u64) {
        let mode = |is_own: bool| {
            let [none, push] =
                [RoutingMode::None, RoutingMode::Push].map(|mode| self.bytes(mode, is_own));
            match push < WORTH_IT * none {
                true => RoutingMode::Push,
                false => RoutingMode::None,
            }
        };
        let mut dispatch = Routing {
            own: mode(true),
            others: mode(false),
            all_is_pulled: false,
        };
        let none = self.whole(Routing::default());
        let pushed = self.whole(dispatch);
        if pushed[1] > MORE_ELEMENTS * none[1] && pushed[0] > FEWER_BYTES * none[0] {
            dispatch = Routing::default();
        }
        let mut gained = none[0] - self.whole(dispatch)[0];
        if dispatch.own == RoutingMode::None && self.waits {
            dispatch.own = RoutingMode::Pull;
            gained += self.messages(true) * self.width as f64;
        }
        (dispatch, gained.max(0.0) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All vertices of a graph send 8 bytes, and every source has edges to every group.
    const ALL: RoutingStats = RoutingStats {
        active: [1 << 24, 0],
        width: 8,
        vertices: 1 << 24,
        batches: 16,
        edges: 1 << 24,
        cells: 3 << 24,
        reads: 8.0,
        sample: spread(8.0),
        lists: 0,
        is_alone: true,
        waits: false,
    };

    /// All vertices have edges, and `spread` groups need each of them.
    const fn spread(spread: f64) -> RoutingSample {
        RoutingSample {
            spread,
            messages: [1.0; 2],
        }
    }

    fn chosen(facts: RoutingStats) -> [RoutingMode; 2] {
        let (dispatch, _) = facts.choose();
        [dispatch.own, dispatch.others]
    }

    #[test]
    fn routing_none_where_all_need_messages() {
        assert_eq!(chosen(ALL), [RoutingMode::None; 2]);
    }

    #[test]
    fn routing_push_where_few_need_messages() {
        let local = RoutingStats {
            sample: spread(1.2),
            ..ALL
        };
        assert_eq!(chosen(local)[0], RoutingMode::Push);
        let (_, saved) = local.choose();
        assert!(saved > 40 << 24, "72 bytes a vertex against 24: {saved}");
    }

    #[test]
    fn routing_push_of_little_gain_is_not_evaluated() {
        let facts = RoutingStats {
            reads: 2.0,
            sample: spread(1.3),
            cells: 0,
            ..ALL
        };
        assert_eq!(chosen(facts)[0], RoutingMode::Push);
        let many_cells = RoutingStats {
            cells: 100 << 24,
            ..facts
        };
        assert_eq!(chosen(many_cells)[0], RoutingMode::None);
    }

    #[test]
    fn routing_none_for_few_messages() {
        let few = RoutingStats {
            active: [1000, 0],
            sample: spread(1.2),
            lists: 1 << 24,
            ..ALL
        };
        assert_eq!(chosen(few)[0], RoutingMode::None);
    }

    #[test]
    fn routing_pull_where_receivers_wait() {
        let several = RoutingStats {
            active: [1 << 22, 3 << 22],
            reads: 1.0,
            sample: spread(0.95),
            is_alone: false,
            waits: true,
            ..ALL
        };
        assert_eq!(chosen(several), [RoutingMode::Pull, RoutingMode::None]);
        let exact = RoutingStats {
            waits: false,
            ..several
        };
        assert_eq!(chosen(exact), [RoutingMode::None; 2]);
        // Messages of others would be written only to be read again.
        let few_need = RoutingStats {
            sample: spread(0.7),
            ..several
        };
        assert_eq!(chosen(few_need), [RoutingMode::Pull, RoutingMode::Push]);
        // Messages that this rank does not need are not sent to it.
        let filtered = RoutingStats {
            sample: RoutingSample {
                spread: 0.7,
                messages: [1.0, 0.7],
            },
            ..several
        };
        assert_eq!(chosen(filtered), [RoutingMode::Pull, RoutingMode::None]);
    }
}
