//! Bytes, time and threads of one machine: the ports through which everything above reaches it.
//!
//! Each port has an implementation for real machines and a simulated one, chosen when a run starts. So the code above is the same in both.
//! The crate knows nothing of graphs.
//!
//! | file | what it holds |
//! | --- | --- |
//! | `budget.rs` | [`Budget`]: the memory a run may take; [`Lease`] and [`Buffer`]: parts of it |
//! | `disk.rs` | [`open_disk`] |
//! | `disk/port.rs` | [`Disk`], [`Queue`]: files by completion |
//! | `disk/system.rs`, `disk/system_file.rs` | the names and the open files of this machine |
//! | `disk/uring.rs`, `disk/threads.rs` | its two queues: io_uring, and threads that call pread and pwrite |
//! | `disk/counted.rs` | [`CountedDisk`]: counts the bytes that pass through another disk |
//! | `disk/sim.rs` | [`SimDisk`]: files in memory, seeded order, faults |
//! | `disk/transfer.rs` | the remainder of an operation after a short read or write |
//! | `placement.rs`, `placement/` | [`Placement`]: the tier of memory of each kind of data |
//! | `tiers.rs`, `tiers/` | [`Tiers`]: memory by kind of data |
//! | `machine.rs` | [`machine_id`]: whose a leftover is; [`unheld`]: leftovers of dead processes |
//! | `scratch.rs` | [`Scratch`]: a work directory, deleted when dropped |
//! | `file_aside.rs`, `byte_file.rs` | [`FileAside`]: a file that appears complete; [`ByteFile`]: one that is read anywhere |
//! | `record.rs` | [`RecordWriter`], [`RecordReader`]: numbers and bytes in a file, with a checksum |
//! | `workers.rs` | [`Workers`]: run a [`Job`] on N threads, or on one in a seeded order |
//! | `clock.rs`, `stop.rs` | [`Clock`], [`Stop`]; [`Random`] is from the crate `raw` |
//! | `lock.rs` | the lock of a mutex that ignores poison |
//! | `error.rs` | [`StorageError`] |

#![forbid(unsafe_code)]

mod budget;
mod byte_file;
mod clock;
mod disk;
mod error;
mod file_aside;
mod lock;
mod machine;
mod memory_files;
mod output;
mod placement;
mod record;
mod scratch;
mod stop;
mod tiers;
mod workers;

pub use budget::{Budget, Buffer, Lease};
pub use byte_file::{ByteFile, ByteReader};
pub use clock::{Clock, SimulatedClock, SystemClock};
pub use disk::counted::CountedDisk;
pub use disk::open_disk;
pub use disk::port::{
    Completion, Disk, DiskFile, FileHandle, FileStamp, GRAIN_BYTES, Hold, Holding, IoChoice, Open,
    Operation, Owner, Queue, Target,
};
pub use disk::sim::SimDisk;
pub use disk::sim::faults::{Fault, FaultKind, On};
pub use error::{BudgetError, JobError, StorageError, is_of_disk, is_of_open_files};
pub use file_aside::{FileAside, name_to_be};
pub use graphmill_raw::Random;
pub use machine::{HOLD_ATTEMPTS, HOLD_PAUSE, is_this_machine, machine_id, unheld};
pub use memory_files::is_in_memory;
pub use output::{Output, write_output};
pub use placement::Placement;
pub use placement::error::PlacementError;
pub use placement::kind::Kind;
pub use placement::tier::Where;
pub use record::{RecordReader, RecordWriter, broken, is_broken};
pub use scratch::{Scratch, has_no_locks, is_missing, remove_dir_but_last};
pub use stop::{Patience, Stop};
pub use tiers::Tiers;
pub use workers::{Job, Step, Worker, Workers};
