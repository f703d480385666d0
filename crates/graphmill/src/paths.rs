//! Paths of inputs and outputs: patterns of files, and checks that a path can be read or written.

use std::fs::Metadata;
use std::io::{self, ErrorKind};
use std::iter::once;
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
        let whole = || path.to_path_buf();
        if text.contains("://") {
            return Err(Error::Url { path: whole() });
        }
        if !is_pattern(path) || self.disk().exists(path)? {
            return Ok(vec![self.input(path)?]);
        }
        let found = glob::glob(&text).map_err(|_| Error::NoMatch { path: whole() })?;
        let found = found.filter_map(Result::ok);
        let mut found = found.filter(|path| !graphmill_ingest::content_mismatch(path));
        let first = found.next();
        let first = first.ok_or_else(|| Error::NoMatch { path: whole() })?;
        let files = once(first).chain(found);
        files.map(|path| self.input(&path)).collect()
    }

    /// Returns the file or directory of an input; for /dev/stdin and the like the file behind it.
    pub(crate) fn input(&self, path: &Path) -> Result<PathBuf, Error> {
        let is_alias = ["/dev", "/proc"].iter().any(|of| path.starts_with(of));
        self.check_there(path)?;
        let given = path.to_path_buf();
        let input = match is_alias {
            true => std::fs::canonicalize(path).ok(),
            false => Some(given.clone()),
        };
        // If the system reports no type, opening the file reports the error.
        let is_neither = |facts: Metadata| !facts.is_file() && !facts.is_dir();
        let input = input.filter(|input| !std::fs::metadata(input).is_ok_and(is_neither));
        input.ok_or(Error::NotAFile { path: given })
    }

    /// Whether there is anything at `path`, where a link leads too.
    pub(crate) fn check_there(&self, path: &Path) -> Result<(), Error> {
        // Nothing can be learnt about a pipe in /proc but that it is there.
        let is_lost = |path: &Path| match self.disk().stamp(path) {
            Err(StorageError::Path { source, .. }) => source.kind() == ErrorKind::NotFound,
            _ => false,
        };
        if !self.disk().exists(path)? || is_lost(path) {
            let path = path.to_path_buf();
            return Err(Error::NoInput { path });
        }
        Ok(())
    }

    /// Whether there is a directory for `output`.
    pub(crate) fn check_folder(&self, output: &Path) -> Result<(), Error> {
        if let Some(folder) = self.folder_written(output)?
            && !self.disk().is_dir(&folder)?
        {
            let path = output.to_path_buf();
            return Err(Error::NoFolder { path, folder });
        }
        Ok(())
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
        if let Some(folder) = self.folder_written(output)? {
            let path = output.to_path_buf();
            let refuse = |folder, source| Error::NoOutput {
                path,
                folder,
                source,
            };
            self.create_in(&folder, "output", refuse)?;
        }
        Ok(())
    }

    /// Whether the directory that was asked for takes temporary files.
    pub(crate) fn check_tmp(&self) -> Result<(), Error> {
        if let Some(folder) = self.tmp_asked() {
            drop(self.scratch(folder)?);
            if is_in_memory(folder) {
                let directory = folder.to_path_buf();
                return Err(Error::TmpInMemory { directory });
            }
        }
        Ok(())
    }

    /// A directory for temporary files in `folder`.
    pub(crate) fn scratch(&self, folder: &Path) -> Result<WorkDir, Error> {
        self.create_in(folder, "run", |folder, source| Error::NoScratch {
            folder,
            source,
        })
    }

    /// Creates a directory in `folder`; `refuse` returns the error if that cannot be written.
    fn create_in(
        &self,
        folder: &Path,
        name: &'static str,
        refuse: impl FnOnce(PathBuf, io::Error) -> Error,
    ) -> Result<WorkDir, Error> {
        match WorkDir::create(self.disk(), folder, name) {
            Err(StorageError::Path { source, .. }) if !is_of_open_files(&source) => {
                Err(refuse(folder.to_path_buf(), source))
            }
            created => Ok(created?),
        }
    }
}
