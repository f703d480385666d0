//! Faults of a simulated disk, and their times.

use std::io;
use std::path::PathBuf;

use graphmill_raw::SplitMix64;

use crate::cancel::CancelToken;

/// Which operations a fault may hit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum On {
    /// All of the following.
    Any,
    /// Reads through a queue, and [`Disk::read_small`](crate::Disk::read_small).
    Read,
    /// Writes through a queue, and writes and changes of length without one.
    ///
    /// The latter are [`Disk::write_small`](crate::Disk::write_small) and [`Disk::set_len`](crate::Disk::set_len).
    Write,
    /// Syncs of files and directories.
    Sync,
    /// Opening, listing and removing files and directories, and changes of names.
    Name,
}

/// The effect of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// The operation fails: input/output error.
    Eio,
    /// The operation fails: no space left.
    Enospc,
    /// A read or write moves only a part, at least one byte, and has to be continued.
    Short,
    /// The operation flips one bit of what it reads or writes, and reports success.
    FlipBit,
    /// The operation fails, and any part of its write may be durable. With `for_good` it is a power cut.
    PowerCut,
}

/// One planned failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The effect.
    pub kind: FaultKind,
    /// The operations that count.
    pub on: On,
    /// The number of the operation that fails, from now; 1 is the next.
    pub nth: u64,
    /// True if all later ones fail too.
    pub for_good: bool,
}

/// The planned faults and requests to stop, and the count of operations.
#[derive(Debug)]
pub(super) struct FaultSchedule {
    pub(super) random: SplitMix64,
    pub(super) faults: Vec<Fault>,
    /// Requests to stop, each with the number of its operation.
    pub(super) wishes: Vec<(u64, CancelToken)>,
    pub(super) operations: u64,
    /// Directories below this path cannot be locked.
    pub(super) no_locks: Option<PathBuf>,
}

impl FaultSchedule {
    pub(super) fn new(seed: u64) -> Self {
        FaultSchedule {
            random: SplitMix64::new(seed),
            faults: Vec::new(),
            wishes: Vec::new(),
            operations: 0,
            no_locks: None,
        }
    }

    /// Counts an operation and returns the fault that hits it.
    pub(super) fn next(&mut self, on: On) -> Option<FaultKind> {
        self.operations += 1;
        let now = self.operations;
        self.wishes.retain(|(at, stop)| {
            match *at == now {
                true if stop.is_requested() => stop.force(),
                true => stop.request(),
                false => {}
            }
            *at > now
        });
        let mut kind = None;
        self.faults.retain_mut(|fault| {
            let hit = fault.on == On::Any || fault.on == on;
            if hit && fault.nth > 1 {
                fault.nth -= 1;
                return true;
            }
            if hit {
                kind = kind.or(Some(fault.kind));
            }
            !hit || fault.for_good
        });
        kind
    }
}

/// Returns the error that an operation fails with; `None` if it succeeds.
pub(super) fn error_of(kind: FaultKind) -> Option<io::Error> {
    match kind {
        FaultKind::Eio | FaultKind::PowerCut => Some(io::Error::from_raw_os_error(libc::EIO)),
        FaultKind::Enospc => Some(io::Error::from_raw_os_error(libc::ENOSPC)),
        FaultKind::Short | FaultKind::FlipBit => None,
    }
}
