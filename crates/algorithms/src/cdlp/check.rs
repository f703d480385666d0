//! Checks communities: sorts the labels that all arcs bring, round by round.

use crate::check::{Violation, ViolationValue, bytes_of, check_shape, check_value};

/// Accepts `labels` only if they are the communities after `iterations` rounds.
///
/// If the graph is `symmetric`, the arcs have their opposites; otherwise each arc brings labels to both of its ends.
///
/// # Errors
/// The first [`Violation`] found.
pub fn check_labels(
    vertices: u64,
    arcs: &[(u64, u64)],
    symmetric: bool,
    iterations: u64,
    labels: &[u64],
) -> Result<(), Violation> {
    check_shape(vertices, labels.len(), arcs.iter().copied())?;
    let mut expected: Vec<u64> = (0..vertices).collect();
    let mut brought = Vec::with_capacity(2 * arcs.len());
    for _ in 0..iterations {
        if !propagate(arcs, symmetric, &mut expected, &mut brought) {
            break;
        }
    }
    for (vertex, (label, expected)) in labels.iter().zip(expected).enumerate() {
        let values = [Some(*label), Some(expected)];
        let rule = "the label that most neighbours have in each round, of several the smallest";
        let is_right = *label == expected;
        check_value(is_right, vertex, values, ViolationValue::Vertex, rule)?;
    }
    Ok(())
}

/// Bytes of memory of the checker, without arcs and labels.
pub(crate) fn bytes(vertices: u64, arcs: u64) -> u64 {
    bytes_of(&[
        (vertices, size_of::<u64>()),
        (arcs, 2 * size_of::<(u64, u64)>()),
    ])
}

/// Runs one round; returns whether it changed a label.
fn propagate(
    arcs: &[(u64, u64)],
    symmetric: bool,
    labels: &mut [u64],
    brought: &mut Vec<(u64, u64)>,
) -> bool {
    brought.clear();
    for &(source, destination) in arcs {
        brought.push((destination, labels[source as usize]));
        if !symmetric {
            brought.push((source, labels[destination as usize]));
        }
    }
    brought.sort_unstable();
    let mut has_changed = false;
    for to_vertex in brought.chunk_by(|one, next| one.0 == next.0) {
        let equal = to_vertex.chunk_by(|one, next| one.1 == next.1);
        // Of several with the greatest count this is the last: labels descend.
        let most = equal.rev().max_by_key(|equal| equal.len());
        if let Some((vertex, label)) = most.and_then(|equal| equal.first()) {
            let before = std::mem::replace(&mut labels[*vertex as usize], *label);
            has_changed |= before != *label;
        }
    }
    has_changed
}
