//! Odd inputs are taken by each algorithm, on one rank and on eight: the bytes are the same, and its checker accepts them.

use tempfile::TempDir;

use crate::kill_and_resume::words;
use crate::{folder_with_edges, succeed};

const ALGORITHMS: [&str; 7] = [
    "scc",
    "mst",
    "mis --seed 3",
    "conductance --set set.csv --weighted",
    "spmv --vector values.csv --transpose",
    "bp --affinity 0.8 --priors values.csv --iterations 5",
    "cdlp",
];

/// A new directory with edges, and with a set and values of every third of the ids.
pub(crate) fn folder_with_inputs(edges: &str, ids: impl Iterator<Item = String>) -> TempDir {
    let folder = folder_with_edges(edges);
    let write = |name, text| std::fs::write(folder.path().join(name), text).expect("room");
    let (mut set, mut values) = ("vertex\n".to_string(), "vertex,x\n".to_string());
    for (place, id) in ids.enumerate().step_by(3) {
        set += &format!("{id}\n");
        values += &format!("{id},{}\n", (place % 5) as f64 / 4.0);
    }
    write("set.csv", set);
    write("values.csv", values);
    folder
}

/// Runs algorithms over edges, on one rank and on others.
fn check(algorithms: &[&str], edges: &str, ids: impl Iterator<Item = String>, ranks: usize) {
    let folder = folder_with_inputs(edges, ids);
    let at = folder.path();
    for algorithm in algorithms {
        let (word, options) = algorithm.split_once(' ').unwrap_or((algorithm, ""));
        let options = format!("{options} --weights f32");
        let mut known = None;
        for ranks in [1, ranks] {
            let run = format!("run {word} edges.txt --ranks {ranks} --threads {ranks} {options}");
            succeed(at, &words(&run, "-q -o found.csv"));
            let found = std::fs::read(at.join("found.csv")).expect("a result");
            let known = known.get_or_insert_with(|| found.clone());
            assert!(*known == found, "{edges:.40}: {run}");
        }
        let check = format!("validate found.csv edges.txt --algorithm {word} {options}");
        succeed(at, &words(&check, ""));
    }
}

#[test]
fn odd_inputs_are_taken_by_every_algorithm() {
    check(&ALGORITHMS, "# nothing\n", std::iter::empty(), 8);
    check(&ALGORITHMS, "7 7 2\n", ["7".into()].into_iter(), 8);
    // A star of ids beyond 32 bits.
    let id = |v: u64| (v * 3_000_000_019 + 1).to_string();
    let star = (1..70).map(|v| format!("{} {} {v}\n", id(0), id(v)));
    check(&ALGORITHMS, &star.collect::<String>(), (0..70).map(id), 8);
    // Cycles of two with text ids, each with an arc to the next.
    let id = |v: u64| format!("v{v}");
    let cycle = |v: u64| {
        let [u, v, w] = [2 * v, 2 * v + 1, 2 * v + 2].map(id);
        format!("{u} {v} 1\n{v} {u} 0.5\n{v} {w} -2\n")
    };
    let cycles: String = (0..40).map(cycle).collect();
    check(&ALGORITHMS, &cycles, (0..81).map(id), 8);
}

/// The tests of passes have the long paths of the others.
#[test]
fn long_path_is_taken_by_sums_and_labels() {
    const VERTICES: u64 = 100_000;
    let edges = (1..VERTICES).map(|v| format!("{} {v} 1\n", v - 1));
    let ids = (0..VERTICES).map(|v| v.to_string());
    check(&ALGORITHMS[3..], &edges.collect::<String>(), ids, 2);
}
