//! Checks labels of strong components by Tarjan's algorithm, without recursion.

use crate::check::{BySource, Violation, ViolationValue, bytes_of, check_shape, check_value};

/// Accepts `labels` only if each is the smallest vertex of its vertex's strong component.
///
/// # Errors
/// The first [`Violation`] found.
pub fn check_strong(vertices: u64, arcs: &[(u64, u64)], labels: &[u64]) -> Result<(), Violation> {
    check_shape(vertices, labels.len(), arcs.iter().copied())?;
    let expected = tarjan(vertices as usize, arcs);
    for (vertex, (label, expected)) in labels.iter().zip(expected).enumerate() {
        let values = [Some(*label), Some(expected)];
        let rule = "the label is the smallest vertex of the strong component";
        let is_right = *label == expected;
        check_value(is_right, vertex, values, ViolationValue::Vertex, rule)?;
    }
    Ok(())
}

/// Bytes of memory of the checker, without arcs and labels.
pub(crate) fn bytes(vertices: u64, arcs: u64) -> u64 {
    // Three lists of marks, the path of open vertices, and the walk with places in lists of arcs.
    let each = 6 * size_of::<usize>();
    bytes_of(&[(vertices, each)]).saturating_add(BySource::bytes(vertices, arcs))
}

/// The number of a vertex that the walk has not met.
const UNSEEN: usize = usize::MAX;

/// Labels each vertex with the smallest one of its strong component.
fn tarjan(vertices: usize, arcs: &[(u64, u64)]) -> Vec<u64> {
    let outgoing = BySource::new(vertices, arcs.iter().map(|arc| arc.0));
    // The order in which the walk meets vertices, and the earliest open vertex that each one reaches.
    let (mut met, mut low) = (vec![UNSEEN; vertices], vec![UNSEEN; vertices]);
    let mut labels = vec![u64::MAX; vertices];
    let mut open = Vec::with_capacity(vertices);
    let mut walk: Vec<(usize, usize)> = Vec::with_capacity(vertices);
    let mut count = 0;
    for start in 0..vertices {
        if met[start] != UNSEEN {
            continue;
        }
        walk.push((start, 0));
        while let Some((vertex, place)) = walk.last_mut() {
            let vertex = *vertex;
            if met[vertex] == UNSEEN {
                (met[vertex], low[vertex]) = (count, count);
                count += 1;
                open.push(vertex);
            }
            if let Some(arc) = outgoing.of(vertex).get(*place) {
                let next = arcs[*arc].1 as usize;
                *place += 1;
                if met[next] == UNSEEN {
                    walk.push((next, 0));
                } else if labels[next] == u64::MAX {
                    low[vertex] = low[vertex].min(met[next]);
                }
                continue;
            }
            walk.pop();
            if let Some((before, _)) = walk.last() {
                low[*before] = low[*before].min(low[vertex]);
            }
            if low[vertex] == met[vertex] {
                let first = open.iter().rposition(|member| *member == vertex);
                let members = open.split_off(first.unwrap_or(0));
                let least = members.iter().min().copied().unwrap_or(vertex);
                for member in members {
                    labels[member] = least as u64;
                }
            }
        }
    }
    labels
}
