//! The queue over a pool of threads that call pread and pwrite, for systems without io_uring.
//!
//! All queues of a disk share the pool. It starts a thread when a transfer finds none idle, up to a limit. It ends the threads when the
//! disk and all its queues are gone. A transfer owns its buffer, so nothing is lent to a thread.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use graphmill_raw::lock;
use graphmill_raw::uring::Action;

use super::port::{Completion, Operation, Queue};
use super::stall;
use super::system_file::SystemFile;
use super::transfer::{Next, Transfer};

/// Maximum number of threads of a pool; they wait for the disk, so processors are no limit.
const THREADS_MAX: usize = 32;
const STACK_BYTES: usize = 64 << 10;

/// The threads; dropping the pool ends them.
#[derive(Debug, Default)]
pub(super) struct Pool {
    desk: Arc<SubmissionQueue>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

/// The transfers that wait for a thread.
#[derive(Debug, Default)]
struct SubmissionQueue {
    tasks: Mutex<Tasks>,
    wake: Condvar,
}

#[derive(Debug, Default)]
struct Tasks {
    waiting: VecDeque<(Transfer<SystemFile>, Arc<CompletionQueue>)>,
    idle: usize,
    closed: bool,
}

/// The completions of one queue, filled by the threads.
#[derive(Debug, Default)]
struct CompletionQueue {
    complete: Mutex<Vec<Completion>>,
    filled: Condvar,
}

impl Pool {
    fn start(&self) -> io::Result<JoinHandle<()>> {
        let desk = Arc::clone(&self.desk);
        std::thread::Builder::new()
            .name("disk".into())
            .stack_size(STACK_BYTES)
            .spawn(move || desk.serve())
    }

    fn give(&self, transfer: Transfer<SystemFile>, tray: &Arc<CompletionQueue>) {
        let mut tasks = lock(&self.desk.tasks);
        tasks.waiting.push_back((transfer, Arc::clone(tray)));
        let busy = tasks.waiting.len() > tasks.idle;
        drop(tasks);
        self.desk.wake.notify_one();
        if busy {
            let mut threads = lock(&self.threads);
            // If the system refuses a thread, the existing threads do the work; without any, this one does.
            if threads.len() < THREADS_MAX {
                match self.start() {
                    Ok(thread) => threads.push(thread),
                    Err(_) if threads.is_empty() => drop(self.desk.serve_waiting()),
                    Err(_) => {}
                }
            }
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        lock(&self.desk.tasks).closed = true;
        self.desk.wake.notify_all();
        for thread in lock(&self.threads).drain(..) {
            // A thread ends by returning; a panic was already printed.
            let _ = thread.join();
        }
    }
}

impl SubmissionQueue {
    /// Carries out the transfers that wait.
    fn serve_waiting(&self) -> MutexGuard<'_, Tasks> {
        let mut tasks = lock(&self.tasks);
        while let Some((transfer, tray)) = tasks.waiting.pop_front() {
            drop(tasks);
            let completion = carry_out(transfer);
            lock(&tray.complete).push(completion);
            tray.filled.notify_one();
            tasks = lock(&self.tasks);
        }
        tasks
    }

    fn serve(&self) {
        loop {
            let mut tasks = self.serve_waiting();
            if tasks.closed {
                return;
            } else {
                tasks.idle += 1;
                tasks = self
                    .wake
                    .wait(tasks)
                    .unwrap_or_else(PoisonError::into_inner);
                tasks.idle -= 1;
            }
        }
    }
}

fn carry_out(mut transfer: Transfer<SystemFile>) -> Completion {
    loop {
        let file = Arc::clone(&transfer.file.descriptor);
        let offset = transfer.offset();
        let step = match transfer.action {
            Action::Read => rustix::io::pread(&*file, transfer.bytes(), offset),
            Action::Write => rustix::io::pwrite(&*file, transfer.bytes(), offset),
            Action::Sync => rustix::fs::fdatasync(&*file).map(|()| 0),
        };
        match transfer.advance(step.map_err(Into::into)) {
            Next::Again(rest) => transfer = rest,
            Next::Complete(completion) => return completion,
        }
    }
}

/// A queue that hands its transfers to the pool.
#[derive(Debug)]
pub(super) struct ThreadsQueue {
    pool: Arc<Pool>,
    tray: Arc<CompletionQueue>,
    depth: usize,
    /// Number of transfers in the pool or on the tray.
    running: usize,
    backlog: VecDeque<Transfer<SystemFile>>,
    ready: VecDeque<Completion>,
}

impl ThreadsQueue {
    pub(super) fn new(pool: Arc<Pool>, depth: usize) -> Self {
        ThreadsQueue {
            pool,
            tray: Arc::default(),
            depth: depth.max(1),
            running: 0,
            backlog: VecDeque::new(),
            ready: VecDeque::new(),
        }
    }

    fn fill(&mut self) {
        while self.running < self.depth
            && let Some(transfer) = self.backlog.pop_front()
        {
            self.running += 1;
            self.pool.give(transfer, &self.tray);
        }
    }

    /// Empties the tray; with `wait`, waits until a completion is on it.
    fn reap(&mut self, wait: bool) {
        let mut complete = lock(&self.tray.complete);
        while wait && complete.is_empty() && self.running > 0 {
            let waited = self.tray.filled.wait_timeout(complete, stall::PATIENCE);
            let (filled, time) = waited.unwrap_or_else(PoisonError::into_inner);
            complete = filled;
            match time.timed_out() && complete.is_empty() {
                true => stall::tell(self.running),
                false => stall::end(),
            }
        }
        self.running -= complete.len();
        self.ready.extend(complete.drain(..));
        drop(complete);
        self.fill();
    }
}

impl Queue for ThreadsQueue {
    fn submit(&mut self, operation: Operation, token: u64) {
        match Transfer::begin(operation, token) {
            Next::Again(transfer) => {
                self.backlog.push_back(transfer);
                self.fill();
            }
            Next::Complete(completion) => self.ready.push_back(completion),
        }
    }

    fn poll(&mut self) -> Option<Completion> {
        if self.ready.is_empty() {
            self.reap(false);
        }
        self.ready.pop_front()
    }

    fn block(&mut self) {
        self.reap(self.ready.is_empty());
    }

    fn in_flight(&self) -> usize {
        self.ready.len() + self.running + self.backlog.len()
    }
}

impl Drop for ThreadsQueue {
    fn drop(&mut self) {
        self.backlog.clear();
        while self.running > 0 {
            self.reap(true);
        }
    }
}
