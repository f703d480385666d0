//! Estimates from numbers alone: of graphs that no test can store, of absurd ones, and refusals of impossible ones.

use std::path::Path;

use serde_json::Value;

use crate::estimate::{MOVED, json, number};
use crate::{fail, succeed};

#[test]
fn estimate_plans_a_trillion_edges_on_eight_machines() {
    let folder = tempfile::tempdir().expect("a folder");
    // DFOGraph, section 5: each machine has 12 threads and 93.2 GB.
    let words = "estimate --vertices=2^38 --edges=2^40 --input=generated --iterations=1 --json \
        --ranks=8 --threads=12 --memory=93200000000";
    let words: Vec<&str> = words.split_whitespace().collect();
    let plan = json(succeed(folder.path(), &words).as_bytes());
    let least = number(&plan["run"]["least_memory"]);
    // A bit for each of 2^38 vertices takes 34 GB more.
    assert!(least < 72e9, "{least}");
    assert_eq!(plan["run"]["messages_resident"], false);
}

/// The largest graph of the DFOGraph paper on its eight machines.
///
/// Each has 12 threads, 93.2 GB of memory, a disk of 2 GB/s and a network of 25 Gbit/s.
const KRON_38: &str = "estimate --vertices 2^38 --edges 2^40 --ranks 8 --threads 12 --memory 93200000000 \
    --disk-rate 2000000000 --network-rate 25gbit --iterations 1";

#[test]
fn estimate_of_papers_largest_graph_per_rank() {
    let at = Path::new(".");
    let words: Vec<&str> = KRON_38.split_whitespace().collect();
    let text = succeed(at, &words);
    for said in [
        "1,099,511,627,776 arcs",
        "import, all ranks",
        "distribute",
        "pagerank, 1 pass",
        "a pass",
        "rank 7",
    ] {
        assert!(text.contains(said), "{said}: {text}");
    }
    let planned = json(succeed(at, &[&words[..], &["--json"]].concat()).as_bytes());
    assert_eq!(planned["cluster"]["network_rate"], 3.125e9);
    for part in [&planned["import"]["all"], &planned["run"]["all"]] {
        let each = part["per_rank"].as_array().expect("ranks");
        assert_eq!(each.len(), 8);
        for moved in MOVED {
            let sum: f64 = each.iter().map(|rank| number(&rank[moved])).sum();
            assert!((sum / number(&part[moved]) - 1.0).abs() < 1e-9, "{moved}");
        }
        let seconds = number(&part["seconds"]);
        assert!(seconds >= number(&part["seconds_disk"]) && seconds.is_finite());
    }
    // Vertices are written down in 16 bytes an edge, and read at least twice.
    assert!(
        number(&planned["import"]["all"]["bytes_read"]) > 2.0 * 16.0 * f64::from(1 << 20).powi(2)
    );
    assert!(number(&planned["graph"]["disk_bytes"]) > 2.0 * f64::from(1 << 20).powi(2));
}

#[test]
fn estimate_counts_no_memory_for_data_in_a_file() {
    let graph = "estimate --vertices 2^20 --edges 2^24 --threads 2 --json --memory";
    let planned = |more: &str| {
        let words: Vec<&str> = graph.split(' ').chain(more.split(' ')).collect();
        json(succeed(Path::new("."), &words).as_bytes())["run"].clone()
    };
    let cells = |run: &Value| {
        run["cached_cell_bytes"]
            .as_u64()
            .zip(run["cell_bytes"].as_u64())
    };
    let in_dram = planned("40M");
    let (cached, all) = cells(&in_dram).expect("two sizes");
    assert!(cached < all, "{cached} of {all}");
    // The file need not exist: an estimate only looks.
    let in_file = planned("40M --slow-tier file:/no/such/place");
    assert_eq!(cells(&in_file), Some((all, all)));
    let bytes = |run: &Value| run["pass"]["bytes_read"].as_u64();
    assert!(bytes(&in_file) < bytes(&in_dram), "{in_file} {in_dram}");
    let all_in_file = planned("30M --slow-tier file:/no/such/place --place slow");
    assert_eq!(all_in_file["messages_resident"], true);
    assert_eq!(all_in_file["vertex_state_resident"], true);
}

#[test]
fn estimate_impossible_is_refused_with_a_hint() {
    let at = Path::new(".");
    let said = |code: i32, arguments: &str| {
        let words: Vec<&str> = ["estimate"]
            .into_iter()
            .chain(arguments.split_whitespace())
            .collect();
        fail(at, code, &words)
    };
    for (arguments, expected) in [
        ("", "<GRAPH>"),
        ("--vertices 5", "--edges"),
        ("--vertices 0 --edges 5", "at least one"),
        ("--vertices x --edges 5", "2^38"),
        ("--vertices 2^64 --edges 5", "64-bit"),
        ("--vertices 5 --edges 5 --ranks 0", "ranks"),
        ("--vertices 5 --edges 5 --threads 0", "threads"),
        ("--vertices 5 --edges 5 --memory 0", "no memory"),
        ("--vertices 5 --edges 5 --disk-rate 0", "bytes a second"),
        ("--vertices 5 --edges 5 --network-rate fast", "10gbit"),
        ("--vertices 5 --edges 5 --pass-rate 0", "must be positive"),
        (
            "--vertices 5 --edges 5 --algorithm sort",
            "there is no such algorithm",
        ),
        ("--vertices 5 --edges 5 --weights f32", "--input generated"),
        ("--vertices 5 --edges 2^60", "2^56"),
        ("--vertices 2^40 --edges 5 --batch-size 1", "batches"),
        ("nowhere", "nowhere"),
        ("g --vertices 5 --edges 5", "cannot be used with"),
    ] {
        let text = said(2, arguments);
        assert!(text.contains(expected), "{arguments}: {text}");
    }
    let text = said(1, "--vertices 2^63 --edges 2^40");
    assert!(text.contains("9223372036854775808"), "{text}");
    // The least memory that the error names is enough.
    let graph = "--vertices 2^20 --edges 2^24 --threads 2 --ranks 2 --memory";
    let mut memory = "1M".to_string();
    for _ in 0..4 {
        let words = format!("estimate {graph} {memory}");
        let output = crate::call(at, &words.split_whitespace().collect::<Vec<_>>());
        if output.status.success() {
            return;
        }
        let text = String::from_utf8(output.stderr).expect("text");
        let (_, least) = text.rsplit_once("--memory ").expect("the least memory");
        let least = least.split_whitespace().next().expect("a size");
        assert_ne!(least, memory);
        memory = least.to_string();
    }
    panic!("{memory} was not enough either");
}

#[test]
fn estimate_answers_absurd_numbers() {
    let at = Path::new(".");
    for numbers in [
        "--vertices 1 --edges 0",
        "--vertices 1 --edges 2^56",
        "--vertices 2^38 --edges 1 --memory 1000000T",
        "--vertices 2^38 --edges 2^56 --memory 1000000T",
        "--vertices 2^38 --edges 2^56 --input generated --weights f64 --undirected --memory 1000000T --ranks 4096",
        "--vertices 3 --edges 7 --ranks 4096 --threads 4096 --memory 100T",
        "--vertices 18446744073709551615 --edges 18446744073709551615",
    ] {
        let words: Vec<&str> = ["estimate"]
            .into_iter()
            .chain(numbers.split_whitespace())
            .collect();
        let output = crate::call(at, &words);
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(
            matches!(output.status.code(), Some(0..=2)),
            "{numbers}: {text}"
        );
        assert!(!text.contains("panicked"), "{numbers}: {text}");
    }
}
