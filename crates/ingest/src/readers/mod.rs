//! Here is an edge file, give me edges.
//!
//! | file | what it holds |
//! | --- | --- |
//! | `input_file.rs` | the files of an input, and what each is: [`Format`], [`InputFile`] |
//! | `detect.rs` | which files an input is made of, found by names and first bytes |
//! | `edge_columns.rs` | [`EdgeColumns`]: the columns of records of fields |
//! | `files.rs` | [`FileSource`]: the files, cut in pieces; [`ReadOptions`] |
//! | `open.rs`, `notices.rs` | how files are opened; how they are read, in words |
//! | `identity.rs` | the text that tells an input from others |
//! | `piece.rs` | how a piece is read, each by one of several workers |
//! | `read_ahead.rs` | the bytes of a file in order, read ahead |
//! | `compression.rs` | the bytes of a gzip or zstd file |
//! | `foreign.rs` | files that are no edge lists, and what to do with them |
//! | `text/` | lines to edges: SNAP, `.el`, `.wel`, CSV, LDBC, DIMACS, lists of vertices |
//! | `table_columns.rs`, `table_rows.rs` | [`TableColumns`], [`TableRows`]: columns and rows of tables to edges |
//! | `id_range.rs` | the ids that files may have |
//! | `parquet.rs`, `parquet_cells.rs`, `parquet_bytes.rs`, `thrift.rs` | row groups of Parquet files |
//! | `binary.rs` | pairs of 32 or 64 bits to edges |

mod binary;
mod compression;
mod detect;
mod edge_columns;
pub(crate) mod files;
mod foreign;
mod id_range;
mod identity;
mod input_file;
mod notices;
mod open;
mod parquet;
mod parquet_bytes;
mod parquet_cells;
mod piece;
mod read_ahead;
mod table_columns;
mod table_rows;
mod text;
mod thrift;

pub use detect::{content_mismatch, input_files};
pub use edge_columns::EdgeColumns;
pub use files::{FileSource, OnError, ReadNotice, ReadOptions};
pub use input_file::{Format, InputFile};
pub use parquet_bytes::{column_reader, footer, pages_bytes};
pub use parquet_cells::{CellValue, cells};
pub use table_columns::{ColumnType, TableColumns};
pub use table_rows::{RowRequest, TableRows};
pub use text::{Comments, Delimiter, Header, Quote, TextOptions};
