//! Where the graph imported from a file of edges is kept: in `FILE.graphmill/`, beside the file.
//!
//! One folder an import, named by what went into it: `STAMP-OPTIONS`, hashes of the files (names, sizes, times of change) and of the
//! import's options with the format of stored graphs. So a file that changed, or other options, never meet an old graph; graphs of older stamps are removed.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use graphmill_storage::{Disk, StorageError};

/// The place of one import.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cache {
    /// Folder of all graphs made from this input.
    pub(crate) folder: PathBuf,
    stamp: String,
    options: String,
}

impl Cache {
    /// Where the graph of `files` (all of `input`) imported with `options` belongs.
    ///
    /// # Errors
    /// A file's size and time cannot be read.
    pub(crate) fn of(input: &Path, files: &[PathBuf], options: &str) -> std::io::Result<Cache> {
        let mut stamp = Hash::new();
        for file in files {
            // Names and times are all that is asked of the file system here: the bytes are the Disk's.
            let facts = std::fs::metadata(file)?;
            let changed = facts
                .modified()?
                .duration_since(UNIX_EPOCH)
                .unwrap_or_default();
            stamp.add(file.as_os_str().as_encoded_bytes());
            stamp.add(&facts.len().to_le_bytes());
            stamp.add(&changed.as_nanos().to_le_bytes());
        }
        let mut hash = Hash::new();
        hash.add(env!("CARGO_PKG_VERSION").as_bytes());
        hash.add(&graphmill_graph::FORMAT.to_le_bytes());
        hash.add(options.as_bytes());
        let mut name = input
            .file_name()
            .map_or_else(|| OsString::from("input"), OsString::from);
        name.push(".graphmill");
        Ok(Cache {
            folder: input.with_file_name(name),
            stamp: stamp.text(),
            options: hash.text(),
        })
    }

    /// The stored graph's folder.
    pub(crate) fn graph(&self) -> PathBuf {
        self.folder.join(format!("{}-{}", self.stamp, self.options))
    }

    /// Removes the graphs of older stamps.
    ///
    /// # Errors
    /// The folder cannot be listed, or a graph not be removed.
    pub(crate) fn remove_stale(&self, disk: &dyn Disk) -> Result<(), StorageError> {
        for graph in disk.list(&self.folder)? {
            let name = graph
                .file_name()
                .and_then(|name| name.to_str())
                .unwrap_or_default();
            let is_ours = name.len() == 33
                && name
                    .bytes()
                    .all(|byte| byte == b'-' || byte.is_ascii_hexdigit());
            if is_ours && !name.starts_with(&self.stamp) {
                disk.remove_dir_all(&graph)?;
            }
        }
        Ok(())
    }
}

/// 64-bit FNV-1a: names a file's state, guards nothing.
struct Hash(u64);

impl Hash {
    fn new() -> Hash {
        Hash(0xcbf2_9ce4_8422_2325)
    }

    fn add(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        // The end of a part counts, so that moving a byte to the next part changes the hash.
        self.0 = (self.0 ^ 0x100).wrapping_mul(0x0000_0100_0000_01b3);
    }

    fn text(&self) -> String {
        format!("{:016x}", self.0)
    }
}
