//! A search over cells on disk scans once, then continues over the lists of pending vertices where these fit.

use std::fmt::Write;

use crate::estimate::file;
use crate::succeed;

#[test]
fn search_continues_over_lists_of_pending_vertices() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    let call = |words: String| succeed(at, &words.split(' ').collect::<Vec<_>>());
    call("generate kronecker 17 16 -o near.el -q".to_string());
    let near = std::fs::read_to_string(at.join("near.el")).expect("edges");
    // A clique far away: its vertices are pending after the scan, and have more edges than lists are made for at first.
    let with_clique = |name: &str, vertices: u32| {
        let mut edges =
            format!("{near}0 1000000\n1000000 1000001\n1000001 1000002\n1000002 1000003\n");
        let end = 1_000_003 + vertices;
        for v in 1_000_003..end {
            for w in v + 1..end {
                writeln!(edges, "{v} {w}").expect("text");
            }
        }
        std::fs::write(at.join(name), edges).expect("edges");
    };
    with_clique("far.el", 100);
    // The edges of this one do not fit.
    with_clique("wide.el", 1000);
    for (graph, continues) in [("near", true), ("far", true), ("wide", false)] {
        call(format!(
            "import {graph}.el -o {graph} --undirected --batch-size 8192 -q"
        ));
        let search = |more: &str| {
            call(format!(
                "run bfs {graph} --source 0 -o o.csv -q --metrics run.json {more}"
            ));
            let run = file(at, "run.json");
            let passes = run["passes"].as_array().expect("passes");
            let modes = passes.iter().map(|pass| pass["mode"].to_string());
            let after_scan = modes.skip_while(|mode| mode != "\"gather\"").nth(1);
            let result = std::fs::read(at.join("o.csv")).expect("a result");
            (result, after_scan.as_deref() == Some("\"pull\""))
        };
        let (wanted, _) = search("--direction scatter --threads 1");
        for threads in [1, 3] {
            let (result, has_pulled) = search(&format!("--memory 26M --threads {threads}"));
            assert!(result == wanted, "{graph}");
            assert_eq!(has_pulled, continues, "{graph}, {threads} threads");
        }
    }
}
