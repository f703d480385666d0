//! Random programs over random graphs, in random modes, against a naive simulator.
//!
//! A seed fixes a graph, a mode and a script of calls. `GRAPHMILL_SECONDS=3600` tries new seeds for that time, and
//! `GRAPHMILL_SEED=n` begins at seed n. A failure names its seed.

mod ask_programs;
mod count_programs;
mod edge_programs;
mod label_programs;
mod script;
mod vertex_programs;

use std::time::Duration;

use graphmill_engine::{
    BucketOptions, CombineChoice, DispatchChoice, EdgeResidency, KernelChoice, LinkChoice,
    ProgramFootprint, SparseChoice, StealBias, UpdateResidency,
};
use graphmill_storage::{Clock, IoChoice, SplitMix64, SystemClock, open_disk};

use crate::common::{Edge, Memory, Mode, Plain, Ranks};

/// Mixes the bits of a number, so that each depends on all.
fn mix(x: u64) -> u64 {
    SplitMix64::new(x).next_u64()
}

fn number_in(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

/// Calls `check` with seeds: `count` of them, or as many as the time allows.
fn for_seeds(count: u64, check: impl Fn(u64)) {
    let first = number_in("GRAPHMILL_SEED").unwrap_or(0);
    let seconds = number_in("GRAPHMILL_SECONDS").map(Duration::from_secs);
    let clock = SystemClock::new();
    for seed in first.. {
        let is_over = match seconds {
            Some(seconds) => clock.now() >= seconds,
            None => seed >= first + count,
        };
        if is_over {
            println!("{} seeds from {first} passed", seed - first);
            return;
        }
        let named = NamedSeed(seed);
        check(seed);
        drop(named);
    }
}

/// Prints the seed of a check that fails.
struct NamedSeed(u64);

impl Drop for NamedSeed {
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!("seed {} failed", self.0);
        }
    }
}

/// Draws one of some choices.
fn one_of<T: Copy, const N: usize>(random: &mut SplitMix64, choices: [T; N]) -> T {
    choices[random.below(N as u64) as usize]
}

/// Draws a graph: its shape, its size, and how many edges, loops and duplicates it has.
fn random_graph(random: &mut SplitMix64) -> Plain {
    let vertices = match random.below(5) {
        0 => 1 + random.below(4),
        1 => 1 + random.below(5000),
        _ => 1 + random.below(700),
    };
    let count = match random.below(4) {
        0 => random.below(4),
        1 => random.below(10 * vertices + 1),
        _ => random.below(3 * vertices + 1),
    };
    let hub = random.below(vertices);
    let shape = random.below(5);
    let edges: Vec<Edge> = (0..count)
        .map(|i| {
            let (u, v) = (random.below(vertices), random.below(vertices));
            let (u, v) = match shape {
                0 => (i % vertices, (i + 1) % vertices),
                1 => (hub, v),
                2 => (u, hub),
                3 => (u / 16 * 16, v / 4),
                _ => (u, v),
            };
            (u, v, random.below(3) as f64)
        })
        .collect();
    match random.below(2) {
        0 => Plain::directed("a random graph", vertices, edges),
        _ => Plain::undirected("a random symmetric graph", vertices, edges),
    }
}

/// Draws a mode for a program of that footprint.
fn random_mode(random: &mut SplitMix64, footprint: ProgramFootprint) -> Mode {
    let memory = match random.below(3) {
        0 => Memory::Bytes(1 << 28),
        1 => Memory::LeastAnd(0),
        _ => Memory::LeastAnd(random.below(3 << 20)),
    };
    let seed = random.next_u64();
    Mode {
        kernel: one_of(
            random,
            [
                KernelChoice::Auto,
                KernelChoice::Scatter,
                KernelChoice::Gather,
            ],
        ),
        sparse: one_of(
            random,
            [
                SparseChoice::Auto,
                SparseChoice::Never,
                SparseChoice::Always,
            ],
        ),
        threads: 1 + random.below(4) as usize,
        memory,
        io: one_of(random, [IoChoice::Auto, IoChoice::Threads]),
        edges: one_of(
            random,
            [
                EdgeResidency::Auto,
                EdgeResidency::Memory,
                EdgeResidency::Disk,
            ],
        ),
        dispatch: one_of(
            random,
            [
                DispatchChoice::Auto,
                DispatchChoice::Push,
                DispatchChoice::Pull,
                DispatchChoice::None,
            ],
        ),
        ranks: match random.below(4) {
            0 => Ranks::Local(2 + random.below(3) as usize),
            1 => Ranks::Simulated(2 + random.below(3) as usize, seed),
            _ => Ranks::One,
        },
        window_bytes: None,
        updates: one_of(
            random,
            [
                UpdateResidency::Auto,
                UpdateResidency::Auto,
                UpdateResidency::Disk,
            ],
        ),
        steal: StealBias::PAPER,
        buckets: None,
        footprint,
    }
}

/// Draws whether the bucket executor runs a seed, and how.
///
/// It has the same results if folds have no order.
fn in_buckets(seed: u64, mode: Mode) -> Mode {
    let random = &mut SplitMix64::new(seed ^ 0xb0c4e7);
    let combine = one_of(
        random,
        [
            CombineChoice::Auto,
            CombineChoice::Always,
            CombineChoice::Never,
        ],
    );
    let options = BucketOptions {
        link: one_of(random, [LinkChoice::Auto, LinkChoice::Udp]),
        threads: one_of(random, [None, None, Some([1, 2, 1]), Some([2, 1, 3])]),
        plain: random.below(2) == 0,
        combine,
        ..BucketOptions::default()
    };
    match (random.below(3), mode.ranks) {
        (0, Ranks::Simulated(..)) => Mode {
            buckets: Some(BucketOptions {
                combine,
                ..BucketOptions::default()
            }),
            memory: Memory::Bytes(1 << 28),
            ..mode
        },
        (0, _) => Mode {
            buckets: Some(options),
            memory: Memory::Bytes(1 << 28),
            ..mode
        },
        _ => mode,
    }
}

/// Stores the graph with random batches and strips, and calls `work` with its path.
///
/// A directed graph has its transpose if `both_ways`, and sometimes else.
fn with_stored(
    graph: &Plain,
    random: &mut SplitMix64,
    both_ways: bool,
    work: impl FnOnce(&std::path::Path),
) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("graph");
    let span = 1 << one_of(random, [3, 5, 6, 8, 20]);
    let span = span.max((graph.vertices / 200).next_power_of_two());
    let strip_edges_max = 1 + random.below(600);
    let reverse = !graph.symmetric && (random.below(2) == 0 || both_ways);
    let disk = open_disk(IoChoice::Auto).unwrap();
    graph.store(&disk, &path, span, strip_edges_max, reverse);
    work(&path);
}
