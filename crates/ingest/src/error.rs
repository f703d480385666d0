//! What can go wrong between an edge file and a stored graph.

mod record_problem;

use std::path::{Path, PathBuf};

use graphmill_fabric::FabricError;
use graphmill_graph::FormatError;
use graphmill_storage::{BudgetError, CancelToken, MemoryBudget, StorageError};

pub use record_problem::{CellProblem, LineProblem};

/// Why an input could not be read, or a graph not be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum IngestError {
    /// A disk operation failed.
    #[error(transparent)]
    Storage(#[from] StorageError),

    /// Weights that were to be added are too large together.
    #[error(
        "cannot add the weights of two or more edges between the same vertices: they add up to no finite number; --weights f64 holds up to 1.7e308, --duplicates first, min or max keeps one of them"
    )]
    SumTooLarge,

    /// The memory budget is too small.
    #[error(transparent)]
    Budget(#[from] BudgetError),

    /// The stored graph could not be written or read.
    #[error(transparent)]
    Graph(#[from] FormatError),

    /// A rank that imports with this one is lost.
    #[error(transparent)]
    Fabric(#[from] FabricError),

    /// Ranks do not see the same input, or were asked for other graphs.
    #[error(
        "cannot import on rank {rank}: its input or options differ from those on rank 0; give all ranks the same files and options"
    )]
    OtherInput {
        /// The rank.
        rank: usize,
    },

    /// Arrays of edges make no sense.
    #[error("cannot import arrays of edges: {what}")]
    Arrays {
        /// What makes none.
        what: String,
    },

    /// Ranks that see the same disk do not follow each other.
    #[error(
        "cannot share {}: its ranks are not consecutive; start the ranks host by host (mpirun --map-by slot), or write to a directory that all hosts share", folder.display()
    )]
    HalfShared {
        /// The directory.
        folder: PathBuf,
    },

    /// An option needs a directory that all ranks see.
    #[error(
        "{option} requires a directory that all hosts share: each host has its own {}", folder.display()
    )]
    NotShared {
        /// The directory.
        folder: PathBuf,
        /// The option.
        option: &'static str,
    },

    /// A line of an input is malformed.
    #[error("cannot read {}, line {line}, {found:?}: {problem}; --on-error skip leaves out such lines", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The line, from 1, in the unpacked text.
        line: u64,
        /// The start of the line.
        found: String,
        /// The problem with the line.
        problem: LineProblem,
    },

    /// A row of a Parquet file is no edge.
    #[error("cannot read {}, row {row}: column {column} {problem}; --on-error skip leaves out such rows", path.display())]
    Row {
        /// The file.
        path: PathBuf,
        /// The row, from 1.
        row: u64,
        /// The column.
        column: String,
        /// The problem with the cell.
        problem: CellProblem,
    },

    /// A quote is never closed.
    #[error("cannot read {}, line {line}: the quotes that open here are not closed; --quote none takes quotes as text", path.display())]
    UnclosedQuote {
        /// The file.
        path: PathBuf,
        /// The line where they open, from 1.
        line: u64,
    },

    /// A line does not end within the bytes that a line may have.
    #[error("cannot read {}, line {line}: it is longer than {bytes_max} bytes; give a text file with an edge a line", path.display())]
    EndlessLine {
        /// The file.
        path: PathBuf,
        /// The line, from 1, in the unpacked text.
        line: u64,
        /// Bytes a line may have.
        bytes_max: usize,
    },

    /// An input cannot be what it is named or said to be.
    #[error("cannot use {}: {problem}", path.display())]
    Input {
        /// The file or directory.
        path: PathBuf,
        /// The problem, and a hint.
        problem: String,
    },

    /// A compressed file is damaged.
    #[error("cannot unpack {}: the {kind} data is damaged or cut short, after {unpacked} bytes of unpacked data: {reason}", path.display())]
    Compressed {
        /// The file.
        path: PathBuf,
        /// The kind of compression.
        kind: &'static str,
        /// Bytes that could be unpacked.
        unpacked: u64,
        /// The error of the library.
        reason: String,
    },

    /// A file is not the one that was read before.
    #[error(
        "cannot import {what}: it changed while it was read; import it again when no process writes to it"
    )]
    InputChanged {
        /// The file, or all input.
        what: String,
    },

    /// A temporary file does not hold what was written to it.
    #[error("cannot read the temporary file {}: it is damaged at byte {offset}; check the disk, or choose another with --tmp", path.display())]
    Damaged {
        /// The temporary file.
        path: PathBuf,
        /// The offset of the damaged chunk in bytes.
        offset: u64,
    },

    /// A step cannot do with the memory there is.
    #[error(
        "cannot fit {what} in the budget: it needs {needed} bytes of memory and {available} are left; give --memory {least} or more"
    )]
    TooLittleMemory {
        /// The purpose of the memory.
        what: &'static str,
        /// Bytes it needs.
        needed: u64,
        /// Bytes there are.
        available: u64,
        /// The budget that would do for this step, in bytes.
        least: u64,
    },

    /// The disk has too little free space for the graph and the temporary files.
    #[error(
        "cannot write to {}: at least {needed} bytes are needed and {free} are free; free some space, ask for less, or write elsewhere (the output, or temporary files by --tmp)", folder.display()
    )]
    TooLittleDisk {
        /// The directory.
        folder: PathBuf,
        /// Bytes that would be written, at least.
        needed: u64,
        /// Bytes that are free.
        free: u64,
    },

    /// More vertices than a key of 64 bits can tell apart, twice.
    #[error(
        "cannot store {vertices} vertices: about 2^38 is the most, fewer with a large --batch-size"
    )]
    TooManyVertices {
        /// Vertices there are.
        vertices: u64,
    },

    /// Batches of more vertices than a stored graph takes.
    #[error("--batch-size {asked} must be at most {most}")]
    BatchSize {
        /// Vertices of a batch that were asked for.
        asked: u64,
        /// The most.
        most: u64,
    },

    /// Batches that the stream layout does not take.
    #[error(
        "--batch-size {asked} must be a power of two of at most 1048576 with --layout stream: use {}",
        either(*below, *above)
    )]
    StreamBatchSize {
        /// Vertices of a batch that were asked for.
        asked: u64,
        /// The next power of two below.
        below: u64,
        /// The next power of two above.
        above: u64,
    },

    /// An option that needs the order of edges, which the stream layout does not keep.
    #[error(
        "{option} conflicts with --layout stream, which keeps all edges unsorted: leave {option} out, or use --layout column"
    )]
    StreamOption {
        /// The option.
        option: &'static str,
    },

    /// A size of chunks where there are none.
    #[error("--chunk-size requires --layout stream")]
    ChunkSizeAlone,

    /// Chunks that are too short or too long.
    #[error("--chunk-size {asked} must be at least 4096 and at most 134217728")]
    ChunkSize {
        /// Bytes of a chunk that were asked for.
        asked: u64,
    },

    /// A bound on ids that are no integers.
    #[error("--vertices-below requires integer ids: leave out --ids string")]
    BelowOfText,

    /// A list of vertices for an input that fixes its vertices.
    #[error("--vertices conflicts with an input that defines its vertices: leave it out")]
    VerticesKnown,

    /// An option that does not go with vertices of edges.
    #[error(
        "{option} does not go with --edge-vertices (which bp imports by), as each edge of the input gets a vertex of its own: leave {option} out"
    )]
    EdgeVertices {
        /// The option.
        option: &'static str,
    },

    /// An import that is not planned.
    #[error("cannot plan such an import: {problem}")]
    Plan {
        /// Why not.
        problem: &'static str,
    },

    /// A graph that no rule can generate.
    #[error("cannot generate such a graph: {problem}")]
    Generator {
        /// Why not.
        problem: &'static str,
    },

    /// The user or the program asked to stop.
    #[error("interrupted")]
    Stopped,

    /// A rule of this program is broken; no input should be able to.
    #[error("internal error: {what}; please report it")]
    Internal {
        /// The rule.
        what: &'static str,
    },
}

/// One or two numbers.
fn either(below: u64, above: u64) -> String {
    match below == above {
        true => above.to_string(),
        false => format!("{below} or {above}"),
    }
}

impl IngestError {
    /// Returns true if the options are wrong.
    pub fn is_usage(&self) -> bool {
        matches!(
            self,
            Self::Generator { .. }
                | Self::Arrays { .. }
                | Self::BatchSize { .. }
                | Self::Plan { .. }
                | Self::EdgeVertices { .. }
                | Self::BelowOfText
                | Self::ChunkSize { .. }
                | Self::ChunkSizeAlone
                | Self::StreamBatchSize { .. }
                | Self::StreamOption { .. }
        )
    }

    pub(crate) fn internal(what: &'static str) -> Self {
        Self::Internal { what }
    }

    /// Returns [`Stopped`](Self::Stopped) as an error if `stop` was requested.
    pub(crate) fn check_stop(stop: &CancelToken) -> Result<(), Self> {
        match stop.is_cancelled() {
            true => Err(Self::Stopped),
            false => Ok(()),
        }
    }

    pub(crate) fn damaged(path: &Path, offset: u64) -> Self {
        Self::Damaged {
            path: path.to_path_buf(),
            offset,
        }
    }

    /// Returns [`TooLittleMemory`](Self::TooLittleMemory) as an error unless `needed` bytes are free.
    pub(crate) fn check_free(
        what: &'static str,
        needed: u64,
        budget: &MemoryBudget,
    ) -> Result<(), Self> {
        match needed <= budget.available() {
            true => Ok(()),
            false => Err(Self::too_little_memory(what, needed, budget)),
        }
    }

    /// `budget` has too few bytes for what takes `needed`.
    pub(crate) fn too_little_memory(
        what: &'static str,
        needed: u64,
        budget: &MemoryBudget,
    ) -> Self {
        let available = budget.available();
        let least = budget.total().saturating_add(needed);
        Self::TooLittleMemory {
            what,
            needed,
            available,
            least: least.saturating_sub(available),
        }
    }

    pub(crate) fn input_changed() -> Self {
        Self::InputChanged {
            what: "the input".into(),
        }
    }

    pub(crate) fn input(path: &Path, problem: impl Into<String>) -> Self {
        Self::Input {
            path: path.to_path_buf(),
            problem: problem.into(),
        }
    }
}
