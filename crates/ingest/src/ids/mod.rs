//! Maps ids to vertex indices, by a bitmap in memory or a dictionary on disk.

pub(crate) mod bitmap;
pub(crate) mod external;
pub(crate) mod index_map;
pub(crate) mod order_window;
