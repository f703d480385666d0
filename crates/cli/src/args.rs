//! The command line: what every subcommand takes, and its help.
//!
//! | file | what it holds |
//! | --- | --- |
//! | `cli.rs` | all subcommands |
//! | `help.rs` | the short and the long page of help |
//! | `import.rs`, `run.rs`, `generate.rs`, `validate.rs`, `plan.rs` | one subcommand each |
//! | `stored.rs`, `tools.rs` | the small ones |
//! | `machine.rs`, `edges.rs`, `reading.rs`, `storing.rs`, `checkpoint.rs`, `tuning.rs` | groups of options that subcommands share |
//! | `algorithm.rs` | the options of an algorithm |

mod algorithm;
mod checkpoint;
mod cli;
mod edges;
mod generate;
mod help;
mod import;
mod machine;
mod plan;
mod reading;
mod run;
mod stored;
mod storing;
mod tools;
mod tuning;
mod validate;

pub(crate) use checkpoint::Recovery;
pub(crate) use cli::Command;
pub(crate) use edges::{Duplicates, Edges, SelfLoops, Weights};
pub(crate) use generate::{Generate, GenerateOutput, GenerateRule};
pub(crate) use help::{command, parse};
pub(crate) use import::Import;
pub(crate) use machine::{Io, Machine};
pub(crate) use plan::{Disks, ExpectedGraph, Like, Plan, PlanCluster, PlanInput};
pub(crate) use reading::{Format, Header, Ids, OnError, Reading};
pub(crate) use run::Run;
pub(crate) use stored::{Cache, CacheCommand, Info, Verify};
pub(crate) use storing::{Order, Storing};
pub(crate) use tools::{Algorithms, Completions, Man, Mpi, MpiCommand};
pub(crate) use tuning::{Charge, Combining, Direction, Dispatch, Experiments, Seek, Tiers};
pub(crate) use validate::{Rule, Validate};
