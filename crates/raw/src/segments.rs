//! One buffer cut into segments; each is borrowed by many readers or by one writer, counted at run time.
//!
//! Invariants:
//!
//! - Segment `i` is elements `cuts[i]..cuts[i + 1]`, so no two segments overlap.
//! - `states[i].guards` is [`WRITTEN`] while a [`SegmentMut`] of segment `i` lives, else the number of its living [`SegmentRef`]s.
//! - A reference into the buffer's bytes is made only through such a guard, or through `&mut self`, which excludes guards.

#![expect(unsafe_code, reason = "lends parts of one buffer to several threads")]

use std::marker::PhantomData;
use std::ops::{Deref, DerefMut, Range};
use std::ptr::NonNull;

use crate::aligned_buffer::{AlignedBuffer, Element};
use crate::sync::{AtomicU32, Ordering, Watch};

/// The state of a segment that is borrowed for writing.
const WRITTEN: u32 = u32::MAX;

/// A buffer of `T` in segments that many threads borrow, each for reading or for writing at a time.
#[derive(Debug)]
pub struct BorrowedSegments<T: Element> {
    buffer: AlignedBuffer,
    cuts: Vec<usize>,
    states: Vec<BorrowState>,
    element: PhantomData<T>,
}

/// The borrows of a segment.
#[derive(Debug, Default)]
struct BorrowState {
    guards: AtomicU32,
    elements: Watch,
}

impl<T: Element> BorrowedSegments<T> {
    /// Cuts `buffer` at `cuts` (in elements): segment `i` is `cuts[i]..cuts[i + 1]`.
    ///
    /// # Panics
    /// `cuts` does not start with 0, descends, or ends beyond the buffer: a mistake in the program.
    pub fn new(buffer: AlignedBuffer, cuts: Vec<usize>) -> Self {
        let elements = buffer.typed::<T>().len();
        assert!(
            cuts.first() == Some(&0)
                && cuts.is_sorted()
                && cuts.last().is_some_and(|&last| last <= elements),
            "cuts ascend from 0 to at most the {elements} elements of the buffer"
        );
        let states = (1..cuts.len()).map(|_| BorrowState::default()).collect();
        BorrowedSegments {
            buffer,
            cuts,
            states,
            element: PhantomData,
        }
    }

    /// Returns the whole buffer.
    pub fn into_buffer(self) -> AlignedBuffer {
        self.buffer
    }

    /// Returns the number of segments.
    pub fn segments(&self) -> usize {
        self.states.len()
    }

    /// Returns the number of elements of all segments.
    pub fn len(&self) -> usize {
        self.cuts.last().copied().unwrap_or(0)
    }

    /// Returns true if there is no element.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Borrows segment `i` for reading; `None` while it is borrowed for writing, or if it does not exist.
    pub fn read(&self, i: usize) -> Option<SegmentRef<'_, T>> {
        let state = self.states.get(i)?;
        state
            .guards
            .fetch_update(Ordering::Acquire, Ordering::Relaxed, |readers| {
                (readers < WRITTEN - 1).then(|| readers + 1)
            })
            .ok()?;
        let (start, len) = self.place(i);
        Some(SegmentRef {
            start,
            len,
            state,
            element: PhantomData,
        })
    }

    /// Borrows segment `i` for writing; `None` while it is borrowed at all, or if it does not exist.
    pub fn write(&self, i: usize) -> Option<SegmentMut<'_, T>> {
        let state = self.states.get(i)?;
        state
            .guards
            .compare_exchange(0, WRITTEN, Ordering::Acquire, Ordering::Relaxed)
            .ok()?;
        let (start, len) = self.place(i);
        Some(SegmentMut {
            start,
            len,
            state,
            element: PhantomData,
        })
    }

    /// Returns all elements.
    pub fn all(&mut self) -> &mut [T] {
        let elements = self.len();
        // A guard that was forgotten instead of dropped can no longer be used: its borrow of `self` has ended.
        self.states.fill_with(BorrowState::default);
        &mut self.buffer.typed_mut()[..elements]
    }

    fn place(&self, i: usize) -> (NonNull<T>, usize) {
        let Range { start, end } = self.cuts[i]..self.cuts[i + 1];
        // SAFETY: `new` checked that the buffer holds `end >= start` elements and is aligned for them.
        (
            unsafe { self.buffer.start().cast::<T>().add(start) },
            end - start,
        )
    }
}

/// A segment borrowed for reading. Several may live at a time.
#[derive(Debug)]
pub struct SegmentRef<'s, T> {
    // A pointer, not a reference: a reference must stay valid until the guard's drop returns, but another thread may
    // write as soon as the drop has released the segment.
    start: NonNull<T>,
    len: usize,
    state: &'s BorrowState,
    element: PhantomData<&'s [T]>,
}

/// A segment borrowed for writing. Only one lives at a time.
#[derive(Debug)]
pub struct SegmentMut<'s, T> {
    start: NonNull<T>,
    len: usize,
    state: &'s BorrowState,
    element: PhantomData<&'s mut [T]>,
}

impl<T> Deref for SegmentRef<'_, T> {
    type Target = [T];
    #[inline]
    fn deref(&self) -> &[T] {
        self.state.elements.read();
        // SAFETY: the segment lies in the buffer, its bytes are Ts, and no writer can borrow it while this guard is counted.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl<T> Deref for SegmentMut<'_, T> {
    type Target = [T];
    #[inline]
    fn deref(&self) -> &[T] {
        self.state.elements.read();
        // SAFETY: the segment lies in the buffer, its bytes are Ts, and this guard is the only one of the segment.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl<T> DerefMut for SegmentMut<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        self.state.elements.write();
        // SAFETY: as in `deref`, and the guard itself is borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

impl<T> Drop for SegmentRef<'_, T> {
    fn drop(&mut self) {
        self.state.guards.fetch_sub(1, Ordering::Release);
    }
}

impl<T> Drop for SegmentMut<'_, T> {
    fn drop(&mut self) {
        self.state.guards.store(0, Ordering::Release);
    }
}

// SAFETY: a SegmentRef is a shared reference to Ts and to an atomic.
unsafe impl<T: Sync> Send for SegmentRef<'_, T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for SegmentRef<'_, T> {}
// SAFETY: a SegmentMut is an exclusive reference to Ts and a shared one to an atomic.
unsafe impl<T: Send> Send for SegmentMut<'_, T> {}
// SAFETY: sharing a SegmentMut gives only shared references to its Ts.
unsafe impl<T: Sync> Sync for SegmentMut<'_, T> {}

#[cfg(test)]
fn segments<T: Element>(cuts: &[usize]) -> BorrowedSegments<T> {
    let bytes = cuts.last().map_or(0, |last| last * size_of::<T>());
    BorrowedSegments::new(AlignedBuffer::zeroed(bytes).unwrap(), cuts.to_vec())
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn segment_has_many_readers_or_one_writer() {
        let segments = segments::<u32>(&[0, 3, 3, 10]);
        let first = segments.read(0).unwrap();
        let second = segments.read(0).unwrap();
        assert!(segments.write(0).is_none());
        drop(first);
        assert!(segments.write(0).is_none(), "one reader is left");
        drop(second);
        let writer = segments.write(0).unwrap();
        assert!(segments.read(0).is_none());
        assert!(segments.write(0).is_none());
        drop(writer);
        assert!(segments.read(0).is_some());
    }

    #[test]
    fn segments_are_borrowed_apart_from_each_other() {
        let mut segments = segments::<u32>(&[0, 3, 3, 10]);
        {
            let mut a = segments.write(0).unwrap();
            let mut c = segments.write(2).unwrap();
            assert!(segments.read(1).unwrap().is_empty());
            assert!(
                segments.read(3).is_none() && segments.write(3).is_none(),
                "there is no fourth"
            );
            a.fill(1);
            c.fill(2);
            assert_eq!((a.len(), c.len()), (3, 7));
        }
        assert_eq!(segments.all(), [1, 1, 1, 2, 2, 2, 2, 2, 2, 2]);
        assert_eq!((segments.len(), segments.segments()), (10, 3));
    }

    #[test]
    fn segments_survive_a_forgotten_guard() {
        let mut segments = segments::<u32>(&[0, 3, 3, 10]);
        std::mem::forget(segments.write(0).unwrap());
        assert!(segments.read(0).is_none());
        segments.all()[0] = 5;
        assert_eq!(segments.read(0).unwrap()[0], 5);
    }

    #[test]
    fn segment_writers_on_threads_never_overlap() {
        let segments = segments::<u64>(&[0, 2, 4]);
        let rounds = if cfg!(miri) { 40 } else { 4000 };
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    let mut done = 0;
                    while done < rounds {
                        if let Some(mut segment) = segments.write(done % 2) {
                            segment.iter_mut().for_each(|value| *value += 1);
                            done += 1;
                        }
                        if let Some(segment) = segments.read(done % 2) {
                            assert_eq!(segment[0], segment[1]);
                        }
                    }
                });
            }
        });
        assert!(
            [0, 1]
                .iter()
                .all(|&i| segments.read(i).unwrap()[0] == rounds as u64)
        );
    }

    #[test]
    #[should_panic(expected = "cuts ascend")]
    fn cuts_beyond_the_buffer_are_refused() {
        BorrowedSegments::<u32>::new(AlignedBuffer::zeroed(4 * 10).unwrap(), vec![0, 11]);
    }
}

#[cfg(all(test, any(loom, shuttle)))]
mod every_order {
    use std::sync::Arc;

    use super::*;
    use crate::sync::{every_order, thread};

    /// Runs a writer beside another thread, in every order. Either may find the segment borrowed.
    fn beside_a_writer(other: fn(&BorrowedSegments<u64>), give_back: fn(SegmentMut<'_, u64>)) {
        every_order(move || {
            let segments = Arc::new(segments::<u64>(&[0, 2]));
            let others = {
                let segments = Arc::clone(&segments);
                thread::spawn(move || other(&segments))
            };
            if let Some(mut segment) = segments.write(0) {
                segment.fill(1);
                give_back(segment);
            }
            others.join().unwrap();
            assert!(segments.write(0).is_some(), "all guards are gone");
        });
    }

    fn read(segments: &BorrowedSegments<u64>) {
        if let Some(segment) = segments.read(0) {
            assert_eq!(segment[0], segment[1]);
        }
    }

    #[test]
    fn segment_writer_is_exclusive() {
        beside_a_writer(read, |segment| drop(segment));
        let write = |segments: &BorrowedSegments<u64>| {
            if let Some(mut segment) = segments.write(0) {
                segment.fill(2);
            }
        };
        beside_a_writer(write, |segment| drop(segment));
        // The one that leaves last need not be the one that came first.
        let read_twice = |segments: &BorrowedSegments<u64>| {
            let first = segments.read(0);
            read(segments);
            drop(first);
        };
        beside_a_writer(read_twice, |segment| drop(segment));
    }

    #[test]
    #[cfg(loom)]
    #[should_panic(expected = "Causality violation")]
    fn writer_leaving_unsynchronised_is_detected() {
        beside_a_writer(read, |segment| {
            segment.state.guards.store(0, Ordering::Relaxed);
            std::mem::forget(segment);
        });
    }

    #[test]
    #[cfg(loom)]
    #[should_panic(expected = "Causality violation")]
    fn reader_leaving_unsynchronised_is_detected() {
        let careless = |segments: &BorrowedSegments<u64>| {
            if let Some(segment) = segments.read(0) {
                assert_eq!(segment[0], segment[1]);
                segment.state.guards.fetch_sub(1, Ordering::Relaxed);
                std::mem::forget(segment);
            }
        };
        beside_a_writer(careless, |segment| drop(segment));
    }
}
