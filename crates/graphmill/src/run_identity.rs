//! The identity of a run: only the same run resumes from its checkpoints.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

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
