//! Which cells a cache holds: the first cells of runs that are spread over each column.

use std::ops::Range;

use graphmill_graph::{Cell, DISK_PAGE_BYTES};
use graphmill_storage::Lease;

use crate::context::ExecContext;
use crate::error::EngineError;
use crate::graph_view::starts;

/// Unless all cells are cached, bitmaps are cached if they take at most 1/8 of the memory.
const BITMAPS_SHARE: u64 = 8;

/// Runs of a column at most.
const RUNS_MAX: usize = 16;
/// Mean bytes of the runs of a column at least: between two cached ones, whole pages are read.
const RUN_BYTES_MIN: u64 = 4 * DISK_PAGE_BYTES;

/// Returns the number of runs of a column with `cells` cells of `bytes` bytes.
pub(crate) fn runs_of(cells: usize, bytes: u64) -> usize {
    let runs = (bytes / RUN_BYTES_MIN).clamp(1, RUNS_MAX as u64);
    cells.min(runs as usize)
}

/// The cached runs of all columns, one column after the other.
///
/// A column has one for each cell, but at most 16, of at least 256 KiB on average unless it has only one ([`runs_of`]).
#[derive(Default)]
pub(crate) struct CachedRuns {
    pub(crate) all: Vec<CachedRun>,
    /// The first of each column, and the end.
    firsts: Vec<usize>,
    _lease: Option<Lease>,
}

/// The cached prefix of a run of cells.
#[derive(Clone, Copy, Default)]
pub(crate) struct CachedRun {
    /// Number of its first cells that are cached.
    pub(crate) cells: usize,
    /// Offset of their bytes among all cached bytes.
    pub(crate) data: usize,
    pub(crate) weights: usize,
}

impl CachedRuns {
    /// Returns the bytes of the budget that they take at most.
    ///
    /// This rank owns `own` columns of `columns`.
    pub(crate) fn memory(own: usize, columns: usize) -> u64 {
        Self::bytes(own * RUNS_MAX, columns)
    }

    fn bytes(runs: usize, columns: usize) -> u64 {
        (runs * size_of::<CachedRun>() + (columns + 1) * size_of::<usize>()) as u64
    }

    /// Creates an empty cache of columns with `runs` runs each.
    fn new(context: &ExecContext, runs: impl Iterator<Item = usize>) -> Result<Self, EngineError> {
        let firsts = starts(runs);
        let all = firsts[firsts.len() - 1];
        let bytes = Self::bytes(all, context.batches.len());
        Ok(CachedRuns {
            _lease: Some(context.budget.lease("pinned cells", bytes)?),
            all: vec![CachedRun::default(); all],
            firsts,
        })
    }

    /// Returns the runs of a column, each with the positions of its cells.
    pub(crate) fn of(
        &self,
        column: usize,
        cells: usize,
    ) -> impl Iterator<Item = (usize, Range<usize>)> + use<> {
        let first = self.firsts[column];
        let count = self.firsts[column + 1] - first;
        let run = move |i| begin(i, cells, count)..begin(i + 1, cells, count);
        (0..count).map(move |i| (first + i, run(i)))
    }

    /// That of the cell at a position, and the position of its first cell.
    #[inline]
    pub(crate) fn at(
        &self,
        column: usize,
        cells: usize,
        position: usize,
    ) -> Option<(&CachedRun, usize)> {
        let first = *self.firsts.get(column)?;
        let count = self.firsts.get(column + 1)? - first;
        let i = position * count / cells;
        Some((self.all.get(first + i)?, begin(i, cells, count)))
    }

    /// Caches the same share of each column of cells of `all` bytes together, in `room` bytes.
    pub(crate) fn choose(
        context: &ExecContext,
        cell_bytes: impl Fn(&Cell) -> u64 + Copy,
        all: u64,
        room: u64,
    ) -> Result<Self, EngineError> {
        let share = |of: u64| match all <= room {
            true => of,
            false => (u128::from(of) * u128::from(room) / u128::from(all.max(1))) as u64,
        };
        let count = |column| {
            let cells = context.own_cells(column);
            runs_of(cells.len(), cells.iter().map(cell_bytes).sum())
        };
        let mut runs = CachedRuns::new(context, (0..context.batches.len()).map(count))?;
        let mut taken = 0;
        for column in 0..context.batches.len() {
            let cells = context.own_cells(column);
            // The rest of a run's share, too small for its next cell, goes to the next run.
            let mut left = 0;
            for (i, run) in runs.of(column, cells.len()) {
                left += share(cells[run.clone()].iter().map(cell_bytes).sum());
                for cell in &cells[run] {
                    if cell_bytes(cell) > left {
                        break;
                    }
                    left -= cell_bytes(cell);
                    taken += cell_bytes(cell);
                    runs.all[i].cells += 1;
                }
            }
        }
        // The rest of all columns goes to the first cells that fit.
        for column in 0..context.batches.len() {
            let cells = context.own_cells(column);
            for (i, run) in runs.of(column, cells.len()) {
                let cached = &mut runs.all[i].cells;
                for cell in &cells[run.start + *cached..run.end] {
                    if taken + cell_bytes(cell) > room {
                        break;
                    }
                    taken += cell_bytes(cell);
                    *cached += 1;
                }
            }
        }
        Ok(runs)
    }

    /// True if all cells of a column are cached.
    pub(crate) fn has_all(&self, context: &ExecContext, column: usize) -> bool {
        let mut of = self.of(column, context.own_cells(column).len());
        of.all(|(i, run)| self.all[i].cells == run.len())
    }

    /// Places the cached cells one after the other, and their weights, of `edge_bytes` bytes each.
    ///
    /// Returns the offsets of both by column, and their ends.
    pub(crate) fn place(&mut self, context: &ExecContext, edge_bytes: u64) -> [Vec<usize>; 2] {
        let mut starts = [vec![0], vec![0]];
        let (mut data, mut weights) = (0, 0);
        for column in 0..context.batches.len() {
            let cells = context.own_cells(column);
            for (i, run) in self.of(column, cells.len()) {
                let cached = &mut self.all[i];
                (cached.data, cached.weights) = (data, weights);
                for cell in &cells[run][..cached.cells] {
                    data += cell.data_bytes() as usize;
                    weights += (cell.edges() * edge_bytes) as usize;
                }
            }
            starts[0].push(data);
            starts[1].push(weights);
        }
        starts
    }
}

/// Returns the first cell of run `i` of `count` runs over `cells` cells.
#[inline]
fn begin(i: usize, cells: usize, count: usize) -> usize {
    (i * cells).div_ceil(count)
}

/// The index data in a cache, and the bytes that are left for cells.
pub(crate) struct CacheShare {
    pub(crate) fanout: bool,
    pub(crate) block_lists: bool,
    pub(crate) bitmaps: bool,
    pub(crate) left: u64,
}

impl CacheShare {
    /// Divides `left` bytes between fan-out lists, lists of blocks, bitmaps and cells of these bytes.
    pub(crate) fn new(
        mut left: u64,
        [fanout_bytes, list_bytes, bitmap_bytes, cell_bytes]: [u64; 4],
    ) -> CacheShare {
        let mut take = |bytes: u64, fits: &dyn Fn(u64) -> bool| {
            let is_taken = fits(left);
            left -= if is_taken { bytes } else { 0 };
            is_taken
        };
        CacheShare {
            fanout: take(fanout_bytes, &|left| fanout_bytes <= left / 4),
            block_lists: take(list_bytes, &|left| list_bytes <= left / 2),
            bitmaps: take(bitmap_bytes, &|left| {
                are_bitmaps_pinned(bitmap_bytes, cell_bytes, left)
            }),
            left,
        }
    }
}

/// True if bitmaps are worth `bitmaps` of the `room` bytes in which cells of `cells` bytes are cached.
///
/// That is if everything fits, or if not even all cells fit and bitmaps take little. Otherwise cells
/// are the better use, since every pass reads them.
fn are_bitmaps_pinned(bitmaps: u64, cells: u64, room: u64) -> bool {
    bitmaps.saturating_add(cells) <= room || cells > room && bitmaps <= room / BITMAPS_SHARE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bitmaps_give_way_to_pinning_all_cells() {
        for (bitmaps, cells, room, pinned) in [
            (0, 0, 0, true),
            (10, 90, 100, true),
            // All cells fit, but not beside them.
            (11, 90, 100, false),
            (1, 100, 100, false),
            // Some cells are read anyway.
            (12, 101, 100, true),
            (13, 101, 100, false),
            (12, u64::MAX, 100, true),
        ] {
            let found = are_bitmaps_pinned(bitmaps, cells, room);
            assert_eq!(found, pinned, "{bitmaps} and {cells} in {room}");
        }
    }
}
