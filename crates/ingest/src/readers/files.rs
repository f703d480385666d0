//! Files as a source of edges, and the pieces they are cut in.
//!
//! A piece of plain text is the lines that begin in a range of bytes, so every line is in one piece. A piece of raw pairs
//! is a range of bytes. A compressed file is one piece, since it can only be read from its start.

mod reader;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use graphmill_graph::EdgeKind;
use graphmill_storage::{Budget, Disk, GRAIN_BYTES, Lease, Stop};

use self::reader::{FileReader, READER_BYTES};
use super::compression::Compression;
use super::file_bytes::{FileBytes, Runs, changed};
use super::input::{Content, Finder, Format, Input, InputFile};
use super::parquet::ParquetFile;
use super::text::{
    Columns, Comments, Delimiter, Fault, Malformed, Parser, Place, Quotes, Syntax, TextOptions,
};
use crate::edge::{EdgeSink, EdgeSource, Ids, PieceReader};
use crate::error::{IngestError, LineProblem};

/// Unpacked bytes from which the kind of the ids is found out.
const DETECT_BYTES: u64 = 64 << 20;
/// Bytes of a piece, unless said otherwise.
const PIECE_BYTES: u64 = 16 << 20;

/// What to do with a malformed line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnError {
    /// It is an error.
    #[default]
    Stop,
    /// It is left out and counted.
    Skip,
}

/// How files are read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadOptions {
    /// What the files are.
    pub format: Format,
    /// What the ids are; `None`: integers if all are in the first 64 MiB, else text. [`Ids::Integer`] stands for signed
    /// integers too, where one of those is negative.
    pub ids: Option<Ids>,
    /// Whether a column is a weight: a finite number, negative ones too, that is rounded to this type.
    pub weights: EdgeKind,
    /// How lines of text are read.
    pub text: TextOptions,
    /// What to do with a malformed line.
    pub on_error: OnError,
    /// Bytes of a piece of a file that is not compressed; does not change what is read.
    pub piece_bytes: u64,
}

impl Default for ReadOptions {
    fn default() -> Self {
        Self {
            format: Format::Auto,
            ids: None,
            weights: EdgeKind::None,
            text: TextOptions::default(),
            on_error: OnError::Stop,
            piece_bytes: PIECE_BYTES,
        }
    }
}

/// Edge files, or a list of vertices.
#[derive(Debug)]
pub struct FileSource {
    input: Input,
    columns: Columns,
    ids: Ids,
    weights: EdgeKind,
    skip: bool,
    piece_bytes: u64,
    /// The number of the first piece of each file, and of all pieces.
    first_pieces: Vec<u64>,
    /// The id that made all ids text.
    first_text: Option<FirstText>,
    /// The memory of the list of files.
    _list: Lease,
}

/// The first id that is no integer, where others before it are.
#[derive(Clone, Debug, PartialEq, Eq)]
struct FirstText {
    path: PathBuf,
    line: u64,
    found: String,
}

/// How files are read, in one line for each way that there is; docs/reading.md.
pub type ReadNotice = String;

impl FileSource {
    /// Bytes of a piece of a file, unless it is asked for others.
    pub(crate) const PIECE_BYTES: u64 = PIECE_BYTES;

    /// Bytes of the budget for the list of these files.
    pub fn list_bytes(paths: &[PathBuf]) -> u64 {
        let bytes = |path: &PathBuf| name_bytes(path) + size_of::<InputFile>() as u64;
        paths.iter().map(bytes).sum()
    }

    /// Bytes of the budget that a reader of these files takes, as far as their names tell: those of folders are not looked at.
    pub fn reader_bytes_by_name<'p>(paths: impl IntoIterator<Item = &'p PathBuf>) -> u64 {
        let unpacker = |path: &PathBuf| Compression::of_name(path).leased_bytes();
        READER_BYTES + paths.into_iter().map(unpacker).max().unwrap_or(0)
    }

    /// The edges of `paths`: files, or folders of them (see [`InputFile`] for which), in this order.
    ///
    /// Looks at the names, the first bytes and, where the ids may be anything, the first 64 MiB.
    ///
    /// # Errors
    /// A file cannot be read, is of a format that is not read, or does not fit `options` or the other files.
    pub fn open(
        disk: &Arc<dyn Disk>,
        budget: &Budget,
        paths: &[PathBuf],
        options: &ReadOptions,
        stop: &Stop,
    ) -> Result<Self, IngestError> {
        let mut finder = Finder {
            disk,
            budget,
            format: options.format,
            weighted: options.weights != EdgeKind::None,
            skips: options.on_error == OnError::Skip,
            text: &options.text,
            bytes: FileBytes::new(disk, budget)?,
        };
        let input = finder.find(paths)?;
        drop(finder);
        let Some(first) = input.edges.first() else {
            let path = paths.first().map_or(Path::new(""), PathBuf::as_path);
            return Err(IngestError::input(
                path,
                "no file of edges is among the inputs",
            ));
        };
        let pairs = |file: &&InputFile| matches!(file.content, Content::Pairs(_));
        let raw = input.edges.iter().find(pairs);
        if let Some(raw) = raw
            && options.weights != EdgeKind::None
        {
            return Err(IngestError::input(
                &raw.path,
                "raw pairs have no weights (--weights none)",
            ));
        }
        if let Some(raw) = raw
            && options.ids == Some(Ids::Text)
        {
            return Err(IngestError::input(
                &raw.path,
                "the ids of raw pairs are integers (--ids int)",
            ));
        }
        let first = first.path.clone();
        let mut source = Self::of(input, Columns::Edge, options, budget)?;
        if options.ids != Some(Ids::Text) {
            let (ids, first_text) = source.detect(disk, budget, stop)?;
            (source.ids, source.first_text) = match options.ids {
                // A text id is an error when it is read, with what to do.
                Some(Ids::Integer) if ids == Ids::Text => (Ids::Integer, None),
                _ => (ids, first_text),
            };
            let raw = source.input.edges.iter().find(pairs);
            if source.ids == Ids::Text
                && let Some(raw) = raw
            {
                let problem = format!(
                    "raw pairs have integer ids, but not all ids of the other files are ({})",
                    first.display()
                );
                return Err(IngestError::input(&raw.path, problem));
            }
        }
        source.count_quotes(disk, budget, stop)?;
        Ok(source)
    }

    /// The vertices in a column of the files `paths` (`id` and the like, else the first), each as an edge from itself to itself.
    ///
    /// # Errors
    /// As for [`open`](Self::open).
    pub fn open_vertices(
        disk: &Arc<dyn Disk>,
        budget: &Budget,
        paths: &[PathBuf],
        ids: Ids,
        options: &ReadOptions,
        stop: &Stop,
    ) -> Result<Self, IngestError> {
        let text = TextOptions {
            source_column: None,
            target_column: None,
            weight_column: None,
            ..options.text.clone()
        };
        let mut finder = Finder {
            disk,
            budget,
            format: Format::Auto,
            weighted: false,
            skips: options.on_error == OnError::Skip,
            text: &text,
            bytes: FileBytes::new(disk, budget)?,
        };
        let mut edges: Vec<InputFile> = Vec::new();
        for path in paths {
            let before = edges
                .last()
                .and_then(|file| file.content.dialect().cloned());
            edges.push(finder.vertex_file(path, before)?);
        }
        drop(finder);
        let options = ReadOptions {
            ids: Some(ids),
            weights: EdgeKind::None,
            ..options.clone()
        };
        let input = Input {
            edges,
            ..Input::default()
        };
        let mut source = Self::of(input, Columns::Vertex, &options, budget)?;
        source.count_quotes(disk, budget, stop)?;
        Ok(source)
    }

    fn of(
        input: Input,
        columns: Columns,
        options: &ReadOptions,
        budget: &Budget,
    ) -> Result<Self, IngestError> {
        let file = |file: &InputFile| name_bytes(&file.path) + size_of::<InputFile>() as u64;
        let list_bytes = input.edges.iter().map(file).sum::<u64>()
            + input
                .vertices
                .iter()
                .chain(&input.left_out)
                .map(|path| name_bytes(path))
                .sum::<u64>();
        let list = budget.lease("the list of input files", list_bytes)?;
        // A multiple of the grain, and so of a pair.
        let piece_bytes = options
            .piece_bytes
            .clamp(1, 1 << 40)
            .next_multiple_of(GRAIN_BYTES as u64);
        let mut first_pieces = vec![0];
        let mut pieces = 0;
        for file in &input.edges {
            pieces += match (&file.content, file.compression) {
                (Content::Parquet(parquet), _) => parquet.pieces(),
                (_, Compression::None) => file.bytes.div_ceil(piece_bytes),
                _ => 1,
            };
            first_pieces.push(pieces);
        }
        Ok(Self {
            input,
            columns,
            ids: options.ids.unwrap_or(Ids::Integer),
            weights: options.weights,
            skip: options.on_error == OnError::Skip,
            piece_bytes,
            first_pieces,
            first_text: None,
            _list: list,
        })
    }

    /// The files, in order.
    pub fn files(&self) -> &[InputFile] {
        &self.input.edges
    }

    /// LDBC files of vertices (`.v`) among the inputs.
    pub fn vertex_files(&self) -> &[PathBuf] {
        &self.input.vertices
    }

    /// Files of the folders among the inputs that were left out.
    pub fn left_out(&self) -> &[PathBuf] {
        &self.input.left_out
    }

    /// What was taken of the files, in one line for each way in which they are read.
    pub fn notices(&self, directed: bool) -> Vec<ReadNotice> {
        let mut groups: Vec<(&InputFile, u64, u64)> = Vec::new();
        for file in &self.input.edges {
            let comments = match &file.content {
                Content::Text(_, head) => head.comments,
                Content::Pairs(_) | Content::Parquet(_) => 0,
            };
            let same = groups
                .iter_mut()
                .find(|(first, ..)| first.content.is_read_as(&file.content));
            match same {
                Some((_, files, sum)) => (*files, *sum) = (*files + 1, *sum + comments),
                None => groups.push((file, 1, comments)),
            }
        }
        groups
            .into_iter()
            .map(|(file, files, comments)| self.notice(file, files, comments, directed))
            .collect()
    }

    fn notice(&self, file: &InputFile, files: u64, comments: u64, directed: bool) -> String {
        let mut line = file.path.display().to_string();
        if files > 1 {
            line += &format!(" and {} more", files - 1);
        }
        let ids = match self.ids {
            Ids::Integer => "ids int",
            Ids::Signed => "ids int (some negative)",
            Ids::Text => "ids text",
        };
        let directed = match (self.columns, directed) {
            (Columns::Vertex, _) => "",
            (_, true) => ", directed",
            (_, false) => ", undirected",
        };
        let dialect = match &file.content {
            Content::Pairs(width) => {
                let bits = width.pair_bytes() * 4;
                return format!("{line}: pairs of {bits}-bit integers{directed}");
            }
            Content::Parquet(parquet) => {
                let [source, target, weight] = &parquet.names;
                line += &match self.columns {
                    Columns::Vertex => format!(": column {source}"),
                    Columns::Edge => format!(": columns {source} -> {target}"),
                };
                if self.weights != EdgeKind::None {
                    line += &format!(", weights {weight}");
                }
                line += &format!(", {ids}{directed}");
                return line + &ignored(parquet.ignored);
            }
            Content::Text(dialect, _) => dialect,
        };
        let [source, target, weight] = &dialect.names;
        let weighted = self.weights != EdgeKind::None;
        line += &match self.columns {
            Columns::Vertex => format!(": column {source}"),
            Columns::Edge => format!(": columns {source} -> {target}"),
        };
        if weighted {
            line += &format!(", weights {weight}");
        }
        let header = if dialect.header.is_some() {
            "yes"
        } else {
            "no"
        };
        line += &format!(", header {header}, {ids}{directed}");
        let usual = match dialect.syntax {
            Syntax::Csv => dialect.cut.delimiter == Delimiter::Byte(b','),
            Syntax::Tsv => dialect.cut.delimiter == Delimiter::Byte(b'\t'),
            _ => matches!(
                dialect.cut.delimiter,
                Delimiter::Blanks | Delimiter::Byte(b'\t')
            ),
        };
        if !usual {
            line += &format!("; separated by {}", dialect.cut.delimiter.name());
        }
        let taken = match self.columns {
            Columns::Vertex => 1,
            Columns::Edge => 2 + usize::from(weighted),
        };
        line += &ignored(dialect.columns.map_or(0, |all| all.saturating_sub(taken)));
        if comments > 0 {
            let plural = if comments == 1 { "" } else { "s" };
            line += &format!("; {comments} comment line{plural}");
        }
        if let Some(FirstText {
            path,
            line: at,
            found,
        }) = &self.first_text
            && *path == file.path
        {
            line += &format!("; ids are text because of line {at}: {found:?}");
        }
        if let Comments::Prefix(prefix) = &dialect.comments {
            line += &format!("; lines that start with {prefix:?} are comments");
        }
        if let Some(doubt) = &dialect.doubt {
            line += &format!("; {doubt}");
        }
        line
    }

    /// The most of what Parquet files take of each reader.
    fn parquet_bytes(&self, bytes: fn(&ParquetFile) -> u64) -> u64 {
        let bytes = |file: &InputFile| match &file.content {
            Content::Parquet(parquet) => bytes(parquet),
            _ => 0,
        };
        self.input.edges.iter().map(bytes).max().unwrap_or(0)
    }

    fn unpacker_bytes(&self) -> u64 {
        self.input
            .edges
            .iter()
            .map(|file| file.compression.leased_bytes())
            .max()
            .unwrap_or(0)
    }

    /// What the ids of the first bytes are, and which one makes them text; finds out too whether quotes enclose columns.
    fn detect(
        &mut self,
        disk: &Arc<dyn Disk>,
        budget: &Budget,
        stop: &Stop,
    ) -> Result<(Ids, Option<FirstText>), IngestError> {
        let mut left = DETECT_BYTES;
        let (mut headers, mut edges) = (false, false);
        let (mut negative, mut huge) = (false, false);
        for number in 0..self.input.edges.len() {
            let file = self.input.edges[number].clone();
            let (dialect, head) = match &file.content {
                Content::Text(dialect, head) => (dialect, head),
                Content::Pairs(_) => {
                    edges = true;
                    continue;
                }
                Content::Parquet(parquet) => {
                    match parquet.ids() {
                        Ids::Text => return Ok((Ids::Text, None)),
                        Ids::Signed => negative = true,
                        Ids::Integer => {}
                    }
                    edges |= parquet.pieces() > 0;
                    continue;
                }
            };
            let mut parser = Parser::new(
                dialect,
                self.columns,
                Ids::Integer,
                EdgeKind::None,
                Malformed::Probe,
                None,
            );
            let mut reader = FileReader::new(self, disk, budget)?;
            let read = reader.text(&file, 0..left, &mut parser, stop, &mut Nowhere);
            let read = match read {
                Ok(read) => read,
                Err(Fault::Line {
                    problem: LineProblem::LateQuote { .. },
                    ..
                }) => {
                    // Quotes may enclose line ends from here on.
                    drop(reader);
                    self.input.edges[number].content.enclose();
                    return self.detect(disk, budget, stop);
                }
                Err(Fault::Line {
                    problem: LineProblem::NotInteger { .. },
                    ..
                }) => {
                    // Of names no more has to be said.
                    let (found, is_number) = parser.no_integer();
                    let is_first = parser.report().edges == 0
                        && !edges
                        && !is_number
                        && !dialect.integers_below;
                    let first = FirstText {
                        path: file.path.clone(),
                        line: head.lines + parser.line_ends() + 1,
                        found,
                    };
                    return Ok((Ids::Text, (!is_first).then_some(first)));
                }
                Err(fault) => reader.fail(fault, &file, stop)?,
            };
            let report = parser.report();
            let [is_negative, is_huge] = parser.signs();
            (negative, huge) = (negative || is_negative, huge || is_huge);
            headers |= head.headers > 0;
            edges |= report.edges > 0;
            left = left.saturating_sub(read);
            if left == 0 {
                break;
            }
        }
        // A header alone says nothing about ids: programs that write in parts write some such.
        let ids = match (headers && !edges, negative, huge) {
            (true, ..) => Ids::Text,
            (_, false, _) => Ids::Integer,
            (_, true, false) => Ids::Signed,
            // The first that is too large is an error.
            (_, true, true) => Ids::Signed,
        };
        Ok((ids, None))
    }

    /// Finds out which pieces of files with quotes begin in quotes, or in comments.
    fn count_quotes(
        &mut self,
        disk: &Arc<dyn Disk>,
        budget: &Budget,
        stop: &Stop,
    ) -> Result<(), IngestError> {
        let mut bytes = None;
        for number in 0..self.input.edges.len() {
            let file = &self.input.edges[number];
            let encloses = (file.content.dialect())
                .is_some_and(|dialect| dialect.cut.quotes == Quotes::Enclose);
            if !encloses || file.compression != Compression::None || file.bytes <= self.piece_bytes
            {
                continue;
            }
            let bytes = match &mut bytes {
                Some(bytes) => bytes,
                None => bytes.insert(FileBytes::new(disk, budget)?),
            };
            let places = places_of_pieces(bytes, file, self.piece_bytes, stop)?;
            self.input.edges[number].places = places;
        }
        Ok(())
    }
}

fn name_bytes(path: &Path) -> u64 {
    (path.as_os_str().len() + size_of::<PathBuf>()) as u64
}

/// How a notice says that columns are ignored.
fn ignored(columns: usize) -> String {
    match columns {
        0 => String::new(),
        1 => "; 1 column ignored".into(),
        more => format!("; {more} columns ignored"),
    }
}

/// Where the byte before each piece of a file lies.
fn places_of_pieces(
    bytes: &mut FileBytes,
    file: &InputFile,
    piece_bytes: u64,
    stop: &Stop,
) -> Result<Vec<Place>, IngestError> {
    let Content::Text(dialect, head) = &file.content else {
        return Ok(Vec::new());
    };
    let mark_bytes = match &dialect.comments {
        // A byte-order mark may stand before it.
        Comments::Prefix(prefix) => prefix.len() + 3,
        Comments::Auto | Comments::None => 0,
    };
    // Pieces that begin in the head have nothing before the first edge.
    let first = head.bytes.div_ceil(piece_bytes).max(1);
    let mut places = vec![Place::Start; first as usize];
    let (mut place, mut offset, mut kept) = (None, head.bytes, 0);
    bytes.open(&file.path, file.bytes, head.bytes, file.bytes)?;
    loop {
        if stop.requested() {
            return Err(IngestError::Stopped);
        }
        let (run, last) = bytes.next(kept)?;
        let mut at = 0;
        while at < run.len() {
            let here = match place {
                Some(place) => place,
                // A line begins.
                None if run.len() - at < mark_bytes && !last => break,
                None => dialect.place(&run[at..]),
            };
            let step = dialect.cut.step(run, at, here);
            loop {
                let next = places.len() as u64 * piece_bytes - 1;
                match next.checked_sub(offset) {
                    Some(next) if next < step.to as u64 => {
                        let before = &run[at.min(next as usize)..next as usize];
                        places.push(match here {
                            Place::Quoted => here,
                            _ => dialect.cut.place_behind(before, here),
                        });
                    }
                    // Before the first edge.
                    None => places.push(Place::Start),
                    Some(_) => break,
                }
            }
            (at, place) = (step.to, (!step.ends).then_some(step.place));
        }
        kept = run.len() - at;
        offset += at as u64;
        if last {
            return Ok(places);
        }
    }
}

/// What takes edges that are only looked at.
struct Nowhere;

impl EdgeSink for Nowhere {
    fn integers(&mut self, _: &[(u64, u64)], _: &[f64]) -> Result<(), IngestError> {
        Ok(())
    }

    fn texts(&mut self, _: &[(&[u8], &[u8])], _: &[f64]) -> Result<(), IngestError> {
        Ok(())
    }
}

impl EdgeSource for FileSource {
    fn pieces(&self) -> u64 {
        self.first_pieces.last().copied().unwrap_or(0)
    }

    fn ids(&self) -> Ids {
        self.ids
    }

    fn weights(&self) -> EdgeKind {
        self.weights
    }

    fn vertices(&self) -> Option<u64> {
        None
    }

    fn edges(&self) -> Option<u64> {
        self.input
            .edges
            .iter()
            .map(|file| match (&file.content, file.compression) {
                (Content::Pairs(width), Compression::None) => {
                    Some(file.bytes / width.pair_bytes() as u64)
                }
                _ => None,
            })
            .sum()
    }

    fn amount(&self) -> u64 {
        self.input.edges.iter().map(|file| file.bytes).sum()
    }

    fn rereads_fast(&self) -> bool {
        self.edges().is_some()
    }

    fn lengths(&self) -> Vec<u64> {
        self.input.edges.iter().map(|file| file.bytes).collect()
    }

    fn identity(&self) -> Option<String> {
        // What the files are and when they were changed, and what is made of them.
        Some(format!("{self:?}"))
    }

    fn check_unchanged(&self, disk: &dyn Disk) -> Result<(), IngestError> {
        for file in &self.input.edges {
            if disk.stamp(&file.path)? != file.stamp {
                return Err(changed(&file.path));
            }
        }
        Ok(())
    }

    fn reader_bytes(&self) -> u64 {
        READER_BYTES
            + self.unpacker_bytes()
            + self.parquet_bytes(ParquetFile::group_bytes)
            + self.parquet_bytes(ParquetFile::chunk_bytes)
    }

    fn reader(
        &self,
        disk: &Arc<dyn Disk>,
        budget: &Budget,
    ) -> Result<Box<dyn PieceReader + '_>, IngestError> {
        Ok(Box::new(FileReader::new(self, disk, budget)?))
    }
}
