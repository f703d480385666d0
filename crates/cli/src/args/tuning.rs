//! Choices that change the time a run takes, and not its result.

use std::net::IpAddr;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use graphmill::ExecutorChoice;
use graphmill::advanced::{
    CombineChoice, Combiner, DispatchChoice, KernelChoice, LinkChoice, Placement, PlacementError,
    SparseChoice, StealBias, TierModel, UpdateResidency,
};

use crate::{count, size};

/// Choices that the engine otherwise makes by cost.
#[derive(Debug, Clone, Args)]
#[command(
    next_help_heading = "Experiments (the result does not depend on them, but for the rounding of pregel-push)"
)]
pub(crate) struct ExperimentArgs {
    /// Direction of a dense pass: from sources (scatter) or from destinations (gather)
    ///
    /// A gather pass needs a graph that allows it.
    #[arg(long, value_name = "auto|scatter|gather", value_enum, default_value_t)]
    pub(crate) direction: KernelChoice,
    /// Look up the edges of active vertices in an index (sparse passes)
    #[arg(long, value_name = "auto|never|always", value_enum, default_value_t)]
    pub(crate) sparse: SparseChoice,
    /// Cost of one index lookup on disk, in vertices scanned [default: 1024]
    ///
    /// In memory, and where reads are counted separately, a lookup costs a 32nd of that.
    #[arg(long, value_name = "N")]
    pub(crate) gamma: Option<u64>,
    /// Length of a filter list for each message, from which a rank gets all messages
    ///
    /// With several ranks, a rank gets the messages that it needs, by a list of sources. If that list is at least R times as long as the
    /// messages, it gets all of them. 0: always, inf: never. By default a rank gets all messages if it needs nearly all.
    #[arg(long, value_name = "R", value_parser = ratio)]
    pub(crate) filter_ratio: Option<f64>,
    /// Choose how messages on disk reach the columns that need them
    ///
    /// push: write a sorted run for each column group that needs some of them. pull: let each column group store what it needs before it
    /// folds. none: let each column group read all. auto: by cost.
    #[arg(long, value_name = "auto|push|pull|none", value_enum, default_value_t)]
    pub(crate) dispatch: DispatchChoice,
    /// Cost of a vertex, in edges, in the division of batches among ranks
    ///
    /// The default is twice the number of ranks, less 1.
    #[arg(long, value_name = "N")]
    pub(crate) alpha: Option<u64>,
    /// Choose how threads combine messages to one vertex (--method pregel-push)
    ///
    /// auto: in an edge pass if many vertices send, else as hybrid. hybrid: in shared mailboxes, by lock and compare-and-exchange.
    #[arg(long, value_name = "auto|hybrid", value_enum, default_value_t)]
    pub(crate) combiner: Combiner,
    /// Executor of passes over edges: sorted columns, unsorted chunks, or messages in datagrams (bucket)
    ///
    /// bucket sends a message for each edge, and folds it on arrival; edges are in memory. Chunks save the sorting of an input that is used once or twice. auto: by the layout of a stored graph. For a file of edges: stream if the algorithm makes few passes and adds no floating-point numbers
    /// (wcc, conductance), and memory is at least 256 MiB and an eighth of the file; otherwise column.
    #[arg(
        long,
        value_name = "auto|column|stream|bucket",
        value_enum,
        default_value_t
    )]
    pub(crate) executor: ExecutorChoice,
    /// Where updates go (--executor stream): into memory, or to disk as chunks
    ///
    /// auto: into memory for as many batches as fit.
    #[arg(long, value_name = "auto|memory|disk", value_enum, default_value_t)]
    pub(crate) updates: UpdateResidency,
    /// Requests for chunks that a rank has on their way (--executor stream) [default: by measured times]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) window: Option<u16>,
    /// When ranks without work help others (--executor stream): 0 never, inf always
    ///
    /// An owner accepts help if its cost is less than A times what the batch still takes without it, less what it takes with it.
    #[arg(long, value_name = "A", default_value_t)]
    pub(crate) steal: StealBias,
    /// How datagrams travel (--executor bucket): in memory between ranks of one process, by UDP, or by DPDK
    ///
    /// auto: in memory if all ranks are in one process, else udp. dpdk needs the plugin (graphmill dpdk build).
    #[arg(long, value_name = "auto|local|udp|dpdk", value_enum, default_value_t)]
    pub(crate) link: LinkChoice,
    /// Device for datagrams (--link dpdk) [default: memif]
    ///
    /// memif: shared memory between processes of one host. Or a device as DPDK names it, such as net_af_packet0,iface=eth1.
    #[arg(long, value_name = "DEVICE")]
    pub(crate) dpdk_device: Option<String>,
    /// Threads of a rank that fill buckets, that send them, and that accumulate (--executor bucket)
    ///
    /// By default every thread does all three in turn. The numbers add up to --threads divided by --ranks.
    #[arg(long, value_name = "WORK,SEND,ACCUMULATE", value_parser = bucket_threads)]
    pub(crate) bucket_threads: Option<[usize; 3]>,
    /// Send datagrams with a checksum in place of encryption (--executor bucket)
    #[arg(long)]
    pub(crate) plain_datagrams: bool,
    /// Address for datagrams: of this host, or of any in their network (--link udp) [default: 127.0.0.1]
    #[arg(long, value_name = "IP")]
    pub(crate) datagram_address: Option<IpAddr>,
    /// Bytes a second that a rank sends at most (--executor bucket), such as 1G, or bits, such as 10gbit
    #[arg(long, value_name = "RATE", value_parser = count::rate)]
    pub(crate) link_rate: Option<f64>,
    /// Fold the messages of a batch into one for each destination, then send them (--executor bucket)
    ///
    /// auto: where a vertex gets two messages or more on average.
    #[arg(long, value_name = "auto|never|always", value_enum, default_value_t)]
    pub(crate) combine: CombineChoice,
    /// Run the algorithm N times on the loaded graph, to measure it
    #[arg(
        long,
        value_name = "N",
        default_value = "1",
        hide_default_value = true,
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    pub(crate) trials: u32,
}

/// Three numbers of threads, each at least 1.
fn bucket_threads(text: &str) -> Result<[usize; 3], String> {
    let numbers: Result<Vec<usize>, _> = text.split(',').map(str::parse).collect();
    let numbers = numbers
        .ok()
        .and_then(|numbers| <[usize; 3]>::try_from(numbers).ok());
    let is_sound = |numbers: &[usize; 3]| numbers.iter().all(|n| (1..=255).contains(n));
    numbers
        .filter(is_sound)
        .ok_or_else(|| "must be three numbers from 1 to 255, as in 2,1,1".into())
}

/// A number from 0 to infinity.
fn ratio(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(ratio) if ratio >= 0.0 => Ok(ratio),
        _ => Err("must be a number from 0 to inf".to_string()),
    }
}

/// A model of the slow tier; `None` if there is none.
type AnyCharge = Option<TierModel>;

/// Returns the parser of a model of the slow tier.
fn charge() -> impl TypedValueParser<Value = AnyCharge> {
    PossibleValuesParser::new(["none", "paper"])
        .map(|name| (name == "paper").then_some(TierModel::PAPER))
}

/// Options that place data on tiers of memory.
#[derive(Debug, Clone, Args)]
#[command(
    next_help_heading = "Tiers of memory (the result does not depend on them, but for the rounding of pregel-push)"
)]
pub(crate) struct PlaceArgs {
    /// Place a kind of data on a tier; can be repeated [default: dram, edges=auto]
    ///
    /// The kinds are vertices, messages, index and edges. The tiers are dram, numa:NODES[:bind|preferred|interleave],
    /// file:PATH[,PATH...], model and slow. PATH is an existing directory, a new file, or a DAX device; of several, one is for each socket. Edges can also be auto, or stream (from disk in each pass).
    ///
    /// A preset places all kinds and comes first: dram, slow, rw-split (index and edges on the slow tier) or cache (nothing placed).
    #[arg(long, value_name = "KIND=WHERE|PRESET")]
    pub(crate) place: Vec<String>,
    /// The slow tier: numa:NODES, file:PATH or model
    ///
    /// PATH is an existing directory or a new file. Without --place the option means --place rw-split.
    #[arg(long, value_name = "WHERE")]
    pub(crate) slow_tier: Option<String>,
}

impl PlaceArgs {
    /// Returns the requested placement.
    pub(crate) fn placement(&self) -> Result<Placement, PlacementError> {
        Placement::parse(&self.place, self.slow_tier.as_deref())
    }
}

/// Options that place data, and that simulate a slow tier.
#[derive(Debug, Clone, Args)]
#[command(
    next_help_heading = "Tiers of memory (the result does not depend on them, but for the rounding of pregel-push)"
)]
pub(crate) struct TierArgs {
    #[command(flatten)]
    pub(crate) place: PlaceArgs,
    /// Spend the extra time of bytes on the slow tier
    ///
    /// paper: 2.4 times the time of DRAM to read, 6 times to write.
    #[arg(long, value_name = "none|paper", default_value = "none", value_parser = charge())]
    pub(crate) simulate_slow_tier: AnyCharge,
    /// DRAM bandwidth of a thread, for --simulate-slow-tier paper [default: 5866 million a second]
    #[arg(long, value_name = "SIZE", value_parser = size::bandwidth)]
    pub(crate) dram_bandwidth: Option<u64>,
}
