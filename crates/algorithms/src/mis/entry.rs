//! How the registry names it, and what it asks of its options.

use graphmill_engine::{Engine, ProgramFootprint};
use graphmill_graph::{GraphDims, StoredGraph};

use super::Priority;
use super::check::{bytes, check_set};
use crate::entry::Entry;
use crate::option::OptionSpec;
use crate::options::{AlgorithmError, AlgorithmOptions};
use crate::output::{Output, OutputValues};
use crate::recorded::{RecordedResult, ResultChecker, ResultType};

/// Its entry.
pub(crate) const ENTRY: Entry = Entry {
    name: "mis",
    aliases: &["independent-set", "maximal-independent-set"],
    summary: "A maximal independent set, which has no two neighbours and cannot grow: 1 for its vertices, 0 for the others",
    value: "selected",
    options: &[
        OptionSpec::value(
            ["priority", "hash|id"],
            Some("hash"),
            "The order in which vertices are taken into the set, unless a neighbour is in it: by a hash of the id's position and --seed, in few rounds; or by id",
        ),
        OptionSpec::value(
            ["seed", "NUMBER"],
            Some("0"),
            "Another number gives another order of the hash, and another set",
        ),
    ],
    check_options: |settings| priority(settings).map(drop),
    ..Entry::new(run, sizes, checker)
};

fn priority(settings: &AlgorithmOptions) -> Result<Priority, AlgorithmError> {
    let is_any = |_: &u64| true;
    let seed = settings.number("seed", "0", "a whole number from 0 to 2^64 - 1", is_any)?;
    match settings.value("priority", "hash") {
        "hash" => Ok(Priority::Hash(seed)),
        "id" => Ok(Priority::Id),
        other => Err(AlgorithmError::value("priority", other, "hash or id")),
    }
}

fn run(engine: &mut Engine, settings: &AlgorithmOptions) -> Result<Output, AlgorithmError> {
    let selected = super::run(engine, priority(settings)?)?;
    let values = OutputValues::U32(selected);
    Ok(Output::new("selected", values, false))
}

fn sizes(_: &GraphDims, _: &AlgorithmOptions) -> ProgramFootprint {
    super::sizes()
}

fn checker(
    graph: &StoredGraph,
    settings: &AlgorithmOptions,
) -> Result<Box<dyn ResultChecker>, AlgorithmError> {
    let priority = priority(settings)?;
    let checker = move |vertices, arcs: &[_], selected: &Vec<_>| {
        check_set(vertices, arcs, priority, selected)
    };
    let takes = ResultType::Integers;
    Ok(RecordedResult::boxed(graph, takes, bytes, checker))
}
