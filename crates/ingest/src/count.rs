//! Counts of arcs by vertex index, where the counts by id that the scan made do not say enough: ids are text, or lie too
//! far apart.

use std::sync::Arc;

use graphmill_storage::{Budget, Disk, Stop, Workers};

use crate::cut::Histogram;
use crate::distribute::Indices;
use crate::error::IngestError;
use crate::import::Meter;
use crate::parallel;
use crate::policy::SelfLoops;
use crate::scan::count_arcs;
use crate::source::Source;
use crate::spool::Edges;

/// What is counted, and with what.
pub(crate) struct Count<'a> {
    pub(crate) meter: &'a Meter<'a>,
    pub(crate) disk: &'a Arc<dyn Disk>,
    pub(crate) workers: &'a Workers,
    pub(crate) budget: &'a Budget,
    pub(crate) stop: &'a Stop,
    pub(crate) source: &'a Source<'a>,
    pub(crate) indices: &'a Indices,
    pub(crate) vertices: u64,
    pub(crate) directed: bool,
    pub(crate) self_loops: SelfLoops,
    pub(crate) reverse: bool,
}

impl Count<'_> {
    /// Reads all edges; returns the arcs by destination, and by source where asked for.
    pub(crate) fn run(&self) -> Result<(Histogram, Option<Histogram>), IngestError> {
        let make = || {
            let mut sink = Sink {
                count: self,
                arcs_in: Histogram::new(self.budget)?,
                arcs_out: if self.reverse {
                    Some(Histogram::new(self.budget)?)
                } else {
                    None
                },
                mapped: Vec::new(),
            };
            sink.arcs_in.grow(self.vertices.saturating_sub(1));
            if let Some(counts) = &mut sink.arcs_out {
                counts.grow(self.vertices.saturating_sub(1));
            }
            Ok((self.source.reader(self.disk, self.budget)?, sink))
        };
        let states = parallel::run(
            self.workers,
            usize::MAX,
            self.stop,
            self.source.units(),
            make,
            |(reader, sink), unit| self.source.read(unit, reader, self.stop, sink),
        )?;
        let last = self.vertices.saturating_sub(1);
        let mut arcs_in = Histogram::new(self.budget)?;
        arcs_in.grow(last);
        let mut arcs_out = if self.reverse {
            Some(Histogram::new(self.budget)?)
        } else {
            None
        };
        for (_, sink) in states {
            arcs_in.merge(sink.arcs_in, last);
            if let (Some(sum), Some(counts)) = (&mut arcs_out, sink.arcs_out) {
                sum.merge(counts, last);
            }
        }
        Ok((arcs_in, arcs_out))
    }
}

struct Sink<'a> {
    count: &'a Count<'a>,
    arcs_in: Histogram,
    arcs_out: Option<Histogram>,
    mapped: Vec<(u64, u64)>,
}

impl Edges for Sink<'_> {
    fn integers(
        &mut self,
        edges: &[(u64, u64)],
        _weights: &[f64],
        _sequence: u64,
    ) -> Result<(), IngestError> {
        let count = self.count;
        count.meter.advance(edges.len() as u64);
        self.mapped.resize(edges.len(), (0, 0));
        let last = count.indices.look_up().map(edges, &mut self.mapped);
        if !edges.is_empty() && last >= count.vertices {
            return Err(IngestError::input_changed());
        }
        count_arcs(
            &self.mapped,
            &mut self.arcs_in,
            !count.directed,
            count.self_loops,
            |edge| edge.1,
        );
        if let Some(counts) = &mut self.arcs_out {
            count_arcs(&self.mapped, counts, false, count.self_loops, |edge| edge.0);
        }
        Ok(())
    }

    fn texts(&mut self, _: &[(&[u8], &[u8])], _: &[f64], _: u64) -> Result<(), IngestError> {
        Err(IngestError::internal("text ids where indices are expected"))
    }
}
