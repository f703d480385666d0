//! Step 6 of an import, *finish*: the vertices' files are written, with the numbers of retained and dropped edges.

use std::collections::BTreeMap;
use std::fmt::Debug;

use graphmill_graph::{
    CopiedFiles, EdgeVertices, FinishInfo, GraphWriter, IdsSummary, common_files, send_files,
};

use super::context::ImportContext;
use crate::build::sort_bucket::ArcCounts;
use crate::checkpoint::staging::StagingDir;
use crate::error::IngestError;

impl ImportContext<'_> {
    /// Step 6.
    pub(super) fn finish(
        &mut self,
        graph: GraphWriter,
        ids: Option<IdsSummary>,
        kept: ArcCounts,
        staging: &StagingDir<'_>,
    ) -> Result<(), IngestError> {
        self.send_to_root(&graph, staging)?;
        let options = self.options;
        let edge_vertices = options.edge_vertices.then_some(EdgeVertices {
            count: self.report.edges,
            directed: self.directed,
        });
        let report = &mut self.report;
        report.arcs = kept.arcs;
        // Of an undirected edge both arcs were dropped, or none.
        let arcs_per_edge = if options.directed { 1 } else { 2 };
        report.dropped_duplicates = kept.loops_dropped + kept.others_dropped / arcs_per_edge;
        report.edges_kept = report.edges - report.dropped_self_loops - report.dropped_duplicates;
        let mut dropped = BTreeMap::from([
            ("duplicates".into(), report.dropped_duplicates),
            ("malformed_lines".into(), report.skipped),
            ("self_loops".into(), report.dropped_self_loops),
        ]);
        if self.vertices.is_some() {
            dropped.insert("malformed_vertex_lines".into(), report.vertex_lines_skipped);
        }
        let name = |value: &dyn Debug| format!("{value:?}").to_lowercase();
        let batch_size = options.batch_size.map(|size| size.to_string());
        let mut notes = BTreeMap::from([
            ("batch_size".into(), batch_size.unwrap_or("auto".into())),
            ("duplicates".into(), name(&options.duplicates)),
            ("layout".into(), name(&options.layout)),
            ("order".into(), name(&options.order)),
            ("self_loops".into(), name(&options.self_loops)),
        ]);
        if !options.read.is_empty() {
            notes.insert("read".into(), options.read.join("\n"));
        }
        let graph = match ids.filter(|_| self.comm.is_first()) {
            // The temporary files here exist until the graph is finished.
            None => Some(graph),
            Some(ids) => {
                graph.finish(FinishInfo {
                    ids,
                    edge_vertices,
                    input_edges: report.edges,
                    dropped,
                    options: notes,
                    program: concat!("graphmill ", env!("CARGO_PKG_VERSION")).into(),
                    edge_fields: self.source.fields(),
                })?;
                None
            }
        };
        self.copy(staging)?;
        drop(graph);
        self.done("finish");
        Ok(())
    }

    /// Sends the first rank the manifest of the column files of the others, and their data that it needs.
    fn send_to_root(
        &self,
        graph: &GraphWriter,
        staging: &StagingDir<'_>,
    ) -> Result<(), IngestError> {
        let comm = self.comm;
        let mut listeners: Vec<_> = (0..comm.count()).map(|_| graph.listen()).collect();
        comm.send_to_root(
            |send| graph.tell(send),
            |from, bytes| Ok(listeners[from].take(bytes)?),
        )?;
        let (disk, budget, folder) = (&**self.resources.disk, self.resources.budget, &staging.path);
        let copied = |_| CopiedFiles::new(disk, budget, folder);
        let mut copied: Vec<_> = (0..comm.count()).map(copied).collect();
        let elsewhere = match staging.makers[comm.rank()] {
            0 => Vec::new(),
            _ => graph.spools(),
        };
        comm.send_to_root(
            |send| send_files(disk, budget, folder, &elsewhere, send),
            |from, bytes| Ok(copied[from].take(bytes)?),
        )?;
        Ok(copied.into_iter().try_for_each(CopiedFiles::end)?)
    }

    /// Copies the files of the first rank to hosts with a disk of their own; all ranks wait for it.
    fn copy(&self, staging: &StagingDir<'_>) -> Result<(), IngestError> {
        let (comm, disk) = (self.comm, &**self.resources.disk);
        let (budget, folder, makers) = (self.resources.budget, &staging.path, &staging.makers);
        let is_maker = |rank: &usize| makers[*rank] == *rank;
        if comm.is_first() {
            let names = common_files(disk, folder)?;
            for to in (1..comm.count()).filter(is_maker) {
                comm.send_to(to, |send| send_files(disk, budget, folder, &names, send))?;
            }
        } else if is_maker(&comm.rank()) {
            let mut copied = CopiedFiles::new(disk, budget, folder);
            comm.receive_from(0, |bytes| Ok(copied.take(bytes)?))?;
            copied.end()?;
            for name in ["columns", "reverse", "stream", "stream-reverse"] {
                let folder = folder.join(name);
                if disk.is_dir(&folder)? {
                    disk.sync_dir(&folder)?;
                }
            }
            disk.sync_dir(folder)?;
        }
        comm.gather(Vec::new())?;
        Ok(())
    }
}
