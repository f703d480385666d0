//! The types of distances.

use std::ops::Add;

use graphmill_engine::{Accumulator, EdgeValue, Label, Reduce};

/// A floating-point type that distances are kept in.
pub trait Distance:
    Label + Accumulator + EdgeValue + Reduce + Add<Output = Self> + Into<f64>
{
}

impl Distance for f32 {}
impl Distance for f64 {}
