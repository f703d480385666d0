//! Step 6 of an import, *finish*: what belongs to vertices is written, with the account of edges kept and dropped.

use graphmill_graph::{Facts, GraphWriter, IdsSummary};

use super::Import;
use crate::error::IngestError;
use crate::write::Kept;

impl Import<'_> {
    /// Step 6.
    pub(super) fn finish(
        &mut self,
        graph: GraphWriter,
        ids: IdsSummary,
        kept: Kept,
    ) -> Result<(), IngestError> {
        let options = self.options;
        let report = &mut self.report;
        report.arcs = kept.arcs;
        // Of an undirected edge both arcs were dropped, or none.
        let ways = if options.directed { 1 } else { 2 };
        report.dropped_duplicates = kept.loops_dropped + kept.others_dropped / ways;
        report.edges_kept = report.edges - report.dropped_self_loops - report.dropped_duplicates;
        let mut dropped = vec![
            ("duplicates", report.dropped_duplicates),
            ("malformed_lines", report.skipped),
            ("self_loops", report.dropped_self_loops),
        ];
        if self.vertices.is_some() {
            dropped.push(("malformed_vertex_lines", report.vertex_lines_skipped));
        }
        let notes = [
            (
                "batch_size",
                options
                    .batch_size
                    .map_or("auto".into(), |size| size.to_string()),
            ),
            (
                "duplicates",
                format!("{:?}", options.duplicates).to_lowercase(),
            ),
            ("order", format!("{:?}", options.order).to_lowercase()),
            (
                "self_loops",
                format!("{:?}", options.self_loops).to_lowercase(),
            ),
        ];
        graph.finish(Facts {
            ids,
            input_edges: report.edges,
            dropped: dropped
                .into_iter()
                .map(|(reason, count)| (reason.to_string(), count))
                .collect(),
            options: notes
                .into_iter()
                .map(|(option, value)| (option.to_string(), value))
                .collect(),
            program: concat!("graphmill ", env!("CARGO_PKG_VERSION")).into(),
        })?;
        self.done("finish");
        Ok(())
    }
}
