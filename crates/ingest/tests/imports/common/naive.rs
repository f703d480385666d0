//! An import in a few lines, which takes no care of memory or time.

use std::collections::BTreeMap;

use graphmill_graph::{EdgeKind, VertexId};
use graphmill_ingest::{Duplicates, ImportOptions, SelfLoops};

use super::Memory;
use super::source::data_of;

/// A graph as a test sees it: ids in order, and sorted arcs (source, destination, bits of the data).
///
/// The ends of arcs are ranks of ids.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Plain {
    pub(crate) ids: Vec<VertexId>,
    pub(crate) arcs: Vec<(u64, u64, u128)>,
    pub(crate) reverse: Option<Vec<(u64, u64, u128)>>,
    pub(crate) dropped_duplicates: u64,
    pub(crate) dropped_self_loops: u64,
}

/// The arcs that leave each vertex, by rank, before duplicates are dropped.
pub(crate) fn degrees(source: &Memory, plain: &Plain, options: &ImportOptions) -> Vec<u64> {
    // Signed integers are unsigned ones if none is negative.
    let form = |id: &VertexId| match *id {
        VertexId::Integer(id) => VertexId::Signed(id as i64),
        ref id => id.clone(),
    };
    let ranks: BTreeMap<_, _> = plain.ids.iter().map(form).zip(0..).collect();
    let mut degrees = vec![0; ranks.len()];
    for (source, destination, _) in source.pieces.iter().flatten() {
        let is_loop = source == destination;
        if !is_loop || options.self_loops == SelfLoops::Keep {
            degrees[ranks[&form(source)]] += 1;
        }
        if !is_loop && !options.directed {
            degrees[ranks[&form(destination)]] += 1;
        }
    }
    degrees
}

/// What the import should make of `source`: everything in one map.
pub(crate) fn naive(source: &Memory, vertices: Option<&Memory>, options: &ImportOptions) -> Plain {
    let key = |id: &VertexId| match id {
        VertexId::Integer(id) => id.to_be_bytes().to_vec(),
        VertexId::Signed(id) => (*id as u64 ^ 1 << 63).to_be_bytes().to_vec(),
        VertexId::Text(id) => id.clone(),
        VertexId::Uuid(id) => id.to_vec(),
    };
    let mut index: BTreeMap<Vec<u8>, (VertexId, u64)> = BTreeMap::new();
    for edge in source.pieces.iter().flatten().chain(
        vertices
            .iter()
            .flat_map(|list| list.pieces.iter().flatten()),
    ) {
        for id in [&edge.0, &edge.1] {
            index.insert(key(id), (id.clone(), 0));
        }
    }
    for id in 0..source.vertices.unwrap_or(0) {
        index.insert(id.to_be_bytes().to_vec(), (VertexId::Integer(id), 0));
    }
    for (at, entry) in index.values_mut().enumerate() {
        entry.1 = at as u64;
    }
    let mut plain = Plain {
        ids: index.values().map(|entry| entry.0.clone()).collect(),
        ..Plain::default()
    };
    if !plain
        .ids
        .iter()
        .any(|id| matches!(id, VertexId::Signed(..0)))
    {
        for id in &mut plain.ids {
            if let VertexId::Signed(number) = *id {
                *id = VertexId::Integer(number as u64);
            }
        }
    }
    if options.edge_vertices {
        let first = plain.ids.len() as u64;
        for (edge, (source_id, destination_id, weight)) in
            (first..).zip(source.pieces.iter().flatten())
        {
            let ends = [index[&key(source_id)].1, index[&key(destination_id)].1];
            let weight = data_of(*weight, source.weights);
            match ends[0] == ends[1] {
                true => plain.dropped_self_loops += 1,
                false => (plain.arcs).extend([(ends[0], edge, weight), (edge, ends[1], weight)]),
            }
        }
        plain.arcs.sort_unstable();
        return plain;
    }
    // The weights of each pair, in the order of the input.
    let mut groups: BTreeMap<(u64, u64), Vec<f64>> = BTreeMap::new();
    for (source, destination, weight) in source.pieces.iter().flatten() {
        let (mut source, mut destination) = (index[&key(source)].1, index[&key(destination)].1);
        if source == destination && options.self_loops == SelfLoops::Drop {
            plain.dropped_self_loops += 1;
            continue;
        }
        if !options.directed && source > destination {
            std::mem::swap(&mut source, &mut destination);
        }
        groups
            .entry((source, destination))
            .or_default()
            .push(*weight);
    }
    let bits = |weight: f64| data_of(weight, source.weights);
    let value = |weight: f64| {
        if source.weights == EdgeKind::F32 {
            f64::from(weight as f32)
        } else {
            weight
        }
    };
    for (&(a, b), weights) in &groups {
        let mut by_bits = weights.clone();
        by_bits.sort_by_key(|&weight| bits(weight));
        let kept = match options.duplicates {
            Duplicates::Keep => by_bits,
            Duplicates::First => vec![weights[0]],
            Duplicates::Sum => vec![by_bits.iter().map(|&weight| value(weight)).sum()],
            Duplicates::Min => vec![
                weights
                    .iter()
                    .copied()
                    .min_by(|a, b| value(*a).total_cmp(&value(*b)))
                    .unwrap(),
            ],
            Duplicates::Max => vec![
                weights
                    .iter()
                    .copied()
                    .max_by(|a, b| value(*a).total_cmp(&value(*b)))
                    .unwrap(),
            ],
        };
        plain.dropped_duplicates += (weights.len() - kept.len()) as u64;
        for weight in kept {
            plain.arcs.push((a, b, bits(weight)));
            if !options.directed && a != b {
                plain.arcs.push((b, a, bits(weight)));
            }
        }
    }
    plain.arcs.sort_unstable();
    if options.directed && options.reverse {
        let mut arcs: Vec<_> = plain
            .arcs
            .iter()
            .map(|&(a, b, weight)| (b, a, weight))
            .collect();
        arcs.sort_unstable();
        plain.reverse = Some(arcs);
    }
    plain
}
