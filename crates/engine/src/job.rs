//! Operations for the code around a run: the facade and the bundled algorithms. Other programs need none of them.
//!
//! They end the log of calls, share metrics between ranks, fill and hand out rows, and delete checkpoints.

pub use crate::driver::collect::{local_batches, serve, stop_serving};
pub use crate::driver::fill::{fill, is_filled};
pub use crate::driver::fixpoint::adjacency_min_memory;
pub use crate::driver::replay::{
    end_calls, finish_checkpoints, has_published, keep_ended, logged_work, resumed,
};
pub use crate::driver::sample::{max_degree_vertex, sample_degree, sample_mean_weight};
pub use crate::driver::shared_metrics::share_metrics;
use crate::engine::Engine;
pub use crate::engine::{note_convergence, rank};
use crate::error::EngineError;
pub use crate::open::min_memory;
use crate::state::vertex_array::VertexArray;

/// Makes the ranks compare the names of their calls before each call from now on.
///
/// Calls that differ are an error then, at the cost of one more exchange a call. All ranks call it, or none.
pub fn compare_calls(engine: &Engine) {
    engine.common.ranks.compare_calls();
}

/// Frees the memory that passes retain: messages, accumulators, cells of the graph.
///
/// Arrays and sets stay; the next pass allocates and reads again.
pub fn release(engine: &mut Engine) {
    engine.release();
    engine.cache.release();
}

/// Frees the memory of an array that nothing reads any more, after the last pass.
///
/// # Errors
/// The array is of another engine.
pub fn free<T>(engine: &mut Engine, array: VertexArray<T>) -> Result<(), EngineError> {
    engine.common.arrays.free(array.id())
}
