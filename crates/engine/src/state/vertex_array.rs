//! Handles to vertex arrays, and the borrowed elements of one batch.

use std::marker::PhantomData;
use std::ops::Range;

use graphmill_graph::Batches;
use graphmill_raw::{Element, SegmentMut, SegmentRef};
use graphmill_storage::Buffer;
use zerocopy::FromBytes;

/// The identity of an array in an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArrayId {
    pub(crate) store: u32,
    pub(crate) number: u32,
}

/// A handle to a vertex array of an engine; copies are cheap and name the same array.
#[derive(Clone, Copy, Debug)]
pub struct VertexArray<T> {
    id: ArrayId,
    element: PhantomData<fn() -> T>,
}

impl<T> VertexArray<T> {
    pub(crate) fn new(store: u32, number: usize) -> Self {
        VertexArray {
            id: ArrayId {
                store,
                number: number as u32,
            },
            element: PhantomData,
        }
    }
    pub(crate) fn id(&self) -> ArrayId {
        self.id
    }
}

impl VertexArray<u64> {
    /// The same array, whose words are read as the bits of floating-point numbers.
    #[must_use]
    pub fn as_floats(&self) -> VertexArray<f64> {
        VertexArray {
            id: self.id,
            element: PhantomData,
        }
    }
}

/// The rows of one batch, borrowed for a pass.
pub(crate) struct BatchRows<'s> {
    pub(crate) guards: Vec<ColumnGuard<'s>>,
    pub(crate) batch: usize,
    /// The pages with the borrowed rows of each array; `None` if all rows are borrowed.
    pub(crate) pages: Vec<Option<Vec<usize>>>,
}

/// The borrowed elements of one array in one batch.
pub enum ColumnGuard<'s> {
    /// Resident, shared.
    Shared(SegmentRef<'s, u8>),
    /// Resident, exclusive.
    Exclusive(SegmentMut<'s, u8>),
    /// A copy of rows on disk.
    Paged(Buffer),
    /// Of ranks that are the indices: the first one.
    Indices(u64),
}

impl ColumnGuard<'_> {
    pub(crate) fn read<T: Element>(&self) -> &[T] {
        let bytes: &[u8] = match self {
            ColumnGuard::Shared(bytes) => bytes,
            ColumnGuard::Exclusive(bytes) => bytes,
            ColumnGuard::Paged(bytes) => bytes,
            ColumnGuard::Indices(_) => &[],
        };
        elements(bytes)
    }
    pub(crate) fn write<T: Element>(&mut self) -> &mut [T] {
        match self {
            ColumnGuard::Shared(_) | ColumnGuard::Indices(_) => &mut [],
            ColumnGuard::Exclusive(bytes) => elements_mut(bytes),
            ColumnGuard::Paged(bytes) => elements_mut(bytes),
        }
    }
}

/// Returns the whole elements in `bytes`, which start aligned.
///
/// Every batch starts at a multiple of the element's size in a page-aligned buffer.
fn elements<T: Element>(bytes: &[u8]) -> &[T] {
    let whole = bytes.len() - bytes.len() % size_of::<T>().max(1);
    <[T]>::ref_from_bytes(&bytes[..whole]).unwrap_or(&[])
}

pub(crate) fn elements_mut<T: Element>(bytes: &mut [u8]) -> &mut [T] {
    let whole = bytes.len() - bytes.len() % size_of::<T>().max(1);
    <[T]>::mut_from_bytes(&mut bytes[..whole]).unwrap_or(&mut [])
}

/// Returns where the rows of each batch begin in memory, and where the last ends.
///
/// Rows take `bytes` bytes each; batches of other ranks take none.
pub(crate) fn own_cuts(batches: &Batches, own: &Range<usize>, bytes: usize) -> Vec<usize> {
    let first = batches.cut(own.start);
    (0..=batches.len())
        .map(|b| batches.cut(b.clamp(own.start, own.end)) - first)
        .map(|rows| rows as usize * bytes)
        .collect()
}

/// Returns the first page of each batch, for rows of `bytes` bytes each, and the number of pages.
///
/// Batches of other ranks have none.
pub(crate) fn own_pages(
    batches: &Batches,
    own: &Range<usize>,
    bytes: usize,
    page_bytes: usize,
) -> Vec<usize> {
    let (mut first, mut pages) = (vec![0], 0);
    for batch in 0..batches.len() {
        if own.contains(&batch) {
            pages += (batches.span(batch) as usize * bytes).div_ceil(page_bytes);
        }
        first.push(pages);
    }
    first
}
