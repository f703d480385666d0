//! What every change has to pass: seeds of everything, and all that can go wrong with a few small jobs. `GRAPHMILL_SEEDS` multiplies, and
//! `GRAPHMILL_SOAK=1` asks for more of it.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use graphmill_sim::{
    Scenario, SkewedGraph, balance, check_seed, every_cut_going_on, every_failed_name,
    every_failed_sync, every_failure, every_power_cut, every_wish, mutations, silent_peer,
    without_locks,
};

/// How many times as much as usual.
fn times() -> u64 {
    let asked = std::env::var("GRAPHMILL_SEEDS").ok();
    asked.and_then(|times| times.parse().ok()).unwrap_or(1)
}

/// One number in the gate, another in the soak.
fn either<T>(gate: T, soak: T) -> T {
    match std::env::var_os("GRAPHMILL_SOAK") {
        None => gate,
        Some(_) => soak,
    }
}

/// Does the same for all numbers below `count`, on all processors; the sum of what it came to.
fn for_all(count: u64, work: impl Fn(u64) -> Result<u64, String> + Sync) -> u64 {
    let (next, sum) = (AtomicU64::new(0), AtomicU64::new(0));
    let wrong = Mutex::new(Vec::new());
    let threads = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= count {
                        break;
                    }
                    match work(number) {
                        Ok(done) => drop(sum.fetch_add(done, Ordering::Relaxed)),
                        Err(what) => wrong.lock().expect("a list").push(what),
                    }
                }
            });
        }
    });
    let wrong = wrong.into_inner().expect("a list");
    assert!(
        wrong.is_empty(),
        "{} wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    sum.into_inner()
}

#[test]
fn random_faults_end_in_the_right_answer() {
    let seeds = either(1000, 2000) * times();
    let resumed = for_all(seeds, |seed| check_seed(seed).map(|report| report.resumed));
    assert!(
        resumed >= seeds / 20,
        "{resumed} failed that had gone on with a version"
    );
}

#[test]
fn cases_cover_the_stream_executor() {
    let mut counts = BTreeMap::<String, u64>::new();
    let mut count = |what: String| *counts.entry(what).or_default() += 1;
    for seed in 0..1000 {
        let case = Scenario::draw(seed);
        let Some(chunks) = case.chunks else {
            continue;
        };
        count("chunks".to_string());
        count(case.algorithm.to_string());
        if case.ranks > 1 {
            count(format!("{} by ranks", case.algorithm));
            count(format!("steal {}", chunks.steal));
            count(format!("updates {:?}", chunks.updates));
            count(format!("window {:?}", chunks.window));
        }
    }
    println!("{counts:#?}");
    let algorithms = [
        "bfs",
        "sssp",
        "wcc",
        "pagerank",
        "scc",
        "mst",
        "mis",
        "conductance",
        "spmv",
        "bp",
    ];
    let of_ranks = algorithms.map(|algorithm| format!("{algorithm} by ranks"));
    let choices = [
        "steal 0",
        "steal 1",
        "steal inf",
        "updates Auto",
        "updates Memory",
        "updates Disk",
        "window None",
        "window Some(1)",
        "window Some(3)",
    ];
    let all = of_ranks.into_iter().chain(choices.map(String::from));
    let rare: Vec<_> = all.filter(|what| counts.get(what) < Some(&8)).collect();
    assert!(rare.is_empty() && counts["chunks"] > 450, "rare: {rare:?}");
}

#[test]
fn stealing_balances_skewed_graphs() {
    for graph in SkewedGraph::ALL {
        let report = balance(1, graph).expect("it runs");
        let [without, with] = [0, 1].map(|run| report.runs[run].busiest_over_mean());
        println!("{report}");
        assert!(without > 3.0 && with < 1.15, "{report}");
    }
}

#[test]
fn seed_fixes_a_run() {
    for_all(20, |seed| {
        let (one, two) = (check_seed(seed)?, check_seed(seed)?);
        match one == two {
            true => Ok(0),
            false => Err(format!("seed {seed}: {one:?}, then {two:?}")),
        }
    });
}

/// Seeds of small jobs: by one rank, by two on one disk, and by two with disks of their own.
const SMALL: [u64; 3] = [7, 0, 6];

/// Those whose power is cut: a thousand operations and more together.
const CUT: [u64; 6] = [13, 23, 0, 3, 32, 5];

/// The seed and the number within it.
fn part(number: u64, seeds: &[u64]) -> (u64, u64) {
    let count = seeds.len() as u64;
    (seeds[(number % count) as usize], number / count)
}

#[test]
fn power_cut_at_any_operation_is_survived() {
    // The rest is drawn for each.
    let draws = either(2, 5) * times();
    let states = for_all(draws * CUT.len() as u64, |number| {
        let (seed, part) = part(number, &CUT);
        every_power_cut(seed, part)
    });
    assert!(states >= 1000 * draws, "{states} states");
}

#[test]
fn disk_fault_at_any_operation_is_survived() {
    let failures = for_all(SMALL.len() as u64, |number| {
        every_failure(SMALL[number as usize])
    });
    assert!(failures >= 1000, "{failures} failures");
}

#[test]
fn resume_ignores_checkpoint_of_a_failed_sync() {
    let count = for_all(SMALL.len() as u64, |number| {
        every_failed_sync(SMALL[number as usize])
    });
    assert!(count >= 200, "{count} failures");
}

/// Those whose ranks have disks of their own and publish after each call.
const APART: [u64; 3] = [18, 24, 35];

#[test]
fn checkpoint_survives_power_cut_during_resume() {
    let apart = either(&APART[..2], &APART);
    let count = for_all(apart.len() as u64, |number| {
        every_cut_going_on(apart[number as usize])
    });
    assert!(count >= 200, "{count} power cuts");
}

#[test]
fn checkpoint_survives_a_failed_rename() {
    let count = for_all(SMALL.len() as u64, |number| {
        every_failed_name(SMALL[number as usize])
    });
    assert!(count >= 200, "{count} failures");
}

/// Seeds of jobs that are cancelled at each moment.
///
/// The last one chooses to continue in memory when there is a checkpoint to publish.
const ASKED: [u64; 4] = [7, 0, 5, 2220];

#[test]
fn cancel_at_any_moment_is_survived() {
    let count = for_all(ASKED.len() as u64, |number| {
        every_wish(ASKED[number as usize])
    });
    assert!(count >= 500, "{count} moments");
}

#[test]
fn checkpoint_without_locks_needs_a_named_directory() {
    let named = SMALL.map(|seed| without_locks(seed).expect("it goes on"));
    assert!(named.contains(&true) && named.contains(&false));
}

#[test]
fn silent_peer_is_named_by_all_ranks() {
    let mut tested =
        (64..).filter(|seed| silent_peer(*seed).unwrap_or_else(|what| panic!("{what}")));
    let seeds: Vec<u64> = tested.by_ref().take(either(4, 40)).collect();
    println!("seeds {seeds:?}");
}

#[test]
fn corrupt_bytes_are_detected_or_unused() {
    let noticed = for_all(25 * times(), |number| {
        let (seed, part) = part(number, &[7, 0, 6, 8, 3]);
        let (_, noticed) = mutations(seed, 250 * part..250 * (part + 1))?;
        Ok(noticed)
    });
    assert!(noticed >= 2400 * times(), "{noticed} noticed");
}
