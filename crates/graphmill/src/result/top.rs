//! The highest values of a result, kept while its blocks go by.

use std::cmp::Ordering;

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
    /// Descending by value.
    rows: Vec<(Key, TopRow)>,
}

#[derive(Debug, Clone, Copy)]
enum Key {
    Float(f64),
    Integer(u64),
    Vertex,
}

impl Key {
    fn is_above(self, other: Key) -> bool {
        let order = match (self, other) {
            (Key::Float(left), Key::Float(right)) => left.total_cmp(&right),
            (Key::Integer(left), Key::Integer(right)) => left.cmp(&right),
            _ => Ordering::Equal,
        };
        order == Ordering::Greater
    }
}

impl Top {
    /// Will keep `count` rows.
    pub(crate) fn new(count: usize) -> Top {
        Top {
            count,
            rows: Vec::new(),
        }
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
            let is_full = self.rows.len() >= self.count;
            let beats_last = self.rows.last().is_none_or(|(last, _)| key.is_above(*last));
            if block.is_reached(row) && is_number && self.count > 0 && (!is_full || beats_last) {
                let place = self.rows.partition_point(|(kept, _)| !key.is_above(*kept));
                self.rows.truncate(self.count - 1);
                self.rows.insert(place, (key, text(block, row)));
            }
        }
    }

    /// The rows, highest first.
    pub(crate) fn into_rows(self) -> Vec<TopRow> {
        self.rows.into_iter().map(|(_, row)| row).collect()
    }
}

fn text(block: &Block, row: usize) -> TopRow {
    let label = |labels: &Labels| match labels {
        Labels::Integers(ids) => ids[row].to_string(),
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
