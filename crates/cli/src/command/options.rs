//! From what was asked on the command line to the configuration of the facade.

use std::sync::Arc;

use graphmill::{
    CancelToken, DispatchChoice, EdgeKind, Fabric, ImportConfig, IoChoice, MachineConfig, MpiJob,
};

use crate::args;
use crate::args::edges::Edges;
use crate::args::machine::Machine;
use crate::args::reading::Reading;
use crate::args::storing::Storing;
use crate::notice::notice;
use crate::signals;

/// Returns the limits on the machine.
pub(super) fn machine(args: &Machine) -> MachineConfig {
    MachineConfig {
        memory: args.memory,
        threads: args.threads.map(usize::from),
        tmp: args.tmp.clone(),
        io: match args.io {
            args::machine::Io::Auto => IoChoice::Auto,
            args::machine::Io::Uring => IoChoice::Uring,
            args::machine::Io::Threads => IoChoice::Threads,
        },
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
pub(super) fn advise(job: &MpiJob, fabric: &dyn Fabric, asked: &Machine) {
    let is_wanted = fabric.rank() == 0 && asked.threads.is_none();
    if let Some(advice) = job.advice().filter(|_| is_wanted) {
        notice(asked.quiet, &advice);
    }
}

/// Returns the options of reading edges.
pub(super) fn reading(args: &Reading) -> ImportConfig {
    use graphmill::{Format, Header, Ids, OnError, TextOptions};
    let config = ImportConfig {
        format: match args.format {
            args::reading::Format::Auto => Format::Auto,
            args::reading::Format::Text => Format::Text,
            args::reading::Format::Csv => Format::Csv,
            args::reading::Format::Ldbc => Format::Ldbc,
            args::reading::Format::Dimacs => Format::Dimacs,
            args::reading::Format::RawU32 => Format::RawU32,
            args::reading::Format::RawU64 => Format::RawU64,
            args::reading::Format::Parquet => Format::Parquet,
        },
        ids: match args.ids {
            args::reading::Ids::Auto => None,
            args::reading::Ids::Int => Some(Ids::Integer),
            args::reading::Ids::String => Some(Ids::Text),
        },
        weights: match (args.weights, &args.weight_column) {
            // A user who names a column of weights wants them.
            (args::edges::Weights::None, Some(_)) => EdgeKind::F64,
            (asked, _) => weights(asked),
        },
        text: TextOptions {
            source_column: args.source_column.clone(),
            target_column: args.target_column.clone(),
            weight_column: args.weight_column.clone(),
            header: match args.header {
                args::reading::Header::Auto => Header::Auto,
                args::reading::Header::Yes => Header::Yes,
                args::reading::Header::No => Header::No,
            },
            delimiter: args.delimiter,
            quote: args.quote,
            comments: args.comments.clone(),
        },
        vertices: args.vertices.clone().into_iter().collect(),
        on_error: match args.on_error {
            args::reading::OnError::Stop => OnError::Stop,
            args::reading::OnError::Skip => OnError::Skip,
        },
        ..ImportConfig::default()
    };
    edges(&args.edges, config)
}

/// The precision of weights.
pub(super) fn weights(weights: args::edges::Weights) -> EdgeKind {
    match weights {
        args::edges::Weights::None => EdgeKind::None,
        args::edges::Weights::F32 => EdgeKind::F32,
        args::edges::Weights::F64 => EdgeKind::F64,
    }
}

/// Returns the routing of messages on disk.
pub(super) fn dispatch(dispatch: args::tuning::Dispatch) -> DispatchChoice {
    match dispatch {
        args::tuning::Dispatch::Auto => DispatchChoice::Auto,
        args::tuning::Dispatch::Push => DispatchChoice::Push,
        args::tuning::Dispatch::Pull => DispatchChoice::Pull,
        args::tuning::Dispatch::None => DispatchChoice::None,
    }
}

/// Returns the options of edges.
pub(super) fn edges(args: &Edges, config: ImportConfig) -> ImportConfig {
    use graphmill::{Duplicates, SelfLoops};
    ImportConfig {
        directed: !args.undirected,
        duplicates: match args.duplicates {
            args::edges::Duplicates::Keep => Duplicates::Keep,
            args::edges::Duplicates::First => Duplicates::First,
            args::edges::Duplicates::Sum => Duplicates::Sum,
            args::edges::Duplicates::Min => Duplicates::Min,
            args::edges::Duplicates::Max => Duplicates::Max,
        },
        self_loops: match args.self_loops {
            args::edges::SelfLoops::Keep => SelfLoops::Keep,
            args::edges::SelfLoops::Drop => SelfLoops::Drop,
        },
        ..config
    }
}

/// Returns the options of the stored graph.
pub(super) fn storing(args: &Storing, config: ImportConfig) -> ImportConfig {
    use graphmill::Order;
    ImportConfig {
        order: match args.order {
            args::storing::Order::Id => Order::Id,
            args::storing::Order::Degree => Order::Degree,
        },
        reverse: args.reverse,
        batch_size: args.batch_size,
        csr_ratio: args.csr_ratio.unwrap_or(config.csr_ratio),
        ..config
    }
}
