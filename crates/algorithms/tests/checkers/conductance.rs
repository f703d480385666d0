//! The numbers of a cut.

use graphmill_algorithms::conductance::check::check_row;

/// An undirected path of four vertices, whose first two are the set.
const ARCS: [(u64, u64); 6] = [(0, 1), (1, 0), (1, 2), (2, 1), (2, 3), (3, 2)];

#[test]
fn conductance_check_refuses_wrong_numbers() {
    let check = |found| check_row(&ARCS, |v| v < 2, false, &found);
    let right = [Some(1.0), Some(3.0), Some(3.0), Some(1.0 / 3.0)];
    assert_eq!(check(right), Ok(()));
    for place in 0..4 {
        for wrong in [None, Some(2.0)] {
            let mut found = right;
            found[place] = wrong;
            assert!(check(found).is_err(), "{found:?}");
        }
    }
}

#[test]
fn conductance_check_counts_both_directions_of_directed_graphs() {
    let arcs = [(0, 2, 0.5), (2, 0, 0.25), (2, 3, 1.0)];
    let check = |found| check_row(&arcs, |v| v < 2, true, &found);
    let right = [Some(0.75), Some(0.5), Some(1.25), Some(1.5)];
    assert_eq!(check(right), Ok(()));
    assert!(check([Some(0.5), right[1], right[2], Some(1.0)]).is_err());
}

#[test]
fn conductance_of_a_side_without_arcs_is_undefined() {
    let check = |value| {
        let found = [Some(0.0), Some(0.0), Some(6.0), value];
        check_row(&ARCS, |_| false, false, &found)
    };
    assert_eq!(check(None), Ok(()));
    assert!(check(Some(0.0)).is_err());
}
