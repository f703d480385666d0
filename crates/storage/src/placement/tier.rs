//! Tiers of memory, and their names on the command line.

use std::fmt;
use std::path::{Path, PathBuf};

use graphmill_raw::numa::{Nodes, Policy};

/// A tier of memory, or another way to reach data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tier {
    /// The memory that the system gives by default: from the near node, then from others.
    Dram,
    /// The nodes of DRAM beside a slow tier of other nodes: those with processors.
    DramNodes,
    /// Memory of some nodes. CXL memory, and Optane memory used as RAM, are nodes.
    Numa {
        /// The nodes.
        nodes: Nodes,
        /// The way in which memory comes from them.
        policy: Policy,
    },
    /// Mapped files: of each a directory, the name of a file to create, or a device of persistent memory.
    ///
    /// Of several, each has the data of a range of batches, as a node of the machine has. The budget does not pay for it, since the system can write it back. It does pay for files of a memory file system.
    Files(Vec<PathBuf>),
    /// A simulated slow tier: the data is in DRAM, and each access is charged.
    Model,
    /// Edges only: as many as fit are in memory, and more if that saves work.
    Auto,
    /// Edges only: they are on disk, and each pass streams them.
    Stream,
}

impl fmt::Display for Tier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Tier::Dram | Tier::DramNodes => write!(f, "dram"),
            Tier::Numa { nodes, policy } => write!(f, "numa:{nodes}:{}", name_of(*policy)),
            Tier::Files(paths) => {
                let paths: Vec<String> = paths
                    .iter()
                    .map(|path| path.display().to_string())
                    .collect();
                write!(f, "file:{}", paths.join(","))
            }
            Tier::Model => write!(f, "model"),
            Tier::Auto => write!(f, "auto"),
            Tier::Stream => write!(f, "stream"),
        }
    }
}

fn name_of(policy: Policy) -> &'static str {
    match policy {
        Policy::Bind => "bind",
        Policy::Preferred => "preferred",
        Policy::Interleave => "interleave",
    }
}

impl Tier {
    /// Returns true if it is the same memory as another tier, or a part of it.
    pub(super) fn is_within(&self, other: &Tier) -> bool {
        match (self, other) {
            (Tier::Numa { nodes, .. }, Tier::Numa { nodes: others, .. }) => nodes.is_subset(others),
            (Tier::Files(paths), Tier::Files(others)) => {
                let is_in_one = |path| {
                    others
                        .iter()
                        .any(|other| whole(path).starts_with(whole(other)))
                };
                paths.iter().map(PathBuf::as_path).all(is_in_one)
            }
            _ => self == other,
        }
    }

    /// Parses the name of a tier; `None` if there is no such name.
    pub(super) fn named(text: &str) -> Option<Tier> {
        let (name, rest) = text.split_once(':').unwrap_or((text, ""));
        match (name, rest) {
            ("dram", "") => Some(Tier::Dram),
            ("model", "") => Some(Tier::Model),
            ("auto", "") => Some(Tier::Auto),
            ("stream", "") => Some(Tier::Stream),
            ("file", list) => {
                let paths = list.split(',').map(PathBuf::from).collect::<Vec<_>>();
                let is_empty = |path: &PathBuf| path.as_os_str().is_empty();
                (!paths.iter().any(is_empty)).then_some(Tier::Files(paths))
            }
            ("numa", rest) => {
                let (nodes, policy) = rest.split_once(':').unwrap_or((rest, "bind"));
                let all = [Policy::Bind, Policy::Preferred, Policy::Interleave];
                Some(Tier::Numa {
                    nodes: nodes.parse().ok()?,
                    policy: all.into_iter().find(|of| name_of(*of) == policy)?,
                })
            }
            _ => None,
        }
    }
}

/// Returns an absolute path without links, resolved up to its first part that does not exist.
fn whole(path: &Path) -> PathBuf {
    let missing = || {
        let folder = path.parent()?.canonicalize().ok()?;
        Some(folder.join(path.file_name()?))
    };
    let found = path.canonicalize().ok();
    found.or_else(missing).unwrap_or_else(|| path.to_path_buf())
}
