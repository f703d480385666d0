//! The options of all algorithms.

use graphmill_algorithms::{Entry, registry};

#[test]
fn option_of_several_algorithms_has_one_kind() {
    let all: Vec<_> = registry().iter().flat_map(|entry| entry.options).collect();
    for (one, other) in all
        .iter()
        .flat_map(|one| all.iter().map(move |other| (one, other)))
    {
        assert!(
            one.name != other.name || one.kind == other.kind,
            "{one:?}, {other:?}"
        );
    }
}

#[test]
fn algorithm_names_and_aliases_are_unique() {
    let names = |entry: &Entry| [&[entry.name], entry.aliases].concat();
    let mut all: Vec<_> = registry().iter().flat_map(names).collect();
    let count = all.len();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), count);
}
