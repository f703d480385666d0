//! Snappy of sorted texts: each shares its beginning or its end with the text before.
//!
//! The general encoder looks for matches in a table of hashes, which takes most of the time in which ids are written. Among sorted ids the match
//! is known: it is the entry before. An entry becomes up to four elements of the format: the bytes of its length if it differs, a copy of the
//! shared beginning, the bytes between as they are, and a copy of the shared end.

/// A shorter match takes as many bytes as it spares.
const MATCH_LEAST: usize = 6;
/// Bytes before the text of an entry: its length.
const LENGTH: usize = size_of::<u32>();

/// Compresses entries, which begin at `starts` in `plain`, and appends them to `out`.
///
/// The length of all, which comes first in the format, is not included. An entry is a length in 4 bytes and a text.
pub(super) fn compress(plain: &[u8], starts: &[u32], out: &mut Vec<u8>) {
    let starts = starts.iter().map(|start| *start as usize);
    let ends = starts.clone().skip(1).chain([plain.len()]);
    let (mut before, mut literal) = (0, 0);
    for (start, end) in starts.zip(ends) {
        let (last, entry) = (&plain[before..start], &plain[start..end]);
        let same_length = last.first_chunk::<LENGTH>() == entry.first_chunk();
        let from = if same_length { 0 } else { LENGTH };
        let mut at = from;
        if last.len() > from {
            let shared = shared_prefix(&last[from..], &entry[from..]);
            if shared >= MATCH_LEAST {
                put_literal(&plain[literal..start + from], out);
                put_copy(last.len(), shared, out);
                at += shared;
                literal = start + at;
            }
            let shared = shared_suffix(&last[LENGTH..], &entry[at.max(LENGTH)..]);
            if shared >= MATCH_LEAST {
                put_literal(&plain[literal..end - shared], out);
                put_copy(entry.len(), shared, out);
                literal = end;
            }
        }
        before = start;
    }
    put_literal(&plain[literal..], out);
}

/// How many bytes two texts have in common from the start.
#[inline]
fn shared_prefix(a: &[u8], b: &[u8]) -> usize {
    let most = a.len().min(b.len());
    let (words_a, words_b) = (a[..most].as_chunks::<8>().0, b[..most].as_chunks::<8>().0);
    for (i, (a, b)) in words_a.iter().zip(words_b).enumerate() {
        let differ = u64::from_le_bytes(*a) ^ u64::from_le_bytes(*b);
        if differ != 0 {
            return 8 * i + differ.trailing_zeros() as usize / 8;
        }
    }
    let from = 8 * words_a.len();
    let rest = a[from..most].iter().zip(&b[from..most]);
    from + rest.take_while(|(a, b)| a == b).count()
}

/// How many bytes two texts have in common at the end.
#[inline]
fn shared_suffix(a: &[u8], b: &[u8]) -> usize {
    let pairs = a.iter().rev().zip(b.iter().rev());
    pairs.take_while(|(a, b)| a == b).count()
}

/// Adds bytes as they are.
#[inline]
fn put_literal(bytes: &[u8], out: &mut Vec<u8>) {
    let Some(last) = bytes.len().checked_sub(1) else {
        return;
    };
    match last {
        0..60 => out.push((last << 2) as u8),
        60..0x100 => out.extend([60 << 2, last as u8]),
        0x100..0x1_0000 => out.extend([61 << 2, last as u8, (last >> 8) as u8]),
        _ => {
            out.push(63 << 2);
            out.extend((last as u32).to_le_bytes());
        }
    }
    out.extend_from_slice(bytes);
}

/// Adds a copy of bytes that begin `offset` bytes before.
///
/// An offset has 16 bits, as entries have at most a few KiB.
#[inline]
fn put_copy(offset: usize, mut length: usize, out: &mut Vec<u8>) {
    while length > 0 {
        let here = length.min(64);
        out.extend([
            ((here - 1) << 2 | 2) as u8,
            offset as u8,
            (offset >> 8) as u8,
        ]);
        length -= here;
    }
}

#[cfg(test)]
mod tests {
    use super::compress;
    use crate::result::pages::put_number;

    /// Entries of texts, compressed behind the length of all.
    fn compressed(texts: &[String]) -> (Vec<u8>, Vec<u8>) {
        let (mut plain, mut starts, mut out) = (Vec::new(), Vec::new(), Vec::new());
        for text in texts {
            starts.push(plain.len() as u32);
            plain.extend((text.len() as u32).to_le_bytes());
            plain.extend(text.as_bytes());
        }
        put_number(&mut out, plain.len() as u64);
        compress(&plain, &starts, &mut out);
        (plain, out)
    }

    #[test]
    fn texts_come_back() {
        let long = |i: usize| "x".repeat(i * i % 3000);
        let of: [&dyn Fn(usize) -> String; 6] = [
            &|i| format!("crm-{i:016}-{:08x}", (i as u32).wrapping_mul(0x9e37_79b9)),
            &|i| format!("{}@example.org", i * i),
            &|i| format!("{}{}", long(i), i % 7),
            &|i| format!("{}{}{}", i % 5, long(i), i % 3),
            &|_| String::new(),
            &|i| i.to_string(),
        ];
        for text in of {
            for count in [0, 1, 2, 1000] {
                let texts: Vec<String> = (0..count).map(text).collect();
                let (plain, out) = compressed(&texts);
                let back = snap::raw::Decoder::new().decompress_vec(&out);
                assert_eq!(back.unwrap(), plain, "{:?}", texts.first());
            }
        }
    }

    #[test]
    fn sorted_ids_take_half() {
        let texts: Vec<String> = (0..1000).map(|i| format!("customer-{i:012}")).collect();
        let (plain, out) = compressed(&texts);
        assert!(
            out.len() * 2 < plain.len(),
            "{} of {}",
            out.len(),
            plain.len()
        );
    }
}
