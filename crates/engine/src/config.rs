//! The configuration of an engine, and the choices that it makes by cost unless configured.

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use graphmill_fabric::Fabric;
use graphmill_graph::Layout;
use graphmill_storage::{CancelToken, Clock, Disk, MemoryBudget, Tiers, WorkerPool};

use crate::metrics::run::PassMetrics;
use crate::metrics::tier_model::TierModel;
use crate::program::footprint::ProgramFootprint;
use crate::schedule::steal::StealBias;

/// How messages on disk get to where they are needed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum DispatchChoice {
    /// By cost, pass by pass; apart for messages of this rank and of others.
    #[default]
    Auto,
    /// Pushed as they are signalled or received.
    Push,
    /// Pulled by each column group before it folds.
    Pull,
    /// Not routed.
    None,
}

/// How the push version combines the messages of several workers to one vertex.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum Combiner {
    /// In accumulators of an edge pass where many vertices are computed, else as hybrid does.
    #[default]
    Auto,
    /// In shared mailboxes, by a lock and by compare-and-exchange, as soon as they are sent.
    Hybrid,
}

/// How often checkpoints are written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum CheckpointInterval {
    /// After this number of driver calls that do some work.
    Calls(u64),
    /// After the first call that ends this long after the last checkpoint.
    Time(Duration),
    /// After the first call that ends one second after the last checkpoint.
    ///
    /// With all rows in memory it is half a minute.
    Usual,
    /// As `Usual` with rows on disk; otherwise only when a run that has worked for a second is cancelled.
    Paged,
}

/// Where checkpoints are written, how often, and how many are retained.
#[derive(Clone, Debug)]
pub struct CheckpointPolicy {
    /// The directory of this rank, within the one of all ranks.
    ///
    /// It exists and holds nothing else (see [`is_checkpoint_dir`](crate::is_checkpoint_dir)). It is durable once it holds a checkpoint.
    pub folder: PathBuf,
    /// A file that exists before the first checkpoint, and its bytes.
    pub description: (&'static str, Vec<u8>),
    /// The identity of this run: its graph, algorithm and options.
    pub job: u64,
    /// How often.
    pub every: CheckpointInterval,
    /// How many are kept, at least one.
    pub keep: usize,
    /// True to resume from the newest checkpoint, if there is one.
    pub resume: bool,
}

/// Which kernel a pass uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum KernelChoice {
    /// By cost, pass by pass.
    #[default]
    Auto,
    /// From each source to its list.
    Scatter,
    /// From its list to each source, wherever the graph's symmetry allows it.
    Gather,
}

/// Whether a pass with few active vertices looks up their arcs in an index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum SparseChoice {
    /// By cost, pass by pass.
    #[default]
    Auto,
    /// Never: all cells of active batches are scanned.
    Never,
    /// Wherever the direction allows it.
    Always,
}

/// Where the edges of a graph are while passes go over them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EdgeResidency {
    /// As many as there is room for are in memory, and as lists where work is worth it.
    #[default]
    Auto,
    /// In memory, as lists from the start where there is room.
    Memory,
    /// On disk: they stream by in each pass.
    Disk,
}

/// Which executor runs passes over edges.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum ExecutorChoice {
    /// That of the layout of a stored graph; of edges, the column executor.
    #[default]
    Auto,
    /// Over sorted columns.
    Column,
    /// Over unsorted chunks, as Chaos does it.
    Stream,
    /// Over rows in memory, with messages in datagrams, as BlitzG does it.
    Bucket,
}

/// How buckets of messages travel between ranks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum LinkChoice {
    /// In memory between ranks of one process, else by UDP.
    #[default]
    Auto,
    /// In memory between ranks of one process.
    Local,
    /// By UDP.
    Udp,
    /// By DPDK, between ranks that are processes.
    Dpdk,
}

/// Whether a rank folds the messages of a column into accumulators of its own, and sends these.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum CombineChoice {
    /// Where a vertex of the column gets two messages or more on average.
    #[default]
    Auto,
    /// A message for each edge, as BlitzG sends them.
    Never,
    /// In every column.
    Always,
}

/// The choices of the bucket executor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BucketOptions {
    /// How buckets travel.
    pub link: LinkChoice,
    /// Numbers of threads that fill buckets, send them and accumulate; all threads do all three if `None`.
    pub threads: Option<[usize; 3]>,
    /// Buckets have a checksum in place of a seal.
    pub plain: bool,
    /// Whether messages are combined before they are sent.
    pub combine: CombineChoice,
    /// Bytes of datagrams that a rank sends in a second at most.
    pub rate: Option<u64>,
    /// Address for datagrams: of this host, or of any in their network; loopback if `None`.
    pub address: Option<IpAddr>,
    /// Device of DPDK; shared memory between processes of one host if `None`.
    pub device: Option<&'static str>,
}

impl BucketOptions {
    /// Returns the device of DPDK.
    pub(crate) fn dpdk_device(&self) -> &'static str {
        self.device.unwrap_or("memif")
    }
}

impl ExecutorChoice {
    /// Returns the layout that it needs; `None` if any will do.
    #[must_use]
    pub fn layout(self) -> Option<Layout> {
        match self {
            ExecutorChoice::Auto => None,
            ExecutorChoice::Column | ExecutorChoice::Bucket => Some(Layout::Column),
            ExecutorChoice::Stream => Some(Layout::Stream),
        }
    }
}

/// Where the accumulators of batches are while a pass over unsorted chunks scatters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum UpdateResidency {
    /// In memory for as many batches as fit; updates for the others are written.
    #[default]
    Auto,
    /// In memory for all batches, or the pass fails.
    Memory,
    /// Nowhere: all updates are written, as Chaos writes them.
    Disk,
}

/// Choices that the engine makes by cost unless configured; no result depends on them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct EngineOptions {
    /// Which kernel passes use.
    pub kernel: KernelChoice,
    /// Whether sparse passes look up edges in the index.
    pub sparse: SparseChoice,
    /// Cost of one index lookup on disk, in elements scanned (DFOGraph, section 4.1: 1024).
    ///
    /// A lookup in memory costs a 32nd of it.
    pub gamma: u64,
    /// Messages to a rank are not filtered if its source list is this many times as long as the messages.
    ///
    /// DFOGraph, section 4.3, uses 2. `None` skips the filter only if nearly all sources have edges there.
    pub filter_ratio: Option<f64>,
    /// Weight of a vertex against an edge in the partition among ranks.
    ///
    /// The default is 2P - 1 (DFOGraph, section 2.2).
    pub alpha: Option<u64>,
    /// How messages on disk get to the columns that need them.
    pub dispatch: DispatchChoice,
    /// Where edges are; `Auto` follows the placement of edges on tiers.
    pub edges: EdgeResidency,
    /// How the push version of vertex programs combines messages.
    pub combiner: Combiner,
    /// True if a session keeps memory for a result that is edges, whose rows take more than values.
    pub edge_result: bool,
    /// Bytes of a worker's window of labels in a count program.
    ///
    /// By free memory if `None`.
    pub window_bytes: Option<u64>,
    /// Where the stream executor has accumulators.
    pub updates: UpdateResidency,
    /// Requests for chunks that a rank has on their way; by measured times if `None` (Chaos, section 6.5).
    pub window: Option<usize>,
    /// When the owner of a batch accepts the help of other ranks (Chaos, sections 5.4 and 10.4).
    pub steal: StealBias,
    /// The choices of the bucket executor; `None` for the others.
    pub buckets: Option<BucketOptions>,
}

impl Default for EngineOptions {
    /// By cost, with the gamma of the paper.
    fn default() -> EngineOptions {
        EngineOptions {
            kernel: KernelChoice::default(),
            sparse: SparseChoice::default(),
            gamma: 1024,
            filter_ratio: None,
            alpha: None,
            dispatch: DispatchChoice::default(),
            edges: EdgeResidency::default(),
            combiner: Combiner::default(),
            edge_result: false,
            window_bytes: None,
            updates: UpdateResidency::default(),
            window: None,
            steal: StealBias::default(),
            buckets: None,
        }
    }
}

/// A callback after each pass: the number of edge and send passes, and what the pass did.
pub type PassCallback = Arc<dyn Fn(u64, &PassMetrics) + Send + Sync>;

/// The configuration of an engine.
#[derive(Clone)]
pub struct EngineConfig {
    /// Everything large is leased from it.
    pub budget: MemoryBudget,
    /// Where memory of each kind comes from.
    pub tiers: Tiers,
    /// Where the stored graph and the page file are.
    pub disk: Arc<dyn Disk>,
    /// The workers.
    pub workers: Arc<WorkerPool>,
    /// Where time comes from.
    pub clock: Arc<dyn Clock>,
    /// Asked between steps.
    pub stop: CancelToken,
    /// The directory of the row file, which must exist; each rank has its own.
    pub scratch: PathBuf,
    /// The fabric to the other ranks; `None` if there are none.
    ///
    /// All ranks make an engine over the same graph and make the same calls.
    pub fabric: Option<Arc<dyn Fabric>>,
    /// What the engine otherwise chooses by cost.
    pub options: EngineOptions,
    /// The footprint of the programs that will run, to report the memory that they need.
    pub sizes: ProgramFootprint,
    /// Time that is spent for bytes on the slow tier, where there is none such.
    pub charge: Option<TierModel>,
    /// Called after each pass; a resumed run continues the count of passes.
    pub on_pass: Option<PassCallback>,
    /// Where checkpoints of the run are written.
    pub checkpoints: Option<CheckpointPolicy>,
}

impl std::fmt::Debug for EngineConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EngineConfig")
            .field("budget", &self.budget)
            .field("scratch", &self.scratch)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}
