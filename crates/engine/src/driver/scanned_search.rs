//! Searches over cells on disk: a level by one scan, then the levels after it over the lists of pending vertices.

use graphmill_graph::Cell;
use graphmill_raw::{AtomicBitmap, AtomicCell, AtomicScalar};
use graphmill_storage::DataKind;

use crate::cache::adjacency::AdjacencyLists;
use crate::config::{EdgeResidency, KernelChoice};
use crate::context::ExecContext;
use crate::driver::pass_list::listed;
use crate::engine::Engine;
use crate::error::EngineError;
use crate::exec::in_memory::level_scan::{self, LevelScan, scan_level};
use crate::exec::in_memory::round::WordOf;
use crate::frontier::active_set::ActiveSet;
use crate::metrics::run::{Mode, PassMetrics};
use crate::metrics::traffic::Access;
use crate::program::current_call::catch_at;
use crate::program::edge::Direction;
use crate::program::monotone::{Label, MonotoneProgram};
use crate::state::vertex_array::{VertexArray, elements_mut};
use crate::value::EdgeValue;

/// The records of pending vertices have at least one part in 4 of the free budget.
const SHARE: u64 = 4;
/// A level is dense if it has one in 16 of the vertices, or of the edges.
const DENSE: u64 = 16;

impl Engine {
    /// True if the next level is better found by a scan of all cells than by a pass.
    ///
    /// That is so if a pass has to read most cells from disk, and the budget has room for lists of some vertices.
    pub(crate) fn scan_is_worth_it<T>(
        &mut self,
        labels: &VertexArray<T>,
        active: &ActiveSet,
    ) -> Result<bool, EngineError> {
        let (common, context) = (&self.common, self.context(false));
        let by_cost = common.options.edges == EdgeResidency::Auto
            && common.options.kernel == KernelChoice::Auto;
        let is_possible = common.ranks.alone()
            && self.graph().symmetric()
            && AdjacencyLists::possible(&context)
            && common.arrays.in_memory(labels.id());
        let degrees = self.cache.orientation(false).degrees.as_ref();
        let Some(degrees) = degrees.filter(|_| by_cost && is_possible) else {
            return Ok(false);
        };
        // A small level returns before the cells are counted.
        let many = self.graph().arcs() / DENSE;
        let is_dense =
            active.len() > self.vertices() / DENSE || degrees.edges(&context, active, many)? > many;
        let bytes = |cell: &Cell| cell.data_bytes();
        let is_on_disk =
            || self.cache.cached_cell_bytes() < context.all_own_cells().map(bytes).sum::<u64>() / 2;
        if !is_dense || !is_on_disk() {
            return Ok(false);
        }
        let work = self.work_over_lists(size_of::<T>());
        let needed = level_scan::memory(&context) + AtomicBitmap::bytes(self.vertices()) + work;
        let needed = needed + needed / (SHARE - 1);
        let budget = common.budget.clone();
        if budget.available() + self.cache.leased_bytes() < needed {
            return Ok(false);
        }
        self.workspaces = None;
        self.active.trim();
        self.cache.evict_while(|| budget.available() < needed);
        self.count_held();
        Ok(budget.available() >= needed)
    }

    /// Runs labels to the fixpoint after a scan for the next level; returns the vertices yet to send.
    ///
    /// These are the next level if the lists of all pending vertices do not fit.
    pub(crate) fn settle_by_scan<P: MonotoneProgram>(
        &mut self,
        program: &P,
        labels: VertexArray<P::Label>,
        active: &ActiveSet,
    ) -> Result<ActiveSet, EngineError> {
        let mut rows = self.common.arrays.take(labels.id())?;
        let mut found = self.active.empty();
        let lists = self.scan_rows(program, rows.all(), active, &mut found);
        self.common.arrays.put(labels.id(), rows);
        let lists = self.checked(lists)?;
        found.agree_len()?;
        match lists {
            Some(lists) if !found.is_empty() => {
                self.settle_in_memory(program, labels, &found, Direction::Forward, Some(&lists))
            }
            _ => Ok(found),
        }
    }

    /// Labels the next level and adds it to `found`; returns the lists of pending vertices.
    fn scan_rows<P: MonotoneProgram>(
        &mut self,
        program: &P,
        rows: &mut [u8],
        active: &ActiveSet,
        next: &mut ActiveSet,
    ) -> Result<Option<AdjacencyLists>, EngineError> {
        let context = ExecContext::new(&self.common, &self.stored);
        let vertices = self.vertices();
        let labels = WordOf::<P>::shared(elements_mut(rows));
        let label = |v: usize| labels.get(v).map(AtomicCell::load);
        let bits = AtomicBitmap::bytes(vertices);
        let _lease = self.common.budget.lease("a level of a search", bits)?;
        let front = AtomicBitmap::new(vertices);
        active.each(|v| front.set(v as usize))?;
        let first = active.first()?;
        let Some(of_front) = first.and_then(|v| label(v as usize)) else {
            return Ok(None);
        };
        let of_front = P::Label::of_word(of_front);
        let of_next = catch_at(|| first, || program.on_edge(of_front, P::Edge::ONE))?.word();
        let is_pending = |v: usize| label(v) > Some(of_next);
        let besides = level_scan::memory(&context) + self.work_over_lists(size_of::<P::Label>());
        let room = self.common.budget.available().saturating_sub(besides);
        let traffic = &self.common.traffic;
        let bytes = size_of::<P::Label>() as u64;
        let of_pass = |pass: &PassMetrics| {
            traffic.shared(|worker, part| {
                worker.read(
                    DataKind::Vertices,
                    Access::Sequential,
                    part(vertices) * bytes,
                );
                worker.write(
                    DataKind::Vertices,
                    Access::Sequential,
                    part(pass.messages) * bytes,
                );
            });
        };
        let (metrics, on_pass) = (&mut self.metrics, &self.common.on_pass);
        let mut list = listed(&*self.common.clock, on_pass, metrics, traffic, of_pass);
        let cell_cache = &self.cache.orientation(false).cell_cache;
        let LevelScan {
            found,
            lists,
            report,
        } = scan_level(&context, cell_cache, &front, is_pending, room)?;
        next.insert_where(|v| found.is_marked(v as usize))?;
        next.each(|v| {
            if let Some(at) = labels.get(v as usize) {
                at.store(of_next);
            }
        })?;
        list(PassMetrics {
            mode: Mode::Gather,
            active: active.len(),
            messages: next.own_len(),
            ..report
        });
        Ok(lists)
    }
}
