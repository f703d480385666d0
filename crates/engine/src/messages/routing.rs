//! How messages on disk get to the column groups that need them.

use crate::config::DispatchChoice;

impl DispatchChoice {
    /// As it is asked for; nothing is where costs choose.
    pub(crate) fn asked(self) -> Option<Routing> {
        let mode = match self {
            DispatchChoice::Auto => return None,
            DispatchChoice::Push => RoutingMode::Push,
            DispatchChoice::Pull => RoutingMode::Pull,
            DispatchChoice::None => RoutingMode::None,
        };
        Some(Routing {
            own: mode,
            others: mode,
            all_is_pulled: mode == RoutingMode::Pull,
        })
    }
}

/// How the messages of some batches are routed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum RoutingMode {
    #[default]
    None,
    Push,
    Pull,
}

/// How the messages of this rank and of other ranks are routed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Routing {
    pub(crate) own: RoutingMode,
    pub(crate) others: RoutingMode,
    /// True if column groups pull whether or not they have to wait.
    pub(crate) all_is_pulled: bool,
}

impl Routing {
    /// Returns whether any messages are routed in that mode.
    pub(crate) fn has(self, mode: RoutingMode) -> bool {
        self.own == mode || self.others == mode
    }

    /// Returns the batches that a worker holds at a time: with pulls, one buffer is for pulled messages.
    pub(crate) fn window_batches(self, buffers: usize) -> usize {
        match self.has(RoutingMode::Pull) {
            true => buffers.saturating_sub(1).max(1),
            false => buffers,
        }
    }
}
