//! Rounds of a count program: over adjacency lists where they fit in memory, otherwise window by window.

use graphmill_raw::AtomicScalar;
use graphmill_storage::DataKind;

use crate::config::EdgeResidency;
use crate::context::ExecContext;
use crate::driver::count_windows::{CountReaching, FillLabels, WINDOW_BYTES_MIN};
use crate::driver_log::call_name;
use crate::engine::Engine;
use crate::error::EngineError;
use crate::exec::in_memory::label_counts::LabelRound;
use crate::frontier::active_set::ActiveSet;
use crate::metrics::run::{Mode, PassMetrics};
use crate::metrics::traffic::Access;
use crate::program::count::CountProgram;
use crate::program::edge::Direction;
use crate::program::footprint::ProgramFootprint;
use crate::state::rows::{OutDegree, Read, Write};
use crate::state::vertex_array::{VertexArray, elements_mut};

/// Returns the footprint of a count program.
#[must_use]
pub fn count_footprint<P: CountProgram>() -> ProgramFootprint {
    ProgramFootprint {
        windows: WINDOW_BYTES_MIN,
        ..ProgramFootprint::of::<FillLabels<P>>()
            .or(ProgramFootprint::of::<CountReaching<Write<u64>>>())
            .with_rows::<(Read<P::Label>, Write<P::Label>, OutDegree)>()
    }
}

impl Engine {
    /// Runs one round of a count program: reads the labels in `from`, and writes the next ones to `to`.
    ///
    /// `changed` are the vertices whose labels the round before changed, or all. A vertex that has none of them as a
    /// neighbour keeps its label. Returns the vertices that this round changed.
    ///
    /// # Errors
    /// Disk, budget or the stored graph failed, or the user asked to stop.
    pub fn process_counts<P: CountProgram + 'static>(
        &mut self,
        program: &P,
        [from, to]: [VertexArray<P::Label>; 2],
        changed: &ActiveSet,
    ) -> Result<ActiveSet, EngineError> {
        // The degrees of an undirected graph count the arcs into each vertex too.
        let arcs = match self.graph().symmetric() {
            true => None,
            false => Some(self.vertex_array::<u64>("arcs into each vertex")?),
        };
        let name = call_name::<P>("process_counts");
        let ((), [next]) = self.logged_many(&name, |engine| {
            if !engine.counts_by_windows
                && let Some(next) = engine.count_over_lists(program, [from, to], changed)?
            {
                return Ok(((), [next]));
            }
            engine.counts_by_windows = true;
            let next = engine.count_by_windows(program, [from, to], arcs, changed)?;
            Ok(((), [next]))
        })?;
        Ok(next)
    }

    /// Runs a round over adjacency lists; `None` if they, or the labels, do not fit in memory.
    fn count_over_lists<P: CountProgram>(
        &mut self,
        program: &P,
        [from, to]: [VertexArray<P::Label>; 2],
        changed: &ActiveSet,
    ) -> Result<Option<ActiveSet>, EngineError> {
        let forward = Direction::Forward;
        let walked = match self.common.options.edges {
            EdgeResidency::Disk => 0,
            EdgeResidency::Auto | EdgeResidency::Memory => u64::MAX,
        };
        let has_lists = self.common.ranks.alone()
            && self.common.arrays.in_memory(to.id())
            && self.lists_are_worth_it(false, forward, walked)?
            && self.lists_for(false, forward, &from, false)?;
        if !has_lists {
            return Ok(None);
        }
        if !self.graph().symmetric() {
            let leave = self.work_over_lists(0).max(self.borrowed);
            let context = ExecContext::new(&self.common, &self.stored);
            self.cache.load_incoming(&context, false, leave)?;
            self.take_loading();
            self.count_held();
        }
        let began = self.common.clock.now();
        let [mut old, mut new] = [
            self.common.arrays.take(from.id())?,
            self.common.arrays.take(to.id())?,
        ];
        let mut next = self.active.empty();
        let labels = [old.all(), new.all()].map(elements_mut::<P::Label>);
        let counted = self.count_labels(program, labels, changed, &next);
        self.common.arrays.put(from.id(), old);
        self.common.arrays.put(to.id(), new);
        self.broken = counted.is_err();
        let counted = counted.map_err(|error| self.too_small(error))?;
        let Some(report) = counted else {
            return Ok(None);
        };
        next.agree_len()?;
        self.end_pass(began, report);
        Ok(Some(next))
    }

    /// Counts the labels `old`, and adds the vertices that change to `next`.
    ///
    /// Returns `None` if there is no room for the lists against the arcs, or for the tables.
    fn count_labels<P: CountProgram>(
        &self,
        program: &P,
        [old, new]: [&mut [P::Label]; 2],
        changed: &ActiveSet,
        next: &ActiveSet,
    ) -> Result<Option<PassMetrics>, EngineError> {
        let context = ExecContext::new(&self.common, &self.stored);
        let cached = self.cache.orientation(false);
        let lists = match (&cached.lists, &cached.incoming) {
            (Some(lists), _) if self.graph().symmetric() => [Some(lists), None],
            (Some(lists), Some(incoming)) => [Some(lists), Some(incoming)],
            _ => return Ok(None),
        };
        let Some(mut round) = LabelRound::new(&context, program, lists) else {
            return Ok(None);
        };
        if changed.len() < self.vertices() {
            round.mark_neighbours(changed)?;
        }
        let edges = round.run(old, P::Label::shared(new))?;
        round.add_changed(next)?;
        let (vertices, label) = (self.vertices(), size_of::<P::Label>() as u64);
        self.common.traffic.shared(|worker, part| {
            for lists in lists.iter().flatten() {
                lists.count(worker, part(vertices), 0);
            }
            worker.read(
                DataKind::Edges,
                Access::Random,
                part(edges) * size_of::<u32>() as u64,
            );
            worker.read(DataKind::Vertices, Access::Random, part(edges) * label);
            worker.write(
                DataKind::Vertices,
                Access::Sequential,
                part(vertices) * label,
            );
        });
        Ok(Some(PassMetrics {
            active: changed.len(),
            edges,
            messages: changed.len(),
            ..PassMetrics::new(Mode::Gather)
        }))
    }
}
