//! The set of the vertices with odd ids, or with even ids.

use graphmill_algorithms::AlgorithmError;
use graphmill_engine::{VertexArray, job};
use graphmill_graph::{Id, IdCursor, IdKind, PageCache, StoredGraph};

use crate::error::Error;
use crate::session::Session;

/// Pages of the order that are kept.
const PAGES: usize = 2;
/// Bytes of vertices that are in memory at a time, at least and at most.
const ROWS_BYTES: [u64; 2] = [1 << 18, 1 << 26];

/// Whether an id is odd; `None` if it is a text.
pub(crate) fn is_odd(id: Id<'_>) -> Option<bool> {
    match id {
        Id::Integer(id) => Some(id % 2 == 1),
        Id::Signed(id) => Some(id % 2 != 0),
        Id::Text(_) | Id::Uuid(_) => None,
    }
}

/// Fails if the ids of the graph are texts, for `--option word`.
///
/// # Errors
/// [`AlgorithmError::Value`].
pub(crate) fn check_integers(
    graph: &StoredGraph,
    option: &'static str,
    word: &str,
) -> Result<(), Error> {
    match graph.id_kind() {
        IdKind::Text | IdKind::Uuid => Err(Error::Algorithm(AlgorithmError::Value {
            name: option,
            value: word.to_string(),
            wanted: "a file of ids; the ids of the graph are no integers, neither odd nor even",
        })),
        IdKind::Dense | IdKind::Integer | IdKind::Signed => Ok(()),
    }
}

/// Sets the rows of the vertices with odd ids, or with even ids, to 1.
///
/// # Errors
/// Ids or rows cannot be read; the budget is too small.
pub(crate) fn fill(
    session: &mut Session,
    wants_odd: bool,
    array: VertexArray<u8>,
) -> Result<(), Error> {
    let (engine, graph) = (&mut session.engine, &session.graph);
    job::release(engine);
    let budget = session.machine.budget();
    let batches = graph.batches();
    let own = job::local_batches(engine);
    let (mut next, end) = (batches.start(own.start), batches.cut(own.end));
    let mut readers = None;
    job::fill(engine, Some(array), |_, chunk| {
        let (order, ids, rows, rows_max, _) = match &mut readers {
            Some(readers) => readers,
            None => {
                let bytes = (budget.available() / 4).clamp(ROWS_BYTES[0], ROWS_BYTES[1]);
                let each = size_of::<[u64; 2]>() + size_of::<(u64, u8)>();
                let rows_max = bytes / each as u64;
                readers.insert((
                    PageCache::new(graph, budget, PAGES)?,
                    IdCursor::new(graph, budget, 0)?,
                    Vec::<[u64; 2]>::with_capacity(rows_max as usize),
                    rows_max,
                    budget.lease("vertices with odd or even ids", bytes)?,
                ))
            }
        };
        let last = end.min(next + *rows_max);
        let mut index = next;
        rows.clear();
        graph.each_rank(order, next..last, |rank| {
            rows.push([rank, index]);
            index += 1;
        })?;
        rows.sort_unstable();
        chunk.reserve_exact(rows.len());
        for [rank, index] in rows.iter() {
            ids.seek(*rank);
            let id = ids.next()?;
            if id.and_then(is_odd) == Some(wants_odd) {
                chunk.push((*index, 1));
            }
        }
        chunk.sort_unstable();
        next = last;
        Ok::<_, Error>(next < end)
    })?;
    Ok(())
}
