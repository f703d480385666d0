//! The requested tier of memory of each kind of data, and its syntax on the command line.
//!
//! The kinds and the ways to split them come from Capelli et al. (iPregel on NVRAM). Vertices are read and written all the time, at random.
//! Edges are only read and take much more memory. So the two may lie on different tiers.

pub(crate) mod error;
pub(crate) mod kind;
pub(crate) mod tier;

use graphmill_raw::numa::{NodeTable, Nodes, Policy};

use error::PlacementError;
use kind::DataKind;
use tier::Tier;

/// The requested tier of each kind of data, and the tier that is called slow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    pub(crate) kinds: [Tier; 4],
    /// The tier that is called slow.
    pub slow: Option<Tier>,
}

impl Default for Placement {
    /// Returns a placement of all data in DRAM, with as many edges as fit.
    fn default() -> Placement {
        Placement {
            kinds: [Tier::Dram, Tier::Dram, Tier::Dram, Tier::Auto],
            slow: None,
        }
    }
}

impl Placement {
    /// Returns the requested tier of a kind of data.
    pub fn at(&self, kind: DataKind) -> &Tier {
        &self.kinds[kind as usize]
    }

    /// Returns the tier of a kind of data on a machine with such nodes.
    ///
    /// [`Tier::DramNodes`] becomes the nodes with processors that are not the slow tier. If there are none, it is DRAM.
    pub(crate) fn resolve(&self, kind: DataKind, table: &NodeTable) -> Tier {
        match (self.at(kind), &self.slow) {
            (Tier::DramNodes, Some(Tier::Numa { nodes, .. })) => {
                let is_dram = |node: &usize| table.with_memory.has(*node) && !nodes.has(*node);
                let nodes = Nodes::of(table.with_processors.iter().filter(is_dram));
                let policy = Policy::Bind;
                match nodes.count() {
                    0 => Tier::Dram,
                    _ => Tier::Numa { nodes, policy },
                }
            }
            (Tier::DramNodes, _) => Tier::Dram,
            (tier, _) => tier.clone(),
        }
    }

    /// Returns a copy with another tier for a kind.
    ///
    /// # Errors
    /// The tier is `stream` or `auto`, and the kind is not edges.
    pub fn with(mut self, kind: DataKind, place: Tier) -> Result<Placement, PlacementError> {
        if kind != DataKind::Edges && matches!(place, Tier::Auto | Tier::Stream) {
            return Err(PlacementError::OnlyEdges { kind, place });
        }
        self.kinds[kind as usize] = place;
        Ok(self)
    }

    /// Returns true if a kind of data lies on the slow tier, under any of its names.
    pub fn is_slow(&self, kind: DataKind) -> bool {
        let at = self.at(kind);
        *at == Tier::Model || self.slow.as_ref().is_some_and(|slow| at.is_within(slow))
    }

    /// Parses a list such as `["rw-split", "index=dram"]`.
    ///
    /// The list has at most one preset, which comes first, and any number of `KIND=WHERE`. The last entry of a kind counts.
    /// `slow_tier` is the tier that presets call slow, and the meaning of `KIND=slow`.
    ///
    /// | preset | vertices, messages | index, edges |
    /// | --- | --- | --- |
    /// | `dram`, `cache` | DRAM | DRAM |
    /// | `slow` | slow tier | slow tier |
    /// | `rw-split`, where only a slow tier is named | DRAM, bound to its nodes if the slow tier is nodes | slow tier |
    ///
    /// `cache` is the paper's memory mode: the machine, or the kernel, moves pages between tiers by itself. It binds no memory to nodes,
    /// since the kernel does not move bound pages.
    ///
    /// # Errors
    /// An entry is invalid.
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
                // Parses the preset first, so that an unknown one is reported as unknown.
                if number > 0 {
                    return Err(PlacementError::LatePreset {
                        preset: text.into(),
                    });
                }
                continue;
            };
            let of_kind = DataKind::ALL.into_iter().find(|of| of.name() == kind);
            let kind = of_kind.ok_or_else(|| PlacementError::UnknownKind { text: text.into() })?;
            let place = match place {
                "slow" => slow.clone().ok_or(PlacementError::NoSlowTier {
                    preset: text.into(),
                })?,
                place => Tier::named(place)
                    .ok_or_else(|| PlacementError::UnknownWhere { text: text.into() })?,
            };
            placement = placement.with(kind, place)?;
        }
        let is_used = DataKind::ALL
            .into_iter()
            .any(|kind| placement.is_slow(kind));
        if let (Some(tier), false) = (slow, is_used) {
            return Err(PlacementError::NothingSlow { tier });
        }
        Ok(placement)
    }

    /// Returns a copy with all kinds placed as a preset says.
    fn split(mut self, preset: &str) -> Result<Placement, PlacementError> {
        let slow_from = match preset {
            "dram" | "cache" => DataKind::ALL.len(),
            "slow" => 0,
            "rw-split" => DataKind::Index as usize,
            _ => {
                return Err(PlacementError::UnknownKind {
                    text: preset.into(),
                });
            }
        };
        let fast = match preset {
            "rw-split" => Tier::DramNodes,
            _ => Tier::Dram,
        };
        for (number, place) in self.kinds.iter_mut().enumerate() {
            *place = match number < slow_from {
                true => fast.clone(),
                false => self.slow.clone().ok_or(PlacementError::NoSlowTier {
                    preset: preset.into(),
                })?,
            };
        }
        Ok(self)
    }
}

fn slow_tier_of(text: &str) -> Result<Tier, PlacementError> {
    let tier = Tier::named(text);
    let is_memory = |tier: &Tier| {
        !matches!(
            tier,
            Tier::Dram | Tier::DramNodes | Tier::Auto | Tier::Stream
        )
    };
    tier.filter(is_memory)
        .ok_or_else(|| PlacementError::NotSlow { text: text.into() })
}

#[cfg(test)]
mod tests;
