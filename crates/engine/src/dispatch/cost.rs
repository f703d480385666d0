//! What a way of dispatch costs, in bytes from and to disk.

use super::{Dispatch, Way};

/// Bytes that the end of a piece wastes on disk, and of a piece that is read and written.
const PADDING: f64 = 2.0 * 2048.0;
/// A push takes work besides: it is worth it where it moves at most so many times the bytes.
const WORTH_IT: f64 = 0.9;
/// Bytes of a source in a list.
const LISTED: f64 = 4.0;

/// What the cost of a dispatch depends on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts {
    /// Messages of this rank, and of all others, as far as is known.
    pub(crate) own: u64,
    pub(crate) others: u64,
    /// Bytes of a message.
    pub(crate) width: usize,
    pub(crate) vertices: u64,
    pub(crate) batches: usize,
    /// Runs that read a batch of messages, in the mean over vertices.
    pub(crate) reads: f64,
    /// Runs that need the message of a source, in the mean over sources.
    pub(crate) spread: f64,
    /// Bytes of the dispatch graph that a pass reads.
    pub(crate) lists: u64,
    /// There is no other rank, who would be sent what is on disk.
    pub(crate) is_alone: bool,
    /// Runs of this pass may have to wait for messages of other ranks while others are there.
    pub(crate) waits: bool,
}

impl Facts {
    /// Bytes that are read and written for this rank's messages, or for those of others.
    fn bytes(&self, way: Way, is_own: bool) -> f64 {
        let messages = if is_own { self.own } else { self.others } as f64;
        let all = ((self.own + self.others) as f64).max(1.0);
        let width = self.width as f64;
        match way {
            Way::None | Way::Pull => {
                // What is sent to other ranks is on disk anyway.
                let written = f64::from(u8::from(self.is_alone || !is_own));
                messages * width * (written + self.reads)
            }
            Way::Push => {
                let needed = (self.spread * all).max(1.0);
                let bits = self.reads * self.vertices as f64 / 8.0;
                let source = (bits / needed).min(LISTED);
                let rest = self.lists as f64 + self.batches as f64 * self.reads * PADDING;
                2.0 * messages * self.spread * (width + source) + messages / all * rest
            }
        }
    }

    /// Whether a dispatch moves less than none does where runs read batches of messages so often.
    pub(crate) fn pays(&self, reads: f64) -> bool {
        let plain = Facts { reads, ..*self };
        self.least() < plain.undispatched()
    }

    /// Bytes that the dispatch that costs least moves.
    fn least(&self) -> f64 {
        let of = |is_own| [Way::None, Way::Push].map(|way| self.bytes(way, is_own));
        let least = |[none, push]: [f64; 2]| none.min(push);
        least(of(true)) + least(of(false))
    }

    /// Bytes that move without one.
    fn undispatched(&self) -> f64 {
        self.bytes(Way::None, true) + self.bytes(Way::None, false)
    }

    /// The dispatch that costs least, where there is a graph to dispatch by; and the bytes that it saves against none, or has read while
    /// there is nothing else to do.
    pub(crate) fn choose(&self) -> (Dispatch, u64) {
        let mut gained = 0.0;
        let mut one = |is_own: bool| {
            let [none, push] = [Way::None, Way::Push].map(|way| self.bytes(way, is_own));
            gained += (none - push).max(0.0);
            match push < WORTH_IT * none {
                true => Way::Push,
                false if is_own && self.waits => {
                    gained += self.own as f64 * self.width as f64;
                    Way::Pull
                }
                false => Way::None,
            }
        };
        let dispatch = Dispatch {
            own: one(true),
            others: one(false),
            all_is_pulled: false,
        };
        (dispatch, gained as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All vertices of a graph send 8 bytes, and every source has edges to every run.
    const ALL: Facts = Facts {
        own: 1 << 24,
        others: 0,
        width: 8,
        vertices: 1 << 24,
        batches: 16,
        reads: 8.0,
        spread: 8.0,
        lists: 0,
        is_alone: true,
        waits: false,
    };

    fn chosen(facts: Facts) -> [Way; 2] {
        let (dispatch, _) = facts.choose();
        [dispatch.own, dispatch.others]
    }

    #[test]
    fn what_all_need_is_not_dispatched() {
        assert_eq!(chosen(ALL), [Way::None; 2]);
    }

    #[test]
    fn what_few_need_is_pushed() {
        let local = Facts { spread: 1.2, ..ALL };
        assert_eq!(chosen(local)[0], Way::Push);
        let (_, saved) = local.choose();
        assert!(saved > 40 << 24, "72 bytes a vertex against 24: {saved}");
    }

    #[test]
    fn few_messages_are_not_worth_reading_lists_and_many_small_pieces() {
        let few = Facts {
            own: 1000,
            spread: 1.2,
            lists: 1 << 24,
            ..ALL
        };
        assert_eq!(chosen(few)[0], Way::None);
    }

    #[test]
    fn what_is_sent_to_others_is_on_disk_anyway_and_pulled_by_those_who_wait() {
        let several = Facts {
            own: 1 << 22,
            others: 3 << 22,
            reads: 1.0,
            spread: 0.95,
            is_alone: false,
            waits: true,
            ..ALL
        };
        assert_eq!(chosen(several), [Way::Pull, Way::None]);
        let exact = Facts {
            waits: false,
            ..several
        };
        assert_eq!(chosen(exact), [Way::None; 2]);
        // Those of others would be written only to be read again.
        let few_need = Facts {
            spread: 0.7,
            ..several
        };
        assert_eq!(chosen(few_need), [Way::Pull, Way::Push]);
    }
}
