//! Imports edge files into a stored graph.
//!
//! The import stays within a memory budget and uses all cores. The crate reads edge files or generates edges by a rule. It
//! sorts the edges and writes them as a stored graph. It never runs an algorithm.
//!
//! | file or directory | content |
//! | --- | --- |
//! | `pipeline/` | [`import`]: the steps of an import, and their order |
//! | `estimate/` | [`estimate()`]: the bytes that an import would read, write and send |
//! | `checkpoint/` | the checkpoint of an interrupted import, and the directories of an import |
//! | `build/` | from arcs to buckets, one for each column file; from a bucket to a column file: sorting, duplicates, cells |
//! | `layout/` | counts of arcs; the boundaries of batches and column files; the order of vertices by degree; the sort key of an arc |
//! | `ids/` | from ids to vertex indices, with a bitmap in memory or a dictionary on disk |
//! | `external/` | temporary files of arcs and of edges, the exchange of arcs between ranks, sorting, parallel tasks |
//! | `readers/` | [`FileSource`]: edges from files |
//! | `generate/` | [`Generated`]: edges of a graph that is made by a rule |
//! | `edge_arrays.rs` | [`EdgeArrays`]: edges from arrays in memory |
//! | `comm.rs` | communication between the ranks of an import |
//! | `options.rs` | [`ImportOptions`] |
//! | `progress.rs` | [`ImportProgress`] |
//! | `report.rs` | [`ImportReport`] |
//! | `edge_data.rs` | [`EdgeData`]: weights and records of fields as stored bits |
//! | `source.rs` | [`EdgeSource`] produces edges, [`EdgeSink`] takes them |
//! | `limits.rs` | the greatest length of an id; how many edges a sink takes at once |
//! | `error.rs` | [`IngestError`] |
//! | `fuzzing.rs` | entry points of fuzz targets |

#![forbid(unsafe_code)]

mod build;
mod checkpoint;
mod comm;
mod edge_arrays;
mod edge_data;
mod error;
mod estimate;
mod external;
#[cfg(fuzzing)]
pub mod fuzzing;
mod generate;
mod ids;
mod layout;
mod limits;
mod options;
mod pipeline;
mod progress;
mod readers;
mod report;
mod source;

pub use edge_arrays::EdgeArrays;
pub use edge_data::{EdgeData, EdgeDataBatch, weight_bits};
pub use error::{CellProblem, IngestError, LineProblem};
pub use estimate::{ImportEstimate, ImportEstimateRequest, Input, Phase, estimate};
pub use generate::{Generated, GraphRule, KroneckerLabels};
pub use limits::{BATCH_EDGES_MAX, ID_BYTES_MAX};
pub use options::{Duplicates, ImportOptions, ImportResources, SelfLoops};
pub use pipeline::{check_memory, check_space, generate, import};
pub use progress::{ImportProgress, NoProgress};
pub use readers::{
    Comments, Delimiter, EdgeColumns, FileSource, Format, Header, InputFile, OnError, Quote,
    ReadNotice, ReadOptions, TextOptions, content_mismatch, input_files,
};
pub use report::{ImportReport, ImportTraffic};
pub use source::{EdgeSink, EdgeSource, Ids, PieceReader, PieceReport};

/// Parquet files, read within the budget: every length in a file is checked before it is used.
pub mod parquet_pages {
    pub use crate::readers::{CellValue, cells, column_reader, footer, pages_bytes};
}

/// Tables of any kind: which columns hold the edges, and their rows.
pub mod tables {
    pub use crate::readers::{CellValue, ColumnType, RowRequest, TableColumns, TableRows};
}
