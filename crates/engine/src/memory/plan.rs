//! What a pass takes of the memory budget, and how the rest is shared out.
//!
//! Accumulators and streams come first: without them there is no pass. Then messages, in memory if all of them fit,
//! else a window of them for each worker. The rest is for cells.

use std::ops::Range;

use graphmill_graph::{DISK_PAGE_BYTES, GraphDims};
use graphmill_raw::AlignedBuffer;
use graphmill_storage::{DataKind, Tiers};

use crate::comm::wire::{PEERS, Wire};
use crate::frontier::bitmap::HierarchicalBitmap;
use crate::memory::buckets::BucketShape;
use crate::memory::run_bytes;
use crate::memory::stream::StreamShape;
use crate::memory::stream_buffers::StreamBuffers;
use crate::memory::transposed;
use crate::program::footprint::ProgramFootprint;
use crate::schedule::numa;
use crate::schedule::window::RequestTimes;
use crate::state::row_file::RowFileIo;

/// Reads in flight for one stream.
const DEPTH: usize = 4;
/// Bytes of one read, at most and at least.
const CHUNK_BYTES_MAX: usize = 1 << 20;
const CHUNK_BYTES_MIN: usize = DISK_PAGE_BYTES as usize;
/// Minimum number of message batches on disk that a worker holds: the current and the next one.
pub(crate) const WINDOW_BATCHES_MIN: usize = 2;
/// Bytes of a cell in the list of a group, with its sort key.
const LISTED_CELL: usize = 136;
/// Bytes of a part of a block of messages, and of its entry in the index of all blocks.
///
/// They are in memory wherever the block lies.
/// If few bytes go to each of many batches, the parts take as much memory as the messages.
pub(crate) const PART_BYTES: u64 = 16;
/// Small things of one worker: queues, bitmaps of reached rows, frames of degrees.
const SMALL: u64 = 1 << 20;

/// The properties of a graph that its passes' memory depends on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GraphShape {
    /// Workers whose buffers the budget holds.
    pub(crate) workers: usize,
    /// The budget holds all rows of the program beside its passes.
    pub(crate) rows_fit: bool,
    batches: usize,
    vertices: u64,
    /// Vertices whose rows this rank has.
    own: u64,
    /// Bytes of the communication with other ranks.
    pub(crate) wire: u64,
    /// Vertices of the widest batch, and what its destinations can be packed to.
    pub(crate) widest: usize,
    pub(crate) entries: usize,
    /// Strips of the column that has most, and of all.
    pub(crate) strips: usize,
    targets: usize,
    /// Bytes of a bit a vertex, in whole words a batch.
    bits: u64,
    /// Bytes of the bitmaps of a set of vertices, with their summaries.
    pub(crate) set_of_vertices: u64,
    /// Bytes of the parts of blocks in a phase of a pass of messages, if each vertex sends one.
    pub(crate) parts: u64,
    /// The budget pays for messages and accumulators.
    messages_leased: bool,
    /// The budget pays for rows.
    rows_leased: bool,
    /// The chunks of a graph in the stream layout.
    chunks: Option<StreamShape>,
    /// Passes are of the bucket executor.
    in_buckets: Option<BucketShape>,
}

/// How the free part of a budget is shared out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PassMemory {
    pub(crate) stream: StreamBuffers,
    /// Pairs of streams.
    pub(crate) readers: usize,
    /// Sets of accumulators.
    pub(crate) sets: usize,
    /// Strips that one worker folds side by side.
    pub(crate) group: usize,
    /// Batches of messages that each worker holds; `None` when all messages are in memory.
    pub(crate) window_batches: Option<usize>,
    /// Ranks to which messages go at the same time, and from which they come, at most.
    pub(crate) peers: usize,
    /// Bytes that messages take, in memory or as windows on those on disk.
    pub(crate) messages: u64,
    /// Bytes that stay free beside the messages: sets, streams, rows, small things.
    pub(crate) besides: u64,
    /// Bytes of a set of accumulators.
    pub(crate) set_bytes: u64,
    /// All that passes take where messages are in memory.
    pub(crate) takes: u64,
}

impl GraphShape {
    /// The shape for passes of one worker.
    pub(crate) fn of(graph: &GraphDims) -> Self {
        let batches = &graph.batches;
        let each = || 0..batches.len();
        let own = graph.own.clone().unwrap_or(each());
        let parts = |of: Range<usize>, to: usize| -> u64 {
            of.map(|b| batches.span(b).min(to as u64) * PART_BYTES)
                .sum()
        };
        let received = graph.own.as_ref().map(|own| parts(each(), own.len()));
        GraphShape {
            parts: parts(own.clone(), batches.len()) + received.unwrap_or(0),
            workers: 1,
            rows_fit: false,
            batches: batches.len(),
            vertices: batches.vertices(),
            own: batches.cut(own.end) - batches.cut(own.start),
            wire: graph.own.as_ref().map_or(0, |_| Wire::BYTES),
            widest: batches.widest() as usize,
            entries: each().map(|b| 1 << batches.bits(b)).max().unwrap_or(1),
            strips: graph.strips_of_column,
            targets: graph.strips,
            bits: each().map(|b| 8 * batches.span(b).div_ceil(64)).sum(),
            set_of_vertices: own
                .map(|b| HierarchicalBitmap::bytes(batches.span(b) as usize))
                .sum(),
            messages_leased: true,
            rows_leased: true,
            in_buckets: None,
            chunks: graph.chunks.map(|chunks| StreamShape {
                workers: 1,
                is_alone: graph.own.is_none(),
                requests: 0,
                batches: batches.len(),
                widest: batches.widest() as usize,
                entries: each().map(|b| 1 << batches.bits(b)).max().unwrap_or(1),
                chunk_bytes: chunks.chunk_bytes,
                data_bytes: chunks.edges_max * graph.edge.bytes(),
                updates: chunks.arcs,
                window: None,
                transposed: transposed::least(graph),
            }),
        }
    }

    /// The same for passes of `workers` workers.
    pub(crate) fn with_workers(self, workers: usize) -> Self {
        GraphShape {
            workers,
            chunks: self.chunks.map(|chunks| StreamShape { workers, ..chunks }),
            ..self
        }
    }

    /// The same for the stream executor of `ranks` ranks.
    ///
    /// `window` is the number of requests on their way, if that is given.
    pub(crate) fn with_requests(self, ranks: usize, window: Option<usize>) -> Self {
        let of_ranks = |chunks: StreamShape| StreamShape {
            requests: RequestTimes::default().window(ranks, 0, None),
            window,
            updates: chunks.updates.div_ceil(ranks as u64),
            ..chunks
        };
        GraphShape {
            chunks: self.chunks.map(of_ranks),
            ..self
        }
    }

    /// The same for passes of the bucket executor, if there is one.
    pub(crate) fn in_buckets(self, in_buckets: Option<BucketShape>) -> Self {
        GraphShape { in_buckets, ..self }
    }

    /// The same once the cells that buckets are filled from are in memory, and threads have their roles.
    pub(crate) fn with_rows_of_cells(self, roles: [usize; 3]) -> Self {
        let roles = Some(roles);
        let loaded = |shape| BucketShape {
            rows: 0,
            roles,
            ..shape
        };
        self.in_buckets(self.in_buckets.map(loaded))
    }

    /// Returns the bytes of buckets, which are held from the start of a run to its end.
    pub(crate) fn held_by_buckets(&self) -> u64 {
        self.in_buckets.map_or(0, |shape| shape.held(self.workers))
    }

    /// Returns the bytes that messages of the bucket executor take in a pass outside of buckets.
    pub(crate) fn waiting_messages(&self, sizes: ProgramFootprint) -> u64 {
        (self.in_buckets).map_or(0, |shape| shape.waiting_messages(sizes, self.workers))
    }

    /// The chunks of a graph in the stream layout.
    pub(crate) fn chunks(&self) -> Option<StreamShape> {
        self.chunks
    }

    /// Returns the bytes that a pass over chunks takes beside its buffers.
    ///
    /// These are rows, bitmaps of sets, and small things.
    pub(crate) fn beside_chunks(&self, sizes: ProgramFootprint) -> u64 {
        let rows = (self.widest * sizes.rows + self.widest / 4) as u64;
        self.workers as u64 * (rows + SMALL) + 4 * self.set_of_vertices + SMALL
    }

    /// The same where all rows of the program are in memory.
    pub(crate) fn with_rows_in_memory(self) -> Self {
        GraphShape {
            rows_fit: true,
            ..self
        }
    }

    /// The same where data lies on such tiers.
    pub(crate) fn with_tiers(self, tiers: &Tiers) -> Self {
        GraphShape {
            messages_leased: tiers.leased(DataKind::Messages, 1) > 0,
            rows_leased: tiers.leased(DataKind::Vertices, 1) > 0,
            ..self
        }
    }

    /// Returns the bytes that rows in memory leave free.
    ///
    /// They are the least of a pass, or the bytes of the result if it takes more.
    /// `on_disk` bytes of a row are on disk, and workers borrow them.
    pub(crate) fn reserve(&self, sizes: ProgramFootprint, on_disk: usize) -> u64 {
        self.beside_rows(sizes, on_disk)
            .saturating_add(self.later())
    }

    fn beside_rows(&self, sizes: ProgramFootprint, on_disk: usize) -> u64 {
        let rows = sizes.borrowed_bytes(on_disk, true);
        let pass = self.pass(ProgramFootprint { rows, ..sizes });
        pass.max(sizes.result)
    }

    /// Returns the bytes that are taken between the first rows and the first pass.
    ///
    /// These are frames of degrees, and two sets of the driver.
    pub(crate) fn later(&self) -> u64 {
        RowFileIo::FRAMES_BYTES * self.workers as u64 + 2 * self.set_of_vertices
    }

    /// Returns the bytes that degrees in memory leave free: a pass whose messages are in memory.
    ///
    /// Messages profit more from memory, as degrees are read once a pass.
    pub(crate) fn reserve_with_degrees(&self, sizes: ProgramFootprint, on_disk: usize) -> u64 {
        let rows = sizes.borrowed_bytes(on_disk, false);
        let need = self.need(ProgramFootprint { rows, ..sizes }, CHUNK_BYTES_MIN);
        need.in_memory.max(sizes.result)
    }

    /// The vertices of this rank.
    pub(crate) fn own_vertices(&self) -> u64 {
        self.own
    }

    /// Returns the bytes that a program takes with its rows and messages in memory, if rows are known.
    pub(crate) fn all_resident(&self, sizes: ProgramFootprint, messages: bool) -> Option<u64> {
        let leased = u64::from(self.rows_leased);
        let rows = self.own.saturating_mul(sizes.arrays as u64 * leased);
        let besides = match messages {
            true => self.reserve_with_degrees(sizes, 0) + SMALL,
            false => self.beside_rows(sizes, 0),
        };
        let takes = rows.saturating_add(besides);
        (sizes.arrays > 0).then(|| takes.max(self.least(sizes)))
    }

    /// Returns the bytes of `free` that a program takes with rows, messages and edges in memory.
    ///
    /// Edges take `edges` bytes. `None` if rows are not known, or messages do not fit.
    pub(crate) fn with_edges(&self, sizes: ProgramFootprint, edges: u64, free: u64) -> Option<u64> {
        let leased = u64::from(self.rows_leased);
        let rows = self.own.saturating_mul(sizes.arrays as u64 * leased);
        let borrowed = sizes.borrowed_bytes(0, false);
        let sizes = ProgramFootprint {
            rows: borrowed,
            ..sizes
        };
        let plan = self.plan(sizes, free.checked_sub(rows)?)?;
        let besides = plan.takes.saturating_add(edges) + SMALL;
        let is_resident = sizes.arrays > 0 && plan.window_batches.is_none();
        is_resident.then(|| (rows.saturating_add(besides.max(sizes.result))).max(self.least(sizes)))
    }

    /// Returns the bytes that a vertex pass stages if rows are on disk.
    ///
    /// These are, for each worker, the rows of a batch (`row_bytes` each, in `arrays` arrays), a bitmap of changed rows, and frames
    /// of degrees; and the set of vertices that are active next.
    pub(crate) fn staging_bytes(&self, row_bytes: usize, arrays: usize) -> u64 {
        if row_bytes == 0 {
            return 0;
        }
        let workers = self.workers.min(self.batches) as u64;
        let rows = AlignedBuffer::footprint(self.widest * row_bytes) + 4096 * arrays as u64;
        let each = rows + (self.widest / 4) as u64 + RowFileIo::FRAMES_BYTES;
        workers * each + self.set_of_vertices
    }

    /// Returns the bytes of a row if `borrowed` bytes are staged.
    pub(crate) fn row_bytes(&self, borrowed: u64) -> usize {
        borrowed.div_ceil((self.workers * self.widest).max(1) as u64) as usize
    }

    /// Returns the bytes that a sparse pass takes after its queues.
    ///
    /// These are the rows of a batch on disk (`row_bytes` each), a bitmap of changed rows, the set of activated vertices, and frames of
    /// degrees.
    pub(crate) fn sparse_bytes(&self, row_bytes: usize) -> u64 {
        AlignedBuffer::footprint(self.widest * row_bytes)
            + (self.widest / 4) as u64
            + RowFileIo::FRAMES_BYTES * self.workers as u64
            + self.set_of_vertices
            + SMALL / 4
    }

    /// The least free bytes that a program can do with.
    pub(crate) fn least(&self, sizes: ProgramFootprint) -> u64 {
        let leased = [self.rows_leased, self.messages_leased];
        let bytes = |kind: usize| sizes.kept[kind] as u64 * self.own * u64::from(leased[kind]);
        let small = match sizes.kept {
            [0, 0] => 0,
            // Rows are in memory only where they leave as much as this free, and buffers are whole pages.
            _ => SMALL,
        };
        let [rows, messages] = [0, 1].map(bytes);
        let parts = 2 * self.parts * u64::from(sizes.sends);
        rows + (self.pass(sizes) + parts + messages + small).max(sizes.result)
    }

    /// The least free bytes that a pass can do with.
    fn pass(&self, sizes: ProgramFootprint) -> u64 {
        let need = self.need(sizes, CHUNK_BYTES_MIN);
        need.in_memory.min(need.on_disk)
    }

    /// Divides `free` bytes; returns `None` if they are too few.
    pub(crate) fn plan(&self, sizes: ProgramFootprint, free: u64) -> Option<PassMemory> {
        let workers = self.workers;
        let mut chunk_bytes =
            (free as usize / (64 * workers)).clamp(CHUNK_BYTES_MIN, CHUNK_BYTES_MAX);
        let mut need = self.need(sizes, chunk_bytes);
        while need.in_memory.min(need.on_disk) > free && chunk_bytes > CHUNK_BYTES_MIN {
            chunk_bytes = (chunk_bytes / 2).max(CHUNK_BYTES_MIN);
            need = self.need(sizes, chunk_bytes);
        }
        let set = self.set(sizes);
        let mut room = PassMemory {
            stream: need.stream,
            // A worker folds one column and has the next on its way.
            readers: 2 * workers,
            sets: 2 * workers + self.waiting(),
            group: 1,
            window_batches: None,
            peers: PEERS,
            messages: need.messages,
            besides: 0,
            set_bytes: set,
            takes: need.in_memory,
        };
        if need.in_memory > free {
            let left = free.checked_sub(need.on_disk)?;
            // Column groups are few and long: one stream for each worker, with all the reads.
            room.readers = workers;
            room.stream.depth *= 2;
            // The share of a worker goes half to sets of accumulators, so that messages are read less often, and half
            // to batches of messages, so that a set stays in the cache for more of them.
            let window = self.window(sizes, 1);
            let share = left / workers as u64 + set + WINDOW_BATCHES_MIN as u64 * window;
            let strip = set + self.strip_bytes(sizes);
            let most = (share - WINDOW_BATCHES_MIN as u64 * window) / strip.max(1);
            let group = (share / 2 / strip.max(1)).min(most) as usize;
            let group = group.clamp(1, self.targets.max(1));
            let groups = self.targets.div_ceil(group).next_multiple_of(workers);
            room.group = self.targets.div_ceil(groups.max(1)).max(1);
            room.sets = room.group * workers + self.waiting();
            let mut rest = share.saturating_sub(room.group as u64 * strip);
            room.peers = 1;
            // Other ranks have their turn beside the first where workers still hold more than the least.
            let more = (PEERS - 1) as u64 * self.passing(sizes).div_ceil(workers as u64);
            if rest >= more + (WINDOW_BATCHES_MIN + 1) as u64 * window {
                room.peers = PEERS;
                rest -= more;
            }
            let window_batches = (rest / window.max(1)) as usize;
            let window_batches =
                window_batches.clamp(WINDOW_BATCHES_MIN, self.batches.max(WINDOW_BATCHES_MIN));
            room.window_batches = Some(window_batches);
            room.messages = workers as u64 * self.window(sizes, window_batches)
                + room.peers as u64 * self.passing(sizes);
        }
        let more = (room.group - 1) as u64 * workers as u64 * self.strip_bytes(sizes);
        room.besides = need.fixed + room.sets as u64 * set + more;
        Some(room)
    }

    /// Returns the footprint with rows of at least `rows` bytes, if messages then stay where they are.
    ///
    /// Room that passes over vertices take stays free between those over edges.
    pub(crate) fn with_rows(
        &self,
        own: ProgramFootprint,
        rows: usize,
        free: u64,
    ) -> ProgramFootprint {
        let more = ProgramFootprint {
            rows: own.rows.max(rows),
            ..own
        };
        let is_in_memory = |sizes| {
            self.plan(sizes, free)
                .map(|room| room.window_batches.is_none())
        };
        let stay = is_in_memory(more).is_some_and(|there| is_in_memory(own) == Some(there));
        if stay { more } else { own }
    }

    /// True if passes can do with `free` bytes less `taken`.
    pub(crate) fn fits_beside(&self, sizes: ProgramFootprint, taken: u64, free: u64) -> bool {
        let left = free.checked_sub(taken);
        left.is_some_and(|left| self.plan(sizes, left).is_some())
    }

    fn need(&self, sizes: ProgramFootprint, chunk_bytes: usize) -> PassRequirement {
        let workers = self.workers as u64;
        let stream = StreamBuffers {
            weighted: sizes.weighted,
            chunk_bytes,
            depth: DEPTH,
        };
        if let Some(chunks) = self.chunks {
            let fixed = self.beside_chunks(sizes);
            let [.., directory] = chunks.transposed;
            let making =
                chunks.transposing_bytes(chunks.transposed) + 4 * self.set_of_vertices + SMALL;
            let [none, all] = [false, true].map(|all| {
                let pass = fixed + chunks.least(sizes, all);
                if sizes.against {
                    making.max(pass + directory)
                } else {
                    pass
                }
            });
            return PassRequirement {
                stream,
                fixed,
                messages: 0,
                in_memory: all,
                on_disk: none,
            };
        }
        if let Some(buckets) = self.in_buckets {
            // Workers lease nothing small in a pass.
            let fixed = self.beside_chunks(sizes) - self.workers as u64 * SMALL;
            let of_workers = buckets.combined(sizes, self.workers, self.widest)
                + buckets.waiting_messages(sizes, self.workers)
                + buckets.of_vertices(sizes, self.workers);
            // Rows of cells are loaded before the first pass.
            let takes = buckets.rows + (fixed + self.bits + of_workers).max(buckets.loading);
            return PassRequirement {
                stream,
                fixed,
                messages: 0,
                in_memory: takes,
                on_disk: takes,
            };
        }
        let rows = self.widest * sizes.rows + self.widest / 4;
        // Bitmaps of four sets: those that signal, those that signal next, and two of the driver's. With windows there are two
        // more: vertices that count, and changed vertices.
        let active = if sizes.windows > 0 { 6 } else { 4 } * self.set_of_vertices;
        let worker = 2 * stream.bytes() + rows as u64 + sizes.windows + SMALL;
        let fixed = workers * worker + active + SMALL;
        let sets = |each: usize| (each * self.workers + self.waiting()) as u64 * self.set(sizes);
        let written = workers * self.writing(sizes) + self.passing(sizes);
        let messages = match self.messages_leased {
            true => self.bits + self.vertices * sizes.message as u64,
            false => 0,
        };
        PassRequirement {
            stream,
            fixed,
            messages,
            in_memory: fixed + sets(2) + messages,
            on_disk: fixed + sets(1) + written,
        }
    }

    /// Returns the accumulator sets that wait for a merge.
    ///
    /// A heavy column has sets that wait for the strips before them. Each other node has one column whose next
    /// strips are unclaimed.
    fn waiting(&self) -> usize {
        match self.strips {
            0 | 1 => 0,
            strips => strips + numa::cpu_nodes().len().saturating_sub(1),
        }
    }
    fn set(&self, sizes: ProgramFootprint) -> u64 {
        match self.messages_leased {
            true => AlignedBuffer::footprint(self.entries * sizes.accumulator),
            false => 0,
        }
    }
    /// Returns the bytes of one more strip, in a group and in the next one, without its accumulators.
    ///
    /// These are a list of its cells, and the rows that a gather folds in parallel with others.
    fn strip_bytes(&self, sizes: ProgramFootprint) -> u64 {
        let pulled = match sizes.pulls {
            true => AlignedBuffer::footprint(self.widest * sizes.rows),
            false => 0,
        };
        (2 * self.batches * LISTED_CELL) as u64 + pulled
    }
    fn window(&self, sizes: ProgramFootprint, window_batches: usize) -> u64 {
        let piece = run_bytes::bytes_max(self.widest, sizes.message);
        window_batches as u64 * AlignedBuffer::footprint(piece)
    }
    /// The least window of one who makes pieces of batches, and the sources that he selects for one.
    fn writing(&self, sizes: ProgramFootprint) -> u64 {
        self.window(sizes, WINDOW_BATCHES_MIN) + (self.widest / 8) as u64 + 8
    }
    /// Windows for the messages from one other rank, and to it.
    fn passing(&self, sizes: ProgramFootprint) -> u64 {
        match self.wire {
            0 => 0,
            _ => 2 * self.writing(sizes),
        }
    }
}

/// What a pass takes with its messages in memory and on disk, all things together.
struct PassRequirement {
    stream: StreamBuffers,
    fixed: u64,
    /// Of them in memory.
    messages: u64,
    in_memory: u64,
    on_disk: u64,
}

#[cfg(test)]
mod tests;
