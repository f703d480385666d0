//! [`Engine::connected_components`]: which vertices hang together, over lists in memory or in one walk over the cells.

use graphmill_graph::{ChunkRun, Layout, Order};
use graphmill_raw::{AtomicCell, AtomicScalar, UnionFind, lock};
use graphmill_storage::{Buffer, DataKind, PlacementError, StorageError};
use zerocopy::{FromBytes, IntoBytes};

use crate::cache::adjacency::with_words;
use crate::checkpoint::checkpointer::Checkpointer;
use crate::config::EdgeResidency;
use crate::context::ExecContext;
use crate::driver::pass_list::listed;
use crate::driver_log::call_name;
use crate::engine::Engine;
use crate::error::EngineError;
use crate::exec::in_memory::{afforest, edge_scan};
use crate::exec::stream::scan;
use crate::metrics::run::{Mode, PassMetrics};
use crate::metrics::traffic::Access;
use crate::program::edge::Direction;
use crate::state::rows::IdOrdinal;
use crate::state::vertex_array::{VertexArray, elements_mut};

/// How components are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ComponentsMethod {
    /// Over lists where they are in memory, else over cells.
    Auto,
    /// By a few neighbours of each vertex, then by all other edges, over lists in memory.
    Lists,
    /// Each cell once, as it is stored.
    Cells,
}

impl Engine {
    /// Gives each vertex the least id ordinal of its weakly connected component.
    ///
    /// Returns `false` if the labels, or the lists that were asked for, do not fit in memory; the labels then mean nothing.
    /// On several ranks each needs memory for the labels of all vertices, or none computes them.
    ///
    /// # Errors
    /// Disk, budget or the stored graph failed, or the user asked to stop.
    pub fn connected_components<I: AtomicScalar>(
        &mut self,
        labels: VertexArray<I>,
        how: ComponentsMethod,
    ) -> Result<bool, EngineError> {
        self.common.arrays.check_own(labels.id())?;
        if self.vertices() == 0 {
            return Ok(true);
        }
        if how == ComponentsMethod::Lists {
            self.needs_columns("components over lists of edges")?;
        }
        if self.buckets.is_some() {
            // Labels travel in buckets instead.
            return Ok(false);
        }
        let name = call_name::<I>("connected_components");
        let (is_done, []) = self.logged_passes(1, &name, |engine| {
            (engine.recovery.iter_mut()).for_each(Checkpointer::stop_deferring);
            Ok((u64::from(engine.unite_at_once(labels, how)?), []))
        })?;
        Ok(is_done == 1)
    }

    fn unite_at_once<I: AtomicScalar>(
        &mut self,
        labels: VertexArray<I>,
        how: ComponentsMethod,
    ) -> Result<bool, EngineError> {
        let is_told =
            how == ComponentsMethod::Lists || self.common.options.edges == EdgeResidency::Memory;
        if !self.common.ranks.alone() {
            let united = self.unite_on_ranks(labels, how, is_told);
            return united.inspect_err(|_| self.broken = true);
        }
        let forward = Direction::Forward;
        let over_lists = how != ComponentsMethod::Cells
            && self.lists_are_worth_it(false, forward, if is_told { u64::MAX } else { 0 })?
            && self.lists_for(false, forward, &labels, true)?;
        let resident = self.common.arrays.in_memory(labels.id());
        if !resident || how == ComponentsMethod::Lists && !over_lists {
            return Ok(false);
        }
        if !over_lists {
            let reserve = afforest::cells_reserve(self.common.workers.count(), self.vertices());
            self.load_cells(reserve)?;
        }
        let mut rows = self.common.arrays.take(labels.id())?;
        let edges = match over_lists {
            true => ForestEdges::Lists,
            false => ForestEdges::Cells,
        };
        let outcome = self.unite_rows::<I>(I::shared(elements_mut(rows.all())), edges);
        self.common.arrays.put(labels.id(), rows);
        self.checked(outcome)?;
        match self.graph().order() {
            Order::Id => Ok(true),
            Order::Degree => self.name_by_ordinal(labels),
        }
    }

    /// Finds components on several ranks.
    ///
    /// Each rank grows a forest of all vertices by the edges into its own; the forests are then united in pairs. Over lists that is
    /// done twice: the largest tree, whose vertices are skipped, is one of the forest of all ranks.
    fn unite_on_ranks<I: AtomicScalar>(
        &mut self,
        labels: VertexArray<I>,
        how: ComponentsMethod,
        is_told: bool,
    ) -> Result<bool, EngineError> {
        let bytes = self.vertices() as usize * size_of::<I>();
        let chunks = self.common.shape.chunks();
        let of_chunks = chunks.map_or(0, |chunks| chunks.scan_bytes(false));
        let besides = edge_scan::least(self.common.workers.count()).max(of_chunks);
        if self.common.budget.available() < bytes as u64 + besides {
            self.release();
        }
        let forest = self.buffer_of_vertices("a forest", bytes)?;
        let resident = self.common.arrays.in_memory(labels.id());
        let is_short = self.common.budget.available() < besides;
        let lacks = forest.is_none() || !resident || is_short;
        let [lacks] = self.common.ranks.total([u64::from(lacks)])?;
        let Some(mut forest) = forest.filter(|_| lacks == 0) else {
            return Ok(false);
        };
        let over_lists =
            how != ComponentsMethod::Cells && self.incoming_lists(false, is_told, besides)?;
        if how == ComponentsMethod::Lists && !over_lists {
            return Ok(false);
        }
        let words = &mut forest.typed_mut::<I>()[..self.vertices() as usize];
        if over_lists {
            self.unite_rows::<I>(I::shared(words), ForestEdges::Neighbours)?;
            self.unite_forests(words)?;
            self.unite_rows::<I>(I::shared(words), ForestEdges::Rest)?;
        } else {
            let reserve = afforest::cells_reserve(self.common.workers.count(), self.vertices());
            self.load_cells(reserve)?;
            self.unite_rows::<I>(I::shared(words), ForestEdges::Cells)?;
        }
        self.unite_forests(words)?;
        if self.graph().order() == Order::Degree && !self.name_trees_by_ordinal(words)? {
            return Ok(false);
        }
        let (own, batches) = (self.common.ranks.own(), &self.common.batches);
        let own = batches.cut(own.start) as usize..batches.cut(own.end) as usize;
        let mut rows = self.common.arrays.take(labels.id())?;
        elements_mut::<I>(rows.all())[..own.len()].copy_from_slice(&words[own]);
        self.common.arrays.put(labels.id(), rows);
        Ok(true)
    }

    /// Unites the forests of all ranks; the result is flat.
    fn unite_forests<I: AtomicScalar>(&mut self, words: &mut [I]) -> Result<(), EngineError> {
        self.fold_and_share(words, |words, first, came| {
            let forest = UnionFind::<I, I::Atomic>::new(I::shared(words));
            for (i, root) in came.iter().enumerate() {
                forest.union(I::of_index((first + i) as u64), *root);
            }
        })?;
        let forest = UnionFind::<I, I::Atomic>::new(I::shared(words));
        afforest::flatten(&self.context(false), forest)
    }

    /// Returns true if every rank has the lists of the arcs into its vertices, as stored or transposed.
    ///
    /// If `is_told`, it loads them where they fit at every rank.
    pub(crate) fn incoming_lists(
        &mut self,
        transposed: bool,
        is_told: bool,
        leave: u64,
    ) -> Result<bool, EngineError> {
        let lacks =
            |engine: &Self| u64::from(engine.cache.orientation(transposed).incoming.is_none());
        if self.common.ranks.total([lacks(self)])? == [0] {
            return Ok(true);
        }
        let context = self.context(transposed);
        let lack = (self.cache).adjacency_shortfall(&context, transposed, false, leave);
        let fits = lacks(self) == 0 || lack == Some(0);
        if !is_told || self.common.ranks.total([u64::from(!fits)])? != [0] {
            return Ok(false);
        }
        self.workspaces = None;
        if lacks(self) > 0 {
            let view = self.transposed.as_ref().filter(|_| transposed);
            let context = ExecContext::new(&self.common, view.unwrap_or(&self.stored));
            self.cache
                .pin_for_lists(&context, transposed, false, leave)?;
            self.cache.load_incoming(&context, transposed, leave)?;
        }
        self.take_loading();
        self.count_held();
        let all_have = self.common.ranks.total([lacks(self)])? == [0];
        if !all_have {
            self.cache.release_incoming();
        }
        Ok(all_have)
    }

    /// Gives each vertex of this rank, which has the index of its root, the least id ordinal of its tree.
    ///
    /// Returns `false` if some rank lacks the memory.
    fn name_trees_by_ordinal<I: AtomicScalar>(
        &mut self,
        words: &mut [I],
    ) -> Result<bool, EngineError> {
        let mut least = self.buffer_of_vertices("least ranks", size_of_val(words))?;
        let [lacks] = self.common.ranks.total([u64::from(least.is_none())])?;
        let Some(least) = least.as_mut().filter(|_| lacks == 0) else {
            return Ok(false);
        };
        least.fill(u8::MAX);
        let least = &mut least.typed_mut::<I>()[..words.len()];
        let (shared, roots) = (I::shared(least), &*words);
        self.process_vertices(IdOrdinal, None, |v, rank| {
            shared[roots[v as usize].index()].lower(I::of_index(rank), false);
        })?;
        self.fold_and_share(least, |least, first, came| {
            for (mine, came) in least[first..].iter_mut().zip(came) {
                *mine = (*mine).min(*came);
            }
        })?;
        (words.iter_mut()).for_each(|root| *root = least[root.index()]);
        Ok(true)
    }

    /// Folds the words of all ranks into the words of rank 0, in pairs, and sends the result to all.
    ///
    /// `fold` takes words that arrived, from the given index on.
    fn fold_and_share<I: AtomicScalar>(
        &mut self,
        words: &mut [I],
        fold: impl Fn(&mut [I], usize, &[I]),
    ) -> Result<(), EngineError> {
        let (ranks, Some(wire)) = (&self.common.ranks, &self.common.wire) else {
            return Ok(());
        };
        let began = self.common.clock.now();
        let mut wire = lock(wire);
        let (rank, count, bytes) = (ranks.rank(), ranks.count(), size_of_val(words));
        let mut times_sent = 0;
        let distances: Vec<usize> = (0..).map(|i| 1 << i).take_while(|d| *d < count).collect();
        for distance in &distances {
            if rank % (2 * distance) == *distance {
                wire.send_rows(ranks, rank - distance, words.as_bytes())?;
                times_sent += 1;
            } else if rank % (2 * distance) == 0 && rank + distance < count {
                wire.receive_each(ranks, rank + distance, bytes, |from, came| {
                    let came = <[I]>::ref_from_bytes(came).unwrap_or(&[]);
                    fold(words, from / size_of::<I>(), came);
                })?;
            }
        }
        for distance in distances.iter().rev() {
            if rank % (2 * distance) == 0 && rank + distance < count {
                wire.send_rows(ranks, rank + distance, words.as_bytes())?;
                times_sent += 1;
            } else if rank % (2 * distance) == *distance {
                wire.receive_rows(ranks, rank - distance, words.as_mut_bytes())?;
            }
        }
        drop(wire);
        let pass = PassMetrics {
            active: self.vertices(),
            messages_sent: times_sent * words.len() as u64,
            bytes_sent: times_sent * bytes as u64,
            ..PassMetrics::new(Mode::Send)
        };
        self.end_pass(began, pass);
        Ok(())
    }

    /// Gives each vertex, which has the index of its root, the least id ordinal of its tree.
    ///
    /// Returns `false` if that does not fit in memory.
    fn name_by_ordinal<I: AtomicScalar>(
        &mut self,
        labels: VertexArray<I>,
    ) -> Result<bool, EngineError> {
        let bytes = self.vertices() as usize * size_of::<I>();
        if self.common.budget.available() < 2 * bytes as u64 {
            self.release();
        }
        let Some(mut least) = self.buffer_of_vertices("least ranks", bytes)? else {
            return Ok(false);
        };
        least.fill(u8::MAX);
        let least = I::shared(least.typed_mut());
        self.process_vertices((labels.read(), IdOrdinal), None, |_, (root, rank)| {
            least[root.index()].lower(I::of_index(rank), false);
        })?;
        self.process_vertices(labels.write(), None, |_, label| {
            *label = least[label.index()].load();
        })?;
        Ok(true)
    }

    /// Returns a buffer of rows of vertices; `None` if the budget is too small for it.
    fn buffer_of_vertices(
        &self,
        name: &'static str,
        bytes: usize,
    ) -> Result<Option<Buffer>, EngineError> {
        let (tiers, budget) = (&self.common.tiers, &self.common.budget);
        match tiers.buffer(DataKind::Vertices, budget, name, bytes) {
            Err(StorageError::Budget(_)) => Ok(None),
            Err(StorageError::Placement(PlacementError::FullNodes { .. })) => Ok(None),
            buffer => Ok(Some(buffer?)),
        }
    }

    fn unite_rows<I: AtomicScalar>(
        &mut self,
        labels: &[I::Atomic],
        edges: ForestEdges,
    ) -> Result<(), EngineError> {
        let forest = UnionFind::<I, I::Atomic>::new(labels);
        let context = ExecContext::new(&self.common, &self.stored);
        let cached = self.cache.orientation(false);
        let lists = match self.common.ranks.alone() {
            true => &cached.lists,
            false => &cached.incoming,
        };
        let lists = lists.as_ref().filter(|_| edges != ForestEdges::Cells);
        let traffic = &self.common.traffic;
        let (label, vertices) = (size_of::<I>() as u64, context.batches.vertices());
        // Each edge looks at the labels of both its ends, and each vertex is given one. Cells are counted where they go by.
        let count = |pass: &PassMetrics| {
            traffic.shared(|worker, part| {
                let (edges, messages) = (part(pass.edges), part(pass.messages));
                if let Some(lists) = lists {
                    // Where lists begin is gone through in order, of vertices without edges too.
                    lists.count(worker, 0, edges);
                    let begins = part(vertices) * size_of::<u64>() as u64;
                    worker.read(DataKind::Index, Access::Sequential, begins);
                }
                worker.read(DataKind::Vertices, Access::Random, 2 * edges * label);
                worker.write(DataKind::Vertices, Access::Random, messages * label);
            });
        };
        let (metrics, on_pass) = (&mut self.metrics, &self.common.on_pass);
        let mut tell = listed(&*self.common.clock, on_pass, metrics, traffic, count);
        let Some(lists) = lists else {
            if context.graph.layout() == Layout::Stream {
                return unite_chunks(&context, forest, tell);
            }
            return afforest::unite_cells(&context, &cached.cell_cache, forest, tell);
        };
        let against = self.cache.orientation(true).lists.as_ref();
        let against = against.filter(|_| self.common.ranks.alone());
        let (own, batches) = (context.ranks.own(), &context.batches);
        let own = batches.cut(own.start) as usize..batches.cut(own.end) as usize;
        with_words!(lists, |WORDS| {
            if edges != ForestEdges::Rest {
                afforest::unite_neighbours::<I, _, WORDS>(
                    &context,
                    lists,
                    own.clone(),
                    forest,
                    &mut tell,
                )?;
            }
            if edges != ForestEdges::Neighbours {
                afforest::unite_rest::<I, _, WORDS>(
                    &context, lists, against, own, forest, &mut tell,
                )?;
            }
            Ok(())
        })
    }
}

/// Unites the ends of the arcs of all chunks; flat at the end.
fn unite_chunks<I: AtomicScalar, A: AtomicCell<I>>(
    context: &ExecContext,
    forest: UnionFind<'_, I, A>,
    mut tell: impl FnMut(PassMetrics),
) -> Result<(), EngineError> {
    afforest::all(context, forest.len(), |v| {
        forest.set_parent(v, I::of_index(v as u64));
    })?;
    let (batches, symmetric) = (&context.batches, context.graph.symmetric());
    let pass = scan::visit(context, false, |_, source_batch, chunk, _| {
        // Where each arc has its opposite, one of the two is enough.
        let wanted = |run: &ChunkRun| !symmetric || source_batch <= run.destination_batch;
        for run in chunk.runs().filter(wanted) {
            let starts = [source_batch, run.destination_batch].map(|batch| batches.start(batch));
            chunk.for_each(&run, |source, destination, _| {
                let source = I::of_index(starts[0] + u64::from(source));
                let destination = I::of_index(starts[1] + u64::from(destination));
                forest.union_and_compress(source, destination);
            });
        }
        Ok(())
    })?;
    afforest::flatten(context, forest)?;
    tell(pass);
    Ok(())
}

/// The edges whose ends are united.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ForestEdges {
    /// All, cell by cell.
    Cells,
    /// All, over lists.
    Lists,
    /// Those to the first two neighbours in a list.
    Neighbours,
    /// Those that are left after the neighbours.
    Rest,
}
