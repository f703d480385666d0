//! What an engine runs on, and the choices that it makes by cost unless told.

use std::path::PathBuf;
use std::sync::Arc;

use graphmill_fabric::Fabric;
use graphmill_storage::{Budget, Clock, Disk, Stop, Tiers, Workers};

use crate::dispatch::DispatchChoice;
use crate::metrics::Superstep;
use crate::pregel::Combiner;
use crate::recovery::Checkpoints;
use crate::room::Sizes;
use crate::traffic::Charge;

/// Which kernel a pass uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KernelChoice {
    /// By cost, pass by pass.
    #[default]
    Auto,
    /// From each source to its list.
    Scatter,
    /// From its list to each source, wherever the graph's symmetry allows it.
    Gather,
}

/// Whether a pass with few active vertices goes to their places only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SeekChoice {
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
pub enum EdgesAt {
    /// As many as there is room for are in memory, and as lists where work is worth it.
    #[default]
    Auto,
    /// In memory, as lists from the start where there is room.
    Memory,
    /// On disk: they stream by in each pass.
    Disk,
}

/// Who is told after each pass: how many there were over edges or of messages, and what it did.
pub type OnPass = Arc<dyn Fn(u64, &Superstep) + Send + Sync>;

/// What an engine runs on.
#[derive(Clone)]
pub struct Settings {
    /// Everything large is leased from it.
    pub budget: Budget,
    /// Where memory of each kind comes from.
    pub tiers: Tiers,
    /// Where the stored graph and the page file are.
    pub disk: Arc<dyn Disk>,
    /// Who does the work.
    pub workers: Arc<Workers>,
    /// Where time comes from.
    pub clock: Arc<dyn Clock>,
    /// Asked between steps.
    pub stop: Stop,
    /// Where the page file goes; the folder must exist, and each rank has its own.
    pub scratch: PathBuf,
    /// The way to the other ranks, where there are any: all make an engine over the same graph and call the same of it.
    pub fabric: Option<Arc<dyn Fabric>>,
    /// What a vertex weighs against an edge where batches are shared out among ranks; without it 2P - 1 (DFOGraph, section 2.2).
    pub alpha: Option<u64>,
    /// Which kernel passes use.
    pub kernel: KernelChoice,
    /// Whether sparse passes seek.
    pub seek: SeekChoice,
    /// The cost of one seek on disk in elements scanned (DFOGraph, section 4.1, where it is 1024); in memory it is a 32nd.
    pub gamma: u64,
    /// Messages to another rank are not filtered where the list of sources that have edges there is as long as so many times the messages
    /// (DFOGraph, section 4.3, where it is 2); without it, where next to all sources have.
    pub filter_ratio: Option<f64>,
    /// How messages on disk get to the columns that need them.
    pub dispatch: DispatchChoice,
    /// Where edges are.
    pub edges: EdgesAt,
    /// How the push version of vertex programs combines messages.
    pub combiner: Combiner,
    /// Of the programs that will run, to tell what memory would be enough.
    pub sizes: Sizes,
    /// Time that is spent for bytes on the slow tier, where there is none such.
    pub charge: Option<Charge>,
    /// Told after each pass; passes are counted on in a run that goes on with a version.
    pub on_pass: Option<OnPass>,
    /// Where versions of the run are published.
    pub checkpoints: Option<Checkpoints>,
}

impl std::fmt::Debug for Settings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Settings")
            .field("budget", &self.budget)
            .field("scratch", &self.scratch)
            .field("kernel", &self.kernel)
            .field("seek", &self.seek)
            .field("gamma", &self.gamma)
            .finish_non_exhaustive()
    }
}
