//! All algorithms by name. The command, its help and the checks of results read this list.
//!
//! A new algorithm is one file with its entry, its `pub mod` in `lib.rs`, and the `use` and the entry here.

use crate::entry::Entry;
use crate::{bfs, bp, cdlp, conductance, mis, mst, pagerank, scc, spmv, sssp, wcc};

/// All algorithms, in alphabetical order.
pub fn registry() -> &'static [Entry] {
    const ALL: &[Entry] = &[
        bfs::entry::ENTRY,
        bp::entry::ENTRY,
        cdlp::entry::ENTRY,
        conductance::entry::ENTRY,
        mis::entry::ENTRY,
        mst::entry::ENTRY,
        pagerank::entry::ENTRY,
        scc::entry::ENTRY,
        spmv::entry::ENTRY,
        sssp::entry::ENTRY,
        wcc::entry::ENTRY,
    ];
    ALL
}
