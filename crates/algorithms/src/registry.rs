//! All algorithms by name: what feeds the command, Python and the benchmarks. A new algorithm is a file, an entry beside it and a
//! line here.

use crate::entry::Entry;
use crate::{bfs, pagerank, sssp, wcc};

/// All algorithms, in alphabetical order.
pub fn registry() -> &'static [Entry] {
    const ALL: &[Entry] = &[
        bfs::entry::ENTRY,
        pagerank::entry::ENTRY,
        sssp::entry::ENTRY,
        wcc::entry::ENTRY,
    ];
    ALL
}
