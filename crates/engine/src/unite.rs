//! [`Engine::unite`]: which vertices hang together, over lists in memory or in one walk over the cells.

use graphmill_graph::Order;
use graphmill_raw::{AtomicWord, Forest, Word};
use graphmill_storage::{Kind, StorageError};

use crate::engine::Engine;
use crate::error::EngineError;
use crate::machine::Machine;
use crate::metrics::Superstep;
use crate::phase::arcs;
use crate::program::Direction;
use crate::resident::components;
use crate::resident::lists::with_words;
use crate::rows::{IdRank, Need};
use crate::settings::EdgesAt;
use crate::settle::listed;
use crate::traffic::Access;
use crate::vertex_array::{VertexArray, elements_mut};

/// How components are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unite {
    /// Over lists where they are in memory, else over cells.
    Auto,
    /// A few neighbours of each vertex, then what is left, over lists in memory.
    Lists,
    /// Each cell once, as it is stored.
    Cells,
}

impl Engine {
    /// Gives each vertex the least rank of an id in its weakly connected component. `false` when the labels, or the lists that were asked for,
    /// do not fit in memory; the labels then say nothing.
    ///
    /// # Errors
    /// Disk, budget or the stored graph failed, or the user asked to stop.
    pub fn unite<I: Word>(
        &mut self,
        labels: VertexArray<I>,
        how: Unite,
    ) -> Result<bool, EngineError> {
        if self.vertices() == 0 {
            return Ok(true);
        }
        let is_told = how == Unite::Lists || self.common.edges == EdgesAt::Memory;
        let forward = Direction::Forward;
        let over_lists = how != Unite::Cells
            && self.lists_are_worth_it(false, forward, if is_told { u64::MAX } else { 0 })
            && self.lists_for(false, forward, &labels, true)?;
        let resident = self.common.arrays.resident(&[Need::Read(labels.id())]);
        if !resident || how == Unite::Lists && !over_lists {
            return Ok(false);
        }
        if !over_lists {
            self.load_cells(arcs::least(self.common.workers.count()))?;
        }
        let mut rows = self.common.arrays.take(labels.id())?;
        let outcome = self.unite_rows::<I>(I::shared(elements_mut(rows.all())), over_lists);
        self.common.arrays.put(labels.id(), rows);
        self.broken = outcome.is_err();
        outcome.map_err(|error| self.too_small(error))?;
        match self.graph().order() {
            Order::Id => Ok(true),
            Order::Degree => self.name_by_rank(labels),
        }
    }

    /// Gives each vertex, which has the index of its root, the least rank of a vertex of its tree. `false` when that does not fit in
    /// memory.
    fn name_by_rank<I: Word>(&mut self, labels: VertexArray<I>) -> Result<bool, EngineError> {
        let bytes = self.vertices() as usize * size_of::<I>();
        if self.common.budget.available() < 2 * bytes as u64 {
            self.release();
        }
        let (tiers, budget) = (&self.common.tiers, &self.common.budget);
        let mut least = match tiers.buffer(Kind::Vertices, budget, "least ranks", bytes) {
            Err(StorageError::Budget(_)) => return Ok(false),
            least => least?,
        };
        least.fill(u8::MAX);
        let least = I::shared(least.typed_mut());
        self.process_vertices((labels.read(), IdRank), None, |_, (root, rank)| {
            least[root.index()].lower(I::of_index(rank), false);
        })?;
        self.process_vertices(labels.write(), None, |_, label| {
            *label = least[label.index()].load();
        })?;
        Ok(true)
    }

    fn unite_rows<I: Word>(
        &mut self,
        labels: &[I::Atomic],
        over_lists: bool,
    ) -> Result<(), EngineError> {
        let forest = Forest::<I, I::Atomic>::new(labels);
        let machine = Machine::new(&self.common, &self.stored);
        let way = self.held.way(false);
        let lists = way.lists.as_ref().filter(|_| over_lists);
        let traffic = &self.common.traffic;
        let (label, vertices) = (size_of::<I>() as u64, machine.batches.vertices());
        // Each edge looks at the labels of both its ends, and each vertex is given one. Cells are counted where they go by.
        let count = |pass: &Superstep| {
            traffic.shared(|worker, part| {
                let (edges, messages) = (part(pass.edges), part(pass.messages));
                if let Some(lists) = lists {
                    // Where lists begin is gone through in order, of vertices without edges too.
                    lists.count(worker, 0, edges);
                    let begins = part(vertices) * size_of::<u64>() as u64;
                    worker.read(Kind::Index, Access::Sequential, begins);
                }
                worker.read(Kind::Vertices, Access::Random, 2 * edges * label);
                worker.write(Kind::Vertices, Access::Random, messages * label);
            });
        };
        let (metrics, on_pass) = (&mut self.metrics, &self.on_pass);
        let tell = listed(&*self.common.clock, on_pass, metrics, traffic, count);
        match lists {
            Some(lists) => {
                let against = self.held.way(true).lists.as_ref();
                with_words!(lists, |WORDS| components::unite::<I, _, WORDS>(
                    &machine, lists, against, forest, tell
                ))
            }
            None => components::unite_cells(&machine, &way.pins, forest, tell),
        }
    }
}
