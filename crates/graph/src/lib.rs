//! The stored graph: a directory with batches, cells, a dictionary and their checksums.
//!
//! Here is a graph, give me its bytes; here are its bytes, give me the graph. The crate knows nothing of programs, messages or
//! supersteps, nor where edges came from. Every byte is in docs/reference/file-format.md.
//!
//! | directory | contents |
//! | --- | --- |
//! | `batches.rs`, `partition.rs` | [`Batches`]: the cut of the vertices; [`partition()`]: the cut of the batches among ranks |
//! | `spec.rs`, `manifest.rs`, `weight_range.rs` | [`GraphSpec`]: the layout, fixed before edges are written; [`Manifest`]: graph.json |
//! | `codec/` | [`BlockView`]: at most 4,096 edges of a cell, the unit of the codec and of the kernels; LEB128 |
//! | `file/` | [`FileId`]: the files of a graph; their pages and checksums |
//! | `cell/` | [`Column`], [`Cell`]: where the cells are; [`SourceIndex`]: where in a cell a source's edges are |
//! | `vertex/` | degrees and fan-out in pages; the dictionary between ids and indices; [`Order`] of the vertices |
//! | `open/` | [`StoredGraph`]: an open graph, its [`ColumnSet`]s, and what memory it takes |
//! | `read/` | [`ExtentReader`]: streams of cells, read ahead; [`PageCache`]: small reads that wait; [`IdCursor`], [`FanoutTable`] |
//! | `write/` | [`GraphWriter`], [`ColumnFileWriter`]: edges in order to column files, degrees, fan-out; [`CopiedFiles`] |
//! | `model/` | [`GraphProfile`]: a graph in numbers, of one that is stored or of an [`GraphModel`] one |
//! | `verify.rs`, `verify/` | [`verify`]: is it what was written? [`verify_deep`]: is all of it true? |
//! | `error.rs` | [`FormatError`] |

#[cfg(test)]
extern crate self as graphmill_graph;

mod batches;
mod cell;
mod codec;
mod error;
mod file;
mod manifest;
mod model;
mod open;
mod partition;
mod read;
mod spec;
mod verify;
mod vertex;
mod weight_range;
mod write;

pub use batches::Batches;
pub use cell::directory::{Cell, Column};
pub use cell::source_index::{EdgePosition, SourceIndex, SourceIndexBuilder};
pub use codec::block::encode::BlockEncoder;
pub use codec::block::group::Group;
pub use codec::block::layout::{BLOCK_EDGES_MAX, Codec};
pub use codec::block::view::{BlockView, GroupWalk};
pub use error::FormatError;
pub use file::extent::{CHUNK_BYTES, Extent};
pub use file::page::{DISK_PAGE_BYTES, FileId, FileKind, FileSide};
pub use manifest::{FORMAT, IdKind, Manifest};
pub use model::expected::{DegreeModel, GraphModel};
pub use model::numbers::{ColumnModel, FileBytes, SenderCounts, file_bytes};
pub use model::profile::GraphProfile;
pub use open::column_set::ColumnSet;
pub use open::footprint::{GraphDims, OpenFootprint};
pub use open::stored_graph::StoredGraph;
pub use partition::partition;
pub use read::extent_stream::{ExtentReader, Front};
pub use read::fanout_table::FanoutTable;
pub use read::id_cursor::IdCursor;
pub use read::page_cache::PageCache;
pub use spec::{EdgeKind, GraphSpec};
pub use verify::{Verified, verify, verify_deep};
pub use vertex::fanout_pages::FanoutChunk;
pub use vertex::ids::id::{Id, TEXT_ID_BYTES_MAX, VertexId};
pub use vertex::ids::writer::{IdsSummary, IdsWriter};
pub use vertex::order::Order;
pub use vertex::packed::PAGE_VERTICES;
pub use weight_range::WeightRange;
pub use write::column_file::ColumnFileWriter;
pub use write::graph_writer::{FinishInfo, GraphWriter, remove_temporary};
pub use write::handoff::ManifestDecoder;
pub use write::order_writer::OrderWriter;
pub use write::transfer::{CopiedFiles, common_files, send_files};
