//! The rows that a pass names: tuples of vertex arrays, each read or written, borrowed batch by batch.
//!
//! `(dist.write(), parent.read())` is a row set; its row at a vertex is `(&mut f32, &u32)`. An array changes only
//! through a pass that names it for writing.

use graphmill_raw::Element;

use crate::state::vertex_array::{ArrayId, ColumnGuard, VertexArray};

/// One array that a pass names, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnAccess {
    /// The elements of an array, to read.
    Read(ArrayId),
    /// The same, to change.
    Write(ArrayId),
    /// The out-degrees, which the graph keeps.
    OutDegree,
    /// The ranks of ids, which the graph keeps where they are not the indices.
    IdRank,
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
impl<T: Element> Sealed for Read<T> {}
impl<T: Element> Sealed for Write<T> {}
impl Sealed for OutDegree {}
impl Sealed for IdOrdinal {}
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

/// One array, or what the graph keeps of its vertices: what tuples of rows are made of.
pub trait SingleColumn: Rows {}
impl<T: Element> SingleColumn for Read<T> {}
impl<T: Element> SingleColumn for Write<T> {}
impl SingleColumn for OutDegree {}
impl SingleColumn for IdOrdinal {}

/// An array that a pass reads.
#[derive(Debug)]
pub struct Read<T>(pub(crate) VertexArray<T>);

/// An array that a pass reads and changes.
#[derive(Debug)]
pub struct Write<T>(pub(crate) VertexArray<T>);

/// The number of arcs that leave a vertex.
#[derive(Clone, Copy, Debug)]
pub struct OutDegree;

/// The rank of a vertex in ascending order of ids: ties are broken by it.
#[derive(Clone, Copy, Debug)]
pub struct IdOrdinal;

impl<T> VertexArray<T> {
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

impl<T> Clone for Read<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Read<T> {}
impl<T> Clone for Write<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Write<T> {}

impl<T: Element> Rows for Read<T> {
    type Row<'r> = &'r T;
    type Slices<'b> = &'b [T];
    const BYTES: usize = size_of::<T>();
    const TOUCHED: RowBytes = RowBytes {
        read: size_of::<T>(),
        written: 0,
        degrees: false,
    };
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
    const TOUCHED: RowBytes = RowBytes {
        read: size_of::<T>(),
        written: size_of::<T>(),
        degrees: false,
    };
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

/// The out-degrees of one batch.
#[derive(Clone, Copy, Debug)]
pub enum Degrees<'b> {
    /// All degrees of the graph fit in 32 bits, and there was room for them in memory.
    Narrow(&'b [u32]),
    /// Unpacked for this batch.
    Wide(&'b [u64]),
}

impl Rows for OutDegree {
    type Row<'r> = u64;
    type Slices<'b> = Degrees<'b>;
    const BYTES: usize = size_of::<u64>();
    const TOUCHED: RowBytes = RowBytes {
        read: 0,
        written: 0,
        degrees: true,
    };
    fn needs(&self, out: &mut Vec<ColumnAccess>) {
        out.push(ColumnAccess::OutDegree);
    }
    fn slices<'b>(guards: &'b mut [ColumnGuard<'_>]) -> Degrees<'b> {
        match guards.first() {
            Some(guard @ ColumnGuard::Shared(_)) => Degrees::Narrow(guard.read()),
            Some(guard) => Degrees::Wide(guard.read()),
            None => Degrees::Wide(&[]),
        }
    }
    #[inline(always)]
    fn row(slices: &mut Degrees<'_>, i: usize) -> u64 {
        match slices {
            Degrees::Narrow(degrees) => u64::from(degrees[i]),
            Degrees::Wide(degrees) => degrees[i],
        }
    }
}

/// The ranks of ids of one batch.
#[derive(Clone, Copy, Debug)]
pub enum IdOrdinals<'b> {
    /// They are the indices; this is the first one.
    Indices(u64),
    /// All ranks fit in 32 bits, and there was room for them in memory.
    Narrow(&'b [u32]),
    /// Unpacked for this batch.
    Wide(&'b [u64]),
}

impl Rows for IdOrdinal {
    type Row<'r> = u64;
    type Slices<'b> = IdOrdinals<'b>;
    const BYTES: usize = size_of::<u64>();
    const TOUCHED: RowBytes = RowBytes {
        read: 0,
        written: 0,
        degrees: false,
    };
    fn needs(&self, out: &mut Vec<ColumnAccess>) {
        out.push(ColumnAccess::IdRank);
    }
    fn slices<'b>(guards: &'b mut [ColumnGuard<'_>]) -> IdOrdinals<'b> {
        match guards.first() {
            Some(ColumnGuard::Indices(first)) => IdOrdinals::Indices(*first),
            Some(guard @ ColumnGuard::Shared(_)) => IdOrdinals::Narrow(guard.read()),
            Some(guard) => IdOrdinals::Wide(guard.read()),
            None => IdOrdinals::Wide(&[]),
        }
    }
    #[inline(always)]
    fn row(slices: &mut IdOrdinals<'_>, i: usize) -> u64 {
        match slices {
            IdOrdinals::Indices(first) => *first + i as u64,
            IdOrdinals::Narrow(ranks) => u64::from(ranks[i]),
            IdOrdinals::Wide(ranks) => ranks[i],
        }
    }
}

impl Rows for () {
    type Row<'r> = ();
    type Slices<'b> = ();
    const BYTES: usize = 0;
    const TOUCHED: RowBytes = RowBytes {
        read: 0,
        written: 0,
        degrees: false,
    };
    fn needs(&self, _: &mut Vec<ColumnAccess>) {}
    fn slices(_: &mut [ColumnGuard<'_>]) {}
    #[inline(always)]
    fn row(_: &mut (), _: usize) {}
}

macro_rules! tuples {
    ($(($($t:ident $i:tt),+))*) => {$(
        impl<$($t: SingleColumn),+> Sealed for ($($t,)+) {}
        impl<$($t: SingleColumn),+> Rows for ($($t,)+) {
            type Row<'r> = ($($t::Row<'r>,)+);
            type Slices<'b> = ($($t::Slices<'b>,)+);
            const BYTES: usize = 0 $(+ $t::BYTES)+;
            const TOUCHED: RowBytes = <() as Rows>::TOUCHED$(.and($t::TOUCHED))+;
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
