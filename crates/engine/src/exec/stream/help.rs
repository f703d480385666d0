//! The search of a rank without work for an owner that needs help (Chaos, section 5.3).

use graphmill_fabric::protocol_error;
use graphmill_raw::SplitMix64;

use crate::error::{EngineError, ensure};
use crate::exec::stream::peers::Peers;
use crate::exec::stream::protocol::AcceptedHelp;
use crate::exec::stream::service::ChunkService;

/// The offers of one rank in one phase: to each owner in random order, until all decline.
pub(crate) struct Offers {
    owners: Vec<usize>,
    is_asked: bool,
}

impl Offers {
    /// Returns the offers of a phase; none if no owner ever accepts.
    pub(crate) fn new(service: &ChunkService<'_>) -> Self {
        let (ranks, steal) = (&service.context.ranks, service.context.options.steal);
        let mut owners: Vec<usize> = (0..ranks.count())
            .filter(|rank| *rank != ranks.rank() && !steal.is_never())
            .collect();
        let mut random = SplitMix64::new(service.fabric_phase() << 16 | ranks.rank() as u64);
        for last in (1..owners.len()).rev() {
            owners.swap(last, random.below(last as u64 + 1) as usize);
        }
        Offers {
            owners,
            is_asked: false,
        }
    }

    /// True if all owners declined.
    pub(crate) fn are_over(&self) -> bool {
        self.owners.is_empty()
    }

    /// Asks the next owner, or takes its answer; returns the help that it accepts.
    ///
    /// Returns `None` while it waits for an answer, or until its last help is delivered, and once all owners declined.
    pub(crate) fn next(
        &mut self,
        service: &ChunkService<'_>,
    ) -> Result<Option<AcceptedHelp>, EngineError> {
        let batches = service.context.batches.len();
        let offered = service.with_peers(|peers| self.ask(peers, batches));
        offered.unwrap_or(Ok(None))
    }

    fn ask(
        &mut self,
        peers: &mut Peers,
        batches: usize,
    ) -> Result<Option<AcceptedHelp>, EngineError> {
        if self.is_asked {
            let Some(answer) = peers.take_answer() else {
                return Ok(None);
            };
            self.is_asked = false;
            if let Some(help) = answer {
                ensure(help.batch < batches, protocol_error)?;
                return Ok(Some(help));
            }
            self.owners.pop();
        }
        // An owner gets the help with one batch before that with the next.
        if let Some(owner) = self.owners.last().filter(|_| peers.has_no_parts()) {
            peers.offer(*owner)?;
            self.is_asked = true;
        }
        Ok(None)
    }
}
