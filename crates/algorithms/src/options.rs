//! The options of a run as algorithms read them, and what can be wrong with them.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use graphmill_engine::{EngineError, VertexArray};

use crate::foreign_program::ForeignProgram;
use crate::option::{OptionKind, OptionSpec};

/// The options of a run.
#[derive(Debug, Clone, Default)]
pub struct AlgorithmOptions {
    /// Values and flags (`"true"`) by name.
    pub values: BTreeMap<String, String>,
    /// Indices of the vertices that options name, by the option's name.
    pub vertices: BTreeMap<String, Vec<u64>>,
    /// Sets of vertices by the option's name: the rows of their members are 1, all others 0.
    pub sets: BTreeMap<String, VertexArray<u8>>,
    /// Values of vertices by the option's name; [`OptionKind::missing`] where a file has none.
    pub vectors: BTreeMap<String, VertexArray<f64>>,
    /// A program in another language, which the run is of.
    pub program: Option<Arc<ForeignProgram>>,
    /// The same sets and values for a checker, by ordinal of id.
    pub lists: BTreeMap<String, Arc<[f64]>>,
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
        /// Its description.
        help: &'static str,
    },
    /// An option has a value it cannot have.
    #[error("--{name} {value}: give {wanted}")]
    Value {
        /// The option.
        name: &'static str,
        /// Its value.
        value: String,
        /// The possible values.
        wanted: &'static str,
    },
    /// A run of a program in another language has none, or its result was to be checked.
    #[error("a program of your own runs from Python alone, and its results cannot be checked here")]
    NoProgram,
    /// A function of a program in another language failed.
    #[error(
        "a function of the program raised an exception; call it in Python to see which: programs are classes, and their functions take any object with the columns"
    )]
    ProgramFailed,
    /// A column of a program in another language cannot be its result.
    #[error("the column {column:?} of the program {problem}")]
    Column {
        /// The column.
        column: String,
        /// Its mistake.
        problem: &'static str,
    },
    /// The data of a method do not fit in memory.
    #[error(
        "cannot use --method {method}: {what} do not fit in memory; {}leave the choice to the program",
        more(*least)
    )]
    NoRoom {
        /// The method.
        method: &'static str,
        /// The data that do not fit.
        what: &'static str,
        /// A budget in which it does, in bytes, where that is known.
        least: Option<u64>,
    },
    /// A vertex program sends along arcs only, and a component does not depend on their direction.
    #[error(
        "cannot use this --method on {}: its vertices send along the arcs only, and the graph is directed; give --undirected where its edges are read, or use another method",
        graph.display()
    )]
    Directed {
        /// The stored graph, or the files of its edges.
        graph: PathBuf,
    },
    /// An algorithm needs a vertex for each edge, and the graph has none.
    #[error(
        "cannot run {algorithm} on {}: its edges have no vertices of their own; import them again (graphmill import INPUT --edge-vertices -o GRAPH), or run {algorithm} on the files of edges",
        graph.display()
    )]
    NoEdgeVertices {
        /// The name of the algorithm.
        algorithm: &'static str,
        /// The stored graph.
        graph: PathBuf,
    },
    /// A graph has a vertex for each edge, and the algorithm takes vertices of edges for others.
    #[error(
        "cannot run {algorithm} on {}: it was imported with --edge-vertices, for bp; import the edges again without it",
        graph.display()
    )]
    EdgeVertices {
        /// The name of the algorithm.
        algorithm: &'static str,
        /// The stored graph.
        graph: PathBuf,
    },
    /// A graph has weights that the algorithm cannot take.
    #[error(
        "cannot compute shortest paths on {}: its weights are from {weights}, and must be 0 or more; import the edges again with other weights, or without (--weights none) to count arcs",
        graph.display()
    )]
    NegativeWeights {
        /// The stored graph.
        graph: PathBuf,
        /// From the least to the greatest.
        weights: String,
    },
}

impl AlgorithmError {
    pub(crate) fn value(name: &'static str, value: &str, wanted: &'static str) -> Self {
        AlgorithmError::Value {
            name,
            value: value.to_owned(),
            wanted,
        }
    }
}

fn more(least: Option<u64>) -> String {
    match least {
        Some(bytes) => format!("give at least {}M (--memory), or ", bytes.div_ceil(1 << 20)),
        None => String::new(),
    }
}

pub(crate) const PRECISION: OptionSpec = OptionSpec::value(
    ["precision", "f64|f32"],
    Some("f64"),
    "The floating-point type of the result and of all sums",
);

pub(crate) const SOURCE: OptionSpec = OptionSpec {
    name: "source",
    value_name: "ID",
    kind: OptionKind::Vertex,
    required: true,
    default: None,
    help: "The vertex to start from",
};

impl AlgorithmOptions {
    pub(crate) fn value<'s>(&'s self, name: &str, default: &'s str) -> &'s str {
        self.values.get(name).map_or(default, String::as_str)
    }

    pub(crate) fn number<T: std::str::FromStr>(
        &self,
        name: &'static str,
        default: &str,
        wanted: &'static str,
        fits: impl Fn(&T) -> bool,
    ) -> Result<T, AlgorithmError> {
        let value = self.value(name, default);
        let bad = || AlgorithmError::value(name, value, wanted);
        value.parse().ok().filter(fits).ok_or_else(bad)
    }

    /// A number above 0, if the option is given.
    pub(crate) fn positive(
        &self,
        name: &'static str,
        wanted: &'static str,
    ) -> Result<Option<f64>, AlgorithmError> {
        let is_positive = |number: &f64| *number > 0.0 && number.is_finite();
        let number = |_| self.number(name, "", wanted, is_positive);
        self.values.get(name).map(number).transpose()
    }

    /// True if a flag was given.
    pub(crate) fn flag(&self, name: &str) -> bool {
        self.value(name, "false") == "true"
    }

    pub(crate) fn source(&self) -> Result<u64, AlgorithmError> {
        let source = self.vertices.get(SOURCE.name).and_then(|of| of.first());
        source.copied().ok_or(AlgorithmError::Missing {
            name: SOURCE.name,
            help: SOURCE.help,
        })
    }

    /// True if sums are of 32 bits.
    pub(crate) fn single(&self) -> Result<bool, AlgorithmError> {
        match self.value(PRECISION.name, "f64") {
            "f32" => Ok(true),
            "f64" => Ok(false),
            other => Err(AlgorithmError::value(PRECISION.name, other, "f64 or f32")),
        }
    }
}
