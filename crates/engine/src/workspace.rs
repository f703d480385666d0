//! Buffers that passes of one kind of program keep from one to the next.

use std::any::{Any, TypeId};

use crate::frontier::active_set::ActiveSetPool;

/// Takes the buffers of passes of programs `P`, or new ones.
///
/// A program of another kind needs its own buffers; the buffers of the last kind are freed first.
pub(crate) fn take_workspace<P: 'static, W: Default + Send + 'static>(
    workspaces: &mut Option<(TypeId, Box<dyn Any + Send>)>,
    active: &ActiveSetPool,
) -> Box<W> {
    let kept = match workspaces.take() {
        Some((of, workspace)) if of == TypeId::of::<P>() => workspace.downcast().ok(),
        _ => {
            active.trim();
            None
        }
    };
    kept.unwrap_or_default()
}
