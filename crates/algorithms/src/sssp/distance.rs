//! The types of distances.

use graphmill_engine::{Accumulator, EdgeValue, Label};

/// A floating-point type that distances are kept in.
pub trait Distance: Label + Accumulator + EdgeValue {
    /// The way from a vertex to itself.
    const NOWHERE: Self;
    /// The sum.
    fn plus(self, other: Self) -> Self;
    /// The length in 64 bits.
    fn wide(self) -> f64;
}

macro_rules! length {
    ($($t:ty)*) => {$(
        impl Distance for $t {
            const NOWHERE: Self = 0.0;
            #[inline(always)]
            fn plus(self, other: Self) -> Self {
                self + other
            }
            #[inline(always)]
            fn wide(self) -> f64 {
                f64::from(self)
            }
        }
    )*};
}
length!(f32 f64);
