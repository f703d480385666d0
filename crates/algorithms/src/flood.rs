//! One step of a flood: whoever is reached for the first time takes a mark. Breadth-first depths are marks by level; a
//! component is what one mark reaches.

use graphmill_engine::{Activate, EdgeProgram, Sum, Write};

use crate::index::Index;

/// One step, over an array that holds [`Index::NONE`] where the flood has not been; the sum is the smallest vertex that
/// this step reached.
pub(crate) struct Flood<T>(pub(crate) T);

/// The smallest of some vertices.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Smallest(pub(crate) u64);

impl Sum for Smallest {
    const ZERO: Smallest = Smallest(u64::MAX);
    #[inline(always)]
    fn add(&mut self, later: Smallest) {
        self.0 = self.0.min(later.0);
    }
}

impl<T: Index> EdgeProgram for Flood<T> {
    type SignalRows = ();
    type ApplyRows = Write<T>;
    type Edge = ();
    type Message = u8;
    type Carried = u8;
    type Accumulator = u8;
    type Sum = Smallest;
    const IDENTITY: u8 = 0;
    const EXACT: bool = true;
    const IDEMPOTENT: bool = true;
    const PULLS: bool = true;

    #[inline(always)]
    fn signal(&self, _: u64, (): ()) -> Option<u8> {
        Some(1)
    }
    #[inline(always)]
    fn along(&self, call: u8, (): ()) -> u8 {
        call
    }
    #[inline(always)]
    fn fold(&self, reached: &mut u8, call: u8) {
        *reached = call;
    }
    #[inline(always)]
    fn merge(&self, reached: &mut u8, later: u8) {
        *reached |= later;
    }
    #[inline(always)]
    fn apply(&self, v: u64, mark: &mut T, _: u8) -> (Smallest, Activate) {
        if *mark == T::NONE {
            *mark = self.0;
            (Smallest(v), Activate::Yes)
        } else {
            (Smallest::ZERO, Activate::No)
        }
    }
    #[inline(always)]
    fn wants(&self, _: u64, mark: &mut T) -> bool {
        *mark == T::NONE
    }
    #[inline(always)]
    fn enough(&self, reached: &u8) -> bool {
        *reached != 0
    }
}
