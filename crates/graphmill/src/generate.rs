//! Generated graphs: to a stored graph, or to a file of edges that other programs read.

use std::io::Write;
use std::path::Path;

use graphmill_graph::EdgeKind;
use graphmill_ingest::{EdgeData, EdgeSink, EdgeSource, ImportReport, IngestError, check_space};
pub use graphmill_ingest::{Generated, GraphRule, KroneckerLabels};
use graphmill_storage::AtomicFile;

use crate::error::Error;
use crate::import_config::ImportConfig;
use crate::machine::resources::{Machine, folder_of};
use crate::progress::{ImportReporter, Progress, ProgressFn};
use crate::result::sizes::CHUNK_BYTES;
use crate::result_error::ResultError;

/// What a file of generated edges is; its name's ending says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EdgeFileFormat {
    /// `.u32`: little-endian pairs of 32 bits.
    U32,
    /// `.u64`: little-endian pairs of 64 bits.
    U64,
    /// `.el`, `.wel`: text, with the weight in a third column when there is one.
    Text,
}

/// Endings of packed and other files, which are not names of directories.
const NO_FOLDERS: [&str; 13] = [
    "bin", "bz2", "csv", "e", "gr", "gz", "json", "mtx", "parquet", "tsv", "txt", "xz", "zst",
];

impl EdgeFileFormat {
    /// `None`: it is to be a stored graph.
    fn of(
        path: &Path,
        graph: &Generated,
        config: &ImportConfig,
    ) -> Result<Option<EdgeFileFormat>, Error> {
        let refuse = |problem| Err(IngestError::Generator { problem }.into());
        let weighted = graph.weights() != EdgeKind::None;
        let ending = path.extension().unwrap_or_default().to_ascii_lowercase();
        let file = match ending.to_str() {
            Some("u32" | "u64") if weighted => {
                return refuse("raw pairs hold no weights: write .wel");
            }
            Some("u32") if graph.vertices().is_some_and(|vertices| vertices > 1 << 32) => {
                return refuse("its vertices take more than 32 bits: write .u64");
            }
            Some("wel") if !weighted => {
                return refuse(
                    "a .wel file has weights: ask for some (--weights f32), or write .el",
                );
            }
            Some("u32") => EdgeFileFormat::U32,
            Some("u64") => EdgeFileFormat::U64,
            Some("el" | "wel") => EdgeFileFormat::Text,
            Some(ending) if NO_FOLDERS.contains(&ending) => {
                return refuse(
                    "no such file can be written: name a file .u32, .u64, .el or .wel, or a directory with another ending or none",
                );
            }
            _ => return Ok(None),
        };
        let weights = config.weights;
        let as_drawn = ImportConfig {
            weights,
            ..ImportConfig::default()
        };
        if *config != as_drawn {
            return refuse(
                "a file has each edge once, as it is drawn: leave out the options of edges and of stored graphs (such as --undirected), or name a directory",
            );
        }
        Ok(Some(file))
    }

    /// Bytes of an edge at least.
    fn edge_bytes(self) -> u64 {
        match self {
            EdgeFileFormat::U32 => 8,
            EdgeFileFormat::U64 => 16,
            EdgeFileFormat::Text => "0 1\n".len() as u64,
        }
    }
}

/// What generating a graph came to.
#[derive(Debug, Clone)]
pub enum Generation {
    /// A stored graph.
    Graph(ImportReport),
    /// A generated file.
    File {
        /// Edges written.
        edges: u64,
        /// Length of the file.
        bytes: u64,
    },
}

impl Machine {
    /// Generates a graph into `output`, whose name gives the kind of output.
    ///
    /// Raw pairs (`.u32`, `.u64`), text (`.el`, `.wel`), or else the new directory of a stored graph.
    ///
    /// A stored graph equals the one that [`import`](Self::import) makes of the graph's edges and vertices with the same `config`. Only the
    /// fields for edges and their storage count: the generator decides on weights. A file holds each edge once, in the order drawn, and
    /// uses nothing of `config`.
    ///
    /// ```
    /// use graphmill::{EdgeKind, ImportConfig, Machine, MachineConfig, unwatched};
    /// use graphmill::generate::{Generated, GraphRule};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("graph");
    /// let machine = Machine::open(&MachineConfig::default(), Default::default())?;
    /// let rule = GraphRule::Scattered { vertices: 1000, degree: 5, gap: 77 };
    /// let both_ways = ImportConfig { directed: false, ..ImportConfig::default() };
    /// machine.generate(&Generated::new(rule, 1, EdgeKind::F32)?, &path, &both_ways, &unwatched())?;
    /// assert_eq!(machine.graph(&path)?.arcs(), 10_000);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The disk fails or is too small, the budget is too small, work was to stop, something has the output's name, its directory does not
    /// exist, or a file cannot hold the graph. It leaves nothing behind then.
    pub fn generate(
        &self,
        graph: &Generated,
        output: &Path,
        config: &ImportConfig,
        watcher: &ProgressFn,
    ) -> Result<Generation, Error> {
        let file = EdgeFileFormat::of(output, graph, config)?;
        config.check(graph.weights())?;
        self.check_folder(output)?;
        self.check_tmp()?;
        if let Some(different) = graph.coinciding() {
            watcher(&Progress::Warning(&format!(
                "multiples of the gap coincide: no vertex has edges to more than {different} different vertices, itself included"
            )));
        }
        if let Some(kind) = file {
            return self.write_edges(graph, output, kind, watcher);
        }
        let progress = ImportReporter::new(watcher, "edges");
        let options = config.options(output, self.tmp_asked());
        let stored = graphmill_ingest::generate(self.for_ingest(&progress), graph, &options);
        let report = stored.map_err(|error| progress.ended_with(error))?;
        Ok(Generation::Graph(report))
    }

    fn write_edges(
        &self,
        graph: &Generated,
        output: &Path,
        kind: EdgeFileFormat,
        watcher: &ProgressFn,
    ) -> Result<Generation, Error> {
        if self.disk().exists(output)? {
            let (path, what) = (output.to_path_buf(), "there already");
            return Err(Error::OutputIs { path, what });
        }
        let edges = graph.edges().unwrap_or(0);
        let least = edges.saturating_mul(kind.edge_bytes());
        check_space(&**self.disk(), &folder_of(output), least)?;
        let mut file = AtomicFile::create_apart(self.disk(), self.budget(), output, CHUNK_BYTES)?;
        let mut reader = graph.reader(self.disk(), self.budget())?;
        let mut writing = Writing {
            file: &mut file,
            kind,
            weights: graph.weights(),
            bytes: Vec::new(),
            failed: None,
        };
        let mut written = 0;
        for piece in 0..graph.pieces() {
            let read = reader.read(piece, self.stop(), &mut writing);
            if let Some(error) = writing.failed.take() {
                return Err(match error.downcast() {
                    Ok(error) => Error::Storage(error),
                    Err(error) => ResultError::Write(error).into(),
                });
            }
            written += read?.edges;
            watcher(&Progress::Part {
                what: "generate",
                done: written,
                total: edges,
                unit: "edges",
            });
        }
        let (edges, bytes) = (written, file.commit()?);
        Ok(Generation::File { edges, bytes })
    }
}

/// Edges on their way to a file.
struct Writing<'f> {
    file: &'f mut AtomicFile,
    kind: EdgeFileFormat,
    weights: EdgeKind,
    bytes: Vec<u8>,
    /// Why the file could not be written; a sink can only report that it stopped.
    failed: Option<std::io::Error>,
}

impl EdgeSink for Writing<'_> {
    fn integers(&mut self, edges: &[(u64, u64)], data: EdgeData<'_>) -> Result<(), IngestError> {
        self.bytes.clear();
        for (i, (source, destination)) in edges.iter().enumerate() {
            match self.kind {
                EdgeFileFormat::U32 => {
                    let pair = [*source as u32, *destination as u32];
                    self.bytes
                        .extend_from_slice(pair.map(u32::to_le_bytes).as_flattened());
                }
                EdgeFileFormat::U64 => {
                    let pair = [*source, *destination];
                    self.bytes
                        .extend_from_slice(pair.map(u64::to_le_bytes).as_flattened());
                }
                EdgeFileFormat::Text => {
                    // Writing to memory does not fail.
                    let _ = match data.weight(i, self.weights) {
                        Some(weight) => writeln!(self.bytes, "{source} {destination} {weight}"),
                        None => writeln!(self.bytes, "{source} {destination}"),
                    };
                }
            }
        }
        self.file.write_all(&self.bytes).map_err(|error| {
            self.failed = Some(error);
            IngestError::Stopped
        })
    }

    fn texts(&mut self, _: &[(&[u8], &[u8])], _: EdgeData<'_>) -> Result<(), IngestError> {
        // Generated vertices are integers.
        Ok(())
    }
}
