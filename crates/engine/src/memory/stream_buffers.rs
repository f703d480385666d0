//! The shape of the streams that a pass over columns reads cells by.

use graphmill_graph::ExtentReader;

/// The shape of one pair of streams.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StreamBuffers {
    pub(crate) weighted: bool,
    pub(crate) chunk_bytes: usize,
    pub(crate) depth: usize,
}

impl StreamBuffers {
    /// Returns the bytes of one pair of streams: its chunks, each with space for the end of the last one.
    pub(crate) fn bytes(self) -> u64 {
        let stream = ExtentReader::memory(self.chunk_bytes, self.depth);
        stream * if self.weighted { 2 } else { 1 }
    }
}
