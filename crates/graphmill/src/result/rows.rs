//! Rows of a result as blocks in ascending order of ids: an algorithm's values batch by batch from the engine, beside the ids.
//! Where indices have another order, `window.rs` puts the values in that of ids first. The rows are all, or those of the vertices of
//! some batches.
//!
//! Where values are vertices, their ids are looked up, a block's at a time and each once, in ascending order, so that pages of ids
//! are read as seldom as the memory allows.

use std::ops::Range;
use std::sync::Arc;

use graphmill_algorithms::{Output, Values as Array};
use graphmill_engine::Engine;
use graphmill_graph::{
    FRAME_BYTES, FormatError, FrameReader, Id, IdCursor, IdKind, Measure, Order, StoredGraph,
    VertexId,
};
use graphmill_storage::{Budget, Lease, Open};

use super::block::{Block, Labels, ROWS_MAX, Texts, Values};
use super::raw::Raw;
use super::window::Window;
use super::{Shape, WRITER_BYTES};
use crate::Error;

/// A block ends when its text ids have so many bytes.
const TEXT_BYTES: usize = 2 << 20;
/// Bytes of a row of a block: id, value, whether there is one, and a column again as what a file holds.
const ROW_BYTES: usize = 48;
/// The same where ids are text, besides their bytes.
const TEXT_ROW_BYTES: usize = 128;
/// What memory is rounded up to.
const PAGE_BYTES: u64 = 1 << 13;
/// Frames of ids that looking up vertices keeps, at most.
const FRAMES_MAX: u64 = 1024;

/// Bytes of memory that the result of a run on `graph` takes on its way out, at least.
pub(crate) fn bytes_needed(graph: &Measure) -> u64 {
    let rows = row_bytes(graph) + paged_bytes(graph) + 16 * FRAME_BYTES;
    rows + Window::bytes_least(graph) + WRITER_BYTES
}

/// Bytes with which values are put in the order of ids in one go.
pub(crate) fn bytes_wanted(graph: &Measure) -> u64 {
    bytes_needed(graph) + Window::bytes_wanted(graph)
}

/// Bytes of the widest batch of values while it is read from disk.
fn paged_bytes(graph: &Measure) -> u64 {
    (graph.batches.widest() * size_of::<u64>() as u64).next_multiple_of(PAGE_BYTES)
}

/// Bytes of the widest batch of values and of a block.
fn row_bytes(graph: &Measure) -> u64 {
    let rows = graph.batches.vertices().min(ROWS_MAX as u64);
    let block = match graph.ids {
        IdKind::Dense | IdKind::Integer | IdKind::Signed => rows * ROW_BYTES as u64,
        IdKind::Text => rows * TEXT_ROW_BYTES as u64 + 4 * TEXT_BYTES as u64,
    };
    graph.batches.widest() * size_of::<u64>() as u64 + block
}

/// Walks over the rows of a result once.
pub(crate) struct RowCursor<'a> {
    engine: &'a Engine,
    output: &'a Output,
    ids: IdCursor,
    /// Of the graph's ids, for values that are vertices.
    lookup: Option<Lookup>,
    kind: IdKind,
    /// The batches that are read next.
    batches: Range<usize>,
    /// Where the vertices are not in order of ids.
    window: Option<Window>,
    /// Values of the batch before them, or of the window, of which those before `at` are gone.
    held: Raw,
    /// Which of them are of the batches that are asked for; empty where all are.
    marks: Vec<bool>,
    at: usize,
    /// Rows whose values are vertices with ids too long for the block before.
    rest: Option<Rest>,
    _lease: Lease,
}

/// Rows with the ranks of the vertices that are their values.
struct Rest {
    ids: Labels,
    ranks: Vec<u64>,
    reached: Option<Vec<bool>>,
}

impl<'a> RowCursor<'a> {
    /// A cursor before the first row of the vertices of `batches`, which the engine can read.
    ///
    /// # Errors
    /// The budget has no room for a batch and a block, or ids cannot be read.
    pub(crate) fn new(
        engine: &'a Engine,
        output: &'a Output,
        graph: &Arc<StoredGraph>,
        budget: &Budget,
        batches: Range<usize>,
    ) -> Result<RowCursor<'a>, Error> {
        let lease = budget.lease("rows of the result", row_bytes(&graph.measure()))?;
        let kind = graph.id_kind();
        // In order of ids the vertices follow each other; else they are anywhere.
        let first = match graph.order() {
            Order::Id if batches.is_empty() => graph.vertices(),
            Order::Id => graph.batches().range(batches.start).start,
            Order::Degree => 0,
        };
        let ids = IdCursor::new(graph, budget, first)?;
        let leave = paged_bytes(&graph.measure()) + 8 * FRAME_BYTES + WRITER_BYTES;
        let window = match graph.order() {
            Order::Id => None,
            Order::Degree => {
                let (values, batches) = (&output.values, batches.clone());
                Some(Window::new(graph, budget, values, batches, leave)?)
            }
        };
        let lookup = match output.values {
            Array::Vertex32(_) | Array::Vertex64(_) if kind != IdKind::Dense => {
                Some(Lookup::new(graph, budget)?)
            }
            _ => None,
        };
        Ok(RowCursor {
            engine,
            output,
            ids,
            lookup,
            kind,
            batches,
            window,
            held: Raw::empty(&output.values),
            marks: Vec::new(),
            at: 0,
            rest: None,
            _lease: lease,
        })
    }

    /// What every block looks like.
    pub(crate) fn shape(&self) -> Shape {
        Shape {
            column: self.output.column.to_string(),
            ids: labels(self.kind),
            values: match self.output.values {
                Array::F32(_) => Values::F32(Vec::new()),
                Array::F64(_) => Values::F64(Vec::new()),
                Array::U32(_) => Values::U32(Vec::new()),
                Array::U64(_) => Values::U64(Vec::new()),
                Array::Vertex32(_) | Array::Vertex64(_) => Values::Vertex(labels(self.kind)),
            },
            nullable: self.output.nullable,
        }
    }

    /// The next rows; none behind the last.
    ///
    /// # Errors
    /// The disk fails.
    pub(crate) fn next(&mut self) -> Result<Option<Block>, Error> {
        if let Some(rest) = self.rest.take() {
            return self.named(rest).map(Some);
        }
        let (mut ids, mut raw) = (labels(self.kind), Raw::empty(&self.output.values));
        let mut is_full = false;
        while ids.len() < ROWS_MAX && !is_full {
            if self.at == self.held.len() {
                if !self.refill()? {
                    break;
                }
                self.at = 0;
                continue;
            }
            let room = (ROWS_MAX - ids.len()).min(self.held.len() - self.at);
            let (from, end) = (self.at, self.at + room);
            while self.at < end && !is_full {
                let id = self.ids.next()?;
                if self.marks.get(self.at) == Some(&false) {
                    break;
                }
                match (&mut ids, id) {
                    (Labels::Integers(ids), Some(Id::Integer(id))) => ids.push(id),
                    (Labels::Signed(ids), Some(Id::Signed(id))) => ids.push(id),
                    (Labels::Texts(texts), Some(Id::Text(id))) => {
                        texts.push(id);
                        is_full = texts.all().len() >= TEXT_BYTES;
                    }
                    // A dictionary holds as many ids as there are vertices, of one kind.
                    _ => {
                        let what = "fewer ids than vertices".into();
                        return Err(FormatError::Misuse { what }.into());
                    }
                }
                self.at += 1;
            }
            raw.append(&self.held, from, self.at - from);
            // The id of a vertex that is not asked for is gone too.
            self.at += usize::from(self.at < end && !is_full);
        }
        if ids.is_empty() {
            return Ok(None);
        }
        let reached = self.output.nullable.then(|| raw.reached());
        let values = match (raw, &self.output.values) {
            (Raw::F32(values), _) => Values::F32(values),
            (Raw::F64(values), _) => Values::F64(values),
            (Raw::U32(values), Array::Vertex32(_)) => {
                let ranks = values.into_iter().map(u64::from).collect();
                return self
                    .named(Rest {
                        ids,
                        ranks,
                        reached,
                    })
                    .map(Some);
            }
            (Raw::U64(ranks), Array::Vertex64(_)) => {
                return self
                    .named(Rest {
                        ids,
                        ranks,
                        reached,
                    })
                    .map(Some);
            }
            (Raw::U32(values), _) => Values::U32(values),
            (Raw::U64(values), _) => Values::U64(values),
        };
        Ok(Some(Block {
            ids,
            values,
            reached,
        }))
    }

    /// Takes the next values in the order of ids; false behind the last.
    fn refill(&mut self) -> Result<bool, Error> {
        let (engine, values) = (self.engine, &self.output.values);
        if let Some(window) = &mut self.window {
            return window.next(engine, values, &mut self.held, &mut self.marks);
        }
        match self.batches.next() {
            Some(batch) => self.held.read(engine, values, batch).map(|()| true),
            None => Ok(false),
        }
    }

    /// A block of rows whose values are vertices. Those that it has no room for are kept for the next.
    fn named(&mut self, rows: Rest) -> Result<Block, Error> {
        let Rest {
            mut ids,
            mut ranks,
            mut reached,
        } = rows;
        let labels = match &mut self.lookup {
            None => Labels::Integers(std::mem::take(&mut ranks)),
            Some(lookup) => lookup.labels(&ranks, reached.as_deref())?,
        };
        let count = labels.len();
        if count < ids.len() {
            self.rest = Some(Rest {
                ids: ids.split_off(count),
                ranks: ranks.split_off(count),
                reached: reached.as_mut().map(|reached| reached.split_off(count)),
            });
        }
        Ok(Block {
            ids,
            values: Values::Vertex(labels),
            reached,
        })
    }
}

fn labels(kind: IdKind) -> Labels {
    match kind {
        IdKind::Dense | IdKind::Integer => Labels::Integers(Vec::new()),
        IdKind::Signed => Labels::Signed(Vec::new()),
        IdKind::Text => Labels::Texts(Texts::default()),
    }
}

/// The id at the place of each row; anything where it has none.
fn spread<T: Copy + Default>(
    ids: &[T],
    rows: usize,
    place: impl Fn(usize) -> Option<usize>,
) -> Vec<T> {
    let id = |row| place(row).and_then(|place| ids.get(place).copied());
    (0..rows).map(|row| id(row).unwrap_or_default()).collect()
}

/// Finds the ids of vertices.
struct Lookup {
    reader: FrameReader,
}

impl Lookup {
    fn new(graph: &Arc<StoredGraph>, budget: &Budget) -> Result<Lookup, Error> {
        let ids = graph.disk().open(&graph.path().join("ids"), Open::Read)?;
        let pages = ids.len()?.div_ceil(FRAME_BYTES);
        let free = budget.available();
        let free = free.saturating_sub(paged_bytes(&graph.measure()) + WRITER_BYTES);
        let frames = (free / 2 / FRAME_BYTES).min(pages).clamp(1, FRAMES_MAX);
        Ok(Lookup {
            reader: FrameReader::new(graph, budget, frames as usize)?,
        })
    }

    /// The ids of the vertices of the first of these ranks, as many as a block has room for; anything where not reached.
    fn labels(&mut self, ranks: &[u64], reached: Option<&[bool]>) -> Result<Labels, Error> {
        let graph = Arc::clone(self.reader.graph());
        let mut rows = ranks.len();
        let (distinct, found) = loop {
            let mut distinct: Vec<u64> = (0..rows)
                .filter(|&row| reached.is_none_or(|reached| reached[row]))
                .map(|row| ranks[row])
                .collect();
            distinct.sort_unstable();
            distinct.dedup();
            let mut found = labels(graph.id_kind());
            for &rank in &distinct {
                match (&mut found, graph.id_of_rank(&mut self.reader, rank)?) {
                    (Labels::Integers(ids), VertexId::Integer(id)) => ids.push(id),
                    (Labels::Signed(ids), VertexId::Signed(id)) => ids.push(id),
                    (Labels::Texts(texts), _) if texts.all().len() >= TEXT_BYTES => break,
                    (Labels::Texts(texts), VertexId::Text(id)) => texts.push(&id),
                    // A dictionary holds ids of one kind.
                    _ => break,
                }
            }
            if found.len() == distinct.len() || rows <= 1 {
                break (distinct, found);
            }
            // Long ids: fewer rows.
            rows /= 2;
        };
        let place = |row: usize| distinct.binary_search(&ranks[row]).ok();
        match &found {
            Labels::Integers(ids) => Ok(Labels::Integers(spread(ids, rows, place))),
            Labels::Signed(ids) => Ok(Labels::Signed(spread(ids, rows, place))),
            Labels::Texts(texts) => {
                let mut all = Texts::default();
                for row in 0..rows {
                    if all.all().len() >= TEXT_BYTES {
                        break;
                    }
                    all.push(place(row).map_or(&[], |place| texts.get(place)));
                }
                Ok(Labels::Texts(all))
            }
        }
    }
}
