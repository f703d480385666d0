//! The dictionary of ids that memory cannot hold: text ids, and integers too sparse for a bitmap.
//!
//! Ids are byte strings here; integers are written most significant byte first, so that the order of the bytes is theirs.
//!
//! 1. *Occurrences*: each end of each edge, an id and its position in the input (twice the edge's number, plus one for
//!    the destination), goes to the bucket between two splitters that its id falls in. Splitters come from a sample, and
//!    each has a bucket for itself, so that an id however frequent never stops a bucket from becoming smaller.
//! 2. *Leaves*: a bucket that fits memory is sorted by id; the ids that differ, in order, are its part of the
//!    dictionary. A larger one is split again by splitters of its own; one of a single id is streamed. For each occurrence
//!    its sorted run and its rank there go to the bucket of its position.
//! 3. *Order*: leaves are put in the order of their ids, which gives each the index of its first id.
//! 4. *Join*: a bucket of positions is a run of edges of the input: with all their indices in place it becomes a piece of
//!    a new edge file, in which edges join indices.
//!
//! The buckets depend on samples and memory; the result does not.

pub(crate) mod context;
pub(crate) mod dictionary;
mod occurrences;
mod positions;
mod sorted_run;
pub(crate) mod splitters;
