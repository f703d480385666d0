//! How the registry names it, and what it asks of its options.

use graphmill_engine::{Engine, Sizes};
use graphmill_graph::{Measure, StoredGraph};

use super::judge::{bytes, judge_depths, judge_parents};
use super::{run as run_depths, run_parents, sizes as sizes_depths, sizes_parents};
use crate::case::{Case, Judge, Takes};
use crate::entry::{Entry, Output, Values};
use crate::index::fits_u32;
use crate::option::{OptionKind, OptionSpec};
use crate::settings::{AlgorithmError, SOURCE, Settings};

/// Its entry.
pub(crate) const ENTRY: Entry = Entry {
    name: "bfs",
    aliases: &["breadth-first-search"],
    summary: "How many arcs away each vertex is from a source",
    value: "depth",
    weighted: false,
    options: &[
        SOURCE,
        OptionSpec {
            name: "parents",
            value_name: "",
            kind: OptionKind::Flag,
            required: false,
            default: None,
            help: "Give parents in the search tree instead of depths; of several the one with the smallest id",
        },
    ],
    check: |_| Ok(()),
    run,
    passes_max: |_| None,
    group_sizes: None,
    sizes,
    judge,
};

fn run(engine: &mut Engine, settings: &Settings) -> Result<Output, AlgorithmError> {
    let source = settings.source()?;
    if !settings.flag("parents") {
        let values = Values::U32(run_depths(engine, source)?);
        return Ok(Output {
            column: "depth",
            values,
            nullable: true,
        });
    }
    let values = if fits_u32(engine.vertices()) {
        Values::Vertex32(run_parents(engine, source)?)
    } else {
        Values::Vertex64(run_parents(engine, source)?)
    };
    Ok(Output {
        column: "parent",
        values,
        nullable: true,
    })
}

fn sizes(graph: &Measure, settings: &Settings) -> Sizes {
    match settings.flag("parents") {
        false => sizes_depths(),
        true if fits_u32(graph.batches.vertices()) => sizes_parents::<u32>(graph.order),
        true => sizes_parents::<u64>(graph.order),
    }
}

fn judge(graph: &StoredGraph, settings: &Settings) -> Result<Box<dyn Judge>, AlgorithmError> {
    let source = settings.source()?;
    if settings.flag("parents") {
        let judge = move |vertices, arcs: &[_], parents: &[_]| {
            judge_parents(vertices, arcs, source, parents)
        };
        return Ok(Box::new(Case::new(graph, Takes::Vertices, bytes, judge)));
    }
    let judge =
        move |vertices, arcs: &[_], depths: &[_]| judge_depths(vertices, arcs, source, depths);
    Ok(Box::new(Case::new(graph, Takes::Integers, bytes, judge)))
}
