//! What vertex programs take of memory, and pay for; what they do where it is short.

use super::*;

#[test]
fn sends_beyond_memory_spill_to_disk() {
    const EACH: u64 = 3000;
    let disk = open_disk(IoChoice::Auto).unwrap();
    let graph = Plain::directed("random", 2000, random(5, 2000, 3000));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("graph");
    graph.store(&disk, &path, 300, 500, false);
    let letters = |memory: u64, threads: usize| {
        let scratch = tempfile::tempdir().unwrap();
        let mode = mode(EdgeResidency::Auto, threads, Bytes(memory));
        let mut engine = engine(&path, scratch.path(), mode, memory).unwrap();
        let values = engine.vertex_array::<u64>("letters").unwrap();
        engine
            .pregel(Letters { each: EACH }, values, PregelMode::Pull, None)
            .unwrap();
        let mut sends = engine
            .metrics()
            .passes
            .iter()
            .filter(|pass| pass.mode == How::Send);
        let first = sends.next().unwrap();
        assert_eq!(first.messages, EACH * graph.vertices);
        (all(&engine, values), first.bytes_written)
    };
    // 72 MB of letters.
    let (expected, written) = letters(1 << 30, 2);
    assert_eq!(written, 0);
    for threads in [1, 3] {
        let (found, written) = letters(24 << 20, threads);
        assert!(found == expected, "{threads} threads");
        assert!(written > 48 << 20, "{written} bytes went to the disk");
    }
}

#[test]
fn send_addresses_are_charged_to_the_budget() {
    const EACH: u64 = 300;
    let disk = open_disk(IoChoice::Auto).unwrap();
    let graph = Plain::directed("many batches", 2000, [(0, 1, 1.0)]);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("graph");
    graph.store(&disk, &path, 1, 500, false);
    let fits = |more| {
        run(
            &path,
            mode(EdgeResidency::Auto, 1, LeastAnd(more)),
            |engine| {
                let values = engine.vertex_array::<u64>("letters")?;
                let letters = Letters { each: EACH };
                Ok(engine
                    .pregel(letters, values, PregelMode::Pull, None)
                    .is_ok())
            },
        )
    };
    // Each vertex is a batch, and sends to this number of others.
    let others: BTreeSet<u64> = (0..EACH).map(|i| address(0, i, graph.vertices)).collect();
    let said = graph.vertices * others.len() as u64 * 8;
    assert!(!fits(said / 2) && fits(4 * said));
}

#[test]
fn halted_vertices_cost_nothing() {
    const VERTICES: u64 = 20_000;
    let disk = open_disk(IoChoice::Auto).unwrap();
    let path = (1..300).map(|v| (v - 1, v, 1.0));
    let others = random(7, VERTICES - 300, 60_000).into_iter();
    let others = others.map(|(u, v, weight)| (u + 300, v + 300, weight));
    let graph = Plain::directed("a path and others", VERTICES, path.chain(others));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("graph");
    graph.store(&disk, &path, 2000, 500, false);
    let edges = [EdgeResidency::Auto, EdgeResidency::Disk];
    for (version, edges) in VERSIONS.iter().flat_map(|v| edges.map(|edges| (*v, edges))) {
        let mode = mode(edges, 2, Bytes(0));
        let mut engine = engine(&path, folder.path(), mode, 1 << 28).unwrap();
        let values = engine.vertex_array::<f64>("values").unwrap();
        let supersteps = Some(100);
        let last = engine
            .pregel(Paths { source: 0 }, values, version, supersteps)
            .unwrap();
        assert_eq!(last, 1, "one vertex came closer in the last superstep");
        let passes = &engine.metrics().passes;
        let late: Vec<_> = passes.iter().skip(10).collect();
        let is_small = |pass: &&graphmill_engine::PassMetrics| pass.active <= 1 && pass.edges <= 1;
        assert!(
            late.len() >= 90 && late.iter().all(is_small),
            "{version:?}, {edges:?}"
        );
        let is_known = |pass: &&graphmill_engine::PassMetrics| match version {
            PregelMode::Pull => matches!(pass.mode, How::Sparse | How::Send),
            PregelMode::Push => matches!(pass.mode, How::Sparse | How::Push),
        };
        assert!(late.iter().all(is_known), "{version:?}, {edges:?}");
    }
}

#[test]
fn own_mailboxes_need_lists_in_memory() {
    const VERTICES: u64 = 200_000;
    let disk = open_disk(IoChoice::Auto).unwrap();
    let graph = Plain::directed("sparse", VERTICES, random(6, VERTICES, 300_000));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("graph");
    graph.store(&disk, &path, 20_000, u64::MAX, false);
    let paths = |memory: u64, edges| {
        let mode = mode(edges, 4, Bytes(memory));
        let mut engine = engine(&path, folder.path(), mode, memory)?;
        let values = engine.vertex_array::<f64>("values")?;
        engine.pregel(Paths { source: 0 }, values, PregelMode::Push, Some(3))
    };
    // What an engine asks for, and three sets of mailboxes with the values, 7 MB; six sets more would be 11 MB.
    assert_eq!(paths(33 << 20, EdgeResidency::Disk).unwrap(), 2);
    assert_eq!(paths(64 << 20, EdgeResidency::Memory).unwrap(), 2);
}

#[test]
fn more_memory_never_refuses_a_push() {
    let disk = open_disk(IoChoice::Auto).unwrap();
    let graph = Plain::directed("sparse", 100_000, random(6, 100_000, 20_000));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("graph");
    graph.store(&disk, &path, 1 << 20, u64::MAX, false);
    let fits = |memory: u64| {
        let mode = mode(EdgeResidency::Auto, 1, Bytes(memory));
        let mut engine = engine(&path, folder.path(), mode, memory)?;
        let values = engine.vertex_array::<f64>("values")?;
        engine.pregel(Paths { source: 0 }, values, PregelMode::Push, Some(1))
    };
    let enough: Vec<u64> = (10..80)
        .map(|quarter| quarter << 18)
        .filter(|memory| fits(*memory).is_ok())
        .collect();
    let mut pairs = enough.iter().zip(&enough[1..]);
    assert!(
        pairs.all(|(less, more)| more - less == 1 << 18),
        "{enough:?}"
    );
    assert_eq!(enough.last(), Some(&(79 << 18)));
}
