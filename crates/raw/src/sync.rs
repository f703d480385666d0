//! Atomics and cells of the standard library, or of a checker.
//!
//! loom tries every order of their accesses (`RUSTFLAGS="--cfg loom"`). shuttle draws some orders at random, of more threads than loom can
//! handle (`--cfg shuttle`).

#![cfg_attr(
    not(shuttle),
    expect(
        unsafe_code,
        reason = "looks at plain memory as cells that threads share"
    )
)]

use std::ops::Deref;
use std::sync::PoisonError;

use crate::aligned_buffer::AlignedBuffer;

#[cfg(loom)]
pub(crate) use loom::{
    cell::UnsafeCell,
    hint::spin_loop as spin,
    sync::atomic::{AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering},
    sync::{Condvar, Mutex, MutexGuard},
    thread,
};
#[cfg(shuttle)]
pub(crate) use shuttle::{
    hint::spin_loop as spin,
    sync::atomic::{AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering},
    sync::{Condvar, Mutex, MutexGuard},
    thread,
};
#[cfg(not(any(loom, shuttle)))]
pub(crate) use std::{
    hint::spin_loop as spin,
    sync::atomic::{AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering},
    sync::{Condvar, Mutex, MutexGuard},
    thread,
};

/// Locks a mutex, poisoned or not.
///
/// For data that is consistent whenever the lock is free, even after a panic of a thread that held it.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Tells the checker about accesses to memory that it does not see; does nothing without a checker.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    #[cfg(loom)]
    memory: UnsafeCell<()>,
}

// SAFETY: the checker runs one thread at a time, and there is nothing in the cell.
#[cfg(loom)]
unsafe impl Sync for Watch {}

impl Watch {
    #[inline(always)]
    pub(crate) fn read(&self) {
        #[cfg(loom)]
        self.memory.with(|_| ());
    }
    #[inline(always)]
    pub(crate) fn write(&self) {
        #[cfg(loom)]
        self.memory.with_mut(|_| ());
    }
}

/// Tries every order that the memory model allows.
#[cfg(all(test, loom))]
pub(crate) fn every_order(program: impl Fn() + Sync + Send + 'static) {
    loom::model(program);
}

/// Tries every order with a bounded number of interruptions of threads.
///
/// Threads that put each other to sleep and wake each other have too many orders otherwise.
#[cfg(all(test, loom))]
pub(crate) fn nearly_every_order(interruptions: usize, program: impl Fn() + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(interruptions);
    model.check(program);
}

/// Draws as many orders as `GRAPHMILL_SCHEDULES` says.
///
/// Half of them are any orders, and in half threads are interrupted a few times (Burckhardt et al., "A randomized scheduler with
/// probabilistic guarantees of finding bugs").
#[cfg(all(test, shuttle))]
pub(crate) fn every_order(program: impl Fn() + Sync + Send + 'static) {
    let asked = std::env::var("GRAPHMILL_SCHEDULES").ok();
    let schedules = asked
        .and_then(|count| count.parse().ok())
        .unwrap_or(2000)
        .max(2);
    let program = std::sync::Arc::new(program);
    let again = std::sync::Arc::clone(&program);
    shuttle::check_random(move || again(), schedules / 2);
    shuttle::check_pct(move || program(), schedules / 2, 3);
}
#[cfg(all(test, shuttle))]
pub(crate) fn nearly_every_order(_: usize, program: impl Fn() + Sync + Send + 'static) {
    every_order(program);
}

/// A cell with the checker's way to access it.
#[cfg(not(loom))]
#[repr(transparent)]
pub(crate) struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

#[cfg(not(loom))]
impl<T> UnsafeCell<T> {
    pub(crate) fn new(value: T) -> Self {
        UnsafeCell(std::cell::UnsafeCell::new(value))
    }
    #[inline(always)]
    pub(crate) fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
        f(self.0.get())
    }
}

/// A type whose values are nothing but bytes, and may change through a shared reference.
///
/// # Safety
/// Any bytes are a value of the type, which needs no drop.
#[cfg(not(any(loom, shuttle)))]
pub(crate) unsafe trait PlainCell {}
// SAFETY: an atomic number is its bytes.
#[cfg(not(any(loom, shuttle)))]
unsafe impl PlainCell for AtomicU8 {}
// SAFETY: as above.
#[cfg(not(any(loom, shuttle)))]
unsafe impl PlainCell for AtomicU64 {}
// SAFETY: a cell has the layout of its element, and any bytes are an element, which is `Copy`.
#[cfg(not(any(loom, shuttle)))]
unsafe impl<M: crate::aligned_buffer::Element> PlainCell for UnsafeCell<M> {}
#[cfg(any(loom, shuttle))]
pub(crate) trait PlainCell {}
#[cfg(any(loom, shuttle))]
impl<T> PlainCell for T {}

/// A row of cells that threads share, in memory of the caller's choice.
pub(crate) struct Cells<T> {
    /// No other reference to its bytes is made while `self` lives.
    #[cfg(not(any(loom, shuttle)))]
    memory: AlignedBuffer,
    /// Cells of the checker are more than their bytes.
    #[cfg(any(loom, shuttle))]
    cells: Box<[T]>,
    count: usize,
    cell: std::marker::PhantomData<T>,
}

#[cfg(not(any(loom, shuttle)))]
impl<T: PlainCell> Cells<T> {
    /// Returns `count` cells, or as many as the memory holds.
    pub(crate) fn new(memory: AlignedBuffer, count: usize, _: impl Fn() -> T) -> Self {
        const { assert!(align_of::<T>() <= crate::aligned_buffer::PAGE_BYTES) }
        Cells {
            count: count.min(memory.len() / size_of::<T>().max(1)),
            memory,
            cell: std::marker::PhantomData,
        }
    }
}

#[cfg(any(loom, shuttle))]
impl<T: PlainCell> Cells<T> {
    /// Returns `count` cells, and leaves the memory alone.
    pub(crate) fn new(_: AlignedBuffer, count: usize, cell: impl Fn() -> T) -> Self {
        Cells {
            cells: (0..count).map(|_| cell()).collect(),
            count,
            cell: std::marker::PhantomData,
        }
    }
}

impl<T: PlainCell> Deref for Cells<T> {
    type Target = [T];
    #[cfg(not(any(loom, shuttle)))]
    #[inline(always)]
    fn deref(&self) -> &[T] {
        // SAFETY: the memory holds `count` cells (see `new`) and is aligned for them. Any bytes are valid cells, the memory is accessed
        // only through cells, and it lives as long as `self`.
        unsafe { std::slice::from_raw_parts(self.memory.start().as_ptr().cast(), self.count) }
    }
    #[cfg(any(loom, shuttle))]
    fn deref(&self) -> &[T] {
        &self.cells[..self.count]
    }
}
