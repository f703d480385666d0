//! `graph.json`: what a graph is, in words and numbers, with its own checksum. Written last.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use graphmill_storage::{Disk, Lease, MemoryBudget};
use serde::{Deserialize, Serialize};

use crate::edge_fields::EdgeFields;
use crate::error::FormatError;
use crate::file::page::FileRoot;
use crate::id_type::IdType;
use crate::spec::EdgeKind;
use crate::weight_range::WeightRange;

/// The format of graphs that this program writes.
pub const FORMAT: u64 = 5;
/// The first format that it reads: graphs of format 4 do not say the type of their ids.
const FORMAT_FIRST: u64 = 4;
/// Bytes of a `graph.json` at most.
const BYTES_MAX: u64 = 256 << 20;
pub(crate) const NAME: &str = "graph.json";
const TAIL_BYTES: usize = "\n\"checksum\": \"00000000\"\n}\n".len();

/// How vertices are named.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum IdKind {
    /// A vertex's id is its index.
    #[default]
    Dense,
    /// 64-bit unsigned integers.
    Integer,
    /// 64-bit signed integers, each stored with its sign bit turned.
    Signed,
    /// Byte strings, at most [`TEXT_ID_BYTES_MAX`](crate::TEXT_ID_BYTES_MAX) long.
    Text,
    /// UUIDs, stored as byte strings of 16 bytes.
    Uuid,
}

impl IdKind {
    /// True if ids are stored as byte strings.
    pub fn has_bytes(self) -> bool {
        matches!(self, IdKind::Text | IdKind::Uuid)
    }

    /// The usual type of the ids of a kind.
    pub(crate) fn usual_type(self) -> IdType {
        match self {
            IdKind::Dense | IdKind::Integer | IdKind::Signed => IdType::Int64,
            IdKind::Text => IdType::Text,
            IdKind::Uuid => IdType::Uuid,
        }
    }
}

/// The vertices that stand for edges: the last ones, which have no ids.
///
/// An edge from `u` to `v` is two arcs, from `u` to its vertex and from there to `v`. Both have the weight of the edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EdgeVertices {
    /// Their number.
    pub count: u64,
    /// Whether the edges have a direction.
    pub directed: bool,
}

/// The files with the ids.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct IdsMeta {
    pub(crate) kind: IdKind,
    /// Their type outside; `None` before format 5.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub(crate) id_type: Option<IdType>,
    pub(crate) pages: u64,
    pub(crate) data: FileRoot,
    pub(crate) index: FileRoot,
}

impl IdsMeta {
    /// Returns the type outside: before format 5 results had unsigned integers unless some were negative.
    pub(crate) fn id_type(&self) -> IdType {
        let before = match self.kind {
            IdKind::Dense | IdKind::Integer => IdType::UInt64,
            kind => kind.usual_type(),
        };
        self.id_type.unwrap_or(before)
    }
}

/// The files of a set of columns whose roots are not in its directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ColumnsMeta {
    pub(crate) directory: FileRoot,
    pub(crate) degrees: FileRoot,
    pub(crate) fanout: FileRoot,
}

/// The chunks of a graph in the stream layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StreamMeta {
    /// Bytes of a chunk at most.
    pub(crate) chunk_bytes: u64,
    pub(crate) directory: FileRoot,
    /// The directory of the reverse chunks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) reverse: Option<FileRoot>,
}

/// What `graph.json` says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// The format's version.
    pub format: u64,
    /// Name and version of the program that wrote the graph.
    pub program: String,
    /// A hash of the graph's shape, in hexadecimal.
    pub graph_id: String,
    /// |V|.
    pub vertices: u64,
    /// Which of them stand for edges; `None`: every arc is an edge.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edge_vertices: Option<EdgeVertices>,
    /// Number of stored edges; an undirected edge is two.
    pub arcs: u64,
    /// Edges in the input, before policies and doubling.
    pub input_edges: u64,
    /// What the import left out, by reason.
    pub dropped: BTreeMap<String, u64>,
    /// Options of the import.
    pub options: BTreeMap<String, String>,
    /// What an edge carries.
    pub edge: EdgeKind,
    /// The fields of its record; none if it carries a weight or nothing.
    #[serde(default, skip_serializing_if = "has_no_fields")]
    pub edge_fields: EdgeFields,
    /// False when every edge is stored both ways.
    pub directed: bool,
    /// Edges of a strip, at most, unless it is one cell.
    pub strip_edges_max: u64,
    /// A cell whose source span over edges is at most this has a bitmap of its sources.
    pub csr_ratio: u32,
    /// The cuts between batches.
    pub(crate) batches: Vec<u64>,
    pub(crate) ids: IdsMeta,
    pub(crate) columns: ColumnsMeta,
    pub(crate) reverse: Option<ColumnsMeta>,
    /// The chunks; `None` in the column layout. With chunks, directories and fan-out of columns are empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) stream: Option<StreamMeta>,
    /// Which index the vertex of each id has; `None`: they are in order of ids.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) order: Option<FileRoot>,
    /// The least and the greatest weight; `None` if edges have none or the importer did not record them.
    #[serde(default)]
    pub weights: Option<WeightRange>,
    /// Of the file; checked before the other fields are read.
    #[serde(skip_serializing)]
    pub(crate) checksum: String,
}

fn has_no_fields(fields: &EdgeFields) -> bool {
    fields.list().is_empty()
}

/// What tells formats apart.
#[derive(Deserialize)]
struct ManifestHeader {
    format: u64,
}

impl Manifest {
    /// The number of vertices that have ids: all that stand for no edge.
    pub(crate) fn named_vertices(&self) -> u64 {
        let of_edges = self.edge_vertices.map_or(0, |edges| edges.count);
        self.vertices.saturating_sub(of_edges)
    }
    /// The checksum of all that it says, as eight digits: of the files of the graph too.
    #[must_use]
    pub fn checksum(&self) -> &str {
        &self.checksum
    }
    /// The file's bytes. Source: docs/reference/file-format.md, "graph.json".
    fn text(&self) -> Result<Vec<u8>, FormatError> {
        let fields = match serde_json::to_value(self) {
            Ok(serde_json::Value::Object(fields)) => fields,
            _ => return Err(FormatError::misuse("the graph's description is no object")),
        };
        let mut text = String::from("{\n");
        for (name, value) in fields {
            text.push_str(&format!("{}: {value},\n", serde_json::Value::String(name)));
        }
        text.pop();
        let checksum = crc32fast::hash(text.as_bytes());
        text.push_str(&format!("\n\"checksum\": \"{checksum:08x}\"\n}}\n"));
        Ok(text.into_bytes())
    }
    pub(crate) fn write(
        &self,
        disk: &dyn Disk,
        budget: &MemoryBudget,
        graph: &Path,
    ) -> Result<(), FormatError> {
        let cuts = self.batches.len();
        let _lease = budget.lease("the description of the graph", 64 * cuts as u64)?;
        let text = self.text()?;
        if text.len() as u64 > BYTES_MAX {
            let what = "batches do not fit graph.json: use larger ones (--batch-size)";
            return Err(FormatError::misuse(format!("{cuts} {what}")));
        }
        Ok(disk.write_small(&graph.join(NAME), &text)?)
    }
    /// Reads and checks the file; the lease is for its cuts.
    pub(crate) fn read(
        disk: &dyn Disk,
        budget: &MemoryBudget,
        graph: &Path,
    ) -> Result<(Self, Lease), FormatError> {
        let path = graph.join(NAME);
        if !disk.exists(&path)? {
            let path = graph.to_path_buf();
            return Err(FormatError::NotAGraph { path });
        }
        let bytes = Self::reading_bytes(disk, graph)?;
        let transient = budget.lease("the description of the graph", bytes)?;
        let text = disk.read_small(&path, BYTES_MAX)?;
        let meta = Self::parse(&text, &path)?;
        drop((text, transient));
        let cuts = Self::cuts_bytes(meta.batches.len() as u64);
        let lease = budget.lease("the cuts between batches", cuts)?;
        Ok((meta, lease))
    }
    /// Bytes of the budget that `cuts` cuts take as long as the graph is open.
    pub(crate) fn cuts_bytes(cuts: u64) -> u64 {
        16 * cuts
    }
    /// Bytes of the budget that reading the file takes for a moment.
    pub(crate) fn reading_bytes(disk: &dyn Disk, graph: &Path) -> Result<u64, FormatError> {
        // The text is bounded by the file; its cuts take at most eight times its bytes: a digit and a comma each.
        let bytes = Self::file_bytes(disk, graph)?;
        Ok(bytes.min(BYTES_MAX).saturating_mul(9))
    }
    /// Bytes of the file.
    pub(crate) fn file_bytes(disk: &dyn Disk, graph: &Path) -> Result<u64, FormatError> {
        let file = disk.open(&graph.join(NAME), graphmill_storage::Open::Read)?;
        Ok(file.len()?)
    }
    fn parse(text: &[u8], path: &Path) -> Result<Self, FormatError> {
        let broken = |what: String| {
            let path = PathBuf::from(path);
            FormatError::Description { path, what }
        };
        let body = &text[..text.len().saturating_sub(TAIL_BYTES)];
        let tail = format!("\n\"checksum\": \"{:08x}\"\n}}\n", crc32fast::hash(body));
        if body.is_empty() || text[body.len()..] != *tail.as_bytes() {
            return Err(broken("its checksum does not fit its text".into()));
        }
        let json = |e: serde_json::Error| broken(e.to_string());
        let ManifestHeader { format } = serde_json::from_slice(text).map_err(json)?;
        if !(FORMAT_FIRST..=FORMAT).contains(&format) {
            return Err(FormatError::Version {
                path: path.into(),
                expected: FORMAT,
                found: format,
            });
        }
        let meta: Manifest = serde_json::from_slice(text).map_err(json)?;
        let (kind, id_type) = (meta.ids.kind, meta.ids.id_type());
        let is_integer = kind.usual_type().integer_max().is_some();
        if kind.usual_type() != id_type && !(is_integer && id_type.integer_max().is_some()) {
            let what = format!("ids of type {} have another kind", id_type.name());
            return Err(broken(what));
        }
        Ok(meta)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> Manifest {
        let columns = ColumnsMeta {
            directory: FileRoot::default(),
            degrees: FileRoot::default(),
            fanout: FileRoot::default(),
        };
        Manifest {
            format: FORMAT,
            program: "graphmill 0".into(),
            graph_id: "00ff".into(),
            vertices: 9,
            edge_vertices: Some(EdgeVertices {
                count: 4,
                directed: false,
            }),
            arcs: 3,
            input_edges: 4,
            dropped: [("duplicates \"x\"".into(), 1)].into(),
            options: [("ids".into(), "auto".into())].into(),
            edge: EdgeKind::F32,
            edge_fields: EdgeFields::default(),
            directed: true,
            strip_edges_max: 5,
            csr_ratio: 32,
            batches: vec![0, 4, 9],
            ids: IdsMeta {
                kind: IdKind::Text,
                id_type: Some(IdType::Text),
                pages: 1,
                data: FileRoot::default(),
                index: FileRoot::default(),
            },
            columns,
            reverse: Some(columns),
            stream: Some(StreamMeta {
                chunk_bytes: 4096,
                directory: FileRoot::default(),
                reverse: Some(FileRoot::default()),
            }),
            order: Some(FileRoot::default()),
            weights: Some(WeightRange {
                least: -0.1,
                greatest: 1e300,
            }),
            checksum: String::new(),
        }
    }

    #[test]
    fn manifest_round_trips_and_detects_any_change() {
        let text = example().text().unwrap();
        let path = Path::new("g/graph.json");
        let parsed = Manifest::parse(&text, path).unwrap();
        assert_eq!(
            Manifest {
                checksum: String::new(),
                ..parsed
            },
            example()
        );
        for at in 0..text.len() {
            for bit in 0..8 {
                let mut bad = text.clone();
                bad[at] ^= 1 << bit;
                assert!(
                    matches!(
                        Manifest::parse(&bad, path),
                        Err(FormatError::Description { .. })
                    ),
                    "byte {at} bit {bit}"
                );
            }
            assert!(Manifest::parse(&text[..at], path).is_err());
        }
    }

    #[test]
    fn manifest_of_another_format_is_not_damage() {
        for format in [FORMAT_FIRST - 1, FORMAT + 1] {
            let meta = Manifest {
                format,
                ..example()
            };
            assert!(matches!(
                Manifest::parse(&meta.text().unwrap(), Path::new("g")),
                Err(FormatError::Version { found, .. }) if found == format
            ));
        }
    }
}
