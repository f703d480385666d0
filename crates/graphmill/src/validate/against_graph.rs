//! Is a result right for its graph? By the checker of its algorithm, serially and in memory, without a reference.
//!
//! Steps of [`Plan::check_result`]: 1. graph and options, as for a run; 2. memory for the checker is leased, or refused with how much would do;
//! 3. the rows of the result, ids turned into their ranks; 4. the arcs, by rank too; 5. the verdict, ranks turned back into ids. Rows that do not fit
//! the graph are differences, and then the checker is not asked.

use std::path::Path;
use std::sync::Arc;

use graphmill_algorithms::check::{Violation, ViolationValue};
use graphmill_algorithms::{ResultChecker, ResultShape, ResultType, ResultValue};
use graphmill_engine::EngineError;
use graphmill_graph::{EdgeKind, Order, PageCache, StoredGraph};
use graphmill_storage::{CancelToken, Lease, MemoryBudget};

use crate::algorithms;
use crate::arc_reader::ArcReader;
use crate::error::{Error, check_stop};
use crate::machine::resources::Machine;
use crate::open::OpenFor;
use crate::plan::Plan;
use crate::progress::ProgressFn;
use crate::validate::id_lookup::IdLookup;
use crate::validate::verdict::{DESCRIBED_MAX, RowKind, Verdict};
use crate::validate_error::ValidateError;
use crate::vertex_file::open::{open, unsorted};
use crate::vertex_file::text::{ResultRow, RowId, Value, ValueReading};

/// Bytes for reading the result: a chunk of its file, or pages of a Parquet file that `run` wrote.
const FILE_BYTES: u64 = 6 << 20;
/// Pages of ranks that are read ahead, in place of pages of the file.
const FRAMES: usize = 8;
/// Bytes of the budget that must be free in addition to the checker's.
const READING_BYTES: u64 = ArcReader::BYTES + IdLookup::BYTES + FILE_BYTES;

impl Plan {
    /// Checks whether `result`, a file that [`run`](Plan::run) writes, is right for the plan's graph.
    ///
    /// The algorithm's checker finds out by a method of its own, on one thread and in memory. It leases all memory first: 16 bytes an arc (24
    /// with weights); the checker's own, from 0 (wcc) to 32 (cdlp) and 92 (bp); and 17 (wcc) to 81 (bfs) bytes a vertex. Sums may differ by
    /// rounding, all else must be equal.
    ///
    /// # Errors
    /// Graph, result, disk, memory or options are not what they should be; see [`Error`]. Differences are no errors: they are in the
    /// [`Verdict`].
    pub fn check_result(
        &self,
        result: &Path,
        stop: &CancelToken,
        watcher: &ProgressFn,
    ) -> Result<Verdict, Error> {
        let machine = Machine::open(&self.machine(), stop.clone())?;
        // Before edges are imported for nothing.
        drop(open(&machine, result, ValueReading::Words, false)?);
        self.check_vertex_files(&machine)?;
        let (graph, settings, _hold) =
            self.open_and_resolve(&machine, OpenFor::Inspect, watcher)?;
        let mut settings = algorithms::by_rank(settings, &graph, machine.budget())?;
        let _lists = self.list_vertex_options(&machine, &graph, &mut settings)?;
        let is_weighted = self.entry.is_weighted(&settings);
        let mut checker = (self.entry.checker)(&graph, &settings)?;
        let _lease = lease(machine.budget(), &graph, &*checker)?;
        checker.open();

        let leave = ArcReader::BYTES + FILE_BYTES;
        let mut names = IdLookup::new(&graph, machine.budget(), leave)?;
        let columns = match self.entry.shape {
            ResultShape::Numbers(columns) => columns,
            ResultShape::Vertices | ResultShape::Forest => &[],
        };
        let mut verdict = rows(&machine, result, &graph, columns, &mut *checker, &mut names)?;
        if !verdict.is_same() {
            return Ok(verdict);
        }
        let ranks = ranks(&graph, machine.budget())?;
        let rank = |v: u64| ranks.get(v as usize).copied().unwrap_or(v);
        let mut arcs = ArcReader::new(&graph, machine.budget(), is_weighted)?;
        arcs.each(stop, |source, destination, weight| {
            checker.arc(rank(source), rank(destination), weight);
        })?;
        if let Err(objection) = checker.verdict() {
            let text = told(objection, &mut names)?;
            verdict.differs(|| text);
            verdict.may_be_more = true;
        }
        check_stop(stop)?;
        Ok(verdict)
    }
}

/// Leases memory for the checker and for which vertices have a row.
///
/// The memory for reading must be free in addition.
fn lease(
    budget: &MemoryBudget,
    graph: &StoredGraph,
    checker: &dyn ResultChecker,
) -> Result<Lease, Error> {
    // Whether a vertex has a row, and its rank where that is not its index.
    let each = match graph.order() {
        Order::Id => 1,
        Order::Degree => 1 + size_of::<u64>() as u64,
    };
    let lists = graph.named_vertices().saturating_mul(each);
    let bytes = checker.bytes().saturating_add(lists);
    let needed = bytes.saturating_add(READING_BYTES);
    if needed > budget.available() {
        let used = budget.total() - budget.available();
        return Err(Error::Engine(EngineError::TooSmall {
            what: "checking a result in memory",
            least: used.saturating_add(needed),
            budget: budget.total(),
        }));
    }
    Ok(budget.lease("the checker's lists", bytes)?)
}

/// Returns the ranks of all vertices by index; empty if indices are ranks.
///
/// The caller has leased the bytes.
fn ranks(graph: &Arc<StoredGraph>, budget: &MemoryBudget) -> Result<Vec<u64>, Error> {
    let mut ranks = Vec::new();
    if graph.order() == Order::Degree {
        let mut reader = PageCache::new(graph, budget, FRAMES)?;
        ranks.reserve_exact(graph.vertices() as usize);
        graph.each_rank(&mut reader, 0..graph.vertices(), |rank| ranks.push(rank))?;
    }
    Ok(ranks)
}

/// Hands the values of the result to the checker; what does not fit the graph is a difference.
fn rows(
    machine: &Machine,
    result: &Path,
    graph: &Arc<StoredGraph>,
    columns: &[&str],
    checker: &mut dyn ResultChecker,
    names: &mut IdLookup,
) -> Result<Verdict, Error> {
    let vertices = graph.named_vertices();
    let mut verdict = Verdict {
        vertices,
        ..Verdict::default()
    };
    match checker.takes() {
        ResultType::Edges => return edges(machine, result, graph, checker, names),
        ResultType::Numbers => return numbers(machine, result, columns, checker),
        _ => {}
    }
    let mut has_row = vec![false; vertices as usize];
    for row in open(machine, result, ValueReading::Words, false)? {
        let ResultRow { id, value, .. } = row.map_err(unsorted)?;
        let place = names.rank_of(&id)?;
        let row = place.and_then(|vertex| Some((vertex, has_row.get_mut(vertex as usize)?)));
        let Some((vertex, has_row)) = row else {
            verdict.unexpected += 1;
            verdict.differs(|| format!("{} has {value}, but is not in the graph", id.named()));
            continue;
        };
        if std::mem::replace(has_row, true) {
            let (path, row) = (result.to_path_buf(), id.named());
            return Err(ValidateError::Twice { path, row }.into());
        }
        let is_taken = match checker.takes() {
            ResultType::Vertices => names_vertex(vertex, &value, checker, names)?,
            takes => number(takes, &value).is_some_and(|number| checker.value(vertex, number)),
        };
        if !is_taken {
            let expected = match checker.takes() {
                ResultType::Integers => "a whole number",
                ResultType::Singles | ResultType::Doubles => "a number",
                ResultType::Vertices => "a vertex of the graph",
                ResultType::Edges | ResultType::Numbers => "a row of another kind",
            };
            verdict.differs(|| format!("vertex {id} has {value}, expected {expected}"));
        }
    }
    for (vertex, _) in (0..vertices).zip(&has_row).filter(|row| !row.1) {
        verdict.missing += 1;
        let mut text = String::new();
        if verdict.described.len() < DESCRIBED_MAX {
            text = format!("vertex {} is missing", names.id_of(vertex)?);
        }
        verdict.differs(|| text);
    }
    Ok(verdict)
}

/// Hands the edges of the result to the checker; what does not fit the graph is a difference.
fn edges(
    machine: &Machine,
    result: &Path,
    graph: &StoredGraph,
    checker: &mut dyn ResultChecker,
    names: &mut IdLookup,
) -> Result<Verdict, Error> {
    let mut verdict = Verdict {
        rows: RowKind::Edges,
        ..Verdict::default()
    };
    // A weight is read as the graph keeps it.
    let takes = match graph.edge_kind() {
        EdgeKind::F32 => ResultType::Singles,
        _ => ResultType::Doubles,
    };
    for row in open(machine, result, ValueReading::Words, false)? {
        let ResultRow { id, value, .. } = row.map_err(unsorted)?;
        let RowId::Edge(ends) = &id else {
            verdict.unexpected += 1;
            verdict.differs(|| format!("{} has {value}, expected an edge", id.named()));
            continue;
        };
        verdict.vertices += 1;
        let source = names.rank_of(&ends[0])?;
        let Some((source, destination)) = source.zip(names.rank_of(&ends[1])?) else {
            verdict.unexpected += 1;
            verdict.differs(|| {
                format!(
                    "{} is between vertices that are not in the graph",
                    id.named()
                )
            });
            continue;
        };
        let weight = match number(takes, &value) {
            Some(ResultValue::Float(weight)) => weight,
            Some(ResultValue::Integer(weight)) => weight as f64,
            Some(ResultValue::Nothing) => f64::INFINITY,
            None => f64::NAN,
        };
        if !checker.edge(source, destination, weight) {
            verdict.unexpected += 1;
            verdict.differs(|| format!("{} is one more than there can be", id.named()));
        }
    }
    Ok(verdict)
}

/// Hands the row of numbers to the checker.
fn numbers(
    machine: &Machine,
    result: &Path,
    columns: &[&str],
    checker: &mut dyn ResultChecker,
) -> Result<Verdict, Error> {
    let mut verdict = Verdict {
        rows: RowKind::Columns,
        vertices: columns.len() as u64,
        ..Verdict::default()
    };
    let mut has_number = vec![false; columns.len()];
    for row in open(machine, result, ValueReading::Words, false)? {
        let ResultRow { id, value, .. } = row.map_err(unsorted)?;
        let place = match &id {
            RowId::Column(name) => columns.iter().position(|column| *column == &**name),
            _ => None,
        };
        let Some(place) = place else {
            verdict.unexpected += 1;
            verdict.differs(|| format!("{} has {value}, expected a row of numbers", id.named()));
            continue;
        };
        if std::mem::replace(&mut has_number[place], true) {
            let (path, row) = (result.to_path_buf(), id.named());
            return Err(ValidateError::Twice { path, row }.into());
        }
        let number = number(ResultType::Doubles, &value);
        if !number.is_some_and(|number| checker.number(place, number)) {
            verdict.differs(|| format!("{} has {value}, expected a number", id.named()));
        }
    }
    for (column, _) in columns.iter().zip(&has_number).filter(|column| !column.1) {
        verdict.missing += 1;
        verdict.differs(|| format!("column {column} is missing"));
    }
    Ok(verdict)
}

/// Hands over the vertex that a value names, or that there is none.
fn names_vertex(
    vertex: u64,
    value: &Value,
    checker: &mut dyn ResultChecker,
    names: &mut IdLookup,
) -> Result<bool, Error> {
    let id = match value {
        Value::Unreached => return Ok(checker.value(vertex, ResultValue::Nothing)),
        Value::Integer(id) => RowId::Integer(*id),
        Value::Text(text) => RowId::parse(text),
        Value::Infinity | Value::LongMax | Value::Float(_) => return Ok(false),
    };
    if let Some(named) = names.rank_of_value(id)? {
        return Ok(checker.value(vertex, ResultValue::Integer(named)));
    }
    // Where no vertex has that name, others say so that there is none.
    let says_none = matches!(value, Value::Text(text) if &**text == b"inf");
    Ok(says_none && checker.value(vertex, ResultValue::Nothing))
}

/// A value as a number, or as none; nothing when it is neither.
fn number(takes: ResultType, value: &Value) -> Option<ResultValue> {
    let parsed = match value {
        Value::Text(text) => Value::parse(text),
        value => value.clone(),
    };
    match (parsed, value) {
        (Value::Unreached | Value::Infinity | Value::LongMax, _) => Some(ResultValue::Nothing),
        (Value::Integer(number), _) => Some(ResultValue::Integer(number)),
        // Rounded once: by way of 64 bits it would be rounded twice.
        (Value::Float(_), Value::Text(text)) if takes == ResultType::Singles => {
            let number: f32 = str::from_utf8(text).ok()?.parse().ok()?;
            Some(ResultValue::Float(number.into()))
        }
        (Value::Float(bits), _) => Some(ResultValue::Float(f64::from_bits(bits))),
        (Value::Text(_), _) => None,
    }
}

/// An objection with the user's ids.
fn told(objection: Violation, names: &mut IdLookup) -> Result<String, Error> {
    if let Violation::Edge { ends, weight, rule } = objection {
        let (source, destination) = (names.id_of(ends[0])?, names.id_of(ends[1])?);
        return Ok(format!(
            "edge {source} - {destination} of weight {weight}: expected {rule}"
        ));
    }
    let Violation::Vertex {
        vertex,
        found,
        expected,
        rule,
    } = objection
    else {
        return Ok(objection.to_string());
    };
    let mut text = |held: ViolationValue| match held {
        ViolationValue::Vertex(vertex) => Ok(names.id_of(vertex)?.to_string()),
        held => Ok::<_, Error>(held.to_string()),
    };
    let (found, expected) = (text(found)?, text(expected)?);
    let id = names.id_of(vertex)?;
    let text = format!("vertex {id} has {found}, expected {expected}: {rule}");
    Ok(text)
}
