//! Edge files in, a stored graph out.
//!
//! This crate turns "here is an edge list" into "here is a stored graph", inside a memory budget and with all cores. It knows
//! files of edges and how a graph is written; it never runs an algorithm.
//!
//! | file | what it holds |
//! | --- | --- |
//! | `import.rs`, `import/` | [`import`]: the steps in their order, and each of them |
//! | `import/outlook.rs` | [`outlook()`]: what an import would read, write and send |
//! | `readers/` | [`FileSource`]: files of edges |
//! | `generate.rs`, `generate/` | [`Generated`]: graphs made by rule |
//! | `edge.rs` | [`EdgeSource`], [`EdgeSink`]: how edges travel |
//! | `crew.rs` | the ranks that import together |
//! | `scan.rs` | the first reading: how many edges, which ids |
//! | `presence.rs` | which integer ids occur, and their ranks |
//! | `dictionary.rs`, `dictionary/` | ids that memory cannot hold, sorted on disk |
//! | `count.rs`, `cut.rs` | arcs by range of vertices; where batches and column files end |
//! | `degrees.rs`, `deal.rs`, `relabel.rs` | in order of degree: arcs by vertex; which index each gets; edges called by these |
//! | `layout.rs` | where an arc goes, and the key that orders it there |
//! | `distribute.rs` | the second reading: arcs to the buckets of column files |
//! | `write.rs`, `sort.rs`, `policy.rs` | a bucket to a column file: sort, duplicates, cells |
//! | `spill.rs`, `spool.rs`, `source.rs` | temporary files of buckets and of edges |
//! | `parallel.rs` | numbered tasks on all workers |
//! | `report.rs` | [`ImportReport`]: what was read, kept and dropped |
//! | `error.rs` | [`IngestError`] |
//! | `fuzzing.rs` | what fuzz targets call |

#![forbid(unsafe_code)]

mod count;
mod crew;
mod cut;
mod deal;
mod degrees;
mod dictionary;
mod distribute;
mod edge;
mod error;
#[cfg(fuzzing)]
pub mod fuzzing;
mod generate;
mod import;
mod layout;
mod parallel;
mod policy;
mod presence;
mod readers;
mod relabel;
mod report;
mod scan;
mod sort;
mod source;
mod spill;
mod spool;
mod write;

pub use edge::{
    BATCH_EDGES_MAX, EdgeSink, EdgeSource, ID_BYTES_MAX, Ids, PieceReader, PieceReport,
};
pub use error::{IngestError, LineProblem};
pub use generate::{Generated, GraphRule};
pub use import::{
    ImportOptions, ImportOutlook, ImportQuestion, Input, Machine, Phase, Progress, Silent,
    check_memory, check_space, generate, import, outlook,
};
pub use policy::{Duplicates, SelfLoops};
pub use readers::{
    CellProblem, Comments, Delimiter, FileSource, Format, Header, InputFile, OnError, Quote,
    ReadNotice, ReadOptions, TextOptions, files_of, says_something_else,
};
pub use report::{ImportReport, Moved};

/// Parquet files, read within the budget: no length in a file is believed before it is checked.
pub mod parquet_pages {
    pub use crate::readers::{column_reader, footer, guarded, pages_bytes};
}
