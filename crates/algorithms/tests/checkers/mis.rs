//! Independent sets.

use graphmill_algorithms::check::Violation;
use graphmill_algorithms::mis::Priority;
use graphmill_algorithms::mis::check::*;

use crate::odd;

const PRIORITIES: [Priority; 3] = [Priority::Id, Priority::Hash(0), Priority::Hash(77)];

/// The set by rounds over all arcs: another method.
///
/// A round takes the vertices that come before all undecided neighbours.
fn rounds(vertices: u64, arcs: &[(u64, u64)], priority: Priority) -> Vec<u64> {
    const UNDECIDED: u64 = 2;
    let mut state = vec![UNDECIDED; vertices as usize];
    while state.contains(&UNDECIDED) {
        let mut is_first: Vec<bool> = state.iter().map(|state| *state == UNDECIDED).collect();
        for &(u, v) in arcs {
            if u != v && state[u as usize] == UNDECIDED && state[v as usize] == UNDECIDED {
                let later = if priority.of(u) < priority.of(v) {
                    v
                } else {
                    u
                };
                is_first[later as usize] = false;
            }
        }
        let first = (0..is_first.len()).filter(|vertex| is_first[*vertex]);
        first.for_each(|vertex| state[vertex] = 1);
        for &(u, v) in arcs {
            for (from, to) in [(u, v), (v, u)] {
                if state[from as usize] == 1 && state[to as usize] == UNDECIDED {
                    state[to as usize] = 0;
                }
            }
        }
    }
    state
}

#[test]
fn sets_right_pass_and_any_change_is_refused() {
    let small = odd::graphs().into_iter().filter(|graph| graph.1 <= 100);
    for (name, vertices, arcs) in small.chain(odd::tangled()) {
        for priority in PRIORITIES {
            let right = rounds(vertices, &arcs, priority);
            let check = |selected: &[u64]| check_set(vertices, &arcs, priority, selected);
            assert_eq!(check(&right), Ok(()), "{name}, {priority:?}");
            for vertex in 0..right.len() {
                for bad in [1 - right[vertex], 2, u64::MAX] {
                    let mut selected = right.clone();
                    selected[vertex] = bad;
                    assert!(check(&selected).is_err(), "{name}: {vertex} to {bad}");
                }
            }
        }
    }
}

#[test]
fn other_maximal_sets_are_refused() {
    let arcs = [(0, 1), (1, 2), (2, 2)];
    assert_eq!(check_set(3, &arcs, Priority::Id, &[1, 0, 1]), Ok(()));
    let other = check_set(3, &arcs, Priority::Id, &[0, 1, 0]);
    assert!(other.is_err(), "maximal, but not the greedy one");
    let smaller = check_set(3, &arcs, Priority::Id, &[1, 0, 0]);
    assert!(smaller.is_err(), "not maximal");
    let larger = check_set(3, &arcs, Priority::Id, &[1, 1, 1]);
    assert!(larger.is_err(), "not independent");
}

#[test]
fn priorities_are_unique_and_depend_on_the_seed() {
    for priority in PRIORITIES {
        let mut all: Vec<u64> = (0..10_000).map(|v| priority.of(v)).collect();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 10_000, "{priority:?}");
    }
    // The sets of all releases: these numbers never change.
    let first = [0, 1, 2].map(|v| Priority::Hash(0).of(v));
    assert_eq!(first, FIRST);
    assert_ne!(first, [0, 1, 2].map(|v| Priority::Hash(1).of(v)));
}

const FIRST: [u64; 3] = [
    0x4821_8226_ff3c_d4bf,
    0x9e01_6029_3a33_aaf7,
    0x3dd5_eb04_03ed_dd79,
];

#[test]
fn empty_graph_passes_and_misfits_are_refused() {
    assert_eq!(check_set(0, &[], Priority::Id, &[]), Ok(()));
    assert!(matches!(
        check_set(0, &[], Priority::Id, &[0]),
        Err(Violation::Length { .. })
    ));
    assert!(matches!(
        check_set(2, &[(2, 0)], Priority::Id, &[0, 1]),
        Err(Violation::NoSuchVertex { .. })
    ));
}
