//! A limit on the passes of a loop that has to reach a fixpoint.

use crate::error::EngineError;

/// A limit on the passes of a loop in which labels travel one edge a pass.
///
/// On a sound graph of |V| vertices the loop ends after |V| passes.
#[derive(Debug)]
pub struct PassLimit {
    what: &'static str,
    passes: u64,
    vertices: u64,
}

impl PassLimit {
    pub(crate) fn new(what: &'static str, vertices: u64) -> PassLimit {
        PassLimit {
            what,
            passes: 0,
            vertices,
        }
    }
    /// Counts one more pass.
    ///
    /// # Errors
    /// Returns `Unsettled` if that is one more than |V| + 1: labels travel round a cycle for ever.
    pub fn pass(&mut self) -> Result<(), EngineError> {
        if self.passes <= self.vertices {
            self.passes += 1;
            return Ok(());
        }
        Err(EngineError::Unsettled {
            what: self.what,
            passes: self.passes,
            vertices: self.vertices,
        })
    }
}
