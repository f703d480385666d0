//! Chunks: of any bytes no panic, and no number out of range.
//!
//! An input is the bits of a local number, the vertices of the last batch, the source batch, then the chunk. There are four batches.

#![no_main]

use graphmill_fuzz as _;
use graphmill_graph::{Batches, ChunkView};
use libfuzzer_sys::fuzz_target;

/// The number of batches.
const BATCHES: u64 = 4;

fuzz_target!(|input: &[u8]| {
    let [bits, last, source_batch, bytes @ ..] = input else {
        return;
    };
    let span = 1u64 << (bits % 21);
    let last = (u64::from(*last) << (bits % 21) >> 8).clamp(1, span);
    let cuts = (0..BATCHES).map(|batch| batch * span);
    let end = (BATCHES - 1) * span + last;
    let batches = Batches::new(cuts.chain([end]).collect()).expect("batches of one size");
    let source_batch = usize::from(*source_batch);
    let Ok(view) = ChunkView::parse(bytes, &batches, source_batch) else {
        return;
    };
    let (mut arcs, mut next_batch) = (0, 0);
    for run in view.runs() {
        assert!(run.destination_batch >= next_batch && run.first == arcs && run.count > 0);
        next_batch = run.destination_batch + 1;
        view.for_each(&run, |source, destination, position| {
            assert_eq!(position, arcs);
            assert!(u64::from(source) < batches.span(source_batch));
            assert!(u64::from(destination) < batches.span(run.destination_batch));
            arcs += 1;
        });
    }
    assert_eq!(arcs, view.edges());
    assert!(arcs <= bytes.len());
});
