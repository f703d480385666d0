//! The chance that a jump leads to each vertex.

use std::sync::Arc;

/// Where jumps lead.
#[derive(Clone)]
pub(super) struct Teleport {
    chance: f64,
    sources: Arc<[u64]>,
}

impl Teleport {
    pub(super) fn new(vertices: u64, sources: &[u64]) -> Self {
        let places = match sources.len() {
            0 => vertices,
            count => count as u64,
        };
        Teleport {
            chance: 1.0 / places as f64,
            sources: sources.into(),
        }
    }
    #[inline(always)]
    pub(super) fn chance(&self, v: u64) -> f64 {
        if self.sources.is_empty() || self.sources.binary_search(&v).is_ok() {
            self.chance
        } else {
            0.0
        }
    }
}
