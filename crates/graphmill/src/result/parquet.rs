//! Rows as Parquet: columns `vertex` and the algorithm's value, snappy, about a million rows a row group; null where a vertex was not
//! reached.
//!
//! Steps for each row group: 1. the names of the vertices that are values, where these are text, are the dictionary of the value's column;
//! 2. the column of ids, block by block; 3. the dictionary; 4. the column of values, block by block. Blocks are whole pages, so that
//! workers encode them apart, and no column is in memory as a whole. The library writes the footer.
//!
//! Rows that are edges have no column of ids; source, destination and weight are columns of values.
//!
//! The same rows give the same bytes: a page ends where a block does, or when its text has 1 MiB (`parquet_columns.rs`). Integers are stored as deltas.

use std::cell::Cell;
use std::io::Write;
use std::sync::Arc;

use graphmill_algorithms::OutputValues as Array;
use graphmill_graph::{IdKind, IdType};
use graphmill_storage::Lease;
use parquet::basic::{Compression, Encoding, LogicalType, Repetition, Type as Physical};
use parquet::data_type::ByteArray;
use parquet::file::metadata::{
    ColumnChunkMetaData, FileMetaData, ParquetMetaDataBuilder, ParquetMetaDataWriter,
    RowGroupMetaData,
};
use parquet::file::statistics::{Statistics, ValueStatistics};
use parquet::schema::types::{SchemaDescPtr, SchemaDescriptor, Type};

use crate::error::Error;
use crate::result::encode::{ColumnSummary, EncodePool, EncodeTask, Limits};
use crate::result::names::{Distinct, NamesOfGroups, ROWS_LEAST, VertexNames, fewer_ids};
use crate::result::pages;
use crate::result::parquet_columns::{
    DictionaryNames, IdColumnEncoder, ValueColumnEncoder, ValueNames,
};
use crate::result::rows::{EDGE_COLUMNS, GROUP_ROWS, ResultRows, RowBlock, are_edges};
use crate::result::sizes::{BLOCK_ROWS, DICTIONARY_BYTES};
use crate::result::values::EdgePart;
use crate::result_error::ResultError;

/// Rows of a group of edges, at most: two columns of them have names at the same time.
const EDGE_GROUP_ROWS: u64 = GROUP_ROWS / 4;
/// Longer texts are not given as the least or greatest of a column.
const LIMIT_BYTES: usize = 64;
/// What a file begins and ends with.
const MAGIC: &[u8] = b"PAR1";

/// Writes rows to `sink`; tells `note` of rows that are written.
///
/// # Errors
/// Ids or values cannot be read, an id is no UTF-8, the sink fails, or work is to stop.
pub(super) fn write(
    sink: &mut dyn Write,
    rows: &mut ResultRows<'_>,
    pool: &mut EncodePool,
    note: &mut dyn FnMut(u64),
) -> Result<(), Error> {
    let mut file = FileWriter::new(sink, rows)?;
    let most = match are_edges(rows.output) {
        true => EDGE_GROUP_ROWS,
        false => GROUP_ROWS,
    };
    let (mut at, mut rows_max) = (rows.ranks.start, most);
    let mut found: Option<NamesOfGroups> = None;
    loop {
        let blocks = rows.group(at, rows_max)?;
        let Some(last) = blocks.last() else {
            return Ok(file.finish()?);
        };
        let end = last.ranks.end;
        let covers = |found: &NamesOfGroups| found.covers(&(at..end));
        let has_names = !are_edges(rows.output) && rows.has_names();
        if has_names && !found.as_ref().is_some_and(covers) {
            // The next ones take their memory.
            drop(found.take());
            found = NamesOfGroups::of(rows, pool, at)?.filter(covers);
        }
        let names = found.as_ref().map(|found| &*found.names);
        let Some(dictionaries) = dictionaries(rows, pool, &blocks, names)? else {
            let count = blocks.iter().map(|block| block.rows).sum::<u64>();
            rows_max = (count / 2).max(ROWS_LEAST);
            continue;
        };
        file.group(rows, pool, &blocks, (dictionaries, names), note)?;
        at = end;
        rows_max = (2 * rows_max).min(most);
    }
}

/// Returns the names of the columns of a row group that hold vertices, if these are texts.
///
/// `None` if the names of a column have too many bytes.
fn dictionaries(
    rows: &mut ResultRows<'_>,
    pool: &mut EncodePool,
    blocks: &[RowBlock],
    names: Option<&VertexNames>,
) -> Result<Option<Vec<Option<NameDictionary>>>, Error> {
    let mut all = Vec::new();
    for part in value_parts(rows) {
        rows.select(part);
        let has_names = rows.has_names() && rows.graph.id_kind().has_bytes();
        if has_names {
            match NameDictionary::of(rows, pool, blocks, names)? {
                None => return Ok(None),
                dictionary => all.push(dictionary),
            }
        } else {
            all.push(None);
        }
    }
    Ok(Some(all))
}

/// The columns behind the ids of the rows: the value, or the three of an edge, which has no ids beside.
fn value_parts(rows: &ResultRows<'_>) -> Vec<EdgePart> {
    match are_edges(rows.output) {
        true => vec![EdgePart::Source, EdgePart::Destination, rows.weight_part()],
        false => vec![EdgePart::Whole],
    }
}

/// A file on its way to `sink`.
struct FileWriter<'s> {
    sink: &'s mut dyn Write,
    /// Bytes written.
    offset: u64,
    schema: SchemaDescPtr,
    groups: Vec<RowGroupMetaData>,
    rows: u64,
}

/// The metadata of a column of a row group.
struct WrittenChunk {
    start: u64,
    dictionary: Option<u64>,
    encoding: Encoding,
    summary: ColumnSummary,
}

impl<'s> FileWriter<'s> {
    fn new(sink: &'s mut dyn Write, rows: &ResultRows<'_>) -> Result<FileWriter<'s>, Error> {
        let is_nullable = match rows.is_nullable() {
            true => Repetition::OPTIONAL,
            false => Repetition::REQUIRED,
        };
        let id_type = rows.graph.id_type();
        let mut columns = Vec::new();
        if are_edges(rows.output) {
            for (name, part) in EDGE_COLUMNS.iter().zip(value_parts(rows)) {
                columns.push(column(name, of_part(part, id_type), Repetition::REQUIRED)?);
            }
        } else {
            let value = of_values(&rows.output.values, id_type);
            columns.push(column("vertex", of_ids(id_type), Repetition::REQUIRED)?);
            columns.push(column(rows.output.column, value, is_nullable)?);
        }
        let schema = Type::group_type_builder("graphmill")
            .with_fields(columns.into_iter().map(Arc::new).collect())
            .build()
            .map_err(ResultError::from)?;
        let mut file = FileWriter {
            sink,
            offset: 0,
            schema: Arc::new(SchemaDescriptor::new(Arc::new(schema))),
            groups: Vec::new(),
            rows: 0,
        };
        file.put(MAGIC)?;
        Ok(file)
    }

    fn put(&mut self, bytes: &[u8]) -> Result<(), ResultError> {
        self.sink.write_all(bytes)?;
        self.offset += bytes.len() as u64;
        Ok(())
    }

    /// Writes a row group.
    fn group(
        &mut self,
        rows: &mut ResultRows<'_>,
        pool: &mut EncodePool,
        blocks: &[RowBlock],
        (dictionaries, names): (Vec<Option<NameDictionary>>, Option<&VertexNames>),
        note: &mut dyn FnMut(u64),
    ) -> Result<(), Error> {
        let mut columns = Vec::new();
        if !are_edges(rows.output) {
            columns.push(self.ids(rows, pool, blocks)?);
        }
        for (part, dictionary) in value_parts(rows).into_iter().zip(dictionaries) {
            rows.select(part);
            let number = columns.len();
            let names = (dictionary, names);
            columns.push(self.values(number, rows, pool, blocks, names)?);
        }
        let count = blocks.iter().map(|block| block.rows).sum::<u64>();
        note(count);
        let bytes = columns.iter().map(ColumnChunkMetaData::uncompressed_size);
        let mut group = RowGroupMetaData::builder(Arc::clone(&self.schema))
            .set_num_rows(count as i64)
            .set_total_byte_size(bytes.sum());
        if let Some(first) = columns.first() {
            group = group.set_file_offset(first.data_page_offset());
        }
        group = group.set_column_metadata(columns);
        if let Ok(number) = i16::try_from(self.groups.len()) {
            group = group.set_ordinal(number);
        }
        self.groups.push(group.build().map_err(ResultError::from)?);
        self.rows += count;
        Ok(())
    }

    /// Writes the ids of the rows.
    fn ids(
        &mut self,
        rows: &mut ResultRows<'_>,
        pool: &mut EncodePool,
        blocks: &[RowBlock],
    ) -> Result<ColumnChunkMetaData, Error> {
        let kind = rows.graph.id_kind();
        let mut ids = self.begin(match kind {
            IdKind::Text | IdKind::Uuid => Encoding::PLAIN,
            IdKind::Dense | IdKind::Integer | IdKind::Signed => Encoding::DELTA_BINARY_PACKED,
        });
        pool.run(
            &IdColumnEncoder {
                kind,
                bits: bits_of(rows.graph.id_type()),
            },
            rows.fill_each(blocks, false),
            |task| Ok(self.append(&mut ids, task)?),
        )?;
        Ok(self.end(0, ids)?)
    }

    /// Writes column `number`, the selected part of the rows.
    fn values(
        &mut self,
        number: usize,
        rows: &mut ResultRows<'_>,
        pool: &mut EncodePool,
        blocks: &[RowBlock],
        (dictionary, names): (Option<NameDictionary>, Option<&VertexNames>),
    ) -> Result<ColumnChunkMetaData, Error> {
        let mut values = self.begin(Encoding::PLAIN);
        if let Some(mut dictionary) = dictionary {
            if !dictionary.distinct.ranks.is_empty() {
                dictionary.put(self, &mut values, pool, names)?;
            }
            let found = ValueNames::Places(dictionary.distinct);
            self.pages(&mut values, number, rows, pool, blocks, found)?;
        } else if let (true, Some(names)) = (rows.has_names(), names) {
            let found = ValueNames::Names(names);
            self.pages(&mut values, number, rows, pool, blocks, found)?;
        } else if rows.has_names() {
            let (rows_max, bytes_max, _lease) = rows.lookup_memory()?;
            for blocks in blocks.chunks((rows_max / BLOCK_ROWS) as usize) {
                let distinct = Distinct::of(rows, blocks)?;
                let names = VertexNames::of(rows, pool, distinct, bytes_max)?;
                let found = ValueNames::Names(names.as_ref().ok_or_else(fewer_ids)?);
                self.pages(&mut values, number, rows, pool, blocks, found)?;
            }
        } else {
            self.pages(&mut values, number, rows, pool, blocks, ValueNames::Nothing)?;
        }
        Ok(self.end(number, values)?)
    }

    /// Writes pages of column `number`.
    fn pages(
        &mut self,
        values: &mut WrittenChunk,
        number: usize,
        rows: &mut ResultRows<'_>,
        pool: &mut EncodePool,
        blocks: &[RowBlock],
        found: ValueNames<'_>,
    ) -> Result<(), Error> {
        let encoder = ValueColumnEncoder {
            nullable: rows.is_nullable(),
            vertex_bits: (rows.holds_vertices()).then(|| bits_of(rows.graph.id_type())),
            found,
        };
        let physical = self.schema.column(number).physical_type();
        values.encoding = encoder.encoding(matches!(physical, Physical::FLOAT | Physical::DOUBLE));
        pool.run(&encoder, rows.fill_each(blocks, true), |task| {
            Ok(self.append(values, task)?)
        })
    }

    fn begin(&self, encoding: Encoding) -> WrittenChunk {
        WrittenChunk {
            start: self.offset,
            dictionary: None,
            encoding,
            summary: ColumnSummary::default(),
        }
    }

    /// Adds the pages of a task to a column.
    fn append(
        &mut self,
        chunk: &mut WrittenChunk,
        task: &mut EncodeTask,
    ) -> Result<(), ResultError> {
        let summary = std::mem::take(&mut task.summary);
        chunk.summary.raw_bytes += summary.raw_bytes;
        chunk.summary.rows += summary.rows;
        chunk.summary.nulls += summary.nulls;
        chunk.summary.limits.merge(summary.limits);
        self.put(&task.out)
    }

    /// What the footer says of a column that is written.
    fn end(&self, column: usize, chunk: WrittenChunk) -> Result<ColumnChunkMetaData, ResultError> {
        let about = self.schema.column(column);
        let summary = chunk.summary;
        let statistics = statistics(about.physical_type(), summary.limits, summary.nulls);
        let mut encodings = vec![Encoding::RLE, chunk.encoding];
        if chunk.dictionary.is_some() {
            encodings.push(Encoding::PLAIN);
        }
        let built = ColumnChunkMetaData::builder(about)
            .set_statistics(statistics)
            .set_compression(Compression::SNAPPY)
            .set_encodings(encodings)
            .set_num_values(summary.rows as i64)
            .set_total_compressed_size((self.offset - chunk.start) as i64)
            .set_total_uncompressed_size(summary.raw_bytes as i64)
            .set_dictionary_page_offset(chunk.dictionary.map(|_| chunk.start as i64))
            .set_data_page_offset((chunk.start + chunk.dictionary.unwrap_or(0)) as i64);
        Ok(built.build()?)
    }

    fn finish(mut self) -> Result<(), ResultError> {
        let created_by = concat!("graphmill ", env!("CARGO_PKG_VERSION")).to_string();
        let (rows, schema) = (self.rows as i64, Arc::clone(&self.schema));
        let about = FileMetaData::new(1, rows, Some(created_by), None, schema, None);
        let groups = std::mem::take(&mut self.groups);
        let metadata = ParquetMetaDataBuilder::new(about)
            .set_row_groups(groups)
            .build();
        let mut footer = Vec::new();
        ParquetMetaDataWriter::new(&mut footer, &metadata).finish()?;
        self.put(&footer)
    }
}

/// What an id or a value is called in Parquet: unsigned integers and UTF-8 text are annotated as such.
fn of_ids(id_type: IdType) -> (Physical, Option<LogicalType>) {
    let integer = |bits, signed| Some(LogicalType::integer(bits, signed));
    match id_type {
        IdType::Int32 => (Physical::INT32, integer(32, true)),
        IdType::Int64 => (Physical::INT64, integer(64, true)),
        IdType::UInt32 => (Physical::INT32, integer(32, false)),
        IdType::UInt64 => (Physical::INT64, integer(64, false)),
        IdType::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        IdType::Uuid => (Physical::FIXED_LEN_BYTE_ARRAY, Some(LogicalType::Uuid)),
    }
}

/// Bits of an integer id.
fn bits_of(id_type: IdType) -> u32 {
    match id_type {
        IdType::Int32 | IdType::UInt32 => u32::BITS,
        _ => u64::BITS,
    }
}

fn of_values(values: &Array, id_type: IdType) -> (Physical, Option<LogicalType>) {
    match values {
        Array::F32(_) => (Physical::FLOAT, None),
        Array::F64(_) => (Physical::DOUBLE, None),
        Array::U32(_) => (Physical::INT32, Some(LogicalType::integer(32, false))),
        Array::U64(_) => (Physical::INT64, Some(LogicalType::integer(64, false))),
        Array::Vertex32(_) | Array::Vertex64(_) | Array::Ordinal32(_) | Array::Ordinal64(_) => {
            of_ids(id_type)
        }
        // They have columns of their own.
        Array::Edges(_) | Array::Numbers(_) => (Physical::DOUBLE, None),
    }
}

fn of_part(part: EdgePart, id_type: IdType) -> (Physical, Option<LogicalType>) {
    match part {
        EdgePart::Weight { single: true } => (Physical::FLOAT, None),
        EdgePart::Weight { single: false } => (Physical::DOUBLE, None),
        EdgePart::Whole | EdgePart::Source | EdgePart::Destination => of_ids(id_type),
    }
}

fn column(
    name: &str,
    (physical, logical): (Physical, Option<LogicalType>),
    repetition: Repetition,
) -> Result<Type, ResultError> {
    let length = match physical {
        Physical::FIXED_LEN_BYTE_ARRAY => 16,
        _ => -1,
    };
    Ok(Type::primitive_type_builder(name, physical)
        .with_length(length)
        .with_logical_type(logical)
        .with_repetition(repetition)
        .build()?)
}

/// Returns the least and greatest value of a column for the footer.
///
/// It leaves out long texts, and gives a zero the sign that the format requires.
fn statistics(physical: Physical, limits: Limits, nulls: u64) -> Statistics {
    let (mut integers, mut floats, mut texts) = (None, None, None);
    match limits {
        Limits::Integers(least, greatest) => integers = Some((least as i64, greatest as i64)),
        Limits::Floats(least, greatest) => {
            let least = if least == 0.0 { -0.0 } else { least };
            let greatest = if greatest == 0.0 { 0.0 } else { greatest };
            floats = Some((least, greatest));
        }
        Limits::Texts(least, greatest) if least.len().max(greatest.len()) <= LIMIT_BYTES => {
            texts = Some((ByteArray::from(least), ByteArray::from(greatest)));
        }
        Limits::None | Limits::Texts(..) => {}
    }
    macro_rules! of {
        ($limits:expr) => {{
            let (least, greatest) = $limits.unzip();
            ValueStatistics::new(least, greatest, None, Some(nulls), false)
        }};
    }
    match physical {
        Physical::INT32 => {
            Statistics::Int32(of!(integers.map(|(low, high)| (low as i32, high as i32))))
        }
        Physical::FLOAT => {
            Statistics::Float(of!(floats.map(|(low, high)| (low as f32, high as f32))))
        }
        Physical::DOUBLE => Statistics::Double(of!(floats)),
        Physical::BYTE_ARRAY => Statistics::ByteArray(of!(texts)),
        Physical::FIXED_LEN_BYTE_ARRAY => {
            Statistics::FixedLenByteArray(of!(texts.map(|(low, high)| (low.into(), high.into()))))
        }
        _ => Statistics::Int64(of!(integers)),
    }
}

/// The names of the vertices that are values of a row group, in ascending order, and their page sizes.
struct NameDictionary {
    distinct: Distinct,
    /// Bytes before and after they are compressed.
    plain: u64,
    packed: u64,
    /// The compressed bytes, where there is memory for them.
    bodies: Option<Vec<(Vec<u8>, Lease)>>,
    limits: Limits,
}

impl NameDictionary {
    /// The one of the rows of some blocks; none where the names have more bytes than a dictionary may.
    fn of(
        rows: &mut ResultRows<'_>,
        pool: &mut EncodePool,
        blocks: &[RowBlock],
        names: Option<&VertexNames>,
    ) -> Result<Option<NameDictionary>, Error> {
        let distinct = Distinct::of(rows, blocks)?;
        let (plain, mut packed) = (Cell::new(0), 0);
        let (mut bodies, mut limits) = (Some(Vec::new()), Limits::None);
        let mut next = distinct.stretches();
        let ranks = &distinct.ranks;
        let names = DictionaryNames { ranks, names };
        pool.run(
            &names,
            |task| Ok(plain.get() <= DICTIONARY_BYTES && next(task)?),
            |task| {
                let summary = std::mem::take(&mut task.summary);
                let length = task.out.len() as u64;
                plain.set(plain.get() + summary.raw_bytes);
                packed += length;
                limits.merge(summary.limits);
                let lease = || rows.budget.lease("names of vertices", length).ok();
                let lease = (rows.memory().extra >= length).then(lease).flatten();
                match (&mut bodies, lease) {
                    (Some(bodies), Some(lease)) => bodies.push((task.out.clone(), lease)),
                    _ => bodies = None,
                }
                Ok(())
            },
        )?;
        let plain = plain.get();
        Ok((plain <= DICTIONARY_BYTES).then_some(NameDictionary {
            distinct,
            plain,
            packed,
            bodies,
            limits,
        }))
    }

    /// Writes the page.
    fn put(
        &mut self,
        file: &mut FileWriter<'_>,
        chunk: &mut WrittenChunk,
        pool: &mut EncodePool,
        names: Option<&VertexNames>,
    ) -> Result<(), Error> {
        // Compressed apart, the names are one stream behind the length of all.
        let (mut start, mut header) = (Vec::new(), Vec::new());
        pages::put_number(&mut start, self.plain);
        let sizes = [self.plain, self.packed + start.len() as u64].map(|bytes| bytes as usize);
        pages::put_dictionary_header(&mut header, self.distinct.ranks.len() as u64, sizes);
        chunk.summary.raw_bytes += header.len() as u64 + self.plain;
        chunk.summary.limits = std::mem::take(&mut self.limits);
        file.put(&header)?;
        file.put(&start)?;
        match self.bodies.take() {
            Some(bodies) => {
                for (body, _) in bodies {
                    file.put(&body)?;
                }
            }
            None => {
                let ranks = &self.distinct.ranks;
                let names = DictionaryNames { ranks, names };
                let next = self.distinct.stretches();
                pool.run(&names, next, |task| Ok(file.put(&task.out)?))?;
            }
        }
        chunk.dictionary = Some(file.offset - chunk.start);
        Ok(())
    }
}
