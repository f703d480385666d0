//! LEB128: seven bits a byte, low bits first.

/// Appends `value`.
#[inline]
pub(crate) fn put(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// The number at `bytes[*at..]`; moves `at` behind it. `None` when it is cut off or more than 64 bits.
#[inline]
pub(crate) fn get(bytes: &[u8], at: &mut usize) -> Option<u64> {
    let first = *bytes.get(*at)?;
    if first < 0x80 {
        *at += 1;
        return Some(u64::from(first));
    }
    let mut value = 0u64;
    for (i, &byte) in bytes.get(*at..)?.iter().take(10).enumerate() {
        let low = u64::from(byte & 0x7f);
        if i == 9 && byte > 1 {
            return None;
        }
        value |= low << (7 * i);
        if byte < 0x80 {
            *at += i + 1;
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn varint_round_trips_and_refuses_damage() {
        let mut out = Vec::new();
        let numbers: Vec<u64> = (0..64)
            .flat_map(|s| [1u64 << s, (1 << s) - 1, u64::MAX >> s])
            .collect();
        numbers.iter().for_each(|&n| put(&mut out, n));
        let mut at = 0;
        assert!(numbers.iter().all(|&n| get(&out, &mut at) == Some(n)));
        assert_eq!((at, get(&out, &mut at)), (out.len(), None));
        assert_eq!(get(&[0x80; 20], &mut 0), None);
        assert_eq!(
            get(
                &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2],
                &mut 0
            ),
            None
        );
        assert_eq!(get(&[0x80, 0x80], &mut 0), None);
    }
}
