//! The resources of an import, and its options.
//!
//! Memory, threads and `work_bytes_max` decide how often something is read; the other options alone decide the stored graph.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use graphmill_fabric::Fabric;
use graphmill_graph::{
    Batches, Layout, Order, STREAM_CHUNK_BYTES, STREAM_CHUNK_BYTES_MAX, STREAM_CHUNK_BYTES_MIN,
};
use graphmill_storage::{CancelToken, Clock, Disk, MemoryBudget, WorkerPool};

use crate::error::IngestError;
use crate::progress::ImportProgress;

/// The resources of an import.
#[derive(Clone, Copy, Debug)]
pub struct ImportResources<'a> {
    /// The disk of input, temporary files and graph.
    pub disk: &'a Arc<dyn Disk>,
    /// The threads.
    pub workers: &'a WorkerPool,
    /// The memory: everything large is leased from it.
    pub budget: &'a MemoryBudget,
    /// The time that steps take.
    pub clock: &'a dyn Clock,
    /// Looked at every few milliseconds; an import that is stopped leaves nothing behind.
    pub stop: &'a CancelToken,
    /// Told how far a step is.
    pub progress: &'a dyn ImportProgress,
    /// The ranks that import together: all do the same, with the same options, and see the same input.
    pub fabric: Option<&'a dyn Fabric>,
}

/// Vertices of a batch in the stream layout, at most.
const STREAM_BATCH_MAX: u64 = 1 << 20;
/// Vertices of a batch in the stream layout by default, at least: its accumulators fit the cache.
const STREAM_BATCH_MIN: u64 = 1 << 17;
/// Batches in the stream layout by default, while they are not larger than they can be.
const STREAM_BATCHES_MAX: u64 = 1 << 12;

/// The options of an import.
#[derive(Clone, Debug)]
pub struct ImportOptions {
    /// The directory of the graph; nothing has that name yet.
    pub output: PathBuf,
    /// A directory for temporary files; beside the output by default.
    pub temporary: Option<PathBuf>,
    /// True if an edge is one arc; otherwise it is two.
    pub directed: bool,
    /// The policy for edges that join the same vertices.
    pub duplicates: Duplicates,
    /// The policy for edges from a vertex to itself.
    pub self_loops: SelfLoops,
    /// True if the transposed graph is stored too. An undirected graph is its own transpose.
    pub reverse: bool,
    /// The order in which vertices get their indices.
    pub order: Order,
    /// How arcs are stored.
    pub layout: Layout,
    /// Bytes of a chunk at most in the stream layout; by default 4 MiB, or fewer if memory is short.
    pub chunk_size: Option<u64>,
    /// True if each edge becomes a vertex without an id, between two arcs with the edge's data.
    ///
    /// An edge from `u` to `v` has an arc from `u` to its vertex and one from there to `v`. The vertex of a self-loop has no arcs.
    pub edge_vertices: bool,
    /// Vertices of a batch; by default vertices and edges decide where batches end.
    ///
    /// Exactly this many, or at most this many in order of degree; at most [`SPAN_MAX`](graphmill_graph::Batches::SPAN_MAX).
    pub batch_size: Option<u64>,
    /// A cell whose source span over edges is at most this gets a bitmap of its sources; 0 gives none.
    ///
    /// DFOGraph, section 4.1, uses 32. A walk from the nearest sample takes as long as a look-up in a bitmap.
    pub csr_ratio: u32,
    /// The least time between two checkpoints; `None`: no checkpoint is written or resumed.
    ///
    /// The import writes a checkpoint after a step, in directories beside the output and among the temporary files. If it is
    /// interrupted, the next import of the same input resumes from it. Only sources with an [identity](crate::EdgeSource::identity)
    /// have checkpoints.
    pub keep_every: Option<Duration>,
    /// How the input is read, in lines that the graph keeps.
    pub read: Vec<String>,
    /// Bytes of ids or arcs that one worker has in memory at a time, at most: for experiments.
    ///
    /// It does not change the stored graph.
    pub work_bytes_max: u64,
}

impl ImportOptions {
    /// A directed graph in `output`, everything else as usual.
    pub fn new(output: impl Into<PathBuf>) -> Self {
        Self {
            output: output.into(),
            temporary: None,
            directed: true,
            duplicates: Duplicates::Keep,
            self_loops: SelfLoops::Keep,
            reverse: false,
            order: Order::Id,
            layout: Layout::Column,
            chunk_size: None,
            edge_vertices: false,
            batch_size: None,
            csr_ratio: 0,
            keep_every: None,
            read: Vec::new(),
            work_bytes_max: u64::MAX,
        }
    }

    /// Refuses other options that do not go with `edge_vertices`.
    ///
    /// # Errors
    /// [`IngestError::EdgeVertices`].
    pub fn check_edge_vertices(&self) -> Result<(), IngestError> {
        let misfits = [
            ("--duplicates", self.duplicates != Duplicates::Keep),
            ("--order degree", self.order == Order::Degree),
            ("--reverse", self.reverse),
        ];
        let misfit = misfits.into_iter().find(|(_, is_given)| *is_given);
        match misfit.filter(|_| self.edge_vertices) {
            Some((option, _)) => Err(IngestError::EdgeVertices { option }),
            None => Ok(()),
        }
    }

    /// Refuses other options that do not go with the layout.
    ///
    /// # Errors
    /// [`IngestError::StreamOption`], [`IngestError::ChunkSizeAlone`], [`IngestError::ChunkSize`] or
    /// [`IngestError::StreamBatchSize`].
    pub fn check_layout(&self) -> Result<(), IngestError> {
        if self.layout == Layout::Column {
            return self
                .chunk_size
                .map_or(Ok(()), |_| Err(IngestError::ChunkSizeAlone));
        }
        let duplicates = match self.duplicates {
            Duplicates::Keep => None,
            Duplicates::First => Some("--duplicates first"),
            Duplicates::Sum => Some("--duplicates sum"),
            Duplicates::Min => Some("--duplicates min"),
            Duplicates::Max => Some("--duplicates max"),
        };
        let order = (self.order == Order::Degree).then_some("--order degree");
        let csr_ratio = (self.csr_ratio != 0).then_some("--csr-ratio");
        if let Some(option) = duplicates.or(order).or(csr_ratio) {
            return Err(IngestError::StreamOption { option });
        }
        if let Some(asked) = self.chunk_size
            && !(4096..=STREAM_CHUNK_BYTES_MAX as u64).contains(&asked)
        {
            return Err(IngestError::ChunkSize { asked });
        }
        if let Some(asked) = self.batch_size
            && (!asked.is_power_of_two() || asked > STREAM_BATCH_MAX)
        {
            let above = asked.min(STREAM_BATCH_MAX).next_power_of_two();
            let below = if above > 1 && asked < above {
                above / 2
            } else {
                above
            };
            return Err(IngestError::StreamBatchSize {
                asked,
                below,
                above,
            });
        }
        Ok(())
    }

    /// Vertices of a batch in the stream layout, for a graph of `vertices` vertices.
    pub(crate) fn stream_batch(&self, vertices: u64) -> u64 {
        let usual = if self.edge_vertices {
            // The vertex of an edge has a large row.
            1 << 16
        } else {
            // Few batches have long runs in a chunk; accumulators of a small batch stay in the cache.
            let few = vertices.div_ceil(STREAM_BATCHES_MAX).next_power_of_two();
            few.clamp(STREAM_BATCH_MIN, STREAM_BATCH_MAX)
        };
        self.batch_size.unwrap_or(usual)
    }

    /// The vertices of each batch, if batches are cut by number alone.
    pub(crate) fn exact_batch(&self, vertices: u64) -> Option<u64> {
        match self.layout {
            // In order of degree batches of a given size may be made narrower yet.
            Layout::Column => self.batch_size.filter(|_| self.order == Order::Id),
            Layout::Stream => Some(self.stream_batch(vertices)),
        }
    }

    /// Returns the bytes of a chunk at most, and the fewest that it shrinks to where memory is short.
    pub(crate) fn chunk_sizes(&self) -> (usize, usize) {
        let most = self
            .chunk_size
            .map_or(STREAM_CHUNK_BYTES, |bytes| bytes as usize);
        (most, most.min(STREAM_CHUNK_BYTES_MIN))
    }

    /// The cut of the vertices in the stream layout.
    pub(crate) fn stream_batches(&self, vertices: u64) -> Result<Batches, IngestError> {
        let size = self.stream_batch(vertices);
        let cuts = (0..=vertices.div_ceil(size)).map(|cut| vertices.min(cut.saturating_mul(size)));
        Ok(Batches::new(cuts.collect())?)
    }

    /// The options by which arcs are stored: with `edge_vertices` an edge is two arcs that go one way.
    pub(crate) fn of_arcs(&self) -> Self {
        match self.edge_vertices {
            false => self.clone(),
            true => Self {
                directed: true,
                self_loops: SelfLoops::Drop,
                ..self.clone()
            },
        }
    }

    /// All of it that decides which graph is made of an input.
    pub(crate) fn of_graph(&self) -> String {
        format!(
            "{} {:?} {:?} {} {:?} {} {:?} {} {:?} {:?}",
            self.directed,
            self.duplicates,
            self.self_loops,
            self.reverse,
            self.order,
            self.edge_vertices,
            self.batch_size,
            self.csr_ratio,
            self.layout,
            self.chunk_size,
        )
    }

    /// True if a second set of columns is written.
    pub(super) fn turns_round(&self) -> bool {
        self.reverse && self.directed
    }
}

/// A policy for several edges from one vertex to another (in an undirected graph: between them).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum Duplicates {
    /// Keep all; those that differ only in weight are ordered by it.
    #[default]
    Keep,
    /// Keep the one that comes first in the input.
    First,
    /// Keep one with the sum of the weights, added in ascending order of their bits.
    Sum,
    /// Keep one with the smallest weight.
    Min,
    /// Keep one with the largest weight.
    Max,
}

/// A policy for edges from a vertex to itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum SelfLoops {
    /// Keep them; in an undirected graph each is one arc.
    #[default]
    Keep,
    /// Drop and count them.
    Drop,
}
