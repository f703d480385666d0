//! Paths of inputs and outputs: patterns of files, and checks that a path can be read or written.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use graphmill_storage::{StorageError, Target, WorkDir, is_in_memory, is_of_open_files};

use crate::error::Error;
use crate::machine::resources::{Machine, folder_of};
use crate::result::format::is_folder;

/// The file that makes a directory a stored graph.
pub(crate) const DESCRIPTION: &str = "graph.json";

/// Whether a path stands for the files that match it.
pub(crate) fn is_pattern(path: &Path) -> bool {
    path.to_string_lossy().contains(['*', '?', '['])
}

impl Machine {
    /// What an input stands for: itself, or the files that it matches, in order of names.
    pub(crate) fn inputs(&self, path: &Path) -> Result<Vec<PathBuf>, Error> {
        let text = path.to_string_lossy();
        if text.contains("://") {
            return Err(Error::Url {
                path: path.to_path_buf(),
            });
        }
        if !is_pattern(path) || self.disk().exists(path)? {
            return Ok(vec![self.input(path)?]);
        }
        let none = || Error::NoMatch {
            path: path.to_path_buf(),
        };
        let found = glob::glob(&text).map_err(|_| none())?;
        let found: Vec<PathBuf> = found
            .filter_map(Result::ok)
            .filter(|path| !graphmill_ingest::content_mismatch(path))
            .collect();
        if found.is_empty() {
            return Err(none());
        }
        found.iter().map(|path| self.input(path)).collect()
    }

    /// Returns the file or directory of an input; for /dev/stdin and the like the file behind it.
    pub(crate) fn input(&self, path: &Path) -> Result<PathBuf, Error> {
        let is_alias = ["/dev", "/proc"].iter().any(|of| path.starts_with(of));
        self.check_there(path)?;
        let not_a_file = |path: &Path| Error::NotAFile {
            path: path.to_path_buf(),
        };
        let input = match is_alias {
            true => std::fs::canonicalize(path).map_err(|_| not_a_file(path))?,
            false => path.to_path_buf(),
        };
        // If the system reports no type, opening the file reports the error.
        match std::fs::metadata(&input) {
            Ok(facts) if !facts.is_file() && !facts.is_dir() => Err(not_a_file(path)),
            _ => Ok(input),
        }
    }

    /// Whether there is anything at `path`, where a link leads too.
    pub(crate) fn check_there(&self, path: &Path) -> Result<(), Error> {
        // Nothing can be learnt about a pipe in /proc but that it is there.
        let is_lost = |path: &Path| match self.disk().stamp(path) {
            Err(StorageError::Path { source, .. }) => source.kind() == ErrorKind::NotFound,
            _ => false,
        };
        match !self.disk().exists(path)? || is_lost(path) {
            true => Err(Error::NoInput {
                path: path.to_path_buf(),
            }),
            false => Ok(()),
        }
    }

    /// Whether there is a directory for `output`.
    pub(crate) fn check_folder(&self, output: &Path) -> Result<(), Error> {
        let Some(folder) = self.folder_written(output)? else {
            return Ok(());
        };
        match self.disk().is_dir(&folder)? {
            true => Ok(()),
            false => Err(Error::NoFolder {
                path: output.to_path_buf(),
                folder,
            }),
        }
    }

    /// Whether a directory of parts can be at `output`.
    pub(crate) fn check_output(&self, output: &Path) -> Result<(), Error> {
        self.check_folder(output)?;
        self.check_parts(output)?;
        self.check_writing(output)
    }

    /// Returns the directory in which `output` replaces a file; `None` if it is written in place.
    fn folder_written(&self, output: &Path) -> Result<Option<PathBuf>, Error> {
        if is_folder(output) {
            return Ok(Some(folder_of(output)));
        }
        Ok(match self.disk().target(output)? {
            Target::File(file) => Some(folder_of(&file)),
            Target::Stream => None,
        })
    }

    /// Whether `output` can be written.
    pub(crate) fn check_writing(&self, output: &Path) -> Result<(), Error> {
        let Some(folder) = self.folder_written(output)? else {
            return Ok(());
        };
        match WorkDir::create(self.disk(), &folder, "output") {
            Err(StorageError::Path { source, .. }) if !is_of_open_files(&source) => {
                Err(Error::NoOutput {
                    path: output.to_path_buf(),
                    folder,
                    source,
                })
            }
            tried => Ok(tried.map(drop)?),
        }
    }

    /// Whether the directory that was asked for takes temporary files.
    pub(crate) fn check_tmp(&self) -> Result<(), Error> {
        match self.tmp_asked() {
            Some(folder) => {
                drop(self.scratch(folder)?);
                match is_in_memory(folder) {
                    true => Err(Error::TmpInMemory {
                        directory: folder.to_path_buf(),
                    }),
                    false => Ok(()),
                }
            }
            None => Ok(()),
        }
    }

    /// A directory for temporary files in `folder`.
    pub(crate) fn scratch(&self, folder: &Path) -> Result<WorkDir, Error> {
        match WorkDir::create(self.disk(), folder, "run") {
            Err(StorageError::Path { source, .. }) if !is_of_open_files(&source) => {
                Err(Error::NoScratch {
                    folder: folder.to_path_buf(),
                    source,
                })
            }
            scratch => Ok(scratch?),
        }
    }
}
