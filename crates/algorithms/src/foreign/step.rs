//! One pass of a foreign program.

use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::Arc;

use graphmill_engine::{Activate, ApplyTo, ColumnsRow, EdgeProgram, ReadColumns, WriteColumns};

use super::combine::{ForeignCombine, number, order};
use crate::foreign_program::{
    COLUMNS_BEGIN, ForeignCalls, ForeignFold, ForeignProgram, ForeignType, SUMS, VERTEX_WORDS,
};

/// Places of a `vertex` record.
const ORDINAL: usize = 0;
const DEGREE: usize = 1;
const ACTIVE: usize = 2;
const SUMMANDS: usize = 3;
/// Places of `shared`.
const PASS: usize = 2;
const SENDING: usize = 3;

/// What passes sum up.
pub(super) type Sums = [f64; 4];

/// One pass of a program.
pub(crate) struct ForeignStep<F> {
    calls: ForeignCalls,
    fold: PhantomData<fn() -> F>,
}

/// The words of a vertex, for one call.
struct Record([u64; VERTEX_WORDS]);

impl Record {
    #[inline(always)]
    fn new<C>(row: &ColumnsRow<'_, C>, value: impl Fn(&C) -> u64) -> Record {
        let mut words = [0; VERTEX_WORDS];
        (words[ORDINAL], words[DEGREE]) = (row.ordinal, row.out_degree);
        for (word, of) in words[COLUMNS_BEGIN..].iter_mut().zip(row.values()) {
            *word = value(of);
        }
        Record(words)
    }

    /// Keeps the columns; returns the summands, and whether the vertex sends in the next pass.
    #[inline(always)]
    fn end(self, row: &ColumnsRow<'_, Cell<u64>>, sums: usize) -> (Sums, bool) {
        for (value, word) in row.values().zip(&self.0[COLUMNS_BEGIN..]) {
            value.set(*word);
        }
        // One by one: a load of several words would wait for the stores of the call.
        let mut summands = [0.0; 4];
        for (summand, word) in summands.iter_mut().zip(&self.0[SUMMANDS..]).take(sums) {
            *summand = f64::from_bits(*word);
        }
        (summands, self.0[ACTIVE] != 0)
    }
}

impl<F: ForeignCombine> ForeignStep<F> {
    pub(super) fn new(program: &Arc<ForeignProgram>, shared: Vec<u64>) -> ForeignStep<F> {
        ForeignStep {
            calls: ForeignCalls {
                program: Arc::clone(program),
                shared,
            },
            fold: PhantomData,
        }
    }

    /// Sets the columns of a vertex before the first pass; returns its summands, and whether it sends.
    pub(super) fn begin(&self, row: ColumnsRow<'_, Cell<u64>>) -> (Sums, bool) {
        let mut record = Record::new(&row, Cell::get);
        let ForeignCalls { program, shared } = &self.calls;
        program.functions.begin(shared, &mut record.0);
        record.end(&row, program.sums)
    }

    /// Begins a pass; returns false if the program wants no more.
    pub(super) fn before(&mut self, pass: u64, sending: u64, sums: Sums) -> bool {
        let ForeignCalls { program, shared } = &mut self.calls;
        (shared[PASS], shared[SENDING]) = (pass, sending);
        for (word, sum) in shared[SUMS..].iter_mut().zip(sums) {
            *word = sum.to_bits();
        }
        program.functions.before(shared)
    }

    /// The kind of messages, and whether the greatest of them counts, if the least or greatest does.
    #[inline(always)]
    fn ordered(&self) -> Option<(ForeignType, bool)> {
        let program = &self.calls.program;
        match program.fold {
            ForeignFold::Least => Some((program.message, false)),
            ForeignFold::Greatest => Some((program.message, true)),
            ForeignFold::Sum | ForeignFold::Own(_) => None,
        }
    }
}

/// The accumulator of a vertex that no message has reached, as the program sees it.
fn nothing(kind: ForeignType, is_greatest: bool) -> u64 {
    let infinity = if is_greatest {
        f64::NEG_INFINITY
    } else {
        f64::INFINITY
    };
    let integer = if is_greatest { i64::MIN } else { i64::MAX };
    match kind {
        ForeignType::Float => infinity.to_bits(),
        ForeignType::Integer | ForeignType::Vertex => integer.cast_unsigned(),
    }
}

impl<F: ForeignCombine> EdgeProgram for ForeignStep<F> {
    type SignalRows = ReadColumns;
    type ApplyRows = WriteColumns;
    type Edge = F::Edge;
    type Message = u64;
    type EdgeMessage = (u64, F::Edge);
    type Accumulator = u64;
    type Sum = Sums;
    const IDENTITY: u64 = F::IDENTITY;
    const ORDER_INDEPENDENT: bool = F::EXACT;
    const FOLDS_MANY: bool = F::MANY;

    #[inline(always)]
    fn identity(&self) -> u64 {
        match self.calls.program.fold {
            ForeignFold::Own(identity) => identity,
            _ => F::IDENTITY,
        }
    }
    #[inline(always)]
    fn apply_to(&self) -> ApplyTo {
        self.calls.program.apply_to()
    }
    #[inline(always)]
    fn is_exact(&self) -> bool {
        self.calls.program.is_exact(F::EXACT)
    }

    #[inline(always)]
    fn signal(&self, _: u64, row: ColumnsRow<'_, u64>) -> Option<u64> {
        let mut record = Record::new(&row, |value| *value);
        let ForeignCalls { program, shared } = &self.calls;
        let message = program.functions.signal(shared, &mut record.0)?;
        Some(match self.ordered() {
            Some((kind, reversed)) => order(message, kind, reversed),
            None => message,
        })
    }
    #[inline(always)]
    fn on_edge(&self, message: u64, edge: F::Edge) -> (u64, F::Edge) {
        (message, edge)
    }
    #[inline(always)]
    fn fold(&self, accumulator: &mut u64, (message, edge): (u64, F::Edge)) {
        F::fold(&self.calls, accumulator, message, edge);
    }
    #[inline(always)]
    fn fold_edges(
        &self,
        accumulators: &mut [u64],
        receivers: &[u32],
        messages: &[u64],
        edges: &[F::Edge],
    ) {
        F::fold_edges(&self.calls, accumulators, receivers, messages, edges);
    }
    #[inline(always)]
    fn merge(&self, accumulator: &mut u64, later: u64) {
        F::merge(&self.calls, accumulator, later);
    }
    #[inline(always)]
    fn apply(&self, _: u64, row: ColumnsRow<'_, Cell<u64>>, accumulator: u64) -> (Sums, Activate) {
        let received = match self.ordered() {
            Some((kind, reversed)) if accumulator == F::IDENTITY => nothing(kind, reversed),
            Some((kind, reversed)) => number(accumulator, kind, reversed),
            None => accumulator,
        };
        let mut record = Record::new(&row, Cell::get);
        let ForeignCalls { program, shared } = &self.calls;
        (program.functions).apply(shared, &mut record.0, received);
        let (summands, sends) = record.end(&row, program.sums);
        (summands, Activate::when(sends))
    }
}
