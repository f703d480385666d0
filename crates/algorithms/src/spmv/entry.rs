//! How the registry names it, and what it asks of its options.

use graphmill_engine::{Engine, ProgramFootprint};
use graphmill_graph::{GraphDims, StoredGraph};

use super::check::{bytes, check_product};
use crate::entry::Entry;
use crate::option::{OptionKind, OptionSpec};
use crate::options::{AlgorithmError, AlgorithmOptions};
use crate::output::{Output, OutputValues};
use crate::recorded::{RecordedResult, ResultChecker, ResultType};

const VECTOR: OptionSpec = OptionSpec {
    name: "vector",
    value_name: "FILE|ones",
    kind: OptionKind::VertexValues,
    required: false,
    default: Some("ones"),
    help: "The vector: a file of values (CSV or Parquet with the columns vertex and a value, such as a result; a vertex without a row has 0), or all ones",
};

/// Its entry.
pub(crate) const ENTRY: Entry = Entry {
    name: "spmv",
    aliases: &["mxv"],
    summary: "The matrix of the graph times a vector: for each vertex the sum over its arcs of the weight times the value at the other end",
    value: "value",
    weighted: true,
    options: &[
        VECTOR,
        OptionSpec::flag(
            "transpose",
            "Sum over the arcs that enter a vertex, not over the arcs that leave it",
        ),
    ],
    passes_max: |_| Some(1),
    ..Entry::new(run, sizes, checker)
};

fn run(engine: &mut Engine, settings: &AlgorithmOptions) -> Result<Output, AlgorithmError> {
    let vector = match settings.vectors.get(VECTOR.name) {
        Some(vector) => *vector,
        None => super::ones(engine)?,
    };
    let product = super::run(engine, vector, settings.flag("transpose"))?;
    Ok(Output::new("value", OutputValues::F64(product), false))
}

fn sizes(_: &GraphDims, settings: &AlgorithmOptions) -> ProgramFootprint {
    super::sizes(settings.flag("transpose"))
}

fn checker(
    graph: &StoredGraph,
    settings: &AlgorithmOptions,
) -> Result<Box<dyn ResultChecker>, AlgorithmError> {
    let vector = settings.lists.get(VECTOR.name).cloned();
    let is_transposed = settings.flag("transpose");
    let check = move |vertices, arcs: &[(u64, u64, f64)], found: &Vec<f64>| {
        // All ones without a list.
        let value = |v: u64| match &vector {
            Some(vector) => vector.get(v as usize).copied().unwrap_or(0.0),
            None => 1.0,
        };
        check_product(vertices, arcs, value, is_transposed, found)
    };
    Ok(RecordedResult::boxed(
        graph,
        ResultType::Doubles,
        bytes,
        check,
    ))
}
