//! The errors of a run.

use std::net::IpAddr;
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
        "cannot run on rank {rank}: it opened another graph than rank 0; give all ranks the same, on a shared file system or as copies"
    )]
    OtherGraph {
        /// The rank.
        rank: usize,
    },
    /// A graph is spread over hosts in another order than ranks are.
    #[error(
        "cannot run on {}: its columns are spread over hosts, and {ranks} ranks do not find all of them in the order of ranks; run it on the hosts that imported it, in that order",
        path.display()
    )]
    Spread {
        /// The graph.
        path: PathBuf,
        /// Number of ranks.
        ranks: usize,
    },
    /// The algorithm works only in the memory of one rank.
    #[error(
        "cannot run {what} on several ranks: it works in the memory of one rank; use one rank, or another method"
    )]
    OneRank {
        /// The algorithm.
        what: &'static str,
    },
    /// A lane of the bucket executor has more vertices than its messages can name.
    #[error(
        "cannot cut the graph into lanes of at most {} vertices; use more ranks or --threads",
        u32::MAX
    )]
    TooFewLanes,
    /// The degrees of a stored graph and its edges contradict each other.
    #[error(
        "{path} is damaged: the degrees of batch {batch} do not match its edges; import it again"
    )]
    Degrees {
        /// The stored graph.
        path: PathBuf,
        /// The batch.
        batch: usize,
    },
    /// The system has no randomness for the key of a job.
    #[error(
        "cannot draw a key for datagrams: the system gives no random bytes; --plain-datagrams does without"
    )]
    NoKey,
    /// Ranks that are processes have no memory in common.
    #[error(
        "cannot use --link local between processes: it needs ranks of one process; use --link udp"
    )]
    NoLocalLink,
    /// Every role needs a thread, and a bucket names threads by a byte.
    #[error("cannot give a role no thread, or more than 255; see --bucket-threads")]
    Roles,
    /// Datagrams for an address of no host arrive nowhere.
    #[error(
        "cannot receive datagrams at {address}; give an address of this host, or the network of the ranks"
    )]
    NoAddress {
        /// The address.
        address: IpAddr,
    },
    /// A message takes more buckets than a worker has.
    #[error("cannot send a message of {bytes} bytes in buckets; use the column executor")]
    LongMessage {
        /// Bytes of the message.
        bytes: usize,
    },
    /// Ranks that are threads have one DPDK.
    #[error("cannot use --link dpdk between ranks of one process: start them with mpirun")]
    OneDpdk,
    /// The bucket executor cannot run the algorithm.
    #[error("cannot run {what} with --executor bucket; leave the option out")]
    NotInBuckets {
        /// The algorithm.
        what: &'static str,
    },
    /// The link of the bucket executor is broken.
    #[error("cannot send or receive datagrams: {source}")]
    Link {
        /// The cause.
        source: std::io::Error,
    },
    /// A pass of the bucket executor against the arcs needs the transposed graph.
    #[error(
        "cannot send messages against the arcs of {}: --executor bucket needs the transposed graph; import it with --reverse",
        path.display()
    )]
    NeedsReverse {
        /// The graph.
        path: PathBuf,
    },
    /// The run does not fit in the budget.
    #[error(
        "cannot fit {what} in the budget: it needs at least {least} bytes of memory and the budget is {budget}; give --memory {}M or more",
        least.div_ceil(1 << 20)
    )]
    TooSmall {
        /// The pass or step.
        what: &'static str,
        /// The least budget that is enough, in bytes.
        least: u64,
        /// The budget, in bytes.
        budget: u64,
    },
    /// A page of a vertex array did not read back as it was written.
    #[error(
        "cannot read {path}: the page at byte {offset} is not what was written there, so the disk is failing; run again on another (--tmp)"
    )]
    CorruptPage {
        /// The page file.
        path: PathBuf,
        /// Byte offset of the page.
        offset: u64,
    },
    /// A rank waits for messages that no rank sends.
    #[error(
        "cannot wait for messages in {}: no rank sends them; this is a bug, please report it; --dispatch none may help",
        path.display()
    )]
    NoBuffer {
        /// The file of messages.
        path: PathBuf,
    },
    /// An index beyond the last vertex.
    #[error("cannot use vertex index {index}: the graph has {vertices} vertices")]
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
    /// A vertex program sends messages without declaring it.
    #[error(
        "cannot send messages of a vertex program: its VertexProgram::SENDS is false; set it to true"
    )]
    UndeclaredSends,
    /// A vertex program combines a message with its `IDENTITY` to something else.
    #[error(
        "cannot combine messages of {program}: at vertex {vertex}, IDENTITY {identity} and message {message} combine to {combined}; set IDENTITY to a value that leaves each message as it is (-0.0 for a sum of floats, the greatest number for a minimum)"
    )]
    NotIdentity {
        /// The type of the program.
        program: &'static str,
        /// The index of the sender.
        vertex: u64,
        /// The program's `IDENTITY`.
        identity: String,
        /// The message.
        message: String,
        /// The combination of both.
        combined: String,
    },
    /// A vertex program broadcasts its `IDENTITY`, which counts as no message.
    #[error(
        "cannot broadcast a message of {program}: at vertex {vertex} it is IDENTITY {identity}, which means that there is no message, but an edge makes {on_edge} of it; choose an IDENTITY that no vertex broadcasts"
    )]
    BroadcastIdentity {
        /// The type of the program.
        program: &'static str,
        /// The index of the sender.
        vertex: u64,
        /// The program's `IDENTITY`.
        identity: String,
        /// What an edge of weight 1 makes of it.
        on_edge: String,
    },
    /// A function of a program panicked.
    #[error("the program panicked {}: {message}", panic_site(vertices, ids))]
    ProgramPanicked {
        /// The index of the vertex that it was called for, or of the sender and the receiver of a message.
        vertices: Vec<u64>,
        /// Their ids, if the graph's ids can be read.
        ids: Vec<String>,
        /// The text of the panic.
        message: String,
    },
    /// Ranks make different calls.
    #[error(
        "cannot make call {number} of this session: rank {rank} calls {theirs}, and this rank {ours}; every rank must make the same calls in the same order"
    )]
    CallsDiffer {
        /// The number of the call, from 0.
        number: u64,
        /// The first rank that makes another call.
        rank: usize,
        /// The call of that rank.
        theirs: String,
        /// The call of this rank.
        ours: String,
    },
    /// A vertex program reads neighbours without declaring it.
    #[error(
        "cannot read neighbours in a vertex program: its VertexProgram::NEIGHBOURS is false; set it to true"
    )]
    UndeclaredNeighbours,
    /// A vertex program reads neighbours, and the adjacency lists are not in memory.
    #[error(
        "cannot read neighbours in a vertex program: its edges are read from adjacency lists in the memory of one rank, which take {bytes} bytes; the budget is {budget} bytes, and the number of ranks {ranks}; use one rank, give more memory (--memory), and do not place edges on disk"
    )]
    NeighboursNeedLists {
        /// Bytes of the lists, and of loading them.
        bytes: u64,
        /// The budget, in bytes.
        budget: u64,
        /// Number of ranks.
        ranks: usize,
    },
    /// Work that looks up the edges of single vertices, and a graph that has no index of them.
    #[error(
        "cannot run {what} on {path}: its edges are in unsorted chunks; import it without --layout stream, or run without --executor stream"
    )]
    NeedsColumns {
        /// The work.
        what: &'static str,
        /// The graph.
        path: PathBuf,
    },
    /// The uncombined mailboxes of one batch do not fit in memory.
    #[error(
        "cannot keep the messages of a vertex program apart: the mailboxes of one batch take {bytes} bytes, and passes {besides} bytes more, but the budget is {budget} bytes; give more (--memory), import with smaller batches (--batch-size), or combine messages"
    )]
    MailNeedsMemory {
        /// Bytes of the mailboxes.
        bytes: u64,
        /// Bytes that must stay free.
        besides: u64,
        /// The budget, in bytes.
        budget: u64,
    },
    /// The values and mailboxes of a push version do not fit in memory.
    #[error(
        "cannot run the push version: it keeps the values of all vertices and their mailboxes in memory, {bytes} bytes, and needs {besides} bytes more, but the budget is {budget} bytes; give more (--memory), or run the pull version"
    )]
    PushNeedsMemory {
        /// Bytes of values and mailboxes.
        bytes: u64,
        /// Bytes that must stay free.
        besides: u64,
        /// The budget, in bytes.
        budget: u64,
    },
    /// A pass names an array of another engine.
    #[error("cannot run a pass: it names a vertex array that this engine did not make")]
    ForeignArray,
    /// A pass is over a set of vertices of another engine.
    #[error("cannot run a pass: it is over a set of vertices that this engine did not make")]
    ForeignSet,
    /// A pass names an array twice, once for writing.
    #[error(
        "cannot run a pass: it names vertex array {name:?} twice, once for writing; name it once"
    )]
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
        "cannot resume from {}: no checkpoint there is undamaged on all ranks{}; delete the directory (on all hosts) to start over",
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
        "cannot resume from {}: rank {rank} has no checkpoints there, but other ranks have (they may be on the disk of another host); delete it (on all hosts) to start over",
        folder.display()
    )]
    VersionsElsewhere {
        /// The directory of all ranks.
        folder: PathBuf,
        /// The rank without checkpoints.
        rank: usize,
    },
    /// A worker failed with another error.
    #[error("{0}")]
    Worker(String),
    /// Cells must be streamed and have no stream: a mistake in the program.
    #[error(
        "cannot read a cell: it is not in memory, and the pass has no stream for it; this is a bug, please report it"
    )]
    NoReaders,
    /// A run with checkpoints reads rows, or members of a set, before its last call.
    #[error(
        "cannot read rows or members of a set: the run writes checkpoints, and what a program reads is not in them; read after the last pass (`Session::end_passes`), or decide by what passes return"
    )]
    ReadBeforeEnd,
    /// A run with checkpoints makes a call after it read rows.
    #[error(
        "cannot run a pass: the run writes checkpoints, and it has ended its passes to read rows; make all passes first"
    )]
    CallAfterEnd,
    /// A function of a pass reads the members of a set.
    #[error(
        "cannot read members of a set in a function of a pass; read them before the pass, or give the set to the pass"
    )]
    SetReadInPass,
    /// A program cannot use the weights of a graph.
    #[error("cannot use the weights of {}: {what}", graph.display())]
    Weights {
        /// The stored graph.
        graph: PathBuf,
        /// The cause and a hint.
        what: &'static str,
    },
    /// The edges of a graph carry other data than a program reads.
    #[error(
        "cannot run {program} on {}: it reads {reads} of each edge, but the edges carry {carried}; import the graph with {option}",
        graph.display()
    )]
    EdgeData {
        /// The type of the program.
        program: &'static str,
        /// The stored graph.
        graph: PathBuf,
        /// What the program reads.
        reads: String,
        /// What the edges carry.
        carried: String,
        /// The option of an import that fits.
        option: String,
    },
    /// An earlier pass failed, and left its arrays and buffers in an unknown state.
    #[error("cannot run a pass: an earlier pass of this engine failed; make a new engine")]
    Broken,
    /// The user asked to stop.
    #[error("interrupted")]
    Stopped,
}

/// Fails unless a condition holds.
pub(crate) fn ensure<E: Into<EngineError>>(
    holds: bool,
    error: impl FnOnce() -> E,
) -> Result<(), EngineError> {
    if holds { Ok(()) } else { Err(error().into()) }
}

/// Returns the value in a place; makes it first if there is none.
pub(crate) fn made<T, E: Into<EngineError>>(
    place: &mut Option<T>,
    make: impl FnOnce() -> Result<T, E>,
) -> Result<&mut T, EngineError> {
    Ok(match place {
        Some(made) => made,
        none => none.insert(make().map_err(Into::into)?),
    })
}

/// The vertex or edge that a program was called for.
fn panic_site(vertices: &[u64], ids: &[String]) -> String {
    let name = |(i, v): (usize, &u64)| match ids.get(i) {
        Some(id) => format!("vertex {v} (id {id})"),
        None => format!("vertex {v}"),
    };
    let names: Vec<_> = vertices.iter().enumerate().map(name).collect();
    match &names[..] {
        [] => "on the edges of a level".into(),
        [from, to] => format!("on the edge from {from} to {to}"),
        names => format!("at {}", names.concat()),
    }
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
