//! The highest values of a result, kept while its batches go by.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use graphmill_algorithms::{holds_edge, key_weight};
use serde_json::{Number, Value};

use crate::result::values::{ValueColumn, ends};

/// One of the highest rows, as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopRow {
    /// The user's vertex id; of edges the source.
    ///
    /// Of groups, such as components, the id that names the group.
    pub vertex: String,
    /// The destination of an edge.
    pub destination: Option<String>,
    /// Its value; of groups the number of their members.
    pub value: String,
}

/// A number as JSON, or the text where JSON has no such number.
pub(crate) fn json_number(text: &str) -> Value {
    let number = serde_json::from_str::<Number>(text);
    number.map_or_else(|_| Value::from(text), Value::Number)
}

/// A selection of the `count` highest values.
///
/// Of equal values it keeps the first in order of ids. It leaves out values that are not a number.
#[derive(Debug)]
pub(crate) struct TopK {
    count: usize,
    /// The lowest that is kept comes first.
    kept: BinaryHeap<Reverse<TopEntry>>,
    /// Vertices, or groups, that have a value.
    pub(crate) reached: u64,
}

/// A value that is kept: higher by its number, then by a smaller id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct TopEntry {
    key: TopKey,
    /// The rank of the vertex, and of the other end of an edge.
    ranks: Reverse<[u64; 2]>,
}

/// Bytes of the texts of a row, unless ids are longer.
pub(crate) const TEXT_BYTES: u64 = 64;

/// A value; floats are integers in the order of `total_cmp`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum TopKey {
    Single(i32),
    Double(i64),
    Integer(u64),
}

/// Returns the bits of a float as an integer of the same order, and the bits of such an integer.
fn ordered32(bits: i32) -> i32 {
    bits ^ ((bits >> 31) & i32::MAX)
}

fn ordered64(bits: i64) -> i64 {
    bits ^ ((bits >> 63) & i64::MAX)
}

impl TopKey {
    /// Returns the value as a file has it: the shortest digits that read back.
    ///
    /// A large or small number has an exponent.
    fn text(self) -> String {
        match self {
            TopKey::Single(key) => format!("{:?}", f32::from_bits(ordered32(key) as u32)),
            TopKey::Double(key) => format!("{:?}", f64::from_bits(ordered64(key) as u64)),
            TopKey::Integer(value) => value.to_string(),
        }
    }
}

impl TopK {
    /// Will keep `count` values.
    pub(crate) fn new(count: usize) -> TopK {
        TopK {
            count,
            kept: BinaryHeap::new(),
            reached: 0,
        }
    }

    /// Returns the bytes of the budget that `count` rows take.
    pub(crate) fn memory(count: u64) -> u64 {
        count.saturating_mul((size_of::<TopEntry>() + size_of::<TopRow>()) as u64 + TEXT_BYTES)
    }

    /// Adds the next values; `rank_of` returns the rank of the id at a place among them.
    ///
    /// If values may be absent, infinity or the greatest integer marks them.
    pub(crate) fn values(
        &mut self,
        raw: &ValueColumn,
        nullable: bool,
        rank_of: impl Fn(usize) -> u64,
    ) {
        match raw {
            ValueColumn::F32(values) => {
                let key = |value: f32| TopKey::Single(ordered32(value.to_bits() as i32));
                self.all(values, &rank_of, key, |value| {
                    !(value.is_nan() || nullable && *value == f32::INFINITY)
                });
            }
            ValueColumn::F64(values) => {
                let key = |value: f64| TopKey::Double(ordered64(value.to_bits() as i64));
                self.all(values, &rank_of, key, |value| {
                    !(value.is_nan() || nullable && *value == f64::INFINITY)
                });
            }
            ValueColumn::U32(values) => {
                let key = |value| TopKey::Integer(u64::from(value));
                self.all(values, &rank_of, key, |value| {
                    !(nullable && *value == u32::MAX)
                });
            }
            ValueColumn::U64(values) => self.all(values, &rank_of, TopKey::Integer, |value| {
                !(nullable && *value == u64::MAX)
            }),
            ValueColumn::Edges(_) => {}
        }
    }

    /// Looks at the sizes of groups: a group of no members is none.
    pub(crate) fn sizes(&mut self, raw: &ValueColumn, rank_of: impl Fn(usize) -> u64) {
        match raw {
            ValueColumn::U32(values) => {
                let key = |value| TopKey::Integer(u64::from(value));
                self.all(values, &rank_of, key, |value| *value > 0);
            }
            ValueColumn::U64(values) => {
                self.all(values, &rank_of, TopKey::Integer, |value| *value > 0)
            }
            ValueColumn::F32(_) | ValueColumn::F64(_) | ValueColumn::Edges(_) => {}
        }
    }

    /// Adds edges by their weights, which are printed with 32 bits if they are `single`.
    ///
    /// A weight that is no number is left out.
    pub(crate) fn edges(&mut self, raw: &ValueColumn, single: bool) {
        let ValueColumn::Edges(edges) = raw else {
            return;
        };
        for edge in edges.iter().filter(|row| holds_edge(row)) {
            self.reached += 1;
            let weight = key_weight(edge[0]);
            if weight.is_nan() {
                continue;
            }
            let key = match single {
                true => TopKey::Single(ordered32((weight as f32).to_bits() as i32)),
                false => TopKey::Double(ordered64(weight.to_bits() as i64)),
            };
            self.offer(key, || ends(edge));
        }
    }

    fn all<T: Copy>(
        &mut self,
        values: &[T],
        rank_of: &impl Fn(usize) -> u64,
        key: impl Fn(T) -> TopKey,
        is_value: impl Fn(&T) -> bool,
    ) {
        for (place, value) in values.iter().enumerate() {
            if !is_value(value) {
                continue;
            }
            self.reached += 1;
            self.offer(key(*value), || [rank_of(place), 0]);
        }
    }

    /// Keeps a value if it is among the highest so far.
    fn offer(&mut self, key: TopKey, ranks_of: impl Fn() -> [u64; 2]) {
        let lowest = self.kept.peek().filter(|_| self.kept.len() >= self.count);
        match lowest {
            None if self.count == 0 => {}
            Some(Reverse(lowest)) if key < lowest.key => {}
            lowest => {
                let ranks = Reverse(ranks_of());
                let kept = TopEntry { key, ranks };
                if lowest.is_some_and(|Reverse(lowest)| kept < *lowest) {
                    return;
                }
                if lowest.is_some() {
                    self.kept.pop();
                }
                self.kept.push(Reverse(kept));
            }
        }
    }

    /// Ranks of ids with their values as text, highest first; of edges the ranks of both ends.
    pub(crate) fn into_rows(self) -> impl Iterator<Item = ([u64; 2], String)> {
        let kept = self.kept.into_sorted_vec().into_iter();
        kept.map(|Reverse(kept)| (kept.ranks.0, kept.key.text()))
    }
}

#[cfg(test)]
mod tests {
    use graphmill_algorithms::{NO_EDGE, edge_row};

    use super::*;

    #[test]
    fn heaviest_edges_come_in_order_of_ends() {
        let rows = vec![
            edge_row(2.0, 4, 1),
            NO_EDGE,
            edge_row(2.0, 0, 9),
            edge_row(f64::NAN, 1, 2),
            edge_row(-1.0, 3, 3),
        ];
        let mut top = TopK::new(3);
        top.edges(&ValueColumn::Edges(rows), false);
        assert_eq!(top.reached, 4);
        let found: Vec<_> = top.into_rows().collect();
        let expected = [([0, 9], "2.0"), ([1, 4], "2.0"), ([3, 3], "-1.0")];
        assert!(
            found
                .iter()
                .map(|(ends, text)| (*ends, &**text))
                .eq(expected)
        );
    }

    fn ranks(top: TopK) -> Vec<u64> {
        top.into_rows().map(|([rank, _], _)| rank).collect()
    }

    #[test]
    fn top_of_ties_is_in_order_of_ids() {
        let mut top = TopK::new(3);
        top.values(&ValueColumn::F64(vec![1.0, 5.0, 2.0]), false, |place| {
            place as u64
        });
        let next = ValueColumn::F64(vec![5.0, 0.5, 3.0, 5.0]);
        top.values(&next, false, |place| place as u64 + 3);
        assert_eq!(ranks(top), [1, 3, 6]);
        // Ids may come in any order.
        let mut top = TopK::new(2);
        top.values(&ValueColumn::U32(vec![7; 5]), false, |place| {
            [4, 2, 0, 3, 1][place]
        });
        assert_eq!(ranks(top), [0, 1]);
    }

    #[test]
    fn top_of_many_costs_no_more_than_a_sort() {
        let values = |from: u64| (0..1000).map(move |i| ((from + i) * 7919 % 100_003) as f64);
        let mut top = TopK::new(200_000);
        for from in (0..200_000).step_by(1000) {
            let raw = ValueColumn::F64(values(from).collect());
            top.values(&raw, false, |place| from + place as u64);
        }
        let mut expected: Vec<u64> = (0..200_000).collect();
        expected.sort_by_key(|v| Reverse(v * 7919 % 100_003));
        assert!(ranks(top) == expected);
    }

    #[test]
    fn top_leaves_out_unreached_and_nan() {
        let mut top = TopK::new(9);
        let values = vec![1.0, f64::INFINITY, f64::NAN, 2.0];
        top.values(&ValueColumn::F64(values), true, |place| place as u64);
        assert_eq!(top.reached, 2);
        assert_eq!(ranks(top), [3, 0]);
    }

    #[test]
    fn top_of_none_still_counts() {
        let mut top = TopK::new(0);
        top.sizes(&ValueColumn::U32(vec![0, 4, 0, 1]), |place| place as u64);
        assert_eq!(top.reached, 2);
        assert!(ranks(top).is_empty());
    }
}
