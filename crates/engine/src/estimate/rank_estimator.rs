//! What passes over all edges would move, before they are done: bytes read, written and sent by each rank (DFOGraph, section 4.5).
//!
//! The code that decides in a run which data stays in memory ([`fitting_shape`], [`PassMemory`]) decides it here too, from the same
//! counts of a graph. This file adds how often a pass reads the data that does not stay:
//!
//! | what | signal | pass | slot |
//! | --- | --- | --- | --- |
//! | rows on disk | read; written where it changes them | | read and written |
//! | messages on disk, not dispatched | own ones written | own ones read for each other rank, theirs written | read by each run with cells of them |
//! | messages on disk, pushed | own pieces written, and whole for other ranks | own ones read for each other rank, their pieces written | pieces read once |
//! | filtering lists on disk | | read for each other rank | |
//! | cells | | | those that are not pinned, frame by frame |

use std::ops::Range;

use graphmill_graph::{
    Batches, ColumnModel, DISK_PAGE_BYTES, EdgeKind, GraphDims, GraphProfile, SenderCounts,
    file_bytes,
};
use graphmill_raw::AlignedBuffer;
use graphmill_storage::{DataKind, Tier};

use crate::cache::cached_runs::{CacheShare, runs_of};
use crate::cache::cells::CellCache;
use crate::cache::degree_sketch::{DegreeSketch, are_sketches_small};
use crate::error::EngineError;
use crate::estimate::buckets::bucket_shape;
use crate::estimate::model::{
    PassTraffic, PlannedRank, RankEstimator, RunEstimate, RunEstimateRequest, weight_bytes,
};
use crate::estimate::routing::{RoutingEstimate, made};
use crate::estimate::spill::{SpillEstimate, count_pieces};
use crate::exchange::filter::{filter_budgets, is_worthwhile, lists_memory, selected_bytes};
use crate::exchange::frame::{frames_bytes, messages_bytes};
use crate::memory::plan::GraphShape;
use crate::memory::plan::PassMemory;
use crate::memory::run_bytes;
use crate::messages::routing::Routing;
use crate::messages::routing_table::list_bytes;
use crate::messages::run_codec;
use crate::open::{fitting_shape, held_memory, least_memory};
use crate::program::footprint::ProgramFootprint;
use crate::schedule::tasks::{ColumnLayout, mean};
use crate::state::row_file::{RowFileIo, page_bytes};
use crate::state::rows::RowBytes;

/// Returns what each rank will do if every vertex with edges sends in every pass and all rows change.
///
/// # Errors
/// A rank has too little memory (with the least that would do), or reading a stored graph fails.
pub fn estimate_run(question: &RunEstimateRequest<'_>) -> Result<Vec<RunEstimate>, EngineError> {
    let ranks = 0..question.cuts.len() - 1;
    let looking = ranks.map(|rank| RankEstimator::new(question, rank)?.share());
    let looking = looking.collect::<Result<Vec<_>, _>>()?;
    if looking.iter().all(|planned| planned.of.is_stream()) {
        return Ok(looking.iter().map(PlannedRank::stream).collect());
    }
    if question.buckets.is_some() {
        return Ok(looking.iter().map(PlannedRank::in_buckets).collect());
    }
    if looking.iter().all(PlannedRank::unites) {
        return Ok(looking.iter().map(PlannedRank::unite).collect());
    }
    let pieces = count_pieces(question, &looking)?;
    let each = looking.into_iter().zip(pieces);
    let looked = each.map(|(looking, pieces)| looking.look(&pieces));
    Ok(looked.collect())
}

impl<'q> RankEstimator<'q> {
    fn new(question: &'q RunEstimateRequest<'q>, rank: usize) -> Result<Self, EngineError> {
        let (outline, cuts, threads) = (question.outline, question.cuts, question.threads);
        let own = cuts[rank]..cuts[rank + 1];
        let measure = GraphDims {
            own: (cuts.len() > 2).then(|| own.clone()),
            ..outline.measure.clone()
        };
        let sizes = |result: u64| ProgramFootprint {
            weighted: question.sizes.weighted && measure.edge != EdgeKind::None,
            ..question.sizes.with_result(result)
        };
        let tiers = question.tiers;
        let one = GraphShape::of(&measure).with_tiers(tiers);
        let one = one.in_buckets(bucket_shape(question, &own, sizes(0)));
        let least = |result| outline.open_bytes + least_memory(&measure, &one, sizes(result));
        let least = question.results.map(least);
        let sizes = sizes(question.results[0]);
        let free = question.memory.saturating_sub(outline.open_bytes);
        let columns = &outline.columns[own.clone()];
        let edges = match *tiers.placement().at(DataKind::Edges) {
            _ if question.buckets.is_some() => None,
            Tier::Stream => None,
            Tier::Auto if sizes.reads_edges_once => None,
            _ => {
                let lists: u64 = columns.iter().map(|column| column.block_list_bytes).sum();
                let index = lists.saturating_add(outline.files.fanout);
                let data = cell_bytes(outline, columns, sizes.weighted);
                let count = [columns.len(), outline.columns.len()];
                Some(CellCache::memory_of(tiers, count, index, data))
            }
        };
        let shape = fitting_shape(&measure, &one, threads, sizes, edges, free);
        let shape = shape.with_requests(cuts.len() - 1, None);
        // The engine has its buffers, and the driver the set of all vertices.
        let taken = outline.open_bytes + held_memory(&measure, &shape) + shape.set_of_vertices;
        let looking = RankEstimator {
            question,
            rank,
            own,
            shape,
            sizes,
            least,
            free: question.memory.saturating_sub(taken),
        };
        match least[0] > question.memory {
            true => Err(looking.too_small()),
            false => Ok(looking),
        }
    }

    fn too_small(&self) -> EngineError {
        EngineError::TooSmall {
            what: "a run",
            least: self.least[0],
            budget: self.question.memory,
        }
    }

    pub(crate) fn ranks(&self) -> usize {
        self.question.cuts.len() - 1
    }
    pub(crate) fn own_vertices(&self) -> u64 {
        self.batches().cut(self.own.end) - self.batches().cut(self.own.start)
    }
    pub(crate) fn columns(&self) -> &[ColumnModel] {
        &self.question.outline.columns[self.own.clone()]
    }
    /// Of something that is spread over all vertices, what lies at this rank.
    pub(crate) fn own_share(&self, of_all: u64) -> u64 {
        let all = self.batches().vertices().max(1);
        (u128::from(of_all) * u128::from(self.own_vertices()) / u128::from(all)) as u64
    }

    /// Takes bytes of vertices out of the free memory where that leaves enough; returns whether it does.
    fn keep(&mut self, bytes: u64, leave: u64) -> bool {
        let tiers = self.question.tiers;
        let leased = tiers.leased(DataKind::Vertices, bytes);
        let fits_nodes = tiers.free_on_nodes(DataKind::Vertices) >= bytes;
        let fits = fits_nodes && (leased == 0 || self.free >= leased.saturating_add(leave));
        if fits {
            self.free -= leased;
        }
        fits
    }

    /// Divides the memory and sums all traffic but messages and cells.
    fn share(mut self) -> Result<PlannedRank<'q>, EngineError> {
        let touched = self.sizes.signal.or(self.sizes.apply);
        let (vertices, sizes) = (self.own_vertices(), self.sizes);
        let rows = touched.read.max(sizes.arrays);
        let reserve = self.shape.reserve(sizes, 0);
        let reserve = if self.shape.rows_fit { 0 } else { reserve };
        let vertex_state_resident = self.keep(vertices.saturating_mul(rows as u64), reserve);
        let beside_rows = self.free;
        let degrees_bytes = vertices.saturating_mul(size_of::<u32>() as u64);
        let on_disk = if vertex_state_resident { 0 } else { rows };
        let reserve = self.shape.reserve_with_degrees(sizes, on_disk);
        let degrees_resident = !touched.degrees || self.keep(degrees_bytes, reserve);
        if !degrees_resident {
            // Workers keep what they unpack them from.
            let frames = RowFileIo::FRAMES_BYTES * self.shape.workers as u64;
            self.free = self.free.saturating_sub(frames);
        }
        let (mut start, mut pass) = (PassTraffic::default(), PassTraffic::default());

        // Rows, made in a pass over vertices.
        let degrees = self.degrees(touched, degrees_resident);
        start.read += degrees[0];
        if !vertex_state_resident {
            start.written += self.rows_bytes(touched.written);
            for of_phase in [self.sizes.signal, self.sizes.apply] {
                pass.read += self.rows_bytes(of_phase.read);
                pass.written += self.rows_bytes(of_phase.written);
            }
        }
        pass.read += degrees[1];

        // Who needs which messages.
        let staged = usize::from(!vertex_state_resident) * touched.read
            + usize::from(!degrees_resident) * size_of::<u64>();
        let borrowed = self.shape.row_bytes(self.shape.staging_bytes(staged, 2));
        let own = ProgramFootprint {
            rows: staged,
            ..self.sizes
        };
        let sizes = self.shape.with_rows(own, borrowed, self.free);
        start.read += self.sketch(sizes);
        let written = start.written;
        let needs = self.needs(sizes, &mut start);
        let needs_files = start.written - written;
        let room = self.shape.plan(sizes, self.free);
        let room = room.ok_or_else(|| self.too_small())?;
        if !self.is_stream() && !self.is_in_buckets() {
            pass = pass.and(self.sent(needs.as_deref()));
        }
        Ok(PlannedRank {
            to_dispatch: match self.is_stream() || self.is_in_buckets() {
                true => None,
                false => self.to_dispatch(sizes, &room),
            },
            of: self,
            room,
            vertex_state_resident,
            beside_rows,
            filters: needs.is_some(),
            needs_files,
            start,
            pass,
        })
    }

    /// Returns the bytes of pages that hold rows of `row` bytes.
    pub(crate) fn rows_bytes(&self, row: usize) -> u64 {
        let page = page_bytes(self.batches()) as u64;
        let of_batch = |batch| (self.batches().span(batch) * row as u64).next_multiple_of(page);
        self.own.clone().map(of_batch).sum()
    }

    /// Returns the bytes of degrees read when rows are made, and in each pass.
    ///
    /// Degrees are loaded once, or unpacked by each phase. A worker caches as many frames as it reads ahead.
    fn degrees(&self, touched: RowBytes, resident: bool) -> [u64; 2] {
        if !touched.degrees {
            return [0; 2];
        }
        let here = self.own_share(self.question.outline.files.degrees);
        if resident {
            return [here, 0];
        }
        let workers = self.shape.workers as u64;
        let of_batch = here / (self.own.len() as u64).max(1);
        // Each worker on a batch reads its frame again, if several batches share the frame; two large batches read a shared frame twice.
        let again = (DISK_PAGE_BYTES / of_batch.max(1)).clamp(1, workers);
        let once = (here + DISK_PAGE_BYTES / 2).saturating_mul(again);
        let phases = [self.sizes.signal, self.sizes.apply];
        let phases = phases.iter().filter(|phase| phase.degrees).count() as u64;
        match here <= RowFileIo::FRAMES_BYTES {
            true => [once, 0],
            false => [once, once.saturating_mul(phases)],
        }
    }

    /// Returns the bytes of degrees that are read for sketches of them, if the passes load sketches.
    fn sketch(&mut self, sizes: ProgramFootprint) -> u64 {
        let orientations = self.question.outline.measure.orientations as u64;
        let vertices = self.own_vertices();
        let takes = DegreeSketch::memory_of(vertices) * orientations;
        let fits = || self.shape.fits_beside(sizes, takes, self.free);
        if self.is_stream()
            || self.is_in_buckets()
            || !sizes.sketched
            || !are_sketches_small(takes, self.free)
            || !fits()
        {
            return 0;
        }
        self.free -= vertices * orientations;
        let here = self.own_share(self.question.outline.files.degrees);
        (here + DISK_PAGE_BYTES / 2).saturating_mul(orientations)
    }

    /// Returns the bytes of filter lists that a pass reads from disk for each rank.
    ///
    /// `None` if memory is too small for the lists. A run builds them from the fan-out.
    fn needs(&mut self, sizes: ProgramFootprint, start: &mut PassTraffic) -> Option<Vec<u64>> {
        let (ranks, own) = (self.ranks(), self.own.clone());
        if ranks == 1 || self.is_stream() || self.is_in_buckets() {
            return None;
        }
        let orientations = self.question.outline.measure.orientations as u64;
        let mut rooms = filter_budgets(
            self.batches(),
            own.clone(),
            ranks,
            (orientations, self.free),
        );
        let room = rooms.find(|room| {
            self.shape
                .fits_beside(sizes, room * orientations, self.free)
        })?;
        let listed = &self.question.senders.to[self.rank];
        let of_rank = |to: usize, whole: fn(usize) -> u64| {
            let of_batch = |batch| {
                let span = self.batches().span(batch);
                whole(list_bytes(self.part(listed[to], span), span as usize))
            };
            match to == self.rank {
                true => 0,
                false => own.clone().map(of_batch).sum(),
            }
        };
        let on_disk = (0..ranks).map(|to| of_rank(to, AlignedBuffer::footprint));
        let on_disk: Vec<u64> = on_disk.collect();
        let in_memory = (0..ranks).map(|to| of_rank(to, |bytes| bytes as u64)).sum();
        let selected = selected_bytes(self.batches());
        let (bytes, room) = (lists_memory(self.batches(), own, ranks), room - selected);
        // Of all orientations.
        let fanout =
            self.own_share(self.question.outline.files.fanout) + orientations * DISK_PAGE_BYTES / 2;
        let lists = made(&bytes, [in_memory, on_disk.iter().sum()], room);
        start.read += fanout + orientations * lists.read;
        start.written += orientations * lists.written;
        let (stay_on_disk, kept) = bytes.resident_bytes(in_memory, room);
        self.free -= orientations * (kept + selected);
        Some(match stay_on_disk {
            true => on_disk,
            false => vec![0; ranks],
        })
    }

    /// Bytes on disk of the places of messages of some batches.
    fn places(&self, batches: Range<usize>) -> u64 {
        let width = self.sizes.message;
        let bytes = |batch| run_bytes::bytes_max(self.batches().span(batch) as usize, width);
        batches.map(bytes).map(AlignedBuffer::footprint).sum()
    }

    /// Returns the bytes on disk of the messages of `senders` senders that some batches have.
    pub(crate) fn pieces(&self, batches: Range<usize>, senders: u64) -> u64 {
        let (from, to) = (
            self.batches().cut(batches.start),
            self.batches().cut(batches.end),
        );
        let of = |all: u64| all.div_ceil((batches.len() as u64).max(1));
        let (span, each) = (of(to - from), of(senders).min(of(to - from)));
        let run = run_codec::encoding_for(each, span as usize, self.sizes.message);
        AlignedBuffer::footprint(run.bytes).saturating_mul(batches.len() as u64)
    }

    /// Returns the part of an evenly spread quantity that belongs to `span` vertices of this rank.
    fn part(&self, of: u64, span: u64) -> u64 {
        let vertices = self.own_vertices().max(1);
        (u128::from(of) * u128::from(span) / u128::from(vertices)) as u64
    }

    /// Returns the bytes that a pass sends, and reads of filter lists.
    ///
    /// A rank receives the messages that it needs, or all if there is no filter or nearly all are needed.
    fn sent(&self, needs: Option<&[u64]>) -> PassTraffic {
        let SenderCounts { all, to } = self.question.senders;
        let emitted = all[self.rank];
        let width = self.sizes.message;
        let mut moved = PassTraffic::default();
        for to_rank in (0..self.ranks()).filter(|to| *to != self.rank) {
            let listed = to[self.rank][to_rank];
            let facts = [listed, self.own_vertices(), self.own_vertices()];
            let lists = needs.map(|needs| needs[to_rank]);
            let lists = lists.filter(|lists| is_worthwhile(facts, width, *lists));
            let needed = if lists.is_some() { listed } else { emitted };
            let of_batch = |batch: usize| {
                let span = self.batches().span(batch);
                let (needed, emitted) = (self.part(needed, span), self.part(emitted, span));
                messages_bytes(needed, emitted, span as usize, width)
            };
            let bytes = self.own.clone().map(of_batch).sum::<u64>();
            moved.sent += bytes.saturating_add(frames_bytes(bytes));
            moved.read += lists.unwrap_or(0);
        }
        moved
    }

    /// Bytes of this rank's edges with their weights.
    fn cell_bytes(&self) -> u64 {
        cell_bytes(self.question.outline, self.columns(), self.sizes.weighted)
    }

    /// Returns the cached share of cells in the memory that passes and a routing table leave.
    fn cell_cache(&self, room: &PassMemory, graph: u64) -> CachedShare {
        let all = self.cell_bytes();
        let sum = |of: fn(&ColumnModel) -> u64| self.columns().iter().map(of).sum::<u64>();
        let block_lists = sum(|column| column.block_list_bytes);
        let bitmaps = sum(|column| column.bitmap_bytes);
        let fanout = self.question.outline.files.fanout;
        let tiers = self.question.tiers;
        let besides = CellCache::loading_by(self.shape.workers)
            + CellCache::memory_of(tiers, [self.own.len(), self.batches().len()], 0, 0);
        let left = (self.free).saturating_sub(room.messages + room.besides + graph + besides);
        let mut pinned = CachedShare {
            pinned: 0,
            read: 0,
            rest: 1.0,
        };
        if left == 0 || all == 0 || *tiers.placement().at(DataKind::Edges) == Tier::Stream {
            return pinned;
        }
        let index = [fanout, block_lists, bitmaps].map(|of| tiers.leased(DataKind::Index, of));
        let cells = tiers.leased(DataKind::Edges, all);
        let share = CacheShare::new(left, [index[0], index[1], index[2], cells]);
        pinned.read = left - share.left;
        let room = if cells == 0 { all } else { share.left };
        pinned.pinned = all.min(room).min(tiers.free_on_nodes(DataKind::Edges));
        pinned.rest = 1.0 - pinned.pinned as f64 / all as f64;
        pinned.read += match pinned.pinned == all {
            true => all,
            false => self.extents_read(1.0 - pinned.rest, 0.0, 1.0, true),
        };
        pinned
    }

    /// Returns the bytes of frames that hold uncached cells; frames at both ends of a read are read whole.
    fn cells(&self, room: &PassMemory, dispatch: Routing, rest: f64) -> u64 {
        if rest <= 0.0 {
            return 0;
        }
        let count = self.batches().len();
        // With messages on disk, a group of several columns processes a few batches of them at a time, column by column.
        let goes = match room.window_batches {
            Some(window_batches) if room.group > 1 => {
                count.div_ceil(dispatch.window_batches(window_batches)) as f64
            }
            _ => 1.0,
        };
        let together = match room.window_batches {
            // Columns that follow each other are read as one.
            Some(_) if goes == 1.0 && rest >= 1.0 => room.group as f64,
            _ => 1.0,
        };
        self.extents_read(rest, goes, together, rest < 1.0)
    }

    /// Returns the bytes of frames that hold a share of each column.
    ///
    /// The share is read in `goes` parts at least, with its neighbours together. With `in_runs`, cached runs lie between them, which hold
    /// a cell at least.
    fn extents_read(&self, share: f64, goes: f64, together: f64, in_runs: bool) -> u64 {
        let weight = weight_bytes(self.question.outline, self.sizes.weighted);
        let files = self.columns().chunk_by(|a, b| a.file == b.file);
        let of_file = |columns: &[ColumnModel]| {
            let sum = |of: &dyn Fn(&ColumnModel) -> u64| columns.iter().map(of).sum::<u64>();
            let streams = [
                sum(&|column| column.data_bytes),
                sum(&|column| column.edges.saturating_mul(weight)),
            ];
            let of_stream = |all: u64| {
                let each = all as f64 / columns.len() as f64;
                let of_column = |column: &ColumnModel| {
                    let cells = column.cells.max(1) as usize;
                    let runs = match in_runs {
                        true => runs_of(cells, column.data_bytes + column.edges * weight),
                        false => 0,
                    };
                    let cached = if goes == 0.0 { share } else { 1.0 - share };
                    let runs = (runs as f64).min(cached * cells as f64);
                    let extents = goes.max(runs).min(cells as f64) / together;
                    let bytes = each * share + extents * DISK_PAGE_BYTES as f64;
                    // Nothing beyond the file is read, nor a frame twice in one go.
                    bytes.min(extents * together * file_bytes(all) as f64)
                };
                columns.iter().map(of_column).sum::<f64>()
            };
            let streams = streams.into_iter().filter(|all| *all > 0);
            streams.map(of_stream).sum::<f64>()
        };
        files.map(of_file).sum::<f64>() as u64
    }
}

impl ColumnLayout for RankEstimator<'_> {
    fn batches(&self) -> &Batches {
        &self.question.outline.measure.batches
    }
    fn own(&self) -> Range<usize> {
        self.own.clone()
    }
    fn strips(&self, batch: usize) -> usize {
        self.question.outline.columns[batch].strips
    }
    fn strip_sources(&self, batch: usize, strip: usize) -> Range<usize> {
        self.question.outline.strip_sources(batch, strip)
    }
    fn each_cell(&self, batch: usize, strip: usize, f: &mut dyn FnMut(usize, f64)) {
        self.question.outline.each_cell(batch, strip, f);
    }
}

impl PlannedRank<'_> {
    fn look(self, pieces: &SpillEstimate) -> RunEstimate {
        let looking = &self.of;
        let without = looking.reads(&self.room);
        let to_dispatch = self.to_dispatch.as_ref();
        let to_dispatch = to_dispatch.map(|to| (to, looking.reads(&to.beside.memory)));
        let to_dispatch = to_dispatch.filter(|(to, reads)| {
            let facts = self.facts(&to.beside.memory, reads, pieces);
            to.beside.is_free || facts.pays(mean(looking.batches(), &without))
        });
        let dispatching = (to_dispatch.as_ref())
            .and_then(|(to, reads)| self.dispatching(to, reads, pieces))
            .unwrap_or_default();
        let (room, for_dispatch, reads) = match to_dispatch {
            Some((to, reads)) => (to.beside.memory, to.beside.bytes, reads),
            None => (self.room, 0, without),
        };
        let cell_cache = looking.cell_cache(&room, for_dispatch);
        let mut start = self.start.and(dispatching.made);
        start.read += cell_cache.read + self.looked_at();
        let with = |dispatching: &RoutingEstimate| {
            let messages = self.messages(&room, &reads, dispatching, pieces);
            let mut pass = self.pass.and(messages);
            pass.read += looking.cells(&room, dispatching.dispatch, cell_cache.rest);
            pass
        };
        let (early, pass) = (with(&RoutingEstimate::default()), with(&dispatching));
        let touched = looking.sizes.signal.or(looking.sizes.apply);
        let rows = match self.vertex_state_resident {
            true => 0,
            // Of the newest checkpoint, of the pass after it, and of one being written.
            false => 3 * looking.rows_bytes(touched.written),
        };
        let mut files = rows + self.needs_files;
        if room.window_batches.is_some() {
            // Lists are written before it is known whether memory holds them.
            let lists = dispatching.made.written;
            let pushed = self.pushed(dispatching.dispatch, pieces);
            let places = looking.places(0..looking.batches().len());
            let more = [lists, pushed, places];
            files = more.into_iter().fold(files, u64::saturating_add);
        }
        RunEstimate {
            start,
            early_passes: dispatching.early_passes,
            early,
            pass,
            messages_resident: room.window_batches.is_none(),
            cached_cell_bytes: cell_cache.pinned,
            temporary_bytes: files,
            ..self.facts_of_rank()
        }
    }

    /// Returns an estimate that says nothing yet of what the passes move.
    pub(crate) fn facts_of_rank(&self) -> RunEstimate {
        let looking = &self.of;
        RunEstimate {
            arcs: looking.columns().iter().map(|column| column.edges).sum(),
            vertex_state_resident: self.vertex_state_resident,
            messages_resident: true,
            cell_bytes: looking.cell_bytes(),
            least_memory: looking.least,
            workers: looking.shape.workers,
            ..RunEstimate::default()
        }
    }
}

/// Bytes of the edges of some columns, with weights if `weighted`.
fn cell_bytes(outline: &GraphProfile, columns: &[ColumnModel], weighted: bool) -> u64 {
    let weight = weight_bytes(outline, weighted);
    let bytes = |column: &ColumnModel| column.data_bytes + column.edges.saturating_mul(weight);
    columns.iter().map(bytes).fold(0, u64::saturating_add)
}

/// Cells in memory.
struct CachedShare {
    pinned: u64,
    /// Bytes read to fill it.
    read: u64,
    /// The share of the bytes of cells that is not cached.
    rest: f64,
}
