//! The service's part in stealing: offers, answers, and the messages and accumulators of helpers.

use graphmill_raw::lock;
use graphmill_storage::Buffer;

use crate::error::EngineError;
use crate::exec::stream::peers::Peers;
use crate::exec::stream::protocol::AcceptedHelp;
use crate::exec::stream::service::ChunkService;

impl ChunkService<'_> {
    /// Number of batches of the graph.
    pub(crate) fn batches(&self) -> usize {
        self.context.batches.len()
    }

    /// True if nothing is sent to an owner any more, or awaited from one.
    pub(crate) fn is_delivered(&self) -> bool {
        let state = lock(&self.state);
        state.peers.as_ref().is_none_or(Peers::has_no_parts)
    }

    /// Offers help to an owner.
    pub(crate) fn offer(&self, owner: usize) -> Result<(), EngineError> {
        self.with_peers(|peers| peers.offer(owner))
    }

    /// Takes the answer to an offer of this rank.
    pub(crate) fn take_answer(&self) -> Option<Option<AcceptedHelp>> {
        lock(&self.state).peers.as_mut()?.take_answer()
    }

    /// Takes the next rank that offers help.
    pub(crate) fn take_offer(&self) -> Option<usize> {
        lock(&self.state).peers.as_mut()?.take_offer()
    }

    /// Answers an offer: the batch to help with and its messages, or no help.
    pub(crate) fn answer_offer(
        &self,
        rank: usize,
        accepted: Option<(usize, u64)>,
    ) -> Result<(), EngineError> {
        self.with_peers(|peers| peers.answer_offer(rank, accepted))
    }

    /// Sends messages to a helper, or accumulators to an owner.
    ///
    /// [`take_returned`](Self::take_returned) returns the buffer.
    pub(crate) fn send_part(
        &self,
        to: usize,
        buffer: Buffer,
        bytes: usize,
    ) -> Result<(), EngineError> {
        self.with_peers(|peers| {
            peers.send_part(to, buffer, bytes);
            Ok(())
        })
    }

    /// Takes the buffers whose bytes were sent.
    pub(crate) fn take_returned(&self) -> Vec<Buffer> {
        std::mem::take(&mut lock(&self.state).returned)
    }

    /// Receives `bytes` bytes of a rank into a buffer; [`take_received`](Self::take_received) returns it.
    pub(crate) fn receive_part(
        &self,
        from: usize,
        buffer: Buffer,
        bytes: usize,
    ) -> Result<(), EngineError> {
        self.with_peers(|peers| {
            peers.receive_part(from, buffer, bytes);
            Ok(())
        })
    }

    /// Takes the bytes of a rank once they are complete.
    pub(crate) fn take_received(&self, from: usize) -> Option<Buffer> {
        let received = &mut lock(&self.state).received;
        let position = received.iter().position(|(other, _)| *other == from)?;
        Some(received.swap_remove(position).1)
    }

    fn with_peers<T>(
        &self,
        work: impl FnOnce(&mut Peers) -> Result<T, EngineError>,
    ) -> Result<T, EngineError> {
        work(
            lock(&self.state)
                .peers
                .as_mut()
                .ok_or(EngineError::Broken)?,
        )
    }
}
