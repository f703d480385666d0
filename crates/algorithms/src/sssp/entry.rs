//! How the registry names it, and what it asks of its options.

use graphmill_engine::{Engine, PregelMode, ProgramFootprint};
use graphmill_graph::{GraphDims, StoredGraph};

use super::check::{bytes, check_distances};
use super::{SsspMethod, check_weights};
use crate::entry::Entry;
use crate::option::OptionSpec;
use crate::options::{AlgorithmError, AlgorithmOptions, PRECISION, SOURCE};
use crate::output::{Output, OutputValues};
use crate::recorded::{RecordedResult, ResultChecker, ResultType};

/// Its entry.
pub(crate) const ENTRY: Entry = Entry {
    name: "sssp",
    aliases: &["shortest-paths"],
    summary: "How far away each vertex is from a source, by the weights of arcs",
    value: "distance",
    weighted: true,
    options: &[
        SOURCE,
        PRECISION,
        OptionSpec::value(
            ["method", "delta|bellman-ford|pregel-pull|pregel-push"],
            Some("delta"),
            "Nearest vertices first, by delta-stepping, where edges are in memory; or all that came closer in each pass; or as a vertex program whose vertices fetch messages (pull), or put them into mailboxes (push)",
        ),
        OptionSpec::value(
            ["delta", "LENGTH"],
            None,
            "Distances that delta-stepping takes as one; chosen by the weights unless given",
        ),
    ],
    check_options: |settings| settings.single().and(method(settings)).map(drop),
    ..Entry::new(run, sizes, checker)
};

fn method(settings: &AlgorithmOptions) -> Result<SsspMethod, AlgorithmError> {
    let delta = settings.positive("delta", "a number above 0")?;
    let wanted = "delta; or, without --delta, bellman-ford, pregel-pull or pregel-push";
    match settings.value("method", "delta") {
        "delta" => Ok(SsspMethod::Delta(delta)),
        "bellman-ford" if delta.is_none() => Ok(SsspMethod::BellmanFord),
        "pregel-pull" if delta.is_none() => Ok(SsspMethod::Pregel(PregelMode::Pull)),
        "pregel-push" if delta.is_none() => Ok(SsspMethod::Pregel(PregelMode::Push)),
        other => Err(AlgorithmError::value("method", other, wanted)),
    }
}

fn run(engine: &mut Engine, settings: &AlgorithmOptions) -> Result<Output, AlgorithmError> {
    let source = settings.source()?;
    let values = if settings.single()? {
        OutputValues::F32(super::run(engine, source, method(settings)?)?)
    } else {
        OutputValues::F64(super::run(engine, source, method(settings)?)?)
    };
    Ok(Output::new("distance", values, true))
}

fn sizes(_: &GraphDims, settings: &AlgorithmOptions) -> ProgramFootprint {
    let method = method(settings).unwrap_or(SsspMethod::BellmanFord);
    if settings.single().unwrap_or(false) {
        super::sizes::<f32>(method)
    } else {
        super::sizes::<f64>(method)
    }
}

fn checker(
    graph: &StoredGraph,
    settings: &AlgorithmOptions,
) -> Result<Box<dyn ResultChecker>, AlgorithmError> {
    check_weights(graph)?;
    let source = settings.source()?;
    if settings.single()? {
        let checker = move |vertices, arcs: &[_], distances: &Vec<_>| {
            check_distances::<f32>(vertices, arcs, source, distances)
        };
        let takes = ResultType::Singles;
        return Ok(RecordedResult::boxed(graph, takes, bytes::<f32>, checker));
    }
    let checker = move |vertices, arcs: &[_], distances: &Vec<_>| {
        check_distances::<f64>(vertices, arcs, source, distances)
    };
    let takes = ResultType::Doubles;
    Ok(RecordedResult::boxed(graph, takes, bytes::<f64>, checker))
}
