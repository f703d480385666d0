//! The unsafe fence: memory, threads and rings whose proofs are kept in one place.
//!
//! Everything here is safe to call. The crate knows nothing of files' names, budgets or graphs; what it owns is
//! memory that must stay where it is (under the kernel's hands, or lent to several threads at a time).
//!
//! | file | what it holds |
//! | --- | --- |
//! | `aligned_buffer.rs` | [`AlignedBuffer`]: zeroed, page-aligned memory; [`Element`]: what may lie in it |
//! | `file_map.rs` | [`FileMap`]: memory that is a file |
//! | `union_find.rs` | [`UnionFind`]: disjoint sets that several threads unite at once |
//! | `lock.rs` | [`lock()`]: locks a mutex, poisoned or not |
//! | `mailboxes.rs` | [`Mailboxes`]: messages that several threads combine at once |
//! | `atomic_bitmap.rs` | [`AtomicBitmap`]: bits that several threads set at once |
//! | `event_count.rs` | [`EventCount`]: who finds nothing to do sleeps until others have news |
//! | `numa.rs` | [`numa::Nodes`]: nodes of memory and processors |
//! | `rlimit.rs` | [`raise_nofile_limit()`]: as many open files as the system lets a process have |
//! | `failpoint.rs` | [`failpoint!`]: mistakes for tests to find |
//! | `prefetch.rs` | [`prefetch()`]: a hint that memory will be wanted soon |
//! | `atomic_range.rs` | [`AtomicRange`]: how much several threads have taken of what there is |
//! | `splitmix.rs` | [`SplitMix64`]: numbers from a seed |
//! | `segments.rs` | [`BorrowedSegments`]: one buffer whose segments many threads borrow one by one |
//! | `atomic_scalar.rs` | [`AtomicScalar`]: plain numbers that several threads change at once |
//! | `work_pool.rs` | [`WorkPool`]: parts of some work that threads share out between them until all is done |
//! | `simd.rs` | [`simd::dispatch`]: run a kernel with the vector instructions this processor has |
//! | `fork_join_pool.rs` | [`ForkJoinPool`]: threads that run one borrowed function at a time |
//! | `uring.rs` | [`uring::Ring`]: io_uring that owns the buffers in flight |

#![deny(unsafe_op_in_unsafe_fn)]

mod aligned_buffer;
mod atomic_bitmap;
mod atomic_range;
mod atomic_scalar;
mod event_count;
mod failpoint;
mod file_map;
mod fork_join_pool;
mod lock;
mod mailboxes;
pub mod numa;
mod prefetch;
mod rlimit;
mod segments;
pub mod simd;
mod splitmix;
mod sync;
mod union_find;
pub mod uring;
mod work_pool;

pub use aligned_buffer::{AlignedBuffer, Element, OutOfMemory, PAGE_BYTES};
pub use atomic_bitmap::AtomicBitmap;
pub use atomic_range::AtomicRange;
pub use atomic_scalar::{AtomicCell, AtomicScalar};
pub use event_count::EventCount;
#[cfg(feature = "failpoints")]
pub use failpoint::{Failpoint, activate};
pub use file_map::FileMap;
pub use fork_join_pool::ForkJoinPool;
pub use lock::lock;
pub use mailboxes::Mailboxes;
pub use prefetch::prefetch;
pub use rlimit::raise_nofile_limit;
pub use segments::{BorrowedSegments, SegmentMut, SegmentRef};
pub use splitmix::SplitMix64;
pub use union_find::UnionFind;
pub use work_pool::{WorkPool, WorkShare};
