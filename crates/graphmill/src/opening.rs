//! Opening a stored graph, or refusing to with the least budget that would do.
//!
//! What a run takes at least follows from a few counts of the graph: its directories, one batch for the engine, one block of rows
//! on their way out. A run that the budget has no room for is refused when the graph is opened, before any work; a graph whose
//! directories do not fit is refused by what its description says.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use graphmill_engine::{Engine, EngineError, Sizes};
use graphmill_fabric::Fabric;
use graphmill_graph::{FormatError, Measure, StoredGraph, partition};
use graphmill_storage::StorageError;

use crate::result;
use crate::{Error, Machine};

/// What a stored graph is opened for.
#[derive(Clone, Copy)]
pub(crate) enum Purpose<'p> {
    /// To look at it.
    Look,
    /// For a run.
    Run {
        /// What its passes hold for each vertex.
        sizes: &'p dyn Fn(&Measure) -> Sizes,
        /// Somebody wants the rows of its result.
        wants_rows: bool,
    },
}

impl Purpose<'_> {
    fn name(self) -> &'static str {
        match self {
            Purpose::Look => "the stored graph",
            Purpose::Run { .. } => "a run",
        }
    }

    /// Bytes of the budget that it takes besides the open graph.
    fn bytes(self, graph: &Measure, machine: &Machine) -> u64 {
        match self {
            Purpose::Look => 0,
            Purpose::Run { sizes, wants_rows } => {
                let workers = machine.workers().count();
                let run = Engine::least(graph, workers, machine.tiers(), sizes(graph));
                run + rows(graph, wants_rows)
            }
        }
    }
}

/// Bytes of the budget for the rows of a result on their way out.
pub(crate) fn rows(graph: &Measure, wants_rows: bool) -> u64 {
    if wants_rows {
        result::bytes_needed(graph)
    } else {
        0
    }
}

impl Machine {
    /// Opens a stored graph.
    ///
    /// # Errors
    /// It is not one, or not as it was written; the budget has no room for its directories.
    pub fn graph(&self, path: &Path) -> Result<Arc<StoredGraph>, Error> {
        self.graph_for(path, Purpose::Look)
    }

    /// Opens a stored graph where the budget has room for what comes next too.
    pub(crate) fn graph_for(
        &self,
        path: &Path,
        purpose: Purpose<'_>,
    ) -> Result<Arc<StoredGraph>, Error> {
        let used = self.used();
        self.check_there(path)?;
        // Other ranks may have what is not here.
        let opened = match self.fabric() {
            Some(_) => StoredGraph::open_in_part(self.disk(), self.budget(), path),
            None => StoredGraph::open(self.disk(), self.budget(), path),
        };
        let graph = match opened {
            Err(error) if is_refusal(&error) => {
                // Where even the description is too large, the refusal itself is all there is to say.
                let Ok(forecast) = StoredGraph::forecast(&**self.disk(), path) else {
                    return Err(error.into());
                };
                let share = |ranks| 0..forecast.measure.batches.len().div_ceil(ranks);
                let measure = Measure {
                    own: self.ranks().map(share),
                    ..forecast.measure.clone()
                };
                let more = purpose.bytes(&measure, self);
                self.check_total(purpose, used + forecast.opening_bytes + more)?;
                return Err(error.into());
            }
            graph => graph?,
        };
        let own = self.ranks().and_then(|ranks| largest_share(&graph, ranks));
        let more = purpose.bytes(&graph.measure_of(own), self);
        self.check_total(purpose, self.used() + more)?;
        Ok(Arc::new(graph))
    }

    /// How many ranks there are, where there are several.
    fn ranks(&self) -> Option<usize> {
        self.fabric().map(|fabric| fabric.ranks())
    }

    /// Refuses a budget that is too small for any graph, before edges are imported.
    pub(crate) fn check_any(&self, purpose: Purpose<'_>) -> Result<(), Error> {
        let least = purpose.bytes(&Measure::nothing(), self);
        self.check_total(purpose, self.used() + least)
    }

    fn used(&self) -> u64 {
        self.budget().total() - self.budget().available()
    }

    fn check_total(&self, purpose: Purpose<'_>, least: u64) -> Result<(), Error> {
        let budget = self.budget().total();
        if least <= budget {
            return Ok(());
        }
        Err(Error::Engine(EngineError::TooSmall {
            what: purpose.name(),
            least,
            budget,
        }))
    }
}

/// The batches of the rank that owns most vertices, where all ranks have all columns: all of them refuse the same memory.
fn largest_share(graph: &StoredGraph, ranks: usize) -> Option<Range<usize>> {
    let everywhere = vec![vec![true; graph.batches().len()]; ranks];
    let cuts = partition(graph, &everywhere, None)?;
    let vertices = |own: &Range<usize>| {
        let batches = graph.batches();
        batches.cut(own.end) - batches.cut(own.start)
    };
    let shares = cuts.windows(2).map(|cut| cut[0]..cut[1]);
    shares.max_by_key(vertices)
}

/// Whether the budget refused a lease.
fn is_refusal(error: &FormatError) -> bool {
    matches!(
        error,
        FormatError::Budget(_) | FormatError::Storage(StorageError::Budget(_))
    )
}
