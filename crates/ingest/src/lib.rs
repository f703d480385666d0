//! Edge files in, a stored graph out.
//!
//! This crate turns an edge list into a stored graph, inside a memory budget and with all cores. It knows
//! files of edges and how a graph is written; it never runs an algorithm.
//!
//! | file | content |
//! | --- | --- |
//! | `pipeline/` | [`import`]: the steps in their order, and each of them |
//! | `estimate/` | [`estimate()`]: the bytes that an import would read, write and send |
//! | `checkpoint/` | the checkpoint of an interrupted import, and the directories where it works |
//! | `build/` | arcs to the buckets of column files; a bucket to a column file: sort, duplicates, cells |
//! | `layout/` | counts of arcs; where batches and column files end; the order of degree; the key that orders arcs |
//! | `ids/` | from ids to indices: a bitmap in memory, or a dictionary on disk |
//! | `external/` | temporary files of buckets and of edges, the shuffle, sorting, numbered tasks |
//! | `readers/` | [`FileSource`]: files of edges |
//! | `generate/` | [`Generated`]: graphs made by rule |
//! | `comm.rs` | the ranks that import together |
//! | `options.rs`, `progress.rs`, `report.rs` | [`ImportOptions`], [`ImportProgress`], [`ImportReport`] |
//! | `source.rs`, `limits.rs` | [`EdgeSource`], [`EdgeSink`]: how edges travel, and their limits |
//! | `error.rs` | [`IngestError`] |
//! | `fuzzing.rs` | entry points of fuzz targets |

#![forbid(unsafe_code)]

mod build;
mod checkpoint;
mod comm;
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

pub use error::{CellProblem, IngestError, LineProblem};
pub use estimate::{ImportEstimate, ImportEstimateRequest, Input, Phase, estimate};
pub use generate::{Generated, GraphRule};
pub use limits::{BATCH_EDGES_MAX, ID_BYTES_MAX};
pub use options::{Duplicates, ImportOptions, ImportResources, SelfLoops};
pub use pipeline::{check_memory, check_space, generate, import};
pub use progress::{ImportProgress, NoProgress};
pub use readers::{
    Comments, Delimiter, FileSource, Format, Header, InputFile, OnError, ParquetBytes, Quote,
    ReadNotice, ReadOptions, TextOptions, content_mismatch, guarded, input_files,
};
pub use report::{ImportReport, ImportTraffic};
pub use source::{EdgeSink, EdgeSource, Ids, PieceReader, PieceReport};
