//! Pages that have their checksums but are not those that belong in their place are an error, never a wrong answer.

use std::path::Path;
use std::sync::Arc;

use crate::model::Model;
use graphmill_graph::{
    FormatError, GraphWriter, IdCursor, IdsSummary, PageCache, StoredGraph, VertexId, verify,
};
use graphmill_storage::{CancelToken, Disk, MemoryBudget, SimDisk};

const PAGE: usize = 64 << 10;

/// The checksum of a page of `ids`, or of its table. Source: docs/reference/file-format.md, "Pages".
fn checksum(page: u64, bytes: &[u8]) -> u32 {
    let mut prefix = [0; 24];
    prefix[9] = 6;
    prefix[16..].copy_from_slice(&page.to_le_bytes());
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&prefix);
    hasher.update(bytes);
    hasher.finalize()
}

/// Changes the ids of the stored graph `graph`, and the checksums with them.
fn change_ids(disk: &Arc<dyn Disk>, change: impl Fn(&mut [u8])) {
    let (ids, description) = (Path::new("graph/ids"), Path::new("graph/graph.json"));
    let mut file = disk.read_small(ids, 1 << 30).unwrap();
    let pages = file.len() / PAGE;
    let (payload, table) = file.split_at_mut(pages * PAGE);
    change(payload);
    let before = checksum(u64::MAX, table);
    let slots = table.as_chunks_mut::<4>().0;
    for ((number, page), slot) in (0..).zip(payload.chunks(PAGE)).zip(slots) {
        *slot = checksum(number, page).to_le_bytes();
    }
    let after = checksum(u64::MAX, table);
    disk.write_small(ids, &file).unwrap();

    let text = String::from_utf8(disk.read_small(description, 1 << 20).unwrap()).unwrap();
    let (body, _) = text.split_once("\n\"checksum\"").unwrap();
    let body = body.replace(
        &format!("\"checksum\":{before}"),
        &format!("\"checksum\":{after}"),
    );
    let sum = crc32fast::hash(body.as_bytes());
    let text = format!("{body}\n\"checksum\": \"{sum:08x}\"\n}}\n");
    disk.write_small(description, text.as_bytes()).unwrap();
}

#[test]
fn id_page_with_wrong_bounds_is_refused() {
    // Ids of two pages.
    let ids: Vec<VertexId> = (0..5000u64)
        .map(|i| VertexId::Text(format!("{i:020}").into_bytes()))
        .collect();
    let mut model = Model::random(1, 5000, 1000, 100);
    model.ids = Some(ids.clone());
    let disk: Arc<dyn Disk> = Arc::new(SimDisk::new(1));
    let budget = MemoryBudget::new(64 << 20);
    model.write(&disk, &budget, Path::new("graph")).unwrap();
    let read = |v: usize| {
        let graph = Arc::new(StoredGraph::open(&disk, &budget, Path::new("graph"))?);
        let mut reader = PageCache::new(&graph, &budget, 2)?;
        let told = (
            graph.id_of(&mut reader, v as u64)?,
            graph.index_of(&mut reader, &ids[v])?,
            IdCursor::new(&graph, &budget, v as u64)?
                .next()?
                .map(|id| id.to_owned()),
        );
        Ok::<_, FormatError>(told)
    };
    let good = (ids[7].clone(), Some(7), Some(ids[7].clone()));
    assert_eq!(read(7).unwrap(), good);
    change_ids(&disk, |_| ());
    assert_eq!(read(7).unwrap(), good, "the checksums are as they were");

    for first_index in [1u64, 4999, u64::MAX] {
        change_ids(&disk, |payload| {
            payload[..8].copy_from_slice(&first_index.to_le_bytes())
        });
        for v in [0, 7, 100] {
            assert!(
                matches!(read(v), Err(FormatError::Malformed { .. })),
                "{first_index}, {v}"
            );
        }
    }
    change_ids(&disk, |payload| {
        payload[..8].copy_from_slice(&0u64.to_le_bytes());
        payload[8] ^= 1;
    });
    assert!(matches!(read(7), Err(FormatError::Malformed { .. })));
    change_ids(&disk, |payload| payload[8] ^= 1);
    assert_eq!(read(7).unwrap(), good);
}

/// A graph without edges whose order is those two lists.
fn ordered(ranks: &[u64], indices: &[u64]) -> Result<Arc<StoredGraph>, FormatError> {
    let disk: Arc<dyn Disk> = Arc::new(SimDisk::new(1));
    let (budget, path) = (MemoryBudget::new(64 << 20), Path::new("graph"));
    let model = Model::new(vec![0, 3, 5], vec![]);
    let writer = GraphWriter::create(disk.clone(), budget.clone(), path, model.shape()).unwrap();
    writer.column_file(0).unwrap().finish().unwrap();
    let mut order = writer.order().unwrap();
    order.push(ranks).unwrap();
    order.push(indices).unwrap();
    order.finish()?;
    writer.finish(model.facts(IdsSummary::dense(5))).unwrap();
    Ok(Arc::new(StoredGraph::open(&disk, &budget, path)?))
}

#[test]
fn order_no_permutation_is_refused() {
    let check = |ranks: &[u64], indices: &[u64]| {
        let graph = ordered(ranks, indices).unwrap();
        verify(
            &graph,
            &MemoryBudget::new(64 << 20),
            &CancelToken::new(),
            |_| {},
        )
        .map(drop)
    };
    check(&[0, 1, 2, 3, 4], &[0, 1, 2, 3, 4]).unwrap();
    check(&[2, 0, 1, 4, 3], &[1, 2, 0, 4, 3]).unwrap();
    for (ranks, indices) in [
        ([2, 0, 1, 4, 3], [2, 0, 1, 4, 3]),
        ([0, 0, 1, 4, 3], [1, 2, 0, 4, 3]),
        ([2, 0, 1, 4, 3], [1, 1, 0, 4, 3]),
        ([2, 0, 1, 5, 3], [1, 2, 0, 4, 3]),
        ([2, 0, 1, 4, 3], [1, 2, 0, 9, 3]),
    ] {
        let error = check(&ranks, &indices).unwrap_err();
        let is_named = error.to_string().contains("graph/order");
        assert!(
            is_named && matches!(error, FormatError::Malformed { .. }),
            "{error}"
        );
    }
    for length in 0..5 {
        let short = ordered(&[0, 1, 2, 3, 4], &[0, 1, 2, 3, 4][..length]);
        assert!(matches!(short, Err(FormatError::Misuse { .. })));
    }
}
