//! The tiers of memory of a run; only this module allocates memory by kind of data.

mod mapped;

use std::io;
use std::path::PathBuf;

use graphmill_raw::numa::{NodeTable, Nodes, Policy};
use graphmill_raw::{AlignedBuffer, FileMap, PAGE_BYTES, numa};

use self::mapped::MappedFile;
use crate::error::{BudgetError, StorageError};
use crate::memory_budget::{Buffer, Lease, MemoryBudget};
use crate::placement::Placement;
use crate::placement::error::PlacementError;
use crate::placement::kind::DataKind;
use crate::placement::tier::Tier;

/// A [`Placement`] with open tiers.
#[derive(Clone, Debug)]
pub struct Tiers {
    asked: Placement,
    /// The tiers of the kinds on this machine.
    places: [Tier; 4],
    /// The files of the kinds that lie in one.
    files: [Vec<MappedFile>; 4],
    /// True for the kinds that the budget pays for.
    paid: [bool; 4],
    /// Every union of the sets of nodes that kinds are bound to, with the memory of these nodes.
    ///
    /// Memory of some nodes is leased from every union that has these nodes. So the kinds together never take more of any nodes than
    /// these have, however their sets overlap.
    node_budgets: Vec<(Nodes, MemoryBudget)>,
}

impl Default for Tiers {
    /// Returns all data in DRAM.
    fn default() -> Tiers {
        Tiers {
            asked: Placement::default(),
            places: Placement::default().kinds,
            files: Default::default(),
            paid: [true; 4],
            node_budgets: Vec::new(),
        }
    }
}

impl Tiers {
    /// Finds the nodes and opens the files of a placement.
    ///
    /// The files have no names, so the system deletes them when the process ends. `sharers` ranks of this machine share the nodes
    /// in equal parts.
    ///
    /// # Errors
    /// A node does not exist or may not be used, or a path cannot be mapped.
    pub fn open(placement: &Placement, sharers: usize) -> Result<Tiers, StorageError> {
        let is_plain = |place: &Tier| matches!(place, Tier::Dram | Tier::Auto | Tier::Stream);
        if placement.kinds.iter().all(is_plain) {
            return Ok(Tiers {
                asked: placement.clone(),
                places: placement.kinds.clone(),
                ..Tiers::default()
            });
        }
        Tiers::on(placement, &NodeTable::of_machine(), sharers)
    }

    /// Opens the tiers on a machine with such nodes.
    ///
    /// # Errors
    /// As for [`Tiers::open`].
    pub fn on(
        placement: &Placement,
        table: &NodeTable,
        sharers: usize,
    ) -> Result<Tiers, StorageError> {
        let places = DataKind::ALL.map(|kind| placement.resolve(kind, table));
        let mut tiers = Tiers {
            asked: placement.clone(),
            node_budgets: node_budgets(&places, table, sharers.max(1) as u64),
            ..Tiers::default()
        };
        for (number, place) in places.iter().enumerate() {
            // Kinds that share a file share its mappings.
            let same = places[..number].iter().position(|of| of == place);
            tiers.files[number] = match same {
                Some(same) => tiers.files[same].clone(),
                None => open(place, table)?,
            };
            let files = &tiers.files[number];
            tiers.paid[number] = files.is_empty() || files.iter().any(|file| file.leased);
        }
        tiers.places = places;
        // The first page shows whether the system allows it.
        let budget = MemoryBudget::new(u64::MAX);
        for kind in DataKind::ALL {
            tiers.buffer(kind, &budget, "a page to try", PAGE_BYTES)?;
        }
        Ok(tiers)
    }

    /// Returns the tiers of an estimate, which opens no file and allocates nothing.
    ///
    /// The budget does not pay for any file. Nodes have the memory that is free on this machine, or no limit if it lacks one of them.
    pub fn planned(placement: &Placement) -> Tiers {
        let table = NodeTable::of_machine();
        let places = DataKind::ALL.map(|kind| placement.resolve(kind, &table));
        Tiers {
            asked: placement.clone(),
            node_budgets: node_budgets(&places, &table, 1),
            paid: places
                .each_ref()
                .map(|place| !matches!(place, Tier::Files(_))),
            places,
            files: Default::default(),
        }
    }

    /// Returns the requested placement.
    pub fn placement(&self) -> &Placement {
        &self.asked
    }

    /// Allocates `bytes` bytes of zeroed, aligned memory on the tier of its kind.
    ///
    /// If the budget pays for that tier, whole pages of 4096 bytes are leased. The memory comes from the system and returns there.
    /// Memory that is bound to nodes is leased from the budgets of these nodes too.
    ///
    /// # Errors
    /// The budget or the nodes have too few bytes left, the system refuses the memory, or the file system of a mapped file is full.
    pub fn buffer(
        &self,
        kind: DataKind,
        budget: &MemoryBudget,
        what: &'static str,
        bytes: usize,
    ) -> Result<Buffer, StorageError> {
        self.allocate(kind, (budget, what), bytes, None)
    }

    /// Returns the number of files that a kind of data is divided among; 1 if it is in none.
    pub fn parts(&self, kind: DataKind) -> usize {
        self.files[kind as usize].len().max(1)
    }

    /// Allocates memory as [`Tiers::buffer`] does, each part in a file of its own.
    ///
    /// There are [`Tiers::parts`] parts. `cut` returns the offset where a part begins; the first one begins at 0. Cuts are rounded down to 2 MiB.
    ///
    /// # Errors
    /// As of [`Tiers::buffer`].
    pub fn buffer_in_parts(
        &self,
        kind: DataKind,
        budget: &MemoryBudget,
        what: &'static str,
        bytes: usize,
        cut: impl Fn(usize) -> usize,
    ) -> Result<Buffer, StorageError> {
        self.allocate(kind, (budget, what), bytes, Some(&cut))
    }

    fn allocate(
        &self,
        kind: DataKind,
        (budget, what): (&MemoryBudget, &'static str),
        bytes: usize,
        cut: Option<&dyn Fn(usize) -> usize>,
    ) -> Result<Buffer, StorageError> {
        let footprint = AlignedBuffer::footprint(bytes);
        let mut lease = budget.lease(what, self.leased(kind, footprint))?;
        for of_nodes in self.lease_on_nodes(kind, what, footprint)? {
            lease = lease.with(of_nodes);
        }
        let memory = match &self.places[kind as usize] {
            Tier::Numa { nodes, policy } => AlignedBuffer::on_nodes(bytes, nodes, *policy)
                .map_err(|source| PlacementError::Nodes {
                    nodes: nodes.clone(),
                    bytes,
                    source,
                })?,
            Tier::Files(_) => {
                let files = &self.files[kind as usize];
                let maps: Vec<_> = files.iter().map(|file| file.map.clone()).collect();
                // The file of the caller's socket.
                let near = maps.get(numa::here().1 % maps.len().max(1));
                let memory = match (near, cut) {
                    (Some(_), Some(cut)) if maps.len() > 1 => {
                        let cuts: Vec<usize> = (0..maps.len()).map(cut).collect();
                        FileMap::buffer_in_parts(&maps, &cuts, bytes)
                    }
                    (Some(map), _) => map.buffer(bytes),
                    // Tiers of an estimate have no files.
                    (None, _) => Err(io::ErrorKind::NotFound.into()),
                };
                memory.map_err(|source| PlacementError::File {
                    action: format!("reserve {bytes} bytes for {what} in"),
                    paths: self.places[kind as usize].to_string(),
                    source,
                })?
            }
            _ => AlignedBuffer::zeroed(bytes)?,
        };
        Ok(Buffer::from_parts(memory, lease))
    }

    /// Leases the bytes of the nodes that a kind is bound to; no leases if it is not bound.
    ///
    /// # Errors
    /// The nodes have too few bytes left.
    pub fn lease_on_nodes(
        &self,
        kind: DataKind,
        what: &'static str,
        bytes: u64,
    ) -> Result<Vec<Lease>, PlacementError> {
        let lease = |(nodes, budget): &(Nodes, MemoryBudget)| {
            let full = |error: BudgetError| PlacementError::FullNodes {
                nodes: nodes.clone(),
                what,
                asked: bytes,
                available: error.available,
                total: error.total,
            };
            budget.lease(what, bytes).map_err(full)
        };
        self.budgets_of(kind).map(lease).collect()
    }

    /// Returns the bytes that the nodes of a kind have left; `u64::MAX` if it is not bound to nodes.
    pub fn free_on_nodes(&self, kind: DataKind) -> u64 {
        let free = self.budgets_of(kind).map(|(_, budget)| budget.available());
        free.min().unwrap_or(u64::MAX)
    }

    /// Returns the most bytes so far that data took of the nodes of a kind; 0 if it is not bound.
    pub fn peak_on_nodes(&self, kind: DataKind) -> u64 {
        let peaks = self.budgets_of(kind).map(|(_, budget)| budget.peak());
        peaks.min().unwrap_or(0)
    }

    /// Returns true if two kinds are bound to common nodes.
    pub fn share_nodes(&self, one: DataKind, other: DataKind) -> bool {
        let nodes = |kind: DataKind| bound_nodes(&self.places[kind as usize]);
        match (nodes(one), nodes(other)) {
            (Some(one), Some(other)) => one.without(other).count() < one.count(),
            _ => false,
        }
    }

    /// Refuses work that takes `least` bytes of a kind, if the nodes of that kind have fewer.
    ///
    /// # Errors
    /// [`PlacementError::SmallNodes`].
    pub fn check_nodes(&self, kind: DataKind, least: u64) -> Result<(), PlacementError> {
        let free = self.free_on_nodes(kind);
        match bound_nodes(&self.places[kind as usize]) {
            Some(nodes) if free < least => Err(PlacementError::SmallNodes {
                kind,
                nodes: nodes.clone(),
                free,
                least,
            }),
            _ => Ok(()),
        }
    }

    fn budgets_of(&self, kind: DataKind) -> impl Iterator<Item = &(Nodes, MemoryBudget)> {
        let nodes = bound_nodes(&self.places[kind as usize]);
        let budgets = self.node_budgets.iter();
        budgets.filter(move |(union, _)| nodes.is_some_and(|nodes| nodes.is_subset(union)))
    }

    /// Returns the bytes that the budget pays for `bytes` bytes of a kind: 0 in a mapped file.
    pub fn leased(&self, kind: DataKind, bytes: u64) -> u64 {
        match self.paid[kind as usize] {
            true => bytes,
            false => 0,
        }
    }

    /// Describes the tier of a kind of data, and whether a file was mapped with MAP_SYNC.
    pub fn describe(&self, kind: DataKind) -> String {
        let place = &self.places[kind as usize];
        let files = &self.files[kind as usize];
        match !files.is_empty() && files.iter().all(|file| file.map.is_synchronous()) {
            true => format!("{place} (MAP_SYNC)"),
            false => place.to_string(),
        }
    }
}

/// Returns the nodes that memory of a tier comes from, and from no others.
fn bound_nodes(place: &Tier) -> Option<&Nodes> {
    match place {
        Tier::Numa {
            nodes,
            policy: Policy::Bind,
        } => Some(nodes),
        _ => None,
    }
}

/// Makes the budget of each union of the sets of nodes that kinds are bound to.
///
/// It is one of `sharers` equal parts of their free memory.
pub(crate) fn node_budgets(
    places: &[Tier],
    table: &NodeTable,
    sharers: u64,
) -> Vec<(Nodes, MemoryBudget)> {
    let mut unions: Vec<Nodes> = Vec::new();
    for nodes in places.iter().filter_map(bound_nodes) {
        let more: Vec<Nodes> = unions.iter().map(|union| union.union(nodes)).collect();
        for union in more.into_iter().chain([nodes.clone()]) {
            if !unions.contains(&union) {
                unions.push(union);
            }
        }
    }
    let budget = |nodes: Nodes| {
        let free = table.free_on(&nodes)?;
        Some((nodes, MemoryBudget::new(free / sharers)))
    };
    unions.into_iter().filter_map(budget).collect()
}

/// Checks the nodes of a tier, or opens its files.
fn open(place: &Tier, table: &NodeTable) -> Result<Vec<MappedFile>, PlacementError> {
    match place {
        Tier::Numa { nodes, .. } => {
            let missing = nodes.without(&table.with_memory);
            if missing.count() > 0 {
                let asked = nodes.clone();
                let there = table.with_memory.clone();
                return Err(PlacementError::NoNode {
                    asked,
                    missing,
                    there,
                });
            }
            Ok(Vec::new())
        }
        Tier::Files(paths) => {
            let open = |path: &PathBuf| {
                mapped::open(path).map_err(|source| PlacementError::File {
                    action: "open".to_owned(),
                    paths: format!("file:{}", path.display()),
                    source,
                })
            };
            paths.iter().map(open).collect()
        }
        Tier::Dram | Tier::DramNodes | Tier::Model | Tier::Auto | Tier::Stream => Ok(Vec::new()),
    }
}
