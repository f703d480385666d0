//! Vectors of the user in the place of equal chances. Each is divided by its sum, so it need not add up to 1.

use graphmill_engine::{Engine, EngineError, VertexArray};

/// A value of 0 or more for each vertex, and the sum of all, which is above 0.
#[derive(Debug, Clone, Copy)]
pub struct Shares {
    /// The values.
    pub values: VertexArray<f64>,
    /// Their sum.
    pub sum: f64,
}

/// The vectors of a run.
#[derive(Debug, Clone, Copy, Default)]
pub struct Vectors {
    /// Where jumps lead; `None`: to any vertex with equal chance.
    pub jumps: Option<Shares>,
    /// Where the score of vertices without outgoing arcs goes; `None`: where jumps lead.
    pub returns: Option<Shares>,
    /// The first scores; `None`: the chances of a jump.
    pub start: Option<Shares>,
    /// True if the first scores are equal.
    pub starts_equal: bool,
}

impl Vectors {
    /// True if vertices differ in the chances of passes.
    pub(super) fn in_passes(&self) -> bool {
        self.jumps.is_some() || self.returns.is_some()
    }
}

/// Adds up the values of a vector; `None` if one is negative, or if they add up to 0 or to no number.
///
/// # Errors
/// Errors of the engine.
pub fn shares(
    engine: &mut Engine,
    values: VertexArray<f64>,
) -> Result<Option<Shares>, EngineError> {
    let (sum, [wrong]) = engine.process_vertices(values.read(), None, |_, value| {
        (*value, [u64::from(!(*value >= 0.0 && value.is_finite()))])
    })?;
    Ok((wrong == 0 && sum > 0.0 && f64::is_finite(sum)).then_some(Shares { values, sum }))
}
