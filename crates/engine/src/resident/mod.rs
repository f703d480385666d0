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

pub(crate) mod buckets;
pub(crate) mod components;
pub(crate) mod levels;
pub(crate) mod lists;
pub(crate) mod pile;
pub(crate) mod round;
