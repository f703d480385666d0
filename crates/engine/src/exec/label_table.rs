//! How often each label occurs in a list of labels: in a table, or range by range where no list has room.

use graphmill_raw::AtomicScalar;

use crate::program::count::{CountProgram, count_sorted};

/// Lists up to this length are sorted; longer ones are counted in the table.
const SORTED_MAX: usize = 16;

/// A hash table that counts the labels of a list.
///
/// A list with more different labels than half of its places is sorted.
pub(crate) struct LabelTable<L> {
    /// Labels with the number of times that each occurs; 0 in a free place.
    places: Vec<(L, u32)>,
    /// The places that are not free.
    taken: Vec<u32>,
}

impl<L: AtomicScalar> LabelTable<L> {
    /// The longest list that a table can count.
    pub(crate) const LABELS_MAX: u64 = u32::MAX as u64 - 1;

    /// Returns the bytes of a table of some places, a power of two.
    pub(crate) const fn bytes(places: usize) -> u64 {
        (places * size_of::<(L, u32)>() + places / 2 * size_of::<u32>()) as u64
    }

    pub(crate) fn new(places: usize) -> Self {
        LabelTable {
            places: vec![(L::of_index(0), 0); places],
            taken: Vec::with_capacity(places / 2),
        }
    }

    /// Counts the labels of a list, which it may sort; returns the choice, or none if there are no labels.
    pub(crate) fn choose<P: CountProgram<Label = L>>(
        &mut self,
        program: &P,
        labels: &mut [L],
    ) -> Option<L> {
        if labels.is_empty() {
            return None;
        }
        let mut choice = P::NONE;
        if labels.len() <= SORTED_MAX || !self.count(program, &mut choice, labels) {
            count_sorted(program, &mut choice, labels);
        }
        Some(program.choose(choice))
    }

    /// Counts a list in the table; returns false if it has too many different labels.
    fn count<P: CountProgram<Label = L>>(
        &mut self,
        program: &P,
        choice: &mut P::Choice,
        labels: &[L],
    ) -> bool {
        // Places that fit in the cache are better than more of them.
        let count = (2 * labels.len())
            .next_power_of_two()
            .min(self.places.len());
        let (places, shift) = (&mut self.places[..count], 64 - count.trailing_zeros());
        let mut fits = true;
        for equal in labels.chunk_by(|one, next| one == next) {
            let label = equal[0];
            // The golden ratio: consecutive labels get places far from each other.
            let hash = (label.index() as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let mut at = (hash >> shift) as usize;
            while places[at].1 > 0 && places[at].0 != label {
                at = (at + 1) % count;
            }
            if places[at].1 == 0 {
                fits = self.taken.len() < count / 2;
                if !fits {
                    break;
                }
                places[at].0 = label;
                self.taken.push(at as u32);
            }
            places[at].1 += equal.len() as u32;
        }
        for at in self.taken.drain(..) {
            let (label, times) = std::mem::replace(&mut places[at as usize], (L::of_index(0), 0));
            if fits {
                program.count(choice, label, times.into());
            }
        }
        fits
    }
}

/// The counts of a range of the labels that reach one vertex.
pub(crate) struct LabelRange<P: CountProgram> {
    /// Earlier passes have counted the labels before this one.
    from: Option<P::Label>,
    /// Later passes count this label and all after it.
    end: Option<P::Label>,
    /// Labels in order, with the number of times that each came.
    counts: Vec<(P::Label, u64)>,
    /// Labels that are not counted yet.
    arrived: Vec<P::Label>,
    /// Room of both lists.
    capacity: usize,
    pub(crate) choice: P::Choice,
}

impl<P: CountProgram> LabelRange<P> {
    pub(crate) fn new(bytes: usize) -> Self {
        // Arrived labels are appended to the counts before they are sorted in.
        let each = 2 * size_of::<(P::Label, u64)>() + size_of::<P::Label>();
        let capacity = (bytes / each).max(1);
        LabelRange {
            from: None,
            end: None,
            counts: Vec::with_capacity(2 * capacity),
            arrived: Vec::with_capacity(capacity),
            capacity,
            choice: P::NONE,
        }
    }

    pub(crate) fn put(&mut self, label: P::Label) {
        let is_counted = self.from.is_some_and(|from| label < from);
        if is_counted || self.end.is_some_and(|end| label >= end) {
            return;
        }
        self.arrived.push(label);
        if self.arrived.len() == self.capacity {
            self.count_arrived();
        }
    }

    /// Counts the labels that arrived; drops the counts of the greatest labels if there are too many.
    fn count_arrived(&mut self) {
        self.arrived.sort_unstable();
        let equal = self.arrived.chunk_by(|one, next| one == next);
        let arrived = equal.map(|equal| (equal[0], equal.len() as u64));
        self.counts.extend(arrived);
        self.arrived.clear();
        self.counts.sort_unstable_by_key(|count| count.0);
        self.counts.dedup_by(|later, first| {
            let is_same = later.0 == first.0;
            first.1 += if is_same { later.1 } else { 0 };
            is_same
        });
        if let Some((end, _)) = self.counts.get(self.capacity) {
            self.end = Some(*end);
            self.counts.truncate(self.capacity);
        }
    }

    /// Takes the counts of a pass into the choice; returns true if all labels are counted.
    pub(crate) fn end(&mut self, program: &P) -> bool {
        self.count_arrived();
        for (label, times) in self.counts.drain(..) {
            program.count(&mut self.choice, label, times);
        }
        self.from = self.end.take();
        self.from.is_none()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use graphmill_raw::lock;

    use super::*;

    /// The labels with their counts, in the order in which they are counted.
    struct Listed(Mutex<Vec<(u32, u64)>>);

    impl CountProgram for Listed {
        type Label = u32;
        type Choice = u32;
        const NONE: u32 = 0;

        fn count(&self, choice: &mut u32, label: u32, times: u64) {
            *choice += 1;
            lock(&self.0).push((label, times));
        }
        fn choose(&self, choice: u32) -> u32 {
            choice
        }
    }

    #[test]
    fn label_range_counts_each_label_once() {
        let labels = || (0..5000_u32).map(|i| i.wrapping_mul(2_654_435_761) >> 21);
        let mut sorted: Vec<u32> = labels().collect();
        sorted.sort_unstable();
        let equal = sorted.chunk_by(|one, next| one == next);
        let expected: Vec<(u32, u64)> = equal.map(|equal| (equal[0], equal.len() as u64)).collect();
        for (bytes, passes_min) in [(1, 1000), (1000, 40), (20_000, 2), (1 << 19, 1)] {
            let mut range = LabelRange::<Listed>::new(bytes);
            let program = Listed(Mutex::default());
            let mut passes = 0;
            loop {
                labels().for_each(|label| range.put(label));
                passes += 1;
                if range.end(&program) {
                    break;
                }
            }
            assert_eq!(*lock(&program.0), expected, "{bytes} bytes");
            assert_eq!(range.choice as usize, expected.len());
            assert!(passes >= passes_min, "{passes} passes of {bytes} bytes");
        }
    }

    #[test]
    fn small_table_counts_as_a_sort_does() {
        for (labels, different) in [(1, 1), (16, 9), (17, 17), (3000, 5), (3000, 8), (3000, 900)] {
            let list = || (0..labels).map(|i: u32| i.wrapping_mul(2_654_435_761) % different);
            let mut sorted: Vec<u32> = list().collect();
            sorted.sort_unstable();
            let equal = sorted.chunk_by(|one, next| one == next);
            let expected: Vec<_> = equal.map(|equal| (equal[0], equal.len() as u64)).collect();
            let mut table = LabelTable::<u32>::new(16);
            for _ in 0..2 {
                let program = Listed(Mutex::default());
                let choice = table.choose(&program, &mut list().collect::<Vec<_>>());
                lock(&program.0).sort_unstable();
                assert_eq!(*lock(&program.0), expected, "{labels} of {different}");
                assert_eq!(choice, Some(expected.len() as u32));
            }
        }
        let none = LabelTable::new(16).choose(&Listed(Mutex::default()), &mut []);
        assert_eq!(none, None);
    }
}
