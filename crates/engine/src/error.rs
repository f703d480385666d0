//! The errors of a run.

use std::path::PathBuf;

use graphmill_fabric::FabricError;
use graphmill_graph::FormatError;
use graphmill_raw::OutOfMemory;
use graphmill_storage::{BudgetError, StorageError};

/// A failure of the engine: what failed, where, and what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// The disk.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// The stored graph.
    #[error(transparent)]
    Graph(#[from] FormatError),
    /// The memory budget.
    #[error(transparent)]
    Budget(#[from] BudgetError),
    /// The machine's memory.
    #[error(transparent)]
    Memory(#[from] OutOfMemory),
    /// The other ranks.
    #[error(transparent)]
    Fabric(#[from] FabricError),
    /// Ranks opened graphs that are not the same.
    #[error(
        "rank {rank} opened another graph than rank 0: give all ranks the same, on a shared file system or as copies"
    )]
    OtherGraph {
        /// Which rank.
        rank: usize,
    },
    /// A graph is spread over hosts in another way than ranks are.
    #[error(
        "{}: the columns of this graph are spread over hosts, and {ranks} ranks do not find all of them in the order of ranks: run it on the hosts that imported it, in that order",
        path.display()
    )]
    Spread {
        /// The graph.
        path: PathBuf,
        /// How many ranks there are.
        ranks: usize,
    },
    /// The algorithm works only in the memory of one rank.
    #[error("{what} works in the memory of one rank: run it with one, or by another method")]
    OneRank {
        /// The algorithm.
        what: &'static str,
    },
    /// The run does not fit in the budget.
    #[error(
        "{what} needs at least {least} bytes of memory and the budget is {budget}: give --memory {}M or more",
        least.div_ceil(1 << 20)
    )]
    TooSmall {
        /// The pass or step.
        what: &'static str,
        /// The least budget that would do, in bytes.
        least: u64,
        /// The budget, in bytes.
        budget: u64,
    },
    /// A page of a vertex array did not read back as it was written.
    #[error(
        "{path}: the page at byte {offset} is not what was written there: the disk is failing; run again on another (--tmp)"
    )]
    CorruptPage {
        /// The page file.
        path: PathBuf,
        /// Byte offset of the page.
        offset: u64,
    },
    /// A rank waits for messages that no rank sends.
    #[error(
        "{}: waited for messages that no rank sends: this is a bug, please report it; --dispatch none may help",
        path.display()
    )]
    NoBuffer {
        /// Where messages are.
        path: PathBuf,
    },
    /// An index beyond the last vertex.
    #[error("vertex index {index}: the graph has {vertices} vertices")]
    NoSuchIndex {
        /// The index.
        index: u64,
        /// Number of vertices.
        vertices: u64,
    },
    /// A loop that ends on every sound graph does not.
    #[error(
        "cannot finish {what}: values still change after {passes} passes over {vertices} vertices, so the graph is damaged or has a \
         negative cycle; check it (graphmill verify --deep)"
    )]
    Unsettled {
        /// The loop that was to end.
        what: &'static str,
        /// Passes done.
        passes: u64,
        /// Number of vertices.
        vertices: u64,
    },
    /// A vertex program sends messages and had not said so.
    #[error("a vertex program calls send, and its Pregel::SENDS is false: set it to true")]
    UndeclaredSends,
    /// The values and mailboxes of a push version do not fit in memory.
    #[error(
        "the push version keeps the values of all vertices and their mailboxes in memory, {bytes} bytes, and needs {besides} bytes more, but the budget is {budget} bytes: give more (--memory), or run the pull version"
    )]
    PushNeedsMemory {
        /// Bytes of values and mailboxes.
        bytes: u64,
        /// Bytes that have to stay free.
        besides: u64,
        /// The budget, in bytes.
        budget: u64,
    },
    /// A pass names an array of another engine.
    #[error("a pass names a vertex array that this engine did not make")]
    ForeignArray,
    /// A pass is over a set of vertices of another engine.
    #[error("a pass is over a set of vertices that this engine did not make")]
    ForeignSet,
    /// A pass names an array twice, once for writing.
    #[error("vertex array {name:?} is named twice in one pass, once for writing: name it once")]
    BusyArray {
        /// The array's name.
        name: String,
    },
    /// The run to resume is not the run of these checkpoints.
    #[error(
        "cannot resume: {what}; start over without --resume, or use another directory (--checkpoint-dir)"
    )]
    OtherRun {
        /// The property that changed.
        what: &'static str,
    },
    /// Checkpoints exist, but none has correct checksums on all ranks.
    #[error(
        "{}: no checkpoint there is what was written, on every rank{}: cannot resume; delete the directory (on all hosts) to start over",
        folder.display(),
        damaged_files(damaged)
    )]
    NoSoundVersion {
        /// The directory of all ranks.
        folder: PathBuf,
        /// The damaged files, and the ranks that have them.
        damaged: Vec<(usize, PathBuf)>,
    },
    /// A rank has no checkpoints, but others have.
    #[error(
        "{}: rank {rank} has no checkpoints there, but other ranks have: is the directory on the disk of another host? Delete it (on all hosts) to start over",
        folder.display()
    )]
    VersionsElsewhere {
        /// The directory of all ranks.
        folder: PathBuf,
        /// The rank without checkpoints.
        rank: usize,
    },
    /// A worker failed in a way of its own.
    #[error("{0}")]
    Worker(String),
    /// Cells have to be streamed and no stream was made for them: a mistake in the program.
    #[error(
        "a pass has no stream for a cell that is not in memory; this is a bug, please report it"
    )]
    NoReaders,
    /// A graph has weights that a program cannot take.
    #[error("{}: {what}", graph.display())]
    Weights {
        /// The stored graph.
        graph: PathBuf,
        /// Why it cannot, and what to do.
        what: &'static str,
    },
    /// A pass before this one failed, and its arrays and buffers are as that left them.
    #[error("an earlier pass of this engine failed: make a new one")]
    Broken,
    /// The user asked to stop.
    #[error("interrupted")]
    Stopped,
}

/// Files that are damaged, in brackets.
fn damaged_files(damaged: &[(usize, PathBuf)]) -> String {
    if damaged.is_empty() {
        return String::new();
    }
    let files = damaged
        .iter()
        .map(|(rank, path)| format!("{} of rank {rank}", path.display()));
    format!(" (damaged: {})", files.collect::<Vec<_>>().join(", "))
}
