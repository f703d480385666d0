//! `validate` on files as they lie on a disk: text, gzip, Parquet, and all of them broken.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use graphmill::{CancelToken, Machine, MachineConfig, Rule, ValidateError, Verdict, validate};
use parquet::data_type::{ByteArrayType, DataType, DoubleType, FloatType, Int64Type};
use parquet::file::writer::SerializedFileWriter;
use tempfile::TempDir;

fn machine() -> Machine {
    let config = MachineConfig {
        memory: Some(32 << 20),
        threads: Some(1),
        ..MachineConfig::default()
    };
    Machine::open(&config, CancelToken::default()).expect("a machine")
}

fn write(folder: &TempDir, name: &str, bytes: &[u8]) -> PathBuf {
    let path = folder.path().join(name);
    let mut file = std::fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .open(&path)
        .expect("a file");
    file.write_all(bytes).expect("room for a file");
    path
}

fn packed(text: &str) -> Vec<u8> {
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packer.write_all(text.as_bytes()).expect("memory");
    packer.finish().expect("memory")
}

/// A Parquet file of one row group a slice of `levels`; a level of 0 is a null, which has no value.
fn table<I: DataType, V: DataType>(
    schema: &str,
    ids: &[I::T],
    levels: &[&[i16]],
    values: &[V::T],
) -> Vec<u8> {
    let schema = Arc::new(parquet::schema::parser::parse_message_type(schema).expect("a schema"));
    let mut file = SerializedFileWriter::new(Vec::new(), schema, Arc::default()).expect("a file");
    let (mut ids, mut values) = (ids, values);
    for levels in levels {
        let mut group = file.next_row_group().expect("a group");
        let mut column = group.next_column().expect("a column").expect("a column");
        column
            .typed::<I>()
            .write_batch(&ids[..levels.len()], None, None)
            .expect("ids");
        column.close().expect("a column");
        ids = &ids[levels.len()..];
        let count = levels.iter().filter(|level| **level > 0).count();
        let mut column = group.next_column().expect("a column").expect("a column");
        column
            .typed::<V>()
            .write_batch(&values[..count], Some(levels), None)
            .expect("values");
        column.close().expect("a column");
        values = &values[count..];
        group.close().expect("a group");
    }
    file.into_inner().expect("a file")
}

fn compared(machine: &Machine, result: &Path, reference: &Path, rule: Rule) -> Verdict {
    validate(machine, result, reference, rule).expect("files that can be compared")
}

#[test]
fn long_result_equals_its_gzip_reference() {
    let (machine, folder) = (machine(), TempDir::new().expect("a folder"));
    let depth = |vertex: u64| {
        if vertex % 7 == 3 {
            "inf".to_string()
        } else {
            (vertex % 50).to_string()
        }
    };
    let rows: String = (0..200_000)
        .map(|vertex| format!("{vertex},{}\n", depth(vertex)))
        .collect();
    let reference: String = (0..200_000)
        .map(|vertex| format!("{vertex} {}\n", depth(vertex).replace("inf", "Infinity")))
        .collect();
    let result = write(
        &folder,
        "result.csv",
        format!("vertex,depth\n{rows}").as_bytes(),
    );
    // Two members, as `cat a.gz b.gz` makes them.
    let (front, back) = reference.split_at(1_000_003);
    let reference = write(
        &folder,
        "reference.gz",
        &[packed(front), packed(back)].concat(),
    );
    let verdict = compared(&machine, &result, &reference, Rule::Exact);
    assert!(verdict.is_same(), "{verdict:?}");
    assert_eq!(verdict.vertices, 200_000);

    let result = write(
        &folder,
        "result.csv",
        format!("vertex,depth\n{rows}")
            .replace("\n199999,49\n", "\n199999,48\n")
            .as_bytes(),
    );
    let verdict = compared(&machine, &result, &reference, Rule::Exact);
    assert_eq!(
        (verdict.differences, &*verdict.described),
        (1, &["vertex 199999 has 48, expected 49".to_string()][..])
    );
}

#[test]
fn parquet_has_nulls_row_groups_floats_text() {
    let (machine, folder) = (machine(), TempDir::new().expect("a folder"));
    let schema =
        "message g { required int64 vertex (INTEGER(64,false)); optional double distance; }";
    let values = [0.0, 0.1, 2.5];
    let bytes =
        table::<Int64Type, DoubleType>(schema, &[1, 2, 7, 9, -1], &[&[1, 1, 0], &[1, 0]], &values);
    let result = write(&folder, "result.parquet", &bytes);
    let text = "1 0\n2 0.1\n7 infinity\n9 2.5\n18446744073709551615 inf\n";
    let reference = write(&folder, "reference", text.as_bytes());
    assert!(compared(&machine, &result, &reference, Rule::Exact).is_same());
    assert!(
        compared(&machine, &reference, &result, Rule::Exact).is_same(),
        "either file may be Parquet"
    );
    let other = write(
        &folder,
        "other",
        text.replace("7 infinity", "7 3").as_bytes(),
    );
    let verdict = compared(&machine, &result, &other, Rule::Exact);
    assert_eq!(verdict.described, ["vertex 7 has unreached, expected 3"]);

    let schema = "message g { required binary vertex (STRING); optional float rank; }";
    let ids = ["bash".into(), "zlib".into()];
    let bytes = table::<ByteArrayType, FloatType>(schema, &ids, &[&[1, 1]], &[0.1, 1e-30]);
    let result = write(&folder, "result.parquet", &bytes);
    let reference = write(
        &folder,
        "reference.csv",
        b"vertex,rank\nbash,0.1\nzlib,1e-30\n",
    );
    assert!(compared(&machine, &result, &reference, Rule::Exact).is_same());
}

#[test]
fn parquet_without_result_columns_is_refused() {
    let (machine, folder) = (machine(), TempDir::new().expect("a folder"));
    let reference = write(&folder, "reference", b"1 0\n");
    let schema = "message g { required int64 id; optional double distance; }";
    let result = write(
        &folder,
        "result",
        &table::<Int64Type, DoubleType>(schema, &[1], &[&[1]], &[0.0]),
    );
    let error = validate(&machine, &result, &reference, Rule::Exact).expect_err("another table");
    assert!(
        error
            .to_string()
            .contains("with vertices: a file of vertices has"),
        "{error}"
    );
}

#[test]
fn damaged_file_never_panics() {
    let (machine, folder) = (machine(), TempDir::new().expect("a folder"));
    let text = "1 0\n2 0.1\n7 infinity\n9 2.5\n";
    let reference = write(&folder, "reference", text.as_bytes());
    let schema = "message g { required int64 vertex; optional double distance; }";
    let whole = table::<Int64Type, DoubleType>(
        schema,
        &[1, 2, 7, 9],
        &[&[1, 1, 0], &[1]],
        &[0.0, 0.1, 2.5],
    );
    for whole in [whole, packed(text)] {
        assert!(
            compared(
                &machine,
                &write(&folder, "result", &whole),
                &reference,
                Rule::Exact
            )
            .is_same()
        );
        for at in (0..whole.len()).step_by(3) {
            let mut flipped = whole.clone();
            flipped[at] ^= 1 << (at % 8);
            for damaged in [&flipped[..], &whole[..at]] {
                // What comes out does not matter here, only that something does.
                let _ = validate(
                    &machine,
                    &write(&folder, "result", damaged),
                    &reference,
                    Rule::Exact,
                );
            }
        }
    }
    let cut = packed(text);
    let result = write(&folder, "result.gz", &cut[..cut.len() - 9]);
    assert!(matches!(
        validate(&machine, &result, &reference, Rule::Exact),
        Err(ValidateError::Read { .. })
    ));
    assert_eq!(
        machine.budget().available(),
        machine.budget().total(),
        "all memory is given back"
    );
}

#[test]
fn missing_file_and_bad_epsilon_are_errors() {
    let (machine, folder) = (machine(), TempDir::new().expect("a folder"));
    let reference = write(&folder, "reference", b"1 0\n");
    let missing = folder.path().join("nothing.csv");
    let error = validate(&machine, &missing, &reference, Rule::Exact).expect_err("no file");
    assert!(error.to_string().contains("nothing.csv"), "{error}");
    for share in [-1.0, f64::NAN, f64::INFINITY] {
        let verdict = validate(&machine, &reference, &reference, Rule::Epsilon(share));
        assert!(matches!(verdict, Err(ValidateError::Share { .. })));
    }
}

#[test]
fn comparison_ends_on_cancel() {
    let (machine, folder) = (machine(), TempDir::new().expect("a folder"));
    for text in ["1 0\n2 0\n", "2 0\n1 0\n"] {
        let reference = write(&folder, "reference", text.as_bytes());
        assert!(compared(&machine, &reference, &reference, Rule::Exact).is_same());
    }
    machine.stop().request();
    let reference = folder.path().join("reference");
    let verdict = validate(&machine, &reference, &reference, Rule::Exact);
    assert!(matches!(verdict, Err(ValidateError::Stopped)));
}
