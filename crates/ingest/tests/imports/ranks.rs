//! Several ranks that import together make the graph that one makes, byte for byte, whatever each of them has of threads and memory.

use std::path::Path;

use crate::common::{Bench, Look, random_source};
use graphmill_fabric::FabricError;
use graphmill_graph::{EdgeKind, Order};
use graphmill_ingest::{Duplicates, ImportOptions, IngestError, SelfLoops};
use graphmill_storage::SplitMix64;

const GRAPH: &str = "/data/graph";

#[test]
fn ranks_import_the_graph_of_one() {
    let looks = [
        Look::Dense,
        Look::Gaps,
        Look::Sparse,
        Look::Huge,
        Look::Words,
        Look::Signed,
        Look::Uuids,
    ];
    let duplicates = [
        Duplicates::Keep,
        Duplicates::First,
        Duplicates::Sum,
        Duplicates::Min,
        Duplicates::Max,
    ];
    let sizes = [None, Some(1), Some(7), Some(64)];
    for seed in 0..60u64 {
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
        // One in some has nothing, or less than a piece for each rank.
        let edges = [0, 3, 200, 3000, 40_000][below(5)];
        let vertices = 1 + below(300) as u64;
        let source = random_source(seed, look, vertices, edges, weights, below(2) == 0);
        let options = ImportOptions {
            directed: below(2) == 0,
            duplicates: duplicates[below(if weights.is_record() { 2 } else { 5 })],
            self_loops: [SelfLoops::Keep, SelfLoops::Drop][below(2)],
            reverse: below(2) == 0,
            batch_size: sizes[below(4)],
            order: [Order::Id, Order::Degree][below(2)],
            ..ImportOptions::new(GRAPH)
        };
        let options = match seed % 4 {
            3 => ImportOptions {
                duplicates: Duplicates::Keep,
                reverse: false,
                order: Order::Id,
                edge_vertices: true,
                ..options
            },
            _ => options,
        };
        let list = random_source(seed + 1000, look, 20, 20, EdgeKind::None, false);
        let list = (below(3) == 0).then_some(&list);
        let one = Bench::new(seed);
        let expected = one.import(&source, list, &options, &one.threads(2), 256 << 20);
        let expected = expected.unwrap();
        let files = one.files(Path::new(GRAPH));
        for ranks in [2, 3, 5] {
            let machines: Vec<_> = (0..ranks)
                .map(|_| (1 + below(2), [256 << 20, 48 << 20, 24 << 20][below(3)]))
                .collect();
            let several = Bench::new(seed + 1);
            let options = ImportOptions {
                work_bytes_max: [u64::MAX, 100_000][below(2)],
                ..options.clone()
            };
            let reports = several.import_on_ranks(&source, list, &options, &machines);
            for (rank, report) in reports.into_iter().enumerate() {
                let report = report.unwrap_or_else(|error| {
                    panic!("seed {seed}, rank {rank} of {machines:?}: {error}")
                });
                assert!(report.reconciles(), "{report:?}");
                assert_eq!(
                    (
                        report.lines,
                        report.edges_kept,
                        report.vertices,
                        report.arcs
                    ),
                    (
                        expected.lines,
                        expected.edges_kept,
                        expected.vertices,
                        expected.arcs
                    )
                );
            }
            assert!(
                files == several.files(Path::new(GRAPH)),
                "seed {seed}, {machines:?}, {options:?}: other bytes"
            );
            assert_eq!(
                several.disk.list(Path::new("/data")).unwrap(),
                [Path::new(GRAPH)],
                "temporary files are gone"
            );
        }
    }
}

#[test]
fn rank_short_of_memory_ends_all_without_a_trace() {
    let source = random_source(7, Look::Words, 300, 20_000, EdgeKind::F32, false);
    let bench = Bench::new(7);
    let machines = [(1, 256 << 20), (1, 300 << 10), (1, 256 << 20)];
    let options = ImportOptions::new(GRAPH);
    let reports = bench.import_on_ranks(&source, None, &options, &machines);
    for (rank, report) in reports.into_iter().enumerate() {
        match (rank, report.unwrap_err()) {
            (1, IngestError::TooLittleMemory { .. }) => {}
            (0 | 2, IngestError::Fabric(FabricError::Lost { rank: 1, cause })) => {
                assert!(cause.contains("--memory"), "{cause}");
            }
            (rank, error) => panic!("rank {rank}: {error}"),
        }
    }
    assert!(bench.disk.list(Path::new("/data")).unwrap().is_empty());
}

#[test]
fn hosts_with_own_disks_store_their_columns() {
    for seed in 0..20u64 {
        let mut random = SplitMix64::new(seed);
        let mut below = |end: usize| random.below(end as u64) as usize;
        let look = [Look::Gaps, Look::Huge, Look::Words][(seed % 3) as usize];
        let source = random_source(seed, look, 300, 3000, EdgeKind::F32, false);
        let options = ImportOptions {
            directed: below(2) == 0,
            batch_size: Some(7),
            order: [Order::Id, Order::Degree][below(2)],
            ..ImportOptions::new(GRAPH)
        };
        let one = Bench::new(seed);
        one.import(&source, None, &options, &one.threads(2), 256 << 20)
            .unwrap();
        let files = one.files(Path::new(GRAPH));
        // Two ranks on the first host, then one, then two.
        let hosts = [1, 2, 3].map(|number| Bench::new(seed + number));
        let ranks: Vec<_> = [0, 0, 1, 2, 2]
            .map(|host| (&hosts[host], (1, 64 << 20)))
            .to_vec();
        for report in Bench::import_on_hosts(&source, None, &options, &ranks) {
            report.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        }
        let mut found: Vec<_> = Vec::new();
        for host in &hosts {
            let of_host = host.files(Path::new(GRAPH));
            let is_column = |name: &str| {
                [".data", ".index", ".bitmaps", ".weights"]
                    .iter()
                    .any(|ending| name.ends_with(ending) && name.contains("columns"))
            };
            let common = of_host
                .iter()
                .filter(|(name, _)| !is_column(&name.to_string_lossy()));
            let expected = files
                .iter()
                .filter(|(name, _)| !is_column(&name.to_string_lossy()));
            assert!(common.eq(expected), "seed {seed}");
            found.extend(
                of_host
                    .into_iter()
                    .filter(|(name, _)| is_column(&name.to_string_lossy())),
            );
            assert_eq!(
                host.disk.list(Path::new("/data")).unwrap(),
                [Path::new(GRAPH)]
            );
        }
        // Every column file is on one host, and on no other.
        found.sort();
        let mut expected: Vec<_> = files.into_iter().collect();
        expected.retain(|(name, _)| name.to_string_lossy().contains("columns/0"));
        expected.sort();
        assert!(found == expected, "seed {seed}");
    }
}
