//! From what was asked on the command line to the configuration of the facade.

use std::sync::Arc;

use graphmill::advanced::Fabric;
use graphmill::{CancelToken, EdgeKind, ImportConfig, MachineConfig, MpiJob, TextOptions};

use crate::args::edges::EdgeArgs;
use crate::args::machine::MachineArgs;
use crate::args::reading::ReadArgs;
use crate::args::storing::StoreArgs;
use crate::notice::notice;
use crate::signals;

/// Returns the limits on the machine.
pub(crate) fn machine(args: &MachineArgs) -> MachineConfig {
    MachineConfig {
        memory: args.memory,
        threads: args.threads.map(usize::from),
        tmp: args.tmp.clone(),
        io: args.io,
        ..MachineConfig::default()
    }
}

/// Connects this process, a rank of a job, to the other ranks.
pub(super) fn start(
    job: &MpiJob,
    ranks: usize,
    stop: &CancelToken,
) -> anyhow::Result<Arc<dyn Fabric>> {
    if ranks != 1 {
        return Err(graphmill::Error::Meaningless {
            option: "--ranks",
            needs: "a process that is no rank of an MPI job",
        }
        .into());
    }
    let _waits = signals::end_when_asked(stop)?;
    Ok(job.start()?)
}

/// Prints, on the first rank, how ranks get all their processors, unless `--threads` was given.
pub(super) fn advise(job: &MpiJob, fabric: &dyn Fabric, asked: &MachineArgs) {
    let is_wanted = fabric.rank() == 0 && asked.threads.is_none();
    if let Some(advice) = job.advice().filter(|_| is_wanted) {
        notice(asked.quiet, &advice);
    }
}

/// Returns the options of reading edges.
pub(super) fn reading(args: &ReadArgs) -> ImportConfig {
    let config = ImportConfig {
        format: args.format,
        ids: args.ids.0,
        id_type: args.ids.1,
        vertices_below: args.vertices_below,
        weights: match (args.weights, &args.weight_column) {
            // A user who names a column of weights wants them.
            (EdgeKind::None, Some(_)) => EdgeKind::F64,
            (weights, _) => weights,
        },
        text: TextOptions {
            source_column: args.source_column.clone(),
            target_column: args.target_column.clone(),
            weight_column: args.weight_column.clone(),
            edge_data: args.edge_data.clone().unwrap_or_default(),
            header: args.header,
            delimiter: args.delimiter,
            quote: args.quote,
            comments: args.comments.clone(),
        },
        vertices: args.vertices.clone().into_iter().collect(),
        on_error: args.on_error,
        ..ImportConfig::default()
    };
    edges(&args.edges, config)
}

/// Returns the options of edges.
pub(super) fn edges(args: &EdgeArgs, config: ImportConfig) -> ImportConfig {
    ImportConfig {
        directed: !args.undirected,
        duplicates: args.duplicates,
        self_loops: args.self_loops,
        ..config
    }
}

/// Returns the options of the stored graph.
pub(super) fn storing(args: &StoreArgs, config: ImportConfig) -> ImportConfig {
    ImportConfig {
        order: args.order,
        layout: args.layout,
        chunk_size: args.chunk_size,
        edge_vertices: args.edge_vertices,
        reverse: args.reverse,
        batch_size: args.batch_size,
        csr_ratio: args.csr_ratio.unwrap_or(config.csr_ratio),
        ..config
    }
}
