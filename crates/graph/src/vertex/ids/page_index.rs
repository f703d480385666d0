//! What of the dictionary is in memory: of every page its first id and its first index.
//!
//! Invariants: the first ids are as many as the pages; the pages have as many ids as the graph has vertices.

use std::path::Path;

use graphmill_storage::{Lease, MemoryBudget};

use crate::codec::varint;
use crate::error::FormatError;
use crate::file::page::{DISK_PAGE_BYTES, PagedFile};
use crate::manifest::{IdKind, IdsMeta, Manifest};
use crate::vertex::ids::id::{Id, SIGN};
use crate::vertex::ids::page::IdPage;

/// Returns the bytes of the budget for the first ids of `pages` pages in a list of `list_bytes` bytes.
pub(crate) fn index_bytes(pages: u64, list_bytes: u64) -> u64 {
    24 * pages + 8 + list_bytes
}

/// What of the dictionary is in memory.
#[derive(Debug, Default)]
pub(crate) struct IdIndex {
    pub(crate) kind: IdKind,
    /// Index of the first id of each page, then |V|.
    pub(crate) starts: Vec<u64>,
    integers: Vec<u64>,
    texts: Vec<u8>,
    /// Where each page's first text ends.
    text_ends: Vec<u64>,
    files: Option<(PagedFile, PagedFile)>,
    _lease: Option<Lease>,
}

impl IdIndex {
    pub(crate) fn new(
        meta: &Manifest,
        data: PagedFile,
        index: PagedFile,
        bytes: &[u8],
        budget: &MemoryBudget,
        path: &Path,
    ) -> Result<Self, FormatError> {
        let IdsMeta { kind, pages, .. } = meta.ids;
        let broken =
            |at: usize| index.corrupt(path, at as u64, "the list of first ids makes no sense");
        // A page has at least one id, and an entry two bytes.
        if data.root.payload / DISK_PAGE_BYTES != pages
            || !data.root.payload.is_multiple_of(DISK_PAGE_BYTES)
            || pages > bytes.len() as u64 / 2
        {
            return Err(broken(0));
        }
        let lease = budget.lease("first ids of pages", index_bytes(pages, bytes.len() as u64))?;
        let count = pages as usize;
        let mut starts = Vec::with_capacity(count + 1);
        let (mut integers, mut texts, mut text_ends) = (Vec::new(), Vec::new(), Vec::new());
        if kind.has_bytes() {
            texts.reserve_exact(bytes.len());
            text_ends.reserve_exact(count);
        } else {
            integers.reserve_exact(count);
        }
        let (mut at, mut next) = (0, 0u64);
        for _ in 0..count {
            starts.push(next);
            let ids = varint::get(bytes, &mut at)
                .filter(|&n| n > 0 && n <= DISK_PAGE_BYTES)
                .ok_or_else(|| broken(at))?;
            next += ids;
            if kind.has_bytes() {
                let length = varint::get(bytes, &mut at).ok_or_else(|| broken(at))?;
                let rest = usize::try_from(length).ok();
                let text = rest.and_then(|length| bytes[at..].get(..length));
                let text = text.ok_or_else(|| broken(at))?;
                texts.extend(text);
                text_ends.push(texts.len() as u64);
                at += text.len();
            } else {
                let id = bytes[at..].first_chunk().ok_or_else(|| broken(at))?;
                integers.push(u64::from_le_bytes(*id));
                at += 8;
            }
        }
        starts.push(next);
        if at != bytes.len() || next != meta.named_vertices() {
            return Err(broken(at));
        }
        Ok(IdIndex {
            kind,
            starts,
            integers,
            texts,
            text_ends,
            files: Some((data, index)),
            _lease: Some(lease),
        })
    }
    pub(crate) fn data(&self) -> Option<&PagedFile> {
        self.files.as_ref().map(|files| &files.0)
    }
    pub(crate) fn index(&self) -> Option<&PagedFile> {
        self.files.as_ref().map(|files| &files.1)
    }
    pub(crate) fn pages(&self) -> usize {
        self.starts.len().saturating_sub(1)
    }
    fn first_text(&self, page: usize) -> &[u8] {
        let start = (page.checked_sub(1)).map_or(0, |before| self.text_ends[before]);
        &self.texts[start as usize..self.text_ends[page] as usize]
    }
    fn is_first_text(&self, page: usize, id: &[u8]) -> bool {
        page < self.text_ends.len() && self.first_text(page) == id
    }
    /// Pages whose first id, of bytes, is at most `id`.
    fn texts_until(&self, id: &[u8]) -> usize {
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
    /// True if `id` is the first id of a page.
    pub(crate) fn is_first(&self, page: usize, id: Id<'_>) -> bool {
        match id {
            Id::Integer(id) => self.integers.get(page) == Some(&id),
            Id::Signed(id) => self.integers.get(page) == Some(&(id as u64 ^ SIGN)),
            Id::Text(id) => self.is_first_text(page, id),
            Id::Uuid(id) => self.is_first_text(page, &id),
        }
    }
    /// Page number `page`, whose bytes are `bytes`; `None` when they are not the ids that belong there.
    pub(crate) fn page<'a>(&self, page: usize, bytes: &'a [u8]) -> Option<IdPage<'a>> {
        let (first, end) = (*self.starts.get(page)?, *self.starts.get(page + 1)?);
        IdPage::parse(bytes, self.kind)
            .filter(|page| page.first_index == first && u64::from(page.count) == end - first)
    }
    /// The page that has `id` if any page has; `None`: it is before the first.
    pub(crate) fn page_of(&self, id: Id<'_>) -> Option<usize> {
        match id {
            Id::Integer(id) => self.integers.partition_point(|&first| first <= id),
            Id::Signed(id) => {
                let id = id as u64 ^ SIGN;
                self.integers.partition_point(|&first| first <= id)
            }
            Id::Text(id) => self.texts_until(id),
            Id::Uuid(id) => self.texts_until(&id),
        }
        .checked_sub(1)
    }
}
