//! Text files from practice: the edges of each, or the error, and the notices about it.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod columns;
mod lines;
mod quotes;
mod records;

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
