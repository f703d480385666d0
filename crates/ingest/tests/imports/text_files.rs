//! Text files from practice: the edges of each, or the error, and the notices about it.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::path::Path;
use std::sync::Arc;

use graphmill_graph::{EdgeFields, EdgeKind, FieldType};
use graphmill_ingest::{
    Comments, Delimiter, EdgeData, EdgeSink, EdgeSource, FileSource, Format, Header, Ids,
    IngestError, OnError, Quote, ReadOptions,
};
use graphmill_storage::{CancelToken, Disk, MemoryBudget, SimDisk};

/// Edges as text: `a>b`, with weights `a>b:1`.
#[derive(Default)]
struct Edges {
    signed: bool,
    kind: Option<EdgeKind>,
    fields: EdgeFields,
    found: Vec<String>,
}

impl Edges {
    fn push(&mut self, ends: [String; 2], data: Option<String>) {
        let data = data.map_or(String::new(), |data| format!(":{data}"));
        self.found.push(format!("{}>{}{data}", ends[0], ends[1]));
    }
}

/// The fields of a record as text, decoded one by one.
pub(crate) fn record_text(fields: &EdgeFields, data: u128) -> String {
    let (bytes, mut at) = (data.to_le_bytes(), 0);
    let mut texts = Vec::new();
    for field in fields.list() {
        let rest = &bytes[at..];
        at += field.kind.bytes();
        texts.push(match field.kind {
            FieldType::U8 => rest[0].to_string(),
            FieldType::I8 => (rest[0] as i8).to_string(),
            FieldType::U16 => u16::from_le_bytes([rest[0], rest[1]]).to_string(),
            FieldType::I16 => i16::from_le_bytes([rest[0], rest[1]]).to_string(),
            FieldType::U32 => u32::from_le_bytes(*rest.first_chunk().unwrap()).to_string(),
            FieldType::I32 => i32::from_le_bytes(*rest.first_chunk().unwrap()).to_string(),
            FieldType::U64 => u64::from_le_bytes(*rest.first_chunk().unwrap()).to_string(),
            FieldType::I64 => i64::from_le_bytes(*rest.first_chunk().unwrap()).to_string(),
            FieldType::F32 => f32::from_le_bytes(*rest.first_chunk().unwrap()).to_string(),
            FieldType::F64 => f64::from_le_bytes(*rest.first_chunk().unwrap()).to_string(),
        });
    }
    assert!(bytes[at..].iter().all(|byte| *byte == 0));
    texts.join("/")
}

impl Edges {
    /// The weight or the record of edge `at`, as text.
    fn text(&self, data: EdgeData<'_>, at: usize) -> Option<String> {
        let kind = self.kind?;
        match kind.is_record() {
            true => Some(record_text(&self.fields, data.get(at))),
            false => data.weight(at, kind).map(|weight| weight.to_string()),
        }
    }
}

impl EdgeSink for Edges {
    fn integers(&mut self, edges: &[(u64, u64)], data: EdgeData<'_>) -> Result<(), IngestError> {
        let signed = self.signed;
        let text = |id: u64| match signed {
            true => ((id ^ 1 << 63) as i64).to_string(),
            false => id.to_string(),
        };
        for (at, edge) in edges.iter().enumerate() {
            self.push([text(edge.0), text(edge.1)], self.text(data, at));
        }
        Ok(())
    }

    fn texts(&mut self, edges: &[(&[u8], &[u8])], data: EdgeData<'_>) -> Result<(), IngestError> {
        for (at, edge) in edges.iter().enumerate() {
            let text = |id: &[u8]| String::from_utf8(id.to_vec()).unwrap();
            self.push([text(edge.0), text(edge.1)], self.text(data, at));
        }
        Ok(())
    }
}

/// A disk with files of these names and contents in one folder.
fn folder(files: &[(&str, &[u8])]) -> Arc<dyn Disk> {
    let disk: Arc<dyn Disk> = Arc::new(SimDisk::new(1));
    for (name, bytes) in files {
        let path = Path::new("in").join(name);
        disk.create_dir_all(path.parent().unwrap()).unwrap();
        disk.write_small(&path, bytes).unwrap();
    }
    disk
}

/// Reads the edges of a directory, and the notices about it.
fn read_all(disk: &Arc<dyn Disk>, options: &ReadOptions) -> Result<(String, String), String> {
    let budget = MemoryBudget::new(64 << 20);
    let say = |error: IngestError| error.to_string();
    let source = FileSource::open(disk, &budget, &["in".into()], options, &CancelToken::new())
        .map_err(say)?;
    let mut edges = Edges {
        signed: source.ids() == Ids::Signed,
        kind: Some(source.weights()),
        fields: source.fields(),
        ..Edges::default()
    };
    let mut reader = source.reader(disk, &budget).map_err(say)?;
    for piece in 0..source.pieces() {
        let report = reader
            .read(piece, &CancelToken::new(), &mut edges)
            .map_err(say)?;
        let parts = report.edges + report.comments + report.blank + report.headers + report.skipped;
        assert_eq!(report.lines, parts);
    }
    Ok((edges.found.join(" "), source.notices(true).join("\n")))
}

/// The same of one file, however it is cut in pieces.
fn read(name: &str, bytes: &[u8], options: &ReadOptions) -> Result<(String, String), String> {
    let disk = folder(&[(name, bytes)]);
    let whole = read_all(&disk, options);
    let pieces = ReadOptions {
        piece_bytes: 1,
        ..options.clone()
    };
    assert_eq!(read_all(&disk, &pieces), whole, "{name} in pieces");
    whole
}

/// Options that a case gives in words.
fn options(words: &str) -> ReadOptions {
    let mut options = ReadOptions::default();
    let text = &mut options.text;
    for word in words.split_whitespace() {
        let (option, value) = word.split_once('=').unwrap();
        let value = value.to_string();
        match option {
            "source" => text.source_column = Some(value),
            "target" => text.target_column = Some(value),
            "weight" => {
                text.weight_column = Some(value);
                options.weights = EdgeKind::F64;
            }
            "data" => text.edge_data = value.parse().unwrap(),
            "weights" => options.weights = EdgeKind::F64,
            "header" => {
                text.header = if value == "yes" {
                    Header::Yes
                } else {
                    Header::No
                }
            }
            "delimiter" => text.delimiter = Some(value.parse::<Delimiter>().unwrap()),
            "quote" => {
                text.quote = if value == "none" {
                    Quote::None
                } else {
                    Quote::Encloses
                }
            }
            "comments" if value == "none" => text.comments = Comments::None,
            "comments" => text.comments = Comments::Prefix(value),
            "ids" => {
                options.ids = Some(if value == "int" {
                    Ids::Integer
                } else {
                    Ids::Text
                })
            }
            "skip" => options.on_error = OnError::Skip,
            "format" if value == "csv" => options.format = Format::Csv,
            other => panic!("{other}"),
        }
    }
    options
}

/// Each case: name, options, content, edges, a part of the notice.
fn all_are_read(cases: &[(&str, &str, &str, &str, &str)]) {
    let mut wrong = Vec::new();
    for (name, words, content, edges, notice) in cases {
        match read(name, content.as_bytes(), &options(words)) {
            Ok((found, said)) if found == *edges && said.contains(notice) => {}
            other => wrong.push(format!(
                "{name} {words} {content:?}\n  expected {edges:?} {notice:?}\n  found {other:?}"
            )),
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {}:\n{}",
        wrong.len(),
        cases.len(),
        wrong.join("\n")
    );
}

/// Each case: name, options, content, a part of the error.
fn all_are_refused(cases: &[(&str, &str, &str, &str)]) {
    let mut wrong = Vec::new();
    for (name, words, content, part) in cases {
        match read(name, content.as_bytes(), &options(words)) {
            Err(error) if error.contains(part) => {}
            other => wrong.push(format!(
                "{name} {words} {content:?}\n  expected {part:?}\n  found {other:?}"
            )),
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {}:\n{}",
        wrong.len(),
        cases.len(),
        wrong.join("\n")
    );
}

#[test]
fn columns_are_found_by_header_and_name() {
    all_are_read(&[
        (
            "a.csv",
            "",
            "record_a,record_b\nann,bob\nbob,cy\n",
            "ann>bob bob>cy",
            "columns record_a -> record_b, header yes, ids text, directed; if \"record_a,record_b\" is data: --header no",
        ),
        (
            "a.csv",
            "header=no",
            "record_a,record_b\nann,bob\n",
            "record_a>record_b ann>bob",
            "columns 1 -> 2, header no",
        ),
        (
            "a.csv",
            "",
            "ann,bob\nbob,cy\n",
            "ann>bob bob>cy",
            "header no, ids text, directed",
        ),
        (
            "a.csv",
            "",
            "ann,bob\ncy,dan\n",
            "ann>bob cy>dan",
            "if \"ann,bob\" names the columns: --header yes",
        ),
        (
            "a.csv",
            "header=yes",
            "ann,bob\ncy,dan\n",
            "cy>dan",
            "columns ann -> bob, header yes",
        ),
        (
            "a.csv",
            "",
            "start_id,end_id\n-5,7\n7,8\n",
            "-5>7 7>8",
            "columns start_id -> end_id, header yes, ids int (some negative)",
        ),
        (
            "a.csv",
            "",
            "start_id,end_id\n1.0,2.0\n",
            "1.0>2.0",
            "header yes, ids text",
        ),
        (
            "a.csv",
            "",
            "x,y\n1,2\n",
            "1>2",
            "columns x -> y, header yes, ids int",
        ),
        (
            "a.csv",
            "",
            ",source,target\n0,7,8\n1,8,9\n",
            "7>8 8>9",
            "columns source -> target, header yes, ids int, directed; 1 column ignored",
        ),
        ("a.csv", "", ",0,1\n0,7,8\n1,8,9\n", "7>8 8>9", "header yes"),
        (
            "a.csv",
            "",
            "Id,Source,Target\n0,a,b\n1,b,c\n",
            "a>b b>c",
            "columns Source -> Target",
        ),
        (
            "a.csv",
            "weights=1",
            "Source,Target,Type,Id,Label,timeset,Weight\n1,2,Directed,0,,,3.5\n",
            "1>2:3.5",
            "columns Source -> Target, weights Weight, header yes",
        ),
        (
            "a.csv",
            "",
            "match_weight,match_probability,unique_id_l,unique_id_r\n3.2,0.9,a1,b1\n",
            "a1>b1",
            "columns unique_id_l -> unique_id_r",
        ),
        (
            "a.csv",
            "",
            ":START_ID(Person),since:int,:END_ID(Person),:TYPE\n1,1999,2,KNOWS\n",
            "1>2",
            "columns :START_ID(Person) -> :END_ID(Person)",
        ),
        (
            "a.csv",
            "source=b target=c",
            "a,b,c\nx,y,z\n",
            "y>z",
            "columns b -> c, header yes",
        ),
        (
            "a.csv",
            "source=3 target=1",
            "1,2,3\n4,5,6\n",
            "3>1 6>4",
            "columns 3 -> 1, header no",
        ),
        (
            "a.csv",
            "source=2 target=3",
            "a,b,c\n1,2,3\n",
            "2>3",
            "columns b -> c",
        ),
        (
            "a.csv",
            "weight=w2",
            "s,t,w1,w2\n1,2,3,4\n",
            "1>2:4",
            "weights w2",
        ),
        (
            "a.csv",
            "header=yes",
            "from,to\nto,x\n",
            "to>x",
            "columns from -> to, header yes",
        ),
        (
            "a.csv",
            "",
            "node1,node2\n1,2\nnode1,node2\n3,4\n",
            "1>2 3>4",
            "header yes",
        ),
        (
            "a.csv",
            "",
            "1,2\n3,4\n",
            "1>2 3>4",
            "a.csv: columns 1 -> 2, header no, ids int, directed",
        ),
        (
            "a.csv",
            "",
            "source,target\n",
            "",
            "columns source -> target, header yes",
        ),
        (
            "a.txt",
            "",
            "source target\n1 2\n",
            "1>2",
            "columns source -> target, header yes",
        ),
        (
            "a.csv",
            "",
            "id1,id2,note\n1,2,\"one\nwith, comma\"\n3,4,x\n",
            "1>2 3>4",
            "1 column ignored",
        ),
        (
            "a.csv",
            "",
            "#source,target\n1,2\n",
            "1>2",
            "columns source -> target, header yes",
        ),
    ]);
    all_are_refused(&[
        (
            "a.csv",
            "source=x target=t",
            "s,t\n1,2\n",
            "--source-column x: there is no such column; it has s, t",
        ),
        (
            "a.csv",
            "source=x target=t header=no",
            "s,t\n1,2\n",
            "it has no header",
        ),
        (
            "a.csv",
            "",
            "match_weight,p,record_a,record_b\n3.2,0.9,a1,b1\n",
            "--source-column and --target-column",
        ),
        ("a.csv", "source=1 target=1", "1,2\n", "one column"),
        (
            "a.csv",
            "source=5 target=6",
            "a,b\nx,y\n",
            "columns where 6 are needed",
        ),
    ]);
}

#[test]
fn separator_is_one_per_file() {
    all_are_read(&[
        (
            "a.el",
            "",
            "1 2\n3 4\n",
            "1>2 3>4",
            "columns 1 -> 2, header no, ids int",
        ),
        ("a.txt", "", "1\t2\n3\t4\n", "1>2 3>4", ""),
        ("a.txt", "", "1, 2\n3, 4\n", "1>2 3>4", "separated by ,"),
        ("a.txt", "", "a, b\nc, d\n", "a>b c>d", "separated by ,"),
        (
            "a.txt",
            "",
            "Portland,_Oregon\tOregon\n",
            "Portland,_Oregon>Oregon",
            "",
        ),
        ("a.txt", "", "AT&T, Bell\tx\n", "AT&T, Bell>x", ""),
        (
            "a.txt",
            "",
            "New York\tLos Angeles\nRome\tNew York\n",
            "New York>Los Angeles Rome>New York",
            "",
        ),
        ("a.csv", "", "1 2\n3 4\n", "1>2 3>4", "separated by space"),
        (
            "a.csv",
            "",
            "1;2;0,5\n3;4;1,5\n",
            "1>2 3>4",
            "separated by ;",
        ),
        ("a.csv", "", "source|target\na|b\n", "a>b", "separated by |"),
        (
            "a.csv",
            "",
            "sep=;\r\na;b\r\nc;d\r\n",
            "a>b c>d",
            "separated by ;",
        ),
        (
            "a.txt",
            "delimiter=space",
            "http://x/a,b c\n",
            "http://x/a,b>c",
            "",
        ),
        (
            "a.txt",
            "delimiter=space",
            "1,234 5,678\n",
            "1,234>5,678",
            "ids text",
        ),
        ("a.el", "", "  1   2  \n\t3 4\n", "1>2 3>4", ""),
        (
            "a.el",
            "weights=1",
            "1 2 0.5\n3 4 7\n",
            "1>2:0.5 3>4:7",
            "weights 3",
        ),
        (
            "a.edgelist",
            "",
            "1 2 {'weight': 3, 'x': 1}\n2 3 {}\n",
            "1>2 2>3",
            "",
        ),
        ("a.tsv", "", "a b\tc d\n", "a b>c d", ""),
        ("a.csv", "", "x ,y\nx,y\n", "x >y x>y", ""),
        ("a.csv", "", "1, 2\n", "1>2", "ids int"),
    ]);
    all_are_refused(&[
        (
            "a.txt",
            "weights=1",
            "1 2 0,5\n",
            "line 1, \"1 2 0,5\": the weight in column 3",
        ),
        (
            "a.csv",
            "weights=1",
            "1;2;0,5\n3;4;0,7\n",
            "the weight in column 3 is no finite number, with a point",
        ),
        ("a.txt", "", "http://x/a,b c\n", "--delimiter"),
        ("a.txt", "", "1,234 5,678\n", "--delimiter"),
        (
            "a.el",
            "",
            "1 2\n3,4\n",
            "line 2, \"3,4\": 1 column where 2 are needed (--delimiter",
        ),
        ("a.txt", "", "a b\nNew York Rome\n", "columns"),
        ("a.csv", "", "a,b\nBell, Inc,c\n", "columns"),
        ("a.csv", "", "a,b\nc;d\n", "where 2 are needed"),
        ("a.el", "", "1 2 3\n2 1\n3 1 2 4\n", "adjacency list"),
    ]);
}

#[test]
fn line_with_more_columns_is_an_error() {
    let many: String = (0..50_000).map(|i| format!("{i} {}\n", i + 1)).collect();
    let error = read("a.el", format!("{many}7 8 9\n").as_bytes(), &options("")).unwrap_err();
    assert!(
        error.contains("line 50001, \"7 8 9\": 3 columns where the first lines have 2"),
        "{error}"
    );
    let names: String = (0..50_000).map(|i| format!("n{i},m{i}\n")).collect();
    let error = read(
        "a.csv",
        format!("{names}Bell, Inc,x\n").as_bytes(),
        &options(""),
    )
    .unwrap_err();
    assert!(error.contains("line 50001"), "{error}");
}

#[test]
fn line_with_other_columns_is_an_error_anywhere() {
    for (name, words, plain, odd, says) in [
        (
            "a.csv",
            "",
            "1,2,3",
            "4,5",
            "2 columns where the first lines have 3",
        ),
        (
            "a.csv",
            "",
            "1,2,3",
            "4,5,6,7",
            "4 columns where the first lines have 3",
        ),
        (
            "a.csv",
            "weights=f64",
            "1,2,3",
            "4,5,1,5",
            "4 columns where the first lines have 3",
        ),
        ("a.csv", "", "1,2,x", "4,5", "2 columns"),
        ("a.csv", "", "1,2,x,y", "4,5,x", "3 columns"),
        ("a.txt", "", "1 2 3", "4 5", "2 columns"),
        ("a.txt", "", "1 2 3", "4 5 6 7", "4 columns"),
        ("a.txt", "", "1 2  3", "4 5 \t6 7 ", "4 columns"),
        ("a.tsv", "weights=f64", "1\t2\t3\tx", "1\t2\t3", "3 columns"),
    ] {
        let many = format!("{plain}\n").repeat(3000);
        for end in ["\n", "\r\n", "\r"] {
            for after in ["", &many] {
                let text = format!("{many}{odd}\n{after}").replace('\n', end);
                let error = read(name, text.as_bytes(), &options(words)).unwrap_err();
                assert!(error.contains("line 3001"), "{odd:?} {end:?}: {error}");
                assert!(error.contains(says), "{odd:?} {end:?}: {error}");
            }
        }
    }
    // Columns behind those that are wanted are any text.
    for line in ["4 5  6 ", "4 5 6\t", "4 5 {'a': 1, 'b': 2}"] {
        let text = format!("{}{line}\n", "1 2 3\n".repeat(3000));
        let (edges, _) = read("a.txt", text.as_bytes(), &options("")).unwrap();
        assert!(edges.ends_with("1>2 4>5"), "{line:?}");
    }
}

#[test]
fn quotes_in_comments_are_text() {
    let comment = "# 5\" disks, it is said\n";
    let edges: String = (0..4000)
        .map(|i| format!("\"{i}\",{},x\n", i + 1))
        .collect();
    let wanted = 4000;
    let (found, _) = read(
        "a.csv",
        format!("{comment}{edges}").as_bytes(),
        &options(""),
    )
    .unwrap();
    assert_eq!(found.split(' ').count(), wanted);
    // Comments among edges, over the ends of pieces.
    let mixed: String = edges
        .lines()
        .enumerate()
        .map(|(i, line)| match i % 3 {
            0 => format!("{line}\n{comment}"),
            _ => format!("{line}\n"),
        })
        .collect();
    let (found, _) = read("a.csv", mixed.as_bytes(), &options("comments=#")).unwrap();
    assert_eq!(found.split(' ').count(), wanted);
}

#[test]
fn stray_quote_spoils_its_line_only() {
    let line = |i: u64| match i % 100 {
        7 => format!("5\" {i},{}\n", i + 1),
        50 => format!("\"a\nb\",\"{i}\"\n"),
        60 => format!("\"\"\"{i}\",\"x\"\"\"\n"),
        _ => format!("\"{i}\",\"{}\"\n", i + 1),
    };
    let text: String = (0..4000).map(line).collect();
    let (found, said) = read("a.csv", text.as_bytes(), &options("skip=1")).unwrap();
    assert_eq!(found.split(' ').count(), 3960, "{said}");
}

#[test]
fn csv_quotes_enclose_columns() {
    all_are_read(&[
        (
            "a.csv",
            "",
            "\"a, x\",\"b\"\n\"b\",\"c \"\"d\"\"\"\n",
            "a, x>b b>c \"d\"",
            "ids text",
        ),
        ("a.csv", "", "\"1\",\"2\"\n3,4\n", "1>2 3>4", "ids int"),
        ("a.csv", "", "\"000123\",\"7\"\n", "000123>7", "ids text"),
        (
            "a.csv",
            "",
            "a,b,\"note one\nwith, comma\"\nc,d,x\n",
            "a>b c>d",
            "",
        ),
        (
            "a.csv",
            "",
            "a,b,\"note one\r\nwith, comma\"\r\nc,d,x\r\n",
            "a>b c>d",
            "",
        ),
        ("a.csv", "", "\"x \",y\nx,y\n", "x >y x>y", ""),
        ("a.tsv", "", "\"a\tb\"\tc\n", "a\tb>c", ""),
        ("a.csv", "quote=none", "5\" pipe,x\n", "5\" pipe>x", ""),
        (
            "a.txt",
            "quote=yes",
            "\"New York\",\"Rome\"\n",
            "New York>Rome",
            "",
        ),
    ]);
    all_are_refused(&[
        (
            "a.csv",
            "",
            "a,\"b\nc,d\n",
            "line 1: the quotes that open here are not closed",
        ),
        ("a.csv", "", "a,b\nx,\"c\"d\n", "line 2"),
        ("a.csv", "", "5\" pipe,x\n", "--quote none"),
        ("a.txt", "", "\"New York\"\t\"Rome\"\n", "--quote"),
    ]);
    // A quoted field over the ends of pieces, and a first quote far down.
    let many: String = (0..3000)
        .map(|i| format!("{i},{},\"x\ny, {i}\n\"\n", i + 1))
        .collect();
    let (edges, _) = read("a.csv", many.as_bytes(), &options("")).unwrap();
    assert_eq!(edges.split(' ').count(), 3000);
    let plain: String = (0..60_000).map(|i| format!("{i},{},x\n", i + 1)).collect();
    let late = format!("{plain}7,8,\"a\n9,9,b\"\n10,11,x\n");
    let (edges, _) = read("a.csv", late.as_bytes(), &options("")).unwrap();
    assert!(
        edges.ends_with("59999>60000 7>8 10>11"),
        "{}",
        &edges[edges.len() - 40..]
    );
}

#[test]
fn lines_end_in_every_way() {
    all_are_read(&[
        ("a.el", "", "1 2\r3 4\r5 6\r", "1>2 3>4 5>6", ""),
        ("a.el", "", "1 2\r\n3 4\r5 6\n7 8", "1>2 3>4 5>6 7>8", ""),
        ("a.csv", "", "s,t\r1,2\r3,4", "1>2 3>4", "columns s -> t"),
        ("a.csv", "", "a,b,junk\rc,d,x\n", "a>b c>d", ""),
        (
            "a.csv",
            "",
            "\u{feff}source,target\n1,2\n\u{feff}source,target\n3,4\n",
            "1>2 3>4",
            "",
        ),
        ("a.csv", "", "\u{feff}a,b\n\u{feff}b,c\n", "a>b b>c", ""),
        (
            "a.el",
            "",
            "\u{feff}# x\n1 2\n\n\n3 4\n",
            "1>2 3>4",
            "1 comment line",
        ),
        ("a.csv", "", "", "", ""),
        ("a.csv", "", "\n\n", "", ""),
    ]);
    let many: String = (0..60_000).map(|i| format!("{i} {}\r", i + 1)).collect();
    let (edges, _) = read("a.el", many.as_bytes(), &options("")).unwrap();
    assert_eq!(edges.split(' ').count(), 60_000);
}

#[test]
fn ids_are_their_text() {
    all_are_read(&[
        ("a.el", "", "007 1\n7 2\n", "007>1 7>2", "ids text"),
        ("a.el", "", "+7 1\n7 2\n", "+7>1 7>2", "ids text"),
        ("a.el", "", "1.0 1\n1 2\n", "1.0>1 1>2", "ids text"),
        ("a.el", "", "1e3 1000\n", "1e3>1000", "ids text"),
        (
            "a.el",
            "",
            "-3 4\n5 -6\n",
            "-3>4 5>-6",
            "ids int (some negative)",
        ),
        (
            "a.el",
            "",
            "-9223372036854775808 9223372036854775807\n",
            "-9223372036854775808>9223372036854775807",
            "",
        ),
        (
            "a.el",
            "",
            "18446744073709551615 0\n",
            "18446744073709551615>0",
            "ids int",
        ),
        (
            "a.el",
            "",
            "1 2\n2 3\n3 n/a\n",
            "1>2 2>3 3>n/a",
            "ids are text because of line 3: \"n/a\"",
        ),
        ("a.el", "ids=int", "-3 4\n", "-3>4", ""),
        ("a.el", "ids=text", "1 2\n", "1>2", "ids text"),
        (
            "a.el",
            "ids=text",
            "-1 18446744073709551615\n",
            "-1>18446744073709551615",
            "ids text",
        ),
    ]);
    all_are_refused(&[
        ("a.el", "", "-1 18446744073709551615\n", "2^63 or more"),
        (
            "a.el",
            "ids=int",
            "1 2\n007 1\n",
            "line 2, \"007 1\": column 1 is no integer",
        ),
        ("a.el", "ids=int", "1 2\n3 +4\n", "column 2 is no integer"),
        ("a.el", "ids=int", "1 x\n", "--ids string"),
        ("a.txt", "", "a\tb\nc\t\\N\n", "line 2"),
        ("a.txt", "", "\u{fffd}", "where 2 are needed"),
    ]);
}

#[test]
fn comments_stand_before_the_first_edge() {
    all_are_read(&[
        (
            "a.txt",
            "",
            "# Directed graph\n# FromNodeId\tToNodeId\n1\t2\n",
            "1>2",
            "2 comment lines",
        ),
        (
            "a.csv",
            "",
            "#ml,#ai\n#ai,#db\n",
            "#ml>#ai #ai>#db",
            "ids text",
        ),
        ("a.csv", "", "x,y\n#ml,#ai\n", "x>y #ml>#ai", ""),
        (
            "a.csv",
            "",
            "%C3%89cole,b\n%C3%A9,c\n",
            "%C3%89cole>b %C3%A9>c",
            "",
        ),
        (
            "a.txt",
            "",
            "//host/x //host/y\n//host/y //host/z\n",
            "//host/x>//host/y //host/y>//host/z",
            "",
        ),
        (
            "out.x",
            "",
            "% sym unweighted\n% 2 3 3\n1 2\n2 3\n",
            "1>2 2>3",
            "2 comment lines",
        ),
        ("a.txt", "comments=#", "1 2\n# x\n3 4\n", "1>2 3>4", ""),
        ("a.txt", "comments=none", "# b\nc d\n", "#>b c>d", ""),
        ("a.csv", "comments=;", "; made by hand\na,b\n", "a>b", ""),
        (
            "a.txt",
            "",
            "#FromNodeId\tToNodeId\n1\t2\n",
            "1>2",
            "columns FromNodeId -> ToNodeId",
        ),
    ]);
    all_are_refused(&[
        (
            "a.txt",
            "",
            "a b\n# x\nc d\n",
            "line 2, \"# x\": this looks like a comment",
        ),
        ("a.el", "", "1 2\n# 3\n4 5\n", "--comments"),
    ]);
}

#[test]
fn files_that_are_no_edge_lists_are_refused() {
    all_are_refused(&[
        ("a.txt", "", "<http://a> <http://b> <http://c> .\n", "RDF"),
        ("a.txt", "", "{\"source\": 1, \"target\": 2}\n", "JSON"),
        (
            "a.txt",
            "",
            "1 -> 2\n2 -> 3\n",
            "--source-column 1 --target-column 3",
        ),
        (
            "a.txt",
            "",
            "c comment\np sp 3 2\na 1 2 3\n",
            "--format dimacs",
        ),
        (
            "a.txt",
            "",
            "%%MatrixMarket matrix coordinate real general\n3 3 1\n1 2 1\n",
            "line of sizes",
        ),
        ("a.txt", "", "<?xml version=\"1.0\"?>\n<graphml/>\n", "XML"),
        ("a.txt", "", "digraph {\n a -> b\n}\n", "Graphviz"),
        ("a.txt", "", "graph [\n node [\n id 1 ] ]\n", "GML"),
        ("a.txt", "", "<!DOCTYPE html>\n<html>\n", "HTML"),
        ("a.csv", "", "PK\u{3}\u{4}x", "save the sheet as CSV"),
        ("a.txt", "", "*Vertices 3\n1 \"a\"\n", "Pajek"),
        ("a.graph", "", "3 2\n2\n1 3\n2\n", "METIS"),
        ("a.csv.gz", "", "", "cut short"),
    ]);
    all_are_read(&[
        (
            "a.txt",
            "source=1 target=3 delimiter=space",
            "1 -> 2\n2 -> 3\n",
            "1>2 2>3",
            "",
        ),
        (
            "a.txt",
            "source=1 target=3 delimiter=space",
            "<a> <b> <c> .\n",
            "<a>><c>",
            "",
        ),
        ("a.txt", "source=1 target=2", "1 2 3\n2 1\n", "1>2 2>1", ""),
    ]);
}

#[test]
fn directories_are_read_recursively() {
    let disk = folder(&[
        ("a.csv", b"from,to\nx,y\n"),
        ("b/c.csv", b"from,to\ny,z\n"),
        ("b/d.csv", b"from,to\n"),
        ("Thumbs.db", b"\xd0\xcf\x11\xe0"),
        ("a.csv~", b"old,edges\n"),
        ("a.csv.bak", b"old,edges\n"),
    ]);
    let (edges, notice) = read_all(&disk, &options("")).unwrap();
    assert_eq!(edges, "x>y y>z");
    assert_eq!(
        notice,
        "in/a.csv and 2 more: columns from -> to, header yes, ids text, directed"
    );
    // A part with one line is read as the parts before it.
    let disk = folder(&[
        ("p0.csv", b"user_a,user_b\nann,bob\n"),
        ("p1.csv", b"user_a,user_b\n"),
    ]);
    assert_eq!(read_all(&disk, &options("")).unwrap().0, "ann>bob");
}

#[test]
fn utf_16_is_refused_with_advice() {
    let text: Vec<u8> = "1 2".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let bytes = [&b"\xff\xfe"[..], &text].concat();
    let error = read("a.txt", &bytes, &options("")).unwrap_err();
    assert!(
        error.contains("UTF-16") && error.contains("iconv"),
        "{error}"
    );
}

#[test]
fn skipped_lines_are_counted_not_read() {
    let (edges, _) = read("a.csv", b"1,2\n3\n4,5,6\n7,8\n", &options("skip=1")).unwrap();
    assert_eq!(edges, "1>2 7>8");
}

#[test]
fn records_of_columns_are_read() {
    let trips = "from,to,amount,day,kind\n1,2,0.1,7,255\n3,4,-2.5e3,65535,0\n";
    all_are_read(&[
        (
            "trips.csv",
            "data=amount:f32,day:u16,kind:u8",
            trips,
            "1>2:0.1/7/255 3>4:-2500/65535/0",
            "columns from -> to, data amount:f32,day:u16,kind:u8",
        ),
        // Fields in another order than columns, a column twice, and by number.
        (
            "trips.csv",
            "data=kind:u8,a=3:f64,b=AMOUNT:f32",
            trips,
            "1>2:255/0.1/0.1 3>4:0/-2500/-2500",
            "1 column ignored",
        ),
        // A field may stand before the ids, or be one.
        (
            "a.tsv",
            "source=2 target=3 data=x=1:i8,id=2:u64",
            "-128\t8\t9\n+7\t9\t8\n",
            "8>9:-128/8 9>8:7/9",
            "",
        ),
        (
            "a.txt",
            "data=w=3:i64",
            "a b -9223372036854775808\nb c 007\n",
            "a>b:-9223372036854775808 b>c:7",
            "data w:i64",
        ),
        (
            "a.csv",
            "data=w:u8",
            "a,b,w\n\"x, y\",z,\"4\"\n\"a \"\"b\"\"\",z, 5 \n",
            "x, y>z:4 a \"b\">z:5",
            "",
        ),
        ("a.gr", "data=w=4:u8", "p sp 2 1\na 1 2 9\n", "1>2:9", ""),
    ]);
}

#[test]
fn lines_that_do_not_fit_their_record_are_refused() {
    all_are_refused(&[
        (
            "a.csv",
            "data=w:u8",
            "a,b,w\n1,2,3\n1,2,256\n",
            "line 3, \"1,2,256\": column 3 does not fit u8",
        ),
        ("a.csv", "data=w:u8", "a,b,w\n1,2,-1\n", "does not fit u8"),
        (
            "a.csv",
            "data=w:i16",
            "a,b,w\n1,2,-32769\n",
            "does not fit i16",
        ),
        (
            "a.csv",
            "data=w:u64",
            "a,b,w\n1,2,999999999999999999999999999999999999999999999999\n",
            "does not fit u64",
        ),
        (
            "a.csv",
            "data=w:f32",
            "a,b,w\n1,2,1e39\n",
            "does not fit f32",
        ),
        (
            "a.csv",
            "data=w:f64",
            "a,b,w\n1,2,inf\n",
            "no number of type f64",
        ),
        (
            "a.csv",
            "data=w:u8",
            "a,b,w\n1,2,1.0\n",
            "column 3 is no number of type u8",
        ),
        (
            "a.csv",
            "data=w:u8",
            "a,b,w\n1,2,x\n",
            "no number of type u8",
        ),
        ("a.csv", "data=w:u8", "a,b,w\n1,2,\n", "column 3 is empty"),
        (
            "a.csv",
            "data=x:u8",
            "a,b,w\n1,2,3\n",
            "--edge-data x: there is no such column",
        ),
        ("a.csv", "data=x=4:u8", "a,b,w\n1,2,3\n", "no column 4"),
        ("a.gr", "data=w:u8", "a 1 2 9\n", "DIMACS has no header"),
        (
            "a.u32",
            "data=w:u8",
            "abcdefgh",
            "raw pairs have no weights and no data",
        ),
    ]);
    let skip = options("skip=1 data=w:u8");
    let (edges, _) = read("a.csv", b"a,b,w\n1,2,3\n1,3,256\n1,4,x\n1,5,6\n", &skip).unwrap();
    assert_eq!(edges, "1>2:3 1>5:6");
}

/// Columns after the ids are read by a short loop, others are not; malformed lines are skipped.
#[test]
fn records_are_the_same_wherever_their_columns_are() {
    let mut random = graphmill_storage::SplitMix64::new(5);
    let mut number = || {
        let bits = random.next_u64();
        let small = (bits >> 8) % 70_000;
        match bits % 12 {
            0 => format!("-{small}"),
            1 => format!("+{small}"),
            2 => format!("00{small}"),
            3 => format!("{small}.25"),
            4 => format!("{small}e3"),
            5 => format!("{}", f32::from_bits((bits >> 16) as u32)),
            6 => format!("{}", bits >> 3),
            7 => format!(" {small} "),
            8 => ["", "-", "x", "1.2.3", "inf", "--1"][small as usize % 6].to_string(),
            _ => format!("{}", small % 300),
        }
    };
    for fields in ["u8 f32 i64", "u16 i8 f64", "f32 f32 u64", "i16 i32 u32"] {
        let [a, b, c] = *fields.split(' ').collect::<Vec<_>>() else {
            panic!("three fields");
        };
        let (mut plain, mut moved) = (String::new(), String::new());
        for line in 0..4000 {
            let [x, y, z] = [number(), number(), number()];
            plain += &format!("{line},7,{x},{y},{z}\n");
            moved += &format!("{y},{line},7,{z},{x}\n");
        }
        let words = format!("skip=1 header=no data=c=5:{c},a=3:{a},b=4:{b}");
        let here = read("a.csv", plain.as_bytes(), &options(&words)).unwrap();
        let words = format!("source=2 target=3 skip=1 header=no data=c=4:{c},a=5:{a},b=1:{b}");
        let there = read("a.csv", moved.as_bytes(), &options(&words)).unwrap();
        assert_eq!(here.0, there.0, "{fields}");
        assert!(here.0.matches('>').count() > 100, "{fields}: {}", here.0);
    }
}
