//! Ranks after a number of iterations, and converged ranks.

use graphmill_algorithms::check::Violation;
use graphmill_algorithms::pagerank::Dangling;
use graphmill_algorithms::pagerank::check::*;

use crate::odd;

const NO_ARCS: &[(u64, u64)] = &[];

/// Ranks by a full matrix, column by column: another method.
fn by_matrix(
    vertices: u64,
    arcs: &[(u64, u64)],
    equation: Equation<'_>,
    iterations: u32,
) -> Vec<f64> {
    let n = vertices as usize;
    let is_place = |v: usize| equation.sources.is_empty() || equation.sources.contains(&(v as u64));
    let places = (0..n).filter(|v| is_place(*v)).count() as f64;
    let jump = |v: usize| if is_place(v) { 1.0 / places } else { 0.0 };
    let mut ranks: Vec<f64> = (0..n).map(jump).collect();
    for _ in 0..iterations {
        let mut next: Vec<f64> = (0..n).map(|v| (1.0 - equation.damping) * jump(v)).collect();
        for (u, rank) in ranks.iter().enumerate() {
            let to: Vec<usize> = arcs
                .iter()
                .filter(|arc| arc.0 == u as u64)
                .map(|arc| arc.1 as usize)
                .collect();
            for v in &to {
                next[*v] += equation.damping * rank / to.len() as f64;
            }
            if to.is_empty() && equation.dangling == Dangling::Redistribute {
                (0..n).for_each(|v| next[v] += equation.damping * rank * jump(v));
            }
        }
        ranks = next;
    }
    ranks
}

#[test]
fn ranks_right_pass_and_any_change_is_refused() {
    for (name, vertices, arcs) in odd::graphs().into_iter().filter(|graph| graph.1 <= 100) {
        for dangling in [Dangling::Redistribute, Dangling::Drop] {
            for sources in [&[][..], &[0], &[0, vertices - 1, 0]] {
                let equation = Equation {
                    dangling,
                    sources,
                    ..Equation::default()
                };
                let right = by_matrix(vertices, &arcs, equation, 7);
                let judge =
                    |ranks: &[f64]| check_iterations(vertices, &arcs, equation, 7, ranks, 1e-12);
                assert_eq!(judge(&right), Ok(()), "{name}, {equation:?}");
                for vertex in 0..right.len() {
                    for bad in [f64::NAN, -1.0, right[vertex] * (1.0 + 1e-9) + 1e-300] {
                        let mut ranks = right.clone();
                        ranks[vertex] = bad;
                        assert!(
                            judge(&ranks).is_err(),
                            "{name}, {equation:?}: {vertex} to {bad}"
                        );
                    }
                }
                let converged = by_matrix(vertices, &arcs, equation, 300);
                assert_eq!(
                    check_fixed_point(vertices, &arcs, equation, &converged, 1e-12),
                    Ok(()),
                    "{name}"
                );
            }
        }
    }
}

#[test]
fn dangling_and_iterations_change_ranks() {
    let arcs = [(0, 1), (1, 2), (0, 2)];
    let right = by_matrix(3, &arcs, Equation::default(), 5);
    let drop = Equation {
        dangling: Dangling::Drop,
        ..Equation::default()
    };
    assert_eq!(
        check_iterations(3, &arcs, Equation::default(), 5, &right, 1e-12),
        Ok(())
    );
    assert!(check_iterations(3, &arcs, drop, 5, &right, 1e-12).is_err());
    assert!(check_iterations(3, &arcs, Equation::default(), 4, &right, 1e-12).is_err());
    assert!(check_fixed_point(3, &arcs, Equation::default(), &right, 1e-6).is_err());
    let halves = Equation {
        sources: &[0, 1],
        ..Equation::default()
    };
    assert!(check_iterations(3, &arcs, halves, 5, &right, 1e-12).is_err());
}

#[test]
fn ranks_sum_to_one_without_drops() {
    for (name, vertices, arcs) in odd::graphs().into_iter().filter(|graph| graph.1 <= 100) {
        let ranks = by_matrix(vertices, &arcs, Equation::default(), 20);
        let verdict = check_iterations(vertices, &arcs, Equation::default(), 20, &ranks, 1e-12);
        assert_eq!(verdict, Ok(()), "{name}");
        let sum: f64 = ranks.iter().sum();
        assert!((sum - 1.0).abs() < 1e-12, "{name}: {sum}");
    }
}

#[test]
fn empty_graph_passes_and_bad_input_is_refused() {
    assert_eq!(
        check_iterations(0, NO_ARCS, Equation::default(), 10, &[], 0.0),
        Ok(())
    );
    assert_eq!(
        check_fixed_point(0, NO_ARCS, Equation::default(), &[], 0.0),
        Ok(())
    );
    let far = Equation {
        sources: &[3],
        ..Equation::default()
    };
    assert!(matches!(
        check_fixed_point(3, NO_ARCS, far, &[0.0; 3], 1.0),
        Err(Violation::NoSuchVertex { .. })
    ));
    let damping = Equation {
        damping: 1.5,
        ..Equation::default()
    };
    assert!(matches!(
        check_fixed_point(1, NO_ARCS, damping, &[1.0], 1.0),
        Err(Violation::Input { .. })
    ));
}
