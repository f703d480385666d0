//! What a result says in a few numbers: how many vertices have a value, the highest values, how an iteration ended.
//!
//! The values go by once, batch by batch, without ids; only the ids of the highest are looked up.

use std::sync::Arc;

use graphmill_algorithms::{NumberRow, Output, OutputValues, ResultShape};
use graphmill_engine::{Convergence, Engine};
use graphmill_graph::{DISK_PAGE_BYTES, EdgeKind, GraphDims, Order, PageCache, StoredGraph};
use graphmill_storage::{Lease, MemoryBudget};
use serde_json::{Map, Value, json};

use crate::error::{Error, check_stop};
use crate::machine::resources::Machine;
use crate::result::exact_sum::ExactSum;
use crate::result::rows::{self, EDGE_COLUMNS, are_edges, are_vertices};
use crate::result::sizes::WRITER_BYTES;
use crate::result::top_k::{TEXT_BYTES, TopK, TopRow, json_number};
use crate::result::values::{EDGE_BYTES, VALUE_BYTES, ValueColumn, element_bytes};

/// The default number of rows of a summary.
pub(crate) const TOP_ROWS: usize = 5;
/// Pages of the ranks of ids that are kept, and of ids.
const FRAMES: u64 = 2;
/// Copies of the highest rows: one in the summary, one in the printed report.
const COPIES: u64 = 2;

/// What a result says in a few numbers.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Summary {
    /// Names of the two columns of `top`, such as `vertex` and `pagerank`, or `component` and `size`.
    pub columns: [&'static str; 2],
    /// The highest values; empty where the values are vertices.
    pub top: Vec<TopRow>,
    /// Vertices that have a value, where some may have none.
    pub reached: Option<u64>,
    /// The greatest value, where some vertices may have none.
    pub greatest: Option<String>,
    /// Groups, where the values name groups: components.
    pub groups: Option<u64>,
    /// The edges, where the rows are edges.
    pub edges: Option<EdgeTotals>,
    /// The row, where the result is one row of numbers.
    pub numbers: Option<NumberRow>,
    /// How an iteration that converges ended.
    pub convergence: Option<Convergence>,
}

/// The edges of a result together.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct EdgeTotals {
    /// How many.
    pub count: u64,
    /// Their weights together, rounded once.
    pub weight: f64,
    /// The trees that they make, if they are a forest; a vertex without an edge is one.
    pub trees: Option<u64>,
}

impl Summary {
    /// Adds the number of trees, if the edges are a forest of a graph of `vertices` vertices.
    pub(crate) fn count_trees(&mut self, shape: ResultShape, vertices: u64) {
        if let (ResultShape::Forest, Some(edges)) = (shape, &mut self.edges) {
            edges.trees = vertices.checked_sub(edges.count);
        }
    }

    /// Returns the summary with the rows to show: as many as requested, else a few.
    ///
    /// If some vertices may have no value, as with distances, it shows none unless requested.
    pub(crate) fn shown(mut self, asked: usize) -> Summary {
        let usual = if self.reached.is_some() { 0 } else { TOP_ROWS };
        self.top.truncate(if asked == 0 { usual } else { asked });
        self
    }

    /// The summary as JSON: what `--json` prints, and the metrics hold.
    pub fn json(&self) -> Value {
        let mut all = Map::new();
        let mut put = |name: String, value: Value| all.insert(name, value);
        let [key, value] = self.columns;
        if let Some(groups) = self.groups {
            put(format!("{key}s"), groups.into());
        }
        if let Some(reached) = self.reached {
            put("reached".into(), reached.into());
        }
        if let Some(greatest) = &self.greatest {
            put(format!("greatest_{value}"), json_number(greatest));
        }
        if let Some(edges) = self.edges {
            put("edges".into(), edges.count.into());
            put("weight".into(), edges.weight.into());
            if let Some(trees) = edges.trees {
                put("trees".into(), trees.into());
            }
        }
        for (name, number) in self.numbers.iter().flat_map(NumberRow::columns) {
            let number = number.text();
            put(
                (*name).into(),
                number.map_or(Value::Null, |text| json_number(&text)),
            );
        }
        if let Some(convergence) = self.convergence {
            put("iterations".into(), convergence.iterations.into());
            put("residual".into(), convergence.residual.into());
            if convergence.tolerance.is_some() {
                put("tolerance_reached".into(), convergence.reached.into());
            }
        }
        if !self.top.is_empty() {
            let rows = self.top.iter();
            let rows = rows.map(|row| {
                let mut columns = json!({key: row.vertex, value: json_number(&row.value)});
                if let (Some(end), Some(columns)) = (&row.destination, columns.as_object_mut()) {
                    columns.insert("destination".into(), end.clone().into());
                }
                columns
            });
            put("top".into(), rows.collect());
        }
        Value::Object(all)
    }
}

/// Returns the bytes of the budget that a run takes after its last pass.
///
/// They are for the rows of its result if they are wanted, and for a summary with the `count` highest.
pub(crate) fn result_bytes(
    graph: &GraphDims,
    shape: ResultShape,
    wants_rows: bool,
    count: usize,
) -> u64 {
    let element = match shape {
        ResultShape::Vertices => VALUE_BYTES,
        ResultShape::Forest => EDGE_BYTES,
        ResultShape::Numbers(_) => return WRITER_BYTES,
    };
    let rows = if wants_rows {
        rows::bytes_needed(graph, element)
    } else {
        0
    };
    match count {
        0 => rows,
        _ => rows
            .max(bytes_needed(graph, element))
            .saturating_add(highest_bytes(graph, count)),
    }
}

/// Returns the bytes of the budget that the `count` highest rows take.
fn highest_bytes(graph: &GraphDims, count: usize) -> u64 {
    TopK::memory((count as u64).min(graph.batches.vertices()))
}

/// Returns the bytes of the budget that reading the values for a summary takes.
fn bytes_needed(graph: &GraphDims, element: u64) -> u64 {
    let ranks = match graph.order {
        Order::Id => 0,
        Order::Degree => size_of::<u64>() as u64,
    };
    (2 * element + ranks) * graph.batches.widest() + 2 * FRAMES * DISK_PAGE_BYTES
}

/// Reads all values of a result, or the sizes of its groups, and keeps the `count` highest.
///
/// It also returns the leases for these.
///
/// # Errors
/// The disk fails, the budget has no room for a batch, or work is to stop.
pub(crate) fn summarize(
    machine: &Machine,
    engine: &Engine,
    graph: &Arc<StoredGraph>,
    (output, sizes): (&Output, Option<&Output>),
    count: usize,
) -> Result<(Summary, Vec<Lease>), Error> {
    if let OutputValues::Numbers(row) = output.values {
        let summary = Summary {
            numbers: Some(row),
            convergence: engine.metrics().convergence,
            ..Summary::default()
        };
        return Ok((summary, Vec::new()));
    }
    let (budget, element) = (machine.budget(), element_bytes(&output.values));
    let measure = graph.measure();
    let _lease = budget.lease("a summary of the result", bytes_needed(&measure, element))?;
    let highest = budget.lease("the highest rows", highest_bytes(&measure, count))?;
    let shown = sizes.unwrap_or(output);
    let has_order = !are_vertices(shown);
    let mut top = TopK::new(if has_order { count } else { 0 });
    let mut raw = ValueColumn::empty(&shown.values);
    // Sizes are at the places of ranks already.
    let mut ranks = match graph.order() {
        Order::Degree if sizes.is_none() && !are_edges(output) => {
            Some((reader(graph, budget)?, Vec::new()))
        }
        Order::Id | Order::Degree => None,
    };
    let (is_single, mut weight) = (graph.edge_kind() == EdgeKind::F32, ExactSum::default());
    for batch in 0..graph.batches().len() {
        check_stop(machine.stop())?;
        raw.read(engine, &shown.values, batch)?;
        let mut range = graph.batches().range(batch);
        if range.end > graph.named_vertices() {
            range.end = graph.named_vertices().max(range.start);
            raw.resize((range.end - range.start) as usize);
        }
        let first = range.start;
        if let Some((reader, ranks)) = &mut ranks {
            ranks.clear();
            graph.each_rank(reader, range, |rank| ranks.push(rank))?;
        }
        let rank_of = |place: usize| match &ranks {
            Some((_, ranks)) => ranks[place],
            None => first + place as u64,
        };
        match sizes {
            Some(_) => top.sizes(&raw, rank_of),
            None if are_edges(output) => {
                top.edges(&raw, is_single);
                raw.each_weight(|edge| weight.add(edge));
            }
            None => top.values(&raw, shown.nullable, rank_of),
        }
    }
    let reached = top.reached;
    let mut reader = reader(graph, budget)?;
    let mut leases = vec![highest];
    let rows = top.into_rows().map(|([rank, other], value)| {
        let mut name = |rank| -> Result<String, Error> {
            let vertex = graph.id_of_rank(&mut reader, rank)?.to_string();
            if vertex.len() as u64 > TEXT_BYTES {
                let bytes = COPIES * vertex.len() as u64;
                leases.push(budget.lease("long ids of the highest rows", bytes)?);
            }
            Ok(vertex)
        };
        Ok(TopRow {
            vertex: name(rank)?,
            destination: are_edges(output).then(|| name(other)).transpose()?,
            value,
        })
    });
    let top: Vec<TopRow> = rows.collect::<Result<_, Error>>()?;
    let is_partial = sizes.is_none() && output.nullable && !are_edges(output);
    let greatest = top.first().map(|row| row.value.clone());
    let summary = Summary {
        columns: match sizes {
            Some(sizes) => [output.column, sizes.column],
            None if are_edges(output) => [EDGE_COLUMNS[0], EDGE_COLUMNS[2]],
            None => ["vertex", output.column],
        },
        reached: is_partial.then_some(reached),
        greatest: greatest.filter(|_| is_partial),
        groups: sizes.map(|_| reached),
        edges: are_edges(output).then(|| EdgeTotals {
            count: reached,
            weight: weight.value(),
            trees: None,
        }),
        numbers: None,
        top,
        convergence: engine.metrics().convergence,
    };
    Ok((summary, leases))
}

fn reader(graph: &Arc<StoredGraph>, budget: &MemoryBudget) -> Result<PageCache, Error> {
    Ok(PageCache::new(graph, budget, FRAMES as usize)?)
}
