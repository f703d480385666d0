//! Edges in the formats of other programs.
//!
//! | file | what it holds |
//! | --- | --- |
//! | `arrow_edges.rs` | [`ArrowEdges`]: a stream of Arrow record batches as a source of edges, read once |
//! | `arrow_cells.rs` | the cells of an Arrow array |

#![forbid(unsafe_code)]

mod arrow_cells;
mod arrow_edges;

pub use arrow_edges::ArrowEdges;
