//! The messages of a column group, in the order in which it folds them, from any source.
//!
//! The input prefetches ready batches up to the first one that is not ready. While a group waits for that one,
//! it pulls its messages of later batches.

use std::collections::BTreeSet;

use graphmill_raw::Element;

use crate::error::EngineError;
use crate::messages::buffer::MessageBuffer;
use crate::messages::routing::RoutingMode;

/// The input of a column group.
#[derive(Debug)]
pub(crate) struct MessageInput {
    /// The number of the group.
    run: usize,
    /// The batches that it reads, in order.
    order: Vec<usize>,
    /// How many of them were asked for.
    pub(crate) asked: usize,
    /// Batches without a message for the group.
    pub(crate) empty: BTreeSet<usize>,
    /// Batches whose messages the group has pulled.
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

    /// Prefetches the batches that are ready.
    pub(crate) fn ask<M: Element>(
        &mut self,
        messages: &MessageBuffer<M>,
        worker: usize,
    ) -> Result<(), EngineError> {
        while let Some(&batch) = self.order.get(self.asked)
            && messages.is_ready(batch)
        {
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

    /// True if a group that pulls all of its messages first has not pulled all yet.
    pub(crate) fn has_to_pull<M: Element>(&self, messages: &MessageBuffer<M>) -> bool {
        messages.all_is_pulled() && self.pulled.len() < self.order.len()
    }

    /// Pulls the group's messages of one ready batch behind all prefetched ones; false if there is none.
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
        self.has_room = messages.buffer_pulled(batch, self.run, worker)?;
        if self.has_room {
            self.pulled.insert(batch);
        }
        Ok(self.has_room)
    }
}

/// Whether the messages of an item are loaded.
pub(crate) enum InputState {
    /// They are loaded.
    Here,
    /// There are none.
    Nothing,
    /// They are not there yet.
    Early,
}
