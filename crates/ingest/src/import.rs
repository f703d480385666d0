//! Edges in, a stored graph out: the steps in their order.
//!
//! 1. *scan*: the edges are read once; ids that occur, arcs by range of ids. What is slow to read is spooled.
//! 2. *ids*: every id gets the index of its vertex, by a bitmap where memory holds one, else by a dictionary on disk.
//! 3. *cut*: counts alone say where batches and column files end.
//! 4. *distribute*: the edges are read again; every arc goes to the bucket of its column file.
//! 5. *write*: each bucket is read, sorted in memory, and becomes a column file.
//! 6. *finish*: what belongs to vertices is written, everything is made durable, and the directory gets its name.
//!
//! The same input gives the same graph, byte for byte, for any number of threads and any budget: memory decides how
//! often something is read, never what is written.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use graphmill_graph::{
    Batches, EdgeKind, Facts, GraphWriter, IdKind, IdsSummary, IdsWriter, Shape,
};
use graphmill_storage::{Budget, Buffer, Clock, Disk, Lease, Stop, Workers};

use crate::count::Count;
use crate::cut::{Granules, Histogram, batch_arcs_max, granule_shift};
use crate::dictionary::{Dictionary, Ends, Place};
use crate::distribute::{self, Distributor, Indices};
use crate::edge::{EdgeSource, Ids};
use crate::error::IngestError;
use crate::layout::{Layout, Packing};
use crate::parallel;
use crate::policy::{Duplicates, SelfLoops};
use crate::presence::Presence;
use crate::report::ImportReport;
use crate::scan::{Scan, Scanned, needs_spool};
use crate::source::{Source, SourceReader};
use crate::spill::{GRAIN, Inbox, SLABS, Spill};
use crate::spool::Spool;
use crate::write::{self, Kept};

/// What an import runs on.
#[derive(Clone, Copy, Debug)]
pub struct Machine<'a> {
    /// Where input, temporary files and the graph lie.
    pub disk: &'a Arc<dyn Disk>,
    /// The threads.
    pub workers: &'a Workers,
    /// The memory: everything large is leased from it.
    pub budget: &'a Budget,
    /// The time that steps take.
    pub clock: &'a dyn Clock,
    /// Looked at every few milliseconds; an import that is stopped leaves nothing behind.
    pub stop: &'a Stop,
    /// Told how far a step is.
    pub progress: &'a dyn Progress,
}

/// Hears how far an import is.
pub trait Progress: Sync + std::fmt::Debug {
    /// Of the `total` units (bytes, edges or arcs) of a step, `done` are done. Called often, from any thread.
    fn update(&self, step: &'static str, done: u64, total: u64);
}

/// Nobody listens.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Progress for Silent {
    fn update(&self, _step: &'static str, _done: u64, _total: u64) {}
}

/// How far one step is.
#[derive(Debug)]
pub(crate) struct Meter<'a> {
    progress: &'a dyn Progress,
    step: &'static str,
    total: u64,
    done: AtomicU64,
}

impl<'a> Meter<'a> {
    fn new(progress: &'a dyn Progress, step: &'static str, total: u64) -> Self {
        progress.update(step, 0, total);
        Self {
            progress,
            step,
            total,
            done: AtomicU64::new(0),
        }
    }

    pub(crate) fn advance(&self, amount: u64) {
        let done = self.done.fetch_add(amount, Relaxed) + amount;
        self.progress
            .update(self.step, done.min(self.total), self.total);
    }
}

/// What the graph is to be.
#[derive(Clone, Debug)]
pub struct ImportOptions {
    /// The directory of the graph; nothing has that name yet.
    pub output: PathBuf,
    /// A directory for temporary files; beside the output by default.
    pub temporary: Option<PathBuf>,
    /// Whether an edge goes one way; otherwise it is two arcs.
    pub directed: bool,
    /// What becomes of edges between the same vertices.
    pub duplicates: Duplicates,
    /// What becomes of edges from a vertex to itself.
    pub self_loops: SelfLoops,
    /// Whether arcs are stored turned round as well. An undirected graph is its own reverse: nothing more is stored.
    pub reverse: bool,
    /// Vertices of a batch, exactly, at most [`Batches::SPAN_MAX`]; by default batches are cut by vertices and edges.
    pub batch_size: Option<u64>,
    /// A cell whose source span over edges is at most this gets a bitmap index.
    pub csr_ratio: u32,
    /// Bytes of ids or arcs that one worker keeps in memory at a time at most, however much there is: for experiments.
    /// Does not change what is written.
    pub work_bytes_max: u64,
}

impl ImportOptions {
    /// A directed graph in `output`, everything else as usual.
    pub fn new(output: impl Into<PathBuf>) -> Self {
        Self {
            output: output.into(),
            temporary: None,
            directed: true,
            duplicates: Duplicates::Keep,
            self_loops: SelfLoops::Keep,
            reverse: false,
            batch_size: None,
            csr_ratio: 32,
            work_bytes_max: u64::MAX,
        }
    }

    /// Whether a second set of columns is written.
    fn turns_round(&self) -> bool {
        self.reverse && self.directed
    }
}

/// A directory that goes when this is dropped, unless it was given another name.
#[derive(Debug)]
struct Directory<'a> {
    disk: &'a dyn Disk,
    path: Option<PathBuf>,
}

impl<'a> Directory<'a> {
    /// A new directory in `parent`, called after `name`.
    fn create(disk: &'a dyn Disk, parent: &Path, name: &str) -> Result<Self, IngestError> {
        let process = std::process::id();
        let mut number = 0u64;
        loop {
            let path = parent.join(format!(".{name}-{process}-{number}"));
            if !disk.exists(&path)? {
                disk.create_dir_all(&path)?;
                return Ok(Self {
                    disk,
                    path: Some(path),
                });
            }
            number += 1;
        }
    }

    fn path(&self) -> &Path {
        self.path.as_deref().unwrap_or(Path::new(""))
    }

    fn rename(mut self, to: &Path) -> Result<(), IngestError> {
        self.disk.rename(self.path(), to)?;
        self.path = None;
        Ok(())
    }
}

impl Drop for Directory<'_> {
    fn drop(&mut self) {
        if let Some(path) = self.path.take() {
            // Nobody is left to tell; what is left behind is named after the import.
            let _ = self.disk.remove_dir_all(&path);
        }
    }
}

/// Imports the edges of `source`, and the ends of the edges of `vertices` as vertices without edges.
///
/// # Errors
/// The input cannot be read or makes no sense, batches are asked to be too large, the disk fails, the budget is too small for this input (with the least
/// that would do), `stop` was requested, or something has the output's name. Nothing is left behind then.
pub fn import(
    machine: Machine<'_>,
    source: &dyn EdgeSource,
    vertices: Option<&dyn EdgeSource>,
    options: &ImportOptions,
) -> Result<ImportReport, IngestError> {
    let disk = &**machine.disk;
    if let Some(asked) = options.batch_size.filter(|&size| size > Batches::SPAN_MAX) {
        let most = Batches::SPAN_MAX;
        return Err(IngestError::BatchSize { asked, most });
    }
    if disk.exists(&options.output)? {
        return Err(IngestError::input(
            &options.output,
            "exists already: remove it or choose another name (-o)",
        ));
    }
    let parent = options
        .output
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    let temporary = Directory::create(
        disk,
        options.temporary.as_deref().unwrap_or(parent),
        "graphmill-temporary",
    )?;
    let staging = Directory::create(disk, parent, "graphmill-import")?;
    let mut import = Import {
        machine,
        options,
        source,
        vertices,
        temporary: temporary.path(),
        staging: staging.path(),
        report: ImportReport::default(),
        started: machine.clock.now(),
    };

    let found = import.scan()?;
    let indexed = import.index(found)?;
    let ids = indexed.ids;
    let cut = import.cut(&indexed)?;
    let graph = GraphWriter::create(
        machine.disk.clone(),
        machine.budget.clone(),
        staging.path(),
        cut.shape.clone(),
    )?;
    let buckets = import.distribute(indexed, &cut, &graph)?;
    let kept = import.write(&cut, buckets, &graph)?;
    import.finish(graph, ids, kept)?;
    let mut report = import.report;
    report.peak_memory = machine.budget.peak();
    staging.rename(&options.output)?;
    Ok(report)
}

struct Import<'a> {
    machine: Machine<'a>,
    options: &'a ImportOptions,
    source: &'a dyn EdgeSource,
    vertices: Option<&'a dyn EdgeSource>,
    temporary: &'a Path,
    staging: &'a Path,
    report: ImportReport,
    /// When the current step began.
    started: Duration,
}

/// What the scan left.
struct Found<'a> {
    source: Source<'a>,
    vertices: Option<Source<'a>>,
    scanned: Scanned,
    presence: Option<Presence>,
}

/// Edges whose ids have indices.
struct Indexed<'a> {
    source: Source<'a>,
    indices: Indices,
    ids: IdsSummary,
    vertices: u64,
    arcs_in: Granules,
    arcs_out: Option<Granules>,
}

/// Counters of parts of a worker, over all buckets: what its caches can take.
const PARTS_TABLE: usize = 1 << 15;
const PARTS_MIN: usize = 16;
const PARTS_MAX: usize = 1024;

/// Bytes of a chunk of a bucket at most, and of a slab of chunks.
const CHUNK_BYTES_MAX: usize = 256 << 10;
const SLAB_BYTES_MAX: usize = 1 << 20;
const SLAB_GRAINS_MIN: usize = 4;
/// Bytes of a bucket that a worker reads ahead, if that is not too many chunks or too few.
const READ_AHEAD_BYTES: usize = 1 << 20;
/// Bytes that the graph's writer keeps of a cell, of so many at least in each file; and of checksums while a file is open.
const CELL_BYTES: u64 = 64;
const CELLS_MIN: u64 = 256;
const TABLES_BYTES: u64 = 256 << 10;
/// Arcs that a worker must be able to sort in memory.
const RECORDS_MIN: u64 = 1 << 17;

/// Bytes of tables for a batch: cuts here and in the shape, where its arcs go both ways, files.
const BATCH_BYTES: u64 = 128;

/// What follows from counts: where everything goes.
struct Cut {
    shape: Shape,
    plan: distribute::Plan,
    /// What the tables of batches take.
    _tables: Lease,
}

/// The buckets of all column files.
struct Buckets {
    spill: Spill,
    /// Per bucket the arcs of its parts.
    counts: Buffer,
}

/// Chunks of a bucket that a worker reads ahead.
fn read_ahead(chunk_bytes: usize) -> usize {
    (READ_AHEAD_BYTES / chunk_bytes).clamp(8, 32)
}

/// The number that was written as bytes, most significant first.
fn integer(id: &[u8]) -> u64 {
    id.iter()
        .fold(0, |number, &byte| number << 8 | u64::from(byte))
}

impl<'a> Import<'a> {
    /// Notes the time of a step that ends.
    fn done(&mut self, step: &'static str) {
        let now = self.machine.clock.now();
        self.report
            .steps
            .push((step, now.saturating_sub(self.started)));
        self.started = now;
    }

    fn lanes(&self) -> u64 {
        self.machine.workers.count() as u64
    }

    /// A share of the free memory for each worker and each of `parts`, as a power of two from `least` to `most` bytes.
    fn buffer_bytes(&self, parts: u64, least: usize, most: usize) -> usize {
        let share = self.machine.budget.available() / (self.lanes() * parts).max(1);
        let power = if share == 0 {
            0
        } else {
            1 << share.ilog2().min(40)
        };
        usize::try_from(power).unwrap_or(most).clamp(least, most)
    }

    /// Step 1.
    fn scan(&mut self) -> Result<Found<'a>, IngestError> {
        let machine = self.machine;
        let disk = &**machine.disk;
        let known = self.source.vertices().is_some();
        if known && self.vertices.is_some() {
            return Err(IngestError::VerticesKnown);
        }
        let chunk_bytes = self.buffer_bytes(64, 16 << 10, 256 << 10);
        let spool = |name: &str, source: &dyn EdgeSource| {
            Spool::create(
                disk,
                self.temporary.join(name),
                chunk_bytes,
                source.weights(),
            )
        };
        let edges_spool = if needs_spool(self.source) {
            Some(spool("input", self.source)?)
        } else {
            None
        };
        let lane_bytes = Scan::lane_bytes(chunk_bytes, self.options.turns_round());
        let reader_bytes = self
            .source
            .reader_bytes()
            .max(self.vertices.map_or(0, EdgeSource::reader_bytes));
        let needed = self.lanes() * (lane_bytes + reader_bytes);
        self.check("the first reading of the edges", needed)?;
        let presence = (self.source.ids() == Ids::Integer && !known).then(|| {
            Presence::new(
                machine.budget,
                ((machine.budget.available() - needed) / 2).min(self.options.work_bytes_max),
            )
        });
        let scan = |source: &'a dyn EdgeSource, spool: Option<&Spool>, step| {
            let meter = Meter::new(machine.progress, step, source.amount());
            let scan = Scan {
                disk: machine.disk,
                workers: machine.workers,
                budget: machine.budget,
                stop: machine.stop,
                meter: &meter,
                source,
                presence: presence.as_ref(),
                spool,
                directed: self.options.directed,
                self_loops: self.options.self_loops,
                reverse: self.options.turns_round(),
            };
            scan.run()
        };
        let mut scanned = scan(self.source, edges_spool.as_ref(), "scan")?;
        let vertices = match self.vertices {
            None => None,
            Some(vertices) => {
                let spool = spool("vertices", vertices)?;
                let found = scan(vertices, Some(&spool), "vertices")?;
                scanned.id_max = scanned.id_max.max(found.id_max);
                scanned.sample.merge(found.sample);
                self.report.temporary_bytes += found.temporary_bytes;
                Some(Source::Spool(
                    spool.arrange(|piece| found.starts[piece as usize]),
                ))
            }
        };
        let source = match edges_spool {
            Some(spool) => Source::Spool(spool.arrange(|piece| scanned.starts[piece as usize])),
            None => Source::Input(self.source, std::mem::take(&mut scanned.starts)),
        };
        let report = &mut self.report;
        (report.lines, report.edges, report.skipped) = (
            scanned.report.lines,
            scanned.report.edges,
            scanned.report.skipped,
        );
        (report.comments, report.blank) = (
            scanned.report.comments + scanned.report.headers,
            scanned.report.blank,
        );
        if self.options.self_loops == SelfLoops::Drop {
            report.dropped_self_loops = scanned.loops;
        }
        report.temporary_bytes += scanned.temporary_bytes;
        self.done("scan");
        Ok(Found {
            source,
            vertices,
            scanned,
            presence,
        })
    }

    /// An error unless so many bytes are free.
    fn check(&self, what: &'static str, needed: u64) -> Result<(), IngestError> {
        let available = self.machine.budget.available();
        if needed > available {
            return Err(IngestError::too_little_memory(
                what,
                needed,
                available,
                self.machine.budget,
            ));
        }
        Ok(())
    }

    /// Step 2.
    fn index(&mut self, found: Found<'a>) -> Result<Indexed<'a>, IngestError> {
        let Found {
            mut source,
            vertices: extra,
            mut scanned,
            presence,
        } = found;
        let known = self.source.vertices();
        let span =
            known.unwrap_or_else(|| scanned.id_max.map_or(0, |id_max| id_max.saturating_add(1)));
        let mut dictionary = None;
        let ranks = match presence {
            Some(presence) => presence.ranks()?,
            None => None,
        };
        let (indices, vertices) = match (known, ranks) {
            (Some(vertices), _) => (Indices::Same, vertices),
            (None, Some(ranks)) if ranks.len() == span => (Indices::Same, span),
            (None, Some(ranks)) => {
                let vertices = ranks.len();
                (Indices::Rank(ranks), vertices)
            }
            (None, None) => {
                let place = self.place();
                // Each edge is read for its ends, then written with their indices.
                let meter = Meter::new(self.machine.progress, "ids", 2 * self.report.edges);
                let ends = Ends {
                    meter: &meter,
                    source: &source,
                    edges: self.report.edges,
                    vertices: extra.as_ref(),
                    sample: std::mem::take(&mut scanned.sample),
                    weights: self.source.weights(),
                };
                let (found, edges) = Dictionary::build(&place, ends)?;
                self.report.temporary_bytes += place.written.load(Relaxed);
                let vertices = found.len();
                source = Source::Spool(edges);
                dictionary = Some(found);
                (Indices::Same, vertices)
            }
        };
        let close = self.source.ids() == Ids::Integer && span / 4 <= vertices;
        let (ids, first) = self.write_ids(&indices, dictionary, vertices, close.then_some(span))?;
        self.report.vertices = vertices;
        self.done("ids");

        // Ranges of ids serve as granules where the ids lie close enough, however their indices were found.
        let (arcs_in, arcs_out) = if close {
            let granules = |mut counts: Histogram| {
                counts.grow(span.saturating_sub(1));
                Granules::new(first.clone(), counts.counts(first.len() - 1).to_vec())
            };
            (granules(scanned.arcs_in), scanned.arcs_out.map(granules))
        } else {
            drop((scanned.arcs_in, scanned.arcs_out));
            let meter = Meter::new(self.machine.progress, "count", self.report.edges);
            let count = Count {
                meter: &meter,
                disk: self.machine.disk,
                workers: self.machine.workers,
                budget: self.machine.budget,
                stop: self.machine.stop,
                source: &source,
                indices: &indices,
                vertices,
                directed: self.options.directed,
                self_loops: self.options.self_loops,
                reverse: self.options.turns_round(),
            };
            let (arcs_in, arcs_out) = count.run()?;
            (
                Granules::even(vertices, &arcs_in),
                arcs_out.map(|counts| Granules::even(vertices, &counts)),
            )
        };
        self.done("count");
        Ok(Indexed {
            source,
            indices,
            ids,
            vertices,
            arcs_in,
            arcs_out,
        })
    }

    /// Where and with how much memory a dictionary is built.
    fn place(&self) -> Place<'_> {
        let share = self.machine.budget.available() / self.lanes();
        let chunk_bytes = self.buffer_bytes(512, 8 << 10, 64 << 10);
        let write_bytes = self.buffer_bytes(128, 16 << 10, 256 << 10);
        let chunks = share / chunk_bytes as u64;
        Place {
            disk: self.machine.disk,
            budget: self.machine.budget,
            workers: self.machine.workers,
            stop: self.machine.stop,
            directory: self.temporary,
            chunk_bytes,
            read_ahead: read_ahead(chunk_bytes),
            write_bytes,
            // Of a worker's share a quarter is for open chunks: of positions, or of ids (two buckets a splitter), or of
            // both while a bucket of ids is split. Half is to sort in.
            splitters: (chunks / 16).clamp(2, 128) as usize,
            positions_max: (chunks / 8).max(1),
            sort_bytes: (share / 2).min(self.options.work_bytes_max),
            join_bytes: share / 2,
            files: AtomicU64::new(0),
            written: AtomicU64::new(0),
        }
    }

    /// Writes the ids that are not indices themselves; returns the index of the first vertex of each granule of the integer
    /// ids below `span`, or nothing without.
    fn write_ids(
        &self,
        indices: &Indices,
        dictionary: Option<Dictionary>,
        vertices: u64,
        span: Option<u64>,
    ) -> Result<(IdsSummary, Vec<u64>), IngestError> {
        let machine = self.machine;
        let shift = granule_shift(span.unwrap_or(0));
        let granules = span.map_or(0, |span| span.div_ceil(1 << shift));
        let writer = |kind| IdsWriter::create(machine.disk, machine.budget, self.staging, kind);
        // Ids that are 0, 1, 2, ... are indices, however that was found.
        let dictionary = dictionary.filter(|_| span != Some(vertices));
        match (dictionary, indices) {
            (None, Indices::Same) => {
                let first = (0..=granules)
                    .map(|granule| (granule << shift).min(vertices))
                    .collect();
                Ok((IdsSummary::dense(vertices), first))
            }
            (_, Indices::Rank(ranks)) => {
                let mut writer = writer(IdKind::Integer)?;
                ranks.for_each(|ids| {
                    if machine.stop.requested() {
                        return Err(IngestError::Stopped);
                    }
                    ids.iter().try_for_each(|&id| writer.push_integer(id))?;
                    Ok(())
                })?;
                let rank = ranks.look_up();
                let first = (0..=granules)
                    .map(|granule| rank.of(granule << shift))
                    .collect();
                Ok((writer.finish()?, first))
            }
            (Some(dictionary), Indices::Same) => {
                let text = self.source.ids() == Ids::Text;
                let mut writer = writer(if text { IdKind::Text } else { IdKind::Integer })?;
                let mut first = vec![0u64; granules as usize + 1];
                dictionary.for_each_id(&self.place(), |id| {
                    if text {
                        return Ok(writer.push_text(id)?);
                    }
                    let id = integer(id);
                    // Ids may be any number; those beyond the granules are counted by index, not here.
                    let after = (id >> shift).saturating_add(1);
                    if let Some(count) = usize::try_from(after)
                        .ok()
                        .and_then(|after| first.get_mut(after))
                    {
                        *count += 1;
                    }
                    Ok(writer.push_integer(id)?)
                })?;
                for granule in 1..first.len() {
                    first[granule] += first[granule - 1];
                }
                Ok((writer.finish()?, first))
            }
        }
    }

    /// Step 3.
    fn cut(&mut self, indexed: &Indexed<'_>) -> Result<Cut, IngestError> {
        let options = self.options;
        let batches = options
            .batch_size
            .map_or(0, |size| indexed.vertices / size.max(1));
        let tables = self
            .machine
            .budget
            .lease("the table of batches", batches * BATCH_BYTES)?;
        let cuts = indexed.arcs_in.batches(options.batch_size);
        let too_many = || IngestError::TooManyVertices {
            vertices: indexed.vertices,
        };
        let files = indexed.arcs_in.files(&cuts).ok_or_else(too_many)?;
        let reverse_files = match &indexed.arcs_out {
            Some(arcs_out) => Some(arcs_out.files(&cuts).ok_or_else(too_many)?),
            None => None,
        };
        let weights = self.source.weights();
        let shape = Shape {
            batches: Batches::new(cuts.clone())?,
            edge: weights,
            directed: options.directed,
            strip_edges_max: 2 * batch_arcs_max(indexed.arcs_in.arcs()),
            csr_ratio: options.csr_ratio,
            files: files.clone(),
            reverse_files: reverse_files.clone(),
        };
        self.report.batches = shape.batches.len() as u64;

        let layout = Layout::new(cuts);
        let forward_files = files.len();
        let key_bits: Vec<u32> = files
            .iter()
            .chain(reverse_files.iter().flatten())
            .map(|file| layout.key_bits(file.len()))
            .collect();
        let sequenced = weights != EdgeKind::None && options.duplicates == Duplicates::First;
        let parts = (PARTS_TABLE / key_bits.len().max(1))
            .clamp(PARTS_MIN, PARTS_MAX)
            .next_power_of_two();
        let plan = distribute::Plan {
            forward: layout.columns(files, 0),
            reverse: reverse_files.map(|files| layout.columns(files, forward_files)),
            packing: Packing::new(
                key_bits.iter().copied().max().unwrap_or(0),
                weights,
                sequenced,
            ),
            layout,
            weights,
            directed: options.directed,
            self_loops: options.self_loops,
            part_shifts: key_bits
                .iter()
                .map(|bits| bits.saturating_sub(parts.trailing_zeros()))
                .collect(),
            parts,
            vertices: indexed.vertices,
        };
        Ok(Cut {
            shape,
            plan,
            _tables: tables,
        })
    }

    /// Step 4.
    fn distribute(
        &mut self,
        indexed: Indexed<'a>,
        cut: &Cut,
        graph: &GraphWriter,
    ) -> Result<Buckets, IngestError> {
        let machine = self.machine;
        let plan = &cut.plan;
        let buckets = plan.buckets();
        let fixed = indexed.source.reader_bytes()
            + distribute::fixed_bytes(buckets, plan.parts, plan.packing);
        let available = machine.budget.available();
        let least = fixed + ((buckets + SLABS * SLAB_GRAINS_MIN) * GRAIN) as u64;
        let lanes = self.lanes().min(available / least);
        if lanes == 0 {
            return Err(IngestError::too_little_memory(
                "buckets of column files",
                least,
                available,
                machine.budget,
            ));
        }
        // A quarter of what is left for slabs, the rest for open chunks.
        let power = |bytes: u64| 1usize << bytes.max(1).ilog2().min(30);
        let share = available / lanes - fixed;
        let slab_bytes =
            power(share / 4 / SLABS as u64).clamp(SLAB_GRAINS_MIN * GRAIN, SLAB_BYTES_MAX);
        let chunks_share = share - (SLABS * slab_bytes) as u64;
        let chunk_bytes = power(chunks_share / buckets.max(1) as u64)
            .clamp(GRAIN, CHUNK_BYTES_MAX.min(slab_bytes));

        // What the next step needs is known now, before anything large is written.
        let least = self.write_bytes(graph, plan, chunk_bytes).1;
        let total = machine.budget.total();
        if least > total {
            return Err(IngestError::too_little_memory(
                "a column file",
                least,
                total,
                machine.budget,
            ));
        }

        let spill = Spill::create(
            &**machine.disk,
            self.temporary.join("arcs"),
            buckets,
            chunk_bytes,
        )?;
        let meter = Meter::new(machine.progress, "distribute", self.report.edges);
        let make = || {
            let reader = indexed.source.reader(machine.disk, machine.budget)?;
            let distributor = Distributor::new(
                plan,
                &indexed.indices,
                &spill,
                &**machine.disk,
                machine.budget,
                slab_bytes,
                &meter,
            )?;
            Ok((reader, distributor))
        };
        let work = |(reader, distributor): &mut (SourceReader<'_>, Distributor<'_>), unit: u64| {
            indexed.source.read(unit, reader, machine.stop, distributor)
        };
        let states = parallel::run(
            machine.workers,
            lanes as usize,
            machine.stop,
            indexed.source.units(),
            make,
            work,
        )?;
        let mut counts = machine
            .budget
            .buffer("counts of arcs", buckets * plan.parts * size_of::<u64>())?;
        let mut edges = 0;
        for (_, distributor) in states {
            let (part_counts, distributed, written) = distributor.finish()?;
            for (sum, count) in counts
                .typed_mut::<u64>()
                .iter_mut()
                .zip(part_counts.typed::<u64>())
            {
                *sum += count;
            }
            edges += distributed;
            self.report.temporary_bytes += written;
        }
        if edges != self.report.edges {
            return Err(IngestError::input_changed());
        }
        self.done("distribute");
        Ok(Buckets { spill, counts })
    }

    /// Bytes that a worker takes to write a column file, without the arcs in memory, and with as few as can be.
    fn write_bytes(
        &self,
        graph: &GraphWriter,
        plan: &distribute::Plan,
        chunk_bytes: usize,
    ) -> (u64, u64) {
        let read_bytes = (read_ahead(chunk_bytes) * chunk_bytes) as u64;
        let fixed = graph.memory() + TABLES_BYTES + read_bytes;
        let record_bytes = write::record_bytes(plan.weights, self.options.duplicates) as u64;
        (fixed, fixed + RECORDS_MIN * record_bytes)
    }

    /// Step 5.
    fn write(
        &mut self,
        cut: &Cut,
        buckets: Buckets,
        graph: &GraphWriter,
    ) -> Result<Kept, IngestError> {
        let machine = self.machine;
        let plan = &cut.plan;
        let duplicates = self.options.duplicates;
        let counts = buckets.counts.typed::<u64>();
        let arcs_of = |bucket: usize| {
            counts[bucket * plan.parts..(bucket + 1) * plan.parts]
                .iter()
                .sum::<u64>()
        };

        // The largest first, so that workers end together.
        let mut order: Vec<usize> = (0..plan.buckets()).collect();
        order.sort_by_key(|&bucket| std::cmp::Reverse(arcs_of(bucket)));
        let batches = cut.shape.batches.len() as u64;
        let cells_of = |bucket: usize| match &plan.reverse {
            Some(reverse) if bucket >= reverse.bucket_first => {
                reverse.files[bucket - reverse.bucket_first].len() as u64 * batches
            }
            _ => plan.forward.files[bucket].len() as u64 * batches,
        };
        let record_bytes = write::record_bytes(plan.weights, duplicates) as u64;
        let chunk_bytes = buckets.spill.chunk_bytes();
        let (fixed, least) = self.write_bytes(graph, plan, chunk_bytes);
        // What the graph's writer notes of each cell until the end; in a large graph many cells are empty.
        let notes =
            |bucket: usize| (2 * arcs_of(bucket).min(cells_of(bucket))).max(CELLS_MIN) * CELL_BYTES;
        let available = machine.budget.available();
        let available = available
            - (0..plan.buckets())
                .map(notes)
                .sum::<u64>()
                .min(available / 4);
        let lanes = self
            .lanes()
            .min(available / least)
            .min(plan.buckets() as u64)
            .max(1);
        if available < least {
            return Err(IngestError::too_little_memory(
                "a column file",
                least,
                available,
                machine.budget,
            ));
        }
        // Enough for every bucket at once, with scratch for its largest part.
        let with_scratch = |bucket: usize| {
            let parts = &counts[bucket * plan.parts..(bucket + 1) * plan.parts];
            parts.iter().sum::<u64>() + parts.iter().copied().max().unwrap_or(0)
        };
        let wanted = order
            .iter()
            .map(|&bucket| with_scratch(bucket) * record_bytes)
            .max()
            .unwrap_or(0)
            .max(GRAIN as u64);
        let sort_bytes = (available / lanes - fixed)
            .min(wanted)
            .min(self.options.work_bytes_max);

        let meter = Meter::new(
            machine.progress,
            "write",
            (0..plan.buckets()).map(arcs_of).sum(),
        );
        let make = || {
            let inbox = Inbox::new(
                &**machine.disk,
                machine.budget,
                chunk_bytes,
                read_ahead(chunk_bytes),
            )?;
            let records = machine.budget.buffer("arcs to sort", sort_bytes as usize)?;
            Ok((write::Lane { inbox, records }, Kept::default()))
        };
        let work = |(lane, kept): &mut (write::Lane, Kept), task: u64| {
            let bucket = order[task as usize];
            let (columns, reversed) = match &plan.reverse {
                Some(reverse) if bucket >= reverse.bucket_first => (reverse, true),
                _ => (&plan.forward, false),
            };
            let number = bucket - columns.bucket_first;
            let mut writer = if reversed {
                graph.reverse_column_file(number)?
            } else {
                graph.column_file(number)?
            };
            let file = write::File {
                plan,
                columns,
                spill: &buckets.spill,
                duplicates,
                stop: machine.stop,
                budget: machine.budget,
                number,
            };
            let written = file.write(
                &counts[bucket * plan.parts..(bucket + 1) * plan.parts],
                lane,
                &mut writer,
            )?;
            writer.finish()?;
            // Arcs turned round are the same arcs: they are counted once.
            if !reversed {
                kept.add(written);
            }
            meter.advance(arcs_of(bucket));
            Ok(())
        };
        let states = parallel::run(
            machine.workers,
            lanes as usize,
            machine.stop,
            order.len() as u64,
            make,
            work,
        )?;
        let mut kept = Kept::default();
        states.into_iter().for_each(|(_, part)| kept.add(part));
        self.done("write");
        Ok(kept)
    }

    /// Step 6.
    fn finish(
        &mut self,
        graph: GraphWriter,
        ids: IdsSummary,
        kept: Kept,
    ) -> Result<(), IngestError> {
        let options = self.options;
        let report = &mut self.report;
        report.arcs = kept.arcs;
        // Of an undirected edge both arcs were dropped, or none.
        let ways = if options.directed { 1 } else { 2 };
        report.dropped_duplicates = kept.loops_dropped + kept.others_dropped / ways;
        report.edges_kept = report.edges - report.dropped_self_loops - report.dropped_duplicates;
        let dropped = [
            ("duplicates", report.dropped_duplicates),
            ("malformed_lines", report.skipped),
            ("self_loops", report.dropped_self_loops),
        ];
        let notes = [
            (
                "batch_size",
                options
                    .batch_size
                    .map_or("auto".into(), |size| size.to_string()),
            ),
            (
                "duplicates",
                format!("{:?}", options.duplicates).to_lowercase(),
            ),
            (
                "self_loops",
                format!("{:?}", options.self_loops).to_lowercase(),
            ),
        ];
        graph.finish(Facts {
            ids,
            input_edges: report.edges,
            dropped: dropped
                .into_iter()
                .map(|(reason, edges)| (reason.to_string(), edges))
                .collect(),
            options: notes
                .into_iter()
                .map(|(option, value)| (option.to_string(), value))
                .collect(),
            program: concat!("graphmill ", env!("CARGO_PKG_VERSION")).into(),
        })?;
        self.done("finish");
        Ok(())
    }
}
