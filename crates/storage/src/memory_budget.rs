//! The memory that a run may take, divided into leases.
//!
//! Callers lease every large allocation here before they make it, so the allocated bytes never exceed the total.
//! Invariant: the claimed part of `bytes` is the sum of all living leases, and at most its limit.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use graphmill_raw::{AlignedBuffer, AtomicRange, Element};

use crate::error::{BudgetError, StorageError};

/// A number of bytes that all clones share and lease parts of.
#[derive(Clone, Debug)]
pub struct MemoryBudget {
    books: Arc<BudgetState>,
}

#[derive(Debug)]
struct BudgetState {
    bytes: AtomicRange,
    peak: AtomicU64,
    /// The number of the lease from now that is refused; 0: none.
    refuse: AtomicU64,
}

impl MemoryBudget {
    /// Makes a budget of `total` bytes.
    pub fn new(total: u64) -> Self {
        let books = Arc::new(BudgetState {
            bytes: AtomicRange::new(0, total),
            peak: AtomicU64::new(0),
            refuse: AtomicU64::new(0),
        });
        MemoryBudget { books }
    }

    /// Takes `bytes` out of the budget until the lease is dropped.
    ///
    /// # Errors
    /// Fewer bytes are free; the error names `what`.
    pub fn lease(&self, what: &'static str, bytes: u64) -> Result<Lease, BudgetError> {
        let books = &*self.books;
        let refused = |available: u64| BudgetError {
            what,
            asked: bytes,
            available,
            total: books.bytes.limit(),
        };
        let relaxed = Ordering::Relaxed;
        let countdown = (books.refuse).fetch_update(relaxed, relaxed, |n| n.checked_sub(1));
        if countdown == Ok(1) {
            return Err(refused(books.bytes.remaining()));
        }
        let before = books.bytes.claim(bytes).map_err(refused)?;
        books.peak.fetch_max(before + bytes, Ordering::Relaxed);
        let books = Arc::clone(&self.books);
        let also = None;
        Ok(Lease { books, bytes, also })
    }

    /// Allocates `bytes` bytes of zeroed, aligned memory; leases whole pages of 4096 bytes.
    ///
    /// The memory comes from the system and returns there. A caller that needs memory repeatedly should keep it.
    ///
    /// # Errors
    /// The budget has too few bytes left, or the system refuses the memory.
    pub fn buffer(&self, what: &'static str, bytes: usize) -> Result<Buffer, StorageError> {
        let lease = self.lease(what, AlignedBuffer::footprint(bytes))?;
        let memory = AlignedBuffer::zeroed(bytes)?;
        Ok(Buffer { memory, lease })
    }

    /// Returns the bytes that are not leased.
    pub fn available(&self) -> u64 {
        self.books.bytes.remaining()
    }

    /// Returns the bytes of the whole budget.
    pub fn total(&self) -> u64 {
        self.books.bytes.limit()
    }

    /// Returns the maximum of leased bytes so far.
    pub fn peak(&self) -> u64 {
        self.books.peak.load(Ordering::Relaxed)
    }

    /// Refuses the `n`-th lease from now, once, even if the budget has enough bytes: for tests.
    ///
    /// 1 is the next lease; 0 refuses none.
    pub fn fail_nth(&self, n: u64) {
        self.books.refuse.store(n, Ordering::Relaxed);
    }
}

/// Bytes of a budget; dropping the lease frees them.
#[derive(Debug)]
pub struct Lease {
    books: Arc<BudgetState>,
    bytes: u64,
    /// A lease of the same memory from another budget, which ends with this one.
    also: Option<Box<Lease>>,
}

impl Lease {
    /// Returns their number.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Gives `bytes` of them back; all if it has fewer.
    pub(crate) fn give_back(&mut self, bytes: u64) {
        let bytes = bytes.min(self.bytes);
        self.bytes -= bytes;
        self.books.bytes.release(bytes);
    }

    /// Returns the lease with another one, which ends with it.
    pub(crate) fn with(mut self, other: Lease) -> Lease {
        self.also = Some(Box::new(match self.also.take() {
            Some(also) => also.with(other),
            None => other,
        }));
        self
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.books.bytes.release(self.bytes);
    }
}

/// Aligned memory with the lease that pays for it. Dereferences to its bytes.
#[derive(Debug)]
pub struct Buffer {
    // In this order: the memory is freed before its bytes of the budget.
    memory: AlignedBuffer,
    lease: Lease,
}

impl Buffer {
    /// Returns the bytes as whole elements, as many as fit.
    #[inline]
    pub fn typed<T: Element>(&self) -> &[T] {
        self.memory.typed()
    }

    /// Returns the bytes as whole elements that can be changed, as many as fit.
    #[inline]
    pub fn typed_mut<T: Element>(&mut self) -> &mut [T] {
        self.memory.typed_mut()
    }

    /// Returns the memory, and the lease to keep as long as the memory.
    pub fn into_parts(self) -> (AlignedBuffer, Lease) {
        (self.memory, self.lease)
    }

    /// Makes a buffer of memory and its lease.
    pub fn from_parts(memory: AlignedBuffer, lease: Lease) -> Self {
        Buffer { memory, lease }
    }
}

impl Deref for Buffer {
    type Target = [u8];
    #[inline]
    fn deref(&self) -> &[u8] {
        &self.memory
    }
}

impl DerefMut for Buffer {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.memory
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leases_add_up_and_are_returned() {
        let budget = MemoryBudget::new(100);
        let first = budget.lease("first", 60).unwrap();
        let second = budget.clone().lease("second", 40).unwrap();
        assert_eq!(
            (budget.available(), budget.peak(), first.bytes()),
            (0, 100, 60)
        );
        let error = budget.lease("rows", 1).unwrap_err();
        assert_eq!(
            error,
            BudgetError {
                what: "rows",
                asked: 1,
                available: 0,
                total: 100
            }
        );
        assert!(
            error
                .to_string()
                .contains("cannot lease 1 bytes of memory for rows")
                && error.to_string().contains("--memory")
        );
        drop(first);
        assert_eq!((budget.available(), budget.peak()), (60, 100));
        assert!(
            budget
                .lease("everything there is, and more", u64::MAX)
                .is_err()
        );
        drop(second);
        assert_eq!(budget.available(), budget.total());
        assert!(budget.lease("nothing", 0).is_ok());
    }

    #[test]
    fn nth_lease_fails_once() {
        let budget = MemoryBudget::new(100);
        for n in 1..5 {
            budget.fail_nth(n);
            for i in 1..8 {
                assert_eq!(budget.lease("one", 1).is_err(), i == n, "lease {i} of {n}");
            }
        }
        budget.fail_nth(1);
        budget.fail_nth(0);
        assert!(budget.lease("one", 1).is_ok());
        assert_eq!(budget.available(), 100);
    }

    #[test]
    fn buffer_pays_for_whole_pages() {
        let budget = MemoryBudget::new(3 * 4096);
        let mut buffer = budget.buffer("pages", 4097).unwrap();
        assert_eq!((buffer.len(), budget.available()), (4097, 4096));
        buffer.typed_mut::<u16>()[2047] = 9 << 8;
        assert_eq!((buffer[4095], buffer.typed::<u64>().len()), (9, 512));
        assert!(matches!(
            budget.buffer("more", 4097),
            Err(StorageError::Budget(_))
        ));
        let (memory, lease) = buffer.into_parts();
        drop(memory);
        assert_eq!(budget.available(), 4096, "the lease still lives");
        drop(lease);
        assert_eq!(budget.available(), 3 * 4096);
    }

    #[test]
    fn buffer_refused_by_the_system_costs_nothing() {
        let budget = MemoryBudget::new(u64::MAX);
        assert!(matches!(
            budget.buffer("the sky", 1 << 62),
            Err(StorageError::Memory(_))
        ));
        assert_eq!(budget.available(), u64::MAX);
    }

    #[test]
    fn leases_of_threads_never_exceed_the_budget() {
        let budget = MemoryBudget::new(10);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..2000 {
                        let lease = budget.lease("some", 4);
                        assert!(budget.peak() <= 8);
                        drop(lease);
                    }
                });
            }
        });
        assert_eq!(budget.available(), 10);
    }
}
