//! The command line: what every subcommand takes, and its help.
//!
//! | file | what it holds |
//! | --- | --- |
//! | `cli.rs` | all subcommands |
//! | `help.rs` | the short and the long page of help |
//! | `import.rs`, `run.rs`, `generate.rs`, `validate.rs`, `estimate.rs` | one subcommand each |
//! | `stored.rs`, `tools.rs` | the small ones |
//! | `machine.rs`, `edges.rs`, `reading.rs`, `storing.rs`, `checkpoint.rs`, `tuning.rs` | groups of options that subcommands share |
//! | `algorithm.rs` | the options of an algorithm |

mod algorithm;
pub(crate) mod checkpoint;
pub(crate) mod cli;
pub(crate) mod edges;
pub(crate) mod estimate;
pub(crate) mod generate;
pub(crate) mod help;
pub(crate) mod import;
pub(crate) mod machine;
pub(crate) mod reading;
pub(crate) mod run;
pub(crate) mod stored;
pub(crate) mod storing;
pub(crate) mod tools;
pub(crate) mod tuning;
pub(crate) mod validate;
