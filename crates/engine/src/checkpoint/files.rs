//! The names of the files of a checkpoint.

use std::path::Path;

use graphmill_storage::final_name;

pub(crate) const PREFIX: &str = "checkpoint-";

pub(crate) const ROWS: &str = "rows";

/// True if a file has the name of a part of a checkpoint, perhaps a temporary one.
#[must_use]
pub fn is_checkpoint_dir(path: &Path) -> bool {
    name_of(path)
        .map(final_name)
        .is_some_and(|name| name == ROWS || number_of(Path::new(name)).is_some())
}

/// True if a file has the name of a checkpoint.
#[must_use]
pub fn is_checkpoint_file(path: &Path) -> bool {
    number_of(path).is_some()
}

/// Returns the number in the name of a checkpoint's file.
pub(crate) fn number_of(path: &Path) -> Option<u64> {
    let name = name_of(path)?;
    let number = name.strip_prefix(PREFIX)?.parse().ok()?;
    (name == file_name(number)).then_some(number)
}

/// Returns the name of the checkpoint with a number.
pub(crate) fn file_name(number: u64) -> String {
    format!("{PREFIX}{number:020}")
}

pub(crate) fn name_of(path: &Path) -> Option<&str> {
    path.file_name()?.to_str()
}
