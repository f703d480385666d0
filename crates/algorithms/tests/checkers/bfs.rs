//! Depths and parents.

use graphmill_algorithms::bfs::check::*;
use graphmill_algorithms::check::Violation;

use crate::odd;

/// Depths by relaxing all arcs until nothing changes: a third method.
fn relaxed(vertices: u64, arcs: &[(u64, u64)], source: u64) -> Vec<Option<u64>> {
    let mut depths = vec![None; vertices as usize];
    depths[source as usize] = Some(0);
    loop {
        let before = depths.clone();
        for &(u, v) in arcs {
            if let Some(above) = depths[u as usize] {
                depths[v as usize] =
                    Some(depths[v as usize].map_or(above + 1, |d: u64| d.min(above + 1)));
            }
        }
        if depths == before {
            return depths;
        }
    }
}

#[test]
fn depths_right_pass_and_any_change_is_refused() {
    for (name, vertices, arcs) in odd::graphs() {
        for source in [0, vertices / 2, vertices - 1] {
            let right = relaxed(vertices, &arcs, source);
            assert_eq!(
                check_depths(vertices, &arcs, source, &right),
                Ok(()),
                "{name}"
            );
            for vertex in (0..right.len()).step_by(1 + right.len() / 40) {
                for bad in [
                    None,
                    Some(0),
                    Some(1),
                    Some(7),
                    right[vertex].map(|d| d + 1),
                    Some(u64::MAX),
                ] {
                    let mut depths = right.clone();
                    depths[vertex] = bad;
                    let verdict = check_depths(vertices, &arcs, source, &depths);
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
fn depths_on_unreached_cycle_are_refused() {
    let arcs = [(0, 1), (2, 3), (3, 2)];
    assert!(check_depths(4, &arcs, 0, &[Some(0), Some(1), Some(4), Some(5)]).is_err());
    assert_eq!(
        check_depths(4, &arcs, 0, &[Some(0), Some(1), None, None]),
        Ok(())
    );
}

#[test]
fn parent_is_smallest_vertex_one_level_up() {
    // 5 is reached from 2 and 4, both at depth 1; 1 has an arc to 5 as well but is one level below.
    let arcs = [
        (0, 4),
        (0, 2),
        (4, 5),
        (2, 5),
        (5, 1),
        (1, 5),
        (0, 4),
        (5, 5),
    ];
    let right = [Some(0), Some(5), Some(0), None, Some(0), Some(2)];
    assert_eq!(check_parents(6, &arcs, 0, &right), Ok(()));
    for (vertex, bad) in [
        (5, Some(4)),
        (5, Some(1)),
        (5, Some(5)),
        (5, None),
        (0, None),
        (3, Some(0)),
        (1, Some(9)),
    ] {
        let mut parents = right;
        parents[vertex] = bad;
        let objection = check_parents(6, &arcs, 0, &parents).expect_err("a wrong parent");
        assert!(
            matches!(objection, Violation::Vertex { vertex: v, .. } if v == vertex as u64),
            "{objection}"
        );
    }
}

#[test]
fn values_outside_graph_are_refused() {
    assert!(matches!(
        check_depths(0, &[], 0, &[]),
        Err(Violation::NoSuchVertex { .. })
    ));
    assert!(matches!(
        check_depths(2, &[(0, 2)], 0, &[Some(0), None]),
        Err(Violation::NoSuchVertex { .. })
    ));
    assert!(matches!(
        check_depths(2, &[], 0, &[Some(0)]),
        Err(Violation::Length { .. })
    ));
    assert!(matches!(
        check_parents(2, &[], 2, &[Some(0), None]),
        Err(Violation::NoSuchVertex { .. })
    ));
}
