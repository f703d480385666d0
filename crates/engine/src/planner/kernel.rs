//! The choice of a pass's kernel by cost: dense or sparse, and over which orientation of the graph.

use graphmill_graph::DISK_PAGE_BYTES;

use crate::config::{KernelChoice, SparseChoice};
use crate::graph_view::UncachedBytes;
use crate::metrics::run::Mode;
use crate::program::edge::Direction;

/// A lookup in memory costs one part in 32 of a lookup on disk.
const MEMORY_SEEK: u64 = 32;
/// Cost of one edge in a sparse pass, in elements scanned: it lies anywhere in memory.
const EDGE_LOOKED_UP: u64 = 8;
/// Bytes that are read from disk in the time that a scan takes for an element.
const BYTES_AN_ELEMENT: f64 = 8.0;
/// Cost of following the decoded list of a vertex, in elements scanned.
const LIST: u64 = 16;

/// The inputs of the choice of a kernel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PassStats {
    pub(crate) direction: Direction,
    pub(crate) symmetric: bool,
    /// True if the graph is also stored transposed, and both orientations fold alike.
    pub(crate) transposed: bool,
    /// The program can say that a destination needs no message.
    pub(crate) pulls: bool,
    /// Every row changes, whether or not a message reached it.
    pub(crate) every: bool,
    pub(crate) active: u64,
    /// Edges of the active vertices, if known.
    pub(crate) edges: u64,
    pub(crate) vertices: u64,
    pub(crate) arcs: u64,
    pub(crate) columns: u64,
    pub(crate) workers: u64,
    /// True if a lookup folds as a scan does: the fold is exact, or no column has strips to merge.
    pub(crate) allows_sparse: bool,
    /// Bytes that a sparse pass may have to read.
    pub(crate) on_disk: UncachedBytes,
    /// Bytes of cells that a scan of the stored graph may have to read.
    pub(crate) scanned: u64,
    /// True if the cells of both orientations are in memory, or may be.
    pub(crate) both_resident: bool,
    /// The lists of all vertices are decoded.
    pub(crate) decoded: bool,
    pub(crate) gamma: u64,
    pub(crate) kernel: KernelChoice,
    pub(crate) sparse: SparseChoice,
}

/// Returns the frames of `cells` cells that `looks` lookups into `all` cells read.
fn frames_of_cells(looks: f64, cells: u64, all: u64) -> f64 {
    let share = cells as f64 / (all as f64).max(1.0);
    met(looks * share, frames(cells))
}

fn frames(bytes: u64) -> f64 {
    bytes as f64 / DISK_PAGE_BYTES as f64
}

/// Returns how many of `of` frames `looks` lookups hit, each at a random frame.
///
/// For x lookups a frame that is 1 - exp(-x) of them, here to 3 %, by operations that round alike on every machine.
fn met(looks: f64, of: f64) -> f64 {
    let x = looks / of.max(1.0);
    of * (1.0 - 1.0 / (1.0 + x * (1.0 + x / 2.0 * (1.0 + x / 3.0))))
}

impl PassStats {
    /// Cells that active vertices are looked up in, at most.
    fn lookups(&self) -> u64 {
        self.active.saturating_mul(self.columns).min(self.edges)
    }
    /// Returns the reads of a sparse pass and of a scan, in the unit of their costs.
    ///
    /// A scan reads the rows of cells of all batches with active vertices.
    fn read(&self) -> [u64; 2] {
        let (block_lists, cells) = (self.on_disk.block_lists, self.on_disk.cells);
        let (all_cells, fanout) = (self.on_disk.all_cells, self.on_disk.fanout);
        let files = self.on_disk.files;
        let [active, looks, columns, files] =
            [self.active, self.lookups(), self.columns, files].map(|count| count as f64);
        let looked_up = met(active, frames(fanout))
            + met(looks, frames(block_lists))
            + frames_of_cells(looks * files, cells, all_cells);
        let rows = met(active, columns);
        // Cells are parts of frames, or many frames.
        let scanned = frames_of_cells(rows * columns * files, self.scanned, all_cells);
        let scanned = scanned.max(frames(self.scanned) * rows / columns.max(1.0));
        let looked_up = if self.decoded { 0.0 } else { looked_up };
        [looked_up, scanned].map(|frames| (frames * self.frame_cost()) as u64)
    }
    /// Returns the cost of what a gather reads beyond the cells: one more frame for each.
    fn gather_reads(&self) -> u64 {
        let share = self.scanned as f64 / (self.on_disk.all_cells as f64).max(1.0);
        let cells = (self.columns as f64) * (self.columns as f64) * share;
        (cells * self.frame_cost()) as u64
    }
    /// Returns the cost of reading a frame.
    ///
    /// The disk is not shared by the workers.
    fn frame_cost(&self) -> f64 {
        self.workers as f64 * DISK_PAGE_BYTES as f64 / BYTES_AN_ELEMENT
    }
    /// Returns the cost of a scan: one for each source and edge, divided among the workers.
    ///
    /// See DFOGraph, section 4.1.
    fn scan(&self) -> u64 {
        self.arcs.saturating_add(self.vertices)
    }
    /// Returns the cost of a sparse pass on one worker, in the same unit, without its reads.
    ///
    /// The worker looks up each active vertex in the columns with its edges, then visits its edges one by one.
    fn sparse(&self) -> u64 {
        let lookups = if self.decoded {
            self.active.saturating_mul(LIST)
        } else {
            let cost = lookup_in_memory(self.gamma);
            self.lookups().saturating_mul(cost)
        };
        let edges = self.edges.saturating_mul(EDGE_LOOKED_UP);
        lookups.saturating_add(edges).saturating_mul(self.workers)
    }
    /// So few edges that a sparse pass is right whatever the rest says.
    pub(crate) fn edges_enough(&self) -> u64 {
        let edge = lookup_in_memory(self.gamma).saturating_add(EDGE_LOOKED_UP);
        self.scan() / self.workers.saturating_mul(edge).max(1)
    }
}

/// True if looking up the edges of the active sources of a cell costs less than reading all of it.
///
/// See DFOGraph, section 4.1; for a cell of a dense pass.
pub(crate) fn looks_up_in_cell(
    choice: SparseChoice,
    gamma: u64,
    active: u64,
    edges: u64,
    is_pinned: bool,
) -> bool {
    match choice {
        SparseChoice::Never => false,
        SparseChoice::Always => true,
        SparseChoice::Auto => {
            let lookup = match is_pinned {
                true => lookup_in_memory(gamma),
                false => gamma.max(1),
            };
            active.saturating_mul(lookup) < edges
        }
    }
}

/// The cost of a lookup that reads nothing, in elements scanned.
fn lookup_in_memory(gamma: u64) -> u64 {
    gamma.div_ceil(MEMORY_SEEK).max(1)
}

/// The kernel of a pass, and whether it uses the transposed graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KernelPlan {
    pub(crate) mode: Mode,
    pub(crate) transposed: bool,
}

/// Chooses the mode of a pass.
pub(crate) fn choose_kernel(facts: &PassStats) -> KernelPlan {
    // The stored arcs lead from those who call to those who hear, or from those who hear to those who call: a scatter
    // goes along arcs, a gather against them.
    let along = facts.direction == Direction::Forward || facts.symmetric;
    let against = facts.direction == Direction::Backward || facts.symmetric;
    let is_sparse = match facts.sparse {
        SparseChoice::Never => false,
        SparseChoice::Always => true,
        SparseChoice::Auto => {
            let [looked_up, scanned] = facts.read();
            facts.sparse().saturating_add(looked_up) < facts.scan().saturating_add(scanned)
        }
    };
    let (mode, transposed) =
        if is_sparse && facts.allows_sparse && !facts.every && (along || facts.transposed) {
            (Mode::Sparse, !along)
        } else {
            match facts.kernel {
                KernelChoice::Scatter if along || facts.transposed => (Mode::Scatter, !along),
                KernelChoice::Gather if against || facts.transposed => (Mode::Gather, !against),
                // Pulling saves work when most destinations stop early, and when most need no message any more: then a
                // scatter decodes nearly every block for its active sources, a gather hardly any.
                KernelChoice::Auto
                    if (against || facts.transposed && facts.both_resident)
                        && facts.pulls
                        && facts.gather_reads() < facts.scan() / 2
                        && (facts.edges > facts.arcs / 8 || facts.active > facts.vertices / 16) =>
                {
                    (Mode::Gather, !against)
                }
                // A dense pass costs the same either way; that over the stored graph has the cells that are in memory.
                _ if along => (Mode::Scatter, false),
                _ => (Mode::Gather, false),
            }
        };
    KernelPlan { mode, transposed }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A pass of few active vertices over a directed graph.
    const FEW: PassStats = PassStats {
        direction: Direction::Backward,
        symmetric: false,
        transposed: true,
        pulls: true,
        every: false,
        active: 10,
        edges: 100,
        vertices: 1 << 20,
        arcs: 1 << 24,
        columns: 16,
        workers: 2,
        allows_sparse: true,
        on_disk: UncachedBytes {
            block_lists: 0,
            cells: 0,
            all_cells: 3 << 24,
            fanout: 0,
            files: 1,
        },
        scanned: 0,
        both_resident: true,
        decoded: false,
        gamma: 1024,
        kernel: KernelChoice::Auto,
        sparse: SparseChoice::Auto,
    };

    fn chosen(facts: PassStats) -> (Mode, bool) {
        let KernelPlan { mode, transposed } = choose_kernel(&facts);
        (mode, transposed)
    }

    #[test]
    fn sparse_pull_needs_the_transpose() {
        assert_eq!(chosen(FEW), (Mode::Sparse, true));
        let stored_only = PassStats {
            transposed: false,
            ..FEW
        };
        assert_eq!(chosen(stored_only), (Mode::Gather, false));
        let forward = PassStats {
            direction: Direction::Forward,
            ..FEW
        };
        assert_eq!(chosen(forward), (Mode::Sparse, false));
        let symmetric = PassStats {
            symmetric: true,
            transposed: false,
            ..FEW
        };
        assert_eq!(chosen(symmetric), (Mode::Sparse, false));
    }

    #[test]
    fn sparse_pass_with_many_pages_is_refused() {
        let disk = UncachedBytes {
            block_lists: 1 << 24,
            cells: 3 << 24,
            ..FEW.on_disk
        };
        let on_disk = |active, edges| PassStats {
            direction: Direction::Forward,
            active,
            edges,
            workers: 1,
            on_disk: disk,
            scanned: disk.cells,
            ..FEW
        };
        // A scan reads 3 bytes for each of 2^24 edges, which is an element for 8.
        assert_eq!(chosen(on_disk(10, 100)).0, Mode::Sparse);
        assert_eq!(chosen(on_disk(1000, 10_000)).0, Mode::Sparse);
        let many = on_disk(40_000, 400_000);
        let all = disk.cells / BYTES_AN_ELEMENT as u64;
        assert!(many.read()[1] <= all && many.read()[1] > all / 100 * 99);
        assert!(many.sparse() < many.scan());
        assert_eq!(chosen(many).0, Mode::Scatter);
        // Half of the cells in memory: half of the looks.
        let half = PassStats {
            on_disk: UncachedBytes {
                block_lists: 0,
                cells: disk.cells / 2,
                ..disk
            },
            scanned: disk.cells / 2,
            ..many
        };
        assert_eq!(chosen(half).0, Mode::Sparse);
        // Scanned data is in memory, looked-up data is not.
        let transposed = PassStats { scanned: 0, ..many };
        assert_eq!(chosen(transposed).0, Mode::Scatter);
        // Of one batch, a scan reads one row.
        let one = PassStats {
            active: 1,
            edges: 16,
            on_disk: UncachedBytes {
                block_lists: 1 << 20,
                fanout: 1 << 20,
                ..disk
            },
            ..many
        };
        let [looked_up, scanned] = one.read();
        assert!(
            looked_up < scanned && scanned < many.read()[1] / 10,
            "{looked_up} {scanned}"
        );
    }

    #[test]
    fn gather_of_small_cells_on_disk_is_refused() {
        let many = |scanned| PassStats {
            symmetric: true,
            columns: 64,
            active: FEW.vertices / 2,
            edges: FEW.arcs / 2,
            scanned,
            ..FEW
        };
        assert_eq!(chosen(many(0)).0, Mode::Gather);
        // 4,096 cells of 12 KiB, each in a frame of 64 KiB.
        assert_eq!(chosen(many(3 << 24)).0, Mode::Scatter);
        let few_columns = PassStats {
            columns: 8,
            ..many(3 << 24)
        };
        assert_eq!(chosen(few_columns).0, Mode::Gather);
    }

    #[test]
    fn pages_met_follow_the_collector_formula() {
        for (looks, of_hundred) in [(1.0, 1.0), (20.0, 18.1), (100.0, 63.2), (300.0, 95.0)] {
            let found = met(looks, 100.0);
            assert!((found / of_hundred - 1.0).abs() < 0.03, "{looks}: {found}");
        }
        assert_eq!(met(10.0, 0.0), 0.0);
    }

    #[test]
    fn dense_pull_of_directed_needs_both_sides() {
        let many = PassStats {
            direction: Direction::Forward,
            active: FEW.vertices / 2,
            edges: FEW.arcs / 2,
            ..FEW
        };
        assert_eq!(chosen(many), (Mode::Gather, true));
        assert_eq!(
            chosen(PassStats {
                both_resident: false,
                ..many
            }),
            (Mode::Scatter, false)
        );
        assert_eq!(
            chosen(PassStats {
                transposed: false,
                ..many
            }),
            (Mode::Scatter, false)
        );
        assert_eq!(
            chosen(PassStats {
                pulls: false,
                ..many
            }),
            (Mode::Scatter, false)
        );
        let symmetric = PassStats {
            symmetric: true,
            transposed: false,
            ..many
        };
        assert_eq!(chosen(symmetric), (Mode::Gather, false));
    }

    #[test]
    fn kernel_asked_for_is_taken_where_possible() {
        let many = PassStats {
            active: FEW.vertices,
            edges: FEW.arcs,
            ..FEW
        };
        let asked = |kernel, direction, transposed| {
            chosen(PassStats {
                kernel,
                direction,
                transposed,
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
