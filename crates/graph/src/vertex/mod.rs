//! Tables over the vertices: degrees and fan-out in pages of 4096 vertices, ids, and their order.
//!
//! Pages of vertices without edges are not stored, so a table costs what the graph's edges cost, not what its range of
//! indices is. Accesses are checked against the bytes: a page that makes no sense yields `None`, never a wrong place.

pub(crate) mod degree_pages;
pub(crate) mod fanout_pages;
pub(crate) mod ids;
pub(crate) mod order;
pub(crate) mod packed;
pub(crate) mod page_index;
