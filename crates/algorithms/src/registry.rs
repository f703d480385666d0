//! All algorithms by name: what feeds the command, Python and the benchmarks. A new algorithm is one file and one entry.

use std::collections::BTreeMap;
use std::path::PathBuf;

use graphmill_engine::{Engine, EngineError, VertexArray};

use crate::index::fits_u32;
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
}

/// What an option's value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OptionKind {
    /// A number or a word.
    Value,
    /// Given or not.
    Flag,
    /// The id of a vertex.
    Vertex,
    /// Ids of vertices, separated by commas.
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

/// The options of a run.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// Values and flags (`"true"`) by name.
    pub values: BTreeMap<String, String>,
    /// Indices of the vertices that options name, by the option's name.
    pub vertices: BTreeMap<String, Vec<u64>>,
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

/// Why an algorithm did not run to its end.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AlgorithmError {
    /// The engine.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// An option is missing.
    #[error("--{name} is missing: {help}")]
    Missing {
        /// The option.
        name: &'static str,
        /// What it does.
        help: &'static str,
    },
    /// An option has a value it cannot have.
    #[error("--{name} {value}: give {wanted}")]
    Value {
        /// The option.
        name: &'static str,
        /// Its value.
        value: String,
        /// What it can be.
        wanted: &'static str,
    },
    /// A graph has weights that the algorithm cannot take.
    #[error(
        "{}: its weights are from {weights}, and shortest paths take weights of 0 or more: import the edges again with other weights, or without (--weights none) to count arcs",
        graph.display()
    )]
    NegativeWeights {
        /// The stored graph.
        graph: PathBuf,
        /// From the least to the greatest.
        weights: String,
    },
}

const PRECISION: OptionSpec = OptionSpec {
    name: "precision",
    value_name: "f64|f32",
    kind: OptionKind::Value,
    required: false,
    default: Some("f64"),
    help: "The floating-point type of the result and of all sums",
};

const SOURCE: OptionSpec = OptionSpec {
    name: "source",
    value_name: "ID",
    kind: OptionKind::Vertex,
    required: true,
    default: None,
    help: "The vertex to start from",
};

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
                    help: "Personalised: jumps lead to these vertices only",
                },
                PRECISION,
            ],
            run: run_pagerank,
        },
        Entry {
            name: "sssp",
            summary: "How far away each vertex is from a source, by the weights of arcs",
            value: "distance",
            weighted: true,
            options: &[SOURCE, PRECISION],
            run: run_sssp,
        },
        Entry {
            name: "wcc",
            summary: "Which vertices hang together: the smallest vertex of each one's weakly connected component",
            value: "component",
            weighted: false,
            options: &[],
            run: run_wcc,
        },
    ]
}

impl Settings {
    fn value<'s>(&'s self, name: &str, default: &'s str) -> &'s str {
        self.values.get(name).map_or(default, String::as_str)
    }
    fn number<T: std::str::FromStr>(
        &self,
        name: &'static str,
        default: &str,
        wanted: &'static str,
        fits: impl Fn(&T) -> bool,
    ) -> Result<T, AlgorithmError> {
        let value = self.value(name, default);
        let bad = || AlgorithmError::Value {
            name,
            value: value.to_owned(),
            wanted,
        };
        value.parse().ok().filter(fits).ok_or_else(bad)
    }
    fn source(&self) -> Result<u64, AlgorithmError> {
        let source = self
            .vertices
            .get(SOURCE.name)
            .and_then(|vertices| vertices.first());
        source.copied().ok_or(AlgorithmError::Missing {
            name: SOURCE.name,
            help: SOURCE.help,
        })
    }
    fn single(&self) -> Result<bool, AlgorithmError> {
        match self.value(PRECISION.name, "f64") {
            "f32" => Ok(true),
            "f64" => Ok(false),
            other => Err(AlgorithmError::Value {
                name: PRECISION.name,
                value: other.to_owned(),
                wanted: "f64 or f32",
            }),
        }
    }
}

fn run_bfs(engine: &mut Engine, settings: &Settings) -> Result<Output, AlgorithmError> {
    let source = settings.source()?;
    if settings
        .values
        .get("parents")
        .is_none_or(|flag| flag != "true")
    {
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

fn run_pagerank(engine: &mut Engine, settings: &Settings) -> Result<Output, AlgorithmError> {
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
    let options = pagerank::Options {
        damping: settings.number("damping", "0.85", "a number from 0 to 1", |d: &f64| {
            (0.0..=1.0).contains(d)
        })?,
        iterations: settings.number("iterations", "20", "a whole number", |_: &u32| true)?,
        tolerance,
        dangling,
        sources,
    };
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
