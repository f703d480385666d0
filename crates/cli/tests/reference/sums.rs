//! Conductance and products of the reference graphs, whose answers are for arcs without weights.

use std::path::Path;

use crate::answers::Answers;
use crate::chunks::find_in_chunks;
use crate::command::{Workplace, assert_same, complete};
use crate::graphs::Graph;
use crate::{GRAPHS, data, is_soak};

/// Ways to answer: ranks and memory.
const WAYS: [&[&str]; 4] = [
    &[],
    &["--ranks", "8"],
    &["--ranks", "4", "--direction", "gather"],
    &["--memory", "LEAST"],
];

/// The way, with the memory that it asks for.
fn filled(place: &Workplace, algorithm: &str, asked: &[&str], way: &[&str]) -> Vec<String> {
    let least = match way.contains(&"LEAST") {
        true => place.least(algorithm, asked),
        false => String::new(),
    };
    let all = asked.iter().chain(way);
    all.map(|word| word.replace("LEAST", &least)).collect()
}

/// Runs in the usual way and in another, or in all, which give the same bytes; returns the result.
pub(crate) fn run_in_ways(
    place: &Workplace,
    number: usize,
    algorithm: &str,
    asked: &[&str],
) -> std::path::PathBuf {
    let mut known: Option<Vec<u8>> = None;
    let others = WAYS.len() - 1;
    for (turn, way) in WAYS.iter().enumerate() {
        if ![0, 1 + number % others].contains(&turn) && !is_soak() {
            continue;
        }
        let words = filled(place, algorithm, asked, way);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let found = std::fs::read(place.run(algorithm, &words)).expect("a result");
        assert!(
            *known.get_or_insert_with(|| found.clone()) == found,
            "{words:?}"
        );
    }
    place.result()
}

pub(crate) fn json(data: &Path, name: &str) -> serde_json::Value {
    let file = data.join("answers").join(format!("{name}.json"));
    let text = std::fs::read_to_string(file).expect("the summary");
    serde_json::from_str(&text).expect("a summary in JSON")
}

/// Returns the graphs with their numbers, names and answers.
///
/// Graphs of more than 500,000 arcs come only in a soak.
pub(crate) fn graphs(
    data: &Path,
) -> impl Iterator<Item = (usize, &'static str, Answers, Graph)> + '_ {
    let load = |(number, name): (usize, &&'static str)| {
        let answers = Answers::load(data, name);
        (answers.arcs <= 500_000 || is_soak()).then(|| {
            let graph = Graph::load(data, name, answers.vertices, answers.directed);
            let graph = graph.expect("a format that is read here");
            (number, *name, answers, graph)
        })
    };
    GRAPHS.iter().enumerate().filter_map(load)
}

/// The order and the batches of a graph: each other for the next one.
pub(crate) fn storing(number: usize) -> [&'static str; 4] {
    let order = ["id", "degree"][number % 2];
    let size = ["1024", "4096", "1000000"][number % 3];
    ["--order", order, "--batch-size", size]
}

#[test]
fn products_of_all_graphs_are_right() {
    let Some(data) = data() else { return };
    for (number, name, answers, graph) in graphs(&data) {
        let place = Workplace::new(format!("{name}: spmv"));
        let (edges, vertices) = graph.write(place.folder());
        let mut options = vec!["--duplicates", "first", "--weights", "none"];
        options.extend(storing(number));
        options.extend((!answers.directed).then_some("--undirected"));
        place.import(&edges, Some(&vertices), &options);
        let value = |v: u64| v % 7 + 1;
        let rows =
            (0..answers.vertices).map(|v| format!("{} {}\n", graph.ids[v as usize], value(v)));
        let vector = place.folder().join("x.txt");
        std::fs::write(&vector, rows.collect::<String>()).expect("room");
        let vector = vector.to_str().expect("UTF-8");
        let asked = &["--vector", vector];
        let result = run_in_ways(&place, number, "spmv", asked);
        let found: Vec<f64> = complete(place.values(&result, &graph.ids));
        let mut expected = vec![0.0; answers.vertices as usize];
        for (source, destination, _) in graph.arcs() {
            expected[source as usize] += value(destination) as f64;
        }
        assert_same(name, &found, &expected);
        // The collection says the same.
        let sum = json(&data, name)
            .pointer("/spmv/sum")
            .and_then(|sum| sum.as_f64());
        assert_eq!(Some(found.iter().sum::<f64>()), sum, "{name}");
        let direction = (!answers.directed).then_some("--undirected");
        let options: Vec<&str> = ["--weights", "none"].into_iter().chain(direction).collect();
        find_in_chunks((number, &answers), &place, ("spmv", asked), |chunks| {
            let files = graph.write_once(!answers.directed, chunks.folder());
            (files, options.clone())
        });
    }
}

#[test]
fn conductance_of_all_graphs_is_right() {
    let Some(data) = data() else { return };
    let mut count = 0;
    for (number, name, answers, graph) in graphs(&data) {
        let json = json(&data, name);
        let number_at = |at: &str| json.pointer(&format!("/conductance_even_ids/{at}"));
        let Some(cut) = number_at("cut").and_then(|cut| cut.as_u64()) else {
            continue;
        };
        count += 1;
        let place = Workplace::new(format!("{name}: conductance"));
        let (edges, vertices) = graph.write(place.folder());
        // The answers are for the undirected graph without loops.
        let mut options = vec![
            "--undirected",
            "--duplicates",
            "first",
            "--self-loops",
            "drop",
        ];
        options.extend(["--weights", "none"]);
        options.extend(storing(number));
        place.import(&edges, Some(&vertices), &options);
        let even = graph.ids.iter().step_by(2);
        let set = place.folder().join("set.txt");
        std::fs::write(&set, even.map(|id| format!("{id}\n")).collect::<String>()).expect("room");
        let set = set.to_str().expect("UTF-8");
        let read = |result: &Path| std::fs::read_to_string(result).expect("a row");
        let asked = &["--set", set];
        let row = read(&run_in_ways(&place, number, "conductance", asked));
        find_in_chunks(
            (number, &answers),
            &place,
            ("conductance", asked),
            |chunks| {
                let files = graph.write_once(true, chunks.folder());
                let options = vec!["--undirected", "--self-loops", "drop"];
                (files, options)
            },
        );
        let numbers = row.lines().nth(1).expect("a row").split(',');
        let numbers: Vec<f64> = numbers
            .map(|text| text.parse().expect("a number"))
            .collect();
        let volume = number_at("vol_S")
            .and_then(|volume| volume.as_u64())
            .expect("a volume");
        let all = number_at("vol_all")
            .and_then(|volume| volume.as_u64())
            .expect("a volume");
        let expected = [cut, volume, all - volume].map(|count| count as f64);
        assert_eq!(numbers[..3], expected, "{name}");
        let value = number_at("value")
            .and_then(|value| value.as_f64())
            .expect("a value");
        assert!((numbers[3] - value).abs() < 1e-12, "{name}: {row}");
        if graph
            .ids
            .iter()
            .enumerate()
            .all(|(rank, id)| rank as u64 == *id)
        {
            assert_eq!(
                read(&place.run("conductance", &["--set", "even"])),
                row,
                "{name}"
            );
        }
    }
    assert!(count > 10, "{count} graphs");
}
