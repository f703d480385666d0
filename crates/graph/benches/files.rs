//! How fast a graph is written, streamed and asked: figures for docs/internals/performance.md. Run: `cargo bench --bench files`.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use graphmill_graph::{
    Batches, EdgeKind, Extent, ExtentReader, FanoutTable, FileKind, FileSide, FinishInfo,
    GraphSpec, GraphWriter, IdCursor, IdKind, IdsSummary, IdsWriter, PageCache, StoredGraph,
    verify,
};
use graphmill_storage::{
    CancelToken, Clock, IoChoice, MemoryBudget, SplitMix64, SystemClock, Tiers, open_disk,
};

const SCALE: u32 = 22;
const BATCH_BITS: u32 = 19;

fn main() {
    let clock = SystemClock::default();
    let dir = std::env::var_os("BENCH_DIR").map_or_else(std::env::temp_dir, PathBuf::from);
    let path = dir.join(format!("graphmill-bench-{}", std::process::id()));
    let disk = open_disk(IoChoice::Auto).expect("a disk");
    let budget = MemoryBudget::new(2 << 30);
    let batches = 1usize << (SCALE - BATCH_BITS);
    let shape = GraphSpec {
        chunk_bytes: None,
        batches: Batches::new((0..=batches as u64).map(|b| b << BATCH_BITS).collect())
            .expect("cuts"),
        edge: EdgeKind::None,
        directed: true,
        strip_edges_max: 1 << 24,
        csr_ratio: 32,
        files: (0..batches).map(|b| b..b + 1).collect(),
        reverse_files: None,
    };
    // One cell's keys serve for all: about four edges a source.
    let mut random = SplitMix64::new(1);
    let mut keys: Vec<u64> = (0..1 << (BATCH_BITS + 1))
        .map(|_| {
            (random.below(1 << BATCH_BITS) & random.next_u64()) << 32
                | random.below(1 << BATCH_BITS)
        })
        .collect();
    keys.sort_unstable();
    let edges = (keys.len() * batches * batches) as u64;
    let vertices = shape.vertices();
    let report = |what: &str, amount: f64, unit: &str, took: Duration| {
        println!(
            "{what:34} {:8.3} s   {:8.1} {unit}/s",
            took.as_secs_f64(),
            amount / took.as_secs_f64()
        );
    };

    let writer = GraphWriter::create(disk.clone(), budget.clone(), &path, shape).expect("a writer");
    let begin = clock.now();
    for file in 0..batches {
        let mut columns = writer.column_file(file).expect("a column file");
        for source in 0..batches {
            keys.chunks(4096)
                .for_each(|run| columns.edges(file, source, run, &[]).expect("edges"));
        }
        columns.finish().expect("a finished file");
    }
    report(
        "write column files, one thread",
        edges as f64 / 1e6,
        "M edges",
        clock.now() - begin,
    );
    let begin = clock.now();
    let mut ids = IdsWriter::create(&disk, &budget, &path, IdKind::Integer).expect("ids");
    (0..vertices).for_each(|v| ids.push_integer(3 * v).expect("an id"));
    let ids = ids.finish().expect("ids");
    report(
        "write ids",
        vertices as f64 / 1e6,
        "M ids",
        clock.now() - begin,
    );
    let begin = clock.now();
    let facts = FinishInfo {
        ids,
        edge_vertices: None,
        input_edges: edges,
        dropped: BTreeMap::new(),
        options: BTreeMap::new(),
        program: "bench".into(),
        edge_fields: Default::default(),
    };
    assert_ne!(facts.ids, IdsSummary::dense(vertices));
    writer.finish(facts).expect("a graph");
    report(
        "degrees, fan-out, graph.json",
        edges as f64 / 1e6,
        "M edges",
        clock.now() - begin,
    );
    println!("peak budget {} MiB", budget.peak() >> 20);

    let begin = clock.now();
    let graph = Arc::new(StoredGraph::open(&disk, &budget, &path).expect("open"));
    report("open", 1.0, "graphs", clock.now() - begin);
    let set = graph.forward();
    let kinds = [
        FileKind::Data,
        FileKind::Index,
        FileKind::Bitmaps,
        FileKind::Directory,
        FileKind::Degrees,
        FileKind::Fanout,
    ];
    for kind in kinds {
        println!(
            "{kind:?}: {:.3} bytes an edge",
            set.bytes(kind) as f64 / edges as f64
        );
    }
    for depth in [2, 4, 8] {
        let mut reader = ExtentReader::new(&graph, &budget, 1 << 20, depth).expect("a reader");
        let mut queue = disk.queue(16).expect("a queue");
        let extents: Vec<Extent> = (0..batches)
            .map(|d| {
                let cells = set.column(d).cells();
                let mut extent = set.data_extent(d, &cells[0]);
                extent.bytes.end = cells[cells.len() - 1].data().end;
                extent
            })
            .collect();
        let begin = clock.now();
        reader.start(extents).expect("extents");
        let mut bytes = 0;
        while !reader.is_done() {
            reader.pump(&mut *queue).expect("reads");
            while let Some(now) = reader.front().expect("sound pages") {
                let now = now.len();
                bytes += now;
                reader.consume(now);
                while let Some(done) = queue.poll() {
                    reader.accept(done).expect("a read");
                }
                reader.pump(&mut *queue).expect("reads");
            }
            if let Some(done) = queue.wait() {
                reader.accept(done).expect("a read");
            }
        }
        report(
            &format!("stream data, depth {depth}"),
            bytes as f64 / 1e6,
            "MB",
            clock.now() - begin,
        );
    }
    let begin = clock.now();
    let seen = verify(&graph, &budget, &CancelToken::new(), |_| {}).expect("sound");
    report("verify", seen.bytes as f64 / 1e6, "MB", clock.now() - begin);

    let mut reader = PageCache::new(&graph, &budget, 64).expect("a reader");
    let begin = clock.now();
    let mut out = vec![0u32; 1 << BATCH_BITS];
    for batch in 0..batches {
        graph
            .degrees(set, &mut reader, batch, &mut out)
            .expect("degrees");
    }
    report(
        "degrees",
        vertices as f64 / 1e6,
        "M vertices",
        clock.now() - begin,
    );
    let begin = clock.now();
    let table = FanoutTable::load(
        &graph,
        FileSide::Forward,
        &mut reader,
        (&Tiers::default(), &budget),
        0..vertices,
    )
    .expect("a table");
    report(
        "load fan-out",
        set.bytes(FileKind::Fanout) as f64 / 1e6,
        "MB",
        clock.now() - begin,
    );
    let begin = clock.now();
    let mut found = 0;
    for v in 0..vertices {
        table.each(v, |_| found += 1).expect("a list");
    }
    report(
        "fan-out, in order, resident",
        vertices as f64 / 1e6,
        "M vertices",
        clock.now() - begin,
    );
    let begin = clock.now();
    for _ in 0..1 << 20 {
        table
            .each(random.below(vertices), |_| found += 1)
            .expect("a list");
    }
    report(
        "fan-out, random, resident",
        1.05,
        "M vertices",
        clock.now() - begin,
    );
    println!("{found} batches");
    let begin = clock.now();
    let mut cursor = IdCursor::new(&graph, &budget, 0).expect("a cursor");
    let mut read = 0u64;
    while cursor.next().expect("an id").is_some() {
        read += 1;
    }
    report(
        "ids in order",
        read as f64 / 1e6,
        "M ids",
        clock.now() - begin,
    );
    drop((table, reader, cursor, graph));
    disk.remove_dir_all(&path).expect("removed");
}
