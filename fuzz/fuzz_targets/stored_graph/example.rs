//! A stored graph that is changed: as its files, and with the checksums that fit.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use graphmill_graph::{EdgeKind, Order};
use graphmill_ingest::{
    FileSource, ImportOptions, ImportResources, NoProgress, ReadOptions, import,
};
use graphmill_storage::{CancelToken, Disk, MemoryBudget, SimDisk, SystemClock, WorkerPool};

const FRAME: usize = 64 << 10;
const GRAIN: usize = 4096;
/// Bytes beyond which changes do not lengthen a file: one after the other could double it.
const FILE_BYTES_MAX: usize = 4 << 20;
/// How files of columns end, in the order of their roots.
const OF_COLUMNS: [&str; 4] = ["data", "index", "bitmaps", "weights"];

/// One change: a file, a position in it, what to do there, and with which bytes.
pub(crate) struct Change<'a> {
    file: u8,
    at: u16,
    deed: u8,
    bytes: &'a [u8],
}

impl<'a> Change<'a> {
    /// A change is four bytes and the bytes that it needs.
    ///
    /// The low four bits of the last byte say what to do, and the high ones how many bytes follow.
    pub(crate) fn all(mut input: &'a [u8]) -> Vec<Self> {
        let mut changes = Vec::new();
        while let [file, low, high, deed, rest @ ..] = input {
            let (bytes, rest) = rest.split_at(rest.len().min(usize::from(deed >> 4)));
            changes.push(Change {
                file: *file,
                at: u16::from_le_bytes([*low, *high]),
                deed: deed & 15,
                bytes,
            });
            input = rest;
        }
        changes
    }

    fn number(&self) -> u64 {
        let mut number = [0; 8];
        number
            .iter_mut()
            .zip(self.bytes)
            .for_each(|(to, from)| *to = *from);
        u64::from_le_bytes(number)
    }

    fn apply(&self, file: &mut Vec<u8>) {
        if file.is_empty() {
            file.extend_from_slice(self.bytes);
            return;
        }
        // From the start, or from the end.
        let at = if self.deed & 1 == 0 {
            usize::from(self.at) % file.len()
        } else {
            file.len() - 1 - usize::from(self.at) % file.len()
        };
        match self.deed >> 1 {
            0..=3 => {
                for (to, from) in file[at..].iter_mut().zip(self.bytes) {
                    *to = *from;
                }
            }
            4 => file[at] ^= self.bytes.first().copied().unwrap_or(1),
            5 => file.truncate(at),
            6 => file.extend(std::iter::repeat_n(
                self.bytes.first().copied().unwrap_or(0),
                at.min(FILE_BYTES_MAX.saturating_sub(file.len())),
            )),
            _ => {
                file.splice(at..at, self.bytes.iter().copied());
            }
        }
    }
}

/// A graph as its files and as what they are made of. Source: docs/reference/file-format.md.
pub(crate) struct Example {
    /// Path and bytes; graph.json is the last.
    files: Vec<(PathBuf, Vec<u8>)>,
    graph_id: u64,
    description: serde_json::Value,
}

impl Example {
    pub(crate) fn new(plain: bool) -> Self {
        let disk: Arc<dyn Disk> = Arc::new(SimDisk::new(1));
        let mut text = String::new();
        // Of one graph cells are a block or less, of the other some are several.
        for i in 0u64..if plain { 9000 } else { 700 } {
            let round = i / 331;
            let u = (i * i + round) % 331;
            let v = if i % 5 == 0 {
                17
            } else {
                (i * 7 + round) % 331
            };
            text += &if plain {
                format!("{} {}\n", 3 * u, 3 * v)
            } else {
                format!("vertex-{u} vertex-{v} {}.5\n", i % 9)
            };
        }
        disk.write_small(Path::new("x.el"), text.as_bytes())
            .expect("a file");
        let budget = MemoryBudget::new(256 << 20);
        let options = ReadOptions {
            weights: if plain { EdgeKind::None } else { EdgeKind::F32 },
            ..ReadOptions::default()
        };
        let source = FileSource::open(
            &disk,
            &budget,
            &["x.el".into()],
            &options,
            &CancelToken::new(),
        )
        .expect("edges");
        let resources = ImportResources {
            disk: &disk,
            workers: &WorkerPool::simulated(1, 1, Arc::clone(&disk)).expect("workers"),
            budget: &budget,
            clock: &SystemClock::default(),
            stop: &CancelToken::new(),
            progress: &NoProgress,
            fabric: None,
        };
        let options = ImportOptions {
            reverse: !plain,
            order: if plain { Order::Id } else { Order::Degree },
            batch_size: Some(if plain { 200 } else { 64 }),
            ..ImportOptions::new("graph")
        };
        import(resources, &source, None, &options).expect("a graph");
        let mut files = Vec::new();
        for folder in ["graph/columns", "graph/reverse", "graph"] {
            if disk.is_dir(Path::new(folder)).expect("a folder") {
                for path in disk.list(Path::new(folder)).expect("files") {
                    if !disk.is_dir(&path).expect("a file") && !path.ends_with("graph.json") {
                        let bytes = disk.read_small(&path, 1 << 24).expect("bytes");
                        files.push((path, bytes));
                    }
                }
            }
        }
        let path = PathBuf::from("graph/graph.json");
        let bytes = disk.read_small(&path, 1 << 24).expect("a description");
        let mut description: serde_json::Value = serde_json::from_slice(&bytes).expect("an object");
        description
            .as_object_mut()
            .expect("fields")
            .remove("checksum");
        files.push((path, bytes));
        let graph_id = description["graph_id"].as_str().expect("an id");
        let example = Example {
            files,
            graph_id: u64::from_str_radix(graph_id, 16).expect("a number"),
            description,
        };
        assert!(
            example
                .changed_with_checksums(&[])
                .iter()
                .all(|file| example.files.contains(file)),
            "without changes there are the same files"
        );
        example
    }

    pub(crate) fn changed(&self, changes: &[Change<'_>]) -> Vec<(PathBuf, Vec<u8>)> {
        let mut files = self.files.clone();
        for change in changes {
            let at = usize::from(change.file) % files.len();
            change.apply(&mut files[at].1);
            if at + 1 == files.len() && change.deed & 8 != 0 {
                end_description(&mut files[at].1);
            }
        }
        files
    }

    /// The same changes to what the files hold, which then get the checksums that fit.
    pub(crate) fn changed_with_checksums(&self, changes: &[Change<'_>]) -> Vec<(PathBuf, Vec<u8>)> {
        let last = self.files.len() - 1;
        let of = |at: usize| {
            changes
                .iter()
                .filter(move |change| usize::from(change.file) % (last + 1) == at)
        };
        let mut description = self.description.clone();
        let mut files = Vec::new();
        // Directories hold the roots of files, and come after them.
        let is_directory = |path: &Path| path.ends_with("directory");
        let mut roots = Vec::new();
        for (at, (path, bytes)) in self.files[..last].iter().enumerate() {
            if !is_directory(path) {
                let mut payload = bytes[..self.payload(path)].to_vec();
                of(at).for_each(|change| change.apply(&mut payload));
                let root = self.frame(path, payload, &mut files);
                roots.push((path, root));
            }
        }
        for (at, (path, bytes)) in self.files[..last].iter().enumerate() {
            if is_directory(path) {
                let (mut numbers, places) = numbers(&bytes[..self.payload(path)]);
                for (file, place) in places.iter().enumerate() {
                    for (kind, ending) in OF_COLUMNS.iter().enumerate() {
                        let of_file = path.with_file_name(format!("{file:05}.{ending}"));
                        if let Some((_, root)) = roots.iter().find(|(path, _)| **path == of_file) {
                            numbers[place + kind] = root.0;
                            numbers[place + OF_COLUMNS.len() + kind] = u64::from(root.1);
                        }
                    }
                }
                // Half of the changes are to numbers, the others to bytes.
                let (to_numbers, to_bytes): (Vec<_>, Vec<_>) =
                    of(at).partition(|change| change.deed & 8 == 0);
                for change in to_numbers {
                    let count = numbers.len();
                    numbers[usize::from(change.at) % count] = change.number();
                }
                let mut payload = Vec::new();
                numbers.iter().for_each(|number| put(&mut payload, *number));
                to_bytes
                    .iter()
                    .for_each(|change| change.apply(&mut payload));
                let root = self.frame(path, payload, &mut files);
                roots.push((path, root));
            }
        }
        let fields = [
            (&["columns", "directory"], "columns/directory"),
            (&["columns", "degrees"], "columns/degrees"),
            (&["columns", "fanout"], "columns/fanout"),
            (&["reverse", "directory"], "reverse/directory"),
            (&["reverse", "degrees"], "reverse/degrees"),
            (&["reverse", "fanout"], "reverse/fanout"),
            (&["ids", "data"], "ids"),
            (&["ids", "index"], "ids.index"),
        ];
        for (field, name) in fields {
            let path = Path::new("graph").join(name);
            if let Some((_, root)) = roots.iter().find(|(of, _)| **of == path) {
                let field = &mut description[field[0]][field[1]];
                field["payload"] = root.0.into();
                field["checksum"] = root.1.into();
            }
        }
        let order = Path::new("graph/order");
        if let Some((_, root)) = roots.iter().find(|(of, _)| **of == order) {
            let field = &mut description["order"];
            field["payload"] = root.0.into();
            field["checksum"] = root.1.into();
        }
        let (to_fields, to_bytes): (Vec<_>, Vec<_>) =
            of(last).partition(|change| change.deed & 8 == 0);
        for change in to_fields {
            let (at, number) = (usize::from(change.at >> 3), change.number());
            match change.at & 7 {
                0 => description["vertices"] = number.into(),
                1 => description["arcs"] = number.into(),
                2 => description["strip_edges_max"] = number.into(),
                3 => description["ids"]["pages"] = number.into(),
                4 => description["ids"]["kind"] = ["dense", "integer", "text"][at % 3].into(),
                5 => description["edge"] = ["none", "f32", "f64"][at % 3].into(),
                _ => {
                    let cuts = description["batches"].as_array_mut().expect("cuts");
                    let count = cuts.len();
                    cuts[at % count] = number.into();
                    // So that the cuts end where the vertices do.
                    if at % count + 1 == count {
                        description["vertices"] = number.into();
                    }
                }
            }
        }
        let mut text = String::from("{\n");
        for (name, value) in description.as_object().expect("fields") {
            text += &format!("\"{name}\": {value},\n");
        }
        text += "\"checksum\": \"00000000\"\n}\n";
        let mut text = text.into_bytes();
        to_bytes.iter().for_each(|change| change.apply(&mut text));
        end_description(&mut text);
        files.push((self.files[last].0.clone(), text));
        files
    }

    /// Bytes of a file's payload: the file without the table, which is one grain here, and the zeros.
    fn payload(&self, path: &Path) -> usize {
        let name = path
            .file_name()
            .and_then(|name| name.to_str())
            .expect("a name");
        let side = if path.starts_with("graph/reverse") {
            "reverse"
        } else {
            "columns"
        };
        let root = match name {
            "ids" => &self.description["ids"]["data"],
            "ids.index" => &self.description["ids"]["index"],
            "order" => &self.description["order"],
            "directory" | "degrees" | "fanout" => &self.description[side][name],
            _ => return self.of_directory(path),
        };
        root["payload"].as_u64().expect("a number") as usize
    }

    fn of_directory(&self, path: &Path) -> usize {
        let directory = path.with_file_name("directory");
        let (_, bytes) = self
            .files
            .iter()
            .find(|(path, _)| *path == directory)
            .expect("a directory");
        let (numbers, places) = numbers(&bytes[..self.payload(&directory)]);
        let number: usize = path
            .file_stem()
            .and_then(|stem| stem.to_str()?.parse().ok())
            .expect("the number of a file");
        let of_kind = |kind: &&str| path.extension().is_some_and(|ending| ending == *kind);
        let kind = OF_COLUMNS.iter().position(|kind| of_kind(&kind));
        numbers[places[number] + kind.expect("a file of columns")] as usize
    }

    /// Adds a file with zeros and checksums; its root.
    fn frame(
        &self,
        path: &Path,
        mut payload: Vec<u8>,
        files: &mut Vec<(PathBuf, Vec<u8>)>,
    ) -> (u64, u32) {
        let length = payload.len() as u64;
        if length == 0 {
            files.push((path.to_path_buf(), payload));
            return (0, 0);
        }
        let of_all = path.parent() == Some(Path::new("graph"));
        let name = path
            .file_name()
            .and_then(|name| name.to_str())
            .expect("a name");
        let kinds = [
            "data",
            "index",
            "weights",
            "directory",
            "degrees",
            "fanout",
            "ids",
            "ids.index",
            "order",
            "bitmaps",
        ];
        let ending = if of_all {
            name
        } else {
            name.rsplit('.').next().unwrap_or(name)
        };
        let kind = kinds
            .iter()
            .position(|kind| *kind == ending)
            .expect("a kind");
        let number: u32 = name
            .get(..5)
            .and_then(|number| number.parse().ok())
            .unwrap_or(0);
        let checksum = |frame: u64, bytes: &[u8]| {
            let mut prefix = [0; 24];
            let graph_id = if name.starts_with("ids") {
                0
            } else {
                self.graph_id
            };
            prefix[..8].copy_from_slice(&graph_id.to_le_bytes());
            prefix[8] = u8::from(path.starts_with("graph/reverse"));
            prefix[9] = kind as u8;
            prefix[12..16].copy_from_slice(&number.to_le_bytes());
            prefix[16..].copy_from_slice(&frame.to_le_bytes());
            let mut hasher = crc32fast::Hasher::new();
            hasher.update(&prefix);
            hasher.update(bytes);
            hasher.finalize()
        };
        payload.resize(payload.len().next_multiple_of(GRAIN), 0);
        let mut table: Vec<u8> = (0..)
            .zip(payload.chunks(FRAME))
            .flat_map(|(frame, bytes)| checksum(frame, bytes).to_le_bytes())
            .collect();
        table.resize(table.len().next_multiple_of(GRAIN), 0);
        let root = (length, checksum(u64::MAX, &table));
        payload.extend(table);
        files.push((path.to_path_buf(), payload));
        root
    }
}

/// Gives a description the checksum that fits, if it has room for one.
fn end_description(text: &mut Vec<u8>) {
    if let Some(body) = text
        .len()
        .checked_sub("\n\"checksum\": \"00000000\"\n}\n".len())
    {
        text.truncate(body);
        let checksum = crc32fast::hash(text);
        text.extend(format!("\n\"checksum\": \"{checksum:08x}\"\n}}\n").bytes());
    }
}

fn put(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// The numbers of a directory, and for each file which of them is the first of its roots.
fn numbers(bytes: &[u8]) -> (Vec<u64>, Vec<usize>) {
    let (mut numbers, mut number, mut shift) = (Vec::new(), 0, 0);
    for byte in bytes {
        number |= u64::from(byte & 0x7f) << shift;
        shift += 7;
        if byte & 0x80 == 0 {
            numbers.push(number);
            (number, shift) = (0, 0);
        }
    }
    let (mut at, mut places) = (1, Vec::new());
    while at < numbers.len() {
        places.push(at + 1);
        let batches = numbers[at];
        at += 1 + 2 * OF_COLUMNS.len();
        for _ in 0..batches {
            at += 1 + 4 * numbers[at] as usize;
        }
    }
    (numbers, places)
}
