//! The file of a version of a run: its checksum is right, whatever else it says.
//!
//! The first byte of an input says how many vertices a batch has; the rest are the bytes of the file before the checksum.

#![no_main]

use graphmill_fuzz as _;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    if let [span, bytes @ ..] = input {
        graphmill_engine::fuzzing::version(bytes, usize::from(*span));
    }
});
