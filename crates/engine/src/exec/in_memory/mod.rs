//! Work on edges that are in memory as lists, vertex by vertex.
//!
//! | file | what it holds |
//! | --- | --- |
//! | `lists.rs` | [`lists::Lists`]: the edges of every vertex |
//! | `pile.rs` | vertices that wait for their turn |
//! | `round.rs` | a round of work, by all workers or one |
//! | `levels.rs` | level after level, by push or pull |
//! | `buckets.rs` | bucket after bucket |
//! | `components.rs` | all edges into a forest |

pub(crate) mod afforest;
pub(crate) mod bucket_queue;
pub(crate) mod delta_stepping;
pub(crate) mod direction_optimizing;
pub(crate) mod edge_scan;
pub(crate) mod pass_limit;
pub(crate) mod round;
