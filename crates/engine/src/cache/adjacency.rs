//! Lists: the edges of every vertex, decoded, one list after the other.
//!
//! A rank has lists of the arcs into its own vertices: by source, for work that goes along them, or by destination
//! ([`AdjacencyLists::load_incoming`]). If the graph is symmetric and there is one rank, the two are the same.
//!
//! They take more memory than cells, and are gone to by vertex at the cost of one look-up: for work that jumps about.
//! Passes over all edges do not use them: packed blocks move fewer bytes.
//!
//! A list is in ascending order of destinations. A record is the destination's index in one word of 32 bits; where data
//! was asked for, one, two or four words more hold the edge's.

use graphmill_graph::{
    BLOCK_EDGES_MAX, BlockView, Cell, DISK_PAGE_BYTES, EdgeKind, Layout, PageCache,
};
use graphmill_raw::{AlignedBuffer, BorrowedSegments, prefetch};
use graphmill_storage::{Buffer, DataKind, Lease};

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

/// Words of a record: the destination, and 0, 1, 2 or 4 words of data.
fn words(kind: EdgeKind) -> usize {
    match kind.bytes() {
        0 => 1,
        1..=4 => 2,
        5..=8 => 3,
        _ => 5,
    }
}

/// Gives `$body` the words of a record as a constant.
macro_rules! with_words {
    ($lists:expr, |$words:ident| $body:expr) => {
        match $lists.words() {
            1 => {
                const $words: usize = 1;
                $body
            }
            2 => {
                const $words: usize = 2;
                $body
            }
            3 => {
                const $words: usize = 3;
                $body
            }
            _ => {
                const $words: usize = 5;
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
        let batches = &context.batches;
        let record = 4 * words(context.weight_kind(weighted)) as u64;
        let arcs = own_arcs(context);
        let begins = AlignedBuffer::footprint(8 * (batches.vertices() as usize + 1));
        let records = arcs.saturating_mul(record).saturating_add(4096);
        let starts = 5 * 8 * batches.len() as u64;
        if !fits_nodes(context, begins, records) {
            return (u64::MAX, 0);
        }
        let begins = context.tiers.leased(DataKind::Index, begins);
        let records = context.tiers.leased(DataKind::Edges, records);
        (
            begins.saturating_add(records),
            Self::loading_by_worker(context) * context.workers.count() as u64 + starts,
        )
    }

    /// Returns the bytes that a worker takes to load lists.
    pub(crate) fn loading_by_worker(context: &ExecContext) -> u64 {
        let widest = context.batches.widest();
        8 * widest + (DEGREE_FRAMES as u64) * DISK_PAGE_BYTES + SCRATCH_BYTES
    }

    /// True if destinations fit a word, and the graph has cells to decode.
    pub(crate) fn possible(context: &ExecContext) -> bool {
        let fits = (1..=u64::from(u32::MAX)).contains(&context.batches.vertices());
        fits && context.graph.layout() == Layout::Column && context.options.buckets.is_none()
    }

    /// Decodes all cells of this rank, which are cached.
    pub(crate) fn load(
        context: &ExecContext,
        cell_cache: &CellCache,
        weighted: bool,
    ) -> Result<Self, EngineError> {
        // The edges of a row of cells lie together, as its sources do.
        let edges_of = |batch| {
            let cells = context.own_cells_from(batch);
            cells.map(|(_, _, cell)| cell.edges() as usize).sum()
        };
        let kind = context.weight_kind(weighted);
        Self::decode(context, cell_cache, kind, &edges_of, |lists, batch| {
            lists.sources(batch)
        })
    }

    /// Decodes the sources of the arcs into each vertex of this rank.
    ///
    /// Other vertices have empty lists.
    pub(crate) fn load_incoming(
        context: &ExecContext,
        cell_cache: &CellCache,
    ) -> Result<Self, EngineError> {
        let edges_of = |batch| {
            let cells = context.own_cells(batch).iter();
            cells.map(|cell| cell.edges() as usize).sum()
        };
        let kind = EdgeKind::None;
        Self::decode(context, cell_cache, kind, &edges_of, |lists, batch| {
            lists.destinations(batch)
        })
    }

    /// Decodes lists batch by batch; `edges_of` returns the edges of the lists of a batch.
    fn decode(
        context: &ExecContext,
        cell_cache: &CellCache,
        kind: EdgeKind,
        edges_of: &dyn Fn(usize) -> usize,
        of_batch: impl Fn(&Loading<'_>, usize) -> Result<(), EngineError> + Sync,
    ) -> Result<Self, EngineError> {
        let batches = &context.batches;
        let weighted = kind != EdgeKind::None;
        let besides = Self::memory(context, weighted).1;
        let _besides = context.budget.lease("loading lists", besides)?;
        let (tiers, budget) = (&context.tiers, &context.budget);
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
        let records = own_arcs(context) * 4 * words(kind) as u64;
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
        each_batch(context, &all, |batch, _| of_batch(&job, all[batch]))?;
        Ok(AdjacencyLists {
            begins: job.begins.into_buffer(),
            records: job.records.into_buffer(),
            kind,
            leases: [first, second],
        })
    }

    /// Returns lists of where they begin and of the other ends of their edges.
    pub(crate) fn of_buffers(begins: Buffer, records: Buffer) -> Self {
        let ((begins, first), (records, second)) = (begins.into_parts(), records.into_parts());
        AdjacencyLists {
            begins,
            records,
            kind: EdgeKind::None,
            leases: [first, second],
        }
    }

    /// Words of a record.
    pub(crate) fn words(&self) -> usize {
        words(self.kind)
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

/// Puts the data of edges, `width` bytes each, behind the destinations of their records.
#[inline(always)]
fn put_data<const WORDS: usize>(records: &mut [[u32; WORDS]], data: &[u8], width: usize) {
    if width == size_of::<u32>() * (WORDS - 1) {
        let mut words = data.as_chunks().0.iter();
        for record in records {
            for (word, bytes) in record[1..].iter_mut().zip(&mut words) {
                *word = u32::from_le_bytes(*bytes);
            }
        }
        return;
    }
    for (record, data) in records.iter_mut().zip(data.chunks_exact(width)) {
        for (word, data) in record[1..].iter_mut().zip(data.chunks(size_of::<u32>())) {
            let mut bytes = [0; size_of::<u32>()];
            bytes[..data.len()].copy_from_slice(data);
            *word = u32::from_le_bytes(bytes);
        }
    }
}

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

/// Arcs into the vertices of this rank.
fn own_arcs(context: &ExecContext) -> u64 {
    match context.ranks.alone() {
        true => context.graph.arcs(),
        false => context.all_own_cells().map(Cell::edges).sum(),
    }
}

impl Loading<'_> {
    fn words(&self) -> usize {
        words(self.kind)
    }

    /// Decodes the lists of the sources of a batch.
    fn sources(&self, batch: usize) -> Result<(), EngineError> {
        with_words!(self, |WORDS| self.sources_of::<WORDS>(batch))
    }

    fn sources_of<const WORDS: usize>(&self, batch: usize) -> Result<(), EngineError> {
        let (context, graph) = (self.context, self.context.graph);
        let cells = || context.own_cells_from(batch);
        let degrees = |degrees: &mut [u64]| {
            if !context.ranks.alone() {
                // The file has the degrees of all arcs, wherever they lead.
                return self.each_list(cells(), |list| {
                    let degree = degrees.get_mut(list.source as usize);
                    let more = list.destinations.len() as u64;
                    degree.map(|degree| *degree += more).is_some()
                });
            }
            let mut frames = PageCache::new(graph, &context.budget, DEGREE_FRAMES)?;
            graph.degrees(graph.forward(), &mut frames, batch, degrees)?;
            context.arrays.count_read(frames.take_bytes_read());
            Ok(())
        };
        self.fill(batch, degrees, |cursors, records| {
            let (records, _) = records.as_chunks_mut::<WORDS>();
            self.each_list(cells(), |list| {
                let Some(cursor) = cursors.get_mut(list.source as usize) else {
                    return false;
                };
                let from = *cursor as usize;
                *cursor += list.destinations.len() as u64;
                let Some(into) = records.get_mut(from..*cursor as usize) else {
                    return false;
                };
                for (record, local) in into.iter_mut().zip(list.destinations) {
                    record[0] = list.first_destination + *local;
                }
                put_data(into, list.data, self.kind.bytes());
                true
            })
        })
    }

    /// Decodes the lists of the destinations of a batch, if it is of this rank.
    fn destinations(&self, batch: usize) -> Result<(), EngineError> {
        let context = self.context;
        let cells = || {
            let cells = context.own_cells(batch).iter().enumerate();
            cells.map(|(position, cell)| (batch, position, cell))
        };
        let degrees = |degrees: &mut [u64]| {
            self.each_list(cells(), |list| {
                let mut locals = list.destinations.iter();
                locals.all(|local| {
                    let degree = degrees.get_mut(*local as usize);
                    degree.map(|degree| *degree += 1).is_some()
                })
            })
        };
        self.fill(batch, degrees, |cursors, records| {
            self.each_list(cells(), |list| {
                let source = list.first_source + list.source;
                let mut locals = list.destinations.iter();
                locals.all(|local| {
                    let place = cursors.get_mut(*local as usize).and_then(|cursor| {
                        *cursor += 1;
                        records.get_mut(*cursor as usize - 1)
                    });
                    place.map(|record| *record = source).is_some()
                })
            })
        })
    }

    /// Fills the lists of a batch.
    ///
    /// `degrees` adds up the length of each list. `fill` takes the place of the next edge of each, and moves it on.
    fn fill(
        &self,
        batch: usize,
        degrees: impl FnOnce(&mut [u64]) -> Result<(), EngineError>,
        fill: impl FnOnce(&mut [u64], &mut [u32]) -> Result<(), EngineError>,
    ) -> Result<(), EngineError> {
        let (Some(mut begins), Some(mut records)) =
            (self.begins.write(batch), self.records.write(batch))
        else {
            return Ok(());
        };
        let (context, graph) = (self.context, self.context.graph);
        let span = context.batches.span(batch) as usize;
        degrees(&mut begins[..span])?;
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
        fill(&mut cursors, &mut records)?;
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

    /// Calls `visit` with the list of each source in each of some cells.
    ///
    /// `visit` returns `false` if a list makes no sense.
    fn each_list<'c>(
        &self,
        cells: impl Iterator<Item = (usize, usize, &'c Cell)>,
        mut visit: impl FnMut(CellList<'_>) -> bool,
    ) -> Result<(), EngineError> {
        let context = self.context;
        let width = self.kind.bytes();
        let mut scratch = Box::new([0; BLOCK_EDGES_MAX]);
        let mut sources = Box::new([0; BLOCK_EDGES_MAX]);
        for (column, position, cell) in cells {
            let broken = || context.graph.corrupt_cell(column, cell);
            let pinned = self.cell_cache.cell(context, column, position);
            let (mut bytes, weights) = pinned.ok_or_else(broken)?;
            let span = context.batches.span(column) as u32;
            let from = cell.source_batch();
            let [first_source, first_destination] =
                [from, column].map(|batch| context.batches.start(batch) as u32);
            let offset = context.global_offset(from, column);
            let mut edges = 0;
            while !bytes.is_empty() {
                let parsed = BlockView::parse(bytes, offset)
                    .map_err(|error| context.broken(column, cell, &error))?;
                let (block, used) = parsed.ok_or_else(broken)?;
                bytes = &bytes[used..];
                let count = block.sources(&mut sources);
                let mut fits = true;
                block.for_each_group(
                    &mut scratch,
                    &sources[..count],
                    |_| true,
                    |group, destinations, first| {
                        let first = edges + first;
                        let data = first * width..(first + destinations.len()) * width;
                        fits &= destinations.iter().all(|local| *local < span);
                        fits &= weights.get(data).is_some_and(|data| {
                            visit(CellList {
                                first_source,
                                source: sources[group],
                                first_destination,
                                destinations,
                                data,
                            })
                        });
                    },
                );
                ensure(fits, broken)?;
                edges += block.edges();
            }
            ensure(edges as u64 == cell.edges(), broken)?;
        }
        Ok(())
    }
}

/// The edges of one source in one block of a cell, with their data.
struct CellList<'b> {
    /// The vertex that `source` is counted from, and that `destinations` are.
    first_source: u32,
    source: u32,
    first_destination: u32,
    destinations: &'b [u32],
    data: &'b [u8],
}
