//! How the registry names it, and what it asks of its options.

use graphmill_engine::{Engine, Sizes};
use graphmill_graph::{Measure, StoredGraph};

use super::judge::{bytes, judge_components};
use crate::case::{Case, Judge, Takes};
use crate::index::fits_u32;
use crate::registry::{Entry, Output, Values};
use crate::settings::{AlgorithmError, Settings};

/// Its entry.
pub(crate) const ENTRY: Entry = Entry {
    name: "wcc",
    summary: "Which vertices hang together: the smallest vertex of each one's weakly connected component",
    value: "component",
    weighted: false,
    options: &[],
    check: |_| Ok(()),
    run,
    sizes,
    judge,
};

fn run(engine: &mut Engine, _: &Settings) -> Result<Output, AlgorithmError> {
    let values = if fits_u32(engine.vertices()) {
        Values::Vertex32(super::run(engine)?)
    } else {
        Values::Vertex64(super::run(engine)?)
    };
    Ok(Output {
        column: "component",
        values,
        nullable: false,
    })
}

fn sizes(graph: &Measure, _: &Settings) -> Sizes {
    if fits_u32(graph.batches.vertices()) {
        super::sizes::<u32>()
    } else {
        super::sizes::<u64>()
    }
}

fn judge(graph: &StoredGraph, _: &Settings) -> Result<Box<dyn Judge>, AlgorithmError> {
    let judge = |vertices, arcs: &[_], labels: &[_]| judge_components(vertices, arcs, labels);
    Ok(Box::new(Case::new(graph, Takes::Vertices, bytes, judge)))
}
