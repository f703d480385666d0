//! The parts of a graph that an engine caches between passes, for any program: cells, degree sketches, message filters.
//!
//! A dense pass fills the cell cache, since it reads all cells anyway. Sparse passes fill it only when they have read
//! enough to justify it: a search that meets ten vertices reads the frames of these, however large memory is.

use std::time::Duration;

use crate::cache::adjacency::AdjacencyLists;
use crate::cache::cells::{CellCache, sums};
use crate::cache::degree_sketch::DegreeSketch;
use crate::context::{ExecContext, Orientations};
use crate::error::EngineError;
use crate::exchange::filter::MessageFilter;
use crate::graph_view::CellBytes;

/// Dense passes that would have gathered over the transposed graph before it is loaded.
///
/// Loading it takes about the time of that number of passes.
const PULLS_MISSED: u32 = 4;

/// Time to look up one byte in a sparse pass, in units of reading one byte sequentially.
const LOOKUP_COST: u64 = 8;

/// The cached parts of a graph, as stored and transposed.
#[derive(Default)]
pub(crate) struct GraphCache {
    orientations: [OrientationCache; 2],
    /// Bytes read, and written, to fill it that no pass has accounted for.
    read: u64,
    written: u64,
    /// Time spent loading that no pass has counted.
    pub(crate) loading: Duration,
    /// Passes that would have been pulls over the transposed graph.
    pub(crate) pulls_missed: u32,
}

/// The cached parts of a graph in one orientation.
#[derive(Default)]
pub(crate) struct OrientationCache {
    pub(crate) cell_cache: CellCache,
    /// True if the cell cache holds all that fits.
    filled: bool,
    /// All edges by vertex, where there was room to spare.
    pub(crate) lists: Option<AdjacencyLists>,
    /// With other ranks: the sources of the arcs into each vertex of this rank.
    pub(crate) incoming: Option<AdjacencyLists>,
    pub(crate) degrees: Option<DegreeSketch>,
    /// Which messages each other rank needs, where there are any.
    pub(crate) filter: Option<MessageFilter>,
    /// Bytes that sparse passes have read.
    looked_up: u64,
    /// Bytes of all cells and lists of blocks, once they were asked for.
    whole: Option<u64>,
}

impl OrientationCache {
    /// Returns whether all cells are cached; `None` while none are.
    pub(crate) fn is_fully_cached(&self) -> Option<bool> {
        self.filled.then_some(self.cell_cache.all)
    }
    /// True if all cells are in memory for a program that asks for weights, or does not.
    pub(crate) fn has_all(&self, weighted: bool) -> bool {
        self.cell_cache.all && self.cell_cache.suit(weighted)
    }
    /// True if lists are in memory for a program that asks for weights, or does not.
    pub(crate) fn has_lists(&self, context: &ExecContext, weighted: bool) -> bool {
        let lists = self.lists.as_ref();
        lists.is_some_and(|lists| lists.suits(context, weighted))
    }
    /// Returns the bytes of cells and block lists in memory, and whether all fan-out lists are there.
    ///
    /// Cells count with their weights if `weighted`.
    pub(crate) fn in_memory(&self, weighted: bool) -> (CellBytes, bool) {
        (
            self.cell_cache.held(weighted),
            self.cell_cache.fanout.is_some(),
        )
    }
    /// Frees the memory of cached cells.
    fn release_cells(&mut self) {
        self.cell_cache = CellCache::default();
        self.filled = false;
        self.looked_up = 0;
        self.whole = None;
    }
}

impl GraphCache {
    pub(crate) fn orientation(&self, transposed: bool) -> &OrientationCache {
        &self.orientations[usize::from(transposed)]
    }
    /// Takes the adjacency lists of the graph as stored out of the cache, which then cannot evict them.
    pub(crate) fn take_lists(&mut self) -> Option<AdjacencyLists> {
        self.orientations[0].lists.take()
    }
    /// Puts adjacency lists back that [`GraphCache::take_lists`] returned.
    pub(crate) fn put_lists(&mut self, lists: Option<AdjacencyLists>) {
        if lists.is_some() {
            self.orientations[0].lists = lists;
        }
    }
    /// True if cells of both orientations are in memory, or worth loading if memory allows.
    pub(crate) fn both(&self) -> bool {
        match [&self.orientations[0], &self.orientations[1]].map(OrientationCache::is_fully_cached)
        {
            [Some(true), None] => self.pulls_missed >= PULLS_MISSED,
            [stored, transposed] => transposed == Some(true) && stored != Some(false),
        }
    }
    /// Returns the bytes of cached cells.
    pub(crate) fn cached_cell_bytes(&self) -> u64 {
        self.cell_caches().map(CellCache::bytes).sum()
    }
    /// Returns the bytes of the budget that cached cells take.
    pub(crate) fn leased_bytes(&self) -> u64 {
        self.cell_caches().map(CellCache::leased_bytes).sum()
    }
    /// Bytes of the budget that lists of edges take.
    pub(crate) fn lists_leased_bytes(&self) -> u64 {
        self.all_lists().map(AdjacencyLists::leased_bytes).sum()
    }
    /// Bytes of lists of edges.
    pub(crate) fn adjacency_bytes(&self) -> u64 {
        self.all_lists().map(AdjacencyLists::bytes).sum()
    }
    fn cell_caches(&self) -> impl Iterator<Item = &CellCache> {
        (self.orientations.iter()).map(|orientation| &orientation.cell_cache)
    }
    fn all_lists(&self) -> impl Iterator<Item = &AdjacencyLists> {
        let orientations = self.orientations.iter();
        orientations.flat_map(|orientation| orientation.lists.iter().chain(&orientation.incoming))
    }
    /// Bytes read, and written, to fill it since the last call.
    pub(crate) fn take_traffic(&mut self) -> [u64; 2] {
        [&mut self.read, &mut self.written].map(std::mem::take)
    }
    /// Returns the bytes of the budget for the adjacency lists of one orientation and its uncached cells.
    fn lists_take(&self, context: &ExecContext, transposed: bool, weighted: bool) -> u64 {
        let (lists, besides) = AdjacencyLists::memory(context, weighted);
        let cells = match self.orientation(transposed).has_all(weighted) {
            true => 0,
            false => CellCache::memory(context, weighted),
        };
        lists.saturating_add(besides).saturating_add(cells)
    }

    /// Returns the bytes that the budget lacks to hold the lists and all cells of one orientation.
    ///
    /// `leave` bytes stay free, and cached cells count as free. `None` if no budget suffices.
    pub(crate) fn adjacency_shortfall(
        &self,
        context: &ExecContext,
        transposed: bool,
        weighted: bool,
        leave: u64,
    ) -> Option<u64> {
        let taken = self.lists_take(context, transposed, weighted);
        let pinned = match self.orientation(transposed).has_all(weighted) {
            true => 0,
            false => self.leased_bytes(),
        };
        let lack = taken.saturating_add(leave);
        AdjacencyLists::possible(context)
            .then(|| lack.saturating_sub(context.budget.available() + pinned))
    }

    /// Loads the adjacency lists of one orientation, and its cells unless they are cached.
    ///
    /// Returns true if they are there. Call it only if [`GraphCache::adjacency_shortfall`] is zero.
    pub(crate) fn load_lists(
        &mut self,
        context: &ExecContext,
        transposed: bool,
        weighted: bool,
        leave: u64,
    ) -> Result<bool, EngineError> {
        self.pin_for_lists(context, transposed, weighted, leave)?;
        let began = context.clock.now();
        let orientation = &mut self.orientations[usize::from(transposed)];
        orientation.lists = None;
        // Nodes may hold the cells or the lists, but not both.
        let fits = AdjacencyLists::memory(context, weighted).0 < u64::MAX;
        if orientation.cell_cache.all && fits {
            orientation.lists = Some(AdjacencyLists::load(
                context,
                &orientation.cell_cache,
                weighted,
            )?);
        }
        self.loading += context.clock.now() - began;
        Ok(self.orientation(transposed).lists.is_some())
    }

    /// Caches all cells of one orientation, so that lists can be decoded and leave `leave` bytes.
    pub(crate) fn pin_for_lists(
        &mut self,
        context: &ExecContext,
        transposed: bool,
        weighted: bool,
        leave: u64,
    ) -> Result<(), EngineError> {
        if self.orientation(transposed).has_all(weighted) {
            return Ok(());
        }
        self.orientations[usize::from(transposed)].release_cells();
        let taken = self.lists_take(context, transposed, weighted);
        if taken.saturating_add(leave) > context.budget.available() {
            self.release_cells();
        }
        let (lists, besides) = AdjacencyLists::memory(context, weighted);
        let lists = lists.saturating_add(besides);
        let room = context.budget.available().saturating_sub(lists);
        self.pin(context, transposed, weighted, room)
    }

    /// Loads the lists of the arcs into this rank's vertices if they leave `leave` bytes.
    ///
    /// It does nothing unless all cells are cached.
    pub(crate) fn load_incoming(
        &mut self,
        context: &ExecContext,
        transposed: bool,
        leave: u64,
    ) -> Result<(), EngineError> {
        let orientation = &mut self.orientations[usize::from(transposed)];
        let (lists, besides) = AdjacencyLists::memory(context, false);
        let takes = lists.saturating_add(besides).saturating_add(leave);
        if orientation.incoming.is_none()
            && orientation.cell_cache.all
            && takes <= context.budget.available()
        {
            let began = context.clock.now();
            let incoming = AdjacencyLists::load_incoming(context, &orientation.cell_cache)?;
            orientation.incoming = Some(incoming);
            self.loading += context.clock.now() - began;
        }
        Ok(())
    }

    /// Frees the memory of cached cells.
    pub(crate) fn release_cells(&mut self) {
        let orientations = self.orientations.iter_mut();
        orientations.for_each(OrientationCache::release_cells);
    }
    /// Gives the memory of lists back.
    pub(crate) fn release_lists(&mut self) {
        for orientation in &mut self.orientations {
            (orientation.lists, orientation.incoming) = (None, None);
        }
    }
    /// Frees the memory of the lists by destination.
    pub(crate) fn release_incoming(&mut self) {
        let orientations = self.orientations.iter_mut();
        orientations.for_each(|orientation| orientation.incoming = None);
    }
    /// Frees the memory of cells cached without weights, if the program needs weights.
    pub(crate) fn release_unsuited(&mut self, weighted: bool) {
        let orientations = self.orientations.iter_mut();
        orientations
            .filter(|orientation| orientation.filled && !orientation.cell_cache.suit(weighted))
            .for_each(OrientationCache::release_cells);
    }
    /// Gives all memory back.
    pub(crate) fn release(&mut self) {
        self.orientations = Default::default();
        self.pulls_missed = 0;
    }

    /// Builds the message filter of each orientation, each in `room` bytes.
    pub(crate) fn load_filters(
        &mut self,
        orientations: Orientations<'_>,
        room: u64,
    ) -> Result<(), EngineError> {
        let files = ["needs", "needs-turned"];
        for ((context, orientation), file) in
            orientations.each().zip(&mut self.orientations).zip(files)
        {
            if orientation.filter.is_none()
                && let Some((filter, [read, written])) = MessageFilter::load(&context, file, room)?
            {
                orientation.filter = Some(filter);
                self.read += read;
                self.written += written;
            }
        }
        Ok(())
    }

    /// Gives the graph as it is stored such filtering lists.
    #[cfg(test)]
    pub(crate) fn set_filter_for_test(&mut self, filter: MessageFilter) {
        self.orientations[0].filter = Some(filter);
    }

    /// Loads the degree sketch of each orientation.
    pub(crate) fn load_degrees(
        &mut self,
        orientations: Orientations<'_>,
    ) -> Result<(), EngineError> {
        for (context, orientation) in orientations.each().zip(&mut self.orientations) {
            if orientation.degrees.is_none() {
                let (degrees, read) = DegreeSketch::load(&context)?;
                orientation.degrees = Some(degrees);
                self.read += read;
            }
        }
        Ok(())
    }

    /// Records the bytes that a sparse pass read.
    pub(crate) fn record_sparse_read(&mut self, transposed: bool, bytes: u64) {
        self.orientations[usize::from(transposed)].looked_up += bytes;
    }

    /// True if sparse passes have read enough to justify filling the cell cache with `bytes` bytes.
    pub(crate) fn is_cache_worthwhile(
        &mut self,
        context: &ExecContext,
        transposed: bool,
        weighted: bool,
        room: u64,
    ) -> bool {
        let orientation = &mut self.orientations[usize::from(transposed)];
        let whole = orientation.whole.get_or_insert_with(|| {
            let [cells, block_lists, _] = sums(context, weighted);
            cells + block_lists
        });
        room.min(*whole) <= orientation.looked_up.saturating_mul(LOOKUP_COST)
    }

    /// Caches cells of one orientation, in at most `room` bytes of the budget.
    pub(crate) fn pin(
        &mut self,
        context: &ExecContext,
        transposed: bool,
        weighted: bool,
        room: u64,
    ) -> Result<(), EngineError> {
        let began = context.clock.now();
        let orientation = &mut self.orientations[usize::from(transposed)];
        orientation.cell_cache = CellCache::fill(context, weighted, room)?;
        orientation.filled = true;
        self.loading += context.clock.now() - began;
        self.read += orientation.cell_cache.read;
        Ok(())
    }

    /// Frees the cells of one orientation, and caches as many as the budget has room for.
    pub(crate) fn pin_again(
        &mut self,
        context: &ExecContext,
        transposed: bool,
        weighted: bool,
    ) -> Result<(), EngineError> {
        self.orientations[usize::from(transposed)].release_cells();
        let room = context.budget.available();
        self.pin(context, transposed, weighted, room)
    }
}
