//! The order of a full box: messages by destination batch, each batch in the order in which they were sent.

use graphmill_graph::Batches;

/// Counters that sort the boxes of one worker, in time in proportion to their messages.
pub(crate) struct BoxSorter {
    /// The messages of the current box in order.
    order: Vec<u32>,
    /// By batch; zero between boxes.
    counts: Vec<u32>,
    /// The batches of the current box.
    touched: Vec<u32>,
}

impl BoxSorter {
    /// Returns the bytes for boxes of `capacity` messages to `batches` batches.
    pub(crate) fn bytes(capacity: usize, batches: usize) -> usize {
        (capacity + batches + capacity.min(batches)) * size_of::<u32>()
    }

    pub(crate) fn new(capacity: usize, batches: usize) -> Self {
        BoxSorter {
            order: Vec::with_capacity(capacity),
            counts: vec![0; batches],
            touched: Vec::with_capacity(capacity.min(batches)),
        }
    }

    /// Counts the messages to vertices of a graph by batch; returns the number of batches.
    pub(crate) fn count(&mut self, to: &[u64], batches: &Batches) -> usize {
        for to in to {
            let batch = batches.batch_of(*to);
            if self.counts[batch] == 0 {
                self.touched.push(batch as u32);
            }
            self.counts[batch] += 1;
        }
        self.touched.len()
    }

    /// Returns the parts of the box that was counted, and the messages in order.
    ///
    /// A part is a batch and where its messages end; parts ascend by batch.
    pub(crate) fn sort(&mut self, to: &[u64], batches: &Batches) -> (Vec<(u32, u32)>, &[u32]) {
        self.touched.sort_unstable();
        let mut parts = Vec::with_capacity(self.touched.len());
        let mut end = 0;
        for batch in &self.touched {
            let count = &mut self.counts[*batch as usize];
            let begin = end;
            end += std::mem::replace(count, begin);
            parts.push((*batch, end));
        }
        self.order.resize(to.len(), 0);
        for (i, to) in to.iter().enumerate() {
            let next = &mut self.counts[batches.batch_of(*to)];
            self.order[*next as usize] = i as u32;
            *next += 1;
        }
        for batch in self.touched.drain(..) {
            self.counts[batch as usize] = 0;
        }
        (parts, &self.order)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn box_sorter_keeps_the_order_within_a_batch() {
        let batches = Batches::new(vec![0, 4, 8, 9, 40]).unwrap();
        let mut sorter = BoxSorter::new(16, 4);
        for to in [&[39, 0, 8, 1, 8, 39, 3, 12][..], &[5; 16], &[9]] {
            let parts = sorter.count(to, &batches);
            let (found, order) = sorter.sort(to, &batches);
            assert_eq!(found.len(), parts);
            let batch_of = |i: &u32| batches.batch_of(to[*i as usize]);
            let mut expected: Vec<u32> = (0..to.len() as u32).collect();
            expected.sort_by_key(batch_of);
            assert_eq!(order, expected, "{to:?}");
            for (place, i) in order.iter().enumerate() {
                let part = found.partition_point(|part| part.1 as usize <= place);
                assert_eq!(found[part].0 as usize, batch_of(i), "{to:?}");
            }
        }
    }
}
