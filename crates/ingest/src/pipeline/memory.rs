//! The least memory that any import can do with, so that a budget too small for it is refused before work starts.
//!
//! It is what the steps take whatever the input: readers and histograms of the first reading, one worker that writes one column
//! file, the order of degree where it is asked for. What an input takes beyond that, its steps refuse themselves, each before it begins.

use graphmill_graph::{EdgeKind, Layout, Order};
use graphmill_storage::{MemoryBudget, WorkerPool};

use super::{scan, write};
use crate::error::IngestError;
use crate::external::bucket_file::GRAIN;
use crate::layout::degree_file::Sections;
use crate::layout::degree_order::DegreeOrder;
use crate::options::ImportOptions;

/// Tables of a small input that later steps hold: counts, ranges of ids, checksums.
const TABLES_BYTES: u64 = 128 << 10;

/// Refuses a budget that is too small for an import of any edges with such weights.
///
/// It covers a list of `vertices` if there is one. Each reader of either takes `reader_bytes`.
///
/// # Errors
/// [`IngestError::TooLittleMemory`].
pub fn check_memory(
    budget: &MemoryBudget,
    workers: &WorkerPool,
    reader_bytes: u64,
    weights: EdgeKind,
    vertices: bool,
    options: &ImportOptions,
) -> Result<(), IngestError> {
    let lanes = workers.count() as u64;
    check(budget, lanes, reader_bytes, weights, vertices, options)
}

/// Checks the budget as [`check_memory`] does, for `lanes` workers.
pub(crate) fn check(
    budget: &MemoryBudget,
    lanes: u64,
    reader_bytes: u64,
    weights: EdgeKind,
    vertices: bool,
    options: &ImportOptions,
) -> Result<(), IngestError> {
    let first = scan::ScanMemory {
        lanes,
        reader_bytes,
        reverse: options.turns_round(),
        vertices,
    };
    let last = match options.layout {
        Layout::Column => write::least_bytes(0, GRAIN, weights, options.duplicates),
        // Chunks depend on the number of batches, and refuse a budget themselves.
        Layout::Stream => 0,
    };
    let order = match options.order {
        Order::Id => 0,
        Order::Degree => {
            let count = Sections::least_bytes(lanes, 0) + lanes * reader_bytes;
            count.max(DegreeOrder::bytes(0, 0) + DegreeOrder::WRITE_BYTES)
        }
    };
    let needed = first.least_bytes().max(last).max(order) + TABLES_BYTES;
    IngestError::check_free("an import", needed, budget)
}
