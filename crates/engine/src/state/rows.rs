//! The rows that a pass names: tuples of vertex arrays, each read or written, borrowed batch by batch.
//!
//! `(dist.write(), parent.read())` is a row set; its row at a vertex is `(&mut f32, &u32)`. An array changes only
//! through a pass that names it for writing.

use std::cell::Cell;

use graphmill_raw::Element;

use crate::state::graph_values::GraphValue;
use crate::state::vertex_array::{ArrayId, ColumnGuard, VertexArray};

/// One array that a pass names, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnAccess {
    /// The elements of an array, to read.
    Read(ArrayId),
    /// The same, to change.
    Write(ArrayId),
    /// Values that the graph keeps, to read.
    Graph(GraphValue),
}

/// The bytes that a pass moves of a row on disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RowBytes {
    /// Bytes of elements of arrays that it reads.
    pub(crate) read: usize,
    /// Of these, bytes that it may write.
    pub(crate) written: usize,
    /// It looks at degrees too.
    pub(crate) degrees: bool,
}

impl RowBytes {
    pub(crate) const NONE: RowBytes = RowBytes::new(0, 0);

    const fn new(read: usize, written: usize) -> RowBytes {
        RowBytes {
            read,
            written,
            degrees: false,
        }
    }

    /// Of columns of `read` bytes, beside degrees.
    pub(crate) const fn of_columns(read: usize, written: usize) -> RowBytes {
        RowBytes {
            degrees: true,
            ..RowBytes::new(read, written)
        }
    }

    const fn and(self, other: RowBytes) -> RowBytes {
        RowBytes {
            read: self.read + other.read,
            written: self.written + other.written,
            degrees: self.degrees || other.degrees,
        }
    }

    /// Returns the maximum of both.
    pub(crate) fn or(self, other: RowBytes) -> RowBytes {
        RowBytes {
            read: self.read.max(other.read),
            written: self.written.max(other.written),
            degrees: self.degrees || other.degrees,
        }
    }
}

/// What seals [`Rows`]: only this file implements it.
pub trait Sealed: Copy + Send + Sync {}
impl<C: SingleColumn> Sealed for C {}
impl Sealed for () {}

/// A set of arrays as one row a vertex.
///
/// It is sealed: [`Read`], [`Write`], [`OutDegree`], [`IdOrdinal`], and tuples of them.
pub trait Rows: Sealed {
    /// A program's view of the rows of one vertex.
    type Row<'r>;
    /// The arrays of one batch.
    #[doc(hidden)]
    type Slices<'b>;
    /// Bytes of a row on disk.
    #[doc(hidden)]
    const BYTES: usize;
    /// Bytes of a row that are values which the graph keeps.
    #[doc(hidden)]
    const GRAPH_BYTES: usize = 0;
    /// Returns the bytes that a pass moves of them.
    #[doc(hidden)]
    const TOUCHED: RowBytes;
    /// The arrays, in order.
    #[doc(hidden)]
    fn needs(&self, out: &mut Vec<ColumnAccess>);
    /// The arrays of one batch out of as many guards, in the same order.
    #[doc(hidden)]
    fn slices<'b>(guards: &'b mut [ColumnGuard<'_>]) -> Self::Slices<'b>;
    /// The row of the `i`-th vertex of the batch.
    #[doc(hidden)]
    fn row<'r>(slices: &'r mut Self::Slices<'_>, i: usize) -> Self::Row<'r>;
}

/// The rows of vertices that follow each other, for one call.
#[derive(Debug)]
pub struct RowRun<'r, 'b, R: Rows> {
    slices: &'r mut R::Slices<'b>,
    first: usize,
}

impl<'r, 'b, R: Rows> RowRun<'r, 'b, R> {
    /// The rows from the one of the `first`-th vertex of the batch on.
    pub(crate) fn new(slices: &'r mut R::Slices<'b>, first: usize) -> RowRun<'r, 'b, R> {
        RowRun { slices, first }
    }

    /// The row of the `i`-th vertex of the run.
    #[inline(always)]
    pub fn row(&mut self, i: usize) -> R::Row<'_> {
        R::row(self.slices, self.first + i)
    }
}

/// One array, or what the graph keeps of its vertices: what tuples of rows are made of.
pub trait SingleColumn: Rows {}
impl<T: Element> SingleColumn for Read<T> {}
impl<T: Element> SingleColumn for Write<T> {}
impl SingleColumn for OutDegree {}
impl SingleColumn for IdOrdinal {}

/// An array that a pass reads.
#[derive(Clone, Copy, Debug)]
pub struct Read<T>(pub(crate) VertexArray<T>);

/// An array that a pass reads and changes.
#[derive(Clone, Copy, Debug)]
pub struct Write<T>(pub(crate) VertexArray<T>);

/// The number of arcs that leave a vertex.
#[derive(Clone, Copy, Debug)]
pub struct OutDegree;

/// The rank of a vertex in ascending order of ids: ties are broken by it.
#[derive(Clone, Copy, Debug)]
pub struct IdOrdinal;

impl<T: Copy> VertexArray<T> {
    /// This array, to be read by a pass.
    #[must_use]
    pub fn read(&self) -> Read<T> {
        Read(*self)
    }
    /// This array, to be read and changed by a pass.
    #[must_use]
    pub fn write(&self) -> Write<T> {
        Write(*self)
    }
}

impl<T: Element> Rows for Read<T> {
    type Row<'r> = &'r T;
    type Slices<'b> = &'b [T];
    const BYTES: usize = size_of::<T>();
    const TOUCHED: RowBytes = RowBytes::new(size_of::<T>(), 0);
    fn needs(&self, out: &mut Vec<ColumnAccess>) {
        out.push(ColumnAccess::Read(self.0.id()));
    }
    fn slices<'b>(guards: &'b mut [ColumnGuard<'_>]) -> &'b [T] {
        guards.first().map_or(&[], |guard| guard.read())
    }
    #[inline(always)]
    fn row<'r>(slices: &'r mut &[T], i: usize) -> &'r T {
        &slices[i]
    }
}

impl<T: Element> Rows for Write<T> {
    type Row<'r> = &'r mut T;
    type Slices<'b> = &'b mut [T];
    const BYTES: usize = size_of::<T>();
    const TOUCHED: RowBytes = RowBytes::new(size_of::<T>(), size_of::<T>());
    fn needs(&self, out: &mut Vec<ColumnAccess>) {
        out.push(ColumnAccess::Write(self.0.id()));
    }
    fn slices<'b>(guards: &'b mut [ColumnGuard<'_>]) -> &'b mut [T] {
        match guards.first_mut() {
            Some(guard) => guard.write(),
            None => &mut [],
        }
    }
    #[inline(always)]
    fn row<'r>(slices: &'r mut &mut [T], i: usize) -> &'r mut T {
        &mut slices[i]
    }
}

/// The values of one batch that the graph keeps.
#[derive(Clone, Copy, Debug)]
pub enum GraphValues<'b> {
    /// They are the indices; this is the first one.
    Indices(u64),
    /// All values fit in 32 bits, and there was room for them in memory.
    Narrow(&'b [u32]),
    /// Unpacked for this batch.
    Wide(&'b [u64]),
}

macro_rules! graph_values {
    ($($t:ident $value:ident $touched:expr;)*) => {$(
        impl Rows for $t {
            type Row<'r> = u64;
            type Slices<'b> = GraphValues<'b>;
            const BYTES: usize = size_of::<u64>();
            const GRAPH_BYTES: usize = size_of::<u64>();
            const TOUCHED: RowBytes = $touched;
            fn needs(&self, out: &mut Vec<ColumnAccess>) {
                out.push(ColumnAccess::Graph(GraphValue::$value));
            }
            fn slices<'b>(guards: &'b mut [ColumnGuard<'_>]) -> GraphValues<'b> {
                match guards.first() {
                    Some(ColumnGuard::Indices(first)) => GraphValues::Indices(*first),
                    Some(guard @ ColumnGuard::Shared(_)) => GraphValues::Narrow(guard.read()),
                    Some(guard) => GraphValues::Wide(guard.read()),
                    None => GraphValues::Wide(&[]),
                }
            }
            #[inline(always)]
            fn row(slices: &mut GraphValues<'_>, i: usize) -> u64 {
                match slices {
                    GraphValues::Indices(first) => *first + i as u64,
                    GraphValues::Narrow(values) => u64::from(values[i]),
                    GraphValues::Wide(values) => values[i],
                }
            }
        }
    )*};
}
graph_values! {
    OutDegree OutDegree RowBytes { degrees: true, ..RowBytes::NONE };
    IdOrdinal IdRank RowBytes::NONE;
}

impl Rows for () {
    type Row<'r> = ();
    type Slices<'b> = ();
    const BYTES: usize = 0;
    const TOUCHED: RowBytes = RowBytes::NONE;
    fn needs(&self, _: &mut Vec<ColumnAccess>) {}
    fn slices(_: &mut [ColumnGuard<'_>]) {}
    #[inline(always)]
    fn row(_: &mut (), _: usize) {}
}

/// The most columns that a program has that is known at run time only.
pub const COLUMNS_MAX: usize = 4;

/// Columns whose number is known at run time only, to read, beside the graph's values of a vertex.
#[derive(Clone, Copy, Debug)]
pub struct ReadColumns(ColumnList);

/// The same columns, to read and change.
#[derive(Clone, Copy, Debug)]
pub struct WriteColumns(ColumnList);

/// Up to [`COLUMNS_MAX`] arrays of words.
#[derive(Clone, Copy, Debug)]
struct ColumnList {
    arrays: [Option<VertexArray<u64>>; COLUMNS_MAX],
}

impl ColumnList {
    fn new(arrays: &[VertexArray<u64>]) -> ColumnList {
        ColumnList {
            arrays: std::array::from_fn(|i| arrays.get(i).copied()),
        }
    }

    fn needs(&self, access: impl Fn(ArrayId) -> ColumnAccess, out: &mut Vec<ColumnAccess>) {
        OutDegree.needs(out);
        IdOrdinal.needs(out);
        out.extend(self.arrays.iter().flatten().map(|array| access(array.id())));
    }
}

impl ReadColumns {
    /// The first [`COLUMNS_MAX`] of these arrays.
    #[must_use]
    pub fn new(arrays: &[VertexArray<u64>]) -> ReadColumns {
        ReadColumns(ColumnList::new(arrays))
    }
}

impl WriteColumns {
    /// The first [`COLUMNS_MAX`] of these arrays.
    #[must_use]
    pub fn new(arrays: &[VertexArray<u64>]) -> WriteColumns {
        WriteColumns(ColumnList::new(arrays))
    }
}

/// The columns of a batch.
#[derive(Debug)]
pub struct BatchColumns<'b, C> {
    columns: [&'b [C]; COLUMNS_MAX],
    count: usize,
    graph: [GraphValues<'b>; 2],
}

impl<'b, C> BatchColumns<'b, C> {
    fn new(
        guards: &'b mut [ColumnGuard<'_>],
        column: impl Fn(&'b mut ColumnGuard<'_>) -> &'b [C],
    ) -> BatchColumns<'b, C> {
        let count = guards.len().saturating_sub(2).min(COLUMNS_MAX);
        let mut guards = guards.iter_mut();
        let mut next = || guards.next().map(std::slice::from_mut).unwrap_or_default();
        let graph = [OutDegree::slices(next()), IdOrdinal::slices(next())];
        let mut columns: [&'b [C]; COLUMNS_MAX] = [&[]; COLUMNS_MAX];
        for (to, guard) in columns.iter_mut().zip(guards) {
            *to = column(guard);
        }
        BatchColumns {
            columns,
            count,
            graph,
        }
    }
}

/// The columns of a vertex.
#[derive(Clone, Copy, Debug)]
pub struct ColumnsRow<'r, C> {
    columns: &'r [&'r [C]],
    i: usize,
    /// As [`OutDegree`].
    pub out_degree: u64,
    /// As [`IdOrdinal`].
    pub ordinal: u64,
}

impl<C> ColumnsRow<'_, C> {
    /// The elements of the columns, in order.
    #[inline(always)]
    pub fn values(&self) -> impl Iterator<Item = &C> {
        self.columns.iter().map(|column| &column[self.i])
    }
}

macro_rules! columns {
    ($($t:ident $cell:ty, $access:ident, $written:expr, |$guard:ident| $column:expr;)*) => {$(
        impl Sealed for $t {}
        impl Rows for $t {
            type Row<'r> = ColumnsRow<'r, $cell>;
            type Slices<'b> = BatchColumns<'b, $cell>;
            const BYTES: usize = COLUMNS_MAX * size_of::<u64>() + Self::GRAPH_BYTES;
            const GRAPH_BYTES: usize = OutDegree::GRAPH_BYTES + IdOrdinal::GRAPH_BYTES;
            const TOUCHED: RowBytes = {
                let bytes = COLUMNS_MAX * size_of::<u64>();
                RowBytes::of_columns(bytes, if $written { bytes } else { 0 })
            };
            fn needs(&self, out: &mut Vec<ColumnAccess>) {
                self.0.needs(ColumnAccess::$access, out);
            }
            fn slices<'b>(guards: &'b mut [ColumnGuard<'_>]) -> Self::Slices<'b> {
                BatchColumns::new(guards, |$guard| $column)
            }
            #[inline(always)]
            fn row<'r>(slices: &'r mut Self::Slices<'_>, i: usize) -> Self::Row<'r> {
                let BatchColumns { columns, count, graph: [degrees, ordinals] } = slices;
                ColumnsRow {
                    columns: &columns[..*count],
                    i,
                    out_degree: OutDegree::row(degrees, i),
                    ordinal: IdOrdinal::row(ordinals, i),
                }
            }
        }
    )*};
}
columns! {
    ReadColumns u64, Read, false, |guard| guard.read();
    WriteColumns Cell<u64>, Write, true, |guard| Cell::from_mut(guard.write::<u64>()).as_slice_of_cells();
}

macro_rules! tuples {
    ($(($($t:ident $i:tt),+))*) => {$(
        impl<$($t: SingleColumn),+> Sealed for ($($t,)+) {}
        impl<$($t: SingleColumn),+> Rows for ($($t,)+) {
            type Row<'r> = ($($t::Row<'r>,)+);
            type Slices<'b> = ($($t::Slices<'b>,)+);
            const BYTES: usize = 0 $(+ $t::BYTES)+;
            const GRAPH_BYTES: usize = 0 $(+ $t::GRAPH_BYTES)+;
            const TOUCHED: RowBytes = RowBytes::NONE$(.and($t::TOUCHED))+;
            fn needs(&self, out: &mut Vec<ColumnAccess>) {
                $(self.$i.needs(out);)+
            }
            fn slices<'b>(guards: &'b mut [ColumnGuard<'_>]) -> Self::Slices<'b> {
                let mut rest = guards.iter_mut();
                // Each element of a tuple is one array.
                ($($t::slices(rest.next().map_or(&mut [], std::slice::from_mut)),)+)
            }
            #[inline(always)]
            fn row<'r>(slices: &'r mut Self::Slices<'_>, i: usize) -> Self::Row<'r> {
                ($($t::row(&mut slices.$i, i),)+)
            }
        }
    )*};
}
tuples!((A 0) (A 0, B 1) (A 0, B 1, C 2) (A 0, B 1, C 2, D 3));
