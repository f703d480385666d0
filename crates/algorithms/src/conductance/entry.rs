//! How the registry names it, and what it asks of its options.

use graphmill_engine::{Engine, ProgramFootprint};
use graphmill_graph::{GraphDims, StoredGraph};

use super::COLUMNS;
use super::check::{bytes, check_row};
use crate::check::Weigh;
use crate::entry::Entry;
use crate::option::{OptionKind, OptionSpec};
use crate::options::{AlgorithmError, AlgorithmOptions};
use crate::output::{Output, OutputValues, ResultShape};
use crate::recorded::{FromArc, RecordedResult, ResultChecker, ResultNumbers, ResultType};

const SET: OptionSpec = OptionSpec {
    name: "set",
    value_name: "FILE|odd|even",
    kind: OptionKind::VertexSet,
    required: true,
    default: None,
    help: "The set: a file of ids (CSV or Parquet with a column vertex, or an id in each line); or the vertices with odd or even integer ids",
};

/// Its entry.
pub(crate) const ENTRY: Entry = Entry {
    name: "conductance",
    summary: "How well a set of vertices is separated: the arcs between the set and the rest, over the arcs that leave the vertices of the side with fewer",
    value: COLUMNS[3],
    shape: ResultShape::Numbers(&COLUMNS),
    options: &[
        SET,
        OptionSpec::flag(
            "weighted",
            "Go by the weights of arcs instead of counting each arc as 1",
        ),
    ],
    passes_max: |_| Some(1),
    few_passes: |settings| (!settings.flag("weighted")).then_some(1),
    ..Entry::new(run, sizes, checker)
};

fn run(engine: &mut Engine, settings: &AlgorithmOptions) -> Result<Output, AlgorithmError> {
    let set = settings.sets.get(SET.name).copied();
    let set = set.ok_or(AlgorithmError::Missing {
        name: SET.name,
        help: SET.help,
    })?;
    let row = match settings.flag("weighted") {
        true => super::run::<f64>(engine, set)?,
        false => super::run::<u64>(engine, set)?,
    };
    Ok(Output::new(COLUMNS[3], OutputValues::Numbers(row), false))
}

fn sizes(_: &GraphDims, settings: &AlgorithmOptions) -> ProgramFootprint {
    match settings.flag("weighted") {
        true => super::sizes::<f64>(),
        false => super::sizes::<u64>(),
    }
}

fn checker(
    graph: &StoredGraph,
    settings: &AlgorithmOptions,
) -> Result<Box<dyn ResultChecker>, AlgorithmError> {
    Ok(match settings.flag("weighted") {
        true => case::<(u64, u64, f64)>(graph, settings),
        false => case::<(u64, u64)>(graph, settings),
    })
}

/// A result before the checker, with arcs of one kind.
fn case<A: Weigh + FromArc + 'static>(
    graph: &StoredGraph,
    settings: &AlgorithmOptions,
) -> Box<dyn ResultChecker> {
    let members = settings.lists.get(SET.name).cloned().unwrap_or_default();
    let is_directed = graph.directed();
    let check = move |_, arcs: &[A], found: &ResultNumbers| {
        check_row(
            arcs,
            |v| members.get(v as usize) == Some(&1.0),
            is_directed,
            found,
        )
    };
    RecordedResult::boxed(graph, ResultType::Numbers, bytes, check)
}
