//! A graph as a list of edges, how it is written, and everything a stored graph says, read back by its public ways.

#![allow(dead_code, reason = "every test file uses its own part")]

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use graphmill_graph::{
    BLOCK_EDGES_MAX, Batches, BlockView, EdgeField, EdgeFields, EdgeKind, Extent, ExtentReader,
    FanoutTable, FieldType, FileSide, FinishInfo, FormatError, GraphSpec, GraphWriter, Group,
    GroupWalk, IdCursor, IdKind, IdsSummary, IdsWriter, PageCache, SourceIndex, StoredGraph,
    VertexId,
};
use graphmill_storage::{Disk, MemoryBudget, SplitMix64, Tiers};

/// Source, destination, weight.
pub(crate) type Edge = (u64, u64, f64);

#[derive(Clone, Debug)]
pub(crate) struct Model {
    pub(crate) cuts: Vec<u64>,
    /// In order of source and destination.
    pub(crate) edges: Vec<Edge>,
    pub(crate) edge: EdgeKind,
    pub(crate) reverse: bool,
    pub(crate) directed: bool,
    pub(crate) strip_edges_max: u64,
    pub(crate) csr_ratio: u32,
    /// Batches of one column file.
    pub(crate) file_batches: usize,
    /// Keys handed to the writer in one call.
    pub(crate) run: usize,
    /// `None`: dense.
    pub(crate) ids: Option<Vec<VertexId>>,
    /// The index of the vertex of each rank; `None`: in order of ids.
    pub(crate) order: Option<Vec<u64>>,
}

impl Model {
    pub(crate) fn new(cuts: Vec<u64>, mut edges: Vec<Edge>) -> Self {
        edges.sort_by(|a, b| a.partial_cmp(b).unwrap());
        Model {
            cuts,
            edges,
            edge: EdgeKind::None,
            reverse: false,
            directed: true,
            strip_edges_max: 10_000,
            csr_ratio: 32,
            file_batches: 3,
            run: 1000,
            ids: None,
            order: None,
        }
    }
    /// Random edges over batches of about `span` vertices; a tenth of them into one hub.
    pub(crate) fn random(seed: u64, vertices: u64, span: u64, edges: usize) -> Self {
        let mut random = SplitMix64::new(seed);
        let cuts: Vec<u64> = (0..vertices)
            .step_by(span as usize)
            .chain([vertices])
            .collect();
        let hub = random.below(vertices.max(1));
        let edges = (0..edges).map(|i| {
            let source = random.below(vertices);
            let destination = if i % 10 == 0 {
                hub
            } else {
                random.below(vertices)
            };
            (source, destination, (random.below(1000) as f64) / 8.0)
        });
        Model::new(cuts, edges.collect())
    }
    fn files(&self) -> Vec<std::ops::Range<usize>> {
        let batches = self.cuts.len() - 1;
        (0..batches)
            .step_by(self.file_batches)
            .map(|b| b..(b + self.file_batches).min(batches))
            .collect()
    }
    pub(crate) fn shape(&self) -> GraphSpec {
        GraphSpec {
            chunk_bytes: None,
            batches: Batches::new(self.cuts.clone()).unwrap(),
            edge: self.edge,
            directed: self.directed,
            strip_edges_max: self.strip_edges_max,
            csr_ratio: self.csr_ratio,
            files: self.files(),
            reverse_files: self.reverse.then(|| self.files()),
        }
    }
    pub(crate) fn facts(&self, ids: IdsSummary) -> FinishInfo {
        FinishInfo {
            ids,
            edge_vertices: None,
            input_edges: self.edges.len() as u64,
            dropped: BTreeMap::from([("loops".into(), 7)]),
            options: BTreeMap::from([("ids".into(), "auto".into())]),
            program: "a test".into(),
            edge_fields: match self.edge {
                EdgeKind::Record(_) => record_fields(),
                _ => EdgeFields::default(),
            },
        }
    }
    pub(crate) fn write(
        &self,
        disk: &Arc<dyn Disk>,
        budget: &MemoryBudget,
        path: &Path,
    ) -> Result<(), FormatError> {
        let writer = GraphWriter::create(disk.clone(), budget.clone(), path, self.shape())?;
        let ids = match &self.ids {
            None => IdsSummary::dense(*self.cuts.last().unwrap()),
            Some(ids) => {
                let kind = match ids.first() {
                    Some(VertexId::Text(_)) => IdKind::Text,
                    Some(VertexId::Signed(_)) => IdKind::Signed,
                    Some(VertexId::Uuid(_)) => IdKind::Uuid,
                    _ => IdKind::Integer,
                };
                let mut writer = IdsWriter::create(disk, budget, path, kind)?;
                for id in ids {
                    match id {
                        VertexId::Integer(id) => writer.push_integer(*id)?,
                        VertexId::Signed(id) => writer.push_integer(*id as u64 ^ 1 << 63)?,
                        VertexId::Text(id) => writer.push_text(id)?,
                        VertexId::Uuid(id) => writer.push_text(id)?,
                    }
                }
                writer.finish()?
            }
        };
        if let Some(indices) = &self.order {
            let mut order = writer.order()?;
            order.push(&inverse(indices))?;
            order.push(indices)?;
            order.finish()?;
        }
        // The last file first: the order of files must not matter.
        for (i, batches) in self.files().into_iter().enumerate().rev() {
            if self.reverse {
                self.write_file(writer.reverse_column_file(i)?, &batches, true)?;
            }
            self.write_file(writer.column_file(i)?, &batches, false)?;
        }
        writer.finish(self.facts(ids))
    }
    fn write_file(
        &self,
        mut writer: graphmill_graph::ColumnFileWriter,
        batches: &std::ops::Range<usize>,
        turned: bool,
    ) -> Result<(), FormatError> {
        let cut = Batches::new(self.cuts.clone()).unwrap();
        let turn = |&(s, d, w): &Edge| if turned { (d, s, w) } else { (s, d, w) };
        let place = |s: u64, d: u64| (cut.batch_of(d), cut.batch_of(s));
        let mut edges: Vec<Edge> = self.edges.iter().map(turn).collect();
        edges.retain(|&(_, d, _)| batches.contains(&cut.batch_of(d)));
        edges.sort_by(|&(s, d, w), &(t, e, x)| {
            (place(s, d), s, d, w)
                .partial_cmp(&(place(t, e), t, e, x))
                .unwrap()
        });
        for cell in edges.chunk_by(|a, b| place(a.0, a.1) == place(b.0, b.1)) {
            let (destination, source) = place(cell[0].0, cell[0].1);
            for run in cell.chunks(self.run) {
                let key =
                    |e: &Edge| (e.0 - cut.start(source)) << 32 | (e.1 - cut.start(destination));
                let keys: Vec<u64> = run.iter().map(key).collect();
                let mut weights = Vec::new();
                for edge in run {
                    match self.edge {
                        EdgeKind::None => {}
                        EdgeKind::F32 => weights.extend((edge.2 as f32).to_le_bytes()),
                        EdgeKind::F64 => weights.extend(edge.2.to_le_bytes()),
                        EdgeKind::Record(_) => weights.extend(record_of(edge.2)),
                    }
                }
                writer.edges(destination, source, &keys, &weights)?;
            }
        }
        writer.finish()
    }
    /// What reading back must give.
    pub(crate) fn told(&self) -> Told {
        let cut = Batches::new(self.cuts.clone()).unwrap();
        let weight = |w: f64| if self.edge == EdgeKind::None { 0.0 } else { w };
        let side = |turned: bool| {
            let mut edges: Vec<Edge> = self
                .edges
                .iter()
                .map(|&(s, d, w)| {
                    if turned {
                        (d, s, weight(w))
                    } else {
                        (s, d, weight(w))
                    }
                })
                .collect();
            edges.sort_by(|a, b| a.partial_cmp(b).unwrap());
            let mut degrees: BTreeMap<u64, u64> = BTreeMap::new();
            let mut fanout: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
            for &(s, d, _) in &edges {
                *degrees.entry(s).or_default() += 1;
                let list = fanout.entry(s).or_default();
                if list.last() != Some(&cut.batch_of(d)) {
                    list.push(cut.batch_of(d));
                }
            }
            SideTold {
                edges,
                degrees,
                fanout,
            }
        };
        Told {
            forward: side(false),
            reverse: self.reverse.then(|| side(true)),
            ranks: match &self.order {
                Some(indices) => inverse(indices),
                None => (0..(*self.cuts.last().unwrap()).min(IDS_READ)).collect(),
            },
            ids: match &self.ids {
                Some(ids) => ids.clone(),
                None => (0..(*self.cuts.last().unwrap()).min(IDS_READ))
                    .map(VertexId::Integer)
                    .collect(),
            },
        }
    }
}

/// The fields of a record of 13 bytes.
pub(crate) fn record_fields() -> EdgeFields {
    let field = |(name, kind): (&str, FieldType)| EdgeField {
        name: name.into(),
        kind,
    };
    let list = [
        ("value", FieldType::F64),
        ("low", FieldType::U32),
        ("high", FieldType::I8),
    ];
    EdgeFields::new(list.map(field).to_vec()).unwrap()
}

/// A record of those fields that follows from one number.
fn record_of(value: f64) -> [u8; 13] {
    let bytes = value.to_le_bytes();
    std::array::from_fn(|i| bytes[i % 8] ^ (i / 8) as u8)
}

/// The inverse of a permutation.
pub(crate) fn inverse(list: &[u64]) -> Vec<u64> {
    let mut inverse = vec![0; list.len()];
    for (at, &to) in (0..).zip(list) {
        inverse[to as usize] = at;
    }
    inverse
}

/// Dense ids, and ranks that are indices, are read up to here.
pub(crate) const IDS_READ: u64 = 10_000;

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SideTold {
    pub(crate) edges: Vec<Edge>,
    pub(crate) degrees: BTreeMap<u64, u64>,
    pub(crate) fanout: BTreeMap<u64, Vec<usize>>,
}

/// Everything a stored graph says.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Told {
    pub(crate) forward: SideTold,
    pub(crate) reverse: Option<SideTold>,
    /// In ascending order, and the rank of the vertex of each index.
    pub(crate) ids: Vec<VertexId>,
    pub(crate) ranks: Vec<u64>,
}

/// Reads everything back by streams, and compares seeks with what the streams gave.
pub(crate) fn read(
    disk: &Arc<dyn Disk>,
    budget: &MemoryBudget,
    path: &Path,
) -> Result<Told, FormatError> {
    let graph = Arc::new(StoredGraph::open(disk, budget, path)?);
    let mut reader = PageCache::new(&graph, budget, 6)?;
    let forward = read_side(&graph, budget, &mut reader, FileSide::Forward)?;
    let reverse = match graph.reverse() {
        Some(_) => Some(read_side(&graph, budget, &mut reader, FileSide::Reverse)?),
        None => None,
    };
    let mut cursor = IdCursor::new(&graph, budget, 0)?;
    let mut ids = Vec::new();
    while let Some(id) = cursor.next()? {
        ids.push(id.to_owned());
        if graph.id_kind() == IdKind::Dense && ids.len() as u64 == IDS_READ {
            break;
        }
    }
    let mut ranks = Vec::new();
    graph.each_rank(&mut reader, 0..graph.vertices().min(IDS_READ), |rank| {
        ranks.push(rank)
    })?;
    // Ranks that ascend, and that do not.
    let mut cursor = IdCursor::new(&graph, budget, 0)?;
    let some = (0..ids.len()).step_by(ids.len() / 300 + 1);
    for v in some.clone().chain(some.rev()) {
        cursor.seek(v as u64);
        assert_eq!(cursor.next()?.map(|id| id.to_owned()), Some(ids[v].clone()));
    }
    for v in (0..ids.len().min(ranks.len())).step_by(ids.len() / 50 + 1) {
        let (index, id) = (v as u64, &ids[ranks[v] as usize]);
        assert_eq!(graph.id_of(&mut reader, index)?, *id);
        assert_eq!(graph.index_of(&mut reader, id)?, Some(index));
        assert_eq!(graph.rank_of(&mut reader, index)?, ranks[v]);
        assert_eq!(graph.index_of_rank(&mut reader, ranks[v])?, index);
        assert_eq!(graph.id_of_rank(&mut reader, v as u64)?, ids[v]);
        let mut cursor = IdCursor::new(&graph, budget, v as u64)?;
        assert_eq!(cursor.next()?.map(|id| id.to_owned()), Some(ids[v].clone()));
    }
    Ok(Told {
        forward,
        reverse,
        ids,
        ranks,
    })
}

fn read_side(
    graph: &Arc<StoredGraph>,
    budget: &MemoryBudget,
    pages: &mut PageCache,
    side: FileSide,
) -> Result<SideTold, FormatError> {
    let set = graph.side(side)?;
    let batches = graph.batches().clone();
    let mut data = ExtentReader::new(graph, budget, 64 << 10, 3)?;
    let mut weights = ExtentReader::new(graph, budget, 128 << 10, 2)?;
    let mut queue = graph.disk().queue(4)?;
    let mut weights_queue = graph.disk().queue(4)?;
    let weight_bytes = graph.edge_kind().bytes();
    let mut edges: Vec<Edge> = Vec::new();
    let mut scratch = Box::new([0; BLOCK_EDGES_MAX]);
    let mut sources = Box::new([0; BLOCK_EDGES_MAX]);
    for d in 0..batches.len() {
        let column = set.column(d);
        let mut next_cell = 0;
        for strip in column.strips() {
            assert_eq!(strip.start, next_cell, "strips are all cells");
            assert!(!strip.is_empty());
            next_cell = strip.end;
            let cells = &column.cells()[strip.clone()];
            let strip_edges: u64 = cells.iter().map(|cell| cell.edges()).sum();
            assert!(cells.len() == 1 || strip_edges <= graph.meta().strip_edges_max);
            // The strip as one extent, its weights as one a cell: both ways are used.
            let mut whole = set.data_extent(d, &cells[0]);
            whole.bytes.end = cells[cells.len() - 1].data().end;
            data.start(vec![whole])?;
            if weight_bytes > 0 {
                let extents = cells
                    .iter()
                    .map(|cell| set.weights_extent(d, cell, graph.edge_kind()))
                    .collect();
                weights.start(extents)?;
            }
            for cell in cells {
                let (from, to) = (batches.start(cell.source_batch()), batches.start(d));
                let mut left = cell.edges();
                let mut used_of_cell = 0;
                let first_of_cell = edges.len();
                while left > 0 {
                    let bytes = data
                        .wait(&mut *queue)?
                        .expect("the strip ends before its cells");
                    let (block, used) = BlockView::parse(bytes, to.wrapping_sub(from) as i64)?
                        .expect("a front without a whole block");
                    block.sources(&mut sources);
                    let first = edges.len();
                    block.for_each_edge(&mut scratch, |group, destination, _| {
                        edges.push((
                            from + u64::from(sources[group]),
                            to + u64::from(destination),
                            0.0,
                        ));
                    });
                    left -= block.edges() as u64;
                    used_of_cell += used as u64;
                    data.consume(used);
                    if weight_bytes > 0 {
                        let bytes = weights
                            .wait(&mut *weights_queue)?
                            .expect("weights end before their cell");
                        for (edge, weight) in edges[first..]
                            .iter_mut()
                            .zip(bytes.chunks_exact(weight_bytes))
                        {
                            edge.2 = match weight.len() {
                                4 => f64::from(f32::from_le_bytes(weight.try_into().unwrap())),
                                13 => {
                                    let value = f64::from_le_bytes(weight[..8].try_into().unwrap());
                                    assert_eq!(weight, record_of(value));
                                    value
                                }
                                _ => f64::from_le_bytes(weight.try_into().unwrap()),
                            };
                        }
                        let used = weight_bytes * (edges.len() - first);
                        weights.consume(used);
                    }
                }
                assert_eq!(used_of_cell, cell.data_bytes());
                check_seeks(graph, pages, side, d, cell, &edges[first_of_cell..])?;
            }
        }
        assert_eq!(next_cell, column.cells().len());
    }
    edges.sort_by(|a, b| a.partial_cmp(b).unwrap());
    let mut degrees = BTreeMap::new();
    let mut fanout: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
    // Where |V| is huge, only batches with edges are read.
    let busy: std::collections::BTreeSet<usize> =
        edges.iter().map(|e| batches.batch_of(e.0)).collect();
    for b in (0..batches.len()).filter(|b| batches.span(*b) < 1 << 20 || busy.contains(b)) {
        if batches.span(b) > 1 << 24 {
            continue;
        }
        let mut out = vec![0u32; batches.span(b) as usize];
        graph.degrees(set, pages, b, &mut out)?;
        degrees.extend(
            batches
                .range(b)
                .zip(out)
                .filter(|&(_, d)| d > 0)
                .map(|(v, d)| (v, u64::from(d))),
        );
    }
    let step = (edges.len() / 3000).max(1);
    let mut asked: Vec<u64> = edges
        .iter()
        .step_by(step)
        .flat_map(|e| [e.0, e.0.saturating_sub(1), e.0 + 1])
        .collect();
    if batches.vertices() <= 10_000 {
        asked = (0..batches.vertices()).collect();
    }
    asked.retain(|&v| v < batches.vertices());
    let table = match batches.vertices() {
        0 => None,
        n => Some(FanoutTable::load(
            graph,
            side,
            pages,
            (&Tiers::default(), budget),
            0..n,
        )?),
    };
    for v in asked {
        let (mut list, mut resident) = (Vec::new(), Vec::new());
        graph.destination_batches(set, pages, v, |batch| list.push(batch))?;
        table
            .as_ref()
            .unwrap()
            .each(v, |batch| resident.push(batch))?;
        assert_eq!(list, resident);
        if !list.is_empty() {
            fanout.insert(v, list);
        }
    }
    Ok(SideTold {
        edges,
        degrees,
        fanout,
    })
}

/// Finds the edges of some sources of a cell by its index, with its bitmap and without.
fn check_seeks(
    graph: &Arc<StoredGraph>,
    pages: &mut PageCache,
    side: FileSide,
    d: usize,
    cell: &graphmill_graph::Cell,
    edges: &[Edge],
) -> Result<(), FormatError> {
    let set = graph.side(side)?;
    let (from, to) = (
        graph.batches().start(cell.source_batch()),
        graph.batches().start(d),
    );
    let mut read = |Extent { file, bytes }| {
        let mut found = Vec::new();
        pages.read(file, bytes, &mut found).map(|()| found)
    };
    let blocks = read(set.block_list_extent(d, cell))?;
    let bitmap = read(set.bitmap_extent(d, cell))?;
    let data = read(set.data_extent(d, cell))?;
    for bitmap in [&bitmap[..], &[]] {
        let index = SourceIndex::parse(&blocks, bitmap)?;
        for edge in edges.iter().step_by(edges.len() / 20 + 1) {
            let source = (edge.0 - from) as u32;
            let place = index.seek(source);
            let place = place.expect("a source of the cell is in its index");
            let (mut block_number, mut offset) = (place.block, place.offset as usize);
            let mut known = place.group;
            let mut found = 0;
            while offset < data.len() {
                let (block, used) =
                    BlockView::parse(&data[offset..], to.wrapping_sub(from) as i64)?.unwrap();
                let walk = &mut GroupWalk::default();
                let Some(group) = block.group_by(walk, known, source) else {
                    break;
                };
                block.edges_of(group, source, |destination, _| {
                    let found = (edge.0, to + u64::from(destination));
                    assert!(edges.binary_search_by(|e| (e.0, e.1).cmp(&found)).is_ok());
                });
                found += block.group_range(group).len();
                (block_number, known) = (block_number + 1, Group::Number(0));
                offset += used;
                if !index.goes_on(block_number, source) {
                    break;
                }
            }
            assert_eq!(
                found,
                edges.iter().filter(|e| e.0 == edge.0).count(),
                "edges found by a seek"
            );
        }
    }
    Ok(())
}
