//! Results of small graphs, in all formats.

use std::path::Path;

use graphmill_algorithms::{NO_EDGE, Output, OutputValues as Array, ResultShape, edge_row};
use graphmill_engine::VertexArray;
use graphmill_graph::{Order, uuid_text};

use crate::import_config::ImportConfig;
use crate::machine::resources::{Machine, MachineConfig};
use crate::progress::unwatched;
use crate::result::block::{IdColumn, Values};
use crate::result::rows::bytes_needed;
use crate::result::values::element_bytes;
use crate::session::Session;
use crate::validate::compare::validate;
use crate::validate::verdict::Rule;

/// Imports a graph with those ids, each with an arc to itself, and returns the machine.
fn graph(at: &Path, ids: &[&[u8]], order: Order) -> Machine {
    let machine = Machine::open(&MachineConfig::default(), Default::default()).unwrap();
    let mut edges = ::csv::WriterBuilder::new().from_writer(Vec::new());
    edges.write_record(["source", "target"]).unwrap();
    for id in ids {
        edges.write_record([id, id]).unwrap();
    }
    let path = at.join("edges.csv");
    let edges = edges.into_inner().unwrap();
    machine.disk().write_small(&path, &edges).unwrap();
    let config = ImportConfig {
        order,
        batch_size: Some(20_000),
        ..ImportConfig::default()
    };
    let to = at.join("graph");
    machine.import(&[path], &to, &config, &unwatched()).unwrap();
    machine
}

fn session(machine: &Machine, at: &Path) -> Session {
    let graph = machine.graph(&at.join("graph")).unwrap();
    machine
        .session(&graph, Default::default(), &unwatched())
        .unwrap()
}

/// An array with the values of a list, in order of index.
fn array<T: graphmill_engine::Element>(session: &mut Session, values: &[T]) -> VertexArray<T> {
    // Of one name there is one array.
    let name = format!("{:p}", values);
    let array = session.vertex_array(&name).unwrap();
    session
        .process_vertices(array.write(), None, |v, value| *value = values[v as usize])
        .unwrap();
    array
}

fn output(values: Array, nullable: bool) -> Output {
    Output {
        column: "value",
        values,
        nullable,
    }
}

/// Writes both formats, compares the CSV with the Parquet and the rows of blocks, and returns the CSV.
fn csv_like_parquet(session: &mut Session, at: &Path, output: &Output) -> String {
    let paths = ["result.csv", "result.parquet"].map(|name| at.join(name));
    let vertices = session.graph().vertices();
    for path in &paths {
        let mut rows = 0;
        let bytes = session.write(output, path, |more| rows += more).unwrap();
        assert_eq!(bytes, path.metadata().unwrap().len());
        assert_eq!(rows, vertices);
    }
    let machine = Machine::open(&MachineConfig::default(), Default::default()).unwrap();
    for (left, right) in [(0, 1), (1, 0)] {
        let verdict = validate(&machine, &paths[left], &paths[right], Rule::Exact).unwrap();
        assert_eq!(verdict.described, Vec::<String>::new());
        assert_eq!(verdict.vertices, vertices);
    }
    let mut of_blocks = ::csv::WriterBuilder::new().from_writer(Vec::new());
    of_blocks.write_record(["vertex", output.column]).unwrap();
    session
        .each_block(output, |block| {
            for row in 0..block.rows() {
                let value = match (&block.values, block.is_reached(row)) {
                    (Values::Vertex(labels), true) => id(labels, row),
                    (Values::Vertex(_), false) => Vec::new(),
                    (_, false) => b"inf".to_vec(),
                    (Values::F32(values), _) => format!("{:?}", values[row]).into(),
                    (Values::F64(values), _) => format!("{:?}", values[row]).into(),
                    (Values::U32(values), _) => values[row].to_string().into(),
                    (Values::U64(values), _) => values[row].to_string().into(),
                    (Values::Edges { .. } | Values::Numbers(_), _) => unreachable!(),
                };
                of_blocks
                    .write_record([id(&block.ids, row), value])
                    .unwrap();
            }
        })
        .unwrap();
    let csv = machine.disk().read_small(&paths[0], 1 << 30).unwrap();
    assert!(csv == of_blocks.into_inner().unwrap());
    String::from_utf8(csv).unwrap()
}

fn id(labels: &IdColumn, row: usize) -> Vec<u8> {
    match labels {
        IdColumn::Integers(ids) => ids[row].to_string().into(),
        IdColumn::Signed(ids) => ids[row].to_string().into(),
        IdColumn::Texts(texts) => texts.get(row).to_vec(),
        IdColumn::Uuids(ids) => uuid_text(ids[row]).to_vec(),
    }
}

#[test]
fn floats_keep_their_bits_and_unreached_is_inf() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let machine = graph(
        at,
        &[b"0", b"7", b"1099511627776", b"18446744073709551615"],
        Order::Id,
    );
    let mut session = session(&machine, at);
    let values = [0.1 + 0.2, f64::INFINITY, 1e-300, 5.0];
    let values = Array::F64(array(&mut session, &values));
    assert_eq!(
        csv_like_parquet(&mut session, at, &output(values, true)),
        "vertex,value\n0,0.30000000000000004\n7,inf\n1099511627776,1e-300\n18446744073709551615,5.0\n"
    );
    let values = Array::F32(array(&mut session, &[0.1_f32, f32::INFINITY, -0.0, 1e20]));
    assert_eq!(
        csv_like_parquet(&mut session, at, &output(values, false)),
        "vertex,value\n0,0.1\n7,inf\n1099511627776,-0.0\n18446744073709551615,1e20\n"
    );
}

#[test]
fn integers_of_any_size_are_written() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let machine = graph(
        at,
        &[b"-9223372036854775808", b"-1", b"0", b"9223372036854775807"],
        Order::Id,
    );
    let mut session = session(&machine, at);
    let header = "vertex,value\n";
    let expect = |values: [&str; 4]| {
        let ids = ["-9223372036854775808", "-1", "0", "9223372036854775807"];
        let rows = ids
            .iter()
            .zip(values)
            .map(|(id, value)| format!("{id},{value}\n"));
        format!("{header}{}", rows.collect::<String>())
    };
    let values = Array::U32(array(&mut session, &[u32::MAX, 0, 1 << 31, 7]));
    assert_eq!(
        csv_like_parquet(&mut session, at, &output(values, false)),
        expect(["4294967295", "0", "2147483648", "7"])
    );
    assert_eq!(
        csv_like_parquet(&mut session, at, &output(values, true)),
        expect(["inf", "0", "2147483648", "7"])
    );
    let values = Array::U64(array(&mut session, &[u64::MAX, 0, 1 << 63, 1]));
    assert_eq!(
        csv_like_parquet(&mut session, at, &output(values, false)),
        expect(["18446744073709551615", "0", "9223372036854775808", "1"])
    );
    // Vertices by their places in order of ids.
    let values = Array::Vertex32(array(&mut session, &[3, u32::MAX, 0, 1]));
    assert_eq!(
        csv_like_parquet(&mut session, at, &output(values, true)),
        expect(["9223372036854775807", "", "-9223372036854775808", "-1"])
    );
}

#[test]
fn odd_text_ids_survive_as_ids_and_as_values() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let ids = ["\"", "a b", "c,d", "e\"f", "\u{e4}"].map(str::as_bytes);
    let machine = graph(at, &ids, Order::Id);
    let mut session = session(&machine, at);
    let values = Array::Vertex64(array(&mut session, &[2, 2, u64::MAX, 3, 1]));
    assert_eq!(
        csv_like_parquet(&mut session, at, &output(values, true)),
        "vertex,value\n\"\"\"\",\"c,d\"\na b,\"c,d\"\n\"c,d\",\n\"e\"\"f\",\"e\"\"f\"\n\u{e4},a b\n"
    );
    // No vertex has a value.
    let values = Array::Vertex32(array(&mut session, &[u32::MAX; 5]));
    let csv = csv_like_parquet(&mut session, at, &output(values, true));
    assert!(csv.ends_with("\u{e4},\n"), "{csv}");
}

/// Returns the ids of `count` vertices; every thousandth is long.
fn texts(count: u64) -> Vec<Vec<u8>> {
    let id = |v: u64| {
        let more = if v % 1000 == 7 { 1900 + v % 77 } else { v % 5 };
        let id = format!(
            "{:08x}{}",
            v * 2_654_435_761 % (1 << 32),
            "x".repeat(more as usize)
        );
        id.into_bytes()
    };
    (0..count).map(id).collect()
}

#[test]
fn result_has_the_same_bytes_on_any_machine() {
    let count = 150_000;
    let integers: Vec<_> = (0..count)
        .map(|v: u64| (v * 7919).to_string().into_bytes())
        .collect();
    let signed: Vec<_> = (0..count as i64)
        .map(|v| (v * 7919 - (1 << 30)).to_string().into_bytes())
        .collect();
    for (ids, order) in [
        (texts(count), Order::Id),
        (texts(count), Order::Degree),
        (integers, Order::Id),
        (signed, Order::Degree),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path();
        let ids: Vec<_> = ids.iter().map(Vec::as_slice).collect();
        drop(graph(at, &ids, order));
        let mut expected: Vec<Vec<u8>> = Vec::new();
        let least_and = |more: u64| Some(more << 20);
        let memory = [
            None,
            None,
            least_and(0),
            least_and(0),
            least_and(7),
            least_and(11),
            least_and(12),
        ];
        for (threads, more) in [1, 2, 3, 1, 2, 1, 2].into_iter().zip(memory) {
            let config = MachineConfig {
                threads: Some(threads),
                ..MachineConfig::default()
            };
            let machine = Machine::open(&config, Default::default()).unwrap();
            let mut session = session(&machine, at);
            let scattered: Vec<u32> = (0..count).map(|v| (v * 7919 % count) as u32).collect();
            let few: Vec<u32> = scattered
                .iter()
                .map(|v| if v % 3 == 0 { u32::MAX } else { v % 10 })
                .collect();
            let floats: Vec<f64> = scattered.iter().map(|v| f64::from(*v).sqrt()).collect();
            let edges: Vec<[u64; 3]> = (0..count)
                .map(|v| match v % 4 {
                    0 => NO_EDGE,
                    _ => edge_row(floats[v as usize], v, v * v % count),
                })
                .collect();
            let outputs = [
                output(Array::Vertex32(array(&mut session, &scattered)), false),
                output(Array::Vertex32(array(&mut session, &few)), true),
                output(Array::F64(array(&mut session, &floats)), false),
                output(Array::Edges(array(&mut session, &edges)), false),
            ];
            let mut results = Vec::new();
            for output in &outputs {
                // All but what a run sets aside for its result is taken.
                let element = element_bytes(&output.values);
                let least = bytes_needed(&session.graph().measure(), element);
                let taken = more.map_or(0, |more| machine.budget().available() - least - more);
                let _taken = machine.budget().lease("all else", taken).unwrap();
                for name in ["result.csv", "result.parquet", "result.tsv.gz"] {
                    let path = at.join(name);
                    session.write(output, &path, |_| ()).unwrap();
                    results.push(machine.disk().read_small(&path, 1 << 30).unwrap());
                }
                let is_first = expected.is_empty();
                if is_first && matches!(output.values, Array::Edges(_)) {
                    let paths = ["result.csv", "result.parquet"].map(|name| at.join(name));
                    let verdict = validate(&machine, &paths[0], &paths[1], Rule::Exact).unwrap();
                    assert_eq!(verdict.described, Vec::<String>::new());
                    assert_eq!(verdict.vertices, count - count.div_ceil(4));
                } else if is_first {
                    csv_like_parquet(&mut session, at, output);
                }
            }
            if expected.is_empty() {
                expected = results;
            } else {
                for (number, (found, expected)) in results.iter().zip(&expected).enumerate() {
                    assert!(found == expected, "{number}, {threads} threads, {more:?}");
                }
            }
        }
    }
}

#[test]
fn summary_of_edges_counts_weighs_and_lists_them() {
    for order in [Order::Id, Order::Degree] {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path();
        let machine = graph(at, &[b"a", b"b", b"c", b"d"], order);
        let mut session = session(&machine, at);
        let rows = [
            edge_row(0.1, 3, 0),
            NO_EDGE,
            edge_row(0.2, 1, 2),
            edge_row(0.2, 0, 1),
        ];
        let output = output(Array::Edges(array(&mut session, &rows)), true);
        let (mut summary, _) = session.summarize(&output, None, 2).unwrap();
        let top = [("a", "b"), ("b", "c")];
        let top = top.map(|(source, destination)| {
            serde_json::json!({"source": source, "destination": destination, "weight": 0.2})
        });
        let mut expected = serde_json::json!({"edges": 3, "weight": 0.5, "top": top});
        assert_eq!(summary.json(), expected);
        summary.count_trees(ResultShape::Forest, 4);
        expected["trees"] = 1.into();
        assert_eq!(summary.json(), expected);
    }
}
