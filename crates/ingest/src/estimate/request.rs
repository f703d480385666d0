//! The import that is to be estimated, and the estimate.

use graphmill_graph::{DegreeModel, EdgeKind, GraphProfile, Layout, Order};
use graphmill_storage::MemoryBudget;

use crate::error::IngestError;
use crate::generate::rule::Generated;
use crate::layout::batch_cut::{batch_vertices_max, keys_hold};
use crate::options::ImportOptions;
use crate::pipeline::memory;
use crate::readers::files::FileSource;
use crate::report::ImportTraffic;

/// Batches that the estimate examines one by one, at most.
const BATCHES_MAX: u64 = 1 << 16;
/// The same in the stream layout, whose batches have no cells.
const CHUNK_BATCHES_MAX: u64 = 1 << 20;
/// Edges of an estimate, at most: 64 bits count the bytes of their records.
pub(super) const EDGES_MAX: u64 = 1 << 56;

/// The origin of edges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    /// Generated edges: the vertices are known, and nothing is read.
    Drawn,
    /// Files of raw pairs of ids, with this many bytes an edge.
    Pairs(u64),
}

/// The input and the options of an import to estimate.
#[derive(Clone, Debug)]
pub struct ImportEstimateRequest<'o> {
    /// The model of the degrees.
    pub like: DegreeModel,
    /// Ids are below this.
    pub vertices: u64,
    /// Edges.
    pub edges: u64,
    /// True if the import has that number as an option: then all integers below it are vertices.
    pub vertices_below: bool,
    /// The origin of the edges.
    pub input: Input,
    /// The type of the weights.
    pub weights: EdgeKind,
    /// The options of the graph: the order of ids, all edges kept, arcs stored in one direction.
    pub options: &'o ImportOptions,
    /// Ranks.
    pub ranks: usize,
    /// True if all ranks see one directory; else each writes to a disk of its own.
    pub shared: bool,
    /// Threads of a rank, and bytes of its memory.
    pub threads: usize,
    /// See there.
    pub memory: u64,
}

/// The bytes that a step of an import moves.
#[derive(Clone, Debug)]
pub struct Phase {
    /// The name of the step.
    pub name: &'static str,
    /// By the first rank.
    pub first: ImportTraffic,
    /// By each other one.
    pub other: ImportTraffic,
    /// Arcs that a rank works on.
    pub arcs: u64,
}

/// The estimate of an import.
#[derive(Clone, Debug)]
pub struct ImportEstimate {
    /// The stored graph.
    pub outline: GraphProfile,
    /// The steps in order.
    pub phases: Vec<Phase>,
    /// Bytes of temporary files of all ranks, which are there until the end.
    pub temporary_bytes: u64,
    /// True if ids are sorted on disk, because memory holds no bitmap of them.
    pub sorts_ids: bool,
}

impl ImportEstimateRequest<'_> {
    /// Refuses a request that cannot be estimated.
    pub(super) fn check(&self) -> Result<(), IngestError> {
        let refuse = |problem| Err(IngestError::Plan { problem });
        if self.vertices == 0 {
            return refuse("edges need vertices; give at least one");
        }
        if self.ranks == 0 || self.threads == 0 {
            return refuse("it has no rank or no thread; give at least one of each");
        }
        if self.edges > EDGES_MAX {
            return refuse("it would have more edges than can be counted; give 2^56 at most");
        }
        let edges = if self.options.edge_vertices {
            self.edges
        } else {
            0
        };
        let vertices = self.vertices.saturating_add(edges);
        let (size, most) = match self.options.layout {
            Layout::Column => (self.options.batch_size, BATCHES_MAX),
            Layout::Stream => (Some(self.options.stream_batch(vertices)), CHUNK_BATCHES_MAX),
        };
        if !keys_hold(vertices, size) {
            return Err(IngestError::TooManyVertices { vertices });
        }
        let width = size.unwrap_or_else(|| batch_vertices_max(vertices, edges > 0));
        let width = width.max(1);
        if vertices / width > most {
            return refuse("it would have more batches than can be planned; give larger ones");
        }
        debug_assert_eq!(self.options.order, Order::Id);
        memory::check(
            &MemoryBudget::new(self.memory),
            self.threads as u64,
            self.reader_bytes(),
            self.weights,
            false,
            self.options,
        )
    }

    /// True if ids are indices without a look at the edges.
    pub(super) fn knows_ids(&self) -> bool {
        self.vertices_below || self.input == Input::Drawn
    }

    /// Bytes of a reader of the edges.
    pub(super) fn reader_bytes(&self) -> u64 {
        match self.input {
            Input::Drawn => Generated::READER_BYTES,
            Input::Pairs(_) => FileSource::reader_bytes_by_name([]),
        }
    }
}
