//! The messages of a run, in the order in which it folds them, wherever they come from.
//!
//! What is there is asked for ahead, up to the first batch that is not; while a run waits for that, it pulls what it needs of those behind it.

use std::collections::BTreeSet;

use graphmill_raw::Element;

use crate::error::EngineError;
use crate::messages::buffer::MessageBuffer;
use crate::messages::routing::RoutingMode;

/// Where a run is with its messages.
#[derive(Debug)]
pub(crate) struct MessageInput {
    /// The run's number.
    run: usize,
    /// The batches that it reads, in order.
    order: Vec<usize>,
    /// How many of them were asked for.
    pub(crate) asked: usize,
    /// Those of which there was nothing for the run.
    pub(crate) empty: BTreeSet<usize>,
    /// Those of which it has pulled what it needs.
    pulled: BTreeSet<usize>,
    /// There is room to put more aside.
    has_room: bool,
}

impl MessageInput {
    pub(crate) fn new(run: usize, order: Vec<usize>) -> Self {
        MessageInput {
            run,
            order,
            asked: 0,
            empty: BTreeSet::new(),
            pulled: BTreeSet::new(),
            has_room: true,
        }
    }

    /// Asks for what is there.
    pub(crate) fn ask<M: Element>(
        &mut self,
        messages: &MessageBuffer<M>,
        worker: usize,
    ) -> Result<(), EngineError> {
        while let Some(&batch) = self.order.get(self.asked) {
            if !messages.is_ready(batch) {
                break;
            }
            let is_dispatched =
                messages.routing(batch) == RoutingMode::Push || self.pulled.contains(&batch);
            let is_any = match is_dispatched {
                true => messages.prefetch_for_group(batch, self.run, worker)?,
                false => messages.prefetch(batch, worker)?,
            };
            if !is_any {
                self.empty.insert(batch);
            }
            self.asked += 1;
        }
        Ok(())
    }

    /// Whether a run that pulls all of its messages first has still to.
    pub(crate) fn has_to_pull<M: Element>(&self, messages: &MessageBuffer<M>) -> bool {
        messages.all_is_pulled() && self.pulled.len() < self.order.len()
    }

    /// Pulls what a run needs of one batch that is there and behind all it has asked for; whether there was any such.
    pub(crate) fn pull<M: Element>(
        &mut self,
        messages: &MessageBuffer<M>,
        worker: usize,
    ) -> Result<bool, EngineError> {
        if !self.has_room {
            return Ok(false);
        }
        let mut behind = self.order[self.asked..].iter().copied();
        let next = behind.find(|batch| {
            messages.routing(*batch) == RoutingMode::Pull
                && !self.pulled.contains(batch)
                && messages.is_ready(*batch)
        });
        let Some(batch) = next else {
            return Ok(false);
        };
        self.has_room = messages.put_aside(batch, self.run, worker)?;
        if self.has_room {
            self.pulled.insert(batch);
        }
        Ok(self.has_room)
    }
}

/// What a run has of the messages of an item.
pub(crate) enum InputState {
    /// They are at hand.
    Here,
    /// There are none.
    Nothing,
    /// They are not there yet.
    Early,
}
