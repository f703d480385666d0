//! Chunks by the batch of the destination, made in scratch for passes against the arcs.

use std::sync::Mutex;

use graphmill_graph::{
    ChunkBins, ChunkPlace, ChunkSet, ChunkShape, ChunkWriter, FileSide, FormatError, StoreHere,
    StoredGraph,
};
use graphmill_raw::lock;

use crate::context::ExecContext;
use crate::error::EngineError;
use crate::exec::stream::scan;
use crate::memory::transposed::{CopyBytes, copies};
use crate::metrics::run::PassMetrics;

/// Makes chunks by destination of the chunks at this rank: reads each once, and writes each arc once.
pub(crate) fn transpose(context: &ExecContext) -> Result<(StoredGraph, PassMetrics), EngineError> {
    let (graph, budget) = (context.graph, &context.budget);
    let dims = context.shape.chunks().ok_or(EngineError::Broken)?;
    let longest = ChunkShape {
        batches: graph.batches().clone(),
        edge: graph.edge_kind(),
        chunk_bytes: dims.chunk_bytes,
        side: FileSide::Reverse,
        file: context.ranks.rank() as u32,
    };
    let fits = |bytes: CopyBytes| dims.transposing_bytes(bytes) <= budget.available();
    let fitting = copies(&longest, dims.updates)
        .find(|copy| copy.as_ref().map_or(true, |(_, bytes)| fits(*bytes)));
    let (shape, _) = fitting.ok_or_else(|| EngineError::TooSmall {
        what: "a transposed copy of the chunks",
        least: budget.total() - budget.available() + dims.transposing_bytes(dims.transposed),
        budget: budget.total(),
    })??;
    let place = ChunkPlace {
        disk: &context.disk,
        budget,
        folder: &context.scratch,
        graph_id: graph.graph_id(),
    };
    let writer = ChunkWriter::create(&place, shape.clone())?;
    let mut report = fill(context, &writer)?;
    writer.flush(&StoreHere)?;
    let (file, _) = writer.finish()?;
    report.bytes_written += file.bytes();
    let set = ChunkSet::of_file(&place, &shape, &file)?;
    Ok((graph.transposed_by(set), report))
}

fn fill(context: &ExecContext, writer: &ChunkWriter) -> Result<PassMetrics, EngineError> {
    let batches = &context.batches;
    let width = context.graph.edge_kind().bytes();
    let bins = (0..context.workers.count()).map(|_| writer.bins(StoreHere).map(Mutex::new));
    let bins: Vec<Mutex<ChunkBins<'_, StoreHere>>> = bins.collect::<Result<_, FormatError>>()?;
    let report = scan::visit(context, width > 0, |worker, source_batch, chunk, data| {
        let mut bins = lock(&bins[worker.index]);
        let mut failed = Ok(());
        for run in chunk.runs() {
            let starts = [source_batch, run.destination_batch].map(|batch| batches.start(batch));
            chunk.for_each(&run, |source, destination, i| {
                let of_arc = data.get(i * width..(i + 1) * width).unwrap_or_default();
                let mut bytes = [0; 16];
                bytes[..width].copy_from_slice(of_arc);
                let [source, destination] = [
                    starts[0] + u64::from(source),
                    starts[1] + u64::from(destination),
                ];
                if failed.is_ok() {
                    failed = bins.push(destination, source, u128::from_le_bytes(bytes));
                }
            });
        }
        Ok(failed?)
    })?;
    for bins in bins {
        bins.into_inner()
            .map_err(|_| EngineError::Broken)?
            .finish()?;
    }
    Ok(report)
}
