//! The files of a stored graph: whatever is changed in them, no panic, no endless walk and no more memory than the budget.
//!
//! Bit 0 of an input's first byte chooses one of two small graphs. With bit 1 the changes are made before checksums are
//! computed, so that they get past these; without, to the files as they are. The rest are changes, see [`Change`].

#![no_main]

#[path = "stored_graph/example.rs"]
mod example;

use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use example::{Change, Example};
use graphmill_fuzz as _;
use graphmill_graph::{
    BLOCK_EDGES_MAX, BlockView, ColumnSet, EdgeKind, Extent, ExtentReader, FanoutTable,
    FormatError, GroupWalk, IdCursor, IdKind, PageCache, SourceIndex, StoredGraph, VertexId,
    verify,
};
use graphmill_storage::{CancelToken, Disk, MemoryBudget, SimDisk, Tiers};
use libfuzzer_sys::fuzz_target;

const BUDGET: u64 = 15 << 20;

fuzz_target!(|input: &[u8]| {
    static EXAMPLES: OnceLock<[Example; 2]> = OnceLock::new();
    let examples = EXAMPLES.get_or_init(|| [Example::new(false), Example::new(true)]);
    let [how, changes @ ..] = input else {
        return;
    };
    let example = &examples[usize::from(how & 1)];
    let changes = Change::all(changes);
    let disk: Arc<dyn Disk> = Arc::new(SimDisk::new(1));
    disk.create_dir_all(Path::new("graph/columns"))
        .and_then(|()| disk.create_dir_all(Path::new("graph/reverse")))
        .expect("folders");
    let files = if how & 2 == 0 {
        example.changed(&changes)
    } else {
        example.changed_with_checksums(&changes)
    };
    for (path, bytes) in files {
        disk.write_small(&path, &bytes).expect("a file");
    }
    let budget = MemoryBudget::new(BUDGET);
    if let Ok(graph) = StoredGraph::open(&disk, &budget, Path::new("graph")) {
        // Whatever one of them says, the others continue.
        let graph = Arc::new(graph);
        let _ = verify(&graph, &budget, &CancelToken::new(), |_| {});
        for set in [Some(graph.forward()), graph.reverse()]
            .into_iter()
            .flatten()
        {
            let _ = read_edges(&graph, set, &budget);
            let _ = read_vertices(&graph, set, &budget);
        }
        let _ = read_ids(&graph, &budget);
    }
    assert_eq!(budget.available(), budget.total());
});

fn whole(reader: &mut PageCache, extent: Extent) -> Result<Vec<u8>, FormatError> {
    let mut bytes = Vec::new();
    reader.read(extent.file, extent.bytes, &mut bytes)?;
    Ok(bytes)
}

/// Every cell, as a stream and by seeks; edges are handed out inside their bits and nowhere else.
fn read_edges(
    graph: &Arc<StoredGraph>,
    set: &ColumnSet,
    budget: &MemoryBudget,
) -> Result<(), FormatError> {
    let batches = graph.batches();
    let mut stream = ExtentReader::new(graph, budget, 1, 2)?;
    let mut queue = graph.disk().queue(2)?;
    let mut frames = PageCache::new(graph, budget, 4)?;
    let (mut scratch, mut sources) = ([u32::MAX; BLOCK_EDGES_MAX], [0; BLOCK_EDGES_MAX]);
    for d in 0..batches.len() {
        for cell in set.column(d).cells() {
            let from = cell.source_batch();
            let offset = batches.start(d).wrapping_sub(batches.start(from)) as i64;
            stream.start(vec![set.data_extent(d, cell)])?;
            let mut sum = 0u64;
            while let Some(bytes) = stream.wait(&mut *queue)? {
                let Ok(Some((block, used))) = BlockView::parse(bytes, offset) else {
                    break;
                };
                let groups = block.sources(&mut sources);
                block.for_each_edge(&mut scratch, |group, destination, _| {
                    sum = sum.wrapping_add(u64::from(sources[group]) ^ u64::from(destination));
                });
                block.for_each_group(
                    &mut scratch,
                    &sources[..groups],
                    |_| true,
                    |_, to, _| {
                        sum = sum.wrapping_add(to.len() as u64);
                    },
                );
                stream.consume(used);
            }
            if graph.edge_kind() != EdgeKind::None {
                stream.start(vec![set.weights_extent(d, cell, graph.edge_kind())])?;
                while let Some(bytes) = stream.wait(&mut *queue)? {
                    let used = bytes.len();
                    stream.consume(used);
                }
            }
            let blocks = whole(&mut frames, set.block_list_extent(d, cell))?;
            let bitmap = whole(&mut frames, set.bitmap_extent(d, cell))?;
            let data = whole(&mut frames, set.data_extent(d, cell))?;
            let Ok(index) = SourceIndex::parse(&blocks, &bitmap) else {
                continue;
            };
            for source in 0..batches.span(from).min(300) as u32 {
                let Some(place) = index.seek(source) else {
                    continue;
                };
                let bytes = usize::try_from(place.offset)
                    .ok()
                    .and_then(|at| data.get(at..));
                let Some(Ok(Some((block, _)))) = bytes.map(|b| BlockView::parse(b, offset)) else {
                    continue;
                };
                if let Some(group) = block.group_by(&mut GroupWalk::default(), place.group, source)
                {
                    block.edges_of(group, source, |_, edge| assert!(edge < block.edges()));
                }
            }
        }
    }
    Ok(())
}

/// Degrees and fan-out lists.
fn read_vertices(
    graph: &Arc<StoredGraph>,
    set: &ColumnSet,
    budget: &MemoryBudget,
) -> Result<(), FormatError> {
    let batches = graph.batches();
    let mut frames = PageCache::new(graph, budget, 4)?;
    for b in (0..batches.len()).filter(|b| batches.span(*b) <= 1 << 16) {
        let mut degrees = vec![0u64; batches.span(b) as usize];
        let _ = graph.degrees(set, &mut frames, b, &mut degrees);
        let mut small = vec![0u16; batches.span(b) as usize];
        let _ = graph.degrees(set, &mut frames, b, &mut small);
    }
    let asked = asked(graph.vertices());
    for v in asked.clone() {
        let _ =
            graph.destination_batches(set, &mut frames, v, |batch| assert!(batch < batches.len()));
    }
    let all = 0..graph.vertices();
    let table = FanoutTable::load(
        graph,
        set.side(),
        &mut frames,
        (&Tiers::default(), budget),
        all,
    )?;
    for v in asked {
        let _ = table.each(v, |batch| assert!(batch < batches.len()));
    }
    Ok(())
}

/// Some vertices at the start and at the end.
fn asked(vertices: u64) -> impl Iterator<Item = u64> + Clone {
    let first: Range<u64> = 0..vertices.min(200);
    first.chain(vertices.saturating_sub(200).max(200)..vertices)
}

/// Ids, one after the other and each for itself; an index that an id has is one of the graph's.
fn read_ids(graph: &Arc<StoredGraph>, budget: &MemoryBudget) -> Result<(), FormatError> {
    let mut frames = PageCache::new(graph, budget, 4)?;
    for v in asked(graph.vertices()).step_by(7) {
        if let Ok(id) = graph.id_of(&mut frames, v)
            && let Ok(Some(index)) = graph.index_of(&mut frames, &id)
        {
            assert!(index < graph.vertices());
        }
        if let Ok(rank) = graph.rank_of(&mut frames, v) {
            assert!(rank < graph.vertices());
        }
        if graph.id_kind() != IdKind::Dense {
            let _ = IdCursor::new(graph, budget, v).map(|mut cursor| cursor.next().is_ok());
        }
    }
    for id in [
        VertexId::Integer(0),
        VertexId::Integer(u64::MAX),
        VertexId::Text(b"vertex-17".to_vec()),
        VertexId::Text(b"x".to_vec()),
    ] {
        if let Ok(Some(index)) = graph.index_of(&mut frames, &id) {
            assert!(index < graph.vertices());
        }
    }
    let mut cursor = IdCursor::new(graph, budget, 0)?;
    for _ in 0..1000 {
        if cursor.next()?.is_none() {
            break;
        }
    }
    Ok(())
}
