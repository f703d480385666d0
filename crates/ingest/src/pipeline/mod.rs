//! Edges in, a stored graph out: the steps in their order.
//!
//! 1. *scan*: the edges are read once; ids that occur, arcs by range of ids. A slow input goes to an edge file.
//! 2. *ids*: every id gets the index of its vertex, by a bitmap if memory holds one, else by a dictionary on disk.
//! 3. *cut*: counts alone say where batches and column files end.
//! 4. *distribute*: the edges are read again; every arc goes to the bucket of its column file. In order of degree, vertices are
//!    assigned to the batches first, and edges get the resulting indices (`degree_order.rs`).
//! 5. *write*: each bucket is read, sorted in memory, and becomes a column file.
//!
//! 6. *finish*: the vertices' files are written, everything is made durable, and the directory gets its name.
//!
//! In the stream layout *bin* takes the place of steps 3 to 5: every arc goes to the open chunk of its source batch, and full
//! chunks to a file of each rank (`bin.rs`). If the ids are known to be indices, it is the first step too.
//!
//! For a graph by rule whose arcs are known in the order of the stored graph, one step stands for the first five
//! (`direct.rs`).
//!
//! The same input gives the same graph, byte for byte, for any number of threads and any budget: memory decides how
//! often something is read, never the stored bytes.

pub(crate) mod assign_ids;
mod bin;
pub(crate) mod bin_plan;
mod buckets;
pub(crate) mod buffer_plan;
mod context;
pub(crate) mod cut;
mod degree_order;
mod direct;
mod distribute;
mod finish;
mod import;
pub(crate) mod memory;
mod resume;
pub(crate) mod scan;
pub(crate) mod write;

pub use import::{check_space, generate, import};
pub use memory::check_memory;
