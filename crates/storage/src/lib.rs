//! The disk, memory, clock and threads of one machine, as ports that all other crates use.
//!
//! Each port has a real implementation and a simulated one, chosen when a run starts. So the code that uses a port is the same for both.
//! The crate knows nothing of graphs.
//!
//! | file | what it holds |
//! | --- | --- |
//! | `growing_lease.rs` | [`GrowingLease`]: a lease that grows in steps |
//! | `memory_budget.rs` | [`MemoryBudget`]: the memory a run may take; [`Lease`] and [`Buffer`]: parts of it |
//! | `disk.rs` | [`open_disk`] |
//! | `disk/port.rs` | [`Disk`], [`Queue`]: files, and operations on them that complete later |
//! | `disk/system.rs`, `disk/system_file.rs` | file names and open files of this machine |
//! | `disk/uring.rs`, `disk/threads.rs` | its two queues: io_uring, and threads that call pread and pwrite |
//! | `disk/counted.rs` | [`CountedDisk`]: counts the bytes that pass through another disk |
//! | `disk/memory.rs` | [`MemoryDisk`]: files in memory, and the files of another disk |
//! | `disk/sim.rs` | [`SimDisk`]: files in memory, seeded order, faults |
//! | `disk/transfer.rs` | the remainder of an operation after a short read or write |
//! | `placement.rs`, `placement/` | [`Placement`]: the tier of memory of each kind of data |
//! | `tiers.rs`, `tiers/` | [`Tiers`]: memory by kind of data |
//! | `host_id.rs` | [`host_id`]: which machine left a directory; [`unlocked_dirs`]: leftovers of dead processes |
//! | `work_dir.rs` | [`WorkDir`]: a work directory, deleted when dropped |
//! | `atomic_file.rs`, `random_access_file.rs` | [`AtomicFile`]: a file that appears when it is complete; [`RandomAccessFile`]: one that is read at any offset |
//! | `checksummed_record.rs` | [`RecordWriter`], [`RecordReader`]: numbers and bytes in a file, with a checksum |
//! | `worker_pool.rs` | [`WorkerPool`]: runs a [`Job`] on N threads, or on one thread in a seeded order |
//! | `clock.rs`, `cancel.rs` | [`Clock`], [`CancelToken`]; [`SplitMix64`] is from the crate `raw` |
//! | `error.rs` | [`StorageError`] |

#![forbid(unsafe_code)]

mod atomic_file;
mod cancel;
mod checksummed_record;
mod clock;
mod disk;
mod error;
mod growing_lease;
mod host_id;
mod memory_budget;
mod memory_files;
mod output;
mod placement;
mod random_access_file;
mod tiers;
mod work_dir;
mod worker_pool;

pub use atomic_file::{AtomicFile, final_name};
pub use cancel::{CancelToken, GracefulGuard};
pub use checksummed_record::{RecordReader, RecordWriter, corrupt, is_corrupt};
pub use clock::{Clock, SimulatedClock, SystemClock};
pub use disk::counted::CountedDisk;
pub use disk::memory::{MemoryDisk, MemoryFiles};
pub use disk::open_disk;
pub use disk::port::{
    Completion, DirLock, Disk, DiskFile, FileHandle, FileIdentity, GRAIN_BYTES, IoChoice, LockMode,
    Open, Operation, Owner, Queue, Target,
};
pub use disk::sim::SimDisk;
pub use disk::sim::faults::{Fault, FaultKind, On};
pub use error::{BudgetError, JobError, StorageError, at, is_of_disk, is_of_open_files};
pub use graphmill_raw::SplitMix64;
pub use growing_lease::GrowingLease;
pub use host_id::{HOLD_ATTEMPTS, HOLD_PAUSE, host_id, is_this_host, unlocked_dirs};
pub use memory_budget::{Buffer, Lease, MemoryBudget};
pub use memory_files::is_in_memory;
pub use output::{OutputFile, write_output};
pub use placement::Placement;
pub use placement::error::PlacementError;
pub use placement::kind::DataKind;
pub use placement::tier::Tier;
pub use random_access_file::{ByteReader, RandomAccessFile};
pub use tiers::Tiers;
pub use work_dir::{WorkDir, is_missing, locks_unsupported, remove_dir_keeping_last};
pub use worker_pool::{Job, Step, Worker, WorkerPool, WorkerSubset};
