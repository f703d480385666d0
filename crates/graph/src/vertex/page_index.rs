//! The positions of the stored pages of a table.

use crate::codec::varint;
use crate::vertex::packed::PAGE_VERTICES;

/// Where the stored pages of a table are.
#[derive(Debug, Default)]
pub(crate) struct PageIndex {
    /// Page number and the byte position of its end; it begins where the one before ends.
    pages: Vec<(u64, u64)>,
}

impl PageIndex {
    /// Returns the bytes that an index of `pages` pages takes in memory.
    pub(crate) fn memory(pages: u64) -> u64 {
        pages.saturating_mul(16)
    }
    /// Appends the list and the trailer that end a table's payload, `pages` being (page, bytes).
    pub(crate) fn put(out: &mut Vec<u8>, position: u64, pages: &[(u64, u32)]) {
        let mut next = 0;
        for &(page, bytes) in pages {
            varint::put(out, page - next);
            varint::put(out, u64::from(bytes));
            next = page + 1;
        }
        out.extend(position.to_le_bytes());
        out.extend((pages.len() as u64).to_le_bytes());
    }
    /// Parses the list, without the trailer: `count` pages of the vertices up to `vertices`.
    ///
    /// The pages end at byte `end`, and none is longer than `page_bytes_max`.
    pub(crate) fn parse(
        bytes: &[u8],
        count: u64,
        vertices: u64,
        end: u64,
        page_bytes_max: u64,
    ) -> Option<Self> {
        let mut pages = Vec::with_capacity(count as usize);
        let (mut at, mut next, mut position) = (0, 0u64, 0u64);
        for _ in 0..count {
            let page = next.checked_add(varint::get(bytes, &mut at)?)?;
            if page >= vertices.div_ceil(PAGE_VERTICES) {
                return None;
            }
            let page_bytes = varint::get(bytes, &mut at).filter(|&n| n <= page_bytes_max)?;
            position = position.checked_add(page_bytes)?;
            if position > end {
                return None;
            }
            pages.push((page, position));
            next = page + 1;
        }
        (at == bytes.len() && position == end).then_some(PageIndex { pages })
    }
    /// Where page number `page` is; `None` when it is not stored.
    #[inline]
    pub(crate) fn find(&self, page: u64) -> Option<std::ops::Range<u64>> {
        let at = match self.pages.get(page as usize) {
            // Nearly every graph has an edge in every page.
            Some(&(number, _)) if number == page => page as usize,
            _ => (self
                .pages
                .binary_search_by_key(&page, |&(number, _)| number))
            .ok()?,
        };
        Some(self.at(at).1)
    }
    /// Stored pages among the numbers `pages`, as positions for [`at`](Self::at).
    pub(crate) fn positions(&self, pages: std::ops::Range<u64>) -> std::ops::Range<usize> {
        let before = |end: u64| self.pages.partition_point(|&(number, _)| number < end);
        before(pages.start)..before(pages.end.max(pages.start))
    }
    /// Number and place of a stored page.
    pub(crate) fn at(&self, position: usize) -> (u64, std::ops::Range<u64>) {
        let before = position.checked_sub(1);
        let start = before.map_or(0, |before| self.pages[before].1);
        (self.pages[position].0, start..self.pages[position].1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_index_finds_pages_in_any_table() {
        for numbers in [(0..50).collect::<Vec<u64>>(), vec![3, 4, 900, 1 << 40]] {
            let pages: Vec<(u64, u32)> = numbers.iter().map(|&n| (n, n as u32 % 7 + 1)).collect();
            let end: u64 = pages.iter().map(|&(_, bytes)| u64::from(bytes)).sum();
            let mut list = Vec::new();
            PageIndex::put(&mut list, end, &pages);
            let list = &list[..list.len() - 16];
            let count = numbers.len() as u64;
            let longest = pages.iter().map(|page| u64::from(page.1)).max().unwrap();
            let index = PageIndex::parse(list, count, 1 << 60, end, longest).unwrap();
            let mut position = 0;
            for &(number, bytes) in &pages {
                assert_eq!(
                    index.find(number),
                    Some(position..position + u64::from(bytes))
                );
                position += u64::from(bytes);
            }
            assert_eq!(index.find(numbers.last().unwrap() + 1), None);
            assert_eq!(
                index.positions(4..901).len(),
                numbers.iter().filter(|n| (4..901).contains(*n)).count()
            );
            assert!(PageIndex::parse(list, count, 4096, end, longest).is_none());
            assert!(PageIndex::parse(list, count, 1 << 60, end, longest - 1).is_none());
            let cut = &list[..list.len() - 1];
            assert!(PageIndex::parse(cut, count, 1 << 60, end, longest).is_none());
        }
    }
}
