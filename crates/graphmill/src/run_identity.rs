//! The identity of a run: only the same run resumes from its checkpoints.

use std::collections::BTreeMap;

use graphmill_engine::EngineOptions;
use graphmill_fabric::Fabric;
use graphmill_graph::StoredGraph;
use serde::{Deserialize, Serialize};

use crate::machine::resources::Machine;

/// The format of the checkpoints.
const FORMAT: u32 = 5;

/// The name of a program of one's own in its checkpoints.
///
/// Only a run of the same name and options resumes from them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramName {
    /// Its name, with a version that changes when the program makes other calls.
    pub name: String,
    /// What it decides by, such as a number of rounds: values by name.
    pub options: BTreeMap<String, String>,
}

impl ProgramName {
    /// A program without options.
    pub fn new(name: impl Into<String>) -> ProgramName {
        ProgramName {
            name: name.into(),
            options: BTreeMap::new(),
        }
    }

    /// The same with one option more.
    #[must_use]
    pub fn option(mut self, name: impl Into<String>, value: impl ToString) -> ProgramName {
        self.options.insert(name.into(), value.to_string());
        self
    }
}

/// What tells one run from another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RunIdentity {
    pub(crate) format: u32,
    pub(crate) program: String,
    pub(crate) graph: String,
    pub(crate) algorithm: String,
    pub(crate) options: BTreeMap<String, String>,
    pub(crate) ranks: usize,
    /// What decides which rank has which vertices, of several.
    pub(crate) alpha: Option<u64>,
    pub(crate) trials: u32,
}

impl RunIdentity {
    /// A run of an algorithm without options, once.
    pub(crate) fn new(
        algorithm: &str,
        graph: &StoredGraph,
        machine: &Machine,
        engine: &EngineOptions,
    ) -> RunIdentity {
        let ranks = machine.fabric().map_or(1, |fabric| fabric.ranks());
        RunIdentity {
            format: FORMAT,
            program: format!("graphmill {}", env!("CARGO_PKG_VERSION")),
            graph: format!("{:016x}-{}", graph.graph_id(), graph.meta().checksum()),
            algorithm: algorithm.to_string(),
            options: BTreeMap::new(),
            ranks,
            alpha: engine.alpha.filter(|_| ranks > 1),
            trials: 1,
        }
    }

    /// A run of a program of one's own, which may have the name of an algorithm.
    pub(crate) fn of_program(
        program: &ProgramName,
        graph: &StoredGraph,
        machine: &Machine,
        engine: &EngineOptions,
    ) -> RunIdentity {
        RunIdentity {
            options: program.options.clone(),
            ..RunIdentity::new(&format!("program {}", program.name), graph, machine, engine)
        }
    }

    /// Returns how another run differs; `None` if it is the same.
    pub(crate) fn other(&self, there: &RunIdentity) -> Option<String> {
        let differs = |what: &str, mine: &str, theirs: &str| {
            (mine != theirs).then(|| format!("{what} {theirs}, not {mine}"))
        };
        let numbers = |what: &str, mine: usize, theirs: usize| {
            differs(what, &mine.to_string(), &theirs.to_string())
        };
        let usual = || "as usual".to_string();
        let option = |name: &String| {
            let value = |of: &RunIdentity| of.options.get(name).cloned().unwrap_or_else(usual);
            differs(&format!("--{name}"), &value(self), &value(there))
        };
        let alpha = |of: &RunIdentity| of.alpha.map_or_else(usual, |alpha| alpha.to_string());
        let names = self.options.keys().chain(there.options.keys());
        numbers("format", self.format as usize, there.format as usize)
            .or_else(|| differs("program", &self.program, &there.program))
            .or_else(|| differs("algorithm", &self.algorithm, &there.algorithm))
            .or_else(|| differs("graph", &self.graph, &there.graph))
            .or_else(|| names.map(option).find(Option::is_some).flatten())
            .or_else(|| numbers("ranks", self.ranks, there.ranks))
            .or_else(|| differs("--alpha", &alpha(self), &alpha(there)))
            .or_else(|| numbers("trials", self.trials as usize, there.trials as usize))
    }
}
