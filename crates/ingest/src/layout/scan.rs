//! The first reading of the edges: how many there are, which ids occur, how many arcs each range of ids receives.
//!
//! Edges that cannot be read again cheaply (text, packed files) go to an edge file on the way, so that they are parsed once.

use std::sync::Arc;

use graphmill_storage::{CancelToken, Disk, MemoryBudget, WorkerPool};

use super::histogram::RangeHistogram;
use crate::comm::ImportCommunicator;
use crate::error::IngestError;
use crate::external::edge_file::{EdgeFileWriter, TempEdgeFile};
use crate::external::parallel;
use crate::ids::bitmap::IdBitmap;
use crate::ids::external::splitters::IdSample;
use crate::options::SelfLoops;
use crate::progress::Meter;
use crate::source::{EdgeSink, EdgeSource, Ids, PieceReader, PieceReport};

/// Chunks of the edge file that one worker has in memory.
pub(crate) const EDGE_FILE_BUFFERS: usize = 4;

/// The input and the resources of a scan.
pub(crate) struct Scan<'a> {
    pub(crate) disk: &'a Arc<dyn Disk>,
    pub(crate) workers: &'a WorkerPool,
    pub(crate) budget: &'a MemoryBudget,
    pub(crate) stop: &'a CancelToken,
    pub(crate) meter: &'a Meter<'a>,
    pub(crate) source: &'a dyn EdgeSource,
    /// Ids are marked here, unless the source knows its vertices.
    pub(crate) id_bitmap: Option<&'a IdBitmap>,
    pub(crate) edge_file: Option<&'a TempEdgeFile>,
    pub(crate) directed: bool,
    pub(crate) self_loops: SelfLoops,
    /// True if arcs are counted by source too.
    pub(crate) reverse: bool,
}

/// The result of a scan.
#[derive(Debug)]
pub(crate) struct Scanned {
    pub(crate) report: PieceReport,
    /// The number of the first edge of each piece.
    pub(crate) starts: Vec<u64>,
    /// The largest integer id.
    pub(crate) id_max: Option<u64>,
    /// Arcs by destination, and by source where asked for.
    pub(crate) arcs_in: RangeHistogram,
    pub(crate) arcs_out: Option<RangeHistogram>,
    /// Edges from a vertex to itself.
    pub(crate) loops: u64,
    pub(crate) sample: IdSample,
    pub(crate) temporary_bytes: u64,
}

impl Scan<'_> {
    /// Bytes that each worker leases until it is done, less what the reader takes.
    pub(crate) fn lane_bytes(chunk_bytes: usize, reverse: bool) -> u64 {
        Self::sum_bytes(reverse) + (EDGE_FILE_BUFFERS * chunk_bytes) as u64
    }

    /// Returns the bytes that `lanes` workers leave: the sum of their counts, and the tables of edge files.
    ///
    /// The tables count for edge files that are short.
    pub(crate) fn found_bytes(lanes: u64, reverse: bool) -> u64 {
        Self::sum_bytes(reverse) + lanes * EdgeFileWriter::TABLE_BYTES
    }

    fn sum_bytes(reverse: bool) -> u64 {
        let histograms = if reverse { 2 } else { 1 };
        (histograms * crate::layout::histogram::GRANULES_MAX * size_of::<u64>()) as u64
    }

    /// Reads everything once.
    pub(crate) fn run(&self) -> Result<Scanned, IngestError> {
        let make = || {
            let sink = ScanSink {
                scan: self,
                arcs_in: RangeHistogram::new(self.budget)?,
                arcs_out: if self.reverse {
                    Some(RangeHistogram::new(self.budget)?)
                } else {
                    None
                },
                edge_file: match self.edge_file {
                    Some(edge_file) => Some(EdgeFileWriter::new(
                        edge_file,
                        &**self.disk,
                        self.budget,
                        EDGE_FILE_BUFFERS,
                    )?),
                    None => None,
                },
                piece: 0,
                first: 0,
                id_max: None,
                loops: 0,
                sample: IdSample::default(),
            };
            Ok(ScanLane {
                reader: self.source.reader(self.disk, self.budget)?,
                sink,
                reports: Vec::new(),
            })
        };
        let lanes = parallel::run(
            self.workers,
            usize::MAX,
            self.stop,
            self.source.pieces(),
            make,
            |lane, piece| {
                (lane.sink.piece, lane.sink.first) = (piece, 0);
                let report = lane.reader.read(piece, self.stop, &mut lane.sink)?;
                lane.reports.push((piece, report));
                Ok(())
            },
        )?;
        self.merge(lanes)
    }

    fn merge(&self, lanes: Vec<ScanLane<'_>>) -> Result<Scanned, IngestError> {
        let mut found = Scanned {
            report: PieceReport::default(),
            starts: vec![0; self.source.pieces() as usize],
            id_max: lanes.iter().filter_map(|lane| lane.sink.id_max).max(),
            arcs_in: RangeHistogram::new(self.budget)?,
            arcs_out: if self.reverse {
                Some(RangeHistogram::new(self.budget)?)
            } else {
                None
            },
            loops: 0,
            sample: IdSample::default(),
            temporary_bytes: 0,
        };
        let id_max = found.id_max.unwrap_or(0);
        for lane in lanes {
            for (piece, report) in lane.reports {
                found.starts[piece as usize] = report.edges;
                found.report.add(report);
            }
            found.loops += lane.sink.loops;
            found.sample.merge(lane.sink.sample);
            found.arcs_in.merge(lane.sink.arcs_in, id_max);
            if let (Some(sum), Some(counts)) = (&mut found.arcs_out, lane.sink.arcs_out) {
                sum.merge(counts, id_max);
            }
            if let Some(edge_file) = lane.sink.edge_file {
                found.temporary_bytes += edge_file.finish()?;
            }
        }
        let mut first = 0;
        for start in &mut found.starts {
            first += std::mem::replace(start, first);
        }
        Ok(found)
    }
}

struct ScanLane<'a> {
    reader: Box<dyn PieceReader + 'a>,
    sink: ScanSink<'a>,
    reports: Vec<(u64, PieceReport)>,
}

struct ScanSink<'a> {
    scan: &'a Scan<'a>,
    arcs_in: RangeHistogram,
    arcs_out: Option<RangeHistogram>,
    edge_file: Option<EdgeFileWriter<'a>>,
    piece: u64,
    /// The number within the piece of the next edge.
    first: u64,
    id_max: Option<u64>,
    loops: u64,
    sample: IdSample,
}

/// Counts the arcs of `edges` by destination; returns how many edges are self-loops.
pub(crate) fn count_arcs(
    edges: &[(u64, u64)],
    counts: &mut RangeHistogram,
    both_ways: bool,
    self_loops: SelfLoops,
    end: impl Fn(&(u64, u64)) -> u64,
) -> u64 {
    let (counts, shift) = counts.counters();
    let mut loops = 0;
    let mask = counts.len() - 1;
    let kept = u64::from(self_loops == SelfLoops::Keep);
    for edge in edges {
        let is_loop = u64::from(edge.0 == edge.1);
        loops += is_loop;
        if both_ways {
            // Two arcs, or one for a self-loop.
            counts[(edge.0 >> shift) as usize & mask] += 1 - is_loop;
            counts[(edge.1 >> shift) as usize & mask] += 1 - is_loop + (is_loop & kept);
        } else {
            counts[(end(edge) >> shift) as usize & mask] += 1 - is_loop + (is_loop & kept);
        }
    }
    loops
}

impl EdgeSink for ScanSink<'_> {
    fn integers(&mut self, edges: &[(u64, u64)], weights: &[f64]) -> Result<(), IngestError> {
        let scan = self.scan;
        let id_max = edges
            .iter()
            .fold(0, |max, edge| max.max(edge.0).max(edge.1));
        if scan
            .source
            .vertices()
            .is_some_and(|vertices| id_max >= vertices)
        {
            return Err(IngestError::internal(
                "a generator draws vertices beyond its range",
            ));
        }
        self.id_max = self.id_max.max(Some(id_max));
        self.arcs_in.grow(id_max);
        if let Some(id_bitmap) = scan.id_bitmap {
            if id_bitmap.reserve(id_max) {
                for edge in edges {
                    id_bitmap.mark(edge.0);
                    id_bitmap.mark(edge.1);
                }
            }
            for edge in edges.first().into_iter().chain(edges.get(edges.len() / 2)) {
                self.sample.offer(edge.0.to_be_bytes());
                self.sample.offer(edge.1.to_be_bytes());
            }
        }
        self.loops += count_arcs(
            edges,
            &mut self.arcs_in,
            !scan.directed,
            scan.self_loops,
            |edge| edge.1,
        );
        if let Some(counts) = &mut self.arcs_out {
            counts.grow(id_max);
            count_arcs(edges, counts, false, scan.self_loops, |edge| edge.0);
        }
        if let Some(edge_file) = &mut self.edge_file {
            edge_file.integers(self.piece, self.first, edges, weights)?;
        }
        self.first += edges.len() as u64;
        Ok(())
    }

    fn texts(&mut self, edges: &[(&[u8], &[u8])], weights: &[f64]) -> Result<(), IngestError> {
        for (source, destination) in edges {
            self.loops += u64::from(source == destination);
        }
        for edge in edges.first().into_iter().chain(edges.get(edges.len() / 2)) {
            self.sample.offer(edge.0);
            self.sample.offer(edge.1);
        }
        if let Some(edge_file) = &mut self.edge_file {
            edge_file.texts(self.piece, self.first, edges, weights)?;
        }
        self.first += edges.len() as u64;
        Ok(())
    }

    fn progress(&mut self, amount: u64) {
        self.scan.meter.advance(amount);
    }
}

impl Scanned {
    /// Merges the results of all ranks, each of its part of the edges.
    pub(crate) fn merge_ranks(&mut self, comm: &ImportCommunicator<'_>) -> Result<(), IngestError> {
        let first = comm.exclusive_prefix_sum(self.report.edges)?;
        self.starts.iter_mut().for_each(|start| *start += first);
        let report = &mut self.report;
        let mut sums = [
            report.lines,
            report.edges,
            report.comments,
            report.blank,
            report.headers,
            report.skipped,
            self.loops,
        ];
        comm.sum_elementwise(&mut sums)?;
        let [lines, edges, comments, blank, headers, skipped, loops] = sums;
        self.report = PieceReport {
            lines,
            edges,
            comments,
            blank,
            headers,
            skipped,
        };
        self.loops = loops;
        let mut greatest = [self.id_max.is_some().into(), self.id_max.unwrap_or(0)];
        comm.reduce(&mut greatest, u64::max)?;
        self.id_max = (greatest[0] == 1).then_some(greatest[1]);
        let sides = [Some(&mut self.arcs_in), self.arcs_out.as_mut()];
        for counts in sides.into_iter().flatten() {
            counts.grow(self.id_max.unwrap_or(0));
            counts.add_up(comm)?;
        }
        self.sample.bound();
        self.sample = IdSample::merged(&comm.gather(self.sample.to_bytes())?)?;
        Ok(())
    }
}

/// True if the edges of a source must go to an edge file.
pub(crate) fn needs_spool(source: &dyn EdgeSource) -> bool {
    source.ids() == Ids::Text || !source.rereads_fast()
}
