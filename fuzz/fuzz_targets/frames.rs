//! A frame of another rank: the first byte of an input says whether messages take four bytes or eight; the rest is the frame.

#![no_main]

use graphmill_fuzz as _;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    if let [long, bytes @ ..] = input {
        graphmill_engine::fuzzing::frame(bytes, if long & 1 == 0 { 4 } else { 8 });
    }
});
