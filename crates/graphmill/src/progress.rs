//! How far something is: what the facade tells while it works.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use graphmill_engine::PassMetrics;
use graphmill_ingest::IngestError;

use crate::error::Error;

/// One thing to tell.
#[derive(Debug, Clone, Copy)]
pub enum Progress<'a> {
    /// Work apart from the main work, such as the destination of an import.
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
        /// The counted unit: "bytes", "edges", "arcs", "rows".
        unit: &'static str,
    },
    /// A pass over edges, or of messages, has ended.
    Superstep {
        /// Its number, from 1; a resumed run counts the passes of both runs.
        number: u64,
        /// The passes of the run at most, where that is known.
        most: Option<u64>,
        /// What it did.
        pass: &'a PassMetrics,
    },
}

/// Somebody to tell, from any thread, often.
pub type ProgressFn = Arc<dyn Fn(&Progress<'_>) + Send + Sync>;

/// Returns a function that takes rows of a result as they are written, and reports all of them so far.
pub(crate) fn rows_written(watcher: &ProgressFn, total: u64) -> impl FnMut(u64) + use<> {
    let (watcher, mut done) = (Arc::clone(watcher), 0);
    move |rows| {
        done += rows;
        watcher(&Progress::Part {
            what: "result",
            done,
            total,
            unit: "rows",
        });
    }
}

/// Returns a callback that ignores progress.
pub fn unwatched() -> ProgressFn {
    Arc::new(|_| ())
}

/// The import's progress as ours.
pub(crate) struct ImportReporter<'a> {
    watcher: &'a ProgressFn,
    /// What the first reading counts: bytes of files, edges of a generator.
    reads: &'static str,
    /// Where what was done is kept, once it has ended before its time.
    kept: Mutex<Option<PathBuf>>,
}

impl<'a> ImportReporter<'a> {
    pub(crate) fn new(watcher: &'a ProgressFn, reads: &'static str) -> Self {
        ImportReporter {
            watcher,
            reads,
            kept: Mutex::default(),
        }
    }

    /// Returns the error that an import ended with.
    ///
    /// If the user stopped the import and it can be resumed, the error says so.
    pub(crate) fn ended_with(&self, error: IngestError) -> Error {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let error = Error::from(error);
        match &*kept {
            Some(folder) if error.is_stopped() => Error::InterruptedImport {
                folder: folder.clone(),
            },
            _ => error,
        }
    }
}

impl fmt::Debug for ImportReporter<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ImportProgress").finish_non_exhaustive()
    }
}

impl graphmill_ingest::ImportProgress for ImportReporter<'_> {
    fn update(&self, step: &'static str, done: u64, total: u64) {
        let unit = match step {
            "scan" | "vertices" => self.reads,
            "write" => "arcs",
            "ids: sort" => "ids",
            _ => "edges",
        };
        (self.watcher)(&Progress::Part {
            what: step,
            done,
            total,
            unit,
        });
    }

    fn goes_on(&self, step: &'static str, files: usize) {
        let there = match files {
            0 => format!("at its step \"{step}\""),
            files => format!("{files} column files are complete"),
        };
        let text = format!("resuming the interrupted import: {there}");
        (self.watcher)(&Progress::Note(&text));
    }

    fn keeps_no_more(&self, error: &IngestError) {
        let text = format!("cannot write more checkpoints of the import: {error}");
        (self.watcher)(&Progress::Warning(&text));
    }

    fn keeps_nothing(&self, folder: &Path) {
        (self.watcher)(&Progress::Note(&format!(
            "cannot write checkpoints of the import in {}: another import of the same edges uses it, or its file system has no locks",
            folder.display()
        )));
    }

    fn keeps(&self, folder: &Path) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        *kept = Some(folder.to_path_buf());
        (self.watcher)(&Progress::Note(&format!(
            "checkpoints are beside the graph and in {}; the same command resumes",
            folder.display()
        )));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::CancelToken;
    use crate::import_config::ImportConfig;
    use crate::machine::resources::{Machine, MachineConfig};

    #[test]
    fn import_steps_cover_start_to_end() {
        let folder = tempfile::tempdir().unwrap();
        let machine = Machine::open(&MachineConfig::default(), CancelToken::new()).unwrap();
        let edges = folder.path().join("edges.txt");
        let line = |i: u64| format!("v{} v{}\n", i * i % 30_007, i * 7919 % 30_011);
        let text: String = (0..100_000).map(line).collect();
        machine.disk().write_small(&edges, text.as_bytes()).unwrap();
        let parts = Arc::new(Mutex::new(BTreeMap::new()));
        let told = Arc::clone(&parts);
        let watcher: ProgressFn = Arc::new(move |progress| {
            if let Progress::Part {
                what, done, total, ..
            } = progress
            {
                let mut parts = told.lock().unwrap();
                let (most, all) = parts.entry(what.to_string()).or_insert((0, *total));
                assert_eq!(all, total, "{what}");
                *most = (*done).max(*most);
            }
        });
        let config = ImportConfig::default();
        let graph = folder.path().join("graph");
        machine.import(&[edges], &graph, &config, &watcher).unwrap();
        let parts = parts.lock().unwrap();
        for step in ["ids: collect", "ids: sort", "ids: number"] {
            assert!(parts.contains_key(step), "{step}: {parts:?}");
        }
        for (step, (most, all)) in parts.iter() {
            assert_eq!(most, all, "{step}");
        }
    }
}
