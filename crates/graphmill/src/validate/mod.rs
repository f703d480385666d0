//! Is a result the same as a reference? By the three rules of LDBC Graphalytics, vertex by vertex, in whatever order the files are.
//! Without a reference, is it right for its graph? By the checker of its algorithm: `against_graph.rs`.
//!
//! Steps of a comparison: both files are read side by side as long as their ids ascend, in constant memory. A file that turns out not to ascend is
//! read again, into leased memory, and sorted; the other still streams. Each pair of rows is compared; a vertex that only one of
//! the two names is a difference of its own kind.

mod against_graph;
pub(crate) mod compare;
mod comparison;
pub(crate) mod id_lookup;
mod merge_join;
#[cfg(test)]
mod tests;
pub(crate) mod verdict;
