//! The output of distribution: a bucket of arcs for each column file.

use graphmill_storage::Buffer;

use crate::external::bucket_file::BucketFile;

/// The temporary file of all arcs.
pub(super) const ARCS: &str = "arcs";

/// The buckets of all column files.
pub(super) struct Buckets {
    pub(super) bucket_file: BucketFile,
    /// Per bucket the arcs of its parts.
    pub(super) counts: Buffer,
}
