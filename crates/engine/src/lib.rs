//! A stored graph and a program: give me the result.
//!
//! The crate runs signal/slot programs over a stored graph, in memory when it fits and from disk when it does not.
//! It knows nothing of edge files, of algorithms or of how a result is written.
//!
//! | file or directory, lower ones last | what it holds |
//! | --- | --- |
//! | `driver/` | [`Engine`] beyond single passes: Pregel programs, fixpoints, components, replay after a kill, results |
//! | `estimate/` | [`run_outlook`]: an estimate of the bytes that a run would read, write and send |
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
//! | `config.rs` | [`Settings`] and all options |
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

pub use checkpoint::checkpointer::{Resumed, is_of_versions, is_version};
pub use config::{
    Checkpoints, Combiner, DispatchChoice, EdgesAt, Every, KernelChoice, OnPass, SeekChoice,
    Settings,
};
pub use driver::components::Unite;
pub use driver::fixpoint::sizes_of;
pub use driver::pregel::{Version, sizes_of_pregel};
pub use engine::Engine;
pub use error::EngineError;
pub use estimate::model::{PassTraffic, RunOutlook, RunQuestion};
pub use estimate::rank_estimator::run_outlook;
pub use exec::in_memory::pass_limit::PassLimit;
pub use frontier::active_set::ActiveSet;
pub use graphmill_raw::{Element, Word};
pub use metrics::run::{Convergence, LISTED_MAX, Metrics, Mode, OfRank, Superstep, Unlisted};
pub use metrics::tier_model::Charge;
pub use metrics::traffic::{Moved, PlacedAt, TierBytes};
pub use program::edge::{Activate, Direction, EdgeProgram, Reach};
pub use program::footprint::Sizes;
pub use program::message::SendProgram;
pub use program::monotone::{Label, LabelProgram};
pub use program::outbox::Sink;
pub use program::vertex::{Pregel, Vertex};
pub use state::rows::{Degrees, IdRank, IdRanksOf, OutDegree, Read, Rows, Touched, Write};
pub use state::vertex_array::{Guard, VertexArray};
pub use value::{Accumulator, EdgeValue, Sum};
