//! From the rows of a file to a vertex array and to a set of vertices.
//!
//! Rows are read until a part of the budget is full. They are sorted by id, so that each page of the graph's ids is read once for them, and
//! then by index, so that each page of the array is written once. If the ids of a file ascend, each page is read once in all.

use std::any::type_name;
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;

use graphmill_algorithms::OptionKind;
use graphmill_engine::{ActiveSet, Element, VertexArray, job};
use graphmill_graph::{PageCache, StoredGraph, VertexId};
use graphmill_storage::Lease;

use crate::error::Error;
use crate::machine::resources::Machine;
use crate::session::Session;
use crate::vertex_file::open::{open, unsorted};
use crate::vertex_file::text::{ResultRow, RowId, RowIter, Value, ValueReading};
use crate::vertex_ids;

/// Pages of ids that are kept.
const PAGES: usize = 8;
/// Bytes of rows that are in memory at a time, at least and at most.
const ROWS_BYTES: [u64; 2] = [1 << 18, 1 << 28];

/// Sets the rows of `array` for which the file has a value, and returns the set of their vertices.
///
/// A row without a value (empty, null, or `inf` where the array has integers) leaves its vertex as it is.
///
/// # Errors
/// The file cannot be read; an id is of no vertex or comes twice; a value is no `T`; disk or budget failed.
pub(crate) fn fill<T: Element + FromStr>(
    session: &mut Session,
    path: &Path,
    array: VertexArray<T>,
) -> Result<ActiveSet, Error> {
    let value_of = |value: &Value| {
        let text = match value {
            Value::Unreached => return Ok(None),
            value => value.to_string(),
        };
        let text = text.trim();
        match text.parse() {
            Ok(value) => Ok(Some(value)),
            Err(_) if text == "inf" => Ok(None),
            Err(_) => Err(format!("its value {text:?} is no {}", type_name::<T>())),
        }
    };
    vertices(session, path, ValueReading::Words, Some(array), value_of)
}

/// Sets the rows of `vector` for which the file has a value of that kind.
///
/// # Errors
/// As for [`fill`].
pub(crate) fn vector(
    session: &mut Session,
    path: &Path,
    kind: OptionKind,
    vector: VertexArray<f64>,
) -> Result<(), Error> {
    let value_of = |value: &Value| number(kind, value);
    vertices(session, path, ValueReading::Words, Some(vector), value_of).map(drop)
}

/// Returns a value as a finite number, or as a probability; `None` if there is none.
///
/// # Errors
/// The reason why it is none.
pub(crate) fn number(kind: OptionKind, value: &Value) -> Result<Option<f64>, String> {
    if *value == Value::Unreached {
        return Ok(None);
    }
    let (range, what) = match kind {
        OptionKind::VertexProbabilities => (0.0..=1.0, "probability from 0 to 1"),
        _ => (f64::MIN..=f64::MAX, "finite number"),
    };
    let text = value.to_string();
    let number = text.trim().parse().ok();
    let number = number.filter(|number| range.contains(number));
    let number = number.ok_or_else(|| format!("its value {text:?} is no {what}"))?;
    Ok(Some(number))
}

/// Sets the rows of the vertices to 1 that a file names in its first column.
///
/// # Errors
/// As for [`fill`].
pub(crate) fn members(
    session: &mut Session,
    path: &Path,
    set: VertexArray<u8>,
) -> Result<(), Error> {
    vertices(session, path, ValueReading::Ids, Some(set), |_| Ok(Some(1))).map(drop)
}

/// Returns the set of the vertices that a file names in its first column.
///
/// # Errors
/// As for [`fill`].
pub(crate) fn set(session: &mut Session, path: &Path) -> Result<ActiveSet, Error> {
    let value_of = |_: &Value| Ok(Some(0_u8));
    vertices(session, path, ValueReading::Ids, None, value_of)
}

/// Sets rows of an array, if there is one, and returns the vertices whose rows have a value.
fn vertices<T: Element>(
    session: &mut Session,
    path: &Path,
    reading: ValueReading,
    array: Option<VertexArray<T>>,
    value_of: impl Fn(&Value) -> Result<Option<T>, String>,
) -> Result<ActiveSet, Error> {
    let (machine, graph) = (&session.machine, &session.graph);
    let mut file = None;
    // Passes retain what memory they get: here it is for rows.
    job::release(&mut session.engine);
    job::fill(&mut session.engine, array, |filled, chunk| {
        // A resumed run does not open the file.
        let file = match &mut file {
            Some(file) => file,
            None => file.insert(FileRows::open(machine, graph, path, reading)?),
        };
        file.chunk(&value_of, |index| job::is_filled(filled, index), chunk)
    })
}

/// A row in memory: its id, its line and its number in the file, and its value.
type NumberedRow<T> = (VertexId, (u64, u64), T);

/// The rows of a file that are read.
struct FileRows<'f> {
    graph: Arc<StoredGraph>,
    reader: PageCache,
    path: &'f Path,
    rows: RowIter,
    /// Rows read so far.
    count: u64,
    /// Bytes of the rows of a chunk.
    bytes_max: u64,
    _lease: Lease,
}

impl<'f> FileRows<'f> {
    fn open(
        machine: &Machine,
        graph: &Arc<StoredGraph>,
        path: &'f Path,
        reading: ValueReading,
    ) -> Result<FileRows<'f>, Error> {
        let budget = machine.budget();
        let mut reader = PageCache::new(graph, budget, PAGES)?;
        // A line that starts with `vertex` and a tab is a header, unless it is a row of that vertex.
        let any_column = vertex_ids::index_of(graph, &mut reader, "vertex".into())?.is_none();
        let rows = open(machine, path, reading, any_column).map_err(unsorted)?;
        let bytes_max = (budget.available() / 4).clamp(ROWS_BYTES[0], ROWS_BYTES[1]);
        Ok(FileRows {
            graph: Arc::clone(graph),
            reader,
            path,
            rows,
            count: 0,
            bytes_max,
            _lease: budget.lease("the rows of a file of values", bytes_max)?,
        })
    }

    /// Puts the next rows into `chunk`, in ascending order of index; returns false with the last.
    fn chunk<T: Copy>(
        &mut self,
        value_of: impl Fn(&Value) -> Result<Option<T>, String>,
        is_filled: impl Fn(u64) -> bool,
        chunk: &mut Vec<(u64, T)>,
    ) -> Result<bool, Error> {
        let (mut rows, is_more) = self.read(value_of)?;
        rows.sort_unstable_by(|a, b| a.0.cmp(&b.0).then(a.1.cmp(&b.1)));
        chunk.reserve_exact(rows.len());
        let mut last: Option<&VertexId> = None;
        for (id, place, value) in &rows {
            let index = self.graph.index_of(&mut self.reader, id)?;
            let index = index.ok_or_else(|| wrong_row(self.path, *place, no_vertex(id)))?;
            if last == Some(id) || is_filled(index) {
                let what = format!("vertex {id} has a row before");
                return Err(wrong_row(self.path, *place, what));
            }
            last = Some(id);
            chunk.push((index, *value));
        }
        chunk.sort_unstable_by_key(|row| row.0);
        Ok(is_more)
    }

    /// Reads rows until their memory is full; returns whether there may be more.
    fn read<T>(
        &mut self,
        value_of: impl Fn(&Value) -> Result<Option<T>, String>,
    ) -> Result<(Vec<NumberedRow<T>>, bool), Error> {
        let each = size_of::<NumberedRow<T>>() + size_of::<(u64, T)>();
        // Half for rows of fixed size, half for the text of ids.
        let most = (self.bytes_max / 2) as usize / each;
        let mut rows = Vec::with_capacity(most);
        let mut text = self.bytes_max / 2;
        while rows.len() < most && text > 0 {
            let Some(row) = self.rows.next() else {
                return Ok((rows, false));
            };
            let ResultRow { id, value, line } = row.map_err(unsorted)?;
            self.count += 1;
            let place = (line, self.count);
            text = text.saturating_sub(id.text_bytes());
            let value = value_of(&value).map_err(|what| wrong_row(self.path, place, what))?;
            let id = match id {
                RowId::Integer(id) => VertexId::Integer(id),
                RowId::Text(id) => VertexId::Text(id.into_vec()),
                RowId::Edge(_) | RowId::Column(_) => {
                    let what = format!("it is a row of {}, not of a vertex", id.named());
                    return Err(wrong_row(self.path, place, what));
                }
            };
            let Some(value) = value else { continue };
            let known = vertex_ids::of_kind(self.graph.id_kind(), id.clone());
            let known = known.ok_or_else(|| wrong_row(self.path, place, no_vertex(&id)))?;
            rows.push((known, place, value));
        }
        Ok((rows, true))
    }
}

/// The error of a row of a file, which has no line (0) if the file is no text.
pub(crate) fn wrong_row(path: &Path, (line, row): (u64, u64), what: String) -> Error {
    Error::VertexFile {
        path: path.to_path_buf(),
        place: match line {
            0 => format!("row {row}"),
            line => format!("line {line}"),
        },
        what,
    }
}

fn no_vertex(id: &VertexId) -> String {
    format!("the graph has no vertex {id}")
}
