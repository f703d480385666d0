//! How the registry names it, and what it asks of its options.

use graphmill_engine::{ComponentsMethod, Engine, PregelMode, ProgramFootprint};
use graphmill_graph::{GraphDims, StoredGraph};

use super::check::{bytes, check_components};
use super::{WccMethod, component_sizes};
use crate::entry::Entry;
use crate::option::OptionSpec;
use crate::options::{AlgorithmError, AlgorithmOptions};
use crate::output::{Output, OutputValues};
use crate::recorded::{RecordedResult, ResultChecker, ResultType};
use crate::vertex_index::fits_u32;

/// Its entry.
pub(crate) const ENTRY: Entry = Entry {
    name: "wcc",
    aliases: &["cc", "components", "connected-components"],
    summary: "Which vertices hang together: the smallest vertex of each one's weakly connected component",
    value: "component",
    options: &[OptionSpec::value(
        [
            "method",
            "auto|afforest|union-find|labels|pregel-pull|pregel-push",
        ],
        Some("auto"),
        "Unite vertices, over lists of edges in memory (afforest) or over edges as they are stored; or spread labels, in passes or as a vertex program of a graph imported with --undirected, whose vertices fetch messages (pull), or put them into mailboxes (push)",
    )],
    check_options: |settings| method(settings).map(drop),
    check_direction: |settings, is_directed, graph| match method(settings) {
        Ok(WccMethod::Pregel(_)) if is_directed => Err(AlgorithmError::Directed {
            graph: graph.to_path_buf(),
        }),
        _ => Ok(()),
    },
    few_passes: |settings| match method(settings) {
        Ok(WccMethod::Unite(ComponentsMethod::Auto)) => Some(1),
        _ => None,
    },
    group_sizes: Some(group_sizes),
    ..Entry::new(run, sizes, checker)
};

fn method(settings: &AlgorithmOptions) -> Result<WccMethod, AlgorithmError> {
    Ok(match settings.value("method", "auto") {
        "auto" => WccMethod::Unite(ComponentsMethod::Auto),
        "afforest" => WccMethod::Unite(ComponentsMethod::Lists),
        "union-find" => WccMethod::Unite(ComponentsMethod::Cells),
        "labels" => WccMethod::Labels,
        "pregel-pull" => WccMethod::Pregel(PregelMode::Pull),
        "pregel-push" => WccMethod::Pregel(PregelMode::Push),
        other => {
            let wanted = "auto, afforest, union-find, labels, pregel-pull or pregel-push";
            return Err(AlgorithmError::value("method", other, wanted));
        }
    })
}

fn run(engine: &mut Engine, settings: &AlgorithmOptions) -> Result<Output, AlgorithmError> {
    let method = method(settings)?;
    let values = if fits_u32(engine.vertices()) {
        OutputValues::Ordinal32(super::run(engine, method)?)
    } else {
        OutputValues::Ordinal64(super::run(engine, method)?)
    };
    Ok(Output::new("component", values, false))
}

/// Counts the members of each component.
pub(crate) fn group_sizes(
    engine: &mut Engine,
    components: &Output,
) -> Result<Output, AlgorithmError> {
    let values = match components.values {
        OutputValues::Ordinal32(labels) => OutputValues::U32(component_sizes(engine, labels)?),
        OutputValues::Ordinal64(labels) => OutputValues::U64(component_sizes(engine, labels)?),
        // Components are named by vertices.
        values => values,
    };
    Ok(Output::new("size", values, false))
}

fn sizes(graph: &GraphDims, settings: &AlgorithmOptions) -> ProgramFootprint {
    let method = method(settings).unwrap_or(WccMethod::Labels);
    if fits_u32(graph.batches.vertices()) {
        super::sizes::<u32>(method, graph.order)
    } else {
        super::sizes::<u64>(method, graph.order)
    }
}

fn checker(
    graph: &StoredGraph,
    _: &AlgorithmOptions,
) -> Result<Box<dyn ResultChecker>, AlgorithmError> {
    let checker = |vertices, arcs: &[_], labels: &Vec<_>| check_components(vertices, arcs, labels);
    let takes = ResultType::Vertices;
    Ok(RecordedResult::boxed(graph, takes, bytes, checker))
}
