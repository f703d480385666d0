//! The dictionary between vertex ids and vertex indices, on disk in pages of 64 KiB.
//!
//! In memory there is only the first id of every page. Invariants: ids ascend strictly; a page needs no other page.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use graphmill_storage::{Budget, Disk, Lease};

use crate::error::FormatError;
use crate::frame_reader::FrameReader;
use crate::frame_writer::FrameWriter;
use crate::frames::{FRAME_BYTES, FileId, FileKind, Framed, Root, Side};
use crate::meta::{IdKind, IdsMeta};
use crate::stored::StoredGraph;
use crate::varint;

/// Bytes of a text id, at most.
pub const TEXT_ID_BYTES_MAX: usize = 4096;
/// Ids between two that are stored whole.
const RESTART: u32 = 64;
const PAGE: usize = FRAME_BYTES as usize;
const HEADER: usize = 16;

/// What the user calls a vertex.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum VertexId {
    /// A number.
    Integer(u64),
    /// Bytes, as a rule UTF-8.
    Text(Vec<u8>),
}

/// As [`VertexId`], borrowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Id<'a> {
    /// A number.
    Integer(u64),
    /// Bytes, as a rule UTF-8.
    Text(&'a [u8]),
}

impl Id<'_> {
    /// A copy that stays.
    pub fn to_owned(self) -> VertexId {
        match self {
            Id::Integer(id) => VertexId::Integer(id),
            Id::Text(id) => VertexId::Text(id.to_vec()),
        }
    }
}

impl VertexId {
    /// Borrows it.
    pub fn as_id(&self) -> Id<'_> {
        match self {
            VertexId::Integer(id) => Id::Integer(*id),
            VertexId::Text(id) => Id::Text(id),
        }
    }
}

impl fmt::Display for VertexId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            VertexId::Integer(id) => write!(f, "{id}"),
            VertexId::Text(id) => write!(f, "{}", String::from_utf8_lossy(id)),
        }
    }
}

/// What [`GraphWriter::finish`](crate::GraphWriter::finish) must know of the ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdsSummary {
    pub(crate) meta: IdsMeta,
    pub(crate) count: u64,
}

impl IdsSummary {
    /// Ids that are the indices 0..`vertices` themselves; no file is written.
    pub fn dense(vertices: u64) -> Self {
        let (data, index) = (Root::default(), Root::default());
        IdsSummary {
            meta: IdsMeta {
                kind: IdKind::Dense,
                pages: 0,
                data,
                index,
            },
            count: vertices,
        }
    }
    /// Number of ids.
    pub fn count(&self) -> u64 {
        self.count
    }
}

/// Writes the dictionary: ids in ascending order get the indices 0, 1, 2, ...
pub struct IdsWriter {
    writer: FrameWriter,
    data: usize,
    index: usize,
    kind: IdKind,
    page: Vec<u8>,
    restarts: Vec<u16>,
    first: Vec<u8>,
    in_page: u32,
    count: u64,
    pages: u64,
    integer: u64,
    text: Vec<u8>,
    entry: Vec<u8>,
}

impl IdsWriter {
    /// A writer of ids of a kind, not [`IdKind::Dense`], into directory `staging`, which exists.
    ///
    /// # Errors
    /// The files cannot be made, or the budget has no room (about 1 MiB).
    pub fn create(
        disk: &Arc<dyn Disk>,
        budget: &Budget,
        staging: &Path,
        kind: IdKind,
    ) -> Result<Self, FormatError> {
        if kind == IdKind::Dense {
            return Err(FormatError::misuse("dense ids need no dictionary"));
        }
        let mut writer = FrameWriter::new(&**disk, budget, 0)?;
        let data = writer.add(
            &**disk,
            staging,
            FileId::new(Side::Forward, FileKind::Ids, 0),
            4 * PAGE,
        )?;
        let index = writer.add(
            &**disk,
            staging,
            FileId::new(Side::Forward, FileKind::IdsIndex, 0),
            PAGE,
        )?;
        Ok(IdsWriter {
            writer,
            data,
            index,
            kind,
            page: vec![0; HEADER],
            restarts: Vec::new(),
            first: Vec::new(),
            in_page: 0,
            count: 0,
            pages: 0,
            integer: 0,
            text: Vec::new(),
            entry: Vec::new(),
        })
    }
    /// Appends an integer id, greater than the one before.
    ///
    /// # Errors
    /// The disk fails, ids do not ascend, or the dictionary is one of texts.
    pub fn push_integer(&mut self, id: u64) -> Result<(), FormatError> {
        if self.kind != IdKind::Integer || self.count > 0 && id <= self.integer {
            return Err(FormatError::misuse(format!(
                "id {id} was written after {}",
                self.integer
            )));
        }
        loop {
            self.entry.clear();
            if self.in_page.is_multiple_of(RESTART) {
                self.entry.extend(id.to_le_bytes());
            } else {
                varint::put(&mut self.entry, id - self.integer - 1);
            }
            if self.place()? {
                if self.in_page == 1 {
                    self.first.clear();
                    self.first.extend(id.to_le_bytes());
                }
                self.integer = id;
                return Ok(());
            }
        }
    }
    /// Appends a text id, greater than the one before (as unsigned bytes).
    ///
    /// # Errors
    /// The disk fails, ids do not ascend, the id is longer than [`TEXT_ID_BYTES_MAX`], or the dictionary is one of integers.
    pub fn push_text(&mut self, id: &[u8]) -> Result<(), FormatError> {
        if id.len() > TEXT_ID_BYTES_MAX {
            return Err(FormatError::IdTooLong {
                bytes: id.len(),
                max: TEXT_ID_BYTES_MAX,
            });
        }
        if self.kind != IdKind::Text || self.count > 0 && id <= &self.text[..] {
            return Err(FormatError::misuse("ids were not written in order"));
        }
        loop {
            self.entry.clear();
            if self.in_page.is_multiple_of(RESTART) {
                varint::put(&mut self.entry, id.len() as u64);
                self.entry.extend(id);
            } else {
                let shared = id
                    .iter()
                    .zip(&self.text)
                    .take_while(|(a, b)| a == b)
                    .count();
                varint::put(&mut self.entry, shared as u64);
                varint::put(&mut self.entry, (id.len() - shared) as u64);
                self.entry.extend(&id[shared..]);
            }
            if self.place()? {
                if self.in_page == 1 {
                    self.first.clear();
                    varint::put(&mut self.first, id.len() as u64);
                    self.first.extend(id);
                }
                self.text.clear();
                self.text.extend(id);
                return Ok(());
            }
        }
    }
    /// Puts the entry into the page; false when the page had to be ended first and the entry must be made anew.
    fn place(&mut self) -> Result<bool, FormatError> {
        let restart = self.in_page.is_multiple_of(RESTART);
        let restarts = self.restarts.len() + usize::from(restart);
        if self.page.len() + self.entry.len() + 2 * restarts > PAGE {
            self.end_page()?;
            return Ok(false);
        }
        if restart {
            self.restarts.push(self.page.len() as u16);
        }
        self.page.extend(&self.entry);
        self.in_page += 1;
        self.count += 1;
        Ok(true)
    }
    fn end_page(&mut self) -> Result<(), FormatError> {
        let first_index = self.count - u64::from(self.in_page);
        self.page[..8].copy_from_slice(&first_index.to_le_bytes());
        self.page[8..12].copy_from_slice(&self.in_page.to_le_bytes());
        self.page[12..16].copy_from_slice(&(self.restarts.len() as u32).to_le_bytes());
        self.page.resize(PAGE - 2 * self.restarts.len(), 0);
        self.page
            .extend(self.restarts.iter().flat_map(|at| at.to_le_bytes()));
        self.writer.append(self.data, &self.page)?;
        self.entry.clear();
        varint::put(&mut self.entry, u64::from(self.in_page));
        self.entry.extend(&self.first);
        self.writer.append(self.index, &self.entry)?;
        self.pages += 1;
        self.page.clear();
        self.page.resize(HEADER, 0);
        self.restarts.clear();
        self.in_page = 0;
        Ok(())
    }
    /// Ends the dictionary and makes it durable.
    ///
    /// # Errors
    /// The disk fails.
    pub fn finish(mut self) -> Result<IdsSummary, FormatError> {
        if self.in_page > 0 {
            self.end_page()?;
        }
        let roots = self.writer.finish()?;
        let [data, index] = roots[..] else {
            return Err(FormatError::misuse("a dictionary has two files"));
        };
        Ok(IdsSummary {
            meta: IdsMeta {
                kind: self.kind,
                pages: self.pages,
                data,
                index,
            },
            count: self.count,
        })
    }
}

/// What of the dictionary is in memory.
#[derive(Debug)]
pub(crate) struct Ids {
    kind: IdKind,
    /// Index of the first id of each page, then |V|.
    starts: Vec<u64>,
    integers: Vec<u64>,
    texts: Vec<u8>,
    /// Where each page's first text ends.
    text_ends: Vec<u64>,
    files: Option<(Framed, Framed)>,
    _lease: Option<Lease>,
}

impl Ids {
    pub(crate) fn dense() -> Self {
        Ids {
            kind: IdKind::Dense,
            starts: Vec::new(),
            integers: Vec::new(),
            texts: Vec::new(),
            text_ends: Vec::new(),
            files: None,
            _lease: None,
        }
    }
    #[expect(
        clippy::too_many_arguments,
        reason = "one caller, who has just read each of them"
    )]
    pub(crate) fn new(
        kind: IdKind,
        pages: u64,
        vertices: u64,
        data: Framed,
        index: Framed,
        bytes: &[u8],
        budget: &Budget,
        path: &Path,
    ) -> Result<Self, FormatError> {
        let broken =
            |at: usize| index.malformed(path, at as u64, "the list of first ids makes no sense");
        // A page has at least one id, and an entry two bytes.
        if data.root.payload / FRAME_BYTES != pages
            || !data.root.payload.is_multiple_of(FRAME_BYTES)
            || pages > bytes.len() as u64 / 2
        {
            return Err(broken(0));
        }
        let lease = budget.lease("first ids of pages", 24 * pages + 8 + bytes.len() as u64)?;
        let count = pages as usize;
        let mut starts = Vec::with_capacity(count + 1);
        let (mut integers, mut texts, mut text_ends) = (Vec::new(), Vec::new(), Vec::new());
        match kind {
            IdKind::Text => {
                (
                    texts.reserve_exact(bytes.len()),
                    text_ends.reserve_exact(count),
                )
                    .0
            }
            _ => integers.reserve_exact(count),
        }
        let (mut at, mut next) = (0, 0u64);
        for _ in 0..count {
            starts.push(next);
            let ids = varint::get(bytes, &mut at)
                .filter(|&n| n > 0 && n <= FRAME_BYTES)
                .ok_or_else(|| broken(at))?;
            next += ids;
            if kind == IdKind::Text {
                let length = varint::get(bytes, &mut at).ok_or_else(|| broken(at))?;
                let end = (at as u64)
                    .checked_add(length)
                    .filter(|&end| end <= bytes.len() as u64);
                let end = end.ok_or_else(|| broken(at))? as usize;
                texts.extend(&bytes[at..end]);
                text_ends.push(texts.len() as u64);
                at = end;
            } else {
                let id = bytes
                    .get(at..at + 8)
                    .and_then(|b| b.try_into().ok())
                    .ok_or_else(|| broken(at))?;
                integers.push(u64::from_le_bytes(id));
                at += 8;
            }
        }
        starts.push(next);
        if at != bytes.len() || next != vertices {
            return Err(broken(at));
        }
        Ok(Ids {
            kind,
            starts,
            integers,
            texts,
            text_ends,
            files: Some((data, index)),
            _lease: Some(lease),
        })
    }
    pub(crate) fn data(&self) -> Option<&Framed> {
        self.files.as_ref().map(|files| &files.0)
    }
    pub(crate) fn index(&self) -> Option<&Framed> {
        self.files.as_ref().map(|files| &files.1)
    }
    fn pages(&self) -> usize {
        self.starts.len().saturating_sub(1)
    }
    fn first_text(&self, page: usize) -> &[u8] {
        let start = page
            .checked_sub(1)
            .map_or(0, |before| self.text_ends[before]);
        &self.texts[start as usize..self.text_ends[page] as usize]
    }
    /// Page number `page`, whose bytes are `bytes`; `None` when they are not the ids that belong there.
    fn page<'a>(&self, page: usize, bytes: &'a [u8]) -> Option<Page<'a>> {
        let (first, end) = (*self.starts.get(page)?, *self.starts.get(page + 1)?);
        Page::parse(bytes, self.kind)
            .filter(|page| page.first_index == first && u64::from(page.count) == end - first)
    }
    /// The page that has `id` if any page has; `None`: it is before the first.
    fn page_of(&self, id: Id<'_>) -> Option<usize> {
        match id {
            Id::Integer(id) => self.integers.partition_point(|&first| first <= id),
            Id::Text(id) => {
                let (mut low, mut high) = (0, self.pages());
                while low < high {
                    let middle = low + (high - low) / 2;
                    if self.first_text(middle) <= id {
                        low = middle + 1
                    } else {
                        high = middle
                    }
                }
                low
            }
        }
        .checked_sub(1)
    }
}

const IDS: FileId = FileId {
    side: Side::Forward,
    kind: FileKind::Ids,
    number: 0,
};

impl StoredGraph {
    /// The index of a vertex; `None` when there is none of that id.
    ///
    /// # Errors
    /// Reading fails.
    pub fn index_of(
        &self,
        reader: &mut FrameReader,
        id: &VertexId,
    ) -> Result<Option<u64>, FormatError> {
        let ids = self.ids();
        match (ids.kind, id) {
            (IdKind::Dense, VertexId::Integer(id)) => {
                return Ok(Some(*id).filter(|&id| id < self.vertices()));
            }
            (IdKind::Integer, VertexId::Integer(_)) | (IdKind::Text, VertexId::Text(_)) => {}
            _ => return Ok(None),
        }
        let Some(page) = ids.page_of(id.as_id()) else {
            return Ok(None);
        };
        let found = ids
            .page(page, reader.frame(IDS, page as u64)?)
            .and_then(|page| page.index_of(id.as_id()));
        found.ok_or_else(|| self.broken_page(page as u64))
    }
    /// The id of the vertex with index `v`, which is less than |V|. Neighbours are cheap: their page is in the reader's
    /// cache.
    ///
    /// # Errors
    /// Reading fails; there is no such vertex.
    pub fn id_of(&self, reader: &mut FrameReader, v: u64) -> Result<VertexId, FormatError> {
        if v >= self.vertices() {
            return Err(FormatError::misuse(format!(
                "vertex index {v} of a graph of {} vertices",
                self.vertices()
            )));
        }
        let ids = self.ids();
        if ids.kind == IdKind::Dense {
            return Ok(VertexId::Integer(v));
        }
        let page = ids.starts.partition_point(|&start| start <= v) - 1;
        let found = ids
            .page(page, reader.frame(IDS, page as u64)?)
            .and_then(|page| page.id_of(v));
        found.ok_or_else(|| self.broken_page(page as u64))
    }
    fn broken_page(&self, page: u64) -> FormatError {
        self.malformed(IDS, page * FRAME_BYTES, "a page of ids makes no sense")
    }
}

/// One page of ids.
struct Page<'a> {
    bytes: &'a [u8],
    kind: IdKind,
    first_index: u64,
    count: u32,
    restarts: &'a [[u8; 2]],
}

impl<'a> Page<'a> {
    fn parse(bytes: &'a [u8], kind: IdKind) -> Option<Self> {
        let first_index = u64::from_le_bytes(bytes.get(..8)?.try_into().ok()?);
        let count = u32::from_le_bytes(bytes.get(8..12)?.try_into().ok()?);
        let restarts = u32::from_le_bytes(bytes.get(12..16)?.try_into().ok()?);
        let table = bytes.len().checked_sub(2 * restarts as usize)?;
        let restarts_at = bytes.get(table.max(HEADER)..)?.as_chunks().0;
        let sound = count > 0
            && count.div_ceil(RESTART) == restarts
            && restarts_at.len() == restarts as usize;
        sound.then_some(Page {
            bytes,
            kind,
            first_index,
            count,
            restarts: restarts_at,
        })
    }
    /// A walk that begins at restart number `restart`.
    fn walk(&self, restart: usize) -> Option<Walk> {
        let at = u16::from_le_bytes(*self.restarts.get(restart)?) as usize;
        let next = restart as u32 * RESTART;
        Some(Walk {
            at,
            next,
            integer: 0,
            text: Vec::new(),
        })
    }
    fn id_of(&self, v: u64) -> Option<VertexId> {
        let local = v
            .checked_sub(self.first_index)
            .filter(|&local| local < u64::from(self.count))? as u32;
        let mut walk = self.walk((local / RESTART) as usize)?;
        while walk.next <= local {
            walk.step(self.bytes, self.kind)?;
        }
        Some(walk.id(self.kind).to_owned())
    }
    /// The index of an id; the outer `None` means that the page makes no sense.
    fn index_of(&self, id: Id<'_>) -> Option<Option<u64>> {
        let (mut low, mut high) = (0, self.restarts.len());
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            let mut walk = self.walk(middle)?;
            walk.step(self.bytes, self.kind)?;
            if walk.id(self.kind) <= id {
                low = middle
            } else {
                high = middle
            }
        }
        let mut walk = self.walk(low)?;
        let end = (walk.next + RESTART).min(self.count);
        while walk.next < end {
            walk.step(self.bytes, self.kind)?;
            let now = walk.id(self.kind);
            if now >= id {
                return Some((now == id).then(|| self.first_index + u64::from(walk.next) - 1));
            }
        }
        Some(None)
    }
}

/// Goes through the ids of a page.
#[derive(Debug, Default)]
struct Walk {
    at: usize,
    /// Number within the page of the id that the next step reaches.
    next: u32,
    integer: u64,
    text: Vec<u8>,
}

impl Walk {
    #[inline]
    fn step(&mut self, bytes: &[u8], kind: IdKind) -> Option<()> {
        let whole = self.next.is_multiple_of(RESTART);
        if kind == IdKind::Text {
            let shared = if whole {
                0
            } else {
                varint::get(bytes, &mut self.at)?
            };
            let length = varint::get(bytes, &mut self.at)?;
            if shared > self.text.len() as u64
                || shared + length.min(1 << 20) > TEXT_ID_BYTES_MAX as u64
            {
                return None;
            }
            self.text.truncate(shared as usize);
            self.text
                .extend(bytes.get(self.at..self.at + length as usize)?);
            self.at += length as usize;
        } else if whole {
            self.integer = u64::from_le_bytes(bytes.get(self.at..self.at + 8)?.try_into().ok()?);
            self.at += 8;
        } else {
            self.integer = self
                .integer
                .checked_add(varint::get(bytes, &mut self.at)?)?
                .checked_add(1)?;
        }
        self.next += 1;
        Some(())
    }
    fn id(&self, kind: IdKind) -> Id<'_> {
        if kind == IdKind::Text {
            Id::Text(&self.text)
        } else {
            Id::Integer(self.integer)
        }
    }
}

/// Gives the ids of a graph in order of index.
pub struct IdCursor {
    graph: Arc<StoredGraph>,
    reader: FrameReader,
    next: u64,
    /// The page that the walk is in.
    page: Vec<u8>,
    number: u64,
    left: u32,
    walk: Walk,
}

impl IdCursor {
    /// A cursor whose first id is that of vertex index `from`.
    ///
    /// # Errors
    /// The budget has no room (about 1 MiB), or reading fails.
    pub fn new(graph: &Arc<StoredGraph>, budget: &Budget, from: u64) -> Result<Self, FormatError> {
        let frames = if graph.ids().kind == IdKind::Dense {
            1
        } else {
            8
        };
        let reader = FrameReader::new(graph, budget, frames)?;
        let mut cursor = IdCursor {
            graph: Arc::clone(graph),
            reader,
            next: from,
            page: Vec::new(),
            number: 0,
            left: 0,
            walk: Walk::default(),
        };
        let ids = graph.ids();
        if ids.kind != IdKind::Dense && from < graph.vertices() {
            let page = ids.starts.partition_point(|&start| start <= from) - 1;
            cursor.number = page as u64;
            cursor.next = ids.starts[page];
            while cursor.next < from {
                cursor.next()?;
            }
        }
        Ok(cursor)
    }
    /// The id of the next vertex; `None` behind the last.
    ///
    /// # Errors
    /// Reading fails.
    #[expect(
        clippy::should_implement_trait,
        reason = "the id is borrowed from the cursor"
    )]
    pub fn next(&mut self) -> Result<Option<Id<'_>>, FormatError> {
        if self.next >= self.graph.vertices() {
            return Ok(None);
        }
        let kind = self.graph.ids().kind;
        self.next += 1;
        if kind == IdKind::Dense {
            return Ok(Some(Id::Integer(self.next - 1)));
        }
        if self.left == 0 {
            self.load()?;
        }
        self.left -= 1;
        if self.walk.step(&self.page, kind).is_none() {
            return Err(self.graph.broken_page(self.number - 1));
        }
        Ok(Some(self.walk.id(kind)))
    }
    fn load(&mut self) -> Result<(), FormatError> {
        let graph = Arc::clone(&self.graph);
        let number = self.number;
        let last = (graph.ids().pages() as u64).saturating_sub(1);
        self.page.clear();
        self.page.extend_from_slice(self.reader.frame_ahead(
            IDS,
            number,
            (number + 7).min(last),
        )?);
        let page = graph.ids().page(number as usize, &self.page);
        let page = page.ok_or_else(|| graph.broken_page(number))?;
        self.walk = page.walk(0).ok_or_else(|| graph.broken_page(number))?;
        self.left = page.count;
        self.number = number + 1;
        Ok(())
    }
}
