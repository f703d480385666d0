//! Step 2 of an import, *ids*: every id gets the index of its vertex, and arcs are counted by ranges of indices.
//!
//! 1. The indices: known already, ranks in a bitmap, or a dictionary on disk, which turns the edges into edges of indices.
//! 2. The ids, in their order, go to the graph, unless they are indices themselves.
//! 3. The scan's counts serve if ids lie close enough; else the edges are read again to count. In order of degree they
//!    are read again to count arcs vertex by vertex, and ranges do not matter.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use graphmill_graph::{IdKind, IdType, IdsSummary, IdsWriter, Layout, Order};

use super::context::{ImportContext, read_ahead};
use super::scan::ScanResult;
use crate::error::IngestError;
use crate::external::edge_file::{ByteCursor, OrderedEdgeFile};
use crate::external::reread::EdgeReplay;
use crate::ids::external::context::{DictionaryMemory, EdgeEnds, SortContext};
use crate::ids::external::dictionary::IdDictionary;
use crate::ids::external::splitters::IdSample;
use crate::ids::index_map::IdToIndex;
use crate::ids::order_window::OrderWindow;
use crate::layout::arc_count::CountContext;
use crate::layout::batch_cut::RangeCounts;
use crate::layout::degree_file::{OutDegrees, Sections};
use crate::layout::histogram::{RangeHistogram, granule_ends, granule_shift};
use crate::progress::Meter;
use crate::source::{Ids, SIGN};

/// The temporary file of out-degrees.
pub(crate) const DEGREES: &str = "degrees";

/// Ids of a range per edge, at most, for a table of the range; with few edges, the free length holds.
const SPAN_SHARE: u64 = 16;
const SPAN_EDGES_FREE: u64 = 1 << 18;

/// The counts of a graph, and its ids.
pub(crate) struct ArcStats {
    /// The ids that the first rank wrote; `None` on other ranks.
    pub(crate) ids: Option<IdsSummary>,
    pub(crate) vertices: u64,
    pub(crate) arcs_in: RangeCounts,
    pub(crate) arcs_out: Option<RangeCounts>,
}

/// Edges whose ids have indices.
pub(crate) struct IndexedEdges<'a> {
    pub(crate) source: EdgeReplay<'a>,
    pub(crate) indices: IdToIndex,
    /// `None` unless vertices get their indices in order of degree.
    pub(crate) degrees: Option<OutDegrees>,
}

/// The number that was written as bytes, most significant first.
fn integer(id: &[u8]) -> u64 {
    id.iter()
        .fold(0, |number, &byte| number << 8 | u64::from(byte))
}

impl<'a> ImportContext<'a> {
    /// Step 2.
    pub(crate) fn index(
        &mut self,
        found: ScanResult<'a>,
    ) -> Result<(ArcStats, IndexedEdges<'a>), IngestError> {
        let ScanResult {
            mut source,
            vertices: extra,
            mut scanned,
            id_bitmap,
        } = found;
        let known = self.source.vertices();
        let span =
            known.unwrap_or_else(|| scanned.id_max.map_or(0, |id_max| id_max.saturating_add(1)));
        let mut dictionary = None;
        let ranks = id_bitmap.map(|id_bitmap| id_bitmap.ranks(&self.comm, scanned.id_max));
        let ranks = ranks.transpose()?.flatten();
        let (mut indices, vertices) = match (known, ranks) {
            (Some(vertices), _) => (IdToIndex::Same, vertices),
            (None, Some(ranks)) if ranks.total == span => (IdToIndex::Same, span),
            (None, Some(ranks)) => {
                let vertices = ranks.total;
                (IdToIndex::Rank(ranks), vertices)
            }
            (None, None) => {
                let sample = std::mem::take(&mut scanned.sample);
                let (found, edges) = self.dictionary(&source, extra.as_ref(), sample)?;
                let vertices = self.comm.sum(found.ids)?;
                source = EdgeReplay::TempFile(edges);
                dictionary = Some(found);
                (IdToIndex::Same, vertices)
            }
        };
        let is_beyond = scanned.id_max.is_some_and(|id_max| id_max >= SIGN);
        let ids = match self.source.ids() {
            Ids::Wrapping if is_beyond => Ids::Signed,
            Ids::Wrapping => Ids::Integer,
            ids => ids,
        };
        let close = (!ids.are_bytes() && span / 4 <= vertices).then_some(span);
        let (summary, first) = self.write_ids(&indices, dictionary, ids, vertices, close)?;
        let id_type = match self.source.id_type() {
            IdType::Int64 if ids == Ids::Integer && is_beyond => IdType::UInt64,
            id_type => id_type,
        };
        let close = close.is_some();
        let ids = summary.map(|summary| summary.with_type(id_type));
        self.report.vertices = vertices;
        self.done("ids");

        let mut arcs = scanned.arcs;
        let (arcs_in, arcs_out, degrees) = match self.options.order {
            // Counts of arcs do not matter: batches of chunks are of one size.
            Order::Id if self.options.layout == Layout::Stream => {
                drop(arcs);
                let one = RangeCounts::new(vec![0, vertices], vec![self.report.edges]);
                (one, None, None)
            }
            Order::Degree => {
                drop(arcs);
                let degrees = self.degrees(&source, &mut indices, vertices, span)?;
                let all = RangeCounts::new(vec![0, vertices], vec![degrees.arcs]);
                let turned = self.options.turns_round().then(|| all.clone());
                (all, turned, Some(degrees))
            }
            Order::Id => {
                let first = if close {
                    // Ranges of ids serve as granules, however the indices were found.
                    arcs.grow(span.saturating_sub(1));
                    first
                } else {
                    drop(arcs);
                    let meter = self.counting(1);
                    arcs = self.count(&meter, &source, &indices, vertices).run()?;
                    granule_ends(vertices)
                };
                let granules = |counts: RangeHistogram| {
                    RangeCounts::new(first.clone(), counts.counts(first.len() - 1).to_vec())
                };
                (granules(arcs.arcs_in), arcs.arcs_out.map(granules), None)
            }
        };
        self.done("count");
        let mut arc_stats = ArcStats {
            ids,
            vertices,
            arcs_in,
            arcs_out,
        };
        if self.options.edge_vertices {
            // The vertex of a self-loop counts like the others, though it has no arcs.
            arc_stats.arcs_in.add_vertices(self.report.edges);
            arc_stats.vertices = arc_stats.arcs_in.vertices();
        }
        let indexed = IndexedEdges {
            source,
            indices,
            degrees,
        };
        Ok((arc_stats, indexed))
    }

    /// Builds a dictionary of all ids, with which the edges become edges of indices.
    fn dictionary(
        &mut self,
        source: &EdgeReplay<'a>,
        vertices: Option<&EdgeReplay<'a>>,
        sample: IdSample,
    ) -> Result<(IdDictionary, OrderedEdgeFile), IngestError> {
        let context = self.context()?;
        let ends = EdgeEnds {
            progress: self.resources.progress,
            source,
            edges: self.report.edges,
            first: self.comm.exclusive_prefix_sum(self.edges_here)?,
            edges_here: self.edges_here,
            vertices,
            sample,
            weights: self.source.weights(),
            sign: self.source.ids().sign(),
        };
        let built = IdDictionary::build(&context, ends)?;
        source.check_unchanged(&**self.resources.disk)?;
        self.report.temporary_bytes += context.written.load(Relaxed);
        Ok(built)
    }

    /// Returns the progress of counting, which reads the edges `readings` times.
    fn counting(&self, readings: u64) -> Meter<'a> {
        Meter::new(self.resources.progress, "count", readings * self.edges_here)
    }

    /// Returns the input of a count of arcs.
    fn count<'c>(
        &'c self,
        meter: &'c Meter<'c>,
        source: &'c EdgeReplay<'a>,
        indices: &'c IdToIndex,
        vertices: u64,
    ) -> CountContext<'c> {
        CountContext {
            resources: self.resources,
            options: self.options,
            comm: self.comm,
            meter,
            source,
            indices,
            vertices,
        }
    }

    /// Counts the out-degrees of all vertices.
    ///
    /// Ids below `span` become the numbers of vertices if a table of all of them takes little of the memory and is not mostly gaps.
    /// Then no end of an edge has to be looked up twice.
    fn degrees(
        &mut self,
        source: &EdgeReplay<'a>,
        indices: &mut IdToIndex,
        vertices: u64,
        span: u64,
    ) -> Result<OutDegrees, IngestError> {
        let (budget, bytes_max) = (self.resources.budget, self.options.work_bytes_max);
        let little = (budget.available() / 4).min(bytes_max);
        let same = IdToIndex::Same;
        let is_full = span / SPAN_SHARE <= self.report.edges.max(SPAN_EDGES_FREE);
        let fits = is_full && OrderWindow::bytes(vertices, span) <= little;
        let (ids, called, numbers) = match &*indices {
            IdToIndex::Rank(ranks) if self.comm.all_true(fits)? => (Some(ranks), &same, span),
            indices => (None, indices, vertices),
        };
        let comm = &self.comm;
        let sections = Sections::new(budget, self.lanes(), source, numbers, bytes_max, comm)?;
        let meter = self.counting(sections.readings(numbers));
        let count = self.count(&meter, source, called, numbers);
        let degrees = OutDegrees::count(&count, sections, ids, self.temporary.join(DEGREES))?;
        self.report.temporary_bytes += degrees.bytes;
        if ids.is_some() {
            *indices = same;
        }
        Ok(degrees)
    }

    /// Returns the resources with which a dictionary is built.
    fn context(&self) -> Result<SortContext<'a>, IngestError> {
        let comm = self.comm;
        let shares = DictionaryMemory::new(
            self.resources.budget.available(),
            self.lanes(),
            comm.count(),
            self.options.work_bytes_max,
            // Chunks that ranks exchange have the same length on all of them.
            |mine| comm.all_reduce_min(mine),
        )?;
        Ok(SortContext {
            resources: self.resources,
            directory: self.temporary,
            comm: self.comm,
            read_ahead: read_ahead(shares.chunk_bytes),
            shares,
            files: AtomicU64::new(0),
            written: AtomicU64::new(0),
        })
    }

    /// Writes, on the first rank, the ids that are not indices themselves.
    ///
    /// Returns the index of the first vertex of each granule of the integer ids below `span`, or nothing without `span`.
    fn write_ids(
        &self,
        indices: &IdToIndex,
        dictionary: Option<IdDictionary>,
        ids: Ids,
        vertices: u64,
        span: Option<u64>,
    ) -> Result<(Option<IdsSummary>, Vec<u64>), IngestError> {
        let resources = self.resources;
        let shift = granule_shift(span.unwrap_or(0));
        let granules = span.map_or(0, |span| span.div_ceil(1 << shift));
        let writer = |kind| match self.comm.is_first() {
            true => {
                IdsWriter::create(resources.disk, resources.budget, self.staging, kind).map(Some)
            }
            false => Ok(None),
        };
        // Ids that are 0, 1, 2, ... are indices, however that was found.
        let dictionary = dictionary.filter(|_| span != Some(vertices));
        match (dictionary, indices) {
            (None, IdToIndex::Same) => Ok((
                Some(IdsSummary::dense(vertices)),
                granule_ends(span.unwrap_or(0)),
            )),
            (_, IdToIndex::Rank(ranks)) => {
                let mut writer = writer(IdKind::Integer)?;
                if let Some(writer) = &mut writer {
                    ranks.for_each(|ids| {
                        IngestError::check_stop(resources.stop)?;
                        let pushed = ids.iter().try_for_each(|&id| writer.push_integer(id));
                        pushed.map_err(IngestError::from)
                    })?;
                }
                let rank = ranks.look_up();
                let first = (0..=granules)
                    .map(|granule| rank.rank(granule << shift))
                    .collect();
                Ok((writer.map(IdsWriter::finish).transpose()?, first))
            }
            (Some(dictionary), IdToIndex::Same) => {
                let writer = writer(match ids {
                    Ids::Text => IdKind::Text,
                    Ids::Uuid => IdKind::Uuid,
                    Ids::Signed => IdKind::Signed,
                    Ids::Integer | Ids::Wrapping => IdKind::Integer,
                })?;
                self.write_dictionary(&dictionary, writer, ids, (granules as usize, shift))
            }
        }
    }

    /// Writes the ids of a dictionary for [`write_ids`](Self::write_ids).
    ///
    /// A granule has `1 << shift` ids.
    fn write_dictionary(
        &self,
        dictionary: &IdDictionary,
        mut writer: Option<IdsWriter>,
        ids: Ids,
        (granules, shift): (usize, u32),
    ) -> Result<(Option<IdsSummary>, Vec<u64>), IngestError> {
        let context = self.context()?;
        // Signed ids are stored with their sign flipped, as the dictionary has them.
        let sign = match ids {
            Ids::Signed => 0,
            _ => self.source.ids().sign(),
        };
        let mut first = vec![0u64; granules + 1];
        let mut count = |id: &[u8]| {
            if ids.are_bytes() {
                return;
            }
            // Ids may be any number; those beyond the granules are counted by index, not here.
            let after = ((integer(id) ^ sign) >> shift).saturating_add(1);
            let count = usize::try_from(after).ok();
            if let Some(count) = count.and_then(|after| first.get_mut(after)) {
                *count += 1;
            }
        };
        let put = |writer: &mut IdsWriter, id: &[u8]| match ids.are_bytes() {
            true => writer.push_text(id),
            false => writer.push_integer(integer(id) ^ sign),
        };
        if let Some(writer) = &mut writer {
            dictionary.for_each_id(&context, |id| {
                count(id);
                Ok(put(writer, id)?)
            })?;
        }
        // After its own ids, the first rank writes the ids of the others, in order of rank.
        let mut came = Vec::new();
        self.comm.send_to_root(
            |send| {
                dictionary.for_each_id(&context, |id| {
                    count(id);
                    send(&(id.len() as u16).to_le_bytes())?;
                    send(id)
                })
            },
            |_, bytes| {
                came.extend(bytes);
                let mut left = ByteCursor(&came);
                while let Some(id) = left.text() {
                    if let Some(writer) = &mut writer {
                        put(writer, id)?;
                    }
                }
                let used = came.len() - left.0.len();
                came.drain(..used);
                Ok(())
            },
        )?;
        self.comm.sum_elementwise(&mut first)?;
        for granule in 1..first.len() {
            first[granule] += first[granule - 1];
        }
        Ok((writer.map(IdsWriter::finish).transpose()?, first))
    }
}
