//! Errors of a placement.

use std::io;

use graphmill_raw::numa::Nodes;

use super::kind::DataKind;
use super::tier::Tier;

const WHERE: &str = "dram, numa:NODES[:bind|preferred|interleave], file:PATH[,PATH], model or slow";

/// The error of a placement that is invalid or not possible on this machine.
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
    /// A preset follows other placements, which it would replace.
    #[error("--place {preset} replaces all earlier placements: give it first, and once")]
    LatePreset {
        /// The argument.
        preset: String,
    },
    /// There is no tier of that name.
    #[error("--place {text}: give {WHERE}; for edges also auto or stream")]
    UnknownWhere {
        /// The argument.
        text: String,
    },
    /// Only edges can be on that tier.
    #[error("--place {}={place}: only edges can be {place}", kind.name())]
    OnlyEdges {
        /// The kind of data.
        kind: DataKind,
        /// The tier.
        place: Tier,
    },
    /// Data lies on the slow tier, and no option says which tier that is.
    #[error("--place {preset} requires --slow-tier: give numa:NODES, file:PATH or model")]
    NoSlowTier {
        /// The argument.
        preset: String,
    },
    /// The tier cannot be the slow one.
    #[error("--slow-tier {text}: give numa:NODES[:bind|preferred|interleave], file:PATH or model")]
    NotSlow {
        /// The argument.
        text: String,
    },
    /// No kind of data lies on the slow tier.
    #[error("--slow-tier {tier} conflicts with --place: no kind of data lies there; leave one out")]
    NothingSlow {
        /// The tier.
        tier: Tier,
    },
    /// The simulation of a slow tier is requested, and no kind of data lies there.
    #[error(
        "--simulate-slow-tier requires data on a slow tier: name one (--slow-tier model, numa:NODES or file:PATH)"
    )]
    NothingToCharge,
    /// This machine does not have a node.
    #[error(
        "cannot use numa:{asked} (--place, --slow-tier): this machine has no memory on node {missing}, but on nodes {there}; name one of those, or file:PATH or model"
    )]
    NoNode {
        /// The requested nodes.
        asked: Nodes,
        /// The requested nodes that do not exist.
        missing: Nodes,
        /// The nodes of this machine.
        there: Nodes,
    },
    /// The system refuses memory of nodes.
    #[error(
        "cannot allocate {bytes} bytes on node {nodes}: {source}; {}",
        advice_for_nodes(source)
    )]
    Nodes {
        /// The nodes.
        nodes: Nodes,
        /// Requested bytes.
        bytes: usize,
        /// The system's error.
        source: io::Error,
    },
    /// The nodes have too little memory for the least that a run needs there.
    #[error(
        "cannot place {of} on node {nodes}: a run takes {least} bytes there, and {free} are free; free memory of the node, name more nodes, or leave \
         {of} in DRAM (--place {of}=dram)", of = kind.name()
    )]
    SmallNodes {
        /// The kind of data.
        kind: DataKind,
        /// The nodes.
        nodes: Nodes,
        /// Their free bytes.
        free: u64,
        /// Bytes that would be enough.
        least: u64,
    },
    /// Data takes more memory of nodes than they had free when the run began.
    #[error(
        "cannot take {asked} bytes for {what} on node {nodes}: {available} of {total} bytes that were free there are left; name more nodes, or place \
         less data there (--place)"
    )]
    FullNodes {
        /// The nodes.
        nodes: Nodes,
        /// The purpose of the memory.
        what: &'static str,
        /// Requested bytes.
        asked: u64,
        /// Bytes that are left.
        available: u64,
        /// Bytes that were free when the run began.
        total: u64,
    },
    /// A path cannot be mapped as memory.
    #[error("cannot {action} {paths}: {source}{}", advice_for_files(source))]
    File {
        /// The attempted action: "open", "reserve 4096 bytes for rows in".
        action: String,
        /// The files, as on the command line.
        paths: String,
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
            "; free some space, or name another directory"
        }
        io::ErrorKind::AlreadyExists => {
            "; name a directory, a file that does not exist yet, or a DAX device"
        }
        io::ErrorKind::NotFound => {
            "; name a directory that exists and takes new files, or a DAX device"
        }
        io::ErrorKind::PermissionDenied => {
            "; check who may use it, or name a directory that takes new files"
        }
        io::ErrorKind::ReadOnlyFilesystem => ": name another directory",
        io::ErrorKind::FileTooLarge => ": raise the limit (ulimit -f), or name another file system",
        io::ErrorKind::WouldBlock => ": another process uses it",
        _ => ": name a directory of a file system that maps files, or a DAX device",
    }
}
