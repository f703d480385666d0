//! What an import has kept: the first byte of an input says of what kind a record is, two more how long it is; then it comes, without a
//! checksum, and the temporary file that it tells of.

#![no_main]

use graphmill_fuzz as _;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    if let [kind, low, high, rest @ ..] = input {
        let length = usize::from(u16::from_le_bytes([*low, *high])).min(rest.len());
        let (record, file) = rest.split_at(length);
        graphmill_ingest::fuzzing::record(kind % 6, record, file);
    }
});
