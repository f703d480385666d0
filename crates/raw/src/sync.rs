//! Atomics and cells of the standard library, or those of a checker that goes through every order of their accesses
//! (`RUSTFLAGS="--cfg loom"`).

#[cfg(loom)]
pub(crate) use loom::{
    cell::UnsafeCell,
    hint::spin_loop as spin,
    sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering},
};
#[cfg(not(loom))]
pub(crate) use std::{
    hint::spin_loop as spin,
    sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering},
};

/// A cell with the checker's way of reaching into it.
#[cfg(not(loom))]
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
