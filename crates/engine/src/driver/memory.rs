//! Memory that an engine retains between passes (degrees, cells, adjacency lists, pass buffers), and its eviction
//! for a pass that needs more.

use graphmill_raw::lock;

use crate::config::EdgeResidency;
use crate::context::ExecContext;
use crate::engine::Engine;
use crate::error::EngineError;
use crate::state::rows::ColumnAccess;

impl Engine {
    /// Frees the memory that passes retain: messages, accumulators, cells of the graph.
    ///
    /// The bucket executor keeps its cells. Arrays and sets stay; the next pass allocates and reads again.
    pub(crate) fn release(&mut self) {
        self.workspaces = None;
        if self.buckets.is_none() {
            self.cache.release();
        }
        self.active.trim();
    }

    /// Frees memory for staged rows by evicting what edge passes retain; returns a budget that is enough.
    pub(crate) fn evict_for_rows(&mut self, needs: &[ColumnAccess]) -> u64 {
        let row_bytes = self.common.arrays.staged_bytes(needs);
        let takes = |engine: &Engine| engine.common.shape.staging_bytes(row_bytes, needs.len());
        self.use_workers_that_fit(takes);
        let takes = takes(self);
        self.evict_to_free(takes);
        let budget = &self.common.budget;
        (budget.total() - budget.available()) + takes
    }

    /// Lets fewer workers take part from now on if a pass takes more than passes can free.
    ///
    /// `takes` returns the bytes that a pass of the engine's workers takes.
    pub(crate) fn use_workers_that_fit(&mut self, takes: impl Fn(&Engine) -> u64) {
        let lacks = |engine: &Engine| {
            takes(engine) > engine.common.budget.available() + engine.evictable_bytes()
        };
        if lacks(self) {
            self.workspaces = None;
            self.active.trim();
        }
        while lacks(self) && self.common.workers.count() > 1 {
            let workers = self.common.workers.count() - 1;
            self.common.workers = self.common.workers.first(workers);
            self.common.shape = self.common.shape.with_workers(workers);
        }
    }

    /// Returns the bytes that eviction frees: cells and lists, unless buckets are filled from them.
    fn evictable_bytes(&self) -> u64 {
        match self.buckets {
            Some(_) => 0,
            None => self.cache.leased_bytes() + self.cache.lists_leased_bytes(),
        }
    }

    /// Frees `bytes` bytes by evicting what edge passes retain; later passes leave as much free.
    pub(crate) fn evict_to_free(&mut self, bytes: u64) {
        self.borrowed = self.borrowed.max(bytes);
        let budget = self.common.budget.clone();
        let lacks = || budget.available() < bytes;
        if lacks() {
            self.workspaces = None;
            self.active.trim();
        }
        if self.buckets.is_none() {
            self.cache.evict_while(lacks);
        }
        self.count_held();
    }

    /// Has the metrics say how much of the graph is in memory.
    pub(crate) fn count_held(&mut self) {
        self.metrics.cached_cell_bytes = self.cache.cached_cell_bytes();
        self.metrics.adjacency_bytes = self.cache.adjacency_bytes();
    }

    pub(crate) fn load_degrees(&mut self, needs: &[ColumnAccess]) -> Result<(), EngineError> {
        if self.broken {
            return Err(EngineError::Broken);
        }
        let on_disk = self.common.on_disk_with(0);
        let shape = &self.common.shape;
        let reserve = shape.reserve_with_degrees(self.common.sizes, on_disk);
        let before = self.common.budget.available();
        let loaded = self.common.arrays.load(needs, reserve);
        let done = loaded.and_then(|()| self.make_frames(needs));
        if self.common.budget.available() < before {
            // The next pass divides the remaining memory again.
            self.workspaces = None;
        }
        done.map_err(|error| self.too_small(error))
    }

    /// Makes the frames of all workers that unpack columns of the graph in a pass.
    ///
    /// So the memory that is left does not depend on which of them take a batch.
    fn make_frames(&self, needs: &[ColumnAccess]) -> Result<(), EngineError> {
        let common = &self.common;
        let is_unpacked = |need: &&ColumnAccess| {
            matches!(need, ColumnAccess::Graph(_)) && !common.arrays.resident(&[**need])
        };
        if needs.iter().any(|need| is_unpacked(&need)) {
            for io in common.row_io.iter().take(common.ranks.own().len()) {
                lock(io).frames(&self.stored.graph, &common.budget)?;
            }
        }
        Ok(())
    }

    /// Loads as many cells as the budget allows, leaving `leave` bytes.
    ///
    /// It does so only if edges belong in memory and none are there.
    pub(crate) fn load_cells(&mut self, leave: u64) -> Result<(), EngineError> {
        if self.common.options.edges != EdgeResidency::Memory
            || self.cache.orientation(false).is_fully_cached().is_some()
        {
            return Ok(());
        }
        self.workspaces = None;
        let context = ExecContext::new(&self.common, &self.stored);
        let room = context.budget.available().saturating_sub(leave);
        let loaded = self.cache.pin(&context, false, false, room);
        self.take_loading();
        self.count_held();
        loaded
    }
}
