//! A stored graph and a program: give me the result.
//!
//! The crate runs signal/slot programs over a stored graph, in memory when it fits and from disk when it does not.
//! It knows nothing of edge files, of algorithms or of how a result is written.
//!
//! | file or directory, lower ones last | what it holds |
//! | --- | --- |
//! | `driver/` | [`Engine`] beyond single passes: Pregel programs, fixpoints, components, replay after a kill, results |
//! | `estimate/` | [`estimate_run`]: an estimate of the bytes that a run would read, write and send |
//! | `engine.rs` | [`Engine`]: a stored graph, its vertex arrays, and one pass of each kind |
//! | `exec/column/` | the column executor; `superstep.rs` has the order of its phases on one page |
//! | `exec/in_memory/` | the in-memory executor, over adjacency lists |
//! | `exec/vertex_pass.rs`, `exec/send_pass/` | passes over vertices, and of addressed messages |
//! | `cache/` | cells, adjacency lists and degrees that stay in memory from pass to pass |
//! | `exchange/` | messages between ranks: filters, frames, the all-to-all exchange |
//! | `planner/` | decisions by cost: the kernel of a pass, and how messages are routed |
//! | `messages/` | the messages of a pass, in memory and on disk |
//! | `context.rs` | the read-only context that all phases share |
//! | `checkpoint/` | checkpoints of a run, and resuming from them |
//! | `config.rs` | [`EngineConfig`] and all options |
//! | `memory/` | how a pass shares out the memory budget |
//! | `program/` | [`EdgeProgram`] and the other kinds of programs: the narrow waist |
//! | `state/` | [`VertexArray`]: typed columns over the vertices, and the rows that a pass names |
//! | `frontier/` | [`ActiveSet`]: the vertices that signal next |
//! | `driver_log.rs` | the logged results of driver calls, to replay them |
//! | `comm/` | collectives of all ranks, and the memory of frames |
//! | `metrics/` | [`Metrics`] of passes; [`TierBytes`]: bytes moved in memory; [`Charge`]: the time of a slow tier |
//! | `schedule/` | column groups, and NUMA nodes |
//! | `graph_view.rs` | the stored graph in one direction |
//! | `value.rs`, `error.rs` | values that programs compute with; [`EngineError`] |
//! | `fuzzing.rs` | entry points of fuzz targets |

#![forbid(unsafe_code)]

mod cache;
mod checkpoint;
mod comm;
mod config;
mod context;
mod driver;
mod driver_log;
mod engine;
mod error;
mod estimate;
mod exchange;
mod exec;
mod frontier;
#[cfg(fuzzing)]
pub mod fuzzing;
mod graph_view;
mod memory;
mod messages;
mod metrics;
mod planner;
mod program;
mod schedule;
mod state;
mod value;

pub use checkpoint::checkpointer::{ResumeInfo, is_checkpoint_dir, is_checkpoint_file};
pub use config::{
    CheckpointInterval, CheckpointPolicy, Combiner, DispatchChoice, EdgeResidency, EngineConfig,
    EngineOptions, KernelChoice, PassCallback, SparseChoice,
};
pub use driver::components::ComponentsMethod;
pub use driver::fixpoint::footprint_of;
pub use driver::pregel::{PregelMode, pregel_footprint};
pub use engine::Engine;
pub use error::EngineError;
pub use estimate::model::{PassTraffic, RunEstimate, RunEstimateRequest};
pub use estimate::rank_estimator::estimate_run;
pub use exec::in_memory::pass_limit::PassLimit;
pub use frontier::active_set::ActiveSet;
pub use graphmill_raw::{AtomicScalar, Element};
pub use metrics::run::{
    Convergence, LISTED_MAX, Metrics, Mode, PassMetrics, RankMetrics, TruncatedPasses,
};
pub use metrics::tier_model::Charge;
pub use metrics::traffic::{BytesMoved, PlacementInfo, TierBytes};
pub use program::edge::{Activate, Direction, EdgeProgram, Reach};
pub use program::footprint::ProgramFootprint;
pub use program::message::MessageProgram;
pub use program::monotone::{Label, MonotoneProgram};
pub use program::outbox::Outbox;
pub use program::vertex::{VertexContext, VertexProgram};
pub use state::rows::{Degrees, IdOrdinal, IdOrdinals, OutDegree, Read, RowBytes, Rows, Write};
pub use state::vertex_array::{ColumnGuard, VertexArray};
pub use value::{Accumulator, EdgeValue, Reduce};
