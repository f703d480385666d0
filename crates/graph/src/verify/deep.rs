//! Checks that everything a graph records about its edges follows from its edges.
//!
//! Checksums show that bytes are those that a program wrote. They do not show that the program was right: degrees, fan-out, indices, bitmaps and
//! `graph.json` repeat what the cells say, and a run that reads another number there gives another answer.
//!
//! 1. Each block is encoded again, and so are its entry in the list of blocks and the bitmap of its cell: the bytes must be the same.
//! 2. The range of weights must be that of `graph.json`, and so must the number of edges that were kept.
//! 3. Degrees and fan-out of each source batch, the reverse graph, and the other direction of an undirected graph must follow from the cells.
//!    They are compared as multisets, by sums of keyed hashes (Clarke et al., "Incremental multiset hash functions and their application to
//!    memory integrity checking", ASIACRYPT 2003), so that one walk over the cells is enough. Their pages are encoded again too.
//! 4. Ids must ascend, the shape must have the graph's id, and the directory must have no other files of a graph.

use std::collections::BTreeSet;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::ops::Range;
use std::sync::Arc;

use graphmill_storage::{Lease, MemoryBudget};

use crate::cell::directory::Cell;
use crate::cell::source_index::{SourceIndexBuilder, bitmap_memory};
use crate::codec::block::encode::BlockEncoder;
use crate::error::FormatError;
use crate::file::page::{FileId, FileKind};
use crate::manifest::NAME;
use crate::open::column_set::ColumnSet;
use crate::open::stored_graph::StoredGraph;
use crate::read::page_cache::PageCache;
use crate::spec::GraphSpec;
use crate::vertex::degree_pages::{DegreePage, put_degrees};
use crate::vertex::fanout_pages::{ChunkEncoder, PAIR_BYTES};
use crate::vertex::packed::PAGE_VERTICES;
use crate::weight_range::WeightRange;

/// Pages of the files that are read beside the cells.
const PAGES: usize = 8;
/// Bytes of a page of degrees, and of a cell that are read at a time.
const SCRATCH_BYTES: usize = 64 << 10;
/// The message of a failed check.
const NOT_OF_EDGES: &str = "disagrees with the edges of the graph";
/// Names of the files of a graph that are not numbered.
const NAMES: [&str; 6] = [
    "ids",
    "ids.index",
    "order",
    "directory",
    "degrees",
    "fanout",
];
/// Endings of those that are.
const ENDINGS: [&str; 5] = ["data", "index", "bitmaps", "weights", "chunks"];

/// A sum of hashes, the same for multisets that are the same.
type MultisetHash = u128;

/// The random key of the hashes.
///
/// It keeps anyone from crafting different multisets with the same sum.
struct HashKey([u64; 3]);

impl HashKey {
    fn random() -> HashKey {
        let state = RandomState::new();
        HashKey([1_u64, 2, 3].map(|number| state.hash_one(number)))
    }
    fn hash(&self, words: [u64; 3]) -> MultisetHash {
        let fold = |one: u64, other: u64| {
            let product = u128::from(one) * u128::from(other);
            (product as u64) ^ (product >> 64) as u64
        };
        let ends = fold(words[0] ^ self.0[0], words[1] ^ self.0[1]);
        fold(ends ^ words[2], self.0[2] | 1).into()
    }
}

/// What the edges that leave a batch make of its degrees and its fan-out.
#[derive(Clone, Copy, Default, PartialEq)]
struct BatchHashes {
    degrees: MultisetHash,
    fanout: MultisetHash,
}

/// The edges of one set of columns, as they are stored and turned round.
#[derive(Clone, Copy, Default)]
struct ArcHashes {
    stored: MultisetHash,
    turned: MultisetHash,
    /// Edges from a vertex to itself.
    loops: u64,
    /// What enters the vertices of edges, and what leaves them.
    between: [MultisetHash; 2],
    /// Edges that do not join a vertex with an id and the vertex of an edge.
    unpaired: u64,
}

/// Where the walk over the cells is.
#[derive(Clone, Copy)]
pub(super) struct WalkPosition<'g> {
    pub(super) set: &'g ColumnSet,
    pub(super) column: usize,
    pub(super) cell: Cell,
}

impl WalkPosition<'_> {
    fn file(&self, kind: FileKind) -> FileId {
        FileId::new(self.set.side(), kind, self.set.column(self.column).file())
    }
}

/// The walk's own encoders, and what it has seen.
pub(super) struct DeepVerifier<'g> {
    graph: &'g Arc<StoredGraph>,
    budget: &'g MemoryBudget,
    pages: PageCache,
    key: HashKey,
    encoder: BlockEncoder,
    index: SourceIndexBuilder,
    again: Vec<u8>,
    stored: Vec<u8>,
    /// Of the cell so far: bytes, bytes of its list of blocks, edges, the last source.
    bytes: u64,
    entries: u64,
    edges: u64,
    last: Option<u64>,
    of_batches: Vec<BatchHashes>,
    /// Of each set of columns.
    arcs: Vec<ArcHashes>,
    weights: Option<WeightRange>,
    _lease: Lease,
}

impl<'g> DeepVerifier<'g> {
    pub(super) fn new(
        graph: &'g Arc<StoredGraph>,
        budget: &'g MemoryBudget,
    ) -> Result<Self, FormatError> {
        let batches = graph.batches().len();
        // The hashes of the cells and of the tables; a page of degrees, as stored and as computed.
        let bytes = 2 * batches * size_of::<BatchHashes>() + 4 * SCRATCH_BYTES;
        Ok(DeepVerifier {
            graph,
            budget,
            pages: PageCache::new(graph, budget, PAGES)?,
            key: HashKey::random(),
            encoder: BlockEncoder::default(),
            index: SourceIndexBuilder::default(),
            again: Vec::new(),
            stored: Vec::new(),
            bytes: 0,
            entries: 0,
            edges: 0,
            last: None,
            arcs: Vec::new(),
            weights: None,
            _lease: budget.lease("what edges make of degrees and fan-out", bytes as u64)?,
            of_batches: vec![BatchHashes::default(); batches],
        })
    }
    /// Begins with the next set of columns.
    pub(super) fn set(&mut self) {
        self.of_batches.fill(BatchHashes::default());
        self.arcs.push(ArcHashes::default());
    }
    /// Memory for the bitmap of a cell, before its first block.
    pub(super) fn memory(&self, at: WalkPosition<'_>) -> Result<Lease, FormatError> {
        let (graph, ratio) = (self.graph, self.graph.meta().csr_ratio);
        let span = graph.batches().span(at.cell.source_batch());
        let bytes = bitmap_memory(span, at.cell.edges(), ratio) + at.cell.bitmap_bytes();
        Ok(self.budget.lease("the bitmap of a cell", bytes)?)
    }
    /// The error for a part of a cell.
    fn wrong(&self, at: WalkPosition<'_>, file: FileKind, byte: u64, what: &str) -> FormatError {
        let (from, to) = (at.cell.source_batch(), at.column);
        let what = format!("{what} of the cell of batches {from} to {to} {NOT_OF_EDGES}");
        self.graph.corrupt(at.file(file), byte, what)
    }
    fn read(&mut self, file: FileId, range: Range<u64>) -> Result<(), FormatError> {
        self.stored.clear();
        self.pages.read(file, range, &mut self.stored)
    }

    /// Takes the next block of a cell, which holds those keys.
    pub(super) fn block(
        &mut self,
        at: WalkPosition<'_>,
        block: &[u8],
        keys: &[u64],
    ) -> Result<(), FormatError> {
        let (graph, cell) = (self.graph, at.cell);
        let batches = graph.batches();
        let (from, to) = (cell.source_batch(), at.column);
        let starts = [batches.start(from), batches.start(to)];
        self.again.clear();
        let offset = starts[1].wrapping_sub(starts[0]) as i64;
        (self.encoder).encode(keys, batches.bits(to), offset, &mut self.again);
        if self.again != block {
            let byte = cell.data().start + self.bytes;
            return Err(self.wrong(at, FileKind::Data, byte, "a block"));
        }
        self.again.clear();
        self.index.block(keys, self.bytes, &mut self.again);
        let list = cell.block_list();
        let entry = list.start + self.entries..list.start + self.entries + self.again.len() as u64;
        self.entries += self.again.len() as u64;
        if entry.end <= list.end {
            self.read(at.file(FileKind::Index), entry.clone())?;
        }
        if entry.end > list.end || self.stored != self.again {
            return Err(self.wrong(at, FileKind::Index, entry.start, "the list of blocks"));
        }
        let (kind, first) = (graph.edge_kind(), cell.first_edge() + self.edges);
        let width = kind.bytes() as u64;
        self.stored.clear();
        if width > 0 {
            let range = first * width..(first + keys.len() as u64) * width;
            self.read(at.file(FileKind::Weights), range)?;
        }
        self.weights = WeightRange::join(self.weights, WeightRange::of(&self.stored, kind));
        self.count(keys, starts, (from, to as u64));
        self.bytes += block.len() as u64;
        self.edges += keys.len() as u64;
        Ok(())
    }
    /// Adds the edges of a block to the sums; `stored` has their weights.
    fn count(&mut self, keys: &[u64], starts: [u64; 2], (from, to): (usize, u64)) {
        let width = self.graph.edge_kind().bytes();
        let sums = &mut self.of_batches[from];
        for edges in keys.chunk_by(|one, other| one >> 32 == other >> 32) {
            let source = starts[0] + (edges[0] >> 32);
            let degree = self.key.hash([source, 0, 0]) * edges.len() as u128;
            sums.degrees = sums.degrees.wrapping_add(degree);
            if self.last.replace(source) != Some(source) {
                let pair = self.key.hash([source, to, 1]);
                sums.fanout = sums.fanout.wrapping_add(pair);
            }
        }
        let stored = std::mem::take(&mut self.stored);
        for (i, key) in keys.iter().enumerate() {
            let data = stored.get(i * width..(i + 1) * width).unwrap_or(&[]);
            let destination = starts[1] + (key & u64::from(u32::MAX));
            self.arc(starts[0] + (key >> 32), destination, data);
        }
        self.stored = stored;
    }
    /// Adds an arc and its data to the sums of the current set.
    pub(super) fn arc(&mut self, source: u64, destination: u64, data: &[u8]) {
        let named = self.graph.named_vertices();
        let Some(arcs) = self.arcs.last_mut() else {
            return;
        };
        let bits =
            |bytes: &[u8]| (bytes.iter().rev()).fold(0, |bits, byte| bits << 8 | u64::from(*byte));
        let (low, high) = data.split_at(data.len().min(8));
        let data = match high {
            [] => bits(low),
            // Two words make one.
            high => self.key.hash([bits(low), bits(high), 2]) as u64,
        };
        let hash = |ends: [u64; 2]| self.key.hash([ends[0], ends[1], data]);
        let add = |sum: &mut MultisetHash, hash| *sum = sum.wrapping_add(hash);
        add(&mut arcs.stored, hash([source, destination]));
        add(&mut arcs.turned, hash([destination, source]));
        arcs.loops += u64::from(source == destination);
        match [source < named, destination < named] {
            [true, false] => add(&mut arcs.between[0], hash([destination, named])),
            [false, true] => add(&mut arcs.between[1], hash([source, named])),
            _ => arcs.unpaired += 1,
        }
    }
    /// Adds an arc of a chunk to the degrees of its batch.
    pub(super) fn arc_of_chunk(&mut self, batch: usize, source: u64) {
        let degrees = &mut self.of_batches[batch].degrees;
        *degrees = degrees.wrapping_add(self.key.hash([source, 0, 0]));
    }
    /// Adds the data of a chunk to the range of weights.
    pub(super) fn weights_of(&mut self, data: &[u8]) {
        let range = WeightRange::of(data, self.graph.edge_kind());
        self.weights = WeightRange::join(self.weights, range);
    }
    /// Ends a cell.
    pub(super) fn end_cell(&mut self, at: WalkPosition<'_>) -> Result<(), FormatError> {
        let (graph, cell) = (self.graph, at.cell);
        let span = graph.batches().span(cell.source_batch());
        self.again.clear();
        let of_cell = (span, graph.meta().csr_ratio, self.bytes);
        self.index.finish(of_cell, &mut self.again);
        let bitmap = cell.bitmap();
        self.read(at.file(FileKind::Bitmaps), bitmap.clone())?;
        if self.stored != self.again {
            return Err(self.wrong(at, FileKind::Bitmaps, bitmap.start, "the bitmap"));
        }
        if self.entries != cell.block_list_bytes() {
            let byte = cell.block_list().start;
            return Err(self.wrong(at, FileKind::Index, byte, "the list of blocks"));
        }
        (self.bytes, self.entries, self.edges, self.last) = (0, 0, 0, None);
        self.again.shrink_to(SCRATCH_BYTES);
        self.stored.shrink_to(SCRATCH_BYTES);
        Ok(())
    }

    /// Ends a set of columns.
    pub(super) fn end_set(&mut self, set: &ColumnSet) -> Result<(), FormatError> {
        let mut found = vec![BatchHashes::default(); self.of_batches.len()];
        self.degrees(set, &mut found)?;
        self.fanout(set, &mut found)?;
        let pairs = found.iter().zip(&self.of_batches).enumerate();
        for (batch, (found, wanted)) in pairs {
            let [degrees, fanout] = [set.degrees.id, set.fanout_id()];
            for (file, is_same, what) in [
                (degrees, found.degrees == wanted.degrees, "the degrees"),
                (fanout, found.fanout == wanted.fanout, "the fan-out"),
            ] {
                if !is_same {
                    let what = format!("{what} of batch {batch} {NOT_OF_EDGES}");
                    return Err(self.graph.corrupt(file, 0, what));
                }
            }
        }
        Ok(())
    }
    fn degrees(&mut self, set: &ColumnSet, found: &mut [BatchHashes]) -> Result<(), FormatError> {
        let graph = self.graph;
        let (pages, file) = (&set.degree_pages, set.degrees.id);
        let mut degrees = Box::new([0; PAGE_VERTICES as usize]);
        for position in pages.positions(0..u64::MAX) {
            let (number, place) = pages.at(position);
            self.read(file, place.clone())?;
            let page = DegreePage::parse(&self.stored);
            for (i, degree) in degrees.iter_mut().enumerate() {
                *degree = page.map_or(0, |page| page.get(i));
                let v = number * PAGE_VERTICES + i as u64;
                if *degree > 0 && v < graph.vertices() {
                    let sum = &mut found[graph.batches().batch_of(v)].degrees;
                    let hash = self.key.hash([v, 0, 0]);
                    *sum = sum.wrapping_add(hash.wrapping_mul((*degree).into()));
                }
            }
            self.again.clear();
            put_degrees(&mut self.again, &degrees);
            let vertices = (graph.vertices() - number * PAGE_VERTICES).min(PAGE_VERTICES);
            let mut beyond = degrees[vertices as usize..].iter();
            if self.again != self.stored || beyond.any(|degree| *degree > 0) {
                let what = "a page of degrees makes no sense";
                return Err(graph.corrupt(file, place.start, what));
            }
        }
        Ok(())
    }
    fn fanout(&mut self, set: &ColumnSet, found: &mut [BatchHashes]) -> Result<(), FormatError> {
        let (graph, key) = (self.graph, &self.key);
        let (pages, file) = (&set.fanout_pages, set.fanout_id());
        let batches = graph.batches().len();
        let mut chunks = ChunkEncoder::new(batches);
        let bytes = chunks.memory().min(graph.arcs().saturating_mul(PAIR_BYTES));
        let _lease = self.budget.lease("a chunk of the fan-out", bytes)?;
        for position in pages.positions(0..u64::MAX) {
            let (number, place) = pages.at(position);
            let bytes = place.end - place.start;
            let _lease = self.budget.lease("a page of the fan-out", bytes)?;
            self.stored.clear();
            self.pages.read(file, place.clone(), &mut self.stored)?;
            let first = number * PAGE_VERTICES;
            let mut is_sound = true;
            let read = chunks.each_pair(&self.stored, |local, batch| {
                let v = first + local as u64;
                is_sound &= v < graph.vertices();
                if is_sound {
                    let sum = &mut found[graph.batches().batch_of(v)].fanout;
                    *sum = sum.wrapping_add(key.hash([v, batch as u64, 1]));
                }
            });
            if read.is_none() || !is_sound {
                return Err(graph.broken_fanout(set, place.start));
            }
        }
        self.stored.shrink_to(SCRATCH_BYTES);
        Ok(())
    }

    /// Ends the walk: what the graph says as a whole.
    pub(super) fn end(&self) -> Result<(), FormatError> {
        let graph = self.graph;
        let meta = graph.meta();
        let wrong = |what: String| {
            let path = graph.path().join(NAME);
            FormatError::Description { path, what }
        };
        let [forward, reverse] = [0, 1].map(|set| self.arcs.get(set).copied());
        let forward = forward.unwrap_or_default();
        if graph.symmetric() && forward.stored != forward.turned {
            let what = "it is undirected, but not every edge is stored both ways";
            return Err(wrong(what.into()));
        }
        if reverse.is_some_and(|reverse| reverse.stored != forward.turned) {
            return Err(wrong("its reverse has other edges".into()));
        }
        if meta.weights != self.weights {
            let range = |range: Option<WeightRange>| range.map_or("none".into(), |r| r.to_string());
            let [said, found] = [meta.weights, self.weights].map(range);
            let what =
                format!("graph.json records weights {said}, but its edges have weights {found}");
            return Err(wrong(what));
        }
        let lost = |reason: &str| meta.dropped.get(reason).copied().unwrap_or(0);
        let lost = lost("self_loops").saturating_add(lost("duplicates"));
        let kept = u128::from(meta.input_edges.saturating_sub(lost));
        let [enters, leaves] = forward.between;
        if meta.edge_vertices.is_some() && (forward.unpaired > 0 || enters != leaves) {
            let what = "the vertices of its edges do not each have one arc in and one like it out";
            return Err(wrong(what.into()));
        }
        let arcs = match meta.directed {
            true if meta.edge_vertices.is_some() => u128::from(graph.arcs()) / 2,
            true => u128::from(graph.arcs()),
            // Each edge is there twice, but for those from a vertex to itself.
            false => (u128::from(graph.arcs()) + u128::from(forward.loops)) / 2,
        };
        if kept != arcs || lost > meta.input_edges {
            let what = format!("it says that {kept} edges were kept, there are {arcs}");
            return Err(wrong(what));
        }
        if shape_of(graph).graph_id() != graph.graph_id() {
            return Err(wrong("its graph id is not that of its shape".into()));
        }
        self.other_files()
    }
    /// Refuses files of a graph that `graph.json` does not name.
    fn other_files(&self) -> Result<(), FormatError> {
        let (graph, disk) = (self.graph, self.graph.disk());
        let named = graph.all_files().map(|file| file.id.path(graph.path()));
        let named: BTreeSet<_> = named.collect();
        for folder in ["", "columns", "reverse", "stream", "stream-reverse"] {
            let folder = graph.path().join(folder);
            if !disk.is_dir(&folder)? {
                continue;
            }
            for path in disk.list(&folder)? {
                let is = |name: Option<&std::ffi::OsStr>, names: &[&str]| {
                    name.is_some_and(|name| names.iter().any(|one| name == *one))
                };
                let is_ours = is(path.file_name(), &NAMES) || is(path.extension(), &ENDINGS);
                if is_ours && !named.contains(&path) && !disk.is_dir(&path)? {
                    let what = format!("it does not name {}, which is there", path.display());
                    let path = graph.path().join(NAME);
                    return Err(FormatError::Description { path, what });
                }
            }
        }
        Ok(())
    }
}

/// The shape that a graph was written in.
fn shape_of(graph: &StoredGraph) -> GraphSpec {
    let meta = graph.meta();
    let stream = meta.stream;
    let files = |set: &ColumnSet| {
        let mut files: Vec<Range<usize>> = Vec::new();
        let columns = set.columns().iter().filter(|_| stream.is_none());
        for (batch, column) in columns.enumerate() {
            match files.get_mut(column.file() as usize) {
                Some(file) => file.end = batch + 1,
                None => files.push(batch..batch + 1),
            }
        }
        files
    };
    GraphSpec {
        chunk_bytes: stream.map(|stream| stream.chunk_bytes as usize),
        batches: graph.batches().clone(),
        edge: meta.edge,
        directed: meta.directed,
        strip_edges_max: meta.strip_edges_max,
        csr_ratio: meta.csr_ratio,
        files: files(graph.forward()),
        reverse_files: graph.reverse().map(files),
    }
}
