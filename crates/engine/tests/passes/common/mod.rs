//! Graphs to store, the ways to run over them, and runs: shared by the tests of the engine and of the algorithms.

pub(crate) mod vertex_programs;

use std::path::Path;
use std::sync::Arc;

use graphmill_engine::{
    BucketOptions, Combiner, DispatchChoice, EdgeResidency, Element, Engine, EngineConfig,
    EngineError, EngineOptions, KernelChoice, ProgramFootprint, SparseChoice, StealBias,
    UpdateResidency, VertexArray,
};
use graphmill_fabric::{Fabric, NetworkModel, local, simulated};
use graphmill_graph::{
    Batches, ColumnFileWriter, EdgeField, EdgeFields, EdgeKind, FieldType, FinishInfo, GraphSpec,
    GraphWriter, IdsSummary, StoredGraph,
};
use graphmill_storage::{
    CancelToken, Disk, IoChoice, MemoryBudget, SplitMix64, SystemClock, Tiers, WorkerPool,
    open_disk,
};

pub(crate) type Edge = (u64, u64, f64);

/// Records that edges carry in place of weights: the fields, and the record of an edge of a weight.
#[allow(dead_code, reason = "the tests of algorithms store weights")]
#[derive(Clone, Copy)]
pub(crate) struct Records {
    pub(crate) fields: &'static [(&'static str, FieldType)],
    pub(crate) of_weight: fn(f64) -> Vec<u8>,
}

impl Records {
    fn fields(self) -> EdgeFields {
        let field = |(name, kind): &(&str, FieldType)| EdgeField {
            name: (*name).into(),
            kind: *kind,
        };
        EdgeFields::new(self.fields.iter().map(field).collect()).unwrap()
    }
}

/// A graph to be stored.
pub(crate) struct Plain {
    pub(crate) name: &'static str,
    pub(crate) vertices: u64,
    pub(crate) symmetric: bool,
    pub(crate) arcs: Vec<Edge>,
    /// `None`: weights.
    pub(crate) records: Option<Records>,
    /// What edges carry without records.
    pub(crate) weights: EdgeKind,
}

impl Plain {
    pub(crate) fn directed(
        name: &'static str,
        vertices: u64,
        edges: impl IntoIterator<Item = Edge>,
    ) -> Self {
        Plain {
            name,
            vertices,
            symmetric: false,
            arcs: edges.into_iter().collect(),
            records: None,
            weights: EdgeKind::F32,
        }
    }
    pub(crate) fn undirected(
        name: &'static str,
        vertices: u64,
        edges: impl IntoIterator<Item = Edge>,
    ) -> Self {
        let arcs = edges.into_iter().flat_map(|(u, v, w)| {
            let back = (u != v).then_some((v, u, w));
            [Some((u, v, w)), back].into_iter().flatten()
        });
        Plain {
            name,
            vertices,
            symmetric: true,
            arcs: arcs.collect(),
            records: None,
            weights: EdgeKind::F32,
        }
    }

    pub(crate) fn store(
        &self,
        disk: &Arc<dyn Disk>,
        path: &Path,
        span: u64,
        strip_edges_max: u64,
        reverse: bool,
    ) {
        let budget = MemoryBudget::new(1 << 30);
        let cuts: Vec<u64> = (0..self.vertices)
            .step_by(span as usize)
            .chain([self.vertices])
            .collect();
        let batches = Batches::new(cuts).unwrap();
        let files: Vec<_> = (0..batches.len()).map(|b| b..b + 1).collect();
        let fields = self.records.map(Records::fields).unwrap_or_default();
        let data = |weight: f64| match self.records {
            Some(records) => (records.of_weight)(weight),
            None => match self.weights {
                EdgeKind::None => Vec::new(),
                EdgeKind::F64 => weight.to_le_bytes().to_vec(),
                _ => (weight as f32).to_le_bytes().to_vec(),
            },
        };
        let shape = GraphSpec {
            chunk_bytes: None,
            batches: batches.clone(),
            edge: fields.kind().unwrap_or(self.weights),
            directed: !self.symmetric,
            strip_edges_max,
            csr_ratio: 32,
            files: files.clone(),
            reverse_files: reverse.then_some(files),
        };
        let writer = GraphWriter::create(disk.clone(), budget.clone(), path, shape).unwrap();
        columns(&batches, self.arcs.clone(), data, |batch| {
            writer.column_file(batch).unwrap()
        });
        if reverse {
            let turned = self.arcs.iter().map(|&(s, d, w)| (d, s, w));
            columns(&batches, turned.collect(), data, |batch| {
                writer.reverse_column_file(batch).unwrap()
            });
        }
        let facts = FinishInfo {
            ids: IdsSummary::dense(self.vertices),
            edge_vertices: None,
            input_edges: self.arcs.len() as u64,
            dropped: Default::default(),
            options: Default::default(),
            program: "a test".into(),
            edge_fields: fields,
        };
        writer.finish(facts).unwrap();
    }
    pub(crate) fn pairs(&self) -> Vec<(u64, u64)> {
        self.arcs.iter().map(|&(s, d, _)| (s, d)).collect()
    }
}

/// Writes the arcs of one side of a graph, a column in each file.
fn columns(
    batches: &Batches,
    mut arcs: Vec<Edge>,
    data: impl Fn(f64) -> Vec<u8>,
    open: impl Fn(usize) -> ColumnFileWriter,
) {
    let key = |&(s, d, _): &Edge| (batches.batch_of(d), batches.batch_of(s), s, d);
    arcs.sort_by(|a, b| key(a).cmp(&key(b)).then(a.2.total_cmp(&b.2)));
    let mut rest = &arcs[..];
    for batch in 0..batches.len() {
        let mut file = open(batch);
        let (column, later) = rest.split_at(rest.partition_point(|arc| key(arc).0 == batch));
        rest = later;
        for cell in column.chunk_by(|a, b| key(a).1 == key(b).1) {
            let source = key(&cell[0]).1;
            let keys: Vec<u64> = cell
                .iter()
                .map(|(s, d, _)| (s - batches.start(source)) << 32 | (d - batches.start(batch)))
                .collect();
            let weights: Vec<u8> = cell.iter().flat_map(|(_, _, w)| data(*w)).collect();
            file.edges(batch, source, &keys, &weights).unwrap();
        }
        file.finish().unwrap();
    }
}

/// How much memory a run has.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Memory {
    Bytes(u64),
    /// The least that is not refused, and a number of bytes more.
    LeastAnd(u64),
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Mode {
    pub(crate) kernel: KernelChoice,
    pub(crate) sparse: SparseChoice,
    pub(crate) threads: usize,
    pub(crate) memory: Memory,
    pub(crate) io: IoChoice,
    pub(crate) edges: EdgeResidency,
    pub(crate) dispatch: DispatchChoice,
    pub(crate) ranks: Ranks,
    pub(crate) window_bytes: Option<u64>,
    /// Of the stream executor.
    pub(crate) updates: UpdateResidency,
    pub(crate) steal: StealBias,
    /// Of the bucket executor, if it runs the passes.
    pub(crate) buckets: Option<BucketOptions>,
    pub(crate) footprint: ProgramFootprint,
}

impl Mode {
    /// Everything by cost, with memory to spare.
    pub(crate) const USUAL: Mode = Mode {
        kernel: KernelChoice::Auto,
        sparse: SparseChoice::Auto,
        threads: 2,
        memory: Memory::Bytes(1 << 30),
        io: IoChoice::Auto,
        edges: EdgeResidency::Auto,
        dispatch: DispatchChoice::Auto,
        ranks: Ranks::One,
        window_bytes: None,
        updates: UpdateResidency::Auto,
        steal: StealBias::PAPER,
        buckets: None,
        footprint: ProgramFootprint::USUAL,
    };
}

/// Who does the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ranks {
    One,
    /// A number of threads.
    Local(usize),
    /// A number of ranks on a network that is simulated by a seed.
    Simulated(usize, u64),
}

impl Ranks {
    pub(crate) fn fabrics(self) -> Vec<Option<Arc<dyn Fabric>>> {
        fn each(fabrics: Vec<impl Fabric + 'static>) -> Vec<Option<Arc<dyn Fabric>>> {
            let fabrics = fabrics.into_iter();
            fabrics
                .map(|of| Some(Arc::new(of) as Arc<dyn Fabric>))
                .collect()
        }
        match self {
            Ranks::One => vec![None],
            Ranks::Local(count) => each(local(count, 1)),
            Ranks::Simulated(count, seed) => each(simulated(seed, count, NetworkModel::default())),
        }
    }
}

pub(crate) fn engine(
    graph: &Path,
    scratch: &Path,
    mode: Mode,
    memory: u64,
) -> Result<Engine, EngineError> {
    engine_of(graph, scratch, mode, memory, None)
}

/// The engine of one rank.
pub(crate) fn engine_of(
    graph: &Path,
    scratch: &Path,
    mode: Mode,
    memory: u64,
    fabric: Option<Arc<dyn Fabric>>,
) -> Result<Engine, EngineError> {
    let disk = open_disk(mode.io).unwrap();
    let graph = Arc::new(StoredGraph::open(&disk, &MemoryBudget::new(1 << 30), graph).unwrap());
    let workers = WorkerPool::threads(mode.threads, disk.clone()).unwrap();
    Engine::new(
        graph,
        settings(disk, workers, scratch, mode, memory, fabric),
    )
}

pub(crate) fn settings(
    disk: Arc<dyn Disk>,
    workers: WorkerPool,
    scratch: &Path,
    mode: Mode,
    memory: u64,
    fabric: Option<Arc<dyn Fabric>>,
) -> EngineConfig {
    EngineConfig {
        budget: MemoryBudget::new(memory),
        tiers: Tiers::default(),
        disk,
        workers: Arc::new(workers),
        clock: Arc::new(SystemClock::new()),
        stop: CancelToken::new(),
        scratch: scratch.to_path_buf(),
        fabric,
        options: EngineOptions {
            kernel: mode.kernel,
            sparse: mode.sparse,
            dispatch: mode.dispatch,
            edges: mode.edges,
            window_bytes: mode.window_bytes,
            updates: mode.updates,
            steal: mode.steal,
            buckets: mode.buckets,
            combiner: match mode.threads {
                _ if mode.ranks != Ranks::One => Combiner::Auto,
                3 | 4 => Combiner::Hybrid,
                _ => Combiner::Auto,
            },
            ..EngineOptions::default()
        },
        sizes: mode.footprint,
        charge: None,
        on_pass: None,
        checkpoints: None,
    }
}

/// The values of all vertices at rank 0, none at the others.
pub(crate) fn all<T: Element>(engine: &Engine, array: VertexArray<T>) -> Vec<T> {
    gathered(engine, array).unwrap()
}

/// The same where ranks may be lost.
pub(crate) fn gathered<T: Element>(
    engine: &Engine,
    array: VertexArray<T>,
) -> Result<Vec<T>, EngineError> {
    let (mut values, mut part) = (Vec::new(), Vec::new());
    if graphmill_engine::job::rank(engine).0 > 0 {
        graphmill_engine::job::serve(engine, 0)?;
        return Ok(values);
    }
    for batch in 0..engine.graph().batches().len() {
        engine.read_batch(&array, batch, &mut part)?;
        values.extend_from_slice(&part);
    }
    graphmill_engine::job::stop_serving(engine)?;
    Ok(values)
}

/// Runs with some memory; returns the outcome of each rank.
pub(crate) fn outcomes<T: Send>(
    graph: &Path,
    mode: Mode,
    memory: u64,
    job: impl Fn(&mut Engine) -> Result<T, EngineError> + Sync,
) -> Vec<Result<T, EngineError>> {
    let rank = |fabric: Option<Arc<dyn Fabric>>| {
        let scratch = tempfile::tempdir().unwrap();
        let done = engine_of(graph, scratch.path(), mode, memory, fabric.clone())
            .and_then(|mut engine| job(&mut engine));
        if let Some(fabric) = fabric {
            match &done {
                Ok(_) => fabric.leave(),
                Err(error) => fabric.fail(&error.to_string()),
            }
        }
        done
    };
    std::thread::scope(|scope| {
        let fabrics = mode.ranks.fabrics().into_iter();
        let ranks: Vec<_> = fabrics.map(|fabric| scope.spawn(|| rank(fabric))).collect();
        ranks.into_iter().map(|rank| rank.join().unwrap()).collect()
    })
}

/// Runs with the memory that the mode gives.
pub(crate) fn run<T: Send>(
    graph: &Path,
    mode: Mode,
    job: impl Fn(&mut Engine) -> Result<T, EngineError> + Sync,
) -> T {
    // What rank 0 says.
    let attempt = |memory: u64| outcomes(graph, mode, memory, &job).swap_remove(0);
    let more = match mode.memory {
        Memory::Bytes(memory) => {
            return attempt(memory).unwrap_or_else(|error| panic!("{mode:?}: {error}"));
        }
        Memory::LeastAnd(more) => more,
    };
    let mut memory = 1 << 20;
    while memory < 1 << 30 {
        match attempt(memory) {
            Ok(value) => return value,
            // The memory that an error names is enough.
            Err(EngineError::TooSmall { least, .. }) => {
                assert!(
                    least > memory,
                    "{least} bytes are asked for where {memory} are given"
                );
                // Another rank may need a little more; the message of the error rounds up.
                let least = match mode.ranks {
                    Ranks::One => least,
                    _ => least.next_multiple_of(1 << 20),
                };
                return attempt(least + more).unwrap_or_else(|error| panic!("{mode:?}: {error}"));
            }
            Err(_) => memory += memory / 8,
        }
    }
    panic!("{mode:?}: no memory is enough")
}

pub(crate) fn random(seed: u64, vertices: u64, edges: usize) -> Vec<Edge> {
    let mut random = SplitMix64::new(seed);
    (0..edges)
        .map(|_| {
            (
                random.below(vertices),
                random.below(vertices),
                random.below(50) as f64,
            )
        })
        .collect()
}
