//! Lists: the edges of every vertex, decoded, one list after the other.
//!
//! They take more memory than cells, and are gone to by vertex at the cost of one look-up: for work that jumps about.
//! Passes over all edges do not use them: packed blocks move fewer bytes.
//!
//! A list is in ascending order of destinations. A record is the destination's index in one word of 32 bits; where weights
//! were asked for, one or two words more hold the edge's.

use graphmill_graph::{BLOCK_EDGES_MAX, BlockView, DISK_PAGE_BYTES, EdgeKind, PageCache};
use graphmill_raw::{AlignedBuffer, BorrowedSegments, prefetch};
use graphmill_storage::{DataKind, Lease};

use crate::cache::cells::{CellCache, fits_nodes};
use crate::context::{ExecContext, each_batch};
use crate::error::{EngineError, ensure};
use crate::graph_view::starts;
use crate::metrics::traffic::{Access, WorkerTraffic};
use crate::schedule::numa;
use crate::value::{EdgeRecords, EdgeValue, value_in};

/// Frames of degrees that a worker keeps.
const DEGREE_FRAMES: usize = 2;

/// The lists of all vertices.
pub(crate) struct AdjacencyLists {
    /// For each vertex the edges before its list, and before the end.
    begins: AlignedBuffer,
    records: AlignedBuffer,
    /// The kind of the value that a record holds after the destination.
    pub(crate) kind: EdgeKind,
    leases: [Lease; 2],
}

/// Words of a record.
fn words(kind: EdgeKind) -> usize {
    1 + kind.bytes() / size_of::<u32>()
}

/// Gives `$body` the words of a record as a constant.
macro_rules! with_words {
    ($lists:expr, |$words:ident| $body:expr) => {
        match $lists.kind {
            graphmill_graph::EdgeKind::None => {
                const $words: usize = 1;
                $body
            }
            graphmill_graph::EdgeKind::F32 => {
                const $words: usize = 2;
                $body
            }
            graphmill_graph::EdgeKind::F64 => {
                const $words: usize = 3;
                $body
            }
        }
    };
}
pub(crate) use with_words;

impl AdjacencyLists {
    /// Returns the bytes of the budget that the lists take, and the bytes that only loading takes.
    ///
    /// The lists take `u64::MAX` if the nodes that they are bound to have less memory than they need.
    pub(crate) fn memory(context: &ExecContext, weighted: bool) -> (u64, u64) {
        let (batches, graph) = (&context.batches, &context.graph);
        let record = 4 * words(context.weight_kind(weighted)) as u64;
        let begins = AlignedBuffer::footprint(8 * (batches.vertices() as usize + 1));
        let records = graph.arcs().saturating_mul(record).saturating_add(4096);
        let worker =
            8 * batches.widest() + (DEGREE_FRAMES as u64) * DISK_PAGE_BYTES + SCRATCH_BYTES;
        let starts = 5 * 8 * batches.len() as u64;
        if !fits_nodes(context, begins, records) {
            return (u64::MAX, 0);
        }
        let begins = context.tiers.leased(DataKind::Index, begins);
        let records = context.tiers.leased(DataKind::Edges, records);
        (
            begins.saturating_add(records),
            worker * context.workers.count() as u64 + starts,
        )
    }

    /// True if all edges are of this rank, and their destinations fit a word.
    pub(crate) fn possible(context: &ExecContext) -> bool {
        context.ranks.alone() && (1..=u64::from(u32::MAX)).contains(&context.batches.vertices())
    }

    /// Decodes all cells, which are cached.
    pub(crate) fn load(
        context: &ExecContext,
        cell_cache: &CellCache,
        weighted: bool,
    ) -> Result<Self, EngineError> {
        let batches = &context.batches;
        let kind = context.weight_kind(weighted);
        let besides = Self::memory(context, weighted).1;
        let _besides = context.budget.lease("loading lists", besides)?;
        let (tiers, budget) = (&context.tiers, &context.budget);
        // The edges of a row of cells lie together, as its sources do.
        let edges_of = |batch| {
            let cells = context.cells_at(context.cells_from(batch));
            cells.map(|(_, _, cell)| cell.edges() as usize).sum()
        };
        let ends: Vec<usize> = starts((0..batches.len()).map(edges_of));
        // Each file has the lists of a range of batches, as a node has.
        let room = |kind, bytes: u64, at: &dyn Fn(usize) -> usize| {
            let parts = tiers.parts(kind);
            let cut = |part| at(numa::first_of(part, parts, batches.len()));
            tiers.buffer_in_parts(kind, budget, "lists of edges", bytes as usize, cut)
        };
        let begin = |batch| 8 * batches.cut(batch) as usize;
        let begins = room(DataKind::Index, 8 * (batches.vertices() + 1), &begin)?;
        let (begins, first) = begins.into_parts();
        let records = context.graph.arcs() * 4 * words(kind) as u64;
        let record = |batch: usize| 4 * words(kind) * ends.get(batch).copied().unwrap_or(0);
        let (records, second) = room(DataKind::Edges, records, &record)?.into_parts();
        let of_records = ends.iter().map(|end| end * words(kind)).collect();
        let first_of = |b| batches.cut(b) as usize + usize::from(b == batches.len());
        let of_begins = (0..=batches.len()).map(first_of).collect();
        let job = Loading {
            context,
            cell_cache,
            begins: BorrowedSegments::new(begins, of_begins),
            records: BorrowedSegments::new(records, of_records),
            kind,
            ends: &ends,
        };
        let all: Vec<usize> = (0..batches.len()).collect();
        each_batch(context, &all, |batch, _| job.batch(batch))?;
        Ok(AdjacencyLists {
            begins: job.begins.into_buffer(),
            records: job.records.into_buffer(),
            kind,
            leases: [first, second],
        })
    }

    /// True if the edges have their weights with them, or have none.
    pub(crate) fn suits(&self, context: &ExecContext, weighted: bool) -> bool {
        !weighted || self.kind == context.graph.edge_kind()
    }
    /// Bytes of them.
    pub(crate) fn bytes(&self) -> u64 {
        (self.begins.len() + self.records.len()) as u64
    }

    /// Bytes of the budget that they take.
    pub(crate) fn leased_bytes(&self) -> u64 {
        self.leases.iter().map(Lease::bytes).sum()
    }

    /// Counts reads of the lists of `vertices` vertices with `edges` edges in total.
    pub(crate) fn count(&self, traffic: &WorkerTraffic, vertices: u64, edges: u64) {
        let [begin, record] = [2 * size_of::<u64>(), words(self.kind) * size_of::<u32>()];
        traffic.read(DataKind::Index, Access::Random, vertices * begin as u64);
        traffic.read(DataKind::Edges, Access::Random, edges * record as u64);
    }

    /// Has where the list of a vertex begins on its way into the cache.
    #[inline(always)]
    pub(crate) fn prefetch_begin(&self, v: usize) {
        prefetch(self.begins.typed::<u64>(), v);
    }
    /// Has the first edges of a vertex on their way into the cache.
    #[inline(always)]
    pub(crate) fn prefetch_list<const WORDS: usize>(&self, v: usize) {
        if let Some(from) = self.begins.typed::<u64>().get(v) {
            prefetch(self.records.typed::<[u32; WORDS]>(), *from as usize);
        }
    }
    /// Returns `EDGES` edges from the first one of a vertex on, which may belong to later vertices.
    ///
    /// No branch depends on the vertex's degree.
    #[inline(always)]
    pub(crate) fn from<const WORDS: usize, const EDGES: usize>(
        &self,
        v: usize,
    ) -> &[[u32; WORDS]; EDGES] {
        let begins = self.begins.typed::<u64>();
        let records = self.records.typed::<[u32; WORDS]>();
        begins
            .get(v)
            .and_then(|from| records.get(*from as usize..)?.first_chunk())
            .unwrap_or(&[[0; WORDS]; EDGES])
    }
    /// Number of edges of a vertex.
    #[inline(always)]
    pub(crate) fn degree(&self, v: usize) -> u64 {
        match self.begins.typed::<u64>().get(v..v + 2) {
            Some([from, to]) => to - from,
            _ => 0,
        }
    }
    /// The edges of a vertex, `WORDS` words each as [`with_words`] says.
    #[inline(always)]
    pub(crate) fn of<const WORDS: usize>(&self, v: usize) -> &[[u32; WORDS]] {
        let (from, to) = match self.begins.typed::<u64>().get(v..v + 2) {
            Some([from, to]) => (*from as usize, *to as usize),
            _ => (0, 0),
        };
        self.records.typed().get(from..to).unwrap_or(&[])
    }
    /// Calls `visit` with the other end of each edge of a vertex, whatever else its records hold.
    #[inline(always)]
    pub(crate) fn each_neighbour(&self, v: usize, visit: impl FnMut(u32)) {
        with_words!(self, |WORDS| {
            let records = self.of::<WORDS>(v).iter();
            records.map(|record| record[0]).for_each(visit);
        });
    }

    /// Returns the edges of a vertex as records of any kind.
    pub(crate) fn records_of(&self, v: usize) -> EdgeRecords<'_> {
        let words = words(self.kind);
        let range = match self.begins.typed::<u64>().get(v..v + 2) {
            Some([from, to]) => *from as usize * words..*to as usize * words,
            _ => 0..0,
        };
        EdgeRecords {
            words: self.records.typed::<u32>().get(range).unwrap_or(&[]),
            of_record: words,
        }
    }

    /// Returns the list of a vertex, and the same with `more` records of the next vertices after it.
    ///
    /// A walk in order of vertices needs those records next.
    #[inline(always)]
    pub(crate) fn with_next<const WORDS: usize>(
        &self,
        v: usize,
        more: usize,
    ) -> (&[[u32; WORDS]], &[[u32; WORDS]]) {
        let list = self.of::<WORDS>(v);
        let begins = self.begins.typed::<u64>();
        let from = begins.get(v).map_or(0, |from| *from as usize);
        let records = self.records.typed::<[u32; WORDS]>();
        let end = (from + list.len() + more).min(records.len());
        (list, records.get(from..end).unwrap_or(list))
    }
}

/// The value of the edge that a record stands for.
#[inline(always)]
pub(crate) fn value_of<E: EdgeValue, const WORDS: usize>(record: &[u32; WORDS]) -> E {
    value_in(record)
}

/// The scratch memory of a worker that decodes blocks.
const SCRATCH_BYTES: u64 = 2 * (BLOCK_EDGES_MAX * size_of::<u32>()) as u64;

/// Loading as a job: each step is one source batch.
struct Loading<'p> {
    context: &'p ExecContext<'p>,
    cell_cache: &'p CellCache,
    begins: BorrowedSegments<u64>,
    records: BorrowedSegments<u32>,
    kind: EdgeKind,
    /// Where the edges of each batch begin.
    ends: &'p [usize],
}

impl Loading<'_> {
    fn batch(&self, batch: usize) -> Result<(), EngineError> {
        let (Some(mut begins), Some(mut records)) =
            (self.begins.write(batch), self.records.write(batch))
        else {
            return Ok(());
        };
        let (context, graph) = (self.context, self.context.graph);
        let span = context.batches.span(batch) as usize;
        let mut frames = PageCache::new(graph, &context.budget, DEGREE_FRAMES)?;
        graph.degrees(graph.forward(), &mut frames, batch, &mut begins[..span])?;
        context.arrays.count_read(frames.take_bytes_read());
        // The position of the next edge of each vertex, from the first of the batch.
        let mut cursors = vec![0_u64; span];
        let mut end = 0;
        for (cursor, begin) in cursors.iter_mut().zip(begins.iter_mut()) {
            let degree = *begin;
            *begin = self.ends[batch] as u64 + end;
            *cursor = end;
            end += degree;
        }
        if let Some(last) = begins.get_mut(span) {
            *last = self.ends[batch] as u64 + end;
        }
        let (cursors, records) = (&mut cursors, &mut records);
        with_words!(self, |WORDS| self.rows::<WORDS>(batch, cursors, records)?);
        // The lists are full if each ends where the next one begins.
        let base = self.ends[batch] as u64;
        let nexts = begins.iter().skip(1).map(|begin| begin - base).chain([end]);
        let are_full = cursors
            .iter()
            .zip(nexts)
            .all(|(cursor, next)| *cursor == next);
        let has_all = end as usize == self.ends[batch + 1] - self.ends[batch];
        ensure(are_full && has_all, || graph.degrees_disagree(batch))
    }

    /// Puts the edges of a row of cells into the lists.
    fn rows<const WORDS: usize>(
        &self,
        batch: usize,
        cursors: &mut [u64],
        records: &mut [u32],
    ) -> Result<(), EngineError> {
        let context = self.context;
        let (records, _) = records.as_chunks_mut::<WORDS>();
        let mut scratch = Box::new([0; BLOCK_EDGES_MAX]);
        let mut sources = Box::new([0; BLOCK_EDGES_MAX]);
        for (column, position, cell) in context.cells_at(context.cells_from(batch)) {
            let broken = || context.graph.corrupt_cell(column, cell);
            let pinned = self.cell_cache.cell(context, column, position);
            let (mut bytes, weights) = pinned.ok_or_else(broken)?;
            let (weights, _) = weights.as_chunks::<4>();
            let span = context.batches.span(column) as u32;
            let base = context.batches.start(column) as u32;
            let offset = context.global_offset(batch, column);
            let mut edges = 0;
            while !bytes.is_empty() {
                let parsed = BlockView::parse(bytes, offset)
                    .map_err(|error| context.broken(column, cell, &error))?;
                let (block, used) = parsed.ok_or_else(broken)?;
                bytes = &bytes[used..];
                let count = block.sources(&mut sources);
                let mut put = |source: u32, list: &[u32], first: usize| {
                    let cursor = cursors.get_mut(source as usize)?;
                    let from = *cursor as usize;
                    *cursor += list.len() as u64;
                    let into = records.get_mut(from..from + list.len())?;
                    let first = (edges + first) * (WORDS - 1);
                    let weights = weights.get(first..first + list.len() * (WORDS - 1))?;
                    for (i, (record, local)) in into.iter_mut().zip(list).enumerate() {
                        record[0] = base + *local;
                        for word in 1..WORDS {
                            record[word] = u32::from_le_bytes(weights[i * (WORDS - 1) + word - 1]);
                        }
                    }
                    list.iter().all(|local| *local < span).then_some(())
                };
                let mut fits = true;
                block.for_each_group(
                    &mut scratch,
                    &sources[..count],
                    |_| true,
                    |group, list, first| fits &= put(sources[group], list, first).is_some(),
                );
                ensure(fits, broken)?;
                edges += block.edges();
            }
            ensure(edges as u64 == cell.edges(), broken)?;
        }
        Ok(())
    }
}
