//! A block: some tens of thousands of consecutive rows of a result, ids and values side by side.
//!
//! Invariants: `ids`, `values` and `reached` (when there is one) have one entry a row; a text's end is never before its start.

use graphmill_algorithms::NumberRow;
use graphmill_graph::{Id, IdKind, IdType};

/// The most rows of a block.
pub(super) const ROWS_MAX: usize = 1 << 16;

/// User's ids of vertices, one a row: of the row's own vertex, or of another that is its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IdColumn {
    /// Integer ids.
    Integers(Vec<u64>),
    /// Integer ids, some of them negative.
    Signed(Vec<i64>),
    /// Text ids.
    Texts(StringColumn),
    /// The bytes of UUIDs.
    Uuids(Vec<[u8; 16]>),
}

/// Byte strings back to back.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StringColumn {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl StringColumn {
    /// Adds one text.
    pub fn push(&mut self, text: &[u8]) {
        self.bytes.extend_from_slice(text);
        self.ends.push(self.bytes.len());
    }

    /// Text number `row`; empty when there is none.
    pub fn get(&self, row: usize) -> &[u8] {
        let Some(&end) = self.ends.get(row) else {
            return &[];
        };
        let start = if row == 0 { 0 } else { self.ends[row - 1] };
        &self.bytes[start..end]
    }

    /// How many texts.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// All texts back to back.
    pub fn all(&self) -> &[u8] {
        &self.bytes
    }
}

impl IdColumn {
    /// How many labels.
    pub fn len(&self) -> usize {
        match self {
            IdColumn::Integers(ids) => ids.len(),
            IdColumn::Signed(ids) => ids.len(),
            IdColumn::Texts(texts) => texts.len(),
            IdColumn::Uuids(ids) => ids.len(),
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Id number `row`, which is less than their number.
    pub fn get(&self, row: usize) -> Id<'_> {
        match self {
            IdColumn::Integers(ids) => Id::Integer(ids[row]),
            IdColumn::Signed(ids) => Id::Signed(ids[row]),
            IdColumn::Texts(texts) => Id::Text(texts.get(row)),
            IdColumn::Uuids(ids) => Id::Uuid(ids[row]),
        }
    }

    /// No ids of a kind.
    pub(crate) fn of(kind: IdKind) -> IdColumn {
        match kind {
            IdKind::Dense | IdKind::Integer => IdColumn::Integers(Vec::new()),
            IdKind::Signed => IdColumn::Signed(Vec::new()),
            IdKind::Text => IdColumn::Texts(StringColumn::default()),
            IdKind::Uuid => IdColumn::Uuids(Vec::new()),
        }
    }

    /// Bytes of the texts.
    pub(super) fn bytes(&self) -> usize {
        match self {
            IdColumn::Integers(_) | IdColumn::Signed(_) | IdColumn::Uuids(_) => 0,
            IdColumn::Texts(texts) => texts.all().len(),
        }
    }

    /// Adds an id of the kind of all; of another kind there is none.
    pub(super) fn push(&mut self, id: Id<'_>) {
        match (self, id) {
            (IdColumn::Integers(ids), Id::Integer(id)) => ids.push(id),
            (IdColumn::Signed(ids), Id::Signed(id)) => ids.push(id),
            (IdColumn::Texts(texts), Id::Text(id)) => texts.push(id),
            (IdColumn::Uuids(ids), Id::Uuid(id)) => ids.push(id),
            _ => {}
        }
    }
}

/// Values of one algorithm, one a row; or what the rows are instead.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "each variant is its element type")]
pub enum Values {
    F32(Vec<f32>),
    F64(Vec<f64>),
    U32(Vec<u32>),
    U64(Vec<u64>),
    /// The value is a vertex, under the user's id.
    Vertex(IdColumn),
    /// The rows are edges, and their sources are the ids of the block.
    Edges {
        destinations: IdColumn,
        weights: Vec<f64>,
    },
    /// The result is one row of numbers, without any vertex.
    Numbers(NumberRow),
}

/// Consecutive rows of a result, in ascending order of ids; of edges in the order of the file.
#[derive(Debug, Clone, PartialEq)]
pub struct Block {
    /// The type of all ids.
    pub id_type: IdType,
    /// The vertex of each row; of edges the source.
    pub ids: IdColumn,
    /// Its value; anything where unreached.
    pub values: Values,
    /// Which rows have a value; absent when all have.
    pub reached: Option<Vec<bool>>,
}

impl Block {
    /// The block of a result that is one row of numbers.
    pub(crate) fn of_numbers(row: NumberRow) -> Block {
        Block {
            id_type: IdType::default(),
            ids: IdColumn::Integers(Vec::new()),
            values: Values::Numbers(row),
            reached: None,
        }
    }

    /// How many rows.
    pub fn rows(&self) -> usize {
        match self.values {
            Values::Numbers(_) => 1,
            _ => self.ids.len(),
        }
    }

    /// Whether `row` has a value.
    pub fn is_reached(&self, row: usize) -> bool {
        let reached = self.reached.as_ref();
        reached.is_none_or(|reached| reached.get(row) == Some(&true))
    }
}
