//! Several ranks: the bytes of one, each rank with batches of its own, everybody talking to everybody.

use std::path::Path;

use serde_json::Value;

use crate::{account, fail, names, succeed, told};

/// What each algorithm is asked, by methods that several ranks can share.
const ASKED: &[&[&str]] = &[
    &["wcc"],
    &["wcc", "--method", "labels"],
    &["scc"],
    &["cdlp"],
    &["mis"],
    &["mis", "--priority", "id"],
    &["bfs", "--source", "3"],
    &["bfs", "--source", "3", "--parents"],
    &["sssp", "--source", "3"],
    &["sssp", "--source", "3", "--method", "pregel-pull"],
    &["sssp", "--source", "3", "--method", "pregel-push"],
    &["wcc", "--method", "pregel-pull"],
    &["wcc", "--method", "pregel-push"],
    &["pagerank"],
    &["pagerank", "--method", "pregel-pull"],
];

fn stored(folder: &Path) {
    let generate = ["generate", "kronecker", "10", "8", "--weights", "f32"];
    succeed(folder, &[&generate[..], &["-o", "k.wel"]].concat());
    let import = ["import", "k.wel", "--weights", "f32", "--batch-size", "12"];
    succeed(folder, &[&import[..], &["-o", "directed"]].concat());
    let undirected = ["-o", "undirected", "--undirected", "--order", "degree"];
    succeed(folder, &[&import[..], &undirected].concat());
}

pub(crate) fn metrics(folder: &Path) -> Value {
    let text = std::fs::read(folder.join("run.json")).expect("metrics");
    serde_json::from_slice(&text).expect("JSON")
}

/// Each rank has three batches at least, and all send messages to all.
pub(crate) fn each_does_its_share(told: &Value, ranks: usize, all_send: bool, what: &str) {
    assert_eq!(told["ranks"], ranks, "{what}");
    let each = told["per_rank"].as_array().expect("ranks");
    assert_eq!(each.len(), ranks, "{what}");
    let mut end = 0;
    for (number, rank) in each.iter().enumerate() {
        let [first, last] = [0, 1].map(|i| rank["batches"][i].as_u64().expect("a batch"));
        assert_eq!(first, end, "{what}");
        assert!(last >= first + 3, "{what}: {rank}");
        end = last;
        let messages = rank["messages_to"].as_array().expect("numbers");
        let is_sent = |to: usize| messages[to].as_u64().expect("a number") > 0;
        let does = (0..ranks).all(|to| is_sent(to) == (to != number));
        assert!(does || !all_send, "{what}: {rank}");
    }
}

#[test]
fn ranks_share_work_and_keep_bytes() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    stored(at);
    for graph in ["directed", "undirected"] {
        for asked in ASKED {
            let is_pregel = asked
                .last()
                .is_some_and(|last| last.starts_with("pregel-pu"));
            if is_pregel && asked[0] == "wcc" && graph == "directed" {
                let run = [
                    "run",
                    "wcc",
                    graph,
                    "-o",
                    "result.csv",
                    "--method",
                    asked[2],
                ];
                let said = fail(at, 1, &run);
                assert!(said.contains("the graph is directed"), "{said}");
                continue;
            }
            let run = |more: &[&str]| {
                let (algorithm, options) = asked.split_first().expect("an algorithm");
                let base = ["run", *algorithm, graph, "-o", "result.csv", "-q"];
                let base = [&base[..], options, &["--metrics", "run.json"], more].concat();
                succeed(at, &base);
                std::fs::read(at.join("result.csv")).expect("a result")
            };
            let wanted = run(&[]);
            if is_pregel && asked[0] != "pagerank" {
                let options = &asked[..asked.len() - 2];
                let usual = ["run", options[0], graph, "-o", "usual.csv", "-q"];
                succeed(at, &[&usual[..], &options[1..]].concat());
                let usual = std::fs::read(at.join("usual.csv")).expect("a result");
                assert!(usual == wanted, "{asked:?} of {graph}");
                let check = ["validate", "result.csv", graph, "--algorithm", options[0]];
                succeed(at, &[&check[..], &options[1..]].concat());
            }
            assert!(metrics(at).get("ranks").is_some_and(|ranks| *ranks == 1));
            for (ranks, more) in [
                (2, &[][..]),
                (2, &["--place", "edges=dram"]),
                (3, &["--place", "edges=stream"]),
                (4, &["--sparse", "always"]),
                (8, &["--sparse", "never"]),
            ] {
                let count = ranks.to_string();
                let found = run(&[&["--ranks", &count][..], more].concat());
                let what = format!("{asked:?} of {graph} by {ranks} ranks, {more:?}");
                assert!(found == wanted, "{what}");
                // A forest goes from rank to rank as a whole.
                let told = metrics(at);
                let is_wcc = graph == "undirected" && asked == &["scc"];
                let is_forest = is_wcc || asked == &["wcc"];
                each_does_its_share(&told, ranks, !is_forest, &what);
                // A vertex emits at most one message in a pass, wherever it is; it may also get an answer.
                let vertices = told["graph"]["vertices"].as_u64().expect("a count");
                for pass in told["passes"].as_array().expect("passes") {
                    let messages = pass["messages"].as_u64().expect("a count");
                    let most = if pass["mode"] == "send" { 2 } else { 1 };
                    assert!(messages <= most * vertices, "{what}: {pass}");
                }
            }
        }
        let wcc = ["run", "wcc", graph, "-q", "-o"];
        succeed(at, &[&wcc[..], &["one.csv"]].concat());
        let ranks = ["ranks.csv", "--method", "afforest", "--ranks", "3"];
        succeed(at, &[&wcc[..], &ranks].concat());
        let [one, ranks] =
            ["one.csv", "ranks.csv"].map(|name| std::fs::read(at.join(name)).expect("a result"));
        assert!(one == ranks, "afforest of {graph} by 3 ranks");
    }
    assert!(
        !names(at).iter().any(|name| name.contains("graphmill")),
        "temporary files"
    );
}

#[test]
fn metrics_show_bytes_sent_per_pass_and_rank() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    let generate = ["generate", "kronecker", "14", "8", "--batch-size", "512"];
    succeed(at, &[&generate[..], &["-o", "graph"]].concat());
    let run = [
        "run", "pagerank", "graph", "-q", "-o", "r.csv", "--ranks", "3",
    ];
    let sum = |numbers: &Value| -> u64 {
        let numbers = numbers.as_array().expect("numbers").iter();
        numbers.map(|of| of.as_u64().expect("a number")).sum()
    };
    let messages = |more: &[&str]| {
        succeed(at, &[&run[..], &["--metrics", "run.json"], more].concat());
        let told = metrics(at);
        let of_passes = |field: &str| -> u64 {
            let passes = told["passes"].as_array().expect("passes").iter();
            passes.map(|pass| pass[field].as_u64().unwrap_or(0)).sum()
        };
        let [ranks, lines] =
            ["per_rank", "timelines"].map(|of| told[of].as_array().expect("ranks"));
        assert_eq!([ranks.len(), lines.len()], [3, 3]);
        let (mut sent, mut received) = (0, 0);
        for (rank, line) in ranks.iter().zip(lines) {
            let to_others = sum(&rank["bytes_to"]);
            // Agreements send bytes, too.
            assert!(sum(&line["sent"]) >= to_others, "{rank}: {line}");
            assert!(sum(&line["read"]) > 0, "{line}");
            sent += to_others;
            received += sum(&line["received"]);
        }
        assert_eq!(of_passes("bytes_sent"), sent);
        assert!(received >= sent, "{received} of {sent}");
        ["messages_sent", "filtered_peers"].map(of_passes)
    };
    let [chosen, all, needed] = [
        &[][..],
        &["--filter-ratio", "0"],
        &["--filter-ratio", "inf"],
    ]
    .map(messages);
    assert_eq!(chosen, needed);
    assert!(needed[1] > 0 && all[1] == 0, "{needed:?}, {all:?}");
    assert!(all[0] * 3 > needed[0] * 4, "{needed:?} of {all:?}");
}

#[test]
fn alpha_changes_owners_and_no_result() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    // Half of the work is in the first of 80 batches.
    let edges = (0..20_480).map(|v| format!("{v} {}\n", v % 100));
    std::fs::write(at.join("edges.txt"), edges.collect::<String>()).expect("a file");
    let import = ["import", "edges.txt", "-o", "graph", "-q"];
    succeed(at, &[&import[..], &["--batch-size", "256"]].concat());
    let run = |alpha: &str| {
        let run = ["run", "pagerank", "graph", "-q", "--metrics", "run.json"];
        let ranks = ["--ranks", "4", "--alpha", alpha, "-o", "r.csv"];
        succeed(at, &[&run[..], &ranks].concat());
        let told = metrics(at);
        let ranks = told["per_rank"].as_array().expect("ranks").iter();
        let vertices = ranks.map(|rank| rank["vertices"].as_u64().expect("a number"));
        let result = std::fs::read(at.join("r.csv")).expect("a result");
        (vertices.collect::<Vec<_>>(), result)
    };
    let [(by_edges, one), (by_vertices, other)] = ["0", "1000000"].map(run);
    assert!(one == other);
    assert_eq!(by_vertices, [5120; 4]);
    assert!(by_edges[0] == 256 && by_edges[3] > 6000, "{by_edges:?}");
}

#[test]
fn memory_short_at_one_rank_ends_all() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    stored(at);
    let run = [
        "run",
        "pagerank",
        "directed",
        "--ranks",
        "4",
        "-o",
        "result.csv",
    ];
    let said = fail(at, 1, &[&run[..], &["--memory", "4M"]].concat());
    assert!(said.contains("--memory"), "{said}");
    assert_eq!(names(at), ["directed", "k.wel", "undirected"]);
}

#[test]
fn ranks_import_the_graph_of_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    let generate = ["generate", "kronecker", "11", "8", "-o", "k.el"];
    succeed(at, &generate);
    let import = ["import", "k.el", "--ids", "string", "--batch-size", "70"];
    let one = told(at, &[&import[..], &["-o", "one"]].concat());
    for ranks in ["2", "3", "8"] {
        let ranks = ["-o", "all", "--ranks", ranks];
        let all = told(at, &[&import[..], &ranks].concat());
        assert_eq!(account(&one), account(&all));
        assert!(account(&one).len() > 2, "{one}");
        for name in names(&at.join("one/columns")) {
            let [one, all] = ["one", "all"].map(|graph| {
                let path = at.join(graph).join("columns").join(&name);
                std::fs::read(path).expect("a file")
            });
            assert!(one == all, "{name}");
        }
        std::fs::remove_dir_all(at.join("all")).expect("it goes");
    }
    // A malformed line gives the same error as in one process.
    std::fs::write(at.join("bad.txt"), "0 1\n1\n").expect("a file");
    let said = fail(at, 1, &["import", "bad.txt", "-o", "bad", "--ranks", "3"]);
    assert!(said.contains("bad.txt, line 2"), "{said}");
    assert_eq!(names(at), ["bad.txt", "k.el", "one"]);
}
