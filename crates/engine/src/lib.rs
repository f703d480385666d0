//! A stored graph and a program: give me the result.
//!
//! The crate runs signal/slot programs over a stored graph, in memory when it fits and from disk when it does not.
//! It knows nothing of edge files, of algorithms or of how a result is written.
//!
//! | file | what it holds |
//! | --- | --- |
//! | `program/` | [`EdgeProgram`]: the narrow waist |
//! | `rows.rs`, `vertex_array.rs` | typed columns over the vertices, and the rows a pass names |
//! | `id_ranks.rs` | the ranks of ids, for ties |
//! | `active.rs`, `accumulators.rs` | [`ActiveSet`]: who signals next; what messages fold into |
//! | `superstep.rs` | the order of the phases on one page |
//! | `choice.rs`, `machine.rs` | how a pass is done, by cost; what all phases see |
//! | `ranks.rs` | whose each batch is, and what all ranks agree on |
//! | `reading.rs` | rows on their way out |
//! | `recovery.rs`, `recovery/` | [`Checkpoints`]: versions of a run, and going on with them |
//! | `source_lists.rs` | who needs which messages |
//! | `needs.rs` | filtering lists: which messages other ranks need |
//! | `wire.rs`, `wire/` | bytes from rank to rank: frames of messages, exchanges, rows |
//! | `columns.rs` | the columns of a rank, and the runs that they are folded in |
//! | `deal.rs` | batches dealt out to the nodes of the machine |
//! | `workspace.rs`, `held.rs` | what passes keep: for one program; of the graph, for all programs |
//! | `room.rs` | what a pass takes of the memory budget |
//! | `phase/` | signal, pass, slot, the sparse pass, the vertex pass, sends |
//! | `kernel.rs` | the loops over the edges of a block |
//! | `message.rs`, `message/`, `page_file.rs` | messages, in memory and on disk; rows on disk |
//! | `dispatch.rs`, `dispatch/` | which way messages on disk get to the columns that need them |
//! | `pins.rs` | cells in memory |
//! | `resident/` | lists of edges decoded in memory, and what works on them at once |
//! | `degree_classes.rs` | how many edges an active set has, about |
//! | `pregel.rs`, `pregel/` | vertex programs, pull and push |
//! | `settle.rs`, `unite.rs` | label programs to their end; components |
//! | `sample.rs` | what a few edges say of all |
//! | `settings.rs` | [`Settings`]: what an engine runs on |
//! | `engine.rs`, `keep.rs` | [`Engine`]: what a driver holds; what it keeps in memory, and what makes room |
//! | `traffic.rs` | [`TierBytes`]: bytes moved in memory by kind of data; [`Charge`]: time spent for a slow tier |
//! | `metrics.rs` | [`Metrics`]: what the passes did |
//! | `fuzzing.rs` | what fuzz targets call |
//! | `outlook.rs` | [`run_outlook`]: what passes over all edges would read, write and send |

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
pub use estimate::model::{RunOutlook, RunQuestion, Traffic as PassTraffic};
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
