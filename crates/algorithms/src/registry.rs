//! All algorithms by name: what feeds the command, Python and the benchmarks. A new algorithm is one file and one entry.

use graphmill_engine::{Engine, Sizes, VertexArray};
use graphmill_graph::{Measure, StoredGraph};

use crate::case::{Case, Judge, Takes};
use crate::index::fits_u32;
use crate::settings::{AlgorithmError, PRECISION, SOURCE, Settings};
use crate::{bfs, pagerank, sssp, wcc};

/// One algorithm.
#[derive(Debug)]
pub struct Entry {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it computes, in a line.
    pub summary: &'static str,
    /// Name of the result's column.
    pub value: &'static str,
    /// Whether the weights of arcs count; where there are none each arc counts 1.
    pub weighted: bool,
    /// What can be set.
    pub options: &'static [OptionSpec],
    /// Runs it.
    pub run: fn(&mut Engine, &Settings) -> Result<Output, AlgorithmError>,
    /// What its passes hold for each vertex of such a graph, by the values of the options alone.
    pub sizes: fn(&Measure, &Settings) -> Sizes,
    /// Judges a result of a run on this graph with these options.
    pub judge: JudgeOf,
}

/// Makes a judge of results on a graph, of runs with these options.
pub type JudgeOf = fn(&StoredGraph, &Settings) -> Result<Box<dyn Judge>, AlgorithmError>;

/// What an option's value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OptionKind {
    /// A number or a word.
    Value,
    /// Given or not.
    Flag,
    /// The id of a vertex.
    Vertex,
    /// Ids of vertices, separated by commas; a backslash takes the character after it as a part of the id.
    Vertices,
}

/// One option of an algorithm.
#[derive(Debug)]
pub struct OptionSpec {
    /// Its name, without dashes.
    pub name: &'static str,
    /// What stands for its value in a help text.
    pub value_name: &'static str,
    /// What its value is.
    pub kind: OptionKind,
    /// Whether the algorithm cannot run without it.
    pub required: bool,
    /// Its value when it is not given, if there is one.
    pub default: Option<&'static str>,
    /// What it does, in a line.
    pub help: &'static str,
}

/// The result of a run: one value a vertex. Where `nullable`, infinity or the greatest integer says that there is none.
#[derive(Debug, Clone, Copy)]
pub struct Output {
    /// Name of the result's column.
    pub column: &'static str,
    /// Where the values are.
    pub values: Values,
    /// Whether a vertex may have no value.
    pub nullable: bool,
}

/// The array that holds a result.
#[derive(Debug, Clone, Copy)]
pub enum Values {
    /// Floating-point numbers of 32 bits.
    F32(VertexArray<f32>),
    /// Floating-point numbers of 64 bits.
    F64(VertexArray<f64>),
    /// Integers.
    U32(VertexArray<u32>),
    /// Integers.
    U64(VertexArray<u64>),
    /// Indices of vertices.
    Vertex32(VertexArray<u32>),
    /// Indices of vertices.
    Vertex64(VertexArray<u64>),
}

/// All algorithms, in alphabetical order.
pub fn registry() -> &'static [Entry] {
    &[
        Entry {
            name: "bfs",
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
            run: run_bfs,
            sizes: sizes_bfs,
            judge: judge_bfs,
        },
        Entry {
            name: "pagerank",
            summary: "How important each vertex is: the share of time that a random walk spends there",
            value: "pagerank",
            weighted: false,
            options: &[
                OptionSpec {
                    name: "iterations",
                    value_name: "N",
                    kind: OptionKind::Value,
                    required: false,
                    default: Some("20"),
                    help: "Iterations, or how many at the most with --tolerance",
                },
                OptionSpec {
                    name: "damping",
                    value_name: "D",
                    kind: OptionKind::Value,
                    required: false,
                    default: Some("0.85"),
                    help: "The chance to follow an arc rather than to jump",
                },
                OptionSpec {
                    name: "tolerance",
                    value_name: "X",
                    kind: OptionKind::Value,
                    required: false,
                    default: None,
                    help: "Stop when all ranks together change by less than this in an iteration",
                },
                OptionSpec {
                    name: "dangling",
                    value_name: "redistribute|drop",
                    kind: OptionKind::Value,
                    required: false,
                    default: Some("redistribute"),
                    help: "What becomes of the rank of vertices without outgoing arcs",
                },
                OptionSpec {
                    name: "sources",
                    value_name: "ID,...",
                    kind: OptionKind::Vertices,
                    required: false,
                    default: None,
                    help: "Personalised: jumps lead to these vertices only; within an id, put a backslash before a comma or backslash",
                },
                PRECISION,
            ],
            run: run_pagerank,
            sizes: sizes_pagerank,
            judge: judge_pagerank,
        },
        Entry {
            name: "sssp",
            summary: "How far away each vertex is from a source, by the weights of arcs",
            value: "distance",
            weighted: true,
            options: &[SOURCE, PRECISION],
            run: run_sssp,
            sizes: sizes_sssp,
            judge: judge_sssp,
        },
        Entry {
            name: "wcc",
            summary: "Which vertices hang together: the smallest vertex of each one's weakly connected component",
            value: "component",
            weighted: false,
            options: &[],
            run: run_wcc,
            sizes: sizes_wcc,
            judge: judge_wcc,
        },
    ]
}

fn run_bfs(engine: &mut Engine, settings: &Settings) -> Result<Output, AlgorithmError> {
    let source = settings.source()?;
    if !settings.flag("parents") {
        let values = Values::U32(bfs::run(engine, source)?);
        return Ok(Output {
            column: "depth",
            values,
            nullable: true,
        });
    }
    let values = if fits_u32(engine.vertices()) {
        Values::Vertex32(bfs::run_parents(engine, source)?)
    } else {
        Values::Vertex64(bfs::run_parents(engine, source)?)
    };
    Ok(Output {
        column: "parent",
        values,
        nullable: true,
    })
}

fn sizes_bfs(graph: &Measure, settings: &Settings) -> Sizes {
    match settings.flag("parents") {
        false => bfs::sizes(),
        true if fits_u32(graph.batches.vertices()) => bfs::sizes_parents::<u32>(),
        true => bfs::sizes_parents::<u64>(),
    }
}

fn judge_bfs(graph: &StoredGraph, settings: &Settings) -> Result<Box<dyn Judge>, AlgorithmError> {
    use bfs::judge::{bytes, judge_depths, judge_parents};
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

fn pagerank_options(settings: &Settings) -> Result<pagerank::Options, AlgorithmError> {
    let tolerance = match settings.values.get("tolerance") {
        Some(_) => Some(settings.number("tolerance", "", "a number above 0", |x: &f64| *x > 0.0)?),
        None => None,
    };
    let dangling = match settings.value("dangling", "redistribute") {
        "redistribute" => pagerank::Dangling::Redistribute,
        "drop" => pagerank::Dangling::Drop,
        other => {
            let (name, value) = ("dangling", other.to_owned());
            return Err(AlgorithmError::Value {
                name,
                value,
                wanted: "redistribute or drop",
            });
        }
    };
    let mut sources = settings
        .vertices
        .get("sources")
        .cloned()
        .unwrap_or_default();
    sources.sort_unstable();
    sources.dedup();
    Ok(pagerank::Options {
        damping: settings.number("damping", "0.85", "a number from 0 to 1", |d: &f64| {
            (0.0..=1.0).contains(d)
        })?,
        iterations: settings.number("iterations", "20", "a whole number", |_: &u32| true)?,
        tolerance,
        dangling,
        sources,
    })
}

fn run_pagerank(engine: &mut Engine, settings: &Settings) -> Result<Output, AlgorithmError> {
    let options = pagerank_options(settings)?;
    let values = if settings.single()? {
        Values::F32(pagerank::run(engine, &options)?)
    } else {
        Values::F64(pagerank::run(engine, &options)?)
    };
    Ok(Output {
        column: "pagerank",
        values,
        nullable: false,
    })
}

fn sizes_pagerank(_: &Measure, settings: &Settings) -> Sizes {
    if settings.single().unwrap_or(false) {
        pagerank::sizes::<f32>()
    } else {
        pagerank::sizes::<f64>()
    }
}

fn judge_pagerank(
    graph: &StoredGraph,
    settings: &Settings,
) -> Result<Box<dyn Judge>, AlgorithmError> {
    use pagerank::judge::{Ending, Equation, Rounding, bytes, judge_run};
    let options = pagerank_options(settings)?;
    let (takes, rounding) = if settings.single()? {
        (Takes::Singles, Rounding::F32)
    } else {
        (Takes::Doubles, Rounding::F64)
    };
    let judge = move |vertices, arcs: &[_], ranks: &[_]| {
        let equation = Equation {
            damping: options.damping,
            dangling: options.dangling,
            sources: &options.sources,
        };
        let ending = Ending {
            iterations: options.iterations,
            tolerance: options.tolerance,
        };
        judge_run(vertices, arcs, equation, ending, ranks, rounding)
    };
    Ok(Box::new(Case::new(graph, takes, bytes, judge)))
}

fn run_sssp(engine: &mut Engine, settings: &Settings) -> Result<Output, AlgorithmError> {
    let source = settings.source()?;
    let values = if settings.single()? {
        Values::F32(sssp::run(engine, source)?)
    } else {
        Values::F64(sssp::run(engine, source)?)
    };
    Ok(Output {
        column: "distance",
        values,
        nullable: true,
    })
}

fn sizes_sssp(_: &Measure, settings: &Settings) -> Sizes {
    if settings.single().unwrap_or(false) {
        sssp::sizes::<f32>()
    } else {
        sssp::sizes::<f64>()
    }
}

fn judge_sssp(graph: &StoredGraph, settings: &Settings) -> Result<Box<dyn Judge>, AlgorithmError> {
    use sssp::judge::{bytes, judge_distances};
    sssp::check_weights(graph)?;
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

fn run_wcc(engine: &mut Engine, _: &Settings) -> Result<Output, AlgorithmError> {
    let values = if fits_u32(engine.vertices()) {
        Values::Vertex32(wcc::run(engine)?)
    } else {
        Values::Vertex64(wcc::run(engine)?)
    };
    Ok(Output {
        column: "component",
        values,
        nullable: false,
    })
}

fn sizes_wcc(graph: &Measure, _: &Settings) -> Sizes {
    if fits_u32(graph.batches.vertices()) {
        wcc::sizes::<u32>()
    } else {
        wcc::sizes::<u64>()
    }
}

fn judge_wcc(graph: &StoredGraph, _: &Settings) -> Result<Box<dyn Judge>, AlgorithmError> {
    use wcc::judge::{bytes, judge_components};
    let judge = |vertices, arcs: &[_], labels: &[_]| judge_components(vertices, arcs, labels);
    Ok(Box::new(Case::new(graph, Takes::Vertices, bytes, judge)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_that_several_algorithms_have_is_of_one_kind() {
        let all: Vec<_> = registry().iter().flat_map(|entry| entry.options).collect();
        for (one, other) in all
            .iter()
            .flat_map(|one| all.iter().map(move |other| (one, other)))
        {
            assert!(
                one.name != other.name || one.kind == other.kind,
                "{one:?}, {other:?}"
            );
        }
    }
}
