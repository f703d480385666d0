//! How the registry names it, and what it asks of its options.

use graphmill_engine::{Engine, Sizes, Unite};
use graphmill_graph::{Measure, StoredGraph};

use super::Method;
use super::judge::{bytes, judge_components};
use crate::case::{Case, Judge, Takes};
use crate::entry::{Entry, Output, Values};
use crate::index::fits_u32;
use crate::option::{OptionKind, OptionSpec};
use crate::settings::{AlgorithmError, Settings};

/// Its entry.
pub(crate) const ENTRY: Entry = Entry {
    name: "wcc",
    aliases: &["cc", "components", "connected-components"],
    summary: "Which vertices hang together: the smallest vertex of each one's weakly connected component",
    value: "component",
    weighted: false,
    options: &[OptionSpec {
        name: "method",
        value_name: "auto|afforest|union-find|labels",
        kind: OptionKind::Value,
        required: false,
        default: Some("auto"),
        help: "Unite vertices, over lists of edges in memory (afforest) or over edges as they are stored; or spread labels",
    }],
    check: |settings| method(settings).map(drop),
    run,
    passes_max: |_| None,
    group_sizes: Some(group_sizes),
    sizes,
    judge,
};

fn method(settings: &Settings) -> Result<Method, AlgorithmError> {
    Ok(match settings.value("method", "auto") {
        "auto" => Method::Unite(Unite::Auto),
        "afforest" => Method::Unite(Unite::Lists),
        "union-find" => Method::Unite(Unite::Cells),
        "labels" => Method::Labels,
        other => {
            return Err(AlgorithmError::Value {
                name: "method",
                value: other.to_owned(),
                wanted: "auto, afforest, union-find or labels",
            });
        }
    })
}

fn run(engine: &mut Engine, settings: &Settings) -> Result<Output, AlgorithmError> {
    let method = method(settings)?;
    let values = if fits_u32(engine.vertices()) {
        Values::Vertex32(super::run(engine, method)?)
    } else {
        Values::Vertex64(super::run(engine, method)?)
    };
    Ok(Output {
        column: "component",
        values,
        nullable: false,
    })
}

fn group_sizes(engine: &mut Engine, components: &Output) -> Result<Output, AlgorithmError> {
    let values = match components.values {
        Values::Vertex32(labels) => Values::U32(super::component_sizes(engine, labels)?),
        Values::Vertex64(labels) => Values::U64(super::component_sizes(engine, labels)?),
        // Components are named by vertices.
        values => values,
    };
    Ok(Output {
        column: "size",
        values,
        nullable: false,
    })
}

fn sizes(graph: &Measure, settings: &Settings) -> Sizes {
    let method = method(settings).unwrap_or(Method::Labels);
    if fits_u32(graph.batches.vertices()) {
        super::sizes::<u32>(method, graph.order)
    } else {
        super::sizes::<u64>(method, graph.order)
    }
}

fn judge(graph: &StoredGraph, _: &Settings) -> Result<Box<dyn Judge>, AlgorithmError> {
    let judge = |vertices, arcs: &[_], labels: &[_]| judge_components(vertices, arcs, labels);
    Ok(Box::new(Case::new(graph, Takes::Vertices, bytes, judge)))
}
