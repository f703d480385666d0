//! Edges from arrays and lists of the interpreter.

use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, LargeStringArray, RecordBatch};
use graphmill::advanced::{IngestError, ReadOptions};
use graphmill::{EdgeArrays, EdgeKind, EdgeSource, IdType};
use graphmill_formats::ArrowEdges;
use numpy::{Element, PyReadonlyArray1};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::raise;
use crate::stream::OneBatch;

/// Makes edges of the arrays of their ends, and of their weights.
pub(crate) fn edges(
    py: Python<'_>,
    ends: [&Bound<'_, PyAny>; 2],
    weights: Option<&Bound<'_, PyAny>>,
    vertices: Option<u64>,
) -> PyResult<EdgeMaker> {
    let weights = weights.map(floats).transpose()?;
    let ends = match texts(ends) {
        Some(texts) => ArrayEnds::Texts(texts?),
        None => ArrayEnds::Integers([integers(ends[0])?, integers(ends[1])?]),
    };
    let (sources, targets) = match &ends {
        ArrayEnds::Integers([sources, targets]) => (sources.len(), targets.len()),
        ArrayEnds::Texts([sources, targets]) => (sources.len(), targets.len()),
    };
    if sources != targets {
        let text = format!("there are {sources} sources and {targets} targets");
        return Err(raise::usage(py, &text));
    }
    Ok(Box::new(move |options| {
        ends.edges(weights, vertices, options)
    }))
}

/// Makes a source of edges, beside the interpreter.
type EdgeMaker = Box<dyn FnOnce(&ReadOptions) -> Result<Box<dyn EdgeSource>, IngestError> + Send>;

/// The ends of edges.
enum ArrayEnds {
    Integers([IntegerIds; 2]),
    Texts([Vec<String>; 2]),
}

/// Integers, and the type of an array of them.
enum IntegerIds {
    Signed(Vec<i64>, IdType),
    Unsigned(Vec<u64>, IdType),
}

impl IntegerIds {
    fn len(&self) -> usize {
        match self {
            IntegerIds::Signed(ids, _) => ids.len(),
            IntegerIds::Unsigned(ids, _) => ids.len(),
        }
    }

    fn id_type(&self) -> IdType {
        match self {
            IntegerIds::Signed(_, id_type) | IntegerIds::Unsigned(_, id_type) => *id_type,
        }
    }

    /// The first id that a type does not have, if there is one.
    fn beyond(&self, id_type: IdType) -> Option<i128> {
        let most = i128::from(id_type.integer_max()?);
        let least = if id_type.is_signed() { -most - 1 } else { 0 };
        let is_beyond = |id: &i128| !(least..=most).contains(id);
        match self {
            IntegerIds::Signed(ids, _) => ids.iter().map(|id| i128::from(*id)).find(is_beyond),
            IntegerIds::Unsigned(ids, _) => ids.iter().map(|id| i128::from(*id)).find(is_beyond),
        }
    }

    /// The same ids without a sign, if none is negative.
    fn unsigned(self) -> IntegerIds {
        match self {
            IntegerIds::Signed(ids, _) if ids.iter().all(|id| *id >= 0) => {
                let ids = ids.into_iter().map(i64::cast_unsigned);
                IntegerIds::Unsigned(ids.collect(), IdType::UInt64)
            }
            ids => ids,
        }
    }

    /// The integers with a sign; one of 2^63 or more is an error.
    fn signed(self) -> Result<Vec<i64>, IngestError> {
        let what = "an id is 2^63 or more, and others have a sign".to_string();
        match self {
            IntegerIds::Signed(ids, _) => Ok(ids),
            IntegerIds::Unsigned(ids, _) => {
                let ids: Result<Vec<i64>, _> = ids.into_iter().map(i64::try_from).collect();
                ids.map_err(|_| IngestError::Arrays { what })
            }
        }
    }
}

impl ArrayEnds {
    fn edges(
        self,
        weights: Option<Vec<f64>>,
        vertices: Option<u64>,
        options: &ReadOptions,
    ) -> Result<Box<dyn EdgeSource>, IngestError> {
        let [sources, targets] = match self {
            ArrayEnds::Integers(ends) => ends,
            ArrayEnds::Texts(ends) => {
                let texts = ends.map(|texts| Arc::new(LargeStringArray::from(texts)) as ArrayRef);
                let names = ["source", "target"].into_iter();
                let mut columns: Vec<(&str, ArrayRef)> = names.zip(texts).collect();
                let mut options = options.clone();
                if let Some(weights) = weights {
                    columns.push(("weight", Arc::new(Float64Array::from(weights))));
                    options.weights = EdgeKind::F64;
                }
                options.vertices_below = vertices;
                let batch = RecordBatch::try_from_iter(columns);
                let batch = batch.map_err(|error| IngestError::Arrays {
                    what: error.to_string(),
                })?;
                let batches = Box::new(OneBatch::new(batch));
                return Ok(Box::new(ArrowEdges::new(batches, "the arrays", &options)?));
            }
        };
        // A list of small integers says nothing of a sign.
        let [sources, targets] = match sources
            .beyond(IdType::Int64)
            .or(targets.beyond(IdType::Int64))
        {
            Some(_) => [sources.unsigned(), targets.unsigned()],
            None => [sources, targets],
        };
        let id_type = sources.id_type().join(targets.id_type());
        let id_type = options.id_type.unwrap_or(id_type);
        if id_type == IdType::Uuid {
            let what = "integers are no UUIDs: give texts".to_string();
            return Err(IngestError::Arrays { what });
        }
        if let Some(id) = sources.beyond(id_type).or(targets.beyond(id_type)) {
            let what = format!("the id {id} is no {}", id_type.name());
            return Err(IngestError::Arrays { what });
        }
        let edges = match (sources, targets) {
            (IntegerIds::Unsigned(sources, _), IntegerIds::Unsigned(targets, _)) => {
                let edges = sources.into_iter().zip(targets).collect();
                EdgeArrays::unsigned(edges, weights, vertices)?
            }
            (sources, targets) => {
                let edges = sources.signed()?.into_iter().zip(targets.signed()?);
                EdgeArrays::new(edges.collect(), weights, vertices)?
            }
        };
        Ok(Box::new(edges.with_type(id_type)))
    }
}

/// The ends as texts; `None` if the first of them is no text.
fn texts(ends: [&Bound<'_, PyAny>; 2]) -> Option<PyResult<[Vec<String>; 2]>> {
    if !ends[0].get_item(0).ok()?.is_instance_of::<PyString>() {
        return None;
    }
    let texts = || Ok([ends[0].extract()?, ends[1].extract()?]);
    Some(texts())
}

/// Integers of an array or of any sequence.
fn integers(values: &Bound<'_, PyAny>) -> PyResult<IntegerIds> {
    fn array<T: Element + Copy + Into<N>, N>(values: &Bound<'_, PyAny>) -> Option<Vec<N>> {
        let array: PyReadonlyArray1<'_, T> = values.extract().ok()?;
        Some(
            array
                .as_array()
                .iter()
                .map(|value| (*value).into())
                .collect(),
        )
    }
    use IntegerIds::{Signed, Unsigned};
    if is_array(values) {
        let found = (array::<i64, i64>(values).map(|ids| Signed(ids, IdType::Int64)))
            .or_else(|| Some(Signed(array::<i32, i64>(values)?, IdType::Int32)))
            .or_else(|| Some(Signed(array::<i16, i64>(values)?, IdType::Int32)))
            .or_else(|| Some(Signed(array::<i8, i64>(values)?, IdType::Int32)))
            .or_else(|| Some(Unsigned(array::<u64, u64>(values)?, IdType::UInt64)))
            .or_else(|| Some(Unsigned(array::<u32, u64>(values)?, IdType::UInt32)))
            .or_else(|| Some(Unsigned(array::<u16, u64>(values)?, IdType::UInt32)))
            .or_else(|| Some(Unsigned(array::<u8, u64>(values)?, IdType::UInt32)));
        if let Some(found) = found {
            return Ok(found);
        }
    }
    if let Ok(ids) = values.extract::<Vec<i64>>() {
        return Ok(Signed(ids, IdType::Int64));
    }
    let ids = values.extract::<Vec<u64>>().map_err(|_| {
        PyTypeError::new_err(
            "the ends of edges are integers of at most 64 bits, or all of them texts",
        )
    })?;
    Ok(Unsigned(ids, IdType::UInt64))
}

/// True for an array of NumPy, which is there then; without it, looking for one panics.
fn is_array(values: &Bound<'_, PyAny>) -> bool {
    let module = values.get_type().module();
    module.is_ok_and(|module| module.to_string_lossy() == "numpy")
}

/// Floats of an array or of any sequence.
fn floats(values: &Bound<'_, PyAny>) -> PyResult<Vec<f64>> {
    if is_array(values)
        && let Ok(array) = values.extract::<PyReadonlyArray1<'_, f64>>()
    {
        return Ok(array.as_array().iter().copied().collect());
    }
    values.extract()
}
