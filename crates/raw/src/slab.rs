//! One buffer cut into buckets, each a handle that moves from thread to thread.
//!
//! Invariant: at most one [`Bucket`] of a buffer has a number, and the bytes with that number are accessed through it alone.

#![expect(unsafe_code, reason = "each handle has its own part of a buffer")]

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use crate::aligned_buffer::AlignedBuffer;

/// Memory for one datagram: who holds the handle has the bytes to itself.
#[derive(Debug)]
pub struct Bucket {
    memory: Arc<AlignedBuffer>,
    begin: usize,
    bytes: usize,
}

/// Cuts a buffer into buckets of `bytes` bytes, each at a multiple of `stride` bytes.
///
/// The buffer is freed with the last of them.
pub fn buckets(memory: AlignedBuffer, bytes: usize, stride: usize) -> Vec<Bucket> {
    let (count, bytes) = (memory.len() / stride.max(1), bytes.min(stride));
    let memory = Arc::new(memory);
    let bucket = |number| Bucket {
        memory: Arc::clone(&memory),
        begin: number * stride,
        bytes,
    };
    (0..count).map(bucket).collect()
}

impl Deref for Bucket {
    type Target = [u8];
    #[inline(always)]
    fn deref(&self) -> &[u8] {
        // SAFETY: the bytes are initialised and within the buffer, which lives as long as `self`. Only this bucket accesses them.
        unsafe {
            let begin = self.memory.start().as_ptr().add(self.begin);
            std::slice::from_raw_parts(begin, self.bytes)
        }
    }
}

impl DerefMut for Bucket {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `deref`, and `self` is borrowed exclusively.
        unsafe {
            let begin = self.memory.start().as_ptr().add(self.begin);
            std::slice::from_raw_parts_mut(begin, self.bytes)
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn buckets_share_no_byte() {
        let mut all = buckets(AlignedBuffer::zeroed(10_000).unwrap(), 1472, 1536);
        assert_eq!(all.len(), 10_000 / 1536);
        for (bucket, number) in all.iter_mut().zip(1..) {
            assert_eq!((bucket.len(), bucket.as_ptr() as usize % 64), (1472, 0));
            bucket.fill(number);
        }
        for (bucket, number) in all.iter().zip(1..) {
            assert!(bucket.iter().all(|byte| *byte == number));
        }
    }

    #[test]
    fn bucket_moves_between_threads() {
        let mut all = buckets(AlignedBuffer::zeroed(128).unwrap(), 64, 64);
        let mut other = all.pop().unwrap();
        std::thread::scope(|scope| {
            let moved = scope.spawn(move || {
                other.fill(2);
                other
            });
            all[0].fill(1);
            drop(all);
            assert!(moved.join().unwrap().iter().all(|byte| *byte == 2));
        });
    }
}

#[cfg(all(test, any(loom, shuttle)))]
mod every_order {
    use super::*;
    use crate::ring::ring;
    use crate::sync::{Ordering, Watch, every_order, thread};

    /// A worker fills a bucket twice, and a sender thread reads it and gives it back.
    fn filled_twice(publish: Ordering) {
        every_order(move || {
            let watch = Arc::new(Watch::default());
            let mut all = buckets(AlignedBuffer::zeroed(64).unwrap(), 64, 64);
            let (mut full, mut filled) = ring(1);
            let (mut back, mut free) = ring(1);
            let read = Arc::clone(&watch);
            let sender = thread::spawn(move || {
                let mut sum = 0;
                for _ in 0..2 {
                    if let Some(bucket) = filled.take() {
                        read.read();
                        sum += u32::from(Bucket::deref(&bucket)[0]);
                        assert!(back.put_as(bucket, publish).is_ok(), "one bucket");
                    }
                }
                (sum, filled)
            });
            let mut written = 0;
            for value in 1..=2 {
                if let Some(mut bucket) = all.pop().or_else(|| free.take()) {
                    watch.write();
                    bucket[0] = value;
                    written += u32::from(value);
                    assert!(full.put(bucket).is_ok(), "one bucket");
                }
            }
            let (mut read, mut filled) = sender.join().unwrap();
            read += filled.take().map_or(0, |bucket| u32::from(bucket[0]));
            assert_eq!(read, written);
        });
    }

    #[test]
    fn bucket_has_one_owner() {
        filled_twice(Ordering::Release);
    }

    #[test]
    #[cfg(loom)]
    #[should_panic(expected = "Concurrent")]
    fn bucket_given_back_too_early_is_detected() {
        filled_twice(Ordering::Relaxed);
    }
}
