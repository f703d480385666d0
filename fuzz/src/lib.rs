//! The allocator of every fuzz target: an input that makes a reader ask for much memory at once fails.
//!
//! libFuzzer can limit allocations by itself only where a sanitizer tells it of them. Its own memory does not come from here, nor does what
//! the crates map themselves: that is counted by the budget of a target.

use std::alloc::{GlobalAlloc, Layout, System};
use std::io::Write;

/// The largest piece of memory that an input may ask for, in bytes.
///
/// It is far above what the targets need, and far below what an unchecked length asks for.
const ALLOCATION_BYTES_MAX: usize = 64 << 20;

#[global_allocator]
static ALLOCATOR: Limited = Limited;

struct Limited;

// SAFETY: everything comes from `System` and goes back to it with the layout it came with; a request that is too large ends the
// process instead of unwinding.
unsafe impl GlobalAlloc for Limited {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        limit(layout.size());
        // SAFETY: the caller's promise on the layout.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        limit(layout.size());
        // SAFETY: the caller's promise on the layout.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, start: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        limit(bytes);
        // SAFETY: the caller's promise; `start` came from `System`, as all that is handed out here.
        unsafe { System.realloc(start, layout, bytes) }
    }

    unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise; `start` came from `System`, as all that is handed out here.
        unsafe { System.dealloc(start, layout) }
    }
}

#[inline]
fn limit(bytes: usize) {
    if bytes > ALLOCATION_BYTES_MAX {
        too_large(bytes);
    }
}

/// No panic: an allocator must not unwind. libFuzzer takes the abort for a crash, and keeps the input.
#[cold]
fn too_large(bytes: usize) -> ! {
    // Neither the number nor standard error takes memory from the allocator.
    let _ = writeln!(
        std::io::stderr(),
        "ERROR: {bytes} bytes of memory at once, more than {ALLOCATION_BYTES_MAX}"
    );
    std::process::abort()
}
