//! The rows of a folder of parts, one part after the other in order of their names.
//!
//! Whatever begins with a dot or an underscore is none: Spark, Dask and others keep there what they have to say about the parts.

use std::path::{Path, PathBuf};

use super::rows::{Reading, Rows};
use super::{ValidateError, rows_of};
use crate::machine::Machine;

pub(super) fn rows(
    machine: &Machine,
    path: &Path,
    reading: Reading,
) -> Result<Rows, ValidateError> {
    let is_part = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().as_encoded_bytes();
        !name.starts_with(b".") && !name.starts_with(b"_")
    };
    let mut parts = machine.disk().list(path)?;
    parts.retain(is_part);
    if parts.is_empty() {
        return Err(ValidateError::NoParts {
            path: path.to_path_buf(),
        });
    }
    // One part at a time is open.
    let machine = machine.clone();
    let rows = move |part: PathBuf| -> Rows {
        match rows_of(&machine, &part, reading) {
            Ok(rows) => rows,
            Err(error) => Box::new(std::iter::once(Err(error))),
        }
    };
    Ok(Box::new(parts.into_iter().flat_map(rows)))
}
