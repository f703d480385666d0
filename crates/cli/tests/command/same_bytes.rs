//! A result depends on the graph and the question alone: not on threads, memory, ways of doing it, ranks, or the process.

use crate::{names, succeed};

/// The questions.
const QUESTIONS: [&str; 10] = [
    "pagerank --iterations 7",
    "pagerank --tolerance 1e-6 --iterations 50",
    "bfs --source SOME --parents",
    "wcc --method labels",
    "scc",
    "bp --potential 1.02,1,1.01,1.03 --iterations 4",
    "cdlp --iterations 6",
    "mis --seed 5",
    "sssp --source SOME",
    "sssp --source SOME --method bellman-ford",
];

/// The ways to answer: 126 pairs with the questions.
const WAYS: [&str; 14] = [
    "--threads 1",
    "--threads 2",
    "--threads 3",
    "--threads 8",
    "--threads 1 --memory 25M",
    "--threads 2 --memory 32M",
    "--threads 3 --memory 40M --io threads",
    "--threads 2 --memory 32M --checkpoints 0",
    "--threads 2 --place edges=stream",
    "--threads 2 --sparse never --direction gather",
    "--threads 2 --sparse always",
    "--threads 2 --ranks 2",
    "--threads 3 --ranks 3 --memory 90M",
    "--threads 4 --ranks 4 --dispatch push --memory 120M",
];

#[test]
fn result_bytes_are_the_same_in_every_way() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    let call = |words: String| succeed(at, &words.split_whitespace().collect::<Vec<_>>());
    call("generate kronecker 15 8 --weights f32 -q -o numbers.wel".into());
    let numbers = std::fs::read_to_string(at.join("numbers.wel")).expect("edges");
    let named = |line: &str| format!("vertex-{}\n", line.replacen(' ', " vertex-", 1));
    let edges: String = numbers.lines().map(named).collect();
    std::fs::write(at.join("edges.wel"), &edges).expect("a file");
    // Of a graph whose ids are text, in many batches.
    let import = "import edges.wel --weights f32 --reverse -q -o graph --batch-size 2048";
    call(format!("{import} --threads 2"));
    let import = "import numbers.wel --weights f32 --edge-vertices -q -o fields --batch-size 4096";
    call(format!("{import} --threads 2"));
    let some = edges.split(' ').next().expect("an edge");
    for question in QUESTIONS {
        let question = question.replace("SOME", some);
        let (algorithm, options) = question.split_once(' ').unwrap_or((&question, ""));
        let graph = if algorithm == "bp" { "fields" } else { "graph" };
        let result = |way: &str| {
            let output = "-q -o result.csv";
            call(format!("run {algorithm} {graph} {options} {way} {output}"));
            std::fs::read(at.join("result.csv")).expect("a result")
        };
        let wanted = result("--threads 2");
        for way in WAYS {
            assert!(result(way) == wanted, "{question} {way}");
        }
    }
    assert!(!names(at).iter().any(|name| name.starts_with('.')));
}
