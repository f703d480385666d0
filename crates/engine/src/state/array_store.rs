//! Vertex arrays: typed columns over the vertices, resident in memory or paged to disk batch by batch.
//!
//! Invariants:
//! - a batch of an array is borrowed by one writer or by any number of readers, never both;
//! - a page on disk is never overwritten: a changed page goes to a free slot, and the new slots
//!   replace the old slots when the pass that wrote them has ended ([`ArrayStore::publish`]);
//! - a page that was never written holds zeros and takes no space.

use std::any::TypeId;
use std::ops::Range;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use graphmill_graph::{Batches, StoredGraph};
use graphmill_raw::{AlignedBuffer, BorrowedSegments, Element, failpoint, lock};
use graphmill_storage::{DataKind, Lease, MemoryBudget, Tiers};

use crate::error::EngineError;
use crate::state::checkpoint_copy::{CheckpointCopy, SavedColumn};
use crate::state::graph_values::{GraphValue, ValueStorage};
use crate::state::row_file::{PageTable, PinnedSlots, RowFile, RowFileIo, SlotRef};
use crate::state::row_set::RowSet;
use crate::state::rows::ColumnAccess;
use crate::state::vertex_array::{
    ArrayId, BatchRows, ColumnGuard, VertexArray, own_cuts, own_pages,
};

/// Stores of arrays made so far.
static STORES: AtomicU32 = AtomicU32::new(0);

/// One array.
struct Array {
    name: String,
    element: TypeId,
    element_bytes: usize,
    rows: ColumnStorage,
}

impl Array {
    /// True if its pages are read or written: it is on disk, or in checkpoints.
    fn has_pages(&self) -> bool {
        !matches!(self.rows, ColumnStorage::Memory { copies: None, .. })
    }
    fn is_on_disk(&self) -> bool {
        matches!(self.rows, ColumnStorage::Disk { .. })
    }
    fn busy(&self) -> EngineError {
        let name = self.name.clone();
        EngineError::BusyArray { name }
    }
}

/// Where the rows of an array are.
enum ColumnStorage {
    Memory {
        rows: BorrowedSegments<u8>,
        /// Its pages in checkpoints, if the run writes any.
        copies: Option<CheckpointCopy>,
        _lease: Lease,
    },
    /// `first[b]` is the number of the first page of batch b: pages never span batches.
    Disk {
        first: Vec<usize>,
        /// Changes between the phases of a pass only.
        table: RwLock<PageTable>,
        written: Mutex<Vec<(usize, SlotRef)>>,
        /// What this pass replaced.
        replaced: Mutex<Vec<SlotRef>>,
    },
}

impl ColumnStorage {
    fn zeros(first: Vec<usize>) -> ColumnStorage {
        ColumnStorage::Disk {
            table: RwLock::new(vec![None; first.last().copied().unwrap_or(0)]),
            first,
            written: Mutex::default(),
            replaced: Mutex::default(),
        }
    }
}

/// All vertex arrays of an engine.
pub(crate) struct ArrayStore {
    number: u32,
    batches: Arc<Batches>,
    /// The batches that this rank has the rows of.
    own: Range<usize>,
    arrays: Vec<Array>,
    pages: RowFile,
    /// Slots that checkpoints hold, if the run writes any.
    kept: Option<Mutex<PinnedSlots>>,
    graph: Arc<StoredGraph>,
    /// By [`GraphValue`].
    graph_values: [ValueStorage; 2],
    /// Bytes read to unpack degrees and ranks of ids.
    degree_bytes: AtomicU64,
    budget: MemoryBudget,
    tiers: Tiers,
}

impl ArrayStore {
    pub(crate) fn new(
        (batches, own): (Arc<Batches>, Range<usize>),
        (pages, kept): (RowFile, Option<PinnedSlots>),
        graph: Arc<StoredGraph>,
        budget: MemoryBudget,
        tiers: Tiers,
    ) -> Self {
        ArrayStore {
            number: STORES.fetch_add(1, Ordering::Relaxed),
            batches,
            own,
            arrays: Vec::new(),
            pages,
            kept: kept.map(Mutex::new),
            graph_values: GraphValue::ALL.map(|value| ValueStorage::new(value, &graph)),
            graph,
            degree_bytes: AtomicU64::new(0),
            budget,
            tiers,
        }
    }

    /// Number of vertices whose rows are here.
    pub(crate) fn vertices(&self) -> u64 {
        self.batches.cut(self.own.end) - self.batches.cut(self.own.start)
    }

    /// The array, if it is one of this store.
    fn get(&self, id: ArrayId) -> Option<&Array> {
        let array = self.arrays.get(id.number as usize);
        array.filter(|_| id.store == self.number)
    }

    /// Refuses an array of another engine.
    pub(crate) fn check_own(&self, id: ArrayId) -> Result<(), EngineError> {
        self.get(id).map(drop).ok_or(EngineError::ForeignArray)
    }
    pub(crate) fn pages(&self) -> &RowFile {
        &self.pages
    }
    /// The array of that number, which is the same at every rank.
    pub(crate) fn id(&self, number: u32) -> ArrayId {
        ArrayId {
            store: self.number,
            number,
        }
    }

    /// The array of that name and type of element, if there is one.
    pub(crate) fn find<T: Element>(&self, name: &str) -> Option<VertexArray<T>> {
        let is_it = |array: &Array| array.name == name && array.element == TypeId::of::<T>();
        let number = self.arrays.iter().position(is_it)?;
        Some(VertexArray::new(self.number, number))
    }

    /// A new array of zeros: in memory when that leaves `reserve` bytes of the budget, else on disk.
    pub(crate) fn make<T: Element>(
        &mut self,
        name: &str,
        reserve: u64,
    ) -> Result<VertexArray<T>, EngineError> {
        let element_bytes = size_of::<T>();
        let bytes = self.vertices() * element_bytes as u64;
        let first = self.first_pages(element_bytes);
        let rows = if self.has_room(bytes, reserve) {
            let (kind, budget) = (DataKind::Vertices, &self.budget);
            let rows = (self.tiers).buffer(kind, budget, "vertex rows", bytes as usize)?;
            let (rows, lease) = rows.into_parts();
            let cuts = own_cuts(&self.batches, &self.own, element_bytes);
            ColumnStorage::Memory {
                rows: BorrowedSegments::new(rows, cuts),
                copies: self.kept.is_some().then(|| CheckpointCopy::new(first)),
                _lease: lease,
            }
        } else {
            ColumnStorage::zeros(first)
        };
        self.arrays.push(Array {
            name: name.to_owned(),
            element: TypeId::of::<T>(),
            element_bytes,
            rows,
        });
        Ok(VertexArray::new(self.number, self.arrays.len() - 1))
    }

    /// Frees the memory of an array, which holds zeros from then on; its number stays.
    pub(crate) fn free(&mut self, id: ArrayId) -> Result<(), EngineError> {
        self.check_own(id)?;
        let first = self.first_pages(self.arrays[id.number as usize].element_bytes);
        self.arrays[id.number as usize].rows = ColumnStorage::zeros(first);
        Ok(())
    }

    fn first_pages(&self, element_bytes: usize) -> Vec<usize> {
        let page_bytes = self.pages.page_bytes();
        own_pages(&self.batches, &self.own, element_bytes, page_bytes)
    }
    /// Loads the graph-owned columns that the pass uses, in memory if that leaves `reserve` bytes.
    pub(crate) fn load(&mut self, needs: &[ColumnAccess], reserve: u64) -> Result<(), EngineError> {
        for (value, storage) in GraphValue::ALL.into_iter().zip(&mut self.graph_values) {
            if needs.contains(&ColumnAccess::Graph(value)) {
                let memory = (&self.tiers, &self.budget);
                let read = storage.load(value, &self.graph, &self.own, memory, reserve)?;
                *self.degree_bytes.get_mut() += read;
            }
        }
        Ok(())
    }

    /// True if `bytes` bytes of vertex rows and `reserve` fit in the budget, or are not charged to it.
    pub(crate) fn has_room(&self, bytes: u64, reserve: u64) -> bool {
        let leased = self.tiers.leased(DataKind::Vertices, bytes);
        // Messages may be bound to the same nodes.
        let shared = self
            .tiers
            .share_nodes(DataKind::Vertices, DataKind::Messages);
        let pages = AlignedBuffer::footprint(bytes as usize);
        let of_nodes = pages.saturating_add(if shared { reserve } else { 0 });
        let fits_nodes = self.tiers.free_on_nodes(DataKind::Vertices) >= of_nodes;
        fits_nodes && (leased == 0 || self.budget.available() >= leased.saturating_add(reserve))
    }
    /// Counts bytes that were read for degrees elsewhere.
    pub(crate) fn count_read(&self, bytes: u64) {
        self.degree_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Bytes read and written for rows and degrees since the last call.
    pub(crate) fn take_traffic(&self) -> [u64; 2] {
        let [read, written] = self.pages.file.take_traffic();
        [read + self.degree_bytes.swap(0, Ordering::Relaxed), written]
    }

    /// Takes the rows of an array in memory out of the store; [`ArrayStore::put`] returns them.
    pub(crate) fn take(&mut self, id: ArrayId) -> Result<BorrowedSegments<u8>, EngineError> {
        self.check_own(id)?;
        match &mut self.arrays[id.number as usize].rows {
            ColumnStorage::Memory { rows, .. } => {
                let none = BorrowedSegments::new(AlignedBuffer::zeroed(0)?, vec![0]);
                Ok(std::mem::replace(rows, none))
            }
            ColumnStorage::Disk { .. } => Err(EngineError::ForeignArray),
        }
    }
    /// Puts back what was taken.
    pub(crate) fn put(&mut self, id: ArrayId, taken: BorrowedSegments<u8>) {
        let array = self.arrays.get_mut(id.number as usize);
        let storage = array.map(|array| &mut array.rows);
        if let Some(ColumnStorage::Memory { rows, copies, .. }) = storage {
            *rows = taken;
            // The borrower does not report which rows it changed.
            copies.iter().for_each(CheckpointCopy::change_all);
        }
    }

    /// True if an array is in memory.
    pub(crate) fn in_memory(&self, id: ArrayId) -> bool {
        self.get(id).is_some_and(|array| !array.is_on_disk())
    }

    /// Returns the bytes of a row in all arrays in memory, and in all arrays on disk.
    pub(crate) fn row_bytes_made(&self) -> [usize; 2] {
        let mut bytes = [0; 2];
        for array in &self.arrays {
            bytes[usize::from(array.is_on_disk())] += array.element_bytes;
        }
        bytes
    }

    /// True if all these arrays are in memory.
    pub(crate) fn resident(&self, needs: &[ColumnAccess]) -> bool {
        needs.iter().all(|need| match need {
            ColumnAccess::Read(id) | ColumnAccess::Write(id) => self.in_memory(*id),
            ColumnAccess::Graph(value) => self.graph_values[*value as usize].resident(),
        })
    }

    /// Returns the bytes of one row of an array.
    pub(crate) fn row_bytes(&self, need: ColumnAccess) -> usize {
        match need {
            ColumnAccess::Read(id) | ColumnAccess::Write(id) => {
                self.get(id).map_or(0, |array| array.element_bytes)
            }
            ColumnAccess::Graph(_) => size_of::<u64>(),
        }
    }

    /// Returns the bytes of one row of the given arrays in memory that a pass reads, and that it writes.
    pub(crate) fn resident_bytes(&self, needs: &[ColumnAccess]) -> (u64, u64) {
        let (mut read, mut written) = (0, 0);
        for need in needs.iter().filter(|need| self.resident(&[**need])) {
            let bytes = self.row_bytes(*need) as u64;
            read += match need {
                ColumnAccess::Read(_) | ColumnAccess::Write(_) => bytes,
                ColumnAccess::Graph(value) => self.graph_values[*value as usize].bytes_of_one(),
            };
            if let ColumnAccess::Write(_) = need {
                written += bytes;
            }
        }
        (read, written)
    }

    /// Returns the bytes of one row of the given arrays on disk, and of degrees unpacked for each pass.
    pub(crate) fn staged_bytes(&self, needs: &[ColumnAccess]) -> usize {
        let staged = needs.iter().filter(|need| !self.resident(&[**need]));
        staged.map(|need| self.row_bytes(*need)).sum()
    }

    /// Borrows rows of a batch: some, or all.
    ///
    /// If only some are borrowed, only their pages are read, and no other row may be looked at.
    pub(crate) fn open(
        &self,
        batch: usize,
        needs: &[ColumnAccess],
        some: Option<&RowSet<'_>>,
        io: &mut RowFileIo,
    ) -> Result<BatchRows<'_>, EngineError> {
        let mut guards = Vec::with_capacity(needs.len());
        let mut pages = Vec::with_capacity(needs.len());
        let span = self.batches.span(batch) as usize;
        for need in needs {
            let id = match need {
                ColumnAccess::Read(id) | ColumnAccess::Write(id) => *id,
                ColumnAccess::Graph(value) => {
                    guards.push(self.open_value(*value, batch, io)?);
                    pages.push(None);
                    continue;
                }
            };
            let array = self.get(id).ok_or(EngineError::ForeignArray)?;
            let busy = || array.busy();
            let pages_of = |some: &RowSet| some.pages(array.element_bytes, self.pages.page_bytes());
            let wanted = some.filter(|_| array.has_pages()).map(pages_of);
            guards.push(match (&array.rows, need) {
                (ColumnStorage::Memory { rows, .. }, ColumnAccess::Write(_)) => {
                    ColumnGuard::Exclusive(rows.write(batch).ok_or_else(busy)?)
                }
                (ColumnStorage::Memory { rows, .. }, _) => {
                    ColumnGuard::Shared(rows.read(batch).ok_or_else(busy)?)
                }
                (ColumnStorage::Disk { first, table, .. }, _) => {
                    let bytes = span * array.element_bytes;
                    let mut rows = self.budget.buffer("paged vertex rows", bytes)?;
                    let table = table.read().unwrap_or_else(PoisonError::into_inner);
                    let slots = &table[first[batch]..first[batch + 1]];
                    io.load(&self.pages, slots, wanted.as_deref(), &mut rows[..bytes])?;
                    ColumnGuard::Paged(rows)
                }
            });
            pages.push(wanted);
        }
        Ok(BatchRows {
            guards,
            batch,
            pages,
        })
    }

    /// Borrows the values of a batch that the graph keeps, or unpacks them.
    fn open_value(
        &self,
        value: GraphValue,
        batch: usize,
        io: &mut RowFileIo,
    ) -> Result<ColumnGuard<'_>, EngineError> {
        let storage = &self.graph_values[value as usize];
        if let Some(guard) = storage.open(&self.batches, batch)? {
            return Ok(guard);
        }
        let span = self.batches.span(batch) as usize;
        let mut values = (self.budget).buffer(value.names()[1], span * size_of::<u64>())?;
        let into = &mut values.typed_mut::<u64>()[..span];
        let frames = io.frames(&self.graph, &self.budget)?;
        value.unpack(&self.graph, frames, batch, into)?;
        self.count_read(frames.take_bytes_read());
        Ok(ColumnGuard::Paged(values))
    }

    /// Ends a borrow: writes the pages with changed rows to new slots.
    ///
    /// It does so for the arrays on disk that were open for writing. Without `dirty` all borrowed rows have changed.
    pub(crate) fn close(
        &self,
        open: BatchRows<'_>,
        needs: &[ColumnAccess],
        dirty: Option<&RowSet<'_>>,
        io: &mut RowFileIo,
    ) -> Result<(), EngineError> {
        let batch = open.batch;
        let span = self.batches.span(batch) as usize;
        for ((need, guard), borrowed) in needs.iter().zip(&open.guards).zip(open.pages) {
            let ColumnAccess::Write(id) = need else {
                continue;
            };
            let Some(array) = self.get(*id) else { continue };
            let pages_of = |some: &RowSet| some.pages(array.element_bytes, self.pages.page_bytes());
            let changed = |first: &[usize]| {
                let some = dirty.map(pages_of).or(borrowed);
                some.unwrap_or_else(|| (0..first[batch + 1] - first[batch]).collect())
            };
            match (&array.rows, guard) {
                (ColumnStorage::Disk { first, written, .. }, ColumnGuard::Paged(rows)) => {
                    let rows = &rows[..span * array.element_bytes];
                    let changed = changed(first).into_iter();
                    io.store(&self.pages, rows, changed, |page, slot| {
                        lock(written).push((first[batch] + page, slot));
                    })?;
                }
                (ColumnStorage::Memory { copies, .. }, ColumnGuard::Exclusive(_)) => {
                    let Some(copies) = copies else { continue };
                    let changed = changed(&copies.first);
                    failpoint!(ChangesMissed: changed = changed[changed.len().div_ceil(2)..].to_vec());
                    for page in changed {
                        copies.change(copies.first[batch] + page);
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Ends a phase: the next one sees the pages that it wrote.
    pub(crate) fn end_phase(&self) {
        for array in &self.arrays {
            if let ColumnStorage::Disk {
                table,
                written,
                replaced,
                ..
            } = &array.rows
            {
                let mut table = table.write().unwrap_or_else(PoisonError::into_inner);
                let written = std::mem::take(&mut *lock(written)).into_iter();
                let old = written.filter_map(|(page, slot)| table[page].replace(slot));
                lock(replaced).extend(old);
            }
        }
    }

    /// Ends a pass: the pages that its phases wrote become current, and the slots that they replace free.
    pub(crate) fn publish(&self) {
        self.end_phase();
        for array in &self.arrays {
            if let ColumnStorage::Disk { replaced, .. } = &array.rows {
                self.give_back(lock(replaced).drain(..));
            }
        }
    }

    /// Frees slots that the current rows no longer use, unless a checkpoint does.
    fn give_back(&self, slots: impl Iterator<Item = SlotRef>) {
        match &self.kept {
            None => self.pages.give_back(slots),
            Some(kept) => {
                let mut kept = lock(kept);
                self.pages
                    .give_back(slots.filter(|slot| !kept.retire(*slot)));
            }
        }
    }

    /// Writes the rows in memory that changed since the last checkpoint; returns the pages of each array.
    pub(crate) fn save(&self, io: &mut RowFileIo) -> Result<Vec<SavedColumn>, EngineError> {
        let mut saved = Vec::with_capacity(self.arrays.len());
        for array in &self.arrays {
            let pages = match &array.rows {
                ColumnStorage::Disk { table, .. } => {
                    let table = table.read().unwrap_or_else(PoisonError::into_inner);
                    table.clone()
                }
                ColumnStorage::Memory { rows, copies, .. } => {
                    let Some(copies) = copies else { continue };
                    let mut table = lock(&copies.table);
                    for batch in self.own.clone() {
                        let range = copies.first[batch]..copies.first[batch + 1];
                        let changed = copies.take_changed(range.clone());
                        if changed.is_empty() {
                            continue;
                        }
                        let rows = rows.read(batch).ok_or_else(|| array.busy())?;
                        let mut written = Vec::with_capacity(changed.len());
                        io.store(&self.pages, &rows, changed.into_iter(), |page, slot| {
                            written.push((range.start + page, slot));
                        })?;
                        let written = written.into_iter();
                        let replaced = written.filter_map(|(page, slot)| table[page].replace(slot));
                        self.give_back(replaced);
                    }
                    table.clone()
                }
            };
            saved.push(SavedColumn {
                name: array.name.clone(),
                element_bytes: array.element_bytes,
                pages,
            });
        }
        Ok(saved)
    }

    /// Writes the pages of the log that became full since the last checkpoint.
    pub(crate) fn save_log(
        &self,
        log: &[u8],
        pages: &mut PageTable,
        io: &mut RowFileIo,
    ) -> Result<(), EngineError> {
        let full = log.len() / self.pages.page_bytes();
        let new = pages.len()..full;
        pages.resize(full, None);
        let stored = |page: usize, slot| pages[page] = Some(slot);
        io.store(&self.pages, log, new, stored)
    }

    /// Records a published checkpoint, with the slots of its pages, and the oldest that is still there.
    pub(crate) fn published<'s>(
        &self,
        number: u64,
        slots: impl Iterator<Item = &'s SlotRef>,
        oldest: u64,
    ) {
        if let Some(kept) = &self.kept {
            let mut kept = lock(kept);
            kept.publish(number, slots);
            self.pages.give_back(kept.drop_before(oldest).into_iter());
        }
    }

    /// True if the rows of all arrays are in memory.
    pub(crate) fn all_resident(&self) -> bool {
        self.row_bytes_made()[1] == 0
    }

    /// Has the page file go with the engine again.
    pub(crate) fn forget_versions(&mut self) {
        self.kept = None;
        self.pages.file.stays = false;
    }

    /// Restores the rows of all arrays from a checkpoint.
    pub(crate) fn restore(
        &mut self,
        saved: &[SavedColumn],
        io: &mut RowFileIo,
    ) -> Result<(), EngineError> {
        let other = || EngineError::OtherRun {
            what: "its vertex arrays differ",
        };
        if saved.len() != self.arrays.len() {
            return Err(other());
        }
        for (array, saved) in self.arrays.iter().zip(saved) {
            let pages = self.first_pages(array.element_bytes).last().copied();
            let is_same = array.name == saved.name && array.element_bytes == saved.element_bytes;
            if !is_same || pages != Some(saved.pages.len()) {
                return Err(other());
            }
            match &array.rows {
                ColumnStorage::Disk { table, .. } => {
                    let mut table = table.write().unwrap_or_else(PoisonError::into_inner);
                    table.clone_from(&saved.pages);
                }
                ColumnStorage::Memory { rows, copies, .. } => {
                    let Some(copies) = copies else { continue };
                    for batch in self.own.clone() {
                        let range = copies.first[batch]..copies.first[batch + 1];
                        let mut rows = rows.write(batch).ok_or_else(other)?;
                        io.load(&self.pages, &saved.pages[range], None, &mut rows)?;
                    }
                    lock(&copies.table).clone_from(&saved.pages);
                }
            }
        }
        Ok(())
    }

    /// Refuses rows that name an array of another engine, or one twice when one of the two may change it.
    pub(crate) fn check(&self, needs: &[ColumnAccess]) -> Result<(), EngineError> {
        for (at, need) in needs.iter().enumerate() {
            let (ColumnAccess::Read(id) | ColumnAccess::Write(id)) = need else {
                continue;
            };
            let array = self.get(*id).ok_or(EngineError::ForeignArray)?;
            let clashes = |other: &ColumnAccess| match (need, other) {
                (ColumnAccess::Write(_), ColumnAccess::Read(other)) => other == id,
                (_, ColumnAccess::Write(other)) => other == id,
                _ => false,
            };
            if needs[..at].iter().any(clashes) {
                return Err(array.busy());
            }
        }
        Ok(())
    }
}
