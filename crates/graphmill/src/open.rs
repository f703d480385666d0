//! Opening a stored graph, or refusing to with the least budget that would do.
//!
//! What a run takes at least follows from a few counts of the graph: its directories, one batch for the engine, one block of rows
//! on their way out. A run that the budget has no room for is refused when the graph is opened, before any work; a graph whose
//! directories do not fit is refused by what its description says.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use graphmill_engine::{EngineError, ProgramFootprint, job};
use graphmill_fabric::Fabric;
use graphmill_graph::{Batches, FormatError, GraphDims, IdKind, StoredGraph, partition};
use graphmill_ingest::{FileSource, Format, Ids, IngestError, check_memory};
use graphmill_storage::{MemoryBudget, StorageError};

use crate::error::Error;
use crate::import_config::ImportConfig;
use crate::machine::resources::Machine;

/// Bytes that each run of the bucket executor takes; before it checks them, it reads files.
const IN_BUCKETS: u64 = 2 << 20;

/// What a stored graph is opened for.
#[derive(Clone, Copy)]
pub(crate) enum OpenFor<'p> {
    /// To look at it.
    Inspect,
    /// For a run: what its passes hold for each vertex, and whether it is of the bucket executor.
    ///
    /// That one checks its memory itself, from the directories of the open graph.
    Run(&'p dyn Fn(&GraphDims) -> ProgramFootprint, bool),
}

impl OpenFor<'_> {
    fn name(self) -> &'static str {
        match self {
            OpenFor::Inspect => "the stored graph",
            OpenFor::Run(..) => "a run",
        }
    }

    /// Returns the bytes of the budget that the work takes, without the open graph.
    fn bytes(self, graph: &GraphDims, machine: &Machine) -> u64 {
        match self {
            OpenFor::Inspect => 0,
            OpenFor::Run(_, true) => IN_BUCKETS,
            OpenFor::Run(sizes, false) => job::min_memory(graph, machine.tiers(), sizes(graph)),
        }
    }
}

impl Machine {
    /// Opens a stored graph.
    ///
    /// # Errors
    /// It is not one, or not as it was written; the budget has no room for its directories.
    pub fn graph(&self, path: &Path) -> Result<Arc<StoredGraph>, Error> {
        self.graph_for(path, OpenFor::Inspect)
    }

    /// Opens a stored graph where the budget has room for what comes next too.
    pub(crate) fn graph_for(
        &self,
        path: &Path,
        purpose: OpenFor<'_>,
    ) -> Result<Arc<StoredGraph>, Error> {
        let used = self.used();
        self.check_there(path)?;
        // Other ranks may have the column files that are missing here.
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
                let measure = GraphDims {
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

    /// Rejects a budget that is too small for any graph, before edges are imported.
    ///
    /// `is_final` returns a budget that suffices for this import.
    pub(crate) fn check_any(
        &self,
        purpose: OpenFor<'_>,
        enough: impl FnOnce() -> Result<u64, Error>,
    ) -> Result<(), Error> {
        let least = purpose.bytes(&GraphDims::nothing(), self);
        match self.used() + least <= self.budget().total() {
            true => Ok(()),
            false => self.check_total(purpose, enough()?),
        }
    }

    /// Returns a budget that suffices to import `files` and for the work after, from their sizes alone.
    ///
    /// For compressed files it is an estimate.
    pub(crate) fn enough_for(
        &self,
        purpose: OpenFor<'_>,
        files: &[PathBuf],
        import: &ImportConfig,
    ) -> Result<u64, Error> {
        let mut bytes = 0_u64;
        for file in files {
            let ending = file.extension().and_then(|ending| ending.to_str());
            let times = match ending.is_some_and(|ending| PACKED.contains(&ending)) {
                true => PACKED_TIMES,
                false => 1,
            };
            bytes = bytes.saturating_add(self.disk().stamp(file)?.bytes.saturating_mul(times));
        }
        let largest = largest(bytes, import, self.ranks())?;
        let opening = OPENING_BYTES + bytes / 1024;
        let (readers, weights) = (FileSource::reader_bytes_by_name(files), import.edge_kind());
        let options = import.options(Path::new(""), self.tmp_asked());
        let nothing = MemoryBudget::new(0);
        let imported = check_memory(&nothing, self.workers(), readers, weights, true, &options);
        let importing = match imported {
            Err(IngestError::TooLittleMemory { least, .. }) => least,
            _ => 0,
        };
        let run = purpose.bytes(&largest, self).saturating_add(opening);
        Ok(self.used().saturating_add(run.max(importing)))
    }

    fn used(&self) -> u64 {
        self.budget().total() - self.budget().available()
    }

    fn check_total(&self, purpose: OpenFor<'_>, least: u64) -> Result<(), Error> {
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

/// Endings of packed files, assumed to hold [`PACKED_TIMES`] as many bytes.
const PACKED: [&str; 5] = ["gz", "zst", "bz2", "xz", "parquet"];
const PACKED_TIMES: u64 = 16;
/// Bytes that an open graph takes however small it is, at most.
const OPENING_BYTES: u64 = 3 << 20;
/// Vertices of a batch, and batches, that an import makes at most of its own will.
const BATCH_VERTICES: u64 = 1 << 20;
const BATCH_EDGE_VERTICES: u64 = 1 << 16;
const BATCHES_MAX: u64 = 4096;

/// Returns the memory-relevant counts of the largest graph that files of `bytes` bytes can hold.
fn largest(bytes: u64, import: &ImportConfig, ranks: Option<usize>) -> Result<GraphDims, Error> {
    // Each id has a byte that separates it from the next, and few ids are short: of one byte there are 256 at most.
    let most = |short: u64, each: u64| short.saturating_add(bytes / each);
    let vertices = most(0, 2).min(most(256, 3)).min(most(66_000, 4));
    // An edge takes two ids, a blank and an end of line at least.
    let (vertices, width) = match import.edge_vertices {
        true => (most(vertices, 4), BATCH_EDGE_VERTICES),
        false => (vertices, BATCH_VERTICES),
    };
    let width = import.batch_size.unwrap_or(width).max(1);
    let width = width.max(vertices.div_ceil(BATCHES_MAX));
    let width = width.min(Batches::SPAN_MAX);
    let cuts = (0..vertices.div_ceil(width)).map(|batch| batch * width);
    let batches = Batches::new(cuts.chain([vertices]).collect())?;
    let (count, orientations) = (batches.len(), 1 + usize::from(import.reverse));
    let is_integer = import
        .id_type
        .is_some_and(|asked| asked.integer_max().is_some());
    let ids = match (import.ids, import.format) {
        _ if is_integer => IdKind::Integer,
        (Some(Ids::Integer), _) | (_, Format::RawU32 | Format::RawU64 | Format::Dimacs) => {
            IdKind::Integer
        }
        _ => IdKind::Text,
    };
    Ok(GraphDims {
        own: ranks.map(|ranks| 0..count.div_ceil(ranks)),
        ids,
        order: import.order,
        layout: import.layout,
        symmetric: !import.directed,
        edge: import.edge_kind(),
        orientations,
        cells: ((count * count * orientations) as u64).min(bytes / 2),
        strips: count,
        batches,
        ..GraphDims::nothing()
    })
}

/// Returns the batches of the rank that owns most vertices if all ranks have all columns.
///
/// Every rank checks it, so that all reject the same memory.
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
