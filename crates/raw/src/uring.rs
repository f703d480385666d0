//! An io_uring that owns the buffers and files of requests in flight.
//!
//! Invariants:
//!
//! - A request's buffer and file stay in `slots` from [`Ring::push`] until its completion is taken. So neither a caller's mistake nor a
//!   panic frees memory that the kernel uses.
//! - There are no more slots than entries in the submission queue, so a free slot means a free entry. The completion queue is twice as
//!   long and never overflows.
//! - Dropping the ring waits for requests in flight. If the wait fails, the ring is abandoned: the buffers are leaked, and the kernel gets
//!   nothing more. Requests that the kernel has not taken yet may name files that are closed meanwhile.

#![expect(unsafe_code, reason = "gives the kernel pointers")]

use std::io;
use std::ops::Range;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use io_uring::{IoUring, Probe, opcode, squeue, types};

use crate::aligned_buffer::AlignedBuffer;

/// The most bytes that one read or write moves: Linux's own limit, a multiple of the page.
const TRANSFER_BYTES_MAX: usize = 0x7fff_f000;

/// The operation of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Reads from the file into the buffer.
    Read,
    /// Writes from the buffer to the file.
    Write,
    /// Writes data, and the metadata to find it again, to the disk (`fdatasync`). Needs no buffer.
    Sync,
}

/// One operation, and `tag`, which the ring keeps and returns.
#[derive(Debug)]
pub struct Request<T> {
    /// The operation.
    pub action: Action,
    /// The file, kept open until the request is complete.
    pub file: Arc<OwnedFd>,
    /// Offset in the file, in bytes.
    pub offset: u64,
    /// Memory to read into or write from.
    pub buffer: Option<AlignedBuffer>,
    /// The bytes of the buffer to move.
    pub range: Range<usize>,
    /// A value of the caller.
    pub tag: T,
}

/// An io_uring with a maximum number of requests in flight.
pub struct Ring<T> {
    ring: IoUring,
    slots: Vec<Option<Request<T>>>,
    free: Vec<usize>,
    abandoned: bool,
}

impl<T> Ring<T> {
    /// Makes a ring for `depth` requests in flight, rounded up to a power of two.
    ///
    /// # Errors
    /// The kernel has no io_uring, does not allow it (as in many containers), or refuses to lock memory.
    pub fn new(depth: usize) -> io::Result<Self> {
        let entries = depth.clamp(1, 4096).next_power_of_two();
        let ring = IoUring::builder().dontfork().build(entries as u32)?;
        // Linux 5.1 to 5.5 has a ring but not these two operations.
        let mut known = Probe::new();
        ring.submitter().register_probe(&mut known)?;
        if !known.is_supported(opcode::Read::CODE) || !known.is_supported(opcode::Write::CODE) {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let slots = (0..entries).map(|_| None).collect();
        Ok(Ring {
            ring,
            slots,
            free: (0..entries).rev().collect(),
            abandoned: false,
        })
    }

    /// Checks that the kernel can carry out requests by threads of its own.
    ///
    /// It needs them for files that it cannot read or write without blocking. If it may start none (`pids.max`, `ulimit -u`), such a
    /// request never ends.
    ///
    /// # Errors
    /// The kernel cannot do so within `patience`, or there is no ring.
    pub fn probe(patience: Duration) -> io::Result<()> {
        let mut ring: IoUring = IoUring::builder().dontfork().build(1)?;
        let entry = opcode::Nop::new().build().flags(squeue::Flags::ASYNC);
        // SAFETY: the request has no memory and no file.
        let pushed = unsafe { ring.submission().push(&entry) };
        pushed.map_err(io::Error::other)?;
        ring.submit()?;
        let (mut waited, mut pause) = (Duration::ZERO, Duration::from_micros(20));
        loop {
            if let Some(entry) = ring.completion().next() {
                return match entry.result() {
                    error @ ..0 => Err(io::Error::from_raw_os_error(-error)),
                    _ => Ok(()),
                };
            }
            if waited >= patience {
                let what = "the kernel starts no thread for it";
                return Err(io::Error::new(io::ErrorKind::TimedOut, what));
            }
            std::thread::sleep(pause);
            waited += pause;
            pause = (2 * pause).min(Duration::from_millis(10));
        }
    }

    /// Returns the number of requests in flight.
    pub fn in_flight(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Queues a request for the next [`Ring::submit`]; returns it if the ring is full.
    ///
    /// # Errors
    /// The request itself.
    ///
    /// # Panics
    /// The range is not within the buffer.
    pub fn push(&mut self, request: Request<T>) -> Result<(), Request<T>> {
        let held = request.buffer.as_ref().map_or(0, |buffer| buffer.len());
        let Range { start, end } = request.range;
        assert!(
            start <= end && end <= held,
            "{start}..{end} is not within the {held} bytes of the buffer"
        );
        let Some(slot) = self.free.pop() else {
            return Err(request);
        };
        let request = self.slots[slot].insert(request);
        let file = types::Fd(request.file.as_raw_fd());
        let bytes: &mut [u8] = match &mut request.buffer {
            Some(buffer) => &mut buffer[request.range.clone()],
            None => &mut [],
        };
        let length = bytes.len().min(TRANSFER_BYTES_MAX) as u32;
        let entry = match request.action {
            Action::Read => opcode::Read::new(file, bytes.as_mut_ptr(), length)
                .offset(request.offset)
                .build(),
            Action::Write => opcode::Write::new(file, bytes.as_ptr(), length)
                .offset(request.offset)
                .build(),
            Action::Sync => opcode::Fsync::new(file)
                .flags(types::FsyncFlags::DATASYNC)
                .build(),
        };
        // SAFETY: the slot owns the bytes and the descriptor. It is emptied when the kernel has completed the request, or when the
        // ring is abandoned. In the second case the buffer is leaked; a request that the kernel has taken holds the file itself, and
        // the kernel never gets one that it has not taken. The memory does not move with the `AlignedBuffer`, and no other code can
        // access it.
        let pushed = unsafe { self.ring.submission().push(&entry.user_data(slot as u64)) };
        if pushed.is_err() {
            // Cannot happen, since a slot was free; the kernel has not seen the request then.
            self.free.push(slot);
            return self.slots[slot].take().map_or(Ok(()), Err);
        }
        Ok(())
    }

    /// Submits all pushed requests to the kernel.
    ///
    /// # Errors
    /// The kernel refuses: requests that it has not taken stay queued. Or the ring is abandoned.
    pub fn submit(&mut self) -> io::Result<()> {
        if self.ring.submission().is_empty() && !self.abandoned {
            Ok(())
        } else {
            self.enter(0, None)
        }
    }

    /// Submits all pushed requests and, if any is in flight, waits until one is complete.
    ///
    /// # Errors
    /// As for [`Ring::submit`].
    pub fn wait(&mut self) -> io::Result<()> {
        let want = self.in_flight() > 0 && self.ring.completion().is_empty();
        self.enter(usize::from(want), None)
    }

    /// Waits as [`Ring::wait`] does, but at most `patience` if the kernel can do that (Linux 5.11).
    ///
    /// Returns true if a request is complete, or none is in flight.
    ///
    /// # Errors
    /// As for [`Ring::submit`].
    pub fn wait_at_most(&mut self, patience: Duration) -> io::Result<bool> {
        let want = self.in_flight() > 0 && self.ring.completion().is_empty();
        self.enter(usize::from(want), Some(patience))?;
        Ok(self.in_flight() == 0 || !self.ring.completion().is_empty())
    }

    fn enter(&mut self, want: usize, patience: Option<Duration>) -> io::Result<()> {
        if self.abandoned {
            return Err(io::Error::from_raw_os_error(libc::ECANCELED));
        }
        loop {
            let patience = patience.filter(|_| want > 0 && self.ring.params().is_feature_ext_arg());
            let entered = match patience.map(types::Timespec::from) {
                Some(time) => {
                    let arguments = types::SubmitArgs::new().timespec(&time);
                    self.ring.submitter().submit_with_args(want, &arguments)
                }
                None => self.ring.submit_and_wait(want),
            };
            match entered {
                Ok(_) => return Ok(()),
                Err(error) => match error.raw_os_error() {
                    // A resource is exhausted for now: a later call continues, and a wait tries again by itself.
                    Some(libc::EAGAIN | libc::EBUSY)
                        if want == 0 || !self.ring.completion().is_empty() =>
                    {
                        return Ok(());
                    }
                    Some(libc::EAGAIN | libc::EBUSY) => std::thread::yield_now(),
                    Some(libc::EINTR) => {}
                    Some(libc::ETIME) => return Ok(()),
                    _ => return Err(error),
                },
            }
        }
    }

    /// Returns a completed request with the bytes it moved, if there is one.
    pub fn completed(&mut self) -> Option<(Request<T>, io::Result<usize>)> {
        let entry = self.ring.completion().next()?;
        let slot = entry.user_data() as usize;
        let request = self.slots.get_mut(slot)?.take()?;
        self.free.push(slot);
        let result = match entry.result() {
            error @ ..0 => Err(io::Error::from_raw_os_error(-error)),
            bytes => Ok(bytes as usize),
        };
        Some((request, result))
    }

    /// Gives up all requests in flight, after an error of [`Ring::wait`].
    ///
    /// Their buffers are leaked, since the kernel may still use them. The ring takes no more and submits nothing.
    pub fn abandon(&mut self) -> Vec<Request<T>> {
        self.abandoned = true;
        for request in self.slots.iter_mut().flatten() {
            std::mem::forget(request.buffer.take());
        }
        self.free.clear();
        self.slots.drain(..).flatten().collect()
    }
}

impl<T> Drop for Ring<T> {
    fn drop(&mut self) {
        while self.in_flight() > 0 {
            if self.wait().is_err() {
                self.abandon();
            }
            while self.completed().is_some() {}
        }
    }
}

impl<T> std::fmt::Debug for Ring<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ring")
            .field("depth", &self.slots.len())
            .field("in_flight", &self.in_flight())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
#[cfg(not(miri))]
mod tests {
    use super::*;
    use std::io::Write;

    /// Returns a ring; `None`, with a line on stderr, if the kernel does not allow io_uring.
    fn ring(depth: usize) -> Option<Ring<u64>> {
        Ring::new(depth)
            .inspect_err(|error| eprintln!("skipped: no io_uring here ({error})"))
            .ok()
    }

    fn file_of(bytes: &[u8]) -> Arc<OwnedFd> {
        let path = std::env::temp_dir().join(format!(
            "graphmill-ring-{}-{}",
            std::process::id(),
            bytes.len()
        ));
        let mut file = std::fs::OpenOptions::new()
            .create_new(true)
            .read(true)
            .write(true)
            .open(&path)
            .unwrap();
        std::fs::remove_file(path).unwrap();
        file.write_all(bytes).unwrap();
        Arc::new(file.into())
    }

    fn read(file: &Arc<OwnedFd>, offset: u64, tag: u64) -> Request<u64> {
        let buffer = Some(AlignedBuffer::zeroed(8192).unwrap());
        Request {
            action: Action::Read,
            file: Arc::clone(file),
            offset,
            buffer,
            range: 4096..8192,
            tag,
        }
    }

    #[test]
    fn request_returns_with_its_buffer() {
        let Some(mut ring) = ring(2) else { return };
        let bytes: Vec<u8> = (0..10_000).map(|i| (i % 251) as u8).collect();
        let file = file_of(&bytes);
        ring.push(read(&file, 0, 0)).unwrap();
        ring.push(read(&file, 8192, 1)).unwrap();
        assert_eq!(
            ring.push(read(&file, 4096, 2)).unwrap_err().tag,
            2,
            "a full ring gives the request back"
        );
        let mut lengths = [0; 2];
        while ring.in_flight() > 0 {
            ring.wait().unwrap();
            while let Some((request, result)) = ring.completed() {
                let length = result.unwrap();
                let start = request.offset as usize;
                assert_eq!(
                    request.buffer.unwrap()[4096..][..length],
                    bytes[start..start + length]
                );
                lengths[request.tag as usize] = length;
            }
        }
        assert_eq!(lengths, [4096, 10_000 - 8192]);
        assert!(ring.completed().is_none());
    }

    #[test]
    fn wait_ends_if_nothing_completes() {
        let Some(mut ring) = ring(1) else { return };
        Ring::<()>::probe(Duration::from_secs(60)).unwrap();
        let (reader, mut writer) = io::pipe().unwrap();
        let reader: Arc<OwnedFd> = Arc::new(reader.into());
        ring.push(read(&reader, u64::MAX, 0)).unwrap();
        if !ring.ring.params().is_feature_ext_arg() {
            return writer.write_all(b"1").unwrap();
        }
        assert!(!ring.wait_at_most(Duration::from_millis(1)).unwrap());
        writer.write_all(b"1").unwrap();
        assert!(ring.wait_at_most(Duration::from_secs(60)).unwrap());
        assert_eq!(ring.completed().unwrap().1.unwrap(), 1);
    }

    #[test]
    fn request_error_is_its_own() {
        let Some(mut ring) = ring(4) else { return };
        let directory: Arc<OwnedFd> = Arc::new(
            std::fs::OpenOptions::new()
                .read(true)
                .open("/")
                .unwrap()
                .into(),
        );
        ring.push(read(&directory, 0, 7)).unwrap();
        ring.wait().unwrap();
        let (request, result) = ring.completed().unwrap();
        assert_eq!(
            (request.tag, result.unwrap_err().raw_os_error()),
            (7, Some(libc::EISDIR))
        );
    }

    #[test]
    fn ring_dropped_with_requests_in_flight_is_sound() {
        let file = file_of(&[1; 100_000]);
        for abandon in [false, true] {
            let Some(mut ring) = ring(8) else { return };
            (0..8).for_each(|i| ring.push(read(&file, i * 4096, i)).unwrap());
            ring.submit().unwrap();
            if abandon {
                let lost = ring.abandon();
                assert_eq!(lost.iter().map(|request| request.tag).sum::<u64>(), 28);
                assert!(lost.iter().all(|request| request.buffer.is_none()));
                assert!(ring.push(read(&file, 0, 0)).is_err());
                assert!(ring.completed().is_none());
            }
        }
    }

    #[test]
    fn ring_abandoned_submits_nothing() {
        let Some(mut ring) = ring(2) else { return };
        let file = file_of(&[1; 9000]);
        ring.push(read(&file, 0, 0)).unwrap();
        ring.push(read(&file, 4096, 1)).unwrap();
        drop((ring.abandon(), file));
        assert_eq!(ring.in_flight(), 0);
        for outcome in [ring.submit(), ring.wait(), ring.submit()] {
            let error = outcome.unwrap_err().raw_os_error();
            assert_eq!(error, Some(libc::ECANCELED));
        }
        assert_eq!(ring.ring.submission().len(), 2, "they are still in line");
        assert!(ring.completed().is_none());
    }

    #[test]
    #[should_panic(expected = "is not within")]
    fn range_outside_the_buffer_is_refused() {
        let Some(mut ring) = ring(1) else {
            panic!("is not within")
        };
        let file = file_of(&[0; 5]);
        let _ = ring.push(Request {
            range: 0..8193,
            ..read(&file, 0, 0)
        });
    }
}
