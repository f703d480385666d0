//! Results that are edges, of a program of one's own: the same bytes everywhere, and read back.

use std::path::Path;

use graphmill::advanced::Values;
use graphmill::prelude::*;
use graphmill::{
    EngineOptions, Error, Id, ImportConfig, Machine, Order, Rule, Session, unwatched, validate,
};
use tempfile::TempDir;

use crate::common::{MEMORY, config, import, machine, on_ranks};

/// Makes the result: the vertex of ordinal `o` holds an edge to that of `o / 2`, but for each third.
fn edges(session: &mut Session) -> Result<Output, Error> {
    let rows = session.vertex_array::<[u64; 3]>("edges")?;
    session.process_vertices((rows.write(), IdOrdinal), None, |_, (row, ordinal)| {
        *row = match ordinal % 3 {
            0 => NO_EDGE,
            1 => edge_row(weight(ordinal), ordinal, ordinal / 2),
            _ => edge_row(weight(ordinal), ordinal / 2, ordinal),
        };
    })?;
    Ok(Output {
        column: "weight",
        values: OutputValues::Edges(rows),
        nullable: false,
    })
}

fn weight(ordinal: u64) -> f64 {
    (ordinal % 5) as f64 / 2.0 - 1.0
}

/// The rows as the file has them, from all ids in order.
fn expected(ids: &[String]) -> String {
    let mut text = "source,destination,weight\n".to_string();
    for (ordinal, _) in ids.iter().enumerate().filter(|row| row.0 % 3 != 0) {
        let (source, destination) = (ordinal / 2, ordinal);
        let weight = weight(ordinal as u64);
        text += &format!("{},{},{weight:?}\n", ids[source], ids[destination]);
    }
    text
}

/// Ids of a kind in order, which come from a path over all of them.
fn ids(kind: &str, count: u64) -> Vec<String> {
    let of = |v: u64| match kind {
        "dense" => v.to_string(),
        "sparse" => (v * 0x1_2345_6789 + 5).to_string(),
        "signed" => (v as i64 * 3 - 100).to_string(),
        _ => format!("v{:07}", v * 11),
    };
    (0..count).map(of).collect()
}

fn path_over(ids: &[String]) -> String {
    let pairs = ids.windows(2).rev();
    pairs
        .map(|pair| format!("{} {}\n", pair[0], pair[1]))
        .collect()
}

fn read(path: &Path) -> Vec<u8> {
    std::fs::read(path).expect("a result")
}

#[test]
fn edges_have_the_same_bytes_everywhere_and_are_read_back() {
    for kind in ["dense", "sparse", "signed", "text"] {
        let ids = ids(kind, 200);
        let mut known: Option<Vec<Vec<u8>>> = None;
        for order in [Order::Id, Order::Degree] {
            let folder = TempDir::new().expect("a folder");
            let options = ImportConfig {
                order,
                batch_size: Some(13),
                ..ImportConfig::default()
            };
            let graph = import(folder.path(), &path_over(&ids), options);
            for ranks in [1, 3] {
                let names = ["e.csv", "e.parquet", "e.tsv", "e.csv.gz"];
                let paths = names.map(|name| folder.path().join(name));
                on_ranks(&graph, ranks, |mut session| {
                    let output = edges(&mut session)?;
                    for path in &paths {
                        let mut rows = 0;
                        let bytes = session.write(&output, path, |more| rows += more)?;
                        if bytes > 0 {
                            assert_eq!((bytes, rows), (read(path).len() as u64, 133));
                        }
                    }
                    Ok(())
                })
                .expect("edges");
                let found = paths.each_ref().map(|path| read(path)).to_vec();
                let csv = String::from_utf8_lossy(&found[0]).into_owned();
                assert_eq!(csv, expected(&ids), "{kind} {order:?} {ranks} ranks");
                assert_eq!(csv.replace(',', "\t").as_bytes(), found[2]);
                for other in &paths[1..] {
                    let verdict = validate(&machine(), &paths[0], other, Rule::Exact);
                    let verdict = verdict.expect("a verdict");
                    assert_eq!(verdict.described, Vec::<String>::new());
                    assert_eq!(verdict.vertices, 133);
                }
                assert!(
                    *known.get_or_insert_with(|| found.clone()) == found,
                    "{kind}"
                );
            }
        }
    }
}

#[test]
fn edges_are_handed_out_in_blocks() {
    let folder = TempDir::new().expect("a folder");
    let ids = ids("text", 40);
    let graph = import(folder.path(), &path_over(&ids), ImportConfig::default());
    let found = on_ranks(&graph, 3, |mut session| {
        let output = edges(&mut session)?;
        let mut text = "source,destination,weight\n".to_string();
        session.each_block(&output, |block| {
            let Values::Edges {
                destinations,
                weights,
            } = &block.values
            else {
                panic!("a block of edges");
            };
            let name = |id: Id<'_>| id.to_string();
            for (row, weight) in weights.iter().enumerate() {
                let (source, destination) = (name(block.ids.get(row)), name(destinations.get(row)));
                text += &format!("{source},{destination},{weight:?}\n");
            }
        })?;
        Ok(text)
    });
    assert_eq!(found.expect("blocks"), expected(&ids));
}

#[test]
fn weights_have_the_type_of_the_graph() {
    for (weights, text, bytes) in [
        (EdgeKind::F32, "0.1", size_of::<f32>()),
        (EdgeKind::F64, "0.1", size_of::<f64>()),
        (EdgeKind::None, "1.0", size_of::<f64>()),
    ] {
        let folder = TempDir::new().expect("a folder");
        let options = ImportConfig {
            weights,
            ..ImportConfig::default()
        };
        let graph = import(folder.path(), "0 1 0.1\n", options);
        let paths = ["e.csv", "e.parquet"].map(|name| folder.path().join(name));
        let weight = match weights {
            EdgeKind::F32 => 0.1_f32.into(),
            EdgeKind::F64 => 0.1,
            _ => 1.0,
        };
        on_ranks(&graph, 1, |mut session| {
            let rows = session.vertex_array::<[u64; 3]>("edges")?;
            session.process_vertices(rows.write(), None, |v, row| {
                *row = if v == 0 {
                    edge_row(weight, 1, 0)
                } else {
                    NO_EDGE
                };
            })?;
            let output = Output {
                column: "weight",
                values: OutputValues::Edges(rows),
                nullable: false,
            };
            for path in &paths {
                session.write(&output, path, |_| ())?;
            }
            Ok(())
        })
        .expect("an edge");
        let csv = String::from_utf8(read(&paths[0])).expect("text");
        assert_eq!(csv, format!("source,destination,weight\n0,1,{text}\n"));
        let is_there = |bytes: &[u8]| read(&paths[1]).windows(bytes.len()).any(|at| at == bytes);
        match bytes {
            4 => assert!(is_there(&(weight as f32).to_le_bytes())),
            _ => assert!(is_there(&weight.to_le_bytes())),
        }
    }
}

/// The window of rows in order of ids, and the names of ends, do not fit at once.
#[test]
fn edges_fit_little_memory() {
    let ids = ids("text", 20_000);
    for (order, size) in [(Order::Id, 20_000), (Order::Degree, 3_000)] {
        let folder = TempDir::new().expect("a folder");
        let options = ImportConfig {
            order,
            batch_size: Some(size),
            ..ImportConfig::default()
        };
        let graph = import(folder.path(), &path_over(&ids), options);
        let write = |memory: u64, name: &str| {
            let machine = Machine::open(&config(memory, 2), Default::default())?;
            let graph = machine.graph(&graph)?;
            let options = EngineOptions {
                edge_result: true,
                ..EngineOptions::default()
            };
            let mut session = machine.session(&graph, options, &unwatched())?;
            // A session that opens has the memory for the result.
            let output = edges(&mut session).expect("edges");
            let path = folder.path().join(name);
            let written = session.write(&output, &path, |_| ());
            written.unwrap_or_else(|error| panic!("{memory}: {error}"));
            assert!(machine.budget().peak() <= memory);
            Ok::<_, Error>(read(&path))
        };
        for name in ["e.csv", "e.parquet"] {
            let least = (16..160).find_map(|quarter| write(quarter << 18, name).ok());
            let least = least.expect("a budget that does");
            assert!(least == write(MEMORY, name).expect("edges"), "{name}");
            if name == "e.csv" {
                assert!(least == expected(&ids).as_bytes());
            }
        }
    }
}

#[test]
fn rows_that_are_no_edges_are_refused() {
    let folder = TempDir::new().expect("a folder");
    let graph = import(folder.path(), "0 1\n1 2\n", ImportConfig::default());
    let said = on_ranks(&graph, 1, |mut session| {
        let rows = session.vertex_array::<[u64; 3]>("edges")?;
        session.process_vertices(rows.write(), None, |_, row| *row = edge_row(1.0, 0, 3))?;
        let output = Output {
            column: "weight",
            values: OutputValues::Edges(rows),
            nullable: false,
        };
        session.write(&output, &folder.path().join("e.csv"), |_| ())
    });
    let said = said.expect_err("no such end").to_string();
    assert!(said.contains("an end of an edge is 3"), "{said}");
}

#[test]
fn files_of_edges_are_compared_as_sets() {
    let folder = TempDir::new().expect("a folder");
    let compared = |result: &str, reference: &str, rule| {
        let paths = ["result.csv", "reference.csv"].map(|name| folder.path().join(name));
        std::fs::write(&paths[0], result).expect("room");
        std::fs::write(&paths[1], reference).expect("room");
        validate(&machine(), &paths[0], &paths[1], rule)
    };
    let header = "source,destination,weight\n";
    let result = format!("{header}a,b,1.0\n3,7,2.5\nc,a,1\n");
    let reference = format!("{header}a,c,1.00001\n7,3,2.5\nb,a,1\n");
    let verdict = compared(&result, &reference, Rule::Epsilon(1e-4)).expect("a verdict");
    assert!(verdict.is_same(), "{verdict:?}");
    assert_eq!(
        (verdict.vertices, verdict.rows.to_string()),
        (3, "edges".into())
    );
    let verdict = compared(&result, &reference, Rule::Exact).expect("a verdict");
    assert_eq!(verdict.described, ["edge a - c has 1, expected 1.00001"]);
    let verdict = compared(&result, header, Rule::Exact).expect("a verdict");
    assert_eq!((verdict.differences, verdict.unexpected), (3, 3));
    let verdict = compared(header, &reference, Rule::Exact).expect("a verdict");
    assert_eq!((verdict.differences, verdict.missing), (3, 3));
    assert!(
        verdict
            .described
            .contains(&"edge 3 - 7 is missing, expected 2.5".to_string())
    );
    let twice = compared(&format!("{header}1,2,3\n2,1,3\n"), header, Rule::Exact);
    let said = twice.expect_err("an edge twice").to_string();
    assert!(said.contains("it has edge 1 - 2 twice"), "{said}");
    let short = compared(&format!("{header}1,2\n"), header, Rule::Exact);
    let said = short.expect_err("no weight").to_string();
    assert!(
        said.contains("expected a source, a destination and a weight"),
        "{said}"
    );
}
