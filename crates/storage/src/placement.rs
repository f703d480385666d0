//! Which kind of data is to lie on which tier of memory: what was asked, and what it says on the command line.
//!
//! The kinds and the ways to split them are those of Capelli et al. (iPregel on NVRAM): vertices are read and written at random and all
//! the time, edges are many more and only read, so the two may lie on different tiers.

mod error;

use std::fmt;
use std::path::{Path, PathBuf};

use graphmill_raw::numa::{Nodes, Policy};

pub use error::PlacementError;

/// A kind of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Vertex arrays; degrees and ranks of ids in memory.
    Vertices,
    /// Messages, accumulators, mailboxes.
    Messages,
    /// Indices of cells, fan-out, where lists begin.
    Index,
    /// Cells and weights in memory, records of lists.
    Edges,
}

impl Kind {
    /// All of them, in the order of their numbers.
    pub const ALL: [Kind; 4] = [Kind::Vertices, Kind::Messages, Kind::Index, Kind::Edges];

    /// What it is called.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Vertices => "vertices",
            Kind::Messages => "messages",
            Kind::Index => "index",
            Kind::Edges => "edges",
        }
    }
}

/// A tier of memory, or another way to have data at hand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Where {
    /// The memory that the system gives of itself: of the node that is near, then of others.
    Dram,
    /// Memory of some nodes. CXL memory, and Optane memory used as RAM, are nodes.
    Numa {
        /// Which.
        nodes: Nodes,
        /// How it is taken of them.
        policy: Policy,
    },
    /// A file that is mapped: in a folder, under a name that is not there yet, or a device of persistent memory. The budget does not
    /// pay for it, since the system can write it back; what a memory file system holds it does pay for.
    File(PathBuf),
    /// A slow tier that this machine has not: in DRAM, and each access is charged for.
    Model,
    /// Edges only: as many as there is room for are in memory, and more where work is worth it.
    Auto,
    /// Edges only: on disk; they stream by in each pass.
    Stream,
}

impl fmt::Display for Where {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Where::Dram => write!(f, "dram"),
            Where::Numa { nodes, policy } => write!(f, "numa:{nodes}:{}", name_of(*policy)),
            Where::File(path) => write!(f, "file:{}", path.display()),
            Where::Model => write!(f, "model"),
            Where::Auto => write!(f, "auto"),
            Where::Stream => write!(f, "stream"),
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

impl Where {
    /// Whether it is the same memory as another place, or a part of it.
    fn is_within(&self, other: &Where) -> bool {
        match (self, other) {
            (Where::Numa { nodes, .. }, Where::Numa { nodes: others, .. }) => {
                nodes.without(others).count() == 0
            }
            (Where::File(path), Where::File(other)) => whole(path).starts_with(whole(other)),
            _ => self == other,
        }
    }

    /// A tier by its name, if there is such a name.
    fn named(text: &str) -> Option<Where> {
        let (name, rest) = text.split_once(':').unwrap_or((text, ""));
        match (name, rest) {
            ("dram", "") => Some(Where::Dram),
            ("model", "") => Some(Where::Model),
            ("auto", "") => Some(Where::Auto),
            ("stream", "") => Some(Where::Stream),
            ("file", path) if !path.is_empty() => Some(Where::File(path.into())),
            ("numa", rest) => {
                let (nodes, policy) = rest.split_once(':').unwrap_or((rest, "bind"));
                let all = [Policy::Bind, Policy::Preferred, Policy::Interleave];
                Some(Where::Numa {
                    nodes: nodes.parse().ok()?,
                    policy: all.into_iter().find(|of| name_of(*of) == policy)?,
                })
            }
            _ => None,
        }
    }
}

/// A path with nothing relative or linked left in it, as far as it is there.
fn whole(path: &Path) -> PathBuf {
    let missing = || {
        let folder = path.parent()?.canonicalize().ok()?;
        Some(folder.join(path.file_name()?))
    };
    let found = path.canonicalize().ok();
    found.or_else(missing).unwrap_or_else(|| path.to_path_buf())
}

/// Where each kind of data is to lie, and which tier is the slow one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    kinds: [Where; 4],
    /// The tier that is called slow.
    pub slow: Option<Where>,
}

impl Default for Placement {
    /// Everything in DRAM, as many edges as fit.
    fn default() -> Placement {
        Placement {
            kinds: [Where::Dram, Where::Dram, Where::Dram, Where::Auto],
            slow: None,
        }
    }
}

impl Placement {
    /// Where a kind of data is to lie.
    pub fn at(&self, kind: Kind) -> &Where {
        &self.kinds[kind as usize]
    }

    /// The same with another place for a kind.
    ///
    /// # Errors
    /// Only edges can be streamed, or kept by what room there is.
    pub fn with(mut self, kind: Kind, place: Where) -> Result<Placement, PlacementError> {
        if kind != Kind::Edges && matches!(place, Where::Auto | Where::Stream) {
            return Err(PlacementError::OnlyEdges { kind, place });
        }
        self.kinds[kind as usize] = place;
        Ok(self)
    }

    /// Whether a kind of data lies on the slow tier, by whatever name.
    pub fn is_slow(&self, kind: Kind) -> bool {
        let at = self.at(kind);
        *at == Where::Model || self.slow.as_ref().is_some_and(|slow| at.is_within(slow))
    }

    /// What a list such as `["rw-split", "index=dram"]` says: a preset at most, which comes first, and `KIND=WHERE`, of which the later
    /// ones count; `slow_tier` is the tier that presets call slow, and what `KIND=slow` means.
    ///
    /// | preset | vertices, messages | index, edges |
    /// | --- | --- | --- |
    /// | `dram`, `cache` | DRAM | DRAM |
    /// | `slow` | slow tier | slow tier |
    /// | `rw-split`, where only a slow tier is named | DRAM | slow tier |
    ///
    /// `cache` is the paper's memory mode: the machine, or the kernel, moves pages between tiers by itself. So nothing is placed: the
    /// kernel leaves pages alone that a program has bound to nodes.
    ///
    /// # Errors
    /// Something in it makes no sense.
    pub fn parse(
        asked: &[impl AsRef<str>],
        slow_tier: Option<&str>,
    ) -> Result<Placement, PlacementError> {
        let slow = slow_tier.map(slow_tier_of).transpose()?;
        let mut placement = Placement {
            slow: slow.clone(),
            ..Placement::default()
        };
        if slow.is_some() {
            placement = placement.split("rw-split")?;
        }
        for (number, text) in asked.iter().map(AsRef::as_ref).enumerate() {
            let Some((kind, place)) = text.split_once('=') else {
                placement = placement.split(text)?;
                // After it, so that what is no preset at all is told as such.
                if number > 0 {
                    return Err(PlacementError::LatePreset {
                        preset: text.into(),
                    });
                }
                continue;
            };
            let of_kind = Kind::ALL.into_iter().find(|of| of.name() == kind);
            let kind = of_kind.ok_or_else(|| PlacementError::UnknownKind { text: text.into() })?;
            let place = match place {
                "slow" => slow.clone().ok_or(PlacementError::NoSlowTier {
                    preset: text.into(),
                })?,
                place => Where::named(place)
                    .ok_or_else(|| PlacementError::UnknownWhere { text: text.into() })?,
            };
            placement = placement.with(kind, place)?;
        }
        let is_used = Kind::ALL.into_iter().any(|kind| placement.is_slow(kind));
        if let (Some(tier), false) = (slow, is_used) {
            return Err(PlacementError::NothingSlow { tier });
        }
        Ok(placement)
    }

    /// The same with all kinds placed as a preset says.
    fn split(mut self, preset: &str) -> Result<Placement, PlacementError> {
        let slow_from = match preset {
            "dram" | "cache" => Kind::ALL.len(),
            "slow" => 0,
            "rw-split" => Kind::Index as usize,
            _ => {
                return Err(PlacementError::UnknownKind {
                    text: preset.into(),
                });
            }
        };
        for (number, place) in self.kinds.iter_mut().enumerate() {
            *place = match number < slow_from {
                true => Where::Dram,
                false => self.slow.clone().ok_or(PlacementError::NoSlowTier {
                    preset: preset.into(),
                })?,
            };
        }
        Ok(self)
    }
}

fn slow_tier_of(text: &str) -> Result<Where, PlacementError> {
    let tier = Where::named(text);
    let is_memory = |tier: &Where| !matches!(tier, Where::Dram | Where::Auto | Where::Stream);
    tier.filter(is_memory)
        .ok_or_else(|| PlacementError::NotSlow { text: text.into() })
}

#[cfg(test)]
mod tests;
