//! Pages of degrees.

use crate::codec::bitpack::{pack_mixed, word_at};
use crate::vertex::packed::{PAGE_VERTICES, field, width};

/// Bytes of a page of degrees at most.
pub(crate) const DEGREE_PAGE_BYTES_MAX: u64 = 8 + 8 * PAGE_VERTICES;

/// Appends a page of degrees.
pub(crate) fn put_degrees(out: &mut Vec<u8>, degrees: &[u64; PAGE_VERTICES as usize]) {
    let bits = match width(degrees.iter().fold(0, |all, d| all | d)) {
        57.. => 64,
        bits => bits,
    };
    out.extend([bits as u8, 0, 0, 0, 0, 0, 0, 0]);
    if bits == 64 {
        out.extend(degrees.iter().flat_map(|d| d.to_le_bytes()));
    } else {
        pack_mixed(degrees.iter().map(|&d| (d, bits)), out);
    }
}

/// A page of degrees.
#[derive(Clone, Copy)]
pub(crate) struct DegreePage<'a> {
    fields: &'a [u8],
    bits: u32,
}

impl<'a> DegreePage<'a> {
    pub(crate) fn parse(page: &'a [u8]) -> Option<Self> {
        let bits = u32::from(*page.first()?);
        let fields = page.get(8..)?;
        let sound = matches!(bits, 1..=56 | 64)
            && fields.len() == bits as usize * PAGE_VERTICES as usize / 8;
        sound.then_some(DegreePage { fields, bits })
    }
    /// The degree of vertex `i` of the page.
    #[inline]
    pub(crate) fn get(&self, i: usize) -> u64 {
        if self.bits == 64 {
            return word_at(self.fields, 8 * i);
        }
        field(self.fields, i * self.bits as usize, self.bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn degree_pages_round_trip_any_width() {
        for max in [0u64, 1, 5, 255, 1 << 20, (1 << 56) - 1, 1 << 60] {
            let mut degrees = [0; 4096];
            for (i, d) in degrees.iter_mut().enumerate() {
                *d = (i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) % (max + 1);
            }
            degrees[4095] = max;
            let mut page = Vec::new();
            put_degrees(&mut page, &degrees);
            let parsed = DegreePage::parse(&page).unwrap();
            assert!((0..4096).all(|i| parsed.get(i) == degrees[i]), "{max}");
            assert!(DegreePage::parse(&page[..page.len() - 1]).is_none());
        }
    }
}
