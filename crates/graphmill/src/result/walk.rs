//! Rows one after the other, with the names of the vertices that are values beside them; as blocks in memory, too.

use std::sync::Arc;

use graphmill_algorithms::key_weight;
use graphmill_graph::{IdKind, IdType};
use graphmill_storage::Lease;

use crate::error::Error;
use crate::result::block::{Block, IdColumn, Values};
use crate::result::encode::{EncodePool, EncodeScratch, EncodeTask, Encoder};
use crate::result::names::{Distinct, NamesOfGroups, ROWS_LEAST, VertexNames, fewer_ids, id_of};
use crate::result::rows::{GROUP_ROWS, ResultRows, TEXT_BYTES, are_edges, are_vertices};
use crate::result::sizes::BLOCK_ROWS;
use crate::result::values::{ValueColumn, ends};

/// Encodes all rows, at most `task_rows` in a task, and passes the output to `put`.
///
/// `encoder` builds the encoder from the names that the rows need.
///
/// # Errors
/// Ids or values cannot be read, `put` fails, or work is to stop.
pub(super) fn walk<E: Encoder>(
    rows: &mut ResultRows<'_>,
    pool: &mut EncodePool,
    task_rows: u64,
    encoder: impl Fn(Option<Arc<VertexNames>>) -> E,
    mut put: impl FnMut(&mut EncodeTask) -> Result<(), Error>,
) -> Result<(), Error> {
    let has_names = rows.has_names();
    // A whole edge has two names.
    let ends = if are_edges(rows.output) { 2 } else { 1 };
    let mut at = rows.ranks.start;
    let mut has_room = has_names;
    // Where only the names of few rows have room: how many, their bytes, and the lease of both.
    let mut few: Option<(u64, u64, Lease)> = None;
    let mut rows_max = GROUP_ROWS / ends;
    while at < rows.ranks.end {
        let found = has_room.then(|| NamesOfGroups::of(rows, pool, at));
        let found = found.transpose()?.flatten();
        has_room = found.is_some();
        let (names, end) = match &found {
            Some(found) => (Some(Arc::clone(&found.names)), found.ranks.end),
            None => {
                if has_names && few.is_none() {
                    let memory = rows.lookup_memory()?;
                    rows_max = memory.0 / ends;
                    few = Some(memory);
                }
                let most = few.as_ref().map_or(GROUP_ROWS, |(most, ..)| *most) / ends;
                let blocks = rows.group(at, rows_max)?;
                let Some(end) = blocks.last().map(|block| block.ranks.end) else {
                    return Ok(());
                };
                let mut names = None;
                if let Some((_, bytes_max, _)) = &few {
                    let distinct = Distinct::of(rows, &blocks)?;
                    names = VertexNames::of(rows, pool, distinct, *bytes_max)?;
                    if names.is_none() {
                        let count = blocks.iter().map(|block| block.rows).sum::<u64>();
                        rows_max = (count / 2).max(ROWS_LEAST / ends);
                        continue;
                    }
                }
                rows_max = (2 * rows_max).min(most);
                (names.map(Arc::new), end)
            }
        };
        let next = |task: &mut EncodeTask| {
            if at >= end {
                return Ok(false);
            }
            let mut block = rows.block(at, task_rows)?;
            block.ranks.end = block.ranks.end.min(end);
            at = block.ranks.end;
            rows.fill(&block, true, task)?;
            Ok(true)
        };
        pool.run(&encoder(names), next, &mut put)?;
        at = end;
    }
    Ok(())
}

/// Calls `each` with the rows of a result, a block at a time in ascending order of ids.
///
/// # Errors
/// As for [`walk`].
pub(crate) fn each_block(
    rows: &mut ResultRows<'_>,
    pool: &mut EncodePool,
    each: &mut dyn FnMut(&Block),
) -> Result<(), Error> {
    let ids = (rows.graph.id_kind(), rows.graph.id_type());
    let nullable = rows.output.nullable;
    let are_vertices = are_vertices(rows.output);
    let put = |task: &mut EncodeTask| {
        task.block.take().iter().for_each(&mut *each);
        Ok(())
    };
    if are_edges(rows.output) {
        let encoder = |names| EdgeBlockEncoder { ids, names };
        return walk(rows, pool, BLOCK_ROWS / 2, encoder, put);
    }
    let encoder = |names| RowBlockEncoder {
        ids,
        nullable,
        are_vertices,
        names,
    };
    walk(rows, pool, BLOCK_ROWS, encoder, put)
}

/// Makes blocks of rows.
struct RowBlockEncoder {
    ids: (IdKind, IdType),
    nullable: bool,
    are_vertices: bool,
    names: Option<Arc<VertexNames>>,
}

impl Encoder for RowBlockEncoder {
    fn encode(&self, task: &mut EncodeTask, lane: &mut EncodeScratch) -> Result<bool, Error> {
        let (kind, id_type) = self.ids;
        let (mut ids, mut vertices) = (IdColumn::of(kind), IdColumn::of(kind));
        let from = task.row;
        lane.ids.seek(task.next);
        while task.next < task.range.end && ids.bytes().max(vertices.bytes()) < TEXT_BYTES {
            let id = lane.ids.next()?.ok_or_else(fewer_ids)?;
            if task.is_row() {
                ids.push(id);
                if self.are_vertices {
                    vertices.push(id_of(self.names.as_deref(), task.raw.integer(task.row)));
                }
                task.row += 1;
            }
            task.next += 1;
        }
        let rows = from..task.row;
        let reached = self.nullable.then(|| task.raw.reached(rows.clone()));
        let values = match &task.raw {
            _ if self.are_vertices => Values::Vertex(vertices),
            ValueColumn::F32(values) => Values::F32(values[rows].to_vec()),
            ValueColumn::F64(values) => Values::F64(values[rows].to_vec()),
            ValueColumn::U32(values) => Values::U32(values[rows].to_vec()),
            ValueColumn::U64(values) => Values::U64(values[rows].to_vec()),
            ValueColumn::Edges(_) => return Ok(true),
        };
        task.block = Some(Block {
            id_type,
            ids,
            values,
            reached,
        });
        Ok(task.next == task.range.end)
    }
}

/// Makes blocks of rows that are edges.
struct EdgeBlockEncoder {
    ids: (IdKind, IdType),
    names: Option<Arc<VertexNames>>,
}

impl Encoder for EdgeBlockEncoder {
    fn encode(&self, task: &mut EncodeTask, _: &mut EncodeScratch) -> Result<bool, Error> {
        let ValueColumn::Edges(edges) = &task.raw else {
            return Ok(true);
        };
        let (kind, id_type) = self.ids;
        let [mut ids, mut destinations] = [(); 2].map(|()| IdColumn::of(kind));
        let from = task.row;
        while task.row < edges.len() && ids.bytes().max(destinations.bytes()) < TEXT_BYTES {
            let ends = ends(&edges[task.row]);
            let [source, destination] = ends.map(|end| id_of(self.names.as_deref(), end));
            ids.push(source);
            destinations.push(destination);
            task.row += 1;
        }
        let weights = edges[from..task.row].iter();
        let weights = weights.map(|edge| key_weight(edge[0])).collect();
        let is_done = task.row == edges.len();
        task.block = (from < task.row).then_some(Block {
            id_type,
            ids,
            values: Values::Edges {
                destinations,
                weights,
            },
            reached: None,
        });
        Ok(is_done)
    }
}
