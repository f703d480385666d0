//! Rounds of a count program: over adjacency lists where they fit in memory, otherwise window by window.

use graphmill_raw::AtomicScalar;
use graphmill_storage::DataKind;

use crate::cache::adjacency::AdjacencyLists;
use crate::config::EdgeResidency;
use crate::context::ExecContext;
use crate::driver::count_windows::{CountReaching, SendLabels};
use crate::driver_log::call_name;
use crate::engine::Engine;
use crate::error::{EngineError, ensure};
use crate::exec::in_memory::label_counts::LabelRound;
use crate::exec::label_windows::WindowSizes;
use crate::frontier::active_set::ActiveSet;
use crate::metrics::run::{Mode, PassMetrics};
use crate::metrics::traffic::Access;
use crate::program::count::CountProgram;
use crate::program::current_call::catch;
use crate::program::edge::Direction;
use crate::program::footprint::ProgramFootprint;
use crate::state::rows::{ColumnAccess, OutDegree, Read, Write};
use crate::state::vertex_array::{VertexArray, elements_mut};

/// Returns the footprint of a count program over a graph, whose own arrays have `arrays` bytes a row.
///
/// Of a directed graph the engine also keeps the number of arcs into each vertex.
#[must_use]
pub fn count_footprint<P: CountProgram>(symmetric: bool, arrays: usize) -> ProgramFootprint {
    let labels = ProgramFootprint::of::<SendLabels<P>>();
    let footprint = match symmetric {
        true => labels
            .or(ProgramFootprint::of::<CountReaching<()>>())
            .with_rows::<OutDegree>()
            .with_arrays(arrays),
        false => labels
            .or(ProgramFootprint::of::<CountReaching<Write<u64>>>())
            .with_rows::<(OutDegree, Read<u64>)>()
            .with_arrays(arrays + size_of::<u64>()),
    };
    ProgramFootprint {
        windows: WindowSizes::BYTES_MIN + WindowSizes::table_bytes::<P::Label>(),
        // The numbers of labels come first; then also the labels of one more batch.
        rows: footprint.rows.max(3 * size_of::<P::Label>()) + size_of::<u32>(),
        ..footprint
    }
}

impl Engine {
    /// Runs one round of a count program: reads the labels in `from`, and writes the next ones to `to`.
    ///
    /// A round may leave out a vertex without a neighbour in `changed`, which then keeps its label. So `changed` may be the set that
    /// the round before returned, if three conditions hold:
    ///
    /// - That round ran the same program.
    /// - It wrote the labels in `from`, and no call has changed them since.
    /// - What [`CountProgram::choose`] returns depends on the counted labels alone.
    ///
    /// Otherwise `changed` must have all vertices. Returns the vertices that this round changed.
    ///
    /// # Errors
    /// Both arrays are the same, or `changed` is of another engine. Disk, budget or the stored graph failed, or the user asked to
    /// stop.
    pub fn process_counts<P: CountProgram + 'static>(
        &mut self,
        program: &P,
        [from, to]: [VertexArray<P::Label>; 2],
        changed: &ActiveSet,
    ) -> Result<ActiveSet, EngineError> {
        let rows = [ColumnAccess::Write(to.id()), ColumnAccess::Read(from.id())];
        self.common.arrays.check(&rows)?;
        ensure(changed.is_of(&self.active), || EngineError::ForeignSet)?;
        if self.buckets.is_none() {
            self.needs_columns("a count program")?;
        }
        // The degrees of an undirected graph count the arcs into each vertex too.
        let arcs = match self.graph().symmetric() {
            true => None,
            false => Some(self.vertex_array::<u64>("arcs into each vertex")?),
        };
        let name = call_name::<P>("process_counts");
        let ((), [next]) = self.logged_many(&name, |engine| {
            if engine.buckets.is_some() {
                let next = engine.count_in_buckets(program, [from, to], arcs)?;
                return Ok(((), [next]));
            }
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
    fn count_over_lists<P: CountProgram + 'static>(
        &mut self,
        program: &P,
        [from, to]: [VertexArray<P::Label>; 2],
        changed: &ActiveSet,
    ) -> Result<Option<ActiveSet>, EngineError> {
        let is_alone = self.common.ranks.alone();
        let has_room = [from, to]
            .iter()
            .all(|array| self.common.arrays.in_memory(array.id()));
        let has_lists = match is_alone {
            true => has_room && self.lists_of_neighbours(&from)?,
            false => self.lists_of_ranks(has_room)?,
        };
        if !has_lists {
            return Ok(None);
        }
        let began = self.common.clock.now();
        let mut report = PassMetrics::new(Mode::Gather);
        report.active = changed.len();
        let mut sent = match is_alone {
            true => None,
            false => Some(self.send_labels::<P>(from, &mut report)?),
        };
        let mut arrays = [from, to].map(|array| self.common.arrays.take(array.id()));
        let mut next = self.active.empty();
        let counted = match &mut arrays {
            [Ok(old), Ok(new)] => {
                let old = match &mut sent {
                    None => Some(elements_mut(old.all())),
                    Some(scratch) => scratch.messages.as_mut().and_then(|sent| sent.all()),
                };
                let new = elements_mut::<P::Label>(new.all());
                // The arrays go back after a panic of the program too.
                catch(|| self.count_labels(program, (old, new), changed, &next, &mut report))
            }
            _ => Err(EngineError::ForeignArray),
        };
        for (array, rows) in [from, to].into_iter().zip(arrays) {
            self.common.arrays.put(array.id(), rows?);
        }
        drop(sent);
        let lacks = self.checked(counted)?;
        if self.common.ranks.total([u64::from(lacks)])? != [0] {
            self.cache.release_lists();
            // Another rank lacks memory, and this one has finished its round.
            next.refresh_counts();
            return Ok(None);
        }
        report.add_traffic(self.cache.take_traffic());
        next.agree_len()?;
        self.end_pass(began, report);
        Ok(Some(next))
    }

    /// Loads the lists of the neighbours of all vertices; returns true if they are in memory.
    fn lists_of_neighbours<L>(&mut self, labels: &VertexArray<L>) -> Result<bool, EngineError> {
        let forward = Direction::Forward;
        let walked = match self.common.options.edges {
            EdgeResidency::Disk => 0,
            EdgeResidency::Auto | EdgeResidency::Memory => u64::MAX,
        };
        let has_lists = self.lists_are_worth_it(false, forward, walked)?
            && self.lists_for(false, forward, labels, false)?;
        if has_lists && !self.graph().symmetric() {
            let leave = self.work_over_lists(0).max(self.borrowed);
            let context = ExecContext::new(&self.common, &self.stored);
            self.cache.load_incoming(&context, false, leave)?;
            self.take_loading();
            self.count_held();
        }
        Ok(has_lists)
    }

    /// Loads the lists of the neighbours of each rank's vertices; returns true if all ranks have them.
    fn lists_of_ranks(&mut self, has_room: bool) -> Result<bool, EngineError> {
        let (is_symmetric, has_both) = (self.graph().symmetric(), self.transposed.is_some());
        if self.common.options.edges == EdgeResidency::Disk || !is_symmetric && !has_both {
            return Ok(false);
        }
        let shape = &self.common.shape;
        let leave = shape
            .reserve_with_degrees(self.common.sizes, 0)
            .max(self.borrowed);
        Ok(self.common.ranks.total([u64::from(!has_room)])? == [0]
            && self.incoming_lists(false, true, leave)?
            && (is_symmetric || self.incoming_lists(true, true, leave)?))
    }

    /// Counts the labels `old` of all vertices, and adds the vertices that change to `next`.
    ///
    /// Returns true if it lacks memory for the lists, the labels or the tables.
    fn count_labels<P: CountProgram>(
        &self,
        program: &P,
        (old, new): (Option<&mut [P::Label]>, &mut [P::Label]),
        changed: &ActiveSet,
        next: &ActiveSet,
        report: &mut PassMetrics,
    ) -> Result<bool, EngineError> {
        let context = ExecContext::new(&self.common, &self.stored);
        let is_alone = self.common.ranks.alone();
        let [stored, transposed] = [false, true].map(|side| self.cache.orientation(side));
        let [along, against] = match is_alone {
            true => [&stored.lists, &stored.incoming],
            false => [&stored.incoming, &transposed.incoming],
        };
        let lists: [Option<&AdjacencyLists>; 2] = match self.graph().symmetric() {
            true => [along.as_ref(), None],
            false => [along.as_ref(), against.as_ref()],
        };
        let has_lists = lists.iter().flatten().count() == self.neighbour_directions().len();
        let (Some(old), true) = (old, has_lists) else {
            return Ok(true);
        };
        let Some(mut round) = LabelRound::new(&context, program, lists)? else {
            return Ok(true);
        };
        // Which vertices of other ranks have changed is not known here.
        if is_alone && changed.len() < self.vertices() {
            round.mark_neighbours(changed)?;
        }
        let (vertices, label) = (new.len() as u64, size_of::<P::Label>() as u64);
        let edges = round.run(old, P::Label::shared(new))?;
        round.add_changed(next)?;
        report.edges += edges;
        self.common.traffic.shared(|worker, part| {
            for lists in lists.iter().flatten() {
                lists.count(worker, part(vertices), 0);
            }
            let records = part(edges) * size_of::<u32>() as u64;
            worker.read(DataKind::Edges, Access::Random, records);
            let (read, written) = (part(edges) * label, part(vertices) * label);
            worker.read(DataKind::Vertices, Access::Random, read);
            worker.write(DataKind::Vertices, Access::Sequential, written);
        });
        Ok(false)
    }
}
