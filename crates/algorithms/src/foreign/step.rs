//! One pass of a foreign program.

use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::Arc;

use graphmill_engine::{
    Activate, ApplyTo, Bits, CALL_VERTICES_MAX, ColumnsRow, EdgeProgram, ReadColumns, Reduce,
    RowRun, WriteColumns,
};

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

/// What passes sum up for the program, and calls after a function failed.
pub(super) type Sums = ([f64; 4], u64);

/// One pass of a program.
pub(crate) struct ForeignStep<F> {
    calls: ForeignCalls,
    fold: PhantomData<fn() -> F>,
}

/// The records of up to `N` vertices, for one call.
struct Records<const N: usize> {
    words: [[u64; VERTEX_WORDS]; N],
    count: usize,
}

impl<const N: usize> Records<N> {
    const EMPTY: Self = Records {
        words: [[0; VERTEX_WORDS]; N],
        count: 0,
    };

    #[inline(always)]
    fn push<C>(&mut self, row: &ColumnsRow<'_, C>, value: impl Fn(&C) -> u64) {
        let words = &mut self.words[self.count];
        (words[ORDINAL], words[DEGREE]) = (row.ordinal, row.out_degree);
        for (word, of) in words[COLUMNS_BEGIN..].iter_mut().zip(row.values()) {
            *word = value(of);
        }
        self.count += 1;
    }

    #[inline(always)]
    fn words(&mut self) -> &mut [u64] {
        self.words[..self.count].as_flattened_mut()
    }

    /// Keeps the columns of a vertex; returns its summands, and whether it sends in the next pass.
    #[inline(always)]
    fn end(&self, i: usize, row: &ColumnsRow<'_, Cell<u64>>) -> ([f64; 4], bool) {
        let words = &self.words[i];
        for (value, word) in row.values().zip(&words[COLUMNS_BEGIN..]) {
            value.set(*word);
        }
        // A program leaves those that it does not name at 0.
        let summands = std::array::from_fn(|sum| f64::from_bits(words[SUMMANDS + sum]));
        (summands, words[ACTIVE] != 0)
    }
}

impl<F: ForeignCombine> ForeignStep<F> {
    pub(super) fn new(program: &Arc<ForeignProgram>, shared: Vec<u64>) -> ForeignStep<F> {
        ForeignStep {
            calls: ForeignCalls::new(program, shared),
            fold: PhantomData,
        }
    }

    /// Sets the columns of a vertex before the first pass; returns its summands, and whether it sends.
    pub(super) fn begin(&self, row: ColumnsRow<'_, Cell<u64>>) -> (Sums, bool) {
        let mut records = Records::<1>::EMPTY;
        // It may be called twice, so it does not see what it made of the columns.
        records.push(&row, |_| 0);
        let calls = &self.calls;
        calls.noted((calls.program.functions).begin(&calls.shared, records.words()));
        let (summands, sends) = records.end(0, &row);
        (self.summed(summands), sends)
    }

    /// Summands of a call, and whether a function failed before its end.
    #[inline(always)]
    fn summed(&self, summands: [f64; 4]) -> Sums {
        (summands, u64::from(self.calls.has_failed()))
    }

    /// Begins a pass; returns false if the program wants no more.
    pub(super) fn before(&mut self, pass: u64, sending: u64, sums: Sums) -> bool {
        let ForeignCalls {
            program, shared, ..
        } = &mut self.calls;
        (shared[PASS], shared[SENDING]) = (pass, sending);
        for (word, sum) in shared[SUMS..].iter_mut().zip(sums.0) {
            *word = sum.to_bits();
        }
        let more = program.functions.before(shared);
        self.calls.noted(more)
    }

    /// True if a function failed on this rank.
    pub(super) fn has_failed(&self) -> bool {
        self.calls.has_failed()
    }

    /// Sends the messages of `records`; returns the bits of those that are there.
    #[inline(always)]
    fn send<const N: usize>(&self, mut records: Records<N>, messages: &mut [u64]) -> u64 {
        let calls = &self.calls;
        let sent = (calls.program.functions).signal(&calls.shared, records.words(), messages);
        let sent = calls.noted(sent);
        if let Some((kind, reversed)) = self.ordered() {
            for message in messages {
                *message = order(*message, kind, reversed);
            }
        }
        sent
    }

    /// The accumulator of a vertex, as the program sees it.
    #[inline(always)]
    fn received(&self, accumulator: u64) -> u64 {
        match self.ordered() {
            Some((kind, reversed)) if accumulator == F::IDENTITY => nothing(kind, reversed),
            Some((kind, reversed)) => number(accumulator, kind, reversed),
            None => accumulator,
        }
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
    const CALLS_MANY: bool = true;

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
        let mut records = Records::<1>::EMPTY;
        records.push(&row, |value| *value);
        let mut message = [0];
        let sent = self.send(records, &mut message);
        (sent != 0).then_some(message[0])
    }
    fn signal_many(
        &self,
        _: u64,
        bits: u64,
        rows: &mut RowRun<'_, '_, ReadColumns>,
        messages: &mut [u64],
    ) -> u64 {
        let mut records = Records::<CALL_VERTICES_MAX>::EMPTY;
        Bits(bits).for_each(|i| records.push(&rows.row(i), |value| *value));
        let mut made = [0; CALL_VERTICES_MAX];
        let made = &mut made[..records.count];
        let sent = self.send(records, made);
        let mut sent_bits = 0;
        for (from, to) in Bits(bits).enumerate() {
            sent_bits |= (sent >> from & 1) << to;
            messages[to] = made[from];
        }
        sent_bits
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
        let mut records = Records::<1>::EMPTY;
        records.push(&row, Cell::get);
        let calls = &self.calls;
        let received = [self.received(accumulator)];
        calls.noted((calls.program.functions).apply(&calls.shared, records.words(), &received));
        let (summands, sends) = records.end(0, &row);
        (self.summed(summands), Activate::when(sends))
    }
    fn apply_many(
        &self,
        _: u64,
        bits: u64,
        rows: &mut RowRun<'_, '_, WriteColumns>,
        accumulators: &[u64],
        sum: &mut Sums,
    ) -> u64 {
        let mut records = Records::<CALL_VERTICES_MAX>::EMPTY;
        let mut received = [0; CALL_VERTICES_MAX];
        for i in Bits(bits) {
            received[records.count] = self.received(accumulators[i]);
            records.push(&rows.row(i), Cell::get);
        }
        let calls = &self.calls;
        let received = &received[..records.count];
        calls.noted((calls.program.functions).apply(&calls.shared, records.words(), received));
        let mut active = 0;
        for (from, to) in Bits(bits).enumerate() {
            let (summands, sends) = records.end(from, &rows.row(to));
            sum.add(self.summed(summands));
            active |= u64::from(sends) << to;
        }
        active
    }
}
