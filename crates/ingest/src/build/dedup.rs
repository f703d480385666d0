//! Duplicate arcs: arcs that join the same two vertices.
//!
//! The input is a run of records sorted by key that holds every arc with each of its keys. The output is the retained arcs, in
//! place and in an order that only the input decides. An undirected edge is two arcs that carry the same weight and the
//! same sequence number, so a decision for one arc holds for the other.

use graphmill_graph::EdgeKind;

use crate::edge_data::{weight_bits, weight_of_bits};
use crate::error::IngestError;
use crate::external::radix_sort::SortRecord;
use crate::options::Duplicates;

/// A record of a key, and of data and a sequence number where it has them.
pub(crate) trait ArcRecord: SortRecord {
    /// The record.
    fn new(key: u64, data: u128, sequence: u64) -> Self;
    /// The data of the arc.
    fn data(&self) -> u128 {
        0
    }
    /// Replaces the bits of a weight.
    fn set_weight(&mut self, _bits: u64) {}
    /// The number of the edge in the input.
    fn sequence(&self) -> u64 {
        0
    }
}

impl ArcRecord for u64 {
    #[inline(always)]
    fn new(key: u64, _data: u128, _sequence: u64) -> Self {
        key
    }
}

impl ArcRecord for [u64; 2] {
    #[inline(always)]
    fn new(key: u64, data: u128, _sequence: u64) -> Self {
        [key, data as u64]
    }
    fn data(&self) -> u128 {
        self[1].into()
    }
    fn set_weight(&mut self, bits: u64) {
        self[1] = bits;
    }
}

impl ArcRecord for [u64; 3] {
    #[inline(always)]
    fn new(key: u64, data: u128, sequence: u64) -> Self {
        [key, data as u64, sequence]
    }
    fn data(&self) -> u128 {
        self[1].into()
    }
    fn set_weight(&mut self, bits: u64) {
        self[1] = bits;
    }
    fn sequence(&self) -> u64 {
        self[2]
    }
}

/// Records with data of more than 8 bytes; without a sequence number that is 0.
impl ArcRecord for [u64; 4] {
    #[inline(always)]
    fn new(key: u64, data: u128, sequence: u64) -> Self {
        [key, data as u64, (data >> u64::BITS) as u64, sequence]
    }
    fn data(&self) -> u128 {
        u128::from(self[2]) << u64::BITS | u128::from(self[1])
    }
    fn sequence(&self) -> u64 {
        self[3]
    }
}

/// Applies `policy` to sorted `records`, moves the retained ones to the front and returns their number.
///
/// The retained records stay sorted. The function calls `dropped(key, arcs)` for every key that lost arcs.
///
/// # Errors
/// [`IngestError::SumTooLarge`].
pub(crate) fn resolve<R: ArcRecord>(
    records: &mut [R],
    policy: Duplicates,
    kind: EdgeKind,
    mut dropped: impl FnMut(u64, u64),
) -> Result<usize, IngestError> {
    let weighted = kind != EdgeKind::None;
    if policy == Duplicates::Keep && !weighted {
        return Ok(records.len());
    }
    let (mut read, mut kept) = (0, 0);
    while read < records.len() {
        let key = records[read].key();
        let mut end = read + 1;
        while end < records.len() && records[end].key() == key {
            end += 1;
        }
        if end - read == 1 {
            records[kept] = records[read];
            (kept, read) = (kept + 1, end);
            continue;
        }
        let group = &mut records[read..end];
        if policy == Duplicates::Keep {
            group.sort_unstable_by_key(R::data);
            records.copy_within(read..end, kept);
            (kept, read) = (kept + end - read, end);
            continue;
        }
        let mut survivor = group[0];
        if weighted {
            match policy {
                Duplicates::Keep => {}
                Duplicates::First => {
                    let first = group.iter().copied().min_by_key(R::sequence);
                    survivor = first.unwrap_or(survivor);
                }
                Duplicates::Sum => {
                    group.sort_unstable_by_key(R::data);
                    let weights = group
                        .iter()
                        .map(|record| weight_of_bits(record.data(), kind));
                    let sum: f64 = weights.sum();
                    survivor.set_weight(weight_bits(sum, kind));
                    if !weight_of_bits(survivor.data(), kind).is_finite() {
                        return Err(IngestError::SumTooLarge);
                    }
                }
                Duplicates::Min | Duplicates::Max => {
                    let weight = |record: &R| weight_of_bits(record.data(), kind);
                    for record in group.iter() {
                        let order = weight(record).total_cmp(&weight(&survivor));
                        if order.is_lt() == (policy == Duplicates::Min) && order.is_ne() {
                            survivor = *record;
                        }
                    }
                }
            }
        }
        dropped(key, (end - read - 1) as u64);
        records[kept] = survivor;
        (kept, read) = (kept + 1, end);
    }
    Ok(kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn records(list: &[(u64, f64)]) -> Vec<[u64; 3]> {
        list.iter()
            .enumerate()
            .map(|(i, &(key, weight))| [key, weight_bits(weight, EdgeKind::F32), 100 - i as u64])
            .collect()
    }

    fn outcome(policy: Duplicates) -> (Vec<(u64, f64)>, u64) {
        let mut list = records(&[
            (1, 5.0),
            (2, 3.0),
            (2, -1.0),
            (2, 2.0),
            (7, 0.5),
            (7, 0.5),
            (9, 1.0),
        ]);
        let mut lost = 0;
        let kept = resolve(&mut list, policy, EdgeKind::F32, |_, arcs| lost += arcs).unwrap();
        (
            list[..kept]
                .iter()
                .map(|r| (r[0], weight_of_bits(r[1].into(), EdgeKind::F32)))
                .collect(),
            lost,
        )
    }

    #[test]
    fn dedup_policies_keep_the_named_edge() {
        // The records of one key come in any order: the last of the list has the smallest sequence number.
        assert_eq!(
            outcome(Duplicates::First),
            (vec![(1, 5.0), (2, 2.0), (7, 0.5), (9, 1.0)], 3)
        );
        assert_eq!(
            outcome(Duplicates::Sum),
            (vec![(1, 5.0), (2, 4.0), (7, 1.0), (9, 1.0)], 3)
        );
        assert_eq!(
            outcome(Duplicates::Min),
            (vec![(1, 5.0), (2, -1.0), (7, 0.5), (9, 1.0)], 3)
        );
        assert_eq!(
            outcome(Duplicates::Max),
            (vec![(1, 5.0), (2, 3.0), (7, 0.5), (9, 1.0)], 3)
        );
        let (kept, lost) = outcome(Duplicates::Keep);
        assert_eq!((kept.len(), lost), (7, 0));
        assert_eq!(
            kept[1..4],
            [(2, 2.0), (2, 3.0), (2, -1.0)],
            "in order of their bits"
        );
    }

    #[test]
    fn dedup_sum_beyond_precision_is_refused() {
        let mut list = records(&[(4, 3e38), (4, 3e38)]);
        let sum = resolve(&mut list, Duplicates::Sum, EdgeKind::F32, |_, _| {});
        assert!(matches!(sum, Err(IngestError::SumTooLarge)));
    }

    #[test]
    fn dedup_ignores_the_order_of_equal_keys() {
        for policy in [
            Duplicates::Keep,
            Duplicates::First,
            Duplicates::Sum,
            Duplicates::Min,
            Duplicates::Max,
        ] {
            let mut forth = records(&[(4, 1e8), (4, 1.0), (4, -1e8), (4, 1.0)]);
            let mut back: Vec<_> = forth.iter().rev().copied().collect();
            let kept = resolve(&mut forth, policy, EdgeKind::F32, |_, _| {}).unwrap();
            assert_eq!(
                kept,
                resolve(&mut back, policy, EdgeKind::F32, |_, _| {}).unwrap()
            );
            let weights = |list: &[[u64; 3]]| list[..kept].iter().map(|r| r[1]).collect::<Vec<_>>();
            assert_eq!(weights(&forth), weights(&back), "{policy:?}");
        }
    }

    #[test]
    fn dedup_without_weights_leaves_one() {
        let mut keys = [3u64, 3, 3, 5, 8, 8];
        assert_eq!(
            resolve(&mut keys, Duplicates::Keep, EdgeKind::None, |_, _| {}).unwrap(),
            6
        );
        let mut lost = Vec::new();
        let kept = resolve(&mut keys, Duplicates::Min, EdgeKind::None, |key, arcs| {
            lost.push((key, arcs))
        })
        .unwrap();
        assert_eq!(
            (&keys[..kept], lost),
            (&[3, 5, 8][..], vec![(3, 2), (8, 1)])
        );
    }
}
