//! Checks a set: it is independent, no vertex can be added, and a sequential greedy walk selects the same.

use crate::check::{BySource, Violation, bytes_of, check_shape, check_value, number};
use crate::mis::Priority;

/// Accepts `selected` (1 or 0 for each vertex) only if it is the greedy set in order of `priority`.
///
/// Directions of arcs do not matter.
///
/// # Errors
/// The first [`Violation`] found.
pub fn check_set(
    vertices: u64,
    arcs: &[(u64, u64)],
    priority: Priority,
    selected: &[u64],
) -> Result<(), Violation> {
    check_shape(vertices, selected.len(), arcs.iter().copied())?;
    let check = |is_right, vertex: usize, expected, rule| {
        let values = [Some(selected[vertex]), Some(expected)];
        check_value(is_right, vertex, values, number, rule)
    };
    for (vertex, value) in selected.iter().enumerate() {
        check(*value < 2, vertex, 0, "the value is 1 or 0")?;
    }
    let mut has_neighbour = vec![false; selected.len()];
    for &(u, v) in arcs.iter().filter(|(u, v)| u != v) {
        let (u, v) = (u as usize, v as usize);
        let is_free = selected[u] == 0 || selected[v] == 0;
        check(is_free, u, 0, "no two neighbours are in the set")?;
        has_neighbour[u] |= selected[v] == 1;
        has_neighbour[v] |= selected[u] == 1;
    }
    for (vertex, value) in selected.iter().enumerate() {
        let is_right = *value == 1 || has_neighbour[vertex];
        check(
            is_right,
            vertex,
            1,
            "each other vertex has a neighbour in the set",
        )?;
    }
    let greedy = walk(vertices, arcs, priority);
    for (vertex, value) in selected.iter().enumerate() {
        let expected = u64::from(greedy[vertex]);
        check(
            *value == expected,
            vertex,
            expected,
            "the greedy set in order of priority",
        )?;
    }
    Ok(())
}

/// Bytes of memory of the checker, without arcs and values.
pub(crate) fn bytes(vertices: u64, arcs: u64) -> u64 {
    let each = size_of::<usize>() + 3 * size_of::<bool>();
    let neighbours = BySource::bytes(vertices, arcs);
    bytes_of(&[(vertices, each)]).saturating_add(neighbours.saturating_mul(2))
}

/// Selects each vertex that has no neighbour in the set yet, one after the other.
fn walk(vertices: u64, arcs: &[(u64, u64)], priority: Priority) -> Vec<bool> {
    let count = vertices as usize;
    let outgoing = BySource::new(count, arcs.iter().map(|arc| arc.0));
    let incoming = BySource::new(count, arcs.iter().map(|arc| arc.1));
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_unstable_by_key(|vertex| priority.of(*vertex as u64));
    let (mut selected, mut is_excluded) = (vec![false; count], vec![false; count]);
    for vertex in order {
        if is_excluded[vertex] {
            continue;
        }
        selected[vertex] = true;
        for arc in outgoing.of(vertex) {
            is_excluded[arcs[*arc].1 as usize] = true;
        }
        for arc in incoming.of(vertex) {
            is_excluded[arcs[*arc].0 as usize] = true;
        }
    }
    selected
}
