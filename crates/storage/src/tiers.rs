//! The tiers of memory of a run; only this module allocates memory by kind of data.

mod mapped;

use graphmill_raw::numa::Nodes;
use graphmill_raw::{AlignedBuffer, PAGE_BYTES};

use self::mapped::MappedFile;
use crate::error::StorageError;
use crate::memory_budget::{Buffer, MemoryBudget};
use crate::placement::Placement;
use crate::placement::error::PlacementError;
use crate::placement::kind::DataKind;
use crate::placement::tier::Tier;

/// A [`Placement`] with open tiers.
#[derive(Clone, Debug, Default)]
pub struct Tiers {
    asked: Placement,
    /// The files of the kinds that lie in one.
    files: [Option<MappedFile>; 4],
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
            tiers.files[number] = match same {
                Some(same) => tiers.files[same].clone(),
                None => open(place)?,
            };
        }
        // The first page shows whether the system allows it.
        let budget = MemoryBudget::new(u64::MAX);
        for kind in DataKind::ALL {
            tiers.buffer(kind, &budget, "a page to try", PAGE_BYTES)?;
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
        let lease = budget.lease(what, self.leased(kind, AlignedBuffer::footprint(bytes)))?;
        let memory = match (self.asked.at(kind), &self.files[kind as usize]) {
            (Tier::Numa { nodes, policy }, _) => AlignedBuffer::on_nodes(bytes, nodes, *policy)
                .map_err(|source| PlacementError::Nodes {
                    nodes: nodes.clone(),
                    bytes,
                    source,
                })?,
            (Tier::File(path), Some(file)) => {
                file.map
                    .buffer(bytes)
                    .map_err(|source| PlacementError::File {
                        action: format!("reserve {bytes} bytes for {what} in"),
                        path: path.clone(),
                        source,
                    })?
            }
            _ => AlignedBuffer::zeroed(bytes)?,
        };
        Ok(Buffer::from_parts(memory, lease))
    }

    /// Returns the bytes that the budget pays for `bytes` bytes of a kind: 0 in a mapped file.
    pub fn leased(&self, kind: DataKind, bytes: u64) -> u64 {
        match self.files[kind as usize] {
            Some(MappedFile { leased: false, .. }) => 0,
            _ => bytes,
        }
    }

    /// Describes the tier of a kind of data, and whether a file was mapped with MAP_SYNC.
    pub fn describe(&self, kind: DataKind) -> String {
        let place = self.asked.at(kind);
        match &self.files[kind as usize] {
            Some(file) if file.map.is_synchronous() => format!("{place} (MAP_SYNC)"),
            _ => place.to_string(),
        }
    }
}

/// Checks the nodes of a tier, or opens its file.
fn open(place: &Tier) -> Result<Option<MappedFile>, PlacementError> {
    match place {
        Tier::Numa { nodes, .. } => {
            let there = Nodes::with_memory();
            let missing = nodes.without(&there);
            if missing.count() > 0 {
                let asked = nodes.clone();
                return Err(PlacementError::NoNode {
                    asked,
                    missing,
                    there,
                });
            }
            Ok(None)
        }
        Tier::File(path) => {
            let file = mapped::open(path).map_err(|source| PlacementError::File {
                action: "open".to_owned(),
                path: path.clone(),
                source,
            })?;
            Ok(Some(file))
        }
        Tier::Dram | Tier::Model | Tier::Auto | Tier::Stream => Ok(None),
    }
}
