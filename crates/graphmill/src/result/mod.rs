//! A result on its way out: to a file, to a directory of parts, or to a list of the highest.
//!
//! Its rows are (vertex, value) in ascending order of ids, or edges in the order of the vertices that hold them, or one row of numbers.
//!
//! Steps of [`write`](write::write): a file aside, block by block as the workers encode them, synced, renamed onto its name. Until then
//! nothing stands under the name; on failure the file aside is removed.

pub(crate) mod block;
mod csv;
pub(crate) mod dataset;
mod encode;
pub(crate) mod exact_sum;
pub(crate) mod format;
mod id_order_window;
mod memory;
mod names;
mod numbers;
mod ordinals;
mod pages;
mod parquet;
mod parquet_columns;
pub(crate) mod rows;
pub(crate) mod sizes;
mod sorted_snappy;
#[cfg(test)]
mod tests;
pub(crate) mod top_k;
pub(crate) mod values;
mod walk;
pub(crate) mod write;
