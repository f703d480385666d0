//! The resources of an import, and its options.
//!
//! Memory, threads and `work_bytes_max` decide how often something is read; the other options alone decide the stored graph.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use graphmill_fabric::Fabric;
use graphmill_graph::Order;
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
            "{} {:?} {:?} {} {:?} {} {:?} {}",
            self.directed,
            self.duplicates,
            self.self_loops,
            self.reverse,
            self.order,
            self.edge_vertices,
            self.batch_size,
            self.csr_ratio,
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
