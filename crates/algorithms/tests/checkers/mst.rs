//! Spanning forests.

use graphmill_algorithms::check::Violation;
use graphmill_algorithms::mst::ForestEdge;
use graphmill_algorithms::mst::check::*;
use graphmill_algorithms::{NO_EDGE, key_weight, weight_key};

use crate::odd;

/// The forest by Prim's algorithm, edge by edge over all arcs: another method.
fn prim(vertices: u64, arcs: &[(u64, u64, f64)]) -> Vec<ForestEdge> {
    let mut rows = vec![NO_EDGE; vertices as usize];
    let mut is_in = vec![false; vertices as usize];
    for start in 0..vertices as usize {
        if std::mem::replace(&mut is_in[start], true) {
            continue;
        }
        loop {
            let crossing = |arc: &&(u64, u64, f64)| is_in[arc.0 as usize] != is_in[arc.1 as usize];
            // An edge to an earlier tree is an edge of that tree, so none crosses to it.
            let edge = |&(u, v, w): &(u64, u64, f64)| [weight_key(w), u.min(v), u.max(v)];
            let Some(least) = arcs.iter().filter(crossing).map(edge).min() else {
                break;
            };
            let [_, u, v] = least.map(|end| end as usize);
            let new = if is_in[u] { v } else { u };
            is_in[new] = true;
            rows[new] = least;
        }
    }
    rows
}

fn weighted(arcs: &[(u64, u64)]) -> Vec<(u64, u64, f64)> {
    let weight = |u: u64, v: u64| (u * 7 + v * 3) as f64 % 5.0 - 2.0;
    arcs.iter().map(|&(u, v)| (u, v, weight(u, v))).collect()
}

#[test]
fn forests_right_pass_and_any_change_is_refused() {
    let small = odd::graphs().into_iter().filter(|graph| graph.1 <= 100);
    for (name, vertices, arcs) in small.chain(odd::tangled()) {
        let arcs = weighted(&arcs);
        let right = prim(vertices, &arcs);
        let check = |rows: &[ForestEdge]| check_forest(vertices, &arcs, rows);
        assert_eq!(check(&right), Ok(()), "{name}");
        for vertex in 0..right.len() {
            let [key, u, v] = right[vertex];
            let other = match right[vertex] {
                NO_EDGE => [weight_key(1.0), 0, vertices - 1],
                _ => [key + 1, u, v],
            };
            let moved = [key, v, u];
            for bad in [other, NO_EDGE, moved] {
                let mut rows = right.clone();
                rows[vertex] = bad;
                assert_eq!(
                    check(&rows).is_ok(),
                    rows == right,
                    "{name}: {vertex} to {bad:?}"
                );
            }
        }
    }
}

#[test]
fn heavier_forests_and_cycles_are_refused() {
    let arcs = [
        (0, 1, 1.0),
        (1, 2, 1.0),
        (0, 2, 1.0),
        (2, 2, -5.0),
        (1, 2, 4.0),
    ];
    let [one, other, third, loops, heavy] =
        arcs.map(|(u, v, w)| [weight_key(w), u.min(v), u.max(v)]);
    let check = |rows: [ForestEdge; 3]| check_forest(3, &arcs, &rows);
    assert_eq!(check([NO_EDGE, one, third]), Ok(()));
    let refused = |rows| matches!(check(rows), Err(Violation::Edge { .. }));
    assert!(
        refused([NO_EDGE, one, other]),
        "a later edge of the same weight"
    );
    assert!(refused([one, other, third]), "a cycle");
    assert!(refused([loops, one, third]), "a self-loop");
    assert!(refused([NO_EDGE, one, heavy]), "a heavier parallel edge");
    assert!(refused([NO_EDGE, one, NO_EDGE]), "a missing edge");
}

#[test]
fn key_has_the_order_of_weights() {
    let weights = [
        f64::NEG_INFINITY,
        f64::MIN,
        -1.5,
        -f64::MIN_POSITIVE,
        0.0,
        5e-324,
        1.0,
        f64::MAX,
        f64::INFINITY,
    ];
    assert!(weights.is_sorted_by(|a, b| weight_key(*a) < weight_key(*b)));
    assert_eq!(weight_key(-0.0), weight_key(0.0));
    for weight in weights {
        assert_eq!(key_weight(weight_key(weight)).to_bits(), weight.to_bits());
    }
    assert!(weight_key(f64::INFINITY) < NO_EDGE[0]);
}
