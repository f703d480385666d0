//! The messages of a run, in the order in which it folds them, wherever they come from.
//!
//! What is there is asked for ahead, up to the first batch that is not; while a run waits for that, it pulls what it needs of those behind it.

use std::collections::BTreeSet;

use super::Slot;
use super::run::{Item, Run};
use crate::dispatch::Way;
use crate::error::EngineError;
use crate::program::EdgeProgram;

/// Where a run is with its messages.
#[derive(Debug)]
pub(super) struct Feed {
    /// The run's number.
    run: usize,
    /// The batches that it reads, in order.
    order: Vec<usize>,
    /// How many of them were asked for.
    asked: usize,
    /// Those of which there was nothing for the run.
    empty: BTreeSet<usize>,
    /// Those of which it has pulled what it needs.
    pulled: BTreeSet<usize>,
    /// There is room to put more aside.
    has_room: bool,
}

impl Feed {
    pub(super) fn new(run: usize, order: Vec<usize>) -> Self {
        Feed {
            run,
            order,
            asked: 0,
            empty: BTreeSet::new(),
            pulled: BTreeSet::new(),
            has_room: true,
        }
    }
}

/// What a run has of the messages of an item.
pub(super) enum Fed {
    /// They are at hand.
    Here,
    /// There are none.
    Nothing,
    /// They are not there yet.
    Early,
}

impl<'p, P: EdgeProgram> Slot<'p, P> {
    /// Has the messages of an item at hand, if they are there.
    pub(super) fn feed(
        &self,
        run: &mut Run<'p, P>,
        item: &Item<'p>,
        worker: usize,
    ) -> Result<Fed, EngineError> {
        if let Some((batch, _)) = &run.messages
            && *batch == item.from
        {
            return Ok(Fed::Here);
        }
        if !self.messages.is_there(item.from) {
            return Ok(Fed::Early);
        }
        if self.messages.in_memory() {
            if self.messages.count(item.from) == 0 {
                return Ok(Fed::Nothing);
            }
        } else {
            self.ask(&mut run.feed, worker)?;
            if run.feed.asked <= item.number {
                return Ok(Fed::Early);
            }
            if run.feed.empty.contains(&item.from) {
                return Ok(Fed::Nothing);
            }
        }
        let messages = self.messages.read(item.from, worker)?;
        run.messages = Some((item.from, messages));
        Ok(Fed::Here)
    }

    /// Asks for what is there.
    fn ask(&self, feed: &mut Feed, worker: usize) -> Result<(), EngineError> {
        while let Some(&batch) = feed.order.get(feed.asked) {
            if !self.messages.is_there(batch) {
                break;
            }
            let is_dispatched =
                self.messages.way(batch) == Way::Push || feed.pulled.contains(&batch);
            let is_any = match is_dispatched {
                true => self.messages.want_for(batch, feed.run, worker)?,
                false => self.messages.want(batch, worker)?,
            };
            if !is_any {
                feed.empty.insert(batch);
            }
            feed.asked += 1;
        }
        Ok(())
    }

    /// Whether a run that pulls all of its messages first has still to.
    pub(super) fn has_to_pull(&self, feed: &Feed) -> bool {
        self.messages.all_is_pulled() && feed.pulled.len() < feed.order.len()
    }

    /// Pulls what a run needs of one batch that is there and behind all it has asked for; whether there was any such.
    pub(super) fn pull(&self, feed: &mut Feed, worker: usize) -> Result<bool, EngineError> {
        if !feed.has_room {
            return Ok(false);
        }
        let mut behind = feed.order[feed.asked..].iter().copied();
        let next = behind.find(|batch| {
            self.messages.way(*batch) == Way::Pull
                && !feed.pulled.contains(batch)
                && self.messages.is_there(*batch)
        });
        let Some(batch) = next else {
            return Ok(false);
        };
        feed.has_room = self.messages.put_aside(batch, feed.run, worker)?;
        if feed.has_room {
            feed.pulled.insert(batch);
        }
        Ok(feed.has_room)
    }
}
