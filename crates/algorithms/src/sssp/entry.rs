//! How the registry names it, and what it asks of its options.

use graphmill_engine::{Engine, Sizes};
use graphmill_graph::{Measure, StoredGraph};

use super::check_weights;
use super::judge::{bytes, judge_distances};
use crate::case::{Case, Judge, Takes};
use crate::registry::{Entry, Output, Values};
use crate::settings::{AlgorithmError, PRECISION, SOURCE, Settings};

/// Its entry.
pub(crate) const ENTRY: Entry = Entry {
    name: "sssp",
    summary: "How far away each vertex is from a source, by the weights of arcs",
    value: "distance",
    weighted: true,
    options: &[SOURCE, PRECISION],
    check: |settings| settings.single().map(drop),
    run,
    sizes,
    judge,
};

fn run(engine: &mut Engine, settings: &Settings) -> Result<Output, AlgorithmError> {
    let source = settings.source()?;
    let values = if settings.single()? {
        Values::F32(super::run(engine, source)?)
    } else {
        Values::F64(super::run(engine, source)?)
    };
    Ok(Output {
        column: "distance",
        values,
        nullable: true,
    })
}

fn sizes(_: &Measure, settings: &Settings) -> Sizes {
    if settings.single().unwrap_or(false) {
        super::sizes::<f32>()
    } else {
        super::sizes::<f64>()
    }
}

fn judge(graph: &StoredGraph, settings: &Settings) -> Result<Box<dyn Judge>, AlgorithmError> {
    check_weights(graph)?;
    let source = settings.source()?;
    if settings.single()? {
        let judge = move |vertices, arcs: &[_], distances: &[_]| {
            judge_distances::<f32>(vertices, arcs, source, distances)
        };
        return Ok(Box::new(Case::new(
            graph,
            Takes::Singles,
            bytes::<f32>,
            judge,
        )));
    }
    let judge = move |vertices, arcs: &[_], distances: &[_]| {
        judge_distances::<f64>(vertices, arcs, source, distances)
    };
    Ok(Box::new(Case::new(
        graph,
        Takes::Doubles,
        bytes::<f64>,
        judge,
    )))
}
