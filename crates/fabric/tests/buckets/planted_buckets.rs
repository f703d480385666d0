//! Planted mistakes in the streams of buckets: the exchange of messages shows each.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use graphmill_fabric::bucket::LossyModel;
use graphmill_raw::{Failpoint, SplitMix64, activate};

use crate::alone;
use crate::cluster::{Cluster, LINK};

const LANES: [usize; 2] = [2, 2];
const MODEL: LossyModel = LossyModel {
    lost: 50,
    doubled: 50,
    changed: 50,
    late: 300,
    ..LINK
};

/// Exchanges messages of two lengths, and then messages of ranks that start again.
fn exchange(seed: u64) {
    for width in [8, 3000] {
        let cluster = Cluster {
            steps_max: 50_000,
            ..Cluster::new(seed, &LANES, MODEL, false)
        };
        cluster.check(&mut SplitMix64::new(seed), 4, width, 2000 / width.min(20));
    }
    let late = LossyModel {
        late: 900,
        late_by: Duration::from_millis(2),
        ..LINK
    };
    let first = Cluster::new(seed, &LANES, late, false);
    first.check(&mut SplitMix64::new(seed), 1, 8, 300);
    let again = Cluster {
        steps_max: 50_000,
        ..Cluster::start(first.link.clone(), &LANES, 4, false)
    };
    again.check(&mut SplitMix64::new(seed + 1), 1, 8, 300);
}

/// Returns what a seed finds, if anything.
fn found(seed: u64) -> Option<String> {
    let panic = catch_unwind(AssertUnwindSafe(|| exchange(seed))).err()?;
    let text = panic.downcast_ref::<String>().cloned();
    let text = text.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string));
    Some(text.unwrap_or_default())
}

#[test]
fn all_are_found() {
    let _alone = alone();
    std::panic::set_hook(Box::new(|_| ()));
    let without: Option<String> = (0..20).find_map(found);
    let mut missed = Vec::new();
    for mistake in (Failpoint::ALL.iter().copied()).filter(|mistake| mistake.is_in_buckets()) {
        activate(Some(mistake));
        match (0..20).find_map(|seed| Some((seed, found(seed)?))) {
            Some((seed, what)) => {
                let line = what.lines().next().unwrap_or_default();
                println!("{mistake:?}: seed {seed}: {:.60}", line);
            }
            None => missed.push(mistake),
        }
        activate(None);
    }
    drop(std::panic::take_hook());
    assert_eq!(without, None, "found without a mistake");
    assert!(missed.is_empty(), "{missed:?}");
}
