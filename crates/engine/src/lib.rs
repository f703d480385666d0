//! Runs programs over a stored graph, on one rank or on several.
//!
//! In a pass over edges, `signal` returns the message of each active vertex. At the destination of each arc, `on_edge` turns the
//! message into a value, and `fold` adds it to an accumulator. These two are the slot. Then `apply` changes the rows of the destinations. Each rank owns
//! a range of vertices, and messages go to the ranks that need them. The crate runs programs in memory if the graph fits there,
//! otherwise from disk. It knows nothing of edge files, of algorithms, or of the format of a result.
//!
//! In the table below, an entry uses only later entries. Tests and `fuzzing.rs` use any entry. The `pub use` lines after the
//! table name the file of each export.
//!
//! | file or directory | content |
//! | --- | --- |
//! | `job.rs` | [`job`]: operations for the code around a run: share metrics among ranks, end the log, delete checkpoints, hand out rows |
//! | `driver/` | operations of [`Engine`] above single passes: vertex programs ([`PregelMode`], [`pregel_footprint`]), label programs ([`footprint_of`]), count programs ([`count_footprint`]), components ([`ComponentsMethod`]), resuming, reading rows |
//! | `estimate/` | [`estimate_run`]: from a [`RunEstimateRequest`] to a [`RunEstimate`]: the bytes that a run would read, write and send |
//! | `open.rs` | opens an engine; the minimum memory that it takes |
//! | `engine.rs` | [`Engine`]: a stored graph, its vertex arrays, and one operation for each kind of pass |
//! | `exec/in_memory/` | searches, shortest paths and components over adjacency lists in memory; [`PassLimit`]: how many passes a loop may take |
//! | `exec/send_pass/` | passes that send messages to any vertex, or ask any vertex |
//! | `exec/vertex_pass.rs` | passes over rows, without messages |
//! | `exec/stream/` | passes over unsorted chunks of arcs: `superstep.rs` calls their phases in order |
//! | `exec/bucket/` | passes whose messages travel in datagrams: `superstep.rs` calls their phases in order |
//! | `exec/column/` | passes over edges: `edge_pass.rs` calls their phases in order |
//! | `cache/` | cells, adjacency lists and degrees that stay in memory between passes |
//! | `exchange/` | messages between ranks: filters, frames, the all-to-all exchange |
//! | `planner/` | decisions by cost: the kernel of a pass (its inner loop), and the routing of messages |
//! | `messages/` | the messages of a pass, in memory and on disk |
//! | `context.rs` | the context that all phases of a pass share |
//! | `checkpoint/` | checkpoints of a run, and resuming from them ([`ResumeInfo`]); [`is_checkpoint_dir`], [`is_checkpoint_file`] |
//! | `config.rs` | [`EngineConfig`]: the resources of an engine; [`EngineOptions`]: options that override choices by cost |
//! | `memory/` | how a pass shares out the memory budget |
//! | `program/` | what algorithms implement: [`EdgeProgram`], [`SlotProgram`], [`GasProgram`], [`MessageProgram`], [`AskProgram`], [`CountProgram`], [`VertexProgram`], and [`MonotoneProgram`] for label programs; [`ProgramFootprint`]: their bytes for each vertex |
//! | `state/` | [`VertexArray`]: one typed value for each vertex; [`Rows`]: the rows that a pass reads and writes |
//! | `frontier/` | [`ActiveSet`]: the vertices that send in a pass |
//! | `driver_log.rs` | the log of a driver program (the part of an algorithm that calls passes): its calls and their results |
//! | `comm/` | collective operations of ranks; the memory for frames, and the constants of flow control |
//! | `metrics/` | [`Metrics`]: the counters of passes, with the bytes that they moved in memory ([`TierBytes`]); [`TierModel`]: the cost of a slow tier |
//! | `schedule/` | column groups (the strips that one worker folds together), NUMA nodes, requests for chunks, stealing |
//! | `graph_view.rs` | a stored graph, as stored or transposed |
//! | `edge_record.rs` | [`edge_record!`]: a struct as the record of an edge |
//! | `value.rs` | [`Accumulator`], [`EdgeValue`], [`Reduce`]: the values that programs compute with |
//! | `workspace.rs` | buffers that passes of one kind keep from one to the next |
//! | `engine_file.rs` | a file of the engine's own, for pages of rows or message runs |
//! | `error.rs` | [`EngineError`] |
//! | `fuzzing.rs` | entry points of fuzz targets |

#![forbid(unsafe_code)]

mod cache;
mod checkpoint;
mod comm;
mod config;
mod context;
mod driver;
mod driver_log;
mod edge_record;
mod engine;
mod engine_file;
mod error;
mod estimate;
mod exchange;
mod exec;
mod frontier;
#[cfg(fuzzing)]
pub mod fuzzing;
mod graph_view;
pub mod job;
mod memory;
mod messages;
mod metrics;
mod open;
mod planner;
mod program;
mod schedule;
mod state;
mod value;
mod workspace;

/// The decisions of the stream executor, for the model of a cluster.
#[doc(hidden)]
pub mod chaos_model {
    pub use crate::schedule::steal::StealBias;
    pub use crate::schedule::window::{RequestTimes, batch_factor, utilization};
}

pub use checkpoint::checkpointer::ResumeInfo;
pub use checkpoint::files::{is_checkpoint_dir, is_checkpoint_file};
pub use config::{
    BucketOptions, CheckpointInterval, CheckpointPolicy, CombineChoice, Combiner, DispatchChoice,
    EdgeResidency, EngineConfig, EngineOptions, ExecutorChoice, KernelChoice, LinkChoice,
    PassCallback, SparseChoice, UpdateResidency,
};
pub use driver::components::ComponentsMethod;
pub use driver::count::count_footprint;
pub use driver::fixpoint::footprint_of;
pub use driver::pregel::{PregelMode, pregel_footprint};
pub use edge_record::FieldValue;
pub use engine::Engine;
pub use error::EngineError;
pub use estimate::model::{PassTraffic, RunEstimate, RunEstimateRequest};
pub use estimate::rank_estimator::estimate_run;
pub use exec::in_memory::pass_limit::PassLimit;
pub use frontier::active_set::ActiveSet;
pub use frontier::bitmap::Bits;
pub use graphmill_graph::FieldType;
pub use graphmill_raw::{
    AtomicScalar, CALL_VERTICES_MAX, Element, ForeignAddresses, ForeignFailure, ForeignFunctions,
};
pub use metrics::run::{
    Convergence, DatagramMetrics, LISTED_MAX, Metrics, Mode, PassMetrics, RankMetrics,
    TruncatedPasses,
};
pub use metrics::tier_model::TierModel;
pub use metrics::traffic::{BytesMoved, PlacementInfo, TierBytes};
pub use program::ask::AskProgram;
pub use program::count::CountProgram;
pub use program::edge::{Activate, ApplyTo, Direction, EdgeProgram};
pub use program::footprint::ProgramFootprint;
pub use program::gas::{Gas, GasProgram};
pub use program::message::MessageProgram;
pub use program::monotone::{Label, MonotoneProgram};
pub use program::outbox::Outbox;
pub use program::slot::{Slot, SlotProgram};
pub use program::vertex::{VertexContext, VertexProgram};
pub use schedule::steal::StealBias;
pub use state::rows::{
    BatchColumns, COLUMNS_MAX, ColumnsRow, IdOrdinal, OutDegree, Read, ReadColumns, RowRun, Rows,
    Write, WriteColumns,
};
pub use state::vertex_array::VertexArray;
pub use value::{Accumulator, EdgeValue, Greatest, Least, Reduce};
