//! Blocks of rows encoded on all workers, and handed out in order.
//!
//! A round: 1. tasks are set up, on this thread; 2. the workers encode them, each with a lane of its own; 3. their bytes go out in the
//! order of the tasks. A task whose output is full before its rows are done is handed out and encoded further. Which worker encodes
//! which task, and how many there are at a time, changes no byte.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use graphmill_graph::{IdCursor, StoredGraph};
use graphmill_storage::{CancelToken, Lease, Step, Worker, WorkerPool};

use crate::error::{Error, check_stop};
use crate::machine::resources::Machine;
use crate::result::block::Block;
use crate::result::memory::OutputMemory;
use crate::result::values::ValueColumn;
use crate::result::{pages, sorted_snappy};
use crate::result_error::ResultError;

/// What a column of a task's rows comes to.
#[derive(Debug, Default)]
pub(super) struct ColumnSummary {
    /// Bytes before they were compressed.
    pub(super) raw_bytes: u64,
    pub(super) rows: u64,
    /// Rows without a value.
    pub(super) nulls: u64,
    /// The least and the greatest value.
    pub(super) limits: Limits,
}

/// The least and the greatest of some values.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) enum Limits {
    #[default]
    None,
    Integers(i128, i128),
    Floats(f64, f64),
    Texts(Vec<u8>, Vec<u8>),
}

impl Limits {
    /// Extends the limits to cover the other values too.
    pub(super) fn merge(&mut self, other: Limits) {
        match (&mut *self, other) {
            (_, Limits::None) => {}
            (Limits::Integers(least, most), Limits::Integers(low, high)) => {
                (*least, *most) = (low.min(*least), high.max(*most));
            }
            (Limits::Floats(least, most), Limits::Floats(low, high)) => {
                (*least, *most) = (low.min(*least), high.max(*most));
            }
            (Limits::Texts(least, most), Limits::Texts(low, high)) => {
                let (first, last) = (std::mem::take(least), std::mem::take(most));
                (*least, *most) = (low.min(first), high.max(last));
            }
            (limits, other) => *limits = other,
        }
    }
}

/// Consecutive rows, or entries of a list, that one worker encodes.
#[derive(Debug, Default)]
pub(super) struct EncodeTask {
    /// The ranks of the ids of the rows, or places in a list.
    pub(super) range: Range<u64>,
    /// Which of them are rows; empty where all are.
    pub(super) marks: Vec<bool>,
    /// The values of the rows.
    pub(super) raw: ValueColumn,
    /// Where it is continued: in `range`, and among the rows.
    pub(super) next: u64,
    pub(super) row: usize,
    /// The encoded bytes.
    pub(super) out: Vec<u8>,
    /// The same as a block in memory, where that is wanted.
    pub(super) block: Option<Block>,
    pub(super) summary: ColumnSummary,
    /// Whether the last encoder encoded all rows, or its error.
    done: Option<Result<bool, Error>>,
}

impl EncodeTask {
    /// True if the entry at `next` is a row.
    #[inline]
    pub(super) fn is_row(&self) -> bool {
        self.marks.get((self.next - self.range.start) as usize) != Some(&false)
    }

    fn begin(&mut self) {
        self.marks.clear();
        self.out.clear();
        self.row = 0;
        self.summary = ColumnSummary::default();
        self.done = None;
    }
}

/// What a worker encodes with.
pub(super) struct EncodeScratch {
    pub(super) ids: IdCursor,
    /// A page before it is compressed, and after.
    pub(super) plain: Vec<u8>,
    packed: Vec<u8>,
    /// Where texts in order begin in the page, if it has nothing else.
    pub(super) starts: Vec<u32>,
    pub(super) snappy: snap::raw::Encoder,
    pub(super) numbers: Vec<i64>,
}

/// Turns the rows of tasks into bytes.
pub(super) trait Encoder: Sync {
    /// Encodes rows of a task from where it continues, until all are done or its output is full.
    ///
    /// Returns true if all are done.
    ///
    /// # Errors
    /// Ids cannot be read, or cannot be written in this format.
    fn encode(&self, task: &mut EncodeTask, lane: &mut EncodeScratch) -> Result<bool, Error>;
}

/// Encodes tasks on all workers.
pub(super) struct EncodePool {
    workers: Arc<WorkerPool>,
    stop: CancelToken,
    tasks: Vec<Mutex<EncodeTask>>,
    lanes: Vec<Mutex<EncodeScratch>>,
    _lease: Option<Lease>,
}

impl EncodeScratch {
    /// Begins a page.
    pub(super) fn begin(&mut self) {
        self.plain.clear();
        self.starts.clear();
        self.numbers.clear();
    }

    /// Compresses the plain bytes; returns the compressed ones, behind the length of the plain ones.
    pub(super) fn compress(&mut self) -> Result<&[u8], ResultError> {
        let (plain, packed) = (&self.plain, &mut self.packed);
        let sorted = |packed: &mut Vec<u8>| {
            packed.clear();
            pages::put_number(packed, plain.len() as u64);
            sorted_snappy::compress(plain, &self.starts, packed);
            packed.len()
        };
        let are_sorted = !self.starts.is_empty();
        let length = if are_sorted { sorted(packed) } else { 0 };
        if are_sorted && length < plain.len() / 5 * 3 {
            return Ok(packed);
        }
        // The general encoder finds matches that are further away.
        packed.resize(snap::raw::max_compress_len(plain.len()), 0);
        let found = self.snappy.compress(plain, packed);
        let found = found.map_err(|error| ResultError::Write(error.into()))?;
        if are_sorted && length < found {
            sorted(packed);
        } else {
            packed.truncate(found);
        }
        Ok(packed)
    }
}

impl EncodePool {
    /// As many lanes and tasks as the memory allows, at least one of each, which the rows have leased.
    ///
    /// # Errors
    /// The budget has no room for one cursor over the ids.
    pub(super) fn new(
        machine: &Machine,
        graph: &Arc<StoredGraph>,
        memory: &OutputMemory,
    ) -> Result<EncodePool, Error> {
        let budget = machine.budget();
        let lane = || -> Result<_, Error> {
            Ok(Mutex::new(EncodeScratch {
                ids: IdCursor::new(graph, budget, 0)?,
                plain: Vec::new(),
                packed: Vec::new(),
                starts: Vec::new(),
                snappy: snap::raw::Encoder::new(),
                numbers: Vec::new(),
            }))
        };
        let mut lanes = vec![lane()?];
        let (wanted, tasks) = memory.lanes(machine.workers().count());
        let lease = budget.lease("blocks of the result", memory.bytes(wanted, tasks));
        let tasks = if lease.is_ok() { tasks } else { 1 };
        if lease.is_ok() {
            // With fewer it takes longer, no more.
            lanes.extend((1..wanted).map_while(|_| lane().ok()));
        }
        Ok(EncodePool {
            workers: Arc::clone(machine.workers()),
            stop: machine.stop().clone(),
            tasks: (0..tasks).map(|_| Mutex::default()).collect(),
            lanes,
            _lease: lease.ok(),
        })
    }

    /// The ids that the first worker reads.
    pub(super) fn ids(&mut self) -> &mut IdCursor {
        let lane = self.lanes[0].get_mut();
        &mut lane.unwrap_or_else(PoisonError::into_inner).ids
    }

    /// Encodes the tasks that `next` prepares, and passes their output to `put` in order.
    ///
    /// # Errors
    /// What `next`, `put` and the encoder fail with; work is to stop.
    pub(super) fn run(
        &mut self,
        encoder: &dyn Encoder,
        mut next: impl FnMut(&mut EncodeTask) -> Result<bool, Error>,
        mut put: impl FnMut(&mut EncodeTask) -> Result<(), Error>,
    ) -> Result<(), Error> {
        loop {
            let mut count = 0;
            for task in &mut self.tasks {
                let task = task.get_mut().unwrap_or_else(PoisonError::into_inner);
                task.begin();
                if !next(task)? {
                    break;
                }
                task.next = task.range.start;
                count += 1;
            }
            if count == 0 {
                return Ok(());
            }
            self.encode(encoder, 0..count)?;
            for at in 0..count {
                loop {
                    let task = self.tasks[at].get_mut();
                    let task = task.unwrap_or_else(PoisonError::into_inner);
                    let is_done = task.done.take().transpose()?;
                    put(task)?;
                    task.out.clear();
                    if is_done == Some(true) {
                        break;
                    }
                    self.encode(encoder, at..at + 1)?;
                }
            }
        }
    }

    /// Encodes some tasks.
    fn encode(&mut self, encoder: &dyn Encoder, tasks: Range<usize>) -> Result<(), Error> {
        check_stop(&self.stop)?;
        let (tasks, lanes, next) = (&self.tasks[tasks], &self.lanes, AtomicUsize::new(0));
        // A worker without a lane takes no task.
        let encode_next = |lane: usize| {
            let lane = lanes.get(lane)?;
            let task = tasks.get(next.fetch_add(1, Ordering::Relaxed))?;
            let task = &mut *task.lock().unwrap_or_else(PoisonError::into_inner);
            let lane = &mut *lane.lock().unwrap_or_else(PoisonError::into_inner);
            task.done = Some(encoder.encode(task, lane));
            Some(())
        };
        if tasks.len() == 1 || lanes.len() == 1 {
            while encode_next(0).is_some() {}
            return Ok(());
        }
        let step = |worker: &mut Worker| match encode_next(worker.index) {
            Some(()) => Ok(Step::Worked),
            None => Ok(Step::Finished),
        };
        Ok(self.workers.run(&step)?)
    }
}
