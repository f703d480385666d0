//! How the registry names it, and what it asks of its options.

use graphmill_engine::{Engine, ProgramFootprint};
use graphmill_graph::{GraphDims, StoredGraph};

use super::check::{bytes, check_depths, check_parents};
use super::{run as run_depths, run_parents, sizes as sizes_depths, sizes_parents};
use crate::entry::Entry;
use crate::option::OptionSpec;
use crate::options::{AlgorithmError, AlgorithmOptions, SOURCE};
use crate::output::{Output, OutputValues};
use crate::recorded::{RecordedResult, ResultChecker, ResultType};
use crate::vertex_index::fits_u32;

/// Its entry.
pub(crate) const ENTRY: Entry = Entry {
    name: "bfs",
    aliases: &["breadth-first-search"],
    summary: "How many arcs away each vertex is from a source",
    value: "depth",
    options: &[
        SOURCE,
        OptionSpec::flag(
            "parents",
            "Give parents in the search tree instead of depths; of several the one with the smallest id",
        ),
    ],
    ..Entry::new(run, sizes, checker)
};

fn run(engine: &mut Engine, settings: &AlgorithmOptions) -> Result<Output, AlgorithmError> {
    let source = settings.source()?;
    if !settings.flag("parents") {
        let values = OutputValues::U32(run_depths(engine, source)?);
        return Ok(Output::new("depth", values, true));
    }
    let values = if fits_u32(engine.vertices()) {
        OutputValues::Ordinal32(run_parents(engine, source)?)
    } else {
        OutputValues::Ordinal64(run_parents(engine, source)?)
    };
    Ok(Output::new("parent", values, true))
}

fn sizes(graph: &GraphDims, settings: &AlgorithmOptions) -> ProgramFootprint {
    match settings.flag("parents") {
        false => sizes_depths(),
        true if fits_u32(graph.batches.vertices()) => sizes_parents::<u32>(graph.order),
        true => sizes_parents::<u64>(graph.order),
    }
}

fn checker(
    graph: &StoredGraph,
    settings: &AlgorithmOptions,
) -> Result<Box<dyn ResultChecker>, AlgorithmError> {
    let source = settings.source()?;
    let (takes, check): (_, fn(_, &[_], _, &[_]) -> _) = match settings.flag("parents") {
        true => (ResultType::Vertices, check_parents),
        false => (ResultType::Integers, check_depths),
    };
    let checker =
        move |vertices, arcs: &[_], values: &Vec<_>| check(vertices, arcs, source, values);
    Ok(RecordedResult::boxed(graph, takes, bytes, checker))
}
