//! Conductance and products of odd graphs: what a list of arcs gives, on any ranks, in any order, in little memory.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use graphmill::{
    CancelToken, CheckpointConfig, CheckpointInterval, Config, Error, ImportConfig, MachineConfig,
    Order, Plan, Progress, ProgressFn, Run, unwatched,
};
use tempfile::TempDir;

use crate::common::{MEMORY, import};

/// Edges with weights, one a line.
fn odd_graphs() -> Vec<(&'static str, String)> {
    let big = |v: u64| v * 3_000_000_019 + 1;
    let star = (1..70).map(|v| format!("{} {} {v}\n", big(0), big(v)));
    let path = (0..90).map(|v| format!("v{v} v{} 0.5\n", v + 1));
    vec![
        ("one vertex", "7 7 2\n".to_string()),
        ("loops", "1 1 1\n2 2 1\n1 2 3\n3 3 1\n".to_string()),
        (
            "duplicates",
            "1 2 1\n1 2 1\n2 1 4\n3 1 0\n2 3 -1\n".to_string(),
        ),
        ("star beyond 32 bits", star.collect()),
        ("path of texts", path.collect()),
        ("two parts", "0 2 1\n2 4 1\n1 3 1\n3 5 1\n".to_string()),
    ]
}

/// The arcs that a graph of such edges has.
fn arcs(edges: &str, directed: bool) -> Vec<(&str, &str, f64)> {
    let mut arcs = Vec::new();
    for line in edges.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let weight = words[2].parse().expect("a weight");
        arcs.push((words[0], words[1], weight));
        if !directed && words[0] != words[1] {
            arcs.push((words[1], words[0], weight));
        }
    }
    arcs
}

/// Whether the set has a vertex.
fn is_member(id: &str) -> bool {
    id.bytes().map(u64::from).sum::<u64>() % 3 == 0
}

/// The value of the vector at a vertex: none for some.
fn value(id: &str) -> f64 {
    (id.bytes().map(u64::from).sum::<u64>() % 7) as f64 - 2.0
}

/// The row of conductance, as CSV has it.
fn cut(arcs: &[(&str, &str, f64)], directed: bool, weighted: bool) -> String {
    let mut sums = [0.0; 3];
    for (source, destination, weight) in arcs {
        let amount = if weighted { *weight } else { 1.0 };
        let sides = [source, destination].map(|id| is_member(id));
        sums[if sides[0] { 1 } else { 2 }] += amount;
        if sides[0] != sides[1] && (sides[0] || directed) {
            sums[0] += amount;
        }
    }
    let smaller = sums[1].min(sums[2]);
    let share = match smaller == 0.0 {
        true => String::new(),
        false => format!("{:?}", sums[0] / smaller),
    };
    let text = |sum: f64| match weighted {
        true => format!("{sum:?}"),
        false => format!("{sum}"),
    };
    let [cut, volume, rest] = sums.map(text);
    format!("cut,volume,volume_rest,conductance\n{cut},{volume},{rest},{share}\n")
}

fn product(arcs: &[(&str, &str, f64)], transposed: bool) -> BTreeMap<String, f64> {
    let mut sums = BTreeMap::new();
    for (source, destination, weight) in arcs {
        let (to, from) = match transposed {
            true => (destination, source),
            false => (source, destination),
        };
        *sums.entry((*to).to_string()).or_insert(0.0) += weight * value(from);
        sums.entry((*from).to_string()).or_insert(0.0);
    }
    sums
}

/// Runs an algorithm in a given memory, or in the least that it asks for.
pub(crate) fn run(
    algorithm: &str,
    options: &[(&str, &str)],
    graph: &Path,
    result: &Path,
    (ranks, memory): (usize, Option<u64>),
) -> Result<Run, Error> {
    let mut config = Config::new(algorithm, graph);
    for (name, value) in options {
        config = config.option(*name, *value);
    }
    config.output = Some(result.to_path_buf());
    config.ranks = ranks;
    config.summary = true;
    config.machine = MachineConfig {
        memory: Some(memory.unwrap_or(1 << 20)),
        threads: Some(ranks.max(2)),
        ..MachineConfig::default()
    };
    let outcome = Plan::new(config)?.run(&Default::default(), &unwatched());
    match (outcome, memory) {
        (Err(error), None) => {
            let said = error.to_string();
            let least = said.split_once("--memory ").and_then(|(_, least)| {
                let digits: String = least.chars().take_while(char::is_ascii_digit).collect();
                digits.parse::<u64>().ok()
            });
            let least = least.unwrap_or_else(|| panic!("no least memory: {said}"));
            run(
                algorithm,
                options,
                graph,
                result,
                (ranks, Some(least << 20)),
            )
        }
        (outcome, _) => outcome,
    }
}

pub(crate) fn read(path: &Path) -> String {
    std::fs::read_to_string(path).expect("a result")
}

#[test]
fn odd_graphs_have_the_same_sums_everywhere() {
    for (number, (name, edges)) in odd_graphs().into_iter().enumerate() {
        for (turn, order) in [(0, Order::Id), (1, Order::Degree)] {
            let folder = TempDir::new().expect("a folder");
            let at = folder.path();
            let directed = (number + turn) % 2 == 0;
            let arcs = arcs(&edges, directed);
            let ids: Vec<String> = product(&arcs, false).into_keys().collect();
            let members = ids.iter().filter(|id| is_member(id));
            let set: String = members.map(|id| format!("{id}\n")).collect();
            let values = ids.iter().rev().filter(|id| value(id) != 0.0);
            let vector: String = values.map(|id| format!("{id},{}\n", value(id))).collect();
            let (set_file, vector_file) = (at.join("set.txt"), at.join("vector.csv"));
            std::fs::write(&set_file, set).expect("room");
            std::fs::write(&vector_file, format!("vertex,x\n{vector}")).expect("room");
            let set = ("set", set_file.to_str().expect("UTF-8"));
            let vector = ("vector", vector_file.to_str().expect("UTF-8"));
            for batch_size in [1, 64] {
                let options = ImportConfig {
                    directed,
                    order,
                    batch_size: Some(batch_size),
                    weights: graphmill::EdgeKind::F64,
                    ..ImportConfig::default()
                };
                let _ = std::fs::remove_dir_all(at.join("graph"));
                let graph = import(at, &edges, options);
                let hows = match batch_size {
                    1 => [(2, Some(MEMORY)), (8, Some(MEMORY))],
                    _ => [(1, Some(MEMORY)), (1, None)],
                };
                for (place, how) in hows.into_iter().enumerate() {
                    let case = format!("{name}, {order:?}, {batch_size}, {how:?}");
                    let result = at.join("result.csv");
                    // Each flag meets each way with some graph.
                    let is_given = (number / 2 + turn + place) % 2 == 0;
                    let flag = |name| is_given.then_some((name, "true"));
                    let options: Vec<_> = [set].into_iter().chain(flag("weighted")).collect();
                    run("conductance", &options, &graph, &result, how).expect(&case);
                    assert_eq!(read(&result), cut(&arcs, directed, is_given), "{case}");

                    let options: Vec<_> = [vector].into_iter().chain(flag("transpose")).collect();
                    run("spmv", &options, &graph, &result, how).expect(&case);
                    let text = read(&result);
                    let rows = text.lines().skip(1).filter_map(|row| row.split_once(','));
                    let rows = rows.map(|(id, value)| (id.to_string(), value.parse()));
                    let found: BTreeMap<String, f64> = rows
                        .map(|(id, value)| (id, value.expect("a number")))
                        .collect();
                    assert_eq!(found, product(&arcs, is_given), "{case}");
                }
            }
        }
    }
}

#[test]
fn vertices_with_odd_and_even_ids_are_sets() {
    let edges = "-3 4\n4 -6\n5 -3\n1 4\n";
    for order in [Order::Id, Order::Degree] {
        let folder = TempDir::new().expect("a folder");
        let options = ImportConfig {
            order,
            batch_size: Some(2),
            ..ImportConfig::default()
        };
        let graph = import(folder.path(), edges, options);
        let result = folder.path().join("result.csv");
        for ranks in [1, 3] {
            for (word, row) in [("odd", "2,3,1,2.0"), ("even", "2,1,3,2.0")] {
                let how = (ranks, Some(MEMORY));
                run("conductance", &[("set", word)], &graph, &result, how).expect("a row");
                let expected = format!("cut,volume,volume_rest,conductance\n{row}\n");
                assert_eq!(read(&result), expected, "{order:?}, {ranks} ranks");
            }
        }
    }
    let folder = TempDir::new().expect("a folder");
    let graph = import(folder.path(), "a b\n", ImportConfig::default());
    let result = folder.path().join("result.csv");
    let how = (1, Some(MEMORY));
    let said = run("conductance", &[("set", "odd")], &graph, &result, how);
    let said = said.expect_err("text ids").to_string();
    assert!(said.contains("neither odd nor even"), "{said}");
}

#[test]
fn numbers_are_in_the_summary_and_in_parts() {
    let folder = TempDir::new().expect("a folder");
    let at = folder.path();
    let graph = import(at, "1 2\n3 2\n", ImportConfig::default());
    std::fs::write(at.join("none.txt"), "").expect("room");
    let file = at.join("none.txt");
    let set = [("set", file.to_str().expect("UTF-8"))];
    let parts = at.join("parts.csv/");
    let done = run("conductance", &set, &graph, &parts, (2, Some(MEMORY))).expect("a row");
    let summary = serde_json::json!(
        {"cut": 0, "volume": 0, "volume_rest": 2, "conductance": null}
    );
    assert_eq!(done.summary.json(), summary);
    let header = "cut,volume,volume_rest,conductance\n";
    assert_eq!(
        read(&parts.join("part-00000.csv")),
        format!("{header}0,0,2,\n")
    );
    assert_eq!(read(&parts.join("part-00001.csv")), header);
}

/// The content of the file is a part of the run, and its directory is not.
#[test]
fn run_resumes_with_a_file_of_the_same_content_only() {
    let folder = TempDir::new().expect("a folder");
    let at = folder.path();
    let graph = import(at, "1 2\n2 3\n3 1\n", ImportConfig::default());
    let (vector, other) = (at.join("x.txt"), at.join("more/x.txt"));
    let result = at.join("y.csv");
    let run = |vector: &Path, stops: bool| {
        let mut config = Config::new("spmv", &graph);
        config = config.option("vector", vector.to_str().expect("UTF-8"));
        config.output = Some(result.clone());
        config.machine.memory = Some(MEMORY);
        config.checkpoints = CheckpointConfig {
            folder: Some(at.join("kept")),
            every: CheckpointInterval::Calls(1),
            keep: 1,
            resume: true,
        };
        let stop = CancelToken::new();
        let (on_pass, has_resumed) = (stop.clone(), Arc::new(AtomicBool::new(false)));
        let resumed = Arc::clone(&has_resumed);
        let watcher: ProgressFn = Arc::new(move |progress| match progress {
            Progress::Superstep { .. } if stops => on_pass.request(),
            Progress::Note(text) if text.starts_with("resuming") => {
                resumed.store(true, Ordering::Relaxed);
            }
            _ => {}
        });
        let done = Plan::new(config)?.run(&stop, &watcher);
        done.map(|_| has_resumed.load(Ordering::Relaxed))
    };
    let write = |path: &Path, text: &str| std::fs::write(path, text).expect("room");
    write(&vector, "1 1\n");
    let stopped = run(&vector, true).expect_err("it is stopped");
    assert!(stopped.to_string().contains("kept"), "{stopped}");
    write(&vector, "1 2\n");
    let said = run(&vector, false).expect_err("another file").to_string();
    assert!(said.contains("--vector x.txt ("), "{said}");
    std::fs::create_dir(at.join("more")).expect("a folder");
    write(&other, "1 1\n");
    assert!(run(&other, false).expect("the same content"));
    assert_eq!(read(&result), "vertex,value\n1,0.0\n2,0.0\n3,1.0\n");
}
