//! Passes over unsorted chunks give the results of the column layout, with any place of updates and any helpers.

use std::path::Path;
use std::sync::Arc;

use graphmill_engine::{
    Activate, ApplyTo, ComponentsMethod, Direction, EdgeProgram, Engine, EngineError,
    MonotoneProgram, OutDegree, Read, StealBias, UpdateResidency, VertexArray, Write,
};
use graphmill_graph::{
    Batches, ChunkPlace, ChunkShape, ChunkWriter, EdgeKind, FileSide, FinishInfo, GraphSpec,
    GraphWriter, IdsSummary, StoreHere,
};
use graphmill_storage::{Disk, IoChoice, MemoryBudget, open_disk};

use crate::common::{Memory, Ranks};
use crate::{Mode, Plain, all, random, run};

/// Adds up hashes of senders and weights: each message counts, once.
struct Hashes;

impl EdgeProgram for Hashes {
    type SignalRows = OutDegree;
    type ApplyRows = Write<u64>;
    type Edge = f64;
    type Message = u64;
    type EdgeMessage = u64;
    type Accumulator = u64;
    type Sum = u64;
    const IDENTITY: u64 = 0;
    const ORDER_INDEPENDENT: bool = true;

    fn signal(&self, v: u64, degree: u64) -> Option<u64> {
        (v % 7 != 3).then_some((v + 1) * 31 + degree)
    }
    fn on_edge(&self, message: u64, weight: f64) -> u64 {
        message.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (weight as u64 + 1) << 40 | 1
    }
    fn on_arc(&self, from: u64, to: u64, message: u64, weight: f64) -> u64 {
        self.on_edge(message, weight) ^ (from << 20) ^ (to << 1)
    }
    fn fold(&self, sum: &mut u64, carried: u64) {
        *sum = sum.wrapping_add(carried);
    }
    fn merge(&self, sum: &mut u64, later: u64) {
        *sum = sum.wrapping_add(later);
    }
    fn apply(&self, v: u64, row: &mut u64, sum: u64) -> (u64, Activate) {
        *row = row.wrapping_mul(3).wrapping_add(sum);
        let activate = if (*row + v).is_multiple_of(3) {
            Activate::No
        } else {
            Activate::Yes
        };
        (1, activate)
    }
}

/// Adds up shares of ranks, of every vertex.
struct Shares;

impl EdgeProgram for Shares {
    type SignalRows = (Read<f64>, OutDegree);
    type ApplyRows = Write<f64>;
    type Edge = ();
    type Message = f64;
    type EdgeMessage = f64;
    type Accumulator = f64;
    type Sum = f64;
    const IDENTITY: f64 = -0.0;
    const APPLY_TO: ApplyTo = ApplyTo::All;

    fn signal(&self, _: u64, (rank, degree): (&f64, u64)) -> Option<f64> {
        (degree > 0).then(|| rank / degree as f64)
    }
    fn on_edge(&self, message: f64, (): ()) -> f64 {
        message
    }
    fn fold(&self, sum: &mut f64, carried: f64) {
        *sum += carried;
    }
    fn merge(&self, sum: &mut f64, later: f64) {
        *sum += later;
    }
    fn apply(&self, _: u64, rank: &mut f64, sum: f64) -> (f64, Activate) {
        *rank = 0.15 + 0.85 * sum;
        (*rank, Activate::Yes)
    }
}

#[derive(Clone, Copy)]
struct Distances;

impl MonotoneProgram for Distances {
    type Edge = f64;
    type Label = u64;
    fn on_edge(&self, label: u64, weight: f64) -> u64 {
        label.saturating_add(1 + weight as u64)
    }
}

/// Everything that a graph says, in both directions.
type Said = (Vec<u64>, Vec<u64>, Vec<u64>, Vec<u32>, [u64; 3]);

fn hashes(engine: &mut Engine) -> Result<([u64; 3], VertexArray<u64>), EngineError> {
    let row = engine.vertex_array::<u64>("hashes")?;
    let mut active = engine.full_set()?;
    let mut sums = [0; 3];
    for (pass, sum) in sums.iter_mut().enumerate() {
        let direction = [Direction::Forward, Direction::Backward][pass % 2];
        (*sum, active) =
            engine.process_edges(&Hashes, OutDegree, row.write(), &active, direction)?;
    }
    Ok((sums, row))
}

fn exact(engine: &mut Engine) -> Result<Said, EngineError> {
    let (sums, hashes) = hashes(engine)?;
    let mut distances = Vec::new();
    for direction in [Direction::Forward, Direction::Backward] {
        let labels = engine.vertex_array::<u64>(&format!("{direction:?}"))?;
        let first = engine.select_vertices(labels.write(), None, |v, label| {
            *label = if v == 0 { 0 } else { u64::MAX };
            v == 0
        })?;
        engine.run_to_fixpoint(&Distances, labels, first, direction)?;
        distances.push(labels);
    }
    let components = engine.vertex_array::<u32>("components")?;
    let united = engine.connected_components(components, ComponentsMethod::Auto)?;
    let hashes = all(engine, hashes);
    let [forward, backward] = [distances[0], distances[1]].map(|labels| all(engine, labels));
    let components = match united {
        true => all(engine, components),
        false => Vec::new(),
    };
    Ok((hashes, forward, backward, components, sums))
}

fn ranks(engine: &mut Engine) -> Result<Vec<f64>, EngineError> {
    let rank = engine.vertex_array::<f64>("ranks")?;
    engine.process_vertices(rank.write(), None, |_, rank| *rank = 1.0)?;
    let active = engine.full_set()?;
    for _ in 0..3 {
        let rows = (rank.read(), OutDegree);
        engine.process_edges(&Shares, rows, rank.write(), &active, Direction::Forward)?;
    }
    Ok(all(engine, rank))
}

fn graphs() -> Vec<Plain> {
    let star = (1..600).map(|v| (0, v, (v % 9) as f64));
    vec![
        Plain::directed("nothing", 0, []),
        Plain::directed("one vertex", 1, []),
        Plain::directed("a loop", 1, [(0, 0, 2.0), (0, 0, 2.0)]),
        Plain::directed("a path", 40, (1..40).map(|v| (v - 1, v, 1.0))),
        Plain::directed("a star", 600, star),
        Plain::directed("random", 1000, random(1, 1000, 9000)),
        Plain::undirected("undirected", 500, random(2, 500, 3000)),
    ]
}

fn modes() -> Vec<Mode> {
    let usual = Mode::USUAL;
    let mut modes = vec![usual];
    for updates in [UpdateResidency::Disk, UpdateResidency::Memory] {
        for threads in [1, 3] {
            modes.push(Mode {
                updates,
                threads,
                memory: Memory::Bytes(64 << 20),
                ..usual
            });
        }
    }
    let small = Memory::LeastAnd(0);
    modes.push(Mode {
        memory: small,
        threads: 1,
        ..usual
    });
    for (count, updates, steal) in [
        (2, UpdateResidency::Auto, "1"),
        (4, UpdateResidency::Disk, "1"),
        (4, UpdateResidency::Disk, "inf"),
        (3, UpdateResidency::Memory, "inf"),
        (3, UpdateResidency::Disk, "0"),
    ] {
        modes.push(Mode {
            updates,
            steal: steal.parse::<StealBias>().unwrap(),
            ranks: Ranks::Local(count),
            ..usual
        });
    }
    modes.extend([1, 2, 3].map(|seed| Mode {
        updates: UpdateResidency::Disk,
        steal: "inf".parse().unwrap(),
        ranks: Ranks::Simulated(3, seed),
        threads: 1,
        ..usual
    }));
    modes
}

/// Stores the graph in the stream layout, in batches of `1 << bits` vertices.
fn store_chunks(
    graph: &Plain,
    disk: &Arc<dyn Disk>,
    path: &Path,
    bits: u32,
    chunk_bytes: usize,
    reverse: bool,
) {
    let budget = MemoryBudget::new(1 << 30);
    let cuts = (0..graph.vertices).step_by(1 << bits);
    let batches = Batches::new(cuts.chain([graph.vertices]).collect()).unwrap();
    let edge = EdgeKind::F32;
    let spec = GraphSpec {
        batches: batches.clone(),
        edge,
        directed: !graph.symmetric,
        strip_edges_max: 1,
        csr_ratio: 0,
        files: Vec::new(),
        reverse_files: reverse.then(Vec::new),
        chunk_bytes: Some(chunk_bytes),
    };
    let writer = GraphWriter::create(disk.clone(), budget.clone(), path, spec).unwrap();
    let place = ChunkPlace {
        disk,
        budget: &budget,
        folder: path,
        graph_id: writer.graph_id(),
    };
    let sides = [FileSide::Forward, FileSide::Reverse];
    for side in &sides[..1 + usize::from(reverse)] {
        let shape = ChunkShape {
            batches: batches.clone(),
            edge,
            chunk_bytes,
            side: *side,
            file: 0,
        };
        let chunks = ChunkWriter::create(&place, shape)
            .unwrap()
            .counting()
            .unwrap();
        let mut bins = chunks.bins(StoreHere).unwrap();
        for (source, destination, weight) in &graph.arcs {
            let mut bytes = [0; 16];
            bytes[..4].copy_from_slice(&(*weight as f32).to_le_bytes());
            let ends = match side {
                FileSide::Forward => [*source, *destination],
                FileSide::Reverse => [*destination, *source],
            };
            bins.push(ends[0], ends[1], u128::from_le_bytes(bytes))
                .unwrap();
        }
        bins.finish().unwrap();
        chunks.flush(&StoreHere).unwrap();
        let (file, counted) = chunks.finish().unwrap();
        writer.take_chunks(file);
        let mut degrees = writer.degrees(*side).unwrap();
        for batch in 0..batches.len() {
            let mut of_batch = vec![0; batches.span(batch) as usize];
            counted.add(batch, &mut of_batch);
            degrees.push(&of_batch).unwrap();
        }
        degrees.finish(graph.arcs.len() as u64).unwrap();
    }
    let facts = FinishInfo {
        ids: IdsSummary::dense(graph.vertices),
        edge_vertices: None,
        input_edges: graph.arcs.len() as u64,
        dropped: Default::default(),
        options: Default::default(),
        program: "a test".into(),
        edge_fields: Default::default(),
    };
    writer.finish(facts).unwrap();
}

#[test]
fn chunks_give_what_columns_give() {
    let disk = open_disk(IoChoice::Auto).unwrap();
    for graph in graphs() {
        let folder = tempfile::tempdir().unwrap();
        let columns = folder.path().join("columns");
        graph.store(&disk, &columns, 256, 1 << 20, false);
        let usual = Mode::USUAL;
        let (expected, of_ranks) = (run(&columns, usual, exact), run(&columns, usual, ranks));
        for (bits, chunk_bytes, reverse) in [(8, 4096, false), (6, 64 << 10, true)] {
            let chunks = folder.path().join(format!("chunks{bits}"));
            store_chunks(&graph, &disk, &chunks, bits, chunk_bytes, reverse);
            for mode in modes() {
                let mut said = run(&chunks, mode, exact);
                if said.3.is_empty() && !expected.3.is_empty() {
                    // The labels of components did not fit in memory.
                    assert!(matches!(mode.memory, Memory::LeastAnd(_)));
                    said.3.clone_from(&expected.3);
                }
                assert!(said == expected, "{} {bits} {mode:?}", graph.name);
                let said = run(&chunks, mode, ranks);
                for (one, other) in said.iter().zip(&of_ranks) {
                    assert!(
                        (one - other).abs() <= 1e-9 * other,
                        "{} {mode:?}",
                        graph.name
                    );
                }
                assert_eq!(said.len(), of_ranks.len());
            }
        }
    }
}
