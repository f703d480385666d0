//! A source of edges in memory, a naive importer, and a reader of stored graphs that knows nothing of how they are written.
#![allow(dead_code, reason = "each test uses a part of it")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use graphmill_fabric::{Fabric, LocalFabric, local};
use graphmill_graph::{
    BLOCK_EDGES_MAX, BlockView, ColumnSet, EdgeKind, FrameReader, IdCursor, StoredGraph, VertexId,
    verify,
};
use graphmill_ingest::{
    BATCH_EDGES_MAX, Duplicates, EdgeSink, EdgeSource, Generated, Ids, ImportOptions, ImportReport,
    IngestError, Machine, PieceReader, PieceReport, SelfLoops, Silent, generate, import,
};
use graphmill_storage::{Budget, Disk, Random, SimDisk, Stop, SystemClock, Workers};

/// One edge: two ids and a weight.
pub(crate) type Edge = (VertexId, VertexId, f64);

/// Edges in memory, in pieces.
#[derive(Clone, Debug)]
pub(crate) struct Memory {
    pub(crate) pieces: Vec<Vec<Edge>>,
    pub(crate) ids: Ids,
    pub(crate) weights: EdgeKind,
    pub(crate) vertices: Option<u64>,
    pub(crate) rereads_fast: bool,
}

impl EdgeSource for Memory {
    fn pieces(&self) -> u64 {
        self.pieces.len() as u64
    }
    fn ids(&self) -> Ids {
        self.ids
    }
    fn weights(&self) -> EdgeKind {
        self.weights
    }
    fn vertices(&self) -> Option<u64> {
        self.vertices
    }
    fn edges(&self) -> Option<u64> {
        Some(self.amount())
    }
    fn amount(&self) -> u64 {
        self.pieces.iter().map(|piece| piece.len() as u64).sum()
    }
    fn rereads_fast(&self) -> bool {
        self.rereads_fast
    }
    fn reader_bytes(&self) -> u64 {
        0
    }
    fn reader(
        &self,
        _: &Arc<dyn Disk>,
        _: &Budget,
    ) -> Result<Box<dyn PieceReader + '_>, IngestError> {
        Ok(Box::new(self))
    }
}

impl PieceReader for &Memory {
    fn read(
        &mut self,
        piece: u64,
        _: &Stop,
        sink: &mut dyn EdgeSink,
    ) -> Result<PieceReport, IngestError> {
        let edges = &self.pieces[piece as usize];
        // Uneven batches, so that nothing relies on their size.
        let mut rest = &edges[..];
        let mut random = Random::new(piece);
        while !rest.is_empty() {
            let (now, later) = rest
                .split_at((1 + random.below(BATCH_EDGES_MAX as u64 / 8) as usize).min(rest.len()));
            rest = later;
            let weights: Vec<f64> = if self.weights == EdgeKind::None {
                vec![]
            } else {
                now.iter().map(|edge| edge.2).collect()
            };
            match self.ids {
                Ids::Integer => {
                    let pairs: Vec<(u64, u64)> = now
                        .iter()
                        .map(|edge| (number(&edge.0), number(&edge.1)))
                        .collect();
                    sink.integers(&pairs, &weights)?;
                }
                Ids::Text => {
                    let pairs: Vec<(&[u8], &[u8])> = now
                        .iter()
                        .map(|edge| (text(&edge.0), text(&edge.1)))
                        .collect();
                    sink.texts(&pairs, &weights)?;
                }
            }
            sink.progress(now.len() as u64);
        }
        let count = edges.len() as u64;
        Ok(PieceReport {
            lines: count,
            edges: count,
            ..PieceReport::default()
        })
    }
}

fn number(id: &VertexId) -> u64 {
    match id {
        VertexId::Integer(id) => *id,
        VertexId::Text(_) => panic!("a text where a number is expected"),
    }
}

fn text(id: &VertexId) -> &[u8] {
    match id {
        VertexId::Text(id) => id,
        VertexId::Integer(_) => panic!("a number where a text is expected"),
    }
}

/// A graph as a test sees it: ids in order, arcs (source, destination, weight bits) sorted, their ends by rank of id.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Plain {
    pub(crate) ids: Vec<VertexId>,
    pub(crate) arcs: Vec<(u64, u64, u64)>,
    pub(crate) reverse: Option<Vec<(u64, u64, u64)>>,
    pub(crate) dropped_duplicates: u64,
    pub(crate) dropped_self_loops: u64,
}

/// The arcs that leave each vertex, by rank, before duplicates are dropped.
pub(crate) fn degrees(source: &Memory, plain: &Plain, options: &ImportOptions) -> Vec<u64> {
    let ranks: BTreeMap<_, _> = plain.ids.iter().zip(0..).collect();
    let mut degrees = vec![0; ranks.len()];
    for (source, destination, _) in source.pieces.iter().flatten() {
        let is_loop = source == destination;
        if !is_loop || options.self_loops == SelfLoops::Keep {
            degrees[ranks[source]] += 1;
        }
        if !is_loop && !options.directed {
            degrees[ranks[destination]] += 1;
        }
    }
    degrees
}

/// What the import should make of `source`: everything in one map.
pub(crate) fn naive(source: &Memory, vertices: Option<&Memory>, options: &ImportOptions) -> Plain {
    let key = |id: &VertexId| match id {
        VertexId::Integer(id) => id.to_be_bytes().to_vec(),
        VertexId::Text(id) => id.clone(),
    };
    let mut index: BTreeMap<Vec<u8>, (VertexId, u64)> = BTreeMap::new();
    for edge in source.pieces.iter().flatten().chain(
        vertices
            .iter()
            .flat_map(|list| list.pieces.iter().flatten()),
    ) {
        for id in [&edge.0, &edge.1] {
            index.insert(key(id), (id.clone(), 0));
        }
    }
    for id in 0..source.vertices.unwrap_or(0) {
        index.insert(id.to_be_bytes().to_vec(), (VertexId::Integer(id), 0));
    }
    for (at, entry) in index.values_mut().enumerate() {
        entry.1 = at as u64;
    }
    let mut plain = Plain {
        ids: index.values().map(|entry| entry.0.clone()).collect(),
        ..Plain::default()
    };
    // The weights of each pair, in the order of the input.
    let mut groups: BTreeMap<(u64, u64), Vec<f64>> = BTreeMap::new();
    for (source, destination, weight) in source.pieces.iter().flatten() {
        let (mut source, mut destination) = (index[&key(source)].1, index[&key(destination)].1);
        if source == destination && options.self_loops == SelfLoops::Drop {
            plain.dropped_self_loops += 1;
            continue;
        }
        if !options.directed && source > destination {
            std::mem::swap(&mut source, &mut destination);
        }
        groups
            .entry((source, destination))
            .or_default()
            .push(*weight);
    }
    let bits = |weight: f64| match source.weights {
        EdgeKind::None => 0,
        EdgeKind::F32 => u64::from((weight as f32).to_bits()),
        EdgeKind::F64 => weight.to_bits(),
    };
    let value = |weight: f64| {
        if source.weights == EdgeKind::F32 {
            f64::from(weight as f32)
        } else {
            weight
        }
    };
    for (&(a, b), weights) in &groups {
        let mut by_bits = weights.clone();
        by_bits.sort_by_key(|&weight| bits(weight));
        let kept = match options.duplicates {
            Duplicates::Keep => by_bits,
            Duplicates::First => vec![weights[0]],
            Duplicates::Sum => vec![by_bits.iter().map(|&weight| value(weight)).sum()],
            Duplicates::Min => vec![
                weights
                    .iter()
                    .copied()
                    .min_by(|a, b| value(*a).total_cmp(&value(*b)))
                    .unwrap(),
            ],
            Duplicates::Max => vec![
                weights
                    .iter()
                    .copied()
                    .max_by(|a, b| value(*a).total_cmp(&value(*b)))
                    .unwrap(),
            ],
        };
        plain.dropped_duplicates += (weights.len() - kept.len()) as u64;
        for weight in kept {
            plain.arcs.push((a, b, bits(weight)));
            if !options.directed && a != b {
                plain.arcs.push((b, a, bits(weight)));
            }
        }
    }
    plain.arcs.sort_unstable();
    if options.directed && options.reverse {
        let mut arcs: Vec<_> = plain
            .arcs
            .iter()
            .map(|&(a, b, weight)| (b, a, weight))
            .collect();
        arcs.sort_unstable();
        plain.reverse = Some(arcs);
    }
    plain
}

/// One machine for a test.
pub(crate) struct Bench {
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) sim: SimDisk,
    pub(crate) stop: Stop,
}

impl Bench {
    pub(crate) fn new(seed: u64) -> Self {
        let sim = SimDisk::new(seed);
        let disk: Arc<dyn Disk> = Arc::new(sim.clone());
        disk.create_dir_all(Path::new("/data")).unwrap();
        Self {
            disk,
            sim,
            stop: Stop::new(),
        }
    }

    pub(crate) fn import(
        &self,
        source: &dyn EdgeSource,
        vertices: Option<&Memory>,
        options: &ImportOptions,
        workers: &Workers,
        budget_bytes: u64,
    ) -> Result<ImportReport, IngestError> {
        let vertices = vertices.map(|list| list as &dyn EdgeSource);
        self.on(workers, budget_bytes, |machine| {
            import(machine, source, vertices, options)
        })
    }

    pub(crate) fn generate(
        &self,
        graph: &Generated,
        options: &ImportOptions,
        workers: &Workers,
        budget_bytes: u64,
    ) -> Result<ImportReport, IngestError> {
        self.on(workers, budget_bytes, |machine| {
            generate(machine, graph, options)
        })
    }

    fn on(
        &self,
        workers: &Workers,
        budget_bytes: u64,
        work: impl FnOnce(Machine<'_>) -> Result<ImportReport, IngestError>,
    ) -> Result<ImportReport, IngestError> {
        let budget = Budget::new(budget_bytes);
        let clock = SystemClock::new();
        let report = work(Machine {
            disk: &self.disk,
            workers,
            budget: &budget,
            clock: &clock,
            stop: &self.stop,
            progress: &Silent,
            fabric: None,
        });
        assert_eq!(
            budget.available(),
            budget_bytes,
            "all leases are given back"
        );
        report
    }

    /// The same by several ranks on one disk, each with so many threads and bytes; what each reports.
    pub(crate) fn import_on_ranks(
        &self,
        source: &dyn EdgeSource,
        vertices: Option<&Memory>,
        options: &ImportOptions,
        ranks: &[(usize, u64)],
    ) -> Vec<Result<ImportReport, IngestError>> {
        let hosts: Vec<_> = ranks.iter().map(|machine| (self, *machine)).collect();
        Self::import_on_hosts(source, vertices, options, &hosts)
    }

    /// The same by ranks of which each has the disk of a bench.
    pub(crate) fn import_on_hosts(
        source: &dyn EdgeSource,
        vertices: Option<&Memory>,
        options: &ImportOptions,
        ranks: &[(&Bench, (usize, u64))],
    ) -> Vec<Result<ImportReport, IngestError>> {
        let vertices = vertices.map(|list| list as &dyn EdgeSource);
        let one = |fabric: LocalFabric, (host, (threads, bytes)): (&Bench, (usize, u64))| {
            let (budget, clock) = (Budget::new(bytes), SystemClock::new());
            let machine = Machine {
                disk: &host.disk,
                workers: &host.threads(threads),
                budget: &budget,
                clock: &clock,
                stop: &host.stop,
                progress: &Silent,
                fabric: Some(&fabric),
            };
            let report = import(machine, source, vertices, options);
            match &report {
                Ok(_) => fabric.leave(),
                Err(error) => fabric.fail(&error.to_string()),
            }
            assert_eq!(budget.available(), bytes, "all leases are given back");
            report
        };
        let one = &one;
        std::thread::scope(|scope| {
            let threads: Vec<_> = local(ranks.len())
                .into_iter()
                .zip(ranks)
                .map(|(fabric, machine)| scope.spawn(move || one(fabric, *machine)))
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
        let budget = Budget::new(32 << 20);
        budget.fail_nth(nth);
        let (clock, workers) = (SystemClock::new(), self.simulated(nth, 2));
        let machine = Machine {
            disk: &self.disk,
            workers: &workers,
            budget: &budget,
            clock: &clock,
            stop: &self.stop,
            progress: &Silent,
            fabric: None,
        };
        let report = import(machine, source, None, options);
        assert_eq!(
            budget.available(),
            budget.total(),
            "all leases are given back"
        );
        report
    }

    pub(crate) fn threads(&self, count: usize) -> Workers {
        Workers::threads(count, self.disk.clone()).unwrap()
    }

    pub(crate) fn simulated(&self, seed: u64, count: usize) -> Workers {
        Workers::simulated(seed, count, self.disk.clone()).unwrap()
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

    /// What is stored in `path`, after a check of every byte.
    pub(crate) fn read(&self, path: &Path) -> Plain {
        let budget = Budget::new(256 << 20);
        let graph = Arc::new(StoredGraph::open(&self.disk, &budget, path).unwrap());
        verify(&graph, &budget, &self.stop, |_| {}).unwrap();
        let mut cursor = IdCursor::new(&graph, &budget, 0).unwrap();
        let mut ids = Vec::new();
        while let Some(id) = cursor.next().unwrap() {
            ids.push(id.to_owned());
        }
        let ranks = ranks(&graph, &budget);
        let by_rank = |mut arcs: Vec<(u64, u64, u64)>| {
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
pub(crate) fn ranks(graph: &Arc<StoredGraph>, budget: &Budget) -> Vec<u64> {
    let mut reader = FrameReader::new(graph, budget, 8).unwrap();
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
    budget: &Budget,
) -> Vec<(u64, u64, u64)> {
    let arcs = arcs(graph, set, budget);
    let mut reader = FrameReader::new(graph, budget, 8).unwrap();
    let batches = graph.batches();
    let mut degrees = vec![0u64; graph.vertices() as usize];
    for arc in &arcs {
        degrees[arc.0 as usize] += 1;
    }
    for batch in 0..batches.len() {
        let range = batches.range(batch);
        let mut found = vec![0u64; batches.span(batch) as usize];
        graph
            .degrees_of(set, &mut reader, batch, &mut found)
            .unwrap();
        assert_eq!(
            found,
            degrees[range.start as usize..range.end as usize],
            "degrees of batch {batch}"
        );
    }
    arcs
}

/// The arcs of a set of columns, sorted.
pub(crate) fn arcs(
    graph: &Arc<StoredGraph>,
    set: &ColumnSet,
    budget: &Budget,
) -> Vec<(u64, u64, u64)> {
    let mut reader = FrameReader::new(graph, budget, 8).unwrap();
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
                    let mut weight = [0; 8];
                    let from = (edge_number + edge) * width;
                    weight[..width].copy_from_slice(&weights[from..from + width]);
                    arcs.push((
                        batches.start(source) + u64::from(sources[group]),
                        batches.start(destination) + u64::from(local),
                        u64::from_le_bytes(weight),
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

/// How ids of a random input look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    /// 0, 1, 2, ...
    Dense,
    /// Integers with gaps.
    Gaps,
    /// Integers far apart, below 2^24.
    Sparse,
    /// Integers of all 64 bits.
    Huge,
    /// Words, some with long common beginnings.
    Words,
}

/// Random edges between `vertices` vertices, with self-loops and duplicates both ways.
pub(crate) fn random_source(
    seed: u64,
    look: Look,
    vertices: u64,
    edges: usize,
    weights: EdgeKind,
    rereads_fast: bool,
) -> Memory {
    let mut random = Random::new(seed);
    let mut used = Vec::new();
    for vertex in 0..vertices {
        used.push(match look {
            Look::Dense => VertexId::Integer(vertex),
            Look::Gaps => VertexId::Integer(vertex * 2 + random.below(2)),
            Look::Sparse => VertexId::Integer(random.below(1 << 24)),
            Look::Huge => VertexId::Integer(random.next_u64() >> (random.below(8) * 8)),
            Look::Words => VertexId::Text(match random.below(4) {
                0 => format!("{}", random.below(1000)).into_bytes(),
                1 => format!(
                    "http://example.org/a/rather/long/path/{}",
                    random.below(100_000)
                )
                .into_bytes(),
                2 => vec![b'x'; 1 + random.below(40) as usize],
                _ => random.next_u64().to_le_bytes()[..1 + random.below(8) as usize].to_vec(),
            }),
        });
    }
    let mut pieces = vec![Vec::new(); 1 + random.below(5) as usize];
    let count = pieces.len() as u64;
    let hub = random.below(vertices.max(1));
    let mut before: Vec<(u64, u64)> = Vec::new();
    // A path names every vertex of a dense graph.
    let path = if look == Look::Dense {
        vertices as usize
    } else {
        0
    };
    for i in 0..edges.max(path) {
        let mut pair = (random.below(vertices), random.below(vertices));
        match random.below(8) {
            0 if !before.is_empty() => pair = before[random.below(before.len() as u64) as usize],
            1 if !before.is_empty() => {
                let (a, b) = before[random.below(before.len() as u64) as usize];
                pair = (b, a);
            }
            2 => pair.1 = pair.0,
            3 => pair.1 = hub,
            _ => {}
        }
        if i < path {
            pair.0 = i as u64;
        }
        before.push(pair);
        let weight = match random.below(3) {
            0 => random.below(5) as f64,
            1 => random.unit() * 1e6,
            _ => -random.unit(),
        };
        let weight = if weights == EdgeKind::F32 {
            f64::from(weight as f32)
        } else {
            weight
        };
        let edge = (
            used[pair.0 as usize].clone(),
            used[pair.1 as usize].clone(),
            weight,
        );
        pieces[(i as u64 * count / edges.max(path) as u64) as usize].push(edge);
    }
    let ids = if look == Look::Words {
        Ids::Text
    } else {
        Ids::Integer
    };
    Memory {
        pieces,
        ids,
        weights,
        vertices: None,
        rereads_fast: rereads_fast && ids == Ids::Integer,
    }
}
