//! Edge programs whose functions a seed fixes, and a naive pass.

use std::marker::PhantomData;

use graphmill_engine::{
    Activate, ApplyTo, EdgeProgram, EdgeValue, IdOrdinal, Least, MessageProgram, OutDegree, Outbox,
    Read, VertexArray, Write, edge_record,
};

use crate::common::Records;
use crate::random_programs::mix;

/// The vertex arrays that programs name.
#[derive(Clone, Copy)]
pub(crate) struct Arrays {
    pub(crate) a: VertexArray<u64>,
    pub(crate) b: VertexArray<u32>,
    pub(crate) wide: VertexArray<[u64; 4]>,
}

/// The same rows in plain vectors.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct PlainRows {
    pub(crate) a: Vec<u64>,
    pub(crate) b: Vec<u32>,
    pub(crate) wide: Vec<[u64; 4]>,
    pub(crate) degrees: Vec<u64>,
}

/// An edge program with rows for the engine, and the same rows for the simulator.
pub(crate) trait Scripted: EdgeProgram<Edge: AsInteger> + 'static {
    fn rows(arrays: Arrays) -> (Self::SignalRows, Self::ApplyRows);
    fn signal_plain(&self, v: u64, rows: &PlainRows) -> Option<Self::Message>;
    fn apply_plain(
        &self,
        v: u64,
        rows: &mut PlainRows,
        accumulator: Self::Accumulator,
    ) -> (Self::Sum, Activate);
}

/// What an edge's value is in the arithmetic of these programs.
pub(crate) trait AsInteger: EdgeValue {
    /// The records that edges carry, if it is made from one.
    const RECORDS: Option<Records> = None;
    fn as_integer(self) -> u64;
    /// The value of an edge of a weight.
    fn of_weight(weight: f64) -> Self {
        Self::of_f32(weight as f32)
    }
}

edge_record! {
    /// Of 7 bytes, in no multiple of words.
    pub(crate) struct Short {
        a: u16,
        b: f32,
        c: i8,
    }
}

edge_record! {
    /// Of 13 bytes.
    pub(crate) struct Long {
        a: f64,
        b: i32 = "the second",
        c: u8,
    }
}

impl AsInteger for Short {
    const RECORDS: Option<Records> = Some(Records {
        fields: Short::FIELDS,
        of_weight: |weight| {
            let Short { a, b, c } = Short::of_weight(weight);
            [&a.to_le_bytes()[..], &b.to_le_bytes(), &c.to_le_bytes()].concat()
        },
    });
    fn as_integer(self) -> u64 {
        u64::from(self.a) ^ u64::from(self.b.to_bits()) << 16 ^ (self.c as u64) << 48
    }
    fn of_weight(weight: f64) -> Short {
        let (a, b, c) = (
            weight as u16 * 20_001,
            -weight as f32 / 3.0,
            -7 - weight as i8,
        );
        Short { a, b, c }
    }
}

impl AsInteger for Long {
    const RECORDS: Option<Records> = Some(Records {
        fields: Long::FIELDS,
        of_weight: |weight| {
            let Long { a, b, c } = Long::of_weight(weight);
            [&a.to_le_bytes()[..], &b.to_le_bytes(), &c.to_le_bytes()].concat()
        },
    });
    fn as_integer(self) -> u64 {
        self.a.to_bits() ^ (self.b as u64) << 8 ^ u64::from(self.c) << 56
    }
    fn of_weight(weight: f64) -> Long {
        let (a, b, c) = (
            weight / 7.0,
            -1 - weight as i32 * 70_001,
            250 + weight as u8,
        );
        Long { a, b, c }
    }
}
impl AsInteger for () {
    fn as_integer(self) -> u64 {
        1
    }
}
impl AsInteger for f32 {
    fn as_integer(self) -> u64 {
        self as u64
    }
}
impl AsInteger for f64 {
    fn as_integer(self) -> u64 {
        self as u64
    }
}

/// Applies affine function `later` after `first`: associative, but not in any order.
fn compose(first: [u64; 2], later: [u64; 2]) -> [u64; 2] {
    [
        later[0].wrapping_mul(first[0]),
        later[0].wrapping_mul(first[1]).wrapping_add(later[1]),
    ]
}

/// Folds affine functions, whose order shows.
pub(crate) struct Compose<W, const TO_ALL: bool> {
    pub(crate) seed: u64,
    pub(crate) edge: PhantomData<W>,
}

impl<W: AsInteger, const TO_ALL: bool> EdgeProgram for Compose<W, TO_ALL> {
    type SignalRows = (Read<u64>, OutDegree, IdOrdinal);
    type ApplyRows = (Write<u64>, Read<u32>);
    type Edge = W;
    type Message = u64;
    type EdgeMessage = [u64; 2];
    type Accumulator = [u64; 2];
    type Sum = u64;
    const IDENTITY: [u64; 2] = [1, 0];
    const APPLY_TO: ApplyTo = match TO_ALL {
        true => ApplyTo::All,
        false => ApplyTo::Touched,
    };

    fn signal(&self, v: u64, (a, degree, ordinal): (&u64, u64, u64)) -> Option<u64> {
        let message = mix(self.seed ^ a ^ (degree << 32)).wrapping_add(ordinal ^ v);
        (!message.is_multiple_of(5)).then_some(message)
    }
    fn on_edge(&self, message: u64, edge: W) -> [u64; 2] {
        [message | 1, mix(message ^ edge.as_integer())]
    }
    fn fold(&self, accumulator: &mut [u64; 2], carried: [u64; 2]) {
        *accumulator = compose(*accumulator, carried);
    }
    fn merge(&self, accumulator: &mut [u64; 2], later: [u64; 2]) {
        *accumulator = compose(*accumulator, later);
    }
    fn apply(&self, v: u64, (a, b): (&mut u64, &u32), [times, plus]: [u64; 2]) -> (u64, Activate) {
        *a = a.wrapping_mul(times).wrapping_add(plus ^ u64::from(*b));
        (*a ^ v, activate_if(a.is_multiple_of(3)))
    }
}

impl<W: AsInteger, const TO_ALL: bool> Scripted for Compose<W, TO_ALL> {
    fn rows(of: Arrays) -> (Self::SignalRows, Self::ApplyRows) {
        (
            (of.a.read(), OutDegree, IdOrdinal),
            (of.a.write(), of.b.read()),
        )
    }
    fn signal_plain(&self, v: u64, rows: &PlainRows) -> Option<u64> {
        let i = v as usize;
        self.signal(v, (&rows.a[i], rows.degrees[i], v))
    }
    fn apply_plain(&self, v: u64, rows: &mut PlainRows, function: [u64; 2]) -> (u64, Activate) {
        let i = v as usize;
        self.apply(v, (&mut rows.a[i], &rows.b[i]), function)
    }
}

pub(crate) fn activate_if(is_active: bool) -> Activate {
    match is_active {
        true => Activate::Yes,
        false => Activate::No,
    }
}

/// Adds up small messages in any order.
pub(crate) struct Add<W> {
    pub(crate) seed: u64,
    pub(crate) edge: PhantomData<W>,
}

impl<W: AsInteger> EdgeProgram for Add<W> {
    type SignalRows = (Read<u32>,);
    type ApplyRows = (Write<u64>, Write<u32>);
    type Edge = W;
    type Message = u32;
    type EdgeMessage = u64;
    type Accumulator = u64;
    type Sum = (u64, Least<u64>);
    const IDENTITY: u64 = 0;
    const ORDER_INDEPENDENT: bool = true;

    fn signal(&self, v: u64, (b,): (&u32,)) -> Option<u32> {
        let message = mix(self.seed ^ v ^ u64::from(*b)) as u32;
        (!message.is_multiple_of(3)).then_some(message)
    }
    fn on_edge(&self, message: u32, edge: W) -> u64 {
        (u64::from(message) * 8 + 1).wrapping_add(edge.as_integer())
    }
    fn fold(&self, accumulator: &mut u64, carried: u64) {
        *accumulator = accumulator.wrapping_add(carried);
    }
    fn merge(&self, accumulator: &mut u64, later: u64) {
        *accumulator = accumulator.wrapping_add(later);
    }
    fn apply(
        &self,
        v: u64,
        (a, b): (&mut u64, &mut u32),
        sum: u64,
    ) -> ((u64, Least<u64>), Activate) {
        *a = a.wrapping_add(sum);
        *b ^= mix(sum) as u32;
        let is_active = (*b).is_multiple_of(2);
        ((sum, Least(*a ^ v)), activate_if(is_active))
    }
}

impl<W: AsInteger> Scripted for Add<W> {
    fn rows(of: Arrays) -> (Self::SignalRows, Self::ApplyRows) {
        ((of.b.read(),), (of.a.write(), of.b.write()))
    }
    fn signal_plain(&self, v: u64, rows: &PlainRows) -> Option<u32> {
        self.signal(v, (&rows.b[v as usize],))
    }
    fn apply_plain(&self, v: u64, rows: &mut PlainRows, sum: u64) -> (Self::Sum, Activate) {
        let i = v as usize;
        self.apply(v, (&mut rows.a[i], &mut rows.b[i]), sum)
    }
}

/// Lowers a label, and can tell when a destination needs no more messages.
pub(crate) struct Lower {
    pub(crate) seed: u64,
}

impl EdgeProgram for Lower {
    type SignalRows = Read<u32>;
    type ApplyRows = Write<u32>;
    type Edge = ();
    type Message = u32;
    type EdgeMessage = u32;
    type Accumulator = u32;
    type Sum = u64;
    const IDENTITY: u32 = u32::MAX;
    const ORDER_INDEPENDENT: bool = true;
    const EARLY_EXIT: bool = true;

    fn signal(&self, v: u64, b: &u32) -> Option<u32> {
        let message = mix(self.seed ^ v) as u32;
        (*b > 3).then(|| message % *b / 4 * 3)
    }
    fn on_edge(&self, message: u32, (): ()) -> u32 {
        message
    }
    fn fold(&self, accumulator: &mut u32, carried: u32) {
        *accumulator = carried.min(*accumulator);
    }
    fn merge(&self, accumulator: &mut u32, later: u32) {
        *accumulator = later.min(*accumulator);
    }
    fn apply(&self, v: u64, b: &mut u32, least: u32) -> (u64, Activate) {
        let is_lower = least < *b;
        if is_lower {
            *b = least;
        }
        let sum = if is_lower {
            mix(v ^ u64::from(least))
        } else {
            0
        };
        (sum, activate_if(is_lower))
    }
    fn is_pending(&self, _: u64, b: &mut u32) -> bool {
        *b > 0
    }
    fn is_final(&self, accumulator: &u32) -> bool {
        *accumulator == 0
    }
}

impl Scripted for Lower {
    fn rows(of: Arrays) -> (Self::SignalRows, Self::ApplyRows) {
        (of.b.read(), of.b.write())
    }
    fn signal_plain(&self, v: u64, rows: &PlainRows) -> Option<u32> {
        self.signal(v, &rows.b[v as usize])
    }
    fn apply_plain(&self, v: u64, rows: &mut PlainRows, least: u32) -> (u64, Activate) {
        self.apply(v, &mut rows.b[v as usize], least)
    }
}

/// Adds up wide messages into wide rows.
pub(crate) struct Wide {
    pub(crate) seed: u64,
}

impl EdgeProgram for Wide {
    type SignalRows = (Read<[u64; 4]>, Read<u64>);
    type ApplyRows = (Write<[u64; 4]>, Read<u64>, OutDegree);
    type Edge = f64;
    type Message = [u32; 5];
    type EdgeMessage = [u32; 5];
    type Accumulator = [u32; 7];
    type Sum = [u64; 2];
    const IDENTITY: [u32; 7] = [0; 7];
    const ORDER_INDEPENDENT: bool = true;

    fn signal(&self, v: u64, (wide, a): (&[u64; 4], &u64)) -> Option<[u32; 5]> {
        let first = mix(self.seed ^ v ^ wide[0] ^ wide[3] ^ a);
        (!first.is_multiple_of(4)).then(|| [0, 8, 16, 24, 32].map(|shift| (first >> shift) as u32))
    }
    fn on_edge(&self, mut message: [u32; 5], edge: f64) -> [u32; 5] {
        message[4] = message[4].wrapping_mul(edge as u32 + 1);
        message
    }
    fn fold(&self, accumulator: &mut [u32; 7], carried: [u32; 5]) {
        accumulator[6] += 1;
        for (one, other) in accumulator.iter_mut().zip(carried) {
            *one = one.wrapping_add(other);
        }
    }
    fn merge(&self, accumulator: &mut [u32; 7], later: [u32; 7]) {
        for (one, other) in accumulator.iter_mut().zip(later) {
            *one = one.wrapping_add(other);
        }
    }
    fn apply(
        &self,
        v: u64,
        (wide, a, degree): (&mut [u64; 4], &u64, u64),
        sums: [u32; 7],
    ) -> ([u64; 2], Activate) {
        for (one, sum) in wide.iter_mut().zip(sums) {
            *one = mix(*one ^ u64::from(sum) ^ degree);
        }
        wide[3] ^= u64::from(sums[6]) ^ a;
        (
            [wide[0] ^ v, u64::from(sums[6])],
            activate_if(wide[1] % 2 == 0),
        )
    }
}

impl Scripted for Wide {
    fn rows(of: Arrays) -> (Self::SignalRows, Self::ApplyRows) {
        (
            (of.wide.read(), of.a.read()),
            (of.wide.write(), of.a.read(), OutDegree),
        )
    }
    fn signal_plain(&self, v: u64, rows: &PlainRows) -> Option<[u32; 5]> {
        let i = v as usize;
        self.signal(v, (&rows.wide[i], &rows.a[i]))
    }
    fn apply_plain(&self, v: u64, rows: &mut PlainRows, sums: [u32; 7]) -> ([u64; 2], Activate) {
        let i = v as usize;
        self.apply(v, (&mut rows.wide[i], &rows.a[i], rows.degrees[i]), sums)
    }
}

/// Sends messages to drawn vertices; their order shows.
pub(crate) struct Letters {
    pub(crate) seed: u64,
    pub(crate) vertices: u64,
}

impl Letters {
    /// Returns the messages of a vertex.
    fn written(&self, v: u64, a: u64) -> impl Iterator<Item = (u64, u64)> {
        let drawn = mix(self.seed ^ v ^ a);
        let vertices = self.vertices;
        (0..drawn % 4).map(move |i| (mix(drawn ^ i) % vertices, mix(drawn.wrapping_add(i))))
    }
    /// Returns the function that a message stands for.
    pub(crate) fn function(message: u64) -> [u64; 2] {
        [message | 1, mix(message)]
    }
    pub(crate) fn plain(&self, v: u64, a: u64, mut send: impl FnMut(u64, u64)) -> (u64, bool) {
        let mut count = 0;
        for (to, message) in self.written(v, a) {
            send(to, message);
            count += 1;
        }
        (count ^ v, count == 2)
    }
}

impl MessageProgram for Letters {
    type SendRows = Read<u64>;
    type ApplyRows = (Write<u64>, Write<u32>);
    type Message = [u64; 2];
    type Accumulator = [u64; 2];
    type Sum = u64;
    const IDENTITY: [u64; 2] = [1, 0];
    const COMBINES: bool = true;

    fn send(&self, v: u64, a: &u64, sink: &mut Outbox<'_, [u64; 2]>) -> (u64, Activate) {
        let send = |to, message| sink.send(to, Self::function(message));
        let (sum, is_active) = self.plain(v, *a, send);
        (sum, activate_if(is_active))
    }
    fn combine(&self, earlier: &mut [u64; 2], later: [u64; 2]) {
        *earlier = compose(*earlier, later);
    }
    fn fold(&self, accumulator: &mut [u64; 2], message: [u64; 2]) {
        *accumulator = compose(*accumulator, message);
    }
    fn apply(
        &self,
        v: u64,
        (a, b): (&mut u64, &mut u32),
        [times, plus]: [u64; 2],
    ) -> (u64, Activate) {
        *a = a.wrapping_mul(times).wrapping_add(plus);
        *b = b.wrapping_add(plus as u32);
        (*a ^ v, activate_if(a.is_multiple_of(2)))
    }
}
