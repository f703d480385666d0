//! Another reading of the edges, to count arcs by vertex index: by ranges of indices here, where the counts by id that the scan made
//! do not say enough (ids are text, or lie too far apart), and vertex by vertex in `degree_file.rs`.

use std::sync::Arc;

use graphmill_storage::{CancelToken, Disk, MemoryBudget, WorkerPool};

use super::histogram::RangeHistogram;
use super::scan::count_arcs;
use crate::error::IngestError;
use crate::external::edge_file::EdgeBatchSink;
use crate::external::parallel;
use crate::external::reread::EdgeReplay;
use crate::ids::index_map::IdToIndex;
use crate::options::SelfLoops;
use crate::progress::Meter;

/// The input and the resources of a count of arcs.
pub(crate) struct CountContext<'a> {
    pub(crate) meter: &'a Meter<'a>,
    pub(crate) disk: &'a Arc<dyn Disk>,
    pub(crate) workers: &'a WorkerPool,
    pub(crate) budget: &'a MemoryBudget,
    pub(crate) stop: &'a CancelToken,
    pub(crate) source: &'a EdgeReplay<'a>,
    pub(crate) indices: &'a IdToIndex,
    pub(crate) vertices: u64,
    pub(crate) directed: bool,
    pub(crate) self_loops: SelfLoops,
    pub(crate) reverse: bool,
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

    /// Reads all edges into sinks that workers `make` for themselves.
    pub(crate) fn read<S: EdgeBatchSink + Send>(
        &self,
        make: impl Fn() -> Result<S, IngestError> + Sync,
    ) -> Result<Vec<S>, IngestError> {
        let states = parallel::run(
            self.workers,
            usize::MAX,
            self.stop,
            self.source.units(),
            || {
                let sink = make()?;
                Ok((self.source.reader(self.disk, self.budget)?, sink))
            },
            |(reader, sink), unit| self.source.read(unit, reader, self.stop, sink),
        )?;
        Ok(states.into_iter().map(|(_, sink)| sink).collect())
    }

    /// Reads all edges; returns the arcs by destination, and by source where asked for.
    pub(crate) fn run(&self) -> Result<(RangeHistogram, Option<RangeHistogram>), IngestError> {
        let sinks = self.read(|| {
            let mut sink = ArcCountSink {
                count: self,
                arcs_in: RangeHistogram::new(self.budget)?,
                arcs_out: if self.reverse {
                    Some(RangeHistogram::new(self.budget)?)
                } else {
                    None
                },
            };
            sink.arcs_in.grow(self.vertices.saturating_sub(1));
            if let Some(counts) = &mut sink.arcs_out {
                counts.grow(self.vertices.saturating_sub(1));
            }
            Ok(sink)
        })?;
        let last = self.vertices.saturating_sub(1);
        let mut arcs_in = RangeHistogram::new(self.budget)?;
        arcs_in.grow(last);
        let mut arcs_out = if self.reverse {
            Some(RangeHistogram::new(self.budget)?)
        } else {
            None
        };
        for sink in sinks {
            arcs_in.merge(sink.arcs_in, last);
            if let (Some(sum), Some(counts)) = (&mut arcs_out, sink.arcs_out) {
                sum.merge(counts, last);
            }
        }
        Ok((arcs_in, arcs_out))
    }
}

struct ArcCountSink<'a> {
    count: &'a CountContext<'a>,
    arcs_in: RangeHistogram,
    arcs_out: Option<RangeHistogram>,
}

impl EdgeBatchSink for ArcCountSink<'_> {
    fn integers(
        &mut self,
        edges: &[(u64, u64)],
        _weights: &[f64],
        _sequence: u64,
    ) -> Result<(), IngestError> {
        let count = self.count;
        count.each_block(edges, |edges| {
            let both_ways = !count.directed;
            let arcs_in = &mut self.arcs_in;
            count_arcs(edges, arcs_in, both_ways, count.self_loops, |edge| edge.1);
            if let Some(counts) = &mut self.arcs_out {
                count_arcs(edges, counts, false, count.self_loops, |edge| edge.0);
            }
        })
    }
}
