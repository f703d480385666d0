//! The strips of a batch that wait to be merged.

use std::collections::BTreeMap;

use crate::exec::column::kernel::accumulators::Accumulators;

/// The strips of a batch that are folded but not yet merged.
pub(crate) struct StripMerge<A> {
    pub(crate) strips: usize,
    pub(crate) next: usize,
    /// An edge was folded into one of them.
    pub(crate) folded: bool,
    pub(crate) total: Option<Accumulators<A>>,
    pub(crate) waiting: BTreeMap<usize, Accumulators<A>>,
}
