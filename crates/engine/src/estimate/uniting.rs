//! The one pass of a program that reads each edge once: it unites the ends of all edges (`exec/in_memory/afforest.rs`).
//!
//! | what | read | sent |
//! | --- | --- | --- |
//! | cells, or chunks | each once, and a page for each extent | |
//! | on several ranks: the forest of all vertices | | in pairs to the first rank, and back |
//! | order of degree: ranks of ids | once | on several ranks the least of each tree, as the forest |

use graphmill_graph::{DISK_PAGE_BYTES, Order, file_bytes};

use crate::estimate::model::{PassTraffic, PlannedRank, RankEstimator, RunEstimate};
use crate::exec::in_memory::afforest::BATCHES_MIN;
use crate::exec::in_memory::edge_scan;

impl PlannedRank<'_> {
    /// True if the run unites in one pass: its rows are in memory, and so is what it takes beside them.
    pub(crate) fn unites(&self) -> bool {
        let of = &self.of;
        let besides = match of.ranks() {
            1 => of.by_degree() * of.forest_bytes(),
            _ => {
                let forests = (1 + of.by_degree()).saturating_mul(of.forest_bytes());
                let chunks = of.shape.chunks();
                let chunks = chunks.map_or(0, |chunks| chunks.scan_bytes(false));
                forests.saturating_add(edge_scan::least(of.shape.workers).max(chunks))
            }
        };
        let once = of.question.at_once && of.sizes.reads_edges_once;
        once && self.vertex_state_resident && besides <= self.beside_rows
    }

    /// Returns the estimate of that pass.
    pub(crate) fn unite(&self) -> RunEstimate {
        let of = &self.of;
        // The other half of the file goes from ranks to vertices.
        let ids = of.own_share(of.question.outline.files.order) / 2;
        let pass = PassTraffic {
            read: of.united_bytes() + of.by_degree() * ids,
            written: 0,
            sent: (1 + of.by_degree()).saturating_mul(of.forest_sent()),
        };
        RunEstimate {
            early: pass,
            pass,
            ..self.facts_of_rank()
        }
    }
}

impl RankEstimator<'_> {
    fn forest_bytes(&self) -> u64 {
        let vertices = self.question.outline.measure.batches.vertices();
        vertices.saturating_mul(self.sizes.arrays as u64)
    }

    /// Returns 1 if vertices have another order than their ids, which name components.
    fn by_degree(&self) -> u64 {
        u64::from(self.question.outline.measure.order == Order::Degree)
    }

    /// Returns the bytes that this rank sends to fold the forests of all ranks and to share the result.
    fn forest_sent(&self) -> u64 {
        let (rank, ranks) = (self.rank, self.ranks());
        let distances = (0..)
            .map(|i| 1 << i)
            .take_while(|distance| *distance < ranks);
        let receives = |distance: &usize| rank % (2 * distance) == 0 && rank + distance < ranks;
        let times = distances.filter(receives).count() + usize::from(rank > 0);
        self.forest_bytes().saturating_mul(times as u64)
    }

    /// Returns the bytes of pages that hold the cells; an undirected graph needs one of each two.
    fn united_bytes(&self) -> u64 {
        let outline = self.question.outline;
        if self.is_stream() {
            // Each rank scans the chunks at its own storage engine.
            return self.chunks_read();
        }
        let symmetric = outline.symmetric();
        let early_first = outline.columns.len() >= BATCHES_MIN;
        let of_column = |column: usize| {
            let file = outline.columns[column].file;
            let together = outline.columns.iter().filter(|other| other.file == file);
            let file: u64 = together.map(|column| column.data_bytes).sum();
            let (mut bytes, mut extents) = (0.0, 0.0);
            // The visit that needs the cell before, and the probability that the extent of that exists.
            let (mut last, mut run) = (None, 0.0f64);
            outline.each_cell_of_column(column, &mut |source, chance, of_cell| {
                let is_early = early_first && [0, column].contains(&source);
                let visit = (!symmetric || source <= column).then_some(is_early);
                if visit != last {
                    extents += std::mem::take(&mut run);
                    last = visit;
                }
                if visit.is_some() {
                    bytes += of_cell;
                    run = (run + chance).min(1.0);
                }
            });
            let most = (extents + run) * file_bytes(file) as f64;
            (bytes + (extents + run) * DISK_PAGE_BYTES as f64).min(most)
        };
        self.own.clone().map(of_column).sum::<f64>() as u64
    }
}
