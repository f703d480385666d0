//! Runs graph algorithms on graphs of any size, from an edge file to a result file.
//!
//! A Rust program needs this crate alone. The crate calls others for the single steps: `graphmill-ingest` reads edges,
//! `graphmill-engine` makes the passes over a graph, and `graphmill-algorithms` has the algorithms.
//!
//! A [`Config`] is a request. A [`Plan`] is a request that was checked, with all defaults filled in. A [`Run`] is the outcome of
//! a plan:
//!
//! ```
//! use graphmill::{CancelToken, Config, Plan, unwatched};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let (edges, ranks) = (folder.path().join("edges.txt"), folder.path().join("ranks.parquet"));
//! std::fs::write(&edges, "you me\nme her\nher me\n")?;
//! let mut config = Config::new("pagerank", &edges).option("iterations", "50");
//! config.output = Some(ranks);
//! config.top = 1;
//! let run = Plan::new(config)?.run(&CancelToken::new(), &unwatched())?;
//! assert_eq!(run.top[0].vertex, "me");
//! # Ok(())
//! # }
//! ```
//!
//! You can write an edge program of your own: a few small functions that say what vertices send along edges. A [`Session`] runs
//! the program over a stored graph, in memory or from disk, on all processors. The result has the same bits every time. This
//! program finds single-source shortest paths (DFOGraph, Fig. 2b):
//!
//! ```
//! use graphmill::prelude::*;
//! use graphmill::{ImportConfig, Machine, MachineConfig, unwatched};
//!
//! struct Relax;
//!
//! impl EdgeProgram for Relax {
//!     type SignalRows = Read<f64>;
//!     type ApplyRows = Write<f64>;
//!     type Edge = f64;
//!     type Message = f64;
//!     type EdgeMessage = f64;
//!     type Accumulator = f64;
//!     type Sum = ();
//!     const IDENTITY: f64 = f64::INFINITY;
//!
//!     fn signal(&self, _: u64, distance: &f64) -> Option<f64> { Some(*distance) }
//!     fn on_edge(&self, distance: f64, weight: f64) -> f64 { distance + weight }
//!     fn fold(&self, least: &mut f64, distance: f64) { *least = least.min(distance) }
//!     fn merge(&self, least: &mut f64, later: f64) { *least = least.min(later) }
//!     fn apply(&self, _: u64, distance: &mut f64, least: f64) -> ((), Activate) {
//!         let is_closer = least < *distance;
//!         *distance = distance.min(least);
//!         ((), if is_closer { Activate::Yes } else { Activate::No })
//!     }
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let (edges, graph, result) =
//! #     (folder.path().join("edges.wel"), folder.path().join("graph"), folder.path().join("distances.csv"));
//! std::fs::write(&edges, "0 1 2.5\n1 2 1\n0 2 4\n3 0 1\n")?;
//! let machine = Machine::open(&MachineConfig::default(), Default::default())?;
//! let weighted = ImportConfig { weights: EdgeKind::F64, ..ImportConfig::default() };
//! machine.import(&[edges], &graph, &weighted, &unwatched())?;
//!
//! let mut session = machine.session(&machine.graph(&graph)?, Default::default(), &unwatched())?;
//! let distance = session.vertex_array::<f64>("distance")?;
//! session.process_vertices(distance.write(), None, |v, d| *d = if v == 0 { 0.0 } else { f64::INFINITY })?;
//! let mut active = session.empty_set()?;
//! active.insert(0)?;
//! while !active.is_empty() {
//!     (_, active) = session.process_edges(&Relax, distance.read(), distance.write(), &active, Direction::Forward)?;
//! }
//! let output = Output { column: "distance", values: OutputValues::F64(distance), nullable: true };
//! session.write(&output, &result, |_| ())?;
//! assert_eq!(std::fs::read_to_string(&result)?, "vertex,distance\n0,0.0\n1,2.5\n2,3.5\n3,inf\n");
//! # Ok(())
//! # }
//! ```
//!
//! A vertex program says what one vertex computes in one round (superstep). This one is PageRank as in Fig. 2 of the iPregel paper:
//!
//! ```
//! use graphmill::prelude::*;
//! # use graphmill::{ImportConfig, Machine, MachineConfig, unwatched};
//!
//! struct PageRank { rounds: u64 }
//!
//! impl VertexProgram for PageRank {
//!     type Value = f64;
//!     type Message = f64;
//!     type Edge = ();
//!     type Aggregate = ();
//!     const IDENTITY: f64 = -0.0;
//!
//!     fn compute(&self, me: &mut VertexContext<'_, Self>, sum: Option<f64>) {
//!         let vertices = me.vertices() as f64;
//!         *me.value = match me.superstep() {
//!             0 => 1.0 / vertices,
//!             _ => 0.15 / vertices + 0.85 * sum.unwrap_or(0.0),
//!         };
//!         if me.superstep() == self.rounds { return me.vote_to_halt() }
//!         me.broadcast(*me.value / me.out_degree() as f64);
//!     }
//!     fn combine(&self, sum: &mut f64, share: f64) { *sum += share }
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let (edges, graph) = (folder.path().join("edges.txt"), folder.path().join("graph"));
//! # std::fs::write(&edges, "0 1\n1 2\n2 0\n3 0\n")?;
//! # let machine = Machine::open(&MachineConfig::default(), Default::default())?;
//! # machine.import(&[edges], &graph, &ImportConfig::default(), &unwatched())?;
//! # let mut session = machine.session(&machine.graph(&graph)?, Default::default(), &unwatched())?;
//! let rank = session.vertex_array::<f64>("rank")?;
//! session.pregel(PageRank { rounds: 10 }, rank, PregelMode::Pull, None)?;
//! # let mut ranks = Vec::new();
//! # session.read_batch(&rank, 0, &mut ranks)?;
//! # assert!((ranks[3] - 0.15 / 4.0).abs() < 1e-12 && ranks[0] > ranks[1]);
//! # Ok(())
//! # }
//! ```
//!
//! | file or directory | content |
//! | --- | --- |
//! | `config.rs` | [`Config`]: the request for a run |
//! | `plan.rs` | [`Plan`]: a request that was checked |
//! | `run.rs` | [`Run`]: the outcome of a plan |
//! | `answer.rs` | [`Answer`]: a run that keeps its rows |
//! | `import_config.rs`, `import.rs` | [`ImportConfig`]: the options of an import; from edges to a stored graph |
//! | `import_cache.rs` | [`advanced::CachedGraph`]: a graph that a run keeps beside its edge file |
//! | `generate.rs` | [`generate::Generation`]: a generated graph, as a stored graph or as an edge file |
//! | `algorithms.rs` | the list of all algorithms, and the check of their options |
//! | `session.rs`, `session_values.rs` | [`Session`]: an open graph, and the engine that runs programs over it; values and ids, in and out |
//! | `run_identity.rs` | [`ProgramName`]: which run may resume from which checkpoints |
//! | `vertex_file/`, `vertex_ids.rs` | files of values, as arrays and sets; from ids to vertices |
//! | `vertex_options.rs` | options of algorithms that are files of values |
//! | `launch.rs`, `start.rs` | [`advanced::run_on_ranks`], [`advanced::run_as_rank`]: run one job on several ranks; compare the options of all ranks |
//! | `machine/` | [`Machine`]: memory, disk and threads of a run; [`MpiJob`]; [`advanced::Timeline`]: how busy a rank was |
//! | `rank_process.rs` | [`advanced::RankProcess`]: this process as a rank of an MPI job, for many runs |
//! | `paths.rs`, `preflight.rs` | check the paths of inputs and outputs before any work |
//! | `open.rs` | opens a stored graph if the budget is enough for the graph and for the run |
//! | `checkpoint_dir.rs` | the directory of the checkpoints of a run |
//! | `hash.rs` | the hash in the names of cached graphs and checkpoint directories |
//! | `estimate.rs` | [`estimate::EstimateRequest`], [`estimate::Estimate`]: space, memory, traffic and time of an import and a run |
//! | `summary.rs` | [`Summary`]: a result in a few numbers |
//! | `result/` | rows with the user's ids: as [`Block`]s in memory, as Parquet, as CSV |
//! | `arc_reader.rs`, `graph_edges.rs` | the arcs of a stored graph, one by one; [`advanced::GraphEdges`]: its edges in memory |
//! | `info.rs` | [`GraphInfo`]: facts about a stored graph; also verifies one |
//! | `validate/` | [`validate()`]: compares a result with a reference; [`Plan::check_result`]: checks a result against its graph |
//! | `spool.rs` | [`advanced::Spool`]: a temporary file of the edges from standard input |
//! | `progress.rs` | [`Progress`]: what a run reports while it works |
//! | `error.rs`, `error_kind.rs` | [`Error`]: all errors of the crate; [`ErrorKind`]: what an error is about |
//! | `result_error.rs`, `validate_error.rs` | the errors of results and of validation, which [`Error`] contains |

#![forbid(unsafe_code)]

mod algorithms;
mod answer;
mod arc_reader;
mod checkpoint_dir;
mod config;
mod error;
mod error_kind;
pub mod estimate;
pub mod generate;
mod graph_edges;
mod hash;
mod import;
mod import_cache;
mod import_config;
mod info;
mod launch;
mod machine;
mod open;
mod open_input;
mod paths;
mod plan;
mod preflight;
mod progress;
mod rank_process;
mod result;
mod result_error;
mod run;
mod run_identity;
mod session;
mod session_values;
mod spool;
mod start;
mod summary;
mod validate;
mod validate_error;
mod vertex_file;
mod vertex_ids;
mod vertex_options;

pub use algorithms::algorithms;
pub use answer::Answer;
pub use config::{CheckpointConfig, Config};
pub use error::Error;
pub use error_kind::ErrorKind;
pub use graphmill_algorithms::{Entry, OptionKind, OptionSpec, Output, ResultShape};
pub use graphmill_engine::{
    CheckpointInterval, Convergence, EngineOptions, ExecutorChoice, Metrics,
};
pub use graphmill_graph::{
    EdgeField, EdgeFields, EdgeKind, FieldType, Id, IdKind, IdType, Layout, Order, StoredGraph,
    VertexId,
};
pub use graphmill_ingest::{
    Comments, Delimiter, Duplicates, EdgeArrays, EdgeColumns, EdgeSource, Format, Header, Ids,
    ImportReport, OnError, Quote, SelfLoops, TextOptions,
};
pub use graphmill_storage::CancelToken;
pub use import_config::ImportConfig;
pub use info::GraphInfo;
pub use machine::mpi::MpiJob;
pub use machine::resources::{Machine, MachineConfig};
pub use plan::Plan;
pub use progress::{Progress, ProgressFn, unwatched};
pub use result::block::Block;
pub use result::top_k::TopRow;
pub use result_error::ResultError;
pub use run::{Run, Seconds};
pub use run_identity::ProgramName;
pub use session::Session;
pub use session_values::ResultScalar;
pub use summary::{EdgeTotals, Summary};
pub use validate::compare::validate;
pub use validate::verdict::{RowKind, Rule, Verdict};
pub use validate_error::ValidateError;

/// The crate whose derives make a struct an [`Element`](prelude::Element): a message or a row.
///
/// ```
/// use graphmill::prelude::*;
///
/// #[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable)]
/// #[zerocopy(crate = "graphmill::zerocopy")]
/// #[repr(C)]
/// struct Nearest {
///     distance: f32,
///     source: u32,
/// }
///
/// impl Accumulator for Nearest {}
/// ```
pub use graphmill_raw::zerocopy;

/// Types of a program of one's own.
pub mod prelude {
    pub use graphmill_algorithms::{
        NO_EDGE, NumberRow, NumberValue, Output, OutputValues, edge_row,
    };
    pub use graphmill_engine::edge_record;
    pub use graphmill_engine::{
        Accumulator, Activate, ActiveSet, ApplyTo, AskProgram, CountProgram, Direction,
        EdgeProgram, EdgeValue, Element, Engine, Gas, GasProgram, Greatest, IdOrdinal, Label,
        Least, MessageProgram, MonotoneProgram, OutDegree, Outbox, PregelMode, Read, Reduce, Rows,
        Slot, SlotProgram, VertexArray, VertexContext, VertexProgram, Write,
    };
    pub use graphmill_graph::EdgeKind;
    pub use graphmill_raw::zerocopy::{FromBytes, Immutable, IntoBytes};
}

/// Ranks, tiers of memory, choices of the engine, and parts of a machine, a result and the metrics.
pub mod advanced {
    pub use crate::graph_edges::GraphEdges;
    pub use crate::import_cache::CachedGraph;
    pub use crate::launch::{run_as_rank, run_on_ranks};
    pub use crate::machine::limits::{default_memory, default_threads, memory_limit, memory_total};
    pub use crate::machine::plugin::build_plugin;
    pub use crate::machine::resources::SimulatedMachine;
    pub use crate::machine::timeline::Timeline;
    pub use crate::rank_process::RankProcess;
    pub use crate::result::block::{IdColumn, StringColumn, Values};
    pub use crate::result::format::is_stdout;
    pub use crate::spool::Spool;
    pub use graphmill_algorithms::{FOREIGN, foreign_program};
    pub use graphmill_engine::{
        BucketOptions, BytesMoved, CombineChoice, Combiner, DatagramMetrics, DispatchChoice,
        EdgeResidency, KernelChoice, LinkChoice, PassMetrics, PlacementInfo, SparseChoice,
        StealBias, TierBytes, TierModel, UpdateResidency,
    };
    pub use graphmill_engine::{ForeignAddresses, ForeignFunctions};
    pub use graphmill_fabric::{DPDK_PLUGIN, Fabric, MPI_PLUGIN, PluginKind};
    pub use graphmill_graph::WeightRange;
    pub use graphmill_ingest::{IngestError, ReadOptions};
    pub use graphmill_storage::{
        Clock, DataKind, IoChoice, MemoryBudget, MemoryFiles, Placement, PlacementError,
        StorageError, SystemClock, Tier, Tiers,
    };
}

/// The README's examples are compiled and run with the tests.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
