//! Errors of a placement.

use std::io;
use std::path::PathBuf;

use graphmill_raw::numa::Nodes;

use super::kind::DataKind;
use super::tier::Tier;

const WHERE: &str = "dram, numa:NODES[:bind|preferred|interleave], file:PATH, model or slow";

/// Why data cannot lie where it was to.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlacementError {
    /// Neither a preset nor a kind of data.
    #[error(
        "--place {text}: give vertices, messages, index or edges and where, such as edges=numa:1, or one of dram, slow, rw-split, cache"
    )]
    UnknownKind {
        /// The argument.
        text: String,
    },
    /// A preset that would undo what was said before it.
    #[error("--place {preset} replaces all earlier placements: give it first, and once")]
    LatePreset {
        /// The argument.
        preset: String,
    },
    /// No place of that name.
    #[error("--place {text}: give {WHERE}; for edges also auto or stream")]
    UnknownWhere {
        /// The argument.
        text: String,
    },
    /// A place that only edges can have.
    #[error("--place {}={place}: only edges can be {place}", kind.name())]
    OnlyEdges {
        /// The kind of data.
        kind: DataKind,
        /// Where.
        place: Tier,
    },
    /// Data lies on the slow tier, and no option says which tier that is.
    #[error(
        "--place {preset}: say which tier is the slow one (--slow-tier numa:NODES, file:PATH or model)"
    )]
    NoSlowTier {
        /// The argument.
        preset: String,
    },
    /// Not a tier that could be the slow one.
    #[error("--slow-tier {text}: give numa:NODES[:bind|preferred|interleave], file:PATH or model")]
    NotSlow {
        /// The argument.
        text: String,
    },
    /// A slow tier on which nothing lies.
    #[error("--slow-tier {tier} conflicts with --place: no kind of data lies there; leave one out")]
    NothingSlow {
        /// The tier.
        tier: Tier,
    },
    /// Accesses to the slow tier are to be charged for, and nothing lies there.
    #[error(
        "--simulate-slow-tier: nothing lies on a slow tier: name one (--slow-tier model, numa:NODES or file:PATH)"
    )]
    NothingToCharge,
    /// A node that this machine has not.
    #[error(
        "numa:{asked} (--place, --slow-tier): this machine has no memory on node {missing}; it has nodes {there}: name one of those, or file:PATH or model"
    )]
    NoNode {
        /// The nodes that were asked for.
        asked: Nodes,
        /// The requested nodes that do not exist.
        missing: Nodes,
        /// Those that are.
        there: Nodes,
    },
    /// The system does not let memory be taken of nodes.
    #[error(
        "cannot take {bytes} bytes of memory of node {nodes}: {source}: {}",
        advice_for_nodes(source)
    )]
    Nodes {
        /// The nodes.
        nodes: Nodes,
        /// Bytes asked for.
        bytes: usize,
        /// The system's error.
        source: io::Error,
    },
    /// A path cannot be memory.
    #[error("file:{}: cannot {action}: {source}{}", path.display(), advice_for_files(source))]
    File {
        /// The attempted action: "open it", "set 4096 bytes aside".
        action: String,
        /// The path.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

fn advice_for_nodes(error: &io::Error) -> &'static str {
    match error.raw_os_error() {
        Some(libc::EPERM | libc::ENOSYS) => {
            "mbind is forbidden here, as it is in some containers: allow it (docker run --cap-add SYS_NICE), or leave out numa:"
        }
        Some(libc::EINVAL) => {
            "the process may not use that node (see Mems_allowed in /proc/self/status), or the kernel is older than Linux 5.15"
        }
        _ => "lower --memory, or name more nodes",
    }
}

fn advice_for_files(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            ": free some space, or name another directory"
        }
        io::ErrorKind::AlreadyExists => {
            ": name a directory, a file that is not there yet, or a DAX device"
        }
        io::ErrorKind::NotFound => {
            ": name a directory that exists and takes new files, or a DAX device"
        }
        io::ErrorKind::PermissionDenied => {
            ": check who may use it, or name a directory that takes new files"
        }
        io::ErrorKind::ReadOnlyFilesystem => ": name another directory",
        io::ErrorKind::FileTooLarge => ": raise the limit (ulimit -f), or name another file system",
        io::ErrorKind::WouldBlock => ": another process uses it",
        _ => ": name a directory of a file system that maps files, or a DAX device",
    }
}
