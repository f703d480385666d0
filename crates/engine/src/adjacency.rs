//! Adjacency: the destinations of every vertex as one plain list, for graphs of many sparse passes.
//!
//! It is decoded when all cells are in memory and the budget has room to spare: a sparse pass then finds a vertex's
//! edges by one look-up, where the cells would need one in every column. Dense passes do not use it: packed blocks
//! move fewer bytes and are faster.
//!
//! Destinations are *places*: a batch's vertices in order, the first of each batch at a multiple of [`ALIGN`], so that
//! a set over places falls into batches without looking at a single vertex.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use graphmill_graph::{BLOCK_EDGES_MAX, BlockView, Cell};
use graphmill_raw::{AlignedBuffer, Segments, prefetch};
use graphmill_storage::{Job, JobError, Lease, Step, Worker};

use crate::active::SET_ALIGN as ALIGN;
use crate::error::EngineError;
use crate::machine::{Machine, run};
use crate::pins::Pins;

/// The lists of all vertices.
pub(crate) struct Adjacency {
    /// For each vertex where its list begins, and where the last one ends.
    begins: AlignedBuffer,
    places: AlignedBuffer,
    weights: AlignedBuffer,
    /// The place of the first vertex of each batch, and the end.
    bases: Vec<u32>,
    _leases: [Lease; 3],
}

/// The edges of one vertex.
#[derive(Clone, Copy, Debug)]
pub(crate) struct List<'a> {
    pub(crate) places: &'a [u32],
    /// The edges' weights, as many bytes each as the graph says; empty when the pass reads none.
    pub(crate) weights: &'a [u8],
}

impl Adjacency {
    /// Decodes all cells, if that takes at most `bytes` of the budget; they are pinned.
    pub(crate) fn decode(
        machine: &Machine,
        pins: &Pins,
        weighted: bool,
        bytes: u64,
    ) -> Result<Option<Self>, EngineError> {
        let (graph, batches) = (&machine.graph, &machine.batches);
        let edge_bytes = if weighted {
            graph.edge_kind().bytes() as u64
        } else {
            0
        };
        let (vertices, arcs) = (batches.vertices(), graph.arcs());
        let mut bases = vec![0u64];
        let mut end = 0;
        for batch in 0..batches.len() {
            end += batches.span(batch).next_multiple_of(ALIGN as u64);
            bases.push(end);
        }
        // Batches far smaller than the alignment would leave most places empty.
        if vertices == 0
            || end > 2 * vertices + 16 * ALIGN as u64
            || end.max(arcs) > u64::from(u32::MAX)
        {
            return Ok(None);
        }
        let cursors = machine.workers.count() as u64 * 4 * batches.widest();
        let whole = arcs
            .saturating_mul(4 + edge_bytes)
            .saturating_add(4 * (vertices + 1) + cursors);
        if whole > bytes {
            return Ok(None);
        }
        let bases: Vec<u32> = bases.into_iter().map(|base| base as u32).collect();
        let room = |bytes: u64| machine.budget.buffer("decoded lists", bytes as usize);
        let (begins, first) = room(4 * (vertices + 1))?.into_parts();
        let (places, second) = room(4 * arcs)?.into_parts();
        let (weights, third) = room(edge_bytes * arcs)?.into_parts();
        let cursors = machine.budget.lease("decoded lists", cursors)?;
        // The edges of a row of cells lie together, as its sources do.
        let mut ends = vec![0];
        let mut end = 0;
        for batch in 0..batches.len() {
            end += cells_of(machine, batch)
                .map(|(_, _, cell)| cell.edges())
                .sum::<u64>() as usize;
            ends.push(end);
        }
        let starts = (0..=batches.len())
            .map(|b| batches.cut(b) as usize + usize::from(b == batches.len()))
            .collect();
        let scale = |by: usize| ends.iter().map(|end| end * by).collect();
        let job = Decode {
            machine,
            pins,
            begins: Segments::new(begins, starts),
            places: Segments::new(places, scale(1)),
            weights: Segments::new(weights, scale(edge_bytes as usize)),
            edge_bytes: edge_bytes as usize,
            ends: &ends,
            bases: &bases,
            next: AtomicUsize::new(0),
        };
        run(machine, &job)?;
        drop(cursors);
        let (begins, places, weights) = (
            job.begins.into_buffer(),
            job.places.into_buffer(),
            job.weights.into_buffer(),
        );
        Ok(Some(Adjacency {
            begins,
            places,
            weights,
            bases,
            _leases: [first, second, third],
        }))
    }

    /// Number of places.
    pub(crate) fn places(&self) -> usize {
        self.bases.last().copied().unwrap_or(0) as usize
    }
    /// The places of a batch, its last ones without a vertex.
    pub(crate) fn places_of(&self, batch: usize) -> Range<usize> {
        self.bases[batch] as usize..self.bases[batch + 1] as usize
    }
    /// Has where the list of a vertex begins on its way into the cache.
    #[inline(always)]
    pub(crate) fn prefetch_begin(&self, v: u64) {
        prefetch(self.begins.typed::<u32>(), v as usize);
    }
    /// Has the first places of a vertex on their way into the cache.
    #[inline(always)]
    pub(crate) fn prefetch_list(&self, v: u64) {
        if let Some(from) = self.begins.typed::<u32>().get(v as usize) {
            prefetch(self.places.typed::<u32>(), *from as usize);
        }
    }
    /// The list of a vertex.
    #[inline(always)]
    pub(crate) fn list(&self, v: u64, edge_bytes: usize) -> List<'_> {
        let begins = self.begins.typed::<u32>();
        let v = v as usize;
        let (from, to) = match begins.get(v..v + 2) {
            Some([from, to]) => (*from as usize, *to as usize),
            _ => (0, 0),
        };
        List {
            places: self.places.typed::<u32>().get(from..to).unwrap_or(&[]),
            weights: self
                .weights
                .get(from * edge_bytes..to * edge_bytes)
                .unwrap_or(&[]),
        }
    }
}

/// The cells of a source batch: column, position in it, and the cell.
fn cells_of<'m>(
    machine: &'m Machine<'_>,
    batch: usize,
) -> impl Iterator<Item = (usize, usize, &'m Cell)> {
    machine.row(batch).iter().filter_map(|place| {
        let (column, position) = (place.column as usize, place.position as usize);
        let cell = machine.graph.column(column).cells().get(position)?;
        Some((column, position, cell))
    })
}

/// Decoding as a job: each step is one source batch.
struct Decode<'p> {
    machine: &'p Machine<'p>,
    pins: &'p Pins,
    begins: Segments<u32>,
    places: Segments<u32>,
    weights: Segments<u8>,
    edge_bytes: usize,
    /// Where the edges of each batch begin.
    ends: &'p [usize],
    bases: &'p [u32],
    next: AtomicUsize,
}

impl Decode<'_> {
    fn batch(&self, batch: usize) -> Result<(), EngineError> {
        let (Some(mut begins), Some(mut places), Some(mut weights)) = (
            self.begins.write(batch),
            self.places.write(batch),
            self.weights.write(batch),
        ) else {
            return Ok(());
        };
        let span = self.machine.batches.span(batch) as usize;
        // How many edges each vertex has, then where its next one goes.
        let mut cursors = vec![0u32; span];
        self.groups(batch, |source, list, _| {
            let count = cursors.get_mut(source)?;
            *count += list.len() as u32;
            Some(())
        })?;
        let mut end = 0;
        for (cursor, begin) in cursors.iter_mut().zip(begins.iter_mut()) {
            *begin = (self.ends[batch] + end) as u32;
            let count = *cursor as usize;
            *cursor = end as u32;
            end += count;
        }
        if let Some(last) = begins.get_mut(span) {
            *last = (self.ends[batch] + end) as u32;
        }
        let bytes = self.edge_bytes;
        self.groups(batch, |source, list, of_edges| {
            let cursor = cursors.get_mut(source)?;
            let (from, to) = (*cursor as usize, *cursor as usize + list.len());
            for (place, local) in places.get_mut(from..to)?.iter_mut().zip(list) {
                *place = of_edges.base + local;
            }
            if bytes > 0 {
                let first = of_edges.first * bytes;
                weights
                    .get_mut(from * bytes..to * bytes)?
                    .copy_from_slice(of_edges.weights.get(first..first + list.len() * bytes)?);
            }
            *cursor = to as u32;
            Some(())
        })
    }

    /// Calls `f` with each list of each cell of a row; it answers `None` when a list does not fit.
    fn groups(
        &self,
        batch: usize,
        mut f: impl FnMut(usize, &[u32], OfEdges<'_>) -> Option<()>,
    ) -> Result<(), EngineError> {
        let machine = self.machine;
        let mut scratch = Box::new([0; BLOCK_EDGES_MAX]);
        let mut sources = Box::new([0; BLOCK_EDGES_MAX]);
        for (column, position, cell) in cells_of(machine, batch) {
            let broken = || machine.graph.broken_cell(column, cell);
            let (mut bytes, weights) = self
                .pins
                .cell(machine, column, position)
                .ok_or_else(broken)?;
            let span = machine.batches.span(column) as u32;
            let offset = machine.global_offset(batch, column);
            let mut edges = 0;
            while !bytes.is_empty() {
                let parsed = BlockView::parse(bytes, offset)
                    .map_err(|error| machine.broken(column, cell, &error))?;
                let (block, used) = parsed.ok_or_else(broken)?;
                bytes = &bytes[used..];
                let count = block.sources(&mut sources);
                let mut fits = true;
                block.for_each_group(
                    &mut scratch,
                    &sources[..count],
                    |_| true,
                    |group, list, first| {
                        let of_edges = OfEdges {
                            base: self.bases[column],
                            first: edges + first,
                            weights,
                        };
                        fits &= list.iter().all(|local| *local < span)
                            && f(sources[group] as usize, list, of_edges).is_some();
                    },
                );
                if !fits {
                    return Err(broken().into());
                }
                edges += block.edges();
            }
            if edges as u64 != cell.edges() {
                return Err(broken().into());
            }
        }
        Ok(())
    }
}

/// Where the edges of a list belong.
struct OfEdges<'c> {
    /// The place of the first vertex of their column.
    base: u32,
    /// The number of the first edge within its cell.
    first: usize,
    /// The weights of the cell.
    weights: &'c [u8],
}

impl Job for Decode<'_> {
    fn step(&self, _: &mut Worker) -> Result<Step, JobError> {
        self.machine.check_stop()?;
        let batch = self.next.fetch_add(1, Ordering::Relaxed);
        if batch >= self.machine.batches.len() {
            return Ok(Step::Finished);
        }
        self.batch(batch)?;
        Ok(Step::Worked)
    }
}
