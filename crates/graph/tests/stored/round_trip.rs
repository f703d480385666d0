//! A graph of any shape reads back as it was written.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::model::{Model, read};
use graphmill_graph::{EdgeKind, IdType, Order, PageCache, StoredGraph, VertexId, uuid_of, verify};
use graphmill_storage::{CancelToken, Disk, MemoryBudget, SimDisk, SplitMix64};

fn check(model: &Model) -> Arc<StoredGraph> {
    let disk: Arc<dyn Disk> = Arc::new(SimDisk::new(9));
    let budget = MemoryBudget::new(64 << 20);
    let path = Path::new("graph");
    model.write(&disk, &budget, path).unwrap();
    assert_eq!(
        budget.available(),
        budget.total(),
        "the writer gives everything back"
    );
    let (told, found) = (model.told(), read(&disk, &budget, path).unwrap());
    assert_eq!(told.forward.edges, found.forward.edges);
    if *model.cuts.last().unwrap() <= 1 << 24 {
        assert_eq!(told.forward.degrees, found.forward.degrees);
    }
    if *model.cuts.last().unwrap() <= 10_000 {
        assert!(told == found, "degrees, fan-out, reverse or ids differ");
    } else {
        assert_eq!(told.ids, found.ids);
        let expected = &told.forward.fanout;
        assert!(!found.forward.fanout.is_empty());
        assert!(
            found
                .forward
                .fanout
                .iter()
                .all(|(v, list)| expected.get(v) == Some(list))
        );
    }
    let graph = Arc::new(StoredGraph::open(&disk, &budget, path).unwrap());
    let seen = verify(&graph, &budget, &CancelToken::new(), |_| {}).unwrap();
    assert_eq!(
        seen.edges,
        model.edges.len() as u64 * if model.reverse { 2 } else { 1 }
    );
    assert_eq!(seen.bytes, bytes_below(&disk, path));
    let spools = disk.list(&path.join("columns")).unwrap();
    assert!(
        spools
            .iter()
            .all(|file| file.extension().is_none_or(|e| e != "spool")),
        "temporary files are gone"
    );
    graph
}

/// Bytes of all files below a folder.
fn bytes_below(disk: &Arc<dyn Disk>, path: &Path) -> u64 {
    let bytes = |path: PathBuf| match disk.is_dir(&path).unwrap() {
        true => bytes_below(disk, &path),
        false => disk.stamp(&path).unwrap().bytes,
    };
    disk.list(path).unwrap().into_iter().map(bytes).sum()
}

#[test]
fn graph_without_vertices_or_edges_round_trips() {
    check(&Model::new(vec![0], vec![]));
    check(&Model::new(vec![0, 1], vec![]));
    check(&Model::new(vec![0, 1], vec![(0, 0, 1.0)]));
    check(&Model::new(vec![0, 1], vec![(0, 0, 1.0); 10_000]));
    check(&Model::new(vec![0, 5000, 5001], vec![(4999, 5000, 2.0)]));
}

#[test]
fn random_graph_round_trips_in_any_batches() {
    for (seed, vertices, span, edges) in [
        (1, 10, 1, 40),
        (2, 100, 7, 3000),
        (3, 3000, 64, 9000),
        (4, 9000, 1024, 50_000),
        (5, 9000, 9000, 30_000),
        (6, 20_000, 100, 100_000),
    ] {
        check(&Model::random(seed, vertices, span, edges));
    }
    let mut uneven = Model::random(6, 5000, 5000, 20_000);
    uneven.cuts = vec![0, 1, 2, 70, 71, 4000, 4999, 5000];
    uneven.csr_ratio = 0;
    check(&uneven);
}

#[test]
fn weights_and_transpose_round_trip() {
    for edge in [EdgeKind::F32, EdgeKind::F64, EdgeKind::Record(13)] {
        let mut model = Model::random(7, 2000, 300, 30_000);
        (model.edge, model.reverse, model.run) = (edge, true, 4096);
        check(&model);
        model.run = 7;
        check(&model);
    }
}

#[test]
fn degree_order_round_trips() {
    for (seed, vertices, span) in [(1, 1, 1), (2, 900, 200), (3, 9000, 1000)] {
        let mut model = Model::random(seed, vertices, span, 3 * vertices as usize);
        // A multiple of a number that shares no factor with any of these.
        model.order = Some((0..vertices).map(|rank| rank * 7919 % vertices).collect());
        let graph = check(&model);
        assert_eq!(graph.order(), Order::Degree);
        let budget = MemoryBudget::new(64 << 20);
        let mut reader = PageCache::new(&graph, &budget, 2).unwrap();
        let mut ranks = vec![0u32; graph.batches().span(0) as usize];
        graph.ranks_of(&mut reader, 0, &mut ranks).unwrap();
        assert!(
            ranks
                .iter()
                .zip(0..)
                .all(|(&rank, v)| u64::from(rank) * 7919 % vertices == v)
        );
        model.ids = Some(
            (0..vertices)
                .map(|rank| VertexId::Integer(rank * rank + 5))
                .collect(),
        );
        check(&model);
    }
}

#[test]
fn batch_of_one_vertex_costs_tens_of_bytes() {
    let vertices = 5000u64;
    let edges: Vec<_> = (0..3 * vertices)
        .map(|i| (i % vertices, (i * i + 1) % vertices, 0.0))
        .collect();
    let mut model = Model::new((0..=vertices).collect(), edges);
    model.file_batches = usize::MAX / 2;
    let graph = check(&model);
    let cells: usize = graph
        .forward()
        .columns()
        .iter()
        .map(|column| column.cells().len())
        .sum();
    use graphmill_graph::FileKind::{Data, Degrees, Directory, Fanout, Index};
    let bytes: u64 = [Data, Index, Directory, Degrees, Fanout]
        .iter()
        .map(|&kind| graph.forward().bytes(kind))
        .sum();
    assert!(
        bytes < 64 * (cells as u64 + vertices),
        "{bytes} bytes for {cells} cells"
    );
}

#[test]
fn hub_column_is_cut_into_strips() {
    let mut random = SplitMix64::new(8);
    let edges = (0..60_000).map(|_| (random.below(4000), 10, 0.0)).collect();
    let mut model = Model::new((0..=4000).step_by(100).collect(), edges);
    model.strip_edges_max = 7000;
    let graph = check(&model);
    assert!(graph.column(0).strips().len() >= 60_000 / 7000);
    assert_eq!(graph.column(1).strips().len(), 0);
}

#[test]
fn indices_beyond_32_bits_take_no_more_bytes() {
    let far = 1u64 << 40;
    let spread = |base: u64| {
        let mut random = SplitMix64::new(10);
        (0..40_000)
            .map(|_| {
                (
                    base + random.below(1 << 16),
                    base + random.below(1 << 16),
                    0.0,
                )
            })
            .collect::<Vec<_>>()
    };
    let near = check(&Model::new(vec![0, 1 << 16], spread(0)));
    let base = far - (1 << 16);
    let mut cuts: Vec<u64> = (0..512).map(|b| b << 31).collect();
    cuts.extend([base, far]);
    let beyond = check(&Model::new(cuts, spread(base)));
    let bytes = |graph: &StoredGraph| {
        use graphmill_graph::FileKind::{Data, Degrees, Index};
        [Data, Index, Degrees]
            .map(|kind| graph.forward().bytes(kind))
            .iter()
            .sum::<u64>()
    };
    assert!(
        bytes(&beyond) <= bytes(&near) + 64,
        "{} and {}",
        bytes(&beyond),
        bytes(&near)
    );
    // Ends far apart: sources in one end of the range, destinations in the other.
    let mut random = SplitMix64::new(11);
    let edges = (0..5000)
        .map(|_| (random.below(1 << 20), far - 1 - random.below(1 << 20), 0.0))
        .collect();
    let cuts: Vec<u64> = (0..=512).map(|b| b << 31).collect();
    check(&Model::new(cuts, edges));
}

#[test]
fn dictionary_of_integers_or_texts_round_trips() {
    let mut random = SplitMix64::new(12);
    let vertices = 60_000u64;
    let mut model = Model::random(13, vertices, 20_000, 1000);
    let mut id = 0;
    let integers = (0..vertices).map(|i| {
        id += 1 + if i % 1000 == 0 {
            random.next_u64() >> 12
        } else {
            random.below(300)
        };
        VertexId::Integer(id)
    });
    model.ids = Some(integers.collect());
    check(&model);
    let mut texts: Vec<Vec<u8>> = (0..vertices)
        .map(|i| {
            let mut text = format!("https://example.org/{}/{i}", random.below(40)).into_bytes();
            text.resize(text.len() + if i % 5000 == 0 { 4000 } else { 0 }, b'x');
            text
        })
        .collect();
    texts.push(vec![]);
    texts.push(vec![0xff; 4096]);
    texts.sort();
    texts.dedup();
    texts.truncate(vertices as usize);
    model.ids = Some(texts.into_iter().map(VertexId::Text).collect());
    let graph = check(&model);
    let budget = MemoryBudget::new(1 << 20);
    let mut reader = PageCache::new(&graph, &budget, 1).unwrap();
    for absent in [
        VertexId::Text(b"https://example.org/".to_vec()),
        VertexId::Integer(5),
        VertexId::Text(vec![0xff; 5000]),
    ] {
        assert_eq!(graph.index_of(&mut reader, &absent).unwrap(), None);
    }
}

#[test]
fn uuids_and_types_of_ids_come_back() {
    let mut model = Model::random(15, 20_000, 500, 30_000);
    let mut random = SplitMix64::new(16);
    let drawn = (0..20_000).map(|i| {
        let near = u128::from(i as u64) << 40 | u128::from(random.below(1 << 20)) << 100;
        near.to_be_bytes()
    });
    let mut ids: Vec<[u8; 16]> = drawn.collect();
    ids.sort_unstable();
    model.ids = Some(ids.iter().copied().map(VertexId::Uuid).collect());
    let graph = check(&model);
    assert_eq!(graph.id_type(), IdType::Uuid);
    let budget = MemoryBudget::new(1 << 20);
    let mut reader = PageCache::new(&graph, &budget, 1).unwrap();
    let text = VertexId::Text(ids[0].to_vec());
    assert_eq!(graph.index_of(&mut reader, &text).unwrap(), None);
    let id = VertexId::Uuid(ids[7]);
    assert_eq!(graph.index_of(&mut reader, &id).unwrap(), Some(7));
    let (text, bytes) = (id.to_string(), ids[7]);
    assert_eq!(uuid_of(text.as_bytes()), Some(bytes));
    assert_eq!(uuid_of(text.to_uppercase().as_bytes()), Some(bytes));
    for wrong in [
        &text[1..],
        "",
        &text.replace('-', "0"),
        &text.replace('0', "-"),
    ] {
        assert_eq!(uuid_of(wrong.as_bytes()), None, "{wrong}");
    }
}

#[test]
fn graph_bytes_are_the_same_for_any_budget() {
    let mut model = Model::random(14, 4000, 500, 80_000);
    model.edge = EdgeKind::F32;
    let files = |model: &Model, budget: u64| {
        let disk: Arc<dyn Disk> = Arc::new(SimDisk::new(budget));
        model
            .write(&disk, &MemoryBudget::new(budget), Path::new("g"))
            .unwrap();
        let mut files = Vec::new();
        for dir in ["g", "g/columns"] {
            for path in disk.list(Path::new(dir)).unwrap() {
                if !disk.is_dir(&path).unwrap() {
                    files.push((path.clone(), disk.read_small(&path, 1 << 30).unwrap()));
                }
            }
        }
        files
    };
    let large = files(&model, 1 << 30);
    assert!(large.len() > 5);
    model.run = 100_000;
    assert!(large == files(&model, 4 << 20));
}

#[test]
fn edges_unordered_or_out_of_batch_are_refused() {
    use graphmill_graph::{FormatError, GraphWriter, IdsSummary};
    let disk: Arc<dyn Disk> = Arc::new(SimDisk::new(1));
    let budget = MemoryBudget::new(64 << 20);
    let model = Model::new(vec![0, 10, 20, 30, 40], vec![]);
    type Call<'a> = (usize, usize, &'a [u64]);
    let cases: [&[Call<'_>]; 8] = [
        &[(0, 0, &[1 << 32, 1])],
        &[(0, 0, &[5]), (0, 0, &[4])],
        &[(0, 0, &[10])],
        &[(0, 0, &[10 << 32])],
        &[(0, 1, &[0]), (0, 0, &[0])],
        &[(1, 0, &[0]), (0, 0, &[0])],
        &[(3, 0, &[0])],
        &[(0, 4, &[0])],
    ];
    for (i, calls) in cases.iter().enumerate() {
        let path = format!("bad{i}");
        let writer = GraphWriter::create(
            disk.clone(),
            budget.clone(),
            Path::new(&path),
            model.shape(),
        )
        .unwrap();
        let mut file = writer.column_file(0).unwrap();
        let (last, before) = calls.split_last().unwrap();
        before
            .iter()
            .for_each(|call| file.edges(call.0, call.1, call.2, &[]).unwrap());
        assert!(
            matches!(
                file.edges(last.0, last.1, last.2, &[]),
                Err(FormatError::Misuse { .. })
            ),
            "case {i}"
        );
        drop(file);
        let facts = model.facts(IdsSummary::dense(40));
        assert!(
            matches!(writer.finish(facts), Err(FormatError::Misuse { .. })),
            "a file is missing"
        );
        assert!(matches!(
            StoredGraph::open(&disk, &budget, Path::new(&path)),
            Err(FormatError::NotAGraph { .. })
        ));
    }
}
