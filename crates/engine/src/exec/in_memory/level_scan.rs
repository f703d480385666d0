//! A level of a search by one scan of all cells, which keeps the edges of pending vertices for the levels after it.
//!
//! A search over cells on disk reads most of them again in each of its largest levels. After the first of these, few vertices are
//! pending, and most of these have few edges, so their lists fit where the lists of all vertices do not. The graph is symmetric:
//! the edges of a source are the edges into it too.
//!
//! Vertices of few edges have a list from the start. A vertex of many edges is found after a few of them, nearly always. So its edges
//! wait in a buffer until it is found, and only the edges of those that are not found become lists.

use std::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError};

use graphmill_graph::{DISK_PAGE_BYTES, PageCache};
use graphmill_raw::{AtomicBitmap, AtomicScalar, lock};
use graphmill_storage::{Buffer, DataKind};

use crate::cache::adjacency::AdjacencyLists;
use crate::cache::cells::CellCache;
use crate::context::{ExecContext, each_batch};
use crate::error::EngineError;
use crate::exec::in_memory::edge_scan::{self, SourceEdges};
use crate::metrics::run::PassMetrics;

/// Codes of degrees.
///
/// A vertex without edges or with a label has 0. Others have their degree, or the last code if it is larger.
const CODES: usize = 64;
/// Bytes of a record: the index of the other end.
const RECORD_BYTES: u64 = size_of::<u32>() as u64;
/// One part in 4 of the room is for edges that wait.
const WAITING_SHARE: u64 = 4;
/// Frames of degrees that a worker keeps.
const DEGREE_FRAMES: usize = 2;

/// What a scan found.
pub(crate) struct LevelScan {
    /// The vertices of the next level.
    pub(crate) found: AtomicBitmap,
    /// The lists of all vertices that are pending still; `None` if they do not fit.
    pub(crate) lists: Option<AdjacencyLists>,
    pub(crate) report: PassMetrics,
}

/// Returns the bytes of the budget that a scan takes, without the records of lists.
pub(crate) fn memory(context: &ExecContext) -> u64 {
    let (batches, workers) = (&context.batches, context.workers.count());
    let vertices = batches.vertices();
    let worker = 8 * batches.widest() + (DEGREE_FRAMES + 1) as u64 * DISK_PAGE_BYTES;
    let tables = (CODES * size_of::<u64>() * batches.len()) as u64;
    let of_vertices = 9 * (vertices + 1) + 3 * 4096 + bitmaps(vertices);
    of_vertices + tables + worker * workers as u64 + edge_scan::least(workers)
}

/// Bytes of the front and of the next level.
fn bitmaps(vertices: u64) -> u64 {
    2 * AtomicBitmap::bytes(vertices)
}

/// Finds the pending vertices with an edge to the front, and keeps the edges of the others.
///
/// The kept edges take at most `room` bytes.
pub(crate) fn scan_level(
    context: &ExecContext,
    cell_cache: &CellCache,
    front: &AtomicBitmap,
    is_pending: impl Fn(usize) -> bool + Sync,
    room: u64,
) -> Result<LevelScan, EngineError> {
    let vertices = context.batches.vertices();
    let _lease = (context.budget).lease("a level of a search", bitmaps(vertices))?;
    let found = AtomicBitmap::new(vertices);
    let workers = context.workers.count();
    let of_waiting = room / (WAITING_SHARE * workers as u64) * workers as u64;
    let (codes, limit) = code_degrees(context, &is_pending, room - of_waiting)?;
    let codes = &codes.typed::<u8>()[..vertices as usize];
    let [mut begins, mut records] = make_lists(context, codes, limit)?;
    let waiting = (0..workers).map(|_| WaitingEdges::new(context, of_waiting / workers as u64));
    let waiting: Vec<_> = waiting.collect::<Result<_, _>>()?;
    let waiting: Vec<_> = waiting.into_iter().map(Mutex::new).collect();
    let (ends, slots) = (
        u64::shared(begins.typed_mut()),
        u32::shared(records.typed_mut()),
    );
    let in_front = front.snapshot();
    let code = |v: u64| codes.get(v as usize).copied().unwrap_or(0);
    let wanted = |source| code(source) > 0 && !found.is_marked(source as usize);
    let visit = |list: SourceEdges<'_>| {
        let source = list.source as usize;
        let has_list = code(list.source) <= limit;
        if has_list && let Some(end) = ends.get(source + 1) {
            let count = list.destinations().len();
            let from = end.fetch_add(count as u64, Ordering::Relaxed) as usize;
            let slots = slots.get(from..from + count).unwrap_or(&[]);
            for (slot, destination) in slots.iter().zip(list.destinations()) {
                slot.store(destination as u32, Ordering::Relaxed);
            }
        }
        if list.destinations().any(|v| in_front(v as usize)) {
            found.set(source);
        } else if !has_list {
            lock(&waiting[list.worker]).add(&list, &found);
        }
    };
    let report = edge_scan::visit(context, cell_cache, |_, _| true, wanted, visit)?;
    let waiting = waiting.into_iter().map(Mutex::into_inner);
    let waiting = waiting.map(|one| one.unwrap_or_else(PoisonError::into_inner));
    let waiting = WaitingEdges::join(waiting.collect(), &found);
    let is_left = |(v, code): (usize, &u8)| *code > limit && !found.is_marked(v);
    let edges = match &waiting {
        Some(waiting) => Some(waiting.sorted()),
        None => (!codes.iter().enumerate().any(is_left)).then_some(&[][..]),
    };
    let lens = codes.iter().map(|code| kept(*code, limit));
    let kept = drop_found(begins.typed_mut(), records.typed_mut(), lens, &found);
    let kept = kept.map_err(|v| {
        let batch = context.batches.batch_of(v);
        EngineError::from(context.graph.degrees_disagree(batch))
    })?;
    let fits = edges.is_some_and(|edges| {
        let fits = kept + edges.len() <= records.typed::<u32>().len();
        if fits {
            add_lists(begins.typed_mut(), records.typed_mut(), edges);
        }
        fits
    });
    let lists = fits.then(|| AdjacencyLists::of_buffers(begins, records));
    Ok(LevelScan {
        found,
        lists,
        report,
    })
}

/// Edges of vertices without lists that are not found yet, of one worker.
struct WaitingEdges {
    /// The source, then the destination, of 32 bits each.
    edges: Buffer,
    len: usize,
    /// Some edges had no room.
    lacks: bool,
}

impl WaitingEdges {
    fn new(context: &ExecContext, bytes: u64) -> Result<Self, EngineError> {
        let (tiers, budget) = (&context.tiers, &context.budget);
        let what = "edges of pending vertices";
        Ok(WaitingEdges {
            edges: tiers.buffer(DataKind::Edges, budget, what, bytes as usize)?,
            len: 0,
            lacks: false,
        })
    }

    /// Adds the edges of a source that is not found.
    fn add(&mut self, list: &SourceEdges<'_>, found: &AtomicBitmap) {
        let count = list.destinations().len();
        let most = self.edges.typed::<u64>().len();
        if self.lacks {
            return;
        }
        if self.len + count > most {
            self.drop_found(found);
            // Few are found by now, and dropping them again and again would take too long.
            self.lacks = self.len + count > most - most / 4;
            if self.lacks {
                return;
            }
        }
        let slots = &mut self.edges.typed_mut::<u64>()[self.len..];
        for (slot, destination) in slots.iter_mut().zip(list.destinations()) {
            *slot = list.source << u32::BITS | destination;
        }
        self.len += count;
    }

    /// Drops the edges of vertices that are found.
    fn drop_found(&mut self, found: &AtomicBitmap) {
        let edges = self.edges.typed_mut::<u64>();
        let mut kept = 0;
        for at in 0..self.len {
            let edge = edges[at];
            if !found.is_marked((edge >> u32::BITS) as usize) {
                edges[kept] = edge;
                kept += 1;
            }
        }
        self.len = kept;
    }

    /// Returns the edges of all workers whose sources are not found; `None` if some had no room.
    fn join(all: Vec<WaitingEdges>, found: &AtomicBitmap) -> Option<WaitingEdges> {
        let mut all = all.into_iter().map(|mut one| {
            one.drop_found(found);
            one
        });
        let mut first = all.next()?;
        for one in all {
            let to = first.edges.typed_mut::<u64>().get_mut(first.len..)?;
            to.get_mut(..one.len)?.copy_from_slice(one.sorted());
            first.len += one.len;
            first.lacks |= one.lacks;
        }
        let edges = &mut first.edges.typed_mut::<u64>()[..first.len];
        edges.sort_unstable();
        (!first.lacks).then_some(first)
    }

    fn sorted(&self) -> &[u64] {
        &self.edges.typed::<u64>()[..self.len]
    }
}

/// Drops the records of found vertices; returns how many are left.
///
/// `lens` are the records for which each vertex has space. Its end is where its records end. The error is the first vertex with too
/// many records, or with too few that is not found.
fn drop_found(
    ends: &mut [u64],
    records: &mut [u32],
    lens: impl Iterator<Item = u64>,
    found: &AtomicBitmap,
) -> Result<usize, u64> {
    let (mut from, mut kept) = (0, 0);
    for (v, (end, len)) in ends.iter_mut().skip(1).zip(lens).enumerate() {
        let is_found = found.is_marked(v);
        if *end > from + len || *end < from + len && !is_found {
            return Err(v as u64);
        }
        if !is_found {
            records.copy_within(from as usize..*end as usize, kept);
            kept += len as usize;
        }
        from += len;
        *end = kept as u64;
    }
    Ok(kept)
}

/// Adds lists of edges, which ascend and fit behind the records. Their sources have no records yet.
fn add_lists(begins: &mut [u64], records: &mut [u32], mut edges: &[u64]) {
    for v in (1..begins.len()).rev() {
        let (begin, end) = (begins[v - 1] as usize, begins[v] as usize);
        records.copy_within(begin..end, begin + edges.len());
        begins[v] += edges.len() as u64;
        while let Some((edge, before)) = edges.split_last()
            && (edge >> u32::BITS) as usize == v - 1
        {
            records[begin + before.len()] = *edge as u32;
            edges = before;
        }
        if edges.is_empty() {
            break;
        }
    }
}

/// Returns the code of each vertex, and the largest code whose lists are kept.
///
/// The records of vertices up to that code fit `room` bytes together.
fn code_degrees(
    context: &ExecContext,
    is_pending: &(impl Fn(usize) -> bool + Sync),
    room: u64,
) -> Result<(Buffer, u8), EngineError> {
    let (batches, graph) = (&context.batches, &context.graph);
    let vertices = batches.vertices() as usize;
    let (tiers, budget) = (&context.tiers, &context.budget);
    let mut codes = tiers.buffer(DataKind::Index, budget, "degrees of a search", vertices)?;
    let mut rest = &mut codes[..vertices];
    let parts = (0..batches.len()).map(|batch| {
        let (part, later) = std::mem::take(&mut rest).split_at_mut(batches.span(batch) as usize);
        rest = later;
        Mutex::new(part)
    });
    let parts: Vec<_> = parts.collect();
    let all: Vec<usize> = (0..batches.len()).collect();
    let edges_by_code = each_batch(context, &all, |batch, _| {
        let mut edges = [0_u64; CODES];
        let mut codes = lock(&parts[batch]);
        let mut degrees = vec![0_u64; batches.span(batch) as usize];
        let mut frames = PageCache::new(graph, budget, DEGREE_FRAMES)?;
        graph.degrees(graph.forward(), &mut frames, batch, &mut degrees)?;
        context.arrays.count_read(frames.take_bytes_read());
        let first = batches.start(batch) as usize;
        for (i, (code, degree)) in codes.iter_mut().zip(degrees).enumerate() {
            if is_pending(first + i) {
                *code = degree.min(CODES as u64 - 1) as u8;
                edges[usize::from(*code)] += degree;
            }
        }
        Ok(edges)
    })?;
    let (mut limit, mut records) = (0, 0);
    for code in 1..CODES - 1 {
        records += edges_by_code.iter().map(|edges| edges[code]).sum::<u64>();
        if records > room / RECORD_BYTES {
            break;
        }
        limit = code as u8;
    }
    drop(parts);
    Ok((codes, limit))
}

/// Returns where lists begin, for vertices with a code from 1 to `limit`, and room for their records.
///
/// The begin of a vertex is where its end belongs: each record that is added moves it.
fn make_lists(context: &ExecContext, codes: &[u8], limit: u8) -> Result<[Buffer; 2], EngineError> {
    let room = |kind, bytes| {
        let (tiers, budget) = (&context.tiers, &context.budget);
        tiers.buffer(kind, budget, "lists of a search", bytes)
    };
    let mut begins = room(DataKind::Index, size_of::<u64>() * (codes.len() + 1))?;
    let mut records = 0;
    let ends = begins.typed_mut::<u64>().iter_mut().skip(1);
    for (end, code) in ends.zip(codes) {
        *end = records;
        records += kept(*code, limit);
    }
    Ok([
        begins,
        room(DataKind::Edges, (records * RECORD_BYTES) as usize)?,
    ])
}

/// Number of edges that are kept of a vertex.
fn kept(code: u8, limit: u8) -> u64 {
    if code <= limit { code.into() } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_found_vertices_make_room_for_waiting_edges() {
        let lens = [2, 0, 1, 3, 1, 0];
        // One edge of the found vertex was not kept.
        let ends = [0, 2, 2, 3, 5, 7, 7];
        let records = [10, 11, 20, 30, 31, 0, 40];
        let found = AtomicBitmap::new(6);
        found.set(3);
        let edge = |(source, destination): (u64, u64)| source << u32::BITS | destination;
        for (edges, [of_1, of_5]) in [
            (&[(1, 7), (1, 8), (5, 9)][..], [&[7, 8][..], &[9]]),
            (&[(5, 1), (5, 2), (5, 3)], [&[], &[1, 2, 3]]),
            (&[], [&[], &[]]),
        ] {
            let (mut begins, mut records) = (ends, records);
            let kept = drop_found(&mut begins, &mut records, lens.into_iter(), &found);
            assert_eq!(kept, Ok(4));
            let edges: Vec<u64> = edges.iter().copied().map(edge).collect();
            add_lists(&mut begins, &mut records, &edges);
            let lists = begins.array_windows();
            let lists = lists.map(|[from, to]| &records[*from as usize..*to as usize]);
            assert!(lists.eq([&[10, 11][..], of_1, &[20], &[], &[40], of_5]));
        }
    }

    #[test]
    fn lists_with_other_lengths_than_degrees_are_found() {
        let found = AtomicBitmap::new(3);
        found.set(1);
        for (ends, wrong) in [
            ([0, 2, 2, 5], None),
            ([0, 2, 4, 5], None),
            ([0, 1, 4, 5], Some(0)),
            ([0, 3, 4, 5], Some(0)),
            ([0, 2, 4, 4], Some(2)),
            ([0, 2, 5, 5], Some(1)),
        ] {
            let outcome = drop_found(
                &mut ends.clone(),
                &mut [0; 5],
                [2, 2, 1].into_iter(),
                &found,
            );
            assert_eq!(outcome.err(), wrong, "{ends:?}");
        }
    }
}
