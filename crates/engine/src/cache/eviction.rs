//! The order in which the cache evicts its parts when a pass needs their memory.

use crate::cache::graph_cache::GraphCache;

impl GraphCache {
    /// Evicts while `lacks` returns true: decoded lists first, then cells, then everything.
    pub(crate) fn evict_while(&mut self, lacks: impl Fn() -> bool) {
        for release in [Self::release_lists, Self::release_cells, Self::release] {
            if lacks() {
                release(self);
            }
        }
    }
}
