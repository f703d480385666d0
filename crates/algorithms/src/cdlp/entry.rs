//! How the registry names it, and what it asks of its options.

use graphmill_engine::{Engine, ProgramFootprint};
use graphmill_graph::{GraphDims, StoredGraph};

use super::check::{bytes, check_labels};
use crate::entry::Entry;
use crate::option::OptionSpec;
use crate::options::{AlgorithmError, AlgorithmOptions};
use crate::output::{Output, OutputValues};
use crate::recorded::{RecordedResult, ResultChecker, ResultType};
use crate::vertex_index::fits_u32;
use crate::wcc::entry::group_sizes;

/// Its entry.
pub(crate) const ENTRY: Entry = Entry {
    name: "cdlp",
    aliases: &["label-propagation", "communities"],
    summary: "Communities by label propagation (LDBC Graphalytics): a vertex begins with its own id; in each round it takes the label that most of its neighbours have, of several the smallest id",
    value: "label",
    options: &[OptionSpec::value(
        ["iterations", "N"],
        Some("10"),
        "The number of rounds. All vertices take their labels at the same time, by the labels before the round. In a directed graph a neighbour counts for each arc from it and for each arc to it",
    )],
    check_options: |settings| iterations(settings).map(drop),
    group_sizes: Some(group_sizes),
    ..Entry::new(run, sizes, checker)
};

fn iterations(settings: &AlgorithmOptions) -> Result<u64, AlgorithmError> {
    settings.number("iterations", "10", "a whole number", |_: &u64| true)
}

fn run(engine: &mut Engine, settings: &AlgorithmOptions) -> Result<Output, AlgorithmError> {
    let iterations = iterations(settings)?;
    let values = if fits_u32(engine.vertices()) {
        OutputValues::Ordinal32(super::run(engine, iterations)?)
    } else {
        OutputValues::Ordinal64(super::run(engine, iterations)?)
    };
    Ok(Output::new("label", values, false))
}

fn sizes(graph: &GraphDims, _: &AlgorithmOptions) -> ProgramFootprint {
    if fits_u32(graph.batches.vertices()) {
        super::sizes::<u32>(graph.symmetric)
    } else {
        super::sizes::<u64>(graph.symmetric)
    }
}

fn checker(
    graph: &StoredGraph,
    settings: &AlgorithmOptions,
) -> Result<Box<dyn ResultChecker>, AlgorithmError> {
    let (iterations, symmetric) = (iterations(settings)?, graph.symmetric());
    let checker = move |vertices, arcs: &[_], labels: &Vec<_>| {
        check_labels(vertices, arcs, symmetric, iterations, labels)
    };
    let takes = ResultType::Vertices;
    Ok(RecordedResult::boxed(graph, takes, bytes, checker))
}
