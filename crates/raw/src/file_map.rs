//! Buffers in one mapped file, on a file system or on a device of persistent memory.
//!
//! Invariants:
//!
//! - Only this process has the file: it has no name, or it is a device that this process has locked. So no other process changes its
//!   bytes or its length.
//! - No two living buffers share an extent: `taken` lists the extents in use.
//! - The blocks of an extent exist before it is mapped. So an access never asks the file system for space.

#![expect(unsafe_code, reason = "maps files")]

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::aligned_buffer::{AlignedBuffer, PAGE_BYTES, map_pages};
use crate::sync::{Mutex, lock};

/// Bytes of a huge page.
///
/// A file system that maps such pages wants blocks for all of a page when one byte is touched. Devices map no less.
const HUGE_PAGE_BYTES: u64 = 2 << 20;
/// Zeros that are written at a time if a file system cannot reserve space.
static ZEROS: [u8; 1 << 16] = [0; 1 << 16];

/// A file that contains buffers.
#[derive(Debug)]
pub struct FileMap {
    file: File,
    /// Bytes of a device; `None` for a file, which grows.
    capacity: Option<u64>,
    /// Bytes that an extent is a whole multiple of.
    grain_bytes: u64,
    /// Extents in use: the offset of each, and its bytes.
    taken: Mutex<BTreeMap<u64, u64>>,
    /// True if freed extents may still hold old bytes.
    stale: AtomicBool,
    /// True if mappings were made with MAP_SYNC.
    synchronous: AtomicBool,
}

impl FileMap {
    /// Makes a map of an empty file without a name, which reserves blocks for whole huge pages.
    ///
    /// The blocks of a file that is `in_memory` are pages of memory. Such a file reserves no more than whole pages of [`PAGE_BYTES`] for
    /// each buffer.
    ///
    /// # Errors
    /// The file has a name or bytes in it, so another process could change them.
    pub fn of_file(file: File, in_memory: bool) -> io::Result<Arc<FileMap>> {
        use std::os::unix::fs::MetadataExt;
        let about = file.metadata()?;
        if !about.is_file() || about.nlink() > 0 || about.len() > 0 {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let grain_bytes = match in_memory {
            true => PAGE_BYTES as u64,
            false => HUGE_PAGE_BYTES,
        };
        Ok(FileMap::new(file, None, grain_bytes))
    }

    /// Makes a map of a character device of `bytes` bytes, which stays locked as long as the map exists.
    ///
    /// # Errors
    /// It is not a device, or another process has locked it.
    pub fn of_device(device: File, bytes: u64) -> io::Result<Arc<FileMap>> {
        use std::os::unix::fs::FileTypeExt;
        if !device.metadata()?.file_type().is_char_device() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        device.try_lock()?;
        Ok(FileMap::new(device, Some(bytes), HUGE_PAGE_BYTES))
    }

    fn new(file: File, capacity: Option<u64>, grain_bytes: u64) -> Arc<FileMap> {
        Arc::new(FileMap {
            file,
            stale: AtomicBool::new(capacity.is_some()),
            capacity,
            grain_bytes,
            taken: Mutex::default(),
            synchronous: AtomicBool::new(false),
        })
    }

    /// Returns `bytes` zeroed bytes of memory in the file.
    ///
    /// # Errors
    /// The file system or the device is full, or does not map files.
    pub fn buffer(self: &Arc<Self>, bytes: usize) -> io::Result<AlignedBuffer> {
        if bytes == 0 {
            return AlignedBuffer::zeroed(0).map_err(|error| error.source);
        }
        let extent = self.take(bytes)?;
        // A device maps whole grains.
        let mapped = match self.capacity {
            Some(_) => extent.bytes as usize,
            None => bytes.next_multiple_of(PAGE_BYTES),
        };
        let start = self.map(extent.first, mapped)?;
        let mut buffer = AlignedBuffer::of_extent(start, mapped, bytes, Box::new(extent));
        if self.stale.load(Ordering::Relaxed) {
            buffer.fill(0);
        }
        Ok(buffer)
    }

    /// Returns `bytes` zeroed bytes of memory, each part in a file of its own.
    ///
    /// Part `i` begins near offset `cuts[i]`, at a huge page, and is in file `i`; the first one begins at 0.
    ///
    /// # Errors
    /// As of [`FileMap::buffer`]; there are no files, or not as many cuts.
    pub fn buffer_in_parts(
        files: &[Arc<FileMap>],
        cuts: &[usize],
        bytes: usize,
    ) -> io::Result<AlignedBuffer> {
        let huge = HUGE_PAGE_BYTES as usize;
        if files.is_empty() || cuts.len() != files.len() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let whole = bytes.checked_next_multiple_of(huge);
        let whole = whole.ok_or(io::ErrorKind::OutOfMemory)?;
        // Dropped after the buffer: extents end once they are no longer mapped.
        let mut extents = Vec::new();
        let mut buffer = AlignedBuffer::zeroed(whole).map_err(|error| error.source)?;
        let begin = |part: usize| match cuts.get(part) {
            _ if part == 0 => 0,
            Some(cut) if *cut < bytes => cut / huge * huge,
            _ => whole,
        };
        for (part, file) in files.iter().enumerate() {
            let (first, mut end) = (begin(part), begin(part + 1));
            if file.capacity.is_none() {
                // A file need not have whole huge pages.
                end = end.min(bytes.next_multiple_of(PAGE_BYTES));
            }
            if end <= first {
                continue;
            }
            let extent = file.take(end - first)?;
            if let Err(error) = file.map_over(extent.first, &mut buffer, first..end) {
                // A failed move may leave a hole that another thread's mapping takes: unmapping the buffer would remove that mapping.
                std::mem::forget(buffer);
                return Err(error);
            }
            if file.stale.load(Ordering::Relaxed) {
                let end = end.min(buffer.len());
                buffer[first.min(end)..end].fill(0);
            }
            extents.push(extent);
        }
        Ok(buffer.owned_by(bytes, Box::new(extents)))
    }

    /// Returns true if writes are in persistent memory as soon as they leave the caches.
    ///
    /// This holds if the mappings were made with MAP_SYNC.
    pub fn is_synchronous(&self) -> bool {
        self.synchronous.load(Ordering::Relaxed)
    }

    /// Takes the first free extent of at least `bytes` bytes.
    fn take(self: &Arc<Self>, bytes: usize) -> io::Result<MappedRange> {
        let bytes = (bytes as u64).next_multiple_of(self.grain_bytes);
        let mut taken = lock(&self.taken);
        let mut first = 0;
        for (begin, bytes_taken) in taken.iter() {
            if begin - first >= bytes {
                break;
            }
            first = begin + bytes_taken;
        }
        let end = first + bytes;
        if self.capacity.is_some_and(|capacity| end > capacity) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        taken.insert(first, bytes);
        drop(taken);
        let extent = MappedRange {
            file: Arc::clone(self),
            first,
            bytes,
        };
        if self.capacity.is_none() {
            self.set_aside(first, bytes)?;
        }
        Ok(extent)
    }

    /// Reserves blocks of the file system for a part of the file, which reads as zeros.
    fn set_aside(&self, first: u64, bytes: u64) -> io::Result<()> {
        match self.fallocate(0, first, bytes) {
            Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => {}
            done => return done,
        }
        // Written bytes have blocks.
        let mut at = 0;
        while at < bytes {
            let now = (bytes - at).min(ZEROS.len() as u64);
            self.file.write_all_at(&ZEROS[..now as usize], first + at)?;
            at += now;
        }
        Ok(())
    }

    fn fallocate(&self, mode: libc::c_int, first: u64, bytes: u64) -> io::Result<()> {
        loop {
            // SAFETY: the descriptor is open as long as `self` lives; the call touches no memory of this process.
            let done = unsafe {
                libc::fallocate64(
                    self.file.as_raw_fd(),
                    mode,
                    first as libc::off64_t,
                    bytes as libc::off64_t,
                )
            };
            if done == 0 {
                return Ok(());
            }
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::Interrupted {
                return Err(error);
            }
        }
    }

    /// Maps a part of the file, with MAP_SYNC if it is on DAX, which has no page cache.
    fn map(&self, first: u64, bytes: usize) -> io::Result<NonNull<u8>> {
        // No other process changes the file's bytes or length (see the file's invariants), so the mapping is memory like any other.
        let map = |flags| map_pages(bytes, flags, self.file.as_raw_fd(), first as libc::off_t);
        let start = match map(libc::MAP_SHARED_VALIDATE | libc::MAP_SYNC) {
            Ok(start) => {
                self.synchronous.store(true, Ordering::Relaxed);
                start
            }
            Err(_) => map(libc::MAP_SHARED)?,
        };
        // SAFETY: the range is the mapping made above. A hint: if there are no huge pages, small ones serve as well.
        unsafe { libc::madvise(start.as_ptr().cast(), bytes, libc::MADV_HUGEPAGE) };
        Ok(start)
    }

    /// Maps a part of the file in place of pages of a buffer, with MAP_SYNC if it is on DAX.
    ///
    /// The mapping is made elsewhere and then moved. A refused MAP_FIXED may leave a hole that another thread's mapping takes.
    fn map_over(
        &self,
        first: u64,
        buffer: &mut AlignedBuffer,
        range: std::ops::Range<usize>,
    ) -> io::Result<()> {
        let bytes = range.len();
        let to = buffer.pages(range).ok_or(io::ErrorKind::InvalidInput)?;
        let from = self.map(first, bytes)?;
        // SAFETY: `from` is the mapping made above, which nothing refers to. `to` is whole pages of the buffer's own mapping, which is
        // borrowed exclusively: nothing refers to the bytes that the moved mapping replaces. The new bytes are initialised and no other
        // process changes them (see the file's invariants). The buffer unmaps them with its own.
        let moved = unsafe {
            libc::mremap(
                from.as_ptr().cast(),
                bytes,
                bytes,
                libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED,
                to.as_ptr(),
            )
        };
        if moved == libc::MAP_FAILED {
            let error = io::Error::last_os_error();
            // SAFETY: a refused move leaves the mapping made above, which nothing refers to.
            unsafe { libc::munmap(from.as_ptr().cast(), bytes) };
            return Err(error);
        }
        // SAFETY: the range is mapped. A hint: if there are no huge pages, small ones serve as well.
        unsafe { libc::madvise(to.as_ptr().cast(), bytes, libc::MADV_HUGEPAGE) };
        Ok(())
    }
}

/// A part of a file that only one buffer uses.
///
/// It is dropped once it is no longer mapped. Dropping it frees its blocks.
#[derive(Debug)]
pub(crate) struct MappedRange {
    file: Arc<FileMap>,
    first: u64,
    bytes: u64,
}

impl Drop for MappedRange {
    fn drop(&mut self) {
        let file = &*self.file;
        if file.capacity.is_none() {
            let punch = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
            if file.fallocate(punch, self.first, self.bytes).is_err() {
                file.stale.store(true, Ordering::Relaxed);
            }
        }
        lock(&file.taken).remove(&self.first);
    }
}

#[cfg(all(test, not(miri)))]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn file_buffers_free_their_blocks() {
        let file = FileMap::of_file(tempfile::tempfile().unwrap(), false).unwrap();
        let blocks = || file.file.metadata().unwrap().blocks() * 512;
        let mut first = file.buffer(5000).unwrap();
        let mut second = file.buffer(3 << 20).unwrap();
        assert!(
            blocks() >= 6 << 20,
            "the blocks are there before they are touched"
        );
        assert_eq!((first.len(), second.len()), (5000, 3 << 20));
        assert!(first.iter().chain(&*second).all(|byte| *byte == 0));
        first.fill(1);
        second.fill(2);
        assert!(first.iter().all(|byte| *byte == 1), "they do not overlap");
        drop(second);
        assert!(blocks() < 4 << 20, "its blocks were given back");
        let third = file.buffer(3 << 20).unwrap();
        assert!(
            third.iter().all(|byte| *byte == 0),
            "what lies where the second lay"
        );
        drop((first, third));
        assert!(lock(&file.taken).is_empty());
        assert_eq!(file.buffer(0).unwrap().len(), 0);
    }

    #[test]
    fn memory_file_has_no_blocks_beyond_its_buffers() {
        let file = FileMap::of_file(tempfile::tempfile().unwrap(), true).unwrap();
        let buffers = [1, 5000, 4096].map(|bytes| file.buffer(bytes).unwrap());
        let taken: u64 = lock(&file.taken).values().sum();
        assert_eq!(taken, 4 * PAGE_BYTES as u64);
        drop(buffers);
    }

    #[test]
    fn buffer_in_parts_has_blocks_in_each_file() {
        let files = || FileMap::of_file(tempfile::tempfile().unwrap(), false).unwrap();
        let files = [files(), files(), files()];
        let blocks = |file: &FileMap| file.file.metadata().unwrap().blocks() * 512;
        let (bytes, huge) = (9 << 20, 2 << 20);
        // The second cut is rounded down to a huge page, and the third part is empty.
        let cuts = [0, (4 << 20) + 5, 9 << 20];
        let mut buffer = FileMap::buffer_in_parts(&files, &cuts, bytes).unwrap();
        assert_eq!(buffer.len(), bytes);
        assert_eq!(buffer.as_ptr().addr() % huge, 0);
        assert!(buffer.iter().all(|byte| *byte == 0));
        for (i, byte) in buffer.iter_mut().enumerate() {
            *byte = i as u8 ^ (i >> 12) as u8;
        }
        let is_kept = |(i, byte): (usize, &u8)| *byte == i as u8 ^ (i >> 12) as u8;
        assert!(buffer.iter().enumerate().all(is_kept));
        let held = files.each_ref().map(|file| blocks(file));
        assert!(
            held[0] == 4 << 20 && held[1] >= 5 << 20 && held[2] == 0,
            "{held:?}"
        );
        drop(buffer);
        assert_eq!(files.each_ref().map(|file| blocks(file)), [0; 3]);
        for bytes in [0, 1, 4097] {
            let small = FileMap::buffer_in_parts(&files, &[0, 1, 2], bytes).unwrap();
            assert_eq!(small.len(), bytes);
        }
        assert!(FileMap::buffer_in_parts(&files, &[0], 5).is_err());
        assert!(FileMap::buffer_in_parts(&[], &[], 5).is_err());
    }

    #[test]
    fn file_with_a_name_is_refused() {
        let named = tempfile::NamedTempFile::new().unwrap();
        let error = FileMap::of_file(named.reopen().unwrap(), false).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
        let error = FileMap::of_device(named.reopen().unwrap(), 1 << 20).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    }
}
