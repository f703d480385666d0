//! Writes the dictionary: ids in ascending order get the ranks 0, 1, 2, ...
//!
//! 1. An id becomes an entry: whole every 64 ids, else by what it adds to the id before.
//! 2. A page that the entry does not fit into is ended: restarts at its back, its first id to the index.
//! 3. The writer encodes the entry again in the next page, which needs no other.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use graphmill_storage::{Disk, MemoryBudget};

use crate::codec::varint;
use crate::error::FormatError;
use crate::file::page::{FileId, FileKind, FileRoot, FileSide};
use crate::file::page_writer::PagedWriter;
use crate::id_type::IdType;
use crate::manifest::{IdKind, IdsMeta};
use crate::vertex::ids::id::{HEADER, PAGE, RESTART, TEXT_ID_BYTES_MAX, UUID_BYTES};

/// What [`GraphWriter::finish`](crate::GraphWriter::finish) must know of the ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdsSummary {
    pub(crate) meta: IdsMeta,
    pub(crate) count: u64,
}

/// The kinds by their numbers in [`IdsSummary::to_numbers`].
const KINDS: [IdKind; 5] = [
    IdKind::Dense,
    IdKind::Integer,
    IdKind::Text,
    IdKind::Signed,
    IdKind::Uuid,
];

impl IdsSummary {
    /// Ids that are the ranks 0..`vertices` themselves; no file is written.
    pub fn dense(vertices: u64) -> Self {
        let summary = IdsSummary {
            meta: IdsMeta::default(),
            count: vertices,
        };
        summary.with_type(IdType::default())
    }
    /// The same for ids of another type, of the same kind.
    #[must_use]
    pub fn with_type(mut self, id_type: IdType) -> Self {
        self.meta.id_type = Some(id_type);
        self
    }
    /// Number of ids.
    pub fn count(&self) -> u64 {
        self.count
    }
    /// What of a graph in a directory it is the summary of.
    pub fn files(&self, graph: &Path) -> Vec<PathBuf> {
        match self.meta.kind {
            IdKind::Dense => Vec::new(),
            _ => [FileKind::Ids, FileKind::IdsIndex]
                .map(|kind| FileId::new(FileSide::Forward, kind, 0).path(graph))
                .into(),
        }
    }
    /// The summary as numbers.
    pub fn to_numbers(&self) -> [u64; 8] {
        let meta = self.meta;
        let kind = KINDS.iter().position(|kind| *kind == meta.kind);
        let id_type = IdType::ALL.iter().position(|one| *one == meta.id_type());
        let [data, index] = [meta.data, meta.index];
        [
            kind.unwrap_or_default() as u64,
            id_type.unwrap_or_default() as u64,
            meta.pages,
            data.payload,
            data.checksum.into(),
            index.payload,
            index.checksum.into(),
            self.count,
        ]
    }
    /// What the numbers were [made of](Self::to_numbers), if they were made of anything.
    pub fn from_numbers(numbers: &[u64]) -> Option<Self> {
        let &[kind, id_type, pages, ref roots @ .., count] = numbers else {
            return None;
        };
        let &[data, data_sum, index, index_sum] = roots else {
            return None;
        };
        let root = |payload, checksum: u64| {
            let checksum = checksum.try_into().ok()?;
            Some(FileRoot { payload, checksum })
        };
        let meta = IdsMeta {
            kind: *KINDS.get(usize::try_from(kind).ok()?)?,
            id_type: Some(*IdType::ALL.get(usize::try_from(id_type).ok()?)?),
            pages,
            data: root(data, data_sum)?,
            index: root(index, index_sum)?,
        };
        Some(IdsSummary { meta, count })
    }
}

/// Writes the dictionary: ids in ascending order get the ranks 0, 1, 2, ...
pub struct IdsWriter {
    /// Of the ids, and of their index.
    writer: PagedWriter,
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
        budget: &MemoryBudget,
        staging: &Path,
        kind: IdKind,
    ) -> Result<Self, FormatError> {
        if kind == IdKind::Dense {
            return Err(FormatError::misuse("dense ids need no dictionary"));
        }
        let mut writer = PagedWriter::new(&**disk, budget, 0)?;
        let files = [(FileKind::Ids, 4 * PAGE), (FileKind::IdsIndex, PAGE)];
        for (kind, chunk_bytes) in files {
            let id = FileId::new(FileSide::Forward, kind, 0);
            writer.add(&**disk, staging, id, chunk_bytes)?;
        }
        Ok(IdsWriter {
            writer,
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
        if !matches!(self.kind, IdKind::Integer | IdKind::Signed)
            || self.count > 0 && id <= self.integer
        {
            let what = format!("id {id} was written after {}", self.integer);
            return Err(FormatError::misuse(what));
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
    /// Appends a text or the bytes of a UUID, greater than the id before (as unsigned bytes).
    ///
    /// # Errors
    /// The disk fails, ids do not ascend, the id is longer than [`TEXT_ID_BYTES_MAX`] or no UUID, or the dictionary is one of integers.
    pub fn push_text(&mut self, id: &[u8]) -> Result<(), FormatError> {
        if id.len() > TEXT_ID_BYTES_MAX {
            let (bytes, max) = (id.len(), TEXT_ID_BYTES_MAX);
            return Err(FormatError::IdTooLong { bytes, max });
        }
        let is_of_kind = match self.kind {
            IdKind::Uuid => id.len() == UUID_BYTES,
            kind => kind.has_bytes(),
        };
        if !is_of_kind || self.count > 0 && id <= &self.text[..] {
            return Err(FormatError::misuse("ids were not written in order"));
        }
        loop {
            self.entry.clear();
            if self.in_page.is_multiple_of(RESTART) {
                varint::put(&mut self.entry, id.len() as u64);
                self.entry.extend(id);
            } else {
                let pairs = id.iter().zip(&self.text);
                let shared = pairs.take_while(|(a, b)| a == b).count();
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
    /// Puts the entry into the page; false if it ended the page first and the caller must encode it again.
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
        let restarts = self.restarts.iter();
        self.page.extend(restarts.flat_map(|at| at.to_le_bytes()));
        self.writer.append(0, &self.page)?;
        self.entry.clear();
        varint::put(&mut self.entry, u64::from(self.in_page));
        self.entry.extend(&self.first);
        self.writer.append(1, &self.entry)?;
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
        let meta = IdsMeta {
            kind: self.kind,
            id_type: Some(self.kind.usual_type()),
            pages: self.pages,
            data,
            index,
        };
        let count = self.count;
        Ok(IdsSummary { meta, count })
    }
}
