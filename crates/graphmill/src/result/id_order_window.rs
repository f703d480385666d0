//! The values of a vertex array in the order of ids, where indices have another.
//!
//! A window of values in order of ids is in memory; the batches that are asked for go by, and every value whose place is in
//! the window goes there. The less memory, the more windows, and the more often the array is read. Where some batches are not asked for, marks
//! say which places have a value.

use std::ops::Range;
use std::sync::Arc;

use graphmill_algorithms::OutputValues as Array;
use graphmill_engine::Engine;
use graphmill_graph::{DISK_PAGE_BYTES, GraphDims, Order, PageCache, StoredGraph};
use graphmill_storage::{Lease, MemoryBudget};

use crate::error::Error;
use crate::result::block::ROWS_MAX;
use crate::result::values::{ValueColumn, element_bytes};

/// Frames of ranks that are read ahead.
const FRAMES: usize = 8;
/// Bytes of a rank.
const RANK_BYTES: u64 = 8;
/// Bytes of the mark of a value in a window.
const MARK_BYTES: u64 = 1;

/// Vertices of a window at least: few windows of small batches.
fn vertices_least(graph: &GraphDims) -> u64 {
    let rows = graph.batches.widest().max(ROWS_MAX as u64);
    rows.min(graph.batches.vertices())
}

/// Puts values in the order of ids.
pub(super) struct IdOrderWindow {
    graph: Arc<StoredGraph>,
    ranks: PageCache,
    /// The batches whose values are asked for.
    batches: Range<usize>,
    /// The rank of the first vertex of the next window, and vertices of a window.
    next: u64,
    vertices: u64,
    /// The values of one batch, and the ranks of its vertices.
    values: ValueColumn,
    places: Vec<u64>,
    _lease: Lease,
}

impl IdOrderWindow {
    /// Bytes of the budget that it takes of a graph at least, with values of `element` bytes.
    pub(super) fn bytes_least(graph: &GraphDims, element: u64) -> u64 {
        match graph.order {
            Order::Id => 0,
            // A batch with its ranks, and a window.
            Order::Degree => {
                let batch = (element + RANK_BYTES) * graph.batches.widest();
                let window = (element + MARK_BYTES) * vertices_least(graph);
                FRAMES as u64 * DISK_PAGE_BYTES + batch + window
            }
        }
    }

    /// Returns the additional bytes with which one window covers all vertices.
    pub(super) fn bytes_wanted(graph: &GraphDims, element: u64) -> u64 {
        match graph.order {
            Order::Id => 0,
            Order::Degree => 2 * (element + MARK_BYTES) * graph.batches.vertices(),
        }
    }

    /// Returns a window before the first element of `array` in those batches.
    ///
    /// It leaves `leave` bytes of the free memory, and half of the rest.
    pub(super) fn new(
        graph: &Arc<StoredGraph>,
        budget: &MemoryBudget,
        array: &Array,
        batches: Range<usize>,
        leave: u64,
    ) -> Result<IdOrderWindow, Error> {
        let measure = graph.measure();
        let element = element_bytes(array);
        let marked = element + MARK_BYTES;
        let least = Self::bytes_least(&measure, element);
        let more = budget.available().saturating_sub(leave + least) / 2 / marked;
        let vertices = graph.vertices().min(vertices_least(&measure) + more);
        let batch = (element + RANK_BYTES) * measure.batches.widest();
        let bytes = batch + marked * vertices;
        Ok(IdOrderWindow {
            graph: Arc::clone(graph),
            ranks: PageCache::new(graph, budget, FRAMES)?,
            batches,
            next: 0,
            vertices,
            values: ValueColumn::empty(array),
            places: Vec::new(),
            _lease: budget.lease("values in order of ids", bytes)?,
        })
    }

    /// The next window begins at that rank.
    pub(super) fn seek(&mut self, rank: u64) {
        self.next = rank;
    }

    /// Fills `held` with the values of the next window of `array`; false after the last.
    ///
    /// It fills `marks` with which places have a value, or with nothing if all have.
    pub(super) fn next(
        &mut self,
        engine: &Engine,
        array: &Array,
        held: &mut ValueColumn,
        marks: &mut Vec<bool>,
    ) -> Result<bool, Error> {
        let first = self.next;
        let count = self.vertices.min(self.graph.vertices() - first);
        if count == 0 {
            return Ok(false);
        }
        held.resize(count as usize);
        let batches = self.graph.batches();
        marks.clear();
        if self.batches != (0..batches.len()) {
            marks.resize(count as usize, false);
        }
        for batch in self.batches.clone() {
            self.values.read(engine, array, batch)?;
            self.places.clear();
            let (ranks, places) = (&mut self.ranks, &mut self.places);
            self.graph
                .each_rank(ranks, batches.range(batch), |rank| places.push(rank))?;
            // Of ranks before the window, numbers beyond any place.
            let places = || self.places.iter().map(|rank| rank.wrapping_sub(first));
            for place in places() {
                if let Some(mark) = marks.get_mut(place as usize) {
                    *mark = true;
                }
            }
            held.place(&self.values, places());
        }
        self.next += count;
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use graphmill_storage::CancelToken;

    use crate::algorithms;
    use crate::config::Config;
    use crate::import_config::ImportConfig;
    use crate::machine::resources::{Machine, MachineConfig};
    use crate::plan::Plan;
    use crate::progress::unwatched;

    #[test]
    fn id_order_windows_equal_one_window() {
        let folder = tempfile::tempdir().unwrap();
        let (edges, path) = (folder.path().join("edges.txt"), folder.path().join("graph"));
        let machine = Machine::open(&MachineConfig::default(), CancelToken::new()).unwrap();
        let line = |i: u64| format!("{} {}\n", i * i % 300_007, i * 7919 % 300_017);
        let text: String = (0..300_000).map(line).collect();
        machine.disk().write_small(&edges, text.as_bytes()).unwrap();
        let config = ImportConfig {
            order: Order::Degree,
            batch_size: Some(20_000),
            ..ImportConfig::default()
        };
        machine
            .import(&[edges], &path, &config, &unwatched())
            .unwrap();

        let graph = machine.graph(&path).unwrap();
        let mut session = machine
            .session(&graph, Default::default(), &unwatched())
            .unwrap();
        let plan = Plan::new(Config::new("wcc", &path)).unwrap();
        let settings = algorithms::given(plan.entry, &plan.config);
        let output = (plan.entry.run)(&mut session, &settings).unwrap();
        let all = 0..graph.batches().len();
        let values = |batches: Range<usize>, leave: u64| {
            let budget = machine.budget();
            let is_part = batches != all;
            let mut window =
                IdOrderWindow::new(&graph, budget, &output.values, batches, leave).unwrap();
            let (mut all, mut windows) = (Vec::new(), 0);
            let (mut held, mut marks) = (ValueColumn::empty(&output.values), Vec::new());
            while window
                .next(&session, &output.values, &mut held, &mut marks)
                .unwrap()
            {
                let ValueColumn::U32(values) = &held else {
                    panic!("components of a small graph are of 32 bits");
                };
                assert_eq!(marks.len(), if is_part { values.len() } else { 0 });
                let is_there = |place: usize| marks.get(place) != Some(&false);
                all.extend(
                    (0..)
                        .zip(values)
                        .map(|(i, value)| is_there(i).then_some(*value)),
                );
                windows += 1;
            }
            (all, windows)
        };
        let (known, one) = values(all.clone(), 0);
        let (found, many) = values(all.clone(), machine.budget().total());
        assert!(one == 1 && many > 2, "{one} {many}");
        assert_eq!(known.len() as u64, graph.vertices());
        // By rank, no component has a name that comes after its vertex.
        assert!(
            (0..)
                .zip(&known)
                .all(|(rank, name)| name.is_some_and(|name| name <= rank))
        );
        assert!(known == found);

        // Each value is in one of the parts.
        let cuts = [0, 3, all.end / 2, all.end];
        let of_parts: Vec<_> = cuts
            .windows(2)
            .map(|cut| values(cut[0]..cut[1], machine.budget().total()).0)
            .collect();
        for (place, value) in known.iter().enumerate() {
            let found: Vec<_> = of_parts.iter().filter_map(|part| part[place]).collect();
            assert_eq!(&found.first().copied(), value);
            assert_eq!(found.len(), 1);
        }
    }
}
