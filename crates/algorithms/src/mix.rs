//! Bijective mixes: numbers in an order that looks random, and is the same for ever.

/// Mixes the bits of a number: the last steps of SplitMix64.
///
/// Two numbers never give the same one.
#[inline(always)]
pub(crate) fn mixed(number: u64) -> u64 {
    let number = (number ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ number >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ number >> 31
}

/// Returns the number that [`mixed`] makes this one of.
#[inline(always)]
pub(crate) fn unmixed(number: u64) -> u64 {
    let number = (number ^ number >> 31 ^ number >> 62).wrapping_mul(0x3196_42b2_d24d_8ec3);
    let number = (number ^ number >> 27 ^ number >> 54).wrapping_mul(0x96de_1b17_3f11_9089);
    number ^ number >> 30 ^ number >> 60
}

/// The same for 32 bits: the last steps of MurmurHash3.
#[inline(always)]
pub(crate) fn mixed_32(number: u32) -> u32 {
    let number = (number ^ number >> 16).wrapping_mul(0x85eb_ca6b);
    let number = (number ^ number >> 13).wrapping_mul(0xc2b2_ae35);
    number ^ number >> 16
}

/// Returns the number that [`mixed_32`] makes this one of.
#[inline(always)]
pub(crate) fn unmixed_32(number: u32) -> u32 {
    let number = (number ^ number >> 16).wrapping_mul(0x7ed1_b41d);
    let number = (number ^ number >> 13 ^ number >> 26).wrapping_mul(0xa5cb_9243);
    number ^ number >> 16
}
