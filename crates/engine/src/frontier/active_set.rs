//! Active sets: which vertices signal in the next pass, at a cost in proportion to how many they are.
//!
//! A set is one bitmap a batch with two levels of summary above it (a bit for each non-empty word below), so that
//! inserting costs three words, and walking or clearing a set of k vertices costs O(k), not O(|V|). The bitmap of a
//! batch exists once a vertex of the batch was inserted; sets that are dropped are cleared and kept for reuse, so
//! that a graph of large diameter does not pay for a new bitmap each superstep.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, Weak};

use graphmill_fabric::protocol_error;
use graphmill_graph::Batches;
use graphmill_raw::{failpoint, lock};
use graphmill_storage::MemoryBudget;

use crate::comm::communicator::Communicator;
use crate::driver_log::DriverLog;
use crate::error::{EngineError, ensure};
use crate::frontier::bitmap::{BatchBitmaps, HierarchicalBitmap};
use crate::frontier::codec;
use crate::value::Reduce;

/// The state that the sets of one engine share.
#[derive(Debug)]
pub(crate) struct ActiveSetPool {
    pub(crate) batches: Arc<Batches>,
    ranks: Arc<Communicator>,
    budget: MemoryBudget,
    free: Mutex<Vec<BatchBitmaps>>,
    /// The log of the driver's calls.
    history: Mutex<DriverLog>,
    /// The registered sets by number, if the run writes checkpoints.
    held: Mutex<BTreeMap<u64, Weak<BatchBitmaps>>>,
}

impl ActiveSetPool {
    pub(crate) fn new(
        batches: Arc<Batches>,
        ranks: Arc<Communicator>,
        budget: MemoryBudget,
    ) -> Arc<Self> {
        Arc::new(ActiveSetPool {
            batches,
            ranks,
            budget,
            free: Mutex::new(Vec::new()),
            history: Mutex::default(),
            held: Mutex::default(),
        })
    }

    /// Returns the log of the driver's calls.
    pub(crate) fn history(&self) -> MutexGuard<'_, DriverLog> {
        lock(&self.history)
    }

    /// The sets that the driver has, by number.
    pub(crate) fn of_driver(&self) -> Vec<(u64, Arc<BatchBitmaps>)> {
        let held = lock(&self.held);
        let upgraded = |(number, sets): (&u64, &Weak<_>)| Some((*number, sets.upgrade()?));
        held.iter().filter_map(upgraded).collect()
    }

    /// Returns the memory of unused sets to the budget.
    pub(crate) fn trim(&self) {
        lock(&self.free).clear();
    }

    pub(crate) fn empty(self: &Arc<Self>) -> ActiveSet {
        let reused = lock(&self.free).pop();
        let new = || (0..self.batches.len()).map(|_| Mutex::default()).collect();
        let sets = reused.unwrap_or_else(new);
        ActiveSet {
            counts: vec![0; self.batches.len()],
            own: 0,
            total: 0,
            sets: Arc::new(sets),
            number: None,
            pool: Arc::clone(self),
        }
    }
}

/// A set of vertices.
///
/// Each rank holds the members in its own batches. All ranks know the total, so all of them make every call that changes
/// a set.
#[derive(Debug)]
pub struct ActiveSet {
    /// Vertices in the set, by batch of this rank: what a pass looks at first.
    counts: Vec<u64>,
    /// Their sum.
    own: u64,
    /// The total over all ranks, as last agreed on or as logged.
    total: u64,
    sets: Arc<BatchBitmaps>,
    /// Its number in checkpoints, once the driver holds it.
    number: Option<u64>,
    pool: Arc<ActiveSetPool>,
}

impl ActiveSet {
    /// True if it was made by that pool.
    pub(crate) fn is_of(&self, pool: &Arc<ActiveSetPool>) -> bool {
        Arc::ptr_eq(&self.pool, pool)
    }
    /// Number of vertices in the set.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.total
    }
    /// Number of those that this rank holds.
    pub(crate) fn own_len(&self) -> u64 {
        self.own
    }
    /// Takes over what all ranks hold together.
    pub(crate) fn set_global_len(&mut self, total: u64) {
        self.total = total;
    }
    /// Registers the set with the driver; a resumed run restores its members from the checkpoint.
    ///
    /// `total` is the logged number of vertices.
    pub(crate) fn restore_or_register(&mut self, total: u64) -> Result<(), EngineError> {
        let pool = Arc::clone(&self.pool);
        let (number, saved) = pool.history().adopt();
        failpoint!(SetsForgotten: saved = None);
        if let Some(saved) = saved {
            let mut from = saved.members();
            for _ in 0..saved.read(from.number())? {
                let batch = saved.read(from.number())? as usize;
                let is_own = pool.ranks.own().contains(&batch);
                if !is_own || !saved.read(codec::take(&mut from, &mut *self.batch(batch)?))? {
                    return Err(EngineError::OtherRun {
                        what: "its vertex sets are of another graph",
                    });
                }
                self.recount(batch);
            }
        }
        self.total = total;
        if let Some(before) = self.number.replace(number) {
            lock(&pool.held).remove(&before);
        }
        if pool.history().is_kept {
            lock(&pool.held).insert(number, Arc::downgrade(&self.sets));
        }
        Ok(())
    }

    /// A change that the driver makes, and all ranks with it.
    fn change(
        &mut self,
        what: &str,
        work: impl FnOnce(&mut Self) -> Result<(), EngineError>,
    ) -> Result<(), EngineError> {
        let pool = Arc::clone(&self.pool);
        if let Some(payload) = pool.history().answer(what)? {
            self.total = <u64 as Reduce>::take(&mut &payload[..]).ok_or_else(protocol_error)?;
            return Ok(());
        }
        if !pool.history().is_within() {
            pool.ranks.compare_call(what)?;
        }
        work(self)?;
        [self.total] = pool.ranks.total([self.own])?;
        pool.history().note(what, &self.total.to_le_bytes());
        Ok(())
    }
    /// True if no vertex is in the set.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Adds the vertex with index `v`.
    ///
    /// # Errors
    /// The index is not of this graph, the budget has no room for the batch's bitmap, or a rank is lost.
    pub fn insert(&mut self, v: u64) -> Result<(), EngineError> {
        let batches = Arc::clone(&self.pool.batches);
        check_index(v, &batches)?;
        let batch = batches.batch_of(v);
        self.change("insert", |set| {
            let i = (v - batches.start(batch)) as usize;
            match set.pool.ranks.own().contains(&batch) {
                true => set.edit(batch, |members| members.insert(i)),
                false => Ok(()),
            }
        })
    }
    /// Adds every vertex.
    ///
    /// # Errors
    /// The budget has no room for the bitmap, or a rank is lost.
    pub fn insert_all(&mut self) -> Result<(), EngineError> {
        self.change("insert all", |set| {
            let mut own = set.pool.ranks.own();
            own.try_for_each(|batch| set.edit(batch, HierarchicalBitmap::insert_all))
        })
    }
    /// Adds these vertices; a rank adds its own of them.
    ///
    /// # Errors
    /// An index is not of this graph, the budget has no room for a bitmap, or a rank is lost.
    pub fn insert_each(
        &mut self,
        vertices: impl IntoIterator<Item = u64>,
    ) -> Result<(), EngineError> {
        let batches = Arc::clone(&self.pool.batches);
        self.change("insert each", |set| {
            let own = set.pool.ranks.own();
            for v in vertices {
                check_index(v, &batches)?;
                if own.contains(&batches.batch_of(v)) {
                    set.add_own(std::iter::once(v))?;
                }
            }
            set.refresh_counts();
            Ok(())
        })
    }
    /// Adds these vertices of this rank; [`ActiveSet::agree_len`] then counts them.
    pub(crate) fn add_own(&self, vertices: impl Iterator<Item = u64>) -> Result<(), EngineError> {
        let batches = &self.pool.batches;
        for v in vertices {
            let batch = batches.batch_of(v);
            let i = v - batches.start(batch);
            self.batch(batch)?.insert(i as usize);
        }
        Ok(())
    }
    /// Counts the members, and agrees with all ranks on their total.
    pub(crate) fn agree_len(&mut self) -> Result<(), EngineError> {
        self.refresh_counts();
        [self.total] = self.pool.ranks.total([self.own])?;
        Ok(())
    }

    /// True if the vertex with index `v` is in the set.
    ///
    /// All ranks make the call and get the same answer, so a driver program may decide by it.
    ///
    /// # Errors
    /// The index is not of this graph, a function of a pass makes the call, or a rank is lost.
    pub fn contains(&self, v: u64) -> Result<bool, EngineError> {
        check_index(v, &self.pool.batches)?;
        let misfit = || EngineError::from(protocol_error());
        let mut history = self.pool.history();
        history.check_between_passes()?;
        let is_logged = !history.is_ended;
        let answer = is_logged.then(|| history.answer("contains")).transpose()?;
        drop(history);
        if let Some(payload) = answer.flatten() {
            return <u64 as Reduce>::take(&mut &payload[..])
                .map(|found| found == 1)
                .ok_or_else(misfit);
        }
        self.pool.ranks.compare_call("contains")?;
        let [found] = self.pool.ranks.total([u64::from(self.holds(v))])?;
        self.pool.history().note("contains", &found.to_le_bytes());
        Ok(found == 1)
    }

    /// True if `v`, an index of this graph, is a vertex of the set that this rank has.
    pub(crate) fn holds(&self, v: u64) -> bool {
        let batch = self.pool.batches.batch_of(v);
        let i = (v - self.pool.batches.start(batch)) as usize;
        self.counts[batch] > 0 && lock(&self.sets[batch]).contains(i)
    }

    /// Adds every vertex for which `f` returns true.
    pub(crate) fn insert_where(&mut self, f: impl Fn(u64) -> bool) -> Result<(), EngineError> {
        self.change("insert where", |set| {
            set.pool.ranks.own().try_for_each(|batch| {
                let range = set.pool.batches.range(batch).enumerate();
                let chosen = range.filter(|(_, v)| f(*v));
                set.edit(batch, |members| chosen.for_each(|(i, _)| members.insert(i)))
            })
        })
    }

    /// Adds the vertices of another set of the same graph.
    ///
    /// # Errors
    /// The other set is of another engine, the budget has no room for the bitmap, or a rank is lost.
    pub fn union(&mut self, other: &ActiveSet) -> Result<(), EngineError> {
        self.change_by("union", other, HierarchicalBitmap::insert)
    }

    /// Takes the vertices of another set of the same graph out of this one.
    ///
    /// # Errors
    /// The other set is of another engine, the budget has no room for the bitmap, or a rank is lost.
    pub fn remove(&mut self, other: &ActiveSet) -> Result<(), EngineError> {
        self.change_by("remove", other, HierarchicalBitmap::remove)
    }

    /// Leaves the vertices in this set that are in another set of the same graph too.
    ///
    /// # Errors
    /// The other set is of another engine, the budget has no room for the bitmap, or a rank is lost.
    pub fn intersect(&mut self, other: &ActiveSet) -> Result<(), EngineError> {
        ensure(other.is_of(&self.pool), || EngineError::ForeignSet)?;
        self.change("intersect", |set| {
            let mut own = set.pool.ranks.own();
            own.try_for_each(|batch| match set.counts[batch] {
                0 => Ok(()),
                _ => {
                    let theirs = lock(&other.sets[batch]);
                    set.edit(batch, |mine| mine.retain(|i| theirs.contains(i)))
                }
            })
        })
    }

    /// Changes this set by each vertex of another one.
    fn change_by(
        &mut self,
        what: &str,
        other: &ActiveSet,
        change: impl Fn(&mut HierarchicalBitmap, usize),
    ) -> Result<(), EngineError> {
        ensure(other.is_of(&self.pool), || EngineError::ForeignSet)?;
        self.change(what, |set| {
            other.batches().try_for_each(|batch| {
                let theirs = lock(&other.sets[batch]);
                set.edit(batch, |mine| theirs.for_each(|i| change(mine, i)))
            })
        })
    }

    /// Calls `f` with the index of each vertex of the set that this rank has, in ascending order.
    ///
    /// # Errors
    /// A function of a pass makes the call, or the run writes checkpoints and has not ended its passes.
    pub fn for_each(&self, f: impl FnMut(u64)) -> Result<(), EngineError> {
        self.pool.history().check_between_passes()?;
        self.pool.history().check_readable()?;
        self.each(f)
    }

    /// As [`ActiveSet::for_each`], within a call.
    pub(crate) fn each(&self, mut f: impl FnMut(u64)) -> Result<(), EngineError> {
        for batch in self.batches() {
            let start = self.pool.batches.start(batch);
            self.batch(batch)?.for_each(|i| f(start + i as u64));
        }
        Ok(())
    }

    /// Returns the least vertex of the set that this rank has.
    pub(crate) fn first(&self) -> Result<Option<u64>, EngineError> {
        let mut first = None;
        self.each(|v| first = first.or(Some(v)))?;
        Ok(first)
    }

    /// The batches of this rank with active vertices, in ascending order.
    pub(crate) fn batches(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.counts.len()).filter(|batch| self.counts[*batch] > 0)
    }
    /// Number of vertices of one batch in the set.
    pub(crate) fn count_in(&self, batch: usize) -> u64 {
        self.counts[batch]
    }
    /// The set of one batch with its bitmap; the caller ends with [`ActiveSet::recount`].
    pub(crate) fn batch(
        &self,
        batch: usize,
    ) -> Result<MutexGuard<'_, HierarchicalBitmap>, EngineError> {
        let mut set = lock(&self.sets[batch]);
        if set.words.is_empty() {
            let span = self.pool.batches.span(batch) as usize;
            set.reserve(span, &self.pool.budget)?;
        }
        Ok(set)
    }
    /// Changes the set of one batch.
    fn edit(
        &mut self,
        batch: usize,
        work: impl FnOnce(&mut HierarchicalBitmap),
    ) -> Result<(), EngineError> {
        work(&mut *self.batch(batch)?);
        self.recount(batch);
        Ok(())
    }
    /// Takes over the count of a batch that was changed.
    pub(crate) fn recount(&mut self, batch: usize) {
        let count = lock(&self.sets[batch]).count as u64;
        self.own = self.own - self.counts[batch] + count;
        self.counts[batch] = count;
    }
    /// Takes over the counts of all batches.
    pub(crate) fn refresh_counts(&mut self) {
        for batch in 0..self.sets.len() {
            self.recount(batch);
        }
    }
}

/// Rejects an index that the graph does not have.
fn check_index(index: u64, batches: &Batches) -> Result<(), EngineError> {
    let vertices = batches.vertices();
    let outside = || EngineError::NoSuchIndex { index, vertices };
    ensure(index < vertices, outside)
}

impl Drop for ActiveSet {
    fn drop(&mut self) {
        for batch in self.batches() {
            lock(&self.sets[batch]).clear();
        }
        if let Some(number) = self.number {
            lock(&self.pool.held).remove(&number);
        }
        // The pool has no other owner between passes.
        if let Some(sets) = Arc::into_inner(std::mem::take(&mut self.sets)) {
            lock(&self.pool.free).push(sets);
        }
    }
}
