//! Beliefs, their bounds on rounding, and graphs that are no vertices of edges.

use graphmill_algorithms::bp::BpOptions;
use graphmill_algorithms::bp::check::check_beliefs;

#[test]
fn beliefs_check_refuses_wrong_values() {
    // Two edges from vertex 0 to 1, one from 1 to 2, and a self-loop without arcs.
    let arcs = [
        (0, 3, 1.0),
        (3, 1, 1.0),
        (0, 5, 1.0),
        (5, 1, 1.0),
        (1, 6, 2.0),
        (6, 2, 2.0),
    ];
    let options = BpOptions {
        potential: [[3.0, 1.0], [2.0, 5.0]],
        iterations: 4,
        tolerance: None,
    };
    let prior = |v: u64| [0.2, 0.5, 1.0][v as usize];
    // By hand: vertex 2 is in state 1, and the two edges between 0 and 1 count as one with the squared potential.
    let one = |s: usize, t: usize| {
        let pair: f64 = options.potential[s][t];
        pair * pair
    };
    let joint = |s: usize, t: usize| [0.8, 0.2][s] * 0.5 * one(s, t) * [1.0_f64, 5.0][t].powi(2);
    let all: f64 = [(0, 0), (0, 1), (1, 0), (1, 1)]
        .map(|(s, t)| joint(s, t))
        .iter()
        .sum();
    let right = [
        (joint(1, 0) + joint(1, 1)) / all,
        (joint(0, 1) + joint(1, 1)) / all,
        1.0,
    ];
    let exact = |iterations, arcs: &[_], found: &[f64]| {
        let options = BpOptions {
            iterations,
            ..options
        };
        check_beliefs(3, arcs, prior, &options, found)
    };
    // Parallel edges are a loop, so beliefs differ from the marginals; with one of them they do not.
    assert!(exact(50, &arcs, &right).is_err());
    let squared = [(0, 3, 2.0), (3, 1, 2.0), (1, 6, 2.0), (6, 2, 2.0)];
    assert_eq!(exact(50, &squared, &right), Ok(()));
    assert!(exact(1, &squared, &right).is_err());
    for vertex in 0..3 {
        let mut wrong = right;
        wrong[vertex] -= 1e-8;
        assert!(exact(50, &squared, &wrong).is_err(), "{wrong:?}");
    }
    assert!(exact(50, &squared, &right[..2]).is_err());
    for wrong in [(0, 1, 1.0), (0, 3, 1.0), (4, 5, 1.0)] {
        assert!(exact(50, &[&squared[..], &[wrong]].concat(), &right).is_err());
    }
    // The vertices of self-loops take no memory, however many there are.
    let far = squared.map(|(u, v, weight)| {
        let far = |v: u64| if v < 3 { v } else { v << 50 };
        (far(u), far(v), weight)
    });
    assert_eq!(exact(50, &far, &right), Ok(()));
}
