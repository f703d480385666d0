//! The format of a message run: messages of one batch on disk, of all its sources or of those that a group needs.
//!
//! ```text
//! values     of the sources that it has, ascending, back to back, then 0 to 7 bytes of 0
//! sources    nothing (all of the batch) | a bit for each of the batch, in words of 64 | a u32 each
//! ```
//!
//! In memory values are by source, with a bit for each source behind the values of all of them. Both ways happen in place.

use graphmill_raw::Element;
use zerocopy::{FromBytes, IntoBytes};

use crate::frontier::bitmap::bits;
use crate::memory::run_bytes::{bits_at, bytes_max};

/// Sources of a word of bits.
pub(crate) const WORD: usize = 64;
/// Sources are listed if a run has fewer than one in 32: a source takes 32 bits then, otherwise 1.
const LISTED: usize = 32;

/// How a run encodes its sources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sources {
    /// It has all sources of the batch.
    All,
    Bits,
    List,
}

/// The header of a run: the facts needed to read it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RunEncoding {
    pub(crate) count: u64,
    pub(crate) sources: Sources,
    /// On disk.
    pub(crate) bytes: usize,
}

/// True if a list of `count` out of `span` sources is shorter than a bit for each source.
pub(crate) fn is_listed(count: u64, span: usize) -> bool {
    count < (span / LISTED) as u64
}

/// Returns the encoding of a run of `count` out of `span` sources.
pub(crate) fn encoding_for(count: u64, span: usize, width: usize) -> RunEncoding {
    let (sources, of_sources) = match count {
        _ if count == span as u64 => (Sources::All, 0),
        _ if is_listed(count, span) => (Sources::List, count as usize * 4),
        _ => (Sources::Bits, span.div_ceil(WORD) * 8),
    };
    RunEncoding {
        count,
        sources,
        bytes: bits_at(count as usize, width) + of_sources,
    }
}

/// Moves the values of a batch's messages to the front of `bytes`, with their sources behind them.
///
/// Before, values are by source, with the bits of `count` sources behind them.
pub(crate) fn compact<M: Element>(bytes: &mut [u8], span: usize, count: u64) -> RunEncoding {
    let width = size_of::<M>();
    let encoding = encoding_for(count, span, width);
    if encoding.sources == Sources::All {
        return encoding;
    }
    let (bits_from, packed) = (bits_at(span, width), bits_at(count as usize, width));
    let (values, present) = bytes.split_at_mut(bits_from);
    let present = <[u64]>::ref_from_bytes(&present[..span.div_ceil(WORD) * 8]).unwrap_or(&[]);
    {
        let values = <[M]>::mut_from_bytes(&mut values[..span * width]).unwrap_or(&mut []);
        let mut to = 0;
        bits(present, 0, |source| {
            values[to] = values[source];
            to += 1;
        });
    }
    match encoding.sources {
        // A list is shorter than the values that it replaces.
        Sources::List => put_numbers(&mut values[packed..encoding.bytes], present),
        _ => bytes.copy_within(bits_from..bits_from + encoding.bytes - packed, packed),
    }
    encoding
}

/// Writes the numbers of the selected sources.
pub(crate) fn put_numbers(out: &mut [u8], selected: &[u64]) {
    let mut out = out.chunks_exact_mut(4);
    bits(selected, 0, |source| {
        if let Some(out) = out.next() {
            out.copy_from_slice(&(source as u32).to_ne_bytes());
        }
    });
}

/// Writes a run of the selected sources, in its [`encoding_for`], to the front of `out`.
pub(crate) fn encode<M: Element>(
    out: &mut [u8],
    values: &[M],
    selected: &[u64],
    encoding: RunEncoding,
) {
    let count = encoding.count as usize;
    let (packed, rest) = out.split_at_mut(bits_at(count, size_of::<M>()));
    let (packed, padding) = packed.split_at_mut(count * size_of::<M>());
    padding.fill(0);
    if encoding.sources == Sources::All {
        packed.copy_from_slice(values[..count].as_bytes());
        return;
    }
    let packed = <[M]>::mut_from_bytes(packed).unwrap_or(&mut []);
    let mut to = 0;
    bits(selected, 0, |source| {
        packed[to] = values[source];
        to += 1;
    });
    if encoding.sources == Sources::Bits {
        let bits = selected.as_bytes();
        rest[..bits.len()].copy_from_slice(bits);
        return;
    }
    put_numbers(rest, selected);
}

/// Expands a run at the front of `bytes` to values by source, with the bits of its sources behind them.
///
/// Returns `None` if the run is malformed.
pub(crate) fn expand<M: Element>(
    bytes: &mut [u8],
    encoding: RunEncoding,
    span: usize,
) -> Option<()> {
    let width = size_of::<M>();
    let (count, words) = (encoding.count as usize, span.div_ceil(WORD));
    let at = bits_at(span, width);
    if count > span || bytes.len() < bytes_max(span, width) {
        return None;
    }
    let from = bits_at(count, width);
    match encoding.sources {
        Sources::All if count < span => return None,
        Sources::All => {
            let bits = <[u64]>::mut_from_bytes(&mut bytes[at..at + words * 8]).ok()?;
            bits.fill(!0);
            if let (Some(last), rest @ 1..) = (bits.last_mut(), span % WORD) {
                *last = (1 << rest) - 1;
            }
        }
        Sources::Bits => bytes.copy_within(from..from + words * 8, at),
        Sources::List => {
            let (list, bits) = bytes.split_at_mut(at);
            let bits = <[u64]>::mut_from_bytes(&mut bits[..words * 8]).ok()?;
            bits.fill(0);
            for source in list.get(from..from + count * 4)?.as_chunks().0 {
                let source = u32::from_ne_bytes(*source) as usize;
                *bits.get_mut(source / WORD)? |= 1 << (source % WORD);
            }
        }
    }
    if count == span {
        return Some(());
    }
    let (values, bits) = bytes.split_at_mut(at);
    let values = <[M]>::mut_from_bytes(&mut values[..span * width]).ok()?;
    let bits = <[u64]>::ref_from_bytes(&bits[..words * 8]).ok()?;
    // From the last one on: none is written over that is still to be moved.
    let mut left = count;
    for (word, bits) in bits.iter().enumerate().rev() {
        let mut bits = *bits;
        while bits != 0 {
            let bit = WORD - 1 - bits.leading_zeros() as usize;
            left = left.checked_sub(1)?;
            *values.get_mut(word * WORD + bit)? = values[left];
            bits ^= 1 << bit;
        }
    }
    (left == 0).then_some(())
}

/// Returns the values by source, and the bits, of a batch that is written, and of an expanded run.
pub(crate) fn parts<M: Element>(bytes: &[u8], span: usize) -> (&[M], &[u64]) {
    let at = bits_at(span, size_of::<M>());
    let bits = bytes.get(at..at + span.div_ceil(WORD) * 8).unwrap_or(&[]);
    (
        <[M]>::ref_from_bytes(&bytes[..span * size_of::<M>()]).unwrap_or(&[]),
        <[u64]>::ref_from_bytes(bits).unwrap_or(&[]),
    )
}

/// As [`parts`], to change them.
pub(crate) fn parts_mut<M: Element>(bytes: &mut [u8], span: usize) -> (&mut [M], &mut [u64]) {
    let (values, bits) = bytes.split_at_mut(bits_at(span, size_of::<M>()));
    (
        <[M]>::mut_from_bytes(&mut values[..span * size_of::<M>()]).unwrap_or(&mut []),
        <[u64]>::mut_from_bytes(&mut bits[..span.div_ceil(WORD) * 8]).unwrap_or(&mut []),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bits(span: usize, every: usize) -> Vec<u64> {
        let mut bits = vec![0; span.div_ceil(WORD)];
        for source in (0..span).step_by(every) {
            bits[source / WORD] |= 1 << (source % WORD);
        }
        bits
    }

    /// Allocates memory for a run, aligned as buffers are.
    fn room(span: usize, width: usize) -> Vec<u64> {
        vec![!0; bytes_max(span, width).div_ceil(8) + 1]
    }

    fn round_trip<M: Element + PartialEq + std::fmt::Debug>(
        span: usize,
        every: usize,
        value: impl Fn(usize) -> M,
    ) {
        let values: Vec<M> = (0..span).map(&value).collect();
        let selected = bits(span, every);
        let count = (0..span).step_by(every).count() as u64;
        let check = |bytes: &[u8]| {
            let (found, present) = parts::<M>(bytes, span);
            let mut seen = 0;
            super::bits(present, 0, |source| {
                if source < span {
                    assert_eq!(found[source], value(source));
                    assert_eq!(source % every, 0);
                    seen += 1;
                }
            });
            assert_eq!(seen, count);
        };
        let mut memory = room(span, size_of::<M>());
        let bytes = memory.as_mut_bytes();
        let encoding = encoding_for(count, span, size_of::<M>());
        assert!(encoding.bytes <= bytes_max(span, size_of::<M>()));
        encode(&mut bytes[..encoding.bytes], &values, &selected, encoding);
        bytes[encoding.bytes..].fill(0xee);
        expand::<M>(bytes, encoding, span).unwrap();
        check(bytes);

        let mut memory = room(span, size_of::<M>());
        let bytes = memory.as_mut_bytes();
        let (to, present) = parts_mut::<M>(bytes, span);
        to.copy_from_slice(&values);
        present.copy_from_slice(&selected);
        let encoding = compact::<M>(bytes, span, count);
        bytes[encoding.bytes..].fill(0xee);
        expand::<M>(bytes, encoding, span).unwrap();
        check(bytes);
    }

    #[test]
    fn message_run_round_trips() {
        for span in [1, 5, 63, 64, 65, 200, 1000, 4097] {
            for every in [1, 2, 3, 31, 40, 64, 999] {
                round_trip(span, every, |i| i as u8);
                round_trip(span, every, |i| i as u32 * 7);
                round_trip(span, every, |i| i as f64 / 3.0);
                round_trip(span, every, |i| [i as u64, !(i as u64)]);
            }
        }
    }

    #[test]
    fn message_run_inconsistent_is_refused() {
        let (span, values) = (100, vec![1u32; 100]);
        let selected = bits(span, 3);
        let mut memory = room(span, 4);
        let encoding = encoding_for(34, span, 4);
        encode(memory.as_mut_bytes(), &values, &selected, encoding);
        let is_spread = |encoding: RunEncoding| {
            expand::<u32>(memory.clone().as_mut_bytes(), encoding, span).is_some()
        };
        assert!(is_spread(encoding));
        for count in [33, 35, 101] {
            assert!(!is_spread(RunEncoding { count, ..encoding }));
        }
        let all = RunEncoding {
            sources: Sources::All,
            ..encoding
        };
        assert!(!is_spread(all), "it has fewer than all");
    }
}
