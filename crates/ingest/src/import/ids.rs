//! Step 2 of an import, *ids*: every id gets the index of its vertex, and arcs are counted by ranges of indices.
//!
//! 1. The indices: known already, ranks in a bitmap, or a dictionary on disk, which turns the edges into edges of indices.
//! 2. The ids, in their order, go to the graph, unless they are indices themselves.
//! 3. The counts are those of the scan where ids lie close enough; else the edges are read again to count. In order of degree they
//!    are read again to count arcs vertex by vertex, and ranges do not matter.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use graphmill_graph::{IdKind, IdsSummary, IdsWriter, Order};

use super::scan::Found;
use super::{Import, Meter, read_ahead};
use crate::count::Count;
use crate::cut::{Granules, Histogram, granule_shift};
use crate::deal::Slice;
use crate::degrees::{Degrees, Sections};
use crate::dictionary::{Dictionary, Ends, Place};
use crate::distribute::Indices;
use crate::edge::Ids;
use crate::error::IngestError;
use crate::source::Source;

/// The temporary file of out-degrees.
const DEGREES: &str = "degrees";

/// Ids of a range, for each edge, that a table of the range is worth; of fewer edges than these it may be as long.
const SPAN_SHARE: u64 = 16;
const SPAN_EDGES_FREE: u64 = 1 << 18;

/// Edges whose ids have indices.
pub(super) struct Indexed<'a> {
    pub(super) source: Source<'a>,
    pub(super) indices: Indices,
    pub(super) ids: IdsSummary,
    pub(super) vertices: u64,
    pub(super) arcs_in: Granules,
    pub(super) arcs_out: Option<Granules>,
    /// Where vertices are dealt by them.
    pub(super) degrees: Option<Degrees>,
}

/// The number that was written as bytes, most significant first.
fn integer(id: &[u8]) -> u64 {
    id.iter()
        .fold(0, |number, &byte| number << 8 | u64::from(byte))
}

impl<'a> Import<'a> {
    /// Step 2.
    pub(super) fn index(&mut self, found: Found<'a>) -> Result<Indexed<'a>, IngestError> {
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
        let (mut indices, vertices) = match (known, ranks) {
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
                source.check_unchanged(&**self.machine.disk)?;
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

        let histograms = (scanned.arcs_in, scanned.arcs_out);
        let (arcs_in, arcs_out, degrees) = match self.options.order {
            Order::Degree => {
                drop(histograms);
                let degrees = self.degrees(&source, &mut indices, vertices, span)?;
                let all = Granules::new(vec![0, vertices], vec![degrees.arcs()]);
                let turned = self.options.turns_round().then(|| all.clone());
                (all, turned, Some(degrees))
            }
            // Ranges of ids serve as granules where the ids lie close enough, however their indices were found.
            Order::Id if close => {
                let granules = |mut counts: Histogram| {
                    counts.grow(span.saturating_sub(1));
                    Granules::new(first.clone(), counts.counts(first.len() - 1).to_vec())
                };
                let (arcs_in, arcs_out) = histograms;
                (granules(arcs_in), arcs_out.map(granules), None)
            }
            Order::Id => {
                drop(histograms);
                let meter = self.counting(1);
                let count = self.count(&meter, &source, &indices, vertices);
                let (arcs_in, arcs_out) = count.run()?;
                let granules = |counts: Histogram| Granules::even(vertices, &counts);
                (granules(arcs_in), arcs_out.map(granules), None)
            }
        };
        self.done("count");
        Ok(Indexed {
            source,
            indices,
            ids,
            vertices,
            arcs_in,
            arcs_out,
            degrees,
        })
    }

    /// How far counting is, which reads the edges so many times.
    fn counting(&self, readings: u64) -> Meter<'a> {
        Meter::new(self.machine.progress, "count", readings * self.report.edges)
    }

    /// What counts the arcs of edges.
    fn count<'c>(
        &'c self,
        meter: &'c Meter<'c>,
        source: &'c Source<'a>,
        indices: &'c Indices,
        vertices: u64,
    ) -> Count<'c> {
        Count {
            meter,
            disk: self.machine.disk,
            workers: self.machine.workers,
            budget: self.machine.budget,
            stop: self.machine.stop,
            source,
            indices,
            vertices,
            directed: self.options.directed,
            self_loops: self.options.self_loops,
            reverse: self.options.turns_round(),
        }
    }

    /// The out-degrees of all vertices. Ids below `span` become the numbers of vertices where a table of all of them takes little
    /// of the memory and is not mostly gaps: then no end of an edge has to be looked up twice.
    fn degrees(
        &mut self,
        source: &Source<'a>,
        indices: &mut Indices,
        vertices: u64,
        span: u64,
    ) -> Result<Degrees, IngestError> {
        let (budget, bytes_max) = (self.machine.budget, self.options.work_bytes_max);
        let little = (budget.available() / 4).min(bytes_max);
        let same = Indices::Same;
        let is_full = span / SPAN_SHARE <= self.report.edges.max(SPAN_EDGES_FREE);
        let (ids, called, numbers) = match &*indices {
            Indices::Rank(ranks) if is_full && Slice::bytes(vertices, span) <= little => {
                (Some(ranks), &same, span)
            }
            indices => (None, indices, vertices),
        };
        let sections = Sections::new(budget, self.lanes(), source, numbers, bytes_max)?;
        let meter = self.counting(sections.readings(numbers));
        let count = self.count(&meter, source, called, numbers);
        let degrees = Degrees::count(&count, sections, ids, self.temporary.join(DEGREES))?;
        self.report.temporary_bytes += degrees.file_bytes();
        if ids.is_some() {
            *indices = same;
        }
        Ok(degrees)
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
}
