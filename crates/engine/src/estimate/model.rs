//! The request and the result of an estimate of a run.

use std::ops::Range;

use graphmill_graph::{GraphProfile, SenderCounts};
use graphmill_storage::{MemoryBudget, Tiers};

use crate::config::{CombineChoice, DispatchChoice, UpdateResidency};
use crate::memory::plan::{GraphShape, PassMemory};
use crate::messages::routing_size::TableMemory;
use crate::planner::routing_memory::RoutingBudget;
use crate::planner::routing_stats::GroupOf;
use crate::program::footprint::ProgramFootprint;

/// The memory, the table and the groups with which a rank routes messages.
pub(crate) struct RoutingPlan {
    pub(crate) beside: RoutingBudget,
    pub(crate) table: TableMemory,
    pub(crate) groups: usize,
    pub(crate) group_of: GroupOf,
}

/// A planned run.
#[derive(Clone, Copy, Debug)]
pub struct RunEstimateRequest<'q> {
    /// The graph.
    pub outline: &'q GraphProfile,
    /// The cut of its batches among ranks, and who sends messages to whom.
    pub cuts: &'q [usize],
    /// See there.
    pub senders: &'q SenderCounts,
    /// Threads of a rank, and bytes of its memory.
    pub threads: usize,
    /// See there.
    pub memory: u64,
    /// What the program holds for each vertex.
    pub sizes: ProgramFootprint,
    /// Bytes that the caller takes after the last pass, without the rows of the result and with them.
    pub results: [u64; 2],
    /// How messages on disk get to the columns that need them.
    pub dispatch: DispatchChoice,
    /// Where passes over chunks have accumulators.
    pub updates: UpdateResidency,
    /// Whether messages are combined, of the bucket executor; `None` for another one.
    pub buckets: Option<CombineChoice>,
    /// Passes over all edges.
    pub passes: u64,
    /// True if a program that can read each edge once does so, in one pass.
    pub at_once: bool,
    /// The tiers of the data, on each rank.
    pub tiers: &'q Tiers,
    /// What reading a stored graph takes comes from there.
    pub budget: &'q MemoryBudget,
}

/// Bytes that a rank moves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PassTraffic {
    /// Read from disk.
    pub read: u64,
    /// Written to disk.
    pub written: u64,
    /// Sent to other ranks.
    pub sent: u64,
}

impl PassTraffic {
    /// Both together.
    #[must_use]
    pub fn and(self, other: PassTraffic) -> PassTraffic {
        PassTraffic {
            read: self.read.saturating_add(other.read),
            written: self.written.saturating_add(other.written),
            sent: self.sent.saturating_add(other.sent),
        }
    }
}

/// What one rank of a run will do.
#[derive(Clone, Copy, Debug, Default)]
pub struct RunEstimate {
    /// Before the passes, and once in the first: rows are made, what stays in memory is read.
    pub start: PassTraffic,
    /// Number of passes over all edges before messages are routed.
    pub early_passes: u64,
    /// See there.
    pub early: PassTraffic,
    /// In each pass after these.
    pub pass: PassTraffic,
    /// Arcs that a pass follows.
    pub arcs: u64,
    /// True if rows, and messages, stay in memory.
    pub vertex_state_resident: bool,
    /// See there.
    pub messages_resident: bool,
    /// Bytes of cells that stay in memory.
    pub cached_cell_bytes: u64,
    /// See there.
    pub cell_bytes: u64,
    /// The least memory of a rank, in bytes, without the rows of a result and with them.
    pub least_memory: [u64; 2],
    /// Workers whose buffers the memory holds, at most all threads.
    pub workers: usize,
    /// Bytes of temporary files at most.
    pub temporary_bytes: u64,
}

/// One rank, and what of its memory is free.
pub(crate) struct RankEstimator<'q> {
    pub(crate) question: &'q RunEstimateRequest<'q>,
    pub(crate) rank: usize,
    pub(crate) own: Range<usize>,
    pub(crate) shape: GraphShape,
    pub(crate) sizes: ProgramFootprint,
    pub(crate) least: [u64; 2],
    pub(crate) free: u64,
}

/// One rank, its memory shared out.
pub(crate) struct PlannedRank<'q> {
    pub(crate) of: RankEstimator<'q>,
    pub(crate) room: PassMemory,
    pub(crate) to_dispatch: Option<RoutingPlan>,
    pub(crate) vertex_state_resident: bool,
    /// Bytes that rows in memory leave free.
    pub(crate) beside_rows: u64,
    /// True if it is known who needs which messages, and bytes of files that say so.
    pub(crate) filters: bool,
    pub(crate) needs_files: u64,
    pub(crate) start: PassTraffic,
    /// But for messages and cells.
    pub(crate) pass: PassTraffic,
}

/// Bytes of an edge's weight that passes read.
pub(crate) fn weight_bytes(outline: &GraphProfile, weighted: bool) -> u64 {
    if weighted { outline.weight_bytes() } else { 0 }
}
