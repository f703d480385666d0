//! Some rows of a batch, and the pages that hold them.

use std::ops::Range;

use crate::frontier::bitmap::HierarchicalBitmap;

/// Some rows of a batch: the members of a part of a bitmap.
pub(crate) struct RowSet<'s> {
    members: &'s HierarchicalBitmap,
    /// The part; its start is the first row of the batch.
    part: Range<usize>,
}

impl<'s> RowSet<'s> {
    /// The members of a bitmap of one batch; `None` if these are all its rows.
    pub(crate) fn of(members: &'s HierarchicalBitmap) -> Option<Self> {
        let part = 0..members.span;
        (!members.is_full()).then_some(RowSet { members, part })
    }

    /// The members of a part of a bitmap.
    pub(crate) fn of_part(members: &'s HierarchicalBitmap, part: Range<usize>) -> Self {
        RowSet { members, part }
    }

    /// Returns the pages that hold these rows, of elements of `element_bytes` bytes, ascending.
    ///
    /// It takes time in proportion to the rows.
    pub(crate) fn pages(&self, element_bytes: usize, page_bytes: usize) -> Vec<usize> {
        let mut pages = Vec::new();
        // Rows before this one are in pages already listed: a division for each page, not for each row.
        let mut listed = 0;
        self.members.for_each_in(self.part.clone(), |i| {
            let i = i - self.part.start;
            if i >= listed {
                let from = i * element_bytes / page_bytes;
                let to = ((i + 1) * element_bytes - 1) / page_bytes;
                let is_listed = pages.last() == Some(&from);
                pages.extend(from + usize::from(is_listed)..=to);
                listed = (to + 1) * page_bytes / element_bytes;
            }
        });
        pages
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use graphmill_storage::MemoryBudget;

    use super::*;

    #[test]
    fn row_set_lists_pages_of_its_rows() {
        const PAGE_BYTES: usize = 64;
        for element_bytes in [1, 4, 12, 48, 64, 100, 200] {
            for step in [1, 3, 17, 50] {
                let mut rows = HierarchicalBitmap::default();
                rows.reserve(300, &MemoryBudget::new(1 << 20)).unwrap();
                let mut pages = BTreeSet::new();
                for i in (0..300).step_by(step) {
                    rows.insert(i);
                    let bytes = i * element_bytes..(i + 1) * element_bytes;
                    pages.extend(bytes.map(|byte| byte / PAGE_BYTES));
                }
                let found = RowSet::of_part(&rows, 0..300).pages(element_bytes, PAGE_BYTES);
                assert_eq!(found, Vec::from_iter(pages), "{element_bytes} bytes");
            }
        }
    }
}
