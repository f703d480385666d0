//! How free memory is split among workers that encode rows.

use graphmill_graph::IdCursor;

use crate::result::sizes::{BLOCK_ROWS, OUTPUT_BYTES};

/// The shares of the free memory when the rows are written.
#[derive(Debug, Clone, Copy)]
pub(super) struct OutputMemory {
    pub(super) is_text: bool,
    /// Bytes for workers and tasks in addition to the first.
    pub(super) extra: u64,
}

impl OutputMemory {
    /// Returns the bytes of each task but the first.
    ///
    /// They are values and marks of a block, and its output with a page more.
    fn task_bytes(self) -> u64 {
        let outputs = if self.is_text { 2 } else { 1 };
        BLOCK_ROWS * 9 + outputs * OUTPUT_BYTES as u64
    }

    /// Returns the bytes of each lane but the first, without its pages.
    ///
    /// They are two pages, and the numbers of a block.
    fn lane_bytes(self) -> u64 {
        let page = if self.is_text { 3 << 20 } else { 2 << 20 };
        page + BLOCK_ROWS * 8
    }

    /// Returns how many lanes and tasks the memory allows for `workers` workers.
    pub(super) fn lanes(self, workers: usize) -> (usize, usize) {
        let each = self.lane_bytes() + IdCursor::BYTES + 2 * self.task_bytes();
        let lanes = (self.extra / each).clamp(1, workers.max(1) as u64);
        if lanes == 1 {
            return (1, 1);
        }
        let left = self.extra - lanes * (self.lane_bytes() + IdCursor::BYTES);
        let tasks = (left / self.task_bytes()).clamp(1, 8 * lanes);
        (lanes as usize, tasks as usize)
    }

    /// Returns the bytes of `lanes` lanes and `tasks` tasks, without the first of each.
    pub(super) fn bytes(self, lanes: usize, tasks: usize) -> u64 {
        let (lanes, tasks) = (lanes as u64, tasks as u64);
        (lanes - 1) * self.lane_bytes() + (tasks - 1) * self.task_bytes()
    }
}
