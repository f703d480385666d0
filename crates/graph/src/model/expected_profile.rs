//! The profile of an expected graph: its cells and the bytes of its files.
//!
//! Byte counts are measured, not computed: the code draws a few cells, or a part of one, and encodes them as a graph writer does.

use std::collections::BTreeMap;

use graphmill_storage::SplitMix64;

use crate::batches::Batches;
use crate::cell::directory::{self, CellSizes, FileRoots};
use crate::cell::source_index::{SourceIndexBuilder, lines_of};
use crate::codec::block::encode::BlockEncoder;
use crate::codec::block::layout::BLOCK_EDGES_MAX;
use crate::codec::varint;
use crate::manifest::IdKind;
use crate::model::expected::GraphModel;
use crate::model::numbers::{ColumnModel, FileBytes, file_bytes};
use crate::model::profile::{GraphProfile, ProfileSource};
use crate::open::footprint::{ChunkDims, GraphDims};
use crate::spec::{GraphSpec, Layout};
use crate::stream::pair::PairLayout;
use crate::vertex::degree_pages::put_degrees;
use crate::vertex::fanout_pages::FanoutPage;
use crate::vertex::ids::id::expected_bytes;
use crate::vertex::packed::PAGE_VERTICES;

/// A cell on average, the empty ones too.
#[derive(Clone, Copy, Debug, Default)]
struct CellModel {
    /// The share of cells that are not empty.
    present: f64,
    edges: f64,
    /// Of blocks, of the list of blocks, of the bitmap, and of the temporary list of sources.
    bytes: [f64; 4],
}

/// Edges that are drawn of a pair of spans, in this many cells at most.
const EDGES_DRAWN: f64 = (1 << 17) as f64;
const CELLS_DRAWN_MAX: f64 = 4096.0;
/// Destinations of a batch that the sampler distinguishes.
const PLACES_MAX: u64 = 1 << 16;
/// Bytes of a chunk in the directory of chunks: three varints.
const ENTRY_BYTES: u64 = 8;
/// Pages of the fan-out and of degrees that are drawn.
const PAGES_DRAWN: usize = 4;
/// Pairs of spans that the model draws separately.
///
/// Batches of a graph have one or two spans, unless they are cut by their edges.
const SPANS_MAX: usize = 3;

impl GraphModel {
    /// Returns the profile of the stored graph whose vertices are cut as `shape` says.
    ///
    /// With integer `ids` only [occurring](GraphModel::occurring) vertices are stored, otherwise ids are dense.
    #[must_use]
    pub fn outline(&self, shape: &GraphSpec, ids: IdKind) -> GraphProfile {
        let (columns, files) = match shape.chunk_bytes {
            None => self.columns(shape),
            Some(_) => self.columns_of_chunks(shape),
        };
        self.profile(shape, ids, columns, files)
    }

    /// The arcs into each batch, and the bytes of chunks; a graph of chunks has no cells.
    fn columns_of_chunks(&self, shape: &GraphSpec) -> (Vec<ColumnModel>, FileBytes) {
        let batches = &shape.batches;
        let vertices = batches.vertices().max(1);
        let of_batch = |batch| {
            let share = u128::from(self.arcs) * u128::from(batches.span(batch));
            ColumnModel::of_chunks((share / u128::from(vertices)) as u64)
        };
        let columns: Vec<ColumnModel> = (0..batches.len()).map(of_batch).collect();
        let mut files = FileBytes::default();
        if let (Ok(layout), Some(chunk_bytes)) = (PairLayout::new(batches), shape.chunk_bytes) {
            let capacity = layout.capacity(batches.len(), chunk_bytes).max(1) as u64;
            // Of each batch the last chunk is not full. As many arcs leave a batch as enter it.
            let chunks = columns.iter().map(|column| column.edges.div_ceil(capacity));
            let of_chunks = |column: &ColumnModel| {
                let (full, rest) = (column.edges / capacity, column.edges % capacity);
                let bytes = |arcs: u64| layout.chunk_bytes(batches.len(), arcs as usize) as u64;
                let rest = if rest > 0 { bytes(rest) } else { 0 };
                full.saturating_mul(bytes(capacity)).saturating_add(rest)
            };
            files.data = file_bytes(columns.iter().map(of_chunks).fold(0, u64::saturating_add));
            files.directory = file_bytes(ENTRY_BYTES * chunks.sum::<u64>());
            let data = self.arcs.saturating_mul(shape.edge.bytes() as u64);
            files.weights = file_bytes(data);
        }
        (columns, files)
    }

    /// The cells of each column, and the bytes of the files of columns.
    fn columns(&self, shape: &GraphSpec) -> (Vec<ColumnModel>, FileBytes) {
        let batches = &shape.batches;
        let spans = spans_of(batches);
        let of_cell = self.cells(&spans, shape);
        let usual = batches.vertices() as f64 / batches.len().max(1) as f64;
        let class_of = |span: u64| match spans.contains_key(&span) {
            true => span,
            false => usual.round() as u64,
        };
        let mut columns: Vec<ColumnModel> = (0..batches.len())
            .map(|batch| {
                let destination = class_of(batches.span(batch));
                let mut sum = CellModel::default();
                for (source, count) in &spans {
                    let cell = of_cell[&(*source, destination)];
                    let count = *count as f64;
                    sum.present += count * cell.present;
                    sum.edges += count * cell.edges;
                    for (sum, bytes) in sum.bytes.iter_mut().zip(cell.bytes) {
                        *sum += count * bytes;
                    }
                }
                let (cells, edges) = (sum.present.round() as u64, sum.edges.round() as u64);
                let bytes = sum.bytes.map(|bytes| bytes.round() as u64);
                let [data_bytes, block_list_bytes, bitmap_bytes, sources_bytes] = bytes;
                ColumnModel {
                    cells,
                    strips: strips_of(cells, edges, shape.strip_edges_max),
                    edges,
                    data_bytes,
                    block_list_bytes,
                    bitmap_bytes,
                    sources_bytes,
                    file: 0,
                }
            })
            .collect();
        let weight_bytes = shape.edge.bytes() as u64;
        let mut files = FileBytes::default();
        for (number, run) in shape.files.iter().enumerate() {
            let of = &mut columns[run.clone()];
            of.iter_mut().for_each(|column| column.file = number as u32);
            let sum =
                |bytes: fn(&ColumnModel) -> u64| of.iter().map(bytes).fold(0, u64::saturating_add);
            let add = |to: &mut u64, payload| *to = to.saturating_add(file_bytes(payload));
            add(&mut files.data, sum(|column| column.data_bytes));
            add(&mut files.index, sum(|column| column.block_list_bytes));
            add(&mut files.bitmaps, sum(|column| column.bitmap_bytes));
            let edges = sum(|column| column.edges);
            add(&mut files.weights, edges.saturating_mul(weight_bytes));
        }
        files.directory = file_bytes(directory_bytes(&columns, shape));
        (columns, files)
    }

    /// The profile of a graph whose edges take the bytes of `files`.
    fn profile(
        &self,
        shape: &GraphSpec,
        ids: IdKind,
        columns: Vec<ColumnModel>,
        mut files: FileBytes,
    ) -> GraphProfile {
        let batches = &shape.batches;
        let vertices = batches.vertices();
        let [degrees, fanout] = self.pages(batches);
        let pages = vertices.div_ceil(PAGE_VERTICES) as f64;
        // Two varints say where a page is.
        files.degrees = file_bytes((pages * (degrees + 3.0)) as u64);
        files.fanout = match shape.chunk_bytes {
            None => file_bytes((pages * (fanout + 4.0)) as u64),
            Some(_) => 0,
        };
        let of_ids = match ids {
            IdKind::Integer => expected_bytes(vertices, self.vertices),
            _ => [0; 2],
        };
        files.ids = of_ids.map(file_bytes).iter().sum();
        let cells = columns.iter().map(|column| column.cells);
        let cells = cells.fold(0, u64::saturating_add);
        let measure = GraphDims {
            chunks: (shape.chunk_bytes).and_then(|bytes| ChunkDims::new(batches, self.arcs, bytes)),
            batches: batches.clone(),
            ids,
            layout: match shape.chunk_bytes {
                None => Layout::Column,
                Some(_) => Layout::Stream,
            },
            symmetric: !self.directed,
            edge: shape.edge,
            cells,
            strips_of_column: columns.iter().map(|of| of.strips).max().unwrap_or(1),
            strips: columns.iter().map(|of| of.strips).sum(),
            ..GraphDims::nothing()
        };
        GraphProfile {
            arcs: self.arcs,
            columns,
            open_bytes: GraphProfile::open_bytes(
                &measure,
                shape.files.len() as u64,
                &files,
                of_ids,
            ),
            measure,
            files,
            source: ProfileSource::Expected(self.clone()),
        }
    }

    /// A cell of each pair of spans.
    fn cells(
        &self,
        spans: &BTreeMap<u64, u64>,
        shape: &GraphSpec,
    ) -> BTreeMap<(u64, u64), CellModel> {
        let mut random = SplitMix64::new(self.arcs ^ self.vertices.rotate_left(32));
        let mut cells = BTreeMap::new();
        for source in spans.keys() {
            for destination in spans.keys() {
                let cell = self.cell([*source, *destination], shape, &mut random);
                cells.insert((*source, *destination), cell);
            }
        }
        cells
    }

    /// A cell between batches of two spans.
    fn cell(
        &self,
        [source, destination]: [u64; 2],
        shape: &GraphSpec,
        random: &mut SplitMix64,
    ) -> CellModel {
        let vertices = shape.vertices().max(1) as f64;
        let shares = [source, destination].map(|span| span as f64 / vertices);
        let edges = self.arcs as f64 * shares[0] * shares[1];
        if edges <= 0.0 {
            return CellModel::default();
        }
        // Of a large cell the edges of a part of its sources are drawn, of small ones several cells.
        let part = (EDGES_DRAWN / edges).min(1.0);
        let span = ((source as f64 * part).ceil() as u64).clamp(1, source);
        let part = span as f64 / source as f64;
        let count = (EDGES_DRAWN / (edges * part)).clamp(1.0, CELLS_DRAWN_MAX) as usize;
        let places = DestinationSampler::new(self, destination, shares[1], random);
        let bits = u64::BITS - (destination - 1).leading_zeros();
        let mut writer = CellWriter::default();
        for _ in 0..count {
            let keys = self.draw(span, shares[0] * part, shares[1], &places, random);
            // Two batches of a graph lie somewhere.
            let offset = random.below(2 * shape.vertices().min(1 << 40) + 1) as i64
                - shape.vertices().min(1 << 40) as i64;
            writer.cell(&keys, (span, bits), offset, shape.csr_ratio);
        }
        if writer.edges == 0 {
            let key = random.below(span) << 32;
            writer.cell(&[key], (span, bits), 0, shape.csr_ratio);
            let present = -(-edges).exp_m1();
            return writer.scaled(present, edges, present);
        }
        writer.scaled(-(-edges).exp_m1(), edges, edges / writer.edges as f64)
    }

    /// The edges of `span` sources, such a share of all vertices, to such a share of all, in order.
    fn draw(
        &self,
        span: u64,
        sources: f64,
        destinations: f64,
        places: &DestinationSampler,
        random: &mut SplitMix64,
    ) -> Vec<u64> {
        let mut keys = Vec::new();
        for class in &self.classes {
            let mean = class.degree * destinations;
            let of_class = class.vertices * sources;
            let having = count(of_class * -(-mean).exp_m1(), random);
            for _ in 0..having {
                // Two sources that fall on one place are one with the edges of both: few are.
                let at = random.below(span);
                for _ in 0..at_least_one(mean, random).min(EDGES_DRAWN as u64) {
                    keys.push(at << 32 | places.draw(random));
                }
            }
        }
        keys.sort_unstable();
        keys
    }

    /// Bytes of a page of degrees, and of the fan-out, on average.
    fn pages(&self, batches: &Batches) -> [f64; 2] {
        let vertices = batches.vertices();
        if vertices == 0 {
            return [0.0; 2];
        }
        let share = PAGE_VERTICES.min(vertices) as f64 / vertices as f64;
        let (mut random, mut page) = (SplitMix64::new(self.arcs), FanoutPage::default());
        let (mut bytes, mut sums) = (Vec::new(), [0.0; 2]);
        for _ in 0..PAGES_DRAWN {
            let mut degrees = [0u64; PAGE_VERTICES as usize];
            for class in &self.classes {
                let having = class.vertices * share * -(-class.degree).exp_m1();
                for _ in 0..count(having, &mut random) {
                    let v = random.below(PAGE_VERTICES) as usize;
                    degrees[v] += at_least_one(class.degree, &mut random);
                }
            }
            for (v, degree) in degrees.iter().enumerate().filter(|of| *of.1 > 0) {
                let batches = destinations(*degree, batches.len() as u64, &mut random);
                let pairs = batches.into_iter().map(|batch| (v as u16, batch as u32));
                page.pairs.extend(pairs);
            }
            put_degrees(&mut bytes, &degrees);
            sums[0] += bytes.len() as f64 / PAGES_DRAWN as f64;
            bytes.clear();
            page.put(&mut bytes, batches.len());
            sums[1] += bytes.len() as f64 / PAGES_DRAWN as f64;
            bytes.clear();
        }
        // The last page may be shorter, but is as long on disk.
        sums
    }
}

/// The spans of the batches and how many there are of each; their mean where there are many.
fn spans_of(batches: &Batches) -> BTreeMap<u64, u64> {
    let mut spans = BTreeMap::new();
    for batch in 0..batches.len() {
        *spans.entry(batches.span(batch)).or_insert(0) += 1;
        if spans.len() > SPANS_MAX {
            let count = batches.len() as u64;
            let mean = batches.vertices() as f64 / count as f64;
            return BTreeMap::from([(mean.round() as u64, count)]);
        }
    }
    spans
}

/// Returns the batches that `degree` edges lead to, ascending.
fn destinations(degree: u64, batches: u64, random: &mut SplitMix64) -> Vec<u64> {
    if degree > 8 * batches {
        // Hardly a batch is missed.
        return (0..batches).collect();
    }
    let mut found: Vec<u64> = (0..degree).map(|_| random.below(batches)).collect();
    found.sort_unstable();
    found.dedup();
    found
}

/// Returns the strips of a column of `cells` equally large cells with `edges` edges in all.
fn strips_of(cells: u64, edges: u64, edges_max: u64) -> usize {
    let cells = cells.max(1);
    let of_strip = (edges_max / (edges / cells).max(1)).clamp(1, cells);
    cells.div_ceil(of_strip) as usize
}

/// Bytes of the directory, if all cells of a column are alike.
fn directory_bytes(columns: &[ColumnModel], shape: &GraphSpec) -> u64 {
    let (mut bytes, mut all) = (Vec::new(), 0u64);
    for run in &shape.files {
        bytes.clear();
        directory::put_file(&mut bytes, run, &FileRoots::default(), &[]);
        // Lengths and checksums of files take a few bytes each.
        all += bytes.len() as u64 + 8 * FileRoots::default().len() as u64;
        for column in columns[run.clone()].iter().filter(|of| of.cells > 0) {
            let each = |of: u64| of / column.cells;
            let cell = CellSizes {
                destination_batch: 0,
                source_batch: 0,
                edges: each(column.edges).max(1),
                data_bytes: each(column.data_bytes),
                bitmap_lines: lines_of(each(column.bitmap_bytes)),
            };
            let head = |bytes: &mut Vec<u8>, cells: &[CellSizes]| {
                bytes.clear();
                directory::put_file(bytes, &(0..1), &FileRoots::default(), cells);
                bytes.len() as u64
            };
            let of_cell = head(&mut bytes, &[cell]) - head(&mut bytes, &[]);
            all = all.saturating_add(of_cell.saturating_mul(column.cells));
        }
    }
    all
}

/// Writes cells that were drawn, and adds up what they take.
#[derive(Default)]
struct CellWriter {
    encoder: BlockEncoder,
    index: SourceIndexBuilder,
    edges: u64,
    /// As [`CellModel::bytes`].
    bytes: [u64; 4],
}

impl CellWriter {
    /// Encodes a cell whose sources have the given span and whose destinations have the given bits.
    fn cell(&mut self, keys: &[u64], (span, bits): (u64, u32), offset: i64, csr_ratio: u32) {
        if keys.is_empty() {
            return;
        }
        let (mut data, mut block_list, mut bitmap) = (Vec::new(), Vec::new(), Vec::new());
        for block in keys.chunks(BLOCK_EDGES_MAX) {
            self.index.block(block, data.len() as u64, &mut block_list);
            self.encoder.encode(block, bits, offset, &mut data);
        }
        let of_cell = (span, csr_ratio, data.len() as u64);
        self.index.finish(of_cell, &mut bitmap);
        let (mut sources, mut next) = (Vec::new(), 0);
        for of_source in keys.chunk_by(|a, b| a >> 32 == b >> 32) {
            varint::put(&mut sources, (of_source[0] >> 32) - next);
            varint::put(&mut sources, of_source.len() as u64 - 1);
            next = (of_source[0] >> 32) + 1;
        }
        self.edges += keys.len() as u64;
        for (sum, part) in (self.bytes.iter_mut()).zip([data, block_list, bitmap, sources]) {
            *sum += part.len() as u64;
        }
    }

    fn scaled(&self, present: f64, edges: f64, by: f64) -> CellModel {
        CellModel {
            present,
            edges,
            bytes: self.bytes.map(|bytes| bytes as f64 * by),
        }
    }
}

/// The destinations of a batch, each as often as its class has it.
struct DestinationSampler {
    /// Sums of the weights up to each place.
    sums: Vec<f64>,
    /// Vertices of a place.
    width: u64,
    span: u64,
}

impl DestinationSampler {
    fn new(graph: &GraphModel, span: u64, share: f64, random: &mut SplitMix64) -> Self {
        let width = span.div_ceil(PLACES_MAX);
        let places = span.div_ceil(width) as usize;
        let mut sums = vec![0.0; places];
        for class in &graph.classes {
            let of_class = class.vertices * share;
            if of_class > 4.0 * places as f64 {
                let each = of_class * class.degree / places as f64;
                sums.iter_mut().for_each(|sum| *sum += each);
                continue;
            }
            for _ in 0..count(of_class, random) {
                sums[random.below(places as u64) as usize] += class.degree;
            }
        }
        let mut sum = 0.0;
        for of_place in &mut sums {
            // No place is without any, so that some place is drawn whatever the classes.
            sum += *of_place + f64::MIN_POSITIVE;
            *of_place = sum;
        }
        DestinationSampler { sums, width, span }
    }

    fn draw(&self, random: &mut SplitMix64) -> u64 {
        let at = random.unit() * self.sums.last().copied().unwrap_or(0.0);
        let place = self.sums.partition_point(|sum| *sum <= at) as u64;
        (place * self.width + random.below(self.width)).min(self.span - 1)
    }
}

/// A number of this mean: one of the two whole ones around it.
fn count(mean: f64, random: &mut SplitMix64) -> u64 {
    let whole = mean.floor();
    whole as u64 + u64::from(random.unit() < mean - whole)
}

/// A number of events of this mean, given that there is one.
fn at_least_one(mean: f64, random: &mut SplitMix64) -> u64 {
    /// From this mean on, the numbers follow a normal distribution.
    const MANY: f64 = 30.0;
    if mean >= MANY {
        // The sum of twelve is nearly normal.
        let spread: f64 = (0..12).map(|_| random.unit()).sum::<f64>() - 6.0;
        return (mean + spread * mean.sqrt()).round().max(1.0) as u64;
    }
    // By inversion, beginning with one.
    let mut left = random.unit() * -(-mean).exp_m1();
    let (mut events, mut chance) = (1u64, mean * (-mean).exp());
    while left > chance && events < 4 * MANY as u64 {
        left -= chance;
        events += 1;
        chance *= mean / events as f64;
    }
    events
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::model::expected::DegreeModel;
    use crate::spec::EdgeKind;

    #[test]
    fn drawn_counts_have_their_mean() {
        let mut random = SplitMix64::new(5);
        for mean in [1e-9, 0.1, 1.0, 7.0, 29.0, 31.0, 5000.0] {
            let all: u64 = (0..20_000).map(|_| at_least_one(mean, &mut random)).sum();
            let wanted = mean / -(-mean).exp_m1();
            let found = all as f64 / 20_000.0;
            assert!((found / wanted - 1.0).abs() < 0.03, "{found} of {wanted}");
        }
    }

    #[test]
    fn profile_of_empty_and_absurd_graphs_exists() {
        for (vertices, edges, size) in [(0, 0, 1), (5, 0, 2), (1 << 40, 1 << 60, 1 << 31)] {
            let cuts = (0..=u64::div_ceil(vertices, size)).map(|b| vertices.min(b * size));
            let batches = Batches::new(cuts.collect()).unwrap();
            let count = batches.len();
            let shape = GraphSpec {
                chunk_bytes: None,
                batches,
                edge: EdgeKind::F64,
                directed: true,
                strip_edges_max: 1 << 20,
                csr_ratio: 32,
                files: (0..count).map(|b| b..b + 1).collect(),
                reverse_files: None,
            };
            let graph = GraphModel::new(DegreeModel::Kronecker, vertices.max(1), edges, true);
            let outline = graph.outline(&shape, IdKind::Integer);
            assert_eq!(outline.columns.len(), count);
            assert!(outline.files.all() >= edges);
            assert_eq!(outline.cuts(4).len(), 5);
        }
    }
}
