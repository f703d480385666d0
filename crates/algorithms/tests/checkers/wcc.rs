//! Labels of components.

use graphmill_algorithms::check::Violation;
use graphmill_algorithms::wcc::check::*;

use crate::odd;

/// Labels by spreading the smaller one over every arc until nothing changes: another method.
fn spread(vertices: u64, arcs: &[(u64, u64)]) -> Vec<u64> {
    let mut labels: Vec<u64> = (0..vertices).collect();
    loop {
        let before = labels.clone();
        for &(u, v) in arcs {
            let label = labels[u as usize].min(labels[v as usize]);
            labels[u as usize] = label;
            labels[v as usize] = label;
        }
        if labels == before {
            return labels;
        }
    }
}

#[test]
fn labels_right_pass_and_any_change_is_refused() {
    for (name, vertices, arcs) in odd::graphs() {
        let right = spread(vertices, &arcs);
        assert_eq!(check_components(vertices, &arcs, &right), Ok(()), "{name}");
        for vertex in (0..right.len()).step_by(1 + right.len() / 40) {
            for bad in [0, vertex as u64, right[vertex] + 1, vertices, u64::MAX] {
                let mut labels = right.clone();
                labels[vertex] = bad;
                let verdict = check_components(vertices, &arcs, &labels);
                assert_eq!(
                    verdict.is_ok(),
                    bad == right[vertex],
                    "{name}: {vertex} to {bad}"
                );
            }
        }
    }
}

#[test]
fn components_merged_or_split_are_refused() {
    let arcs = [(0, 1), (3, 4), (4, 5)];
    assert_eq!(check_components(6, &arcs, &[0, 0, 2, 3, 3, 3]), Ok(()));
    assert!(check_components(6, &arcs, &[0, 0, 2, 0, 0, 0]).is_err());
    assert!(check_components(6, &arcs, &[0, 0, 2, 3, 4, 4]).is_err());
    assert!(
        check_components(6, &arcs, &[1, 1, 2, 5, 5, 5]).is_err(),
        "right parts, but not the smallest vertex"
    );
}

#[test]
fn empty_graph_passes_and_misfits_are_refused() {
    assert_eq!(check_components(0, &[], &[]), Ok(()));
    assert!(matches!(
        check_components(0, &[], &[0]),
        Err(Violation::Length { .. })
    ));
    assert!(matches!(
        check_components(2, &[(2, 0)], &[0, 1]),
        Err(Violation::NoSuchVertex { .. })
    ));
}
