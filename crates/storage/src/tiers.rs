//! The tiers of memory of a run; only this module allocates memory by kind of data.

use std::io;
use std::sync::Arc;

use graphmill_raw::numa::{Nodes, Policy};
use graphmill_raw::{AlignedBuffer, FileMap, PAGE_BYTES};

use crate::error::StorageError;
use crate::memory_budget::{Buffer, MemoryBudget};
use crate::placement::Placement;
use crate::placement::error::PlacementError;
use crate::placement::kind::DataKind;
use crate::placement::tier::Tier;

mod mapped;

/// A [`Placement`] with open tiers.
#[derive(Clone, Debug)]
pub struct Tiers {
    asked: Placement,
    by_kind: [TierStore; 4],
}

#[derive(Clone, Debug)]
enum TierStore {
    Dram,
    Numa {
        nodes: Nodes,
        policy: Policy,
    },
    File {
        map: Arc<FileMap>,
        /// True if the file is memory itself, for example on a tmpfs: the budget pays for it.
        leased: bool,
    },
}

impl Default for Tiers {
    /// Returns tiers with all data in DRAM.
    fn default() -> Tiers {
        Tiers {
            asked: Placement::default(),
            by_kind: [const { TierStore::Dram }; 4],
        }
    }
}

impl Tiers {
    /// Finds the nodes and opens the files of a placement.
    ///
    /// The files have no names, so the system deletes them when the process ends.
    ///
    /// # Errors
    /// A node does not exist or may not be used, or a path cannot be mapped.
    pub fn open(placement: &Placement) -> Result<Tiers, StorageError> {
        let mut tiers = Tiers {
            asked: placement.clone(),
            ..Tiers::default()
        };
        for (number, kind) in DataKind::ALL.into_iter().enumerate() {
            let place = placement.at(kind);
            // Kinds that share a file share its mappings.
            let same = DataKind::ALL[..number]
                .iter()
                .position(|of| placement.at(*of) == place);
            tiers.by_kind[number] = match same {
                Some(same) => tiers.by_kind[same].clone(),
                None => TierStore::open(place)?,
            };
        }
        // The first page shows whether the system allows it.
        for kind in DataKind::ALL {
            tiers.buffer(
                kind,
                &MemoryBudget::new(u64::MAX),
                "a page to try",
                PAGE_BYTES,
            )?;
        }
        Ok(tiers)
    }

    /// Returns the requested placement.
    pub fn placement(&self) -> &Placement {
        &self.asked
    }

    /// Allocates `bytes` bytes of zeroed, aligned memory on the tier of its kind.
    ///
    /// If the budget pays for that tier, whole pages of 4096 bytes are leased. The memory comes from the system and returns there.
    ///
    /// # Errors
    /// The budget has too few bytes left, the system refuses the memory, or the file system of a mapped file is full.
    pub fn buffer(
        &self,
        kind: DataKind,
        budget: &MemoryBudget,
        what: &'static str,
        bytes: usize,
    ) -> Result<Buffer, StorageError> {
        let lease = || budget.lease(what, self.leased(kind, AlignedBuffer::footprint(bytes)));
        match &self.by_kind[kind as usize] {
            TierStore::Dram => budget.buffer(what, bytes),
            TierStore::Numa { nodes, policy } => {
                let lease = lease()?;
                let memory = AlignedBuffer::on_nodes(bytes, nodes, *policy);
                let memory = memory.map_err(|source| refused(nodes, bytes, source))?;
                Ok(Buffer::from_parts(memory, lease))
            }
            TierStore::File { map, .. } => {
                let lease = lease()?;
                let memory = map.buffer(bytes).map_err(|source| {
                    StorageError::from(PlacementError::File {
                        action: format!("reserve {bytes} bytes for {what} in"),
                        path: self.path(kind),
                        source,
                    })
                })?;
                Ok(Buffer::from_parts(memory, lease))
            }
        }
    }

    /// Returns the bytes that the budget pays for `bytes` bytes of a kind: 0 in a mapped file.
    pub fn leased(&self, kind: DataKind, bytes: u64) -> u64 {
        match self.by_kind[kind as usize] {
            TierStore::File { leased: false, .. } => 0,
            _ => bytes,
        }
    }

    /// Describes the tier of a kind of data, and whether a file was mapped with MAP_SYNC.
    pub fn describe(&self, kind: DataKind) -> String {
        let place = self.asked.at(kind);
        match &self.by_kind[kind as usize] {
            TierStore::File { map, .. } if map.is_synchronous() => format!("{place} (MAP_SYNC)"),
            _ => place.to_string(),
        }
    }

    fn path(&self, kind: DataKind) -> std::path::PathBuf {
        match self.asked.at(kind) {
            Tier::File(path) => path.clone(),
            _ => std::path::PathBuf::new(),
        }
    }
}

impl TierStore {
    fn open(place: &Tier) -> Result<TierStore, StorageError> {
        match place {
            Tier::Dram | Tier::Model | Tier::Auto | Tier::Stream => Ok(TierStore::Dram),
            Tier::Numa { nodes, policy } => {
                let there = Nodes::with_memory();
                let missing = nodes.without(&there);
                if missing.count() > 0 {
                    let asked = nodes.clone();
                    return Err(PlacementError::NoNode {
                        asked,
                        missing,
                        there,
                    }
                    .into());
                }
                Ok(TierStore::Numa {
                    nodes: nodes.clone(),
                    policy: *policy,
                })
            }
            Tier::File(path) => {
                let (map, leased) = mapped::open(path).map_err(|source| PlacementError::File {
                    action: "open".to_owned(),
                    path: path.clone(),
                    source,
                })?;
                Ok(TierStore::File { map, leased })
            }
        }
    }
}

fn refused(nodes: &Nodes, bytes: usize, source: io::Error) -> StorageError {
    PlacementError::Nodes {
        nodes: nodes.clone(),
        bytes,
        source,
    }
    .into()
}
