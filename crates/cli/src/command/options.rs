//! From what was asked on the command line to the configuration of the facade.

use std::sync::Arc;

use graphmill::{
    DispatchChoice, EdgeKind, Fabric, ImportConfig, IoChoice, MachineConfig, MpiJob, Stop,
};

use crate::args::{self, Edges, Machine, Reading, Storing};
use crate::notice::notice;
use crate::signals;

/// What may be taken of the machine.
pub(super) fn machine(args: &Machine) -> MachineConfig {
    MachineConfig {
        memory: args.memory,
        threads: args.threads.map(usize::from),
        tmp: args.tmp.clone(),
        io: match args.io {
            args::Io::Auto => IoChoice::Auto,
            args::Io::Uring => IoChoice::Uring,
            args::Io::Threads => IoChoice::Threads,
        },
        ..MachineConfig::default()
    }
}

/// The way to the other ranks of a job, of which each process is one.
pub(super) fn start(job: &MpiJob, ranks: usize, stop: &Stop) -> anyhow::Result<Arc<dyn Fabric>> {
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

/// Has the first rank say how ranks get all processors that there are for them, where nobody said how many they are to take.
pub(super) fn advise(job: &MpiJob, fabric: &dyn Fabric, asked: &Machine) {
    let is_wanted = fabric.rank() == 0 && asked.threads.is_none();
    if let Some(advice) = job.advice().filter(|_| is_wanted) {
        notice(asked.quiet, &advice);
    }
}

/// How edges are read.
pub(super) fn reading(args: &Reading) -> ImportConfig {
    use graphmill::{Format, Header, Ids, OnError, TextOptions};
    let config = ImportConfig {
        format: match args.format {
            args::Format::Auto => Format::Auto,
            args::Format::Text => Format::Text,
            args::Format::Csv => Format::Csv,
            args::Format::Ldbc => Format::Ldbc,
            args::Format::Dimacs => Format::Dimacs,
            args::Format::RawU32 => Format::RawU32,
            args::Format::RawU64 => Format::RawU64,
            args::Format::Parquet => Format::Parquet,
        },
        ids: match args.ids {
            args::Ids::Auto => None,
            args::Ids::Int => Some(Ids::Integer),
            args::Ids::String => Some(Ids::Text),
        },
        weights: match (args.weights, &args.weight_column) {
            // Who names a column of weights wants them.
            (args::Weights::None, Some(_)) => EdgeKind::F64,
            (asked, _) => weights(asked),
        },
        text: TextOptions {
            source_column: args.source_column.clone(),
            target_column: args.target_column.clone(),
            weight_column: args.weight_column.clone(),
            header: match args.header {
                args::Header::Auto => Header::Auto,
                args::Header::Yes => Header::Yes,
                args::Header::No => Header::No,
            },
            delimiter: args.delimiter,
            quote: args.quote,
            comments: args.comments.clone(),
        },
        vertices: args.vertices.clone().into_iter().collect(),
        on_error: match args.on_error {
            args::OnError::Stop => OnError::Stop,
            args::OnError::Skip => OnError::Skip,
        },
        ..ImportConfig::default()
    };
    edges(&args.edges, config)
}

/// The precision of weights.
pub(super) fn weights(weights: args::Weights) -> EdgeKind {
    match weights {
        args::Weights::None => EdgeKind::None,
        args::Weights::F32 => EdgeKind::F32,
        args::Weights::F64 => EdgeKind::F64,
    }
}

/// How messages on disk get to where they are needed.
pub(super) fn dispatch(dispatch: args::Dispatch) -> DispatchChoice {
    match dispatch {
        args::Dispatch::Auto => DispatchChoice::Auto,
        args::Dispatch::Push => DispatchChoice::Push,
        args::Dispatch::Pull => DispatchChoice::Pull,
        args::Dispatch::None => DispatchChoice::None,
    }
}

/// What edges become.
pub(super) fn edges(args: &Edges, config: ImportConfig) -> ImportConfig {
    use graphmill::{Duplicates, SelfLoops};
    ImportConfig {
        directed: !args.undirected,
        duplicates: match args.duplicates {
            args::Duplicates::Keep => Duplicates::Keep,
            args::Duplicates::First => Duplicates::First,
            args::Duplicates::Sum => Duplicates::Sum,
            args::Duplicates::Min => Duplicates::Min,
            args::Duplicates::Max => Duplicates::Max,
        },
        self_loops: match args.self_loops {
            args::SelfLoops::Keep => SelfLoops::Keep,
            args::SelfLoops::Drop => SelfLoops::Drop,
        },
        ..config
    }
}

/// How the graph is stored.
pub(super) fn storing(args: &Storing, config: ImportConfig) -> ImportConfig {
    use graphmill::Order;
    ImportConfig {
        order: match args.order {
            args::Order::Id => Order::Id,
            args::Order::Degree => Order::Degree,
        },
        reverse: args.reverse,
        batch_size: args.batch_size,
        csr_ratio: args.csr_ratio.unwrap_or(config.csr_ratio),
        ..config
    }
}
