//! Reads, writes and verifies stored graphs.
//!
//! A stored graph is a directory. A batch is a range of its vertices, and a cell holds the arcs from one batch to another.
//! The files hold the cells, the vertex ids, the degrees, and checksums of all bytes. docs/reference/file-format.md
//! describes every byte. The crate knows nothing of programs, messages or passes, nor of the origin of the edges.
//!
//! | file or directory | content |
//! | --- | --- |
//! | `batches.rs` | [`Batches`]: the boundaries of the batches |
//! | `partition.rs` | [`partition()`]: divides the batches among ranks |
//! | `spec.rs` | [`GraphSpec`]: the layout of a graph, known before its arcs are written |
//! | `manifest.rs` | [`Manifest`]: the content of `graph.json` |
//! | `edge_fields.rs` | [`EdgeFields`]: the fields of a record that an edge carries |
//! | `weight_range.rs` | [`WeightRange`]: the least and the greatest weight |
//! | `codec/` | [`BlockView`]: a block of at most 4,096 arcs of a cell, encoded together; integers of variable length (LEB128) |
//! | `file/` | [`FileId`]: the name of a file of a graph; pages and their checksums |
//! | `cell/` | [`Column`] and [`Cell`]: positions of cells in files; [`SourceIndex`]: positions of a source's arcs in a cell |
//! | `vertex/` | for each vertex: its degree, its id, its place in the [`Order`], and its fan-out list (the destination batches of its arcs) |
//! | `stream/` | [`ChunkSet`]: the chunks of a graph in the stream layout; [`ChunkView`]: one of them; [`ChunkWriter`]: bins arcs into chunks |
//! | `open/` | [`StoredGraph`]: an open graph; its [`ColumnSet`]s; the memory that an open graph takes |
//! | `read/` | [`ExtentReader`]: streams cells and reads ahead; [`PageCache`]: reads single pages and waits for them; [`IdCursor`]: ids in order; [`FanoutTable`]: fan-out lists |
//! | `write/` | [`GraphWriter`], [`ColumnFileWriter`]: write arcs, then degrees and fan-out lists; [`CopiedFiles`]: files from another host |
//! | `model/` | [`GraphProfile`]: counts and bytes of a graph that is stored, or that a [`GraphModel`] describes |
//! | `verify.rs`, `verify/` | [`verify`]: checks the checksums and the cells of a graph; [`verify_deep`]: also compares its tables with its cells |
//! | `error.rs` | [`FormatError`] |

#[cfg(test)]
extern crate self as graphmill_graph;

mod batches;
mod cell;
mod codec;
mod edge_fields;
mod error;
mod file;
mod id_type;
mod manifest;
mod model;
mod open;
mod partition;
mod read;
mod spec;
mod stream;
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
pub use edge_fields::{EdgeField, EdgeFields, FieldType, RECORD_BYTES_MAX};
pub use error::FormatError;
pub use file::extent::{CHUNK_BYTES, Extent};
pub use file::page::{DISK_PAGE_BYTES, FileId, FileKind, FileSide};
pub use id_type::IdType;
pub use manifest::{EdgeVertices, FORMAT, IdKind, Manifest};
pub use model::expected::{DegreeModel, GraphModel};
pub use model::numbers::{ColumnModel, FileBytes, SenderCounts, file_bytes};
pub use model::profile::GraphProfile;
pub use open::column_set::ColumnSet;
pub use open::footprint::{ChunkDims, GraphDims, OpenFootprint};
pub use open::stored_graph::StoredGraph;
pub use partition::partition;
pub use read::extent_stream::{ExtentReader, Front};
pub use read::fanout_table::FanoutTable;
pub use read::id_cursor::IdCursor;
pub use read::page_cache::PageCache;
pub use spec::{EdgeKind, GraphSpec, Layout};
pub use stream::bins::ChunkBins;
pub use stream::chunk::{ChunkRun, ChunkRuns, ChunkView};
pub use stream::chunk_file::ChunkFile;
pub use stream::chunk_set::{ChunkRead, ChunkSet};
pub use stream::directory::Chunk;
pub use stream::reader::ChunkSetReader;
pub use stream::shape::{
    ChunkPlace, ChunkRoute, ChunkShape, STREAM_CHUNK_BYTES, STREAM_CHUNK_BYTES_MAX,
    STREAM_CHUNK_BYTES_MIN, SealedChunk, StoreHere,
};
pub use stream::writer::{ChunkWriter, CountedDegrees};
pub use verify::{Verified, verify, verify_deep};
pub use vertex::fanout_pages::FanoutChunk;
pub use vertex::ids::id::{Id, TEXT_ID_BYTES_MAX, VertexId, uuid_of, uuid_text};
pub use vertex::ids::writer::{IdsSummary, IdsWriter};
pub use vertex::order::Order;
pub use vertex::packed::PAGE_VERTICES;
pub use weight_range::WeightRange;
pub use write::column_file::ColumnFileWriter;
pub use write::degree_writer::DegreeWriter;
pub use write::graph_writer::{FinishInfo, GraphWriter, remove_temporary};
pub use write::handoff::ManifestDecoder;
pub use write::order_writer::OrderWriter;
pub use write::transfer::{CopiedFiles, common_files, send_files};
