//! Here is an edge file, give me edges.
//!
//! | file | what it holds |
//! | --- | --- |
//! | `input.rs` | which files an input is made of, and what each is: [`Format`], [`InputFile`] |
//! | `files.rs` | [`FileSource`]: the files, cut in pieces; [`ReadOptions`] |
//! | `files/reader.rs` | how a piece is read, each by one of several workers |
//! | `file_bytes.rs` | the bytes of a file in order, read ahead |
//! | `compression.rs` | the bytes of a gzip or zstd file |
//! | `foreign.rs` | files that are no edge lists, and what to do with them |
//! | `text.rs`, `text/` | lines to edges: SNAP, `.el`, `.wel`, CSV, LDBC, DIMACS, lists of vertices |
//! | `parquet.rs`, `parquet_bytes.rs`, `thrift.rs` | rows of Parquet files to edges |
//! | `raw_pairs.rs` | pairs of 32 or 64 bits to edges |

mod compression;
mod file_bytes;
mod files;
mod foreign;
mod input;
mod parquet;
mod parquet_bytes;
mod raw_pairs;
mod text;
mod thrift;

pub use files::{FileSource, OnError, ReadNotice, ReadOptions};
pub use input::{Format, InputFile, files_of, says_something_else};
pub use parquet::CellProblem;
pub use parquet_bytes::{column_reader, footer, guarded, pages_bytes};
pub use text::{Comments, Delimiter, Header, Quote, TextOptions};
