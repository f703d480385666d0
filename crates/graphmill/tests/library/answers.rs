//! A finished run keeps its rows.

use std::fs;

use graphmill::{Answer, Block, CancelToken, Config, Plan, unwatched};

/// The ids and values of all rows, read in two parts.
fn rows(answer: &mut Answer) -> Vec<String> {
    let vertices = answer.run().vertices;
    let mut rows = Vec::new();
    for places in [0..2, 2..vertices] {
        let each = |block: &Block| {
            for row in 0..block.rows() {
                rows.push(block.ids.get(row).to_owned().to_string());
            }
        };
        answer.each_block(places, each).expect("rows");
    }
    rows
}

#[test]
fn answer_is_read_many_times_on_any_ranks() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    fs::write(path("edges.txt"), "you me\nme her\nher me\nhim you\n").expect("a file");
    for algorithm in ["wcc", "pagerank"] {
        let mut config = Config::new(algorithm, path("edges.txt"));
        config.output = Some(path("wanted.csv"));
        let plan = Plan::new(config.clone()).expect("a plan");
        plan.run(&CancelToken::new(), &unwatched()).expect("a run");
        for ranks in [1, 3] {
            let mut config = config.clone();
            (config.output, config.ranks) = (None, ranks);
            let plan = Plan::new(config).expect("a plan");
            let mut answer = plan
                .answer(&CancelToken::new(), &unwatched())
                .expect("an answer");
            for _ in 0..2 {
                assert_eq!(rows(&mut answer), ["her", "him", "me", "you"]);
                answer.write(&path("found.csv")).expect("a file");
                let bytes = |name| fs::read(path(name)).expect("its bytes");
                assert_eq!(bytes("found.csv"), bytes("wanted.csv"));
                let row = answer.row_of("me").expect("a lookup");
                assert_eq!(row.map(|row| row.rows()), Some(1));
                assert_eq!(answer.row_of("them").expect("a lookup"), None);
            }
            let summary = answer.summary(1).expect("a summary");
            assert_eq!(summary.top.len(), 1);
            answer.write(&path("parts/")).expect("parts");
            let parts = fs::read_dir(path("parts")).expect("a folder");
            let parts = parts.filter(|part| {
                let name = part.as_ref().expect("an entry").file_name();
                name.to_string_lossy().ends_with(".parquet")
            });
            assert_eq!(parts.count(), ranks);
            drop(answer);
            fs::remove_dir_all(path("parts")).expect("it goes");
        }
    }
}
