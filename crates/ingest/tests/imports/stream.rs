//! Imports in the stream layout hold what a naive importer finds, in any order, on any number of ranks.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::common::{Bench, Look, Memory, naive, random_source};
use graphmill_graph::{EdgeKind, Layout, Order, StoredGraph, VertexId, verify_deep};
use graphmill_ingest::{
    Duplicates, FileSource, Format, Generated, GraphRule, Ids, ImportOptions, IngestError,
    KroneckerLabels, ReadOptions, SelfLoops,
};
use graphmill_storage::{Fault, FaultKind, MemoryBudget, On, SplitMix64};

const GRAPH: &str = "/data/graph";

fn stream() -> ImportOptions {
    ImportOptions {
        layout: Layout::Stream,
        chunk_size: Some(4096),
        ..ImportOptions::new(GRAPH)
    }
}

/// Reads the graph, and checks that its tables agree with its arcs.
fn deep(bench: &Bench) {
    let budget = MemoryBudget::new(256 << 20);
    let graph = StoredGraph::open(&bench.disk, &budget, Path::new(GRAPH)).unwrap();
    assert_eq!(graph.layout(), Layout::Stream);
    verify_deep(&Arc::new(graph), &budget, &bench.stop, |_| {}).unwrap();
}

#[test]
fn stream_imports_hold_the_edges_of_their_input() {
    let looks = [
        Look::Dense,
        Look::Gaps,
        Look::Sparse,
        Look::Huge,
        Look::Words,
        Look::Signed,
        Look::Uuids,
    ];
    for seed in 0..80u64 {
        let mut random = SplitMix64::new(seed);
        let mut below = |end: usize| random.below(end as u64) as usize;
        let weights = [
            EdgeKind::None,
            EdgeKind::F32,
            EdgeKind::F64,
            EdgeKind::Record(3),
            EdgeKind::Record(13),
        ][below(5)];
        let look = looks[seed as usize % looks.len()];
        let edges = [0, 1, 3, 200, 3000, 40_000][below(6)];
        let vertices = 1 + below(300) as u64;
        let mut source = random_source(seed, look, vertices, edges, weights, below(2) == 0);
        if look == Look::Dense && below(2) == 0 {
            // The input is read once.
            source.vertices = Some(vertices + 5);
        }
        let edge_vertices = below(4) == 0;
        let options = ImportOptions {
            directed: below(2) == 0,
            self_loops: [SelfLoops::Keep, SelfLoops::Drop][below(2)],
            reverse: below(2) == 0 && !edge_vertices,
            batch_size: [None, Some(1), Some(2), Some(64), Some(1 << 18)][below(5)],
            edge_vertices,
            ..stream()
        };
        let options = ImportOptions {
            // Each edge is a vertex: of a batch each they would be too many chunks.
            batch_size: if edge_vertices {
                Some(1 << 10)
            } else {
                options.batch_size
            },
            ..options
        };
        let list = random_source(seed + 1000, look, 20, 20, EdgeKind::None, false);
        let list = (below(3) == 0 && source.vertices.is_none()).then_some(&list);
        let expected = naive(&source, list, &options);
        let what = format!("seed {seed}, {options:?}");
        for (threads, budget) in [(1, 256 << 20), (2, 64 << 20), (3, 32 << 20)] {
            let bench = Bench::new(seed);
            let workers = match seed % 2 {
                0 => bench.threads(threads),
                _ => bench.simulated(seed, threads),
            };
            let report = bench.import(&source, list, &options, &workers, budget);
            let report = report.unwrap_or_else(|error| panic!("{what}: {error}"));
            assert!(report.reconciles(), "{report:?}");
            assert_eq!(report.arcs, expected.arcs.len() as u64, "{what}");
            assert_eq!(bench.read(Path::new(GRAPH)), expected, "{what}");
            deep(&bench);
            let beside = bench.disk.list(Path::new("/data")).unwrap();
            assert_eq!(beside, [Path::new(GRAPH)], "temporary files are gone");
        }
        for ranks in [2, 4] {
            let bench = Bench::new(seed);
            let machines: Vec<_> = (0..ranks).map(|rank| (1 + rank % 2, 64 << 20)).collect();
            for report in bench.import_on_ranks(&source, list, &options, &machines) {
                let report = report.unwrap_or_else(|error| panic!("{what}: {error}"));
                assert!(report.reconciles(), "{report:?}");
                assert_eq!(report.arcs, expected.arcs.len() as u64, "{what}");
            }
            assert_eq!(
                bench.read(Path::new(GRAPH)),
                expected,
                "{what}, {ranks} ranks"
            );
            deep(&bench);
        }
    }
}

#[test]
fn stream_import_counts_degrees_again_where_memory_is_short() {
    let vertices = 1 << 20;
    let mut source = random_source(5, Look::Dense, vertices, 30_000, EdgeKind::None, true);
    source.vertices = Some(vertices);
    let options = ImportOptions {
        batch_size: Some(1 << 19),
        chunk_size: Some(64 << 10),
        reverse: true,
        ..stream()
    };
    let expected = naive(&source, None, &options);
    // The degrees of one side take 4 MiB, and a batch has 4 MiB of them while they are written.
    let mut tight = 0;
    for mib in (4..24).rev() {
        let bench = Bench::new(1);
        match bench.import(&source, None, &options, &bench.threads(1), mib << 20) {
            Ok(_) => {
                assert_eq!(bench.read(Path::new(GRAPH)), expected, "{mib} MiB");
                tight = mib;
            }
            Err(IngestError::TooLittleMemory { least, .. }) => {
                assert!(least <= (mib + 1) << 20, "{mib} MiB: {least}");
                let bench = Bench::new(1);
                let again = bench.import(&source, None, &options, &bench.threads(1), least);
                again.unwrap_or_else(|error| panic!("{least}: {error}"));
                break;
            }
            Err(error) => panic!("{mib} MiB: {error}"),
        }
    }
    assert!((5..14).contains(&tight), "{tight} MiB");
}

#[test]
fn stream_import_spreads_chunks_over_hosts() {
    let source = random_source(3, Look::Words, 200, 30_000, EdgeKind::F32, false);
    let options = ImportOptions {
        reverse: true,
        ..stream()
    };
    let hosts = [Bench::new(1), Bench::new(2), Bench::new(3)];
    let ranks: Vec<_> = hosts.iter().map(|host| (host, (2, 64 << 20))).collect();
    for report in Bench::import_on_hosts(&source, None, &options, &ranks) {
        report.unwrap();
    }
    let budget = MemoryBudget::new(256 << 20);
    let mut found = 0;
    for (rank, host) in hosts.iter().enumerate() {
        assert!(StoredGraph::open(&host.disk, &budget, Path::new(GRAPH)).is_err());
        let graph = StoredGraph::open_in_part(&host.disk, &budget, Path::new(GRAPH)).unwrap();
        let set = graph.chunks().unwrap();
        assert_eq!(set.files(), 3);
        for file in 0..3 {
            assert_eq!(set.has_file(file), file == rank);
        }
        let here = set.all().iter().filter(|chunk| chunk.file() == rank);
        let here: u64 = here.map(|chunk| chunk.edges() as u64).sum();
        assert!(here > 3000, "{here} arcs on host {rank}");
        found += here;
        assert_eq!(graph.arcs(), 30_000);
    }
    assert_eq!(found, 30_000);
}

#[test]
fn stream_import_resumes_after_a_power_cut() {
    for (vertices, look) in [
        (None, Look::Sparse),
        (Some(400), Look::Dense),
        (None, Look::Words),
    ] {
        let mut source = random_source(9, look, 300, 4000, EdgeKind::F64, false);
        source.vertices = vertices;
        let options = ImportOptions {
            keep_every: Some(Duration::ZERO),
            batch_size: Some(64),
            reverse: true,
            ..stream()
        };
        let expected = naive(&source, None, &options);
        let fresh = Bench::new(7);
        fresh.disk.sync_dir(Path::new("/")).unwrap();
        let import =
            |bench: &Bench| bench.import(&source, None, &options, &bench.simulated(1, 2), 16 << 20);
        import(&fresh).unwrap();
        let operations = fresh.sim.operations();
        for nth in (1..operations).step_by(1 + operations as usize / 40) {
            let bench = Bench::new(nth);
            bench.disk.sync_dir(Path::new("/")).unwrap();
            bench.sim.inject(Fault {
                kind: FaultKind::PowerCut,
                on: On::Any,
                nth,
                for_good: true,
            });
            let _ = import(&bench);
            bench.sim.heal();
            let sim = bench.sim.after_power_cut(nth);
            let again = Bench {
                disk: Arc::new(sim.clone()),
                sim,
                stop: Default::default(),
            };
            if !again
                .disk
                .exists(&Path::new(GRAPH).join("graph.json"))
                .unwrap()
            {
                import(&again).unwrap_or_else(|error| panic!("operation {nth}: {error}"));
            }
            assert_eq!(again.read(Path::new(GRAPH)), expected, "operation {nth}");
            deep(&again);
        }
    }
}

#[test]
fn stream_layout_refuses_options_that_need_order() {
    let bench = Bench::new(1);
    let source = random_source(1, Look::Dense, 10, 10, EdgeKind::F32, false);
    let refused = |options: ImportOptions, text: &str| {
        let workers = bench.threads(1);
        let error = bench.import(&source, None, &options, &workers, 64 << 20);
        let error = error.unwrap_err().to_string();
        assert!(error.contains(text), "{error}");
        assert!(bench.disk.list(Path::new("/data")).unwrap().is_empty());
    };
    for (duplicates, name) in [
        (
            Duplicates::First,
            "--duplicates first conflicts with --layout stream",
        ),
        (Duplicates::Sum, "--duplicates sum conflicts"),
        (Duplicates::Min, "--duplicates min conflicts"),
        (Duplicates::Max, "--duplicates max conflicts"),
    ] {
        refused(
            ImportOptions {
                duplicates,
                ..stream()
            },
            name,
        );
    }
    let order = Order::Degree;
    refused(
        ImportOptions { order, ..stream() },
        "--order degree conflicts",
    );
    refused(
        ImportOptions {
            csr_ratio: 3,
            ..stream()
        },
        "--csr-ratio conflicts",
    );
    refused(
        ImportOptions {
            layout: Layout::Column,
            ..stream()
        },
        "--chunk-size requires --layout stream",
    );
    for (size, text) in [
        (3, "use 2 or 4"),
        (1000, "use 512 or 1024"),
        (0, "use 1"),
        (1 << 21, "use 1048576"),
    ] {
        refused(
            ImportOptions {
                batch_size: Some(size),
                ..stream()
            },
            text,
        );
    }
    for size in [0, 4095, (1 << 30) + 1] {
        refused(
            ImportOptions {
                chunk_size: Some(size),
                ..stream()
            },
            "at least 4096",
        );
    }
}

#[test]
fn vertices_below_refuses_other_ids_with_their_place() {
    let bench = Bench::new(1);
    let budget = MemoryBudget::new(64 << 20);
    let open = |name: &str, bytes: &[u8], below: u64, ids: Option<Ids>| {
        let path = PathBuf::from("/data").join(name);
        bench.disk.write_small(&path, bytes).unwrap();
        let options = ReadOptions {
            vertices_below: Some(below),
            format: if name.ends_with("u32") {
                Format::RawU32
            } else {
                Format::Auto
            },
            ids,
            ..ReadOptions::default()
        };
        FileSource::open(&bench.disk, &budget, &[path], &options, &bench.stop)
    };
    let pairs: Vec<u8> = [0u32, 3, 3, 2, 1, 4, 0, 0]
        .iter()
        .flat_map(|id| id.to_le_bytes())
        .collect();
    for layout in [Layout::Stream, Layout::Column] {
        let options = ImportOptions {
            layout,
            chunk_size: None,
            ..stream()
        };
        let import = |source: &FileSource| {
            let done = bench.import(source, None, &options, &bench.threads(2), 128 << 20);
            let graph = done.map(|report| (report, bench.read(Path::new(GRAPH))));
            let _ = bench.disk.remove_dir_all(Path::new(GRAPH));
            graph
        };
        let (report, plain) = import(&open("a.u32", &pairs, 9, None).unwrap()).unwrap();
        assert_eq!((report.vertices, report.edges, plain.ids.len()), (9, 4, 9));
        let steps: Vec<_> = report.steps.iter().map(|step| step.0).collect();
        if layout == Layout::Stream {
            assert_eq!(steps, ["bin", "finish"], "it is read once");
        }
        let error = import(&open("a.u32", &pairs, 4, None).unwrap())
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("byte 16 has id 4") && error.contains("a.u32"),
            "{error}"
        );
        let text = b"# edges\n0 1\n1 3\n3 0\n";
        assert_eq!(
            import(&open("b.txt", text, 4, None).unwrap())
                .unwrap()
                .0
                .vertices,
            4
        );
        let error = import(&open("b.txt", text, 3, None).unwrap())
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("line 3") && error.contains("column 2 is not below 3"),
            "{error}"
        );
        // Of long files, most lines take a shorter way.
        let lines =
            (0..4000).map(|i| format!("{} {}\n", i % 90, if i == 1999 { 77 } else { i % 70 }));
        let text: String = lines.collect();
        let long = open("long.txt", text.as_bytes(), 90, None).unwrap();
        assert_eq!(import(&long).unwrap().0.vertices, 90);
        let long = open(
            "long.txt",
            text.replace(" 77\n", " 97\n").as_bytes(),
            90,
            None,
        )
        .unwrap();
        let error = import(&long).unwrap_err().to_string();
        assert!(
            error.contains("line 2000") && error.contains("column 2 is not below 90"),
            "{error}"
        );
        let error = import(&open("c.txt", b"0 1\n-1 2\n", 3, None).unwrap()).unwrap_err();
        assert!(error.to_string().contains("line 2"), "{error}");
        let error = import(&open("d.txt", b"0 1\nx 2\n", 3, None).unwrap()).unwrap_err();
        assert!(error.to_string().contains("line 2"), "{error}");
    }
    let text = open("e.txt", b"0 1\n", 3, Some(Ids::Text)).unwrap_err();
    assert!(
        text.to_string()
            .contains("--vertices-below requires integer ids")
    );
}

#[test]
fn rule_is_stored_in_chunks_at_once() {
    let bench = Bench::new(1);
    let rule = GraphRule::Kronecker {
        scale: 10,
        degree: 8,
        labels: KroneckerLabels::Permuted,
    };
    let graph = Generated::new(rule, 4, EdgeKind::F32).unwrap();
    let done = bench
        .generate(&graph, &stream(), &bench.threads(2), 64 << 20)
        .unwrap();
    assert_eq!((done.vertices, done.arcs), (1024, 8192));
    deep(&bench);
}

#[test]
fn stream_import_of_far_ids_and_a_star() {
    let edge = |from: u64, to: u64| (VertexId::Integer(from), VertexId::Integer(to), 1.0);
    let star: Vec<_> = (0..5000).map(|i| edge(1 << 40, (i % 9) << 33)).collect();
    let source = Memory {
        pieces: vec![star.clone(), vec![edge(7, 7); 3]],
        ids: Ids::Integer,
        weights: EdgeKind::None,
        vertices: None,
        rereads_fast: false,
    };
    for directed in [true, false] {
        let options = ImportOptions {
            directed,
            ..stream()
        };
        let bench = Bench::new(1);
        bench
            .import(&source, None, &options, &bench.threads(2), 64 << 20)
            .unwrap();
        assert_eq!(bench.read(Path::new(GRAPH)), naive(&source, None, &options));
        deep(&bench);
    }
}
