//! The in-memory executor: work that goes from vertex to vertex over decoded adjacency lists.
//!
//! | file | what it holds |
//! | --- | --- |
//! | `direction_optimizing.rs` | level after level, by push or pull |
//! | `delta_stepping.rs` | bucket after bucket |
//! | `afforest.rs` | connected components in a forest |
//! | `label_counts.rs` | one round of a count program |
//! | `round.rs` | one round of work, by all workers or by one |
//! | `bucket_queue.rs` | vertices that wait for their bucket, without a lock |
//! | `peers.rs` | what the ranks of a search tell each other between two rounds |
//! | `edge_scan.rs` | all arcs of a rank once, in any order |
//! | `level_scan.rs` | a level of a search by a scan, which keeps what later levels need |
//! | `pass_limit.rs` | a limit on the passes of a loop |

pub(crate) mod afforest;
pub(crate) mod bucket_queue;
pub(crate) mod delta_stepping;
pub(crate) mod direction_optimizing;
pub(crate) mod edge_scan;
pub(crate) mod label_counts;
pub(crate) mod level_scan;
pub(crate) mod pass_limit;
pub(crate) mod peers;
pub(crate) mod round;
