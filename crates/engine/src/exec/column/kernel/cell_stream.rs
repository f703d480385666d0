//! The streams that a pass reads cells by: one of blocks, and one of weights when the program asks for them.

use graphmill_graph::ExtentReader;
use graphmill_storage::{Completion, Queue};

use crate::context::ExecContext;
use crate::error::EngineError;
use crate::memory::stream_buffers::StreamBuffers;

/// One pair of streams.
pub(crate) struct CellStreams {
    pub(crate) cells: ExtentReader,
    pub(crate) weights: Option<ExtentReader>,
}

impl CellStreams {
    pub(crate) fn new(context: &ExecContext, stream: StreamBuffers) -> Result<Self, EngineError> {
        let (bytes, depth) = (stream.chunk_bytes, stream.depth);
        let reader = || ExtentReader::new(context.graph, &context.budget, bytes, depth);
        Ok(CellStreams {
            weights: stream.weighted.then(reader).transpose()?,
            cells: reader()?,
        })
    }

    /// Takes a completed read, or gives it back when it is another stream's.
    pub(crate) fn accept(
        &mut self,
        completion: Completion,
    ) -> Result<Option<Completion>, EngineError> {
        let Some(completion) = self.cells.accept(completion)? else {
            return Ok(None);
        };
        Ok(match &mut self.weights {
            Some(weights) => weights.accept(completion)?,
            None => Some(completion),
        })
    }

    /// Submits reads as long as there are free buffers.
    pub(crate) fn pump(&mut self, queue: &mut dyn Queue) -> Result<(), EngineError> {
        self.cells.pump(queue)?;
        if let Some(weights) = &mut self.weights {
            weights.pump(queue)?;
        }
        Ok(())
    }

    /// Reads submitted and not accepted.
    pub(crate) fn in_flight(&self) -> usize {
        let weights = self.weights.as_ref().map_or(0, ExtentReader::in_flight);
        self.cells.in_flight() + weights
    }

    /// Bytes read from the disk since the last call.
    pub(crate) fn take_bytes_read(&mut self) -> u64 {
        let weights = self.weights.as_mut();
        self.cells.take_bytes_read() + weights.map_or(0, ExtentReader::take_bytes_read)
    }
}
