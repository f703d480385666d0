//! The stored graph: a directory with batches, cells, a dictionary and their checksums.
//!
//! Here is a graph, give me its bytes; here are its bytes, give me the graph. The crate knows nothing of programs, messages or
//! supersteps, nor where edges came from. Every byte is in docs/reference/file-format.md.
//!
//! | file | what it holds |
//! | --- | --- |
//! | `copies.rs` | files on their way to another host |
//! | `partition.rs` | [`partition()`]: the cut of the batches among ranks |
//! | `batches.rs`, `shape.rs` | [`Batches`]: the cut of the vertices; [`Shape`]: what is fixed before edges are written |
//! | `block.rs`, `minis.rs`, `bits.rs` | [`BlockView`]: at most 4,096 edges of a cell, the unit of the codec and of the kernels |
//! | `source_index.rs` | [`SourceIndex`]: where in a cell a source's edges are |
//! | `write.rs`, `sources.rs` | [`GraphWriter`], [`ColumnFileWriter`]: edges in order to column files, degrees, fan-out |
//! | `ids.rs`, `ids/` | [`IdsWriter`], [`IdCursor`]: the dictionary between ids and indices, on disk |
//! | `order.rs`, `order/` | [`Order`], [`OrderWriter`]: which index the vertex of each id has |
//! | `stored.rs`, `stored/` | [`StoredGraph`]: an open graph, its [`ColumnSet`]s |
//! | `meta.rs`, `directory.rs` | [`Meta`]: graph.json; [`Column`], [`Cell`]: where the cells are |
//! | `pages.rs`, `fanout.rs` | degrees and fan-out in pages; [`FanoutTable`]: some of them in memory |
//! | `frames.rs`, `frame_writer.rs` | [`FileId`]: the files of a graph; their frames and checksums |
//! | `extent_reader.rs` | [`ExtentReader`]: streams of cells, read ahead |
//! | `frame_reader.rs` | [`FrameReader`]: small reads that wait |
//! | `outline.rs`, `estimate.rs` | [`Outline`]: a graph in numbers, of one that is stored or of an [`Expected`] one |
//! | `verify.rs`, `verify/` | [`verify`]: is it what was written? [`verify_deep`]: is all of it true? |
//! | `weights.rs` | [`WeightRange`]: the least and the greatest weight |
//! | `error.rs`, `varint.rs` | [`FormatError`]; LEB128 |

#[cfg(test)]
extern crate self as graphmill_graph;

mod batches;
mod bits;
mod block;
mod copies;
mod directory;
mod error;
mod estimate;
mod extent_reader;
mod fanout;
mod frame_reader;
mod frame_writer;
mod frames;
mod ids;
mod meta;
mod minis;
mod order;
mod outline;
mod pages;
mod partition;
mod shape;
mod source_index;
mod sources;
mod stored;
mod varint;
mod verify;
mod weights;
mod write;

pub use batches::Batches;
pub use block::{BLOCK_EDGES_MAX, BlockEncoder, BlockView, Codec, GroupWalk};
pub use copies::{CopiedFiles, common_files, send_files};
pub use directory::{Cell, Column};
pub use error::FormatError;
pub use estimate::{Expected, Likeness};
pub use extent_reader::{CHUNK_BYTES, Extent, ExtentReader, Front};
pub use fanout::FanoutTable;
pub use frame_reader::FrameReader;
pub use frames::{FRAME_BYTES, FileId, FileKind, Side};
pub use ids::{Id, IdCursor, IdsSummary, IdsWriter, TEXT_ID_BYTES_MAX, VertexId};
pub use meta::{FORMAT, IdKind, Meta};
pub use order::{Order, OrderWriter};
pub use outline::{ColumnOutline, FileBytes, Outline, Senders, file_bytes};
pub use pages::{FanoutChunk, PAGE_VERTICES};
pub use partition::partition;
pub use shape::{EdgeKind, Shape};
pub use source_index::{Group, Place, SourceIndex, SourceIndexBuilder};
pub use stored::{ColumnSet, Forecast, Measure, StoredGraph};
pub use verify::{Verified, verify, verify_deep};
pub use weights::WeightRange;
pub use write::{ColumnFileWriter, Facts, GraphWriter, Listener, remove_temporary};
