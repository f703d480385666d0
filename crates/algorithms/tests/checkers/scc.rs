//! Labels of strong components.

use graphmill_algorithms::check::Violation;
use graphmill_algorithms::scc::check::*;

use crate::odd;

/// Labels by a search from each vertex: another method.
fn closure(vertices: u64, arcs: &[(u64, u64)]) -> Vec<u64> {
    let count = vertices as usize;
    let mut outgoing = vec![Vec::new(); count];
    for &(u, v) in arcs {
        outgoing[u as usize].push(v as usize);
    }
    let reached_from = |start: usize| {
        let mut is_reached = vec![false; count];
        let mut open = vec![start];
        while let Some(vertex) = open.pop() {
            if !std::mem::replace(&mut is_reached[vertex], true) {
                open.extend(&outgoing[vertex]);
            }
        }
        is_reached
    };
    let reach: Vec<_> = (0..count).map(reached_from).collect();
    let label = |v: usize| (0..=v).find(|u| reach[*u][v] && reach[v][*u]);
    (0..count).map(|v| label(v).unwrap_or(v) as u64).collect()
}

#[test]
fn labels_right_pass_and_any_change_is_refused() {
    let small = odd::graphs().into_iter().filter(|graph| graph.1 <= 100);
    for (name, vertices, arcs) in small.chain(odd::tangled()) {
        let right = closure(vertices, &arcs);
        assert_eq!(check_strong(vertices, &arcs, &right), Ok(()), "{name}");
        for vertex in (0..right.len()).step_by(1 + right.len() / 40) {
            for bad in [0, vertex as u64, right[vertex] + 1, vertices, u64::MAX] {
                let mut labels = right.clone();
                labels[vertex] = bad;
                let verdict = check_strong(vertices, &arcs, &labels);
                let is_same = bad == right[vertex];
                assert_eq!(verdict.is_ok(), is_same, "{name}: {vertex} to {bad}");
            }
        }
    }
}

#[test]
fn components_merged_or_split_are_refused() {
    let arcs = [(0, 1), (1, 0), (1, 2), (2, 3), (3, 2)];
    assert_eq!(check_strong(4, &arcs, &[0, 0, 2, 2]), Ok(()));
    assert!(check_strong(4, &arcs, &[0, 0, 0, 0]).is_err(), "merged");
    assert!(check_strong(4, &arcs, &[0, 1, 2, 2]).is_err(), "split");
    assert!(
        check_strong(4, &arcs, &[1, 1, 3, 3]).is_err(),
        "not the smallest"
    );
}

#[test]
fn long_path_and_misfits_do_not_overflow() {
    let path: Vec<(u64, u64)> = (1..200_000).map(|v| (v - 1, v)).collect();
    let labels: Vec<u64> = (0..200_000).collect();
    assert_eq!(check_strong(200_000, &path, &labels), Ok(()));
    assert_eq!(check_strong(0, &[], &[]), Ok(()));
    assert!(matches!(
        check_strong(0, &[], &[0]),
        Err(Violation::Length { .. })
    ));
    assert!(matches!(
        check_strong(2, &[(2, 0)], &[0, 1]),
        Err(Violation::NoSuchVertex { .. })
    ));
}
