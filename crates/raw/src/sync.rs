//! Atomics and cells of the standard library, or those of a checker that goes through every order of their accesses
//! (`RUSTFLAGS="--cfg loom"`).

#![expect(
    unsafe_code,
    reason = "looks at plain memory as cells that threads share"
)]

use std::ops::Deref;
use std::sync::PoisonError;

use crate::AlignedBuffer;

#[cfg(loom)]
pub(crate) use loom::{
    cell::UnsafeCell,
    hint::spin_loop as spin,
    sync::atomic::{AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering},
    sync::{Condvar, Mutex, MutexGuard},
    thread,
};
#[cfg(not(loom))]
pub(crate) use std::{
    hint::spin_loop as spin,
    sync::atomic::{AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering},
    sync::{Condvar, Mutex, MutexGuard},
    thread,
};

/// What the lock guards is whole at every moment, so a panic elsewhere does not spoil it.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Tells the checker when memory that it does not see is reached into; nothing without it.
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

/// Goes through every order in which threads are interrupted so many times at most: those of threads that put each other to sleep
/// and wake each other are too many otherwise.
#[cfg(all(test, loom))]
pub(crate) fn nearly_every_order(interruptions: usize, program: impl Fn() + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(interruptions);
    model.check(program);
}

/// A cell with the checker's way of reaching into it.
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

/// What is nothing but its bytes, any bytes, and may be changed through a shared reference.
///
/// # Safety
/// Any bytes are a value of the type, which needs no drop.
#[cfg(not(loom))]
pub(crate) unsafe trait PlainCell {}
// SAFETY: an atomic number is its bytes.
#[cfg(not(loom))]
unsafe impl PlainCell for AtomicU8 {}
// SAFETY: as above.
#[cfg(not(loom))]
unsafe impl PlainCell for AtomicU64 {}
// SAFETY: a cell is what is in it, and any bytes are an element, which is `Copy`.
#[cfg(not(loom))]
unsafe impl<M: crate::Element> PlainCell for UnsafeCell<M> {}
#[cfg(loom)]
pub(crate) trait PlainCell {}
#[cfg(loom)]
impl<T> PlainCell for T {}

/// A row of cells that threads share, in memory of the caller's choice.
pub(crate) struct Cells<T> {
    /// Nobody makes a reference to its bytes any more.
    #[cfg(not(loom))]
    memory: AlignedBuffer,
    /// Cells of the checker are more than their bytes.
    #[cfg(loom)]
    cells: Box<[T]>,
    count: usize,
    cell: std::marker::PhantomData<T>,
}

#[cfg(not(loom))]
impl<T: PlainCell> Cells<T> {
    /// So many cells, or as many as the memory holds.
    pub(crate) fn new(memory: AlignedBuffer, count: usize, _: impl Fn() -> T) -> Self {
        const { assert!(align_of::<T>() <= crate::PAGE_BYTES) }
        Cells {
            count: count.min(memory.len() / size_of::<T>().max(1)),
            memory,
            cell: std::marker::PhantomData,
        }
    }
}

#[cfg(loom)]
impl<T: PlainCell> Cells<T> {
    /// So many cells; the memory is left alone.
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
    #[cfg(not(loom))]
    #[inline(always)]
    fn deref(&self) -> &[T] {
        // SAFETY: the memory holds `count` cells (see `new`) and is aligned for them, its bytes are good ones, it is reached through
        // cells only, and it lives as long as `self`.
        unsafe { std::slice::from_raw_parts(self.memory.start().as_ptr().cast(), self.count) }
    }
    #[cfg(loom)]
    fn deref(&self) -> &[T] {
        &self.cells[..self.count]
    }
}
