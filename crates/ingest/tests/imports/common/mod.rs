//! One machine for a test, and a reader of stored graphs that knows nothing of how they are written.
#![allow(dead_code, reason = "each test uses a part of it")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod naive;
mod source;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use graphmill_fabric::{Fabric, LocalFabric, local};
use graphmill_graph::{
    BLOCK_EDGES_MAX, BlockView, ChunkSet, ChunkSetReader, ColumnSet, IdCursor, PageCache,
    StoredGraph, verify,
};
use graphmill_ingest::{
    EdgeSource, Generated, ImportOptions, ImportReport, ImportResources, IngestError, NoProgress,
    generate, import,
};
use graphmill_storage::{CancelToken, Disk, MemoryBudget, SimDisk, SystemClock, WorkerPool};

#[allow(unused_imports, reason = "each test uses a part of it")]
pub(crate) use naive::{Plain, degrees, naive};
#[allow(unused_imports, reason = "each test uses a part of it")]
pub(crate) use source::{Look, Memory, random_source};

/// One machine for a test.
pub(crate) struct Bench {
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) sim: SimDisk,
    pub(crate) stop: CancelToken,
}

impl Bench {
    pub(crate) fn new(seed: u64) -> Self {
        let sim = SimDisk::new(seed);
        let disk: Arc<dyn Disk> = Arc::new(sim.clone());
        disk.create_dir_all(Path::new("/data")).unwrap();
        Self {
            disk,
            sim,
            stop: CancelToken::new(),
        }
    }

    pub(crate) fn import(
        &self,
        source: &dyn EdgeSource,
        vertices: Option<&Memory>,
        options: &ImportOptions,
        workers: &WorkerPool,
        budget_bytes: u64,
    ) -> Result<ImportReport, IngestError> {
        let vertices = vertices.map(|list| list as &dyn EdgeSource);
        self.on(workers, budget_bytes, |resources| {
            import(resources, source, vertices, options)
        })
    }

    pub(crate) fn generate(
        &self,
        graph: &Generated,
        options: &ImportOptions,
        workers: &WorkerPool,
        budget_bytes: u64,
    ) -> Result<ImportReport, IngestError> {
        self.on(workers, budget_bytes, |resources| {
            generate(resources, graph, options)
        })
    }

    fn on(
        &self,
        workers: &WorkerPool,
        budget_bytes: u64,
        work: impl FnOnce(ImportResources<'_>) -> Result<ImportReport, IngestError>,
    ) -> Result<ImportReport, IngestError> {
        let budget = MemoryBudget::new(budget_bytes);
        let clock = SystemClock::new();
        let report = work(ImportResources {
            disk: &self.disk,
            workers,
            budget: &budget,
            clock: &clock,
            stop: &self.stop,
            progress: &NoProgress,
            fabric: None,
        });
        assert_eq!(
            budget.available(),
            budget_bytes,
            "all leases are given back"
        );
        report
    }

    /// Imports by several ranks on one disk, each with this many threads and bytes; returns the reports.
    pub(crate) fn import_on_ranks(
        &self,
        source: &dyn EdgeSource,
        vertices: Option<&Memory>,
        options: &ImportOptions,
        ranks: &[(usize, u64)],
    ) -> Vec<Result<ImportReport, IngestError>> {
        let hosts: Vec<_> = ranks.iter().map(|resources| (self, *resources)).collect();
        Self::import_on_hosts(source, vertices, options, &hosts)
    }

    /// Imports by ranks that each have the disk of a bench; returns the reports.
    pub(crate) fn import_on_hosts(
        source: &dyn EdgeSource,
        vertices: Option<&Memory>,
        options: &ImportOptions,
        ranks: &[(&Bench, (usize, u64))],
    ) -> Vec<Result<ImportReport, IngestError>> {
        let vertices = vertices.map(|list| list as &dyn EdgeSource);
        let one = |fabric: LocalFabric, (host, (threads, bytes)): (&Bench, (usize, u64))| {
            let (budget, clock) = (MemoryBudget::new(bytes), SystemClock::new());
            let resources = ImportResources {
                disk: &host.disk,
                workers: &host.threads(threads),
                budget: &budget,
                clock: &clock,
                stop: &host.stop,
                progress: &NoProgress,
                fabric: Some(&fabric),
            };
            let report = import(resources, source, vertices, options);
            match &report {
                Ok(_) => fabric.leave(),
                Err(error) => fabric.fail(&error.to_string()),
            }
            assert_eq!(budget.available(), bytes, "all leases are given back");
            report
        };
        let one = &one;
        std::thread::scope(|scope| {
            let threads: Vec<_> = local(ranks.len(), 1)
                .into_iter()
                .zip(ranks)
                .map(|(fabric, resources)| scope.spawn(move || one(fabric, *resources)))
                .collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap())
                .collect()
        })
    }

    /// An import that is refused memory at the `nth` lease.
    pub(crate) fn import_with_refusal(
        &self,
        source: &Memory,
        options: &ImportOptions,
        nth: u64,
    ) -> Result<ImportReport, IngestError> {
        let budget = MemoryBudget::new(32 << 20);
        budget.fail_nth(nth);
        let (clock, workers) = (SystemClock::new(), self.simulated(nth, 2));
        let resources = ImportResources {
            disk: &self.disk,
            workers: &workers,
            budget: &budget,
            clock: &clock,
            stop: &self.stop,
            progress: &NoProgress,
            fabric: None,
        };
        let report = import(resources, source, None, options);
        assert_eq!(
            budget.available(),
            budget.total(),
            "all leases are given back"
        );
        report
    }

    pub(crate) fn threads(&self, count: usize) -> WorkerPool {
        WorkerPool::threads(count, self.disk.clone()).unwrap()
    }

    pub(crate) fn simulated(&self, seed: u64, count: usize) -> WorkerPool {
        WorkerPool::simulated(seed, count, self.disk.clone()).unwrap()
    }

    /// The bytes of all files below `path`, by name.
    pub(crate) fn files(&self, path: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut files = BTreeMap::new();
        for entry in self.disk.list(path).unwrap() {
            if self.disk.is_dir(&entry).unwrap() {
                files.extend(self.files(&entry).into_iter().map(|(name, bytes)| {
                    (Path::new(entry.file_name().unwrap()).join(name), bytes)
                }));
            } else {
                files.insert(
                    PathBuf::from(entry.file_name().unwrap()),
                    self.disk.read_small(&entry, 1 << 30).unwrap(),
                );
            }
        }
        files
    }

    /// Reads the graph in `path`, after a check of every byte.
    pub(crate) fn read(&self, path: &Path) -> Plain {
        let budget = MemoryBudget::new(256 << 20);
        let graph = Arc::new(StoredGraph::open(&self.disk, &budget, path).unwrap());
        verify(&graph, &budget, &self.stop, |_| {}).unwrap();
        let mut cursor = IdCursor::new(&graph, &budget, 0).unwrap();
        let mut ids = Vec::new();
        while let Some(id) = cursor.next().unwrap() {
            ids.push(id.to_owned());
        }
        let ranks = ranks(&graph, &budget);
        let by_rank = |mut arcs: Vec<(u64, u64, u128)>| {
            for arc in &mut arcs {
                (arc.0, arc.1) = (ranks[arc.0 as usize], ranks[arc.1 as usize]);
            }
            arcs.sort_unstable();
            arcs
        };
        let arcs = checked_arcs(&graph, graph.forward(), &budget);
        assert_eq!(arcs.len() as u64, graph.arcs());
        let arcs = by_rank(arcs);
        let reverse = graph
            .reverse()
            .map(|set| by_rank(checked_arcs(&graph, set, &budget)));
        let dropped = |reason: &str| graph.meta().dropped.get(reason).copied().unwrap_or(0);
        Plain {
            ids,
            arcs,
            reverse,
            dropped_duplicates: dropped("duplicates"),
            dropped_self_loops: dropped("self_loops"),
        }
    }
}

/// The rank of each vertex.
pub(crate) fn ranks(graph: &Arc<StoredGraph>, budget: &MemoryBudget) -> Vec<u64> {
    let mut reader = PageCache::new(graph, budget, 8).unwrap();
    let mut ranks = Vec::new();
    graph
        .each_rank(&mut reader, 0..graph.vertices(), |rank| ranks.push(rank))
        .unwrap();
    ranks
}

/// The arcs of a set of columns; checks that degrees agree.
fn checked_arcs(
    graph: &Arc<StoredGraph>,
    set: &ColumnSet,
    budget: &MemoryBudget,
) -> Vec<(u64, u64, u128)> {
    let arcs = arcs(graph, set, budget);
    let mut reader = PageCache::new(graph, budget, 8).unwrap();
    let batches = graph.batches();
    let mut degrees = vec![0u64; graph.vertices() as usize];
    for arc in &arcs {
        degrees[arc.0 as usize] += 1;
    }
    for batch in 0..batches.len() {
        let range = batches.range(batch);
        let mut found = vec![0u64; batches.span(batch) as usize];
        graph.degrees(set, &mut reader, batch, &mut found).unwrap();
        assert_eq!(
            found,
            degrees[range.start as usize..range.end as usize],
            "degrees of batch {batch}"
        );
    }
    arcs
}

/// The arcs of a set of chunks, sorted.
fn arcs_of_chunks(
    graph: &Arc<StoredGraph>,
    set: &ChunkSet,
    budget: &MemoryBudget,
) -> Vec<(u64, u64, u128)> {
    let (batches, width) = (graph.batches(), graph.edge_kind().bytes());
    let parts = (set, batches);
    let mut reader = ChunkSetReader::new(&**graph.disk(), budget, parts, width > 0).unwrap();
    let mut arcs = Vec::new();
    for chunk in set.all().iter().filter(|chunk| set.has_file(chunk.file())) {
        let (view, data) = reader.chunk(chunk).unwrap();
        for run in view.runs() {
            view.for_each(&run, |source, destination, at| {
                let mut bits = [0; 16];
                bits[..width].copy_from_slice(&data[at * width..(at + 1) * width]);
                arcs.push((
                    batches.start(chunk.batch()) + u64::from(source),
                    batches.start(run.destination_batch) + u64::from(destination),
                    u128::from_le_bytes(bits),
                ));
            });
        }
    }
    arcs.sort_unstable();
    arcs
}

/// The arcs of a set of columns, sorted.
pub(crate) fn arcs(
    graph: &Arc<StoredGraph>,
    set: &ColumnSet,
    budget: &MemoryBudget,
) -> Vec<(u64, u64, u128)> {
    if let Some(chunks) = graph.chunks() {
        let reverse = graph
            .reverse_chunks()
            .filter(|chunks| chunks.side() == set.side());
        return arcs_of_chunks(graph, reverse.unwrap_or(chunks), budget);
    }
    let mut reader = PageCache::new(graph, budget, 8).unwrap();
    let batches = graph.batches();
    let mut arcs = Vec::new();
    let (mut scratch, mut sources) = ([0; BLOCK_EDGES_MAX], [0; BLOCK_EDGES_MAX]);
    for (destination, column) in set.columns().iter().enumerate() {
        for cell in column.cells() {
            let source = cell.source_batch();
            let (mut data, mut weights) = (Vec::new(), Vec::new());
            let extent = set.data_extent(destination, cell);
            reader.read(extent.file, extent.bytes, &mut data).unwrap();
            let width = graph.edge_kind().bytes();
            if width > 0 {
                let extent = set.weights_extent(destination, cell, graph.edge_kind());
                reader
                    .read(extent.file, extent.bytes, &mut weights)
                    .unwrap();
            }
            let offset = batches.start(destination) as i64 - batches.start(source) as i64;
            let (mut at, mut edge_number) = (0, 0);
            while at < data.len() {
                let (block, used) = BlockView::parse(&data[at..], offset).unwrap().unwrap();
                block.sources(&mut sources);
                block.for_each_edge(&mut scratch, |group, local, edge| {
                    let mut weight = [0; 16];
                    let from = (edge_number + edge) * width;
                    weight[..width].copy_from_slice(&weights[from..from + width]);
                    arcs.push((
                        batches.start(source) + u64::from(sources[group]),
                        batches.start(destination) + u64::from(local),
                        u128::from_le_bytes(weight),
                    ));
                });
                edge_number += block.edges();
                at += used;
            }
            assert_eq!(edge_number as u64, cell.edges());
        }
    }
    arcs.sort_unstable();
    arcs
}
