//! Graphmill on simulated machines: the real import, engine and ports of a cluster, on disks, networks, threads and clocks that a seed
//! decides, faults included.
//!
//! A seed draws a graph, a question about it, ranks, memory and what goes wrong ([`Case`]). The edges are imported and the question is
//! asked again and again, each time with other faults, each time going on with what the time before left, until nothing goes wrong any
//! more ([`judge`]). Then the result is the bytes of a run that nothing disturbed, and that is right by a program that knows nothing of
//! ours (`oracle.rs`).
//!
//! | file | what it holds |
//! | --- | --- |
//! | `case.rs` | [`Case`]: what a seed draws |
//! | `clock.rs` | time on simulated machines |
//! | `fault.rs` | what goes wrong in one attempt |
//! | `cluster.rs` | ranks on simulated machines: one attempt |
//! | `oracle.rs` | the right answer, by a few lines for each algorithm |
//! | `judge.rs` | [`judge`]: attempts in a row, and what has to hold |
//! | `exhaust.rs` | [`every_power_cut`], [`every_failure`], [`every_failed_sync`], [`every_cut_going_on`], [`every_failed_name`], [`every_wish`], [`without_locks`], [`mutations`]: all that can go wrong with one small job |

#![forbid(unsafe_code)]

mod case;
mod clock;
mod cluster;
mod exhaust;
mod fault;
mod judge;
mod oracle;

pub use case::Case;
pub use exhaust::{
    every_cut_going_on, every_failed_name, every_failed_sync, every_failure, every_power_cut,
    every_wish, mutations, without_locks,
};
pub use judge::{Told, judge};
