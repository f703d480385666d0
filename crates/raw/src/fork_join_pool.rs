//! Threads that all run the same borrowed function, one function at a time; the caller is one of them.
//!
//! 1. [`ForkJoinPool::broadcast`] puts the function in `call`, sets `running`, and increments `generation`.
//! 2. Each thread sees the new generation, runs the function, and decrements `running`.
//! 3. `broadcast` returns when `running` is 0. So the function is borrowed for exactly as long as threads use it, and no
//!    thread can miss a generation.
//!
//! A thread that waits spins for some microseconds first, since the next call often follows at once. It does not spin if
//! there are more threads than processors.

#![expect(
    unsafe_code,
    reason = "lends a borrowed function to threads that outlive the borrow"
)]

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

use crate::numa;
use crate::sync::thread::{Builder, JoinHandle, Thread, current, park, yield_now};
use crate::sync::{AtomicU64, AtomicUsize, Mutex, Ordering, lock, spin};

/// Number of times, some 30 microseconds in all, that a thread checks a condition before it parks.
const SPINS: usize = if cfg!(miri) { 2 } else { 1000 };
/// Checks between two yields of the processor, which the thread that it waits for may need.
const SPINS_PER_YIELD: usize = 50;

/// A fixed number of threads, the caller of [`ForkJoinPool::broadcast`] included.
#[derive(Debug)]
pub struct ForkJoinPool {
    shared: Arc<PoolState>,
    threads: Vec<JoinHandle<()>>,
    /// The process that has the threads: a fork of it has none of them.
    process: u32,
    /// Held during a call: one call at a time.
    turn: Mutex<()>,
}

#[derive(Debug)]
struct PoolState {
    generation: AtomicU64,
    running: AtomicUsize,
    spins: usize,
    /// The call of this generation; `None` tells the threads to end.
    call: Mutex<Option<Call>>,
    panic: Mutex<Option<Box<dyn Any + Send>>>,
}

#[derive(Clone)]
struct Call {
    /// Borrowed by `broadcast` only as long as `running` is not 0.
    function: &'static (dyn Fn(usize) + Sync),
    caller: Thread,
}

impl std::fmt::Debug for Call {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Call")
            .field("caller", &self.caller)
            .finish_non_exhaustive()
    }
}

impl ForkJoinPool {
    /// Starts `threads - 1` threads, `NAME-1`, `NAME-2`, ...; the caller is one more.
    ///
    /// `threads` is at least 1. If this process may use that many processors, thread `NAME-i` stays on the `i`-th one after the caller's.
    /// So the memory that a thread touches stays in near caches and on a near node. The caller runs where the system puts it.
    ///
    /// # Errors
    /// The system starts no more threads.
    pub fn new(threads: usize, name: &str) -> std::io::Result<ForkJoinPool> {
        if threads == 1 {
            return ForkJoinPool::start(1, name, 0, |_, _| ());
        }
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let mut own = numa::processors();
        let here = own.iter().position(|own| *own == numa::here().0);
        own.rotate_left(here.unwrap_or(0));
        if threads > own.len().min(processors) {
            own.clear();
        }
        let spins = if threads <= processors { SPINS } else { 0 };
        ForkJoinPool::start(threads, name, spins, move |shared, index| {
            if let Some(own) = own.get(index) {
                numa::pin_thread(*own);
            }
            shared.serve(index);
        })
    }

    /// Starts threads that run `serve`, and check `spins` times before they park.
    fn start(
        threads: usize,
        name: &str,
        spins: usize,
        serve: impl Fn(&PoolState, usize) + Clone + Send + 'static,
    ) -> std::io::Result<ForkJoinPool> {
        let shared = PoolState {
            generation: AtomicU64::new(0),
            running: AtomicUsize::new(0),
            spins,
            call: Mutex::new(None),
            panic: Mutex::new(None),
        };
        let mut team = ForkJoinPool {
            shared: Arc::new(shared),
            threads: Vec::new(),
            process: std::process::id(),
            turn: Mutex::new(()),
        };
        for index in 1..threads {
            let (shared, serve) = (Arc::clone(&team.shared), serve.clone());
            let builder = Builder::new().name(format!("{name}-{index}"));
            team.threads
                .push(builder.spawn(move || serve(&shared, index))?);
        }
        Ok(team)
    }

    /// Returns the number of threads, the caller included.
    pub fn threads(&self) -> usize {
        self.threads.len() + 1
    }

    /// Returns false in a process that was forked from the one that started the threads.
    ///
    /// There [`ForkJoinPool::broadcast`] would wait forever.
    pub fn is_of_this_process(&self) -> bool {
        self.threads.is_empty() || self.process == std::process::id()
    }

    /// Calls `function(0)` on this thread and `function(1..threads)` on the others, and waits for all.
    ///
    /// Calls from several threads take turns. A call from inside `function` never returns.
    ///
    /// # Panics
    /// `function` panicked on some thread: the panic continues here, after all threads have returned.
    pub fn broadcast(&self, function: &(dyn Fn(usize) + Sync)) {
        let _turn = lock(&self.turn);
        let shared = &*self.shared;
        // SAFETY: only the lifetime changes. The threads use the copy only before they decrement `running`. This function
        // returns or unwinds only after `running` is 0 and `call` is empty; nothing in between panics.
        let lent = unsafe {
            std::mem::transmute::<&(dyn Fn(usize) + Sync), &'static (dyn Fn(usize) + Sync)>(
                function,
            )
        };
        if !self.threads.is_empty() {
            *lock(&shared.call) = Some(Call {
                function: lent,
                caller: current(),
            });
            shared.running.store(self.threads.len(), Ordering::Relaxed);
            shared.generation.fetch_add(1, Ordering::Release);
            self.threads
                .iter()
                .for_each(|thread| thread.thread().unpark());
        }
        let own = catch_unwind(AssertUnwindSafe(|| function(0)));
        wait_until(shared.spins, || shared.running.load(Ordering::Acquire) == 0);
        *lock(&shared.call) = None;
        let theirs = lock(&shared.panic).take();
        if let Some(panic) = own.err().or(theirs) {
            resume_unwind(panic);
        }
    }
}

impl PoolState {
    /// Runs a started thread until the pool is dropped.
    fn serve(&self, index: usize) {
        self.serve_and_say(index, Ordering::Release);
    }

    /// Runs a started thread; `say` is the memory order with which it decrements `running`.
    ///
    /// By this decrement the caller learns that the thread has run the function.
    fn serve_and_say(&self, index: usize, say: Ordering) {
        for seen in 0.. {
            wait_until(self.spins, || {
                self.generation.load(Ordering::Acquire) != seen
            });
            let Some(call) = lock(&self.call).clone() else {
                return;
            };
            if let Err(panic) = catch_unwind(AssertUnwindSafe(|| (call.function)(index))) {
                lock(&self.panic).get_or_insert(panic);
            }
            let caller = call.caller;
            // After the decrement the function may no longer exist.
            if self.running.fetch_sub(1, say) == 1 {
                caller.unpark();
            }
        }
    }
}

impl Drop for ForkJoinPool {
    fn drop(&mut self) {
        if !self.is_of_this_process() {
            self.threads.drain(..).for_each(std::mem::forget);
            return;
        }
        *lock(&self.shared.call) = None;
        self.shared.generation.fetch_add(1, Ordering::Release);
        for thread in self.threads.drain(..) {
            thread.thread().unpark();
            // A thread ends by returning, since panics of functions are caught.
            let _ = thread.join();
        }
    }
}

/// Returns when `ready` returns true; the thread that makes it true unparks this one afterwards.
fn wait_until(spins: usize, ready: impl Fn() -> bool) {
    for look in 1..=spins {
        if ready() {
            return;
        }
        if look.is_multiple_of(SPINS_PER_YIELD) {
            yield_now();
        } else {
            spin();
        }
    }
    while !ready() {
        park();
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn index_runs_once_per_call() {
        for threads in [1, 2, 5] {
            let team = ForkJoinPool::new(threads, "test").unwrap();
            let calls: Vec<AtomicUsize> = (0..threads).map(|_| AtomicUsize::new(0)).collect();
            let rounds = if cfg!(miri) { 5 } else { 500 };
            for round in 1..=rounds {
                team.broadcast(&|index| {
                    calls[index].fetch_add(1, Ordering::Relaxed);
                });
                assert!(
                    calls
                        .iter()
                        .all(|count| count.load(Ordering::Relaxed) == round),
                    "{threads} threads"
                );
            }
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri has no processors to stay on")]
    fn threads_are_pinned_where_processors_suffice() {
        let allowed = numa::processors();
        for threads in [allowed.len(), allowed.len() + 1] {
            let team = ForkJoinPool::new(threads, "test").unwrap();
            let may_use = Mutex::new(vec![Vec::new(); threads]);
            team.broadcast(&|index| lock(&may_use)[index] = numa::processors());
            let may_use = may_use.into_inner().unwrap();
            assert_eq!(may_use[0], allowed, "the caller is left alone");
            let mut own: Vec<usize> = may_use[1..].concat();
            own.sort_unstable();
            own.dedup();
            match threads == allowed.len() {
                true => assert_eq!(own.len(), threads - 1),
                false => assert!(may_use.iter().all(|may| *may == allowed)),
            }
        }
    }

    #[test]
    fn calls_from_several_threads_take_turns() {
        let team = ForkJoinPool::new(2, "test").unwrap();
        let inside = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    for _ in 0..20 {
                        team.broadcast(&|_| {
                            assert!(inside.fetch_add(1, Ordering::SeqCst) < 2);
                            inside.fetch_sub(1, Ordering::SeqCst);
                        });
                    }
                });
            }
        });
    }

    #[test]
    fn panic_returns_to_the_caller_and_pool_survives() {
        let team = ForkJoinPool::new(3, "test").unwrap();
        for bad in 0..3 {
            let returned = AtomicUsize::new(0);
            let result = catch_unwind(AssertUnwindSafe(|| {
                team.broadcast(&|index| {
                    assert_ne!(index, bad, "planted");
                    returned.fetch_add(1, Ordering::Relaxed);
                });
            }));
            assert!(result.is_err());
            assert_eq!(
                returned.load(Ordering::Relaxed),
                2,
                "the others ran to their end"
            );
        }
        team.broadcast(&|_| ());
    }
}

#[cfg(all(test, any(loom, shuttle)))]
mod every_order {
    use super::*;
    use crate::sync::{Watch, nearly_every_order};

    /// Calls functions in turn that borrow memory, which the caller writes between the calls.
    fn calls(threads: usize, spins: usize, serve: fn(&PoolState, usize)) {
        nearly_every_order(3, move || {
            let team = ForkJoinPool::start(threads, "test", spins, serve).unwrap();
            for _ in 0..2 {
                let (lent, calls) = (Watch::default(), AtomicUsize::new(0));
                lent.write();
                team.broadcast(&|_| {
                    lent.read();
                    calls.fetch_add(1, Ordering::Relaxed);
                });
                lent.write();
                assert_eq!(calls.load(Ordering::Relaxed), threads);
            }
        });
    }

    #[test]
    fn borrowed_function_outlives_its_threads() {
        calls(2, 0, PoolState::serve);
        calls(2, 1, PoolState::serve);
        calls(3, 0, PoolState::serve);
    }

    #[test]
    #[cfg(shuttle)]
    fn borrowed_function_runs_on_many_threads() {
        calls(6, 0, PoolState::serve);
        calls(6, 2, PoolState::serve);
    }

    #[test]
    #[cfg(loom)]
    #[should_panic(expected = "Causality violation")]
    fn thread_leaving_unsynchronised_is_detected() {
        // Takes three threads: the checker runs no thread between the last decrement and the unpark after it, and that unpark also
        // synchronises the last thread with the caller.
        calls(3, 0, |shared, index| {
            shared.serve_and_say(index, Ordering::Relaxed);
        });
    }
}
