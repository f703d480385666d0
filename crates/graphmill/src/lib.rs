//! Graph algorithms on graphs of any size: import files of edges, run an algorithm, get a result under your own vertex ids.

#![forbid(unsafe_code)]

mod algorithm;
mod byte_file;
mod cache;
mod error;
mod file_aside;
mod import;
mod info;
mod machine;
mod plan;
mod progress;
mod result;
mod run;
mod validate;

pub use algorithm::algorithms;
pub use error::Error;
pub use graphmill_algorithms::{Entry, OptionKind, OptionSpec};
pub use graphmill_engine::{KernelChoice, Metrics, SeekChoice, Superstep};
pub use graphmill_graph::{EdgeKind, IdKind, StoredGraph};
pub use graphmill_ingest::{Duplicates, Format, Ids, ImportReport, OnError, SelfLoops};
pub use graphmill_storage::{Budget, Clock, IoChoice, Stop, SystemClock};
pub use import::ImportConfig;
pub use info::GraphInfo;
pub use machine::{Machine, MachineConfig, default_memory, default_threads, memory_total};
pub use plan::{Config, Plan};
pub use progress::{Progress, Watcher, unwatched};
pub use result::{Block, Labels, ResultError, Texts, TopRow, Values};
pub use run::{Run, Seconds};
pub use validate::{Rule, ValidateError, Verdict, validate};
