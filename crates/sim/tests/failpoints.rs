//! The simulation finds each failpoint. One test activates them in turn, since each is active in the whole process.

use graphmill_raw::{Failpoint, activate};
use graphmill_sim::{
    check_seed, every_cut_going_on, every_failed_name, every_failed_sync, every_power_cut,
    every_wish, mutations,
};

/// Seeds, at most, until one finds a mistake.
const SEEDS: u64 = 600;

/// What finds a mistake.
fn found(mistake: Failpoint) -> Option<String> {
    let by_changes = matches!(
        mistake,
        Failpoint::PagesNotChecked | Failpoint::VersionNotChecked | Failpoint::GraphPagesNotChecked
    );
    if by_changes {
        let mut parts = (0..160).map(|part| (part, [7, 0, 6, 8][part as usize % 4]));
        return parts.find_map(|(part, seed)| mutations(seed, 100 * part..100 * part + 100).err());
    }
    match mistake {
        Failpoint::FailedSyncIgnored => {
            return [7, 0, 6]
                .into_iter()
                .find_map(|seed| every_failed_sync(seed).err());
        }
        Failpoint::FoundNotDurable => {
            return [18, 24]
                .into_iter()
                .find_map(|seed| every_cut_going_on(seed).err());
        }
        Failpoint::DecisionForgotten | Failpoint::PatienceForgotten => {
            return [7, 2220]
                .into_iter()
                .find_map(|seed| every_wish(seed).err());
        }
        Failpoint::EndNotSaid => return every_power_cut(0, 0).err(),
        Failpoint::FailedListIgnored => {
            return [7, 0, 6]
                .into_iter()
                .find_map(|seed| every_failed_name(seed).err());
        }
        _ => {}
    }
    let by_cuts = [7, 0, 6]
        .into_iter()
        .flat_map(|seed| [0, 1].map(|state| (seed, state)));
    let mut seeds = 0..SEEDS;
    seeds.find_map(|seed| check_seed(seed).err()).or_else(|| {
        by_cuts
            .clone()
            .find_map(|(seed, state)| every_power_cut(seed, state).err())
    })
}

#[test]
fn failpoints_are_all_found() {
    // Panics that mistakes lead to are caught, and told with the seed.
    std::panic::set_hook(Box::new(|_| ()));
    let mut missed = Vec::new();
    // Those in buckets have a test of their own.
    for mistake in (Failpoint::ALL.iter().copied()).filter(|mistake| !mistake.is_in_buckets()) {
        activate(Some(mistake));
        match found(mistake) {
            Some(what) => println!("{mistake:?}: {}", what.lines().last().unwrap_or_default()),
            None => missed.push(mistake),
        }
        activate(None);
    }
    drop(std::panic::take_hook());
    assert!(missed.is_empty(), "{missed:?}");
}
