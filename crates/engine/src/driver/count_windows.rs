//! A round of a count program whose lists do not fit in memory: window by window.
//!
//! The vertices of this rank are cut into windows whose labels fit in memory. For each window, passes over edges put the labels of all
//! neighbours in, and a pass over rows counts them. A vertex with more labels than fit is a window of its own. Its labels are counted
//! range by range: a pass counts the least labels that fit, and the next pass those that come after them.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use graphmill_raw::{AtomicCell, AtomicScalar, lock};
use graphmill_storage::Lease;

use crate::engine::Engine;
use crate::error::{EngineError, ensure};
use crate::frontier::active_set::ActiveSet;
use crate::program::count::{CountProgram, count_sorted};
use crate::program::edge::{Activate, Direction, EdgeProgram};
use crate::program::footprint::ProgramFootprint;
use crate::state::rows::{OutDegree, Read, Rows, Write};
use crate::state::vertex_array::VertexArray;

/// Bytes of a window, at least.
pub(crate) const WINDOW_BYTES_MIN: u64 = 1 << 20;
/// A window takes this share of the budget, at most.
const WINDOW_ONE_IN: u64 = 8;
/// Only neighbours of changed vertices count, if at most one vertex in 16 changed.
const FEW_ONE_IN: u64 = 16;

impl Engine {
    /// Runs a round window by window; `arcs` has the number of arcs into each vertex of a directed graph.
    pub(crate) fn count_by_windows<P: CountProgram + 'static>(
        &mut self,
        program: &P,
        [from, to]: [VertexArray<P::Label>; 2],
        arcs: Option<VertexArray<u64>>,
        changed: &ActiveSet,
    ) -> Result<ActiveSet, EngineError> {
        let mut all = self.active.empty();
        all.insert_all()?;
        if let Some(arcs) = arcs.filter(|_| !self.arcs_are_counted) {
            self.count_arcs(arcs, &all)?;
        }
        let mut reached = None;
        if changed.len() <= self.vertices() / FEW_ONE_IN {
            reached = Some(self.neighbours_of(changed)?);
            self.vertices_pass((from.read(), to.write()), None, None, |_, (old, new)| {
                *new = *old;
                ((), Activate::No)
            })?;
        }
        let counting = reached.as_ref().unwrap_or(&all);
        let (sizes, _lease, mut windows) = self.label_windows::<P::Label>(arcs, counting)?;
        let (mut next, mut begun) = (self.active.empty(), None);
        while self.common.ranks.total([windows.len() as u64])? != [0] {
            let window = windows.front().cloned().unwrap_or_default();
            let part = self.members_within(counting, &window.vertices)?;
            let labels = match begun.take() {
                Some(labels) => labels,
                None => WindowLabels::<P>::open(&window, sizes),
            };
            let mut fill = FillLabels { labels };
            self.each_arc_count(arcs, &part, |v, count| fill.labels.expect(v, count))?;
            fill.labels.begin();
            let folding = self.batches_of(&window);
            for direction in self.label_directions() {
                let rows = (from.read(), ());
                self.edges_pass(&fill, rows, &all, *direction, &folding)?;
            }
            let is_done = fill.labels.end(program);
            let labels = &fill.labels;
            let rows = (from.read(), to.write());
            self.vertices_pass(rows, Some(&part), Some(&next), |v, (old, new)| {
                *new = labels.choose(program, v).unwrap_or(*old);
                ((), Activate::when(*new != *old))
            })?;
            match is_done {
                true => drop(windows.pop_front()),
                false => begun = Some(fill.labels),
            }
        }
        next.agree_len()?;
        Ok(next)
    }

    /// The directions in which labels travel: both, unless each arc has its opposite.
    fn label_directions(&self) -> &'static [Direction] {
        match self.graph().symmetric() {
            true => &[Direction::Forward],
            false => &[Direction::Forward, Direction::Backward],
        }
    }

    /// Counts the arcs into each vertex of a directed graph.
    fn count_arcs(&mut self, arcs: VertexArray<u64>, all: &ActiveSet) -> Result<(), EngineError> {
        self.vertices_pass(arcs.write(), None, None, |_, arcs| {
            *arcs = 0;
            ((), Activate::No)
        })?;
        let (own, rows) = (self.common.ranks.own(), ((), arcs.write()));
        let count = CountReaching(|arcs: &mut u64, count| *arcs = count);
        self.edges_pass::<CountReaching<Write<u64>>>(&count, rows, all, Direction::Forward, &own)?;
        self.arcs_are_counted = true;
        Ok(())
    }

    /// Returns the neighbours of some vertices.
    fn neighbours_of(&mut self, vertices: &ActiveSet) -> Result<ActiveSet, EngineError> {
        let (own, mut reached) = (self.common.ranks.own(), self.active.empty());
        for direction in self.label_directions() {
            let (_, more) = self.edges_pass::<CountReaching<()>>(
                &CountReaching(|(), _| ()),
                ((), ()),
                vertices,
                *direction,
                &own,
            )?;
            reached.union(&more)?;
        }
        Ok(reached)
    }

    /// Calls `visit` with each of some vertices and the number of labels that reach it.
    fn each_arc_count(
        &mut self,
        arcs: Option<VertexArray<u64>>,
        of: &ActiveSet,
        visit: impl Fn(u64, u64) + Sync,
    ) -> Result<(), EngineError> {
        match arcs {
            None => self.vertices_pass(OutDegree, Some(of), None, |v, degree| {
                visit(v, degree);
                ((), Activate::No)
            }),
            Some(arcs) => {
                let rows = (arcs.read(), OutDegree);
                self.vertices_pass(rows, Some(of), None, |v, (arcs, degree)| {
                    visit(v, arcs + degree);
                    ((), Activate::No)
                })
            }
        }
    }

    /// Cuts some vertices of this rank into windows whose labels fit in memory.
    ///
    /// It evicts cells for them.
    fn label_windows<L: AtomicScalar>(
        &mut self,
        arcs: Option<VertexArray<u64>>,
        of: &ActiveSet,
    ) -> Result<(WindowSizes, Lease, VecDeque<LabelWindow>), EngineError> {
        let sizes = ProgramFootprint {
            windows: 0,
            ..self.common.sizes.with_result(0)
        };
        let shape = &self.common.shape;
        let reserve = shape.reserve(sizes, self.common.on_disk_with(0)) - shape.later();
        let wanted = (self.common.budget.total() / WINDOW_ONE_IN).max(WINDOW_BYTES_MIN);
        // The lease lasts as long as the round: its passes need not leave as much free.
        let borrowed = self.borrowed;
        self.evict_to_free(reserve.saturating_add(wanted));
        self.borrowed = borrowed;
        if self.common.budget.available() < reserve.saturating_add(WINDOW_BYTES_MIN) {
            self.release();
        }
        let room = self.common.budget.available().saturating_sub(reserve);
        ensure(room >= WINDOW_BYTES_MIN, || EngineError::TooSmall {
            what: "a window of labels",
            least: self.common.budget.total() + WINDOW_BYTES_MIN - room,
            budget: self.common.budget.total(),
        })?;
        let sizes = WindowSizes {
            room: room.min(wanted),
            label: size_of::<L>() as u64,
            workers: self.common.workers.count() as u64,
        };
        let batches = Arc::clone(&self.common.batches);
        let cut: Vec<_> = (0..batches.len()).map(|_| Mutex::default()).collect();
        self.each_arc_count(arcs, of, |v, labels| {
            // The vertices of a batch come in order, from one worker.
            let more = LabelWindow {
                vertices: v..v + 1,
                labels,
                most: labels,
            };
            sizes.add(&mut lock(&cut[batches.batch_of(v)]), more);
        })?;
        let mut windows = VecDeque::new();
        for window in cut
            .iter()
            .flat_map(|of_batch| std::mem::take(&mut *lock(of_batch)))
        {
            sizes.add(&mut windows, window);
        }
        let bytes = windows.iter().map(|window| sizes.bytes(window));
        let most = bytes.max().unwrap_or(0).min(sizes.room);
        let lease = self.common.budget.lease("labels of a window", most);
        let lease = lease.map_err(|error| self.too_small(error.into()))?;
        Ok((sizes, lease, windows))
    }

    /// Returns the batches that have vertices of a window.
    fn batches_of(&self, window: &LabelWindow) -> Range<usize> {
        let batches = &self.common.batches;
        match window.vertices.end.checked_sub(1) {
            Some(last) => batches.batch_of(window.vertices.start)..batches.batch_of(last) + 1,
            None => 0..0,
        }
    }
}

/// A range of vertices, and how many labels reach them.
#[derive(Clone, Debug, Default)]
struct LabelWindow {
    vertices: Range<u64>,
    labels: u64,
    /// Of them for one vertex, at most.
    most: u64,
}

/// Sizes on which the memory of a window depends.
#[derive(Clone, Copy, Debug)]
struct WindowSizes {
    /// Bytes of a window, at most.
    room: u64,
    /// Bytes of a label.
    label: u64,
    workers: u64,
}

impl WindowSizes {
    /// Returns the bytes that a window takes.
    ///
    /// These are where labels begin and go, the labels, and a sorted list for each worker.
    fn bytes(self, window: &LabelWindow) -> u64 {
        let vertices = window.vertices.end - window.vertices.start;
        let labels = window.labels + self.workers * window.most;
        2 * size_of::<u64>() as u64 * (vertices + 1) + labels * self.label
    }

    /// Adds the next vertices to the last window if they fit there, otherwise as a window of their own.
    fn add(self, windows: &mut VecDeque<LabelWindow>, more: LabelWindow) {
        if let Some(last) = windows.back_mut() {
            let both = LabelWindow {
                vertices: last.vertices.start..more.vertices.end,
                labels: last.labels + more.labels,
                most: last.most.max(more.most),
            };
            if self.bytes(&both) <= self.room {
                *last = both;
                return;
            }
        }
        windows.push_back(more);
    }
}

/// The labels that reach the vertices of a window.
enum WindowLabels<P: CountProgram> {
    Each(EachLabels<P::Label>),
    /// Of a vertex with more labels than fit.
    One(u64, Mutex<LabelRange<P>>),
}

impl<P: CountProgram> WindowLabels<P> {
    fn open(window: &LabelWindow, sizes: WindowSizes) -> Self {
        if sizes.bytes(window) > sizes.room {
            let range = LabelRange::new(sizes.room as usize);
            return WindowLabels::One(window.vertices.start, Mutex::new(range));
        }
        let count = (window.vertices.end - window.vertices.start) as usize;
        let sorted = || Mutex::new(Vec::with_capacity(window.most as usize));
        WindowLabels::Each(EachLabels {
            first: window.vertices.start,
            begins: vec![0; count + 1],
            nexts: (0..count).map(|_| AtomicU64::new(0)).collect(),
            labels: (0..window.labels).map(|_| Default::default()).collect(),
            sorted: (0..sizes.workers).map(|_| sorted()).collect(),
        })
    }

    /// States the number of labels that reach a vertex.
    fn expect(&self, v: u64, count: u64) {
        if let WindowLabels::Each(labels) = self
            && let Some(next) = labels.nexts.get(v.wrapping_sub(labels.first) as usize)
        {
            next.store(count, Ordering::Relaxed);
        }
    }

    /// Begins a pass that puts labels in.
    fn begin(&mut self) {
        if let WindowLabels::Each(labels) = self {
            let mut from = 0;
            for (begin, next) in labels.begins.iter_mut().zip(&mut labels.nexts) {
                *begin = from;
                from += std::mem::replace(next.get_mut(), from);
            }
            if let Some(end) = labels.begins.last_mut() {
                *end = from;
            }
        }
    }

    #[inline(always)]
    fn put(&self, v: u64, label: P::Label) {
        match self {
            WindowLabels::Each(labels) => labels.put(v, label),
            WindowLabels::One(one, range) if v == *one => lock(range).put(label),
            WindowLabels::One(..) => (),
        }
    }

    /// Ends a pass; returns false if the vertex has labels that no pass has counted yet.
    fn end(&mut self, program: &P) -> bool {
        match self {
            WindowLabels::Each(_) => true,
            WindowLabels::One(_, range) => lock(range).end(program),
        }
    }

    /// The next label of a vertex; `None` if it has no neighbours, or not all its labels are counted.
    fn choose(&self, program: &P, v: u64) -> Option<P::Label> {
        match self {
            WindowLabels::Each(labels) => labels.choose(program, v),
            WindowLabels::One(_, range) => Some(program.choose(lock(range).choice)),
        }
    }
}

/// The labels that reach each vertex of a window.
struct EachLabels<L: AtomicScalar> {
    first: u64,
    /// Where the labels of each vertex begin, and where the last ones end.
    begins: Vec<u64>,
    /// The number of labels of each vertex, then where the next one goes.
    nexts: Vec<AtomicU64>,
    labels: Vec<L::Atomic>,
    /// By worker: the labels of one vertex.
    sorted: Vec<Mutex<Vec<L>>>,
}

impl<L: AtomicScalar> EachLabels<L> {
    #[inline(always)]
    fn put(&self, v: u64, label: L) {
        let i = v.wrapping_sub(self.first) as usize;
        let Some([begin, end]) = self.begins.get(i..i.saturating_add(2)) else {
            return;
        };
        // Vertices that do not count in this round have no room.
        if begin < end {
            let place = self.nexts[i].fetch_add(1, Ordering::Relaxed);
            // More labels than arcs come from a damaged cell, which the pass reports.
            if let Some(place) = self.labels[..*end as usize].get(place as usize) {
                place.store(label);
            }
        }
    }

    fn choose<P: CountProgram<Label = L>>(&self, program: &P, v: u64) -> Option<L> {
        let i = v.wrapping_sub(self.first) as usize;
        let [begin, end] = *self.begins.get(i..i.saturating_add(2))? else {
            return None;
        };
        let labels = self.labels.get(begin as usize..end as usize)?;
        // There is one list for each worker, so one is free.
        let mut sorted = self
            .sorted
            .iter()
            .find_map(|sorted| sorted.try_lock().ok())?;
        sorted.clear();
        sorted.extend(labels.iter().map(AtomicCell::load));
        let mut choice = P::NONE;
        count_sorted(program, &mut choice, &mut sorted);
        (!sorted.is_empty()).then(|| program.choose(choice))
    }
}

/// The counts of a range of the labels that reach one vertex.
struct LabelRange<P: CountProgram> {
    /// Earlier passes have counted the labels before this one.
    from: Option<P::Label>,
    /// Later passes count this label and all after it.
    end: Option<P::Label>,
    /// Labels in order, with the number of times that each came.
    counts: Vec<(P::Label, u64)>,
    /// Labels that are not counted yet.
    arrived: Vec<P::Label>,
    /// Room of both lists.
    capacity: usize,
    choice: P::Choice,
}

impl<P: CountProgram> LabelRange<P> {
    fn new(bytes: usize) -> Self {
        // Arrived labels are appended to the counts before they are sorted in.
        let each = 2 * size_of::<(P::Label, u64)>() + size_of::<P::Label>();
        let capacity = (bytes / each).max(1);
        LabelRange {
            from: None,
            end: None,
            counts: Vec::with_capacity(2 * capacity),
            arrived: Vec::with_capacity(capacity),
            capacity,
            choice: P::NONE,
        }
    }

    fn put(&mut self, label: P::Label) {
        let is_counted = self.from.is_some_and(|from| label < from);
        if is_counted || self.end.is_some_and(|end| label >= end) {
            return;
        }
        self.arrived.push(label);
        if self.arrived.len() == self.capacity {
            self.count_arrived();
        }
    }

    /// Counts the labels that arrived; drops the counts of the greatest labels if there are too many.
    fn count_arrived(&mut self) {
        self.arrived.sort_unstable();
        let equal = self.arrived.chunk_by(|one, next| one == next);
        let arrived = equal.map(|equal| (equal[0], equal.len() as u64));
        self.counts.extend(arrived);
        self.arrived.clear();
        self.counts.sort_unstable_by_key(|count| count.0);
        self.counts.dedup_by(|later, first| {
            let is_same = later.0 == first.0;
            first.1 += if is_same { later.1 } else { 0 };
            is_same
        });
        if let Some((end, _)) = self.counts.get(self.capacity) {
            self.end = Some(*end);
            self.counts.truncate(self.capacity);
        }
    }

    /// Takes the counts of a pass into the choice; returns true if that were all labels.
    fn end(&mut self, program: &P) -> bool {
        self.count_arrived();
        for (label, times) in self.counts.drain(..) {
            program.count(&mut self.choice, label, times);
        }
        self.from = self.end.take();
        self.from.is_none()
    }
}

/// A pass that puts the labels of senders into a window.
pub(crate) struct FillLabels<P: CountProgram> {
    labels: WindowLabels<P>,
}

impl<P: CountProgram> EdgeProgram for FillLabels<P> {
    type SignalRows = Read<P::Label>;
    type ApplyRows = ();
    type Edge = ();
    type Message = P::Label;
    type EdgeMessage = ();
    type Accumulator = u8;
    type Sum = ();
    const IDENTITY: u8 = 0;
    const ORDER_INDEPENDENT: bool = true;

    #[inline(always)]
    fn signal(&self, _: u64, label: &P::Label) -> Option<P::Label> {
        Some(*label)
    }
    #[inline(always)]
    fn on_edge(&self, _: P::Label, (): ()) {}
    #[inline(always)]
    fn on_arc(&self, _: u64, receiver: u64, label: P::Label, (): ()) {
        self.labels.put(receiver, label);
    }
    #[inline(always)]
    fn fold(&self, _: &mut u8, (): ()) {}
    #[inline(always)]
    fn merge(&self, _: &mut u8, _: u8) {}
    fn apply(&self, _: u64, (): (), _: u8) -> ((), Activate) {
        ((), Activate::No)
    }
}

/// A pass that counts the arcs that reach each vertex, and activates it.
///
/// The function takes the count into the row.
pub(crate) struct CountReaching<R: Rows>(for<'r> fn(R::Row<'r>, u64));

impl<R: Rows> EdgeProgram for CountReaching<R> {
    type SignalRows = ();
    type ApplyRows = R;
    type Edge = ();
    type Message = u8;
    type EdgeMessage = ();
    type Accumulator = u64;
    type Sum = ();
    const IDENTITY: u64 = 0;
    const ORDER_INDEPENDENT: bool = true;

    #[inline(always)]
    fn signal(&self, _: u64, (): ()) -> Option<u8> {
        Some(0)
    }
    #[inline(always)]
    fn on_edge(&self, _: u8, (): ()) {}
    #[inline(always)]
    fn fold(&self, count: &mut u64, (): ()) {
        *count += 1;
    }
    #[inline(always)]
    fn merge(&self, count: &mut u64, later: u64) {
        *count += later;
    }
    fn apply(&self, _: u64, row: R::Row<'_>, count: u64) -> ((), Activate) {
        self.0(row, count);
        ((), Activate::Yes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The labels with their counts, in the order in which they are counted.
    struct Listed(Mutex<Vec<(u32, u64)>>);

    impl CountProgram for Listed {
        type Label = u32;
        type Choice = u32;
        const NONE: u32 = 0;

        fn count(&self, choice: &mut u32, label: u32, times: u64) {
            *choice += 1;
            lock(&self.0).push((label, times));
        }
        fn choose(&self, choice: u32) -> u32 {
            choice
        }
    }

    #[test]
    fn label_range_counts_each_label_once() {
        let labels = || (0..5000_u32).map(|i| i.wrapping_mul(2_654_435_761) >> 21);
        let mut sorted: Vec<u32> = labels().collect();
        sorted.sort_unstable();
        let equal = sorted.chunk_by(|one, next| one == next);
        let expected: Vec<(u32, u64)> = equal.map(|equal| (equal[0], equal.len() as u64)).collect();
        for (bytes, passes_min) in [(1, 1000), (1000, 40), (20_000, 2), (1 << 19, 1)] {
            let mut range = LabelRange::<Listed>::new(bytes);
            let program = Listed(Mutex::default());
            let mut passes = 0;
            loop {
                labels().for_each(|label| range.put(label));
                passes += 1;
                if range.end(&program) {
                    break;
                }
            }
            assert_eq!(*lock(&program.0), expected, "{bytes} bytes");
            assert_eq!(range.choice as usize, expected.len());
            assert!(passes >= passes_min, "{passes} passes of {bytes} bytes");
        }
    }

    #[test]
    fn windows_take_what_fits_and_all_vertices() {
        let sizes = WindowSizes {
            room: 1000,
            label: 4,
            workers: 2,
        };
        let mut windows = VecDeque::new();
        let labels = |v: u64| [1, 0, 30, 300, 2, 17][v as usize % 6];
        for v in 0..60 {
            let labels = labels(v);
            let window = LabelWindow {
                vertices: v..v + 1,
                labels,
                most: labels,
            };
            sizes.add(&mut windows, window);
        }
        assert!(windows.len() > 10);
        let mut next = 0;
        for window in windows {
            assert_eq!(window.vertices.start, next);
            next = window.vertices.end;
            let of_each = window.vertices.clone().map(labels);
            assert_eq!(window.labels, of_each.clone().sum::<u64>());
            assert_eq!(Some(window.most), of_each.max());
            let is_alone = next - window.vertices.start == 1;
            assert!(sizes.bytes(&window) <= sizes.room || is_alone);
        }
        assert_eq!(next, 60);
    }
}
