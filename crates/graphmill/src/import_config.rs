//! Options of an import.

use std::path::{Path, PathBuf};
use std::time::Duration;

use graphmill_graph::{EdgeKind, IdType, Layout, Order};
use graphmill_ingest::{
    Duplicates, Format, Ids, ImportOptions, OnError, ReadOptions, SelfLoops, TextOptions,
};

use crate::error::Error;

/// How edges are read, and how the graph is stored. The default: directed, no weights, everything kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportConfig {
    /// What the files are.
    pub format: Format,
    /// What the ids are; absent: integers if all in the first 64 MiB are, else text.
    pub ids: Option<Ids>,
    /// The exact type of the ids, which decides instead of `ids`, and which results have.
    ///
    /// By default it is that of the columns of Parquet files, and else `Int64` for integers, or `UInt64` if an id needs it.
    pub id_type: Option<IdType>,
    /// `Some(n)`: the ids are integers below `n`, and all of these are vertices.
    ///
    /// In the stream layout the input is read once then.
    pub vertices_below: Option<u64>,
    /// Whether and how weights are kept; `None` with a record of fields ([`TextOptions::edge_data`]).
    pub weights: EdgeKind,
    /// How lines of text are read: columns, fields of a record, header, separator, quotes, comments.
    ///
    /// Columns and fields are for Parquet files too.
    pub text: TextOptions,
    /// What to do with a malformed line.
    pub on_error: OnError,
    /// Whether an edge goes one way.
    pub directed: bool,
    /// What becomes of edges between the same vertices.
    pub duplicates: Duplicates,
    /// What becomes of edges from a vertex to itself.
    pub self_loops: SelfLoops,
    /// Files whose first column names vertices, in addition to the `.v` files among the inputs.
    pub vertices: Vec<PathBuf>,
    /// Whether the transposed graph is stored too.
    pub reverse: bool,
    /// The order of the vertex indices; it affects results only by the rounding of sums.
    pub order: Order,
    /// How arcs are stored.
    pub layout: Layout,
    /// Bytes of a chunk at most in the stream layout; by default 4 MiB, or fewer if memory is short.
    pub chunk_size: Option<u64>,
    /// Whether each edge becomes a vertex without an id, between two arcs.
    ///
    /// A run sets it as its algorithm needs it.
    pub edge_vertices: bool,
    /// Vertices of a batch, for experiments: at most 2^31.
    ///
    /// The batch has exactly as many, or at most as many in order of degree.
    pub batch_size: Option<u64>,
    /// Cells whose source span over edges is at most this get a bitmap of their sources; 0 gives none.
    ///
    /// DFOGraph, section 4.1: inflate ratio 32.
    pub csr_ratio: u32,
    /// The least time between two checkpoints of the import; `None` writes none and resumes from none.
    ///
    /// The import writes a checkpoint when a step, or a part of the graph, is complete. Checkpoints are in directories beside the graph and
    /// among the temporary files. If the import is killed or fails, the same import resumes from them.
    pub keep_every: Option<Duration>,
}

/// The default time between two checkpoints of an import.
const KEEP_EVERY: Duration = Duration::from_secs(10);

impl Default for ImportConfig {
    fn default() -> ImportConfig {
        let defaults = ImportOptions::new("");
        ImportConfig {
            format: Format::default(),
            ids: None,
            id_type: None,
            vertices_below: None,
            weights: EdgeKind::None,
            text: TextOptions::default(),
            on_error: OnError::default(),
            directed: defaults.directed,
            duplicates: defaults.duplicates,
            self_loops: defaults.self_loops,
            vertices: Vec::new(),
            reverse: defaults.reverse,
            order: defaults.order,
            layout: defaults.layout,
            chunk_size: defaults.chunk_size,
            edge_vertices: defaults.edge_vertices,
            batch_size: defaults.batch_size,
            csr_ratio: defaults.csr_ratio,
            keep_every: Some(KEEP_EVERY),
        }
    }
}

impl ImportConfig {
    /// How edges are read.
    #[must_use]
    pub fn reading(&self) -> ReadOptions {
        ReadOptions {
            format: self.format,
            ids: self.ids,
            id_type: self.id_type,
            vertices_below: self.vertices_below,
            weights: self.weights,
            text: self.text.clone(),
            on_error: self.on_error,
            ..ReadOptions::default()
        }
    }

    /// What edges carry: a record of fields, else a weight, else nothing.
    #[must_use]
    pub fn edge_kind(&self) -> EdgeKind {
        let record = self.text.edge_data.fields().kind();
        record.unwrap_or(self.weights)
    }

    /// Returns the options of an import into `graph`, with temporary files in `tmp` or beside the graph.
    pub(crate) fn options(&self, graph: &Path, tmp: Option<&Path>) -> ImportOptions {
        ImportOptions {
            temporary: tmp.map(Path::to_path_buf),
            directed: self.directed,
            duplicates: self.duplicates,
            self_loops: self.self_loops,
            reverse: self.reverse,
            order: self.order,
            layout: self.layout,
            chunk_size: self.chunk_size,
            edge_vertices: self.edge_vertices,
            batch_size: self.batch_size,
            csr_ratio: self.csr_ratio,
            keep_every: self.keep_every,
            ..ImportOptions::new(graph)
        }
    }

    /// Refuses options that do not go together.
    pub(crate) fn check(&self, weights: EdgeKind) -> Result<(), Error> {
        let has_weights = self.weights.is_weight() || self.text.weight_column.is_some();
        if has_weights && self.edge_kind().is_record() {
            return Err(Error::TwoKindsOfData);
        }
        let options = self.options(Path::new(""), None);
        options.check_edge_vertices()?;
        options.check_layout()?;
        let option = match self.duplicates {
            Duplicates::Sum => "--duplicates sum",
            Duplicates::Min => "--duplicates min",
            Duplicates::Max => "--duplicates max",
            Duplicates::Keep | Duplicates::First => return Ok(()),
        };
        match weights {
            EdgeKind::None | EdgeKind::Record(_) => Err(Error::Meaningless {
                option,
                needs: "weights (--weights f32 or f64)",
            }),
            EdgeKind::F32 | EdgeKind::F64 => Ok(()),
        }
    }
}
