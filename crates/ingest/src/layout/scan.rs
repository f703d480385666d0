//! The first reading of the edges: how many there are, which ids occur, how many arcs each range of ids receives.
//!
//! Edges that cannot be read again cheaply (text, packed files) go to an edge file on the way, so that they are parsed once.

use super::histogram::ArcHistograms;
use crate::comm::ImportCommunicator;
use crate::edge_data::EdgeData;
use crate::error::IngestError;
use crate::external::edge_file::{EdgeFileWriter, TempEdgeFile};
use crate::external::parallel;
use crate::ids::bitmap::IdBitmap;
use crate::ids::external::splitters::IdSample;
use crate::options::{ImportOptions, ImportResources};
use crate::progress::Meter;
use crate::source::{EdgeSink, EdgeSource, PieceReader, PieceReport};

/// Chunks of the edge file that one worker has in memory.
pub(crate) const EDGE_FILE_BUFFERS: usize = 4;

/// The input and the resources of a scan.
pub(crate) struct Scan<'a> {
    pub(crate) resources: ImportResources<'a>,
    pub(crate) options: &'a ImportOptions,
    pub(crate) meter: &'a Meter<'a>,
    pub(crate) source: &'a dyn EdgeSource,
    /// Ids are marked here, unless the source knows its vertices.
    pub(crate) id_bitmap: Option<&'a IdBitmap>,
    pub(crate) edge_file: Option<&'a TempEdgeFile>,
}

/// The result of a scan.
#[derive(Debug)]
pub(crate) struct Scanned {
    pub(crate) report: PieceReport,
    /// The number of the first edge of each piece.
    pub(crate) starts: Vec<u64>,
    /// The largest integer id.
    pub(crate) id_max: Option<u64>,
    pub(crate) arcs: ArcHistograms,
    /// Edges from a vertex to itself.
    pub(crate) loops: u64,
    pub(crate) sample: IdSample,
    pub(crate) temporary_bytes: u64,
}

impl Scan<'_> {
    /// Reads everything once.
    pub(crate) fn run(&self) -> Result<Scanned, IngestError> {
        let resources = self.resources;
        let make = || {
            let sink = ScanSink {
                scan: self,
                arcs: ArcHistograms::new(resources.budget, self.options.turns_round())?,
                edge_file: match self.edge_file {
                    Some(edge_file) => Some(EdgeFileWriter::new(
                        edge_file,
                        &**resources.disk,
                        resources.budget,
                        EDGE_FILE_BUFFERS,
                    )?),
                    None => None,
                },
                piece: 0,
                first: 0,
                pieces: Vec::new(),
                id_max: None,
                loops: 0,
                sample: IdSample::default(),
                report: PieceReport::default(),
            };
            Ok((self.source.reader(resources.disk, resources.budget)?, sink))
        };
        let work = |(reader, sink): &mut (Box<dyn PieceReader + '_>, ScanSink<'_>), piece| {
            if !self.source.is_stream() {
                sink.begin_piece(piece);
            }
            let report = reader.read(piece, resources.stop, sink)?;
            sink.end_piece();
            sink.report.add(report);
            Ok(())
        };
        let lanes = parallel::run(resources, usize::MAX, self.source.pieces(), make, work)?;
        let pieces = match self.source.is_stream() {
            false => self.source.pieces(),
            true => {
                let pieces = lanes.iter().flat_map(|(_, sink)| &sink.pieces);
                pieces.map(|(piece, _)| piece + 1).max().unwrap_or(0)
            }
        };
        let mut found = Scanned {
            report: PieceReport::default(),
            starts: vec![0; pieces as usize],
            id_max: lanes.iter().filter_map(|(_, sink)| sink.id_max).max(),
            arcs: ArcHistograms::new(resources.budget, self.options.turns_round())?,
            loops: 0,
            sample: IdSample::default(),
            temporary_bytes: 0,
        };
        let id_max = found.id_max.unwrap_or(0);
        for (_, sink) in lanes {
            for (piece, edges) in sink.pieces {
                found.starts[piece as usize] = edges;
            }
            found.report.add(sink.report);
            found.loops += sink.loops;
            found.sample.merge(sink.sample);
            found.arcs.merge(sink.arcs, id_max);
            if let Some(edge_file) = sink.edge_file {
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

struct ScanSink<'a> {
    scan: &'a Scan<'a>,
    arcs: ArcHistograms,
    edge_file: Option<EdgeFileWriter<'a>>,
    piece: u64,
    /// The number within the piece of the next edge.
    first: u64,
    id_max: Option<u64>,
    loops: u64,
    sample: IdSample,
    /// The pieces that ended, each with its edges.
    pieces: Vec<(u64, u64)>,
    report: PieceReport,
}

impl ScanSink<'_> {
    fn end_piece(&mut self) {
        if self.first > 0 {
            self.pieces.push((self.piece, self.first));
            self.first = 0;
        }
    }
}

impl EdgeSink for ScanSink<'_> {
    fn integers(&mut self, edges: &[(u64, u64)], data: EdgeData<'_>) -> Result<(), IngestError> {
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
                "an edge has a vertex beyond the last",
            ));
        }
        self.id_max = self.id_max.max(Some(id_max));
        self.arcs.grow(id_max);
        if let Some(id_bitmap) = scan.id_bitmap {
            if id_bitmap.reserve(id_max) {
                for edge in edges {
                    id_bitmap.mark(edge.0);
                    id_bitmap.mark(edge.1);
                }
            }
            let sign = scan.source.ids().sign();
            for edge in edges.first().into_iter().chain(edges.get(edges.len() / 2)) {
                self.sample.offer((edge.0 ^ sign).to_be_bytes());
                self.sample.offer((edge.1 ^ sign).to_be_bytes());
            }
        }
        self.loops += self.arcs.count(edges, scan.options);
        if let Some(edge_file) = &mut self.edge_file {
            edge_file.integers(self.piece, self.first, edges, data)?;
        }
        self.first += edges.len() as u64;
        Ok(())
    }

    fn texts(&mut self, edges: &[(&[u8], &[u8])], data: EdgeData<'_>) -> Result<(), IngestError> {
        for (source, destination) in edges {
            self.loops += u64::from(source == destination);
        }
        for edge in edges.first().into_iter().chain(edges.get(edges.len() / 2)) {
            self.sample.offer(edge.0);
            self.sample.offer(edge.1);
        }
        if let Some(edge_file) = &mut self.edge_file {
            edge_file.texts(self.piece, self.first, edges, data)?;
        }
        self.first += edges.len() as u64;
        Ok(())
    }

    fn begin_piece(&mut self, piece: u64) {
        self.end_piece();
        self.piece = piece;
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
        comm.sum_read(&mut self.report, &mut self.loops)?;
        let mut greatest = [self.id_max.is_some().into(), self.id_max.unwrap_or(0)];
        comm.reduce(&mut greatest, u64::max)?;
        self.id_max = (greatest[0] == 1).then_some(greatest[1]);
        self.arcs.grow(self.id_max.unwrap_or(0));
        self.arcs.add_up(comm)?;
        self.sample.bound();
        self.sample = IdSample::merged(&comm.gather(self.sample.to_bytes())?)?;
        Ok(())
    }
}

/// True if the edges of a source must go to an edge file.
pub(crate) fn needs_spool(source: &dyn EdgeSource) -> bool {
    source.ids().are_bytes() || !source.rereads_fast()
}
