//! Graphs of chunks: the arcs that were pushed are read in any order, and damage is an error.

use std::path::Path;
use std::sync::Arc;

use graphmill_graph::{
    Batches, ChunkFile, ChunkPlace, ChunkSetReader, ChunkShape, ChunkView, ChunkWriter, EdgeFields,
    EdgeKind, FileSide, FinishInfo, FormatError, GraphSpec, GraphWriter, IdsSummary, Layout,
    StoreHere, StoredGraph, partition, verify, verify_deep,
};
use graphmill_storage::{CancelToken, Disk, MemoryBudget, Open, SimDisk, SplitMix64};

const ROOM: u64 = 512 << 20;
type Arc3 = (u64, u64, u128);

/// A graph to be stored in chunks.
struct Graph {
    vertices: u64,
    bits: u32,
    edge: EdgeKind,
    chunk_bytes: usize,
    files: u32,
    arcs: Vec<Arc3>,
}

fn batches(vertices: u64, bits: u32) -> Batches {
    let cuts = (0..=vertices.div_ceil(1 << bits)).map(|cut| (cut << bits).min(vertices));
    Batches::new(cuts.collect()).unwrap()
}

impl Graph {
    fn random(vertices: u64, bits: u32, edge: EdgeKind, arcs: usize) -> Graph {
        let mut random = SplitMix64::new(vertices ^ u64::from(bits));
        let mut vertex = || random.next_u64() % vertices;
        let ends: Vec<_> = (0..arcs).map(|_| (vertex(), vertex())).collect();
        let data = |i: usize| match edge {
            EdgeKind::None => 0,
            EdgeKind::F32 => (i as f32 - 3.0).to_bits().into(),
            EdgeKind::F64 => (i as f64 / 7.0).to_bits().into(),
            EdgeKind::Record(bytes) => {
                (i as u128).wrapping_mul(0x1234_5678_9abc_def1_0203_0405) % (1 << (8 * bytes - 1))
            }
        };
        let arcs = (ends.into_iter().enumerate()).map(|(i, (s, d))| (s, d, data(i)));
        Graph {
            vertices,
            bits,
            edge,
            chunk_bytes: 4096,
            files: 1,
            arcs: arcs.collect(),
        }
    }
    fn file(
        &self,
        graph: &GraphWriter,
        disk: &Arc<dyn Disk>,
        side: FileSide,
        file: u32,
    ) -> (ChunkFile, Vec<u64>) {
        let budget = MemoryBudget::new(ROOM);
        let place = ChunkPlace {
            disk,
            budget: &budget,
            folder: Path::new("/g"),
            graph_id: graph.graph_id(),
        };
        let shape = ChunkShape {
            batches: batches(self.vertices, self.bits),
            edge: self.edge,
            chunk_bytes: self.chunk_bytes,
            side,
            file,
        };
        let need = ChunkWriter::memory(&shape, 2).unwrap();
        let writer = ChunkWriter::create(&place, shape.clone())
            .unwrap()
            .counting()
            .unwrap();
        let mut bins = [
            writer.bins(StoreHere).unwrap(),
            writer.bins(StoreHere).unwrap(),
        ];
        for (i, &(s, d, data)) in self.arcs.iter().enumerate() {
            if i as u32 % self.files == file {
                let (s, d) = if side == FileSide::Forward {
                    (s, d)
                } else {
                    (d, s)
                };
                bins[i / 7 % 2].push(s, d, data).unwrap();
            }
        }
        bins.into_iter().for_each(|bins| bins.finish().unwrap());
        writer.flush(&StoreHere).unwrap();
        assert!(budget.peak() <= need + ChunkWriter::degrees_memory(&shape.batches));
        let (done, degrees) = writer.finish().unwrap();
        let mut all = vec![0; self.vertices as usize];
        assert!(degrees.are_whole());
        for batch in 0..shape.batches.len() {
            let range = shape.batches.range(batch);
            degrees.add(batch, &mut all[range.start as usize..range.end as usize]);
        }
        (
            ChunkFile::decode(&done.encode(), &shape, &MemoryBudget::new(ROOM)).unwrap(),
            all,
        )
    }
    fn spec(&self, reverse: bool) -> GraphSpec {
        GraphSpec {
            batches: batches(self.vertices, self.bits),
            edge: self.edge,
            directed: true,
            strip_edges_max: 1,
            csr_ratio: 1,
            chunk_bytes: Some(self.chunk_bytes),
            files: Vec::new(),
            reverse_files: reverse.then(Vec::new),
        }
    }
    fn store(&self, disk: &Arc<dyn Disk>, reverse: bool) -> Arc<StoredGraph> {
        self.store_with(disk, reverse, |_| ())
    }
    /// Stores it with other degrees.
    fn store_with(
        &self,
        disk: &Arc<dyn Disk>,
        reverse: bool,
        spoil: impl Fn(&mut [u64]),
    ) -> Arc<StoredGraph> {
        let budget = MemoryBudget::new(ROOM);
        let writer = GraphWriter::create(
            Arc::clone(disk),
            budget.clone(),
            Path::new("/g"),
            self.spec(reverse),
        );
        let writer = writer.unwrap();
        let sides = [FileSide::Forward, FileSide::Reverse];
        for side in &sides[..1 + usize::from(reverse)] {
            let mut degrees = vec![0; self.vertices as usize];
            for file in 0..self.files {
                let (done, part) = self.file(&writer, disk, *side, file);
                degrees
                    .iter_mut()
                    .zip(part)
                    .for_each(|(sum, degree)| *sum += degree);
                writer.take_chunks(done);
            }
            spoil(&mut degrees);
            let mut pages = writer.degrees(*side).unwrap();
            degrees
                .chunks(1000)
                .for_each(|part| pages.push(part).unwrap());
            pages.finish(self.arcs.len() as u64).unwrap();
        }
        let fields = match self.edge {
            EdgeKind::Record(bytes) => (0..bytes).map(|i| graphmill_graph::EdgeField {
                name: format!("f{i}"),
                kind: graphmill_graph::FieldType::U8,
            }),
            _ => return self.end(writer, EdgeFields::default(), disk),
        };
        self.end(writer, EdgeFields::new(fields.collect()).unwrap(), disk)
    }
    fn end(
        &self,
        writer: GraphWriter,
        edge_fields: EdgeFields,
        disk: &Arc<dyn Disk>,
    ) -> Arc<StoredGraph> {
        let done = writer.finish(FinishInfo {
            ids: IdsSummary::dense(self.vertices),
            edge_vertices: None,
            input_edges: self.arcs.len() as u64,
            dropped: Default::default(),
            options: Default::default(),
            program: "test".into(),
            edge_fields,
        });
        done.unwrap();
        let graph = StoredGraph::open(disk, &MemoryBudget::new(ROOM), Path::new("/g"));
        Arc::new(graph.unwrap())
    }
}

/// All arcs of a graph, sorted.
fn arcs_of(graph: &StoredGraph) -> Result<Vec<Arc3>, FormatError> {
    let (set, budget) = (graph.chunks().unwrap(), MemoryBudget::new(ROOM));
    let batches = graph.batches();
    let bytes = graph.edge_kind().bytes();
    let mut reader = ChunkSetReader::new(&**graph.disk(), &budget, (set, batches), bytes > 0)?;
    let (mut all, mut into) = (Vec::new(), vec![0; batches.len()]);
    for (i, chunk) in set.all().iter().enumerate() {
        assert!(chunk.bytes() <= set.chunk_bytes());
        assert!(set.of_batch(chunk.batch()).contains(chunk));
        assert!(i == 0 || set.all()[i - 1].batch() <= chunk.batch());
        let (view, data) = reader.chunk(chunk)?;
        let mut position = 0;
        for run in view.runs() {
            assert_eq!(run.first, position);
            into[run.destination_batch] += run.count as u64;
            view.for_each(&run, |source, destination, at| {
                assert_eq!(at, position);
                position += 1;
                let mut bits = [0; 16];
                bits[..bytes].copy_from_slice(&data[at * bytes..(at + 1) * bytes]);
                let source = batches.start(chunk.batch()) + u64::from(source);
                let destination = batches.start(run.destination_batch) + u64::from(destination);
                all.push((source, destination, u128::from_le_bytes(bits)));
            });
        }
        assert_eq!(position, chunk.edges());
    }
    assert!((0..batches.len()).all(|batch| into[batch] == set.arcs_into(batch)));
    all.sort_unstable();
    Ok(all)
}

fn sorted(arcs: impl IntoIterator<Item = Arc3>) -> Vec<Arc3> {
    let mut arcs: Vec<_> = arcs.into_iter().collect();
    arcs.sort_unstable();
    arcs
}

fn disk() -> Arc<dyn Disk> {
    Arc::new(SimDisk::new(1))
}

#[test]
fn chunk_graphs_hold_the_arcs_that_were_pushed() {
    let cases = [
        (1, 0, EdgeKind::None, 9),
        (1, 18, EdgeKind::F32, 100),
        (40, 0, EdgeKind::F64, 3000),
        (41, 1, EdgeKind::Record(3), 5000),
        (1000, 6, EdgeKind::None, 20_000),
        (1000, 6, EdgeKind::Record(16), 5000),
        (70_000, 12, EdgeKind::F32, 90_000),
        ((1 << 18) + 77, 18, EdgeKind::None, 50_000),
        (3 << 19, 20, EdgeKind::F64, 20_000),
        (1 << 16, 20, EdgeKind::None, 0),
    ];
    for (vertices, bits, edge, arcs) in cases {
        for files in [1, 3] {
            let disk = disk();
            let graph = Graph {
                files,
                chunk_bytes: 4096 << (2 * (files - 1)),
                ..Graph::random(vertices, bits, edge, arcs)
            };
            let stored = graph.store(&disk, true);
            assert_eq!(stored.layout(), Layout::Stream);
            assert_eq!(stored.chunks().unwrap().files(), files as usize);
            assert_eq!(
                arcs_of(&stored).unwrap(),
                sorted(graph.arcs.iter().copied())
            );
            let turned = stored.transpose().unwrap();
            let expected = graph.arcs.iter().map(|&(s, d, data)| (d, s, data));
            assert_eq!(arcs_of(&turned).unwrap(), sorted(expected));
            let mut pages =
                graphmill_graph::PageCache::new(&stored, &MemoryBudget::new(ROOM), 4).unwrap();
            for batch in 0..stored.batches().len() {
                let range = stored.batches().range(batch);
                let mut degrees = vec![0u64; (range.end - range.start) as usize];
                stored
                    .degrees(stored.forward(), &mut pages, batch, &mut degrees)
                    .unwrap();
                let mut expected = vec![0u64; degrees.len()];
                let of_batch = graph.arcs.iter().filter(|arc| range.contains(&arc.0));
                of_batch.for_each(|arc| expected[(arc.0 - range.start) as usize] += 1);
                assert_eq!(degrees, expected);
            }
            let (stop, budget) = (CancelToken::new(), MemoryBudget::new(ROOM));
            for seen in [
                verify(&stored, &budget, &stop, |_| ()),
                verify_deep(&stored, &budget, &stop, |_| ()),
            ] {
                assert_eq!(seen.unwrap().edges, 2 * arcs as u64);
            }
            let cuts = partition(
                &stored,
                &[
                    vec![true; stored.batches().len()],
                    vec![true; stored.batches().len()],
                ],
                None,
            );
            assert_eq!(cuts.unwrap().len(), 3);
        }
    }
}

#[test]
fn chunk_graph_opens_where_some_files_are_elsewhere() {
    let disk = disk();
    let graph = Graph {
        files: 2,
        ..Graph::random(300, 4, EdgeKind::F32, 4000)
    };
    let stored = graph.store(&disk, false);
    drop(stored);
    disk.remove_file(Path::new("/g/stream/00001.chunks"))
        .unwrap();
    let budget = MemoryBudget::new(ROOM);
    assert!(StoredGraph::open(&disk, &budget, Path::new("/g")).is_err());
    let stored = StoredGraph::open_in_part(&disk, &budget, Path::new("/g")).unwrap();
    let set = stored.chunks().unwrap();
    assert!(set.has_file(0) && !set.has_file(1) && !stored.has_batch(0));
    for chunk in set.all() {
        let read = set.read(chunk, true);
        match chunk.file() {
            0 => drop(read.unwrap()),
            _ => assert!(matches!(read, Err(FormatError::Elsewhere { .. }))),
        }
    }
}

#[test]
fn damaged_chunk_is_an_error() {
    let disk = disk();
    let graph = Graph::random(5000, 8, EdgeKind::F32, 60_000);
    let stored = graph.store(&disk, false);
    let (stop, budget) = (CancelToken::new(), MemoryBudget::new(ROOM));
    let path = Path::new("/g/stream/00000.chunks");
    let bytes = disk.read_small(path, 1 << 30).unwrap();
    for at in [0, 5000, bytes.len() / 2] {
        let mut bad = bytes.clone();
        bad[at] ^= 4;
        disk.write_small(path, &bad).unwrap();
        // It is open already, or opened again.
        let again = StoredGraph::open(&disk, &budget, Path::new("/g")).map(Arc::new);
        let found = again.and_then(|graph| verify(&graph, &budget, &stop, |_| ()));
        let is_damage = matches!(
            found,
            Err(FormatError::Page { .. } | FormatError::Table { .. })
        );
        assert!(is_damage, "{at}");
    }
    disk.write_small(path, &bytes[..bytes.len() - 4096])
        .unwrap();
    let cut = StoredGraph::open(&disk, &budget, Path::new("/g"));
    assert!(matches!(cut, Err(FormatError::Length { .. })));
    disk.write_small(path, &bytes).unwrap();
    assert!(verify(&stored, &budget, &stop, |_| ()).is_ok());
    // A chunk of another graph of the same shape, at the same place.
    let other = crate::chunks::disk();
    let foreign = Graph {
        arcs: graph.arcs.iter().map(|arc| (arc.1, arc.0, arc.2)).collect(),
        ..Graph::random(5000, 8, EdgeKind::F32, 0)
    };
    foreign.store(&other, false);
    let bytes = other.read_small(path, 1 << 30).unwrap();
    disk.write_small(path, &bytes).unwrap();
    assert!(StoredGraph::open(&disk, &budget, Path::new("/g")).is_err());
    let file = disk.open(path, Open::Read).unwrap();
    assert!(file.len().unwrap() > 0);
}

#[test]
fn wrong_degrees_are_found_by_deep_verification() {
    let graph = Graph::random(500, 6, EdgeKind::None, 4001);
    let (stop, budget) = (CancelToken::new(), MemoryBudget::new(ROOM));
    // The sums of all degrees, and of the degrees of a batch, stay the same.
    for (one, other) in [(70, 71), (1, 400)] {
        let disk = disk();
        let stored = graph.store_with(&disk, false, |degrees| {
            degrees[one] += 1;
            let lower = (other..).find(|&v| degrees[v] > 0).unwrap();
            degrees[lower] -= 1;
        });
        assert!(verify(&stored, &budget, &stop, |_| ()).is_ok());
        let found = verify_deep(&stored, &budget, &stop, |_| ()).unwrap_err();
        assert!(
            found.to_string().contains("the degrees of batch"),
            "{found}"
        );
    }
}

#[test]
fn chunk_view_refuses_nonsense() {
    let few = batches(100, 4);
    let chunk = |edges: u32, runs: &[u8], pairs: &[u8]| {
        let bytes = [&edges.to_le_bytes()[..], runs, pairs, &[0; 8]].concat();
        ChunkView::parse(&bytes, &few, 2).map(|view| view.edges())
    };
    // A pair has 4 bits of each end: a byte.
    assert_eq!(chunk(3, &[2, 0, 1, 5, 2], &[1, 0x13, 0x22]).unwrap(), 3);
    assert_eq!(chunk(0, &[0], &[]).unwrap(), 0);
    let wrong: &[(u32, &[u8], &[u8])] = &[
        (3, &[2, 0, 1, 6, 2], &[1, 0x13, 0x22]),
        (3, &[2, 0, 1, 5, 1], &[1, 0x13, 0x22]),
        (4, &[2, 0, 1, 5, 2], &[1, 0x13, 0x22]),
        (3, &[2, 0, 1, 5, 2], &[1, 0x13]),
        (3, &[3, 0, 1, 5, 2, 0, 0], &[1, 0x13, 0x22]),
        (3, &[1, 7, 3], &[1, 0x13, 0x22]),
        (3, &[0x80; 30], &[]),
        // Batch 6 has four vertices.
        (3, &[2, 0, 1, 5, 2], &[1, 0x43, 0x22]),
        (u32::MAX, &[1, 0, 0xff, 0xff, 0xff, 0xff, 0xf], &[1]),
    ];
    for (edges, runs, pairs) in wrong {
        assert!(chunk(*edges, runs, pairs).is_err(), "{runs:?}");
    }
    let last = [&2u32.to_le_bytes()[..], &[1, 6, 2, 0x31, 0x43], &[0; 8]].concat();
    assert!(ChunkView::parse(&last, &few, 2).is_err());
    assert!(ChunkView::parse(&last[..10], &few, 2).is_err());
    assert!(ChunkView::parse(&[], &few, 2).is_err());
}
