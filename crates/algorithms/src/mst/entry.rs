//! How the registry names it, and what it asks of its options.

use graphmill_engine::{Engine, ProgramFootprint};
use graphmill_graph::{GraphDims, StoredGraph};

use super::ForestEdge;
use super::check::{bytes, check_forest};
use crate::entry::Entry;
use crate::options::{AlgorithmError, AlgorithmOptions};
use crate::output::{Output, OutputValues, ResultShape, edge_row};
use crate::recorded::{RecordedResult, ResultChecker, ResultEdge, ResultType};
use crate::vertex_index::fits_u32;

/// Its entry.
pub(crate) const ENTRY: Entry = Entry {
    name: "mst",
    aliases: &["msf", "minimum-spanning-tree", "minimum-spanning-forest"],
    summary: "A minimum spanning forest: the edges of least weight that connect each component, arcs taken without their direction",
    value: "weight",
    shape: ResultShape::Forest,
    weighted: true,
    ..Entry::new(run, sizes, checker)
};

fn run(engine: &mut Engine, _: &AlgorithmOptions) -> Result<Output, AlgorithmError> {
    let forest = match fits_u32(engine.vertices()) {
        true => super::run::<u32>(engine)?,
        false => super::run::<u64>(engine)?,
    };
    Ok(Output::new("weight", OutputValues::Edges(forest), false))
}

fn sizes(graph: &GraphDims, _: &AlgorithmOptions) -> ProgramFootprint {
    match fits_u32(graph.batches.vertices()) {
        true => super::sizes::<u32>(),
        false => super::sizes::<u64>(),
    }
}

fn checker(
    graph: &StoredGraph,
    _: &AlgorithmOptions,
) -> Result<Box<dyn ResultChecker>, AlgorithmError> {
    let check = |vertices, arcs: &[(u64, u64, f64)], found: &Vec<ResultEdge>| {
        let row = |&(u, v, weight): &ResultEdge| edge_row(weight, u.min(v), u.max(v));
        let rows: Vec<ForestEdge> = found.iter().map(row).collect();
        check_forest(vertices, arcs, &rows)
    };
    Ok(RecordedResult::boxed(
        graph,
        ResultType::Edges,
        bytes,
        check,
    ))
}
