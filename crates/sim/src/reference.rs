//! The right answer, by a few lines for each algorithm that share no code with Graphmill.

use std::collections::{BTreeMap, BTreeSet};

use graphmill::EdgeKind;

use crate::scenario::Scenario;

/// Returns the first mistake in a result, if any.
pub(crate) fn wrong(case: &Scenario, result: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(result);
    if case.algorithm == "conductance" {
        let right = conductance(case);
        return (text != right).then(|| format!("{text:?}, not {right:?}"));
    }
    if case.algorithm == "mst" {
        let right = forest(case);
        let mut found: Vec<&str> = text.lines().skip(1).collect();
        found.sort_unstable();
        return (found != right).then(|| format!("{found:?}, not {right:?}"));
    }
    let rows: BTreeMap<u64, String> = text
        .lines()
        .skip(1)
        .filter_map(|line| line.split_once(','))
        .filter_map(|(id, value)| Some((id.parse().ok()?, value.to_string())))
        .collect();
    let ids: BTreeSet<u64> = case
        .edges
        .iter()
        .flat_map(|edge| [edge.0, edge.1])
        .collect();
    if !rows.keys().eq(&ids) {
        return Some(format!("{} rows for {} vertices", rows.len(), ids.len()));
    }
    match case.algorithm {
        "pagerank" => {
            let right = ranks(case, &ids);
            differs(&rows, |id, value| (value - right[&id]).abs() <= 1e-9)
        }
        "spmv" => {
            let right = products(case);
            differs(&rows, |id, value| {
                let right = right.get(&id).copied().unwrap_or_default();
                (value - right).abs() <= 1e-9
            })
        }
        "bp" => {
            let right = beliefs(case, &ids);
            differs(&rows, |id, value| (value - right[&id]).abs() <= 1e-9)
        }
        "wcc" => components(case, &ids, &rows),
        "scc" => strong_components(case, &ids, &rows),
        "mis" => independent(case, &rows),
        "cdlp" => {
            let right = communities(case, &ids);
            let mut each = rows.iter();
            let wrong = each.find(|(id, value)| value.parse() != Ok(right[id]));
            wrong.map(|(id, value)| format!("vertex {id} has {value}, not {}", right[id]))
        }
        algorithm => {
            let right = distances(case, algorithm == "bfs");
            differs(&rows, |id, value| {
                value == right.get(&id).copied().unwrap_or(f64::INFINITY)
            })
        }
    }
}

fn differs(rows: &BTreeMap<u64, String>, is_right: impl Fn(u64, f64) -> bool) -> Option<String> {
    let wrong = rows
        .iter()
        .find(|(id, value)| !value.parse().is_ok_and(|value| is_right(**id, value)));
    wrong.map(|(id, value)| format!("vertex {id} has {value}"))
}

/// Returns the arcs with weights: an undirected edge is two arcs, a loop one.
fn arcs(case: &Scenario) -> Vec<(u64, u64, f64)> {
    let mut arcs = Vec::new();
    for (from, to, weight) in &case.edges {
        let weight = match case.import.weights {
            EdgeKind::None | EdgeKind::Record(_) => 1.0,
            _ => f64::from(*weight),
        };
        arcs.push((*from, *to, weight));
        if !case.import.directed && from != to {
            arcs.push((*to, *from, weight));
        }
    }
    arcs
}

fn ranks(case: &Scenario, ids: &BTreeSet<u64>) -> BTreeMap<u64, f64> {
    let arcs = arcs(case);
    let mut degrees: BTreeMap<u64, f64> = BTreeMap::new();
    for (from, ..) in &arcs {
        *degrees.entry(*from).or_default() += 1.0;
    }
    let vertices = ids.len() as f64;
    let mut ranks: BTreeMap<u64, f64> = ids.iter().map(|id| (*id, 1.0 / vertices)).collect();
    for _ in 0..case.option("iterations").parse().unwrap_or(0) {
        let is_sink = |(id, _): &(&u64, &f64)| !degrees.contains_key(id);
        let lost: f64 = ranks.iter().filter(is_sink).map(|(_, rank)| rank).sum();
        let base = 0.15 / vertices + 0.85 * lost / vertices;
        let mut next: BTreeMap<u64, f64> = ids.iter().map(|id| (*id, base)).collect();
        for (from, to, _) in &arcs {
            if let Some(rank) = next.get_mut(to) {
                *rank += 0.85 * ranks[from] / degrees[from];
            }
        }
        ranks = next;
    }
    ranks
}

/// Returns the least distances from the source: relaxes all arcs until nothing changes.
fn distances(case: &Scenario, are_hops: bool) -> BTreeMap<u64, f64> {
    let mut distances = BTreeMap::new();
    let source: u64 = case.option("source").parse().unwrap_or(u64::MAX);
    distances.insert(source, 0.0);
    loop {
        let mut has_changed = false;
        for (from, to, weight) in arcs(case) {
            let Some(distance) = distances.get(&from) else {
                continue;
            };
            let distance = distance + if are_hops { 1.0 } else { weight };
            let known = distances.entry(to).or_insert(f64::INFINITY);
            if distance < *known {
                *known = distance;
                has_changed = true;
            }
        }
        if !has_changed {
            return distances;
        }
    }
}

/// Checks that vertices that reach each other, and only these, have the same component.
///
/// It must have the name of its least id.
fn strong_components(
    case: &Scenario,
    ids: &BTreeSet<u64>,
    rows: &BTreeMap<u64, String>,
) -> Option<String> {
    let mut along: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    let mut against: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    for (from, to, _) in arcs(case) {
        along.entry(from).or_default().push(to);
        against.entry(to).or_default().push(from);
    }
    let reached = |arcs: &BTreeMap<u64, Vec<u64>>, start: u64| {
        let (mut seen, mut left) = (BTreeSet::from([start]), vec![start]);
        while let Some(id) = left.pop() {
            let next = arcs.get(&id).into_iter().flatten();
            left.extend(next.copied().filter(|next| seen.insert(*next)));
        }
        seen
    };
    let mut right = BTreeMap::new();
    for id in ids {
        if !right.contains_key(id) {
            let both = &reached(&along, *id) & &reached(&against, *id);
            right.extend(both.into_iter().map(|member| (member, *id)));
        }
    }
    let is_wrong = |(id, value): &(&u64, &String)| value.parse() != Ok(right[id]);
    let wrong = rows.iter().find(is_wrong);
    wrong.map(|(id, value)| format!("vertex {id} has {value}, not {}", right[id]))
}

/// Checks that a set is independent and maximal, and in order of ids that it is the greedy one.
fn independent(case: &Scenario, rows: &BTreeMap<u64, String>) -> Option<String> {
    let is_in = |id: &u64| rows.get(id).is_some_and(|value| value == "1");
    let mut neighbours: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    for (from, to, _) in case.edges.iter().filter(|edge| edge.0 != edge.1) {
        neighbours.entry(*from).or_default().push(*to);
        neighbours.entry(*to).or_default().push(*from);
    }
    let by_id = case.option("priority") == "id";
    let wrong = rows.iter().find(|(id, value)| {
        let mut others = neighbours.get(id).into_iter().flatten();
        let has_neighbour = others.any(|other| is_in(other) && (!by_id || other < id));
        let mut others = neighbours.get(id).into_iter().flatten();
        match value.as_str() {
            "1" => others.any(is_in),
            "0" => !has_neighbour,
            _ => true,
        }
    });
    wrong.map(|(id, value)| format!("vertex {id} has {value}"))
}

/// Returns the rows of the minimum spanning forest, sorted as text: edges that close no cycle.
fn forest(case: &Scenario) -> Vec<String> {
    let edge =
        |(from, to, weight): &(u64, u64, f64)| (*weight as u64, *from.min(to), *from.max(to));
    let edges: BTreeSet<(u64, u64, u64)> = arcs(case).iter().map(edge).collect();
    let mut trees: BTreeMap<u64, u64> = BTreeMap::new();
    let mut rows = Vec::new();
    for (weight, from, to) in edges {
        let [from_tree, to_tree] = [from, to].map(|id| *trees.entry(id).or_insert(id));
        if from_tree != to_tree {
            let of_second = trees.values_mut().filter(|tree| **tree == to_tree);
            of_second.for_each(|tree| *tree = from_tree);
            rows.push(format!("{from},{to},{weight}.0"));
        }
    }
    rows.sort_unstable();
    rows
}

/// Returns the labels after some rounds.
///
/// In a round each vertex takes the label that most neighbours have, of several the smallest.
fn communities(case: &Scenario, ids: &BTreeSet<u64>) -> BTreeMap<u64, u64> {
    let arcs = arcs(case);
    let mut labels: BTreeMap<u64, u64> = ids.iter().map(|id| (*id, *id)).collect();
    for _ in 0..case.option("iterations").parse().unwrap_or(0) {
        let mut counts: BTreeMap<u64, BTreeMap<u64, i64>> = BTreeMap::new();
        let mut bring = |to, from| {
            let of_vertex = counts.entry(to).or_default();
            *of_vertex.entry(labels[from]).or_default() += 1;
        };
        for (from, to, _) in &arcs {
            bring(*to, from);
            if case.import.directed {
                bring(*from, to);
            }
        }
        for (id, counts) in counts {
            let most = counts
                .iter()
                .max_by_key(|(label, count)| (**count, !**label));
            labels.extend(most.map(|(label, _)| (id, *label)));
        }
    }
    labels
}

/// Checks that connected vertices, and only these, have the same component, named by its least id.
fn components(
    case: &Scenario,
    ids: &BTreeSet<u64>,
    rows: &BTreeMap<u64, String>,
) -> Option<String> {
    let mut least: BTreeMap<u64, u64> = ids.iter().map(|id| (*id, *id)).collect();
    loop {
        let mut has_changed = false;
        for (from, to, _) in &case.edges {
            let both = least[from].min(least[to]);
            for end in [from, to] {
                if least.insert(*end, both) != Some(both) {
                    has_changed = true;
                }
            }
        }
        if !has_changed {
            break;
        }
    }
    let is_wrong = |(id, value): &(&u64, &String)| value.parse() != Ok(least[id]);
    let wrong = rows.iter().find(is_wrong);
    wrong.map(|(id, value)| format!("vertex {id} has {value}, not {}", least[id]))
}

/// Returns the row of numbers; all sums are of whole numbers.
fn conductance(case: &Scenario) -> String {
    let vector = case.vector();
    let is_in = |id: u64| match case.option("set") {
        "odd" => id % 2 == 1,
        "even" => id.is_multiple_of(2),
        _ => vector.contains_key(&id),
    };
    let is_weighted = case.option("weighted") == "true";
    let (mut cut, mut volumes) = (0.0, [0.0, 0.0]);
    for (from, to, weight) in arcs(case) {
        let amount = if is_weighted { weight } else { 1.0 };
        volumes[usize::from(is_in(from))] += amount;
        if is_in(from) != is_in(to) && (is_in(from) || case.import.directed) {
            cut += amount;
        }
    }
    let smaller = f64::min(volumes[0], volumes[1]);
    let share = match smaller > 0.0 {
        true => format!("{:?}", cut / smaller),
        false => String::new(),
    };
    let text = |sum: f64| match is_weighted {
        true => format!("{sum:?}"),
        false => format!("{sum}"),
    };
    let [cut, volume, rest] = [cut, volumes[1], volumes[0]].map(text);
    format!("cut,volume,volume_rest,conductance\n{cut},{volume},{rest},{share}\n")
}

/// Returns the sums of weights times values over the arcs that leave each vertex, or enter it.
fn products(case: &Scenario) -> BTreeMap<u64, f64> {
    let vector = case.vector();
    let value = |id: u64| match case.option("vector") {
        "ones" => 1.0,
        _ => vector.get(&id).copied().unwrap_or_default(),
    };
    let mut products = BTreeMap::new();
    for (from, to, weight) in arcs(case) {
        let (at, other) = match case.option("transpose") {
            "true" => (to, from),
            _ => (from, to),
        };
        *products.entry(at).or_insert(0.0) += weight * value(other);
    }
    products
}

/// Returns the beliefs after rounds in which each edge sends both ways.
fn beliefs(case: &Scenario, ids: &BTreeSet<u64>) -> BTreeMap<u64, f64> {
    let potential: Vec<f64> = case
        .option("potential")
        .split(',')
        .filter_map(|of| of.parse().ok())
        .collect();
    let priors = if case.option("priors").is_empty() {
        BTreeMap::new()
    } else {
        case.vector()
    };
    let weight = |weight: u32| match case.import.weights {
        EdgeKind::None | EdgeKind::Record(_) => 1.0,
        _ => f64::from(weight),
    };
    let edges: Vec<_> = case.edges.iter().filter(|edge| edge.0 != edge.1).collect();
    let mut around: BTreeMap<u64, Vec<[usize; 2]>> = BTreeMap::new();
    for (edge, (from, to, _)) in edges.iter().enumerate() {
        around.entry(*from).or_default().push([edge, 0]);
        around.entry(*to).or_default().push([edge, 1]);
    }
    let scaled = |[zero, one]: [f64; 2]| [zero / (zero + one), one / (zero + one)];
    // The messages to both ends of each edge.
    let mut messages = vec![[[0.5; 2]; 2]; edges.len()];
    let belief = |messages: &[[[f64; 2]; 2]], id: u64, without: usize| {
        let prior = priors.get(&id).copied().unwrap_or(0.5);
        let edges = around.get(&id).into_iter().flatten();
        edges.filter(|[edge, _]| *edge != without).fold(
            [1.0 - prior, prior],
            |so_far, [edge, end]| {
                let message = messages[*edge][*end];
                scaled([so_far[0] * message[0], so_far[1] * message[1]])
            },
        )
    };
    for _ in 0..case.option("iterations").parse().unwrap_or(0) {
        let next = edges.iter().enumerate().map(|(edge, (from, to, number))| {
            let [source, target] = [*from, *to].map(|id| belief(&messages, id, edge));
            let factor = |s: usize, t: usize| potential[2 * s + t].powf(weight(*number));
            let to_source = |s| target[0] * factor(s, 0) + target[1] * factor(s, 1);
            let to_target = |t| source[0] * factor(0, t) + source[1] * factor(1, t);
            [scaled([0, 1].map(to_source)), scaled([0, 1].map(to_target))]
        });
        messages = next.collect();
    }
    let all = ids
        .iter()
        .map(|id| (*id, belief(&messages, *id, usize::MAX)[1]));
    all.collect()
}
