//! How the registry names it, and what it asks of its options.

use graphmill_engine::{Engine, ProgramFootprint};
use graphmill_graph::{GraphDims, StoredGraph};

use super::check::{bytes, check_strong};
use crate::entry::Entry;
use crate::options::{AlgorithmError, AlgorithmOptions};
use crate::output::{Output, OutputValues};
use crate::recorded::{RecordedResult, ResultChecker, ResultType};
use crate::vertex_index::fits_u32;
use crate::wcc::entry::group_sizes;

/// Its entry.
pub(crate) const ENTRY: Entry = Entry {
    name: "scc",
    aliases: &["strong-components", "strongly-connected-components"],
    summary: "Which vertices reach each other: the smallest vertex of each one's strongly connected component",
    value: "component",
    group_sizes: Some(group_sizes),
    ..Entry::new(run, sizes, checker)
};

fn run(engine: &mut Engine, _: &AlgorithmOptions) -> Result<Output, AlgorithmError> {
    let values = if fits_u32(engine.vertices()) {
        OutputValues::Ordinal32(super::run(engine)?)
    } else {
        OutputValues::Ordinal64(super::run(engine)?)
    };
    Ok(Output::new("component", values, false))
}

fn sizes(graph: &GraphDims, _: &AlgorithmOptions) -> ProgramFootprint {
    if fits_u32(graph.batches.vertices()) {
        super::sizes::<u32>(graph.symmetric, graph.order)
    } else {
        super::sizes::<u64>(graph.symmetric, graph.order)
    }
}

fn checker(
    graph: &StoredGraph,
    _: &AlgorithmOptions,
) -> Result<Box<dyn ResultChecker>, AlgorithmError> {
    let checker = |vertices, arcs: &[_], labels: &Vec<_>| check_strong(vertices, arcs, labels);
    let takes = ResultType::Vertices;
    Ok(RecordedResult::boxed(graph, takes, bytes, checker))
}
