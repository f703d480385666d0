//! Rows of Parquet files to edges: columns, types, and refused files.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::path::Path;
use std::sync::Arc;

use crate::text_files::record_text;
use graphmill_graph::{EdgeFields, EdgeKind};
use graphmill_ingest::{
    EdgeData, EdgeSink, EdgeSource, FileSource, Ids, IngestError, OnError, ReadOptions,
};
use graphmill_storage::{CancelToken, Disk, MemoryBudget, SimDisk};
use parquet::basic::Compression;
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int32Type, Int64Type};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;

/// A column of one row group.
enum Column<'a> {
    Int32(&'a [i32]),
    Int64(&'a [i64]),
    /// The empty text stands for null where the column is optional.
    Text(&'a [&'a str]),
    Double(&'a [f64]),
}

/// A file of these row groups.
fn file(
    schema: &str,
    groups: &[&[Column<'_>]],
    compression: Compression,
    statistics: bool,
) -> Vec<u8> {
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let level = if statistics {
        EnabledStatistics::Chunk
    } else {
        EnabledStatistics::None
    };
    let properties = WriterProperties::builder()
        .set_compression(compression)
        .set_statistics_enabled(level)
        .build();
    let mut bytes = Vec::new();
    let mut writer = SerializedFileWriter::new(&mut bytes, schema, Arc::new(properties)).unwrap();
    for group in groups {
        let mut row_group = writer.next_row_group().unwrap();
        for column in *group {
            let mut out = row_group.next_column().unwrap().unwrap();
            match column {
                Column::Int32(values) => {
                    out.typed::<Int32Type>()
                        .write_batch(values, None, None)
                        .unwrap();
                }
                Column::Int64(values) => {
                    out.typed::<Int64Type>()
                        .write_batch(values, None, None)
                        .unwrap();
                }
                Column::Double(values) => {
                    out.typed::<DoubleType>()
                        .write_batch(values, None, None)
                        .unwrap();
                }
                Column::Text(texts) => {
                    let levels: Vec<i16> = texts
                        .iter()
                        .map(|text| i16::from(!text.is_empty()))
                        .collect();
                    let texts: Vec<ByteArray> = texts
                        .iter()
                        .filter(|text| !text.is_empty())
                        .map(|text| ByteArray::from(*text))
                        .collect();
                    out.typed::<ByteArrayType>()
                        .write_batch(&texts, Some(&levels), None)
                        .unwrap();
                }
            }
            out.close().unwrap();
        }
        row_group.close().unwrap();
    }
    writer.close().unwrap();
    bytes
}

#[derive(Default)]
struct Edges {
    signed: bool,
    kind: Option<EdgeKind>,
    fields: EdgeFields,
    found: Vec<String>,
}

impl Edges {
    /// The weight or the record of edge `at`, as text after a colon.
    fn text(&self, data: EdgeData<'_>, at: usize) -> String {
        let kind = self.kind.unwrap();
        match kind.is_record() {
            true => format!(":{}", record_text(&self.fields, data.get(at))),
            false => (data.weight(at, kind)).map_or(String::new(), |weight| format!(":{weight}")),
        }
    }
}

impl EdgeSink for Edges {
    fn integers(&mut self, edges: &[(u64, u64)], data: EdgeData<'_>) -> Result<(), IngestError> {
        let text = |id: u64| match self.signed {
            true => ((id ^ 1 << 63) as i64).to_string(),
            false => id.to_string(),
        };
        for (at, edge) in edges.iter().enumerate() {
            let weight = self.text(data, at);
            self.found
                .push(format!("{}>{}{weight}", text(edge.0), text(edge.1)));
        }
        Ok(())
    }

    fn texts(&mut self, edges: &[(&[u8], &[u8])], data: EdgeData<'_>) -> Result<(), IngestError> {
        for (at, edge) in edges.iter().enumerate() {
            let weight = self.text(data, at);
            let [source, target] =
                [edge.0, edge.1].map(|id| String::from_utf8_lossy(id).into_owned());
            self.found.push(format!("{source}>{target}{weight}"));
        }
        Ok(())
    }
}

fn read_within(
    bytes: &[u8],
    options: &ReadOptions,
    budget: &MemoryBudget,
) -> Result<(String, String), String> {
    let disk: Arc<dyn Disk> = Arc::new(SimDisk::new(1));
    disk.write_small(Path::new("a.parquet"), bytes).unwrap();
    let say = |error: IngestError| error.to_string();
    let source = FileSource::open(
        &disk,
        budget,
        &["a.parquet".into()],
        options,
        &CancelToken::new(),
    )
    .map_err(say)?;
    let mut edges = Edges {
        signed: source.ids() == Ids::Signed,
        kind: Some(source.weights()),
        fields: source.fields(),
        ..Edges::default()
    };
    let mut reader = source.reader(&disk, budget).map_err(say)?;
    for piece in 0..source.pieces() {
        let report = reader
            .read(piece, &CancelToken::new(), &mut edges)
            .map_err(say)?;
        assert_eq!(report.lines, report.edges + report.skipped);
    }
    Ok((edges.found.join(" "), source.notices(true).join("\n")))
}

fn read(bytes: &[u8], options: &ReadOptions) -> Result<(String, String), String> {
    read_within(bytes, options, &MemoryBudget::new(64 << 20))
}

const TEXTS: &str = "message m { OPTIONAL BYTE_ARRAY id_l (UTF8); OPTIONAL BYTE_ARRAY id_r (UTF8); REQUIRED DOUBLE weight; }";

fn texts(compression: Compression) -> Vec<u8> {
    let groups: &[&[Column<'_>]] = &[
        &[
            Column::Text(&["a x", "007"]),
            Column::Text(&["b", "7"]),
            Column::Double(&[0.5, 2.0]),
        ],
        &[
            Column::Text(&["c"]),
            Column::Text(&["a x"]),
            Column::Double(&[1.0]),
        ],
    ];
    file(TEXTS, groups, compression, true)
}

#[test]
fn text_columns_are_read_by_name() {
    let compressions = [
        Compression::UNCOMPRESSED,
        Compression::SNAPPY,
        Compression::ZSTD(Default::default()),
        Compression::GZIP(Default::default()),
        Compression::LZ4_RAW,
    ];
    for compression in compressions {
        let (edges, notice) = read(&texts(compression), &ReadOptions::default()).unwrap();
        assert_eq!(edges, "a x>b 007>7 c>a x");
        assert_eq!(
            notice,
            "a.parquet: columns id_l -> id_r, ids text, directed; 1 column ignored"
        );
    }
    let options = ReadOptions {
        weights: EdgeKind::F64,
        ..ReadOptions::default()
    };
    let (edges, notice) = read(&texts(Compression::SNAPPY), &options).unwrap();
    assert_eq!(edges, "a x>b:0.5 007>7:2 c>a x:1");
    assert!(notice.contains("weights weight"), "{notice}");
}

#[test]
fn integers_keep_their_sign() {
    let schema = "message m { REQUIRED INT64 src; REQUIRED INT32 dst; }";
    for statistics in [true, false] {
        let groups: &[&[Column<'_>]] =
            &[&[Column::Int64(&[-3, i64::MIN]), Column::Int32(&[4, -1])]];
        let bytes = file(schema, groups, Compression::SNAPPY, statistics);
        let (edges, notice) = read(&bytes, &ReadOptions::default()).unwrap();
        assert_eq!(edges, "-3>4 -9223372036854775808>-1");
        assert!(notice.contains("some negative"), "{notice}");
    }
    let groups: &[&[Column<'_>]] = &[&[Column::Int64(&[3]), Column::Int32(&[4])]];
    let bytes = file(schema, groups, Compression::SNAPPY, true);
    assert!(
        read(&bytes, &ReadOptions::default())
            .unwrap()
            .1
            .contains("ids int, directed")
    );
    let unsigned = "message m { REQUIRED INT64 src (UINT_64); REQUIRED INT32 dst (UINT_32); }";
    let groups: &[&[Column<'_>]] = &[&[Column::Int64(&[-1]), Column::Int32(&[-1])]];
    let bytes = file(unsigned, groups, Compression::SNAPPY, true);
    let (edges, _) = read(&bytes, &ReadOptions::default()).unwrap();
    assert_eq!(edges, "18446744073709551615>4294967295");
    let options = ReadOptions {
        ids: Some(Ids::Text),
        ..ReadOptions::default()
    };
    assert_eq!(
        read(&bytes, &options).unwrap().0,
        "18446744073709551615>4294967295"
    );
}

#[test]
fn null_id_is_an_error_with_its_row() {
    let groups: &[&[Column<'_>]] = &[
        &[
            Column::Text(&["a"]),
            Column::Text(&["b"]),
            Column::Double(&[1.0]),
        ],
        &[
            Column::Text(&["c", "d"]),
            Column::Text(&["d", ""]),
            Column::Double(&[1.0, 1.0]),
        ],
    ];
    let bytes = file(TEXTS, groups, Compression::SNAPPY, true);
    let error = read(&bytes, &ReadOptions::default()).unwrap_err();
    assert!(
        error.contains("a.parquet, row 3: column id_r is null"),
        "{error}"
    );
    let skip = ReadOptions {
        on_error: OnError::Skip,
        ..ReadOptions::default()
    };
    assert_eq!(read(&bytes, &skip).unwrap().0, "a>b c>d");
}

#[test]
fn columns_of_other_types_are_refused() {
    for (schema, part) in [
        (
            "message m { REQUIRED DOUBLE src; REQUIRED DOUBLE dst; }",
            "holds floats",
        ),
        (
            "message m { REQUIRED INT64 src (TIMESTAMP_MILLIS); REQUIRED INT64 dst; }",
            "holds neither integers nor text",
        ),
        ("message m { REQUIRED INT64 a; }", "it has no column 2"),
        (
            "message m { REQUIRED DOUBLE match; REQUIRED DOUBLE p; REQUIRED INT64 a; REQUIRED INT64 b; }",
            "--source-column",
        ),
    ] {
        let error = read(
            &file(schema, &[], Compression::SNAPPY, true),
            &ReadOptions::default(),
        );
        let error = error.unwrap_err();
        assert!(error.contains(part), "{schema}: {error}");
    }
}

#[test]
fn damaged_file_is_an_error_not_a_panic() {
    let sound = texts(Compression::SNAPPY);
    let expected = read(&sound, &ReadOptions::default()).unwrap().0;
    for at in 0..sound.len() {
        for change in [0xff, 0x01, 0x80] {
            let mut damaged = sound.clone();
            damaged[at] ^= change;
            // The library has no checksums to see every change by, but it ends.
            let _ = read(&damaged, &ReadOptions::default());
        }
        let _ = read(&sound[..at], &ReadOptions::default()).unwrap_err();
    }
    assert_eq!(read(&sound, &ReadOptions::default()).unwrap().0, expected);
}

#[test]
fn row_group_is_charged_to_the_budget() {
    let names: Vec<String> = (0..50_000)
        .map(|i| format!("a rather long name of a vertex {i}"))
        .collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let weights = vec![1.0; names.len()];
    let groups: &[&[Column<'_>]] = &[&[
        Column::Text(&names),
        Column::Text(&names),
        Column::Double(&weights),
    ]];
    let bytes = file(TEXTS, groups, Compression::SNAPPY, true);
    let budget = MemoryBudget::new(32 << 20);
    let (edges, _) = read_within(&bytes, &ReadOptions::default(), &budget).unwrap();
    assert_eq!(edges.matches('>').count(), 50_000);
    assert!(budget.peak() > 3 << 20, "{}", budget.peak());
    let error =
        read_within(&bytes, &ReadOptions::default(), &MemoryBudget::new(3 << 20)).unwrap_err();
    assert!(error.contains("row group"), "{error}");
}

/// Options for a record of fields.
fn records(columns: &str) -> ReadOptions {
    let mut options = ReadOptions::default();
    options.text.edge_data = columns.parse().unwrap();
    options
}

const TRIPS: &str = "message m { REQUIRED INT64 src; REQUIRED INT32 dst; REQUIRED DOUBLE amount; \
    REQUIRED INT32 day (UINT_16); REQUIRED INT64 at; REQUIRED BINARY who (UTF8); }";

fn trips() -> Vec<u8> {
    let one: &[Column<'_>] = &[
        Column::Int64(&[1, 2]),
        Column::Int32(&[3, 4]),
        Column::Double(&[0.1, -2.5]),
        Column::Int32(&[7, 65535]),
        Column::Int64(&[-1, i64::MIN]),
        Column::Text(&["a", "b"]),
    ];
    let two: &[Column<'_>] = &[
        Column::Int64(&[5]),
        Column::Int32(&[6]),
        Column::Double(&[1e300]),
        Column::Int32(&[256]),
        Column::Int64(&[i64::MAX]),
        Column::Text(&["c"]),
    ];
    file(TRIPS, &[one, two], Compression::SNAPPY, true)
}

#[test]
fn records_of_columns_are_read() {
    let (edges, notice) = read(&trips(), &records("when=day:u16,amount:f64,kind=4:u32")).unwrap();
    assert_eq!(
        edges,
        format!("1>3:7/0.1/7 2>4:65535/-2.5/65535 5>6:256/{}/256", 1e300)
    );
    assert_eq!(
        notice,
        "a.parquet: columns src -> dst, data when:u16,amount:f64,kind:u32, ids int, directed; 2 columns ignored"
    );
    let (edges, _) = read(&trips(), &records("at:i64,day:f32")).unwrap();
    let [least, greatest] = [i64::MIN, i64::MAX];
    assert_eq!(
        edges,
        format!("1>3:-1/7 2>4:{least}/65535 5>6:{greatest}/256")
    );
}

#[test]
fn fields_of_one_column_count_it_once() {
    const ROWS: usize = 2000;
    let amounts: Vec<f64> = (0..ROWS).map(|row| (row as f64).sqrt()).collect();
    let columns: &[Column<'_>] = &[
        Column::Int64(&[1; ROWS]),
        Column::Int32(&[2; ROWS]),
        Column::Double(&amounts),
    ];
    let schema = "message m { REQUIRED INT64 src; REQUIRED INT32 dst; REQUIRED DOUBLE amount; }";
    let bytes = file(schema, &[columns], Compression::UNCOMPRESSED, true);
    let (edges, _) = read(&bytes, &records("a=amount:f64,b=amount:f64")).unwrap();
    assert!(edges.starts_with("1>2:0/0 1>2:1/1 "), "{}", &edges[..40]);
    assert_eq!(edges.split(' ').count(), ROWS);
}

#[test]
fn rows_that_do_not_fit_their_record_are_refused() {
    for (columns, problem) in [
        ("at:i32", "row 2: column at does not fit i32"),
        ("at:u64", "row 1: column at does not fit u64"),
        ("day:u8", "row 2: column day does not fit u8"),
        ("amount:f32", "row 3: column amount does not fit f32"),
        ("amount:u8", "column amount holds floats"),
        ("who:u8", "column who holds text"),
        ("color:u8", "--edge-data color: there is no such column"),
        ("9:u8", "it has no column 9"),
    ] {
        let error = read(&trips(), &records(columns)).unwrap_err();
        assert!(error.contains(problem), "{columns}: {error}");
    }
    let skipping = ReadOptions {
        on_error: OnError::Skip,
        ..records("day:u8")
    };
    assert_eq!(read(&trips(), &skipping).unwrap().0, "1>3:7");
}
