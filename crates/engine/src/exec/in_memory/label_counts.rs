//! One round of a count program over adjacency lists: each vertex reads the labels of its neighbours and counts them.
//!
//! A worker copies the labels of one vertex into a list, which keeps many reads in flight, and counts that list in a table of its own.
//! The few vertices with more neighbours than a list has room for are counted one at a time.
//! So a round has no atomics but one bit for each vertex that changed.

use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use graphmill_raw::{AtomicBitmap, AtomicCell, AtomicScalar, lock};
use graphmill_storage::Lease;

use crate::cache::adjacency::{AdjacencyLists, with_words};
use crate::context::{ExecContext, each_batch};
use crate::error::EngineError;
use crate::exec::in_memory::round::each_part;
use crate::exec::label_table::LabelTable;
use crate::frontier::active_set::ActiveSet;
use crate::frontier::bitmap::Bits;
use crate::program::count::CountProgram;
use crate::program::current_call::CurrentCall;

/// Vertices that a worker takes at once.
const AT_ONCE: usize = 256;
/// Vertices whose degrees a worker reads at once.
const DEGREES_AT_ONCE: usize = 1 << 14;
/// Each worker has room for lists of this length; longer ones share one room.
const LABELS_MAX: u64 = 1 << 18;
/// Neighbours are marked if they are at most this share of all.
const MARKED_ONE_IN: u64 = 4;

/// A round over the lists of all vertices of one rank.
pub(crate) struct LabelRound<'r, P: CountProgram> {
    context: &'r ExecContext<'r>,
    program: &'r P,
    /// The neighbours of this rank's vertices along the arcs, and in a directed graph against them.
    lists: [Option<&'r AdjacencyLists>; 2],
    counters: Vec<Mutex<LabelCounter<P::Label>>>,
    /// The labels of a vertex with more than [`LABELS_MAX`] neighbours.
    ///
    /// `None` if there is no such vertex.
    hub: Option<Mutex<Vec<P::Label>>>,
    changed: AtomicBitmap,
    /// The vertices that count; all if there is none.
    marked: Option<AtomicBitmap>,
    _lease: Lease,
}

impl<'r, P: CountProgram> LabelRound<'r, P> {
    /// Prepares a round; `None` if the budget has no room for its tables.
    pub(crate) fn new(
        context: &'r ExecContext<'r>,
        program: &'r P,
        lists: [Option<&'r AdjacencyLists>; 2],
    ) -> Result<Option<Self>, EngineError> {
        let (vertices, workers) = (context.batches.vertices(), context.workers.count());
        let most = most_neighbours(context, lists)?;
        let [of_list, of_hub] = [most.min(LABELS_MAX), most].map(|labels| labels as usize);
        let of_hub = Some(of_hub).filter(|_| most > LABELS_MAX);
        let places = (2 * of_list).next_power_of_two();
        let label = size_of::<P::Label>() as u64;
        let counter = of_list as u64 * label + LabelTable::<P::Label>::bytes(places);
        let bytes = workers as u64 * counter + of_hub.unwrap_or(0) as u64 * label;
        let bytes = bytes + 2 * AtomicBitmap::bytes(vertices);
        let lease = context.budget.lease("counts of labels", bytes).ok();
        let Some(lease) = lease.filter(|_| most <= LabelTable::<P::Label>::LABELS_MAX) else {
            return Ok(None);
        };
        let counter = || {
            Mutex::new(LabelCounter {
                labels: Vec::with_capacity(of_list),
                table: LabelTable::new(places),
            })
        };
        Ok(Some(LabelRound {
            context,
            program,
            lists,
            counters: (0..workers).map(|_| counter()).collect(),
            hub: of_hub.map(|labels| Mutex::new(Vec::with_capacity(labels))),
            changed: AtomicBitmap::new(vertices),
            marked: None,
            _lease: lease,
        }))
    }

    /// Lets only the neighbours of some vertices count, unless these are neighbours of many.
    pub(crate) fn mark_neighbours(&mut self, changed: &ActiveSet) -> Result<(), EngineError> {
        let (context, batches) = (self.context, Vec::from_iter(changed.batches()));
        let lists = || self.lists.iter().flatten();
        let each_list = |visit: &(dyn Fn(&AdjacencyLists, usize) + Sync)| {
            each_batch(context, &batches, |i, _| {
                let start = context.batches.start(batches[i]) as usize;
                let members = changed.batch(batches[i])?;
                members.for_each(|i| lists().for_each(|lists| visit(lists, start + i)));
                Ok(())
            })
        };
        let edges = AtomicU64::new(0);
        each_list(&|lists, v| {
            edges.fetch_add(lists.degree(v), Ordering::Relaxed);
        })?;
        let all = context.graph.arcs() * lists().count() as u64;
        if edges.into_inner() <= all / MARKED_ONE_IN {
            let marked = AtomicBitmap::new(context.batches.vertices());
            each_list(&|lists, v| lists.each_neighbour(v, |u| marked.set(u as usize)))?;
            self.marked = Some(marked);
        }
        Ok(())
    }

    /// Gives every vertex of this rank its next label, and returns the number of labels that were read.
    ///
    /// `old` are the labels of all vertices, `new` the next ones of this rank's.
    pub(crate) fn run(
        &self,
        old: &[P::Label],
        new: &[<P::Label as AtomicScalar>::Atomic],
    ) -> Result<u64, EngineError> {
        let first = self.context.batches.cut(self.context.ranks.own().start) as usize;
        let edges = AtomicU64::new(0);
        let is_marked = self.marked.as_ref().map(AtomicBitmap::snapshot);
        let work = self.context.graph.arcs();
        each_part(self.context, new.len(), AT_ONCE, work, |part, worker| {
            let LabelCounter { labels, table } = &mut *lock(&self.counters[worker]);
            let mut read = 0;
            let current = CurrentCall::new();
            for i in part {
                let v = first + i;
                current.at(v as u64);
                let mut label = old[v];
                if is_marked.as_ref().is_none_or(|is_marked| is_marked(v)) {
                    let lists = || self.lists.iter().flatten();
                    let degree = || lists().map(|lists| lists.degree(v)).sum::<u64>();
                    let hub = self.hub.as_ref().filter(|_| degree() > LABELS_MAX);
                    let mut hub = hub.map(lock);
                    let labels = hub.as_deref_mut().unwrap_or(labels);
                    labels.clear();
                    lists().for_each(|lists| read_labels(labels, lists, v, old));
                    read += labels.len() as u64;
                    label = table.choose(self.program, labels).unwrap_or(label);
                    if label != old[v] {
                        self.changed.set(v);
                    }
                }
                new[i].store(label);
            }
            edges.fetch_add(read, Ordering::Relaxed);
        })?;
        Ok(edges.into_inner())
    }

    /// Adds the vertices that changed to a set.
    pub(crate) fn add_changed(&self, set: &ActiveSet) -> Result<(), EngineError> {
        let batches = &self.context.batches;
        for batch in self.context.ranks.own() {
            let mut members = set.batch(batch)?;
            let of_batch = batches.range(batch);
            for word in of_batch.start / 64..of_batch.end.div_ceil(64) {
                for bit in Bits(self.changed.word(word as usize)) {
                    let v = word * 64 + bit as u64;
                    if of_batch.contains(&v) {
                        members.insert((v - of_batch.start) as usize);
                    }
                }
            }
        }
        Ok(())
    }
}

/// Returns the most neighbours that a vertex of this rank has.
fn most_neighbours(
    context: &ExecContext,
    lists: [Option<&AdjacencyLists>; 2],
) -> Result<u64, EngineError> {
    let own = context.ranks.own();
    let [first, end] = [own.start, own.end].map(|batch| context.batches.cut(batch) as usize);
    let degree = |v| lists.iter().flatten().map(|lists| lists.degree(v)).sum();
    let (most, vertices) = (AtomicU64::new(0), end - first);
    let work = |part: Range<usize>, _| {
        let of_part = part.map(|i| degree(first + i)).max();
        most.fetch_max(of_part.unwrap_or(0), Ordering::Relaxed);
    };
    each_part(context, vertices, DEGREES_AT_ONCE, vertices as u64, work)?;
    Ok(most.into_inner())
}

/// The memory of one worker: the labels of the neighbours of one vertex, and their counts.
struct LabelCounter<L> {
    labels: Vec<L>,
    table: LabelTable<L>,
}

/// Appends the labels of the neighbours in the list of a vertex.
#[inline(always)]
fn read_labels<L: Copy>(labels: &mut Vec<L>, lists: &AdjacencyLists, v: usize, of_all: &[L]) {
    with_words!(lists, |WORDS| {
        let neighbours = lists.of::<WORDS>(v).iter();
        // An index beyond the last vertex comes from a damaged cell; it is read like `v` itself.
        let label = |record: &[u32; WORDS]| *of_all.get(record[0] as usize).unwrap_or(&of_all[v]);
        labels.extend(neighbours.map(label));
    });
}
