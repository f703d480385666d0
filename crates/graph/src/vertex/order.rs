//! The order of vertices: which index the vertex of each id has, where that is not the order of ids.
//!
//! The *rank* of a vertex is its place in ascending order of ids. The file `order` has the ranks in order of index, then the
//! indices in order of rank: two permutations, each the inverse of the other. Without the file, ranks are indices.

use serde::{Deserialize, Serialize};

use crate::file::page::{FileId, FileKind, FileSide};

/// The order in which vertices get their indices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "lowercase")]
pub enum Order {
    /// Ascending ids: the rank of a vertex is its index.
    #[default]
    Id,
    /// Descending out-degree, of equal ones ascending ids, dealt over the batches.
    Degree,
}

pub(crate) const ORDER: FileId = FileId::new(FileSide::Forward, FileKind::Order, 0);

/// Returns the bytes of an entry of either list of a graph of `vertices` vertices.
pub(crate) fn entry_bytes(vertices: u64) -> u64 {
    if vertices <= 1 << 32 { 4 } else { 8 }
}

/// Bytes of both lists; none when there are too many vertices for any file.
pub(crate) fn payload_bytes(vertices: u64) -> Option<u64> {
    vertices.checked_mul(2 * entry_bytes(vertices))
}
