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
    group: usize,
    /// The batches that it reads, in order.
    order: Vec<usize>,
    /// How many of them were prefetched.
    pub(crate) prefetched: usize,
    /// Batches without a message for the group.
    pub(crate) empty: BTreeSet<usize>,
    /// Batches whose messages the group has pulled.
    pulled: BTreeSet<usize>,
    /// True if there is room to buffer more pulled messages.
    has_room: bool,
}

impl MessageInput {
    pub(crate) fn new(group: usize, order: Vec<usize>) -> Self {
        MessageInput {
            group,
            order,
            prefetched: 0,
            empty: BTreeSet::new(),
            pulled: BTreeSet::new(),
            has_room: true,
        }
    }

    /// Prefetches the batches that are ready.
    pub(crate) fn prefetch_ready<M: Element>(
        &mut self,
        messages: &MessageBuffer<M>,
        worker: usize,
    ) -> Result<(), EngineError> {
        while let Some(&batch) = self.order.get(self.prefetched)
            && messages.is_ready(batch)
        {
            let is_dispatched =
                messages.routing(batch) == RoutingMode::Push || self.pulled.contains(&batch);
            let is_any = match is_dispatched {
                true => messages.prefetch_for_group(batch, self.group, worker)?,
                false => messages.prefetch(batch, worker)?,
            };
            if !is_any {
                self.empty.insert(batch);
            }
            self.prefetched += 1;
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
        let mut behind = self.order[self.prefetched..].iter().copied();
        let next = behind.find(|batch| {
            messages.routing(*batch) == RoutingMode::Pull
                && !self.pulled.contains(batch)
                && messages.is_ready(*batch)
        });
        let Some(batch) = next else {
            return Ok(false);
        };
        self.has_room = messages.buffer_pulled(batch, self.group, worker)?;
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
