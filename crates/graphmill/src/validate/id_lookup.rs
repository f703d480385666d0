//! The ids of a result as a graph has them: from an id to its rank, and back.

use std::sync::Arc;

use graphmill_graph::{DISK_PAGE_BYTES, IdKind, PageCache, StoredGraph, VertexId, uuid_of};
use graphmill_storage::MemoryBudget;

use crate::error::Error;
use crate::vertex_file::text::RowId;

/// Pages of ids to keep, where there is memory for more than the least.
const FRAMES_MAX: u64 = 1024;
/// Pages of ids to keep at the least.
const FRAMES_MIN: u64 = 16;

/// Looks up vertices by the ids that a result has for them.
pub(crate) struct IdLookup {
    graph: Arc<StoredGraph>,
    reader: PageCache,
    /// The vertex that a row named last: most rows of a component name the same.
    last: Option<(RowId, Option<u64>)>,
}

impl IdLookup {
    /// The least bytes of the budget that will do.
    pub(super) const BYTES: u64 = FRAMES_MIN * DISK_PAGE_BYTES;

    /// `leave` bytes of the budget are for others.
    pub(crate) fn new(
        graph: &Arc<StoredGraph>,
        budget: &MemoryBudget,
        leave: u64,
    ) -> Result<IdLookup, Error> {
        let free = budget.available().saturating_sub(leave);
        let frames = match graph.id_kind() {
            IdKind::Dense => 1,
            // The rest of the free memory is for the rows of the file.
            _ => (free / 2 / DISK_PAGE_BYTES).clamp(FRAMES_MIN, FRAMES_MAX),
        };
        Ok(IdLookup {
            graph: Arc::clone(graph),
            reader: PageCache::new(graph, budget, frames as usize)?,
            last: None,
        })
    }

    /// The rank of the vertex of a name; none when the graph has no such vertex.
    pub(crate) fn rank_of_name(&mut self, name: &str) -> Result<Option<u64>, Error> {
        self.rank_of(&RowId::parse(name.as_bytes()))
    }

    /// The rank of this id; none when the graph has no such vertex.
    pub(crate) fn rank_of(&mut self, id: &RowId) -> Result<Option<u64>, Error> {
        let vertex = match (self.graph.id_kind(), id) {
            (_, RowId::Edge(_) | RowId::Column(_)) => return Ok(None),
            (IdKind::Text, RowId::Integer(id)) => VertexId::Text(id.to_string().into_bytes()),
            (IdKind::Text, RowId::Text(id)) => VertexId::Text(id.to_vec()),
            // A Parquet file of the same run has its bits.
            (IdKind::Signed, RowId::Integer(id)) => VertexId::Signed(*id as i64),
            (IdKind::Signed, RowId::Text(id)) => {
                match std::str::from_utf8(id).ok().and_then(|id| id.parse().ok()) {
                    Some(id) => VertexId::Signed(id),
                    None => return Ok(None),
                }
            }
            (IdKind::Uuid, RowId::Text(id)) => match uuid_of(id) {
                Some(id) => VertexId::Uuid(id),
                None => return Ok(None),
            },
            (IdKind::Uuid, RowId::Integer(_)) => return Ok(None),
            (_, RowId::Integer(id)) => VertexId::Integer(*id),
            (_, RowId::Text(_)) => return Ok(None),
        };
        Ok(self.graph.rank_of_id(&mut self.reader, &vertex)?)
    }

    /// The same for ids that come many times in a row.
    pub(super) fn rank_of_value(&mut self, id: RowId) -> Result<Option<u64>, Error> {
        match &self.last {
            Some((last, rank)) if *last == id => Ok(*rank),
            _ => {
                let rank = self.rank_of(&id)?;
                self.last = Some((id, rank));
                Ok(rank)
            }
        }
    }

    /// The id of a rank.
    pub(super) fn id_of(&mut self, rank: u64) -> Result<VertexId, Error> {
        Ok(self.graph.id_of_rank(&mut self.reader, rank)?)
    }
}
