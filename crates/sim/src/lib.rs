//! Graphmill on simulated machines: the real import and engine of a cluster, where a seed decides all else.
//!
//! The seed decides disks, networks, threads, clocks and faults.
//!
//! A seed draws a graph, a question about it, ranks, memory and faults ([`Scenario`]). The job imports the edges and asks the question
//! repeatedly. Each attempt has other faults and resumes from what the last one left, until one runs without faults ([`check_seed`]).
//! Then the result must be byte-identical to that of a run without faults. An implementation that shares no code with Graphmill checks that
//! run (`reference.rs`).
//!
//! | file | what it holds |
//! | --- | --- |
//! | `scenario.rs` | [`Scenario`]: what a seed draws |
//! | `clock.rs` | time on simulated machines |
//! | `fault.rs` | the faults of one attempt |
//! | `cluster.rs` | one attempt: ranks on simulated machines |
//! | `reference.rs` | the right answer, by a few lines for each algorithm |
//! | `model/` | [`model`]: the cluster of a paper as discrete events, without the engine |
//! | `check.rs` | [`check_seed`]: a sequence of attempts, and the conditions that must hold |
//! | `balance.rs` | [`balance()`]: the chunks that each rank processes, without stealing and with it |
//! | `paced.rs` | a rank whose work takes simulated time |
//! | `stored.rs` | [`SimulatedBuckets`]: a graph that this machine has stored, by the bucket executor |
//! | `exhaustive.rs` | [`every_power_cut`], [`every_failure`], [`every_failed_sync`], [`every_cut_going_on`], [`every_failed_name`],
//! [`every_wish`], [`without_locks`], [`mutations`]: every fault of one small job |

#![forbid(unsafe_code)]

mod balance;
mod check;
mod clock;
mod cluster;
mod exhaustive;
mod fault;
pub mod model;
mod paced;
mod reference;
mod scenario;
mod stored;

pub use balance::{BalanceReport, BalanceRun, SkewedGraph, balance};
pub use check::{SeedReport, check_seed};
pub use exhaustive::{
    every_cut_going_on, every_failed_name, every_failed_sync, every_failure, every_power_cut,
    every_wish, mutations, silent_peer, without_locks,
};
pub use scenario::Scenario;
pub use stored::SimulatedBuckets;
