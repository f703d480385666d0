//! What a stored graph holds, without reading its edges.

use std::collections::BTreeMap;
use std::path::Path;

use graphmill_graph::{
    EdgeFields, EdgeKind, EdgeVertices, FileKind, IdKind, IdType, Layout, Order, WeightRange,
};
use graphmill_storage::StorageError;
use serde::Serialize;

use crate::error::{Error, check_stop};
use crate::machine::resources::Machine;
use crate::progress::{Progress, ProgressFn};

/// Facts about a stored graph.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct GraphInfo {
    /// Version of its format.
    pub format: u64,
    /// The program that wrote it.
    pub program: String,
    /// |V|.
    pub vertices: u64,
    /// Which of them stand for edges.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub edge_vertices: Option<EdgeVertices>,
    /// Stored edges: an undirected one counts twice.
    pub arcs: u64,
    /// Edges of the input, before anything was dropped.
    pub input_edges: u64,
    /// Edges that the import left out, by reason.
    pub dropped: BTreeMap<String, u64>,
    /// Whether edges have a direction.
    pub directed: bool,
    /// What an edge carries.
    pub edge: EdgeKind,
    /// The fields of the record that an edge carries; none if it carries a weight or nothing.
    pub edge_fields: EdgeFields,
    /// From the least to the greatest weight.
    pub weights: Option<WeightRange>,
    /// How vertices are named.
    pub ids: IdKind,
    /// The type of ids in results.
    pub id_type: IdType,
    /// The order in which vertices got their indices.
    pub order: Order,
    /// How arcs are stored.
    pub layout: Layout,
    /// Chunks of arcs, in the stream layout.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chunks: Option<u64>,
    /// Bytes of a chunk at most, in the stream layout.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chunk_bytes: Option<u64>,
    /// Batches of vertices.
    pub batches: u64,
    /// Whether the transposed graph is stored too.
    pub reverse: bool,
    /// Bytes of blocks of edges.
    pub block_bytes: u64,
    /// Bytes of the indices of cells, with their bitmaps.
    pub index_bytes: u64,
    /// Bytes of the weights or records.
    pub weight_bytes: u64,
    /// Bytes of all files: the above, degrees, fan-out, ids, checksums and padding.
    pub disk_bytes: u64,
    /// `disk_bytes` over `arcs`.
    pub bytes_per_arc: f64,
    /// Options of the import.
    pub options: BTreeMap<String, String>,
    /// How its input was read, a line for each way.
    pub read: Vec<String>,
}

/// How the input of a graph was read.
pub(crate) fn read(options: &BTreeMap<String, String>) -> Vec<String> {
    let lines = options.get("read").map_or("", String::as_str).lines();
    lines.map(str::to_string).collect()
}

impl Machine {
    /// Facts about the stored graph in the directory `path`.
    ///
    /// # Errors
    /// It is not a graph, or not as it was written.
    pub fn info(&self, path: &Path) -> Result<GraphInfo, Error> {
        let graph = self.graph(path)?;
        let reverse = graph.reverse();
        let bytes = |kind| graph.forward().bytes(kind) + reverse.map_or(0, |side| side.bytes(kind));
        let sets = || graph.chunks().into_iter().chain(graph.reverse_chunks());
        let of_chunks = |part: usize| sets().map(|set| set.bytes()[part]).sum::<u64>();
        let disk_bytes = self.disk_bytes(path)?;
        let meta = graph.meta();
        let mut options = meta.options.clone();
        options.remove("read");
        Ok(GraphInfo {
            format: meta.format,
            program: meta.program.clone(),
            vertices: graph.vertices(),
            edge_vertices: meta.edge_vertices,
            arcs: graph.arcs(),
            input_edges: meta.input_edges,
            dropped: meta.dropped.clone(),
            directed: graph.directed(),
            edge: graph.edge_kind(),
            edge_fields: meta.edge_fields.clone(),
            weights: meta.weights,
            ids: graph.id_kind(),
            id_type: graph.id_type(),
            order: graph.order(),
            layout: graph.layout(),
            chunks: graph
                .chunks()
                .map(|_| sets().map(|set| set.all().len() as u64).sum()),
            chunk_bytes: graph.chunks().map(|set| set.chunk_bytes() as u64),
            batches: graph.batches().len() as u64,
            reverse: reverse.is_some(),
            block_bytes: bytes(FileKind::Data) + of_chunks(0),
            index_bytes: bytes(FileKind::Index) + bytes(FileKind::Bitmaps),
            weight_bytes: bytes(FileKind::Weights) + of_chunks(1),
            disk_bytes,
            bytes_per_arc: disk_bytes as f64 / graph.arcs().max(1) as f64,
            options,
            read: read(&meta.options),
        })
    }

    /// Checks every byte of the stored graph in the directory `path`; returns their number.
    ///
    /// # Errors
    /// The first file and page that is not what was written; [`Error::Stopped`].
    pub fn verify(&self, path: &Path, watcher: &ProgressFn) -> Result<u64, Error> {
        self.verify_by(path, false, watcher)
    }

    /// Verifies a graph and checks that all its tables agree with its edges.
    ///
    /// The tables are degrees, fan-out, indices, the reverse, counts, and the range of weights. It finds what a broken program wrote with
    /// sound checksums.
    ///
    /// # Errors
    /// As for [`Machine::verify`]; the first file that disagrees.
    pub fn verify_deep(&self, path: &Path, watcher: &ProgressFn) -> Result<u64, Error> {
        self.verify_by(path, true, watcher)
    }

    fn verify_by(&self, path: &Path, is_deep: bool, watcher: &ProgressFn) -> Result<u64, Error> {
        let graph = self.graph(path)?;
        let total = self.disk_bytes(path)?;
        let progress = |done| {
            watcher(&Progress::Part {
                what: "verify",
                done,
                total,
                unit: "bytes",
            });
        };
        let (budget, stop) = (self.budget(), self.stop());
        let seen = match is_deep {
            true => graphmill_graph::verify_deep(&graph, budget, stop, progress)?,
            false => graphmill_graph::verify(&graph, budget, stop, progress)?,
        };
        check_stop(stop)?;
        Ok(seen.bytes)
    }

    /// Returns the bytes of all files in a directory and the directories in it.
    pub(crate) fn disk_bytes(&self, folder: &Path) -> Result<u64, StorageError> {
        let mut bytes = 0;
        for path in self.disk().list(folder)? {
            bytes += match self.disk().is_dir(&path)? {
                true => self.disk_bytes(&path)?,
                false => self.disk().stamp(&path)?.bytes,
            };
        }
        Ok(bytes)
    }
}
