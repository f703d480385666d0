//! Opens files as a source of edges: reads their first bytes, and detects the type of their ids.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use graphmill_graph::{EdgeFields, EdgeKind, IdType};
use graphmill_storage::{CancelToken, Disk, MemoryBudget};

use super::compression::Compression;
use super::detect::Finder;
use super::edge_columns::EdgeColumns;
use super::files::{FileSource, FirstText, ReadOptions};
use super::id_range::IdRange;
use super::input_file::{FileContent, Format, InputFile};
use super::parquet::ParquetFile;
use super::piece::{FileReader, READER_BYTES};
use super::read_ahead::{ByteRuns, ReadAhead, changed};
use super::text::dialect::{Comments, RecordKind, TextOptions};
use super::text::fault::{LineFault, ParseError};
use super::text::parser::{Malformed, Parser};
use super::text::record::{LexState, Quotes};
use crate::edge_data::EdgeData;
use crate::error::{IngestError, LineProblem};
use crate::source::{EdgeSink, EdgeSource, Ids, PieceReader};

/// Unpacked bytes from which the kind of the ids is found out.
const DETECT_BYTES: u64 = 64 << 20;

impl FileSource {
    /// Returns the bytes of the budget that a reader of these files takes, by their names alone.
    ///
    /// It does not list directories.
    pub fn reader_bytes_by_name<'p>(paths: impl IntoIterator<Item = &'p PathBuf>) -> u64 {
        let unpacker = |path: &PathBuf| Compression::of_name(path).leased_bytes();
        READER_BYTES + paths.into_iter().map(unpacker).max().unwrap_or(0)
    }

    /// The edges of `paths`: files, or directories of them (see [`InputFile`] for which), in this order.
    ///
    /// Looks at the names, the first bytes and, where the ids may be anything, the first 64 MiB.
    ///
    /// # Errors
    /// A file cannot be read, is of a format that is not read, or does not fit `options` or the other files.
    pub fn open(
        disk: &Arc<dyn Disk>,
        budget: &MemoryBudget,
        paths: &[PathBuf],
        options: &ReadOptions,
        stop: &CancelToken,
    ) -> Result<Self, IngestError> {
        let input = Finder::new(disk, budget, options)?.find(paths)?;
        let Some(first) = input.edges.first() else {
            let path = paths.first().map_or(Path::new(""), PathBuf::as_path);
            let problem = "no file of edges is among the inputs";
            return Err(IngestError::input(path, problem));
        };
        let first = first.path.clone();
        let pairs = |file: &&InputFile| matches!(file.content, FileContent::Pairs(_));
        let raw = input.edges.iter().find(pairs).map(|raw| raw.path.clone());
        let raw_unless = |fits: bool, problem: &str| match &raw {
            Some(raw) if !fits => Err(IngestError::input(raw, problem)),
            _ => Ok(()),
        };
        raw_unless(
            options.edge_kind() == EdgeKind::None,
            "raw pairs have no weights and no data (--weights none, no --edge-data)",
        )?;
        let are_bytes = options.asked_ids().is_some_and(Ids::are_bytes);
        raw_unless(!are_bytes, "the ids of raw pairs are integers (--ids int)")?;
        if options.vertices_below.is_some() && are_bytes {
            return Err(IngestError::BelowOfText);
        }
        let mut source = Self::open_input(input, RecordKind::Edge, options, budget)?;
        if options.id_type.is_none() && options.ids != Some(Ids::Text) {
            let (ids, first_text) = source.detect(disk, budget, stop)?;
            (source.ids, source.first_text) = match options.ids {
                // A text id is an error when it is read, with what to do.
                Some(Ids::Integer) if ids.are_bytes() => (Ids::Integer, None),
                _ => (ids, first_text),
            };
            let problem = format!(
                "raw pairs have integer ids, but not all ids of the other files are ({})",
                first.display()
            );
            raw_unless(!source.ids.are_bytes(), &problem)?;
            if options.vertices_below.is_some() {
                // Another id is an error when it is read.
                (source.ids, source.first_text) = (Ids::Integer, None);
            }
        }
        source.count_quotes(disk, budget, stop)?;
        Ok(source)
    }

    /// Opens the vertices in a column of the files `paths`, each as an edge from itself to itself.
    ///
    /// The column is `id` or the like, else the first.
    ///
    /// # Errors
    /// As for [`open`](Self::open).
    pub fn open_vertices(
        disk: &Arc<dyn Disk>,
        budget: &MemoryBudget,
        paths: &[PathBuf],
        ids: Ids,
        options: &ReadOptions,
        stop: &CancelToken,
    ) -> Result<Self, IngestError> {
        let text = TextOptions {
            source_column: None,
            target_column: None,
            weight_column: None,
            edge_data: EdgeColumns::default(),
            ..options.text.clone()
        };
        let options = ReadOptions {
            format: Format::Auto,
            ids: Some(ids),
            id_type: None,
            vertices_below: None,
            weights: EdgeKind::None,
            text,
            ..options.clone()
        };
        let input = Finder::new(disk, budget, &options)?.find_vertices(paths)?;
        let mut source = Self::open_input(input, RecordKind::Vertex, &options, budget)?;
        source.count_quotes(disk, budget, stop)?;
        Ok(source)
    }

    /// Detects the type of the ids in the first bytes, and the id that makes them text.
    ///
    /// It also detects whether quotes enclose columns.
    fn detect(
        &mut self,
        disk: &Arc<dyn Disk>,
        budget: &MemoryBudget,
        stop: &CancelToken,
    ) -> Result<(Ids, Option<FirstText>), IngestError> {
        let mut left = DETECT_BYTES;
        let (mut headers, mut edges, mut negative) = (false, false, false);
        let files = self.input.edges.iter();
        let parquet = files.filter_map(|file| match &file.content {
            FileContent::Parquet(parquet) => Some(parquet.ids() == Ids::Uuid),
            FileContent::Text(..) | FileContent::Pairs(_) => None,
        });
        let are_uuids: Vec<bool> = parquet.collect();
        if are_uuids.len() == self.input.edges.len() && are_uuids.iter().all(|is_uuid| *is_uuid) {
            return Ok((Ids::Uuid, None));
        }
        for number in 0..self.input.edges.len() {
            let file = self.input.edges[number].clone();
            let (dialect, head) = match &file.content {
                FileContent::Text(dialect, head) => (dialect, head),
                FileContent::Pairs(_) => {
                    edges = true;
                    continue;
                }
                FileContent::Parquet(parquet) => {
                    match parquet.ids() {
                        Ids::Text | Ids::Uuid => return Ok((Ids::Text, None)),
                        Ids::Signed | Ids::Wrapping => negative = true,
                        Ids::Integer => {}
                    }
                    edges |= parquet.pieces() > 0;
                    continue;
                }
            };
            let (range, weights) = (IdRange::all(Ids::Integer), EdgeKind::None);
            let mut parser = Parser::new(dialect, range, weights, Malformed::Probe, None);
            let mut reader = FileReader::new(self, disk, budget)?;
            let read = reader.text(&file, 0..left, &mut parser, stop, &mut DiscardEdges);
            let problem = match &read {
                Err(ParseError::At(_, LineFault::Malformed { problem, .. })) => Some(*problem),
                _ => None,
            };
            let read = match (read, problem) {
                (Ok(read), _) => read,
                (_, Some(LineProblem::LateQuote { .. })) => {
                    // Quotes may enclose line ends from here on.
                    drop(reader);
                    self.input.edges[number].content.enclose();
                    return self.detect(disk, budget, stop);
                }
                (_, Some(LineProblem::NotInteger { .. })) => {
                    // Names need no further notice.
                    let (found, is_number) = parser.no_integer();
                    edges |= parser.report().edges > 0;
                    let is_first = !edges && !is_number && !dialect.integers_below;
                    let first = FirstText {
                        path: file.path.clone(),
                        line: head.line_ends + parser.line_ends() + 1,
                        found,
                    };
                    return Ok((Ids::Text, (!is_first).then_some(first)));
                }
                (Err(fault), _) => reader.fail(fault, &file, stop)?,
            };
            negative |= parser.negative;
            headers |= head.report.headers > 0;
            edges |= parser.report().edges > 0;
            left = left.saturating_sub(read);
            if left == 0 {
                break;
            }
        }
        // A header alone says nothing about ids: programs that write in parts write some such.
        let ids = match (headers && !edges, negative) {
            (true, _) => Ids::Text,
            (false, true) => Ids::Signed,
            (false, false) => Ids::Integer,
        };
        Ok((ids, None))
    }

    /// Finds out which pieces of files with quotes begin in quotes, or in comments.
    fn count_quotes(
        &mut self,
        disk: &Arc<dyn Disk>,
        budget: &MemoryBudget,
        stop: &CancelToken,
    ) -> Result<(), IngestError> {
        let mut bytes = None;
        for number in 0..self.input.edges.len() {
            let file = &self.input.edges[number];
            let encloses = (file.content.dialect())
                .is_some_and(|dialect| dialect.cut.quotes == Quotes::Enclose);
            let is_cut = file.compression == Compression::None && file.bytes > self.piece_bytes;
            if !encloses || !is_cut {
                continue;
            }
            let bytes = match &mut bytes {
                Some(bytes) => bytes,
                None => bytes.insert(ReadAhead::new(disk, budget)?),
            };
            let states = states_of_pieces(bytes, file, self.piece_bytes, stop)?;
            self.input.edges[number].states = states;
        }
        Ok(())
    }
}

/// Returns the state at the byte before each piece of a file.
fn states_of_pieces(
    bytes: &mut ReadAhead,
    file: &InputFile,
    piece_bytes: u64,
    stop: &CancelToken,
) -> Result<Vec<LexState>, IngestError> {
    let FileContent::Text(dialect, head) = &file.content else {
        return Ok(Vec::new());
    };
    let mark_bytes = match &dialect.comments {
        // A byte-order mark may stand before it.
        Comments::Prefix(prefix) => prefix.len() + 3,
        Comments::Auto | Comments::None => 0,
    };
    // Pieces that begin in the head have nothing before the first edge.
    let first = head.bytes.div_ceil(piece_bytes).max(1);
    let mut states = vec![LexState::Start; first as usize];
    let (mut state, mut offset, mut kept) = (None, head.bytes, 0);
    bytes.open(&file.path, file.bytes, head.bytes, file.bytes)?;
    loop {
        IngestError::check_stop(stop)?;
        let (run, last) = bytes.next(kept)?;
        let mut at = 0;
        while at < run.len() {
            let here = match state {
                Some(state) => state,
                // A line begins.
                None if run.len() - at < mark_bytes && !last => break,
                None => dialect.state(&run[at..]),
            };
            let step = dialect.cut.step(run, at, here);
            loop {
                let next = states.len() as u64 * piece_bytes - 1;
                match next.checked_sub(offset) {
                    Some(next) if next < step.to as u64 => {
                        let before = &run[at.min(next as usize)..next as usize];
                        states.push(match here {
                            LexState::Quoted => here,
                            _ => dialect.cut.state_after(before, here),
                        });
                    }
                    // Before the first edge.
                    None => states.push(LexState::Start),
                    Some(_) => break,
                }
            }
            (at, state) = (step.to, (!step.ends).then_some(step.state));
        }
        kept = run.len() - at;
        offset += at as u64;
        if last {
            return Ok(states);
        }
    }
}

/// A sink that ignores all edges.
struct DiscardEdges;

impl EdgeSink for DiscardEdges {
    fn integers(&mut self, _: &[(u64, u64)], _: EdgeData<'_>) -> Result<(), IngestError> {
        Ok(())
    }

    fn texts(&mut self, _: &[(&[u8], &[u8])], _: EdgeData<'_>) -> Result<(), IngestError> {
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

    fn id_type(&self) -> IdType {
        if let Some(asked) = self.asked {
            return asked;
        }
        match self.ids {
            Ids::Text => return IdType::Text,
            Ids::Uuid => return IdType::Uuid,
            Ids::Integer | Ids::Signed | Ids::Wrapping => {}
        }
        let types = self.input.edges.iter().map(|file| match &file.content {
            FileContent::Parquet(parquet) => parquet.columns.id_type(),
            // Text says nothing of the width.
            FileContent::Text(..) | FileContent::Pairs(_) => IdType::Int64,
        });
        let joined = types.reduce(IdType::join).unwrap_or_default();
        // A column of numbers written as text has them as integers if that was asked for.
        joined.integer_max().map_or(IdType::Int64, |_| joined)
    }

    fn weights(&self) -> EdgeKind {
        self.weights
    }

    fn fields(&self) -> EdgeFields {
        self.fields.clone()
    }

    fn vertices(&self) -> Option<u64> {
        self.vertices_below
    }

    fn edges(&self) -> Option<u64> {
        let pairs = |file: &InputFile| match (&file.content, file.compression) {
            (FileContent::Pairs(width), Compression::None) => {
                Some(file.bytes / width.pair_bytes() as u64)
            }
            _ => None,
        };
        self.input.edges.iter().map(pairs).sum()
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
        Some(self.identity_text())
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
        budget: &MemoryBudget,
    ) -> Result<Box<dyn PieceReader + '_>, IngestError> {
        Ok(Box::new(FileReader::new(self, disk, budget)?))
    }
}
