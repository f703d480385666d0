//! Step 3 of a graph of chunks: every chunk parses, and the directory says how many arcs go into each batch.

use std::sync::Arc;

use graphmill_storage::{CancelToken, MemoryBudget};

use super::Verified;
use super::deep::DeepVerifier;
use crate::error::FormatError;
use crate::file::page::{FileId, FileKind};
use crate::open::stored_graph::StoredGraph;
use crate::stream::chunk_set::ChunkSet;
use crate::stream::reader::ChunkSetReader;

/// Reads the chunks of a set; returns false if `stop` was requested.
pub(super) fn verify(
    graph: &Arc<StoredGraph>,
    budget: &MemoryBudget,
    set: &ChunkSet,
    (seen, progress): (&mut Verified, &mut dyn FnMut(u64)),
    stop: &CancelToken,
    mut deep: Option<&mut DeepVerifier<'_>>,
) -> Result<bool, FormatError> {
    let batches = graph.batches();
    let bytes = graph.edge_kind().bytes();
    let _lease = budget.lease("the arcs into batches", 8 * batches.len() as u64)?;
    let mut into = vec![0u64; batches.len()];
    let mut reader = ChunkSetReader::new(&**graph.disk(), budget, (set, batches), bytes > 0)?;
    for chunk in set.all() {
        let (view, data) = reader.chunk(chunk)?;
        let start = batches.start(chunk.batch());
        for run in view.runs() {
            into[run.destination_batch] += run.count as u64;
            let end = batches.start(run.destination_batch);
            if let Some(deep) = deep.as_deref_mut() {
                view.for_each(&run, |source, destination, at| {
                    let data = data.get(at * bytes..(at + 1) * bytes).unwrap_or(&[]);
                    deep.arc_of_chunk(chunk.batch(), start + u64::from(source));
                    deep.arc(
                        start + u64::from(source),
                        end + u64::from(destination),
                        data,
                    );
                });
            }
        }
        if let Some(deep) = deep.as_deref_mut() {
            deep.weights_of(data);
        }
        seen.edges += view.edges() as u64;
        let pages = reader.take_bytes_read();
        progress(seen.bytes + pages);
        seen.bytes += (chunk.bytes() + chunk.edges() * bytes) as u64;
        if stop.is_cancelled() {
            return Ok(false);
        }
    }
    for (batch, found) in into.iter().enumerate() {
        let said = set.arcs_into(batch);
        if *found != said {
            let what = format!("it says that {said} arcs go into batch {batch}, {found} do");
            let directory = FileId::new(set.side(), FileKind::ChunkDirectory, 0);
            return Err(graph.corrupt(directory, 0, what));
        }
    }
    Ok(true)
}
