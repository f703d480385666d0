//! Labels of communities.

use std::collections::BTreeMap;

use graphmill_algorithms::cdlp::check::*;
use graphmill_algorithms::check::Violation;

use crate::odd;

/// Labels by a table of counts for each vertex: another method.
fn counted(vertices: u64, arcs: &[(u64, u64)], symmetric: bool, rounds: u64) -> Vec<u64> {
    let mut labels: Vec<u64> = (0..vertices).collect();
    for _ in 0..rounds {
        let mut counts = vec![BTreeMap::<u64, u64>::new(); labels.len()];
        for &(u, v) in arcs {
            *counts[v as usize].entry(labels[u as usize]).or_default() += 1;
            if !symmetric {
                *counts[u as usize].entry(labels[v as usize]).or_default() += 1;
            }
        }
        for (label, counts) in labels.iter_mut().zip(counts) {
            let most = counts.values().max().copied();
            let first = counts.iter().find(|(_, count)| Some(**count) == most);
            *label = first.map_or(*label, |(label, _)| *label);
        }
    }
    labels
}

#[test]
fn labels_right_pass_and_any_change_is_refused() {
    let small = odd::graphs().into_iter().filter(|graph| graph.1 <= 100);
    for (name, vertices, arcs) in small.chain(odd::tangled()) {
        for (symmetric, rounds) in [(false, 0), (false, 1), (true, 1), (false, 6), (true, 9)] {
            let right = counted(vertices, &arcs, symmetric, rounds);
            let check = |labels: &[u64]| check_labels(vertices, &arcs, symmetric, rounds, labels);
            assert_eq!(check(&right), Ok(()), "{name}, {rounds} rounds");
            for vertex in (0..right.len()).step_by(1 + right.len() / 40) {
                for bad in [0, vertex as u64, right[vertex] + 1, vertices, u64::MAX] {
                    let mut labels = right.clone();
                    labels[vertex] = bad;
                    let is_same = bad == right[vertex];
                    let verdict = check(&labels);
                    assert_eq!(verdict.is_ok(), is_same, "{name}: {vertex} to {bad}");
                }
            }
        }
    }
}

#[test]
fn other_rules_are_refused() {
    // Vertex 1 counts label 0 once, label 2 twice, and its own label twice for its loop.
    let arcs = [(0, 1), (2, 1), (1, 2), (1, 1)];
    let check = |labels: &[u64]| check_labels(3, &arcs, false, 1, labels);
    assert_eq!(check(&[1, 1, 1]), Ok(()), "a loop counts twice");
    assert!(check(&[1, 2, 1]).is_err(), "the greatest of a tie");
    assert!(check(&[1, 0, 1]).is_err(), "each label once");
    assert!(check(&[0, 1, 1]).is_err(), "against the arcs");
    let check = |labels: &[u64]| check_labels(3, &arcs, true, 1, labels);
    assert_eq!(check(&[0, 0, 1]), Ok(()), "along the arcs alone");
}

#[test]
fn empty_graph_passes_and_misfits_are_refused() {
    assert_eq!(check_labels(0, &[], false, 10, &[]), Ok(()));
    assert!(matches!(
        check_labels(0, &[], false, 10, &[0]),
        Err(Violation::Length { .. })
    ));
    assert!(matches!(
        check_labels(2, &[(2, 0)], false, 10, &[0, 1]),
        Err(Violation::NoSuchVertex { .. })
    ));
}
