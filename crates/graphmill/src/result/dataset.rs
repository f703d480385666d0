//! A result as a directory of parts: each rank writes the rows of its own vertices, and no row goes from rank to rank.
//!
//! 1. [`create`](PartWriter::create): every rank makes a hidden directory beside the place of the result. Ranks that see the same disk take the
//!    one of the first of them; a host with a disk of its own has the parts of its ranks.
//! 2. Each rank writes its [part](PartWriter::part).
//! 3. [`commit`](PartWriter::commit): when all parts are whole and synced, the maker of a directory gives it its name. It replaces an
//!    older result atomically. Until then nothing has the name.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use graphmill_fabric::Fabric;
use graphmill_storage::{DirLock, Disk, LockMode, Owner, StorageError, WorkDir};

use crate::error::Error;
use crate::machine::resources::{Machine, folder_of};
use crate::result::format::ResultFormat;

/// A directory of parts on its way to its name.
pub(crate) struct PartWriter {
    machine: Machine,
    to: PathBuf,
    /// What the parts are.
    pub(crate) format: ResultFormat,
    /// Where this rank writes.
    path: PathBuf,
    /// At the rank that made it.
    scratch: Option<WorkDir>,
    /// At the others.
    hold: Option<DirLock>,
    /// It has its name, or another rank sees to that.
    is_named: bool,
}

impl PartWriter {
    /// A new one for `path`, which ends with a slash. All ranks call it.
    ///
    /// # Errors
    /// The parent directory cannot be written; `path` is not a result; a rank is lost.
    pub(crate) fn create(machine: &Machine, path: &Path) -> Result<PartWriter, Error> {
        let format = ResultFormat::of(path)?;
        let to = machine.check_parts(path)?;
        let disk = machine.disk();
        let scratch = WorkDir::create(disk, &folder_of(&to), "result")?;
        let said = machine.gather(scratch.path().as_os_str().as_bytes())?;
        let path_of = |said: &Vec<u8>| PathBuf::from(OsString::from_vec(said.clone()));
        // The first rank whose directory this one sees: its own at the latest.
        let mut maker = 0;
        while maker < machine.rank() && !disk.exists(&path_of(&said[maker]))? {
            maker += 1;
        }
        let path = path_of(&said[maker]);
        let hold = match maker == machine.rank() {
            true => None,
            false => disk.hold(&path, LockMode::Unlocked, Owner::Own)?,
        };
        // An unused directory is deleted once all ranks have looked for it.
        machine.meet()?;
        Ok(PartWriter {
            path,
            hold,
            scratch: (maker == machine.rank()).then_some(scratch),
            is_named: false,
            machine: machine.clone(),
            to,
            format,
        })
    }

    /// Where this rank writes its part.
    pub(crate) fn part(&self) -> PathBuf {
        let ending = self.format.ending();
        let rank = self.machine.rank();
        self.path.join(format!("{PREFIX}{rank:05}.{ending}"))
    }

    /// Reports to the others that this rank fails.
    ///
    /// The caller does so before the directory is deleted: otherwise they would report it as missing.
    pub(crate) fn give_up(&self, error: &Error) {
        if let Some(fabric) = self.machine.fabric() {
            fabric.fail(&error.to_others());
        }
    }

    /// Gives the directory its name, once all ranks have written their parts.
    ///
    /// This rank wrote `bytes`. Returns the bytes of all ranks.
    ///
    /// # Errors
    /// The directory cannot be renamed; a rank is lost. What has its name is whole.
    pub(crate) fn commit(&mut self, bytes: u64) -> Result<u64, Error> {
        let is_maker = self.scratch.is_some();
        // From here on the directory is its maker's: another rank that ends meanwhile must not remove it.
        self.is_named = !is_maker;
        let said = self.machine.gather(&bytes.to_le_bytes())?;
        let number = |said: Vec<u8>| said.try_into().map_or(0, u64::from_le_bytes);
        let bytes = said.into_iter().map(number).sum();
        if let Some(scratch) = self.scratch.take() {
            // Nothing that came in the meantime is lost.
            self.machine.check_parts(&self.to)?;
            put(&**self.machine.disk(), scratch, &self.to)?;
            self.is_named = true;
        }
        // What has its name is whole, whatever becomes of the others.
        let told = self.machine.meet();
        match is_maker {
            true => Ok(bytes),
            false => told.map(|()| bytes),
        }
    }
}

impl Drop for PartWriter {
    fn drop(&mut self) {
        // It may have its name by now, and another that of this one.
        self.hold = None;
        // The last rank to end removes what earlier ones left.
        if !self.is_named && self.machine.fabric().is_some() {
            let _ = self.machine.disk().remove_dir_all(&self.path);
        }
    }
}

/// What the names of parts begin with; then comes the number of the rank.
const PREFIX: &str = "part-";

/// Whether a file is a part of a result, by its name.
fn is_part(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    let name = name.and_then(|name| name.strip_prefix(PREFIX)?.split_once('.'));
    name.is_some_and(|(number, ending)| {
        let is_number = number.len() >= 5 && number.bytes().all(|byte| byte.is_ascii_digit());
        is_number && ["parquet", "csv", "csv.gz", "tsv", "tsv.gz"].contains(&ending)
    })
}

/// Gives a directory its name; a result that has it goes.
fn put(disk: &dyn Disk, scratch: WorkDir, to: &Path) -> Result<(), StorageError> {
    if !disk.exists(to)? {
        return scratch.rename(to);
    }
    disk.share(scratch.path(), to)?;
    match disk.exchange(scratch.path(), to) {
        // The older one goes with the directory that it is in now.
        Ok(()) => return Ok(()),
        Err(StorageError::Path { source, .. })
            if source.kind() == std::io::ErrorKind::Unsupported => {}
        Err(error) => return Err(error),
    }
    // Two renames, if the file system has no atomic exchange. A crash in between leaves the older result beside `to`.
    let mut name = to.file_name().unwrap_or_default().to_os_string();
    name.push(format!(".{}.replaced", std::process::id()));
    let older = to.with_file_name(name);
    disk.rename(to, &older)?;
    if let Err(error) = scratch.rename(to) {
        let _ = disk.rename(&older, to);
        return Err(error);
    }
    disk.remove_dir_all(&older)
}

impl Machine {
    /// Returns the path of a directory of parts, which holds an older result or nothing.
    ///
    /// Anything else there would be deleted with it.
    ///
    /// # Errors
    /// Something else is there.
    pub(crate) fn check_parts(&self, path: &Path) -> Result<PathBuf, Error> {
        let refuse = |what| {
            let path = path.to_path_buf();
            Err(Error::OutputIs { path, what })
        };
        let Some(name) = path.file_name() else {
            return refuse("no name of a new directory");
        };
        let to = folder_of(path).join(name);
        if !self.disk().exists(&to)? {
            return Ok(to);
        }
        if !self.disk().is_dir(&to)? {
            return refuse("a file, not a directory for the parts of a result");
        }
        // What a link leads to is replaced, not the link.
        let to = std::fs::canonicalize(&to).unwrap_or(to);
        if is_mounted(&to) {
            return refuse("where a file system is mounted, and cannot be replaced");
        }
        match self.disk().list(&to)?.iter().all(|path| is_part(path)) {
            true => Ok(to),
            false => refuse("a directory with more in it than the parts of a result"),
        }
    }
}

/// Whether a directory is the root of a file system.
fn is_mounted(folder: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let device = |path: &Path| std::fs::metadata(path).ok().map(|facts| facts.dev());
    device(folder) != device(&folder.join(".."))
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::result::format::is_folder;

    #[test]
    fn part_names_are_recognised() {
        for name in ["part-00000.parquet", "part-00012.csv", "part-100000.csv.gz"] {
            assert!(is_part(Path::new(name)), "{name}");
        }
        for name in [
            "part-0.csv",
            "part-00000.zip",
            "part-0000a.csv",
            "ranks.csv",
            ".part-00000.csv",
        ] {
            assert!(!is_part(Path::new(name)), "{name}");
        }
    }

    #[test]
    fn trailing_slash_asks_for_a_directory() {
        assert!(is_folder(Path::new("ranks/")) && is_folder(Path::new("a/ranks.csv/")));
        assert!(!is_folder(Path::new("ranks.csv")) && !is_folder(Path::new("a/ranks")));
    }
}
