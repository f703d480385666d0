//! The unsafe fence: memory, threads and rings whose proofs are kept in one place.
//!
//! Everything here is safe to call. The crate knows nothing of files' names, budgets or graphs; what it owns is
//! memory that must stay where it is (under the kernel's hands, or lent to several threads at a time).
//!
//! | file | what it holds |
//! | --- | --- |
//! | `aligned_buffer.rs` | [`AlignedBuffer`]: zeroed, page-aligned memory; [`Element`]: what may lie in it |
//! | `file_map.rs` | [`FileMap`]: memory that is a file |
//! | `forest.rs` | [`Forest`]: disjoint sets that several threads unite at once |
//! | `lock.rs` | [`lock()`]: locks a mutex, poisoned or not |
//! | `mailboxes.rs` | [`Mailboxes`]: messages that several threads combine at once |
//! | `marks.rs` | [`Marks`]: bits that several threads set at once |
//! | `news.rs` | [`News`]: who finds nothing to do sleeps until others have news |
//! | `numa.rs` | [`numa::Nodes`]: nodes of memory and processors |
//! | `open_files.rs` | [`allow_open_files()`]: as many open files as the system lets a process have |
//! | `planted.rs` | [`Mistake`]: mistakes for tests to find |
//! | `prefetch.rs` | [`prefetch()`]: a hint that memory will be wanted soon |
//! | `quota.rs` | [`Quota`]: how much several threads have taken of what there is |
//! | `random.rs` | [`Random`]: numbers from a seed |
//! | `segments.rs` | [`Segments`]: one buffer whose segments many threads borrow one by one |
//! | `shared_words.rs` | [`Word`]: plain numbers that several threads change at once |
//! | `shares.rs` | [`Shares`]: parts of some work that threads share out between them until all is done |
//! | `simd.rs` | [`simd::dispatch`]: run a kernel with the vector instructions this processor has |
//! | `team.rs` | [`Team`]: threads that run one borrowed function at a time |
//! | `uring.rs` | [`uring::Ring`]: io_uring that owns the buffers in flight |

#![deny(unsafe_op_in_unsafe_fn)]

mod aligned_buffer;
mod file_map;
mod forest;
mod lock;
mod mailboxes;
mod marks;
mod news;
pub mod numa;
mod open_files;
mod planted;
mod prefetch;
mod quota;
mod random;
mod segments;
mod shared_words;
mod shares;
pub mod simd;
mod sync;
mod team;
pub mod uring;

pub use aligned_buffer::{AlignedBuffer, Element, OutOfMemory, PAGE_BYTES};
pub use file_map::FileMap;
pub use forest::Forest;
pub use lock::lock;
pub use mailboxes::Mailboxes;
pub use marks::Marks;
pub use news::News;
pub use open_files::allow_open_files;
pub use planted::Mistake;
#[cfg(feature = "planted")]
pub use planted::plant;
pub use prefetch::prefetch;
pub use quota::Quota;
pub use random::Random;
pub use segments::{SegmentMut, SegmentRef, Segments};
pub use shared_words::{AtomicWord, Word};
pub use shares::{Share, Shares};
pub use team::Team;
