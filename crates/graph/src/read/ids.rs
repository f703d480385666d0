//! Looks up the vertex of an id, and the id of a vertex.

use crate::error::FormatError;
use crate::file::page::DISK_PAGE_BYTES;
use crate::manifest::IdKind;
use crate::open::stored_graph::StoredGraph;
use crate::read::page_cache::PageCache;
use crate::vertex::ids::id::{IDS, VertexId};

impl StoredGraph {
    /// The index of a vertex; `None` when there is none of that id.
    ///
    /// # Errors
    /// Reading fails.
    pub fn index_of(
        &self,
        reader: &mut PageCache,
        id: &VertexId,
    ) -> Result<Option<u64>, FormatError> {
        let rank = self.rank_of_id(reader, id)?;
        (rank.map(|rank| self.index_of_rank(reader, rank))).transpose()
    }
    /// The rank of a vertex, its place in ascending order of ids; `None` when there is none of that id.
    ///
    /// # Errors
    /// Reading fails.
    pub fn rank_of_id(
        &self,
        reader: &mut PageCache,
        id: &VertexId,
    ) -> Result<Option<u64>, FormatError> {
        let ids = self.ids();
        match (ids.kind, id) {
            (IdKind::Dense, VertexId::Integer(id)) => {
                return Ok(Some(*id).filter(|&id| id < self.named_vertices()));
            }
            (IdKind::Integer, VertexId::Integer(_))
            | (IdKind::Signed, VertexId::Signed(_))
            | (IdKind::Text, VertexId::Text(_))
            | (IdKind::Uuid, VertexId::Uuid(_)) => {}
            _ => return Ok(None),
        }
        let Some(page) = ids.page_of(id.as_id()) else {
            return Ok(None);
        };
        let read = ids.page(page, reader.page(IDS, page as u64)?);
        let found = read.and_then(|page| page.index_of(id.as_id()));
        found.ok_or_else(|| self.broken_page(page as u64))
    }
    /// Returns the id of the vertex with index `v`, which has one.
    ///
    /// Neighbouring vertices are cheap: their page is in the reader's cache.
    ///
    /// # Errors
    /// Reading fails; there is no such vertex, or it is that of an edge.
    pub fn id_of(&self, reader: &mut PageCache, v: u64) -> Result<VertexId, FormatError> {
        let rank = self.rank_of(reader, v)?;
        self.id_of_rank(reader, rank)
    }
    /// The id of the vertex of a rank, which is less than the number of vertices with ids.
    ///
    /// # Errors
    /// Reading fails; there is no such vertex.
    pub fn id_of_rank(&self, reader: &mut PageCache, rank: u64) -> Result<VertexId, FormatError> {
        let vertices = self.named_vertices();
        if rank >= vertices {
            let what = format!("the id of vertex number {rank} of {vertices} with ids");
            return Err(FormatError::misuse(what));
        }
        let ids = self.ids();
        if ids.kind == IdKind::Dense {
            return Ok(VertexId::Integer(rank));
        }
        let page = ids.starts.partition_point(|&start| start <= rank) - 1;
        let read = ids.page(page, reader.page(IDS, page as u64)?);
        let found = read.and_then(|page| page.id_of(rank));
        found.ok_or_else(|| self.broken_page(page as u64))
    }
    pub(crate) fn broken_page(&self, page: u64) -> FormatError {
        self.corrupt(IDS, page * DISK_PAGE_BYTES, "a page of ids makes no sense")
    }
}
