//! The bucket executor: its start, with rows of cells in memory and the data plane of all ranks, and its count programs.

use std::marker::PhantomData;
use std::ops::Range;

use graphmill_graph::{EdgeKind, Layout};

use crate::cache::cells::{CellCache, sums};
use crate::context::{ExecContext, Orientations};
use crate::engine::Engine;
use crate::error::{EngineError, ensure};
use crate::exec::bucket::kernel::MessageKernel;
use crate::exec::bucket::labels::{CarryLabels, ListKernel, ListRound};
use crate::exec::bucket::plane::BucketPlane;
use crate::exec::bucket::superstep::{BucketBuffers, exchange};
use crate::exec::column::kernel::pass::Pass;
use crate::frontier::active_set::ActiveSet;
use crate::metrics::run::{Mode, PassMetrics};
use crate::program::count::CountProgram;
use crate::program::edge::Direction;
use crate::state::graph_values::GraphValue;
use crate::state::rows::ColumnAccess;
use crate::state::vertex_array::VertexArray;

impl Engine {
    /// Loads the rows of this rank and joins the data planes, if the run is by the bucket executor.
    pub(crate) fn with_buckets(mut self) -> Result<Self, EngineError> {
        let Some(options) = self.common.options.buckets else {
            return Ok(self);
        };
        let graph = self.graph();
        ensure(graph.layout() == Layout::Column, || {
            EngineError::NeedsColumns {
                what: "a pass by buckets",
                path: graph.path().to_path_buf(),
            }
        })?;
        let plane = BucketPlane::join(&self.common, self.graph(), options)?;
        for transposed in [false, true]
            .into_iter()
            .take(1 + usize::from(self.transposed.is_some()))
        {
            self.hold_rows(transposed)?;
        }
        self.take_loading();
        self.common.shape = (self.common.shape).with_rows_of_cells(plane.roles.counts);
        self.buckets = Some(plane);
        Ok(self)
    }

    /// Loads the rows of this rank again if another pass freed some of their memory.
    pub(crate) fn hold_rows(&mut self, transposed: bool) -> Result<(), EngineError> {
        let weighted = self.common.sizes.weighted;
        let view = self.transposed.as_ref().filter(|_| transposed);
        let context = ExecContext::new(&self.common, view.unwrap_or(&self.stored));
        let [data, ..] = sums(&context, weighted);
        if data == 0 || self.cache.orientation(transposed).has_all(weighted) {
            return Ok(());
        }
        self.cache.pin_again(&context, transposed, weighted)?;
        let room = context.budget.available() + self.cache.leased_bytes();
        let is_whole = self.cache.orientation(transposed).has_all(weighted);
        ensure(is_whole, || EngineError::TooSmall {
            what: "the rows of edges of this rank",
            least: (context.budget.total().saturating_sub(room))
                .saturating_add(CellCache::memory(&context, weighted)),
            budget: context.budget.total(),
        })
    }

    /// Runs a round of a count program: all labels travel, and those that reach a vertex are listed.
    pub(crate) fn count_in_buckets<P: CountProgram + 'static>(
        &mut self,
        program: &P,
        [from, to]: [VertexArray<P::Label>; 2],
        arcs: Option<VertexArray<u64>>,
    ) -> Result<ActiveSet, EngineError> {
        if let Some(arcs) = arcs.filter(|_| !self.arcs_are_counted) {
            self.count_arcs(arcs)?;
        }
        let began = self.common.clock.now();
        let mut of_counts = vec![ColumnAccess::Graph(GraphValue::OutDegree)];
        of_counts.extend(arcs.map(|arcs| ColumnAccess::Read(arcs.id())));
        let of_labels = [ColumnAccess::Write(to.id()), ColumnAccess::Read(from.id())];
        self.load_degrees(&of_counts)?;
        let mut all = self.active.empty();
        all.insert_all()?;
        let [signal, _] = self.prepare_rows(Some(&all), from.read(), ())?;
        self.workspaces = None;
        let directions = self.neighbour_directions();
        for direction in directions {
            let is_against = *direction == Direction::Backward;
            ensure(!is_against || self.transposed.is_some(), || {
                let path = self.graph().path().to_path_buf();
                EngineError::NeedsReverse { path }
            })?;
            let held = self.hold_rows(is_against);
            self.checked(held)?;
        }
        let mut next = self.active.empty();
        let mut report = PassMetrics::new(Mode::Buckets);
        report.active = self.vertices();
        let supersteps = self.supersteps..self.supersteps + directions.len() as u64;
        self.supersteps = supersteps.end;
        let counted = self.list_labels(
            program,
            [&of_counts, &of_labels, &signal],
            (&all, &next),
            supersteps,
            &mut report,
        );
        self.checked(counted)?;
        next.refresh_counts();
        next.agree_len()?;
        self.end_pass(began, report);
        Ok(next)
    }

    /// Lists the labels that reach each vertex, and chooses its next one.
    ///
    /// Adds the vertices that change to `next`.
    fn list_labels<P: CountProgram + 'static>(
        &self,
        program: &P,
        [of_counts, of_labels, signal]: [&[ColumnAccess]; 3],
        (all, next): (&ActiveSet, &ActiveSet),
        supersteps: Range<u64>,
        report: &mut PassMetrics,
    ) -> Result<(), EngineError> {
        let plane = self.buckets.as_ref().ok_or(EngineError::Broken)?;
        let stored = ExecContext::new(&self.common, &self.stored);
        let mut ready = BucketBuffers::of_lists::<CarryLabels<P>>(&stored, plane)?;
        let round = ListRound {
            context: &stored,
            plane,
            program,
            of_counts,
            of_labels,
        };
        round.begin(&ready.lanes)?;
        let carry = CarryLabels::<P>(PhantomData);
        let kernel = ListKernel(MessageKernel {
            program: &carry,
            edge: EdgeKind::None,
        });
        for (direction, number) in self.neighbour_directions().iter().zip(supersteps) {
            let is_against = *direction == Direction::Backward;
            let view = self.transposed.as_ref().filter(|_| is_against);
            let context = ExecContext::new(&self.common, view.unwrap_or(&self.stored));
            let pass = Pass {
                context: &context,
                orientations: Orientations {
                    stored: ExecContext::new(&self.common, &self.stored),
                    transposed: None,
                },
                direction: *direction,
                program: &carry,
                signal,
                apply: &[],
                active: all,
                folding: &self.common.ranks.own(),
                borrowed: self.borrowed,
            };
            let cells = &self.cache.orientation(is_against).cell_cache;
            exchange(&pass, number, (plane, cells), &kernel, &mut ready, report)?;
        }
        round.choose(&ready.lanes, next)
    }
}
