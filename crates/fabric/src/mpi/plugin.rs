//! The MPI of this machine, behind the few functions of `plugin.c`, loaded at run time.
//!
//! Invariants:
//!
//! - `held` has the buffer of every slot in flight. So the memory that MPI accesses does not move until the operation is complete.
//! - Buffers that are in flight when the plugin is dropped are never freed.
//! - `&mut self` keeps calls to one thread at a time.

#![expect(
    unsafe_code,
    reason = "calls a library, and lends it memory that it keeps hold of"
)]

use std::collections::BTreeMap;
use std::error::Error;
use std::ffi::{c_char, c_int, c_void};
use std::ops::Range;
use std::path::Path;

use graphmill_raw::AlignedBuffer;
use libloading::Library;

use crate::error::FabricError;
use crate::plugin::{MPI_PLUGIN, PluginKind, text};

/// Number of operations that one poll returns.
const POLLED_MAX: usize = 64;

type Start = unsafe extern "C" fn(*mut c_int, *mut c_int) -> c_int;
type Name = unsafe extern "C" fn(*mut c_char, c_int);
type Describe = unsafe extern "C" fn(c_int, *mut c_char, c_int);
type Send = unsafe extern "C" fn(*const c_void, u64, c_int, c_int, *mut c_int) -> c_int;
type Receive = unsafe extern "C" fn(*mut c_void, u64, c_int, c_int, *mut c_int) -> c_int;
type Poll = unsafe extern "C" fn(*mut c_int, *mut u64, *mut c_int, c_int, *mut c_int) -> c_int;

/// A loaded plugin, with MPI started.
#[derive(Debug)]
pub(crate) struct Plugin {
    send: Send,
    receive: Receive,
    poll: Poll,
    finish: unsafe extern "C" fn() -> c_int,
    describe: Describe,
    is_truncation: unsafe extern "C" fn(c_int) -> c_int,
    /// The name and version of the MPI.
    pub(crate) library: String,
    held: BTreeMap<c_int, AlignedBuffer>,
    pub(crate) rank: usize,
    pub(crate) ranks: usize,
    /// Last, since the functions above are in it. It is never unloaded, since MPI may have threads in it.
    _library: &'static Library,
}

/// An operation that is complete.
pub(crate) struct Done {
    pub(crate) slot: c_int,
    pub(crate) buffer: Option<AlignedBuffer>,
    pub(crate) result: Result<usize, Failure>,
}

/// How an operation failed.
pub(crate) enum Failure {
    /// The frame was longer than the memory for it.
    TooLong,
    /// MPI's error text.
    Mpi(String),
}

impl Plugin {
    /// Loads a plugin and starts MPI; allowed once in a process.
    ///
    /// # Errors
    /// The plugin does not exist or has another version, or MPI does not start.
    pub(crate) fn start(path: &Path) -> Result<Plugin, FabricError> {
        Plugin::load(path).map_err(|error| PluginKind::error(path, &*error))
    }

    fn load(path: &Path) -> Result<Plugin, Box<dyn Error>> {
        let library = MPI_PLUGIN.load(path)?;
        let (mut rank, mut ranks) = (0, 0);
        // SAFETY: the symbols have these types in `plugin.c` of this version; the numbers live as long as the call, and each text is
        // written to a buffer of `room` bytes.
        unsafe {
            let start = library.get::<Start>(b"graphmill_mpi_start")?;
            let describe = *library.get::<Describe>(b"graphmill_mpi_describe")?;
            let error = start(&mut rank, &mut ranks);
            if error != 0 {
                let what = text(|to, room| describe(error, to, room));
                return Err(format!("MPI does not start: {what}").into());
            }
            let name = library.get::<Name>(b"graphmill_mpi_library")?;
            Ok(Plugin {
                send: *library.get(b"graphmill_mpi_send")?,
                receive: *library.get(b"graphmill_mpi_receive")?,
                poll: *library.get(b"graphmill_mpi_poll")?,
                finish: *library.get(b"graphmill_mpi_finish")?,
                is_truncation: *library.get(b"graphmill_mpi_is_truncation")?,
                library: text(|to, room| name(to, room)),
                describe,
                held: BTreeMap::new(),
                rank: rank as usize,
                ranks: ranks as usize,
                _library: library,
            })
        }
    }

    /// Starts to send; returns the slot, or the buffer and the failure.
    pub(crate) fn send(
        &mut self,
        to: usize,
        tag: u16,
        buffer: AlignedBuffer,
        range: Range<usize>,
    ) -> Result<c_int, (AlignedBuffer, Failure)> {
        let Some(bytes) = buffer.get(range) else {
            return Err((buffer, Failure::Mpi("no such bytes of the buffer".into())));
        };
        let (mut slot, tag) = (0, c_int::from(tag));
        let (start, count) = (bytes.as_ptr().cast(), bytes.len() as u64);
        // SAFETY: the bytes are the buffer's. Its memory never moves, and `held` keeps it until the operation is complete; no code changes
        // the bytes meanwhile.
        let error = unsafe { (self.send)(start, count, to as c_int, tag, &mut slot) };
        self.hold(error, slot, buffer)
    }

    /// Starts to receive; returns the slot, or the buffer and the failure.
    pub(crate) fn receive(
        &mut self,
        from: usize,
        tag: u16,
        mut buffer: AlignedBuffer,
    ) -> Result<c_int, (AlignedBuffer, Failure)> {
        let (mut slot, tag) = (0, c_int::from(tag));
        let (start, room) = (buffer.as_mut_ptr().cast(), buffer.len() as u64);
        // SAFETY: the memory is the buffer's and never moves. `held` keeps it, and no code accesses it, until the operation is complete.
        let error = unsafe { (self.receive)(start, room, from as c_int, tag, &mut slot) };
        self.hold(error, slot, buffer)
    }

    fn hold(
        &mut self,
        error: c_int,
        slot: c_int,
        buffer: AlignedBuffer,
    ) -> Result<c_int, (AlignedBuffer, Failure)> {
        match error {
            0 => {
                self.held.insert(slot, buffer);
                Ok(slot)
            }
            error => Err((buffer, self.failure(error))),
        }
    }

    /// Lets MPI make progress and returns the finished operations.
    pub(crate) fn poll(&mut self) -> Result<Vec<Done>, Failure> {
        let mut slots = [0; POLLED_MAX];
        let mut bytes = [0; POLLED_MAX];
        let mut errors = [0; POLLED_MAX];
        let mut count = 0;
        // SAFETY: the arrays have room for the requested number of operations.
        let error = unsafe {
            (self.poll)(
                slots.as_mut_ptr(),
                bytes.as_mut_ptr(),
                errors.as_mut_ptr(),
                POLLED_MAX as c_int,
                &mut count,
            )
        };
        if error != 0 {
            return Err(self.failure(error));
        }
        let done = slots.iter().zip(bytes).zip(errors).take(count as usize);
        let done = done.map(|((slot, bytes), error)| Done {
            slot: *slot,
            buffer: self.held.remove(slot),
            result: match error {
                0 => Ok(bytes as usize),
                error => Err(self.failure(error)),
            },
        });
        Ok(done.collect())
    }

    /// Ends all operations in flight, and MPI. No other method may be called afterwards.
    pub(crate) fn finish(&mut self) -> Result<(), Failure> {
        // SAFETY: MPI was started, and the caller ensures that it is ended once.
        match unsafe { (self.finish)() } {
            0 => {
                self.held.clear();
                Ok(())
            }
            error => Err(self.failure(error)),
        }
    }

    fn failure(&self, error: c_int) -> Failure {
        // SAFETY: the function takes a number and returns a number.
        if unsafe { (self.is_truncation)(error) } != 0 {
            return Failure::TooLong;
        }
        // SAFETY: `text` passes a buffer of `room` bytes.
        Failure::Mpi(text(|to, room| unsafe { (self.describe)(error, to, room) }))
    }
}

impl Drop for Plugin {
    fn drop(&mut self) {
        // MPI may still access the buffers of operations in flight.
        std::mem::forget(std::mem::take(&mut self.held));
    }
}
