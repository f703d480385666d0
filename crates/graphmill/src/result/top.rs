//! The highest values of a result, kept while its blocks go by.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use super::block::{Block, Labels, Values};

/// One of the highest rows, as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopRow {
    /// The user's vertex id.
    pub vertex: String,
    /// Its value.
    pub value: String,
}

/// Keeps the `count` rows with the highest values; of equal values the first in order of ids.
///
/// Unreached vertices and values that are not a number are left out, and a value that is a vertex counts by nothing but its
/// position: such results have no highest rows, the first ones are kept. A plan refuses to ask for them.
#[derive(Debug)]
pub(crate) struct Top {
    count: usize,
    /// The lowest that is kept comes first.
    kept: BinaryHeap<Reverse<Kept>>,
    /// Rows that went by.
    seen: u64,
}

/// A row that is kept: higher by its value, then by coming earlier.
#[derive(Debug)]
struct Kept {
    key: Key,
    place: Reverse<u64>,
    row: TopRow,
}

impl Ord for Kept {
    fn cmp(&self, other: &Kept) -> Ordering {
        let order = self.key.order(other.key);
        order.then_with(|| self.place.cmp(&other.place))
    }
}
impl PartialOrd for Kept {
    fn partial_cmp(&self, other: &Kept) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl PartialEq for Kept {
    fn eq(&self, other: &Kept) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}
impl Eq for Kept {}

/// Bytes of the texts of a row, unless ids are longer.
const TEXT_BYTES: u64 = 64;

#[derive(Debug, Clone, Copy)]
enum Key {
    Float(f64),
    Integer(u64),
    Vertex,
}

impl Key {
    fn order(self, other: Key) -> Ordering {
        match (self, other) {
            (Key::Float(left), Key::Float(right)) => left.total_cmp(&right),
            (Key::Integer(left), Key::Integer(right)) => left.cmp(&right),
            _ => Ordering::Equal,
        }
    }
}

impl Top {
    /// Will keep `count` rows.
    pub(crate) fn new(count: usize) -> Top {
        Top {
            count,
            kept: BinaryHeap::new(),
            seen: 0,
        }
    }

    /// Bytes of the budget that so many rows take.
    pub(crate) fn memory(count: u64) -> u64 {
        count.saturating_mul(size_of::<Kept>() as u64 + TEXT_BYTES)
    }

    /// Looks at the rows of the next block.
    pub(crate) fn block(&mut self, block: &Block) {
        for row in 0..block.rows() {
            let key = match &block.values {
                Values::F32(values) => Key::Float(f64::from(values[row])),
                Values::F64(values) => Key::Float(values[row]),
                Values::U32(values) => Key::Integer(u64::from(values[row])),
                Values::U64(values) => Key::Integer(values[row]),
                Values::Vertex(_) => Key::Vertex,
            };
            let is_number = !matches!(key, Key::Float(value) if value.is_nan());
            let is_full = self.kept.len() >= self.count;
            let lowest = self.kept.peek();
            let is_higher = lowest.is_some_and(|Reverse(kept)| key.order(kept.key).is_gt());
            if block.is_reached(row) && is_number && (!is_full || is_higher) {
                if is_full {
                    self.kept.pop();
                }
                self.kept.push(Reverse(Kept {
                    key,
                    place: Reverse(self.seen),
                    row: text(block, row),
                }));
            }
            self.seen += 1;
        }
    }

    /// The rows, highest first.
    pub(crate) fn into_rows(self) -> Vec<TopRow> {
        let kept = self.kept.into_sorted_vec();
        kept.into_iter().map(|Reverse(kept)| kept.row).collect()
    }
}

fn text(block: &Block, row: usize) -> TopRow {
    let label = |labels: &Labels| match labels {
        Labels::Integers(ids) => ids[row].to_string(),
        Labels::Signed(ids) => ids[row].to_string(),
        Labels::Texts(texts) => String::from_utf8_lossy(texts.get(row)).into_owned(),
    };
    TopRow {
        vertex: label(&block.ids),
        value: match &block.values {
            // As in a file: the shortest digits that read back, with an exponent where the number is large or small.
            Values::F32(values) => format!("{:?}", values[row]),
            Values::F64(values) => format!("{:?}", values[row]),
            Values::U32(values) => values[row].to_string(),
            Values::U64(values) => values[row].to_string(),
            Values::Vertex(labels) => label(labels),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(from: u64, values: Vec<f64>, reached: Option<Vec<bool>>) -> Block {
        Block {
            ids: Labels::Integers((from..from + values.len() as u64).collect()),
            values: Values::F64(values),
            reached,
        }
    }

    fn vertices(top: Top) -> Vec<String> {
        top.into_rows().into_iter().map(|row| row.vertex).collect()
    }

    #[test]
    fn highest_first_and_ties_in_order_of_index() {
        let mut top = Top::new(3);
        top.block(&block(0, vec![1.0, 5.0, 2.0], None));
        top.block(&block(3, vec![5.0, 0.5, 3.0, 5.0], None));
        assert_eq!(vertices(top), ["1", "3", "6"]);
    }

    #[test]
    fn as_many_as_there_are_cost_no_more_than_sorting_them() {
        let values = |from: u64| (0..1000).map(move |i| ((from + i) * 7919 % 100_003) as f64);
        let mut top = Top::new(200_000);
        for from in (0..200_000).step_by(1000) {
            top.block(&block(from, values(from).collect(), None));
        }
        let mut expected: Vec<u64> = (0..200_000).collect();
        expected.sort_by_key(|v| Reverse(v * 7919 % 100_003));
        let expected: Vec<String> = expected.iter().map(u64::to_string).collect();
        assert!(vertices(top) == expected);
    }

    #[test]
    fn unreached_and_nan_are_left_out() {
        let mut top = Top::new(9);
        let reached = vec![true, false, true, true];
        top.block(&block(0, vec![1.0, 9.0, f64::NAN, 2.0], Some(reached)));
        assert_eq!(vertices(top), ["3", "0"]);
    }

    #[test]
    fn none_asked_none_kept() {
        let mut top = Top::new(0);
        top.block(&block(0, vec![1.0], None));
        assert!(vertices(top).is_empty());
    }
}
