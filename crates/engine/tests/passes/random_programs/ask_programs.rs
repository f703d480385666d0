//! Random ask programs.

use graphmill_engine::{Activate, AskProgram, Read, Write};

use crate::random_programs::edge_programs::activate_if;
use crate::random_programs::mix;

/// Three vertices in four ask a vertex that their row and the seed choose.
pub(crate) struct Questions {
    pub(crate) seed: u64,
    pub(crate) vertices: u64,
}

impl AskProgram for Questions {
    type AskRows = Read<u64>;
    type AnswerRows = (Read<u64>, Read<u32>);
    type TakeRows = (Write<u64>, Write<u32>);
    type Answer = [u64; 2];
    type Sum = u64;

    fn ask(&self, v: u64, a: &u64) -> Option<u64> {
        let drawn = mix(self.seed ^ v ^ a);
        (!drawn.is_multiple_of(4)).then(|| mix(drawn) % self.vertices)
    }
    fn answer(&self, v: u64, (a, b): (&u64, &u32)) -> [u64; 2] {
        [mix(a ^ v), u64::from(*b) ^ self.seed]
    }
    fn take(
        &self,
        v: u64,
        (a, b): (&mut u64, &mut u32),
        [first, second]: [u64; 2],
    ) -> (u64, Activate) {
        *a = a.wrapping_mul(3).wrapping_add(first);
        *b ^= second as u32;
        (*a ^ v, activate_if(a.is_multiple_of(2)))
    }
}
