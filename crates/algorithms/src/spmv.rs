//! Sparse matrix by vector: each vertex adds up the values at the other ends of its arcs, times the weights.

pub mod check;
pub(crate) mod entry;

use graphmill_engine::{
    Activate, ApplyTo, Direction, EdgeProgram, Engine, EngineError, ProgramFootprint, Read,
    VertexArray, Write,
};

/// Multiplies the matrix of the graph by a vector, in one pass.
///
/// The matrix has the weight of an arc in the row of its source and the column of its destination; parallel arcs add up. So a vertex gets the
/// sum over the arcs that leave it or, if the matrix is transposed, over those that enter it.
///
/// # Errors
/// Errors of the engine.
pub fn run(
    engine: &mut Engine,
    vector: VertexArray<f64>,
    is_transposed: bool,
) -> Result<VertexArray<f64>, EngineError> {
    let product = engine.vertex_array::<f64>("value")?;
    let everyone = engine.full_set()?;
    let direction = match is_transposed {
        true => Direction::Forward,
        false => Direction::Backward,
    };
    let (from, to) = (vector.read(), product.write());
    engine.process_edges(&Multiply, from, to, &everyone, direction)?;
    Ok(product)
}

/// Returns a vector of ones.
///
/// # Errors
/// Errors of the engine.
pub fn ones(engine: &mut Engine) -> Result<VertexArray<f64>, EngineError> {
    let vector = engine.vertex_array::<f64>("ones")?;
    engine.process_vertices(vector.write(), None, |_, value| *value = 1.0)?;
    Ok(vector)
}

/// Returns the bytes that the pass holds for each vertex.
pub(crate) fn sizes(is_transposed: bool) -> ProgramFootprint {
    ProgramFootprint::of::<Multiply>()
        .with_arrays(2 * size_of::<f64>())
        .going_against(!is_transposed)
}

/// Adds up products of weights and values.
struct Multiply;

impl EdgeProgram for Multiply {
    type SignalRows = Read<f64>;
    type ApplyRows = Write<f64>;
    type Edge = f64;
    type Message = f64;
    type EdgeMessage = f64;
    type Accumulator = f64;
    type Sum = ();
    const IDENTITY: f64 = -0.0;
    const APPLY_TO: ApplyTo = ApplyTo::All;

    /// A value of 0 adds nothing.
    #[inline(always)]
    fn signal(&self, _: u64, value: &f64) -> Option<f64> {
        (*value != 0.0).then_some(*value)
    }
    #[inline(always)]
    fn on_edge(&self, value: f64, weight: f64) -> f64 {
        value * weight
    }
    #[inline(always)]
    fn fold(&self, sum: &mut f64, product: f64) {
        *sum += product;
    }
    #[inline(always)]
    fn merge(&self, sum: &mut f64, later: f64) {
        *sum += later;
    }
    #[inline(always)]
    fn apply(&self, _: u64, product: &mut f64, sum: f64) -> ((), Activate) {
        // The sum of nothing is a plain 0.
        *product = sum + 0.0;
        ((), Activate::No)
    }
}
