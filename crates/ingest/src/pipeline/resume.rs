//! The records that the steps of an import write (`step_log.rs` says where), and how an import resumes from them.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use graphmill_graph::{FileSide, GraphWriter, IdsSummary, Layout};
use graphmill_raw::lock;
use graphmill_storage::{RecordReader, RecordWriter, corrupt};

use super::assign_ids::{ArcStats, DEGREES, IndexedEdges};
use super::buckets::{ARCS, Buckets};
use super::context::ImportContext;
use super::scan;
use crate::build::sort_bucket::ArcCounts;
use crate::checkpoint::staging::StagingDir;
use crate::checkpoint::step_log::{
    DISTRIBUTED, INDEXED, SCANNED, STEPS, StepFiles, StepLog, StepWriter, column_record,
    common_graph_files, is_column_record,
};
use crate::error::IngestError;
use crate::external::bucket_file::BucketFile;
use crate::external::reread::EdgeReplay;
use crate::generate::rule::DirectSource;
use crate::ids::bitmap::{IdBitmap, RankBitmap};
use crate::ids::external::splitters::IdSample;
use crate::ids::index_map::IdToIndex;
use crate::layout::batch_cut::RangeCounts;
use crate::layout::degree_file::OutDegrees;
use crate::layout::histogram::{ArcHistograms, RangeHistogram};
use crate::layout::scan::Scanned;
use crate::source::{EdgeSource, PieceReport};

/// Counters in every record of a step.
const COUNTERS: usize = 11;

/// The step from which an import resumes.
pub(super) enum ResumePoint<'a> {
    /// From the start.
    Nothing,
    /// The input was read once.
    Scanned(scan::ScanResult<'a>),
    /// Arcs are counted.
    Counted(ArcStats, EdgeStage<'a>),
}

/// The location of the edges when the graph is cut.
pub(super) enum EdgeStage<'a> {
    /// Nowhere: a rule generates them.
    Computed(DirectSource<'a>),
    /// Where they were: the ids are indices, and the edges are read for the first time.
    Unread,
    /// Vertices have indices.
    Indexed(IndexedEdges<'a>),
    /// Arcs are in their buckets; the order of vertices, where it is not that of ids.
    Distributed(Option<[u64; 2]>, Buckets),
}

/// Column files that are complete, with what was kept of their arcs.
pub(super) type DoneFiles = BTreeMap<(FileSide, usize), ArcCounts>;

impl<'a> ImportContext<'a> {
    /// Returns the last step that all ranks have ended, and removes the files of later ones.
    pub(super) fn resume(
        &mut self,
        staging: &StagingDir<'_>,
    ) -> Result<ResumePoint<'a>, IngestError> {
        let Some(log) = self.log else {
            return Ok(ResumePoint::Nothing);
        };
        let mut most = STEPS.len() as u64;
        let found = loop {
            let found = self.found(log, most as usize)?;
            let mine = found.as_ref().map_or(0, |(step, ..)| *step);
            most = self.comm.all_reduce_min(mine)?;
            if self.comm.all_true(mine == most)? {
                break found;
            }
        };
        log.remove_records(&STEPS[most as usize..])?;
        // One rank of each disk removes the common files; column files are replaced when they are written again.
        let is_maker = staging.makers[self.comm.rank()] == self.comm.rank();
        let common = match is_maker {
            true => common_graph_files(&**self.resources.disk, self.staging)?,
            false => Vec::new(),
        };
        log.clean(common)?;
        self.comm.gather(Vec::new())?;
        let Some((step, counters, found)) = found else {
            return Ok(ResumePoint::Nothing);
        };
        std::iter::zip(self.counters(), counters).for_each(|(to, counter)| *to = counter);
        let third = match self.options.layout {
            Layout::Column => "distribute",
            Layout::Stream => "bin",
        };
        let next = ["ids", third, "write"][step as usize - 1];
        self.resources.progress.goes_on(next, 0);
        Ok(found)
    }

    /// The number from 1 of the last step ended here, of the first `most`, its counters and results.
    fn found(
        &self,
        log: &StepLog<'_>,
        most: usize,
    ) -> Result<Option<(u64, [u64; COUNTERS], ResumePoint<'a>)>, IngestError> {
        type Decode<'a, C> = fn(&C, &mut RecordReader<'_>) -> io::Result<ResumePoint<'a>>;
        let decode: [Decode<'a, Self>; 3] = [Self::scanned, Self::indexed, Self::distributed];
        let steps = std::iter::zip(STEPS, decode).enumerate();
        for (step, (name, decode)) in steps.take(most).rev() {
            let found = log.read(name, |from| {
                let mut counters = [0; COUNTERS];
                for counter in &mut counters {
                    *counter = from.number()?;
                }
                Ok((counters, decode(self, from)?))
            })?;
            if let Some((counters, found)) = found {
                return Ok(Some((step as u64 + 1, counters, found)));
            }
        }
        Ok(None)
    }

    /// The counts in the report of the steps that have ended: every record holds them.
    fn counters(&mut self) -> [&mut u64; COUNTERS] {
        let report = &mut self.report;
        [
            &mut report.lines,
            &mut report.comments,
            &mut report.blank,
            &mut report.skipped,
            &mut report.vertex_lines,
            &mut report.vertex_lines_skipped,
            &mut report.edges,
            &mut report.dropped_self_loops,
            &mut report.vertices,
            &mut report.temporary_bytes,
            &mut self.edges_here,
        ]
    }

    /// Writes the record of a step if it is time on all ranks to keep what was done.
    fn checkpoint(
        &mut self,
        step: &str,
        files: StepFiles<'_>,
        put: impl FnOnce(&mut StepWriter) -> io::Result<()>,
    ) -> Result<(), IngestError> {
        let Some(log) = self.log else {
            return Ok(());
        };
        if self.comm.all_true(log.is_due())? {
            let counters = self.counters().map(|counter| *counter);
            log.write(step, &files, |out| {
                counters
                    .iter()
                    .try_for_each(|counter| out.put_u64(*counter))?;
                put(out)
            });
        }
        Ok(())
    }

    /// Keeps what step 1 has found.
    pub(super) fn checkpoint_scan(
        &mut self,
        found: &scan::ScanResult<'_>,
    ) -> Result<(), IngestError> {
        let spools = [Some(&found.source), found.vertices.as_ref()];
        let temporary = spools.into_iter().flatten().filter_map(EdgeReplay::path);
        let files = StepFiles {
            temporary: &temporary.collect::<Vec<_>>(),
            graph: &[],
        };
        self.checkpoint(SCANNED, files, |out| {
            found.source.encode(out)?;
            out.optional(found.vertices.as_ref(), EdgeReplay::encode)?;
            let scanned = &found.scanned;
            out.optional(scanned.id_max, |id, out| out.put_u64(id))?;
            scanned.arcs.arcs_in.encode(out)?;
            out.optional(scanned.arcs.arcs_out.as_ref(), RangeHistogram::encode)?;
            out.put_bytes(&scanned.sample.to_bytes())?;
            out.optional(found.id_bitmap.as_ref(), IdBitmap::encode)
        })
    }

    fn scanned(&self, from: &mut RecordReader<'_>) -> io::Result<ResumePoint<'a>> {
        let budget = self.resources.budget;
        let source = self.take_source(self.source, from)?;
        let vertices = from.optional(|from| {
            let vertices = self.vertices.ok_or_else(corrupt)?;
            self.take_source(vertices, from)
        })?;
        let id_max = from.optional(RecordReader::number)?;
        let arcs = ArcHistograms {
            arcs_in: RangeHistogram::decode(budget, from)?,
            arcs_out: from.optional(|from| RangeHistogram::decode(budget, from))?,
        };
        let sample = IdSample::merged(&[from.bytes()?]).map_err(|_| corrupt())?;
        let id_bitmap = from.optional(|from| {
            let most = (budget.available() / 2).min(self.options.work_bytes_max);
            IdBitmap::decode(budget, most, from)
        })?;
        Ok(ResumePoint::Scanned(scan::ScanResult {
            source,
            vertices,
            scanned: Scanned {
                id_max,
                arcs,
                sample,
                // All else is in the report, or in where edges are.
                report: PieceReport::default(),
                starts: Vec::new(),
                loops: 0,
                temporary_bytes: 0,
            },
            id_bitmap,
        }))
    }

    /// Edges of `input` that can be read again.
    fn take_source(
        &self,
        input: &'a dyn EdgeSource,
        from: &mut RecordReader<'_>,
    ) -> io::Result<EdgeReplay<'a>> {
        let (disk, budget) = (&**self.resources.disk, self.resources.budget);
        EdgeReplay::decode(disk, budget, (input, self.temporary), from)
    }

    /// Keeps what step 2 has found.
    pub(super) fn checkpoint_ids(
        &mut self,
        arc_stats: &ArcStats,
        indexed: &IndexedEdges<'_>,
    ) -> Result<(), IngestError> {
        let degrees = indexed.degrees.as_ref().map(|degrees| degrees.file.path());
        let temporary = indexed.source.path().into_iter().chain(degrees);
        let files = StepFiles {
            temporary: &temporary.collect::<Vec<_>>(),
            graph: &arc_stats.files(self.staging),
        };
        self.checkpoint(INDEXED, files, |out| {
            arc_stats.encode(out)?;
            indexed.source.encode(out)?;
            let ranks = match &indexed.indices {
                IdToIndex::Same => None,
                IdToIndex::Rank(ranks) => Some(ranks),
            };
            out.optional(ranks, RankBitmap::encode)?;
            out.optional(indexed.degrees.as_ref(), OutDegrees::encode)
        })
    }

    fn indexed(&self, from: &mut RecordReader<'_>) -> io::Result<ResumePoint<'a>> {
        let (disk, budget) = (&**self.resources.disk, self.resources.budget);
        let arc_stats = ArcStats::decode(from)?;
        let source = self.take_source(self.source, from)?;
        let ranks = from.optional(|from| RankBitmap::decode(budget, from))?;
        let path = self.temporary.join(DEGREES);
        let indexed = IndexedEdges {
            source,
            indices: ranks.map_or(IdToIndex::Same, IdToIndex::Rank),
            degrees: from.optional(|from| OutDegrees::decode(disk, budget, &path, from))?,
        };
        Ok(ResumePoint::Counted(arc_stats, EdgeStage::Indexed(indexed)))
    }

    /// Keeps what step 4 has gathered.
    pub(super) fn checkpoint_buckets(
        &mut self,
        arc_stats: &ArcStats,
        graph: &GraphWriter,
        buckets: &Buckets,
    ) -> Result<(), IngestError> {
        let order = graph.order_made();
        let mut of_graph = arc_stats.files(self.staging);
        of_graph.extend(order.map(|_| graph.order_path()));
        let files = StepFiles {
            temporary: &[buckets.bucket_file.path()],
            graph: &of_graph,
        };
        self.checkpoint(DISTRIBUTED, files, |out| {
            arc_stats.encode(out)?;
            out.optional(order, |order, out| {
                order.iter().try_for_each(|number| out.put_u64(*number))
            })?;
            buckets.bucket_file.encode(out)?;
            out.put_bytes(&buckets.counts)
        })
    }

    fn distributed(&self, from: &mut RecordReader<'_>) -> io::Result<ResumePoint<'a>> {
        let (disk, budget) = (&**self.resources.disk, self.resources.budget);
        let arc_stats = ArcStats::decode(from)?;
        let order = from.optional(|from| Ok([from.number()?, from.number()?]))?;
        let bucket_file = BucketFile::decode(disk, budget, &self.temporary.join(ARCS), from)?;
        let bytes = from.count(1)?;
        let counts = budget.buffer("counts of arcs", bytes as usize);
        let mut counts = counts.map_err(io::Error::other)?;
        from.exact(&mut counts)?;
        let buckets = Buckets {
            bucket_file,
            counts,
        };
        let distributed = EdgeStage::Distributed(order, buckets);
        Ok(ResumePoint::Counted(arc_stats, distributed))
    }

    /// Returns the column files of `graph` that are complete, and removes the others.
    pub(super) fn done_files(
        &self,
        graph: &GraphWriter,
        mine: impl Iterator<Item = (FileSide, usize)>,
    ) -> Result<DoneFiles, IngestError> {
        let mut done = DoneFiles::new();
        let Some(log) = self.log else {
            return Ok(done);
        };
        let names = log.names()?;
        for name in names.iter().filter(|name| is_column_record(name)) {
            let whole = log.read(name, |from| {
                for _ in 0..from.number()? {
                    let side = match from.word()? {
                        0 => FileSide::Forward,
                        _ => FileSide::Reverse,
                    };
                    let number = from.number()? as usize;
                    let kept = ArcCounts {
                        arcs: from.number()?,
                        loops_dropped: from.number()?,
                        others_dropped: from.number()?,
                    };
                    let mut listener = graph.listen();
                    loop {
                        let payload = from.bytes()?;
                        if payload.is_empty() {
                            break;
                        }
                        // If memory does not hold all, the rest is written again.
                        listener.take(&payload).map_err(|_| corrupt())?;
                    }
                    if graph.has(side, number) {
                        done.insert((side, number), kept);
                    }
                }
                Ok(())
            })?;
            if whole.is_none() {
                log.remove_records(&[name])?;
            }
        }
        if !done.is_empty() {
            self.resources.progress.goes_on("write", done.len());
        }
        let disk = &**self.resources.disk;
        for (side, number) in mine.filter(|file| !done.contains_key(file)) {
            for path in graph.paths_of(side, number) {
                if disk.exists(&path)? {
                    disk.remove_file(&path)?;
                }
            }
        }
        Ok(done)
    }
}

/// Column files that are complete, and not kept yet.
pub(super) struct CompletedFiles<'i, 'a> {
    log: Option<&'i StepLog<'a>>,
    graph: &'i GraphWriter,
    files: Mutex<Vec<(FileSide, usize, ArcCounts)>>,
}

impl<'i, 'a> CompletedFiles<'i, 'a> {
    pub(super) fn new(import: &'i ImportContext<'a>, graph: &'i GraphWriter) -> Self {
        CompletedFiles {
            log: import.log,
            graph,
            files: Mutex::default(),
        }
    }

    /// Adds a complete file, and writes a record of all new ones if it is due.
    pub(super) fn add(&self, side: FileSide, number: usize, kept: ArcCounts) {
        lock(&self.files).push((side, number, kept));
        if self.log.is_some_and(StepLog::is_due) {
            self.checkpoint();
        }
    }

    /// Writes a record of the new files.
    pub(super) fn checkpoint(&self) {
        let files = std::mem::take(&mut *lock(&self.files));
        let (Some(log), Some((side, number, _))) = (self.log, files.first()) else {
            return;
        };
        let graph = self.graph;
        let paths: Vec<PathBuf> = files
            .iter()
            .flat_map(|(side, number, _)| graph.paths_of(*side, *number))
            .collect();
        let named_files = StepFiles {
            temporary: &[],
            graph: &paths,
        };
        log.write(&column_record(*side, *number), &named_files, |out| {
            out.put_u64(files.len() as u64)?;
            for (side, number, kept) in &files {
                out.put_u32(*side as u32)?;
                let number = *number as u64;
                for number in [number, kept.arcs, kept.loops_dropped, kept.others_dropped] {
                    out.put_u64(number)?;
                }
                graph.tell_of(*side, number as usize, |payload| out.put_bytes(payload))?;
                out.put_u64(0)?;
            }
            Ok(())
        });
    }
}

impl ArcStats {
    /// Returns the files of the graph that the record names.
    fn files(&self, graph: &Path) -> Vec<PathBuf> {
        self.ids.map(|ids| ids.files(graph)).unwrap_or_default()
    }

    fn encode(&self, out: &mut RecordWriter<impl Write>) -> io::Result<()> {
        let ids = self.ids.map(|ids| ids.to_numbers().to_vec());
        out.put_u64s(ids.unwrap_or_default().into_iter())?;
        out.put_u64(self.vertices)?;
        self.arcs_in.encode(out)?;
        out.optional(self.arcs_out.as_ref(), RangeCounts::encode)
    }

    fn decode(from: &mut RecordReader<'_>) -> io::Result<Self> {
        let ids = match &from.numbers()?[..] {
            [] => None,
            numbers => Some(IdsSummary::from_numbers(numbers).ok_or_else(corrupt)?),
        };
        let vertices = from.number()?;
        Ok(ArcStats {
            ids,
            vertices,
            arcs_in: RangeCounts::decode(vertices, from)?,
            arcs_out: from.optional(|from| RangeCounts::decode(vertices, from))?,
        })
    }
}
