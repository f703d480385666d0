//! Checks the paths that a run reads and writes before any work.
//!
//! It reports what cannot be read or written at once, and keeps outputs from replacing files that the run needs.

use std::path::{Path, PathBuf};

use graphmill_storage::Target;

use crate::error::Error;
use crate::machine::resources::{Machine, folder_of};
use crate::paths::DESCRIPTION;
use crate::plan::Plan;
use crate::result::format::is_folder;

/// Where a path leads: what does not exist yet is its own place within its directory.
fn place(path: &Path) -> Option<PathBuf> {
    let whole = |path: &Path| std::fs::canonicalize(path).ok();
    whole(path).or_else(|| Some(whole(&folder_of(path))?.join(path.file_name()?)))
}

impl Plan {
    /// Rejects outputs that would replace the input, each other, or a file of a stored graph.
    ///
    /// It also rejects paths that cannot be written.
    pub(crate) fn check_paths(&self, machine: &Machine) -> Result<(), Error> {
        let outputs = [self.output_file(), self.config.metrics.as_deref()];
        for output in outputs.into_iter().flatten() {
            machine.check_folder(output)?;
        }
        self.check_outputs(machine)?;
        self.check_vertex_files(machine)?;
        self.check_checkpoints(machine)?;
        for output in outputs.into_iter().flatten() {
            machine.check_writing(output)?;
        }
        machine.check_tmp()
    }

    /// Refuses a checkpoint directory that lies in the result, the input or a stored graph.
    fn check_checkpoints(&self, machine: &Machine) -> Result<(), Error> {
        let folder = self.config.checkpoints.folder.as_ref();
        let Some((folder, at)) = folder.and_then(|folder| Some((folder, place(folder)?))) else {
            return Ok(());
        };
        let refuse = |what: &str| {
            Err(Error::Checkpoints {
                path: folder.clone(),
                what: what.to_string(),
                todo: "name another directory (--checkpoint-dir)",
            })
        };
        let is_in = |path: &Path| place(path).is_some_and(|path| at.starts_with(path));
        if self.output_file().is_some_and(is_in) {
            return refuse("the result goes there");
        }
        for above in at.ancestors() {
            if machine.disk().exists(&above.join(DESCRIPTION))? {
                return refuse("it is in a stored graph");
            }
        }
        match is_in(&self.config.input) {
            true => refuse("it is in the input"),
            false => Ok(()),
        }
    }

    fn check_outputs(&self, machine: &Machine) -> Result<(), Error> {
        let config = &self.config;
        let outputs = [self.output_file(), config.metrics.as_deref()];
        for output in outputs.into_iter().flatten() {
            let refuse = |what| {
                let path = output.to_path_buf();
                Err(Error::OutputIs { path, what })
            };
            let at = place(output);
            if at.is_some() && at == place(&config.input) {
                return refuse("the input");
            }
            let mut lists = config.import.vertices.iter();
            if at.is_some() && lists.any(|list| place(list) == at) {
                return refuse("the list of vertices");
            }
            if at.is_some() && self.vertex_files().any(|file| place(file) == at) {
                return refuse("a file that an option names");
            }
            if is_folder(output) && Some(output) == self.output_file() {
                // Refuses for itself where more would go than a result.
                machine.check_parts(output)?;
                let within = |path: &Path| {
                    let places = place(path).zip(at.as_ref());
                    places.is_some_and(|(path, at)| path.starts_with(at))
                };
                if self.vertex_files().any(within) {
                    return refuse("a directory that a file of an option is in");
                }
                if within(&config.input) || config.import.vertices.iter().any(|list| within(list)) {
                    return refuse("a directory that the input is in");
                }
                if config.metrics.as_deref().is_some_and(within) {
                    return refuse("a directory that other output is in");
                }
            } else if machine.disk().is_dir(output)? {
                return refuse(
                    "a directory (with a slash at the end, a result goes there as parts)",
                );
            }
            for folder in at.iter().flat_map(|at| at.ancestors().skip(1)) {
                if machine.disk().exists(&folder.join(DESCRIPTION))? {
                    return refuse("inside a stored graph");
                }
            }
            // The next run would take it for edges.
            let folder = at.as_deref().and_then(Path::parent);
            if folder.is_some() && folder == place(&config.input).as_deref() {
                return refuse("in the directory of the input");
            }
        }
        let is_file = |path: &Path| !matches!(machine.disk().target(path), Ok(Target::Stream));
        match outputs {
            [Some(rows), Some(metrics)] if place(rows) == place(metrics) && is_file(rows) => {
                let (path, what) = (metrics.to_path_buf(), "the result as well");
                Err(Error::OutputIs { path, what })
            }
            _ => Ok(()),
        }
    }
}
