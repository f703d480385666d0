//! Zeroed memory, aligned for direct I/O and, when large, for huge pages.
//!
//! A buffer of one page is from the heap: it is made and freed without a system call. Longer buffers are mappings of the kernel.
//!
//! Invariants:
//!
//! - `start` is aligned to [`PAGE_BYTES`].
//! - `start..start + mapped` is memory that only this buffer frees, or dangling if `mapped` is 0. It is an allocation of one page
//!   if `is_heap`, otherwise one mapping. The mapping is private, or of a part of a file that no other owner has.
//! - All its bytes are initialised: they begin as zeros.
//! - `bytes <= mapped`.
//!
//! The memory never moves, so a pointer into it stays valid when the `AlignedBuffer` itself moves.

#![expect(unsafe_code, reason = "hands out memory it maps itself")]

use std::alloc::Layout;
use std::ops::{Deref, DerefMut};
use std::os::fd::RawFd;
use std::ptr::NonNull;

use zerocopy::{FromBytes, Immutable, IntoBytes};

use crate::numa::{Nodes, Policy};

/// The grain of memory and of direct I/O, in bytes.
pub const PAGE_BYTES: usize = 4096;
/// Buffers of this many bytes or more are aligned to it and ask for huge pages.
const HUGE_PAGE_BYTES: usize = 2 << 20;

/// Plain old data: any bytes are a value, and a value is nothing but its bytes.
pub trait Element: FromBytes + IntoBytes + Immutable + Copy + Send + Sync + 'static {}

impl<T: FromBytes + IntoBytes + Immutable + Copy + Send + Sync + 'static> Element for T {}

/// The error of a system that gave no memory.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[error(
    "cannot allocate {bytes} bytes of memory: {source}; lower --memory, or raise the limit (ulimit -v, cgroup, overcommit)"
)]
pub struct OutOfMemory {
    /// Requested bytes.
    pub bytes: usize,
    /// The system's error.
    pub source: std::io::Error,
}

/// Zeroed memory, aligned to 4096 bytes, or to 2 MiB if it has 2 MiB or more.
///
/// Dropping it returns the memory to the system.
pub struct AlignedBuffer {
    start: NonNull<u8>,
    mapped: usize,
    bytes: usize,
    /// True if the heap owns the memory, which is then one page.
    is_heap: bool,
    /// The owner of memory that is a part of a file, dropped after the memory.
    _owner: Option<Box<dyn Send + Sync>>,
}

impl AlignedBuffer {
    /// Allocates `bytes` zeroed bytes. A page takes memory when it is first touched.
    ///
    /// # Errors
    /// The system gives no memory.
    pub fn zeroed(bytes: usize) -> Result<Self, OutOfMemory> {
        if !(1..=PAGE_BYTES).contains(&bytes) {
            return Self::mapped(bytes);
        }
        // SAFETY: the layout of a page is not empty.
        let start = NonNull::new(unsafe { std::alloc::alloc_zeroed(PAGE) });
        let source = || std::io::ErrorKind::OutOfMemory.into();
        Ok(AlignedBuffer {
            start: start.ok_or_else(|| OutOfMemory {
                bytes,
                source: source(),
            })?,
            mapped: PAGE_BYTES,
            bytes,
            is_heap: true,
            _owner: None,
        })
    }

    /// Maps `bytes` zeroed bytes, however few.
    fn mapped(bytes: usize) -> Result<Self, OutOfMemory> {
        let too_many = || OutOfMemory {
            bytes,
            source: std::io::ErrorKind::OutOfMemory.into(),
        };
        let mapped = bytes.checked_next_multiple_of(PAGE_BYTES);
        let mapped = mapped.filter(|mapped| *mapped <= isize::MAX as usize - HUGE_PAGE_BYTES);
        let mapped = mapped.ok_or_else(too_many)?;
        let start = match mapped {
            0 => Ok(NonNull::<Page>::dangling().cast()),
            small if small < HUGE_PAGE_BYTES => pages::map(small),
            large => pages::map_huge(large),
        }
        .map_err(|source| OutOfMemory { bytes, source })?;
        Ok(AlignedBuffer {
            start,
            mapped,
            bytes,
            is_heap: false,
            _owner: None,
        })
    }

    /// Allocates `bytes` zeroed bytes whose pages come from these nodes when they are first touched.
    ///
    /// # Errors
    /// The system gives no memory, has no such nodes, or forbids the choice of nodes (EPERM, ENOSYS: some containers do).
    pub fn on_nodes(bytes: usize, nodes: &Nodes, policy: Policy) -> std::io::Result<Self> {
        let buffer = AlignedBuffer::mapped(bytes).map_err(|error| error.source)?;
        if buffer.mapped > 0 {
            // SAFETY: the whole mapping is the buffer's own.
            unsafe { crate::numa::bind(buffer.start.as_ptr(), buffer.mapped, nodes, policy)? };
        }
        Ok(buffer)
    }

    /// Returns a buffer over a part of a file that is mapped for this buffer alone.
    ///
    /// The part has `mapped` bytes from `start` on. All are initialised: zeros or other plain bytes.
    pub(crate) fn of_extent(
        start: NonNull<u8>,
        mapped: usize,
        bytes: usize,
        owner: Box<dyn Send + Sync>,
    ) -> Self {
        AlignedBuffer {
            start,
            mapped,
            bytes,
            is_heap: false,
            _owner: Some(owner),
        }
    }

    /// Returns the first `bytes` bytes of the buffer, and drops `owner` after the memory.
    ///
    /// The owner has the parts of files that are mapped in place of pages of the buffer.
    pub(crate) fn owned_by(mut self, bytes: usize, owner: Box<dyn Send + Sync>) -> Self {
        self.bytes = self.bytes.min(bytes);
        self._owner = Some(owner);
        self
    }

    /// Returns the start of a range of whole pages of the mapping; `None` if the mapping has none such.
    pub(crate) fn pages(&mut self, range: std::ops::Range<usize>) -> Option<NonNull<u8>> {
        let is_whole =
            range.start.is_multiple_of(PAGE_BYTES) && range.end.is_multiple_of(PAGE_BYTES);
        let is_within = range.start <= range.end && range.end <= self.mapped;
        // SAFETY: the offset is within the mapping, or at its end.
        (is_whole && is_within).then(|| unsafe { self.start.add(range.start) })
    }

    /// Returns the bytes that a buffer of `bytes` bytes takes: whole pages.
    pub fn footprint(bytes: usize) -> u64 {
        (bytes as u64)
            .div_ceil(PAGE_BYTES as u64)
            .saturating_mul(PAGE_BYTES as u64)
    }

    /// Returns the bytes as whole elements, as many as fit.
    #[inline]
    pub fn typed<T: Element>(&self) -> &[T] {
        const { assert!(size_of::<T>() > 0 && align_of::<T>() <= PAGE_BYTES) }
        // SAFETY: `start` is aligned for T (checked above), the elements lie within `bytes` initialised bytes that are
        // borrowed with `self`, and any bytes are a T.
        unsafe {
            std::slice::from_raw_parts(self.start.as_ptr().cast(), self.bytes / size_of::<T>())
        }
    }

    /// Returns the bytes as whole elements that can be changed, as many as fit.
    #[inline]
    pub fn typed_mut<T: Element>(&mut self) -> &mut [T] {
        const { assert!(size_of::<T>() > 0 && align_of::<T>() <= PAGE_BYTES) }
        // SAFETY: as in `typed`, and `self` is borrowed exclusively; the bytes of any T are initialised bytes.
        unsafe {
            std::slice::from_raw_parts_mut(self.start.as_ptr().cast(), self.bytes / size_of::<T>())
        }
    }

    /// Returns the start of the memory. This makes no reference to the bytes.
    pub(crate) fn start(&self) -> NonNull<u8> {
        self.start
    }
}

/// A type whose alignment the dangling pointer of an empty buffer has.
#[repr(align(4096))]
struct Page;

/// The layout of a buffer on the heap: one page.
const PAGE: Layout = match Layout::from_size_align(PAGE_BYTES, align_of::<Page>()) {
    Ok(layout) => layout,
    Err(_) => panic!("a page has a layout"),
};

/// Maps `bytes` bytes of a file or of memory to read and write; `bytes` is not 0.
pub(crate) fn map_pages(
    bytes: usize,
    flags: libc::c_int,
    file: RawFd,
    offset: libc::off_t,
) -> std::io::Result<NonNull<u8>> {
    // SAFETY: without MAP_FIXED a new mapping is at an address of the kernel's choice, and touches no memory in use.
    let start = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            bytes,
            libc::PROT_READ | libc::PROT_WRITE,
            flags & !libc::MAP_FIXED,
            file,
            offset,
        )
    };
    if start == libc::MAP_FAILED {
        return Err(std::io::Error::last_os_error());
    }
    NonNull::new(start.cast()).ok_or_else(|| std::io::ErrorKind::OutOfMemory.into())
}

#[cfg(not(miri))]
mod pages {
    use super::{HUGE_PAGE_BYTES, NonNull};

    /// Maps `bytes` zeroed bytes; `bytes` is a multiple of the page and not 0.
    pub(super) fn map(bytes: usize) -> std::io::Result<NonNull<u8>> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        super::map_pages(bytes, flags, -1, 0)
    }

    /// Maps more than `bytes`, keeps the part aligned to a huge page, and asks for huge pages.
    pub(super) fn map_huge(bytes: usize) -> std::io::Result<NonNull<u8>> {
        let whole = map(bytes + HUGE_PAGE_BYTES)?;
        let before = whole.as_ptr().align_offset(HUGE_PAGE_BYTES);
        // SAFETY: `before <= HUGE_PAGE_BYTES`, so both pointers lie in the mapping or at its end.
        let (start, end) = unsafe { (whole.add(before), whole.add(before + bytes)) };
        let after = HUGE_PAGE_BYTES - before;
        // SAFETY: the two ends are whole pages of the mapping made above, which nothing else refers to.
        unsafe {
            if before > 0 {
                unmap(whole, before);
            }
            if after > 0 {
                unmap(end, after);
            }
            // A hint: if huge pages are off, small ones serve as well.
            libc::madvise(start.as_ptr().cast(), bytes, libc::MADV_HUGEPAGE);
        }
        Ok(start)
    }

    /// # Safety
    /// `start..start + bytes` are whole mapped pages that nothing uses any more.
    pub(super) unsafe fn unmap(start: NonNull<u8>, bytes: usize) {
        // SAFETY: the caller's promise. The call can fail only on bad arguments or on too many mappings; then the
        // memory stays, which is harmless.
        unsafe { libc::munmap(start.as_ptr().cast(), bytes) };
    }
}

/// The same for Miri, which knows no madvise and no partial munmap.
#[cfg(miri)]
mod pages {
    use super::{HUGE_PAGE_BYTES, NonNull, PAGE_BYTES};
    use std::alloc::Layout;

    fn layout(bytes: usize) -> Layout {
        let align = if bytes < HUGE_PAGE_BYTES {
            PAGE_BYTES
        } else {
            HUGE_PAGE_BYTES
        };
        Layout::from_size_align(bytes, align).unwrap()
    }

    pub(super) fn map(bytes: usize) -> std::io::Result<NonNull<u8>> {
        // SAFETY: `bytes` is not 0.
        NonNull::new(unsafe { std::alloc::alloc_zeroed(layout(bytes)) })
            .ok_or_else(|| std::io::ErrorKind::OutOfMemory.into())
    }

    pub(super) fn map_huge(bytes: usize) -> std::io::Result<NonNull<u8>> {
        map(bytes)
    }

    /// # Safety
    /// `start` came from `map(bytes)` and nothing uses it any more.
    pub(super) unsafe fn unmap(start: NonNull<u8>, bytes: usize) {
        // SAFETY: the caller's promise.
        unsafe { std::alloc::dealloc(start.as_ptr(), layout(bytes)) };
    }
}

impl Drop for AlignedBuffer {
    fn drop(&mut self) {
        if self.is_heap {
            // SAFETY: `zeroed` allocated it with this layout, and all borrows of it have ended.
            unsafe { std::alloc::dealloc(self.start.as_ptr(), PAGE) };
        } else if self.mapped > 0 {
            // SAFETY: the mapping is this buffer's own, and all borrows of it have ended.
            unsafe { pages::unmap(self.start, self.mapped) };
        }
    }
}

// SAFETY: the buffer owns its memory alone, and shared access only reads it.
unsafe impl Send for AlignedBuffer {}
// SAFETY: as above.
unsafe impl Sync for AlignedBuffer {}

impl Deref for AlignedBuffer {
    type Target = [u8];
    #[inline]
    fn deref(&self) -> &[u8] {
        self.typed()
    }
}

impl DerefMut for AlignedBuffer {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        self.typed_mut()
    }
}

impl std::fmt::Debug for AlignedBuffer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AlignedBuffer")
            .field("bytes", &self.bytes)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffer_is_zeroed_aligned_and_writable() {
        for bytes in [0, 1, 4095, 4096, 4097, 2 << 20, (2 << 20) + 5] {
            let mut buffer = AlignedBuffer::zeroed(bytes).unwrap();
            let align = if bytes < 2 << 20 { 4096 } else { 2 << 20 };
            assert_eq!(buffer.len(), bytes);
            assert_eq!(buffer.as_ptr().addr() % align, 0, "{bytes}");
            assert!(buffer.iter().step_by(509).all(|&byte| byte == 0));
            if let Some(last) = buffer.last_mut() {
                *last = 7;
            }
            let moved = Box::new(buffer);
            assert!(bytes == 0 || moved[bytes - 1] == 7);
        }
    }

    #[test]
    fn typed_views_hold_whole_elements_only() {
        let mut buffer = AlignedBuffer::zeroed(4 * 8 + 7).unwrap();
        buffer
            .typed_mut::<u64>()
            .copy_from_slice(&[1, 2, 3, u64::MAX]);
        assert_eq!(buffer.typed::<u64>(), [1, 2, 3, u64::MAX]);
        assert_eq!(buffer.typed::<u32>().len(), 9);
        assert_eq!(buffer[8], 2);
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri ends where a system refuses")]
    fn buffer_beyond_the_system_is_refused() {
        for bytes in [usize::MAX, isize::MAX as usize, 1 << 62] {
            assert!(
                AlignedBuffer::zeroed(bytes)
                    .unwrap_err()
                    .to_string()
                    .contains(&bytes.to_string())
            );
        }
    }
}
