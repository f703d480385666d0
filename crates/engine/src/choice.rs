//! How a pass is done: which kernel, over which of the two ways round of a graph, whether by seeks, by what each costs.

use crate::metrics::Mode;
use crate::program::Direction;
use crate::settings::{KernelChoice, SeekChoice};

/// A seek into cells that are in memory costs one part in so many of a seek on disk.
const MEMORY_SEEK: u64 = 32;
/// What a sparse pass pays for one edge, in elements scanned: it lands anywhere in memory.
const EDGE_SOUGHT: u64 = 8;
/// What following the decoded list of a vertex costs, in elements scanned.
const LIST: u64 = 16;

/// What the choice of a pass's mode depends on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts {
    pub(crate) direction: Direction,
    pub(crate) symmetric: bool,
    /// The graph is there the other way round too, and both ways fold alike.
    pub(crate) turned: bool,
    /// The program can say that a destination needs no message.
    pub(crate) pulls: bool,
    /// Every row changes, whether or not a message reached it.
    pub(crate) every: bool,
    pub(crate) active: u64,
    /// Edges of the active vertices, as far as is known.
    pub(crate) edges: u64,
    pub(crate) vertices: u64,
    pub(crate) arcs: u64,
    pub(crate) columns: u64,
    pub(crate) workers: u64,
    /// A seek folds as a scan does: the fold is exact, or no column has strips to merge.
    pub(crate) seekable: bool,
    /// All cells that a seek goes to are in memory.
    pub(crate) resident: bool,
    /// The cells of both ways round are in memory, or may be.
    pub(crate) both_resident: bool,
    /// The lists of all vertices are decoded.
    pub(crate) decoded: bool,
    pub(crate) gamma: u64,
    pub(crate) kernel: KernelChoice,
    pub(crate) seek: SeekChoice,
}

impl Facts {
    /// What a scan of the graph costs: one for each source and edge (DFOGraph, section 4.1), shared by the workers.
    fn scan(&self) -> u64 {
        self.arcs.saturating_add(self.vertices)
    }
    /// What a sparse pass costs, on one worker, in the same unit: each active vertex is sought in the columns that hold
    /// its edges, for gamma each, and then its edges are gone to one by one.
    fn sparse(&self) -> u64 {
        let lookups = if self.decoded {
            self.active.saturating_mul(LIST)
        } else {
            let cells = self.active.saturating_mul(self.columns).min(self.edges);
            cells.saturating_mul(seek_cost(self.gamma, self.resident))
        };
        let edges = self.edges.saturating_mul(EDGE_SOUGHT);
        lookups.saturating_add(edges).saturating_mul(self.workers)
    }
    /// So few edges that a sparse pass is right whatever the rest says.
    pub(crate) fn edges_enough(&self) -> u64 {
        let edge = self.gamma.saturating_add(EDGE_SOUGHT);
        self.scan() / self.workers.saturating_mul(edge).max(1)
    }
}

/// Whether the edges of so many active sources are sought in a cell of a dense pass, rather than all of it read: where that costs
/// less (DFOGraph, section 4.1).
pub(crate) fn seeks_in_cell(
    choice: SeekChoice,
    gamma: u64,
    active: u64,
    edges: u64,
    is_pinned: bool,
) -> bool {
    match choice {
        SeekChoice::Never => false,
        SeekChoice::Always => true,
        SeekChoice::Auto => active.saturating_mul(seek_cost(gamma, is_pinned)) < edges,
    }
}

/// The cost of one seek in elements scanned.
fn seek_cost(gamma: u64, in_memory: bool) -> u64 {
    if in_memory {
        gamma.div_ceil(MEMORY_SEEK).max(1)
    } else {
        gamma.max(1)
    }
}

/// The mode of a pass, and whether it goes over the turned graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Choice {
    pub(crate) mode: Mode,
    pub(crate) turned: bool,
}

/// Chooses the mode of a pass.
pub(crate) fn choose(facts: &Facts) -> Choice {
    // The stored arcs lead from those who call to those who hear, or from those who hear to those who call: a scatter
    // goes along arcs, a gather against them.
    let along = facts.direction == Direction::Forward || facts.symmetric;
    let against = facts.direction == Direction::Backward || facts.symmetric;
    let seeks = match facts.seek {
        SeekChoice::Never => false,
        SeekChoice::Always => true,
        SeekChoice::Auto => facts.sparse() < facts.scan(),
    };
    let (mode, turned) = if seeks && facts.seekable && !facts.every && (along || facts.turned) {
        (Mode::Seek, !along)
    } else {
        match facts.kernel {
            KernelChoice::Scatter if along || facts.turned => (Mode::Scatter, !along),
            KernelChoice::Gather if against || facts.turned => (Mode::Gather, !against),
            // Pulling saves work when most destinations stop early, and when most need no message any more: then a
            // scatter decodes nearly every block for its active sources, a gather hardly any.
            KernelChoice::Auto
                if (against || facts.turned && facts.both_resident)
                    && facts.pulls
                    && (facts.edges > facts.arcs / 8 || facts.active > facts.vertices / 16) =>
            {
                (Mode::Gather, !against)
            }
            // A dense pass costs the same either way; that over the stored graph has the cells that are in memory.
            _ if along => (Mode::Scatter, false),
            _ => (Mode::Gather, false),
        }
    };
    Choice { mode, turned }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A pass of few active vertices over a directed graph.
    const FEW: Facts = Facts {
        direction: Direction::Backward,
        symmetric: false,
        turned: true,
        pulls: true,
        every: false,
        active: 10,
        edges: 100,
        vertices: 1 << 20,
        arcs: 1 << 24,
        columns: 16,
        workers: 2,
        seekable: true,
        resident: true,
        both_resident: true,
        decoded: false,
        gamma: 1024,
        kernel: KernelChoice::Auto,
        seek: SeekChoice::Auto,
    };

    fn chosen(facts: Facts) -> (Mode, bool) {
        let Choice { mode, turned } = choose(&facts);
        (mode, turned)
    }

    #[test]
    fn few_vertices_are_sought_against_the_arcs_only_where_the_graph_is_there_turned() {
        assert_eq!(chosen(FEW), (Mode::Seek, true));
        let stored_only = Facts {
            turned: false,
            ..FEW
        };
        assert_eq!(chosen(stored_only), (Mode::Gather, false));
        let forward = Facts {
            direction: Direction::Forward,
            ..FEW
        };
        assert_eq!(chosen(forward), (Mode::Seek, false));
        let symmetric = Facts {
            symmetric: true,
            turned: false,
            ..FEW
        };
        assert_eq!(chosen(symmetric), (Mode::Seek, false));
    }

    #[test]
    fn a_directed_graph_is_pulled_along_its_arcs_only_where_both_ways_are_in_memory() {
        let many = Facts {
            direction: Direction::Forward,
            active: FEW.vertices / 2,
            edges: FEW.arcs / 2,
            ..FEW
        };
        assert_eq!(chosen(many), (Mode::Gather, true));
        assert_eq!(
            chosen(Facts {
                both_resident: false,
                ..many
            }),
            (Mode::Scatter, false)
        );
        assert_eq!(
            chosen(Facts {
                turned: false,
                ..many
            }),
            (Mode::Scatter, false)
        );
        assert_eq!(
            chosen(Facts {
                pulls: false,
                ..many
            }),
            (Mode::Scatter, false)
        );
        let symmetric = Facts {
            symmetric: true,
            turned: false,
            ..many
        };
        assert_eq!(chosen(symmetric), (Mode::Gather, false));
    }

    #[test]
    fn a_kernel_that_was_asked_for_is_taken_wherever_the_graph_allows_it() {
        let many = Facts {
            active: FEW.vertices,
            edges: FEW.arcs,
            ..FEW
        };
        let asked = |kernel, direction, turned| {
            chosen(Facts {
                kernel,
                direction,
                turned,
                ..many
            })
        };
        use Direction::{Backward, Forward};
        use KernelChoice::{Gather, Scatter};
        assert_eq!(asked(Scatter, Forward, false), (Mode::Scatter, false));
        assert_eq!(asked(Gather, Forward, false), (Mode::Scatter, false));
        assert_eq!(asked(Gather, Forward, true), (Mode::Gather, true));
        assert_eq!(asked(Gather, Backward, true), (Mode::Gather, false));
        assert_eq!(asked(Scatter, Backward, false), (Mode::Gather, false));
        assert_eq!(asked(Scatter, Backward, true), (Mode::Scatter, true));
    }
}
