//! Opening an engine: the ranks agree on the graph and divide it, and the parts of the engine are made.

use std::ops::Range;
use std::sync::{Arc, Mutex};

use graphmill_fabric::bucket::DpdkLink;
use graphmill_graph::{
    Cell, DISK_PAGE_BYTES, EdgeKind, FanoutTable, GraphDims, Layout, PageCache, StoredGraph,
    partition,
};
use graphmill_raw::AlignedBuffer;
use graphmill_storage::{DataKind, Open, StorageError, Tiers, WorkerSubset};

use crate::cache::cells::CellCache;
use crate::cache::degree_sketch::DegreeSketch;
use crate::cache::graph_cache::GraphCache;
use crate::checkpoint::checkpointer::Checkpointer;
use crate::comm::communicator::Communicator;
use crate::comm::wire::Wire;
use crate::config::{CombineChoice, EdgeResidency, EngineConfig, LinkChoice};
use crate::context::{EngineState, part_of_rank};
use crate::engine::{Engine, LOOKING_FRAMES, too_small};
use crate::error::EngineError;
use crate::frontier::active_set::ActiveSetPool;
use crate::graph_view::GraphView;
use crate::memory::buckets::{BucketShape, role_counts};
use crate::memory::plan::GraphShape;
use crate::metrics::run::Metrics;
use crate::metrics::traffic::{MemoryTraffic, placed_at};
use crate::program::footprint::ProgramFootprint;
use crate::state::array_store::ArrayStore;
use crate::state::row_file::{RowFile, RowFileIo, page_bytes};

/// Frames of the stored graph that are cached for lookups.
const FRAMES: usize = 32;
/// Edges are kept in memory for fewer workers only if at least one thread in eight still works.
const WORKERS_PART: usize = 8;

impl Engine {
    /// An engine over a graph, with no arrays yet.
    ///
    /// # Errors
    /// The page file cannot be made, or the budget is too small for one batch.
    pub fn new(graph: Arc<StoredGraph>, settings: EngineConfig) -> Result<Self, EngineError> {
        let budget = settings.budget.clone();
        let used = budget.total() - budget.available();
        let (ranks, by_file) = Self::ranks(&graph, &settings)?;
        let measure = graph.measure_of(settings.fabric.is_some().then(|| ranks.own()));
        let buckets = bucket_shape(&graph, &ranks, &settings)?;
        let one = GraphShape::of(&measure).in_buckets(buckets);
        let least = one.with_tiers(&settings.tiers);
        let enough = used + least_memory(&measure, &least, settings.sizes);
        // Rows and the result are on other nodes.
        let of_messages = settings.sizes.keeping(0, settings.sizes.kept[1]);
        let least = one.least(of_messages.with_result(0));
        let checked = settings.tiers.check_nodes(DataKind::Messages, least);
        checked.map_err(StorageError::from)?;
        Self::build(graph, settings, (ranks, by_file), (&measure, one), enough)
            .and_then(Engine::with_buckets)
            .map_err(|error| too_small(error, &budget, enough))
    }

    /// The ranks, and which batches each of them owns.
    ///
    /// Also returns true if each rank has the chunks in the file of its number.
    fn ranks(
        graph: &StoredGraph,
        settings: &EngineConfig,
    ) -> Result<(Communicator, bool), EngineError> {
        let (fabric, stop) = (settings.fabric.clone(), settings.stop.clone());
        let batches = 0..graph.batches().len();
        let Some(count) = fabric.as_ref().map(|fabric| fabric.ranks()) else {
            return Ok((Communicator::new(None, vec![0, batches.end], stop), false));
        };
        // What each has is known by what it says.
        let name = format!("{:016x}-{}", graph.graph_id(), graph.meta().checksum());
        let mut payload = name.clone().into_bytes();
        let has: Vec<bool> = match graph.chunks() {
            None => batches
                .clone()
                .map(|batch| graph.has_batch(batch))
                .collect(),
            Some(_) => (0..graph.chunk_files())
                .map(|file| graph.has_chunk_file(file))
                .collect(),
        };
        payload.extend(has.into_iter().map(u8::from));
        let strangers = Communicator::new(fabric.clone(), vec![0; count + 1], stop.clone());
        let payload = strangers.gather(payload)?;
        let parts = |payload: &'_ Vec<u8>| {
            let (id, has) = payload.split_at_checked(name.len()).unwrap_or_default();
            (id.to_vec(), has.to_vec())
        };
        // All ranks name the same one, whichever of them finds it.
        let (first, first_has) = payload.first().map(parts).unwrap_or_default();
        let mut here: Vec<Vec<bool>> = Vec::new();
        for (rank, of_rank) in payload.iter().enumerate() {
            let (id, has) = parts(of_rank);
            if id != first || has.len() != first_has.len() {
                return Err(EngineError::OtherGraph { rank });
            }
            here.push(has.iter().map(|has| *has == 1).collect());
        }
        let mut by_file = false;
        let cuts = match graph.layout() {
            Layout::Column => partition(graph, &here, settings.options.alpha),
            Layout::Stream => {
                let have_all = here.iter().flatten().all(|has| *has);
                let have_own = (0..count).all(|rank| here[rank].get(rank) == Some(&true));
                by_file = !have_all;
                let everywhere = vec![vec![true; batches.len()]; count];
                let is_whole = have_all || have_own && first_has.len() == count;
                is_whole
                    .then(|| partition(graph, &everywhere, settings.options.alpha))
                    .flatten()
            }
        };
        let cuts = cuts.ok_or_else(|| EngineError::Spread {
            path: graph.path().to_path_buf(),
            ranks: count,
        })?;
        Ok((Communicator::new(fabric, cuts, stop), by_file))
    }

    fn build(
        graph: Arc<StoredGraph>,
        mut settings: EngineConfig,
        (ranks, chunks_by_file): (Communicator, bool),
        (measure, one): (&GraphDims, GraphShape),
        enough: u64,
    ) -> Result<Self, EngineError> {
        let ranks = Arc::new(ranks);
        settings.sizes.weighted &= measure.edge != EdgeKind::None;
        let threads = settings.workers.count();
        let (tiers, free) = (&settings.tiers, settings.budget.available());
        let edges = gain_from_memory(&graph, &settings)
            .then(|| edges_memory(&graph, &ranks.own(), false, settings.sizes, tiers));
        let one = one.with_tiers(tiers);
        let shape = fitting_shape(measure, &one, threads, settings.sizes, edges, free)
            .with_requests(ranks.count(), settings.options.window);
        let workers = WorkerSubset::new(&settings.workers, shape.workers);
        let batches = Arc::new(measure.batches.clone());
        let page_bytes = page_bytes(&batches);
        let mut recovery = (settings.checkpoints.take())
            .map(|asked| {
                let disk = Arc::clone(&settings.disk);
                let when = (settings.clock.now(), settings.stop.clone());
                Checkpointer::new(disk, &settings.budget, &ranks, asked, when, page_bytes)
            })
            .transpose()?;
        let (pages, kept) = match &mut recovery {
            None => {
                let path = settings.scratch.join("rows");
                let disk = Arc::clone(&settings.disk);
                let how = (&*path, Open::CreatePrivate);
                let pages = RowFile::open(disk, how, page_bytes, std::iter::empty())?;
                (pages, None)
            }
            Some(recovery) => {
                let (pages, kept) = recovery.pages(page_bytes)?;
                (pages, Some(kept))
            }
        };
        let (disk, budget) = (settings.disk.as_ref(), &settings.budget);
        let io = |_| Ok(Mutex::new(RowFileIo::new(disk, budget, page_bytes)?));
        let row_io = (0..workers.count()).map(io);
        let row_io = row_io.collect::<Result<_, EngineError>>()?;
        let frames = Mutex::new(PageCache::new(&graph, &settings.budget, FRAMES)?);
        let arrays = ArrayStore::new(
            (Arc::clone(&batches), ranks.own()),
            (pages, kept),
            Arc::clone(&graph),
            settings.budget.clone(),
            settings.tiers.clone(),
        );
        let transposed = graph
            .transpose()
            .map(|graph| GraphView::new(Arc::new(graph), &settings.budget))
            .transpose()?;
        let timing = (&settings.clock, &settings.stop);
        let wire = (!ranks.alone()).then(|| Wire::new(&settings.budget, ranks.count()));
        let wire = wire.transpose()?;
        let common = EngineState {
            traffic: MemoryTraffic::new(workers.count(), settings.charge, &settings.tiers, timing),
            wire: wire.map(Mutex::new),
            ranks: Arc::clone(&ranks),
            chunks_by_file,
            shape,
            workers,
            batches: Arc::clone(&batches),
            arrays,
            row_io,
            frames,
            settings,
        };
        let active = ActiveSetPool::new(batches, ranks, common.budget.clone());
        if let Some(recovery) = &recovery {
            *active.history() = recovery.history();
        }
        Ok(Engine {
            stored: GraphView::new(graph, &common.budget)?,
            transposed,
            active,
            metrics: Metrics {
                placement: placed_at(&common.tiers),
                vertex_state_resident: true,
                messages_resident: true,
                ..Metrics::default()
            },
            broken: false,
            enough,
            mean_weight: None,
            usual_degree: None,
            counts_by_windows: false,
            arcs_are_counted: false,
            cache: GraphCache::default(),
            workspaces: None,
            buckets: None,
            supersteps: 0,
            borrowed: 0,
            recovery,
            common,
        })
    }
}

/// Returns the minimum budget, in bytes, for programs of this footprint, excluding the open graph.
///
/// It depends on the tiers of the data. One worker is enough.
#[must_use]
pub fn min_memory(graph: &GraphDims, tiers: &Tiers, sizes: ProgramFootprint) -> u64 {
    least_memory(graph, &GraphShape::of(graph).with_tiers(tiers), sizes)
}

pub(crate) fn least_memory(graph: &GraphDims, shape: &GraphShape, sizes: ProgramFootprint) -> u64 {
    let sizes = ProgramFootprint {
        weighted: sizes.weighted && graph.edge != EdgeKind::None,
        ..sizes
    };
    memory_of(graph, shape, shape.least(sizes))
}

/// Returns the shape with as many workers as passes use in `free` bytes, the open graph excluded.
///
/// They are as many of `threads` as leave all rows, messages and edges in memory. Edges take `edges` bytes. If these workers are
/// less than an eighth of `threads`, they are as many as leave all rows and messages there. If one does not, they are as many as leave rows;
/// if one does not, as many as passes have memory for. Of rows that are not known, they leave half of the memory.
pub(crate) fn fitting_shape(
    graph: &GraphDims,
    one: &GraphShape,
    threads: usize,
    sizes: ProgramFootprint,
    edges: Option<u64>,
    free: u64,
) -> GraphShape {
    let most = |takes: &dyn Fn(&GraphShape) -> Option<u64>| {
        let mut shapes = (1..=threads).rev().map(|workers| one.with_workers(workers));
        let fits = |takes: u64, shape: &GraphShape| memory_of(graph, shape, takes) <= free;
        shapes.find(|shape| takes(shape).is_some_and(|takes| fits(takes, shape)))
    };
    // Degrees and their sketches come before edges.
    let own = one.own_vertices();
    let names_degrees = sizes.signal.or(sizes.apply).degrees;
    let degrees = own * size_of::<u32>() as u64 * u64::from(names_degrees);
    let sketches = DegreeSketch::memory_of(own) * graph.orientations as u64;
    let tables = degrees + sketches * u64::from(sizes.sketched);
    let with_edges = most(&|shape| {
        let left = free.checked_sub(memory_of(graph, shape, 0))?;
        let edges = edges? + CellCache::loading_by(shape.workers);
        shape.with_edges(sizes, edges + tables, left)
    });
    let with_edges = with_edges.filter(|shape| shape.workers >= threads.div_ceil(WORKERS_PART));
    let resident = |messages| most(&|shape| shape.all_resident(sizes, messages));
    let least = |part: u64| most(&|shape| Some(shape.least(sizes).saturating_mul(part)));
    match with_edges
        .or_else(|| resident(true))
        .or_else(|| resident(false))
    {
        Some(shape) => shape.with_rows_in_memory(),
        None if sizes.arrays > 0 => least(1).unwrap_or(*one),
        None => least(2).unwrap_or(*one),
    }
}

/// True if edges that stay in memory save passes work, or are asked to stay there.
fn gain_from_memory(graph: &StoredGraph, settings: &EngineConfig) -> bool {
    match settings.options.edges {
        // The bucket executor has all of its edges in memory.
        _ if graph.layout() == Layout::Stream || settings.options.buckets.is_some() => false,
        EdgeResidency::Disk => false,
        EdgeResidency::Auto => !settings.sizes.reads_edges_once,
        EdgeResidency::Memory => true,
    }
}

/// Returns the bytes of the budget that hold the edges into own batches, or from them if `by_rows`.
fn edges_memory(
    graph: &StoredGraph,
    own: &Range<usize>,
    by_rows: bool,
    sizes: ProgramFootprint,
    tiers: &Tiers,
) -> u64 {
    let set = graph.forward();
    let weight_bytes = match sizes.weighted {
        true => graph.edge_kind().bytes() as u64,
        false => 0,
    };
    let columns = 0..graph.batches().len();
    let cells = || {
        let column = |d| part_of_rank(set.column(d).cells(), d, own, by_rows);
        columns.clone().flat_map(column)
    };
    let lists: u64 = cells().map(Cell::block_list_bytes).sum();
    let index = lists + FanoutTable::memory(set, &(0..graph.batches().vertices()));
    let data = cells().map(|cell| cell.data_bytes() + cell.edges() * weight_bytes);
    let count = [own.len(), graph.batches().len()];
    CellCache::memory_of(tiers, count, index, data.sum())
}

/// Returns what the memory of a run of the bucket executor depends on; `None` for another executor.
fn bucket_shape(
    graph: &StoredGraph,
    ranks: &Communicator,
    settings: &EngineConfig,
) -> Result<Option<BucketShape>, EngineError> {
    let Some(options) = settings.options.buckets else {
        return Ok(None);
    };
    let weighted = settings.sizes.weighted && graph.edge_kind() != EdgeKind::None;
    let sizes = ProgramFootprint {
        weighted,
        ..settings.sizes
    };
    let transposed = graph.transpose();
    let sides = std::iter::once(graph).chain(&transposed);
    let rows = sides.map(|side| edges_memory(side, &ranks.own(), true, sizes, &settings.tiers));
    let [_, _, lanes] = role_counts(settings.workers.count(), options.threads);
    let all = ranks.total([lanes as u64])?;
    let (own, batches) = (ranks.own(), graph.batches());
    let into_own = own.clone().map(|batch| graph.column(batch).edges());
    let from_own = (0..batches.len()).flat_map(|column| {
        let cells = graph.forward().column(column).cells();
        part_of_rank(cells, column, &own, true)
    });
    let against = match graph.symmetric() {
        true => 0,
        false => from_own.map(Cell::edges).sum(),
    };
    Ok(Some(BucketShape {
        rows: rows.sum(),
        loading: CellCache::loading_by(1),
        ranks: ranks.count(),
        foreign: all[0] as usize - lanes,
        roles: options.threads,
        dpdk: match options.link {
            LinkChoice::Dpdk => {
                let [all, _] = DpdkLink::memory(options.dpdk_device(), ranks.count());
                all as u64
            }
            _ => 0,
        },
        queues: options.link != LinkChoice::Udp,
        combines: options.combine != CombineChoice::Never,
        batches: own.len(),
        own: batches.cut(own.end) - batches.cut(own.start),
        labels: into_own.sum::<u64>() + against,
    }))
}

/// Returns the bytes of the budget that an engine takes whose programs take `takes`.
fn memory_of(graph: &GraphDims, shape: &GraphShape, takes: u64) -> u64 {
    // Before the first pass a program may look for the vertex of most arcs.
    let degrees = AlignedBuffer::footprint(shape.widest * size_of::<u64>());
    let looking = LOOKING_FRAMES as u64 * DISK_PAGE_BYTES + degrees;
    base_memory(graph, shape) + shape.held_by_buckets() + shape.later() + takes.max(looking)
}

/// Bytes of the budget that an engine takes before anything is asked of it.
pub(crate) fn base_memory(graph: &GraphDims, shape: &GraphShape) -> u64 {
    RowFileIo::memory(page_bytes(&graph.batches)) * shape.workers as u64
        + (FRAMES as u64) * DISK_PAGE_BYTES
        + GraphView::memory(graph)
        + shape.wire
        + Checkpointer::MEMORY
}

/// Bytes of the budget that an engine holds before its first array is made.
pub(crate) fn held_memory(graph: &GraphDims, shape: &GraphShape) -> u64 {
    base_memory(graph, shape) - Checkpointer::MEMORY + Checkpointer::HELD
}

#[cfg(test)]
mod tests {
    use graphmill_graph::Batches;

    use super::*;

    #[test]
    fn workers_are_most_that_leave_rows_messages_and_edges_in_memory() {
        const THREADS: usize = 16;
        let cuts = (0..=64).map(|batch| batch << 16).collect();
        let graph = GraphDims {
            batches: Batches::new(cuts).unwrap(),
            strips: 64,
            ..GraphDims::nothing()
        };
        let sizes = ProgramFootprint {
            weighted: false,
            ..ProgramFootprint::USUAL.with_arrays(16)
        };
        let tiers = Tiers::default();
        let one = GraphShape::of(&graph).with_tiers(&tiers);
        let with = |workers: usize| one.with_workers(workers);
        let takes = |shape: &GraphShape| {
            let [rows, all] = [false, true].map(|m| shape.all_resident(sizes, m).unwrap());
            [shape.least(sizes), rows, all].map(|takes| memory_of(&graph, shape, takes))
        };
        let least = min_memory(&graph, &tiers, sizes);
        let of_one = takes(&with(1));
        let mut found = Vec::new();
        for free in (least..).step_by(1 << 20) {
            let shape = fitting_shape(&graph, &one, THREADS, sizes, None, free);
            let kept = of_one.iter().rposition(|takes| *takes <= free).unwrap();
            assert!(takes(&shape)[kept] <= free, "{free}");
            assert_eq!(shape.rows_fit, kept > 0);
            let more = with(shape.workers + 1);
            assert!(
                takes(&more)[kept] > free || shape.workers == THREADS,
                "{free}"
            );
            found.push((kept, shape.workers));
            if found.last() == Some(&(2, THREADS)) {
                break;
            }
        }
        // More than one worker where rows are on disk, then one, then more again.
        assert!(
            found
                .iter()
                .any(|(kept, workers)| *kept == 0 && *workers > 1)
        );
        assert!(found.contains(&(1, 1)) && found.contains(&(2, 1)));

        // Edges come before more workers, unless they leave less than an eighth of them.
        let edges = 32 << 20;
        let mut workers = Vec::new();
        let enough = of_one[2] + edges + THREADS as u64 * (64 << 20);
        for free in (least..enough).step_by(1 << 20) {
            let workers_of = |edges| fitting_shape(&graph, &one, THREADS, sizes, edges, free);
            let [without, shape] = [None, Some(edges)].map(workers_of);
            if shape.workers < without.workers {
                assert!(takes(&shape)[2] + edges <= free, "{free}");
                workers.push(shape.workers);
            }
            assert!(shape.workers <= without.workers, "{free}");
        }
        let [first, last] = [workers.first(), workers.last()];
        assert_eq!(first, Some(&(THREADS / WORKERS_PART)));
        assert_eq!(last, Some(&(THREADS - 1)));
        // Longer chunks may take the memory of one.
        let mut steps = workers.windows(2);
        assert!(steps.all(|two| two[0] <= two[1] + 1), "{workers:?}");
    }
}
