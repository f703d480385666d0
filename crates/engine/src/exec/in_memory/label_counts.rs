//! One round of a count program over adjacency lists: each vertex reads the labels of its neighbours and counts them.
//!
//! A worker copies the labels of one vertex into a list, which keeps many reads in flight, and counts that list in a table of its own.
//! So a round has no atomics but one bit for each vertex that changed.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use graphmill_raw::{AtomicBitmap, AtomicCell, AtomicScalar, lock};
use graphmill_storage::Lease;

use crate::cache::adjacency::{AdjacencyLists, with_words};
use crate::context::{ExecContext, each_batch};
use crate::error::EngineError;
use crate::exec::in_memory::round::each_part;
use crate::frontier::active_set::ActiveSet;
use crate::program::count::{CountProgram, count_sorted};

/// Vertices that a worker takes at once.
const AT_ONCE: usize = 256;
/// Lists up to this length are sorted; longer ones are counted in the table.
const SORTED_MAX: usize = 16;
/// Neighbours are marked if they are at most this share of all.
const MARKED_ONE_IN: u64 = 4;

/// A round over the lists of all vertices of one rank.
pub(crate) struct LabelRound<'r, P: CountProgram> {
    context: &'r ExecContext<'r>,
    program: &'r P,
    /// The neighbours along the arcs, and in a directed graph those against the arcs.
    lists: [Option<&'r AdjacencyLists>; 2],
    tables: Vec<Mutex<LabelTable<P::Label>>>,
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
    ) -> Option<Self> {
        let vertices = context.batches.vertices();
        let workers = context.workers.count();
        let degree = |v| lists.iter().flatten().map(|lists| lists.degree(v)).sum();
        let most: u64 = (0..vertices as usize).map(degree).max().unwrap_or(0);
        let table = LabelTable::<P::Label>::bytes(most as usize)?;
        let bytes = workers as u64 * table + 2 * AtomicBitmap::bytes(vertices);
        let lease = context.budget.lease("counts of labels", bytes).ok()?;
        let table = || Mutex::new(LabelTable::new(most as usize));
        Some(LabelRound {
            context,
            program,
            lists,
            tables: (0..workers).map(|_| table()).collect(),
            changed: AtomicBitmap::new(vertices),
            marked: None,
            _lease: lease,
        })
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

    /// Gives every vertex its next label, and returns the number of labels that were read.
    pub(crate) fn run(
        &self,
        old: &[P::Label],
        new: &[<P::Label as AtomicScalar>::Atomic],
    ) -> Result<u64, EngineError> {
        let edges = AtomicU64::new(0);
        let is_marked = self.marked.as_ref().map(AtomicBitmap::snapshot);
        let work = self.context.graph.arcs();
        each_part(self.context, old.len(), AT_ONCE, work, |part, worker| {
            let table = &mut *lock(&self.tables[worker]);
            let mut read = 0;
            for v in part {
                let mut label = old[v];
                if is_marked.as_ref().is_none_or(|is_marked| is_marked(v)) {
                    table.labels.clear();
                    for lists in self.lists.iter().flatten() {
                        table.read(lists, v, old);
                    }
                    read += table.labels.len() as u64;
                    label = table.choose(self.program).unwrap_or(label);
                    if label != old[v] {
                        self.changed.set(v);
                    }
                }
                new[v].store(label);
            }
            edges.fetch_add(read, Ordering::Relaxed);
        })?;
        Ok(edges.into_inner())
    }

    /// Adds the vertices that changed to a set.
    pub(crate) fn add_changed(&self, set: &ActiveSet) -> Result<(), EngineError> {
        let batches = &self.context.batches;
        for batch in 0..batches.len() {
            let mut members = set.batch(batch)?;
            let of_batch = batches.range(batch);
            for word in of_batch.start / 64..of_batch.end.div_ceil(64) {
                let mut bits = self.changed.word(word as usize);
                while bits != 0 {
                    let v = word * 64 + u64::from(bits.trailing_zeros());
                    if of_batch.contains(&v) {
                        members.insert((v - of_batch.start) as usize);
                    }
                    bits &= bits - 1;
                }
            }
        }
        Ok(())
    }
}

/// The labels of the neighbours of one vertex, and a hash table that counts them.
struct LabelTable<L> {
    labels: Vec<L>,
    /// Labels with the number of times that each occurs; 0 in a free place.
    places: Vec<(L, u32)>,
    /// The places that are not free.
    taken: Vec<u32>,
}

impl<L: AtomicScalar> LabelTable<L> {
    /// Returns the bytes of a table for lists of at most `labels` labels.
    ///
    /// Returns `None` if there is none for such long lists.
    fn bytes(labels: usize) -> Option<u64> {
        let each = size_of::<L>() + size_of::<u32>();
        let bytes = labels * each + Self::places(labels) * size_of::<(L, u32)>();
        (labels < 1 << 30).then_some(bytes as u64)
    }

    /// Places for a list of `labels` labels: at least half of them stay free.
    fn places(labels: usize) -> usize {
        (2 * labels).next_power_of_two()
    }

    fn new(labels: usize) -> Self {
        LabelTable {
            labels: Vec::with_capacity(labels),
            places: vec![(L::of_index(0), 0); Self::places(labels)],
            taken: Vec::with_capacity(labels),
        }
    }

    /// Reads the labels of the neighbours in the list of a vertex.
    #[inline(always)]
    fn read(&mut self, lists: &AdjacencyLists, v: usize, of_all: &[L]) {
        with_words!(lists, |WORDS| {
            let neighbours = lists.of::<WORDS>(v).iter();
            // An index beyond the last vertex comes from a damaged cell; it is read like `v` itself.
            let label =
                |record: &[u32; WORDS]| *of_all.get(record[0] as usize).unwrap_or(&of_all[v]);
            self.labels.extend(neighbours.map(label));
        });
    }

    /// Counts the labels that were read; returns the choice, or none if there are no labels.
    fn choose<P: CountProgram<Label = L>>(&mut self, program: &P) -> Option<L> {
        let mut choice = P::NONE;
        match self.labels.len() {
            0 => return None,
            1..=SORTED_MAX => count_sorted(program, &mut choice, &mut self.labels),
            _ => self.count_in_places(program, &mut choice),
        }
        Some(program.choose(choice))
    }

    fn count_in_places<P: CountProgram<Label = L>>(&mut self, program: &P, choice: &mut P::Choice) {
        let count = Self::places(self.labels.len());
        let (places, shift) = (&mut self.places[..count], 64 - count.trailing_zeros());
        for equal in self.labels.chunk_by(|one, next| one == next) {
            let label = equal[0];
            // The golden ratio: consecutive labels get places far from each other.
            let hash = (label.index() as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let mut at = (hash >> shift) as usize;
            while places[at].1 > 0 && places[at].0 != label {
                at = (at + 1) % count;
            }
            if places[at].1 == 0 {
                places[at].0 = label;
                self.taken.push(at as u32);
            }
            places[at].1 += equal.len() as u32;
        }
        for at in self.taken.drain(..) {
            let (label, times) = std::mem::replace(&mut places[at as usize], (L::of_index(0), 0));
            program.count(choice, label, times.into());
        }
    }
}
