//! Graph algorithms on graphs of any size: import files of edges, run an algorithm, get a result under your own vertex ids.

#![forbid(unsafe_code)]

mod byte_file;
mod cache;
mod file_aside;
mod machine;
mod result;
mod validate;

pub use graphmill_storage::{Budget, Clock, IoChoice, Stop, SystemClock};
pub use machine::{Machine, MachineConfig, default_memory, default_threads, memory_total};
pub use result::{Block, Format, Labels, ResultError, Shape, Texts, Top, TopRow, Values};
pub use validate::{Rule, ValidateError, Verdict, validate};
