//! Another reading of the edges, to count arcs by vertex index: by ranges of indices here, where the counts by id that the scan made
//! do not say enough (ids are text, or lie too far apart), and vertex by vertex in `degree_file.rs`.

use super::histogram::ArcHistograms;
use crate::comm::ImportCommunicator;
use crate::edge_data::EdgeData;
use crate::error::IngestError;
use crate::external::edge_file::EdgeBatchSink;
use crate::external::reread::EdgeReplay;
use crate::ids::index_map::IdToIndex;
use crate::options::{ImportOptions, ImportResources};
use crate::progress::Meter;

/// The input and the resources of a count of arcs.
pub(crate) struct CountContext<'a> {
    pub(crate) resources: ImportResources<'a>,
    pub(crate) options: &'a ImportOptions,
    pub(crate) comm: ImportCommunicator<'a>,
    pub(crate) meter: &'a Meter<'a>,
    pub(crate) source: &'a EdgeReplay<'a>,
    pub(crate) indices: &'a IdToIndex,
    pub(crate) vertices: u64,
}

/// Edges whose indices are looked up together.
const BLOCK: usize = 256;

impl CountContext<'_> {
    /// Calls `each` with the edges by the indices of their ends, a block after the other.
    pub(crate) fn each_block(
        &self,
        edges: &[(u64, u64)],
        mut each: impl FnMut(&[(u64, u64)]),
    ) -> Result<(), IngestError> {
        let indices = self.indices.look_up();
        let mut mapped = [(0, 0); BLOCK];
        for edges in edges.chunks(BLOCK) {
            let mapped = &mut mapped[..edges.len()];
            if indices.map(edges, mapped) >= self.vertices {
                return Err(IngestError::input_changed());
            }
            each(mapped);
        }
        self.meter.advance(edges.len() as u64);
        Ok(())
    }

    /// Counts arcs by range of indices, on all ranks.
    pub(crate) fn run(&self) -> Result<ArcHistograms, IngestError> {
        let last = self.vertices.saturating_sub(1);
        let make = || {
            let arcs = ArcHistograms::new(self.resources.budget, self.options.turns_round());
            let mut sink = ArcCountSink {
                count: self,
                arcs: arcs?,
            };
            sink.arcs.grow(last);
            Ok(sink)
        };
        let sinks = self.source.read_all(self.resources, usize::MAX, make)?;
        let mut sum = make()?.arcs;
        sinks
            .into_iter()
            .for_each(|sink| sum.merge(sink.arcs, last));
        sum.add_up(&self.comm)?;
        Ok(sum)
    }
}

struct ArcCountSink<'a> {
    count: &'a CountContext<'a>,
    arcs: ArcHistograms,
}

impl EdgeBatchSink for ArcCountSink<'_> {
    fn integers(
        &mut self,
        edges: &[(u64, u64)],
        _data: EdgeData<'_>,
        _sequence: u64,
    ) -> Result<(), IngestError> {
        let count = self.count;
        count.each_block(edges, |edges| {
            self.arcs.count(edges, count.options);
        })
    }
}
