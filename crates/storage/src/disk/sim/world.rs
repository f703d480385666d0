//! The state that the clones and queues of a simulated disk share, and its open files.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use graphmill_raw::lock;

use super::content::Content;
use super::faults::{FaultKind, FaultSchedule, On, error_of};
use super::names::Namespace;
use crate::disk::port::DiskFile;
use crate::error::StorageError;

/// The names and the faults of a simulated disk.
#[derive(Debug)]
pub(super) struct World {
    pub(super) names: Mutex<Namespace>,
    pub(super) fate: Mutex<FaultSchedule>,
}

/// An open file: like a descriptor, it outlives its name.
#[derive(Debug)]
pub(super) struct SimFile {
    pub(super) path: PathBuf,
    pub(super) content: Arc<Mutex<Content>>,
}

impl World {
    /// Counts an operation and returns the fault that hits it.
    pub(super) fn fate(&self, on: On) -> Option<FaultKind> {
        lock(&self.fate).next(on)
    }

    /// Counts an operation that can only succeed or fail, and fails it as planned.
    pub(super) fn fail(&self, on: On) -> io::Result<()> {
        self.fate(on).and_then(error_of).map_or(Ok(()), Err)
    }

    /// Flips a bit that is drawn, if the fault says so.
    pub(super) fn flip(&self, fault: Option<FaultKind>, bytes: &mut [u8]) {
        if fault == Some(FaultKind::FlipBit) && !bytes.is_empty() {
            let bit = self.draw(8 * bytes.len() as u64);
            bytes[bit as usize / 8] ^= 1 << (bit % 8);
        }
    }

    pub(super) fn draw(&self, bound: u64) -> u64 {
        lock(&self.fate).random.below(bound)
    }
}

impl DiskFile for SimFile {
    fn path(&self) -> &Path {
        &self.path
    }

    fn len(&self) -> Result<u64, StorageError> {
        Ok(lock(&self.content).bytes.len() as u64)
    }
}
