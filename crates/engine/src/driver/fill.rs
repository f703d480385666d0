//! [`fill`]: rows whose values come from elsewhere, such as a file.

use graphmill_raw::Element;

use crate::driver_log::call_name;
use crate::engine::Engine;
use crate::error::EngineError;
use crate::frontier::active_set::ActiveSet;
use crate::program::edge::Activate;
use crate::state::vertex_array::VertexArray;

/// Sets rows of an array from chunks of (index, value), and returns the vertices in them.
///
/// Without an array it returns the vertices alone.
///
/// `next` puts a chunk into the list, in ascending order of index and no index twice. It returns false with the last chunk. It gets the
/// vertices of the chunks before; a rank has its own vertices of them. Every rank passes the same rows, in chunks of any number.
///
/// # Errors
/// `next` fails; an index is not of this graph; disk, budget or a rank failed.
pub fn fill<T: Element, E: From<EngineError>>(
    engine: &mut Engine,
    array: Option<VertexArray<T>>,
    mut next: impl FnMut(&ActiveSet, &mut Vec<(u64, T)>) -> Result<bool, E>,
) -> Result<ActiveSet, E> {
    let name = call_name::<T>("fill");
    let ((), [filled]) = engine.logged_call(0, &name, |engine| {
        let (mut filled, mut chunk, mut is_more) = (engine.active.empty(), Vec::new(), true);
        loop {
            chunk.clear();
            if is_more {
                is_more = next(&filled, &mut chunk)?;
            }
            let mut touched = engine.active.empty();
            touched.insert_each(chunk.iter().map(|row| row.0))?;
            if let Some(array) = array {
                engine.vertices_pass(array.write(), Some(&touched), None, |v, row: &mut T| {
                    if let Ok(at) = chunk.binary_search_by_key(&v, |row| row.0) {
                        *row = chunk[at].1;
                    }
                    ((), Activate::No)
                })?;
            }
            filled.union(&touched)?;
            let more = engine.common.ranks.total([u64::from(is_more)])?;
            if more == [0] {
                return Ok::<_, E>(((), [filled]));
            }
        }
    })?;
    Ok(filled)
}

/// True if `v` is of this rank and of a chunk before, as [`fill`] passes them.
#[must_use]
pub fn is_filled(filled: &ActiveSet, v: u64) -> bool {
    filled.holds(v)
}
