//! Arrays and sets from files of values, and their values back.

use std::path::Path;
use std::sync::Mutex;

use graphmill::advanced::run_on_ranks;
use graphmill::prelude::*;
use graphmill::{CancelToken, Error, ImportConfig, Machine, Order, Session, unwatched};
use tempfile::TempDir;

use crate::common::{MEMORY, config, import, members, on_ranks, values};

fn path_of_five(folder: &Path, order: Order) -> std::path::PathBuf {
    let options = ImportConfig {
        order,
        batch_size: Some(2),
        ..ImportConfig::default()
    };
    import(folder, "a b\nb c\nc d\nd e\nb e\n", options)
}

#[test]
fn values_of_a_file_are_rows_of_their_vertices() {
    for order in [Order::Id, Order::Degree] {
        let folder = TempDir::new().expect("a folder");
        let graph = path_of_five(folder.path(), order);
        let file = folder.path().join("priors.csv");
        let text = "vertex,prior\ne,0.5\na,1\nc,\nb,-2e3\n";
        std::fs::write(&file, text).expect("room");
        for ranks in [1, 3] {
            let named = Mutex::new(Vec::new());
            let found = on_ranks(&graph, ranks, |mut session| {
                let prior = session.vertex_array::<f64>("prior")?;
                session.process_vertices(prior.write(), None, |_, prior| *prior = 7.0)?;
                let set = session.read_values(&file, prior)?;
                assert_eq!(set.len(), 3);
                members(&mut session, &set, &named)?;
                values(&mut session, prior)
            })
            .expect("values");
            let found: Vec<_> = found.iter().map(|row| (&*row.0, row.1)).collect();
            let expected = [("a", 1.0), ("b", -2e3), ("c", 7.0), ("d", 7.0), ("e", 0.5)];
            assert_eq!(found, expected, "{order:?}, {ranks} ranks");
            let mut named = named.into_inner().expect("no panic");
            named.sort();
            assert_eq!(named, ["a", "b", "e"]);
        }
    }
}

#[test]
fn result_of_one_program_is_read_by_the_next() {
    let folder = TempDir::new().expect("a folder");
    let graph = path_of_five(folder.path(), Order::Degree);
    for name in ["ranks.parquet", "ranks.csv", "ranks.csv.gz", "ranks.tsv"] {
        let file = folder.path().join(name);
        on_ranks(&graph, 1, |mut session| {
            let written = session.vertex_array::<u64>("written")?;
            session.process_vertices((written.write(), OutDegree), None, |v, (row, degree)| {
                *row = 10 * v + degree
            })?;
            let output = Output {
                column: "written",
                values: OutputValues::U64(written),
                nullable: false,
            };
            session.write(&output, &file, |_| ())?;
            // The array stays between programs of a session.
            let same = session.vertex_array::<u64>("written")?;
            let read = session.vertex_array::<u64>("read")?;
            let set = session.read_values(&file, read)?;
            assert_eq!(set.len(), 5, "{name}");
            assert_eq!(values(&mut session, read)?, values(&mut session, same)?);
            Ok(())
        })
        .expect("values");
    }
}

#[test]
fn row_that_does_not_fit_is_named() {
    let folder = TempDir::new().expect("a folder");
    let graph = path_of_five(folder.path(), Order::Id);
    let file = folder.path().join("values.csv");
    let read = |text: &str, ranks| {
        std::fs::write(&file, text).expect("room");
        let outcome = on_ranks(&graph, ranks, |mut session| {
            let array = session.vertex_array::<u32>("array")?;
            Ok(session.read_values(&file, array)?.len())
        });
        outcome.map_err(|error| error.to_string())
    };
    for (text, wrong) in [
        ("vertex,x\na,1\nz,2\n", "line 3: the graph has no vertex z"),
        ("a 1\nb 2\na 1\n", "line 3: vertex a has a row before"),
        ("a 1\nb 2.5\n", "line 2: its value \"2.5\" is no u32"),
        ("a 1\nb -2\n", "line 2: its value \"-2\" is no u32"),
        ("vertex,x\na,1\nb\n", "line 3: it is \"b\", expected"),
    ] {
        for ranks in [1, 3] {
            let said = read(text, ranks).expect_err(wrong);
            assert!(said.contains(wrong), "{said}");
        }
    }
    assert_eq!(read("vertex,x\na,1\nb,inf\nc,\n", 3), Ok(1));
    assert_eq!(read("", 1), Ok(0));
    let missing = on_ranks(&graph, 1, |mut session| {
        session.read_set(&folder.path().join("none")).map(drop)
    });
    let said = missing.expect_err("no file").to_string();
    assert!(said.contains("there is no such file"), "{said}");
}

#[test]
fn first_line_with_a_tab_is_a_row_of_a_vertex_named_vertex() {
    for (edges, text, rows) in [
        ("a b\n", "vertex\tcount\na\t1\n", Some(1)),
        ("a vertex\n", "vertex\t2\na\t1\n", Some(2)),
        ("a vertex\n", "vertex\tcount\na\t1\n", None),
        ("a vertex\n", "vertex\tpagerank\na\t1\n", Some(1)),
    ] {
        let folder = TempDir::new().expect("a folder");
        let graph = import(folder.path(), edges, ImportConfig::default());
        let file = folder.path().join("values.tsv");
        std::fs::write(&file, text).expect("room");
        let read = on_ranks(&graph, 1, |mut session| {
            let array = session.vertex_array::<u32>("array")?;
            Ok(session.read_values(&file, array)?.len())
        });
        assert_eq!(read.ok(), rows, "{edges:?} {text:?}");
    }
}

#[test]
fn set_of_a_file_has_its_vertices() {
    let folder = TempDir::new().expect("a folder");
    let graph = path_of_five(folder.path(), Order::Degree);
    let file = folder.path().join("seeds.csv");
    for text in [
        "vertex\nb\nd\n",
        "d\n\nb\n",
        "vertex,depth\nd,\nb,7\n",
        "vertex\tcolour\nd\t\nb\t7\n",
        "b 1\nd\n",
        "d\t1\nb\t2\n",
    ] {
        std::fs::write(&file, text).expect("room");
        for ranks in [1, 3] {
            on_ranks(&graph, ranks, |mut session| {
                let set = session.read_set(&file)?;
                let is_in = |session: &mut Session, id: &str| -> Result<bool, Error> {
                    let index = session.index_of(id)?;
                    Ok(set.contains(index)?)
                };
                for (id, is_member) in [("a", false), ("b", true), ("c", false), ("d", true)] {
                    assert_eq!(is_in(&mut session, id)?, is_member, "{text:?}, {id}");
                }
                Ok(())
            })
            .expect("a set");
        }
    }
}

/// What a session admits it can also write, whatever the budget.
#[test]
fn program_that_was_admitted_has_memory_for_its_result() {
    const VERTICES: u64 = 60_000;
    let folder = TempDir::new().expect("a folder");
    let edges = |v| format!("{v} {}\n{v} {}\n", v * 7919 % VERTICES, (v + 1) % VERTICES);
    let edges: String = (0..VERTICES).map(edges).collect();
    let options = ImportConfig {
        batch_size: Some(1 << 16),
        ..ImportConfig::default()
    };
    let graph = import(folder.path(), &edges, options);
    let write = |memory: u64| {
        let machine = Machine::open(&config(memory, 2), Default::default())?;
        let graph = machine.graph(&graph)?;
        let mut session = machine.session(&graph, Default::default(), &unwatched())?;
        let array = session.vertex_array::<u64>("rows")?;
        session.process_vertices(array.write(), None, |v, row| *row = v)?;
        let output = Output {
            column: "rows",
            values: OutputValues::U64(array),
            nullable: false,
        };
        let written = session.write(&output, &folder.path().join("rows.csv"), |_| ());
        Ok::<_, Error>(written.map_err(|error| error.to_string()))
    };
    let admitted = (8..60).filter_map(|half| write(half << 19).ok());
    let admitted: Vec<_> = admitted.take(12).collect();
    assert_eq!(admitted.len(), 12);
    for written in admitted {
        assert!(written.is_ok(), "{written:?}");
    }
}

/// The file is in no order, and memory holds a part of it at a time.
#[test]
fn file_larger_than_memory_is_read_in_parts() {
    const VERTICES: u64 = 150_000;
    let folder = TempDir::new().expect("a folder");
    let id = |v: u64| v * 7919 % 1_000_003;
    let edges = |v| format!("{} {}\n", id(v), id((v + 1) % VERTICES));
    let edges: String = (0..VERTICES).map(edges).collect();
    let options = ImportConfig {
        order: Order::Degree,
        batch_size: Some(10_000),
        ..ImportConfig::default()
    };
    let graph = import(folder.path(), &edges, options);
    let file = folder.path().join("values.txt");
    let rows: String = (0..VERTICES).map(|v| format!("{} {v}\n", id(v))).collect();
    std::fs::write(&file, &rows).expect("room");
    let read = |memory: u64, file: &Path| {
        let machine = Machine::open(&config(memory, 2), Default::default())?;
        let graph = machine.graph(&graph)?;
        let mut session = machine.session(&graph, Default::default(), &unwatched())?;
        let array = session.vertex_array::<u64>("values")?;
        assert_eq!(session.read_values(file, array)?.len(), VERTICES);
        assert!(machine.budget().peak() <= memory);
        values(&mut session, array)
    };
    let mut expected: Vec<_> = (0..VERTICES).map(|v| (id(v), v)).collect();
    expected.sort_unstable();
    for memory in [40 << 20, MEMORY] {
        let found = read(memory, &file).expect("values");
        let found = found
            .iter()
            .map(|row| (row.0.parse().expect("an id"), row.1));
        assert!(found.eq(expected.iter().copied()), "{memory}");
    }
    // The second row of a vertex may be in another part.
    std::fs::write(&file, format!("{rows}{} 1\n", id(5))).expect("room");
    for memory in [40 << 20, MEMORY] {
        let said = read(memory, &file).expect_err("twice").to_string();
        let wrong = format!("line 150001: vertex {} has a row before", id(5));
        assert!(said.contains(&wrong), "{said}");
    }
}

#[test]
fn sets_intersect_and_select() {
    let folder = TempDir::new().expect("a folder");
    let edges: String = (0..500).map(|v| format!("{v} {}\n", v + 1)).collect();
    let graph = import(folder.path(), &edges, ImportConfig::default());
    for ranks in [1, 3] {
        let found = Mutex::new(Vec::new());
        on_ranks(&graph, ranks, |mut session| {
            let all = session.full_set()?;
            let mut thirds = session.select_vertices((), None, |v, ()| v % 3 == 0)?;
            let fifths = session.select_vertices((), Some(&all), |v, ()| v % 5 == 0)?;
            // Of the thirds alone.
            let tens = session.select_vertices((), Some(&thirds), |v, ()| v % 10 == 0)?;
            assert_eq!(tens.len(), 17);
            thirds.intersect(&fifths)?;
            assert_eq!(thirds.len(), 34);
            assert!(thirds.contains(495)? && !thirds.contains(5)? && !thirds.contains(3)?);
            assert!(thirds.contains(501).is_err());
            let mut few = session.empty_set()?;
            few.insert_each([450, 0, 7, 450])?;
            assert_eq!(few.len(), 3);
            few.intersect(&thirds)?;
            few.union(&tens)?;
            few.remove(&fifths)?;
            assert!(few.is_empty());
            thirds.remove(&tens)?;
            members(&mut session, &thirds, &found)?;
            Ok(())
        })
        .expect("sets");
        let mut found: Vec<u64> = (found.into_inner().expect("no panic").iter())
            .map(|id| id.parse().expect("an id"))
            .collect();
        found.sort_unstable();
        let expected: Vec<u64> = (0..501).filter(|v| v % 15 == 0 && v % 10 != 0).collect();
        assert_eq!(found, expected, "{ranks} ranks");
    }
}

#[test]
fn rows_that_other_ranks_do_not_hand_out_are_an_error() {
    let folder = TempDir::new().expect("a folder");
    let graph = path_of_five(folder.path(), Order::Id);
    let session = |machine: &Machine| -> Result<Session, Error> {
        machine.session(&machine.graph(&graph)?, Default::default(), &unwatched())
    };
    for (theirs, is_after_end) in [
        ("process_vertices of (Write<u64>, ())", false),
        ("end_passes", false),
        ("nothing more", false),
        ("nothing more", true),
    ] {
        let one = |machine: &Machine| {
            let mut session = session(machine)?;
            let array = session.vertex_array::<u64>("array")?;
            if is_after_end {
                session.end_passes()?;
                let output = Output {
                    column: "array",
                    values: OutputValues::U64(array),
                    nullable: false,
                };
                return session
                    .write(&output, &folder.path().join("rows.csv"), |_| ())
                    .map(drop);
            }
            values(&mut session, array).map(drop)
        };
        let other = |machine: &Machine| {
            let mut session = session(machine)?;
            let array = session.vertex_array::<u64>("array")?;
            match theirs {
                "end_passes" => session.finish()?,
                "nothing more" if is_after_end => session.end_passes()?,
                "nothing more" => (),
                _ => session.process_vertices(array.write(), None, |_, row| *row = 3)?,
            }
            Ok(())
        };
        let (config, stop) = (config(MEMORY, 2), CancelToken::new());
        let done = run_on_ranks(&config, 2, &stop, one, other);
        let said = done.expect_err("other calls").to_string();
        // Either rank may be the first to say so.
        let is_told = said.contains("cannot make call") && said.contains(theirs);
        assert!(is_told, "{said}");
    }
}
