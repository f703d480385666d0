//! Tables over the vertices: degrees, fan-out, ids and their order.

pub(crate) mod ids;
pub(crate) mod order;
pub(crate) mod pages;
