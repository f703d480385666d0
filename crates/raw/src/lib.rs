//! The crate that holds the `unsafe` code for memory, threads and io_uring, with its proofs.
//!
//! Every public function is safe to call. The crate knows nothing of file names, budgets or graphs. It owns memory that must
//! not move while the kernel uses it or several threads borrow it.
//!
//! | file | what it holds |
//! | --- | --- |
//! | `aligned_buffer.rs` | [`AlignedBuffer`]: zeroed, page-aligned memory; [`Element`]: the types that it may hold |
//! | `file_map.rs` | [`FileMap`]: buffers in a mapped file |
//! | `union_find.rs` | [`UnionFind`]: disjoint sets that several threads unite concurrently |
//! | `sync.rs` | [`lock()`]: locks a mutex, poisoned or not; the atomics and cells of this crate |
//! | `mailboxes.rs` | [`Mailboxes`]: messages that several threads combine concurrently |
//! | `atomic_bitmap.rs` | [`AtomicBitmap`]: bits that several threads set concurrently |
//! | `event_count.rs` | [`EventCount`]: threads without work sleep until another thread notifies them |
//! | `numa.rs` | [`numa::Nodes`]: nodes of memory and processors |
//! | `rlimit.rs` | [`raise_nofile_limit()`]: raises the limit of open files of this process |
//! | `failpoint.rs` | [`failpoint!`]: mistakes that tests switch on |
//! | `prefetch.rs` | [`prefetch()`]: a hint that memory is read soon |
//! | `atomic_range.rs` | [`AtomicRange`]: units that several threads claim and release, up to a limit |
//! | `splitmix.rs` | [`SplitMix64`]: pseudorandom numbers from a seed |
//! | `segments.rs` | [`BorrowedSegments`]: one buffer whose segments many threads borrow one by one |
//! | `atomic_scalar.rs` | [`AtomicScalar`]: plain numbers that several threads change concurrently |
//! | `ring.rs` | [`ring()`]: a ring of one producer and one consumer |
//! | `slab.rs` | [`buckets()`]: one buffer cut into handles that move from thread to thread |
//! | `watermark.rs` | [`Watermark`]: a number that one thread raises and others read |
//! | `work_pool.rs` | [`WorkPool`]: parts of a job that threads take and share until all is done |
//! | `simd.rs` | [`simd::dispatch`]: runs a kernel with the vector instructions of this processor |
//! | `fork_join_pool.rs` | [`ForkJoinPool`]: threads that run one borrowed function at a time |
//! | `foreign.rs` | [`ForeignFunctions`]: functions of an edge program in another language |
//! | `udp.rs` | options of UDP sockets |
//! | `uring.rs` | [`uring::Ring`]: an io_uring that owns the buffers in flight |

#![deny(unsafe_op_in_unsafe_fn)]

mod aligned_buffer;
mod atomic_bitmap;
mod atomic_range;
mod atomic_scalar;
mod event_count;
mod failpoint;
mod file_map;
mod foreign;
mod fork_join_pool;
mod mailboxes;
pub mod numa;
mod prefetch;
mod ring;
mod rlimit;
mod segments;
pub mod simd;
mod slab;
mod splitmix;
mod sync;
mod udp;
mod union_find;
pub mod uring;
mod watermark;
mod work_pool;

pub use aligned_buffer::{AlignedBuffer, Element, OutOfMemory, PAGE_BYTES};
pub use atomic_bitmap::AtomicBitmap;
pub use atomic_range::AtomicRange;
pub use atomic_scalar::{AtomicCell, AtomicScalar};
pub use event_count::EventCount;
#[cfg(feature = "failpoints")]
pub use failpoint::{Failpoint, activate};
pub use file_map::FileMap;
pub use foreign::{CALL_VERTICES_MAX, ForeignAddresses, ForeignFailure, ForeignFunctions};
pub use fork_join_pool::ForkJoinPool;
pub use mailboxes::Mailboxes;
pub use prefetch::prefetch;
pub use ring::{RingConsumer, RingProducer, ring};
pub use rlimit::raise_nofile_limit;
pub use segments::{BorrowedSegments, SegmentMut, SegmentRef};
pub use slab::{Bucket, buckets};
pub use splitmix::SplitMix64;
pub use sync::lock;
pub use udp::{cut_sent_datagrams, join_received_datagrams};
pub use union_find::UnionFind;
pub use watermark::Watermark;
pub use work_pool::{WorkPool, WorkShare};
/// The crate whose traits and derives make a struct an [`Element`].
pub use zerocopy;
