//! The examples of the crate, on one rank and on three, against answers by other methods.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use graphmill::prelude::*;
use graphmill::{Error, ImportConfig, Order, Session};
use tempfile::TempDir;

use crate::common::{import, on_ranks, values};

#[expect(
    dead_code,
    reason = "the tests call the program, not its main function"
)]
#[path = "../../examples/day_trips.rs"]
mod day_trips;
#[expect(
    dead_code,
    reason = "the tests call the program, not its main function"
)]
#[path = "../../examples/hash_min.rs"]
mod hash_min;
#[expect(
    dead_code,
    reason = "the tests call the program, not its main function"
)]
#[path = "../../examples/k_core.rs"]
mod k_core;
#[expect(
    dead_code,
    reason = "the tests call the program, not its main function"
)]
#[path = "../../examples/label_propagation.rs"]
mod label_propagation;
#[expect(
    dead_code,
    reason = "the tests call the program, not its main function"
)]
#[path = "../../examples/shortest_paths.rs"]
mod shortest_paths;

/// An undirected graph: parts that are dense and sparse, with a length of each edge.
fn edges() -> BTreeMap<(u64, u64), f64> {
    let mut edges = BTreeMap::new();
    let mut state = 7_u64;
    let mut random = |below: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) % below
    };
    for (count, from, to) in [(900, 0, 150), (500, 100, 600), (150, 700, 900)] {
        for _ in 0..count {
            let [u, v] = [from + random(to - from), from + random(to - from)];
            if u != v {
                // Sums of such lengths are exact.
                edges.insert((u.min(v), u.max(v)), (1 + random(64)) as f64 / 4.0);
            }
        }
    }
    edges
}

fn neighbours(edges: &BTreeMap<(u64, u64), f64>) -> BTreeMap<u64, Vec<(u64, f64)>> {
    let mut of: BTreeMap<u64, Vec<(u64, f64)>> = BTreeMap::new();
    for (&(u, v), &length) in edges {
        of.entry(u).or_default().push((v, length));
        of.entry(v).or_default().push((u, length));
    }
    of
}

/// Runs a program on both orders of the graph, on one rank and on three.
fn check<T: graphmill::ResultScalar + PartialEq + std::fmt::Debug>(
    expected: &BTreeMap<u64, T>,
    files: &[(&str, &str)],
    program: impl Fn(&mut Session, &std::path::Path) -> Result<VertexArray<T>, Error> + Sync,
) {
    let lines = edges().into_iter();
    let lines: String = lines.map(|((u, v), w)| format!("{u} {v} {w}\n")).collect();
    for order in [Order::Id, Order::Degree] {
        let folder = TempDir::new().expect("a folder");
        for (name, text) in files {
            std::fs::write(folder.path().join(name), text).expect("room");
        }
        let options = ImportConfig {
            directed: false,
            weights: EdgeKind::F64,
            order,
            ..ImportConfig::default()
        };
        let graph = import(folder.path(), &lines, options);
        for ranks in [1, 3] {
            let found = on_ranks(&graph, ranks, |mut session| {
                let array = program(&mut session, folder.path())?;
                values(&mut session, array)
            })
            .expect("a run");
            let found: BTreeMap<u64, T> = (found.into_iter())
                .map(|(id, value)| (id.parse().expect("an id"), value))
                .collect();
            assert!(found == *expected, "{order:?}, {ranks} ranks: {found:?}");
        }
    }
}

fn own(error: Box<dyn std::error::Error + Send + Sync>) -> Error {
    *error.downcast().expect("an error of the library")
}

#[test]
fn k_core_example_equals_peeling() {
    let graph = neighbours(&edges());
    for k in [1, 3, 8, 40] {
        let mut core: BTreeSet<u64> = graph.keys().copied().collect();
        let inside = |core: &BTreeSet<u64>, v: u64| {
            let of = graph[&v].iter().filter(|(u, _)| core.contains(u));
            of.count() as u64
        };
        // One vertex at a time, until none has to leave.
        while let Some(v) = core.iter().copied().find(|v| inside(&core, *v) < k) {
            core.remove(&v);
        }
        assert_eq!(core.is_empty(), k == 40);
        let count = |v: &u64| {
            if core.contains(v) {
                inside(&core, *v)
            } else {
                0
            }
        };
        let expected = graph.keys().map(|v| (*v, count(v))).collect();
        check(&expected, &[], |session, _| {
            let (neighbours, size) = k_core::k_core(session, k).map_err(own)?;
            assert_eq!(size, core.len() as u64);
            Ok(neighbours)
        });
    }
}

#[test]
fn shortest_paths_example_equals_relaxation() {
    let graph = neighbours(&edges());
    let mut expected: BTreeMap<u64, f64> = graph.keys().map(|v| (*v, f64::INFINITY)).collect();
    let source = *graph.keys().next().expect("a vertex");
    expected.insert(source, 0.0);
    // Every edge as often as there are vertices, at most.
    loop {
        let before = expected.clone();
        for ((u, v), length) in edges() {
            for (from, to) in [(u, v), (v, u)] {
                let offer = expected[&from] + length;
                if offer < expected[&to] {
                    expected.insert(to, offer);
                }
            }
        }
        if before == expected {
            break;
        }
    }
    assert!(expected.values().any(|distance| distance.is_infinite()));
    check(&expected, &[], |session, _| {
        shortest_paths::shortest_paths(session, &source.to_string())
    });
}

#[test]
fn hash_min_example_names_components_by_least_id() {
    let graph = neighbours(&edges());
    let mut component: BTreeMap<u64, u64> = BTreeMap::new();
    // From the smallest id up, so the first vertex of a component is its name.
    for &first in graph.keys() {
        let mut stack = vec![first];
        while let Some(v) = stack.pop() {
            if let Entry::Vacant(place) = component.entry(v) {
                place.insert(first);
                stack.extend(graph[&v].iter().map(|(u, _)| *u));
            }
        }
    }
    let ordinals: Vec<u64> = graph.keys().copied().collect();
    let ordinal = |name: &u64| ordinals.binary_search(name).expect("a vertex") as u64;
    let expected = component.iter().map(|(v, name)| (*v, ordinal(name)));
    check(&expected.collect(), &[], |session, _| {
        hash_min::components(session).map_err(own)
    });
}

#[test]
fn examples_for_undirected_graphs_refuse_directed_ones() {
    let folder = TempDir::new().expect("a folder");
    let graph = import(folder.path(), "b a\nb c\n", ImportConfig::default());
    on_ranks(&graph, 1, |mut session| {
        let cores = k_core::k_core(&mut session, 1).map(drop);
        let components = hash_min::components(&mut session).map(drop);
        for done in [cores, components] {
            let said = done.expect_err("a directed graph").to_string();
            assert!(said.contains("--undirected"), "{said}");
        }
        Ok(())
    })
    .expect("a session");
}

#[test]
fn label_propagation_example_equals_counting() {
    const ROUNDS: u64 = 5;
    let graph = neighbours(&edges());
    let seeds: BTreeMap<u64, u32> = (graph.keys().step_by(29))
        .zip(0..)
        .map(|(v, number)| (*v, number % 3))
        .collect();
    let mut labels = seeds.clone();
    for _ in 0..ROUNDS {
        let mut next = labels.clone();
        for (v, of) in &graph {
            let mut votes: BTreeMap<u32, u32> = BTreeMap::new();
            for label in of.iter().filter_map(|(u, _)| labels.get(u)) {
                *votes.entry(*label).or_default() += 1;
            }
            let most = votes.values().max().copied();
            let first = votes.iter().find(|vote| Some(*vote.1) == most);
            if let Some((label, _)) = first.filter(|_| !seeds.contains_key(v)) {
                next.insert(*v, *label);
            }
        }
        labels = next;
    }
    let text: String = seeds
        .iter()
        .map(|(v, label)| format!("{v} {label}\n"))
        .collect();
    let expected = graph
        .keys()
        .map(|v| (*v, labels.get(v).copied().unwrap_or(u32::MAX)));
    check(
        &expected.collect(),
        &[("seeds.txt", &text)],
        |session, folder| {
            label_propagation::labels(session, &folder.join("seeds.txt"), ROUNDS).map_err(own)
        },
    );
}

/// The guide's program is the example, block by block, in order.
#[test]
fn guide_has_the_code_of_the_example() {
    let page = include_str!("../../../../docs/guide/first-program.md");
    let example = include_str!("../../examples/k_core.rs");
    let mut rest = example;
    let mut blocks = 0;
    for block in page.split("```rust\n").skip(1) {
        let code = block.split("```").next().expect("a block");
        let (before, after) = rest.split_once(code).expect(code);
        let is_prose = |line: &str| line.is_empty() || line.starts_with("//!");
        assert!(before.lines().all(is_prose), "not in the guide: {before}");
        rest = after;
        blocks += 1;
    }
    assert!(
        blocks > 0 && rest.trim().is_empty(),
        "not in the guide: {rest}"
    );
}

#[test]
fn day_trips_example_equals_relaxation() {
    // The hour of a trip follows from its length; each goes both ways.
    let hour = |length: f64| (length * 4.0) as u8 % 24;
    let all = edges();
    let lines = all
        .iter()
        .map(|((u, v), w)| format!("{u},{v},{},{w}\n", hour(*w)));
    let lines = format!("from,to,hour,fare\n{}", lines.collect::<String>());
    let graph = neighbours(&all);
    let source = *graph.keys().next().expect("a vertex");
    let mut expected: BTreeMap<u64, f64> = graph.keys().map(|v| (*v, f64::INFINITY)).collect();
    expected.insert(source, 0.0);
    loop {
        let before = expected.clone();
        for ((u, v), fare) in all.iter().filter(|(_, w)| (6..22).contains(&hour(**w))) {
            for (from, to) in [(u, v), (v, u)] {
                let offer = expected[from] + fare;
                if offer < expected[to] {
                    expected.insert(*to, offer);
                }
            }
        }
        if expected == before {
            break;
        }
    }
    for order in [Order::Id, Order::Degree] {
        let folder = TempDir::new().expect("a folder");
        let mut options = ImportConfig {
            directed: false,
            order,
            ..ImportConfig::default()
        };
        options.text.edge_data = "fare:f32,hour:u8".parse().expect("fields");
        let graph = import(folder.path(), &lines, options);
        for ranks in [1, 3] {
            let found = on_ranks(&graph, ranks, |mut session| {
                let fares = day_trips::day_trips(&mut session, &source.to_string())?;
                values(&mut session, fares)
            });
            let found: BTreeMap<u64, f64> = (found.expect("a run").into_iter())
                .map(|(id, value)| (id.parse().expect("an id"), value))
                .collect();
            assert!(found == expected, "{order:?}, {ranks} ranks: {found:?}");
        }
    }
}
