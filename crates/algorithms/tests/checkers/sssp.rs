//! Distances.

use graphmill_algorithms::check::Violation;
use graphmill_algorithms::sssp::check::*;

use crate::odd;

/// Distances by rounds of relaxation (Bellman-Ford): another method.
fn relaxed(vertices: u64, arcs: &[(u64, u64, f64)], source: u64) -> Vec<Option<f64>> {
    let mut distances = vec![None; vertices as usize];
    distances[source as usize] = Some(0.0);
    loop {
        let before = distances.clone();
        for &(u, v, weight) in arcs {
            if let Some(near) = distances[u as usize] {
                distances[v as usize] = Some(
                    distances[v as usize].map_or(near + weight, |d: f64| d.min(near + weight)),
                );
            }
        }
        if distances == before {
            return distances;
        }
    }
}

#[test]
fn distances_right_pass_and_any_change_is_refused() {
    for (name, vertices, arcs) in odd::graphs() {
        // 0.1 and 0.7 so that sums round, 0 so that cycles of weight zero exist.
        let weight = |u: u64, v: u64| [0.1, 0.7, 0.0, 3.0][((u + v) % 4) as usize];
        let arcs: Vec<_> = arcs.iter().map(|&(u, v)| (u, v, weight(u, v))).collect();
        for source in [0, vertices / 2, vertices - 1] {
            let right = relaxed(vertices, &arcs, source);
            assert_eq!(
                check_distances(vertices, &arcs, source, &right),
                Ok(()),
                "{name}"
            );
            for vertex in (0..right.len()).step_by(1 + right.len() / 40) {
                let near = right[vertex].map(f64::next_up);
                for bad in [
                    None,
                    Some(0.0),
                    near,
                    Some(f64::NAN),
                    Some(f64::INFINITY),
                    Some(0.1),
                ] {
                    let mut distances = right.clone();
                    distances[vertex] = bad;
                    let verdict = check_distances(vertices, &arcs, source, &distances);
                    assert_eq!(
                        verdict.is_ok(),
                        bad == right[vertex],
                        "{name}, {source}: {vertex} to {bad:?}"
                    );
                }
            }
        }
    }
}

#[test]
fn distances_on_unreached_zero_cycle_are_refused() {
    let arcs = [(0, 1, 2_u32), (2, 3, 0), (3, 2, 0)];
    assert!(check_distances(4, &arcs, 0, &[Some(0), Some(2), Some(9), Some(9)]).is_err());
    assert_eq!(
        check_distances(4, &arcs, 0, &[Some(0), Some(2), None, None]),
        Ok(())
    );
}

#[test]
fn cheapest_parallel_arc_or_detour_counts() {
    let arcs = [
        (0, 1, 9.0_f32),
        (0, 1, 4.0),
        (0, 2, 1.0),
        (2, 1, 2.5),
        (1, 1, 0.0),
        (0, 0, 5.0),
    ];
    assert_eq!(
        check_distances(3, &arcs, 0, &[Some(0.0), Some(3.5), Some(1.0)]),
        Ok(())
    );
    assert!(check_distances(3, &arcs, 0, &[Some(0.0), Some(4.0), Some(1.0)]).is_err());
}

#[test]
fn distance_beyond_its_type_is_unreached() {
    let arcs = [(0, 1, f32::MAX), (1, 2, f32::MAX), (2, 3, 1.0)];
    let judge = |distances: &[_]| check_distances(4, &arcs, 0, distances);
    let near = [Some(0.0), Some(f32::MAX)];
    assert_eq!(judge(&[near, [None, None]].concat()), Ok(()));
    assert!(judge(&[near, [Some(f32::MAX), None]].concat()).is_err());
    assert!(judge(&[near, [Some(f32::INFINITY), None]].concat()).is_err());
}

#[test]
fn bad_sources_and_weights_are_refused() {
    assert!(matches!(
        check_distances::<f64>(0, &[], 0, &[]),
        Err(Violation::NoSuchVertex { .. })
    ));
    for weight in [-1.0, f64::NAN] {
        let verdict = check_distances(2, &[(0, 1, weight)], 0, &[Some(0.0), None]);
        assert!(matches!(verdict, Err(Violation::Input { .. })));
    }
}
