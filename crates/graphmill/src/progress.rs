//! How far something is: what the facade tells while it works.

use std::fmt;
use std::sync::Arc;

use graphmill_engine::Superstep;

/// One thing to tell.
#[derive(Debug, Clone, Copy)]
pub enum Progress<'a> {
    /// What is done beside the work itself, such as where edges are imported to.
    Note(&'a str),
    /// Something a user should know, asked for progress or not: the result may be another than was meant.
    Warning(&'a str),
    /// Of `total` units of a part of the work, `done` are done.
    Part {
        /// Which part.
        what: &'a str,
        /// Units that are done.
        done: u64,
        /// Units there are.
        total: u64,
        /// What is counted: "bytes", "edges", "arcs", "rows".
        unit: &'static str,
    },
    /// A pass has ended.
    Superstep {
        /// Its number, from 1.
        number: u64,
        /// What it did.
        pass: &'a Superstep,
    },
}

/// Somebody to tell, from any thread, often.
pub type Watcher = Arc<dyn Fn(&Progress<'_>) + Send + Sync>;

/// Nobody.
pub fn unwatched() -> Watcher {
    Arc::new(|_| ())
}

/// The import's progress as ours.
pub(crate) struct ImportProgress<'a> {
    pub(crate) watcher: &'a Watcher,
    /// What the first reading counts: bytes of files, edges of a generator.
    pub(crate) reads: &'static str,
}

impl fmt::Debug for ImportProgress<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ImportProgress").finish_non_exhaustive()
    }
}

impl graphmill_ingest::Progress for ImportProgress<'_> {
    fn update(&self, step: &'static str, done: u64, total: u64) {
        let unit = match step {
            "scan" | "vertices" => self.reads,
            "write" => "arcs",
            _ => "edges",
        };
        (self.watcher)(&Progress::Part {
            what: step,
            done,
            total,
            unit,
        });
    }
}
